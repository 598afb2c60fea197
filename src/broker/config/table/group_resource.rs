//! Group configs: what one group may have of its own.

use crate::broker::config::Rule;
use crate::broker::config::def::{Def, boolean, int, string};

#[rustfmt::skip]
pub(super) const TABLE: &[Def] = &[
    int("consumer.assignment.interval.ms").is("1000").at_least(0).broker("group.consumer.assignment.interval.ms")
        .says("The least time between two new assignments of this consumer group."),
    int("consumer.heartbeat.interval.ms").is("5000").at_least(1).broker("group.consumer.heartbeat.interval.ms")
        .says("How often members of this consumer group are asked to send a heartbeat."),
    int("consumer.session.timeout.ms").is("45000").at_least(1).broker("group.consumer.session.timeout.ms")
        .says("A member of this consumer group that sends no heartbeat for this many milliseconds is removed."),
    int("share.assignment.interval.ms").is("1000").at_least(0).broker("group.share.assignment.interval.ms")
        .says("The least time between two new assignments of this share group."),
    string("share.auto.offset.reset").is("latest").rule(Rule::OffsetReset)
        .says("Where this share group starts reading: earliest, latest, or by_duration:DURATION for a time before \
            now."),
    int("share.delivery.count.limit").is("5").at_least(2).broker("group.share.delivery.count.limit")
        .says("How often a record is handed out before it is given up as undeliverable."),
    int("share.heartbeat.interval.ms").is("5000").at_least(1).broker("group.share.heartbeat.interval.ms")
        .says("How often members of this share group are asked to send a heartbeat."),
    string("share.isolation.level").is("read_uncommitted").one_of(&["read_committed", "read_uncommitted"])
        .says("Whether this share group reads records of transactions that are not committed."),
    int("share.partition.max.record.locks").is("2000").at_least(100).broker("group.share.partition.max.record.locks")
        .says("How many records of one partition may be locked at one time."),
    int("share.record.lock.duration.ms").is("30000").at_least(1000).broker("group.share.record.lock.duration.ms")
        .says("How long a record that was handed out stays locked for the member that got it."),
    boolean("share.renew.acknowledge.enable").is("true")
        .says("Let members of this share group renew the lock of a record."),
    int("share.session.timeout.ms").is("45000").at_least(1).broker("group.share.session.timeout.ms")
        .says("A member of this share group that sends no heartbeat for this many milliseconds is removed."),
    int("streams.assignment.interval.ms").is("1000").at_least(0).broker("group.streams.assignment.interval.ms")
        .says("The least time between two new assignments of this streams group."),
    int("streams.heartbeat.interval.ms").is("5000").at_least(1).broker("group.streams.heartbeat.interval.ms")
        .says("How often members of this streams group are asked to send a heartbeat."),
    int("streams.initial.rebalance.delay.ms").is("3000").at_least(0)
        .broker("group.streams.initial.rebalance.delay.ms")
        .says("How long this streams group waits for more members before its first assignment."),
    int("streams.num.standby.replicas").is("0").at_least(0).broker("group.streams.num.standby.replicas")
        .says("How many standby copies of each task this streams group keeps."),
    int("streams.session.timeout.ms").is("45000").at_least(1).broker("group.streams.session.timeout.ms")
        .says("A member of this streams group that sends no heartbeat for this many milliseconds is removed."),
];
