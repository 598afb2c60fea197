import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.Crc32C;

/** Record batches in hex, good ones and damaged ones. All times are fixed, so that the bytes are the same in every run. */
final class Batches {
    static final int LENGTH = 8, MAGIC = 16, CRC = 17, ATTRIBUTES = 21, LAST_DELTA = 23, BASE_TIME = 27, MAX_TIME = 35, PRODUCER_ID = 43, EPOCH = 51, SEQUENCE = 53, COUNT = 57, RECORDS = 61;

    static SimpleRecord record(long timestamp, String key, String value) {
        return new SimpleRecord(timestamp, key == null ? null : key.getBytes(StandardCharsets.UTF_8), value == null ? null : value.getBytes(StandardCharsets.UTF_8), new Header[0]);
    }

    static SimpleRecord[] records(int count) {
        SimpleRecord[] all = new SimpleRecord[count];
        for (int i = 0; i < count; i++) {
            all[i] = record(1000 + i, "key-" + i, "value-" + i);
        }
        return all;
    }

    static String plain(SimpleRecord... records) {
        return hex(MemoryRecords.withRecords(Compression.NONE, records));
    }

    static String compressed(Compression compression, SimpleRecord... records) {
        return hex(MemoryRecords.withRecords(compression, records));
    }

    static String idempotent(long producerId, int epoch, int sequence, int count) {
        return hex(MemoryRecords.withIdempotentRecords(Compression.NONE, producerId, (short) epoch, sequence, records(count)));
    }

    static String transactional(long producerId, int epoch, int sequence, int count) {
        return hex(MemoryRecords.withTransactionalRecords(Compression.NONE, producerId, (short) epoch, sequence, records(count)));
    }

    static String marker(long producerId) {
        return hex(MemoryRecords.withEndTransactionMarker(producerId, (short) 0, new EndTransactionMarker(ControlRecordType.COMMIT, 0)));
    }

    /** Message format 0 or 1, as producers of old wrote it. */
    static String legacy(byte magic, SimpleRecord... records) {
        return hex(MemoryRecords.withRecords(magic, 0L, Compression.NONE, TimestampType.CREATE_TIME, records));
    }

    static String set(String hex, int at, int... bytes) {
        byte[] all = HexFormat.of().parseHex(hex);
        for (int i = 0; i < bytes.length; i++) {
            all[at + i] = (byte) bytes[i];
        }
        return HexFormat.of().formatHex(all);
    }

    static String setInt(String hex, int at, int value) {
        return set(hex, at, value >>> 24, value >>> 16, value >>> 8, value);
    }

    /** The checksum of what the (one) batch holds now. */
    static String sealed(String hex) {
        byte[] all = HexFormat.of().parseHex(hex);
        ByteBuffer.wrap(all).putInt(CRC, (int) Crc32C.compute(all, ATTRIBUTES, all.length - ATTRIBUTES));
        return HexFormat.of().formatHex(all);
    }

    private static String hex(MemoryRecords records) {
        ByteBuffer buffer = records.buffer().duplicate();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
