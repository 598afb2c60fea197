//! What can be made anew from the batches: indexes, the index of aborted transactions, leader epochs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::stage::replace;
use crate::storage::log::epochs::LeaderEpochs;
use crate::storage::log::error::FileError;
use crate::storage::log::files;
use crate::storage::log::index::{AbortedTransaction, Index};
use crate::storage::log::indexes::Indexes;
use crate::storage::log::producers::Producers;
use crate::storage::log::replay::read_marker;
use crate::storage::log::scan::{BatchAt, LONG_WALK, Walker};
use crate::storage::log::segment::Segment;
use crate::storage::log::snapshot;
use crate::storage::names::{self, FileKind, PartitionFile, Stage};
use crate::sys::FileSystem;

/// What a walk over all batches of a log tells.
#[derive(Debug, Default)]
pub(in crate::storage) struct Replay {
    /// The aborted transactions, by the base offset of the segment that has their marker.
    pub aborted: BTreeMap<i64, Vec<AbortedTransaction>>,
    /// Each leader epoch and its first offset.
    pub epochs: Vec<(i32, i64)>,
    /// The largest producer id in a batch or a snapshot, -1 for none.
    pub largest_producer_id: i64,
    /// The transactions that are open at the end: the producer's id, and the first offset.
    pub open: Vec<(i64, i64)>,
}

fn segments(fs: &dyn FileSystem, dir: &Arc<Path>, interval: u32) -> Result<(Vec<Segment>, Vec<i64>), FileError> {
    let (mut logs, mut snapshots) = (Vec::new(), Vec::new());
    for entry in fs.list(dir).map_err(FileError::of("list", dir))? {
        match names::parse_partition_file(&entry.name) {
            PartitionFile::Segment { base, kind: FileKind::Log, stage: Stage::Live } => logs.push(base),
            PartitionFile::Segment { base, kind: FileKind::Snapshot, stage: Stage::Live } => snapshots.push(base),
            _ => {}
        }
    }
    logs.sort_unstable();
    snapshots.sort_unstable();
    let open = |base: &i64| {
        let path = dir.join(names::segment_file(*base, FileKind::Log));
        let len = fs.metadata(&path).map_err(FileError::of("look at", &path))?.len;
        Ok(Segment::sealed(dir.clone(), *base, len, interval))
    };
    Ok((logs.iter().map(open).collect::<Result<_, FileError>>()?, snapshots))
}

/// Walks over all good batches of the log in `dir`, of which the segments are in order. Writes nothing.
pub(in crate::storage) fn replay_all(fs: &dyn FileSystem, dir: &Arc<Path>) -> Result<Replay, FileError> {
    let (segments, snapshots) = segments(fs, dir, 4096)?;
    let mut replay = Replay { largest_producer_id: -1, ..Replay::default() };
    let mut producers = Producers::default();
    let mut epochs = LeaderEpochs::default();
    let first = segments.first().map_or(0, |segment| segment.base);
    for offset in &snapshots {
        let path = dir.join(names::segment_file(*offset, FileKind::Snapshot));
        let Some(known) = snapshot::read(fs, &path).map_err(FileError::of("read", &path))? else { continue };
        let largest = known.entries().map(|(id, _)| id).max();
        replay.largest_producer_id = replay.largest_producer_id.max(largest.unwrap_or(-1));
        if *offset <= first {
            producers = known;
        }
    }
    for segment in &segments {
        let mut walker = Walker::new(segment.file(fs)?, 0, segment.size(), LONG_WALK);
        while let Some(batch) = segment.step(&mut walker)? {
            let Some(header) = batch.header else { continue };
            let is_whole = walker.verify(&batch).map_err(FileError::of("read", &segment.path(FileKind::Log)))?;
            if !is_whole {
                continue;
            }
            epochs.assign(header.partition_leader_epoch, header.base_offset);
            if !header.has_producer_id() {
                continue;
            }
            replay.largest_producer_id = replay.largest_producer_id.max(header.producer_id);
            if !header.is_control() {
                producers.wrote(&header, None);
            } else if let Some((marker, timestamp)) = read_marker(fs, segment, &batch, &header)?
                && let Some(ended) = producers.ended(&marker, header.base_offset, timestamp)
                && ended.aborted
            {
                replay.aborted.entry(segment.base).or_default().push(ended.into());
            }
        }
    }
    replay.epochs = epochs.entries().to_vec();
    replay.open = producers
        .describe()
        .into_iter()
        .filter_map(|producer| Some((producer.producer_id, producer.transaction_start?)))
        .collect();
    Ok(replay)
}

/// Makes the offset index and the time index of a segment anew. Their names are durable once the directory is flushed.
pub(in crate::storage) fn rebuild_index(
    fs: &dyn FileSystem,
    dir: &Arc<Path>,
    base: i64,
    interval: u32,
) -> Result<(), FileError> {
    let path = dir.join(names::segment_file(base, FileKind::Log));
    let len = fs.metadata(&path).map_err(FileError::of("look at", &path))?.len;
    let segment = Segment::sealed(dir.clone(), base, len, interval);
    let mut walker = Walker::new(segment.file(fs)?, 0, len, LONG_WALK);
    let mut indexes = Indexes::new(base);
    while let Some(batch) = segment.step(&mut walker)? {
        let batch: BatchAt = batch;
        indexes.take(base, &batch, interval);
    }
    indexes.take_time(base);
    replace(fs, dir, base, FileKind::OffsetIndex, &indexes.offsets.encoded_pending())?;
    replace(fs, dir, base, FileKind::TimeIndex, &indexes.times.encoded_pending())
}

/// Makes the index of aborted transactions of a segment anew; there is no file where there are none.
pub(in crate::storage) fn rebuild_txn_index(
    fs: &dyn FileSystem,
    dir: &Path,
    base: i64,
    aborted: &[AbortedTransaction],
) -> Result<(), FileError> {
    if aborted.is_empty() {
        return crate::storage::log::open::remove_if_there(
            fs,
            &dir.join(names::segment_file(base, FileKind::TxnIndex)),
        );
    }
    let mut index = Index::default();
    aborted.iter().for_each(|entry| index.push(*entry));
    replace(fs, dir, base, FileKind::TxnIndex, &index.encoded_pending())
}

/// What the index of aborted transactions of a segment has; nothing if there is no file. `None` if it cannot be one.
pub(in crate::storage) fn aborted_of(
    fs: &dyn FileSystem,
    dir: &Path,
    base: i64,
) -> Result<Option<Vec<AbortedTransaction>>, FileError> {
    let path = dir.join(names::segment_file(base, FileKind::TxnIndex));
    let Some(mut index) = Index::<AbortedTransaction>::load(fs, &path).map_err(FileError::of("read", &path))? else {
        return Ok(None);
    };
    let mut all = Vec::new();
    let take = |entry: &AbortedTransaction| {
        all.push(*entry);
        true
    };
    index.each_from(fs, &path, i64::MIN, take).map_err(FileError::of("read", &path))?;
    Ok(Some(all))
}

/// Writes the leader epochs of a log anew.
pub(in crate::storage) fn rebuild_epochs(
    fs: &dyn FileSystem,
    dir: &Path,
    epochs: &[(i32, i64)],
) -> Result<(), FileError> {
    let path = dir.join(names::LEADER_EPOCH_CHECKPOINT);
    files::write_leader_epochs(fs, dir, epochs).map_err(FileError::of("write", &path))
}
