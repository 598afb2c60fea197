//! The entries of an offset index and a time index against the batches, both in the order of the log.

use std::io;
use std::sync::Arc;

use super::finding::{Consequence, Kind, Repair};
use super::notes::{Notes, Place};
use crate::storage::log::{BatchAt, IndexEntry, OffsetEntry, TimeEntry};
use crate::sys::File;

/// How many entries are read at once.
const PAGE: usize = 1024;

/// The entries of an index file, one after the other.
#[derive(Debug)]
pub(super) struct Entries<E> {
    pub name: String,
    file: Option<Arc<dyn File>>,
    page: Vec<E>,
    /// The number of the next entry, and of the first in the page.
    next: usize,
    page_from: usize,
    count: usize,
}

impl<E: IndexEntry> Entries<E> {
    /// `file` has `len` bytes; a rest that is no entry is not looked at.
    pub fn new(name: &str, file: Option<Arc<dyn File>>, len: u64) -> Entries<E> {
        let len = if file.is_some() { len } else { 0 };
        let count = usize::try_from(len).unwrap_or(0) / E::SIZE;
        Entries { name: name.into(), file, page: Vec::new(), next: 0, page_from: 0, count }
    }

    pub fn peek(&mut self) -> io::Result<Option<E>> {
        self.at(self.next)
    }

    fn at(&mut self, number: usize) -> io::Result<Option<E>> {
        if number >= self.count {
            return Ok(None);
        }
        let Some(file) = &self.file else { return Ok(None) };
        if !(self.page_from..self.page_from + self.page.len()).contains(&number) {
            let mut bytes = vec![0; PAGE.min(self.count - number) * E::SIZE];
            file.read_exact_at(&mut bytes, (number * E::SIZE) as u64)?;
            self.page = bytes.chunks_exact(E::SIZE).map(E::decode).collect();
            self.page_from = number;
        }
        Ok(Some(self.page[number - self.page_from]))
    }

    /// The last of all.
    pub fn last(&mut self) -> io::Result<Option<E>> {
        match self.count.checked_sub(1) {
            Some(last) => self.at(last),
            None => Ok(None),
        }
    }

    pub fn skip(&mut self) {
        self.next += 1;
    }

    /// The place in the file of the entry that `peek` answers.
    pub fn place(&self) -> Place {
        Place::bytes((self.next * E::SIZE) as u64, E::SIZE as u64)
    }

    /// Leaves out the zeros at the end, which Apache Kafka has there while it writes. Answers whether there are any.
    pub fn cut_padding(&mut self, is_padding: impl Fn(&E) -> bool) -> io::Result<bool> {
        let all = self.count;
        // The entries rise, so those that are all zeros are at the end or the file is damaged.
        let (mut low, mut high) = (0, all);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.at(middle)? {
                Some(entry) if is_padding(&entry) => high = middle,
                _ => low = middle + 1,
            }
        }
        self.count = low;
        (self.page, self.page_from) = (Vec::new(), 0);
        Ok(low < all)
    }
}

/// How an index was found to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Base offset of the segment.
    pub base: i64,
    /// Apache Kafka's: an entry may be of several batches that were appended at once.
    pub lenient: bool,
    pub repair: Repair,
}

/// Entries in a row that the log contradicts, told as one.
#[derive(Debug, Default)]
struct Run {
    place: Option<(u64, u64)>,
    why: String,
    offsets: Option<(i64, i64)>,
}

impl Run {
    fn extend(&mut self, place: Place, offset: i64, why: impl FnOnce() -> String) {
        let (position, bytes) = (place.position.unwrap_or(0), place.bytes.unwrap_or(0));
        match &mut self.place {
            Some((start, len)) => *len = position + bytes - *start,
            None => {
                self.place = Some((position, bytes));
                self.why = why();
            }
        }
        let (from, to) = self.offsets.unwrap_or((offset, offset.saturating_add(1)));
        self.offsets = Some((from.min(offset), to.max(offset.saturating_add(1))));
    }

    fn flush(&mut self, name: &str, entry: usize, rules: &Rules, notes: &mut Notes) {
        let Run { place: Some((position, bytes)), why, offsets } = std::mem::take(self) else { return };
        let count = bytes / entry as u64;
        let why = if count > 1 { format!("{count} entries are wrong, the first: {why}") } else { why };
        let place = Place { offsets, ..Place::bytes(position, bytes) };
        notes.add(name, place, Kind::BadIndex, (Consequence::Rebuild, rules.repair), why);
    }
}

/// Goes over an offset index as batches are come over.
#[derive(Debug)]
pub(super) struct OffsetCheck {
    entries: Entries<OffsetEntry>,
    rules: Rules,
    run: Run,
    last_good: Option<OffsetEntry>,
    /// An entry whose offset is to be the last of a later batch, before the position of the next entry.
    open: Option<(OffsetEntry, Place)>,
    /// Where the batch before ended.
    reached: u64,
    /// Where the log is damaged: what entries say of that is not known to be wrong.
    holes: Vec<(u64, u64)>,
}

impl OffsetCheck {
    pub fn new(entries: Entries<OffsetEntry>, rules: Rules) -> OffsetCheck {
        OffsetCheck { entries, rules, run: Run::default(), last_good: None, open: None, reached: 0, holes: Vec::new() }
    }

    /// The log is damaged from `start` to `end`.
    pub fn damage(&mut self, start: u64, end: u64) {
        self.holes.push((start, end));
    }

    fn bad(&mut self, why: impl FnOnce(OffsetEntry) -> String, notes: &mut Notes) -> io::Result<()> {
        let Some(entry) = self.entries.peek()? else { return Ok(()) };
        if self.holes.iter().any(|(start, end)| (*start..*end).contains(&u64::from(entry.position))) {
            self.entries.skip();
            return Ok(());
        }
        let offset = self.rules.base.saturating_add(entry.key());
        // Only those that follow each other are one run.
        let place = self.entries.place();
        if self.run.place.is_some_and(|(start, len)| place.position != Some(start + len)) {
            self.flush(notes);
        }
        self.run.extend(place, offset, || why(entry));
        self.entries.skip();
        Ok(())
    }

    fn flush(&mut self, notes: &mut Notes) {
        self.run.flush(&self.entries.name, OffsetEntry::SIZE, &self.rules, notes);
    }

    pub fn batch(&mut self, batch: &BatchAt, notes: &mut Notes) -> io::Result<()> {
        while let Some(entry) = self.entries.peek()? {
            let position = u64::from(entry.position);
            if position > batch.position {
                // One that is too large would hide those that follow.
                let next = self.entries.at(self.entries.next + 1)?;
                let hides = next.is_some_and(|next| {
                    next.position <= entry.position
                        && self.last_good.is_none_or(|last| next.position > last.position)
                        && u64::from(next.position) >= batch.position
                });
                if !hides {
                    break;
                }
                self.bad(|entry| format!("it points to {}, behind the entry after it", entry.position), notes)?;
                continue;
            }
            if position < batch.position {
                self.bad(|entry| format!("no batch starts at {}, where it points to", entry.position), notes)?;
                continue;
            }
            self.close_open(notes);
            let last = batch.last_offset - self.rules.base;
            if entry.key() == last && self.last_good.is_none_or(|before| before.relative < entry.relative) {
                self.last_good = Some(entry);
                self.entries.skip();
            } else if self.rules.lenient && entry.key() > last {
                self.open = Some((entry, self.entries.place()));
                self.entries.skip();
            } else {
                let ends = batch.last_offset;
                let base = self.rules.base;
                let why = |entry: OffsetEntry| {
                    format!("it says offset {} of the batch that ends with {ends}", base + entry.key())
                };
                self.bad(why, notes)?;
            }
        }
        if let Some((entry, _)) = self.open
            && entry.key() == batch.last_offset - self.rules.base
        {
            self.last_good = Some(entry);
            self.open = None;
        }
        self.reached = batch.end();
        Ok(())
    }

    fn close_open(&mut self, notes: &mut Notes) {
        if let Some((entry, place)) = self.open.take() {
            self.flush(notes);
            let offset = self.rules.base.saturating_add(entry.key());
            self.run.extend(place, offset, || format!("it says offset {offset}, which no batch there ends with"));
            self.flush(notes);
        }
    }

    /// The log ends. `whole`: its file ends there as well.
    pub fn finish(&mut self, notes: &mut Notes) -> io::Result<()> {
        self.close_open(notes);
        let reached = self.reached;
        while self.entries.peek()?.is_some() {
            self.bad(|entry| format!("it points to {}, and the log ends at {reached}", entry.position), notes)?;
        }
        self.flush(notes);
        Ok(())
    }
}

/// Goes over a time index as batches are come over.
#[derive(Debug)]
pub(super) struct TimeCheck {
    entries: Entries<TimeEntry>,
    rules: Rules,
    run: Run,
    /// The largest timestamp so far, and the batches that it may be said of: first and last offset.
    latest: i64,
    offsets: (i64, i64),
    /// Offsets where the log is damaged: what entries say of them is not known to be wrong.
    holes: Vec<(i64, i64)>,
}

impl TimeCheck {
    pub fn new(entries: Entries<TimeEntry>, rules: Rules) -> TimeCheck {
        TimeCheck { entries, rules, run: Run::default(), latest: -1, offsets: (-1, -1), holes: Vec::new() }
    }

    /// The log is damaged from offset `from` to before `to`.
    pub fn damage(&mut self, from: i64, to: i64) {
        self.holes.push((from, to));
    }

    fn bad(&mut self, why: impl FnOnce(TimeEntry) -> String, notes: &mut Notes) -> io::Result<()> {
        let Some(entry) = self.entries.peek()? else { return Ok(()) };
        let offset = self.rules.base.saturating_add(i64::from(entry.relative));
        if self.holes.iter().any(|(from, to)| (*from..*to).contains(&offset)) {
            self.entries.skip();
            return Ok(());
        }
        let place = self.entries.place();
        if self.run.place.is_some_and(|(start, len)| place.position != Some(start + len)) {
            self.run.flush(&self.entries.name, TimeEntry::SIZE, &self.rules, notes);
        }
        self.run.extend(place, offset, || why(entry));
        self.entries.skip();
        Ok(())
    }

    pub fn batch(&mut self, batch: &BatchAt, notes: &mut Notes) -> io::Result<()> {
        if batch.max_timestamp <= self.latest {
            return Ok(());
        }
        self.settle(Some(batch.max_timestamp), notes)?;
        self.latest = batch.max_timestamp;
        // Of the batches before version 2 only the last offset is known; older versions of Apache Kafka name the record.
        let first = if batch.header.is_some() { batch.base_offset } else { self.rules.base };
        self.offsets = (first, batch.last_offset);
        Ok(())
    }

    /// Goes over the entries that have to be of the latest timestamp so far or of one before it: those below `next`.
    fn settle(&mut self, next: Option<i64>, notes: &mut Notes) -> io::Result<()> {
        while let Some(entry) = self.entries.peek()? {
            if next.is_some_and(|next| entry.timestamp >= next) {
                // One that is too large would hide those that follow.
                let after = self.entries.at(self.entries.next + 1)?;
                let hides =
                    after.is_some_and(|after| after.timestamp <= entry.timestamp && after.timestamp >= self.latest);
                if !hides {
                    break;
                }
                self.bad(
                    |entry| format!("its timestamp {} is later than that of the entry after it", entry.timestamp),
                    notes,
                )?;
                continue;
            }
            let offset = self.rules.base.saturating_add(i64::from(entry.relative));
            let fits = match self.rules.lenient {
                true => (self.offsets.0..=self.offsets.1).contains(&offset),
                false => offset == self.offsets.1,
            };
            if entry.timestamp == self.latest && fits {
                self.entries.skip();
                // There is one entry of each.
                self.offsets = (i64::MAX, i64::MAX);
                continue;
            }
            let latest = self.latest;
            let why = |entry: TimeEntry| match entry.timestamp == latest {
                true => format!("it says that timestamp {latest} is at offset {offset}, where it is not"),
                false => format!("no batch is the first with its timestamp {}", entry.timestamp),
            };
            self.bad(why, notes)?;
        }
        Ok(())
    }

    pub fn finish(&mut self, notes: &mut Notes) -> io::Result<()> {
        self.settle(None, notes)?;
        self.run.flush(&self.entries.name, TimeEntry::SIZE, &self.rules, notes);
        Ok(())
    }
}
