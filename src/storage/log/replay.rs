//! The producers as a log's batches left them: from the latest snapshot that is of use, and the headers of what follows it.

use std::path::Path;
use std::sync::Arc;

use super::check::Damage;
use super::error::FileError;
use super::producers::{EndMarker, ProducerInfo, Producers};
use super::scan::{BatchAt, LONG_WALK, Walker};
use super::segment::Segment;
use super::snapshot;
use crate::record::control::{ControlRecord, EndTxnMarker};
use crate::record::{Batch, BatchHeader};
use crate::storage::names::{self, FileKind};
use crate::sys::{FileSystem, OpenMode};

/// More than a control batch ever has, in bytes.
const LARGEST_CONTROL_BATCH: u64 = 1 << 20;

/// What a replay came to.
#[derive(Debug)]
pub(super) struct Replayed {
    pub producers: Producers,
    /// The offset of the snapshot that it started from.
    pub snapshot: Option<i64>,
}

/// Builds the producers from the latest of the `snapshots` (their offsets) that is at or below `newest` and whole, and the
/// batches after it; what is said by one that is damaged is not believed. Takes the aborted transactions that it comes over into the segments' indexes, where they are not yet.
pub(super) fn replay(
    fs: &dyn FileSystem,
    dir: &Path,
    segments: &[Arc<Segment>],
    snapshots: &[i64],
    newest: i64,
    damage: &[Damage],
) -> Result<Replayed, FileError> {
    let (mut producers, snapshot) = latest_snapshot(fs, dir, snapshots, newest)?;
    let from = snapshot.unwrap_or(i64::MIN);
    let last_base = segments.last().map_or(0, |segment| segment.base);
    for (at, segment) in segments.iter().enumerate() {
        if segments.get(at + 1).is_some_and(|next| next.base <= from) {
            continue;
        }
        let mut walker = match from <= segment.base {
            true => Walker::new(segment.file(fs)?, 0, segment.size(), LONG_WALK),
            false => segment.indexed_walk(fs, segment.floor(fs, from)?, segment.size(), 0, from)?,
        };
        while let Some(batch) = segment.step(&mut walker)? {
            let Some(header) = batch.header.filter(|header| header.has_producer_id()) else { continue };
            let is_in = |damage: &Damage| {
                let damaged = damage.position..damage.position + damage.bytes;
                damage.segment == segment.base && damaged.contains(&batch.position)
            };
            if header.base_offset < from || damage.iter().any(is_in) {
                continue;
            }
            if !header.is_control() {
                producers.wrote(&header, Some((segment.base, batch.position)));
            } else if let Some((marker, timestamp)) = read_marker(fs, segment, &batch, &header)?
                && let Some(ended) = producers.ended(&marker, header.base_offset, timestamp)
                && ended.aborted
            {
                segment.index_aborted(fs, ended.into())?;
            }
        }
        if segment.base != last_base {
            // The index of aborted transactions may have got entries that its file lacks.
            segment.write_indexes(fs, false)?;
        }
    }
    Ok(Replayed { producers, snapshot })
}

fn latest_snapshot(
    fs: &dyn FileSystem,
    dir: &Path,
    snapshots: &[i64],
    newest: i64,
) -> Result<(Producers, Option<i64>), FileError> {
    let mut usable: Vec<i64> = snapshots.iter().copied().filter(|offset| *offset <= newest).collect();
    usable.sort_unstable();
    for offset in usable.into_iter().rev() {
        let path = dir.join(names::segment_file(offset, FileKind::Snapshot));
        match snapshot::read(fs, &path).map_err(FileError::of("read", &path))? {
            Some(producers) => return Ok((producers, Some(offset))),
            None => {
                tracing::warn!(snapshot = %path.display(), "removed a producer snapshot that is not whole");
                fs.remove_file(&path).map_err(FileError::of("remove", &path))?;
            }
        }
    }
    Ok((Producers::default(), None))
}

/// The producers as a log's batches left them, for those who only look: nothing is written, and nothing is believed to be in
/// the indexes. `segments`: base offset and bytes of each, in their order. `snapshots`: the offsets that there are snapshots of.
/// `end`: the offset after the last.
pub(in crate::storage) fn look_at_producers(
    fs: &dyn FileSystem,
    dir: &Path,
    segments: &[(i64, u64)],
    snapshots: &[i64],
    end: i64,
) -> Result<Vec<ProducerInfo>, FileError> {
    let mut usable: Vec<i64> = snapshots.iter().copied().filter(|offset| *offset <= end).collect();
    usable.sort_unstable();
    let (mut producers, mut from) = (Producers::default(), i64::MIN);
    while let Some(offset) = usable.pop() {
        let path = dir.join(names::segment_file(offset, FileKind::Snapshot));
        if let Some(found) = snapshot::read(fs, &path).map_err(FileError::of("read", &path))? {
            (producers, from) = (found, offset);
            break;
        }
    }
    for (at, (base, bytes)) in segments.iter().enumerate() {
        let next = segments.get(at + 1).map_or(end, |next| next.0);
        if next <= from {
            continue;
        }
        let path = dir.join(names::segment_file(*base, FileKind::Log));
        let of_error = |doing| FileError::of(doing, &path);
        let mut walker = Walker::new(fs.open(&path, OpenMode::Read).map_err(of_error("open"))?, 0, *bytes, LONG_WALK);
        while let Some(batch) = walker.next().map_err(of_error("read"))? {
            let Some(header) = batch.header.filter(|header| header.has_producer_id() && header.base_offset >= from)
            else {
                continue;
            };
            if !header.is_control() {
                producers.wrote(&header, None);
            } else if has_marker(&header, &batch)
                && let Some(bytes) = walker.slice(batch.position, batch.end()).map_err(of_error("read"))?
                && let Some((marker, timestamp)) = parse_marker(&header, bytes)
            {
                producers.ended(&marker, header.base_offset, timestamp);
            }
        }
    }
    Ok(producers.describe())
}

/// The marker in a control batch, and its time. `None` if it has none, or cannot be read.
pub(super) fn read_marker(
    fs: &dyn FileSystem,
    segment: &Segment,
    at: &BatchAt,
    header: &BatchHeader,
) -> Result<Option<(EndMarker, i64)>, FileError> {
    if !has_marker(header, at) {
        return Ok(None);
    }
    Ok(parse_marker(header, &segment.read_batch(fs, at)?))
}

/// Compaction leaves a control batch without a record where nothing of the transaction is left.
pub(in crate::storage) fn has_marker(header: &BatchHeader, at: &BatchAt) -> bool {
    header.records_count > 0 && at.size <= LARGEST_CONTROL_BATCH
}

/// The marker in the bytes of a control batch, and its time. `None` if it has none, or cannot be read.
pub(in crate::storage) fn parse_marker(header: &BatchHeader, bytes: &[u8]) -> Option<(EndMarker, i64)> {
    let mut records = Batch::parse(bytes).ok()?.records().ok()?;
    let record = records.next_record().ok()??;
    let ControlRecord::EndTxn(EndTxnMarker { committed, coordinator_epoch }) = ControlRecord::parse(&record).ok()?
    else {
        return None;
    };
    let marker = EndMarker {
        producer_id: header.producer_id,
        producer_epoch: header.producer_epoch,
        committed,
        coordinator_epoch,
        transaction_version: 0,
    };
    Some((marker, record.timestamp()))
}
