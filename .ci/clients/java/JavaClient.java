import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Apache Kafka's own Java client under check; what it has to do is told in ../README.md. */
public final class JavaClient {
    public static void main(String[] args) throws Exception {
        String[] rest = Arrays.copyOfRange(args, 2, args.length);
        switch (args[0]) {
            case "create" -> create(args[1], rest);
            case "produce" -> produce(args[1], rest);
            case "consume" -> consume(args[1], rest);
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static void create(String bootstrap, String[] args) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(new NewTopic(args[0], Integer.parseInt(args[1]), (short) 1))).all().get();
        }
    }

    private static ProducerRecord<byte[], byte[]> record(String topic, int i) {
        byte[] key = i % 50 == 49 ? null : bytes("key-" + i % 101);
        byte[] value = i % 77 == 76 ? null : bytes(i + ":" + "abcdefghijklmnop".repeat(i % 40));
        var record = new ProducerRecord<>(topic, key, value);
        if (i % 3 == 0) {
            record.headers().add("a", bytes(Integer.toString(i))).add("a", bytes("again"));
        } else if (i % 3 == 2) {
            record.headers().add("empty", new byte[0]).add("none", null).add("z", bytes("zürich"));
        }
        return record;
    }

    private static void produce(String bootstrap, String[] args) throws Exception {
        int first = Integer.parseInt(args[1]);
        int count = Integer.parseInt(args[2]);
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("compression.type", args[3]);
        config.put("acks", args[4]);
        config.put("enable.idempotence", args[5]);
        config.put("linger.ms", "5");
        try (var producer = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
            List<Future<?>> sent = new ArrayList<>();
            for (int i = first; i < first + count; i++) {
                sent.add(producer.send(record(args[0], i)));
            }
            producer.flush();
            for (Future<?> one : sent) {
                one.get();
            }
        }
    }

    private static void consume(String bootstrap, String[] args) {
        int wanted = Integer.parseInt(args[2]);
        long idleMs = Long.parseLong(args[3]);
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("group.id", args[1]);
        config.put("enable.auto.commit", "false");
        config.put("auto.offset.reset", "earliest");
        config.put("max.poll.records", "100");
        StringBuilder out = new StringBuilder();
        try (var consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(args[0]));
            int got = 0;
            long last = System.currentTimeMillis();
            while (got < wanted && System.currentTimeMillis() - last < idleMs) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(200));
                for (ConsumerRecord<byte[], byte[]> r : records) {
                    out.append(r.partition()).append('\t').append(r.offset()).append('\t').append(text(r.key())).append('\t')
                        .append(text(r.value())).append('\t').append(tags(r)).append('\n');
                }
                if (!records.isEmpty()) {
                    got += records.count();
                    consumer.commitSync();
                    last = System.currentTimeMillis();
                }
            }
        }
        System.out.write(bytes(out.toString()), 0, bytes(out.toString()).length);
        System.out.flush();
    }

    private static String tags(ConsumerRecord<byte[], byte[]> record) {
        List<String> tags = new ArrayList<>();
        for (Header header : record.headers()) {
            tags.add(header.key() + "=" + text(header.value()));
        }
        return String.join(",", tags);
    }

    private static String text(byte[] data) {
        return data == null ? "NULL" : new String(data, StandardCharsets.UTF_8);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
