//! What is in force for one group.

use super::Overrides;
use super::broker::BrokerConfig;
use super::checks;
use super::error::ConfigError;
use super::rule::OffsetReset;
use super::table::GROUP;
use super::value::Value;

/// What is in force for one group: its own configs over the broker's. Which of them matter depends on the protocol
/// that the group speaks; classic groups have none.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupSettings {
    pub consumer_assignment_interval_ms: i32,
    pub consumer_heartbeat_interval_ms: i32,
    pub consumer_session_timeout_ms: i32,
    pub share_assignment_interval_ms: i32,
    pub share_auto_offset_reset: OffsetReset,
    pub share_delivery_count_limit: i32,
    pub share_heartbeat_interval_ms: i32,
    /// Whether records of transactions that are not committed are left out.
    pub share_read_committed: bool,
    pub share_partition_max_record_locks: i32,
    pub share_record_lock_duration_ms: i32,
    pub share_renew_acknowledge_enable: bool,
    pub share_session_timeout_ms: i32,
    pub streams_assignment_interval_ms: i32,
    pub streams_heartbeat_interval_ms: i32,
    pub streams_initial_rebalance_delay_ms: i32,
    pub streams_num_standby_replicas: i32,
    pub streams_session_timeout_ms: i32,
}

impl GroupSettings {
    /// Puts `overrides`, a group's own configs, over the broker's. Fails at a key that is not in the table, a bad value,
    /// one outside the bounds that the broker sets, and values that do not go together.
    pub fn new(broker: &BrokerConfig, overrides: &Overrides) -> Result<GroupSettings, ConfigError> {
        for (name, text) in overrides {
            check_one(name, text)?;
        }
        let settings = GroupSettings::read(broker, overrides)?;
        checks::group(broker, overrides)?;
        Ok(settings)
    }

    /// What is in force of configs that were accepted once. The broker's bounds may have changed since, or this doze may
    /// be older than the one that accepted them: what cannot be read does not count, what is out of bounds is taken to
    /// the nearest bound, and both are handed back.
    pub fn stored(broker: &BrokerConfig, overrides: &Overrides) -> (GroupSettings, Vec<ConfigError>) {
        let (mut readable, mut errors) = super::readable(overrides, check_one);
        errors.extend(checks::clamp_group(broker, &mut readable));
        (GroupSettings::read(broker, &readable).expect("every one of these values has been read before"), errors)
    }

    fn read(broker: &BrokerConfig, overrides: &Overrides) -> Result<GroupSettings, ConfigError> {
        let int = |name: &str| match effective(broker, overrides, name)? {
            Some(Value::Int(n)) => Ok(n),
            other => panic!("{name} was read as an int, and is {other:?}"),
        };
        let text = |name: &str| match effective(broker, overrides, name)? {
            Some(Value::Text(text)) => Ok(text),
            other => panic!("{name} was read as text, and is {other:?}"),
        };
        Ok(GroupSettings {
            consumer_assignment_interval_ms: int("consumer.assignment.interval.ms")?,
            consumer_heartbeat_interval_ms: int("consumer.heartbeat.interval.ms")?,
            consumer_session_timeout_ms: int("consumer.session.timeout.ms")?,
            share_assignment_interval_ms: int("share.assignment.interval.ms")?,
            share_auto_offset_reset: OffsetReset::parse(&text("share.auto.offset.reset")?)
                .expect("the rule of the key lets nothing else pass"),
            share_delivery_count_limit: int("share.delivery.count.limit")?,
            share_heartbeat_interval_ms: int("share.heartbeat.interval.ms")?,
            share_read_committed: text("share.isolation.level")? == "read_committed",
            share_partition_max_record_locks: int("share.partition.max.record.locks")?,
            share_record_lock_duration_ms: int("share.record.lock.duration.ms")?,
            share_renew_acknowledge_enable: effective(broker, overrides, "share.renew.acknowledge.enable")?
                == Some(Value::Boolean(true)),
            share_session_timeout_ms: int("share.session.timeout.ms")?,
            streams_assignment_interval_ms: int("streams.assignment.interval.ms")?,
            streams_heartbeat_interval_ms: int("streams.heartbeat.interval.ms")?,
            streams_initial_rebalance_delay_ms: int("streams.initial.rebalance.delay.ms")?,
            streams_num_standby_replicas: int("streams.num.standby.replicas")?,
            streams_session_timeout_ms: int("streams.session.timeout.ms")?,
        })
    }
}

/// Whether `text` is a value that `name` takes.
fn check_one(name: &str, text: &str) -> Result<(), ConfigError> {
    match GROUP.get(name) {
        Some(def) => def.parse(text).map(drop),
        None => Err(ConfigError::UnknownGroupConfig { name: name.to_owned() }),
    }
}

/// The value that is in force for one key of a group.
pub(super) fn effective(
    broker: &BrokerConfig,
    overrides: &Overrides,
    name: &str,
) -> Result<Option<Value>, ConfigError> {
    let Some(def) = GROUP.get(name) else {
        return Err(ConfigError::UnknownGroupConfig { name: name.to_owned() });
    };
    match overrides.get(name) {
        Some(text) => def.parse(text).map(Some),
        None => Ok(def.broker.and_then(|key| broker.get(key).cloned()).or_else(|| def.default_value())),
    }
}
