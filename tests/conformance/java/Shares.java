import java.util.List;

/** What a broker answers for the state of share groups, and where it says that it is kept. */
final class Shares {
    private static final String PARTITION = "{groupId: '%s', topics: [{topicId: '%s', partitions: [%s]}]}";
    private final Area a;
    private String group = "shares";

    private Shares(Area a) {
        this.a = a;
    }

    static Area area(Wire wire) throws Exception {
        Area a = new Area("share-state", "The coordinator of share groups: where it is, and what initializing, reading, writing and deleting state does", wire);
        new Shares(a).all();
        return a;
    }

    private void initialize(String what, String topic, int partition, int stateEpoch, long start) throws Exception {
        a.step(what, "InitializeShareGroupState", 0, PARTITION, group, topic, "{partition: " + partition + ", stateEpoch: " + stateEpoch + ", startOffset: " + start + "}");
    }

    private void read(String what, String topic, int partition, int leaderEpoch) throws Exception {
        a.step(what, "ReadShareGroupState", 0, PARTITION, group, topic, "{partition: " + partition + ", leaderEpoch: " + leaderEpoch + "}");
    }

    private void write(String what, int version, String topic, int partition, int stateEpoch, int leaderEpoch, long start, int done, String... batches) throws Exception {
        String count = version == 0 ? "" : ", deliveryCompleteCount: " + done;
        a.step(what, "WriteShareGroupState", version, PARTITION, group, topic, "{partition: " + partition + ", stateEpoch: " + stateEpoch + ", leaderEpoch: " + leaderEpoch
            + ", startOffset: " + start + count + ", stateBatches: [" + String.join(", ", batches) + "]}");
    }

    private static String batch(long first, long last, int state, int count) {
        return "{firstOffset: " + first + ", lastOffset: " + last + ", deliveryState: " + state + ", deliveryCount: " + count + "}";
    }

    private void delete(String what, String topic, int partition) throws Exception {
        a.step(what, "DeleteShareGroupState", 0, PARTITION, group, topic, "{partition: " + partition + "}");
    }

    private void summary(String what, int version, String topic, int partition) throws Exception {
        a.step(what, "ReadShareGroupStateSummary", version, PARTITION, group, topic, "{partition: " + partition + ", leaderEpoch: 0}");
    }

    private void show(String after) throws Exception {
        read(after + ": read", "$shared", 0, -1);
        summary(after + ": summary", 1, "$shared", 0);
    }

    private void all() throws Exception {
        a.topic("shared", 2, "");
        String here = "AAAAAAAAAAAAAAAAAAAAZQ";
        for (String key : List.of("g", "g:" + here, "g:" + here + ":0", "with:colons:" + here + ":1", ":" + here + ":0", "  :" + here + ":0", "g:no-id:0", "g::0", "g:" + here + ":x",
            "g:" + here + ":", "g:" + here + ":-1", "g:" + here + ":0:", "g:" + here + ":0::", "")) {
            a.step("find the coordinator of '" + key + "'", "FindCoordinator", 6, "{keyType: 2, coordinatorKeys: ['" + key + "']}");
        }
        a.step("find it in version 5", "FindCoordinator", 5, "{keyType: 2, coordinatorKeys: ['g:" + here + ":0']}");
        a.step("find it in version 3", "FindCoordinator", 3, "{keyType: 2, key: 'g:" + here + ":0'}");

        show("before anything");
        write("write what is not initialized", 1, "$shared", 0, 0, 0, 0, 0);
        delete("delete what is not initialized", "$shared", 0);
        initialize("initialize", "$shared", 0, 3, -1);
        show("initialized");
        summary("summary, version 0", 0, "$shared", 0);
        initialize("initialize with a lower state epoch", "$shared", 0, 2, 0);
        initialize("initialize without a state epoch", "$shared", 0, -1, 5);
        show("initialized without a state epoch");
        initialize("initialize with a higher state epoch", "$shared", 0, 7, 5);
        show("initialized again");

        write("write version 0", 0, "$shared", 0, 7, 0, 6, 0, batch(7, 9, 2, 1));
        show("written in version 0");
        write("write", 1, "$shared", 0, 7, 0, 6, 4, batch(10, 14, 0, 1));
        show("written");
        write("write over both", 1, "$shared", 0, 7, 0, -1, 5, batch(8, 11, 0, 2), batch(20, 24, 4, 3), batch(25, 26, 4, 3), batch(22, 30, 0, 1));
        show("written over both");
        write("write a lower delivery count", 1, "$shared", 0, 7, 0, -1, 5, batch(20, 21, 0, 1));
        show("written a lower delivery count");
        write("move the start", 1, "$shared", 0, 7, 0, 21, 1);
        show("moved");
        write("move the start back", 1, "$shared", 0, 7, 0, 2, 1);
        show("moved back");
        write("write with a lower state epoch", 1, "$shared", 0, 6, 0, 22, 0);
        write("write with a higher state epoch", 1, "$shared", 0, 9, 0, 22, 0);
        write("write without epochs", 1, "$shared", 0, -1, -1, 23, 2, batch(40, 41, 2, 1));
        show("written with other epochs");
        write("write with a higher leader epoch", 1, "$shared", 0, 7, 4, 24, 2);
        show("written with a higher leader epoch");

        read("read with a leader epoch", "$shared", 0, 5);
        show("a leader has read");
        read("read with a lower leader epoch", "$shared", 0, 4);
        write("write with a lower leader epoch", 1, "$shared", 0, 7, 4, 25, 2);
        initialize("initialize after a leader", "$shared", 0, 8, 100);
        show("initialized after a leader");
        read("read with the lower leader epoch still", "$shared", 0, 4);
        read("read with the same leader epoch", "$shared", 0, 5);
        show("the same leader has read");

        write("write a batch that ends before it starts", 1, "$shared", 0, 8, 5, 100, 0, batch(120, 110, 2, 1));
        write("write a delivery state that there is not", 1, "$shared", 0, 8, 5, 100, 0, batch(120, 130, 9, 1));
        initialize("initialize at a negative offset", "$shared", 1, 1, -5);
        initialize("initialize the other partition", "$shared", 1, 1, 3);
        a.step("read two partitions and one that is not there", "ReadShareGroupState", 0, PARTITION, group, "$shared",
            "{partition: 1, leaderEpoch: 0}, {partition: 2, leaderEpoch: 0}, {partition: -1, leaderEpoch: 0}");
        a.step("summaries of these", "ReadShareGroupStateSummary", 1, PARTITION, group, "$shared",
            "{partition: 1, leaderEpoch: 0}, {partition: 2, leaderEpoch: 0}, {partition: -1, leaderEpoch: 0}");
        for (int partition : List.of(2, -1)) {
            initialize("initialize partition " + partition, "$shared", partition, 0, 0);
            write("write partition " + partition, 1, "$shared", partition, 0, 0, 0, 0);
            delete("delete partition " + partition, "$shared", partition);
        }
        for (String topic : List.of(here, "AAAAAAAAAAAAAAAAAAAAAA")) {
            initialize("initialize a topic that is not there, " + topic, topic, 0, 0, 0);
            read("read a topic that is not there, " + topic, topic, 0, 0);
            write("write a topic that is not there, " + topic, 1, topic, 0, 0, 0, 0, 0);
            delete("delete a topic that is not there, " + topic, topic, 0);
            summary("summary of a topic that is not there, " + topic, 1, topic, 0);
        }
        delete("delete", "$shared", 0);
        show("deleted");
        initialize("initialize what was deleted, with a lower state epoch", "$shared", 0, 1, 0);
        read("read what was deleted, with a lower leader epoch", "$shared", 0, 1);
        show("initialized what was deleted");

        group = "";
        initialize("initialize no group", "$shared", 0, 0, 0);
        read("read no group", "$shared", 0, 0);
        write("write no group", 1, "$shared", 0, 0, 0, 0, 0);
        delete("delete no group", "$shared", 0);
        summary("summary of no group", 1, "$shared", 0);
        group = "shares";
        for (String api : List.of("InitializeShareGroupState", "ReadShareGroupState", "WriteShareGroupState", "DeleteShareGroupState", "ReadShareGroupStateSummary")) {
            a.step(api + " of no topic", api, 0, "{groupId: 'shares', topics: []}");
            a.step(api + " of no partition", api, 0, PARTITION, group, "$shared", "");
            a.step(api + " of no partition beside one", api, 0, "{groupId: 'shares', topics: [{topicId: '$shared', partitions: [{partition: 0}]}, {topicId: '" + here + "', partitions: []}]}");
        }
        members();
    }

    /** What a share group that has members leaves there. */
    private void members() throws Exception {
        a.topic("members", 1, "");
        group = "members";
        String beat = "{groupId: 'members', memberId: 'AAAAAAAAAAAAAAAAAAAAAQ', memberEpoch: %s, subscribedTopicNames: %s}";
        a.step("a member joins", "ShareGroupHeartbeat", 1, beat, 0, "['members']");
        a.settle();
        read("what its group has initialized: read", "$members", 0, -1);
        summary("what its group has initialized: summary", 1, "$members", 0);
        a.step("the member leaves", "ShareGroupHeartbeat", 1, beat, -1, "null");
        a.step("the group starts elsewhere", "AlterShareGroupOffsets", 0, "{groupId: 'members', topics: [{topicName: 'members', partitions: [{partitionIndex: 0, startOffset: 12}]}]}");
        read("after that: read", "$members", 0, -1);
        summary("after that: summary", 1, "$members", 0);
        write("somebody writes", 1, "$members", 0, -1, -1, 14, 3, batch(15, 17, 2, 1));
        a.step("how far the group is", "DescribeShareGroupOffsets", 1, "{groups: [{groupId: 'members', topics: [{topicName: 'members', partitions: [0]}]}]}");
        write("somebody writes without a count", 0, "$members", 0, -1, -1, 14, 0);
        a.step("how far the group is without a count", "DescribeShareGroupOffsets", 1, "{groups: [{groupId: 'members', topics: [{topicName: 'members', partitions: [0]}]}]}");
        a.step("the group forgets", "DeleteShareGroupOffsets", 0, "{groupId: 'members', topics: [{topicName: 'members'}]}");
        read("after it forgot: read", "$members", 0, -1);
        initialize("state beside a group", "$members", 0, 5, 8);
        a.step("the topic goes", "DeleteTopics", 6, "{timeoutMs: 30000, topics: [{name: 'members'}]}");
        a.settle();
        read("after the topic: read", "$members", 0, -1);
        summary("after the topic: summary", 1, "$members", 0);
    }
}
