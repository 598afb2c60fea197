/** The questions about streams groups. */
final class Streams {
    private static final String STATELESS = "{epoch: 3, subtopologies: [{subtopologyId: '0', sourceTopics: ['streamed']}]}";

    /** One subtopology with these further fields. */
    private static String subtopology(String fields) {
        return "{epoch: 3, subtopologies: [{subtopologyId: '0', " + fields + "}]}";
    }

    private static String changed(String request, String field, String value) {
        return request.replaceAll(field + ": ([^,\\[{}]+|\\[[^\\]]*\\])", field + ": " + value);
    }

    private static String joining(String group, String member, String topology) {
        return "{groupId: '" + group + "', memberId: '" + member + "', memberEpoch: 0, endpointInformationEpoch: -1, rebalanceTimeoutMs: 60000, activeTasks: [], standbyTasks: [], "
            + "warmupTasks: [], processId: 'process of " + member + "', clientTags: [], topology: " + topology + "}";
    }

    private static String going(String group, String member, int epoch, String more) {
        return "{groupId: '" + group + "', memberId: '" + member + "', memberEpoch: " + epoch + more + "}";
    }

    private static String having(String subtopology, String partitions, String standby) {
        return ", activeTasks: [{subtopologyId: '" + subtopology + "', partitions: " + partitions + "}], standbyTasks: " + standby + ", warmupTasks: []";
    }

    private final Area a;

    private Streams(Area a) {
        this.a = a;
    }

    static Area area(Wire wire) throws Exception {
        Area a = new Area("streams", "Streams groups: members that share tasks, and every kind of refusal", wire);
        Streams streams = new Streams(a);
        a.topic("streamed", 4, "");
        a.topic("narrow", 2, "");
        a.topic("changelog", 4, "");
        for (String group : new String[] {"app", "standbys", "other", "classic", "consumers"}) {
            streams.set(group, "streams.initial.rebalance.delay.ms", "0");
            streams.set(group, "streams.assignment.interval.ms", "0");
        }
        streams.set("standbys", "streams.num.standby.replicas", "1");
        a.settle();
        streams.refused();
        streams.shared();
        streams.standbys();
        streams.topologies();
        streams.otherKinds();
        return a;
    }

    private void set(String group, String key, String value) throws Exception {
        a.step("set " + key + " of " + group, "IncrementalAlterConfigs", 1,
            "{resources: [{resourceType: 32, resourceName: '" + group + "', configs: [{name: '" + key + "', configOperation: 0, value: '" + value + "'}]}]}");
    }

    private void beat(String name, String request) throws Exception {
        a.step(name, "StreamsGroupHeartbeat", 0, request);
    }

    private void describe(String name, String group) throws Exception {
        a.step(name, "StreamsGroupDescribe", 0, "{groupIds: ['" + group + "'], includeAuthorizedOperations: true}");
    }

    private void refused() throws Exception {
        String join = joining("app", "a", STATELESS);
        beat("a heartbeat of a group that is not there", going("app", "a", 2, ""));
        beat("a leave of a group that is not there", going("app", "a", -1, ""));
        beat("a join with an empty group id", joining("", "a", STATELESS));
        beat("a join with an empty member id", joining("app", "", STATELESS));
        beat("a join with an empty rack", changed(join, "clientTags", "[], rackId: ''"));
        beat("a join of a static member", changed(join, "clientTags", "[], instanceId: 'i'"));
        beat("a join with an empty instance id", changed(join, "clientTags", "[], instanceId: ''"));
        beat("a join without a rebalance timeout", changed(join, "rebalanceTimeoutMs", "-1"));
        beat("a join with active tasks", changed(join, "activeTasks", "[{subtopologyId: '0', partitions: [0]}]"));
        beat("a join with standby tasks", changed(join, "standbyTasks", "[{subtopologyId: '0', partitions: [0]}]"));
        beat("a join with warm-up tasks", changed(join, "warmupTasks", "[{subtopologyId: '0', partitions: [0]}]"));
        beat("a join with task offsets", changed(join, "clientTags", "[], taskOffsets: []"));
        beat("a join with task end offsets", changed(join, "clientTags", "[], taskEndOffsets: []"));
        beat("a join without a topology", joining("app", "a", "null"));
        beat("a join with epoch -2", changed(join, "memberEpoch", "-2"));
        beat("a join with epoch -3", changed(join, "memberEpoch", "-3"));
        beat("a topology with an epoch that is not 0", changed(join, "memberEpoch", "5"));
        beat("active tasks alone", going("app", "a", 2, ", activeTasks: []"));
        beat("a source by regular expression", joining("app", "a", subtopology("sourceTopics: ['streamed'], sourceTopicRegex: ['s.*']")));
        beat("a changelog with partitions", joining("app", "a", subtopology("sourceTopics: ['streamed'], stateChangelogTopics: [{name: 'c', partitions: 2}]")));
        beat("a source that is Kafka's own", joining("app", "a", subtopology("sourceTopics: ['__consumer_offsets']")));
        beat("a source with a bad name", joining("app", "a", subtopology("sourceTopics: ['b x', 'streamed']")));
        beat("a subtopology without sources", joining("app", "a", subtopology("sourceTopics: []")));
        beat("a repartition topic that nobody writes", joining("app", "a", subtopology("sourceTopics: ['streamed'], repartitionSourceTopics: [{name: 'r'}]")));
        beat("a repartition topic that follows itself", joining("app", "a", subtopology("repartitionSinkTopics: ['r'], repartitionSourceTopics: [{name: 'r'}]")));
        describe("StreamsGroupDescribe of a group that is not there", "app");
        describe("StreamsGroupDescribe of an empty name", "");
    }

    private void shared() throws Exception {
        beat("a joins", joining("app", "a", STATELESS));
        beat("a goes on", going("app", "a", 2, ""));
        beat("a joins again", joining("app", "a", STATELESS));
        beat("a says what it has", going("app", "a", 2, having("0", "[0, 1, 2, 3]", "[]")));
        beat("a says that it has a task that there is not", going("app", "a", 2, having("0", "[4]", "[]")));
        beat("a says that it has a subtopology that there is not", going("app", "a", 2, having("9", "[0]", "[]")));
        beat("an epoch that is too high", going("app", "a", 3, ""));
        beat("an epoch that is too low", going("app", "a", 1, ""));
        beat("somebody who is not a member", going("app", "x", 2, ""));
        describe("a group of one", "app");
        beat("b joins", joining("app", "b", STATELESS));
        describe("a group on its way", "app");
        beat("a is to give up tasks", going("app", "a", 2, ""));
        beat("a has not yet", going("app", "a", 2, ""));
        beat("a has", going("app", "a", 2, having("0", "[0, 1]", "[]")));
        beat("a says so again with the epoch before", going("app", "a", 2, ", activeTasks: [{subtopologyId: '0', partitions: [0, 1]}], standbyTasks: [], warmupTasks: []"));
        beat("a says less than all with the epoch before", going("app", "a", 2, ""));
        beat("b gets them", going("app", "b", 3, ""));
        describe("a group that shares", "app");
        a.step("ListGroups of streams groups", "ListGroups", 5, "{statesFilter: ['Stable'], typesFilter: ['streams']}");
        a.step("DescribeGroups of one", "DescribeGroups", 6, "{groups: ['app']}");
        a.step("ConsumerGroupDescribe of one", "ConsumerGroupDescribe", 1, "{groupIds: ['app']}");
        a.step("DeleteGroups of one with members", "DeleteGroups", 2, "{groupsNames: ['app']}");
        for (int epoch : new int[] {3, 2, 4, -1}) {
            for (int partition : new int[] {0, 3}) {
                a.step("OffsetCommit of partition " + partition + " by a in epoch " + epoch, "OffsetCommit", 9, commit("a", epoch, partition));
            }
        }
        a.step("OffsetCommit by b of what it did not have in epoch 2", "OffsetCommit", 9, commit("b", 2, 3));
        a.step("OffsetCommit by a stranger", "OffsetCommit", 9, commit("x", 3, 0));
        a.step("OffsetCommit v8 by a member", "OffsetCommit", 8, commit("a", 3, 0));
        for (int epoch : new int[] {3, 2, 4}) {
            a.step("OffsetFetch by a in epoch " + epoch, "OffsetFetch", 9,
                "{groups: [{groupId: 'app', memberId: 'a', memberEpoch: " + epoch + ", topics: [{name: 'streamed', partitionIndexes: [0, 1]}]}]}");
        }
        a.step("OffsetFetch by a stranger", "OffsetFetch", 9, "{groups: [{groupId: 'app', memberId: 'x', memberEpoch: 3, topics: [{name: 'streamed', partitionIndexes: [0]}]}]}");
        a.step("OffsetDelete of what it reads", "OffsetDelete", 0, "{groupId: 'app', topics: [{name: 'streamed', partitions: [{partitionIndex: 0}]}, {name: 'narrow', partitions: [{partitionIndex: 0}]}]}");
        beat("a has an endpoint", changed(joining("app", "a", STATELESS), "clientTags", "[{key: 'zone', value: 'z'}], userEndpoint: {host: 'there', port: 65535}"));
        beat("a has heard of it", going("app", "a", 4, ", endpointInformationEpoch: 1"));
        beat("b has not", going("app", "b", 4, ", endpointInformationEpoch: 0"));
        describe("a group with an endpoint", "app");
        beat("a topology of an epoch before", joining("app", "c", STATELESS.replace("epoch: 3", "epoch: 2")));
        beat("a topology of an epoch after", joining("app", "d", STATELESS.replace("epoch: 3", "epoch: 4")));
        beat("another topology of the same epoch", joining("app", "d", subtopology("sourceTopics: ['narrow']")));
        beat("c wants the application to end", going("app", "c", 5, ", shutdownApplication: true"));
        beat("c leaves", going("app", "c", -1, ", shutdownApplication: true"));
        beat("c leaves again", going("app", "c", -1, ""));
        beat("b hears of it", going("app", "b", 4, ", endpointInformationEpoch: 1"));
        beat("b leaves", going("app", "b", -1, ""));
        beat("a leaves", going("app", "a", -1, ""));
        describe("a group without members", "app");
        a.step("OffsetFetch by nobody", "OffsetFetch", 9, "{groups: [{groupId: 'app', topics: [{name: 'streamed', partitionIndexes: [0, 1, 3]}]}]}");
        a.step("OffsetCommit by nobody", "OffsetCommit", 9, commit("", -1, 0));
        a.step("DeleteGroups of one without members", "DeleteGroups", 2, "{groupsNames: ['app']}");
    }

    private static String commit(String member, int epoch, int partition) {
        return "{groupId: 'app', generationIdOrMemberEpoch: " + epoch + ", memberId: '" + member + "', topics: [{name: 'streamed', partitions: [{partitionIndex: " + partition
            + ", committedOffset: 5, committedMetadata: 'm'}]}]}";
    }

    private void standbys() throws Exception {
        String topology = subtopology("sourceTopics: ['streamed'], stateChangelogTopics: [{name: 'changelog'}]");
        beat("a joins with state", joining("standbys", "a", topology));
        beat("b joins with state", joining("standbys", "b", topology));
        beat("a gives up", going("standbys", "a", 2, ""));
        beat("a has given up", going("standbys", "a", 2, having("0", "[0, 1]", "[]")));
        beat("a goes on with its copies", going("standbys", "a", 3, ""));
        beat("b gets the rest", going("standbys", "b", 3, ""));
        describe("a group with standbys", "standbys");
        beat("b leaves its copies", going("standbys", "b", -1, ""));
        beat("a gives up its copies", going("standbys", "a", 3, ""));
        beat("a has none any more", going("standbys", "a", 3, having("0", "[0, 1]", "[]")));
        beat("a goes on with all", going("standbys", "a", 4, ""));
        set("standbys", "streams.num.standby.replicas", "2");
        a.settle();
        beat("another number of standbys is another epoch", going("standbys", "a", 4, ""));
        set("standbys", "streams.num.standby.replicas", "3");
    }

    private void topologies() throws Exception {
        beat("a source that is not there", joining("other", "a", subtopology("sourceTopics: ['nowhere-3', 'nowhere-1', 'nowhere-2', 'nowhere-4', 'nowhere-5']")));
        describe("a group that is not ready", "other");
        beat("a goes on without it", going("other", "a", 2, ""));
        beat("a leaves without it", going("other", "a", -1, ""));
        a.step("DeleteGroups of it", "DeleteGroups", 2, "{groupsNames: ['other']}");
        beat("sources that are copartitioned and are not", joining("other", "a", subtopology("sourceTopics: ['streamed', 'narrow'], copartitionGroups: [{sourceTopics: [0, 1]}]")));
        beat("a leaves them", going("other", "a", -1, ""));
        a.step("DeleteGroups of that", "DeleteGroups", 2, "{groupsNames: ['other']}");
        beat("a changelog that is too narrow", joining("other", "a", subtopology("sourceTopics: ['streamed'], stateChangelogTopics: [{name: 'narrow'}]")));
        beat("a leaves it", going("other", "a", -1, ""));
        a.step("DeleteGroups of that, too", "DeleteGroups", 2, "{groupsNames: ['other']}");
        beat("a repartition topic that is to be as wide as a source", joining("other", "a",
            subtopology("sourceTopics: ['streamed'], repartitionSinkTopics: ['r'], repartitionSourceTopics: [{name: 'r', partitions: 3}], copartitionGroups: [{sourceTopics: [0], repartitionSourceTopics: [0]}]")));
        beat("a leaves that", going("other", "a", -1, ""));
    }

    private void otherKinds() throws Exception {
        beat("a streams group", joining("other", "a", subtopology("sourceTopics: ['streamed'], repartitionSinkTopics: ['r'], repartitionSourceTopics: [{name: 'r', partitions: 3}], copartitionGroups: [{sourceTopics: [0], repartitionSourceTopics: [0]}]")));
        a.step("JoinGroup of a streams group", "JoinGroup", 9,
            "{groupId: 'other', memberId: '', sessionTimeoutMs: 10000, rebalanceTimeoutMs: 10000, protocolType: 'consumer', protocols: [{name: 'range', metadata: ''}]}");
        a.step("SyncGroup of a streams group", "SyncGroup", 5, "{groupId: 'other', generationId: 1, memberId: 'a', protocolType: 'consumer', protocolName: 'range', assignments: []}");
        a.step("Heartbeat of a streams group", "Heartbeat", 4, "{groupId: 'other', generationId: 1, memberId: 'a'}");
        a.step("LeaveGroup of a streams group", "LeaveGroup", 5, "{groupId: 'other', members: [{memberId: 'a'}]}");
        a.step("ConsumerGroupHeartbeat of a streams group", "ConsumerGroupHeartbeat", 1,
            "{groupId: 'other', memberId: 'c', memberEpoch: 0, rebalanceTimeoutMs: 10000, subscribedTopicNames: ['streamed'], topicPartitions: []}");
        a.step("ConsumerGroupHeartbeat of a consumer group", "ConsumerGroupHeartbeat", 1,
            "{groupId: 'consumers', memberId: 'c', memberEpoch: 0, rebalanceTimeoutMs: 10000, subscribedTopicNames: ['streamed'], topicPartitions: []}");
        beat("a join of a consumer group", joining("consumers", "a", STATELESS));
        beat("a heartbeat of a consumer group", going("consumers", "a", 2, ""));
        beat("a leave of a consumer group", going("consumers", "a", -1, ""));
        describe("StreamsGroupDescribe of a consumer group", "consumers");
        a.step("OffsetCommit that makes a classic group", "OffsetCommit", 9, commit("", -1, 0).replace("'app'", "'classic'"));
        beat("a join of an empty classic group", joining("classic", "a", STATELESS));
        describe("the streams group that it has become", "classic");
        a.step("OffsetFetch of it", "OffsetFetch", 9, "{groups: [{groupId: 'classic', topics: [{name: 'streamed', partitionIndexes: [0]}]}]}");
    }
}
