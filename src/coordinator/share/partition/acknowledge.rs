//! What members say of records that they have acquired.

use std::time::Duration;

use thiserror::Error;

use super::batch::{Batch, State};
use super::{RecordLimits, SharePartition, released};
use crate::coordinator::api::Token;

/// Records of one partition, `first` to `last`, and what is said of them: one type for all, or one for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    pub first: i64,
    pub last: i64,
    /// Kafka's numbers of the types.
    pub types: Vec<i8>,
}

const GAP: i8 = 0;
const ACCEPT: i8 = 1;
const RELEASE: i8 = 2;
const REJECT: i8 = 3;
pub(super) const RENEW: i8 = 4;

/// Why acknowledgements of a partition were refused, all of them. The text is for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AckRefused {
    #[error("Batch record not found. The request batch offsets are not found in the cache.")]
    NotFound,
    #[error("Batch record not found. The first offset in request is past acquired records.")]
    FirstIsPast,
    #[error("Batch record not found. The last offset in request is past acquired records.")]
    LastIsPast,
    #[error("The offset cannot be acknowledged. The offset is not acquired.")]
    NotAcquired,
    #[error("Member is not the owner of offset")]
    NotTheOwner,
    #[error("The record state is invalid. The acknowledgement of delivery could not be completed.")]
    UnderWay,
    #[error("Renewing acquisition locks is not enabled for the group.")]
    NoRenewals,
    #[error("Invalid acknowledge type: {0}")]
    UnknownType(i8),
}

/// What is to happen to records of one batch.
struct Step {
    batch: i64,
    first: i64,
    last: i64,
    kind: i8,
}

impl SharePartition {
    /// Takes in acknowledgements of `member`, all of them or none. With `Ok(true)` there is something to store, and `token`
    /// is answered by the write that does it; with `Ok(false)` all is done.
    pub fn acknowledge(
        &mut self,
        now: Duration,
        token: Token,
        member: &str,
        acknowledgements: &[Acknowledgement],
        limits: &RecordLimits,
    ) -> Result<bool, AckRefused> {
        let mut steps = Vec::new();
        let mut before = i64::MIN;
        for acknowledgement in acknowledgements {
            if acknowledgement.first <= before && acknowledgement.last >= self.start {
                // Said of twice in one request.
                return Err(AckRefused::UnderWay);
            }
            before = acknowledgement.last;
            self.check_one(member, acknowledgement, limits, &mut steps)?;
        }
        let version = self.version + 1;
        let mut to_store = false;
        for steps in steps.chunk_by(|one, next| one.batch == next.batch) {
            let batch = self.batches.get_mut(&steps[0].batch).expect("it was found when it was checked");
            let stretches: Vec<(i64, i64)> = steps.iter().map(|step| (step.first, step.last)).collect();
            batch.change_in(&stretches, |place, run| match (steps[place].kind, &mut run.state) {
                (RENEW, State::Acquired { until, .. }) => *until = now.saturating_add(limits.lock),
                (kind, _) => {
                    run.decided = Some((version, outcome(kind, run.deliveries, limits)));
                    to_store = true;
                }
            });
        }
        if to_store {
            self.changed();
            self.waiting.push_back((version, token));
        }
        Ok(to_store)
    }

    fn check_one(
        &self,
        member: &str,
        acknowledgement: &Acknowledgement,
        limits: &RecordLimits,
        steps: &mut Vec<Step>,
    ) -> Result<(), AckRefused> {
        let Acknowledgement { first, last, types } = acknowledgement;
        if let Some(unknown) = types.iter().find(|kind| !(GAP..=RENEW).contains(*kind)) {
            return Err(AckRefused::UnknownType(*unknown));
        }
        if *last < self.start {
            // The log does not have them any more, or they are done with.
            return Ok(());
        }
        let from = (*first).max(self.start);
        let floor = self.batches.range(..=from).next_back().ok_or(AckRefused::NotFound)?.0;
        let batches: Vec<(&i64, &Batch)> = self.batches.range(floor..=last).collect();
        let reach = batches.last().map_or(i64::MIN, |(_, batch)| batch.last());
        if reach < from {
            return Err(AckRefused::FirstIsPast);
        }
        if *last > reach {
            return Err(AckRefused::LastIsPast);
        }
        for (key, batch) in batches {
            for (run_first, run_last, run) in batch.runs_in(from, *last) {
                match &run.state {
                    State::Acquired { .. } if run.decided.is_some() => return Err(AckRefused::UnderWay),
                    State::Acquired { member: owner, .. } if **owner != *member => return Err(AckRefused::NotTheOwner),
                    State::Acquired { .. } => {}
                    _ => return Err(AckRefused::NotAcquired),
                }
                let mut offset = run_first;
                while offset <= run_last {
                    let (kind, end) = kind_at(acknowledgement, offset, run_last);
                    if kind == RENEW && !limits.renewals {
                        return Err(AckRefused::NoRenewals);
                    }
                    steps.push(Step { batch: *key, first: offset, last: end, kind });
                    offset = end + 1;
                }
            }
        }
        Ok(())
    }

    /// Gives back all that `member` has acquired. Answers whether there is something to store.
    pub fn release(&mut self, member: &str, limits: &RecordLimits) -> bool {
        let version = self.version + 1;
        let mut any = false;
        for batch in self.batches.values_mut() {
            any |= batch.change(|run| {
                let is_theirs = matches!(&run.state, State::Acquired { member: owner, .. } if **owner == *member);
                if !is_theirs || run.decided.is_some() {
                    return false;
                }
                run.decided = Some((version, released(run.deliveries, limits)));
                true
            });
        }
        if any {
            self.changed();
        }
        any
    }
}

/// What is said of `offset`, and the last offset up to `to` of which the same is said.
fn kind_at(acknowledgement: &Acknowledgement, offset: i64, to: i64) -> (i8, i64) {
    let types = &acknowledgement.types;
    if types.len() <= 1 {
        return (types.first().copied().unwrap_or(GAP), to);
    }
    let place = |offset: i64| usize::try_from(offset - acknowledgement.first).unwrap_or(usize::MAX);
    let kind = types.get(place(offset)).copied().unwrap_or(GAP);
    let alike = types.iter().skip(place(offset)).take_while(|next| **next == kind).count().max(1);
    (kind, to.min(offset + i64::try_from(alike).unwrap_or(i64::MAX) - 1))
}

fn outcome(kind: i8, deliveries: i32, limits: &RecordLimits) -> State {
    match kind {
        ACCEPT => State::Acknowledged,
        RELEASE => released(deliveries, limits),
        GAP | REJECT => State::Archived,
        _ => unreachable!("other types are refused, and a renewal has no outcome"),
    }
}
