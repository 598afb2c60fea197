import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The same workload, from a seed, for two brokers; and what is left of it. What the commands are for is told in ../cleaner. */
public final class Compaction {
    private static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};

    public static void main(String[] args) throws Exception {
        String[] rest = Arrays.copyOfRange(args, 2, args.length);
        switch (args[0]) {
            case "create" -> create(args[1], rest);
            case "produce" -> produce(args[1], rest);
            case "roll" -> roll(args[1], rest);
            case "dump" -> dump(args[1], rest);
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    /** create BOOTSTRAP TOPIC key=value ... */
    private static void create(String bootstrap, String[] args) throws Exception {
        Map<String, String> configs = new HashMap<>();
        for (String config : Arrays.copyOfRange(args, 1, args.length)) {
            configs.put(config.substring(0, config.indexOf('=')), config.substring(config.indexOf('=') + 1));
        }
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(new NewTopic(args[0], 1, (short) 1).configs(configs))).all().get();
        }
    }

    private static KafkaProducer<byte[], byte[]> producer(String bootstrap, String codec, String transactionalId) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", bootstrap);
        config.put("acks", "all");
        config.put("compression.type", codec);
        // One batch for each flush.
        config.put("linger.ms", "60000");
        config.put("batch.size", "1000000");
        config.put("max.in.flight.requests.per.connection", "1");
        if (transactionalId != null) {
            config.put("transactional.id", transactionalId);
        }
        return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
    }

    /** produce BOOTSTRAP TOPIC SEED BATCHES KEYS START_MS TRANSACTIONS(true|false) */
    private static void produce(String bootstrap, String[] args) throws Exception {
        String topic = args[0];
        Random random = new Random(Long.parseLong(args[1]));
        int batches = Integer.parseInt(args[2]);
        int keys = Integer.parseInt(args[3]);
        long time = Long.parseLong(args[4]);
        boolean transactions = Boolean.parseBoolean(args[5]);
        List<KafkaProducer<byte[], byte[]>> plain = new ArrayList<>();
        for (String codec : CODECS) {
            plain.add(producer(bootstrap, codec, null));
        }
        List<KafkaProducer<byte[], byte[]>> transactional = new ArrayList<>();
        boolean[] open = new boolean[3];
        for (int i = 0; i < 3; i++) {
            transactional.add(producer(bootstrap, CODECS[i], "compaction-" + i));
            if (transactions) {
                transactional.get(i).initTransactions();
            }
        }
        var partition = new TopicPartition(topic, 0);
        var watching = new KafkaConsumer<>(Map.<String, Object>of("bootstrap.servers", bootstrap), new ByteArrayDeserializer(),
            new ByteArrayDeserializer());
        int number = 0;
        for (int batch = 0; batch < batches; batch++) {
            int which = random.nextInt(8);
            KafkaProducer<byte[], byte[]> producer = plain.get(which % CODECS.length);
            if (which >= 5 && transactions) {
                producer = transactional.get(which - 5);
                if (!open[which - 5]) {
                    producer.beginTransaction();
                    open[which - 5] = true;
                }
            }
            int count = 1 + random.nextInt(100);
            for (int i = 0; i < count; i++) {
                number++;
                // Some keys come often, most seldom.
                int key = random.nextInt(4) == 0 ? random.nextInt(20) : random.nextInt(keys);
                byte[] value = random.nextInt(10) == 0 ? null : bytes(number + ":" + "abcdefghij".repeat(random.nextInt(40)));
                var record = new ProducerRecord<>(topic, 0, time + number - random.nextInt(1000), bytes("key-" + key), value);
                for (int h = random.nextInt(4); h > 1; h--) {
                    record.headers().add("h", bytes("" + h)).add("h", h == 2 ? null : bytes("again"));
                }
                producer.send(record);
            }
            producer.flush();
            if (which >= 5 && transactions && random.nextInt(2) == 0) {
                long end = watching.endOffsets(List.of(partition)).get(partition);
                if (random.nextInt(2) == 0) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
                open[which - 5] = false;
                // Apache Kafka writes the marker some time after it has answered.
                while (watching.endOffsets(List.of(partition)).get(partition) == end) {
                    Thread.sleep(1);
                }
            }
        }
        watching.close();
        for (int i = 0; i < 3; i++) {
            if (open[i]) {
                transactional.get(i).commitTransaction();
                Thread.sleep(1000);
            }
        }
        plain.forEach(KafkaProducer::close);
        transactional.forEach(KafkaProducer::close);
    }

    /** roll BOOTSTRAP TOPIC KEY: seals what is there by appending one record, whose offset is printed. */
    private static void roll(String bootstrap, String[] args) throws Exception {
        var resource = new ConfigResource(ConfigResource.Type.TOPIC, args[0]);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            Collection<AlterConfigOp> shorter =
                List.of(new AlterConfigOp(new ConfigEntry("segment.ms", "100"), AlterConfigOp.OpType.SET));
            admin.incrementalAlterConfigs(Map.of(resource, shorter)).all().get();
            Thread.sleep(1000);
            try (var producer = producer(bootstrap, "none", null)) {
                var sent = producer.send(new ProducerRecord<>(args[0], 0, System.currentTimeMillis() + 60_000L * args[1].length(),
                    bytes(args[1]), bytes("x")));
                producer.flush();
                System.out.println(sent.get().offset());
            }
            Collection<AlterConfigOp> back =
                List.of(new AlterConfigOp(new ConfigEntry("segment.ms", null), AlterConfigOp.OpType.DELETE));
            admin.incrementalAlterConfigs(Map.of(resource, back)).all().get();
        }
    }

    /**
     * dump BOOTSTRAP TOPIC END [ISOLATION]: prints each record below END that a consumer gets, aborted or not if ISOLATION is not
     * read_committed. END may be "end".
     */
    private static void dump(String bootstrap, String[] args) {
        String isolation = args.length > 2 ? args[2] : "read_uncommitted";
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "isolation.level", isolation);
        try (var consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            var partition = new TopicPartition(args[0], 0);
            long end = args[1].equals("end") ? consumer.endOffsets(List.of(partition)).get(partition) : Long.parseLong(args[1]);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            StringBuilder out = new StringBuilder();
            while (consumer.position(partition) < end) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(1))) {
                    if (record.offset() >= end) {
                        break;
                    }
                    out.append(record.offset()).append('\t').append(record.timestamp()).append('\t').append(text(record.key())).append('\t')
                        .append(text(record.value()));
                    for (Header header : record.headers()) {
                        out.append('\t').append(header.key()).append('=').append(text(header.value()));
                    }
                    out.append('\n');
                }
            }
            System.out.print(out);
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static String text(byte[] bytes) {
        return bytes == null ? "NULL" : new String(bytes, StandardCharsets.UTF_8);
    }
}
