//! The same over a log directory of Apache Kafka.

use std::collections::BTreeSet;

use doze::broker::config::{BrokerConfig, Overrides, TopicSettings};
use doze::broker::kafka_log_config;
use doze::storage::catalog::ResourceType;
use doze::storage::compact::{self, KafkaCompaction, Request};
use doze::storage::log::LogConfig;
use doze::storage::names;
use doze::storage::offline::{Checkpoint, DataDir, KafkaMetadata, MetadataError, PartitionFolder, Stop};
use doze::sys::Env;

use super::{CompactArgs, Outcome, Report};
use crate::exit::{Code, Failure, with_causes};
use crate::format;
use crate::offline;
use crate::progress::Progress;

/// What was asked for, checked.
struct Job {
    /// `None`: the topics that are named have the configs of the command line, and nothing else is known of them.
    metadata: Option<KafkaMetadata>,
    /// What is in force on the node.
    config: BrokerConfig,
    /// The configs of the command line.
    own: Overrides,
    topics: BTreeSet<String>,
    request: Request,
}

/// What is to become of a partition.
enum Wish {
    Nothing,
    Compact(Box<LogConfig>),
    LeaveAlone(String),
}

/// Runs it over `dir`, which was only opened to be looked at. The outer error is one before anything was done.
pub fn run(args: &CompactArgs, env: &Env, dir: DataDir, report: &mut Report) -> Result<Result<(), Failure>, Failure> {
    if args.dry_run {
        let job = check(args, &dir)?;
        return Ok(estimate(&job, &dir, report));
    }
    drop(dir);
    let env = compact::like_neighbours(env);
    let dir = DataDir::open_to_write(&env, &args.dir.dir, None).map_err(|error| offline::refused(&error))?;
    let job = check(args, &dir)?;
    Ok(compact_all(&job, &dir, report))
}

/// Refuses what cannot be compacted.
fn check(args: &CompactArgs, dir: &DataDir) -> Result<Job, Failure> {
    let shown = format::path(dir.path());
    if args.roll {
        return Err(Failure::could_not_run(format!(
            "{shown} is a log directory of Apache Kafka, whose active segments are not touched: --roll is for doze's directories"
        )));
    }
    if !matches!(dir.stop(), Stop::Clean { .. }) {
        return Err(Failure::could_not_run(format!(
            "{shown} was not stopped cleanly (it has no {}); if 'doze verify {shown}' finds damage run 'doze recover {shown}', then \
             start Apache Kafka on it once and stop it, then compact",
            names::KAFKA_CLEAN_SHUTDOWN
        )));
    }
    let state = dir.kafka();
    for (name, checkpoint) in [
        (names::KAFKA_HIGH_WATERMARKS, &state.high_watermarks),
        (names::KAFKA_CLEANER_OFFSETS, &state.cleaner_offsets),
        (names::KAFKA_LOG_STARTS, &state.log_starts),
    ] {
        if let Checkpoint::Nonsense { reason } = checkpoint {
            return Err(Failure::could_not_run(format!(
                "{name} in {shown} makes no sense: {reason}; Apache Kafka does not start with it either"
            )));
        }
    }
    let own = offline::pairs("--config", &args.configs)?;
    if !own.is_empty() && args.topics.is_empty() {
        return Err(Failure::could_not_run("--config is for the topics that are named, and none is"));
    }
    for name in &args.topics {
        if name == names::KAFKA_METADATA_TOPIC {
            return Err(Failure::could_not_run(format!("{name} is Apache Kafka's own, and is never touched")));
        }
        if !dir.partitions().iter().any(|folder| folder.topic == *name) {
            return Err(Failure::could_not_run(format!("there is no topic {name:?} in {shown}")));
        }
    }
    let metadata = metadata(args, dir, !own.is_empty())?;
    let at_start = offline::kafka_broker_config(&args.overrides)?;
    let config = match &metadata {
        Some(metadata) => with_changes(&at_start, metadata, dir)?,
        None => at_start,
    };
    TopicSettings::new(&config, &own).map_err(|error| Failure::could_not_run(format!("--config: {error}")))?;
    let topics = args.topics.iter().cloned().collect();
    let request = Request { roll: false, retention: args.retention, ..Request::default() };
    Ok(Job { metadata, config, own, topics, request })
}

/// What the metadata log says, of this directory or of the one that was named. `None` where it is not there, or cannot be read, and
/// `has_configs` says that it is not needed.
fn metadata(args: &CompactArgs, dir: &DataDir, has_configs: bool) -> Result<Option<KafkaMetadata>, Failure> {
    let read = match &args.metadata_log {
        None => dir.kafka_metadata(),
        Some(path) => {
            let other = DataDir::open(dir.env(), path, None).map_err(|error| offline::refused(&error))?;
            let clusters = (&other.kafka().cluster_id, &dir.kafka().cluster_id);
            if let (Some(theirs), Some(ours)) = clusters
                && theirs != ours
            {
                return Err(Failure::could_not_run(format!(
                    "{} is of the cluster {theirs}, and {} of {ours}",
                    format::path(path),
                    format::path(dir.path())
                )));
            }
            other.kafka_metadata()
        }
    };
    match read {
        Ok(metadata) => Ok(Some(metadata)),
        Err(_) if has_configs && args.metadata_log.is_none() => Ok(None),
        Err(error) => {
            let what = match &error {
                MetadataError::Missing { .. } => "is not there",
                _ => "cannot be read",
            };
            Err(Failure::could_not_run(format!(
                "the metadata log {what}, so nothing says which topics are compacted ({}); say with --metadata-log where another \
                 one of the cluster is, or name the topics and give their configs with --config",
                with_causes(&error)
            )))
        }
    }
}

/// The settings of the node with the changes that were made while it ran.
fn with_changes(at_start: &BrokerConfig, metadata: &KafkaMetadata, dir: &DataDir) -> Result<BrokerConfig, Failure> {
    let node = dir.kafka().node_id.map(|id| id.to_string()).unwrap_or_default();
    let of_all = metadata.configs(ResourceType::Broker, "");
    let of_node = if node.is_empty() { Overrides::new() } else { metadata.configs(ResourceType::Broker, &node) };
    let (config, refused) = at_start.with_stored_changes(&of_all, &of_node);
    match refused.first() {
        None => Ok(config),
        Some((name, error)) => Err(Failure::could_not_run(format!(
            "the config {name} of the broker, which the metadata log has, cannot be read: {error}"
        ))),
    }
}

impl Job {
    fn wish(&self, dir: &DataDir, folder: &PartitionFolder) -> Wish {
        let topic = &folder.topic;
        let is_asked_for = self.topics.is_empty() || self.topics.contains(topic);
        let is_only = dir.only().is_none_or(|only| only == (topic, folder.partition));
        if !is_asked_for || !is_only || topic == names::KAFKA_METADATA_TOPIC {
            return Wish::Nothing;
        }
        let mut configs = self.metadata.as_ref().map(|metadata| metadata.configs(ResourceType::Topic, topic));
        configs.get_or_insert_default().extend(self.own.clone());
        let configs = configs.unwrap_or_default();
        let config = match kafka_log_config(&self.config, &configs) {
            Ok(config) if config.compact || self.request.retention => config,
            Ok(_) => return Wish::Nothing,
            Err(error) => return Wish::LeaveAlone(error.to_string()),
        };
        if configs.get("remote.storage.enable").is_some_and(|value| value == "true") {
            return Wish::LeaveAlone("some of it may lie in remote storage".into());
        }
        match compact::left_alone(dir, self.metadata.as_ref(), folder) {
            Some(why) => Wish::LeaveAlone(why),
            None => Wish::Compact(Box::new(config)),
        }
    }
}

fn estimate(job: &Job, dir: &DataDir, report: &mut Report) -> Result<(), Failure> {
    for folder in dir.partitions() {
        let outcome = match job.wish(dir, folder) {
            Wish::Nothing => continue,
            Wish::LeaveAlone(why) => Outcome::LeftAlone(why),
            Wish::Compact(config) => {
                let done = compact::estimate_kafka(dir, folder, &config, &job.request);
                let Some(done) = done.transpose() else { continue };
                Outcome::of(done)
            }
        };
        report.show(&folder.topic, folder.partition, outcome)?;
    }
    Ok(())
}

fn compact_all(job: &Job, dir: &DataDir, report: &mut Report) -> Result<(), Failure> {
    let failed = |error| Failure::of(Code::CouldNotRun, &error);
    let wishes: Vec<(&PartitionFolder, Wish)> = dir
        .partitions()
        .iter()
        .map(|folder| (folder, job.wish(dir, folder)))
        .filter(|(_, wish)| !matches!(wish, Wish::Nothing))
        .collect();
    let has_work = wishes.iter().any(|(_, wish)| matches!(wish, Wish::Compact(_)));
    let mut work = if has_work { Some(KafkaCompaction::start(dir).map_err(failed)?) } else { None };
    let bar = Progress::steps("compacting");
    let mut shown = Ok(());
    for (folder, wish) in wishes {
        let outcome = match (wish, &mut work) {
            (Wish::Compact(config), Some(work)) => {
                bar.now(&folder.name());
                let done = work.compact(folder, &config, &job.request);
                let Some(done) = done.transpose() else { continue };
                Outcome::of(done)
            }
            (Wish::LeaveAlone(why), _) => Outcome::LeftAlone(why),
            _ => continue,
        };
        shown = report.show(&folder.topic, folder.partition, outcome);
        if shown.is_err() {
            break;
        }
    }
    bar.finish();
    // Whoever reads the output may be gone: the mark comes back all the same.
    let is_marked = work.map_or(Ok(true), KafkaCompaction::finish).map_err(failed)?;
    shown?;
    match is_marked {
        true => Ok(()),
        false => Err(Failure::could_not_run(format!(
            "{} does not count as stopped cleanly any more, since something failed half-way: Apache Kafka looks at its logs when it \
             starts",
            format::path(dir.path())
        ))),
    }
}
