import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.PrintWriter;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.BaseRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;

/**
 * Writes messages of the Kafka protocol as Apache Kafka itself serialises them, for doze's own serialiser to be checked against.
 *
 * <pre>java -cp 'LIBS/*:CLASSES' GoldenMessages OUT</pre>
 *
 * OUT/apis.txt has the facts about each API, OUT/headers.txt the headers, and OUT/NAME.txt the messages of one API.
 * A message line is `request|response VERSION FORM HEX JSON`; HEX is `-` for a message without bytes. The forms:
 *   empty  what a new object holds;
 *   null   null wherever this version allows null, one element in every list that may not be null;
 *   full   every field that this version has is set to a value of its own, two elements in every list, tagged fields too.
 * A field that a version does not have keeps its default, so each line decodes to the object that its JSON tells.
 */
public final class GoldenMessages {
    private enum Form { EMPTY, NULL, FULL }

    private final Form form;
    private int counter;

    private GoldenMessages(Form form) {
        this.form = form;
    }

    public static void main(String[] args) throws Exception {
        Path out = Path.of(args[0]);
        Files.createDirectories(out);
        try (PrintWriter apis = writer(out.resolve("apis.txt"))) {
            apis.println("# KEY NAME FIRST_VERSION LAST_VERSION FIRST_FLEXIBLE_VERSION|none then for each version REQUEST_HEADER/RESPONSE_HEADER");
            for (ApiMessageType api : ApiMessageType.values()) {
                if (!api.listeners().contains(ApiMessageType.ListenerType.BROKER)) {
                    continue;
                }
                String name = camelCase(api.name());
                short first = api.lowestSupportedVersion();
                short last = api.highestSupportedVersion(false);
                String flexible = "none";
                StringBuilder headers = new StringBuilder();
                for (short v = first; v <= last; v++) {
                    headers.append(' ').append(api.requestHeaderVersion(v)).append('/').append(api.responseHeaderVersion(v));
                    if (flexible.equals("none") && api.requestHeaderVersion(v) >= 2) {
                        flexible = Short.toString(v);
                    }
                }
                apis.println(api.apiKey() + " " + name + " " + first + " " + last + " " + flexible + headers);
                try (PrintWriter messages = writer(out.resolve(name + ".txt"))) {
                    for (short v = first; v <= last; v++) {
                        writeForms(messages, "request", api.newRequest().getClass().asSubclass(Message.class), v);
                    }
                    for (short v = first; v <= last; v++) {
                        writeForms(messages, "response", api.newResponse().getClass().asSubclass(Message.class), v);
                    }
                }
            }
        }
        try (PrintWriter headers = writer(out.resolve("headers.txt"))) {
            for (short v = RequestHeaderData.LOWEST_SUPPORTED_VERSION; v <= RequestHeaderData.HIGHEST_SUPPORTED_VERSION; v++) {
                writeForms(headers, "request", RequestHeaderData.class, v);
            }
            for (short v = ResponseHeaderData.LOWEST_SUPPORTED_VERSION; v <= ResponseHeaderData.HIGHEST_SUPPORTED_VERSION; v++) {
                writeForms(headers, "response", ResponseHeaderData.class, v);
            }
        }
    }

    private static PrintWriter writer(Path path) throws IOException {
        return new PrintWriter(Files.newBufferedWriter(path, StandardCharsets.UTF_8));
    }

    private static void writeForms(PrintWriter out, String direction, Class<? extends Message> type, short version) throws Exception {
        for (Form form : Form.values()) {
            Message message = new GoldenMessages(form).build(type, schema(type, version));
            ByteBuffer bytes;
            JsonNode json;
            try {
                bytes = MessageUtil.toByteBufferAccessor(message, version).buffer();
                json = toJson(message, version);
            } catch (RuntimeException e) {
                throw new IllegalStateException(type.getSimpleName() + " version " + version + " form " + form, e);
            }
            checkRoundTrip(type, version, message, bytes.duplicate());
            String hex = HexFormat.of().formatHex(bytes.array(), bytes.arrayOffset() + bytes.position(), bytes.arrayOffset() + bytes.limit());
            out.println(direction + " " + version + " " + form.name().toLowerCase(Locale.ROOT) + " " + (hex.isEmpty() ? "-" : hex) + " " + json);
        }
    }

    /** What Kafka reads back from the bytes is the object that was built; otherwise the line would state nothing. */
    private static void checkRoundTrip(Class<? extends Message> type, short version, Message message, ByteBuffer bytes) throws Exception {
        Message again = type.getDeclaredConstructor().newInstance();
        ByteBuffer whole = bytes.duplicate();
        again.read(new ByteBufferAccessor(bytes), version);
        if (bytes.hasRemaining()) {
            throw new IllegalStateException(type.getSimpleName() + " version " + version + ": " + bytes.remaining() + " bytes were not read");
        }
        if (!MessageUtil.toByteBufferAccessor(again, version).buffer().equals(whole) || !toJson(again, version).equals(toJson(message, version))) {
            throw new IllegalStateException(type.getSimpleName() + " version " + version + " is not read as it was written: " + message + " / " + again);
        }
    }

    private static Schema schema(Class<?> type, short version) throws ReflectiveOperationException {
        return ((Schema[]) type.getField("SCHEMAS").get(null))[version];
    }

    private static JsonNode toJson(Message message, short version) throws ReflectiveOperationException {
        Class<?> converter = Class.forName(message.getClass().getName() + "JsonConverter");
        try {
            Method write = converter.getMethod("write", message.getClass(), short.class, boolean.class);
            return (JsonNode) write.invoke(null, message, version, false);
        } catch (InvocationTargetException e) {
            throw new IllegalStateException(e.getCause());
        }
    }

    private Message build(Class<?> type, Schema schema) throws ReflectiveOperationException {
        var make = type.getDeclaredConstructor();
        make.setAccessible(true);
        Message message = (Message) make.newInstance();
        if (form == Form.EMPTY) {
            return message;
        }
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields tagged) {
                for (Map.Entry<Integer, org.apache.kafka.common.protocol.types.Field> e : tagged.fields().entrySet()) {
                    set(message, e.getValue().name, e.getValue().type);
                }
            } else {
                set(message, bound.def.name, bound.def.type);
            }
        }
        return message;
    }

    private void set(Message message, String name, Type type) throws ReflectiveOperationException {
        Field field = field(message.getClass(), name);
        // Kafka's plain records types call themselves nullable, and are written without a look for null.
        boolean nullable = type.isNullable() && type != Type.RECORDS && type != Type.COMPACT_RECORDS;
        if (form == Form.NULL && nullable) {
            field.set(message, null);
        } else if (form == Form.FULL || type.isArray() || type instanceof Schema) {
            field.set(message, value(type, field.getType(), field));
        } else if (BaseRecords.class.isAssignableFrom(field.getType())) {
            field.set(message, MemoryRecords.EMPTY);
        }
    }

    private Object value(Type type, Class<?> java, Field field) throws ReflectiveOperationException {
        if (type.isArray()) {
            Type element = type.arrayElementType().orElseThrow();
            @SuppressWarnings("unchecked")
            java.util.Collection<Object> list =
                java == List.class ? new ArrayList<>() : (java.util.Collection<Object>) java.getDeclaredConstructor().newInstance();
            Class<?> elementClass = elementClass(java, field);
            for (int i = 0; i < (form == Form.FULL ? 2 : 1); i++) {
                list.add(value(element, elementClass, null));
            }
            return list;
        }
        if (type instanceof Schema schema) {
            return build(java, schema);
        }
        int n = ++counter;
        if (java == boolean.class) {
            return true;
        } else if (java == byte.class || java == Byte.class) {
            return (byte) (n % 127 + 1);
        } else if (java == short.class || java == Short.class) {
            return (short) (n % 2 == 0 ? 1000 + n : -1000 - n);
        } else if (java == int.class || java == Integer.class) {
            // Unsigned 16-bit numbers are ints in Java; a port is the one that there is.
            return type == Type.UINT16 ? 60000 + n : n % 2 == 0 ? 100_000_000 + n : -100_000_000 - n;
        } else if (java == long.class || java == Long.class) {
            return type == Type.UNSIGNED_INT32 ? 4_000_000_000L + n : n % 2 == 0 ? 1_000_000_000_000L + n : -1_000_000_000_000L - n;
        } else if (java == double.class) {
            return n + 0.25;
        } else if (java == Uuid.class) {
            return new Uuid(0x0123456789abcdefL + n, 0x7edcba9876543210L - n);
        } else if (java == String.class) {
            return n % 7 == 0 ? "long-" + n + "-" + "x".repeat(140) : n % 3 == 0 ? "grüße-" + n : "text-" + n;
        } else if (java == ByteBuffer.class) {
            return ByteBuffer.wrap(bytes(n));
        } else if (java == byte[].class) {
            return bytes(n);
        } else if (BaseRecords.class.isAssignableFrom(java)) {
            return MemoryRecords.withRecords((byte) 2, 100L + n, Compression.NONE, TimestampType.CREATE_TIME,
                new SimpleRecord(1_700_000_000_000L + n, ("key-" + n).getBytes(StandardCharsets.UTF_8), bytes(n)),
                new SimpleRecord(1_700_000_000_001L + n, null, bytes(n + 1)));
        }
        throw new IllegalStateException("no value for " + java + " (" + type + ")");
    }

    private static byte[] bytes(int n) {
        byte[] bytes = new byte[n % 5 == 0 ? 200 : 3 + n % 4];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) (n + 37 * i);
        }
        return bytes;
    }

    private static Class<?> elementClass(Class<?> java, Field field) {
        java.lang.reflect.Type generic = java == List.class ? field.getGenericType() : java.getGenericSuperclass();
        java.lang.reflect.Type argument = ((ParameterizedType) generic).getActualTypeArguments()[0];
        return argument instanceof ParameterizedType p ? (Class<?>) p.getRawType() : (Class<?>) argument;
    }

    /** A schema names its fields in snake case, a class in camel case. */
    private static Field field(Class<?> type, String name) {
        String wanted = name.replace("_", "");
        for (Field field : type.getDeclaredFields()) {
            if (!Modifier.isStatic(field.getModifiers()) && field.getName().equalsIgnoreCase(wanted)) {
                field.setAccessible(true);
                return field;
            }
        }
        throw new IllegalStateException(type + " has no field " + name);
    }

    private static String camelCase(String upper) {
        StringBuilder name = new StringBuilder();
        for (String word : upper.split("_")) {
            name.append(word.charAt(0)).append(word.substring(1).toLowerCase(Locale.ROOT));
        }
        return name.toString();
    }
}
