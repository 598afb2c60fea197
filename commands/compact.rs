//! `doze compact`: the cleaner by hand, over a directory that no broker is running on.

mod kafka;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueHint};
use doze::broker::offline_log_config;
use doze::storage::catalog::{self, Catalog, ConfigMap, ResourceType, Topic};
use doze::storage::compact::{self, CompactError, Compacted, Request};
use doze::storage::offline::{CatalogState, DataDir, Origin, Stop};
use doze::storage::store::{LogConfigOf, OpenStoreError, Store, StoreConfig, lock_data_dir};
use doze::sys::Env;
use serde_json::json;

use crate::cli;
use crate::exit::{Code, Failure, with_causes};
use crate::format;
use crate::offline::{self, DirArgs, JsonArgs};
use crate::output::{Output, Rows, number, text};
use crate::progress::Progress;

/// Clean compacted topics by hand, and give back unused space
///
/// Keeps the latest record of each key of the topics with cleanup.policy=compact, as the broker's cleaner does, in all sealed
/// segments, however little is dirty. min.compaction.lag.ms is kept to. The catalog, meta.db, gives back the space that it does
/// not use. The directory has to be one that was stopped cleanly, and is left so: one of doze's, or a log directory of Apache
/// Kafka, which is cleaned as its own cleaner would do it.
#[derive(Args, Debug)]
#[command(after_long_help = cli::help_of(&cli::sections("compact")))]
pub struct CompactArgs {
    #[command(flatten)]
    pub dir: DirArgs,

    /// Only these topics
    #[arg(value_name = "TOPIC")]
    pub topics: Vec<String>,

    /// Only say how many bytes and records would go; nothing is written
    #[arg(long)]
    pub dry_run: bool,

    /// Seal the active segments first, so that all records are cleaned; not in Apache Kafka's directories
    #[arg(long)]
    pub roll: bool,

    /// Also remove the segments that are too old or too many by retention.ms and retention.bytes, of all topics
    #[arg(long)]
    pub retention: bool,

    /// A broker config as doze serve or Apache Kafka's server.properties has it, for topics that have none of their own:
    /// log.retention.ms=60000
    #[arg(long = "override", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,

    /// For a directory of Apache Kafka without one: where its metadata log is, __cluster_metadata-0 or a directory that has it
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub metadata_log: Option<PathBuf>,

    /// For a directory of Apache Kafka: a config of the topics that are named, whatever the metadata log says:
    /// cleanup.policy=compact
    #[arg(long = "config", value_name = "KEY=VALUE")]
    pub configs: Vec<String>,

    #[command(flatten)]
    pub json: JsonArgs,
}

pub fn sections() -> Vec<(&'static str, String)> {
    let examples = "  doze compact --dry-run /var/lib/doze
  doze compact /var/lib/doze
  doze compact --roll /var/lib/doze users accounts
  doze compact --retention --override log.retention.hours=24 /var/lib/doze
  doze compact --dry-run /var/lib/kafka/data
  doze compact --metadata-log /var/lib/kafka/data-1 /var/lib/kafka/data-2";
    vec![("Examples", examples.to_owned())]
}

/// What was asked for, checked.
struct Job {
    dir: std::path::PathBuf,
    catalog: std::path::PathBuf,
    topics: Vec<Arc<Topic>>,
    only: Option<i32>,
    log_config: LogConfigOf,
    request: Request,
}

/// What became of a partition.
enum Outcome {
    Done(Compacted),
    /// Nothing was done to it, and this is why.
    LeftAlone(String),
    Failed(String),
}

impl Outcome {
    fn of(done: Result<Compacted, CompactError>) -> Outcome {
        done.map_or_else(|error| Outcome::Failed(with_causes(&error)), Outcome::Done)
    }
}

/// What it all came to.
#[derive(Default)]
struct Sum {
    partitions: u64,
    bytes: (u64, u64),
    records: u64,
    left_alone: u64,
    failed: u64,
}

/// What is said of it, as it comes to be known.
struct Report {
    output: Output,
    rows: Rows,
    sum: Sum,
    dry_run: bool,
}

pub fn run(args: &CompactArgs) -> Result<(), Failure> {
    let env = Env::real();
    let dir = DataDir::open(&env, &args.dir.dir, args.dir.meta_db.meta_db.as_deref())
        .map_err(|error| offline::refused(&error))?;
    let mut report =
        Report { output: Output::new(args.json.json), rows: rows(), sum: Sum::default(), dry_run: args.dry_run };
    let result = match dir.origin() {
        Origin::Kafka => kafka::run(args, &env, dir, &mut report)?,
        Origin::Doze => {
            let job = check(args, &dir)?;
            match args.dry_run {
                true => estimate(&job, &dir, &mut report),
                false => {
                    drop(dir);
                    compact(&env, &job, args, &mut report)
                }
            }
        }
    };
    let finished = report.finish();
    result?;
    finished
}

/// Refuses what cannot be compacted.
fn check(args: &CompactArgs, dir: &DataDir) -> Result<Job, Failure> {
    let shown = format::path(dir.path());
    if args.metadata_log.is_some() || !args.configs.is_empty() {
        return Err(Failure::could_not_run(format!(
            "--metadata-log and --config are for log directories of Apache Kafka, and {shown} is doze's: its catalog has the \
             configs of topics"
        )));
    }
    let catalog = match dir.catalog_state() {
        CatalogState::Open(catalog) => catalog,
        CatalogState::Missing => {
            return Err(Failure::could_not_run(format!(
                "the catalog {} is missing, so nothing says which topics are compacted; put it back, or run 'doze recover {shown}'",
                format::path(dir.catalog_path())
            )));
        }
        CatalogState::Damaged { reason } | CatalogState::Unreadable { reason } => {
            return Err(Failure::could_not_run(format!(
                "the catalog {} cannot be read ({reason}); run 'doze recover {shown}' first",
                format::path(dir.catalog_path())
            )));
        }
        CatalogState::None => return Err(Failure::could_not_run(format!("{shown} has no catalog"))),
    };
    match dir.stop() {
        Stop::Clean { unchecked } if unchecked.is_empty() => {}
        Stop::Clean { unchecked } => {
            let mut names: Vec<&str> = unchecked.iter().map(String::as_str).collect();
            names.sort_unstable();
            return Err(Failure::could_not_run(format!(
                "{shown}: {} was not checked since an unclean stop; run 'doze recover {shown}' first",
                names.join(", ")
            )));
        }
        Stop::Unclean | Stop::Nonsense => {
            return Err(Failure::could_not_run(format!(
                "{shown} was not stopped cleanly; start doze on it once and stop it, or run 'doze recover {shown}', then compact"
            )));
        }
    }
    let all = catalog.topics();
    let mut topics: Vec<Arc<Topic>> = Vec::new();
    for name in &args.topics {
        match all.by_name(name) {
            Some(topic) if !topics.iter().any(|other| other.id == topic.id) => topics.push(topic.clone()),
            Some(_) => {}
            None => return Err(Failure::could_not_run(format!("there is no topic {name:?} in {shown}"))),
        }
    }
    if args.topics.is_empty() {
        topics = all.iter().cloned().collect();
    }
    let mut only = None;
    if let Some((topic, partition)) = dir.only() {
        topics.retain(|other| &*other.name == topic);
        only = Some(partition);
    }
    let config = offline::broker_config(&args.overrides)?;
    Ok(Job {
        dir: dir.path().to_owned(),
        catalog: dir.catalog_path().to_owned(),
        topics,
        only,
        log_config: compact::eager(offline_log_config(&config, Some(catalog))),
        request: Request { roll: args.roll, retention: args.retention, ..Request::default() },
    })
}

impl Job {
    /// The partitions that are asked for and that something can be done to.
    fn partitions<'a>(&'a self, is_compacted: impl Fn(&Topic) -> bool + 'a) -> impl Iterator<Item = (&'a Topic, i32)> {
        let wanted = move |topic: &&Arc<Topic>| self.request.retention || is_compacted(topic);
        self.topics.iter().filter(wanted).flat_map(|topic| {
            let numbers = (0..topic.partitions).filter(|n| self.only.is_none_or(|only| only == *n));
            numbers.map(|n| (&**topic, n))
        })
    }
}

fn estimate(job: &Job, dir: &DataDir, report: &mut Report) -> Result<(), Failure> {
    let configs = dir.catalog().map(Catalog::configs);
    let config = |topic: &Topic| {
        let own = configs.as_ref().and_then(|configs| configs.get(ResourceType::Topic, &topic.name));
        (job.log_config)(own.map_or(&ConfigMap::new(), |own| own))
    };
    for (topic, partition) in job.partitions(|topic| config(topic).compact) {
        let done = compact::estimate(dir, &config(topic), topic, partition, &job.request);
        let Some(done) = done.transpose() else { continue };
        report.show(&topic.name, partition, Outcome::of(done))?;
    }
    let size = dir.env().fs.metadata(dir.catalog_path()).map(|metadata| metadata.len).unwrap_or(0);
    report.show_catalog(&job.catalog, (size, None))
}

fn compact(env: &Env, job: &Job, args: &CompactArgs, report: &mut Report) -> Result<(), Failure> {
    let config = StoreConfig {
        data_dir: job.dir.clone(),
        meta_db: args.dir.meta_db.meta_db.clone(),
        log_config: job.log_config.clone(),
    };
    let store = Store::open(env.clone(), config).map_err(|error| {
        let code = if matches!(error, OpenStoreError::InUse { .. }) { Code::InUse } else { Code::CouldNotRun };
        Failure::of(code, &error)
    })?;
    let configs = store.catalog().configs();
    let is_compacted = |topic: &Topic| {
        let own = configs.get(ResourceType::Topic, &topic.name);
        (job.log_config)(own.map_or(&ConfigMap::new(), |own| own)).compact
    };
    let is_used = |(topic, partition): &(&Topic, i32)| compact::is_used(env, &job.dir, topic, *partition);
    let wanted: Vec<(&Topic, i32)> = job.partitions(is_compacted).filter(is_used).collect();
    let size = |topic: &Topic, partition| store.partition(topic.id, partition).map_or(0, |log| log.size_bytes());
    let total = wanted.iter().map(|(topic, partition)| size(topic, *partition)).sum();
    let bar = Progress::bytes("compacting", total);
    let mut shown = Ok(());
    for (topic, partition) in wanted {
        let bytes = size(topic, partition);
        let done = compact::compact(&store, topic, partition, &job.request);
        bar.add(bytes);
        shown = report.show(&topic.name, partition, Outcome::of(done));
        if shown.is_err() {
            break;
        }
    }
    bar.finish();
    // Whoever reads the output may be gone: the directory is closed as it should be all the same.
    store.close().map_err(|error| Failure::of(Code::CouldNotRun, &error))?;
    shown?;
    let size = compact_catalog(env, job)?;
    report.show_catalog(&job.catalog, size)
}

/// Has the catalog give back what it does not use. Answers its size before and after.
fn compact_catalog(env: &Env, job: &Job) -> Result<(u64, Option<u64>), Failure> {
    let failed = |error: &dyn std::error::Error| Failure::of(Code::CouldNotRun, error);
    let size = || env.fs.metadata(&job.catalog).map(|metadata| metadata.len).map_err(|error| failed(&error));
    let _held = lock_data_dir(env, &job.dir).map_err(|error| match error {
        OpenStoreError::InUse { .. } => Failure::of(Code::InUse, &error),
        error => failed(&error),
    })?;
    let _outside = match job.catalog.parent() == Some(&job.dir) {
        true => None,
        false => Some(env.fs.lock(&catalog::lock_file(&job.catalog)).map_err(|error| failed(&error))?),
    };
    let before = size()?;
    let mut open = Catalog::open(env, &job.catalog).map_err(|error| failed(&error))?;
    // Each pass moves what is at the end of the file into room before it, until nothing moves.
    while let Some(result) = open.compact() {
        if !result.map_err(|error| failed(&error))? {
            break;
        }
    }
    open.close().map_err(|error| failed(&error))?;
    Ok((before, Some(size()?)))
}

fn rows() -> Rows {
    Rows::new(&[
        text("partition"),
        number("bytes before"),
        number("bytes after"),
        number("records removed"),
        number("segments before"),
        number("segments after"),
        number("log start"),
        text("note"),
    ])
}

impl Report {
    fn show(&mut self, topic: &str, partition: i32, outcome: Outcome) -> Result<(), Failure> {
        let (done, left_alone, error) = match outcome {
            Outcome::Done(done) => (done, None, None),
            Outcome::LeftAlone(why) => (Compacted::default(), Some(why), None),
            Outcome::Failed(why) => (Compacted::default(), None, Some(why)),
        };
        let sum = &mut self.sum;
        sum.partitions += u64::from(left_alone.is_none());
        sum.left_alone += u64::from(left_alone.is_some());
        sum.failed += u64::from(error.is_some());
        sum.bytes.0 += done.bytes.0;
        sum.bytes.1 += done.bytes.1;
        sum.records += done.records_cleaned;
        if self.output.is_json() {
            return self.output.object(&json!({
                "type": "compact",
                "topic": topic,
                "partition": partition,
                "dry_run": self.dry_run,
                "compacted": done.is_compacted,
                "rolled": done.rolled,
                "bytes_before": done.bytes.0,
                "bytes_after": done.bytes.1,
                "segments_before": done.segments.map(|segments| segments.0),
                "segments_after": done.segments.map(|segments| segments.1),
                "records_removed": done.records_cleaned,
                "log_start_before": done.log_start.0,
                "log_start_after": done.log_start.1,
                "at_least": done.at_least,
                "old_entries_held": done.old_entries_held,
                "unreadable_batches": done.unreadable,
                "left_alone": left_alone,
                "error": error,
            }));
        }
        let segments = |of: fn((usize, usize)) -> usize| done.segments.map_or("-".into(), |both| of(both).to_string());
        let note = error.or(left_alone.map(|why| format!("left alone: {why}"))).unwrap_or_else(|| notes(&done));
        self.rows.push(vec![
            format!("{topic}-{partition}"),
            format::bytes(done.bytes.0),
            format::bytes(done.bytes.1),
            done.records_cleaned.to_string(),
            segments(|both| both.0),
            segments(|both| both.1),
            done.log_start.1.to_string(),
            note,
        ]);
        Ok(())
    }

    fn show_catalog(&mut self, path: &Path, size: (u64, Option<u64>)) -> Result<(), Failure> {
        if self.output.is_json() {
            return self.output.object(&json!({
                "type": "compact-catalog",
                "file": path.to_string_lossy(),
                "dry_run": self.dry_run,
                "bytes_before": size.0,
                "bytes_after": size.1,
            }));
        }
        let (path, before) = (format::path(path), format::bytes(size.0));
        self.output.line(&match size.1 {
            None => {
                format!("the catalog {path} has {before}; what it would give back is only known when it is compacted")
            }
            Some(after) => format!("the catalog {path}: {before} before, {} after", format::bytes(after)),
        })
    }

    /// Says what it all came to. A partition that failed is a failure.
    fn finish(mut self) -> Result<(), Failure> {
        let sum = &self.sum;
        if self.output.is_json() {
            self.output.object(&json!({
                "type": "compact-summary",
                "dry_run": self.dry_run,
                "partitions": sum.partitions,
                "bytes_before": sum.bytes.0,
                "bytes_after": sum.bytes.1,
                "records_removed": sum.records,
                "left_alone": sum.left_alone,
                "failed": sum.failed,
            }))?;
        } else {
            if !self.rows.is_empty() {
                self.output.rows(&self.rows)?;
            }
            self.output.line(&summary(self.dry_run, sum))?;
        }
        self.output.finish()?;
        match self.sum.failed {
            0 => Ok(()),
            1 => Err(Failure::could_not_run("one partition could not be compacted")),
            n => Err(Failure::could_not_run(format!("{n} partitions could not be compacted"))),
        }
    }
}

/// What else is to be said of what was done.
fn notes(done: &Compacted) -> String {
    let mut notes = Vec::new();
    if done.at_least {
        notes.push("at least".to_owned());
    }
    if done.old_entries_held > 0 {
        let sets = ("message set of an old version stays", "message sets of old versions stay");
        notes.push(format!("{} with records that could go", format::count(done.old_entries_held, sets.0, sets.1)));
    }
    if done.unreadable > 0 {
        notes.push(match done.unreadable {
            1 => "1 batch that cannot be read stays as it is".to_owned(),
            n => format!("{n} batches that cannot be read stay as they are"),
        });
    }
    notes.join("; ")
}

fn summary(dry_run: bool, sum: &Sum) -> String {
    let won = format::bytes(sum.bytes.0.saturating_sub(sum.bytes.1));
    let records = format::count(sum.records, "record", "records");
    let partitions = format::count(sum.partitions, "partition", "partitions");
    let alone = match sum.left_alone {
        0 => String::new(),
        n => format!("; {} left alone", format::count(n, "partition is", "partitions are")),
    };
    match (sum.partitions, dry_run) {
        (0, _) => format!("no topic that was asked for is compacted{alone}"),
        (_, true) => format!("{won} and {records} would go, in {partitions}{alone}; nothing was written"),
        (_, false) => format!("{won} and {records} are gone, in {partitions}{alone}"),
    }
}
