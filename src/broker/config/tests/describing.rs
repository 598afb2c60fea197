//! Sources, synonyms and what is shown, as one Apache Kafka 4.3.1 node showed it after the same changes. Only doze's own
//! defaults are in the place of Kafka's.

use crate::broker::config::describe::{Described, Source, describe};
use crate::broker::config::{BrokerConfig, ConfigError, Kind, Overrides, Resource};

use super::{broker, overrides};

/// The broker that Kafka was asked with, and the changes that had been made.
fn changed_broker() -> BrokerConfig {
    let config = broker(&[
        ("node.id", "0"),
        ("log.retention.minutes", "5"),
        ("log.retention.hours", "7"),
        ("log.roll.hours", "2"),
        ("log.segment.bytes", "2097152"),
        ("log.flush.scheduler.interval.ms", "1000"),
        ("group.consumer.session.timeout.ms", "46000"),
        ("log.cleanup.policy", "compact"),
    ]);
    let cluster = overrides(&[
        ("log.retention.ms", "2000"),
        ("log.segment.bytes", "3000000"),
        ("group.consumer.assignment.interval.ms", "2000"),
        ("nopeg", "1"),
    ]);
    config.with_changes(cluster, overrides(&[("nope", "1"), ("log.retention.ms", "1000")])).unwrap()
}

fn one(config: &BrokerConfig, resource: &Resource, stored: &Overrides, name: &str) -> Described {
    let mut found = describe(config, resource, stored, |key| key == name).unwrap();
    assert_eq!(found.len(), 1, "{name}");
    found.remove(0)
}

/// VALUE SOURCE: NAME=VALUE@SOURCE ...
fn shown(described: &Described) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or("null".into());
    let mut line = format!("{} {}:", text(&described.value), described.source as i8);
    for synonym in &described.synonyms {
        line += &format!(" {}={}@{}", synonym.name, text(&synonym.value), synonym.source as i8);
    }
    line
}

#[test]
fn topics() {
    let config = changed_broker();
    let t1 = Resource::Topic("t1".into());
    let stored = overrides(&[
        ("retention.ms", " 100 "),
        ("cleanup.policy", "compact, delete"),
        ("leader.replication.throttled.replicas", "0:1"),
        ("internal.segment.bytes", "1000"),
        ("unclean.leader.election.enable", "TRUE"),
        ("min.cleanable.dirty.ratio", "1e-1"),
    ]);
    for (name, line) in [
        ("leader.replication.throttled.replicas", "0:1 1: leader.replication.throttled.replicas=0:1@1"),
        (
            "cleanup.policy",
            "compact,delete 1: cleanup.policy=compact,delete@1 log.cleanup.policy=compact@4 log.cleanup.policy=delete@5",
        ),
        (
            "segment.bytes",
            "3000000 3: log.segment.bytes=3000000@3 log.segment.bytes=2097152@4 log.segment.bytes=134217728@5",
        ),
        (
            "retention.ms",
            "100 1: retention.ms=100@1 log.retention.ms=1000@2 log.retention.ms=2000@3 log.retention.minutes=5@4 \
             log.retention.hours=7@4 log.retention.hours=-1@5",
        ),
        ("min.cleanable.dirty.ratio", "0.1 1: min.cleanable.dirty.ratio=0.1@1 log.cleaner.min.cleanable.ratio=0.0@5"),
        (
            "unclean.leader.election.enable",
            "true 1: unclean.leader.election.enable=true@1 unclean.leader.election.enable=false@5",
        ),
        ("internal.segment.bytes", "1000 1: internal.segment.bytes=1000@1"),
        // The value is from log.flush.scheduler.interval.ms and log.roll.hours, and Kafka calls it a default.
        ("flush.ms", "1000 5:"),
        ("segment.ms", "7200000 5:"),
        ("compression.type", "producer 5: compression.type=producer@5"),
    ] {
        assert_eq!(shown(&one(&config, &t1, &stored, name)), line, "{name}");
    }
    let all = describe(&config, &t1, &overrides(&[]), |_| true).unwrap();
    assert_eq!(all.len(), 33);
    assert!(all.iter().all(|d| !d.read_only && !d.sensitive && !d.documentation.is_empty()));
    assert!(all.iter().all(|d| d.name != "internal.segment.bytes"));
}

#[test]
fn brokers() {
    let config = changed_broker();
    let node = Resource::Broker("0".into());
    for (name, line) in [
        ("nope", "null 2: nope=null@2"),
        ("nopeg", "null 3: nopeg=null@3"),
        ("log.retention.hours", "-1 4: log.retention.hours=7@4 log.retention.hours=-1@5"),
        ("log.retention.minutes", "null 4: log.retention.minutes=5@4 log.retention.hours=7@4 log.retention.hours=-1@5"),
        (
            "log.retention.ms",
            "1000 2: log.retention.ms=1000@2 log.retention.ms=2000@3 log.retention.minutes=5@4 log.retention.hours=7@4 \
             log.retention.hours=-1@5",
        ),
        (
            "group.consumer.assignment.interval.ms",
            "2000 3: group.consumer.assignment.interval.ms=2000@3 group.consumer.assignment.interval.ms=1000@5",
        ),
        ("log.flush.interval.ms", "null 5:"),
        ("log.roll.ms", "null 5:"),
        ("log.roll.hours", "2 4: log.roll.hours=2@4 log.roll.hours=168@5"),
        ("node.id", "0 4: node.id=0@4 node.id=1@5"),
        ("broker.id", "0 4: broker.id=0@4 broker.id=-1@5"),
    ] {
        assert_eq!(shown(&one(&config, &node, &overrides(&[]), name)), line, "{name}");
    }
    let nope = one(&config, &node, &overrides(&[]), "nope");
    assert!(nope.sensitive && nope.read_only && nope.kind.is_none());
    let password = one(&config, &node, &overrides(&[]), "ssl.key.password");
    assert!(password.sensitive && !password.read_only);
    assert_eq!((password.kind, password.value), (Some(Kind::Password), None));
    assert!(one(&config, &node, &overrides(&[]), "node.id").read_only);
    assert_eq!(one(&config, &node, &overrides(&[]), "listeners").kind.map(|kind| kind as i8), Some(7));

    let for_all = describe(&config, &Resource::Broker(String::new()), &overrides(&[]), |_| true).unwrap();
    let lines: Vec<String> = for_all.iter().map(|d| format!("{} = {}", d.name, shown(d))).collect();
    assert_eq!(
        lines,
        [
            "group.consumer.assignment.interval.ms = 2000 3: group.consumer.assignment.interval.ms=2000@3",
            "log.retention.ms = 2000 3: log.retention.ms=2000@3",
            "log.segment.bytes = 3000000 3: log.segment.bytes=3000000@3",
            "nopeg = null 3: nopeg=null@3",
        ]
    );
}

#[test]
fn passwords_are_never_shown() {
    let config = broker(&[("ssl.key.password", "secret")]);
    let password = one(&config, &Resource::Broker("1".into()), &overrides(&[]), "ssl.key.password");
    assert_eq!(shown(&password), "null 4: ssl.key.password=null@4");
    let listener = broker(&[("listener.name.a.ssl.key.password", "secret")]);
    let name = "listener.name.a.ssl.key.password";
    assert_eq!(
        shown(&one(&listener, &Resource::Broker("1".into()), &overrides(&[]), name)),
        "null 4: listener.name.a.ssl.key.password=null@4"
    );
}

#[test]
fn internal_keys_are_shown_where_they_are_set() {
    let name = "server.max.startup.time.ms";
    let node = Resource::Broker("1".into());
    assert_eq!(describe(&broker(&[]), &node, &overrides(&[]), |key| key == name).unwrap(), []);
    let set = broker(&[(name, "5")]);
    assert_eq!(one(&set, &node, &overrides(&[]), name).value.as_deref(), Some("5"));
}

#[test]
fn groups_and_subscriptions() {
    let config = changed_broker();
    let group = Resource::Group("g1".into());
    let stored = overrides(&[("consumer.session.timeout.ms", "50000")]);
    for (stored, name, line) in [
        (
            &stored,
            "consumer.session.timeout.ms",
            "50000 8: consumer.session.timeout.ms=50000@8 group.consumer.session.timeout.ms=46000@4 \
             group.consumer.session.timeout.ms=45000@5",
        ),
        (
            &overrides(&[]),
            "consumer.session.timeout.ms",
            "46000 4: group.consumer.session.timeout.ms=46000@4 group.consumer.session.timeout.ms=45000@5",
        ),
        (
            &stored,
            "consumer.assignment.interval.ms",
            "2000 3: group.consumer.assignment.interval.ms=2000@3 group.consumer.assignment.interval.ms=1000@5",
        ),
        (&stored, "share.auto.offset.reset", "latest 5: share.auto.offset.reset=latest@5"),
    ] {
        assert_eq!(shown(&one(&config, &group, stored, name)), line, "{name}");
    }
    let metrics = Resource::ClientMetrics("m1".into());
    let stored = overrides(&[("interval.ms", "1000")]);
    assert_eq!(shown(&one(&config, &metrics, &stored, "interval.ms")), "1000 7: interval.ms=1000@7");
    assert_eq!(shown(&one(&config, &metrics, &stored, "match")), " 5:");
}

#[test]
fn a_broker_answers_for_itself() {
    let config = changed_broker();
    for (name, error) in [
        ("1", ConfigError::NotThisBroker { expected: 0, received: "1".into() }),
        ("x", ConfigError::BrokerIdNotANumber("x".into())),
    ] {
        assert_eq!(describe(&config, &Resource::Broker(name.into()), &overrides(&[]), |_| true), Err(error));
    }
    assert_eq!(Resource::new(99, "x"), Err(ConfigError::UnknownResource(99)));
    assert_eq!(Source::Group as i8, 8);
}
