//! `doze compact`: the cleaner by hand, over a directory that no broker is running on.

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use doze::broker::offline_log_config;
use doze::storage::catalog::{self, Catalog, ConfigMap, ResourceType, Topic};
use doze::storage::compact::{self, Compacted, Request};
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
/// not use. The directory has to be one of doze's, stopped cleanly, and is left so.
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

    /// Seal the active segments first, so that all records are cleaned
    #[arg(long)]
    pub roll: bool,

    /// Also remove the segments that are too old or too many by retention.ms and retention.bytes, of all topics
    #[arg(long)]
    pub retention: bool,

    /// A broker config as doze serve is given it, for topics that have none of their own: log.retention.ms=60000
    #[arg(long = "override", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,

    #[command(flatten)]
    pub json: JsonArgs,
}

pub fn sections() -> Vec<(&'static str, String)> {
    let examples = "  doze compact --dry-run /var/lib/doze
  doze compact /var/lib/doze
  doze compact --roll /var/lib/doze users accounts
  doze compact --retention --override log.retention.hours=24 /var/lib/doze";
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

/// What it all came to.
#[derive(Default)]
struct Sum {
    partitions: u64,
    bytes: (u64, u64),
    records: u64,
    failed: u64,
}

pub fn run(args: &CompactArgs) -> Result<(), Failure> {
    let env = Env::real();
    let dir = DataDir::open(&env, &args.dir.dir, args.dir.meta_db.meta_db.as_deref())
        .map_err(|error| offline::refused(&error))?;
    let job = check(args, &dir)?;
    let mut output = Output::new(args.json.json);
    let mut rows = rows();
    let mut sum = Sum::default();
    let result = if args.dry_run {
        estimate(&job, &dir, &mut output, &mut rows, &mut sum)
    } else {
        drop(dir);
        compact(&env, &job, args, &mut output, &mut rows, &mut sum)
    };
    if !output.is_json() {
        if !rows.is_empty() {
            output.rows(&rows)?;
        }
        output.line(&summary(args.dry_run, &sum))?;
    } else {
        output.object(&json!({
            "type": "compact-summary",
            "dry_run": args.dry_run,
            "partitions": sum.partitions,
            "bytes_before": sum.bytes.0,
            "bytes_after": sum.bytes.1,
            "records_removed": sum.records,
            "failed": sum.failed,
        }))?;
    }
    output.finish()?;
    result?;
    match sum.failed {
        0 => Ok(()),
        1 => Err(Failure::could_not_run("one partition could not be compacted")),
        n => Err(Failure::could_not_run(format!("{n} partitions could not be compacted"))),
    }
}

/// Refuses what cannot be compacted.
fn check(args: &CompactArgs, dir: &DataDir) -> Result<Job, Failure> {
    let shown = format::path(dir.path());
    if dir.origin() == Origin::Kafka {
        return Err(Failure::could_not_run(format!(
            "{shown} is a log directory of Apache Kafka, and doze does not compact those: its cleaner goes by checkpoints of its \
             own; it compacts them when it runs"
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

fn estimate(job: &Job, dir: &DataDir, output: &mut Output, rows: &mut Rows, sum: &mut Sum) -> Result<(), Failure> {
    let configs = dir.catalog().map(Catalog::configs);
    let config = |topic: &Topic| {
        let own = configs.as_ref().and_then(|configs| configs.get(ResourceType::Topic, &topic.name));
        (job.log_config)(own.map_or(&ConfigMap::new(), |own| own))
    };
    for (topic, partition) in job.partitions(|topic| config(topic).compact) {
        let done = compact::estimate(dir, &config(topic), topic, partition, &job.request);
        let Some(done) = done.transpose() else { continue };
        show(output, rows, sum, true, topic, partition, done.map_err(|error| with_causes(&error)))?;
    }
    let size = dir.env().fs.metadata(dir.catalog_path()).map(|metadata| metadata.len).unwrap_or(0);
    show_catalog(output, &job.catalog, true, (size, None))
}

fn compact(
    env: &Env,
    job: &Job,
    args: &CompactArgs,
    output: &mut Output,
    rows: &mut Rows,
    sum: &mut Sum,
) -> Result<(), Failure> {
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
        shown = show(output, rows, sum, false, topic, partition, done.map_err(|error| with_causes(&error)));
        if shown.is_err() {
            break;
        }
    }
    bar.finish();
    // Whoever reads the output may be gone: the directory is closed as it should be all the same.
    store.close().map_err(|error| Failure::of(Code::CouldNotRun, &error))?;
    shown?;
    show_catalog(output, &job.catalog, false, compact_catalog(env, job)?)
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

fn show(
    output: &mut Output,
    rows: &mut Rows,
    sum: &mut Sum,
    dry_run: bool,
    topic: &Topic,
    partition: i32,
    done: Result<Compacted, String>,
) -> Result<(), Failure> {
    let (done, error) = match done {
        Ok(done) => (done, None),
        Err(error) => (Compacted::default(), Some(error)),
    };
    sum.partitions += 1;
    sum.failed += u64::from(error.is_some());
    sum.bytes.0 += done.bytes.0;
    sum.bytes.1 += done.bytes.1;
    sum.records += done.records_cleaned;
    if output.is_json() {
        return output.object(&json!({
            "type": "compact",
            "topic": &*topic.name,
            "partition": partition,
            "dry_run": dry_run,
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
            "error": error,
        }));
    }
    let segments = |of: fn((usize, usize)) -> usize| done.segments.map_or("-".into(), |both| of(both).to_string());
    let note = error.unwrap_or_else(|| if done.at_least { "at least".into() } else { String::new() });
    rows.push(vec![
        format!("{}-{partition}", topic.name),
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

fn show_catalog(output: &mut Output, path: &Path, dry_run: bool, size: (u64, Option<u64>)) -> Result<(), Failure> {
    if output.is_json() {
        return output.object(&json!({
            "type": "compact-catalog",
            "file": path.to_string_lossy(),
            "dry_run": dry_run,
            "bytes_before": size.0,
            "bytes_after": size.1,
        }));
    }
    let (path, before) = (format::path(path), format::bytes(size.0));
    output.line(&match size.1 {
        None => format!("the catalog {path} has {before}; what it would give back is only known when it is compacted"),
        Some(after) => format!("the catalog {path}: {before} before, {} after", format::bytes(after)),
    })
}

fn summary(dry_run: bool, sum: &Sum) -> String {
    let won = format::bytes(sum.bytes.0.saturating_sub(sum.bytes.1));
    let records = sum.records;
    match (sum.partitions, dry_run) {
        (0, _) => "no topic that was asked for is compacted".to_owned(),
        (n, true) => format!("{won} and {records} records would go, in {n} partitions; nothing was written"),
        (n, false) => format!("{won} and {records} records are gone, in {n} partitions"),
    }
}
