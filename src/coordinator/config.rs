//! The settings of the group coordinator.

use super::consumer::Assignor;

/// What a consumer group may have of its own; by default `group.consumer.*` of the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsumerSettings {
    /// `consumer.session.timeout.ms`, milliseconds after which a member that is not heard of is out.
    pub session_timeout_ms: i32,
    /// `consumer.heartbeat.interval.ms`, milliseconds, as members are told.
    pub heartbeat_interval_ms: i32,
    /// `consumer.assignment.interval.ms`, the least milliseconds between two assignments.
    pub assignment_interval_ms: i32,
}

/// What a share group may have of its own; by default `group.share.*` of the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareSettings {
    /// `share.session.timeout.ms`, milliseconds after which a member that is not heard of is out.
    pub session_timeout_ms: i32,
    /// `share.heartbeat.interval.ms`, milliseconds, as members are told.
    pub heartbeat_interval_ms: i32,
    /// `share.assignment.interval.ms`, the least milliseconds between two assignments.
    pub assignment_interval_ms: i32,
}

/// What a streams group may have of its own; by default `group.streams.*` of the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamsSettings {
    /// `streams.session.timeout.ms`, milliseconds after which a member that is not heard of is out.
    pub session_timeout_ms: i32,
    /// `streams.heartbeat.interval.ms`, milliseconds, as members are told.
    pub heartbeat_interval_ms: i32,
    /// `streams.assignment.interval.ms`, the least milliseconds between two assignments.
    pub assignment_interval_ms: i32,
    /// `streams.initial.rebalance.delay.ms`: how many milliseconds an empty group waits for more members before the first
    /// assignment.
    pub initial_rebalance_delay_ms: i32,
    /// `streams.num.standby.replicas`, of each task that has state.
    pub num_standby_replicas: i32,
}

/// What is in force for one group, by the kinds that it may be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSettings {
    pub consumer: ConsumerSettings,
    pub streams: StreamsSettings,
    pub share: ShareSettings,
}

/// `group.consumer.migration.policy`: whether groups may go from one protocol to the other while they have members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// From the classic protocol to the consumer protocol.
    pub upgrade: bool,
    /// From the consumer protocol to the classic one.
    pub downgrade: bool,
}

/// Settings of the coordinator, each named after the broker config that it carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// `group.min.session.timeout.ms`, milliseconds.
    pub min_session_timeout_ms: i32,
    /// `group.max.session.timeout.ms`, milliseconds.
    pub max_session_timeout_ms: i32,
    /// `group.max.size`, members a group; at least 1.
    pub max_size: usize,
    /// `group.initial.rebalance.delay.ms`, milliseconds: how long the first rebalance of an empty group waits for more
    /// members. 0 answers the first member at once.
    pub initial_rebalance_delay_ms: i32,
    /// How long a member that has never been in a generation may wait for its first one, milliseconds. Such a member
    /// cannot send heartbeats yet.
    pub new_member_join_timeout_ms: i32,
    /// How many members of one group may hold a member id without having joined with it.
    pub max_pending_members: usize,
    /// `offset.metadata.max.bytes`, counted in UTF-16 code units as Kafka does.
    pub offset_metadata_max_size: usize,
    /// `offsets.retention.minutes` in milliseconds; `None` keeps committed offsets for ever.
    pub offsets_retention_ms: Option<i64>,
    /// `offsets.retention.check.interval.ms`, milliseconds: how often expired offsets and groups without members and
    /// offsets are looked for.
    pub offsets_retention_check_interval_ms: u64,
    /// Of consumer groups that have no settings of their own.
    pub consumer: ConsumerSettings,
    /// `group.consumer.max.size`, members a group; at least 1.
    pub consumer_max_size: usize,
    /// `group.consumer.assignors`; the first is the default. Not empty.
    pub consumer_assignors: Vec<Assignor>,
    /// `group.consumer.regex.refresh.interval.ms`, milliseconds.
    pub consumer_regex_refresh_interval_ms: i32,
    pub consumer_migration: Migration,
    /// Of share groups that have no settings of their own.
    pub share: ShareSettings,
    /// `group.share.max.size`, members a group; at least 1.
    pub share_max_size: usize,
    /// Of streams groups that have no settings of their own.
    pub streams: StreamsSettings,
    /// `group.streams.max.size`, members a group; at least 1.
    pub streams_max_size: usize,
}

impl Config {
    pub(super) fn default_assignor(&self) -> Assignor {
        self.consumer_assignors.first().copied().unwrap_or(Assignor::Uniform)
    }
}

impl Default for Config {
    fn default() -> Self {
        Config {
            min_session_timeout_ms: 6_000,
            max_session_timeout_ms: 1_800_000,
            max_size: i32::MAX as usize,
            initial_rebalance_delay_ms: 0,
            new_member_join_timeout_ms: 300_000,
            max_pending_members: 10_000,
            offset_metadata_max_size: 4096,
            offsets_retention_ms: None,
            offsets_retention_check_interval_ms: 600_000,
            consumer: ConsumerSettings {
                session_timeout_ms: 45_000,
                heartbeat_interval_ms: 5_000,
                assignment_interval_ms: 1_000,
            },
            consumer_max_size: i32::MAX as usize,
            consumer_assignors: vec![Assignor::Uniform, Assignor::Range],
            consumer_regex_refresh_interval_ms: 600_000,
            consumer_migration: Migration { upgrade: true, downgrade: true },
            share: ShareSettings {
                session_timeout_ms: 45_000,
                heartbeat_interval_ms: 5_000,
                assignment_interval_ms: 1_000,
            },
            share_max_size: 200,
            streams: StreamsSettings {
                session_timeout_ms: 45_000,
                heartbeat_interval_ms: 5_000,
                assignment_interval_ms: 1_000,
                initial_rebalance_delay_ms: 3_000,
                num_standby_replicas: 0,
            },
            streams_max_size: i32::MAX as usize,
        }
    }
}
