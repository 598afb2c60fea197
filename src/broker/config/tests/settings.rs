//! What is in force, typed, and what a broker does not start with.

use crate::broker::config::alter::{self, Change};
use crate::broker::config::{
    BrokerConfig, CompressionType, GroupSettings, LiveConfig, MetricsSubscription, OffsetReset, Resource, TopicSettings,
};

use super::{broker, overrides};

#[test]
fn a_topic_goes_by_its_own_configs_then_the_brokers() {
    let config = broker(&[("log.retention.hours", "1"), ("compression.type", "zstd"), ("log.roll.ms", "5000")]);
    let settings =
        TopicSettings::new(&config, &overrides(&[("segment.ms", "9"), ("cleanup.policy", "compact")])).unwrap();
    assert_eq!(settings.retention_ms, 3_600_000);
    assert_eq!(settings.segment_ms, 9);
    assert_eq!(settings.compression_type, CompressionType::Zstd);
    assert!(settings.cleanup_policy.compact && !settings.cleanup_policy.delete);

    // Milliseconds before minutes before hours, wherever they are set from.
    let minutes = broker(&[("log.retention.hours", "1"), ("log.retention.minutes", "2")]);
    assert_eq!(TopicSettings::new(&minutes, &overrides(&[])).unwrap().retention_ms, 120_000);
    let changed = minutes.with_changes(overrides(&[("log.retention.ms", "7")]), overrides(&[])).unwrap();
    assert_eq!(TopicSettings::new(&changed, &overrides(&[])).unwrap().retention_ms, 7);
    let unlimited = broker(&[("log.retention.ms", "-5")]);
    assert_eq!(TopicSettings::new(&unlimited, &overrides(&[])).unwrap().retention_ms, -1);

    let tests = TopicSettings::new(&config, &overrides(&[("internal.segment.bytes", "100")])).unwrap();
    assert_eq!(tests.segment_bytes, 100);
    let neither = TopicSettings::new(&config, &overrides(&[("cleanup.policy", "")])).unwrap();
    assert!(!neither.cleanup_policy.compact && !neither.cleanup_policy.delete);
}

#[test]
fn a_group_goes_by_its_own_configs_then_the_brokers() {
    let config = broker(&[("group.share.record.lock.duration.ms", "20000")]);
    let stored =
        overrides(&[("share.auto.offset.reset", "by_duration:PT2S"), ("share.isolation.level", "read_committed")]);
    let settings = GroupSettings::new(&config, &stored).unwrap();
    assert_eq!(settings.share_record_lock_duration_ms, 20_000);
    assert_eq!(settings.share_auto_offset_reset, OffsetReset::ByDuration(std::time::Duration::from_secs(2)));
    assert!(settings.share_read_committed);
}

#[test]
fn a_subscription_matches_whole_values() {
    let stored = overrides(&[("match", "client_id=app-[0-9]+, client_software_name=java"), ("metrics", "*")]);
    let subscription = MetricsSubscription::new(&stored).unwrap();
    let (selector, pattern) = &subscription.matches[0];
    assert_eq!(selector, "client_id");
    assert!(pattern.is_match("app-17") && !pattern.is_match("my-app-17"));
    assert_eq!((subscription.interval_ms, subscription.metrics), (300_000, vec!["*".to_owned()]));
}

#[test]
fn lists_grow_from_their_default_and_shrink() {
    let config = broker(&[("log.cleanup.policy", "compact")]);
    let t1 = Resource::Topic("t1".into());
    let apply = |stored: &[(&str, &str)], operation: i8, value: &str| {
        let change = Change { name: "cleanup.policy", operation, value: Some(value) };
        alter::incremental(&config, &t1, &overrides(stored), &[change]).unwrap()
    };
    assert_eq!(apply(&[], 2, "compact"), overrides(&[("cleanup.policy", "delete,compact")]));
    assert_eq!(apply(&[], 2, "delete"), overrides(&[("cleanup.policy", "delete")]));
    assert_eq!(apply(&[("cleanup.policy", "delete")], 3, "compact"), overrides(&[("cleanup.policy", "delete")]));
    assert_eq!(apply(&[("cleanup.policy", "delete")], 3, "delete"), overrides(&[("cleanup.policy", "")]));
}

#[test]
fn replacing_drops_what_is_not_named() {
    let config = broker(&[]);
    let t1 = Resource::Topic("t1".into());
    let stored = overrides(&[("retention.ms", "1"), ("segment.ms", "2")]);
    assert_eq!(
        alter::replace(&config, &t1, &stored, &[("segment.ms", Some("3"))]).unwrap(),
        overrides(&[("segment.ms", "3")])
    );
}

/// A change that would leave existing topics with values that do not go together is caught at the topic.
#[test]
fn a_topic_is_checked_against_the_broker_it_is_on() {
    let config = broker(&[("log.cleaner.min.compaction.lag.ms", "1000")]);
    let error = TopicSettings::new(&config, &overrides(&[("max.compaction.lag.ms", "500")])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "conflict topic config setting min.compaction.lag.ms (1000) > max.compaction.lag.ms (500)"
    );
}

/// What Kafka refuses to start with, doze refuses too, and nothing that Kafka takes.
#[test]
fn settings_that_a_broker_does_not_start_with() {
    let start = |pairs: &[(&str, &str)]| BrokerConfig::at_start(overrides(pairs)).map(drop).map_err(|e| e.to_string());
    for (name, text, why) in [
        ("log.retention.ms", "0", "unlimited (-1)"),
        ("log.retention.minutes", "0", "unlimited (-1)"),
        ("log.segment.bytes", "5", "at least 1048576"),
        ("log.roll.ms", "0", "greater than or equal to 1"),
        ("log.roll.jitter.ms", "-1", "greater than or equal to 0"),
        ("max.connections.per.ip", "0", "can be set to zero only if"),
        ("max.connections.per.ip.overrides", "x", "HOST:COUNT"),
        ("node.id", "-1", "at least 0"),
        ("node.id", "x", "Not a number of type INT"),
        ("num.partitions", "0", "at least 1"),
        ("group.consumer.heartbeat.interval.ms", "50000", "group.consumer.max.heartbeat.interval.ms"),
        ("group.consumer.session.timeout.ms", "5000", "group.consumer.min.session.timeout.ms"),
        ("group.consumer.assignors", "x", "could not be found"),
        ("group.coordinator.rebalance.protocols", "consumer", "'classic'"),
        ("group.coordinator.rebalance.protocols", "", "must not be empty"),
        ("group.consumer.migration.policy", "X", "one of (case insensitive)"),
        ("log.dirs", "", "must not be empty"),
        ("compression.type", "x", "must be one of"),
        ("fetch.max.bytes", "10", "at least 1024"),
        ("auto.create.topics.enable", "yes", "either true or false"),
        ("group.share.delivery.count.limit", "11", "no more than 10"),
        ("transaction.max.timeout.ms", "0", "at least 1"),
        ("group.streams.num.standby.replicas", "5", "group.streams.max.standby.replicas"),
        ("create.topic.policy.class.name", "a.b.C", "could not be found"),
        // Kafka has these, and doze would run without what they promise.
        ("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer", "would run without it"),
        ("log.dirs", "/a,/b", "several directories"),
        ("nope", "1", "Unknown config name: nope"),
    ] {
        let error = start(&[(name, text)]).unwrap_err();
        assert!(error.contains(why) && error.contains(name.split('.').next().unwrap()), "{name}={text}: {error}");
    }
    assert!(start(&[("node.id", "1"), ("broker.id", "2")]).is_err());
    for (name, text) in [
        ("log.retention.hours", "-1"),
        ("log.retention.ms", "-5"),
        ("log.flush.interval.ms", "-1"),
        ("log.cleanup.policy", ""),
        ("log.cleanup.policy", "compact,compact"),
        ("default.replication.factor", "3"),
        ("group.consumer.migration.policy", "upgrade"),
        ("log.retention.bytes", "-4"),
        ("num.replica.alter.log.dirs.threads", "0"),
        ("listener.name.internal.ssl.keystore.location", "/x"),
        ("remote.log.storage.system.enable", "true"),
    ] {
        assert_eq!(start(&[(name, text)]), Ok(()), "{name}={text}");
    }
}

#[test]
fn settings_without_effect_are_told() {
    let config = broker(&[("num.io.threads", "4"), ("num.partitions", "2"), ("listener.name.a.max.connections", "1")]);
    let names: Vec<&str> = config.without_effect().map(|(name, _)| name).collect();
    assert_eq!(names, ["listener.name.a.max.connections", "num.io.threads"]);
}

#[test]
fn a_snapshot_does_not_change_under_its_holder() {
    let live = LiveConfig::new(broker(&[("num.partitions", "2")]));
    let before = live.snapshot();
    let changed = before.with_changes(overrides(&[("message.max.bytes", "5")]), overrides(&[])).unwrap();
    live.replace(changed);
    assert_eq!(before.int("message.max.bytes"), 1_048_588);
    assert_eq!(live.snapshot().int("message.max.bytes"), 5);
    assert_eq!(live.snapshot().int("num.partitions"), 2);
}

/// What was accepted once never keeps a broker from its work.
#[test]
fn stored_configs_that_do_not_fit_any_more() {
    // Kafka lets a running broker be changed to these, and no topic be altered afterwards.
    let lags = overrides(&[("log.cleaner.min.compaction.lag.ms", "10"), ("log.cleaner.max.compaction.lag.ms", "5")]);
    assert!(BrokerConfig::at_start(lags.clone()).is_err());
    let config = broker(&[]).with_changes(lags, overrides(&[])).unwrap();
    assert!(TopicSettings::new(&config, &overrides(&[])).is_err());
    let stored = overrides(&[("retention.ms", "x"), ("segment.ms", "7"), ("of.the.future", "1")]);
    let (settings, errors) = TopicSettings::stored(&config, &stored);
    assert_eq!((settings.segment_ms, settings.retention_ms, settings.min_compaction_lag_ms), (7, -1, 10));
    assert_eq!(errors.len(), 2);

    let config = broker(&[("group.consumer.max.session.timeout.ms", "50000")]);
    let stored =
        overrides(&[("consumer.session.timeout.ms", "60000"), ("share.session.timeout.ms", "1"), ("nope", "1")]);
    assert!(GroupSettings::new(&config, &stored).is_err());
    let (settings, errors) = GroupSettings::stored(&config, &stored);
    assert_eq!((settings.consumer_session_timeout_ms, settings.share_session_timeout_ms), (50_000, 45_000));
    assert_eq!(errors.len(), 3, "{errors:?}");

    let at_start = broker(&[("group.consumer.max.assignment.interval.ms", "1500")]);
    let cluster = overrides(&[("group.consumer.assignment.interval.ms", "2000"), ("message.max.bytes", "7")]);
    assert!(at_start.with_changes(cluster.clone(), overrides(&[])).is_err());
    let (config, refused) = at_start.with_stored_changes(&cluster, &overrides(&[("log.segment.bytes", "1")]));
    assert_eq!((config.int("message.max.bytes"), config.int("log.segment.bytes")), (7, 134_217_728));
    assert_eq!(config.int("group.consumer.assignment.interval.ms"), 1000);
    let names: Vec<&str> = refused.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["group.consumer.assignment.interval.ms", "log.segment.bytes"]);
}

#[test]
fn the_configs_of_a_new_topic() {
    let config = broker(&[]);
    let create = |entries: &[(&str, Option<&str>)]| alter::create_topic(&config, entries).map_err(|e| e.to_string());
    for (entries, error) in [
        (&[("retention.ms", None)][..], "Null value not supported for topic configs: retention.ms"),
        (&[("nope", None)], "Null value not supported for topic configs: nope"),
        (&[("nope", Some("1"))], "Unknown topic config name: nope"),
        (&[("retention.ms", Some("x"))], "Invalid value x for configuration retention.ms: Not a number of type LONG"),
    ] {
        assert_eq!(create(entries), Err(error.to_owned()));
    }
    let twice = create(&[("retention.ms", Some("5")), ("retention.ms", Some("6"))]).unwrap();
    assert_eq!(twice, overrides(&[("retention.ms", "6")]));
}
