//! The same for a log directory of Apache Kafka 4.3, of a node that was stopped cleanly.
//!
//! # What it goes by
//!
//! | file | what for |
//! |---|---|
//! | `replication-offset-checkpoint` | the high watermarks: nothing at or after them is cleaned or removed |
//! | `cleaner-offset-checkpoint` | up to where a log was cleaned; it gets the new offset after each pass |
//! | `log-start-offset-checkpoint` | where logs start; it gets the new start before retention removes anything |
//! | `__cluster_metadata-0` | topics, configs and in which directory a partition lies ([`KafkaMetadata`]); only read |
//!
//! No file has anything about delete horizons, so those that have passed are found in the headers of the batches.
//!
//! # When it is cut off
//!
//! `.kafka_cleanshutdown` is put aside before the first byte changes, and gets its name back when all is on the medium. So what a
//! kill or a power cut leaves is a node that was stopped uncleanly. Its next start goes through each folder of a partition:
//!
//! - A `.cleaned` file is there: it removes all of them, and the `.swap` files from the lowest of their bases on. The steps of a
//!   rewrite (`crate::storage::log`, `rewrite`) see to it that the lowest `.log` is the last to lose `.cleaned`, so that is all of
//!   the rewrite, and the originals are all there.
//! - Else it removes whatever has a base in what the `.log.swap` files have, and gives all `.swap` files their own names: the
//!   steps of the rewrite that were left.
//! - An original whose indexes are gone gets new ones. Originals behind all that was kept stay, whole, until the next cleaning;
//!   none of them has a record that an aborted transaction's index would have to hide.
//! - Producer snapshots of segments that are gone are removed. The one at the log's end is there, since nothing here touches it.
//! - Recovery points are the ends of the logs after a clean stop, so the active segment alone is checked again.
//!
//! Leader epochs are not touched: none starts or ends elsewhere because records are gone, and those below a new log start are
//! forgotten by the start.
//!
//! # What is left alone
//!
//! See [`left_alone`]. The active segment is never touched.

use std::io;
use std::sync::Arc;

use super::{CompactError, Compacted, Request, eager_one, frozen};
use crate::protocol::Uuid;
use crate::storage::cleaner::{Checkpoint, clean_up_to, estimate_up_to, first_horizon, is_due_up_to};
use crate::storage::log::{FileError, LogConfig, PartitionLog, ReadError};
use crate::storage::names::{self, FileKind, LeftoverDir, PartitionFile, Stage};
use crate::storage::offline::{self, DataDir, KafkaMetadata, OffsetMap, PartitionFolder, kafka_mark, write_checkpoint};
use crate::storage::store::DirError;
use crate::sys::{Env, FileSystem, OpenMode};

/// Ids below this are no directory's: Apache Kafka has them say that it is not assigned, lost, or being moved.
const RESERVED_IDS: u64 = 100;

/// A compaction of an Apache Kafka directory that is under way. The mark of a clean stop is not there meanwhile.
#[derive(Debug)]
pub struct KafkaCompaction<'a> {
    dir: &'a DataDir,
    cleaner_offsets: OffsetMap,
    log_starts: OffsetMap,
    /// Nothing has failed half-way.
    is_sound: bool,
}

/// What the checkpoints say of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    log_start: i64,
    high_watermark: i64,
    cleaned: i64,
}

impl Bounds {
    fn of(dir: &DataDir, folder: &PartitionFolder) -> Result<Bounds, CompactError> {
        let state = dir.kafka();
        let of = |checkpoint: &offline::Checkpoint| checkpoint.get(&folder.topic, folder.partition);
        Ok(Bounds {
            log_start: of(&state.log_starts).unwrap_or(0).max(0),
            high_watermark: of(&state.high_watermarks).ok_or(CompactError::NoHighWatermark)?,
            cleaned: of(&state.cleaner_offsets).unwrap_or(0).max(0),
        })
    }
}

/// Why nothing is done to a partition, whatever its topic's configs say: it is not the one that the node serves, or it may not be.
/// `None` if nothing speaks against it. Without `metadata` only the folders around it are looked at.
pub fn left_alone(dir: &DataDir, metadata: Option<&KafkaMetadata>, folder: &PartitionFolder) -> Option<String> {
    let name = folder.name();
    let is_twin = |leftover: &offline::Leftover| {
        let of =
            leftover.path.file_name().and_then(|leftover| leftover.to_str()?.rsplit_once('.').map(|parts| parts.0));
        leftover.kind == LeftoverDir::Future && of == Some(&name)
    };
    if dir.leftovers().iter().any(is_twin) {
        return Some("it is being moved between log directories: there is a -future folder of it".into());
    }
    let metadata = metadata?;
    let Some(topic) = metadata.topic(&folder.topic) else {
        return Some("the metadata log has no such topic".into());
    };
    match dir.topic_id(folder) {
        Ok(Some(id)) if id == topic.id => {}
        Ok(found) => {
            let found = found.map_or("none".into(), |id| id.to_string());
            return Some(format!("its folder is of another topic: its id is {found}, and the topic's is {}", topic.id));
        }
        Err(error) => return Some(format!("{error}: {}", error.source)),
    }
    let replicas = topic.partitions.get(&folder.partition);
    let at = replicas.and_then(|replicas| replicas.nodes.iter().position(|node| Some(*node) == dir.kafka().node_id));
    let Some((replicas, at)) = replicas.zip(at) else {
        return Some("the metadata log has no replica of it on this node".into());
    };
    let assigned = replicas.directories.get(at).copied().filter(|id| !is_reserved(*id));
    match (assigned, dir.kafka().directory_id) {
        (Some(assigned), Some(here)) if assigned != here => {
            Some(format!("the metadata log has it in another log directory of the node, {assigned}"))
        }
        _ => None,
    }
}

fn is_reserved(id: Uuid) -> bool {
    let (high, low) = id.0.split_at(8);
    high.iter().all(|byte| *byte == 0) && low.try_into().map(u64::from_be_bytes).is_ok_and(|low| low < RESERVED_IDS)
}

/// Opens a log, which nothing is changed of by that alone: one that a start would have to repair is refused.
fn open(
    env: &Env,
    folder: &PartitionFolder,
    config: &LogConfig,
    bounds: Bounds,
) -> Result<Arc<PartitionLog>, CompactError> {
    let (env, path) = (frozen(env), folder.path.clone());
    let looked = PartitionLog::open(env, path, eager_one(config.clone()), true, bounds.log_start)
        .map_err(CompactError::Repair)?;
    if !looked.damage().is_empty() {
        return Err(CompactError::Damaged);
    }
    Ok(looked)
}

/// What [`KafkaCompaction::compact`] would do to a log. `None` for a partition without one. Writes nothing.
pub fn estimate_kafka(
    dir: &DataDir,
    folder: &PartitionFolder,
    config: &LogConfig,
    request: &Request,
) -> Result<Option<Compacted>, CompactError> {
    if !super::has_log(dir.env(), &folder.path)? {
        return Ok(None);
    }
    let bounds = Bounds::of(dir, folder)?;
    let log = open(dir.env(), folder, config, bounds)?;
    let mut done = Compacted { segments: None, ..Compacted::of(&log, config.compact) };
    if config.compact {
        let checkpoint = checkpoint(&log, bounds)?;
        if let Some((stats, at_least)) = estimate_up_to(&log, bounds.high_watermark, &checkpoint, &request.settings)? {
            done.take_estimate(&stats, at_least);
        }
    }
    if request.retention
        && let Some(to) = retention_start(&log, bounds)?
    {
        done.take_retention(&log, to);
    }
    Ok(Some(done))
}

/// Up to where the log was cleaned, and, if nothing lies behind that, when the first thing below may go.
fn checkpoint(log: &PartitionLog, bounds: Bounds) -> Result<Checkpoint, CompactError> {
    let checkpoint = Checkpoint { cleaned: bounds.cleaned, ..Checkpoint::default() };
    if is_due_up_to(log, bounds.high_watermark, &checkpoint)? {
        return Ok(checkpoint);
    }
    Ok(Checkpoint { horizon_ms: first_horizon(log, bounds.cleaned)?, ..checkpoint })
}

/// Where retention moves the log's start to, if anywhere: never past the high watermark.
fn retention_start(log: &PartitionLog, bounds: Bounds) -> Result<Option<i64>, ReadError> {
    let Some(to) = log.retention_start(log.env().clock.now_ms())? else { return Ok(None) };
    let to = log.segment_bases().into_iter().filter(|base| *base <= to.min(bounds.high_watermark)).max();
    Ok(to.filter(|to| *to > log.offsets().start && log.size_below(*to) > 0))
}

impl<'a> KafkaCompaction<'a> {
    /// Puts the mark of a clean stop aside. `dir` is held to write, and its checkpoints can be read.
    pub fn start(dir: &'a DataDir) -> Result<KafkaCompaction<'a>, DirError> {
        let offsets = |checkpoint: &offline::Checkpoint| match checkpoint {
            offline::Checkpoint::Read(offsets) => offsets.clone(),
            offline::Checkpoint::Missing | offline::Checkpoint::Nonsense { .. } => OffsetMap::new(),
        };
        let state = dir.kafka();
        let (cleaner_offsets, log_starts) = (offsets(&state.cleaner_offsets), offsets(&state.log_starts));
        kafka_mark::put_aside(&*dir.env().fs, dir.path())?;
        Ok(KafkaCompaction { dir, cleaner_offsets, log_starts, is_sound: true })
    }

    /// Compacts one log, however little of it is dirty. `None` for a partition without one. On return all that was done is on the
    /// medium.
    pub fn compact(
        &mut self,
        folder: &PartitionFolder,
        config: &LogConfig,
        request: &Request,
    ) -> Result<Option<Compacted>, CompactError> {
        let env = self.dir.env();
        if !super::has_log(env, &folder.path)? {
            return Ok(None);
        }
        let bounds = Bounds::of(self.dir, folder)?;
        drop(open(env, folder, config, bounds)?);
        let done = self.change(folder, config, bounds, request);
        self.is_sound &= done.is_ok();
        done.map(Some)
    }

    fn change(
        &mut self,
        folder: &PartitionFolder,
        config: &LogConfig,
        bounds: Bounds,
        request: &Request,
    ) -> Result<Compacted, CompactError> {
        let env = self.dir.env();
        let (fs, of) = (&*env.fs, (folder.topic.clone(), folder.partition));
        let (path, eager) = (folder.path.clone(), eager_one(config.clone()));
        let log = PartitionLog::open(env.clone(), path, eager, true, bounds.log_start)?;
        let mut done = Compacted::of(&log, config.compact);
        if config.compact {
            let checkpoint = checkpoint(&log, bounds)?;
            let mut save = |checkpoint: &Checkpoint| -> io::Result<()> {
                self.cleaner_offsets.insert(of.clone(), checkpoint.cleaned);
                let written =
                    write_checkpoint(fs, self.dir.path(), names::KAFKA_CLEANER_OFFSETS, &self.cleaner_offsets);
                written.map_err(|error| error.source)
            };
            let passes = clean_up_to(&log, bounds.high_watermark, checkpoint, &request.settings, &mut save)?;
            passes.iter().for_each(|stats| done.take(stats));
        }
        if request.retention
            && let Some(to) = retention_start(&log, bounds)?
        {
            self.log_starts.insert(of, to);
            write_checkpoint(fs, self.dir.path(), names::KAFKA_LOG_STARTS, &self.log_starts)?;
            log.advance_log_start(to)?;
        }
        done.finish(&log);
        log.close().map_err(CompactError::Close)?;
        sync_indexes(fs, folder)?;
        Ok(done)
    }

    /// Gives the mark of a clean stop its name back, unless something failed half-way: then the node's next start has to look
    /// at the logs. Answers whether it did.
    pub fn finish(self) -> Result<bool, DirError> {
        let (fs, path) = (&*self.dir.env().fs, self.dir.path());
        match self.is_sound {
            true => kafka_mark::put_back(fs, path)?,
            false => kafka_mark::discard(fs, path)?,
        }
        Ok(self.is_sound)
    }
}

/// Brings the indexes and their names onto the medium: some may have been made anew, and a clean stop vouches for them.
fn sync_indexes(fs: &dyn FileSystem, folder: &PartitionFolder) -> Result<(), FileError> {
    let dir = &folder.path;
    for entry in fs.list(dir).map_err(FileError::of("list", dir))? {
        let PartitionFile::Segment { kind, stage: Stage::Live, .. } = names::parse_partition_file(&entry.name) else {
            continue;
        };
        if matches!(kind, FileKind::OffsetIndex | FileKind::TimeIndex | FileKind::TxnIndex) {
            let path = dir.join(&entry.name);
            let file = fs.open(&path, OpenMode::ReadWrite).map_err(FileError::of("open", &path))?;
            file.sync().map_err(FileError::of("flush", &path))?;
        }
    }
    fs.sync_dir(dir).map_err(FileError::of("flush", dir))
}
