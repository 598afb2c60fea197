//! What is written of a share partition while its records are handed out, and how it is read in again.

use super::SharePartition;
use super::batch::{Batch, Run, State};
use crate::coordinator::share::state::{ShareState, StateWrite};
use crate::coordinator::share::stretches::{self, ACKNOWLEDGED, ARCHIVED, AVAILABLE, Stretch};

impl SharePartition {
    /// The state that all that has been decided so far leads to.
    pub(super) fn to_write(&self) -> StateWrite {
        let (start, stretches) = self.stretches();
        StateWrite {
            state_epoch: self.state_epoch,
            leader_epoch: self.leader_epoch,
            start,
            done: stretches::done(&stretches),
            stretches,
        }
    }

    /// The start offset to be, past all that will be done with, and what is behind it.
    fn stretches(&self) -> (i64, Vec<Stretch>) {
        let mut stretches: Vec<Stretch> = Vec::new();
        let mut start = self.start;
        let mut nothing_left = true;
        for (first, run) in self.batches.values().flat_map(Batch::runs) {
            let (state, deliveries) = to_be(run);
            if nothing_left && state != AVAILABLE {
                start = start.max(run.last + 1);
                continue;
            }
            if nothing_left {
                start = start.max(first);
                nothing_left = false;
            }
            if state == AVAILABLE && deliveries == 0 {
                continue;
            }
            let first = first.max(start);
            match stretches.last_mut() {
                Some(before)
                    if before.last + 1 == first && (before.state, before.deliveries) == (state, deliveries) =>
                {
                    before.last = run.last;
                }
                _ => stretches.push(Stretch { first, last: run.last, state, deliveries }),
            }
        }
        (if nothing_left { start.max(self.end_when_done()) } else { start }, stretches)
    }

    /// Where the group goes on when all that is in flight is done with.
    fn end_when_done(&self) -> i64 {
        if self.batches.is_empty() { self.end } else { self.end + 1 }
    }

    /// Goes on from what is stored; `start` is where the group starts if nobody has fetched yet. The leader of the partition
    /// writes with `leader_epoch`.
    pub fn from_state(state: &ShareState, start: i64, leader_epoch: i32) -> Self {
        let start = state.start_offset().unwrap_or(start);
        let mut partition =
            SharePartition { state_epoch: state.state_epoch(), leader_epoch, ..SharePartition::new(start) };
        let mut next = start;
        for Stretch { first, last, state, deliveries } in stretches::merge(state.stretches().to_vec(), start) {
            if first > next {
                // They may be in the log; if not, they are archived by whoever reads there.
                partition.put(next, Run { last: first - 1, state: State::Available, deliveries: 0, decided: None });
            }
            let state = match state {
                ACKNOWLEDGED => State::Acknowledged,
                ARCHIVED => State::Archived,
                _ => State::Available,
            };
            partition.put(first, Run { last, state, deliveries, decided: None });
            next = last + 1;
        }
        partition.may_have_available = true;
        partition.advance();
        partition
    }

    fn put(&mut self, first: i64, run: Run) {
        self.end = run.last;
        self.batches.insert(first, Batch::new(first, run));
    }
}

/// What is stored of a run. Acquired records are available, as often delivered as before they were acquired.
fn to_be(run: &Run) -> (u8, i32) {
    let (state, deliveries) = match &run.decided {
        Some((_, state)) => (state, run.deliveries),
        None => (&run.state, run.deliveries),
    };
    match state {
        State::Available => (AVAILABLE, deliveries),
        State::Acquired { .. } => (AVAILABLE, deliveries - 1),
        State::Acknowledged => (ACKNOWLEDGED, deliveries),
        State::Archived => (ARCHIVED, deliveries),
    }
}
