import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ApiMessageType;

/** One file of recorded steps: each a request and what came back. */
final class Area {
    static final ObjectMapper JSON = new ObjectMapper().enable(JsonParser.Feature.ALLOW_UNQUOTED_FIELD_NAMES).enable(JsonParser.Feature.ALLOW_SINGLE_QUOTES);

    final String name;
    final ObjectNode file = JSON.createObjectNode();
    private final Wire wire;
    private final ArrayNode steps;
    private final ObjectNode topicIds;
    private final Map<String, Uuid> ids = new HashMap<>();

    Area(String name, String about, Wire wire) {
        this.name = name;
        this.wire = wire;
        file.put("recorded_from", "Apache Kafka 4.3.1").put("about", about);
        topicIds = file.putObject("topic_ids");
        steps = file.putArray("steps");
    }

    /** One request of an API and version that Kafka's classes can write. */
    JsonNode step(String name, String api, int version, String request, Object... hex) throws Exception {
        ApiMessageType type = api(api);
        JsonNode json = JSON.readTree(request.formatted(hex));
        byte[] bytes = Wire.request(type, (short) version, Wire.fill(type.newRequest(), json, ids));
        return exchange(name, type, version, bytes, true);
    }

    /** A request that the broker may leave without an answer. */
    JsonNode silent(String name, String api, int version, String request, Object... hex) throws Exception {
        ApiMessageType type = api(api);
        byte[] bytes = Wire.request(type, (short) version, Wire.fill(type.newRequest(), JSON.readTree(request.formatted(hex)), ids));
        return exchange(name, type, version, bytes, false);
    }

    /** Header and body as bytes; the answer is read as one of this API and version. */
    JsonNode raw(String name, String api, int version, byte[] request) throws Exception {
        return exchange(name, api(api), version, request, true);
    }

    /** Bytes with whatever length stands in front of them. Only closing the connection is an answer. */
    void garbage(String name, byte[] bytes) throws Exception {
        Wire.Answer answer = wire.exchange(bytes, false);
        steps.addObject().put("name", name).put("bytes", HexFormat.of().formatHex(bytes)).put("outcome", answer.outcome());
    }

    /** Creates a topic and remembers its id, for `$NAME` in later requests. */
    void topic(String topic, int partitions, String configs) throws Exception {
        step("create " + topic, "CreateTopics", 7,
            "{timeoutMs: 30000, topics: [{name: '" + topic + "', numPartitions: " + partitions + ", replicationFactor: 1, configs: [" + configs + "]}]}");
        ApiMessageType metadata = ApiMessageType.METADATA;
        byte[] request = Wire.request(metadata, (short) 12, Wire.fill(metadata.newRequest(), JSON.readTree("{topics: [{name: '" + topic + "'}], allowAutoTopicCreation: false}"), ids));
        JsonNode found;
        do {
            settle();
            found = Wire.fields(metadata, (short) 12, wire.exchange(Wire.framed(request), true).frame()).get("topics").get(0);
        } while (found.get("errorCode").intValue() != 0);
        ids.put(topic, Uuid.fromString(found.get("topicId").textValue()));
        byte[] id = Wire.bytes(new org.apache.kafka.common.message.MetadataRequestData.MetadataRequestTopic().setTopicId(ids.get(topic)).setName(null), (short) 12);
        topicIds.put(topic, HexFormat.of().formatHex(id, 0, 16));
    }

    /** Gives a broker whose parts learn of a change one after the other the time for it. */
    void settle() throws InterruptedException {
        Thread.sleep(300);
    }

    private JsonNode exchange(String name, ApiMessageType api, int version, byte[] request, boolean answerExpected) throws Exception {
        Wire.Answer answer = wire.exchange(Wire.framed(request), answerExpected);
        ObjectNode step = steps.addObject().put("name", name).put("api", api.name).put("version", version)
            .put("request", HexFormat.of().formatHex(request)).put("outcome", answer.outcome());
        JsonNode fields = null;
        if (answer.outcome().equals("response")) {
            step.put("response", HexFormat.of().formatHex(answer.frame()));
            fields = Wire.fields(api, (short) version, answer.frame());
            step.set("fields", fields);
        }
        return fields;
    }

    private static ApiMessageType api(String name) {
        for (ApiMessageType type : ApiMessageType.values()) {
            if (type.name.equals(name)) {
                return type;
            }
        }
        throw new IllegalArgumentException(name);
    }
}
