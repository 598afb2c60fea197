//! What the commands on a stopped data directory have in common: their arguments, and why one cannot be looked at.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use doze::broker::config::{BrokerConfig, Overrides};
use doze::storage::offline::OpenDirError;

use crate::exit::{Code, Failure};

/// Which directory.
#[derive(Args, Clone, Debug)]
pub struct DirArgs {
    /// The data directory: one of doze's, or a log directory of Apache Kafka's (what log.dirs names)
    #[arg(
        value_name = "DIR",
        env = "DOZE_DATA_DIR",
        hide_env_values = true,
        default_value = "./data",
        value_hint = ValueHint::DirPath
    )]
    pub dir: PathBuf,

    #[command(flatten)]
    pub meta_db: MetaDbArgs,
}

/// Where the catalog is.
#[derive(Args, Clone, Debug)]
pub struct MetaDbArgs {
    /// The file of topics, committed offsets and producer ids, where it is not meta.db in the data directory
    #[arg(long, value_name = "FILE", env = "DOZE_META_DB", hide_env_values = true, value_hint = ValueHint::FilePath)]
    pub meta_db: Option<PathBuf>,
}

/// For whom the output is.
#[derive(Args, Clone, Copy, Debug)]
pub struct JsonArgs {
    /// One JSON object a line instead of tables; docs/offline.md has their fields
    #[arg(long)]
    pub json: bool,
}

/// Which topics and partitions.
#[derive(Args, Clone, Debug, Default)]
pub struct FilterArgs {
    /// Only this topic; may be given more than once
    #[arg(long = "topic", value_name = "TOPIC")]
    pub topics: Vec<String>,

    /// Only partitions of this number; may be given more than once
    #[arg(long = "partition", value_name = "NUMBER", value_parser = clap::value_parser!(i32).range(0..))]
    pub partitions: Vec<i32>,
}

impl FilterArgs {
    /// Whether the partition was asked for. Without a filter all were.
    pub fn takes(&self, topic: &str, partition: i32) -> bool {
        (self.topics.is_empty() || self.topics.iter().any(|wanted| wanted == topic))
            && (self.partitions.is_empty() || self.partitions.contains(&partition))
    }
}

/// Why a directory cannot be looked at, with the exit code for it.
pub fn refused(error: &OpenDirError) -> Failure {
    let code = match error {
        OpenDirError::InUse { .. } => Code::InUse,
        OpenDirError::NotADataDirectory { .. } | OpenDirError::NewerFormat { .. } => Code::NotADataDirectory,
        OpenDirError::Dir(_) => Code::CouldNotRun,
    };
    Failure::of(code, error)
}

/// The broker's settings where no broker runs: its defaults, with what `--override` says.
pub fn broker_config(overrides: &[String]) -> Result<BrokerConfig, Failure> {
    let settings = pairs("--override", overrides)?;
    BrokerConfig::at_start(settings).map_err(|error| Failure::could_not_run(format!("--override: {error}")))
}

/// The same of an Apache Kafka node: what `--override` says stands for its `server.properties`.
pub fn kafka_broker_config(overrides: &[String]) -> Result<BrokerConfig, Failure> {
    let settings = pairs("--override", overrides)?;
    BrokerConfig::of_kafka(settings).map_err(|error| Failure::could_not_run(format!("--override: {error}")))
}

/// What an option of this name says that takes `KEY=VALUE`.
pub fn pairs(option: &str, given: &[String]) -> Result<Overrides, Failure> {
    let mut settings = Overrides::new();
    for text in given {
        let Some((key, value)) = text.split_once('=') else {
            return Err(Failure::could_not_run(format!("{option} takes KEY=VALUE, and {text:?} has no =")));
        };
        settings.insert(key.trim().to_owned(), value.trim().to_owned());
    }
    Ok(settings)
}
