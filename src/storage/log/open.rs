//! Opening a log: tidy the directory, find the segments, look at the last one, restore the producers.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::append::{Writer, stable_offset};
use super::check::{self, Checked};
use super::epochs::LeaderEpochs;
use super::error::{FileError, OpenError};
use super::index::{AbortedTransaction, Entry};
use super::read::Hints;
use super::replay::replay;
use super::roll::{create_segment, jitter_ms};
use super::segment::Segment;
use super::sync::Flush;
use super::watch::Watchers;
use super::{LogConfig, PartitionLog, View, files};
use crate::storage::names::{self, FileKind, PartitionDir, PartitionFile, Stage};
use crate::storage::rewrite::rewrite;
use crate::sys::{Env, FileSystem, OpenMode};

/// What a tidied directory has.
#[derive(Debug, Default)]
struct Found {
    /// Base offsets of the segments' log files.
    logs: Vec<i64>,
    /// Files of any other kind, by base offset.
    others: Vec<(i64, FileKind)>,
}

impl Found {
    fn snapshots(&self) -> Vec<i64> {
        let snapshots = self.others.iter().filter(|(_, kind)| *kind == FileKind::Snapshot);
        snapshots.map(|(offset, _)| *offset).collect()
    }
}

impl PartitionLog {
    /// Opens the log in `dir`, which has to be there; makes the first segment if it has none.
    ///
    /// `clean`: the last stop was a clean one, so that the files can be trusted. If not, the last segment is checked batch by
    /// batch, a torn tail is cut off and said to be, and nothing counts as flushed. `log_start`: the offset below which
    /// nothing counts any more, from where it is durable; segments that are all below it are removed.
    pub fn open(
        env: Env,
        dir: PathBuf,
        config: LogConfig,
        clean: bool,
        log_start: i64,
    ) -> Result<Arc<PartitionLog>, OpenError> {
        let fs = env.fs.clone();
        let named = dir.file_name().and_then(names::parse_partition_dir);
        let Some(PartitionDir::Live { topic, partition }) = named else { return Err(OpenError::Name { path: dir }) };
        let dir: Arc<Path> = dir.into();
        let mark = dir.join(names::FLUSH_FAILED);
        let flush_failed = fs.exists(&mark).map_err(FileError::of("look at", &mark))?;
        let clean = clean && !flush_failed;
        let mut found = tidy(&*fs, &dir, log_start)?;
        let said = files::read_leader_epochs(&*fs, &dir);
        let said = said.map_err(FileError::of("read", &dir.join(names::LEADER_EPOCH_CHECKPOINT)))?;

        let mut segments = Vec::new();
        for base in &found.logs {
            let path = dir.join(names::segment_file(*base, FileKind::Log));
            let len = fs.metadata(&path).map_err(FileError::of("look at", &path))?.len;
            segments.push(Arc::new(Segment::sealed(dir.clone(), *base, len, config.index_interval_bytes)));
        }
        let mut epochs = match said {
            Some(entries) => LeaderEpochs::new(entries),
            None => first_epochs(&*fs, &segments)?,
        };
        if !clean && segments.len() > 1 && segments.last().is_some_and(|last| last.size() == 0) {
            // Nothing says whether the segment before it was still written to: so that is the one to look at.
            let empty = segments.pop().expect("there are two");
            found.logs.pop();
            remove_segment(&*fs, &dir, empty.base)?;
        }
        let mut name_dirty = !clean;
        let mut damage = Vec::new();
        let mut end = log_start.max(0);
        if let Some(last) = segments.pop() {
            let (active, checked) = open_active(&*fs, &dir, &last, clean, &config, &mut epochs)?;
            if flush_failed {
                // What is there is dirty again, so that the first flush, which is due anyway, writes it.
                let path = active.path(FileKind::Log);
                rewrite(&*active.file(&*fs)?, checked.size).map_err(FileError::of("write again", &path))?;
            }
            let len = last.size();
            if checked.size < len {
                let (offset, bytes) = (checked.end, len - checked.size);
                tracing::warn!(topic, partition, offset, bytes, "cut a torn tail off the log");
            }
            for kept in &checked.damage {
                let (offset, bytes, until) = (kept.offsets.0, kept.bytes, kept.offsets.1);
                tracing::warn!(topic, partition, offset, until, bytes, "the log is damaged here; the bytes are kept");
            }
            active.publish(checked.size);
            segments.push(Arc::new(active));
            damage = checked.damage;
            end = checked.end;
        }
        if flush_failed {
            remove_if_there(&*fs, &mark)?;
        }
        if end < log_start && !segments.is_empty() {
            tracing::warn!(topic, partition, end, log_start, "the log ends before its start, so nothing of it is left");
            for base in &found.logs {
                remove_segment(&*fs, &dir, *base)?;
            }
            // Nor of what was known of its producers: their open transactions would hold readers up for ever.
            for offset in found.snapshots() {
                remove_if_there(&*fs, &dir.join(names::segment_file(offset, FileKind::Snapshot)))?;
            }
            found = Found::default();
            segments.clear();
            end = log_start;
        }
        if segments.is_empty() {
            segments.push(Arc::new(create_segment(&env, &dir, end, &config)?));
            name_dirty = true;
        }
        epochs.truncate_end(end);
        epochs.truncate_start(log_start);

        let snapshots = drop_snapshots(&*fs, &dir, &found, end)?;
        let active = segments.last().expect("one was made if there was none").clone();
        // The segments whose aborted transactions have to be found anew: the producers are replayed from before them.
        let mut newest = if clean { end } else { active.base };
        for base in damaged_txn_indexes(&*fs, &dir, &found)? {
            newest = newest.min(base);
            segments.iter().filter(|segment| segment.base == base).for_each(|segment| segment.reset_aborted());
        }
        let replayed = replay(&*fs, &dir, &segments, &snapshots, newest, &damage)?;
        let mut producers = replayed.producers;
        let now_ms = env.clock.now_ms();
        producers.expire(now_ms, config.producer_id_expiration_ms);

        let last_stable = stable_offset(&producers, end, (active.base, active.size()));
        let flush = Flush::new(config.flush_ms, end, clean, name_dirty, env.clock.monotonic());
        let writer = Writer {
            position: active.size(),
            end,
            producers,
            first_timestamp: None,
            written_since_ms: None,
            created_ms: now_ms,
            jitter_ms: jitter_ms(&env, &config),
            snapshot: replayed.snapshot,
            changed: !clean || name_dirty,
            closed: false,
            config,
            active: active.clone(),
        };
        let view = View {
            segments,
            start: log_start.max(0),
            end,
            end_position: active.size(),
            last_stable,
            epochs,
            closed: false,
            rewrites: 0,
        };
        Ok(Arc::new(PartitionLog {
            env,
            topic,
            partition,
            dir,
            writer: Mutex::new(writer),
            flush,
            view: RwLock::new(view),
            hints: Mutex::new(Hints::default()),
            watchers: Arc::new(Watchers::default()),
            damage,
            rewrites: Mutex::default(),
        }))
    }
}

/// Opens the last segment for writing, looks at it and cuts off what is torn.
fn open_active(
    fs: &dyn FileSystem,
    dir: &Arc<Path>,
    last: &Segment,
    clean: bool,
    config: &LogConfig,
    epochs: &mut LeaderEpochs,
) -> Result<(Segment, Checked), FileError> {
    let path = last.path(FileKind::Log);
    let file = fs.open(&path, OpenMode::ReadWrite).map_err(FileError::of("open", &path))?;
    let active = Segment::active(dir.clone(), last.base, file.clone(), config.index_interval_bytes);
    let checked = if clean {
        check::walk_tail(fs, &active, last.size(), epochs)?
    } else {
        for kind in [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TxnIndex] {
            remove_if_there(fs, &last.path(kind))?;
        }
        check::check_all(fs, &active, last.size(), epochs)?
    };
    if checked.size < last.size() {
        file.set_len(checked.size).map_err(FileError::of("cut", &path))?;
    }
    Ok((active, checked))
}

/// Brings a directory to what counts of it: finishes rewrites, removes what was on its way out, what belongs to no segment,
/// and the segments that are all below the log's start. Anything that is nobody's stays. Each step may be cut off: the next
/// start goes on from there.
fn tidy(fs: &dyn FileSystem, dir: &Path, log_start: i64) -> Result<Found, FileError> {
    super::rewrite::recover(fs, dir)?;
    let mut live: BTreeMap<i64, Vec<FileKind>> = BTreeMap::new();
    for entry in fs.list(dir).map_err(FileError::of("list", dir))? {
        let path = dir.join(&entry.name);
        match names::parse_partition_file(&entry.name) {
            PartitionFile::Segment { base, kind, stage: Stage::Live } => live.entry(base).or_default().push(kind),
            PartitionFile::Segment { .. } | PartitionFile::Temporary => remove_if_there(fs, &path)?,
            PartitionFile::Metadata
            | PartitionFile::LeaderEpochs
            | PartitionFile::CleanerCheckpoint
            | PartitionFile::Other => {}
        }
    }
    let logs: Vec<i64> =
        live.iter().filter(|(_, kinds)| kinds.contains(&FileKind::Log)).map(|(base, _)| *base).collect();
    let below = logs.windows(2).take_while(|pair| pair[1] <= log_start).count();
    let mut found = Found { logs: logs[below..].to_vec(), others: Vec::new() };
    for (base, kinds) in live {
        let counts = found.logs.contains(&base);
        for kind in kinds {
            match kind {
                FileKind::Log if counts => {}
                FileKind::Snapshot => found.others.push((base, kind)),
                _ if counts => found.others.push((base, kind)),
                _ => remove_if_there(fs, &dir.join(names::segment_file(base, kind)))?,
            }
        }
    }
    Ok(found)
}

/// The leader epochs as the first batches of the segments tell them, where the checkpoint does not.
fn first_epochs(fs: &dyn FileSystem, segments: &[Arc<Segment>]) -> Result<LeaderEpochs, FileError> {
    let mut epochs = LeaderEpochs::default();
    for segment in segments {
        if let Some(header) = segment.walk_to(fs, 0, |_| true)?.and_then(|batch| batch.header) {
            epochs.assign(header.partition_leader_epoch, header.base_offset);
        }
    }
    Ok(epochs)
}

/// Removes the snapshots of what is no longer in the log. Answers the offsets of the others.
fn drop_snapshots(fs: &dyn FileSystem, dir: &Path, found: &Found, end: i64) -> Result<Vec<i64>, FileError> {
    let (keep, drop): (Vec<i64>, Vec<i64>) = found.snapshots().into_iter().partition(|offset| *offset <= end);
    for offset in drop {
        remove_if_there(fs, &dir.join(names::segment_file(offset, FileKind::Snapshot)))?;
    }
    Ok(keep)
}

/// The segments whose index of aborted transactions is torn. The last one's is not among them after an unclean stop: it was
/// removed.
fn damaged_txn_indexes(fs: &dyn FileSystem, dir: &Path, found: &Found) -> Result<Vec<i64>, FileError> {
    let mut damaged = Vec::new();
    for (base, _) in found.others.iter().filter(|(_, kind)| *kind == FileKind::TxnIndex) {
        let path = dir.join(names::segment_file(*base, FileKind::TxnIndex));
        match fs.metadata(&path) {
            Ok(metadata) if metadata.len % AbortedTransaction::SIZE as u64 != 0 => damaged.push(*base),
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(FileError::of("look at", &path)(e)),
            _ => {}
        }
    }
    Ok(damaged)
}

/// Removes all files of a segment but the snapshot, the log last: what is left of it after a power cut is found again.
pub(super) fn remove_segment(fs: &dyn FileSystem, dir: &Path, base: i64) -> Result<(), FileError> {
    for kind in [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TxnIndex, FileKind::Log] {
        remove_if_there(fs, &dir.join(names::segment_file(base, kind)))?;
    }
    Ok(())
}

pub(super) fn remove_if_there(fs: &dyn FileSystem, path: &Path) -> Result<(), FileError> {
    match fs.remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(FileError::of("remove", path)(e)),
        _ => Ok(()),
    }
}
