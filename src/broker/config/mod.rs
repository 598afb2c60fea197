//! The configs of brokers, topics, groups and client metrics subscriptions, under Kafka's names.
//!
//! One table holds every key: its type and default, what values it takes, whether it can change while the broker runs,
//! what stands in for it where it is not set, and what doze does with it ([`Def`]). The command line, the file of
//! settings, CreateTopics, DescribeConfigs and the AlterConfigs APIs all go by that table, so that a key means the same
//! wherever it is given.
//!
//! - [`BrokerConfig`] is what is in force on the broker: settings from the start, under the changes made since.
//!   [`LiveConfig`] hands out snapshots of it.
//! - [`TopicSettings`] and [`GroupSettings`] are what is in force for one topic or group, typed.
//! - [`describe`] answers DescribeConfigs; [`alter`] answers AlterConfigs and IncrementalAlterConfigs, and is the check
//!   that CreateTopics needs.
//!
//! Nothing in here does I/O or keeps state of its own; the caller stores what [`alter`] hands back.

pub mod alter;
mod broker;
mod checks;
mod def;
pub mod describe;
mod error;
mod group;
mod listener;
mod metrics;
mod rule;
pub mod table;
#[cfg(test)]
mod tests;
mod topic;
mod value;

use std::collections::BTreeMap;

pub use broker::{BrokerConfig, LiveConfig};
pub use def::{Def, Differs, Effect, Importance, Update};
pub use error::{Code, ConfigError};
pub use group::GroupSettings;
pub use listener::{HostPort, parse_listener};
pub use metrics::MetricsSubscription;
pub use rule::{OffsetReset, Rule};
pub use topic::{CleanupPolicy, CompressionType, TimestampType, TopicSettings};
pub use value::{Kind, Value};

/// What is set on one resource, as text by key.
pub type Overrides = BTreeMap<String, String>;

/// Parts what `check` accepts from what it does not.
fn readable(
    overrides: &Overrides,
    check: impl Fn(&str, &str) -> Result<(), ConfigError>,
) -> (Overrides, Vec<ConfigError>) {
    let mut readable = Overrides::new();
    let mut errors = Vec::new();
    for (name, text) in overrides {
        match check(name, text) {
            Ok(()) => drop(readable.insert(name.clone(), text.clone())),
            Err(error) => errors.push(error),
        }
    }
    (readable, errors)
}

/// What configs belong to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resource {
    Topic(String),
    /// The name is the node id as text; empty is the default for all brokers.
    Broker(String),
    Group(String),
    ClientMetrics(String),
}

impl Resource {
    /// From the type and name on the wire. Loggers (type 8) are not among these: they have levels, not configs.
    pub fn new(kind: i8, name: &str) -> Result<Resource, ConfigError> {
        let name = name.to_owned();
        match kind {
            2 => Ok(Resource::Topic(name)),
            4 => Ok(Resource::Broker(name)),
            16 => Ok(Resource::ClientMetrics(name)),
            32 => Ok(Resource::Group(name)),
            other => Err(ConfigError::UnknownResource(other)),
        }
    }

    /// The type on the wire.
    pub fn kind(&self) -> i8 {
        match self {
            Resource::Topic(_) => 2,
            Resource::Broker(_) => 4,
            Resource::ClientMetrics(_) => 16,
            Resource::Group(_) => 32,
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Resource::Topic(name) | Resource::Broker(name) | Resource::Group(name) | Resource::ClientMetrics(name) => {
                name
            }
        }
    }
}
