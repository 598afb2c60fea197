//! The partitions that are not open: when one of them has to be, for something of it to go.
//!
//! Nobody writes to them, so one look at their files tells for good: until their settings change, or they were open.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::protocol::Uuid;
use crate::record::{BatchHeader, HEADER_LEN};
use crate::storage::catalog::Topic;
use crate::storage::log::LogConfig;
use crate::storage::names::{self, FileKind, PartitionFile, Stage};
use crate::storage::store::Store;
use crate::sys::{FileSystem, OpenMode};

/// When one that could not be looked at, or has just been opened, is looked at again, in milliseconds.
const AGAIN_MS: i64 = 60_000;
/// The end of a `.timeindex`: its last entry, which starts with the largest timestamp.
const TIME_ENTRY: u64 = 12;

/// What is known of the topics whose partitions are not all open.
#[derive(Debug, Default)]
pub(super) struct IdleTopics {
    config_changes: u64,
    /// For a topic with limits, when each partition is to be looked at or opened, ms since the Unix epoch; `i64::MAX` for
    /// never. Empty for one without limits.
    topics: HashMap<Uuid, Vec<i64>>,
}

impl IdleTopics {
    /// Forgets all if settings have changed since. Answers whether they have.
    pub fn follow(&mut self, config_changes: u64) -> bool {
        let changed = self.config_changes != config_changes;
        if changed {
            self.config_changes = config_changes;
            self.topics.clear();
        }
        changed
    }

    /// The partitions that are not open and have something due.
    pub fn due(&mut self, store: &Store) -> Vec<(Arc<Topic>, i32)> {
        let topics = store.topics();
        let now_ms = store.env().clock.now_ms();
        let mut due = Vec::new();
        for topic in topics.iter() {
            let mut config = None;
            let count = usize::try_from(topic.partitions).unwrap_or(0);
            let times = self.topics.entry(topic.id).or_insert_with(|| {
                let config = config.get_or_insert_with(|| store.log_config(&topic.name));
                if has_limits(config) { vec![i64::MIN; count] } else { Vec::new() }
            });
            if times.is_empty() {
                continue;
            }
            times.resize(count, i64::MIN);
            for (partition, at) in (0..topic.partitions).zip(times) {
                if *at > now_ms || store.open_partition(topic.id, partition).is_some() {
                    continue;
                }
                let config = config.get_or_insert_with(|| store.log_config(&topic.name));
                let dir = store.partition_dir(&topic.name, partition);
                *at = match due_at(&*store.env().fs, &dir, config, now_ms) {
                    Ok(Some(at)) if at <= now_ms => {
                        due.push((topic.clone(), partition));
                        now_ms + AGAIN_MS
                    }
                    Ok(at) => at.unwrap_or(i64::MAX),
                    Err(error) => {
                        let dir = dir.display();
                        tracing::warn!(%dir, %error, "cannot tell whether something of a partition is too old");
                        now_ms + AGAIN_MS
                    }
                };
            }
        }
        self.topics.retain(|id, _| topics.by_id(*id).is_some());
        due
    }
}

fn has_limits(config: &LogConfig) -> bool {
    config.delete && (config.retention_ms >= 0 || config.retention_bytes >= 0)
}

/// When the log in `dir` has to be opened for something of it to go, ms since the Unix epoch, as its files tell; `None` for
/// never. Says the same as the open log would, or a little earlier.
fn due_at(fs: &dyn FileSystem, dir: &Path, config: &LogConfig, now_ms: i64) -> io::Result<Option<i64>> {
    let mut logs = Vec::new();
    for entry in fs.list(dir)? {
        if let PartitionFile::Segment { base, kind: FileKind::Log, stage: Stage::Live } =
            names::parse_partition_file(&entry.name)
        {
            logs.push(base);
        }
    }
    logs.sort_unstable();
    let Some(first) = logs.first().copied() else { return Ok(None) };
    let path = |base, kind| dir.join(names::segment_file(base, kind));
    let metadata = fs.metadata(&path(first, FileKind::Log))?;
    if logs.len() == 1 {
        // Its only segment has to be sealed first.
        if config.retention_ms < 0 || metadata.len == 0 {
            return Ok(None);
        }
        let mut header = [0; HEADER_LEN];
        let file = fs.open(&path(first, FileKind::Log), OpenMode::Read)?;
        let read = file.read_exact_at(&mut header, 0).ok().and_then(|()| BatchHeader::parse(&header).ok());
        let since = read.map_or(-1, |header| header.max_timestamp);
        let since = if (0..=now_ms).contains(&since) { since } else { metadata.modified_ms };
        return Ok(Some(since.saturating_add(config.roll_ms() - config.segment_jitter_ms)));
    }
    if let Ok(most) = u64::try_from(config.retention_bytes) {
        let mut rest = 0;
        for base in &logs[1..] {
            rest += fs.metadata(&path(*base, FileKind::Log))?.len;
        }
        if rest >= most {
            return Ok(Some(i64::MIN));
        }
    }
    if config.retention_ms < 0 {
        return Ok(None);
    }
    let latest = match latest_timestamp(fs, &path(first, FileKind::TimeIndex))? {
        Some(latest) if (0..=now_ms).contains(&latest) => latest,
        _ => metadata.modified_ms,
    };
    Ok(Some(latest.saturating_add(config.retention_ms).saturating_add(1)))
}

/// The largest timestamp of a sealed segment, as its time index has it. `None` if it has none.
fn latest_timestamp(fs: &dyn FileSystem, path: &Path) -> io::Result<Option<i64>> {
    let file = match fs.open(path, OpenMode::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let len = file.len()?;
    if len < TIME_ENTRY || len % TIME_ENTRY != 0 {
        return Ok(None);
    }
    let mut timestamp = [0; 8];
    file.read_exact_at(&mut timestamp, len - TIME_ENTRY)?;
    Ok(Some(i64::from_be_bytes(timestamp)))
}
