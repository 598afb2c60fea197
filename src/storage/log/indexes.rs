//! What a segment holds of its indexes, and how a batch gets into them.

use super::index::{AbortedTransaction, Entry, Index, OffsetEntry, TimeEntry};
use super::scan::BatchAt;

/// The indexes of a segment and what belongs to them.
#[derive(Debug)]
pub(super) struct Indexes {
    /// Whether the files were looked at. Those of a sealed segment are when they are first needed.
    pub loaded: bool,
    pub offsets: Index<OffsetEntry>,
    pub times: Index<TimeEntry>,
    /// Looked at on its own, since most segments have none.
    pub aborted: Option<Index<AbortedTransaction>>,
    /// Bytes of log since the last entry of the offset index.
    pub since_entry: u64,
    /// The largest timestamp, and the last offset of the first batch that has it.
    pub latest: (i64, i64),
    /// Stretches of the log that are no batches or must not be taken for any: start and end.
    pub holes: Vec<(u64, u64)>,
    /// The segment was replaced: its files are another's now, and must not be written.
    pub retired: bool,
}

impl Indexes {
    /// Of an empty segment, or of one whose files were not looked at.
    pub fn new(base: i64) -> Self {
        Indexes {
            loaded: false,
            offsets: Index::default(),
            times: Index::default(),
            aborted: None,
            since_entry: 0,
            latest: (-1, base),
            holes: Vec::new(),
            retired: false,
        }
    }

    /// Whether an index has no room for another entry; the time index keeps room for the one that sealing the segment adds.
    pub fn is_full(&self, index_bytes: u32) -> bool {
        let room = |entry: usize| index_bytes as usize / entry;
        self.offsets.len() >= room(OffsetEntry::SIZE) || self.times.len() + 1 >= room(TimeEntry::SIZE)
    }

    /// Takes a batch in, and makes the entries that it is time for.
    pub fn take(&mut self, base: i64, batch: &BatchAt, interval: u32) {
        if batch.max_timestamp > self.latest.0 {
            self.latest = (batch.max_timestamp, batch.last_offset);
        }
        let relative = u32::try_from(batch.last_offset - base).ok().filter(|relative| *relative <= i32::MAX as u32);
        let position = u32::try_from(batch.position).ok().filter(|position| *position <= i32::MAX as u32);
        if let (Some(relative), Some(position)) = (relative, position)
            && self.since_entry > u64::from(interval)
            && self.offsets.last().is_none_or(|last| relative > last.relative && position > last.position)
        {
            self.offsets.push(OffsetEntry { relative, position });
            self.take_time(base);
            self.since_entry = 0;
        }
        self.since_entry += batch.size;
    }

    /// Adds the largest timestamp to the time index, if it is larger than the last entry's.
    pub fn take_time(&mut self, base: i64) {
        let (timestamp, offset) = self.latest;
        let Ok(relative) = u32::try_from(offset - base) else { return };
        let fits = match self.times.last() {
            Some(last) => timestamp > last.timestamp && relative >= last.relative,
            None => timestamp > -1,
        };
        if fits && relative <= i32::MAX as u32 {
            self.times.push(TimeEntry { timestamp, relative });
        }
    }

    /// Takes over what was loaded without the lock.
    pub fn adopt(&mut self, loaded: Indexes) {
        let Indexes { offsets, times, since_entry, latest, .. } = loaded;
        *self = Indexes {
            loaded: true,
            offsets,
            times,
            since_entry,
            latest,
            aborted: self.aborted.take(),
            holes: std::mem::take(&mut self.holes),
            retired: self.retired,
        };
    }

    /// Takes a stretch that is no batch, or must not be taken for one.
    pub fn mark_hole(&mut self, start: u64, end: u64) {
        if !self.holes.contains(&(start, end)) {
            self.holes.push((start, end));
            self.holes.sort_unstable();
        }
    }
}
