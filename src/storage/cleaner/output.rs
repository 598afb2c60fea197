//! Where the batches of a group of segments go that are to become one.

use std::ops::Range;
use std::sync::Arc;

use crate::storage::log::{
    AbortedTransaction, BatchAt, FileError, LogConfig, NewSegment, PartitionLog, RewriteError, Segment, Walker,
};

/// What a group of neighbouring segments becomes. A single segment is not written anew before something of it changes.
#[derive(Debug)]
pub(super) struct Output {
    log: Arc<PartitionLog>,
    originals: Vec<Arc<Segment>>,
    segment_bytes: u64,
    index_bytes: u32,
    buffer: usize,
    /// What was kept so far is what the one original starts with; none of it was written.
    unchanged: bool,
    new: Vec<NewSegment>,
    aborted: Vec<AbortedTransaction>,
    /// Nothing is written; this is how many bytes would be left.
    counted: Option<u64>,
}

impl Output {
    pub fn new(log: &Arc<PartitionLog>, originals: Vec<Arc<Segment>>, config: &LogConfig, buffer: usize) -> Output {
        Output {
            log: log.clone(),
            unchanged: originals.len() == 1,
            originals,
            segment_bytes: config.segment_bytes.into(),
            index_bytes: config.segment_index_bytes,
            buffer,
            new: Vec::new(),
            aborted: Vec::new(),
            counted: None,
        }
    }

    /// One that only counts what would be left.
    pub fn counting(
        log: &Arc<PartitionLog>,
        originals: Vec<Arc<Segment>>,
        config: &LogConfig,
        buffer: usize,
    ) -> Output {
        Output { counted: Some(0), unchanged: false, ..Output::new(log, originals, config, buffer) }
    }

    /// Keeps a batch of the original as it is.
    pub fn keep(&mut self, batch: &BatchAt, bytes: &[u8]) -> Result<(), RewriteError> {
        if self.unchanged { Ok(()) } else { self.append(batch, bytes) }
    }

    /// Keeps a stretch of the original that is no batch.
    pub fn keep_hole(&mut self, bytes: &[u8]) -> Result<(), RewriteError> {
        if self.unchanged || self.count(bytes) {
            return Ok(());
        }
        if self.new.is_empty() {
            self.start(self.originals[0].base)?;
        }
        let last = self.new.last_mut().expect("it was just made if there was none");
        Ok(last.append_hole(bytes)?)
    }

    /// Does not keep the batch at `position` of the original.
    pub fn drop_batch(&mut self, position: u64) -> Result<(), RewriteError> {
        self.change_from(position)
    }

    /// Writes another batch in the place of the one at `position` of the original.
    pub fn replace(&mut self, position: u64, batch: &BatchAt, bytes: &[u8]) -> Result<(), RewriteError> {
        self.change_from(position)?;
        self.append(batch, bytes)
    }

    /// The marker of an aborted transaction was kept.
    pub fn push_aborted(&mut self, aborted: AbortedTransaction) {
        self.aborted.push(aborted);
    }

    /// Bytes that are to be read in the place of the originals.
    pub fn kept_bytes(&self) -> u64 {
        match self.counted {
            Some(counted) => counted,
            None if self.unchanged => self.originals[0].size(),
            None => self.written_bytes(),
        }
    }

    /// Bytes that are to be written for it.
    pub fn written_bytes(&self) -> u64 {
        self.new.iter().map(NewSegment::size).sum()
    }

    /// Writes what was kept so far, up to `position`, before something comes that is not in the original.
    fn change_from(&mut self, position: u64) -> Result<(), RewriteError> {
        if !std::mem::take(&mut self.unchanged) {
            return Ok(());
        }
        let (env, original) = (self.log.env().clone(), self.originals[0].clone());
        let mut walker = Walker::new(original.file(&*env.fs)?, 0, position, self.buffer);
        while walker.position() < position {
            match next(&original, &mut walker)? {
                Next::Batch(batch) => {
                    let bytes = original.slice(&mut walker, batch.position..batch.end())?;
                    self.append(&batch, bytes)?;
                }
                Next::Hole(hole) => {
                    self.keep_hole(original.slice(&mut walker, hole)?)?;
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, bytes: &[u8]) -> bool {
        self.counted.iter_mut().for_each(|counted| *counted += bytes.len() as u64);
        self.counted.is_some()
    }

    fn start(&mut self, base: i64) -> Result<(), RewriteError> {
        let new = self.log.new_segment(base, self.new.is_empty(), self.buffer)?;
        self.new.push(new);
        Ok(())
    }

    fn append(&mut self, batch: &BatchAt, bytes: &[u8]) -> Result<(), RewriteError> {
        if self.count(bytes) {
            return Ok(());
        }
        let has_room = |new: &NewSegment| {
            new.size() == 0
                || (new.size() + bytes.len() as u64 <= self.segment_bytes && !new.is_full_for(batch, self.index_bytes))
        };
        match self.new.last() {
            None => self.start(self.originals[0].base)?,
            Some(last) if !has_room(last) => self.start(batch.base_offset)?,
            Some(_) => {}
        }
        let last = self.new.last_mut().expect("it was just made if there was none");
        Ok(last.append(batch, bytes)?)
    }

    /// Puts what was kept in the place of the originals. Answers how many segments they have become.
    pub fn finish(mut self) -> Result<usize, RewriteError> {
        if self.unchanged || self.counted.is_some() {
            return Ok(1);
        }
        if self.new.is_empty() && self.log.is_first(&self.originals[0]) {
            // The log starts where it started.
            self.start(self.originals[0].base)?;
        }
        for aborted in self.aborted {
            let at = self.new.partition_point(|new| new.base() <= aborted.last_offset);
            if let Some(new) = at.checked_sub(1).and_then(|at| self.new.get_mut(at)) {
                new.push_aborted(aborted);
            }
        }
        let last = self.originals.last().expect("a group has a segment");
        let modified_ms = last.modified_ms(&*self.log.env().fs)?;
        let count = self.new.len();
        self.log.replace(&self.originals, self.new, modified_ms)?;
        Ok(count)
    }
}

/// What is next in a segment.
pub(super) enum Next {
    Batch(BatchAt),
    /// Bytes that are no batch, or must not be taken for one.
    Hole(Range<u64>),
}

/// What is next in a segment, where a walk has not reached its end.
pub(super) fn next(segment: &Segment, walker: &mut Walker) -> Result<Next, FileError> {
    let start = walker.position();
    let found = segment.step(walker)?;
    let end = found.map_or(walker.end(), |batch| batch.position);
    if end > start {
        walker.skip_to(end);
        return Ok(Next::Hole(start..end));
    }
    Ok(found.map_or(Next::Hole(start..end), Next::Batch))
}
