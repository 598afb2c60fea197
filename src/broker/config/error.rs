//! Why a config was not accepted.

use super::Resource;
use super::value::{Kind, Value};

/// What Kafka answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    InvalidConfig,
    InvalidRequest,
}

/// Why a config was not accepted. The texts are for the person who set it, and keep to the form that Kafka's tools
/// and clients show; [`ConfigError::code`] is the error that goes with it on the wire.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    #[error("Unknown topic config name: {name}")]
    UnknownTopicConfig { name: String },
    #[error("Unknown group config name: {name}")]
    UnknownGroupConfig { name: String },
    #[error("Unknown client metrics configuration: {name}")]
    UnknownMetricsConfig { name: String },
    #[error("Unknown config name: {name}")]
    UnknownBrokerConfig { name: String },

    #[error("Invalid value {value} for configuration {name}: Not a number of type {}", kind.name())]
    NotANumber { name: String, value: String, kind: Kind },
    #[error("Invalid value {value} for configuration {name}: Expected value to be either true or false")]
    NotABoolean { name: String, value: String },
    #[error("Invalid value {value} for configuration {name}: Class {value} could not be found.")]
    NoSuchClass { name: String, value: String },
    /// Of the right kind, but against the rule of its key.
    #[error("Invalid value {value} for configuration {name}: {why}")]
    Refused { name: String, value: String, why: String },
    #[error("Configuration '{name}' must not be empty. Valid values include: {}", words_or_any(words))]
    Empty { name: String, words: Vec<String> },
    #[error("Configuration '{name}' values must not be empty.")]
    BlankItem { name: String },

    #[error("Invalid value {value} for interval.ms, interval must be between 100 and 3600000 (1 hour)")]
    Interval { value: i32 },

    /// Two values that do not go together. The text names both.
    #[error("{0}")]
    Conflict(String),

    #[error("Cannot update these configs dynamically: [{}]", names.join(", "))]
    ReadOnly { names: Vec<String> },
    #[error("Cannot update these configs at default cluster level, broker id must be specified: [{}]", names.join(", "))]
    PerBroker { names: Vec<String> },
    #[error(
        "These security configs can be dynamically updated only per-listener using the listener prefix: [{}]",
        names.join(", ")
    )]
    PerListener { names: Vec<String> },

    #[error("Null value not supported for : {}", names.join(", "))]
    Null { names: Vec<String> },
    /// At the creation of a topic.
    #[error("Null value not supported for topic configs: {}", names.join(","))]
    NullAtCreation { names: Vec<String> },
    #[error("Error due to duplicate config keys")]
    Duplicate,
    #[error("Unknown operations type {0}")]
    UnknownOperation(i8),
    #[error("Can't {operation} to key {name} because its type is not LIST.")]
    NotAList { operation: &'static str, name: String },
    #[error("Config value {} is not allowed for config key: {name}", operation.to_lowercase())]
    NotABrokerList { operation: &'static str, name: String },

    #[error("Default topic resources are not allowed.")]
    TopicUnnamed,
    #[error("Default group resources are not allowed.")]
    GroupUnnamed,
    #[error("Subscription name can't be empty")]
    SubscriptionUnnamed,
    #[error("Node id must be an integer, but it is: {0}")]
    NodeIdNotANumber(String),
    #[error("Unexpected broker id, expected {expected}, but received {received}")]
    WrongNode { expected: i32, received: String },
    /// In a description.
    #[error("Broker id must be an integer, but it is: {0}")]
    BrokerIdNotANumber(String),
    /// In a description.
    #[error("Unexpected broker id, expected {expected} or empty string, but received {received}")]
    NotThisBroker { expected: i32, received: String },
    /// In a description.
    #[error("{0} name must not be empty")]
    Unnamed(&'static str),
    #[error("Unknown resource type {0}")]
    UnknownResource(i8),

    #[error("Broker-level {name} cannot be altered while ELR is enabled.")]
    FixedAtBroker { name: &'static str },
    #[error("Cluster-level {name} cannot be removed while ELR is enabled.")]
    FixedAtCluster { name: &'static str },
}

impl ConfigError {
    pub(super) fn refused(name: &str, value: &Value, why: String) -> ConfigError {
        // A list stands in brackets here, as Kafka shows it.
        let value = match value {
            Value::List(items) => format!("[{}]", items.join(", ")),
            other => other.to_string(),
        };
        ConfigError::Refused { name: name.to_owned(), value, why }
    }

    /// What to answer when the change was asked for `resource`: a broker refuses a bad value as a bad request, all
    /// others as a bad config.
    pub fn code(&self, resource: &Resource) -> Code {
        match self {
            ConfigError::Null { .. }
            | ConfigError::Duplicate
            | ConfigError::UnknownOperation(_)
            | ConfigError::TopicUnnamed
            | ConfigError::GroupUnnamed
            | ConfigError::SubscriptionUnnamed
            | ConfigError::NodeIdNotANumber(_)
            | ConfigError::WrongNode { .. }
            | ConfigError::BrokerIdNotANumber(_)
            | ConfigError::NotThisBroker { .. }
            | ConfigError::Unnamed(_)
            | ConfigError::UnknownResource(_)
            | ConfigError::UnknownMetricsConfig { .. }
            | ConfigError::Interval { .. }
            | ConfigError::ReadOnly { .. }
            | ConfigError::PerBroker { .. }
            | ConfigError::PerListener { .. } => Code::InvalidRequest,
            ConfigError::NotABrokerList { .. }
            | ConfigError::NullAtCreation { .. }
            | ConfigError::UnknownBrokerConfig { .. }
            | ConfigError::FixedAtBroker { .. }
            | ConfigError::FixedAtCluster { .. } => Code::InvalidConfig,
            ConfigError::UnknownTopicConfig { .. }
            | ConfigError::UnknownGroupConfig { .. }
            | ConfigError::NotANumber { .. }
            | ConfigError::NotABoolean { .. }
            | ConfigError::NoSuchClass { .. }
            | ConfigError::Refused { .. }
            | ConfigError::Empty { .. }
            | ConfigError::BlankItem { .. }
            | ConfigError::Conflict(_)
            | ConfigError::NotAList { .. } => match resource {
                Resource::Broker(_) => Code::InvalidRequest,
                _ => Code::InvalidConfig,
            },
        }
    }
}

fn words_or_any(words: &[String]) -> String {
    if words.is_empty() { "any non-empty value".into() } else { format!("[{}]", words.join(", ")) }
}
