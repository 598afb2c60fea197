//! Broker configs about the other nodes that doze does not have: the metadata quorum, replication, tiered storage.

use crate::broker::config::Rule;
use crate::broker::config::def::differs::NO_DEFAULT;
use crate::broker::config::def::idle::{KRAFT, ONE_DIR, ONE_NODE, REMOTE};
use crate::broker::config::def::{Def, boolean, double, int, list, long, string};

#[rustfmt::skip]
pub(super) const TABLE: &[Def] = &[
    list("process.roles").is("broker,controller").some_of(&["broker", "controller"]).high().idle(KRAFT)
        .kafka(None, NO_DEFAULT).says("Whether a node is a broker, a controller or both."),
    list("controller.listener.names").some_of(&[]).high().idle(KRAFT).says("The listeners that controllers use."),
    long("controller.performance.always.log.threshold.ms").is("2000").at_least(0).internal().idle(KRAFT)
        .says("A controller event slower than this is logged."),
    long("controller.performance.sample.period.ms").is("60000").at_least(100).internal().idle(KRAFT)
        .says("How often the controller's speed is logged."),
    int("controller.quorum.append.linger.ms").is("25").at_least(0).idle(KRAFT)
        .says("How long the quorum leader gathers writes."),
    boolean("controller.quorum.auto.join.enable").is("false").low().idle(KRAFT)
        .says("Let a new controller join the quorum by itself."),
    list("controller.quorum.bootstrap.servers").is("").high().idle(KRAFT)
        .says("Where the quorum is found at the start."),
    int("controller.quorum.election.backoff.max.ms").is("1000").at_least(0).high().idle(KRAFT)
        .says("The longest wait between two elections."),
    int("controller.quorum.election.timeout.ms").is("1000").at_least(0).high().idle(KRAFT)
        .says("How long an election may go without a winner."),
    int("controller.quorum.fetch.max.bytes").is("1048576").at_least(1).low().idle(KRAFT)
        .says("The most bytes of the metadata log that one fetch is answered with."),
    int("controller.quorum.fetch.snapshot.max.bytes").is("1048576").at_least(1).low().idle(KRAFT)
        .says("The most bytes of a snapshot that one fetch is answered with."),
    int("controller.quorum.fetch.timeout.ms").is("2000").at_least(0).high().idle(KRAFT)
        .says("How long a node may go without hearing from the quorum leader."),
    int("controller.quorum.request.timeout.ms").is("2000").at_least(0).idle(KRAFT)
        .says("How long a node waits for an answer of the quorum."),
    int("controller.quorum.retry.backoff.ms").is("20").at_least(0).low().idle(KRAFT)
        .says("The wait before a request to the quorum is sent again."),
    list("controller.quorum.voters").is("").high().idle(KRAFT).says("The nodes that vote in the quorum."),
    int("controller.socket.timeout.ms").is("30000").idle(KRAFT)
        .says("How long a connection to the controller may be silent."),
    int("broker.heartbeat.interval.ms").is("2000").idle(KRAFT)
        .says("How often a broker tells the controller that it is alive."),
    int("broker.session.timeout.ms").is("9000").idle(KRAFT).says("How long a silent broker counts as alive."),
    int("initial.broker.registration.timeout.ms").is("60000").idle(KRAFT)
        .says("How long a broker tries to register at its start."),
    long("internal.metadata.delete.delay.millis").is("60000").low().internal().idle(KRAFT)
        .says("How long removed parts of the metadata log stay on disk."),
    int("internal.metadata.log.segment.bytes").low().internal().idle(KRAFT)
        .says("The segment size of the metadata log, for tests."),
    int("internal.metadata.max.batch.size.in.bytes").is("8388608").low().internal().idle(KRAFT)
        .says("The largest batch of the metadata log."),
    long("metadata.log.max.record.bytes.between.snapshots").is("20971520").at_least(1).high().idle(KRAFT)
        .says("After how many bytes of metadata a snapshot is taken."),
    long("metadata.log.max.snapshot.interval.ms").is("3600000").at_least(0).high().idle(KRAFT)
        .says("After how much time a snapshot of the metadata is taken."),
    int("metadata.log.segment.bytes").is("1073741824").at_least(8_388_608).high().idle(KRAFT)
        .says("The segment size of the metadata log."),
    long("metadata.log.segment.ms").is("604800000").high().idle(KRAFT)
        .says("After how much time a segment of the metadata log is closed."),
    int("metadata.max.idle.interval.ms").is("500").at_least(0).low().idle(KRAFT)
        .says("How often an idle controller writes a record that keeps the quorum moving."),
    long("metadata.max.retention.bytes").is("104857600").high().idle(KRAFT)
        .says("How many bytes of old metadata are kept."),
    long("metadata.max.retention.ms").is("604800000").high().idle(KRAFT).says("How long old metadata is kept."),
    boolean("auto.leader.rebalance.enable").is("true").high().idle(ONE_NODE)
        .says("Move leadership back to preferred replicas from time to time."),
    long("leader.imbalance.check.interval.seconds").is("300").at_least(1).high().idle(ONE_NODE)
        .says("How often to look whether leadership should move."),
    int("num.replica.fetchers").is("1").at_least(1).high().cluster_wide().idle(ONE_NODE)
        .says("How many threads fetch from each other broker."),
    int("replica.fetch.backoff.ms").is("1000").at_least(0).idle(ONE_NODE)
        .says("The wait after a replica failed to fetch."),
    int("replica.fetch.max.bytes").is("1048576").at_least(0).idle(ONE_NODE)
        .says("The most bytes of one partition that a replica fetches at a time."),
    int("replica.fetch.min.bytes").is("1").high().idle(ONE_NODE)
        .says("The fewest bytes that a replica's fetch waits for."),
    int("replica.fetch.response.max.bytes").is("10485760").at_least(0).idle(ONE_NODE)
        .says("The most bytes that a replica fetches at a time."),
    int("replica.fetch.wait.max.ms").is("500").high().idle(ONE_NODE).says("How long a replica's fetch waits for data."),
    long("replica.high.watermark.checkpoint.interval.ms").is("5000").high().idle(ONE_NODE)
        .says("How often the high watermark is written to disk."),
    long("replica.lag.time.max.ms").is("30000").high().idle(ONE_NODE)
        .says("How long a replica may be behind before it leaves the in-sync set."),
    string("replica.selector.class").idle(ONE_NODE).says("The class that picks the replica a consumer reads from."),
    int("replica.socket.receive.buffer.bytes").is("65536").high().idle(ONE_NODE)
        .says("The receive buffer of the connections between brokers."),
    int("replica.socket.timeout.ms").is("30000").high().idle(ONE_NODE)
        .says("How long a request between brokers may take."),
    int("replication.quota.window.num").is("11").at_least(1).low().idle(ONE_NODE)
        .says("How many samples the replication quota is measured over."),
    int("replication.quota.window.size.seconds").is("1").at_least(1).low().idle(ONE_NODE)
        .says("How many seconds one such sample spans."),
    int("alter.log.dirs.replication.quota.window.num").is("11").at_least(1).low().idle(ONE_DIR)
        .says("How many samples the quota on moves between directories is measured over."),
    int("alter.log.dirs.replication.quota.window.size.seconds").is("1").at_least(1).low().idle(ONE_DIR)
        .says("How many seconds one such sample spans."),
    boolean("follower.fetch.last.tiered.offset.enable").is("false").cluster_wide().idle(REMOTE)
        .says("Let a new replica start where the tiered data ends."),
    long("leader.replication.throttled.rate").is("9223372036854775807").at_least(0).cluster_wide().idle(ONE_NODE)
        .says("The most bytes a second that a leader sends to throttled replicas."),
    long("follower.replication.throttled.rate").is("9223372036854775807").at_least(0).cluster_wide().idle(ONE_NODE)
        .says("The most bytes a second that throttled replicas fetch."),
    long("replica.alter.log.dirs.io.max.bytes.per.second").is("9223372036854775807").at_least(0).cluster_wide()
        .idle(ONE_DIR).says("The most bytes a second that moves between directories take."),
    long("log.local.retention.bytes").is("-2").at_least(-2).cluster_wide().idle(REMOTE)
        .says("How many bytes of a tiered partition stay on the local disk; -2 follows log.retention.bytes."),
    long("log.local.retention.ms").is("-2").at_least(-2).cluster_wide().idle(REMOTE)
        .says("How long tiered segments stay on the local disk; -2 follows log.retention.ms."),
    int("remote.fetch.max.wait.ms").is("500").at_least(1).cluster_wide().idle(REMOTE)
        .says("How long a fetch waits for tiered data."),
    long("remote.list.offsets.request.timeout.ms").is("30000").at_least(1).cluster_wide().idle(REMOTE)
        .says("How long a search by timestamp in tiered data may take."),
    long("remote.log.index.file.cache.total.size.bytes").is("1073741824").at_least(1).low().cluster_wide()
        .idle(REMOTE).says("How many bytes of tiered indexes are kept on the local disk."),
    long("remote.log.index.file.cache.ttl.ms").is("900000").at_least(-1).low().internal().idle(REMOTE)
        .says("How long unused tiered indexes are kept."),
    int("remote.log.manager.copier.thread.pool.size").is("10").at_least(1).cluster_wide().idle(REMOTE)
        .says("How many threads copy segments to the remote store."),
    long("remote.log.manager.copy.max.bytes.per.second").is("9223372036854775807").at_least(1).cluster_wide()
        .idle(REMOTE).says("The most bytes a second that are copied to the remote store."),
    int("remote.log.manager.copy.quota.window.num").is("11").at_least(1).idle(REMOTE)
        .says("How many samples that limit is measured over."),
    int("remote.log.manager.copy.quota.window.size.seconds").is("1").at_least(1).idle(REMOTE)
        .says("How many seconds one such sample spans."),
    int("remote.log.manager.expiration.thread.pool.size").is("10").at_least(1).cluster_wide().idle(REMOTE)
        .says("How many threads delete segments from the remote store."),
    long("remote.log.manager.fetch.max.bytes.per.second").is("9223372036854775807").at_least(1).cluster_wide()
        .idle(REMOTE).says("The most bytes a second that are read from the remote store."),
    int("remote.log.manager.fetch.quota.window.num").is("11").at_least(1).idle(REMOTE)
        .says("How many samples that limit is measured over."),
    int("remote.log.manager.fetch.quota.window.size.seconds").is("1").at_least(1).idle(REMOTE)
        .says("How many seconds one such sample spans."),
    int("remote.log.manager.follower.thread.pool.size").is("2").at_least(1).cluster_wide().idle(REMOTE)
        .says("How many threads look after tiered data of replicas that do not lead."),
    long("remote.log.manager.task.interval.ms").is("30000").at_least(1).low().idle(REMOTE)
        .says("How often the work on tiered data runs."),
    long("remote.log.manager.task.retry.backoff.ms").is("500").at_least(1).low().internal().idle(REMOTE)
        .says("The first wait after that work failed."),
    long("remote.log.manager.task.retry.backoff.max.ms").is("30000").at_least(1).low().internal().idle(REMOTE)
        .says("The longest wait after that work failed."),
    double("remote.log.manager.task.retry.jitter").is("0.2").rule(Rule::Fraction(0.0, 0.5)).low().internal()
        .idle(REMOTE).says("The random share of that wait."),
    int("remote.log.manager.thread.pool.size").is("2").at_least(1).idle(REMOTE)
        .says("How many threads schedule the work on tiered data."),
    int("remote.log.metadata.custom.metadata.max.bytes").is("128").at_least(0).low().idle(REMOTE)
        .says("How many bytes of its own a remote store may keep with a segment."),
    string("remote.log.metadata.manager.class.name")
        .is("org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager")
        .rule(Rule::NonEmpty).idle(REMOTE).says("The class that keeps the list of remote segments."),
    string("remote.log.metadata.manager.class.path").idle(REMOTE).says("Where that class is found."),
    string("remote.log.metadata.manager.impl.prefix").is("rlmm.config.").rule(Rule::NonEmpty).idle(REMOTE)
        .says("The prefix of that class's own settings."),
    string("remote.log.metadata.manager.listener.name").rule(Rule::NonEmpty).idle(REMOTE)
        .says("The listener through which that class reaches the broker."),
    int("remote.log.reader.max.pending.tasks").is("100").at_least(1).idle(REMOTE)
        .says("How many reads from the remote store may wait."),
    int("remote.log.reader.threads").is("10").at_least(1).cluster_wide().idle(REMOTE)
        .says("How many threads read from the remote store."),
    string("remote.log.storage.manager.class.name").rule(Rule::NonEmpty).idle(REMOTE)
        .says("The class that speaks to the remote store."),
    string("remote.log.storage.manager.class.path").idle(REMOTE).says("Where that class is found."),
    string("remote.log.storage.manager.impl.prefix").is("rsm.config.").rule(Rule::NonEmpty).idle(REMOTE)
        .says("The prefix of that class's own settings."),
    boolean("remote.log.storage.system.enable").is("false").idle(REMOTE)
        .says("Allow topics to keep old segments in a remote store."),
];
