//! Broker configs about share groups and their state.

use crate::broker::config::def::idle::{CATALOG, PLUGIN, THREADS};
use crate::broker::config::def::{Def, int, list, short, string};

#[rustfmt::skip]
pub(super) const TABLE: &[Def] = &[
    int("group.share.session.timeout.ms").is("45000").at_least(1)
        .says("A member of a share group that sends no heartbeat for this many milliseconds is removed."),
    int("group.share.min.session.timeout.ms").is("45000").at_least(1)
        .says("The shortest session timeout that a share group may be given."),
    int("group.share.max.session.timeout.ms").is("60000").at_least(1)
        .says("The longest session timeout that a share group may be given."),
    int("group.share.heartbeat.interval.ms").is("5000").at_least(1)
        .says("How often members of a share group are asked to send a heartbeat."),
    int("group.share.min.heartbeat.interval.ms").is("5000").at_least(1)
        .says("The shortest heartbeat interval that a share group may be given."),
    int("group.share.max.heartbeat.interval.ms").is("15000").at_least(1)
        .says("The longest heartbeat interval that a share group may be given."),
    int("group.share.max.size").is("200").between(1, 1000).says("The most members that a share group may have."),
    list("group.share.assignors").is("simple").some_of(&[]).says("The assignors that share groups may use."),
    int("group.share.assignment.interval.ms").is("1000").at_least(0).cluster_wide()
        .says("The least time between two new assignments of a share group."),
    int("group.share.min.assignment.interval.ms").is("0").at_least(0)
        .says("The shortest assignment interval that a share group may be given."),
    int("group.share.max.assignment.interval.ms").is("15000").at_least(0)
        .says("The longest assignment interval that a share group may be given."),
    int("group.share.delivery.count.limit").is("5").between(2, 10)
        .says("How often a record is handed out before it is given up as undeliverable."),
    int("group.share.min.delivery.count.limit").is("2").between(2, 5)
        .says("The lowest delivery count limit that a share group may be given."),
    int("group.share.max.delivery.count.limit").is("10").between(5, 25)
        .says("The highest delivery count limit that a share group may be given."),
    int("group.share.record.lock.duration.ms").is("30000").between(1000, 3_600_000)
        .says("How long a record that was handed out stays locked for the member that got it."),
    int("group.share.min.record.lock.duration.ms").is("15000").between(1000, 30_000)
        .says("The shortest record lock that a share group may be given."),
    int("group.share.max.record.lock.duration.ms").is("60000").between(30_000, 3_600_000)
        .says("The longest record lock that a share group may be given."),
    int("group.share.partition.max.record.locks").is("2000").between(100, 10_000)
        .says("How many records of one partition may be locked at one time."),
    int("group.share.min.partition.max.record.locks").is("100").between(100, 2000)
        .says("The lowest number of record locks that a share group may be given."),
    int("group.share.max.partition.max.record.locks").is("4000").between(2000, 10_000)
        .says("The highest number of record locks that a share group may be given."),
    int("group.share.max.share.sessions").is("2000").at_least(1)
        .says("The most share sessions that are kept at one time."),
    int("group.share.initialize.retry.interval.ms").is("30000").at_least(1).low().internal().idle(CATALOG)
        .says("How long to wait before a partition's share state is initialised again after a failure."),
    string("group.share.persister.class.name").is("org.apache.kafka.server.share.persister.DefaultStatePersister")
        .internal().idle(PLUGIN).says("The class that keeps the state of share groups."),
    int("share.coordinator.threads").is("1").at_least(1).idle(THREADS)
        .says("How many threads run the share coordinator."),
    int("share.coordinator.append.linger.ms").is("-1").at_least(-1).idle(CATALOG)
        .says("How long the share coordinator gathers writes before it appends them."),
    int("share.coordinator.cached.buffer.max.bytes").is("1048588").at_least(524_288).cluster_wide().idle(CATALOG)
        .says("How large a buffer the share coordinator keeps for its writes."),
    int("share.coordinator.cold.partition.snapshot.interval.ms").is("300000").at_least(1).low().internal()
        .idle(CATALOG).says("How often the state of quiet partitions is written out whole."),
    int("share.coordinator.load.buffer.size").is("5242880").at_least(1).high().idle(CATALOG)
        .says("How many bytes of the topic of share states are read at a time at the start."),
    int("share.coordinator.snapshot.update.records.per.snapshot").is("500").between(0, 500).idle(CATALOG)
        .says("After how many changes the share state of a partition is written out whole."),
    int("share.coordinator.state.topic.compression.codec").is("0").high().idle(CATALOG)
        .says("The codec of the topic of share states."),
    short("share.coordinator.state.topic.min.isr").is("2").at_least(1).high().idle(CATALOG)
        .says("How many replicas of the topic of share states must have a record."),
    int("share.coordinator.state.topic.num.partitions").is("50").at_least(1).high()
        .says("Where it is set, doze makes the topic __share_group_state with so many partitions and writes share states \
            there too, beside its catalog; otherwise there is no such topic."),
    int("share.coordinator.state.topic.prune.interval.ms").is("300000").at_least(1).low().internal().idle(CATALOG)
        .says("How often the topic of share states is pruned."),
    short("share.coordinator.state.topic.replication.factor").is("3").at_least(1).high().idle(CATALOG)
        .says("The replication factor of the topic of share states."),
    int("share.coordinator.state.topic.segment.bytes").is("104857600").at_least(1).high()
        .says("The segment size of the topic of share states, where it is made."),
    int("share.coordinator.write.timeout.ms").is("5000").at_least(1).high().idle(CATALOG)
        .says("How long a write of share state may take."),
];
