import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;

/** The questions about transactions, in both versions of the protocol. */
final class Transactions {
    private static final String INIT = "{transactionalId: '%s', transactionTimeoutMs: %s, producerId: %s, producerEpoch: %s}";
    private static final String ADD = "{v3AndBelowTransactionalId: '%s', v3AndBelowProducerId: %s, v3AndBelowProducerEpoch: %s, v3AndBelowTopics: [%s]}";
    private static final String ADD_MANY = "{transactions: [%s]}";
    private static final String ADD_ONE = "{transactionalId: '%s', producerId: %s, producerEpoch: %s, verifyOnly: %s, topics: [%s]}";
    private static final String ADD_OFFSETS = "{transactionalId: '%s', producerId: %s, producerEpoch: %s, groupId: '%s'}";
    private static final String END = "{transactionalId: '%s', producerId: %s, producerEpoch: %s, committed: %s}";
    private static final String PRODUCE = "{transactionalId: %s, acks: -1, timeoutMs: 5000, topicData: [{name: '%s', partitionData: [{index: %s, records: '%s'}]}]}";
    private static final String COMMIT = "{transactionalId: '%s', groupId: '%s', producerId: %s, producerEpoch: %s%s, topics: [{name: '%s', partitions: [{partitionIndex: %s, committedOffset: %s, committedMetadata: ''}]}]}";
    private static final String DESCRIBE = "{transactionalIds: ['%s']}";
    private static final String FETCH = "{replicaId: -1, maxWaitMs: 0, minBytes: 1, maxBytes: 1000000, isolationLevel: %s, topics: [{topic: '%s', partitions: [{partition: %s, fetchOffset: 0, partitionMaxBytes: 1000000}]}]}";
    private static final String MARKERS = "{markers: [{producerId: %s, producerEpoch: %s, transactionResult: %s, topics: [{name: '%s', partitionIndexes: [%s]}], coordinatorEpoch: %s%s}]}";

    private final Area a;
    /** Steps that are no questions, but make sure of where the broker is. */
    private final Area aside;

    private Transactions(Wire wire) {
        a = new Area("transactions", "Transactions in both versions of the protocol: who is fenced, what is refused by which version, what readers see", wire);
        aside = new Area("aside", "", wire);
    }

    static Area area(Wire wire) throws Exception {
        Transactions t = new Transactions(wire);
        t.awaitCoordinator();
        t.a.topic("txn", 4, "");
        t.init();
        t.first();
        t.second();
        t.fencing();
        t.parts();
        t.offsets();
        t.markers();
        t.looking();
        return t.a;
    }

    private void awaitCoordinator() throws Exception {
        for (int i = 0; i < 300; i++) {
            boolean ready = true;
            for (String group : List.of("txn-group", "txn-other")) {
                ready &= aside.step("", "FindCoordinator", 3, "{keyType: 0, key: '" + group + "'}").get("errorCode").intValue() == 0;
                ready &= aside.step("", "OffsetFetch", 7, "{groupId: '" + group + "', topics: null}").get("errorCode").intValue() == 0;
            }
            for (String id : List.of("one", "two", "fence", "parts", "offsets", "marks", "init", "init-timeout", "init-unknown", "nobody")) {
                ready &= aside.step("", "FindCoordinator", 3, "{keyType: 1, key: '" + id + "'}").get("errorCode").intValue() == 0;
                // Asking for an id that the questions want to be unknown would make it known.
                boolean unknown = id.startsWith("init") || id.equals("nobody");
                ready &= unknown || aside.step("", "InitProducerId", 4, INIT, id, 60_000, -1, -1).get("errorCode").intValue() == 0;
            }
            if (ready) {
                return;
            }
            Thread.sleep(200);
        }
        throw new IllegalStateException("the transaction coordinator is not ready after a minute");
    }

    /** A producer with the id that the broker gives, and the next epoch. */
    private record Producer(String name, long id, int epoch) {
        Producer next() {
            return new Producer(name, id, epoch + 1);
        }
    }

    private Producer producer(String name) throws Exception {
        for (int i = 0; i < 300; i++) {
            JsonNode answer = aside.step("", "InitProducerId", 5, INIT, name, 60_000, -1, -1);
            if (answer.get("errorCode").intValue() == 0) {
                return new Producer(name, answer.get("producerId").longValue(), answer.get("producerEpoch").intValue());
            }
            Thread.sleep(20);
        }
        throw new IllegalStateException(name + " is never let in");
    }

    /** Waits until no marker is outstanding. */
    private void settled(String name) throws Exception {
        for (int i = 0; i < 500; i++) {
            String state = aside.step("", "DescribeTransactions", 0, DESCRIBE, name).get("transactionStates").get(0).get("transactionState").textValue();
            if (!state.startsWith("Prepare")) {
                return;
            }
            Thread.sleep(10);
        }
        throw new IllegalStateException(name + " does not settle");
    }

    private void add(String what, int version, Producer p, String topics) throws Exception {
        a.step(what, "AddPartitionsToTxn", version, ADD, p.name, p.id, p.epoch, topics);
    }

    private void end(String what, int version, Producer p, boolean commit) throws Exception {
        a.step(what, "EndTxn", version, END, p.name, p.id, p.epoch, commit);
        settled(p.name);
    }

    private void produce(String what, int version, Producer p, int partition, int sequence) throws Exception {
        a.step(what, "Produce", version, PRODUCE, "'" + p.name + "'", "txn", partition, Batches.transactional(p.id, p.epoch, sequence, 1));
    }

    /** The records hold producer ids, which are each broker's own; their size, and what goes with them, is what is compared. */
    private void fetch(String what, int isolation, int partition) throws Exception {
        JsonNode answer = a.step(what, "Fetch", 11, FETCH, isolation, "txn", partition);
        ((ObjectNode) answer.get("responses").get(0).get("partitions").get(0)).remove("records");
    }

    private static String topic(String name, Object partitions) {
        return "{name: '" + name + "', partitions: [" + partitions + "]}";
    }

    private void init() throws Exception {
        for (int v = 0; v <= 5; v++) {
            a.step("InitProducerId v" + v, "InitProducerId", v, "{transactionalId: 'init', transactionTimeoutMs: 60000}");
        }
        for (int timeout : new int[] {0, -1, 900_000, 900_001, Integer.MAX_VALUE}) {
            a.step("InitProducerId with a timeout of " + timeout, "InitProducerId", 5, INIT, "init-timeout", timeout, -1, -1);
        }
        Producer p = producer("init");
        a.step("InitProducerId with its own epoch", "InitProducerId", 5, INIT, "init", 60_000, p.id, p.epoch);
        a.step("the same again", "InitProducerId", 5, INIT, "init", 60_000, p.id, p.epoch);
        for (int v = 3; v <= 5; v++) {
            a.step("InitProducerId v" + v + " with an epoch that is too old", "InitProducerId", v, INIT, "init", 60_000, p.id, p.epoch - 1);
            a.step("InitProducerId v" + v + " with an epoch that is not there yet", "InitProducerId", v, INIT, "init", 60_000, p.id, p.epoch + 5);
            a.step("InitProducerId v" + v + " with another producer id", "InitProducerId", v, INIT, "init", 60_000, p.id + 100_000, p.epoch + 1);
        }
        a.step("InitProducerId with the last epoch but one, of another id", "InitProducerId", 5, INIT, "init", 60_000, p.id + 100_000, 32766);
        a.step("InitProducerId of an unknown id with a producer id", "InitProducerId", 5, INIT, "init-unknown", 60_000, 77, 3);
    }

    private void first() throws Exception {
        Producer p = producer("one");
        end("v4: commit of nothing", 4, p, true);
        end("v4: abort of nothing", 4, p, false);
        for (int v = 0; v <= 3; v++) {
            add("AddPartitionsToTxn v" + v, v, p, topic("txn", "0, 1"));
            add("AddPartitionsToTxn v" + v + " with an old epoch", v, new Producer("one", p.id, p.epoch - 1), topic("txn", 0));
        }
        add("AddPartitionsToTxn with another producer id", 3, new Producer("one", p.id + 100_000, p.epoch), topic("txn", 0));
        add("AddPartitionsToTxn of nobody", 3, new Producer("nobody", p.id, p.epoch), topic("txn", 0));
        add("AddPartitionsToTxn of an empty id", 3, new Producer("", p.id, p.epoch), topic("txn", 0));
        add("AddPartitionsToTxn of a topic that is not there", 3, p, topic("txn", 2) + ", " + topic("nowhere", 0));
        add("AddPartitionsToTxn of a partition that is not there", 3, p, topic("txn", "2, 9"));
        add("AddPartitionsToTxn of no partition", 3, p, "");
        produce("v11: a record", 11, p, 0, 0);
        produce("v11: a record in another partition", 11, p, 1, 0);
        fetch("read committed, a transaction open", 1, 0);
        fetch("read uncommitted, a transaction open", 0, 0);
        for (int v = 0; v <= 4; v++) {
            a.step("EndTxn v" + v + " with an old epoch", "EndTxn", v, END, "one", p.id, p.epoch - 1, true);
            a.step("EndTxn v" + v + " with a newer epoch", "EndTxn", v, END, "one", p.id, p.epoch + 1, true);
        }
        a.step("EndTxn of nobody", "EndTxn", 4, END, "nobody", p.id, p.epoch, true);
        a.step("EndTxn of an empty id", "EndTxn", 4, END, "", p.id, p.epoch, true);
        a.step("EndTxn with another producer id", "EndTxn", 4, END, "one", p.id + 100_000, p.epoch, true);
        end("v4: abort", 4, p, false);
        end("v4: abort, again", 4, p, false);
        end("v4: commit of what was aborted", 4, p, true);
        fetch("read committed, aborted", 1, 0);
        produce("v11: a record when nothing is open", 11, p, 0, 1);
        add("AddPartitionsToTxn for the next", 3, p, topic("txn", 0));
        produce("v11: a record in the next", 11, p, 0, 1);
        produce("v11: the same again", 11, p, 0, 1);
        end("v4: commit", 4, p, true);
        end("v4: commit, again", 4, p, true);
        end("v4: abort of what was committed", 4, p, false);
        produce("v11: the last record again, after the commit", 11, p, 0, 1);
        fetch("read committed, one aborted and one committed", 1, 0);
        a.step("ListOffsets, read committed", "ListOffsets", 7, "{replicaId: -1, isolationLevel: 1, topics: [{name: 'txn', partitions: [{partitionIndex: 0, timestamp: -1}]}]}");
    }

    private void second() throws Exception {
        Producer p = producer("two");
        end("v5: commit of nothing", 5, p, true);
        end("v5: abort of nothing", 5, p, false);
        end("v5: abort of nothing, again", 5, p, false);
        p = p.next();
        produce("v12: a record", 12, p, 0, 0);
        produce("v12: the next", 12, p, 0, 1);
        produce("v12: an unknown sequence in another partition", 12, p, 1, 5);
        a.step("DescribeTransactions, one open", "DescribeTransactions", 0, DESCRIBE, "two");
        end("v5: an end with an old epoch", 5, new Producer("two", p.id, p.epoch - 1), true);
        end("v5: an end with a newer epoch", 5, p.next(), true);
        end("v5: commit", 5, p, true);
        end("v5: commit, again", 5, p, true);
        end("v5: abort of what was committed, with the epoch before", 5, p, false);
        produce("v12: a record with the epoch before", 12, p, 0, 2);
        p = p.next();
        end("v5: commit of nothing, after a commit", 5, p, true);
        end("v5: abort of nothing, after a commit", 5, p, false);
        p = p.next();
        produce("v12: a record after that", 12, p, 0, 0);
        end("v5: abort", 5, p, false);
        end("v5: abort, again", 5, p, false);
        end("v5: commit of what was aborted, with the epoch before", 5, p, true);
        p = p.next();
        end("v4: an end of the first version after the second", 4, p, false);
        produce("v11: a record of the first version, not added", 11, p, 0, 0);
        add("the first version after the second", 3, p, topic("txn", 0));
        produce("v11: a record of the first version after the second", 11, p, 0, 0);
        end("v5: an end of the second version after the first", 5, p, true);
        a.step("DescribeTransactions after that", "DescribeTransactions", 0, DESCRIBE, "two");
        fetch("read committed, after all of that", 1, 0);
    }

    private void fencing() throws Exception {
        Producer old = producer("fence");
        produce("v12: a record of a producer that will be fenced", 12, old, 2, 0);
        a.step("InitProducerId while its transaction is open", "InitProducerId", 5, INIT, "fence", 60_000, -1, -1);
        settled("fence");
        end("v5: the fenced one commits", 5, old, true);
        end("v5: the fenced one aborts", 5, old, false);
        end("v4: the fenced one aborts", 4, old, false);
        Producer p = producer("fence");
        produce("v12: the fenced one writes", 12, old, 2, 1);
        produce("v11: the fenced one writes", 11, old, 2, 1);
        produce("v12: the fenced one writes elsewhere", 12, old, 3, 0);
        produce("v12: the next one writes", 12, p, 2, 0);
        a.step("InitProducerId with its own epoch while its transaction is open", "InitProducerId", 5, INIT, "fence", 60_000, p.id, p.epoch);
        settled("fence");
        a.step("InitProducerId with its own epoch after that", "InitProducerId", 5, INIT, "fence", 60_000, p.id, p.epoch);
        a.step("DescribeTransactions after all of that", "DescribeTransactions", 0, DESCRIBE, "fence");
    }

    private void parts() throws Exception {
        Producer p = producer("parts");
        for (int v : new int[] {3, 9, 10, 11}) {
            produce("Produce v" + v + " to what was not added", v, p, 0, 0);
            a.step("Produce v" + v + " with another producer's id", "Produce", v, PRODUCE, "'nobody'", "txn", 0, Batches.transactional(p.id, p.epoch, 0, 1));
            produce("Produce v" + v + " with an old epoch", v, new Producer("parts", p.id, p.epoch - 1), 3, 0);
            produce("Produce v" + v + " with a newer epoch", v, p.next(), 3, 0);
            a.step("Produce v" + v + " without an id", "Produce", v, PRODUCE, "null", "txn", 0, Batches.transactional(p.id, p.epoch, 0, 1));
        }
        a.step("Produce v12 with another producer's id", "Produce", 12, PRODUCE, "'nobody'", "txn", 0, Batches.transactional(p.id, p.epoch, 0, 1));
        produce("Produce v12 with an old epoch", 12, new Producer("parts", p.id, p.epoch - 1), 3, 0);
        produce("Produce v12 with a newer epoch", 12, p.next(), 3, 0);
        a.step("Produce v12 with an empty id", "Produce", 12, PRODUCE, "''", "txn", 0, Batches.transactional(p.id, p.epoch, 0, 1));
        a.step("Produce v12 without an id", "Produce", 12, PRODUCE, "null", "txn", 0, Batches.transactional(p.id, p.epoch, 0, 1));
        a.step("Produce v12 to a topic that is not there", "Produce", 12, PRODUCE, "'parts'", "nowhere", 0, Batches.transactional(p.id, p.epoch, 0, 1));
        String two = "{transactionalId: 'parts', acks: -1, timeoutMs: 5000, topicData: [{name: 'txn', partitionData: [{index: 0, records: '%s'}, {index: 1, records: '%s'}]}]}";
        a.step("Produce of two producers at once", "Produce", 12, two, Batches.transactional(p.id, p.epoch, 0, 1), Batches.transactional(p.id + 100_000, p.epoch, 0, 1));
        a.step("Produce of records in a transaction and of others", "Produce", 12, two, Batches.transactional(p.id, p.epoch, 0, 1), Batches.idempotent(4711, 0, 0, 1));
        a.step("a batch outside of the transaction that is open", "Produce", 12, PRODUCE, "'parts'", "txn", 0, Batches.idempotent(p.id, p.epoch, 1, 1));
        for (int v = 4; v <= 5; v++) {
            a.step("AddPartitionsToTxn v" + v + ": verify", "AddPartitionsToTxn", v, ADD_MANY, ADD_ONE.formatted("parts", p.id, p.epoch, true, topic("txn", "0, 1")));
            a.step("AddPartitionsToTxn v" + v + ": verify with an old epoch", "AddPartitionsToTxn", v, ADD_MANY, ADD_ONE.formatted("parts", p.id, p.epoch - 1, true, topic("txn", "0")));
            a.step("AddPartitionsToTxn v" + v + ": verify with another producer id", "AddPartitionsToTxn", v, ADD_MANY, ADD_ONE.formatted("parts", p.id + 100_000, p.epoch, true, topic("txn", "0")));
            a.step("AddPartitionsToTxn v" + v + ": verify nobody's", "AddPartitionsToTxn", v, ADD_MANY, ADD_ONE.formatted("nobody", p.id, p.epoch, true, topic("txn", "0")));
            a.step("AddPartitionsToTxn v" + v + ": add", "AddPartitionsToTxn", v, ADD_MANY, ADD_ONE.formatted("parts", p.id, p.epoch, false, topic("txn", v - 3)));
            a.step("AddPartitionsToTxn v" + v + ": what is not there", "AddPartitionsToTxn", v, ADD_MANY, ADD_ONE.formatted("parts", p.id, p.epoch, false, topic("txn", "3, 9")));
        }
        a.step("DescribeTransactions with parts", "DescribeTransactions", 0, DESCRIBE, "parts");
        end("the parts are committed", 5, p, true);
    }

    private void commit(String what, int version, Producer p, String group, String member, Object partition, int offset) throws Exception {
        a.step(what, "TxnOffsetCommit", version, COMMIT, p.name, group, p.id, p.epoch, member, "txn", partition, offset);
    }

    private void offsets() throws Exception {
        Producer p = producer("offsets");
        String fetch = "{groupId: 'txn-group', topics: [{name: 'txn', partitionIndexes: [0, 1, 2]}], requireStable: %s}";
        for (int v = 0; v <= 4; v++) {
            commit("TxnOffsetCommit v" + v + ", not added", v, p, "txn-group", "", 0, 1);
        }
        for (int v = 0; v <= 4; v++) {
            a.step("AddOffsetsToTxn v" + v + " with an old epoch", "AddOffsetsToTxn", v, ADD_OFFSETS, "offsets", p.id, p.epoch - 1, "txn-group");
            a.step("AddOffsetsToTxn v" + v, "AddOffsetsToTxn", v, ADD_OFFSETS, "offsets", p.id, p.epoch, "txn-group");
            commit("TxnOffsetCommit v" + v, v, p, "txn-group", "", v % 3, v);
            commit("TxnOffsetCommit v" + v + " with an old epoch", v, new Producer("offsets", p.id, p.epoch - 1), "txn-group", "", 0, 1);
            commit("TxnOffsetCommit v" + v + " of a partition that is not there", v, p, "txn-group", "", 9, 1);
        }
        a.step("AddOffsetsToTxn of nobody", "AddOffsetsToTxn", 4, ADD_OFFSETS, "nobody", p.id, p.epoch, "txn-group");
        a.step("AddOffsetsToTxn of an empty group", "AddOffsetsToTxn", 4, ADD_OFFSETS, "offsets", p.id, p.epoch, "");
        commit("TxnOffsetCommit of an empty group", 5, p, "", "", 0, 1);
        commit("TxnOffsetCommit of a generation of nothing", 5, p, "txn-other", ", generationId: 3, memberId: 'm'", 0, 1);
        commit("TxnOffsetCommit of a member of nothing", 5, p, "txn-other", ", generationId: -1, memberId: 'm'", 0, 1);
        commit("TxnOffsetCommit of a member that the group has not", 5, p, "txn-group", ", generationId: -1, memberId: 'm'", 0, 1);
        commit("TxnOffsetCommit of a generation that the group has not", 5, p, "txn-group", ", generationId: 7, memberId: 'm'", 0, 1);
        commit("TxnOffsetCommit of an instance that the group has not", 5, p, "txn-group", ", generationId: 7, memberId: 'm', groupInstanceId: 'i'", 0, 1);
        a.step("OffsetFetch, pending offsets", "OffsetFetch", 7, fetch, false);
        a.step("OffsetFetch of what is stable, pending offsets", "OffsetFetch", 7, fetch, true);
        a.step("OffsetFetch of everything stable, pending offsets", "OffsetFetch", 7, "{groupId: 'txn-group', topics: null, requireStable: true}");
        end("v4: the offsets are committed", 4, p, true);
        Thread.sleep(300);
        a.step("OffsetFetch of what is stable, committed", "OffsetFetch", 7, fetch, true);
        commit("TxnOffsetCommit v5", 5, p, "txn-group", "", 0, 100);
        a.step("OffsetFetch of everything stable, one pending", "OffsetFetch", 7, "{groupId: 'txn-group', topics: null, requireStable: true}");
        end("v5: the offsets are dropped", 5, p, false);
        Thread.sleep(300);
        a.step("OffsetFetch of what is stable, dropped", "OffsetFetch", 7, fetch, true);
        commit("TxnOffsetCommit v5 with the epoch before", 5, p, "txn-group", "", 0, 100);
        commit("TxnOffsetCommit v5 of nobody", 5, new Producer("nobody", p.id, p.epoch), "txn-group", "", 0, 100);
    }

    private void markers() throws Exception {
        Producer p = producer("marks");
        produce("a record of a transaction that hangs", 12, p, 3, 0);
        for (int v = 1; v <= 2; v++) {
            a.step("WriteTxnMarkers v" + v + " of an old epoch", "WriteTxnMarkers", v, MARKERS, p.id, p.epoch - 1, true, "txn", "3, 9", 0, "");
            a.step("WriteTxnMarkers v" + v + " to a topic that is not there", "WriteTxnMarkers", v, MARKERS, p.id, p.epoch, true, "nowhere", "0", 0, "");
        }
        a.step("WriteTxnMarkers of nothing", "WriteTxnMarkers", 2, "{markers: []}");
        a.step("WriteTxnMarkers v2 of the second version with the same epoch", "WriteTxnMarkers", 2, MARKERS, p.id, p.epoch, true, "txn", "3", 0, ", transactionVersion: 2");
        a.step("WriteTxnMarkers v2 of the second version with the next epoch", "WriteTxnMarkers", 2, MARKERS, p.id, p.epoch + 1, true, "txn", "3", 0, ", transactionVersion: 2");
        a.step("WriteTxnMarkers v2 of the second version, again", "WriteTxnMarkers", 2, MARKERS, p.id, p.epoch + 1, true, "txn", "3", 0, ", transactionVersion: 2");
        a.step("WriteTxnMarkers of an unknown producer", "WriteTxnMarkers", 1, MARKERS, 4712, 3, false, "txn", "3", 5, "");
        a.step("WriteTxnMarkers of an older coordinator", "WriteTxnMarkers", 1, MARKERS, 4712, 3, false, "txn", "3", 4, "");
        end("v5: the coordinator ends what hung", 5, p, true);
        fetch("the partition after all of that", 1, 3);
    }

    private void looking() throws Exception {
        a.step("DescribeTransactions of nobody and of an empty id", "DescribeTransactions", 0, "{transactionalIds: ['nobody', '']}");
        a.step("DescribeTransactions of none", "DescribeTransactions", 0, "{transactionalIds: []}");
        for (int v = 0; v <= 2; v++) {
            a.step("ListTransactions v" + v, "ListTransactions", v, "{stateFilters: ['Ongoing', 'Empty', 'odd'], producerIdFilters: []}");
        }
        a.step("ListTransactions of states that none has", "ListTransactions", 2, "{stateFilters: ['Dead', 'PrepareEpochFence'], producerIdFilters: []}");
        a.step("ListTransactions of a state in other letters", "ListTransactions", 2, "{stateFilters: ['ongoing'], producerIdFilters: []}");
        a.step("ListTransactions of a producer that there is not", "ListTransactions", 2, "{stateFilters: [], producerIdFilters: [999999]}");
        a.step("ListTransactions by a pattern", "ListTransactions", 2, "{stateFilters: [], producerIdFilters: [], transactionalIdPattern: 'part.'}");
        a.step("ListTransactions by a pattern of a part", "ListTransactions", 2, "{stateFilters: [], producerIdFilters: [], transactionalIdPattern: 'part'}");
        a.step("ListTransactions by an empty pattern", "ListTransactions", 2, "{stateFilters: ['Ongoing'], producerIdFilters: [], transactionalIdPattern: ''}");
        a.step("ListTransactions by a pattern that is none", "ListTransactions", 2, "{stateFilters: [], producerIdFilters: [], transactionalIdPattern: '('}");
        a.step("ListTransactions by how long", "ListTransactions", 2, "{stateFilters: [], producerIdFilters: [], durationFilter: 100000000000}");
        a.step("DescribeProducers of the partitions", "DescribeProducers", 0, "{topics: [{name: 'txn', partitionIndexes: [0, 1, 2, 3, 9]}, {name: 'nowhere', partitionIndexes: [0]}, {name: 'no name', partitionIndexes: [0]}]}");
    }
}
