//! What has become of the records of one partition in one share group (KIP-932): a pure state machine, like the group.
//!
//! Below the *start offset* every record is done with. From there on, up to the *end*, records are *in flight*: available,
//! acquired by a member until a lock runs out, acknowledged, or archived (rejected, given up after too many deliveries,
//! aborted, or not there any more). Behind the end nobody has been given anything.
//!
//! In-flight records are kept in batches, as they were first handed out, and in a batch as [`Run`]s of neighbours that
//! share one fate. A batch that nobody divides is one run, however many records it has.
//!
//! What it promises:
//! - A record is acquired by one member at a time, and never again once its acknowledgement has been answered.
//! - A change is answered when it is durable: an acknowledged record stays the member's until the write that says so has
//!   ended, and is again as it was if the write fails. A lock that runs out needs no answer and takes effect at once.
//! - Each delivery counts, and with the last one that the group's limit allows the record is archived instead of being
//!   available again. Counts are stored with what becomes of a delivery; those of records that are acquired when the power
//!   fails are what they were before.
//! - What is written is the state as it will be when all that has been decided is durable ([`form`]): the start offset is past
//!   everything that is done with, and records that were acquired are available.
//!
//! Behaviour is that of Apache Kafka 4.3's share partitions, but for this: the start offset that a group begins with is
//! durable before the first record is handed out, so that records that nobody acknowledged are not lost with the power
//! where the group begins at the latest offset; and it moves with the acknowledgement that lets it.

mod acknowledge;
mod acquire;
mod batch;
mod form;
mod key;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::state::StateWrite;
use crate::coordinator::api::Token;
use batch::{Batch, Run, State};

pub use acknowledge::{AckRefused, Acknowledgement};
pub use acquire::{Acquire, Acquired, LogBatch};
pub use key::SharePartitionKey;

/// What bounds the records in flight: configs of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordLimits {
    /// `share.delivery.count.limit`: how often a record is handed out at most.
    pub deliveries: i32,
    /// `share.partition.max.record.locks`: how many records may be in flight.
    pub in_flight: i32,
    /// `share.record.lock.duration.ms`: how long an acquired record stays locked.
    pub lock: Duration,
    /// `share.renew.acknowledge.enable`: whether locks may be renewed.
    pub renewals: bool,
}

/// The records of one partition in one share group. To be held behind a lock.
#[derive(Debug)]
pub struct SharePartition {
    /// What is written comes with these epochs.
    state_epoch: i32,
    leader_epoch: i32,
    start: i64,
    /// The last offset in flight; where nothing is in flight, the next offset to hand out.
    end: i64,
    /// By first offset. What is between two of them is not in the log.
    batches: BTreeMap<i64, Batch>,
    /// Something below the end may be available.
    may_have_available: bool,
    /// Of the state in memory; rises with every change that has to be stored.
    version: u64,
    durable: u64,
    writing: Option<u64>,
    /// Those who wait for a version to be durable.
    waiting: VecDeque<(u64, Token)>,
}

impl SharePartition {
    /// Nothing was handed out yet, and `start` is the first offset that will be.
    pub fn new(start: i64) -> Self {
        SharePartition {
            state_epoch: 0,
            leader_epoch: 0,
            start,
            end: start,
            batches: BTreeMap::new(),
            may_have_available: false,
            version: 0,
            durable: 0,
            writing: None,
            waiting: VecDeque::new(),
        }
    }

    pub fn start_offset(&self) -> i64 {
        self.start
    }

    /// The last offset in flight; where nothing is in flight, the next one to hand out.
    pub fn end_offset(&self) -> i64 {
        self.end
    }

    /// The offset to read from for records that can be acquired.
    pub fn next_fetch_offset(&mut self) -> i64 {
        let Some((_, last)) = self.batches.last_key_value() else { return self.end };
        debug_assert_eq!(last.last(), self.end);
        if self.may_have_available {
            let start = self.start;
            let mut runs = self.batches.values().flat_map(Batch::runs);
            if let Some((first, _)) = runs.find(|(_, run)| run.is_available() && run.last >= start) {
                return first.max(start);
            }
            self.may_have_available = false;
        }
        self.end + 1
    }

    /// Whether there may be a record to acquire: one that is available again, or room for one more in flight.
    pub fn can_acquire(&mut self, limits: &RecordLimits) -> bool {
        self.next_fetch_offset() != self.end + 1 || self.in_flight() < i64::from(limits.in_flight)
    }

    fn in_flight(&self) -> i64 {
        if self.batches.is_empty() { 0 } else { self.end - self.start + 1 }
    }

    /// Records below `log_start` are gone from the log.
    pub fn log_starts_at(&mut self, log_start: i64) {
        if log_start <= self.start {
            return;
        }
        self.start = log_start;
        self.end = self.end.max(log_start);
        self.trim();
        self.advance();
    }

    /// Drops what is below the start.
    fn trim(&mut self) {
        let start = self.start;
        while let Some(entry) = self.batches.first_entry() {
            if *entry.key() >= start {
                break;
            }
            let mut batch = entry.remove();
            if batch.last() >= start {
                batch.cut_before(start);
                self.batches.insert(start, batch);
            }
        }
        if self.batches.is_empty() {
            self.end = self.end.max(start);
        }
    }

    /// Moves the start over what is done with.
    fn advance(&mut self) {
        while let Some((first, batch)) = self.batches.first_key_value() {
            match batch.first_not_done() {
                None => {
                    let next = batch.last() + 1;
                    let first = *first;
                    self.batches.remove(&first);
                    self.start = next;
                }
                Some(offset) => {
                    // Nothing is between the batches, so that the start is where the first of them is.
                    self.start = self.start.max(offset);
                    break;
                }
            }
        }
        if self.batches.is_empty() {
            self.end = self.start.max(self.end);
            self.start = self.end;
        }
    }

    /// Something has to be stored.
    fn changed(&mut self) {
        self.version += 1;
    }

    /// Frees records whose locks have run out by `now`. Answers whether there were any.
    pub fn expire(&mut self, now: Duration, limits: &RecordLimits) -> bool {
        let mut any = false;
        for batch in self.batches.values_mut() {
            any |= batch.change(|run| {
                let is_over = matches!(run.state, State::Acquired { until, .. } if until <= now);
                if !is_over || run.decided.is_some() {
                    return false;
                }
                run.state = released(run.deliveries, limits);
                true
            });
        }
        if any {
            self.may_have_available = true;
            self.changed();
            self.advance();
        }
        any
    }

    /// When [`expire`](Self::expire) is to be called next, on the monotonic clock.
    pub fn next_deadline(&self) -> Option<Duration> {
        let locks = self.batches.values().flat_map(Batch::runs).filter_map(|(_, run)| match &run.state {
            State::Acquired { until, .. } if run.decided.is_none() => Some(*until),
            _ => None,
        });
        locks.min()
    }

    /// Whether forgetting this and reading what is stored would change nothing.
    pub fn is_idle(&self) -> bool {
        let acquired = |(_, run): (i64, &Run)| matches!(run.state, State::Acquired { .. });
        self.version == self.durable
            && self.writing.is_none()
            && self.waiting.is_empty()
            && !self.batches.values().flat_map(Batch::runs).any(acquired)
    }

    /// What to write, if there is something to and no write is under way.
    pub fn begin_write(&mut self) -> Option<StateWrite> {
        if self.writing.is_some() || self.version == self.durable {
            return None;
        }
        self.writing = Some(self.version);
        Some(self.to_write())
    }

    /// The write has become durable, or has failed and left nothing behind. Answers those whom this answers.
    pub fn written(&mut self, stored: bool) -> Vec<Token> {
        let Some(version) = self.writing.take() else { return Vec::new() };
        // A failed write takes everything with it that has been decided since: none of it has been answered.
        let covered = if stored { version } else { self.version };
        for batch in self.batches.values_mut() {
            batch.change(|run| match run.decided.take_if(|(decided, _)| *decided <= covered) {
                Some((_, state)) if stored => {
                    run.state = state;
                    true
                }
                taken => taken.is_some(),
            });
        }
        self.may_have_available = true;
        self.durable = if stored { version } else { self.version };
        if stored {
            self.advance();
        }
        let count = self.waiting.iter().take_while(|(version, _)| *version <= covered).count();
        self.waiting.drain(..count).map(|(_, token)| token).collect()
    }

    #[cfg(test)]
    pub(super) fn check(&self) {
        let mut next = i64::MIN;
        assert!(self.batches.first_key_value().is_none_or(|(_, batch)| batch.last() >= self.start));
        for (first, batch) in &self.batches {
            assert!(*first >= next, "{first} overlaps what is before it: {self:?}");
            batch.check(*first);
            next = batch.last() + 1;
        }
        match self.batches.last_key_value() {
            Some((_, batch)) => assert_eq!(batch.last(), self.end),
            None => assert_eq!(self.start, self.end),
        }
    }
}

/// What becomes of a record that is given back after so many deliveries.
fn released(deliveries: i32, limits: &RecordLimits) -> State {
    if deliveries >= limits.deliveries { State::Archived } else { State::Available }
}
