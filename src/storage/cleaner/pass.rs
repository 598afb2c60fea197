//! One pass over a log: fill the map with the keys of what was never cleaned, then go through all segments from the first
//! and keep what the map lets stay. It is taken a step at a time, so that it can be slowed down, and given up between two.

use std::sync::Arc;

use super::filter::{Filter, PassStats, Verdict};
use super::key_map::KeyMap;
use super::output::{Next, Output, next};
use super::plan::Plan;
use super::transactions::Transactions;
use crate::record::BatchHeader;
use crate::storage::log::{BatchAt, PartitionLog, RewriteError, Segment, Walker};

/// The memory that a pass may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    /// Of the map, in bytes.
    pub map_bytes: usize,
    /// How full it may become, 0 to 1.
    pub load: f64,
    /// Of each buffer that is read or written through, in bytes.
    pub buffer: usize,
}

/// A batch that was kept because it cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    pub base_offset: i64,
    pub last_offset: i64,
    pub reason: String,
}

/// What a pass came to.
#[derive(Debug)]
pub(super) struct Cleaned {
    /// Everything below has gone through the cleaner.
    pub to: i64,
    pub horizon_ms: Option<i64>,
    pub stats: PassStats,
    pub unreadable: Vec<Unreadable>,
    /// Segments before and after.
    pub segments: (usize, usize),
}

#[derive(Debug)]
enum Phase {
    /// The number of the segment, and where in it.
    Mapping(usize, Option<Walker>),
    Rewriting(Group),
    /// The number of the group that is next.
    Between(usize),
}

/// The group of segments that is being rewritten.
#[derive(Debug)]
struct Group {
    number: usize,
    /// The number of the segment.
    at: usize,
    walker: Option<Walker>,
    output: Output,
}

/// A pass that is under way. Not for use by several threads at once.
#[derive(Debug)]
pub(super) struct Pass {
    log: Arc<PartitionLog>,
    /// Where the log started when the pass did.
    log_start: i64,
    plan: Plan,
    memory: Memory,
    filter: Filter,
    phase: Phase,
    groups: Vec<std::ops::Range<usize>>,
    became: usize,
    unreadable: Vec<Unreadable>,
    /// Only what would be left is counted.
    counting: bool,
}

impl Pass {
    /// A pass that writes nothing.
    pub fn counting(log: Arc<PartitionLog>, plan: Plan, memory: Memory) -> Result<Pass, RewriteError> {
        Ok(Pass { counting: true, ..Pass::new(log, plan, memory)? })
    }

    pub fn new(log: Arc<PartitionLog>, plan: Plan, memory: Memory) -> Result<Pass, RewriteError> {
        let env = log.env().clone();
        let mut seed = [0; 16];
        env.random.fill(&mut seed);
        let [low, high] = [0, 8].map(|at| u64::from_be_bytes(seed[at..at + 8].try_into().expect("eight bytes")));
        let (from, end) = (plan.dirty_from, plan.end());
        let map = KeyMap::new([low, high], memory.map_bytes, memory.load, from, end - from);
        let mut filter = Filter::new(map, from - 1, &plan.config, env.clock.now_ms());
        filter.transactions = Transactions::new(log.aborted_transactions(from, end)?);
        let phase = Phase::Mapping(plan.from(from), None);
        let (groups, unreadable) = (Vec::new(), Vec::new());
        let log_start = log.offsets().start;
        Ok(Pass { log, log_start, plan, memory, filter, phase, groups, became: 0, unreadable, counting: false })
    }

    /// Goes on until about `budget` bytes have been read. Answers how many were, and what the pass came to once it is over.
    pub fn step(&mut self, budget: u64) -> Result<(u64, Option<Cleaned>), RewriteError> {
        self.step_now(budget).map_err(|error| match error {
            // What was read may have been removed under it.
            RewriteError::File(_) if self.log.offsets().start != self.log_start => RewriteError::Gone,
            error => error,
        })
    }

    fn step_now(&mut self, budget: u64) -> Result<(u64, Option<Cleaned>), RewriteError> {
        let read = |stats: &PassStats| stats.map_bytes + stats.read_bytes;
        let before = read(&self.filter.stats);
        loop {
            if let Some(cleaned) = self.advance(before.saturating_add(budget))? {
                return Ok((read(&self.filter.stats) - before, Some(cleaned)));
            }
            let done = read(&self.filter.stats) - before;
            if done >= budget {
                return Ok((done, None));
            }
        }
    }

    /// One segment, or less of it if `until` bytes have been read before.
    fn advance(&mut self, until: u64) -> Result<Option<Cleaned>, RewriteError> {
        let phase = std::mem::replace(&mut self.phase, Phase::Between(0));
        self.phase = match phase {
            Phase::Mapping(at, walker) if at < self.plan.segments.len() => self.map(at, walker, until)?,
            Phase::Mapping(..) => self.start_rewriting()?,
            Phase::Between(number) if number < self.groups.len() => self.start_group(number)?,
            Phase::Between(_) => return Ok(Some(self.finish())),
            Phase::Rewriting(group) => self.rewrite(group, until)?,
        };
        Ok(None)
    }

    fn walker(&self, segment: &Segment) -> Result<Walker, RewriteError> {
        Ok(Walker::new(segment.file(&*self.log.env().fs)?, 0, segment.size(), self.memory.buffer))
    }

    fn map(&mut self, at: usize, walker: Option<Walker>, until: u64) -> Result<Phase, RewriteError> {
        let (segment, next_base) = self.plan.segments[at].clone();
        let mut walker = match walker {
            Some(walker) => walker,
            None => self.walker(&segment)?,
        };
        let from = self.plan.dirty_from;
        while walker.position() < walker.end() {
            if self.filter.stats.map_bytes + self.filter.stats.read_bytes >= until {
                return Ok(Phase::Mapping(at, Some(walker)));
            }
            let Next::Batch(batch) = next(&segment, &mut walker)? else { continue };
            self.filter.stats.map_bytes += batch.size;
            if batch.last_offset < from {
                continue;
            }
            let bytes = segment.slice(&mut walker, batch.position..batch.end())?;
            let mapped = match &batch.header {
                Some(header) => self.filter.map_batch(bytes, header, from),
                None => self.filter.map_old(bytes, batch.last_offset, from),
            };
            if mapped.is_err() {
                return self.start_rewriting();
            }
        }
        self.filter.mapped_to = self.filter.mapped_to.max(next_base - 1);
        Ok(Phase::Mapping(at + 1, None))
    }

    fn start_rewriting(&mut self) -> Result<Phase, RewriteError> {
        let end = self.filter.mapped_to + 1;
        self.groups = self.plan.groups(end);
        let start = self.plan.segments.first().map_or(0, |(segment, _)| segment.base);
        self.filter.transactions = Transactions::new(self.log.aborted_transactions(start, self.plan.end())?);
        self.filter.stats.records_read = 0;
        Ok(Phase::Between(0))
    }

    fn start_group(&mut self, number: usize) -> Result<Phase, RewriteError> {
        let group = self.groups[number].clone();
        // What was written since the last group counts.
        self.filter.last_of_producers = self.log.last_of_producers();
        let originals = self.plan.segments[group.clone()].iter().map(|(segment, _)| segment.clone()).collect();
        let new = if self.counting { Output::counting } else { Output::new };
        let output = new(&self.log, originals, &self.plan.config, self.memory.buffer);
        Ok(Phase::Rewriting(Group { number, at: group.start, walker: None, output }))
    }

    fn rewrite(&mut self, mut group: Group, until: u64) -> Result<Phase, RewriteError> {
        let (segment, next_base) = self.plan.segments[group.at].clone();
        let mut walker = match group.walker.take() {
            Some(walker) => walker,
            None => self.walker(&segment)?,
        };
        let is_last_segment = group.at + 1 == self.plan.segments.len();
        while walker.position() < walker.end() {
            if self.filter.stats.map_bytes + self.filter.stats.read_bytes >= until {
                group.walker = Some(walker);
                return Ok(Phase::Rewriting(group));
            }
            match next(&segment, &mut walker)? {
                Next::Hole(hole) => {
                    self.filter.stats.read_bytes += hole.end - hole.start;
                    group.output.keep_hole(segment.slice(&mut walker, hole)?)?;
                }
                Next::Batch(batch) => {
                    self.filter.stats.read_bytes += batch.size;
                    let is_last =
                        is_last_segment && (batch.last_offset + 1 >= next_base || batch.end() == segment.size());
                    let bytes = segment.slice(&mut walker, batch.position..batch.end())?;
                    judge(&mut self.filter, &mut group.output, &mut self.unreadable, &batch, bytes, is_last)?;
                }
            }
        }
        group.at += 1;
        if group.at < self.groups[group.number].end {
            return Ok(Phase::Rewriting(group));
        }
        self.filter.stats.kept_bytes += group.output.kept_bytes();
        self.filter.stats.written_bytes += group.output.written_bytes();
        self.became += group.output.finish()?;
        Ok(Phase::Between(group.number + 1))
    }

    fn finish(&mut self) -> Cleaned {
        let mut stats = self.filter.stats;
        stats.keys = self.filter.map.len() as u64;
        Cleaned {
            to: self.filter.mapped_to + 1,
            horizon_ms: self.filter.horizon_ms,
            stats,
            unreadable: std::mem::take(&mut self.unreadable),
            segments: (self.groups.last().map_or(0, |group| group.end), self.became),
        }
    }
}

/// Decides on a batch, and has it done.
fn judge(
    filter: &mut Filter,
    output: &mut Output,
    unreadable: &mut Vec<Unreadable>,
    batch: &BatchAt,
    bytes: &[u8],
    is_last: bool,
) -> Result<(), RewriteError> {
    let verdict = match &batch.header {
        None => filter.judge_old(bytes, is_last),
        Some(header) => {
            let kept_before = filter.stats.records_kept;
            filter.stats.records_read += header.records_count as u64;
            let verdict = filter.judge(bytes, header, is_last);
            let kept = match &verdict {
                Verdict::Drop => 0,
                Verdict::Keep | Verdict::Unreadable(_) => header.records_count,
                Verdict::Replace(new) => BatchHeader::parse(new).map_or(0, |new| new.records_count),
            };
            filter.stats.records_kept = kept_before + kept as u64;
            verdict
        }
    };
    match verdict {
        Verdict::Keep => output.keep(batch, bytes)?,
        Verdict::Drop => output.drop_batch(batch.position)?,
        Verdict::Replace(new) => {
            let header = BatchHeader::parse(&new).expect("a batch that was just made has a header");
            let at = BatchAt { header: Some(header), max_timestamp: header.max_timestamp, ..*batch };
            output.replace(batch.position, &at, &new)?;
        }
        Verdict::Unreadable(reason) => {
            filter.stats.unreadable += 1;
            let BatchAt { base_offset, last_offset, .. } = *batch;
            unreadable.push(Unreadable { base_offset, last_offset, reason });
            output.keep(batch, bytes)?;
        }
    }
    filter.aborts.drain(..).for_each(|aborted| output.push_aborted(aborted));
    Ok(())
}
