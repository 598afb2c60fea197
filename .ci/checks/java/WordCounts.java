import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/** A Kafka Streams application that counts words exactly once, and what feeds and watches it. What it is for is told in ../streams. */
public final class WordCounts {
    private static final int WORDS = 61;

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "create" -> create(args[1], args[2], args[3], Integer.parseInt(args[4]));
            case "produce" -> produce(args[1], args[2], Integer.parseInt(args[3]), Integer.parseInt(args[4]), Integer.parseInt(args[5]));
            case "watch" -> watch(args[1], args[2], Long.parseLong(args[3]));
            case "app" -> app(args[1], args[2], args[3], args[4], args[5], args[6], Integer.parseInt(args[7]));
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    /** create BOOTSTRAP INPUT OUTPUT PARTITIONS */
    private static void create(String bootstrap, String input, String output, int partitions) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(new NewTopic(input, partitions, (short) 1), new NewTopic(output, partitions, (short) 1))).all().get();
        }
    }

    /** Line i of the input; the same in every run. */
    private static List<String> line(int i, int words) {
        List<String> line = new ArrayList<>();
        for (int k = 0; k < words; k++) {
            line.add("word" + Math.floorMod(i * 7 + k * k * 13 + i / 11 * k, WORDS));
        }
        return line;
    }

    /** produce BOOTSTRAP TOPIC LINES WORDS MILLISECONDS: that many lines, spread over that time; then prints how often each word was sent. */
    private static void produce(String bootstrap, String topic, int lines, int words, int milliseconds) throws Exception {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("acks", "all");
        config.put("enable.idempotence", "true");
        // The broker is killed in between, and nothing may be lost by that.
        config.put("delivery.timeout.ms", "300000");
        Map<String, Long> counts = new TreeMap<>();
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        long began = System.nanoTime();
        try (KafkaProducer<Integer, String> producer = new KafkaProducer<>(config, new IntegerSerializer(), new StringSerializer())) {
            for (int i = 0; i < lines; i++) {
                long due = (long) milliseconds * i / lines - (System.nanoTime() - began) / 1_000_000;
                if (due > 0) {
                    Thread.sleep(due);
                }
                List<String> line = line(i, words);
                line.forEach(word -> counts.merge(word, 1L, Long::sum));
                sent.add(producer.send(new ProducerRecord<>(topic, i, String.join(" ", line))));
            }
            for (Future<RecordMetadata> one : sent) {
                one.get();
            }
        }
        counts.forEach((word, count) -> System.out.println(word + "\t" + count));
    }

    /** watch BOOTSTRAP TOPIC TOTAL: reads what the application has committed. Each word has to be counted 1, 2, 3 and so on. Prints how
     *  many counts there were so far; after the last one, waits whether too many come, and prints the last count of each word. */
    private static void watch(String bootstrap, String topic, long total) throws Exception {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("isolation.level", "read_committed");
        config.put("auto.offset.reset", "earliest");
        try (KafkaConsumer<String, Long> consumer = new KafkaConsumer<>(config, new StringDeserializer(), new LongDeserializer())) {
            List<TopicPartition> partitions = consumer.partitionsFor(topic).stream().map(p -> new TopicPartition(topic, p.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<String, Long> counts = new TreeMap<>();
            long seen = 0;
            long end = Long.MAX_VALUE;
            while (System.nanoTime() < end) {
                long before = seen;
                for (ConsumerRecord<String, Long> record : consumer.poll(Duration.ofMillis(200))) {
                    long last = counts.getOrDefault(record.key(), 0L);
                    if (record.value() != last + 1) {
                        System.out.println("WRONG " + record.key() + " is counted " + record.value() + " after " + last + ", at "
                            + record.partition() + "-" + record.offset());
                        return;
                    }
                    counts.put(record.key(), record.value());
                    seen++;
                }
                if (seen != before) {
                    System.out.println("SEEN " + seen);
                }
                if (seen >= total && end == Long.MAX_VALUE) {
                    end = System.nanoTime() + 3_000_000_000L;
                }
            }
            counts.forEach((word, count) -> System.out.println(word + "\t" + count));
        }
    }

    /** app BOOTSTRAP INPUT OUTPUT ID STATE-DIR PROTOCOL STANDBYS: runs the application until it is told to end. */
    private static void app(String bootstrap, String input, String output, String id, String state, String protocol, int standbys) throws Exception {
        Properties config = new Properties();
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, id);
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        config.put(StreamsConfig.STATE_DIR_CONFIG, state);
        config.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        config.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, protocol);
        config.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, "2");
        config.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, "100");
        // Every update comes out, so that the counts of a word have to be consecutive numbers.
        config.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, "0");
        config.put("auto.offset.reset", "earliest");
        if (protocol.equals("classic")) {
            // With the streams protocol, the broker's configs say so.
            config.put("session.timeout.ms", "6000");
            config.put("heartbeat.interval.ms", "1000");
            config.put(StreamsConfig.NUM_STANDBY_REPLICAS_CONFIG, String.valueOf(standbys));
        }
        StreamsBuilder builder = new StreamsBuilder();
        KStream<Integer, String> lines = builder.stream(input, Consumed.with(Serdes.Integer(), Serdes.String()));
        lines.flatMapValues(line -> List.of(line.split(" ")))
            .groupBy((number, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.as("counts"))
            .toStream()
            .to(output, Produced.with(Serdes.String(), Serdes.Long()));
        KafkaStreams streams = new KafkaStreams(builder.build(), config);
        CountDownLatch over = new CountDownLatch(1);
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.setStateListener((now, before) -> {
            System.out.println("STATE " + now);
            if (now == KafkaStreams.State.ERROR) {
                over.countDown();
            }
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(20))));
        streams.start();
        over.await();
        // Not exit(1): the hook would wait for this thread.
        Runtime.getRuntime().halt(1);
    }
}
