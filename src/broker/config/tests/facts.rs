//! Every key of Kafka's is in the tables, as Kafka has it, but for the defaults that are listed here.

use std::collections::{BTreeMap, BTreeSet};

use crate::broker::config::table::{BROKER, GROUP, METRICS, TOPIC};
use crate::broker::config::{Def, Effect, Importance, Rule, TopicSettings, Update};

use super::{broker, overrides};

const FACTS: &str = include_str!("kafka-4.3.1-configs.tsv");

/// Name, Kafka's default, doze's.
const DIFFERENT_DEFAULTS: [(&str, &str, &str); 15] = [
    ("group.initial.rebalance.delay.ms", "3000", "0"),
    ("listeners", "PLAINTEXT://:9092", "PLAINTEXT://127.0.0.1:9092"),
    ("log.cleaner.backoff.ms", "15000", "1000"),
    ("log.cleaner.dedupe.buffer.size", "134217728", "58720256"),
    ("log.cleaner.min.cleanable.ratio", "0.5", "0.0"),
    ("log.dir", "/tmp/kafka-logs", "./data"),
    ("log.retention.hours", "168", "-1"),
    ("log.segment.bytes", "1073741824", "134217728"),
    ("min.cleanable.dirty.ratio", "0.5", "0.0"),
    ("node.id", "none", "1"),
    ("offsets.retention.minutes", "10080", "null"),
    ("offsets.topic.replication.factor", "3", "1"),
    ("process.roles", "none", "broker,controller"),
    ("retention.ms", "604800000", "-1"),
    ("segment.bytes", "1073741824", "134217728"),
];

fn scopes() -> [(&'static str, Vec<&'static Def>); 4] {
    [
        ("broker", BROKER.iter().collect()),
        ("topic", TOPIC.iter().collect()),
        ("group", GROUP.iter().collect()),
        ("client-metrics", METRICS.iter().collect()),
    ]
}

/// As Kafka describes what a key takes; `None` where the form says less than the rule.
fn rule_text(rule: &Rule) -> Option<String> {
    Some(match rule {
        Rule::AtLeast(n) => format!("[{n},...]"),
        Rule::Between(a, b) => format!("[{a},...,{b}]"),
        Rule::Fraction(a, b) => format!("[{a},...,{b}]"),
        Rule::GzipLevel => "[1,...,9] or -1".into(),
        Rule::OneOf(words) => format!("[{}]", words.join(", ")),
        Rule::OneOfIgnoringCase(words) => format!("(case insensitive) [{}]", words.join(", ")),
        Rule::Each { words, .. } if !words.is_empty() => format!("[{}]", words.join(", ")),
        Rule::Replicas => "[partitionId]:[brokerId],[partitionId]:[brokerId],...".into(),
        Rule::NonEmpty => "non-empty string".into(),
        Rule::Any | Rule::Each { .. } | Rule::OffsetReset | Rule::Absent => return None,
    })
}

#[test]
fn the_tables_hold_what_kafka_has() {
    let mut different = Vec::new();
    let mut facts: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for line in FACTS.lines().filter(|line| !line.starts_with('#')) {
        let mut fields: Vec<&str> = line.split('\t').collect();
        fields.resize(8, "");
        facts.insert((fields[0], fields[1]), fields);
    }
    for (scope, defs) in scopes() {
        let kafka: BTreeSet<&str> = facts.keys().filter(|(s, _)| *s == scope).map(|(_, name)| *name).collect();
        let doze: BTreeSet<&str> = defs.iter().map(|def| def.name).collect();
        assert_eq!(kafka, doze, "{scope}");
        assert_eq!(doze.len(), defs.len(), "a key stands twice in the tables of {scope}");
        for def in defs {
            let [_, name, kind, default, rule, importance, update, internal] = facts[&(scope, def.name)][..] else {
                panic!("{}", def.name)
            };
            assert_eq!(def.kind.name(), kind, "{name}");
            let importance_text = match def.importance {
                Importance::High => "HIGH",
                Importance::Medium => "MEDIUM",
                Importance::Low => "LOW",
            };
            assert_eq!(importance_text, importance, "{name}");
            if scope == "broker" {
                let update_text = match def.update {
                    Update::ReadOnly => "read-only",
                    Update::PerBroker => "per-broker",
                    Update::ClusterWide => "cluster-wide",
                };
                assert_eq!(update_text, update, "{name}");
            }
            assert_eq!(def.internal, internal == "internal", "{name}");
            match rule_text(&def.rule) {
                Some(text) => assert_eq!(text, rule, "{name}"),
                None => assert!(
                    matches!(rule, "" | "non-null string" | "non-empty list") || name == "share.auto.offset.reset",
                    "{name}: {rule}"
                ),
            }
            let doze = def.default.unwrap_or(if default == "none" { "none" } else { "null" });
            if doze != default {
                different.push((name, default, doze));
            }
            match def.differs {
                Some(differs) => {
                    assert_eq!(differs.kafka.unwrap_or("none"), default, "{name}");
                    assert!(!differs.because.is_empty());
                }
                None => assert_eq!(doze, default, "{name}"),
            }
        }
    }
    different.sort_unstable();
    assert_eq!(different, DIFFERENT_DEFAULTS);
}

#[test]
fn every_key_says_what_it_is_and_every_default_passes_its_own_rule() {
    for (scope, defs) in scopes() {
        for def in defs {
            let doc = match def.broker.and_then(|name| BROKER.get(name)) {
                Some(behind) if def.doc.is_empty() => behind.doc,
                _ => def.doc,
            };
            assert!(doc.ends_with('.') && doc.len() > 15, "{scope} {}: {doc:?}", def.name);
            assert!(!doc.contains("  "), "{}", def.name);
            if let Effect::Idle(why) = def.effect {
                assert!(!why.ends_with('.'), "{}: the reason is the end of a sentence: {why}", def.name);
            }
            if let Some(behind) = def.broker {
                assert!(BROKER.get(behind).is_some(), "{} stands for {behind}, which is no broker config", def.name);
            }
            for other in def.chain {
                assert!(BROKER.get(other).is_some(), "{}: {other}", def.name);
            }
            if let Some(text) = def.default {
                let value = def.parse(text).unwrap_or_else(|error| panic!("{}: {error}", def.name));
                assert_eq!(value.to_string(), text, "{}: a default is written as it is shown", def.name);
            }
        }
    }
}

/// A topic that sets nothing has the defaults of the topic table, by way of the broker's.
#[test]
fn defaults_of_topics_and_brokers_agree() {
    let config = broker(&[]);
    for def in TOPIC.iter() {
        let value = crate::broker::config::topic::effective(&config, &overrides(&[]), def.name).unwrap();
        assert_eq!(value, def.default_value(), "{}", def.name);
    }
    for def in GROUP.iter() {
        let value = crate::broker::config::group::effective(&config, &overrides(&[]), def.name).unwrap();
        assert_eq!(value, def.default_value(), "{}", def.name);
    }
    let settings = TopicSettings::new(&config, &overrides(&[])).unwrap();
    assert_eq!((settings.segment_bytes, settings.retention_ms), (134_217_728, -1));
}
