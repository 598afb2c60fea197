//! The look at the active segment when a log is opened: where does it end, and is what it has whole? And the
//! check of a whole segment that it is made of.
//!
//! After a clean stop only what follows the last index entry is walked over. After any other every batch is, and every
//! checksum is made anew. What is behind the last good batch is a torn tail and is cut off. What is damaged before it is
//! kept and reported: a batch whose frame holds is served as it is, for the reader to find out; anything else is a hole
//! that readers are led past.

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::epochs::LeaderEpochs;
use super::error::FileError;
use super::scan::{BatchAt, LONG_WALK, Walker};
use super::segment::Segment;
use crate::storage::names::FileKind;
use crate::sys::{File, FileSystem};

/// A damaged stretch of a log that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The base offset of the segment.
    pub segment: i64,
    /// Where in the segment's log file, in bytes.
    pub position: u64,
    /// How many bytes.
    pub bytes: u64,
    /// The offsets that are or were in it: from, and the first after it.
    pub offsets: (i64, i64),
    /// Whether readers are given it as it is; if not they are led past.
    pub served: bool,
}

/// What a look at a segment came to.
#[derive(Debug)]
pub(super) struct Checked {
    /// The offset after the last.
    pub end: i64,
    /// Bytes up to the end of the last good batch.
    pub size: u64,
    pub damage: Vec<Damage>,
}

/// Walks over the segment's tail after a clean stop, and takes it into the indexes.
pub(super) fn walk_tail(
    fs: &dyn FileSystem,
    segment: &Segment,
    len: u64,
    epochs: &mut LeaderEpochs,
) -> Result<Checked, FileError> {
    segment.publish(len);
    let from = segment.resume_indexes(fs)?;
    let mut walker = Walker::new(segment.file(fs)?, from, len, LONG_WALK);
    let mut checked = Checked { end: segment.base, size: from, damage: Vec::new() };
    while let Some(batch) = segment.step(&mut walker)? {
        if batch.position > checked.size {
            checked.damage.push(Damage {
                segment: segment.base,
                position: checked.size,
                bytes: batch.position - checked.size,
                offsets: (checked.end, batch.base_offset),
                served: false,
            });
        }
        take(segment, &batch, epochs);
        checked.end = batch.last_offset.saturating_add(1);
        checked.size = batch.end();
    }
    Ok(checked)
}

/// Checks every batch of the segment after an unclean stop, and makes the indexes anew.
pub(super) fn check_all(
    fs: &dyn FileSystem,
    segment: &Segment,
    len: u64,
    epochs: &mut LeaderEpochs,
) -> Result<Checked, FileError> {
    let path = segment.path(FileKind::Log);
    let last_possible = segment.base.saturating_add(i64::from(i32::MAX));
    let mut checker = Checker::new(segment.file(fs)?, segment.base, last_possible, len, LONG_WALK);
    let mut all = Vec::new();
    while let Some(batch) = checker.next_good().map_err(FileError::of("read", &path))? {
        for damage in checker.take_damage() {
            if !damage.served {
                segment.mark_hole(damage.position, damage.position + damage.bytes);
            }
            all.push(damage);
        }
        take(segment, &batch, epochs);
    }
    Ok(Checked { end: checker.end(), size: checker.size(), damage: all })
}

fn take(segment: &Segment, batch: &BatchAt, epochs: &mut LeaderEpochs) {
    segment.index_batch(batch);
    if let Some(header) = &batch.header {
        epochs.assign(header.partition_leader_epoch, header.base_offset);
    }
}

/// Goes over the batches of a segment's file and tells the good ones from damage: what a start goes by after an unclean stop,
/// and what the scrub and `doze verify` go by in every segment. Not for use by several threads at once.
#[derive(Debug)]
pub(in crate::storage) struct Checker {
    walker: Walker,
    base: i64,
    last_possible: i64,
    len: u64,
    /// The offset after the last good batch, and where that ends.
    end: i64,
    size: u64,
    damage: Vec<Damage>,
}

impl Checker {
    /// `base`: that of the segment. `last_possible`: the last offset that can be in it. `len`: the bytes of the file. `step`: how
    /// many of them are read at once.
    pub fn new(file: Arc<dyn File>, base: i64, last_possible: i64, len: u64, step: usize) -> Checker {
        let walker = Walker::new(file, 0, len, step);
        Checker { walker, base, last_possible, len, end: base, size: 0, damage: Vec::new() }
    }

    /// Has it go on from `position`, where a batch starts, if it is not damaged, with this offset or a later one.
    pub fn go_on_from(&mut self, position: u64, offset: i64) {
        self.size = position.min(self.len);
        self.end = offset.max(self.base);
    }

    /// Bytes of the file, as it was said.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Has batches of the versions before 2 looked for behind damage, also where none was come over yet.
    pub fn look_for_old(&mut self) {
        self.walker.look_for_old(true);
    }

    /// The offset after the last good batch, the segment's base before the first.
    pub fn end(&self) -> i64 {
        self.end
    }

    /// Where the last good batch ends.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The damage that was come over since the last call, in order; all of it is before the last good batch.
    pub fn take_damage(&mut self) -> Vec<Damage> {
        std::mem::take(&mut self.damage)
    }

    /// The bytes of the last good batch. Holds all of them at once. `None` if the file has become shorter.
    pub fn bytes(&mut self, batch: &BatchAt) -> io::Result<Option<&[u8]>> {
        self.walker.slice(batch.position, batch.end())
    }

    /// Gives back the memory that [`Checker::bytes`] took for a large batch.
    pub fn forget(&mut self) {
        self.walker.forget();
    }

    /// Steps over the next good batch; what lies before it is damage. `None` if there is none up to the end.
    pub fn next_good(&mut self) -> io::Result<Option<BatchAt>> {
        self.walker.skip_to(self.size);
        let good = self.find_good()?;
        if let Some(batch) = &good {
            self.end = batch.last_offset.saturating_add(1);
            self.size = batch.end();
        }
        Ok(good)
    }

    fn find_good(&mut self) -> io::Result<Option<BatchAt>> {
        let at = self.walker.position();
        let here = self.walker.next()?;
        if let Some(batch) = here
            && self.is_good(&batch)?
            && !self.is_misplaced(&batch)?
        {
            return Ok(Some(batch));
        }
        // What is here is not good. If a good batch starts just where this one says that it ends, its frame holds.
        if let Some(bad) = here.filter(|bad| bad.end() < self.len) {
            self.walker.skip_to(bad.end());
            if let Some(good) = self.walker.next()?
                && self.is_good(&good)?
            {
                let served = bad.base_offset >= self.end && bad.last_offset < good.base_offset;
                self.keep_damage(at, &good, served);
                return Ok(Some(good));
            }
        }
        self.walker.skip_to(at);
        if at < self.len && self.walker.find_next(self.possible_offsets())? {
            let good = self.walker.next()?.filter(|good| good.position > at);
            if let Some(good) = good {
                self.keep_damage(at, &good, false);
                return Ok(Some(good));
            }
        }
        Ok(None)
    }

    /// Whether the batch follows what came before it and its checksum is that of its bytes.
    fn is_good(&mut self, batch: &BatchAt) -> io::Result<bool> {
        let possible = self.possible_offsets();
        Ok(possible.contains(&batch.base_offset)
            && possible.contains(&batch.last_offset)
            && self.walker.verify(batch)?)
    }

    /// Whether a batch that is good for itself leaves a gap which the one after it belongs into: then it is the batch's offset
    /// that is damaged, and not all that follows it.
    fn is_misplaced(&mut self, batch: &BatchAt) -> io::Result<bool> {
        let due = self.end;
        if batch.base_offset == due {
            return Ok(false);
        }
        self.walker.skip_to(batch.end());
        let Some(next) = self.walker.next()? else { return Ok(false) };
        Ok((due..=batch.last_offset).contains(&next.base_offset) && self.walker.verify(&next)?)
    }

    /// The offset field is not covered by a batch's checksum. These it can have: after the last, and in the segment.
    fn possible_offsets(&self) -> RangeInclusive<i64> {
        self.end..=self.last_possible
    }

    fn keep_damage(&mut self, from: u64, good: &BatchAt, served: bool) {
        self.damage.push(Damage {
            segment: self.base,
            position: from,
            bytes: good.position - from,
            offsets: (self.end, good.base_offset),
            served,
        });
    }
}
