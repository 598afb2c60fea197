//! Broker configs about groups and committed offsets.

use crate::broker::config::Rule;
use crate::broker::config::def::differs::{KEEP_OFFSETS, NO_WAIT, ONE_COPY};
use crate::broker::config::def::idle::{CATALOG, THREADS};
use crate::broker::config::def::{Def, int, list, long, short, string};

#[rustfmt::skip]
pub(super) const TABLE: &[Def] = &[
    list("group.coordinator.rebalance.protocols").is("classic,consumer,streams")
        .some_of(&["consumer", "classic", "share", "streams"])
        .says("The group protocols that are offered to clients; classic is always among them."),
    int("group.coordinator.threads").is("4").at_least(1).high().idle(THREADS)
        .says("How many threads run the group coordinator."),
    int("group.coordinator.background.threads").is("2").at_least(1).high().idle(THREADS)
        .says("How many threads compute assignments in the background."),
    int("group.coordinator.append.linger.ms").is("-1").at_least(-1).idle(CATALOG)
        .says("How long the group coordinator gathers writes before it appends them."),
    int("group.coordinator.cached.buffer.max.bytes").is("1048588").at_least(524_288).cluster_wide().idle(CATALOG)
        .says("How large a buffer the group coordinator keeps for its writes."),
    int("group.min.session.timeout.ms").is("6000")
        .says("The shortest session timeout that a member of a classic group may ask for."),
    int("group.max.session.timeout.ms").is("1800000")
        .says("The longest session timeout that a member of a classic group may ask for."),
    int("group.initial.rebalance.delay.ms").is("0").kafka(Some("3000"), NO_WAIT)
        .says("How long a new classic group waits for more members before its first rebalance."),
    int("group.max.size").is("2147483647").at_least(1).says("The most members that a classic group may have."),
    int("group.consumer.session.timeout.ms").is("45000").at_least(1)
        .says("A member of a consumer group that sends no heartbeat for this many milliseconds is removed."),
    int("group.consumer.min.session.timeout.ms").is("45000").at_least(1)
        .says("The shortest session timeout that a consumer group may be given."),
    int("group.consumer.max.session.timeout.ms").is("60000").at_least(1)
        .says("The longest session timeout that a consumer group may be given."),
    int("group.consumer.heartbeat.interval.ms").is("5000").at_least(1)
        .says("How often members of a consumer group are asked to send a heartbeat."),
    int("group.consumer.min.heartbeat.interval.ms").is("5000").at_least(1)
        .says("The shortest heartbeat interval that a consumer group may be given."),
    int("group.consumer.max.heartbeat.interval.ms").is("15000").at_least(1)
        .says("The longest heartbeat interval that a consumer group may be given."),
    int("group.consumer.max.size").is("2147483647").at_least(1)
        .says("The most members that a consumer group may have."),
    list("group.consumer.assignors").is("uniform,range").some_of(&[])
        .says("The assignors that consumer groups may use; the first is the default."),
    int("group.consumer.assignment.interval.ms").is("1000").at_least(0).cluster_wide()
        .says("The least time between two new assignments of a consumer group."),
    int("group.consumer.min.assignment.interval.ms").is("0").at_least(0)
        .says("The shortest assignment interval that a consumer group may be given."),
    int("group.consumer.max.assignment.interval.ms").is("15000").at_least(0)
        .says("The longest assignment interval that a consumer group may be given."),
    string("group.consumer.migration.policy").is("bidirectional")
        .rule(Rule::OneOfIgnoringCase(&["DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"]))
        .says("Whether a group may move between the classic and the consumer protocol while it has members."),
    int("group.consumer.regex.refresh.interval.ms").is("600000").at_least(10_000).internal()
        .says("How often a subscription by regular expression is matched against the topics anew."),
    int("group.streams.session.timeout.ms").is("45000").at_least(1)
        .says("A member of a streams group that sends no heartbeat for this many milliseconds is removed."),
    int("group.streams.min.session.timeout.ms").is("45000").at_least(1)
        .says("The shortest session timeout that a streams group may be given."),
    int("group.streams.max.session.timeout.ms").is("60000").at_least(1)
        .says("The longest session timeout that a streams group may be given."),
    int("group.streams.heartbeat.interval.ms").is("5000").at_least(1)
        .says("How often members of a streams group are asked to send a heartbeat."),
    int("group.streams.min.heartbeat.interval.ms").is("5000").at_least(1)
        .says("The shortest heartbeat interval that a streams group may be given."),
    int("group.streams.max.heartbeat.interval.ms").is("15000").at_least(1)
        .says("The longest heartbeat interval that a streams group may be given."),
    int("group.streams.max.size").is("2147483647").at_least(1).says("The most members that a streams group may have."),
    int("group.streams.num.standby.replicas").is("0").at_least(0)
        .says("How many standby copies of each task a streams group keeps."),
    int("group.streams.max.standby.replicas").is("2").at_least(0)
        .says("The most standby copies that a streams group may be given."),
    int("group.streams.initial.rebalance.delay.ms").is("3000").at_least(0)
        .says("How long a new streams group waits for more members before its first assignment."),
    int("group.streams.assignment.interval.ms").is("1000").at_least(0).cluster_wide()
        .says("The least time between two new assignments of a streams group."),
    int("group.streams.min.assignment.interval.ms").is("0").at_least(0)
        .says("The shortest assignment interval that a streams group may be given."),
    int("group.streams.max.assignment.interval.ms").is("15000").at_least(0)
        .says("The longest assignment interval that a streams group may be given."),
    int("offset.metadata.max.bytes").is("4096").high()
        .says("The most bytes of metadata that may go with a committed offset."),
    int("offsets.retention.minutes").at_least(1).high().kafka(Some("10080"), KEEP_OFFSETS)
        .says("Offsets of a group that has been empty for this many minutes are dropped. doze drops none until this \
            is set."),
    long("offsets.retention.check.interval.ms").is("600000").at_least(1).high()
        .says("How often to look for committed offsets that have outlived offsets.retention.minutes."),
    int("offsets.commit.timeout.ms").is("5000").at_least(1).high().idle(CATALOG)
        .says("How long an offset commit may take before it fails."),
    int("offsets.load.buffer.size").is("5242880").at_least(1).high().idle(CATALOG)
        .says("How many bytes of the offsets topic are read at a time at the start."),
    int("offsets.topic.num.partitions").is("50").at_least(1).high()
        .says("How many partitions the topic of committed offsets has, and stand for offsets that a transaction commits."),
    short("offsets.topic.replication.factor").is("1").at_least(1).high().idle(CATALOG).kafka(Some("3"), ONE_COPY)
        .says("The replication factor of the topic of committed offsets."),
    int("offsets.topic.segment.bytes").is("104857600").at_least(1).high().idle(CATALOG)
        .says("The segment size of the topic of committed offsets."),
    int("offsets.topic.compression.codec").is("0").high().idle(CATALOG)
        .says("The codec of the topic of committed offsets."),
];
