// Writes the record batches under src/record/testdata with Apache Kafka's own classes. See README.md beside this file.

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.function.Consumer;
import java.util.zip.CRC32C;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;

public class GoldenRecords {
    static final long TIME = 1_700_000_000_000L;
    static Path dir;

    public static void main(String[] args) throws Exception {
        dir = Path.of(args[0]);
        List<Compression> codecs = List.of(
            Compression.NONE, Compression.gzip().build(), Compression.snappy().build(), Compression.lz4().build(),
            Compression.zstd().build());
        for (Compression codec : codecs) {
            String name = codec.type().name;
            write("v2-" + name, v2(codec, TimestampType.CREATE_TIME, false), GoldenRecords::mixed);
            if (codec != Compression.NONE)
                write("v2-long-" + name, v2(codec, TimestampType.CREATE_TIME, false), GoldenRecords::many);
        }
        write("v2-append-time", v2(Compression.NONE, TimestampType.LOG_APPEND_TIME, false), GoldenRecords::mixed);
        write("v2-transactional", v2(Compression.zstd().build(), TimestampType.CREATE_TIME, true), GoldenRecords::mixed);
        save("control-commit", MemoryRecords.withEndTransactionMarker(77L, TIME, 5, 4001L, (short) 3,
            new EndTransactionMarker(ControlRecordType.COMMIT, 9)).buffer());
        save("control-abort", MemoryRecords.withEndTransactionMarker(78L, TIME + 1, 5, 4001L, (short) 3,
            new EndTransactionMarker(ControlRecordType.ABORT, 10)).buffer());
        save("control-leader-change", MemoryRecords.withLeaderChangeMessage(79L, TIME + 2, 5, ByteBuffer.allocate(256),
            new LeaderChangeMessage().setLeaderId(1)).buffer());
        for (byte magic = 0; magic <= 1; magic++) {
            for (Compression codec : codecs.subList(0, 4)) {
                String name = "v" + magic + "-" + codec.type().name;
                write(name, legacy(magic, codec, TimestampType.CREATE_TIME), GoldenRecords::old);
            }
        }
        write("v1-append-time-gzip", legacy((byte) 1, Compression.gzip().build(), TimestampType.LOG_APPEND_TIME),
            GoldenRecords::old);
    }

    static MemoryRecordsBuilder v2(Compression codec, TimestampType type, boolean transactional) {
        ByteBuffer buffer = ByteBuffer.allocate(1 << 16);
        return MemoryRecords.builder(buffer, RecordBatch.MAGIC_VALUE_V2, codec, type, 1000L, TIME + 50,
            transactional ? 4001L : -1L, (short) (transactional ? 3 : -1), transactional ? 17 : -1, transactional, 5);
    }

    static MemoryRecordsBuilder legacy(byte magic, Compression codec, TimestampType type) {
        return MemoryRecords.builder(ByteBuffer.allocate(1 << 16), magic, codec,
            magic == 0 ? TimestampType.NO_TIMESTAMP_TYPE : type, 1000L, TIME + 50);
    }

    /** Nulls, tombstones, empty fields, headers of all kinds, times that go back. */
    static void mixed(MemoryRecordsBuilder builder) {
        builder.append(TIME, bytes("key"), bytes("value"));
        builder.append(TIME + 300, null, bytes("no key"));
        builder.append(TIME - 5, bytes("tombstone"), null);
        builder.append(TIME + 1, bytes(""), bytes(""));
        builder.append(TIME + 2, bytes("headers"), bytes("three"), new Header[] {
            new RecordHeader("a", bytes("1")), new RecordHeader("a", (byte[]) null), new RecordHeader("", bytes(""))});
        builder.append(TIME + 3, (byte[]) null, (byte[]) null);
    }

    /** More than a codec's block: a value of 70,000 bytes that lies across several, with small ones around it. */
    static void many(MemoryRecordsBuilder builder) {
        for (int i = 0; i < 40; i++)
            builder.append(TIME + i, bytes("key-" + i), bytes("value " + "x".repeat(i) + i));
        builder.append(TIME, bytes("large"), bytes("0123456789".repeat(7000)));
        for (int i = 0; i < 40; i++)
            builder.append(TIME + i, bytes("key-" + i), bytes("value " + i));
    }

    static void old(MemoryRecordsBuilder builder) {
        builder.append(TIME, bytes("key"), bytes("value"));
        builder.append(TIME + 300, null, bytes("no key"));
        builder.append(TIME + 1, bytes("tombstone"), null);
        builder.append(TIME + 2, bytes("large"), bytes("0123456789".repeat(500)));
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static void write(String name, MemoryRecordsBuilder builder, Consumer<MemoryRecordsBuilder> fill) throws Exception {
        fill.accept(builder);
        save(name, builder.build().buffer());
    }

    static void save(String name, ByteBuffer buffer) throws Exception {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        Files.write(dir.resolve(name + ".bin"), bytes);
        // What Kafka itself reads in them: offset, timestamp, key, value and headers of each record.
        StringBuilder text = new StringBuilder();
        for (Record record : MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)).records()) {
            text.append(record.offset()).append(' ').append(record.timestamp());
            text.append(' ').append(field(record.key())).append(' ').append(field(record.value()));
            for (Header header : record.headers()) {
                byte[] value = header.value();
                text.append(' ').append(field(ByteBuffer.wrap(bytes(header.key())))).append('=')
                    .append(field(value == null ? null : ByteBuffer.wrap(value)));
            }
            text.append('\n');
        }
        Files.writeString(dir.resolve(name + ".txt"), text);
    }

    /** `null`, the bytes in hexadecimal between quotes, or for long ones how many there are and their CRC-32C. */
    static String field(ByteBuffer field) {
        if (field == null)
            return "null";
        byte[] bytes = new byte[field.remaining()];
        field.duplicate().get(bytes);
        if (bytes.length > 100) {
            CRC32C crc = new CRC32C();
            crc.update(bytes);
            return bytes.length + ":" + Long.toHexString(crc.getValue());
        }
        return '"' + HexFormat.of().formatHex(bytes) + '"';
    }
}
