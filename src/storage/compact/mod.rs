//! Cleaning the logs of a stopped data directory by hand: what `doze compact` does.
//!
//! [`compact`] cleans one log with the cleaner that runs in the broker, whatever share of it is dirty. `min.compaction.lag.ms` is
//! kept to, since consumers rely on it. [`estimate`] says what that would do and writes nothing, over a file system that takes no
//! writes ([`frozen`]).
//!
//! A power cut at any moment leaves what one leaves while the broker cleans: a directory that counts as stopped uncleanly, with every
//! log as it was or cleaned.

mod frozen;

use std::path::Path;
use std::sync::Arc;

use crate::protocol::Uuid;
use crate::storage::catalog::{CatalogError, Mutation, Topic};
use crate::storage::cleaner::{CleanError, CleanerSettings, clean_now, estimate as estimate_cleaning};
use crate::storage::log::{AppendError, LogConfig, OpenError, PartitionLog, ReadError, TruncateError};
use crate::storage::names;
use crate::storage::offline::DataDir;
use crate::storage::store::{LogConfigOf, PartitionError, Store};
use crate::sys::Env;

pub use frozen::frozen;

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
}

/// What topics' configs mean to their logs here: however little is dirty, it is cleaned.
pub fn eager(log_config: LogConfigOf) -> LogConfigOf {
    Arc::new(move |configs| LogConfig { min_cleanable_dirty_ratio: -1.0, ..log_config(configs) })
}

/// Compacts one log of an open directory, whose configs are [`eager`] ones.
pub fn compact(store: &Store, topic: &Topic, partition: i32, request: &Request) -> Result<Compacted, CompactError> {
    let log = store.partition(topic.id, partition)?;
    let is_compacted = store.log_config(&topic.name).compact;
    let mut done = Compacted {
        is_compacted,
        bytes: (log.size_bytes(), log.size_bytes()),
        segments: Some((log.segment_count(), log.segment_count())),
        log_start: (log.offsets().start, log.offsets().start),
        ..Compacted::default()
    };
    if !is_compacted && !request.retention {
        return Ok(done);
    }
    if request.roll {
        done.rolled = log.seal().map_err(CompactError::Seal)?;
    }
    if is_compacted {
        for pass in clean_now(&log, &request.settings)? {
            done.records_cleaned += pass.records_read - pass.records_kept;
        }
    }
    if request.retention {
        retain(store, topic.id, &log)?;
    }
    done.bytes.1 = log.size_bytes();
    done.segments = done.segments.map(|(before, _)| (before, log.segment_count()));
    done.log_start.1 = log.offsets().start;
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
    let size = log.size_bytes();
    let mut done = Compacted {
        is_compacted: log_config.compact,
        bytes: (size, size),
        log_start: (log.offsets().start, log.offsets().start),
        ..Compacted::default()
    };
    if log_config.compact
        && let Some((stats, at_least)) = estimate_cleaning(&log, &request.settings, request.roll)?
    {
        done.at_least = at_least;
        done.records_cleaned = stats.records_read - stats.records_kept;
        done.bytes.1 -= stats.read_bytes.saturating_sub(stats.kept_bytes);
    }
    if request.retention
        && let Some(to) = log.retention_start(env.clock.now_ms())?
    {
        done.log_start.1 = to;
        // What goes whole is not there to be cleaned; where both are asked for this says the larger of the two.
        let gone = log.size_below(to);
        done.bytes.1 = done.bytes.1.min(size - gone);
    }
    Ok(Some(done))
}

/// Whether a partition has ever had a log. Opening one that has not would make the first segment.
pub fn is_used(env: &Env, data_dir: &Path, topic: &Topic, partition: i32) -> bool {
    let path = data_dir.join(names::partition_dir(&topic.name, partition));
    let entries = env.fs.list(&path).unwrap_or_default();
    entries.iter().any(|entry| {
        matches!(
            names::parse_partition_file(&entry.name),
            names::PartitionFile::Segment { kind: names::FileKind::Log, .. }
        )
    })
}
