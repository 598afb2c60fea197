//! Loggers and their levels, which clients see and change as BROKER_LOGGER (KIP-412).
//!
//! Who writes the log is the program that the broker runs in; it hands its loggers over as [`LogLevels`]. Levels are not
//! stored: a restart starts with those that the program is told.

use std::collections::HashSet;
use std::fmt::{Debug, Display, Formatter};

use super::config::alter::Change;
use super::config::{BrokerConfig, describe};
use super::topics::Refused;
use crate::protocol::ErrorCode;

/// The type of the resource on the wire.
pub const BROKER_LOGGER: i8 = 8;
/// Where the levels of loggers are from, in DescribeConfigs.
pub const SOURCE: i8 = 6;
/// The logger whose level those have that have none of their own.
pub const ROOT: &str = "root";

/// How much a logger writes, by Kafka's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Nothing. A program can be started with it; clients cannot ask for it.
    Off,
    /// Nothing either: doze calls no error fatal.
    Fatal,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

const SETTABLE: [LogLevel; 6] =
    [LogLevel::Debug, LogLevel::Error, LogLevel::Fatal, LogLevel::Info, LogLevel::Trace, LogLevel::Warn];

impl LogLevel {
    pub fn name(self) -> &'static str {
        match self {
            LogLevel::Off => "OFF",
            LogLevel::Fatal => "FATAL",
            LogLevel::Error => "ERROR",
            LogLevel::Warn => "WARN",
            LogLevel::Info => "INFO",
            LogLevel::Debug => "DEBUG",
            LogLevel::Trace => "TRACE",
        }
    }

    fn from_name(name: &str) -> Option<LogLevel> {
        SETTABLE.into_iter().find(|level| level.name() == name)
    }
}

impl Display for LogLevel {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The loggers of the program. Shared between threads.
pub trait LogLevels: Debug + Send + Sync {
    /// Every logger, [`ROOT`] among them, with the level that is in force for it. Sorted by name.
    fn levels(&self) -> Vec<(&'static str, LogLevel)>;

    /// Puts levels in force, all at one time; `None` gives a logger that of the root. Names are those of
    /// [`levels`](Self::levels).
    fn set(&self, changes: &[(&str, Option<LogLevel>)]);
}

/// The loggers that DescribeConfigs shows of the node `name`.
pub fn described(
    loggers: Option<&dyn LogLevels>,
    config: &BrokerConfig,
    name: &str,
) -> Result<Vec<(&'static str, LogLevel)>, Refused> {
    if name.is_empty() {
        return Err(Refused::new(ErrorCode::InvalidRequest, "Broker id must not be empty"));
    }
    let id = config.node_id();
    match describe::node_id(name) {
        Err(error) => Err(Refused::new(ErrorCode::InvalidRequest, error.to_string())),
        Ok(asked) if asked == id => Ok(loggers.map(LogLevels::levels).unwrap_or_default()),
        Ok(_) => {
            let message = format!("Unexpected broker id, expected {id} but received {name}");
            Err(Refused::new(ErrorCode::InvalidRequest, message))
        }
    }
}

/// Carries out `changes` of loggers of the node `name`, or none of them.
pub fn alter(
    loggers: Option<&dyn LogLevels>,
    config: &BrokerConfig,
    name: &str,
    changes: &[Change<'_>],
    validate_only: bool,
) -> Result<(), Refused> {
    let known = loggers.map(LogLevels::levels).unwrap_or_default();
    let levels = check(&known, config, name, changes)?;
    if let Some(loggers) = loggers.filter(|_| !validate_only && !levels.is_empty()) {
        loggers.set(&levels);
        for (logger, level) in levels {
            let level = level.map_or("that of the root", LogLevel::name);
            tracing::info!(logger, level, "the level of a logger was changed");
        }
    }
    Ok(())
}

fn check<'a>(
    known: &[(&str, LogLevel)],
    config: &BrokerConfig,
    node: &str,
    changes: &[Change<'a>],
) -> Result<Vec<(&'a str, Option<LogLevel>)>, Refused> {
    let bad_request = |message: String| Err(Refused::new(ErrorCode::InvalidRequest, message));
    let bad_config = |message: String| Err(Refused::new(ErrorCode::InvalidConfig, message));
    let mut seen = HashSet::new();
    if !changes.iter().all(|change| seen.insert(change.name)) {
        return bad_request("Error due to duplicate config keys".into());
    }
    if let Some(null) = changes.iter().find(|change| change.value.is_none() && change.operation != DELETE) {
        return bad_request(format!("Null value not supported for : {}", null.name));
    }
    match node.parse::<i32>() {
        Err(_) => return bad_request(format!("Node id must be an integer, but it is: {node}")),
        Ok(id) if id != config.node_id() => {
            let expected = config.node_id();
            return bad_request(format!("Unexpected node id. Expected {expected}, but received {node}"));
        }
        Ok(_) => {}
    }
    let mut levels = vec![];
    for Change { name, operation, value } in changes {
        match *operation {
            SET | DELETE if !known.iter().any(|(logger, _)| logger == name) => {
                return bad_config(format!("Logger {name} does not exist!"));
            }
            SET => {
                let value = value.unwrap_or_default();
                let Some(level) = LogLevel::from_name(value) else {
                    return bad_config(format!(
                        "Cannot set the log level of {name} to {value} as it is not a supported log level. Valid log \
                         levels are {}",
                        SETTABLE.map(LogLevel::name).join(", ")
                    ));
                };
                levels.push((*name, Some(level)));
            }
            DELETE if *name == ROOT => {
                return bad_request("Removing the log level of the root logger is not allowed".into());
            }
            DELETE => levels.push((*name, None)),
            APPEND => return bad_request("APPEND operation is not allowed for the BROKER_LOGGER resource".into()),
            SUBTRACT => return bad_request("SUBTRACT operation is not allowed for the BROKER_LOGGER resource".into()),
            other => return bad_request(format!("Unknown operations type {other}")),
        }
    }
    Ok(levels)
}

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;
