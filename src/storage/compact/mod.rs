//! Cleaning the logs of a stopped data directory by hand: what `doze compact` does.
//!
//! [`compact`] cleans one log with the cleaner that runs in the broker, whatever share of it is dirty. `min.compaction.lag.ms` is
//! kept to, since consumers rely on it. [`estimate`] says what that would do and writes nothing, over a file system that takes no
//! writes ([`frozen`]).
//!
//! A power cut at any moment leaves what one leaves while the broker cleans: a directory that counts as stopped uncleanly, with every
//! log as it was or cleaned.
//!
//! [`KafkaCompaction`] does the same to the logs of a stopped Apache Kafka node.

mod frozen;
mod kafka;
mod like;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use crate::protocol::Uuid;
use crate::storage::catalog::{CatalogError, Mutation, Topic};
use crate::storage::cleaner::{CleanError, CleanerSettings, PassStats, clean_now, estimate as estimate_cleaning};
use crate::storage::log::{
    AppendError, CloseError, FileError, LogConfig, OpenError, PartitionLog, ReadError, TruncateError,
};
use crate::storage::names;
use crate::storage::offline::DataDir;
use crate::storage::store::{DirError, LogConfigOf, PartitionError, Store};
use crate::sys::Env;

pub use frozen::frozen;
pub use kafka::{KafkaCompaction, estimate_kafka, left_alone};
pub use like::like_neighbours;

/// What is to be done to a log.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Request {
    /// The active segment is sealed first, so that it is cleaned as well.
    pub roll: bool,
    /// What retention would remove goes as well.
    pub retention: bool,
    pub settings: CleanerSettings,
}

/// What was done to a log, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// `cleanup.policy` has `compact`; else only retention concerns it.
    pub is_compacted: bool,
    pub rolled: bool,
    /// Bytes of all segments, before and after.
    pub bytes: (u64, u64),
    /// How many segments, before and after. `None` where it is only estimated.
    pub segments: Option<(usize, usize)>,
    /// Records that the cleaner removed.
    pub records_cleaned: u64,
    /// Where the log starts, before and after.
    pub log_start: (i64, i64),
    /// It would do more than this says.
    pub at_least: bool,
    /// Entries of message sets of versions 0 and 1 that stay with records that were superseded: they are never written anew.
    pub old_entries_held: u64,
    /// Batches that stay as they are because they cannot be read.
    pub unreadable: u64,
}

/// Why a log was not compacted, or not to the end.
#[derive(Debug, thiserror::Error)]
pub enum CompactError {
    #[error(transparent)]
    Partition(#[from] PartitionError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the active segment cannot be sealed: {0}")]
    Seal(AppendError),
    #[error(transparent)]
    Clean(#[from] CleanError),
    #[error("old segments cannot be told: {0}")]
    Read(#[from] ReadError),
    #[error("the new start of the log cannot be noted: {0}")]
    Catalog(#[from] CatalogError),
    #[error("old segments cannot be removed: {0}")]
    Truncate(#[from] TruncateError),
    #[error("its high watermark is not known: replication-offset-checkpoint does not have it")]
    NoHighWatermark,
    /// Only of Apache Kafka's, of which nothing is changed that was not asked for.
    #[error(
        "it is not as a clean stop leaves it; look at it with 'doze verify' and repair it with 'doze recover' first ({0})"
    )]
    Repair(#[source] OpenError),
    /// The same.
    #[error("the end of it is damaged; look at it with 'doze verify' and repair it with 'doze recover' first")]
    Damaged,
    #[error("what was done cannot be noted: {0}")]
    Checkpoint(#[from] DirError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("it cannot be closed: {0}")]
    Close(#[source] CloseError),
}

/// What topics' configs mean to their logs here: however little is dirty, it is cleaned.
pub fn eager(log_config: LogConfigOf) -> LogConfigOf {
    Arc::new(move |configs| eager_one(log_config(configs)))
}

fn eager_one(config: LogConfig) -> LogConfig {
    LogConfig { min_cleanable_dirty_ratio: -1.0, ..config }
}

/// Compacts one log of an open directory, whose configs are [`eager`] ones.
pub fn compact(store: &Store, topic: &Topic, partition: i32, request: &Request) -> Result<Compacted, CompactError> {
    let log = store.partition(topic.id, partition)?;
    let is_compacted = store.log_config(&topic.name).compact;
    let mut done = Compacted::of(&log, is_compacted);
    if !is_compacted && !request.retention {
        return Ok(done);
    }
    if request.roll {
        done.rolled = log.seal().map_err(CompactError::Seal)?;
    }
    if is_compacted {
        clean_now(&log, &request.settings)?.iter().for_each(|stats| done.take(stats));
    }
    if request.retention {
        retain(store, topic.id, &log)?;
    }
    done.finish(&log);
    Ok(done)
}

/// Removes the segments that are too old or too many. The new start is durable before any goes.
fn retain(store: &Store, topic_id: Uuid, log: &PartitionLog) -> Result<(), CompactError> {
    let Some(to) = log.retention_start(store.env().clock.now_ms())? else { return Ok(()) };
    let raise = Mutation::RaiseLogStart { topic_id, partition: log.partition(), offset: to };
    store.catalog().commit_blocking(vec![raise])?;
    log.advance_log_start(to)?;
    Ok(())
}

/// What [`compact`] would do to a log of a directory that was stopped cleanly, of which `log_config` has [`eager`] configs.
/// `None` for a partition that was never used. Writes nothing.
pub fn estimate(
    dir: &DataDir,
    log_config: &LogConfig,
    topic: &Topic,
    partition: i32,
    request: &Request,
) -> Result<Option<Compacted>, CompactError> {
    if !is_used(dir.env(), dir.path(), topic, partition) {
        return Ok(None);
    }
    let path = dir.path().join(names::partition_dir(&topic.name, partition));
    let log_start = match dir.catalog() {
        Some(catalog) => catalog.log_start(topic.id, partition)?,
        None => 0,
    };
    let env = frozen(dir.env());
    let log = PartitionLog::open(env.clone(), path, log_config.clone(), true, log_start)?;
    let mut done = Compacted { segments: None, ..Compacted::of(&log, log_config.compact) };
    if log_config.compact
        && let Some((stats, at_least)) = estimate_cleaning(&log, &request.settings, request.roll)?
    {
        done.take_estimate(&stats, at_least);
    }
    if request.retention
        && let Some(to) = log.retention_start(env.clock.now_ms())?
    {
        done.take_retention(&log, to);
    }
    Ok(Some(done))
}

impl Compacted {
    /// Nothing was done to the log yet.
    fn of(log: &PartitionLog, is_compacted: bool) -> Compacted {
        let start = first_offset(log);
        Compacted {
            is_compacted,
            bytes: (log.size_bytes(), log.size_bytes()),
            segments: Some((log.segment_count(), log.segment_count())),
            log_start: (start, start),
            ..Compacted::default()
        }
    }

    /// A pass over the log was made.
    fn take(&mut self, stats: &PassStats) {
        self.records_cleaned += stats.records_read - stats.records_kept;
        (self.old_entries_held, self.unreadable) = (stats.old_entries_held, stats.unreadable);
    }

    /// This is what a pass would do.
    fn take_estimate(&mut self, stats: &PassStats, at_least: bool) {
        self.take(stats);
        self.at_least = at_least;
        self.bytes.1 -= stats.read_bytes.saturating_sub(stats.kept_bytes);
    }

    /// Retention would move the start of the log to `to`.
    fn take_retention(&mut self, log: &PartitionLog, to: i64) {
        self.log_start.1 = to;
        // What goes whole is not there to be cleaned; where both are asked for this says the larger of the two.
        self.bytes.1 = self.bytes.1.min(self.bytes.0 - log.size_below(to));
    }

    /// All was done to the log.
    fn finish(&mut self, log: &PartitionLog) {
        self.bytes.1 = log.size_bytes();
        self.segments = self.segments.map(|(before, _)| (before, log.segment_count()));
        self.log_start.1 = first_offset(log);
    }
}

/// Where a log starts: where it was said to, or its first segment does.
fn first_offset(log: &PartitionLog) -> i64 {
    let first = log.segment_bases().first().copied();
    log.offsets().start.max(first.unwrap_or(0))
}

/// Whether a partition has ever had a log. Opening one that has not would make the first segment.
pub fn is_used(env: &Env, data_dir: &Path, topic: &Topic, partition: i32) -> bool {
    has_log(env, &data_dir.join(names::partition_dir(&topic.name, partition))).unwrap_or(false)
}

/// Whether a partition's folder has a log.
fn has_log(env: &Env, folder: &Path) -> Result<bool, FileError> {
    let entries = env.fs.list(folder).map_err(FileError::of("list", folder))?;
    Ok(entries.iter().any(|entry| {
        matches!(
            names::parse_partition_file(&entry.name),
            names::PartitionFile::Segment { kind: names::FileKind::Log, .. }
        )
    }))
}
