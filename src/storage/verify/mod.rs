//! Looks at a stopped data directory and says what is damaged. Never writes.
//!
//! [`verify`] takes a [`DataDir`], doze's or Apache Kafka's. It looks at the directory as a whole first ([`directory`]: the mark
//! of a clean stop, the catalog and its pages, the catalog against the folders), then at each partition ([`partition`]: what is
//! in its folder, [`layout`]; its small files), and at each of its segments ([`segment`]). Segments are gone over on as many
//! threads as there are jobs, each by itself; what one has to say of the next (producers, open transactions, offsets) is put
//! together in the order of the log ([`state`]).
//!
//! What a start of the broker would do by itself is told by the code that does it: [`crate::storage::log`]'s checker goes over
//! the batches, and its segments say whether they take their index files.
//!
//! Memory does not grow with the size of logs or batches: a read buffer of 1 MiB a job, at level deep a batch of up
//! to 16 MiB in all with its codec's window, and what is known of each producer.
//!
//! [`Finding`] is one thing that is not as it should be, [`Report`] all of them with what was looked at and what was not.

mod damage;
mod directory;
mod epochs;
mod finding;
mod indexes;
mod layout;
mod notes;
mod partition;
mod producers;
mod progress;
mod records;
mod report;
mod segment;
mod small_files;
mod state;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

pub use finding::{Consequence, Finding, Kind, Repair};
pub use progress::Progress;
pub use report::{Level, PartitionReport, Report, Totals, Unchecked};

use crate::storage::offline::DataDir;
use crate::storage::store::parallel_at_most;
use directory::Directory;
use partition::Partition;

/// Which partitions to look at, by topic and number.
pub type Wanted = Arc<dyn Fn(&str, i32) -> bool + Send + Sync>;

/// What to look at, and how.
#[derive(Clone)]
pub struct Options {
    pub level: Level,
    /// How many segments are gone over at once, at least 1.
    pub jobs: usize,
    /// Which partitions; `None` for all. Where the folder of one was named it is only that one in any case.
    pub wanted: Option<Wanted>,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("level", &self.level).field("jobs", &self.jobs).finish_non_exhaustive()
    }
}

/// The most findings that are kept of all partitions. What is beyond is counted.
const MOST_FINDINGS: usize = 20_000;

/// What a partition that was gone over comes to.
type Done = (PartitionReport, Vec<Finding>, Vec<Unchecked>);

/// Looks at a directory. `progress` tells others how far it has come, and lets them stop it.
pub fn verify(dir: &DataDir, options: &Options, progress: &Arc<Progress>) -> Report {
    let is_wanted = |topic: &str, partition: i32| {
        dir.only().is_none_or(|only| only == (topic, partition))
            && options.wanted.as_ref().is_none_or(|wanted| wanted(topic, partition))
    };
    let mut directory = Directory::new(dir, options.level);
    directory.check(&is_wanted);
    say_what_is_not_looked_at(&mut directory, options.level);
    let wanted = dir.partitions().iter().filter(|folder| is_wanted(&folder.topic, folder.partition));
    let facts: Vec<_> = wanted.map(|folder| directory.facts(folder)).collect();
    let large = Arc::new(Mutex::new(()));
    let helpers = options.jobs.max(1) - 1;
    let workers = &*dir.env().workers;
    let looking = {
        let (facts, env, progress) =
            (Mutex::new(facts.into_iter().map(Some).collect::<Vec<_>>()), dir.env().clone(), progress.clone());
        let count = facts.lock().len();
        parallel_at_most(workers, helpers, count, move |at| {
            let facts = facts.lock()[at].take().expect("each is taken once");
            Partition::look(facts, &env, &progress, &large)
        })
    };
    progress.set_total(looking.iter().map(Partition::bytes).sum());
    let partitions = Arc::new(looking);
    let units: Vec<(usize, usize)> = partitions
        .iter()
        .enumerate()
        .flat_map(|(at, partition)| (0..partition.tasks.len().max(1)).map(move |segment| (at, segment)))
        .collect();
    let done = {
        let (partitions, progress, units) = (partitions.clone(), progress.clone(), units);
        let kept = AtomicUsize::new(0);
        let keep = move |mut done: Done| {
            let before = kept.fetch_add(done.1.len(), Ordering::Relaxed);
            let room = MOST_FINDINGS.saturating_sub(before);
            let beyond = done.1.iter().skip(room).filter(|finding| finding.is_damage()).count();
            done.1.truncate(room);
            done.0.more_findings += beyond as u64;
            done
        };
        parallel_at_most(workers, helpers, units.len(), move |unit| {
            let (at, segment) = units[unit];
            if progress.is_cancelled() {
                return None;
            }
            let done = match partitions[at].tasks.is_empty() {
                true => Some(partitions[at].finish_empty()),
                false => partitions[at].run(segment),
            };
            done.map(&keep)
        })
    };
    let mut report = Report {
        dir: dir.path().to_owned(),
        origin: dir.origin(),
        is_lone: dir.is_lone(),
        level: options.level,
        stop: dir.stop().clone(),
        findings: directory.findings,
        partitions: Vec::new(),
        unchecked: directory.unchecked,
        totals: Totals::default(),
        cancelled: progress.is_cancelled(),
    };
    // A partition is reported by whichever of its segments came last.
    let mut done: Vec<_> = done.into_iter().flatten().collect();
    done.sort_by(|a, b| (&a.0.topic, a.0.partition).cmp(&(&b.0.topic, b.0.partition)));
    for (mut partition, findings, unchecked) in done {
        let start = report.findings.len();
        report.findings.extend(findings);
        partition.findings = start..report.findings.len();
        report.unchecked.extend(unchecked);
        report.totals.add(&partition.totals);
        report.partitions.push(partition);
    }
    if report.cancelled {
        let left = partitions.len() - report.partitions.len();
        report.findings.extend(partitions.iter().flat_map(Partition::abandon));
        let what = format!("{left} of {} partitions: it was stopped before the end", partitions.len());
        report.unchecked.push(Unchecked { topic: None, partition: None, file: None, what });
    }
    report
}

fn say_what_is_not_looked_at(directory: &mut Directory<'_>, level: Level) {
    match level {
        Level::Quick => directory.skip("checksums, and batches before the last index entry of each segment (--quick)"),
        Level::Default => directory.skip("the records inside of batches (--deep looks at them)"),
        Level::Deep => {}
    }
}
