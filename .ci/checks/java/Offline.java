import java.io.File;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.zip.CRC32;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Directories for the offline commands to be compared over. What the commands are for is told in ../offline. */
public final class Offline {
    private static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};
    private static final long START_MS = 1_700_000_000_000L;

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "write" -> write(args[1], Long.parseLong(args[2]), Integer.parseInt(args[3]), Integer.parseInt(args[4]));
            case "old" -> old(Path.of(args[1]));
            case "read" -> read(args[1], args[2], List.of(args).subList(3, args.length));
            case "open" -> open(args[1], Boolean.parseBoolean(args[2]));
            case "large" -> large(args[1], args[2], Long.parseLong(args[3]), Integer.parseInt(args[4]), args[5]);
            default -> throw new IllegalArgumentException(args[0]);
        }
        System.exit(0);
    }

    private static KafkaProducer<byte[], byte[]> producer(String bootstrap, String codec, String transactionalId) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", bootstrap);
        config.put("acks", "all");
        config.put("compression.type", codec);
        // One batch for each flush.
        config.put("linger.ms", "60000");
        config.put("batch.size", "1000000");
        if (transactionalId != null) {
            config.put("transactional.id", transactionalId);
        }
        return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static NewTopic topic(String name, int partitions, String... configs) {
        Map<String, String> map = new HashMap<>();
        for (String config : configs) {
            map.put(config.substring(0, config.indexOf('=')), config.substring(config.indexOf('=') + 1));
        }
        return new NewTopic(name, partitions, (short) 1).configs(map);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** Words, so that there is something to compress, and nothing in them that a line of text could not hold. */
    private static String words(Random random, int count) {
        String[] words = {"alpha", "beta", "gamma", "delta", "epsilon", "zeta"};
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < count; i++) {
            text.append(words[random.nextInt(words.length)]).append(random.nextInt(100)).append('-');
        }
        return text.toString();
    }

    private static ProducerRecord<byte[], byte[]> record(Random random, String topic, int partition, long timestamp) {
        byte[] key = random.nextInt(8) == 0 ? null : bytes("key-" + random.nextInt(40));
        byte[] value = key != null && random.nextInt(8) == 0 ? null : bytes(words(random, random.nextInt(20)));
        List<Header> headers = new ArrayList<>();
        for (int i = random.nextInt(6) - 3; i > 0; i--) {
            headers.add(new RecordHeader("header-" + i, random.nextBoolean() ? null : bytes("h" + i)));
        }
        return new ProducerRecord<>(topic, partition, timestamp, key, value, headers);
    }

    /** write BOOTSTRAP SEED BATCHES SEGMENT_BYTES: topics of every kind. */
    private static void write(String bootstrap, long seed, int batches, int segmentBytes) throws Exception {
        Random random = new Random(seed);
        String segment = "internal.segment.bytes=" + segmentBytes;
        String interval = "index.interval.bytes=512";
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(
                topic("codecs", 2, segment, interval),
                topic("append-time", 1, segment, interval, "message.timestamp.type=LogAppendTime"),
                topic("transactions", 1, segment, interval),
                topic("compacted", 1, segment, interval, "cleanup.policy=compact", "min.cleanable.dirty.ratio=0.0", "delete.retention.ms=100"),
                topic("empty", 3))).all().get();
        }
        for (int batch = 0; batch < batches; batch++) {
            String codec = CODECS[batch % CODECS.length];
            try (KafkaProducer<byte[], byte[]> producer = producer(bootstrap, codec, null)) {
                for (String topic : List.of("codecs", "append-time", "compacted")) {
                    int records = 1 + random.nextInt(12);
                    for (int i = 0; i < records; i++) {
                        ProducerRecord<byte[], byte[]> record = record(random, topic, topic.equals("codecs") ? batch % 2 : 0, START_MS + batch * 1000L + random.nextInt(500));
                        if (topic.equals("compacted") && record.key() == null) {
                            continue;
                        }
                        producer.send(record);
                    }
                    producer.flush();
                }
            }
        }
        for (int batch = 0; batch < batches; batch++) {
            try (KafkaProducer<byte[], byte[]> producer = producer(bootstrap, CODECS[batch % CODECS.length], "tx-" + batch % 3)) {
                producer.initTransactions();
                for (int transaction = 0; transaction < 2; transaction++) {
                    producer.beginTransaction();
                    for (int i = random.nextInt(5); i >= 0; i--) {
                        producer.send(record(random, "transactions", 0, START_MS + batch * 1000L + i));
                    }
                    producer.flush();
                    if (random.nextBoolean()) {
                        producer.sendOffsetsToTransaction(Map.of(new TopicPartition("codecs", 0), new OffsetAndMetadata(batch)), new ConsumerGroupMetadata("in-transactions"));
                    }
                    if (random.nextInt(3) == 0) {
                        producer.abortTransaction();
                    } else {
                        producer.commitTransaction();
                    }
                }
            }
        }
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.alterConsumerGroupOffsets("readers", Map.of(
                new TopicPartition("codecs", 0), new OffsetAndMetadata(3),
                new TopicPartition("transactions", 0), new OffsetAndMetadata(1))).all().get();
        }
    }

    /** read BOOTSTRAP ISOLATION TOPIC...: a line for each record (topic, partition, offset, checksum) and each partition (topic, partition, its end). */
    private static void read(String bootstrap, String isolation, List<String> topics) throws Exception {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", bootstrap);
        config.put("isolation.level", isolation);
        StringBuilder lines = new StringBuilder();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = topics.stream().flatMap(topic -> consumer.partitionsFor(topic).stream())
                .map(info -> new TopicPartition(info.topic(), info.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            long deadline = System.nanoTime() + 60_000_000_000L;
            while (partitions.stream().anyMatch(partition -> consumer.position(partition) < ends.get(partition))) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException("a reader stays before the end: " + ends);
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    CRC32 crc = new CRC32();
                    for (byte[] part : new byte[][] {record.key(), record.value(), bytes(record.headers().toString())}) {
                        crc.update(part == null ? bytes("null") : part);
                    }
                    lines.append(String.format("%s\t%d\t%d\t%08x%n", record.topic(), record.partition(), record.offset(), crc.getValue()));
                }
            }
            ends.forEach((partition, end) -> lines.append(String.format("%s\t%d\t%d%n", partition.topic(), partition.partition(), end)));
        }
        System.out.print(lines);
    }

    /** open BOOTSTRAP EXIT: leaves a transaction open; then, if EXIT, ends without another word, else stays. */
    private static void open(String bootstrap, boolean exit) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producer(bootstrap, "none", "left-open");
        producer.initTransactions();
        producer.beginTransaction();
        producer.send(new ProducerRecord<>("transactions", 0, START_MS, bytes("open"), bytes("never committed")));
        producer.send(new ProducerRecord<>("codecs", 1, START_MS, bytes("open"), bytes("never committed")));
        producer.flush();
        System.out.println("open");
        System.out.flush();
        if (exit) {
            Runtime.getRuntime().halt(0);
        }
    }

    /** old DIR: a partition whose log holds message sets of versions 0 and 1, and one batch of version 2 behind them. */
    private static void old(Path dir) throws Exception {
        dir.toFile().mkdirs();
        Random random = new Random(7);
        long offset = 0;
        try (FileChannel file = FileChannel.open(dir.resolve(String.format("%020d.log", 0)), StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
            for (byte magic : new byte[] {0, 1, 2}) {
                for (CompressionType type : new CompressionType[] {CompressionType.NONE, CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4}) {
                    if (magic == 2 && type != CompressionType.NONE) {
                        continue;
                    }
                    TimestampType timestampType = magic == 0 ? TimestampType.NO_TIMESTAMP_TYPE : magic == 1 && type == CompressionType.GZIP ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME;
                    MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1 << 16), magic, Compression.of(type).build(), timestampType, offset, START_MS + 77);
                    for (int i = 0; i < 4; i++) {
                        byte[] key = i == 0 ? null : bytes("key-" + i);
                        byte[] value = i == 3 ? null : bytes(words(random, 6));
                        builder.append(magic == 0 ? -1 : START_MS + offset, key, value);
                        offset++;
                    }
                    MemoryRecords records = builder.build();
                    records.writeFullyTo(file);
                }
            }
        }
    }

    /** large BOOTSTRAP TOPIC BYTES VALUE_BYTES CODEC: about so many bytes in one segment. */
    private static void large(String bootstrap, String topic, long bytes, int valueBytes, String codec) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(topic(topic, 1, "segment.bytes=2147483647", "retention.ms=-1"))).all().get();
        }
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", bootstrap);
        config.put("compression.type", codec);
        config.put("linger.ms", "50");
        config.put("batch.size", "65536");
        config.put("buffer.memory", "134217728");
        Random random = new Random(1);
        byte[][] values = new byte[512][];
        for (int i = 0; i < values.length; i++) {
            values[i] = new byte[valueBytes];
            for (int j = 0; j < valueBytes; j++) {
                values[i][j] = (byte) ('!' + random.nextInt(90));
            }
        }
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
            long sent = 0;
            for (int i = 0; sent < bytes; i++) {
                producer.send(new ProducerRecord<>(topic, 0, START_MS + i, bytes("key-" + i % 100000), values[i % values.length]));
                sent += valueBytes + 20;
            }
        }
    }
}
