//! What DescribeConfigs tells of a resource.

use super::broker::{BrokerConfig, is_sensitive};
use super::def::{Def, Update};
use super::error::ConfigError;
use super::table::{self, BROKER, GROUP, METRICS, TOPIC};
use super::value::{Kind, Value};
use super::{Overrides, Resource, group, metrics, topic};

/// Where a value is from, with the number that DescribeConfigs gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Set on the topic.
    Topic = 1,
    /// Set on this broker since its start.
    Node = 2,
    /// Set as the default for all brokers since their start.
    Cluster = 3,
    /// Set when the broker started.
    Static = 4,
    /// Nobody set it.
    Default = 5,
    /// Set on the client metrics subscription.
    ClientMetrics = 7,
    /// Set on the group.
    Group = 8,
}

/// A value that counts, or would count if those before it were not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synonym {
    pub name: String,
    /// `None` where it is not shown.
    pub value: Option<String>,
    pub source: Source,
}

/// One config of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    pub name: String,
    /// `None` where it is null or not shown.
    pub value: Option<String>,
    pub source: Source,
    pub read_only: bool,
    pub sensitive: bool,
    /// In the order in which they count. Those of a key that is in none of the tables have no type.
    pub synonyms: Vec<Synonym>,
    /// `None` where the key is in none of the tables.
    pub kind: Option<Kind>,
    pub documentation: &'static str,
}

/// All configs of `resource`, sorted by name; of those that `wanted` lets pass.
///
/// `stored` is what is set on a topic, a group or a subscription, and not looked at for brokers. A broker's name must be
/// empty (the defaults for all brokers, and only what is set there) or the node's own number.
pub fn describe(
    config: &BrokerConfig,
    resource: &Resource,
    stored: &Overrides,
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<Described>, ConfigError> {
    match resource {
        Resource::Broker(name) if name.is_empty() => {
            let set = config.set_at(Source::Cluster).iter().filter(|(name, _)| wanted(name));
            let described = set.map(|(name, text)| {
                let mut described = describe_broker(config, name, |source| source == Source::Cluster);
                // The default for all, whatever this node has of its own.
                described.value = Some(text.clone()).filter(|_| !described.sensitive);
                described
            });
            Ok(described.collect())
        }
        Resource::Broker(name) => {
            if node_id(name)? != config.node_id() {
                return Err(ConfigError::NotThisBroker { expected: config.node_id(), received: name.clone() });
            }
            let mut names: Vec<&str> = BROKER.iter().filter(|def| !def.internal).map(|def| def.name).collect();
            for source in [Source::Node, Source::Cluster, Source::Static] {
                names.extend(config.set_at(source).keys().map(String::as_str));
            }
            names.sort_unstable();
            names.dedup();
            let names = names.into_iter().filter(|name| wanted(name));
            Ok(names.map(|name| describe_broker(config, name, |_| true)).collect())
        }
        Resource::Topic(_) => own(
            &TOPIC,
            Source::Topic,
            stored,
            wanted,
            |name| topic::effective(config, stored, name),
            |def| def.broker.map_or(Vec::new(), |key| synonyms(config, key)),
        ),
        Resource::Group(name) if name.is_empty() => Err(ConfigError::Unnamed("Group")),
        Resource::Group(_) => own(
            &GROUP,
            Source::Group,
            stored,
            wanted,
            |name| group::effective(config, stored, name),
            |def| match def.broker {
                Some(key) => synonyms(config, key),
                None => vec![default_of(def)],
            },
        ),
        Resource::ClientMetrics(name) if name.is_empty() => Err(ConfigError::Unnamed("Client metrics subscription")),
        Resource::ClientMetrics(_) => own(
            &METRICS,
            Source::ClientMetrics,
            stored,
            wanted,
            |name| metrics::effective(stored, name),
            |_| Vec::new(),
        ),
    }
}

/// Describes the keys of a resource that has configs of its own.
fn own(
    table: &table::Table,
    source: Source,
    stored: &Overrides,
    wanted: impl Fn(&str) -> bool,
    value: impl Fn(&str) -> Result<Option<Value>, ConfigError>,
    behind: impl Fn(&'static Def) -> Vec<Synonym>,
) -> Result<Vec<Described>, ConfigError> {
    let shown = table.iter().filter(|def| wanted(def.name) && (!def.internal || stored.contains_key(def.name)));
    shown
        .map(|def| {
            let value = value(def.name)?.map(|value| value.to_string());
            let mut synonyms = behind(def);
            if stored.contains_key(def.name) {
                synonyms.insert(0, Synonym { name: def.name.into(), value: value.clone(), source });
            }
            Ok(Described {
                name: def.name.into(),
                value,
                source: synonyms.first().map_or(Source::Default, |first| first.source),
                read_only: false,
                sensitive: def.is_sensitive(),
                synonyms,
                kind: Some(def.kind),
                documentation: documentation(def),
            })
        })
        .collect()
}

fn describe_broker(config: &BrokerConfig, name: &str, counts: impl Fn(Source) -> bool) -> Described {
    let def = table::broker_or_listener(name);
    let sensitive = is_sensitive(name);
    let mut synonyms = synonyms(config, name);
    synonyms.retain(|synonym| counts(synonym.source));
    let value = match BROKER.get(name) {
        Some(_) => config.get(name).map(|value| value.to_string()),
        None => synonyms.first().and_then(|first| first.value.clone()),
    };
    Described {
        name: name.to_owned(),
        value: value.filter(|_| !sensitive),
        source: synonyms.first().map_or(Source::Default, |first| first.source),
        read_only: BROKER.get(name).is_none_or(|def| def.update == Update::ReadOnly),
        sensitive,
        synonyms,
        kind: def.map(|def| def.kind),
        documentation: def.map_or("", documentation),
    }
}

/// The values that count for a broker config, in their order: what was set since the start before what was set at the
/// start before the defaults, and within each the key itself before what stands in for it. As Kafka does, what is set
/// more recently under another name is left out; a `log.retention.hours` from the start is not seen at
/// `log.retention.ms` unless that is set as well.
fn synonyms(config: &BrokerConfig, name: &str) -> Vec<Synonym> {
    let mut names = match BROKER.get(name) {
        Some(def) if !def.chain.is_empty() => def.chain.to_vec(),
        _ => vec![name],
    };
    names.extend(table::listener_key(name));
    let sensitive = is_sensitive(name);
    let mut found = Vec::new();
    for source in [Source::Node, Source::Cluster, Source::Static] {
        let set = config.set_at(source);
        for &name in &names {
            if let Some(text) = set.get(name) {
                found.push(Synonym { name: name.into(), value: Some(text.clone()).filter(|_| !sensitive), source });
            }
        }
    }
    found.extend(names.iter().filter_map(|name| BROKER.get(name)).filter(|def| def.default.is_some()).map(default_of));
    let own = found.iter().position(|synonym| synonym.name == name).unwrap_or(found.len());
    found.split_off(own)
}

fn default_of(def: &'static Def) -> Synonym {
    let value = def.default.map(str::to_owned).filter(|_| !def.is_sensitive());
    Synonym { name: def.name.into(), value, source: Source::Default }
}

fn documentation(def: &'static Def) -> &'static str {
    match def.broker.and_then(|key| BROKER.get(key)) {
        Some(broker) if def.doc.is_empty() => broker.doc,
        _ => def.doc,
    }
}

/// The number of a node that is to be described.
pub(in crate::broker) fn node_id(name: &str) -> Result<i32, ConfigError> {
    name.parse().map_err(|_| ConfigError::BrokerIdNotANumber(name.into()))
}

/// A broker takes changes for itself alone.
pub(super) fn check_node(config: &BrokerConfig, name: &str) -> Result<(), ConfigError> {
    match name.parse::<i32>() {
        Err(_) => Err(ConfigError::NodeIdNotANumber(name.into())),
        Ok(id) if id == config.node_id() => Ok(()),
        Ok(_) => Err(ConfigError::WrongNode { expected: config.node_id(), received: name.into() }),
    }
}
