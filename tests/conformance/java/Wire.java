import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.record.internal.BaseRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;

/** Requests written from loose JSON, sent over a connection of their own, and what came back. */
final class Wire {
    static final int CORRELATION_ID = 7;
    static final String CLIENT_ID = "conformance";

    /** `response`: a frame came. `closed`: the connection was closed without one. `silent`: nothing came, and the connection stayed open. */
    record Answer(String outcome, byte[] frame) { }

    private final String host;
    private final int port;

    Wire(String bootstrap) {
        host = bootstrap.substring(0, bootstrap.lastIndexOf(':'));
        port = Integer.parseInt(bootstrap.substring(bootstrap.lastIndexOf(':') + 1));
    }

    /** Sends the bytes as they are. A broker that means to say nothing is given a second for it, one that answers ten. */
    Answer exchange(byte[] bytes, boolean answerExpected) throws IOException {
        try (Socket socket = new Socket(host, port)) {
            socket.setSoTimeout(answerExpected ? 10_000 : 1_000);
            new DataOutputStream(socket.getOutputStream()).write(bytes);
            DataInputStream in = new DataInputStream(socket.getInputStream());
            byte[] frame = new byte[in.readInt()];
            in.readFully(frame);
            return new Answer("response", frame);
        } catch (SocketTimeoutException e) {
            return new Answer("silent", new byte[0]);
        } catch (EOFException | SocketException e) {
            return new Answer("closed", new byte[0]);
        }
    }

    static byte[] framed(byte[] request) {
        return ByteBuffer.allocate(4 + request.length).putInt(request.length).put(request).array();
    }

    /** Header and body. */
    static byte[] request(ApiMessageType api, short version, Message body) {
        RequestHeaderData header = new RequestHeaderData().setRequestApiKey(api.apiKey()).setRequestApiVersion(version).setCorrelationId(CORRELATION_ID).setClientId(CLIENT_ID);
        return join(bytes(header, api.requestHeaderVersion(version)), bytes(body, version));
    }

    static byte[] bytes(Message message, short version) {
        ByteBuffer buffer = MessageUtil.toByteBufferAccessor(message, version).buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }

    static byte[] join(byte[]... parts) {
        int length = 0;
        for (byte[] part : parts) {
            length += part.length;
        }
        ByteBuffer joined = ByteBuffer.allocate(length);
        for (byte[] part : parts) {
            joined.put(part);
        }
        return joined.array();
    }

    /** The fields of a response frame, records as their bytes in hex. */
    static ObjectNode fields(ApiMessageType api, short version, byte[] frame) throws ReflectiveOperationException {
        ByteBufferAccessor in = new ByteBufferAccessor(ByteBuffer.wrap(frame));
        ResponseHeaderData header = new ResponseHeaderData(in, api.responseHeaderVersion(version));
        if (header.correlationId() != CORRELATION_ID) {
            throw new IllegalStateException("the answer has correlation id " + header.correlationId());
        }
        ApiMessage body = api.newResponse();
        body.read(in, version);
        if (in.remaining() != 0) {
            throw new IllegalStateException(in.remaining() + " bytes follow the answer");
        }
        Class<?> converter = Class.forName(body.getClass().getName() + "JsonConverter");
        ObjectNode fields = (ObjectNode) converter.getMethod("write", body.getClass(), short.class, boolean.class).invoke(null, body, version, false);
        putRecords(fields, body);
        return fields;
    }

    /** Beside each `recordsSizeInBytes` goes what the converter leaves out: the records themselves. */
    private static void putRecords(JsonNode node, Object message) throws ReflectiveOperationException {
        for (Field field : message.getClass().getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers())) {
                continue;
            }
            field.setAccessible(true);
            Object value = field.get(message);
            if (value instanceof MemoryRecords records && node instanceof ObjectNode object && object.has("recordsSizeInBytes")) {
                ByteBuffer buffer = records.buffer().duplicate();
                byte[] bytes = new byte[buffer.remaining()];
                buffer.get(bytes);
                object.put("records", HexFormat.of().formatHex(bytes));
            } else if (value instanceof Collection<?> all && node.path(field.getName()).isArray()) {
                JsonNode array = node.get(field.getName());
                int i = 0;
                for (Object one : all) {
                    if (one instanceof Message) {
                        putRecords(array.get(i), one);
                    }
                    i++;
                }
            }
        }
    }

    /** An object with the fields that the JSON names; the others keep their defaults. Bytes and records are in hex, `$NAME` is a topic's id. */
    static <T> T fill(T object, JsonNode json, Map<String, Uuid> ids) throws ReflectiveOperationException {
        for (var entry : json.properties()) {
            Field field = object.getClass().getDeclaredField(entry.getKey());
            field.setAccessible(true);
            Class<?> element = Collection.class.isAssignableFrom(field.getType()) ? elementOf(field) : null;
            field.set(object, value(field.getType(), element, entry.getValue(), ids));
        }
        return object;
    }

    private static Class<?> elementOf(Field field) {
        java.lang.reflect.Type generic = field.getType() == List.class ? field.getGenericType() : field.getType().getGenericSuperclass();
        return (Class<?>) ((ParameterizedType) generic).getActualTypeArguments()[0];
    }

    private static Object value(Class<?> type, Class<?> element, JsonNode json, Map<String, Uuid> ids) throws ReflectiveOperationException {
        if (json.isNull()) {
            return null;
        } else if (element != null) {
            @SuppressWarnings("unchecked")
            Collection<Object> all = type == List.class ? new ArrayList<>() : (Collection<Object>) type.getDeclaredConstructor().newInstance();
            for (JsonNode one : json) {
                all.add(value(element, null, one, ids));
            }
            return all;
        } else if (type == String.class) {
            return json.textValue();
        } else if (type == boolean.class) {
            return json.booleanValue();
        } else if (type == byte.class || type == Byte.class) {
            return (byte) json.intValue();
        } else if (type == short.class || type == Short.class) {
            return (short) json.intValue();
        } else if (type == int.class || type == Integer.class) {
            return json.intValue();
        } else if (type == long.class || type == Long.class) {
            return json.longValue();
        } else if (type == Uuid.class) {
            String text = json.textValue();
            return text.startsWith("$") ? ids.get(text.substring(1)) : Uuid.fromString(text);
        } else if (type == byte[].class) {
            return HexFormat.of().parseHex(json.textValue());
        } else if (BaseRecords.class.isAssignableFrom(type)) {
            return MemoryRecords.readableRecords(ByteBuffer.wrap(HexFormat.of().parseHex(json.textValue())));
        } else {
            var make = type.getDeclaredConstructor();
            make.setAccessible(true);
            return fill(make.newInstance(), json, ids);
        }
    }
}
