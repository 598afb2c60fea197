//! Reading.

use std::sync::Arc;

use super::error::{FileError, ReadError};
use super::index::AbortedTransaction;
use super::segment::Segment;
use super::{PartitionLog, StableOffset};
use crate::sys::{File, FileRange};

/// What a reader wants to see of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// All that is in the log.
    ReadUncommitted,
    /// What is below the last stable offset, and which of it was aborted.
    ReadCommitted,
}

/// The answer to a read.
#[derive(Clone, Debug)]
pub struct ReadResult {
    /// Whole batches, the first of which has the offset that was asked for or, where that is gone, the next one. `None` if
    /// there is nothing to read.
    pub range: Option<FileRange>,
    /// The base offset of the segment that the range is of.
    pub segment: i64,
    /// With [`Isolation::ReadCommitted`], every aborted transaction that has records in the range, by the offset of its abort
    /// marker; there may be some that have none. Empty otherwise.
    pub aborted: Vec<AbortedTransaction>,
    pub high_watermark: i64,
    pub last_stable_offset: i64,
    pub log_start_offset: i64,
}

/// How many places are remembered.
const PLACES: usize = 8;

/// Where readers left off, so that one that goes on needs no index, and the file that was last read.
#[derive(Debug, Default)]
pub(super) struct Hints {
    /// An offset, the segment's id, and the position of the first batch with that offset or a later one.
    places: [Option<(i64, u64, u64)>; PLACES],
    next: usize,
    /// Keeps a sealed segment's descriptor from one read to the next.
    file: Option<Arc<dyn File>>,
}

impl Hints {
    fn find(&self, offset: i64, segment: u64) -> Option<u64> {
        let found = self.places.iter().flatten().find(|place| place.0 == offset && place.1 == segment);
        found.map(|place| place.2)
    }

    fn put(&mut self, offset: i64, segment: u64, position: u64) {
        if self.find(offset, segment).is_none() {
            self.places[self.next] = Some((offset, segment, position));
            self.next = (self.next + 1) % PLACES;
        }
    }

    fn keep(&mut self, file: &Arc<dyn File>) {
        if !self.file.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, file)) {
            self.file = Some(file.clone());
        }
    }

    /// Lets go of the descriptor.
    pub fn release(&mut self) {
        self.file = None;
    }
}

/// What a read goes by: one look at the view.
struct Bounds {
    segment: Arc<Segment>,
    start: i64,
    end: i64,
    end_position: u64,
    active_base: i64,
    last_stable: StableOffset,
}

/// Whole batches of one segment.
struct Stretch {
    position: u64,
    end: u64,
    /// No offset from this one on is in it.
    next_offset: i64,
}

impl PartitionLog {
    /// Reads batches from `offset` on: at most `max_bytes` of them, all of one segment. With `min_one_batch` the first batch
    /// is there whole even if it is larger. Reading at the end of the log touches no disk.
    pub fn read(
        &self,
        offset: i64,
        max_bytes: usize,
        min_one_batch: bool,
        isolation: Isolation,
    ) -> Result<ReadResult, ReadError> {
        let read = self.steadily(|| self.read_now(offset, max_bytes, min_one_batch, isolation));
        read.map_err(|error| match (error, self.bounds(offset)) {
            // What was being read may have been removed under it: then that is the answer.
            (ReadError::File(_), Err(gone)) => gone,
            (error, _) => error,
        })
    }

    fn read_now(
        &self,
        offset: i64,
        max_bytes: usize,
        min_one_batch: bool,
        isolation: Isolation,
    ) -> Result<ReadResult, ReadError> {
        let mut bounds = self.bounds(offset)?;
        let limit = match isolation {
            Isolation::ReadUncommitted => StableOffset { offset: bounds.end, place: None },
            Isolation::ReadCommitted => bounds.last_stable,
        };
        let mut result = ReadResult {
            range: None,
            segment: bounds.segment.base,
            aborted: Vec::new(),
            high_watermark: bounds.end,
            last_stable_offset: bounds.last_stable.offset.max(bounds.start),
            log_start_offset: bounds.start,
        };
        if max_bytes == 0 && !min_one_batch {
            return Ok(result);
        }
        while offset < limit.offset && bounds.segment.base < limit.offset {
            if let Some(stretch) = self.stretch(&bounds, limit, offset, max_bytes, min_one_batch)? {
                let file = bounds.segment.file(&*self.env.fs)?;
                if bounds.segment.base != bounds.active_base {
                    self.hints.lock().keep(&file);
                }
                if isolation == Isolation::ReadCommitted {
                    let next_base =
                        self.view.read().segment_after(bounds.segment.base).map_or(i64::MAX, |next| next.base);
                    result.aborted = self.aborted(&bounds.segment, (offset, stretch.next_offset.min(next_base)))?;
                }
                let len = usize::try_from(stretch.end - stretch.position).expect("a segment has less than 2 GiB");
                result.segment = bounds.segment.base;
                result.range = (len > 0).then_some(FileRange { file, position: stretch.position, len });
                return Ok(result);
            }
            // Nothing of the offset or after it is in this segment: compaction has left a gap up to the next.
            match self.view.read().segment_after(bounds.segment.base) {
                Some(next) => bounds.segment = next.clone(),
                None => break,
            }
        }
        Ok(result)
    }

    fn bounds(&self, offset: i64) -> Result<Bounds, ReadError> {
        let view = self.view.read();
        if view.closed {
            return Err(ReadError::Closed);
        }
        let segment = match view.segment_of(offset) {
            Some(segment) if (view.start..=view.end).contains(&offset) => segment.clone(),
            _ => return Err(ReadError::OutOfRange { offset, start: view.start, end: view.end }),
        };
        Ok(Bounds {
            segment,
            start: view.start,
            end: view.end,
            end_position: view.end_position,
            active_base: view.active().base,
            last_stable: view.last_stable,
        })
    }

    /// What of a segment answers a read. `None` if nothing of it is at or after the offset.
    fn stretch(
        &self,
        bounds: &Bounds,
        limit: StableOffset,
        offset: i64,
        max_bytes: usize,
        min_one_batch: bool,
    ) -> Result<Option<Stretch>, FileError> {
        let (fs, segment) = (&*self.env.fs, &bounds.segment);
        let is_active = segment.base == bounds.active_base;
        let mut stop = if is_active { bounds.end_position } else { segment.size() };
        let mut stop_offset = if is_active { bounds.end } else { i64::MAX };
        let hinted = if offset <= segment.base { Some(0) } else { self.hints.lock().find(offset, segment.id) };
        let start = match hinted {
            Some(position) => position,
            None => match segment.locate(fs, offset)? {
                Some(batch) => batch.position,
                None => return Ok(None),
            },
        };
        if limit.offset < bounds.end {
            // An open transaction starts somewhere: in this segment, or in one after it.
            match limit.place {
                Some((base, position)) if base == segment.base => stop = position,
                Some(_) => {}
                None => stop = segment.locate(fs, limit.offset)?.map_or(stop, |batch| batch.position),
            }
            stop_offset = stop_offset.min(limit.offset);
        }
        // What is no batch is passed over, and never in the middle of what a reader is given.
        let start = segment.past_holes(start);
        let stop = segment.next_hole(start, stop);
        if start >= stop {
            return Ok(None);
        }
        if stop - start <= max_bytes as u64 {
            if is_active && stop == bounds.end_position {
                self.hints.lock().put(bounds.end, segment.id, stop);
            }
            return Ok(Some(Stretch { position: start, end: stop, next_offset: stop_offset }));
        }
        let rest = Stretch { position: start, end: stop, next_offset: stop_offset };
        self.cut_stretch(segment, rest, max_bytes as u64, min_one_batch).map(Some)
    }

    /// The batches of `stretch` that `max_bytes` have room for, where there is not room for all.
    fn cut_stretch(
        &self,
        segment: &Segment,
        stretch: Stretch,
        max_bytes: u64,
        min_one_batch: bool,
    ) -> Result<Stretch, FileError> {
        let Stretch { position: start, end: stop, mut next_offset } = stretch;
        let room_to = start + max_bytes;
        let from = segment.indexed_position(&*self.env.fs, start, room_to)?.unwrap_or(start);
        let mut walker = segment.indexed_walk(&*self.env.fs, from, stop, start, i64::MAX)?;
        let mut end = walker.position();
        let mut first_of_all = end == start && min_one_batch;
        while let Some(batch) = segment.step(&mut walker)? {
            if batch.position != end || (batch.end() > room_to && !first_of_all) {
                // The first that has no room, or one behind a stretch that is no batch.
                if batch.header.is_some() {
                    next_offset = batch.base_offset;
                    self.hints.lock().put(next_offset, segment.id, batch.position);
                }
                break;
            }
            first_of_all = false;
            end = batch.end();
        }
        Ok(Stretch { position: start, end, next_offset })
    }

    /// The aborted transactions with anything in `fetched` (from, to), whose records start in `segment`.
    fn aborted(&self, segment: &Arc<Segment>, fetched: (i64, i64)) -> Result<Vec<AbortedTransaction>, FileError> {
        let mut aborted = Vec::new();
        let mut segment = segment.clone();
        // A transaction may have been aborted in a later segment than its records are in.
        while !segment.aborted(&*self.env.fs, fetched, &mut aborted)? {
            match self.view.read().segment_after(segment.base) {
                Some(next) => segment = next.clone(),
                None => break,
            }
        }
        Ok(aborted)
    }
}
