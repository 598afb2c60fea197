import java.util.List;
import java.util.HexFormat;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.RequestHeaderData;

/** The questions. */
final class Areas {
    static List<Area> all(Wire wire) throws Exception {
        awaitCoordinators(new Area("start", "", wire));
        return List.of(versions(wire), metadata(wire), topics(wire), configs(wire), produce(wire), idempotence(wire), fetch(wire), offsets(wire), groups(wire), Transactions.area(wire), Streams.area(wire), Shares.area(wire));
    }

    /** A broker that has just started answers for its coordinators with errors that mean “later”; nothing is asked before that is over. */
    private static void awaitCoordinators(Area a) throws Exception {
        for (int i = 0; i < 300; i++) {
            boolean ready = a.step("", "InitProducerId", 4, "{transactionalId: null, transactionTimeoutMs: 1000}").get("errorCode").intValue() == 0;
            for (String group : List.of("join", "join-v0", "join-v1", "join-v2", "join-v3", "static", "simple", "nowhere", "g", "h", "app", "standbys", "other", "classic", "consumers")) {
                ready &= a.step("", "FindCoordinator", 3, "{keyType: 0, key: '" + group + "'}").get("errorCode").intValue() == 0;
                ready &= a.step("", "OffsetFetch", 7, "{groupId: '" + group + "', topics: null}").get("errorCode").intValue() == 0;
            }
            ready &= a.step("", "FindCoordinator", 6, "{keyType: 2, coordinatorKeys: ['g:AAAAAAAAAAAAAAAAAAAAZQ:0']}").get("coordinators").get(0).get("errorCode").intValue() == 0;
            for (int partition = 0; partition < 20; partition++) {
                String summary = "{groupId: 'g', topics: [{topicId: 'AAAAAAAAAAAAAAAAAAAAZQ', partitions: [{partition: " + partition + "}]}]}";
                int unknownTopic = 3;
                ready &= a.step("", "ReadShareGroupStateSummary", 0, summary).get("results").get(0).get("partitions").get(0).get("errorCode").intValue() == unknownTopic;
            }
            if (ready) {
                return;
            }
            Thread.sleep(200);
        }
        throw new IllegalStateException("the broker's coordinators are not ready after a minute");
    }

    private static byte[] header(int key, int version, int headerVersion) {
        return Wire.bytes(new RequestHeaderData().setRequestApiKey((short) key).setRequestApiVersion((short) version).setCorrelationId(Wire.CORRELATION_ID).setClientId(Wire.CLIENT_ID),
            (short) headerVersion);
    }

    private static byte[] hex(String text) {
        return HexFormat.of().parseHex(text);
    }

    private static Area versions(Wire wire) throws Exception {
        Area a = new Area("versions", "Versions that are not served, frames that are none, ApiVersions", wire);
        for (int v = 0; v <= 4; v++) {
            a.step("ApiVersions v" + v, "ApiVersions", v, v < 3 ? "{}" : "{clientSoftwareName: 'probe', clientSoftwareVersion: '1.0'}");
        }
        a.raw("ApiVersions v99 is answered as v0", "ApiVersions", 0, header(18, 99, 2));
        a.raw("ApiVersions v99 with a body that means nothing", "ApiVersions", 0, Wire.join(header(18, 99, 2), hex("ffeeddccbbaa")));
        a.step("ApiVersions v3 with a bad software name", "ApiVersions", 3, "{clientSoftwareName: ' no ', clientSoftwareVersion: '1.0'}");
        a.step("ApiVersions v3 with an empty software version", "ApiVersions", 3, "{clientSoftwareName: 'probe', clientSoftwareVersion: ''}");
        a.raw("an API key that there is not", "ApiVersions", 0, header(999, 0, 1));
        a.raw("a negative API key", "ApiVersions", 0, header(-1, 0, 1));
        a.raw("Produce v14", "Produce", 0 + 13, header(0, 14, 2));
        for (int v = 0; v <= 2; v++) {
            a.raw("Produce v" + v + ", advertised and not served", "Produce", 3, Wire.join(header(0, v, 1), hex("0001000003e800000000")));
        }
        a.raw("Fetch v3, no longer served", "Fetch", 4, header(1, 3, 1));
        a.raw("Metadata v99", "Metadata", 13, header(3, 99, 2));
        a.raw("a negative version", "Metadata", 0, header(3, -1, 1));
        a.raw("an API of controllers only (Vote)", "Metadata", 0, header(52, 0, 2));
        a.raw("LeaderAndIsr, which is gone", "Metadata", 0, header(4, 0, 1));
        a.raw("a header that is cut off", "Metadata", 0, hex("000300010000"));
        a.raw("a body that is cut off", "Metadata", 1, Wire.join(header(3, 1, 1), hex("00000003")));
        a.raw("a count of two thousand million", "Metadata", 1, Wire.join(header(3, 1, 1), hex("7fffffff")));
        a.raw("bytes after the body", "Metadata", 1, Wire.join(header(3, 1, 1), hex("00000000ffff")));
        a.garbage("a frame of negative length", hex("ffffffff"));
        a.garbage("a frame of length 0", hex("00000000"));
        a.garbage("a frame over socket.request.max.bytes", hex("7fffffff"));
        a.garbage("HTTP", "GET / HTTP/1.1\r\n\r\n".getBytes());
        a.step("SaslHandshake on a plaintext listener", "SaslHandshake", 1, "{mechanism: 'PLAIN'}");
        a.step("SaslAuthenticate on a plaintext listener", "SaslAuthenticate", 2, "{authBytes: '00'}");
        return a;
    }

    private static Area metadata(Wire wire) throws Exception {
        Area a = new Area("metadata", "Metadata, DescribeCluster and DescribeTopicPartitions for topics that are not there, have no good name, or are to be created", wire);
        String long250 = "x".repeat(250);
        for (String name : List.of("", ".", "..", "has space", "slash/es", "sn\u00f6", long250, "x".repeat(249) + "")) {
            for (boolean create : new boolean[] {false, true}) {
                if (create && name.length() == 249) {
                    continue;
                }
                a.step("Metadata v9 '" + (name.length() > 100 ? name.length() + " x" : name) + "', auto-creation " + create, "Metadata", 9, "{topics: [{name: '" + name + "'}], allowAutoTopicCreation: " + create + "}");
            }
        }
        a.step("Metadata v1 of a topic that is not there", "Metadata", 1, "{topics: [{name: 'meta-none-v1'}]}");
        a.step("Metadata v4 without auto-creation", "Metadata", 4, "{topics: [{name: 'meta-none'}], allowAutoTopicCreation: false}");
        a.step("Metadata v9 that creates", "Metadata", 9, "{topics: [{name: 'meta-created'}], allowAutoTopicCreation: true}");
        a.settle();
        a.step("Metadata v9 of what was created", "Metadata", 9, "{topics: [{name: 'meta-created'}], allowAutoTopicCreation: true}");
        a.step("Metadata v13 of it", "Metadata", 13, "{topics: [{name: 'meta-created'}], allowAutoTopicCreation: true}");
        a.topic("meta-two", 2, "");
        a.step("Metadata v12 by id", "Metadata", 12, "{topics: [{name: null, topicId: '$meta-two'}], allowAutoTopicCreation: false}");
        a.step("Metadata v12 by an id that is not there", "Metadata", 12, "{topics: [{name: null, topicId: 'AAAAAAAAAAAAAAAAAAAAZQ'}], allowAutoTopicCreation: true}");
        a.step("Metadata v12 without a name or an id", "Metadata", 12, "{topics: [{name: null}], allowAutoTopicCreation: true}");
        a.step("Metadata v12 with a name and an id", "Metadata", 12, "{topics: [{name: 'meta-two', topicId: '$meta-two'}], allowAutoTopicCreation: true}");
        a.step("Metadata v12 by id and by name", "Metadata", 12, "{topics: [{name: null, topicId: '$meta-two'}, {name: 'meta-none'}], allowAutoTopicCreation: false}");
        a.step("Metadata v10 without a name", "Metadata", 10, "{topics: [{name: null}], allowAutoTopicCreation: false}");
        a.step("Metadata v9 of the same topic twice", "Metadata", 9, "{topics: [{name: 'meta-two'}, {name: 'meta-two'}], allowAutoTopicCreation: false}");
        a.step("Metadata v9 of no topic", "Metadata", 9, "{topics: []}");
        a.step("Metadata v8 with authorized operations", "Metadata", 8, "{topics: [{name: 'meta-two'}], allowAutoTopicCreation: false, includeClusterAuthorizedOperations: true, includeTopicAuthorizedOperations: true}");
        for (int v = 0; v <= 2; v++) {
            a.step("DescribeCluster v" + v, "DescribeCluster", v, "{includeClusterAuthorizedOperations: true}");
        }
        a.step("DescribeCluster of controllers", "DescribeCluster", 1, "{endpointType: 2}");
        a.step("DescribeCluster of an endpoint type that there is not", "DescribeCluster", 1, "{endpointType: 3}");
        a.step("DescribeTopicPartitions", "DescribeTopicPartitions", 0, "{topics: [{name: 'meta-two'}, {name: 'meta-none'}, {name: 'bad name'}], responsePartitionLimit: 2000}");
        a.step("DescribeTopicPartitions, one partition at a time", "DescribeTopicPartitions", 0, "{topics: [{name: 'meta-two'}], responsePartitionLimit: 1}");
        a.step("DescribeTopicPartitions from a cursor", "DescribeTopicPartitions", 0, "{topics: [{name: 'meta-two'}], responsePartitionLimit: 10, cursor: {topicName: 'meta-two', partitionIndex: 1}}");
        a.step("DescribeTopicPartitions from a negative cursor", "DescribeTopicPartitions", 0, "{topics: [{name: 'meta-two'}], responsePartitionLimit: 10, cursor: {topicName: 'meta-two', partitionIndex: -1}}");
        a.step("DescribeTopicPartitions, limit 0", "DescribeTopicPartitions", 0, "{topics: [{name: 'meta-two'}], responsePartitionLimit: 0}");
        return a;
    }

    private static Area topics(Wire wire) throws Exception {
        Area a = new Area("topics", "CreateTopics, DeleteTopics, CreatePartitions and DeleteRecords with what they refuse", wire);
        String create = "{timeoutMs: 30000, validateOnly: %s, topics: [%s]}";
        for (int v = 2; v <= 7; v++) {
            a.step("CreateTopics v" + v, "CreateTopics", v, create, false, "{name: 'made-v" + v + "', numPartitions: 2, replicationFactor: 1, configs: [{name: 'retention.ms', value: '1000000'}]}");
        }
        a.step("a topic that is there", "CreateTopics", 7, create, false, "{name: 'made-v7', numPartitions: 1, replicationFactor: 1}");
        a.step("a topic that is there, validate only", "CreateTopics", 7, create, true, "{name: 'made-v7', numPartitions: 1, replicationFactor: 1}");
        a.step("validate only", "CreateTopics", 7, create, true, "{name: 'not-made', numPartitions: 3, replicationFactor: 1}");
        a.step("defaults", "CreateTopics", 7, create, false, "{name: 'made-default', numPartitions: -1, replicationFactor: -1}");
        a.step("defaults in v3", "CreateTopics", 3, create, false, "{name: 'made-default-v3', numPartitions: -1, replicationFactor: -1}");
        for (String partitions : List.of("0", "-2")) {
            a.step(partitions + " partitions", "CreateTopics", 7, create, false, "{name: 'bad', numPartitions: " + partitions + ", replicationFactor: 1}");
        }
        for (String factor : List.of("0", "2", "-2")) {
            a.step("replication factor " + factor, "CreateTopics", 7, create, false, "{name: 'bad', numPartitions: 1, replicationFactor: " + factor + "}");
        }
        for (String name : List.of("", ".", "..", "a b", "x".repeat(250), "made.v7", "__consumer_offsets")) {
            a.step("the name '" + (name.length() > 100 ? "250 x" : name) + "'", "CreateTopics", 7, create, true, "{name: '" + name + "', numPartitions: 1, replicationFactor: 1}");
        }
        a.step("a name with a dot", "CreateTopics", 7, create, false, "{name: 'made.dot_line', numPartitions: 1, replicationFactor: 1}");
        a.step("a name that collides with it", "CreateTopics", 7, create, false, "{name: 'made_dot.line', numPartitions: 1, replicationFactor: 1}");
        a.step("the same name twice", "CreateTopics", 7, create, false, "{name: 'twice', numPartitions: 1, replicationFactor: 1}, {name: 'twice', numPartitions: 1, replicationFactor: 1}");
        a.step("one good and one bad", "CreateTopics", 7, create, false, "{name: 'good-of-two', numPartitions: 1, replicationFactor: 1}, {name: 'bad of two', numPartitions: 1, replicationFactor: 1}");
        a.step("no topic at all", "CreateTopics", 7, create, false, "");
        a.step("a config that there is not", "CreateTopics", 7, create, false, "{name: 'bad', numPartitions: 1, replicationFactor: 1, configs: [{name: 'no.such.config', value: '1'}]}");
        a.step("a config with a bad value", "CreateTopics", 7, create, false, "{name: 'bad', numPartitions: 1, replicationFactor: 1, configs: [{name: 'retention.ms', value: 'soon'}]}");
        a.step("a config out of range", "CreateTopics", 7, create, false, "{name: 'bad', numPartitions: 1, replicationFactor: 1, configs: [{name: 'segment.bytes', value: '10'}]}");
        a.step("a config that is null", "CreateTopics", 7, create, false, "{name: 'bad', numPartitions: 1, replicationFactor: 1, configs: [{name: 'retention.ms', value: null}]}");
        a.step("assignments", "CreateTopics", 7, create, false, "{name: 'made-assigned', numPartitions: -1, replicationFactor: -1, assignments: [{partitionIndex: 0, brokerIds: [0]}, {partitionIndex: 1, brokerIds: [0]}]}");
        a.step("assignments and a number of partitions", "CreateTopics", 7, create, false, "{name: 'bad', numPartitions: 2, replicationFactor: -1, assignments: [{partitionIndex: 0, brokerIds: [0]}]}");
        a.step("assignments to a broker that there is not", "CreateTopics", 7, create, false, "{name: 'bad', numPartitions: -1, replicationFactor: -1, assignments: [{partitionIndex: 0, brokerIds: [9]}]}");
        a.step("assignments with a gap", "CreateTopics", 7, create, false, "{name: 'bad', numPartitions: -1, replicationFactor: -1, assignments: [{partitionIndex: 1, brokerIds: [0]}]}");
        a.step("assignments without a replica", "CreateTopics", 7, create, false, "{name: 'bad', numPartitions: -1, replicationFactor: -1, assignments: [{partitionIndex: 0, brokerIds: []}]}");

        a.topic("grown", 2, "");
        String grow = "{timeoutMs: 30000, validateOnly: %s, topics: [%s]}";
        a.step("more partitions, validate only", "CreatePartitions", 3, grow, true, "{name: 'grown', count: 5, assignments: null}");
        a.step("more partitions", "CreatePartitions", 3, grow, false, "{name: 'grown', count: 4, assignments: null}");
        a.step("as many partitions", "CreatePartitions", 3, grow, false, "{name: 'grown', count: 4, assignments: null}");
        a.step("fewer partitions", "CreatePartitions", 3, grow, false, "{name: 'grown', count: 1, assignments: null}");
        a.step("partitions of a topic that is not there", "CreatePartitions", 3, grow, false, "{name: 'nowhere', count: 4, assignments: null}");
        a.step("partitions of one topic twice", "CreatePartitions", 3, grow, false, "{name: 'grown', count: 6, assignments: null}, {name: 'grown', count: 7, assignments: null}");
        a.step("partitions with too few assignments", "CreatePartitions", 3, grow, false, "{name: 'grown', count: 6, assignments: [{brokerIds: [0]}]}");
        a.step("partitions with assignments", "CreatePartitions", 0, grow, false, "{name: 'grown', count: 5, assignments: [{brokerIds: [0]}]}");

        a.topic("records", 2, "");
        a.topic("records-compacted", 1, "{name: 'cleanup.policy', value: 'compact'}");
        a.step("five records", "Produce", 9, PRODUCE, -1, "records", 0, Batches.plain(Batches.records(5)));
        String delete = "{timeoutMs: 30000, topics: [{name: '%s', partitions: [{partitionIndex: %s, offset: %s}]}]}";
        for (int v = 0; v <= 2; v++) {
            a.step("DeleteRecords v" + v, "DeleteRecords", v, delete, "records", 0, v + 1);
        }
        a.step("DeleteRecords below the log start", "DeleteRecords", 2, delete, "records", 0, 1);
        a.step("DeleteRecords beyond the end", "DeleteRecords", 2, delete, "records", 0, 6);
        a.step("DeleteRecords at a negative offset", "DeleteRecords", 2, delete, "records", 0, -2);
        a.step("DeleteRecords of all", "DeleteRecords", 2, delete, "records", 0, -1);
        a.step("DeleteRecords of an empty partition", "DeleteRecords", 2, delete, "records", 1, -1);
        a.step("DeleteRecords of a partition that is not there", "DeleteRecords", 2, delete, "records", 9, 0);
        a.step("DeleteRecords of a topic that is not there", "DeleteRecords", 2, delete, "nowhere", 0, 0);
        a.step("DeleteRecords of a compacted topic", "DeleteRecords", 2, delete, "records-compacted", 0, 0);

        for (int v = 1; v <= 5; v++) {
            a.step("DeleteTopics v" + v, "DeleteTopics", v, "{timeoutMs: 30000, topicNames: ['made-v" + v + "']}");
        }
        a.step("DeleteTopics of one that is not there", "DeleteTopics", 6, "{timeoutMs: 30000, topics: [{name: 'nowhere'}]}");
        a.step("DeleteTopics by id", "DeleteTopics", 6, "{timeoutMs: 30000, topics: [{name: null, topicId: '$grown'}]}");
        a.step("DeleteTopics by the same id again", "DeleteTopics", 6, "{timeoutMs: 30000, topics: [{name: null, topicId: '$grown'}]}");
        a.step("DeleteTopics by name and id", "DeleteTopics", 6, "{timeoutMs: 30000, topics: [{name: 'records', topicId: '$records'}]}");
        a.step("DeleteTopics by neither", "DeleteTopics", 6, "{timeoutMs: 30000, topics: [{name: null}]}");
        a.step("DeleteTopics twice of one", "DeleteTopics", 6, "{timeoutMs: 30000, topics: [{name: 'made-v6'}, {name: 'made-v6'}]}");
        a.step("DeleteTopics of a bad name", "DeleteTopics", 6, "{timeoutMs: 30000, topics: [{name: 'bad name'}]}");
        return a;
    }

    private static Area configs(Wire wire) throws Exception {
        Area a = new Area("configs", "DescribeConfigs, AlterConfigs and IncrementalAlterConfigs with good and bad names, values and resources", wire);
        a.topic("configured", 1, "{name: 'retention.ms', value: '777000'}");
        String describe = "{resources: [{resourceType: %s, resourceName: '%s', configurationKeys: %s}], includeSynonyms: %s, includeDocumentation: false}";
        for (int v = 1; v <= 4; v++) {
            a.step("DescribeConfigs v" + v, "DescribeConfigs", v, describe, 2, "configured", "['retention.ms', 'cleanup.policy']", true);
        }
        a.step("a key that there is not", "DescribeConfigs", 4, describe, 2, "configured", "['no.such.key']", false);
        a.step("no keys", "DescribeConfigs", 4, describe, 2, "configured", "[]", false);
        a.step("a topic that is not there", "DescribeConfigs", 4, describe, 2, "nowhere", "['retention.ms']", false);
        a.step("a topic of a bad name", "DescribeConfigs", 4, describe, 2, "bad name", "['retention.ms']", false);
        a.step("this broker", "DescribeConfigs", 4, describe, 4, "0", "['log.retention.ms', 'log.retention.hours', 'num.partitions', 'message.max.bytes']", true);
        a.step("another broker", "DescribeConfigs", 4, describe, 4, "7", "['num.partitions']", false);
        a.step("a broker that is no number", "DescribeConfigs", 4, describe, 4, "x", "['num.partitions']", false);
        a.step("all brokers", "DescribeConfigs", 4, describe, 4, "", "['num.partitions']", false);
        a.step("a resource type that there is not", "DescribeConfigs", 4, describe, 99, "x", "null", false);
        a.step("an unknown resource type 0", "DescribeConfigs", 4, describe, 0, "x", "null", false);
        String change = "{validateOnly: %s, resources: [{resourceType: 2, resourceName: '%s', configs: [{name: '%s', configOperation: %s, value: %s}]}]}";
        String[][] changes = {
            {"set", "false", "configured", "retention.ms", "0", "'123000'"}, {"set, validate only", "true", "configured", "retention.ms", "0", "'999'"},
            {"delete", "false", "configured", "retention.ms", "1", "null"}, {"delete what is not set", "false", "configured", "retention.ms", "1", "null"},
            {"append", "false", "configured", "cleanup.policy", "2", "'compact'"}, {"append again", "false", "configured", "cleanup.policy", "2", "'compact'"},
            {"subtract", "false", "configured", "cleanup.policy", "3", "'delete'"}, {"append to what is no list", "false", "configured", "retention.ms", "2", "'1'"},
            {"an operation that there is not", "false", "configured", "retention.ms", "9", "'1'"}, {"set to null", "false", "configured", "retention.ms", "0", "null"},
            {"a name that there is not", "false", "configured", "no.such", "0", "'1'"}, {"a bad value", "false", "configured", "retention.ms", "0", "'soon'"},
            {"a value out of range", "false", "configured", "max.message.bytes", "0", "'-1'"}, {"a topic that is not there", "false", "nowhere", "retention.ms", "0", "'1'"},
            {"a bad enumeration", "false", "configured", "compression.type", "0", "'brotli'"}, {"an empty name", "false", "configured", "", "0", "'1'"},
        };
        for (String[] c : changes) {
            a.step("IncrementalAlterConfigs: " + c[0], "IncrementalAlterConfigs", 1, change, (Object[]) java.util.Arrays.copyOfRange(c, 1, c.length));
        }
        a.settle();
        a.step("after all that", "DescribeConfigs", 4, describe, 2, "configured", "['retention.ms', 'cleanup.policy', 'compression.type', 'max.message.bytes']", false);
        a.step("IncrementalAlterConfigs: one resource twice", "IncrementalAlterConfigs", 1,
            "{resources: [{resourceType: 2, resourceName: 'configured', configs: [{name: 'retention.ms', value: '1'}]}, {resourceType: 2, resourceName: 'configured', configs: [{name: 'retention.ms', value: '2'}]}]}");
        a.step("IncrementalAlterConfigs: one name twice", "IncrementalAlterConfigs", 1,
            "{resources: [{resourceType: 2, resourceName: 'configured', configs: [{name: 'retention.bytes', value: '1'}, {name: 'retention.bytes', configOperation: 1, value: null}]}]}");
        a.step("IncrementalAlterConfigs: a broker config that cannot change", "IncrementalAlterConfigs", 1, "{resources: [{resourceType: 4, resourceName: '0', configs: [{name: 'node.id', value: '5'}]}]}");
        a.step("IncrementalAlterConfigs: a broker config that can", "IncrementalAlterConfigs", 1, "{resources: [{resourceType: 4, resourceName: '', configs: [{name: 'log.retention.ms', value: '5000000'}]}]}");
        a.settle();
        a.step("and it is seen", "DescribeConfigs", 4, describe, 4, "0", "['log.retention.ms']", true);
        a.step("IncrementalAlterConfigs: and away again", "IncrementalAlterConfigs", 1, "{resources: [{resourceType: 4, resourceName: '', configs: [{name: 'log.retention.ms', configOperation: 1, value: null}]}]}");
        String replace = "{resources: [{resourceType: 2, resourceName: '%s', configs: [{name: '%s', value: %s}]}]}";
        a.step("AlterConfigs replaces", "AlterConfigs", 2, replace, "configured", "segment.ms", "'50000'");
        a.settle();
        a.step("after that", "DescribeConfigs", 4, describe, 2, "configured", "['segment.ms', 'cleanup.policy']", false);
        a.step("AlterConfigs: a bad value", "AlterConfigs", 2, replace, "configured", "segment.ms", "'x'");
        a.step("AlterConfigs: null", "AlterConfigs", 2, replace, "configured", "segment.ms", "null");
        a.step("AlterConfigs: a topic that is not there", "AlterConfigs", 2, replace, "nowhere", "segment.ms", "'5'");
        a.step("ListConfigResources: an unknown type", "ListConfigResources", 1, "{resourceTypes: [99]}");
        a.step("ListConfigResources: client metrics", "ListConfigResources", 0, "{}");
        return a;
    }

    static final String PRODUCE = "{acks: %s, timeoutMs: 5000, topicData: [{name: '%s', partitionData: [{index: %s, records: '%s'}]}]}";
    private static final String PRODUCE_BY_ID = "{acks: %s, timeoutMs: 5000, topicData: [{topicId: '%s', partitionData: [{index: %s, records: '%s'}]}]}";

    private static Area produce(Wire wire) throws Exception {
        Area a = new Area("produce", "Produce with good batches of every version and codec, and with every kind of bad one", wire);
        a.topic("plain", 1, "");
        a.topic("odd", 1, "");
        a.topic("compacted", 1, "{name: 'cleanup.policy', value: 'compact'}");
        a.topic("small", 1, "{name: 'max.message.bytes', value: '200'}");
        a.topic("appended", 1, "{name: 'message.timestamp.type', value: 'LogAppendTime'}");
        a.topic("timed", 1, "{name: 'message.timestamp.before.max.ms', value: '3600000'}, {name: 'message.timestamp.after.max.ms', value: '3600000'}");
        a.topic("recompressed", 1, "{name: 'compression.type', value: 'gzip'}");
        String good = Batches.plain(Batches.records(3));
        for (int v = 3; v <= 12; v++) {
            a.step("v" + v, "Produce", v, PRODUCE, -1, "plain", 0, good);
        }
        a.step("v13, by topic id", "Produce", 13, PRODUCE_BY_ID, -1, "$plain", 0, good);
        a.step("v13, an id that is not there", "Produce", 13, PRODUCE_BY_ID, -1, "AAAAAAAAAAAAAAAAAAAAZQ", 0, good);
        a.step("acks=1", "Produce", 9, PRODUCE, 1, "plain", 0, good);
        a.step("acks=2", "Produce", 9, PRODUCE, 2, "plain", 0, good);
        a.step("acks=-2", "Produce", 9, PRODUCE, -2, "plain", 0, good);
        a.silent("acks=0", "Produce", 9, PRODUCE, 0, "plain", 0, good);
        a.silent("acks=0 to a partition that is not there", "Produce", 9, PRODUCE, 0, "plain", 7, good);
        a.step("a topic that is not there", "Produce", 9, PRODUCE, -1, "nowhere", 0, good);
        a.step("a topic of a bad name", "Produce", 9, PRODUCE, -1, "bad name", 0, good);
        a.step("a partition that is not there", "Produce", 9, PRODUCE, -1, "plain", 7, good);
        a.step("a negative partition", "Produce", 9, PRODUCE, -1, "plain", -1, good);
        a.step("an internal topic", "Produce", 9, PRODUCE, -1, "__consumer_offsets", 0, good);
        a.step("no topics", "Produce", 9, "{acks: -1, timeoutMs: 1000, topicData: []}");
        a.step("records that are empty", "Produce", 9, PRODUCE, -1, "plain", 0, "");
        for (var codec : List.of(Compression.gzip().build(), Compression.snappy().build(), Compression.lz4().build(), Compression.zstd().build())) {
            String batch = Batches.compressed(codec, Batches.records(20));
            a.step(codec.type().name + ", v9", "Produce", 9, PRODUCE, -1, "plain", 0, batch);
            a.step(codec.type().name + ", v3", "Produce", 3, PRODUCE, -1, "plain", 0, batch);
            a.step(codec.type().name + ", v6", "Produce", 6, PRODUCE, -1, "plain", 0, batch);
            a.step(codec.type().name + " with a bad checksum inside", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.sealed(Batches.set(batch, Batches.RECORDS + 20, 0x55, 0xaa, 0x55, 0xaa)));
            a.step(codec.type().name + " that says it is not", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.sealed(Batches.set(batch, Batches.ATTRIBUTES, 0, 0)));
            a.step(codec.type().name + " to a topic of gzip", "Produce", 9, PRODUCE, -1, "recompressed", 0, batch);
        }
        a.step("plain that says it is gzip", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.sealed(Batches.set(good, Batches.ATTRIBUTES, 0, 1)));
        a.step("codec 5", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.sealed(Batches.set(good, Batches.ATTRIBUTES, 0, 5)));
        a.step("a bad CRC", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.set(good, Batches.CRC, 1, 2, 3, 4));
        a.step("a bad CRC, acks=1, v3", "Produce", 3, PRODUCE, 1, "plain", 0, Batches.set(good, Batches.CRC, 1, 2, 3, 4));
        a.step("magic 0", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.legacy((byte) 0, Batches.records(2)));
        a.step("magic 1", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.legacy((byte) 1, Batches.records(2)));
        a.step("magic 1, v3", "Produce", 3, PRODUCE, -1, "plain", 0, Batches.legacy((byte) 1, Batches.records(2)));
        a.step("magic 3", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.set(good, Batches.MAGIC, 3));
        a.step("magic -1", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.set(good, Batches.MAGIC, 255));
        a.step("two batches", "Produce", 9, PRODUCE, -1, "plain", 0, good + good);
        a.step("a batch and a half", "Produce", 9, PRODUCE, -1, "odd", 0, good + good.substring(0, 60));
        a.step("a batch cut off", "Produce", 9, PRODUCE, -1, "plain", 0, good.substring(0, good.length() - 8));
        a.step("a few bytes", "Produce", 9, PRODUCE, -1, "plain", 0, "0102030405");
        a.step("a batch length of 0", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.setInt(good, Batches.LENGTH, 0));
        a.step("a batch length of 48", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.setInt(good, Batches.LENGTH, 48));
        a.step("a negative batch length", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.setInt(good, Batches.LENGTH, -1));
        a.step("a batch length too large", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.setInt(good, Batches.LENGTH, 100000));
        a.step("a base offset of 55", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.set(good, 7, 55));
        a.step("a partition leader epoch of 9", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.setInt(good, 12, 9));
        a.step("a count of 2 for 3 records", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.sealed(Batches.setInt(good, Batches.COUNT, 2)));
        a.step("a count of 4 for 3 records", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.sealed(Batches.setInt(good, Batches.COUNT, 4)));
        a.step("a count of 0", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.sealed(Batches.setInt(good, Batches.COUNT, 0)));
        a.step("a negative count", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.sealed(Batches.setInt(good, Batches.COUNT, -3)));
        a.step("a last offset delta of 9", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.sealed(Batches.setInt(good, Batches.LAST_DELTA, 9)));
        a.step("a negative last offset delta", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.sealed(Batches.setInt(good, Batches.LAST_DELTA, -1)));
        a.step("a maximum timestamp that is wrong", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.sealed(Batches.set(good, Batches.MAX_TIME + 6, 0x77, 0x77)));
        a.step("a record length that is wrong", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.sealed(Batches.set(good, Batches.RECORDS, 0x7e)));
        a.step("an offset delta that is wrong", "Produce", 9, PRODUCE, -1, "odd", 0, Batches.sealed(Batches.set(good, Batches.RECORDS + 3, 0x0a)));
        a.step("a key length that is wrong", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.sealed(Batches.set(good, Batches.RECORDS + 4, 0x7e)));
        a.step("a timestamp delta that is negative", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.sealed(Batches.set(good, Batches.RECORDS + 2, 0x0d)));
        a.step("log append time said by the producer", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.sealed(Batches.set(good, Batches.ATTRIBUTES, 0, 0x08)));
        a.step("a control batch", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.marker(5));
        a.step("the delete horizon flag", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.sealed(Batches.set(good, Batches.ATTRIBUTES, 0, 0x40)));
        a.step("unused attributes", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.sealed(Batches.set(good, Batches.ATTRIBUTES, 0xff, 0x80)));
        a.step("a timestamp of -1", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.plain(Batches.record(-1, "k", "v")));
        a.step("a timestamp of -5", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.sealed(Batches.set(Batches.plain(Batches.record(0, "k", "v")), Batches.BASE_TIME, 255, 255, 255, 255, 255, 255, 255, 251)));
        String text = "x".repeat(300);
        a.step("too large for the topic", "Produce", 9, PRODUCE, -1, "small", 0, Batches.plain(Batches.record(5, "k", text)));
        a.step("too large for the topic, v3", "Produce", 3, PRODUCE, -1, "small", 0, Batches.plain(Batches.record(5, "k", text)));
        a.step("too large only before it is compressed", "Produce", 9, PRODUCE, -1, "small", 0, Batches.compressed(Compression.gzip().build(), Batches.record(5, "k", text)));
        a.step("no key on a compacted topic", "Produce", 9, PRODUCE, -1, "compacted", 0, Batches.plain(Batches.record(1, "a", "1"), Batches.record(2, null, "2"), Batches.record(3, "c", "3"), Batches.record(4, null, "4")));
        a.step("no key on a compacted topic, v7", "Produce", 7, PRODUCE, -1, "compacted", 0, Batches.plain(Batches.record(2, null, "2")));
        a.step("no key on a compacted topic, gzip", "Produce", 9, PRODUCE, -1, "compacted", 0, Batches.compressed(Compression.gzip().build(), Batches.record(1, "a", "1"), Batches.record(2, null, "2")));
        a.step("an empty key on a compacted topic", "Produce", 9, PRODUCE, -1, "compacted", 0, Batches.plain(Batches.record(2, "", "2")));
        a.step("log append time", "Produce", 9, PRODUCE, -1, "appended", 0, good);
        a.step("log append time, gzip", "Produce", 9, PRODUCE, -1, "appended", 0, Batches.compressed(Compression.gzip().build(), Batches.records(2)));
        a.step("timestamps too old", "Produce", 9, PRODUCE, -1, "timed", 0, good);
        a.step("timestamps too old, v7", "Produce", 7, PRODUCE, -1, "timed", 0, good);
        a.step("a timestamp far ahead", "Produce", 9, PRODUCE, -1, "timed", 0, Batches.plain(Batches.record(9_999_999_999_999L, "k", "v")));
        a.step("a timestamp far ahead where only the default bounds it", "Produce", 9, PRODUCE, -1, "plain", 0, Batches.plain(Batches.record(9_999_999_999_999L, "k", "v")));
        a.step("two partitions, one of them bad", "Produce", 9, "{acks: -1, timeoutMs: 5000, topicData: [{name: 'plain', partitionData: [{index: 0, records: '%s'}, {index: 3, records: '%s'}]}]}", good, good);
        a.step("one partition twice", "Produce", 9, "{acks: -1, timeoutMs: 5000, topicData: [{name: 'odd', partitionData: [{index: 0, records: '%s'}, {index: 0, records: '%s'}]}]}", good, good);
        a.step("what is in the log", "Fetch", 11, FETCH, 0, "plain", 0, 0, -1);
        a.step("what is in the log of the compacted topic", "Fetch", 11, FETCH, 0, "compacted", 0, 0, -1);
        a.step("what is in the log of the gzip topic", "ListOffsets", 7, "{replicaId: -1, topics: [{name: 'recompressed', partitions: [{partitionIndex: 0, timestamp: -1}]}]}");
        return a;
    }

    private static Area idempotence(Wire wire) throws Exception {
        Area a = new Area("idempotence", "InitProducerId, and batches with a producer id: sequences, duplicates, epochs", wire);
        a.topic("sequenced", 2, "");
        for (int v = 0; v <= 5; v++) {
            a.step("InitProducerId v" + v, "InitProducerId", v, "{transactionalId: null, transactionTimeoutMs: 60000}");
        }
        a.step("an empty transactional id", "InitProducerId", 5, "{transactionalId: '', transactionTimeoutMs: 60000}");
        a.step("a producer id without an epoch", "InitProducerId", 5, "{transactionalId: null, transactionTimeoutMs: 60000, producerId: 5, producerEpoch: -1}");
        a.step("an epoch without a producer id", "InitProducerId", 5, "{transactionalId: null, transactionTimeoutMs: 60000, producerId: -1, producerEpoch: 3}");
        a.step("a producer id of one's own", "InitProducerId", 5, "{transactionalId: null, transactionTimeoutMs: 60000, producerId: 5, producerEpoch: 3}");
        Object[][] batches = {
            {"sequence 0", 900, 0, 0, 3}, {"sequence 0 again: a duplicate", 900, 0, 0, 3}, {"sequence 3", 900, 0, 3, 2}, {"the first of the two again", 900, 0, 0, 3},
            {"part of a batch that was there", 900, 0, 0, 2}, {"sequence 3, longer than before", 900, 0, 3, 3}, {"a gap: sequence 9", 900, 0, 9, 1}, {"sequence 5", 900, 0, 5, 1},
            {"sequence 6", 900, 0, 6, 1}, {"sequence 7", 900, 0, 7, 1}, {"sequence 8", 900, 0, 8, 1}, {"sequence 9", 900, 0, 9, 1}, {"sequence 0: a duplicate too old", 900, 0, 0, 3},
            {"sequence 5: the oldest remembered", 900, 0, 5, 1}, {"a newer epoch at sequence 5", 900, 1, 5, 1}, {"a newer epoch at sequence 0", 900, 1, 0, 1}, {"the older epoch", 900, 0, 10, 1},
            {"the newer epoch goes on", 900, 1, 1, 1}, {"an unknown producer at sequence 5", 901, 0, 5, 1}, {"and goes on at 6", 901, 0, 6, 1}, {"an unknown producer at epoch 7", 902, 7, 0, 1},
            {"a wrap: up to 2147483647", 903, 0, 2147483646, 2}, {"a wrap: 0 again", 903, 0, 0, 1},
        };
        for (Object[] b : batches) {
            a.step((String) b[0], "Produce", 9, PRODUCE, -1, "sequenced", 0, Batches.idempotent((int) b[1], (int) b[2], (int) b[3], (int) b[4]));
        }
        String good = Batches.idempotent(910, 0, 0, 1);
        a.step("a producer id and no sequence", "Produce", 9, PRODUCE, -1, "sequenced", 1, Batches.sealed(Batches.setInt(good, Batches.SEQUENCE, -1)));
        a.step("a producer id and a negative epoch", "Produce", 9, PRODUCE, -1, "sequenced", 1, Batches.sealed(Batches.set(good, Batches.EPOCH, 255, 255)));
        a.step("a sequence and no producer id", "Produce", 9, PRODUCE, -1, "sequenced", 1, Batches.sealed(Batches.set(good, Batches.PRODUCER_ID, 255, 255, 255, 255, 255, 255, 255, 255)));
        a.step("acks=1 with a producer id", "Produce", 9, PRODUCE, 1, "sequenced", 1, good);
        a.step("a duplicate over acks=1", "Produce", 9, PRODUCE, 1, "sequenced", 1, good);
        a.step("two batches of one producer in one request", "Produce", 9, PRODUCE, -1, "sequenced", 1, Batches.idempotent(911, 0, 0, 1) + Batches.idempotent(911, 0, 1, 1));
        a.step("a transactional batch without a transactional id", "Produce", 9, PRODUCE, -1, "sequenced", 1, Batches.transactional(912, 0, 0, 1));
        a.step("DescribeProducers", "DescribeProducers", 0, "{topics: [{name: 'sequenced', partitionIndexes: [0, 5]}, {name: 'nowhere', partitionIndexes: [0]}]}");
        return a;
    }

    private static final String FETCH = "{replicaId: -1, maxWaitMs: %s, minBytes: 1, maxBytes: 1000000, isolationLevel: 0, topics: [{topic: '%s', partitions: [{partition: %s, fetchOffset: %s, currentLeaderEpoch: %s, partitionMaxBytes: 1000000}]}]}";

    private static Area fetch(Wire wire) throws Exception {
        Area a = new Area("fetch", "Fetch: offsets out of range, limits, sessions, leader epochs", wire);
        a.topic("fetched", 2, "");
        for (int i = 0; i < 3; i++) {
            a.step("batch " + i, "Produce", 9, PRODUCE, -1, "fetched", 0, Batches.plain(Batches.records(3)));
        }
        a.step("delete up to 4", "DeleteRecords", 2, "{timeoutMs: 30000, topics: [{name: 'fetched', partitions: [{partitionIndex: 0, offset: 4}]}]}");
        for (int v = 4; v <= 12; v++) {
            a.step("v" + v + " from 4, inside a batch", "Fetch", v, FETCH, 0, "fetched", 0, 4, -1);
        }
        String byId = "{maxWaitMs: 0, minBytes: 1, maxBytes: 1000000, isolationLevel: %s, topics: [{topicId: '%s', partitions: [{partition: 0, fetchOffset: %s, partitionMaxBytes: 1000000}]}]}";
        for (int v = 13; v <= 18; v++) {
            a.step("v" + v + " by id", "Fetch", v, byId, 0, "$fetched", 6);
        }
        a.step("read committed", "Fetch", 13, byId, 1, "$fetched", 6);
        a.step("an isolation level that there is not", "Fetch", 13, byId, 5, "$fetched", 6);
        a.step("an id that is not there", "Fetch", 13, byId, 0, "AAAAAAAAAAAAAAAAAAAAZQ", 0);
        a.step("below the log start", "Fetch", 12, FETCH, 0, "fetched", 0, 2, -1);
        a.step("at the end", "Fetch", 12, FETCH, 0, "fetched", 0, 9, -1);
        a.step("beyond the end", "Fetch", 12, FETCH, 0, "fetched", 0, 10, -1);
        a.step("a negative offset", "Fetch", 12, FETCH, 0, "fetched", 0, -1, -1);
        a.step("an empty partition", "Fetch", 12, FETCH, 0, "fetched", 1, 0, -1);
        a.step("a partition that is not there", "Fetch", 12, FETCH, 0, "fetched", 5, 0, -1);
        a.step("a topic that is not there", "Fetch", 12, FETCH, 0, "nowhere", 0, 0, -1);
        a.step("leader epoch 0", "Fetch", 12, FETCH, 0, "fetched", 0, 4, 0);
        a.step("leader epoch 5", "Fetch", 12, FETCH, 0, "fetched", 0, 4, 5);
        a.step("leader epoch -2", "Fetch", 12, FETCH, 0, "fetched", 0, 4, -2);
        String limits = "{replicaId: -1, maxWaitMs: 0, minBytes: %s, maxBytes: %s, topics: [{topic: 'fetched', partitions: [{partition: 0, fetchOffset: 4, partitionMaxBytes: %s}]}]}";
        a.step("the first batch although it is over maxBytes", "Fetch", 12, limits, 1, 1, 1000000);
        a.step("the first batch although it is over partitionMaxBytes", "Fetch", 12, limits, 1, 1000000, 1);
        a.step("room for one batch", "Fetch", 12, limits, 1, 1000000, 150);
        a.step("maxBytes 0", "Fetch", 12, limits, 1, 0, 1000000);
        a.step("negative limits", "Fetch", 12, limits, -1, -1, -1);
        a.step("more minBytes than there are", "Fetch", 12, limits, 1000000, 2000000, 1000000);
        a.step("a session that there is not", "Fetch", 12, "{maxWaitMs: 0, minBytes: 1, sessionId: 12345, sessionEpoch: 1, topics: []}");
        a.step("a session epoch without a session", "Fetch", 12, "{maxWaitMs: 0, minBytes: 1, sessionId: 0, sessionEpoch: 5, topics: []}");
        String open = "{maxWaitMs: 0, minBytes: 1, maxBytes: 1000000, sessionId: %s, sessionEpoch: %s, topics: [%s], forgottenTopicsData: [%s]}";
        String both = "{topic: 'fetched', partitions: [{partition: 0, fetchOffset: 9, partitionMaxBytes: 1000000}, {partition: 1, fetchOffset: 0, partitionMaxBytes: 1000000}]}";
        int session = a.step("a new session", "Fetch", 12, open, 0, 0, both, "").get("sessionId").intValue();
        a.step("nothing new in it", "Fetch", 12, open, session, 1, "", "");
        a.step("its epoch again", "Fetch", 12, open, session, 1, "", "");
        a.step("one record to partition 1", "Produce", 9, PRODUCE, -1, "fetched", 1, Batches.plain(Batches.records(1)));
        a.step("the session tells of partition 1 only", "Fetch", 12, open, session, 2, "", "");
        a.step("forget partition 1", "Fetch", 12, open, session, 3, "{topic: 'fetched', partitions: [{partition: 0, fetchOffset: 9, partitionMaxBytes: 1000000}]}", "{topic: 'fetched', partitions: [1]}");
        a.step("close the session", "Fetch", 12, open, session, -1, "", "");
        a.step("and it is gone", "Fetch", 12, open, session, 4, "", "");
        a.step("OffsetForLeaderEpoch", "OffsetForLeaderEpoch", 4, "{replicaId: -1, topics: [{topic: 'fetched', partitions: [{partition: 0, currentLeaderEpoch: -1, leaderEpoch: 0}, {partition: 1, currentLeaderEpoch: 0, leaderEpoch: 5}, {partition: 5, currentLeaderEpoch: -1, leaderEpoch: 0}]}]}");
        a.step("OffsetForLeaderEpoch with a wrong epoch", "OffsetForLeaderEpoch", 3, "{replicaId: -1, topics: [{topic: 'fetched', partitions: [{partition: 0, currentLeaderEpoch: 9, leaderEpoch: 0}, {partition: 1, currentLeaderEpoch: -1, leaderEpoch: -1}]}, {topic: 'nowhere', partitions: [{partition: 0, leaderEpoch: 0}]}]}");
        return a;
    }

    private static Area offsets(Wire wire) throws Exception {
        Area a = new Area("list-offsets", "ListOffsets: the special timestamps and others, on an empty partition and one with records", wire);
        a.topic("listed", 2, "");
        String ask = "{replicaId: -1, isolationLevel: 0, topics: [{name: 'listed', partitions: [{partitionIndex: %s, currentLeaderEpoch: %s, timestamp: %s}]}]}";
        a.step("records of 1000, 3000, 2000", "Produce", 9, PRODUCE, -1, "listed", 0, Batches.plain(Batches.record(1000, "a", "1"), Batches.record(3000, "b", "2"), Batches.record(2000, "c", "3")));
        a.step("records of 5000, 4000, gzip", "Produce", 9, PRODUCE, -1, "listed", 0, Batches.compressed(Compression.gzip().build(), Batches.record(5000, "a", "1"), Batches.record(4000, "b", "2")));
        for (int v = 1; v <= 11; v++) {
            for (long timestamp : new long[] {-1, -2}) {
                a.step("v" + v + ", " + timestamp, "ListOffsets", v, ask, 0, -1, timestamp);
            }
        }
        for (int partition = 0; partition <= 1; partition++) {
            for (long timestamp : new long[] {-1, -2, -3, -4, -5, -6, -7, -100, 0, 1000, 1500, 2500, 3000, 4500, 5000, 5001, Long.MAX_VALUE}) {
                a.step("partition " + partition + ", timestamp " + timestamp, "ListOffsets", 11, ask, partition, -1, timestamp);
            }
        }
        a.step("-3 in v6, which has no word for it", "ListOffsets", 6, ask, 0, -1, -3);
        a.step("-4 in v7, which has no word for it", "ListOffsets", 7, ask, 0, -1, -4);
        a.step("leader epoch 0", "ListOffsets", 7, ask, 0, 0, -1);
        a.step("leader epoch 5", "ListOffsets", 7, ask, 0, 5, -1);
        a.step("a partition that is not there", "ListOffsets", 7, ask, 5, -1, -1);
        a.step("a topic that is not there", "ListOffsets", 7, "{replicaId: -1, topics: [{name: 'nowhere', partitions: [{partitionIndex: 0, timestamp: -1}]}]}");
        a.step("one partition twice", "ListOffsets", 7, "{replicaId: -1, topics: [{name: 'listed', partitions: [{partitionIndex: 0, timestamp: -1}, {partitionIndex: 0, timestamp: -2}]}]}");
        a.step("a replica id", "ListOffsets", 7, "{replicaId: 3, topics: [{name: 'listed', partitions: [{partitionIndex: 0, timestamp: -1}]}]}");
        a.step("read committed", "ListOffsets", 7, "{replicaId: -1, isolationLevel: 1, topics: [{name: 'listed', partitions: [{partitionIndex: 0, timestamp: -1}]}]}");
        a.step("delete up to 2", "DeleteRecords", 2, "{timeoutMs: 30000, topics: [{name: 'listed', partitions: [{partitionIndex: 0, offset: 2}]}]}");
        for (long timestamp : new long[] {-2, -4, -3, 0, 1000, 3000}) {
            a.step("after deletion, timestamp " + timestamp, "ListOffsets", 11, ask, 0, -1, timestamp);
        }
        return a;
    }

    private static Area groups(Wire wire) throws Exception {
        Area a = new Area("groups", "Classic groups: what is refused, and what is said of groups that are not there", wire);
        a.topic("grouped", 2, "");
        for (int v = 0; v <= 3; v++) {
            a.step("FindCoordinator v" + v, "FindCoordinator", v, v == 0 ? "{key: 'g'}" : "{key: 'g', keyType: 0}");
        }
        a.step("FindCoordinator v4 of several", "FindCoordinator", 4, "{keyType: 0, coordinatorKeys: ['g', 'h']}");
        a.step("FindCoordinator v6 of none", "FindCoordinator", 6, "{keyType: 0, coordinatorKeys: []}");
        a.step("FindCoordinator of an empty key", "FindCoordinator", 4, "{keyType: 0, coordinatorKeys: ['']}");
        a.step("FindCoordinator of type 5", "FindCoordinator", 4, "{keyType: 5, coordinatorKeys: ['g']}");
        a.step("FindCoordinator of type -1, v2", "FindCoordinator", 2, "{keyType: -1, key: 'g'}");
        a.step("FindCoordinator of a share group with a bad key", "FindCoordinator", 6, "{keyType: 2, coordinatorKeys: ['g']}");
        a.step("FindCoordinator of a share group in v5", "FindCoordinator", 5, "{keyType: 2, coordinatorKeys: ['g:AAAAAAAAAAAAAAAAAAAAZQ:0']}");

        String join = "{groupId: '%s', sessionTimeoutMs: %s, rebalanceTimeoutMs: 10000, memberId: '%s', protocolType: '%s', protocols: [%s]}";
        String protocol = "{name: 'range', metadata: '0001'}";
        a.step("JoinGroup with an empty group id", "JoinGroup", 5, join, "", 10000, "", "consumer", protocol);
        a.step("JoinGroup with a session timeout of 1 ms", "JoinGroup", 5, join, "join", 1, "", "consumer", protocol);
        a.step("JoinGroup with a session timeout of an hour", "JoinGroup", 5, join, "join", 3600000, "", "consumer", protocol);
        a.step("JoinGroup with a member id that there is not", "JoinGroup", 5, join, "join", 300000, "nobody", "consumer", protocol);
        a.step("JoinGroup without a protocol", "JoinGroup", 5, join, "join", 300000, "", "consumer", "");
        a.step("JoinGroup without a protocol type", "JoinGroup", 5, join, "join", 300000, "", "", protocol);
        a.step("JoinGroup v4: a member id first", "JoinGroup", 4, join, "join", 300000, "", "consumer", protocol);
        a.step("JoinGroup v9: a member id first", "JoinGroup", 9, join, "join", 300000, "", "consumer", protocol);
        for (int v = 0; v <= 3; v++) {
            a.step("JoinGroup v" + v + ", which asks for no member id", "JoinGroup", v, v == 0 ? "{groupId: 'join-v0', sessionTimeoutMs: 300000, protocolType: 'consumer', protocols: [" + protocol + "]}" : join, "join-v" + v, 300000, "", "consumer", protocol);
        }
        String named = "{groupId: 'static', sessionTimeoutMs: 300000, rebalanceTimeoutMs: 6000, memberId: '', groupInstanceId: '%s', protocolType: '%s', protocols: [{name: '%s', metadata: '0001'}]}";
        String member = a.step("JoinGroup of a static member", "JoinGroup", 9, named, "one", "consumer", "range").get("memberId").textValue();
        a.step("JoinGroup of another with another protocol type", "JoinGroup", 9, named, "two", "connect", "range");
        a.step("JoinGroup of another with another protocol", "JoinGroup", 9, named, "two", "consumer", "sticky");
        a.step("SyncGroup of the static member", "SyncGroup", 5, "{groupId: 'static', generationId: 1, memberId: '%s', groupInstanceId: 'one', protocolType: 'consumer', protocolName: 'range', assignments: [{memberId: '%s', assignment: '0102'}]}", member, member);
        a.step("SyncGroup with another protocol", "SyncGroup", 5, "{groupId: 'static', generationId: 1, memberId: '%s', protocolType: 'consumer', protocolName: 'sticky', assignments: []}", member);
        a.step("SyncGroup of another generation", "SyncGroup", 5, "{groupId: 'static', generationId: 9, memberId: '%s', protocolType: 'consumer', protocolName: 'range', assignments: []}", member);
        a.step("Heartbeat", "Heartbeat", 4, "{groupId: 'static', generationId: 1, memberId: '%s', groupInstanceId: 'one'}", member);
        a.step("Heartbeat of another generation", "Heartbeat", 4, "{groupId: 'static', generationId: 7, memberId: '%s'}", member);
        a.step("Heartbeat of another with the same instance id", "Heartbeat", 4, "{groupId: 'static', generationId: 1, memberId: 'nobody', groupInstanceId: 'one'}");
        a.step("Heartbeat of an instance id that there is not", "Heartbeat", 4, "{groupId: 'static', generationId: 1, memberId: '%s', groupInstanceId: 'other'}", member);
        a.step("DescribeGroups of the group", "DescribeGroups", 5, "{groups: ['static'], includeAuthorizedOperations: true}");
        a.step("DeleteGroups of a group with a member", "DeleteGroups", 2, "{groupsNames: ['static']}");
        a.step("OffsetCommit of the member", "OffsetCommit", 8, COMMIT, "static", 1, member, "grouped", 0, 5, "'m'");
        a.step("OffsetCommit of another generation", "OffsetCommit", 8, COMMIT, "static", 3, member, "grouped", 0, 5, "'m'");
        a.step("OffsetCommit of nobody", "OffsetCommit", 8, COMMIT, "static", 1, "nobody", "grouped", 0, 5, "'m'");
        a.step("OffsetCommit without a generation to a group with members", "OffsetCommit", 8, COMMIT, "static", -1, "", "grouped", 0, 5, "'m'");
        a.step("OffsetDelete of what a group with members reads", "OffsetDelete", 0, "{groupId: 'static', topics: [{name: 'grouped', partitions: [{partitionIndex: 0}]}]}");
        a.step("LeaveGroup of nobody", "LeaveGroup", 4, "{groupId: 'static', members: [{memberId: 'nobody'}]}");
        a.step("LeaveGroup of an instance id that there is not", "LeaveGroup", 4, "{groupId: 'static', members: [{memberId: '', groupInstanceId: 'other'}]}");
        a.step("LeaveGroup by the instance id", "LeaveGroup", 5, "{groupId: 'static', members: [{memberId: '', groupInstanceId: 'one', reason: 'done'}]}");
        a.step("DescribeGroups when all have left", "DescribeGroups", 5, "{groups: ['static']}");

        a.step("SyncGroup of a group that is not there", "SyncGroup", 3, "{groupId: 'nowhere', generationId: 1, memberId: 'nobody', assignments: []}");
        a.step("SyncGroup v5 without a protocol type", "SyncGroup", 5, "{groupId: 'nowhere', generationId: 1, memberId: 'nobody', assignments: []}");
        a.step("Heartbeat of a group that is not there", "Heartbeat", 3, "{groupId: 'nowhere', generationId: 1, memberId: 'nobody'}");
        a.step("Heartbeat with an empty group id", "Heartbeat", 3, "{groupId: '', generationId: 1, memberId: 'nobody'}");
        a.step("LeaveGroup of a group that is not there, v0", "LeaveGroup", 0, "{groupId: 'nowhere', memberId: 'nobody'}");
        a.step("LeaveGroup of a group that is not there, v4", "LeaveGroup", 4, "{groupId: 'nowhere', members: [{memberId: 'nobody'}]}");
        for (int v : new int[] {0, 4, 5, 6}) {
            a.step("DescribeGroups v" + v + " of a group that is not there", "DescribeGroups", v, "{groups: ['nowhere']}");
        }
        a.step("DescribeGroups of an empty name", "DescribeGroups", 6, "{groups: ['']}");
        a.step("DeleteGroups of one that is not there, an empty name", "DeleteGroups", 2, "{groupsNames: ['nowhere', '']}");
        a.step("ListGroups of a state that there is not", "ListGroups", 4, "{statesFilter: ['Tired']}");
        a.step("ListGroups of a type that there is not", "ListGroups", 5, "{statesFilter: [], typesFilter: ['folk']}");
        a.step("ListGroups of empty groups", "ListGroups", 5, "{statesFilter: ['Empty'], typesFilter: ['classic']}");

        for (int v = 2; v <= 9; v++) {
            a.step("OffsetCommit v" + v + " without a group", "OffsetCommit", v, "{groupId: 'simple', generationIdOrMemberEpoch: -1, memberId: '', topics: [{name: 'grouped', partitions: [{partitionIndex: 0, committedOffset: " + (10 + v) + ", committedMetadata: 'v" + v + "'}]}]}");
        }
        a.step("OffsetCommit v10 by topic id", "OffsetCommit", 10, "{groupId: 'simple', generationIdOrMemberEpoch: -1, memberId: '', topics: [{topicId: '$grouped', partitions: [{partitionIndex: 1, committedOffset: 33, committedMetadata: ''}]}]}");
        a.step("OffsetCommit v10 of an id that is not there", "OffsetCommit", 10, "{groupId: 'simple', generationIdOrMemberEpoch: -1, memberId: '', topics: [{topicId: 'AAAAAAAAAAAAAAAAAAAAZQ', partitions: [{partitionIndex: 1, committedOffset: 33}]}]}");
        a.step("OffsetCommit with a generation and no group", "OffsetCommit", 8, COMMIT, "nowhere", 3, "nobody", "grouped", 0, 5, "''");
        a.step("OffsetCommit of a topic that is not there", "OffsetCommit", 8, COMMIT, "simple", -1, "", "nowhere", 0, 5, "''");
        a.step("OffsetCommit of a partition that is not there", "OffsetCommit", 8, COMMIT, "simple", -1, "", "grouped", 9, 5, "''");
        a.step("OffsetCommit of a negative offset", "OffsetCommit", 8, COMMIT, "simple", -1, "", "grouped", 0, -5, "''");
        a.step("OffsetCommit with metadata that is null", "OffsetCommit", 8, COMMIT, "simple", -1, "", "grouped", 0, 5, "null");
        a.step("OffsetCommit with 4096 characters of metadata", "OffsetCommit", 8, COMMIT, "simple", -1, "", "grouped", 0, 6, "'" + "m".repeat(4096) + "'");
        a.step("OffsetCommit with 4097 characters of metadata", "OffsetCommit", 8, COMMIT, "simple", -1, "", "grouped", 0, 7, "'" + "m".repeat(4097) + "'");
        a.step("OffsetCommit with an empty group id", "OffsetCommit", 8, COMMIT, "", -1, "", "grouped", 0, 5, "''");
        a.step("OffsetCommit 44", "OffsetCommit", 8, COMMIT, "simple", -1, "", "grouped", 0, 44, "'last'");
        for (int v = 1; v <= 7; v++) {
            a.step("OffsetFetch v" + v, "OffsetFetch", v, "{groupId: 'simple', topics: [{name: 'grouped', partitionIndexes: [0, 1, 9]}, {name: 'nowhere', partitionIndexes: [0]}]}");
        }
        a.step("OffsetFetch v7 of everything", "OffsetFetch", 7, "{groupId: 'simple', topics: null}");
        a.step("OffsetFetch v8", "OffsetFetch", 8, "{groups: [{groupId: 'simple', topics: [{name: 'grouped', partitionIndexes: [0, 1]}]}, {groupId: 'nowhere', topics: [{name: 'grouped', partitionIndexes: [0]}]}]}");
        a.step("OffsetFetch v8 of everything", "OffsetFetch", 8, "{groups: [{groupId: 'simple', topics: null}, {groupId: 'nowhere', topics: null}]}");
        a.step("OffsetFetch v9 of a member that there is not", "OffsetFetch", 9, "{groups: [{groupId: 'simple', memberId: 'nobody', memberEpoch: 5, topics: [{name: 'grouped', partitionIndexes: [0]}]}]}");
        a.step("OffsetFetch v10 by topic id", "OffsetFetch", 10, "{groups: [{groupId: 'simple', topics: [{topicId: '$grouped', partitionIndexes: [0, 1]}, {topicId: 'AAAAAAAAAAAAAAAAAAAAZQ', partitionIndexes: [0]}]}]}");
        a.step("OffsetDelete", "OffsetDelete", 0, "{groupId: 'simple', topics: [{name: 'grouped', partitions: [{partitionIndex: 0}, {partitionIndex: 9}]}, {name: 'nowhere', partitions: [{partitionIndex: 0}]}]}");
        a.step("OffsetDelete of a group that is not there", "OffsetDelete", 0, "{groupId: 'nowhere', topics: [{name: 'grouped', partitions: [{partitionIndex: 0}]}]}");
        a.step("OffsetFetch after that", "OffsetFetch", 7, "{groupId: 'simple', topics: null}");
        a.step("DescribeGroups of a group of offsets alone", "DescribeGroups", 5, "{groups: ['simple']}");
        a.step("DeleteGroups of it", "DeleteGroups", 2, "{groupsNames: ['simple']}");
        a.step("OffsetFetch when it is gone", "OffsetFetch", 7, "{groupId: 'simple', topics: null}");
        return a;
    }

    private static final String COMMIT = "{groupId: '%s', generationIdOrMemberEpoch: %s, memberId: '%s', topics: [{name: '%s', partitions: [{partitionIndex: %s, committedOffset: %s, committedMetadata: %s}]}]}";

    private Areas() { }
}
