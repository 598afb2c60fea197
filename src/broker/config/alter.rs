//! AlterConfigs, IncrementalAlterConfigs and the configs of CreateTopics: what a change makes of what is stored, or why it
//! is refused.
//!
//! Nothing is changed here. The caller gets what to store, and puts it in force afterwards.

use std::collections::BTreeSet;

use super::broker::{BrokerConfig, MIN_INSYNC};
use super::checks::check_thread_counts;
use super::def::Update;
use super::describe::{Source, check_node};
use super::error::ConfigError;
use super::table::{self, BROKER, TOPIC};
use super::value::Kind;
use super::{GroupSettings, MetricsSubscription, Overrides, Resource, TopicSettings};

/// What one entry of an IncrementalAlterConfigs does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Set,
    Delete,
    Append,
    Subtract,
}

impl Operation {
    /// From the number on the wire.
    pub fn new(number: i8) -> Result<Operation, ConfigError> {
        match number {
            0 => Ok(Operation::Set),
            1 => Ok(Operation::Delete),
            2 => Ok(Operation::Append),
            3 => Ok(Operation::Subtract),
            other => Err(ConfigError::UnknownOperation(other)),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Operation::Set => "SET",
            Operation::Delete => "DELETE",
            Operation::Append => "APPEND",
            Operation::Subtract => "SUBTRACT",
        }
    }
}

/// One entry of an IncrementalAlterConfigs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    pub name: &'a str,
    /// The number on the wire: 0 sets, 1 deletes, 2 appends to a list, 3 takes from a list.
    pub operation: i8,
    pub value: Option<&'a str>,
}

/// What is stored of `resource` after `changes`. For brokers, `stored` is not looked at: the changes made since the
/// start are part of `config`. Either all changes take effect or none.
///
/// Whether the topic or the node exists is for the caller to know; the name's form is checked here.
pub fn incremental(
    config: &BrokerConfig,
    resource: &Resource,
    stored: &Overrides,
    changes: &[Change<'_>],
) -> Result<Overrides, ConfigError> {
    check_names(changes.iter().map(|change| change.name))?;
    let delete = |change: &&Change<'_>| change.operation == 1;
    check_nulls(changes.iter().filter(|change| !delete(change)).map(|change| (change.name, change.value)))?;
    check_resource(config, resource)?;
    let stored = stored_of(config, resource, stored);
    let mut altered = stored.clone();
    for change in changes {
        let operation = Operation::new(change.operation)?;
        let value = change.value.unwrap_or_default();
        match operation {
            Operation::Set => drop(altered.insert(change.name.into(), value.into())),
            Operation::Delete => drop(altered.remove(change.name)),
            Operation::Append | Operation::Subtract => {
                let mut items = list_of(resource, stored, change.name, operation)?;
                for item in value.split(',') {
                    let at = items.iter().position(|old| old == item);
                    match (operation, at) {
                        (Operation::Append, None) => items.push(item.into()),
                        (Operation::Subtract, Some(at)) => drop(items.remove(at)),
                        _ => {}
                    }
                }
                altered.insert(change.name.into(), items.join(","));
            }
        }
    }
    check(config, resource, &altered)?;
    check_min_insync(resource, changes.iter().map(|change| change.name), &altered, stored)?;
    Ok(altered)
}

/// What is stored of `resource` when `entries` take the place of everything that is.
pub fn replace(
    config: &BrokerConfig,
    resource: &Resource,
    stored: &Overrides,
    entries: &[(&str, Option<&str>)],
) -> Result<Overrides, ConfigError> {
    check_names(entries.iter().map(|(name, _)| *name))?;
    check_nulls(entries.iter().copied())?;
    check_resource(config, resource)?;
    let stored = stored_of(config, resource, stored);
    let altered = entries.iter().map(|(name, value)| ((*name).into(), value.unwrap_or_default().into())).collect();
    check(config, resource, &altered)?;
    check_min_insync(resource, entries.iter().map(|(name, _)| *name), &altered, stored)?;
    Ok(altered)
}

/// What is stored of a topic that is created with `entries`. Of two for the same key the later counts.
pub fn create_topic(config: &BrokerConfig, entries: &[(&str, Option<&str>)]) -> Result<Overrides, ConfigError> {
    let nulls: Vec<String> =
        entries.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| (*name).into()).collect();
    if !nulls.is_empty() {
        return Err(ConfigError::NullAtCreation { names: nulls });
    }
    let overrides = entries.iter().map(|(name, value)| ((*name).into(), value.unwrap_or_default().into())).collect();
    TopicSettings::new(config, &overrides)?;
    Ok(overrides)
}

fn check_names<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), ConfigError> {
    let mut seen = BTreeSet::new();
    let mut names = names;
    if names.all(|name| seen.insert(name)) { Ok(()) } else { Err(ConfigError::Duplicate) }
}

fn check_nulls<'a>(entries: impl Iterator<Item = (&'a str, Option<&'a str>)>) -> Result<(), ConfigError> {
    let names: Vec<String> = entries.filter(|(_, value)| value.is_none()).map(|(name, _)| name.into()).collect();
    if names.is_empty() { Ok(()) } else { Err(ConfigError::Null { names }) }
}

fn check_resource(config: &BrokerConfig, resource: &Resource) -> Result<(), ConfigError> {
    match resource {
        Resource::Broker(name) if !name.is_empty() => check_node(config, name),
        Resource::Topic(name) if name.is_empty() => Err(ConfigError::TopicUnnamed),
        Resource::Group(name) if name.is_empty() => Err(ConfigError::GroupUnnamed),
        Resource::ClientMetrics(name) if name.is_empty() => Err(ConfigError::SubscriptionUnnamed),
        _ => Ok(()),
    }
}

fn stored_of<'a>(config: &'a BrokerConfig, resource: &Resource, stored: &'a Overrides) -> &'a Overrides {
    match resource {
        Resource::Broker(name) if name.is_empty() => config.set_at(Source::Cluster),
        Resource::Broker(_) => config.set_at(Source::Node),
        _ => stored,
    }
}

/// The items that a list starts out from: those that are stored, or its default. What the broker was started with does
/// not count, as it does not in Kafka.
fn list_of(
    resource: &Resource,
    stored: &Overrides,
    name: &str,
    operation: Operation,
) -> Result<Vec<String>, ConfigError> {
    let def = match resource {
        Resource::Topic(_) => TOPIC.get(name),
        Resource::Broker(_) => BROKER.get(name),
        // Kafka does not split these, though two of the keys of a subscription are lists.
        Resource::Group(_) | Resource::ClientMetrics(_) => None,
    };
    match (def, resource) {
        (Some(def), _) if def.kind == Kind::List => {
            let text = stored.get(name).map_or(def.default.unwrap_or_default(), String::as_str);
            Ok(text.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect())
        }
        (None, Resource::Broker(_)) => Err(ConfigError::UnknownBrokerConfig { name: name.into() }),
        (Some(_), Resource::Broker(_)) => {
            Err(ConfigError::NotABrokerList { operation: operation.name(), name: name.into() })
        }
        _ => Err(ConfigError::NotAList { operation: operation.name(), name: name.into() }),
    }
}

/// Whether `altered` may be stored of `resource`.
fn check(config: &BrokerConfig, resource: &Resource, altered: &Overrides) -> Result<(), ConfigError> {
    match resource {
        Resource::Topic(_) => TopicSettings::new(config, altered).map(drop),
        Resource::Group(_) => GroupSettings::new(config, altered).map(drop),
        Resource::ClientMetrics(_) => MetricsSubscription::new(altered).map(drop),
        Resource::Broker(name) => check_broker(config, name.is_empty(), altered),
    }
}

fn check_broker(config: &BrokerConfig, for_all: bool, altered: &Overrides) -> Result<(), ConfigError> {
    let named = |pick: &dyn Fn(&str) -> bool| -> Option<Vec<String>> {
        let names: Vec<String> = altered.keys().filter(|name| pick(name)).cloned().collect();
        (!names.is_empty()).then_some(names)
    };
    let update = |name: &str| BROKER.get(name).map(|def| def.update);
    if let Some(names) = named(&|name| update(name) == Some(Update::ReadOnly)) {
        return Err(ConfigError::ReadOnly { names });
    }
    if let Some(names) = named(&|name| PER_LISTENER.contains(&name)) {
        return Err(ConfigError::PerListener { names });
    }
    for (name, text) in altered {
        // A key that nobody knows is let pass: Kafka keeps it for its plug-ins.
        if let Some(def) = table::broker_or_listener(name) {
            def.parse(text)?;
        }
    }
    let of_one_listener =
        |name: &str| table::listener_key(name).is_some_and(|key| update(key) != Some(Update::ClusterWide));
    if for_all && let Some(names) = named(&|name| update(name) == Some(Update::PerBroker) || of_one_listener(name)) {
        return Err(ConfigError::PerBroker { names });
    }
    let (cluster, node) = (config.set_at(Source::Cluster).clone(), config.set_at(Source::Node).clone());
    let altered = if for_all {
        config.with_changes(altered.clone(), node)
    } else {
        config.with_changes(cluster, altered.clone())
    }?;
    check_thread_counts(config, &altered)?;
    if config.list("listeners") != altered.list("listeners") {
        return Err(ConfigError::Refused {
            name: "listeners".into(),
            value: altered.list("listeners").join(","),
            why: "doze listens where it listened when it started".into(),
        });
    }
    Ok(())
}

/// Security configs that can change for one listener at a time only.
const PER_LISTENER: [&str; 10] = [
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
];

/// The default for all brokers has a `min.insync.replicas` for good, and no broker has one of its own.
fn check_min_insync<'a>(
    resource: &Resource,
    mut named: impl Iterator<Item = &'a str>,
    altered: &Overrides,
    stored: &Overrides,
) -> Result<(), ConfigError> {
    match resource {
        Resource::Broker(name) if name.is_empty() => {
            if stored.contains_key(MIN_INSYNC) && !altered.contains_key(MIN_INSYNC) {
                return Err(ConfigError::FixedAtCluster { name: MIN_INSYNC });
            }
            Ok(())
        }
        Resource::Broker(_) if named.any(|name| name == MIN_INSYNC) => {
            Err(ConfigError::FixedAtBroker { name: MIN_INSYNC })
        }
        _ => Ok(()),
    }
}
