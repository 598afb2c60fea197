//! Checks on values that must go together.

use super::Overrides;
use super::broker::BrokerConfig;
use super::error::ConfigError;
use super::group;
use super::listener::connections_of_address;
use super::topic::TopicSettings;
use super::value::Value;

fn conflict<T>(why: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError::Conflict(why.into()))
}

fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), ConfigError> {
    if holds { Ok(()) } else { conflict(why()) }
}

/// The broker's configs as a whole.
pub(super) fn broker(config: &BrokerConfig) -> Result<(), ConfigError> {
    logs(config)?;
    config.listen()?;
    config.advertised()?;
    connections(config)?;
    groups(config)
}

/// What a broker is not started with, though Kafka lets a running one be changed to it.
pub(super) fn at_start(config: &BrokerConfig) -> Result<(), ConfigError> {
    compaction_lags(config.long("log.cleaner.min.compaction.lag.ms"), config.long("log.cleaner.max.compaction.lag.ms"))
}

fn compaction_lags(least: i64, most: i64) -> Result<(), ConfigError> {
    ensure(least <= most, || {
        format!("conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})")
    })
}

fn logs(config: &BrokerConfig) -> Result<(), ConfigError> {
    let time = |name| match config.first_of(name) {
        Some((_, Value::Int(n))) => i64::from(*n),
        Some((_, Value::Long(n))) => *n,
        other => panic!("{name} is a time, not {other:?}"),
    };
    ensure(time("log.roll.ms") >= 1, || "log.roll.ms must be greater than or equal to 1".into())?;
    ensure(time("log.roll.jitter.ms") >= 0, || "log.roll.jitter.ms must be greater than or equal to 0".into())?;
    ensure(time("log.retention.ms") != 0, || {
        "log.retention.ms must be unlimited (-1) or, greater than or equal to 1".into()
    })?;
    for name in ["log.dirs", "log.dir"] {
        ensure(config.get(name).is_none_or(|dirs| matches!(dirs, Value::List(dirs) if dirs.len() == 1)), || {
            format!("{name} names several directories; doze keeps its data in one")
        })?;
    }
    Ok(())
}

fn connections(config: &BrokerConfig) -> Result<(), ConfigError> {
    let exceptions = config.text("max.connections.per.ip.overrides");
    for pair in exceptions.split(',').filter(|pair| !pair.is_empty()) {
        ensure(connections_of_address(pair).is_some(), || {
            format!(
                "Error parsing configuration property 'max.connections.per.ip.overrides': {pair} is not HOST:COUNT with an \
                 address or localhost for the host"
            )
        })?;
    }
    ensure(config.int("max.connections.per.ip") > 0 || !exceptions.is_empty(), || {
        "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.".into()
    })?;
    ensure(config.int("max.connections") > 0, || "Invalid max.connections 0: nobody could connect".into())
}

fn groups(config: &BrokerConfig) -> Result<(), ConfigError> {
    ensure(config.list("group.coordinator.rebalance.protocols").iter().any(|p| p == "classic"), || {
        "group.coordinator.rebalance.protocols leaves out classic, and disabling the 'classic' protocol is not supported."
            .into()
    })?;
    for (name, known) in
        [("group.consumer.assignors", &["uniform", "range"][..]), ("group.share.assignors", &["simple"])]
    {
        if let Some(other) = config.list(name).iter().find(|assignor| !known.contains(&assignor.as_str())) {
            return Err(ConfigError::NoSuchClass { name: name.into(), value: other.clone() });
        }
    }
    for protocol in ["consumer", "share", "streams"] {
        for what in ["session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"] {
            within(config, protocol, what)?;
        }
        heartbeat_below_session(&format!("group.{protocol}."), |name| config.int(name))?;
    }
    for what in ["delivery.count.limit", "record.lock.duration.ms", "partition.max.record.locks"] {
        within(config, "share", what)?;
    }
    let (name, most) = ("group.streams.num.standby.replicas", "group.streams.max.standby.replicas");
    at_most(name, config.int(name), most, config.int(most))
}

/// `group.PROTOCOL.WHAT` lies between its own minimum and maximum.
fn within(config: &BrokerConfig, protocol: &str, what: &str) -> Result<(), ConfigError> {
    let (least, name, most) = bounds(protocol, what);
    at_least(&most, config.int(&most), &least, config.int(&least))?;
    at_least(&name, config.int(&name), &least, config.int(&least))?;
    at_most(&name, config.int(&name), &most, config.int(&most))
}

fn bounds(protocol: &str, what: &str) -> (String, String, String) {
    (format!("group.{protocol}.min.{what}"), format!("group.{protocol}.{what}"), format!("group.{protocol}.max.{what}"))
}

fn at_least(name: &str, value: i32, least_name: &str, least: i32) -> Result<(), ConfigError> {
    ensure(value >= least, || format!("{name} must be greater than or equal to {least_name}"))
}

fn at_most(name: &str, value: i32, most_name: &str, most: i32) -> Result<(), ConfigError> {
    ensure(value <= most, || format!("{name} must be less than or equal to {most_name}"))
}

fn heartbeat_below_session(prefix: &str, value: impl Fn(&str) -> i32) -> Result<(), ConfigError> {
    let (session, heartbeat) = (format!("{prefix}session.timeout.ms"), format!("{prefix}heartbeat.interval.ms"));
    ensure(value(&session) > value(&heartbeat), || format!("{session} must be greater than {heartbeat}"))
}

/// One topic's configs as a whole.
pub(super) fn topic(settings: &TopicSettings, remote: bool) -> Result<(), ConfigError> {
    compaction_lags(settings.min_compaction_lag_ms, settings.max_compaction_lag_ms)?;
    ensure(!remote, || {
        "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
            .into()
    })
}

/// One group's configs, against the bounds that the broker sets and against each other.
pub(super) fn group(config: &BrokerConfig, overrides: &Overrides) -> Result<(), ConfigError> {
    let int = |name: &str| group_int(config, overrides, name);
    for (protocol, whats) in GROUP_BOUNDS {
        for what in whats {
            let name = format!("{protocol}.{what}");
            let (least, _, most) = bounds(protocol, what);
            at_least(&name, int(&name), &least, config.int(&least))?;
            at_most(&name, int(&name), &most, config.int(&most))?;
        }
        heartbeat_below_session(&format!("{protocol}."), int)?;
    }
    at_most(STANDBYS, int(STANDBYS), MAX_STANDBYS, config.int(MAX_STANDBYS))
}

/// Takes what is out of the broker's bounds to the nearest bound, and tells of it.
pub(super) fn clamp_group(config: &BrokerConfig, overrides: &mut Overrides) -> Vec<ConfigError> {
    let mut errors = Vec::new();
    let mut limit = |name: &str, check: &dyn Fn(i32) -> Result<(), ConfigError>, bound: i32| {
        if overrides.contains_key(name)
            && let Err(error) = check(group_int(config, overrides, name))
        {
            overrides.insert(name.to_owned(), bound.to_string());
            errors.push(error);
        }
    };
    for (protocol, whats) in GROUP_BOUNDS {
        for what in whats {
            let name = format!("{protocol}.{what}");
            let (least, _, most) = bounds(protocol, what);
            let (low, high) = (config.int(&least), config.int(&most));
            limit(&name, &|value| at_least(&name, value, &least, low), low);
            limit(&name, &|value| at_most(&name, value, &most, high), high);
        }
    }
    let most = config.int(MAX_STANDBYS);
    limit(STANDBYS, &|value| at_most(STANDBYS, value, MAX_STANDBYS, most), most);
    errors
}

/// What the broker has bounds for, by protocol.
const GROUP_BOUNDS: [(&str, &[&str]); 3] = [
    ("consumer", &["heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"]),
    (
        "share",
        &[
            "heartbeat.interval.ms",
            "session.timeout.ms",
            "record.lock.duration.ms",
            "delivery.count.limit",
            "partition.max.record.locks",
            "assignment.interval.ms",
        ],
    ),
    ("streams", &["heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"]),
];

const STANDBYS: &str = "streams.num.standby.replicas";
const MAX_STANDBYS: &str = "group.streams.max.standby.replicas";

fn group_int(config: &BrokerConfig, overrides: &Overrides, name: &str) -> i32 {
    match group::effective(config, overrides, name) {
        Ok(Some(Value::Int(n))) => n,
        other => panic!("{name} has been read as an int, and is {other:?}"),
    }
}

/// Thread counts change by no more than a factor of two at a time. doze sizes its threads itself; a tool that relies on
/// the answer gets it all the same.
pub(super) fn check_thread_counts(before: &BrokerConfig, after: &BrokerConfig) -> Result<(), ConfigError> {
    for name in [
        "background.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
    ] {
        let (old, new) = (before.int(name), after.int(name));
        let failed = |why: &str| {
            conflict(format!(
                "Dynamic thread count update validation failed for {name}={new}, value should {why} {old}"
            ))
        };
        if i64::from(new) > 2 * i64::from(old) {
            return failed("not be greater than double the current value");
        }
        if new < old / 2 {
            return failed("be at least half the current value");
        }
    }
    Ok(())
}
