import java.io.FileWriter;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;

/**
 * One side of a share-group run.
 *
 *   create BOOTSTRAP TOPIC PARTITIONS GROUP CONFIG=VALUE...   makes the topic, and configures the group
 *   produce BOOTSTRAP TOPIC FROM TO                           values FROM to TO-1, acks=all, however long it takes
 *   consume BOOTSTRAP TOPIC GROUP JOURNAL                     until it is killed
 *   offsets BOOTSTRAP GROUP                                   start offset and lag of each partition
 *
 * A consumer accepts most records, gives some back and rejects a few, by a rule on the value and the delivery count. Its
 * journal has a line `WHAT VALUE DELIVERIES MS` for each record that it `got`, and for each whose acknowledgement the broker has
 * answered: `accepted`, `rejected` or `released`. Lines are written before the next poll.
 */
public class ShareGroups {
  public static void main(String[] args) throws Exception {
    switch (args[0]) {
      case "create" -> create(args);
      case "produce" -> produce(args[1], args[2], Integer.parseInt(args[3]), Integer.parseInt(args[4]));
      case "consume" -> consume(args[1], args[2], args[3], args[4]);
      case "offsets" -> offsets(args[1], args[2]);
      default -> throw new IllegalArgumentException(args[0]);
    }
  }

  static void create(String[] args) throws Exception {
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[1]))) {
      admin.createTopics(List.of(new NewTopic(args[2], Integer.parseInt(args[3]), (short) 1))).all().get();
      List<AlterConfigOp> ops = new ArrayList<>();
      for (String config : Arrays.asList(args).subList(5, args.length)) {
        String[] pair = config.split("=", 2);
        ops.add(new AlterConfigOp(new ConfigEntry(pair[0], pair[1]), AlterConfigOp.OpType.SET));
      }
      admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, args[4]), ops)).all().get();
    }
  }

  static void produce(String bootstrap, String topic, int from, int to) throws Exception {
    Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "acks", "all", "delivery.timeout.ms", 120_000, "linger.ms", 5));
    try (KafkaProducer<String, String> producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
      List<java.util.concurrent.Future<RecordMetadata>> sent = new ArrayList<>();
      for (int value = from; value < to; value++) {
        sent.add(producer.send(new ProducerRecord<>(topic, Integer.toString(value))));
        if (value % 200 == 0) Thread.sleep(20);
      }
      for (var one : sent) one.get();
    }
  }

  /** 0 of ten is given back the first time, and 7 of a hundred is rejected. */
  static AcknowledgeType verdict(int value, int deliveries) {
    if (value % 100 == 7) return AcknowledgeType.REJECT;
    return value % 10 == 0 && deliveries == 1 ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT;
  }

  static String line(String what, ConsumerRecord<String, String> record) {
    return what + " " + record.value() + " " + record.deliveryCount().orElse((short) -1) + " " + System.currentTimeMillis();
  }

  static void consume(String bootstrap, String topic, String group, String journal) throws Exception {
    Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "group.id", group,
        "share.acknowledgement.mode", "explicit", "max.poll.records", 50));
    try (PrintWriter out = new PrintWriter(new FileWriter(journal, true));
         KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
      consumer.subscribe(List.of(topic));
      while (true) {
        Map<org.apache.kafka.common.TopicIdPartition, List<ConsumerRecord<String, String>>> said = new HashMap<>();
        List<ConsumerRecord<String, String>> got = new ArrayList<>();
        try {
          for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(500))) {
            out.println(line("got", record));
            got.add(record);
          }
        } catch (IllegalStateException e) {
          throw e;
        } catch (org.apache.kafka.common.KafkaException e) {
          out.println("# " + e);
        }
        out.flush();
        if (got.isEmpty()) continue;
        for (ConsumerRecord<String, String> record : got) {
          consumer.acknowledge(record, verdict(Integer.parseInt(record.value()), record.deliveryCount().orElse((short) 1)));
        }
        var results = consumer.commitSync(Duration.ofSeconds(30));
        for (ConsumerRecord<String, String> record : got) {
          var failed = results.entrySet().stream()
              .filter(result -> result.getKey().partition() == record.partition() && result.getValue().isPresent()).findAny();
          boolean known = results.keySet().stream().anyMatch(partition -> partition.partition() == record.partition());
          if (known && failed.isEmpty()) {
            String verdict = switch (verdict(Integer.parseInt(record.value()), record.deliveryCount().orElse((short) 1))) {
              case ACCEPT -> "accepted";
              case REJECT -> "rejected";
              default -> "released";
            };
            out.println(line(verdict, record));
          }
        }
        out.flush();
      }
    }
  }

  static void offsets(String bootstrap, String group) throws Exception {
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
      var offsets = admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec())).partitionsToOffsetInfo(group).get();
      offsets.forEach((partition, info) -> System.out.println(partition.partition() + " " + info.startOffset() + " " + info.lag().orElse(-1L)));
    }
  }
}
