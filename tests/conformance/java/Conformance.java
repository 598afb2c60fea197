import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/**
 * Odd requests, and what a broker says to them.
 *
 * <pre>
 * Conformance record BOOTSTRAP DIR    writes what the broker says to DIR/AREA.json
 * Conformance check BOOTSTRAP DIR     compares what the broker says with those files, and exits with 1 where it differs
 * </pre>
 *
 * A step named in DIR/differences.txt (`AREA: NAME`, below the reason) may differ, and has to: the list holds no more than it must. The broker has to be fresh. What differs from broker to broker by its nature (ids, addresses, clocks, wording) is left out of a comparison.
 */
public final class Conformance {
    /** Fields that are another broker's own affair. */
    private static final Set<String> OWN = Set.of("errorMessage", "batchIndexErrorMessage", "clusterId", "host", "port", "producerId", "logDir", "totalBytes", "usableBytes", "isCordoned",
        "message", "documentation", "memberId", "leader", "finalizedFeaturesEpoch");

    public static void main(String[] args) throws Exception {
        boolean record = args[0].equals("record");
        Path dir = Path.of(args[2]);
        int same = 0;
        int different = 0;
        Path accepted = dir.resolve("differences.txt");
        Set<String> mayDiffer = Files.exists(accepted) ? new TreeSet<>(Files.readAllLines(accepted)) : new TreeSet<>();
        for (Area area : Areas.all(new Wire(args[1]))) {
            Path file = dir.resolve(area.name + ".json");
            if (record) {
                
                Files.writeString(file, pretty(area.file));
                System.out.println(area.name + ": " + area.file.get("steps").size() + " steps");
                continue;
            }
            JsonNode recorded = Area.JSON.readTree(Files.readString(file)).get("steps");
            // By way of text, for a number of Kafka's converters is not equal to the same number that was read.
            JsonNode heard = Area.JSON.readTree(area.file.toString()).get("steps");
            for (int i = 0; i < recorded.size(); i++) {
                List<String> differences = differences(recorded.get(i), heard.get(i));
                String name = area.name + ": " + recorded.get(i).get("name").textValue();
                if (differences.isEmpty() != mayDiffer.contains(name)) {
                    same++;
                } else {
                    different++;
                    System.out.println("FAILED  " + name);
                    differences.forEach(d -> System.out.println("        " + d));
                    if (differences.isEmpty()) {
                        System.out.println("        it is as Kafka's, and differences.txt says that it is not");
                    }
                }
            }
        }
        if (!record) {
            System.out.println(same + " passed, " + different + " failed");
            System.exit(different == 0 ? 0 : 1);
        }
    }

    /** Pretty, but a step's fields on one line: files to be read by eye and compared by line. */
    private static String pretty(ObjectNode file) throws Exception {
        StringBuilder out = new StringBuilder("{\n");
        for (var entry : file.properties()) {
            if (entry.getKey().equals("steps")) {
                continue;
            }
            out.append("  ").append(Area.JSON.writeValueAsString(entry.getKey())).append(": ").append(Area.JSON.writeValueAsString(entry.getValue())).append(",\n");
        }
        out.append("  \"steps\": [\n");
        ArrayNode steps = (ArrayNode) file.get("steps");
        for (int i = 0; i < steps.size(); i++) {
            out.append("    {");
            String separator = "\n";
            for (var entry : steps.get(i).properties()) {
                out.append(separator).append("      ").append(Area.JSON.writeValueAsString(entry.getKey())).append(": ").append(Area.JSON.writeValueAsString(entry.getValue()));
                separator = ",\n";
            }
            out.append("\n    }").append(i < steps.size() - 1 ? "," : "").append('\n');
        }
        return out.append("  ]\n}\n").toString();
    }

    private static List<String> differences(JsonNode wanted, JsonNode got) {
        List<String> found = new ArrayList<>();
        compare("outcome", wanted.get("outcome"), got.get("outcome"), found);
        if (found.isEmpty() && wanted.has("fields")) {
            compare("", wanted.get("fields"), got.get("fields"), found);
        }
        return found;
    }

    private static void compare(String at, JsonNode wanted, JsonNode got, List<String> found) {
        if (wanted == null || got == null) {
            found.add(at + ": Kafka " + wanted + ", here " + got);
        } else if (wanted.isObject() && got.isObject()) {
            Set<String> names = new TreeSet<>();
            wanted.fieldNames().forEachRemaining(names::add);
            got.fieldNames().forEachRemaining(names::add);
            boolean ownDefault = isDefault(wanted) && isDefault(got);
            for (String name : names) {
                boolean skipped = OWN.contains(name) || ownDefault && name.equals("value") || isSetByKafka(wanted) && name.equals("configSource");
                if (!skipped) {
                    compare(at + "/" + name, masked(name, wanted.get(name)), masked(name, got.get(name)), found);
                }
            }
        } else if (wanted.isArray() && got.isArray() && wanted.size() == got.size()) {
            List<JsonNode> ours = inOrder(got);
            List<JsonNode> kafkas = inOrder(wanted);
            for (int i = 0; i < ours.size(); i++) {
                compare(at + "/" + i, kafkas.get(i), ours.get(i), found);
            }
        } else if (!wanted.equals(got)) {
            found.add(at + ": Kafka " + wanted + ", here " + got);
        }
    }

    /** A config, or a synonym of one, that nobody set: its value is the broker's own affair. Kafka sets min.insync.replicas itself, for the whole cluster. */
    private static boolean isDefault(JsonNode config) {
        return config.path("configSource").asInt() == 5 || config.path("source").asInt() == 5 || isSetByKafka(config);
    }

    private static boolean isSetByKafka(JsonNode config) {
        return config.path("name").asText().equals("min.insync.replicas") && config.has("configSource");
    }

    /** Kafka's lists of topics, partitions and configs come in the order of its hash tables; what counts is what is in them. */
    private static List<JsonNode> inOrder(JsonNode array) {
        List<JsonNode> all = new ArrayList<>();
        array.forEach(all::add);
        all.sort(Comparator.comparing(node -> key(node)));
        return all;
    }

    private static String key(JsonNode node) {
        StringBuilder key = new StringBuilder();
        for (String name : List.of("name", "topicName", "topic", "groupId", "resourceName", "key", "partitionIndex", "partition", "index", "apiKey", "batchIndex", "transactionalId")) {
            if (node.hasNonNull(name)) {
                key.append(String.format("%-20s", node.get(name).asText()));
            }
        }
        if (node.isIntegralNumber()) {
            key.append(String.format("%020d", node.longValue()));
        }
        return key.append(node.path("partitions").size()).toString();
    }

    /** Ids and times keep whether they are there: zero, absent or set. */
    private static JsonNode masked(String name, JsonNode value) {
        if (value == null) {
            return null;
        }
        String zero = "AAAAAAAAAAAAAAAAAAAAAA";
        if (name.toLowerCase().endsWith("topicid") || name.equals("sessionId")) {
            boolean none = value.asText().equals(zero) || value.asText().equals("0");
            return Area.JSON.getNodeFactory().textNode(none ? "none" : "some");
        }
        boolean clock = value.isIntegralNumber() && value.longValue() > 1_600_000_000_000L && value.longValue() < 10_000_000_000_000L;
        return clock ? Area.JSON.getNodeFactory().textNode("a time of the run") : value;
    }
}
