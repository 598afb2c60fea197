//! `doze verify`: what is still good in a stopped directory, and what is not. Never writes.

mod interrupt;
mod report;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use clap::Args;
use doze::storage::offline::DataDir;
use doze::storage::verify::{self, Level, Options, Progress, Report};
use doze::sys::Env;

use crate::cli;
use crate::exit::Failure;
use crate::offline::{self, DirArgs, FilterArgs, JsonArgs};
use crate::output::Output;
use crate::progress;

/// Check a stopped data directory, and say what is damaged
///
/// Reads every byte of every log against its checksum, and holds offsets, leader epochs, producers, transactions, indexes,
/// snapshots, checkpoints and the catalog against each other. Says by topic, partition and offset range what is lost, what only has
/// to be made anew, what the next start puts right by itself, and what was not checked. Nothing is ever written.
#[derive(Args, Debug)]
#[command(after_long_help = cli::help_of(&cli::sections("verify")))]
pub struct VerifyArgs {
    #[command(flatten)]
    pub dir: DirArgs,

    /// Only names, sizes, the first and last batches, the ends of indexes, and the catalog: what takes no time
    #[arg(long, conflicts_with = "deep")]
    pub quick: bool,

    /// Also every record through its codec: counts, offsets, timestamps, lengths, and keys where the topic is compacted
    #[arg(long)]
    pub deep: bool,

    #[command(flatten)]
    pub filter: FilterArgs,

    /// How many segments are read at once [default: one a core]
    #[arg(short, long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,

    #[command(flatten)]
    pub json: JsonArgs,
}

pub fn sections() -> Vec<(&'static str, String)> {
    let examples = "  doze verify                             check ./data
  doze verify /var/lib/doze --quick       a first look
  doze verify /var/lib/kafka --topic orders --deep
                                          one topic of an Apache Kafka log directory, every record
  doze verify /var/lib/doze/orders-3      the folder of one partition
  doze verify --json | jq 'select(.type == \"finding\" and .consequence == \"lost\")'
                                          the offsets that are lost";
    vec![("Examples", examples.to_owned())]
}

pub fn run(args: &VerifyArgs) -> Result<(), Failure> {
    let dir = DataDir::open(&Env::real(), &args.dir.dir, args.dir.meta_db.meta_db.as_deref());
    let dir = dir.map_err(|error| offline::refused(&error))?;
    check_filter(args, &dir)?;
    let level = match (args.quick, args.deep) {
        (true, _) => Level::Quick,
        (_, true) => Level::Deep,
        _ => Level::Default,
    };
    let filter = args.filter.clone();
    let options = Options {
        level,
        jobs: args.jobs.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from),
        wanted: Some(Arc::new(move |topic, partition| filter.takes(topic, partition))),
    };
    let progress = Progress::new();
    interrupt::cancels(progress.clone());
    let report = look(&dir, &options, &progress);
    let mut out = Output::new(args.json.json);
    report::print(&mut out, &report, &args.dir.dir)?;
    out.finish()?;
    if report.is_damaged() {
        return Err(Failure::damage(report::verdict(&report)));
    }
    if report.cancelled {
        return Err(Failure::could_not_run("stopped before the end; what was read until then is sound"));
    }
    Ok(())
}

/// A topic that is not there is a mistake, and not sound.
fn check_filter(args: &VerifyArgs, dir: &DataDir) -> Result<(), Failure> {
    for topic in &args.filter.topics {
        let in_catalog = dir.catalog().is_some_and(|catalog| catalog.topics().by_name(topic).is_some());
        if !in_catalog && !dir.partitions().iter().any(|folder| folder.topic == *topic) {
            return Err(Failure::could_not_run(format!(
                "--topic: there is no topic {topic:?} in {}",
                dir.path().display()
            )));
        }
    }
    Ok(())
}

/// Verifies, with a bar that follows it.
fn look(dir: &DataDir, options: &Options, progress: &Arc<Progress>) -> Report {
    thread::scope(|scope| {
        let looking = scope.spawn(|| verify::verify(dir, options, progress));
        let mut bar = None;
        let mut told = 0;
        while !looking.is_finished() {
            thread::park_timeout(Duration::from_millis(20));
            if progress.total() > 0 {
                let bar = bar.get_or_insert_with(|| progress::Progress::bytes("verifying", progress.total()));
                let done = progress.done();
                bar.add(done - told);
                told = done;
            }
        }
        if let Some(bar) = bar {
            bar.finish();
        }
        looking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
