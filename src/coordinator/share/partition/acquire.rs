//! Handing records out.

use std::sync::Arc;
use std::time::Duration;

use super::batch::{Batch, Run, State};
use super::{RecordLimits, SharePartition};

/// Who wants records, and how many.
#[derive(Clone, Debug)]
pub struct Acquire {
    pub member: Arc<str>,
    /// Not more records than `max_records`. Otherwise batches are handed out whole, and there may be more.
    pub record_limit: bool,
    /// How many records new batches in flight have, as far as those of the log allow it.
    pub batch_size: i64,
    pub max_records: i64,
    pub now: Duration,
}

/// A batch of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogBatch {
    pub first: i64,
    pub last: i64,
    /// It is of a transaction that was aborted, and the group does not want to see it.
    pub aborted: bool,
}

/// Records that a member has acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acquired {
    pub first: i64,
    pub last: i64,
    /// How often they have been handed out, this time included.
    pub deliveries: i32,
}

impl Acquired {
    fn count(&self) -> i64 {
        self.last - self.first + 1
    }
}

/// From how many deliveries on records are handed out in smaller and smaller numbers, so that one bad record does not
/// take its neighbours with it: half of the limit.
fn throttled_from(limits: &RecordLimits) -> i32 {
    ((limits.deliveries + 1) / 2).max(2)
}

impl SharePartition {
    /// Hands out records of `log`, the batches that were read from [`next_fetch_offset`](Self::next_fetch_offset) on, which
    /// was `from`.
    pub fn acquire(&mut self, want: &Acquire, limits: &RecordLimits, from: i64, log: &[LogBatch]) -> Vec<Acquired> {
        let (Some(first), Some(last)) = (log.first(), log.last()) else { return Vec::new() };
        if want.max_records <= 0 || last.last < self.start {
            return Vec::new();
        }
        let mut max = want.max_records.min(i64::from(limits.in_flight) - self.in_flight());
        let mut last_wanted = last.last;
        if max <= 0 {
            // There is only room for what is in flight already.
            if from > self.end {
                return Vec::new();
            }
            max = want.max_records.min(self.end - from + 1);
            last_wanted = last_wanted.min(self.end);
        }
        self.archive_missing(from, first.first);
        let mut acquired = Vec::new();
        self.acquire_up_to(want, limits, log, last_wanted, max, &mut acquired);
        self.archive_aborted(log, &mut acquired);
        acquired
    }

    fn acquire_up_to(
        &mut self,
        want: &Acquire,
        limits: &RecordLimits,
        log: &[LogBatch],
        last_wanted: i64,
        mut max: i64,
        acquired: &mut Vec<Acquired>,
    ) {
        let first_read = log[0].first;
        let floor = self.batches.range(..=first_read).next_back();
        let base = match floor {
            Some((first, batch)) if batch.last() >= first_read => *first,
            Some(_) => first_read,
            None => first_read.max(self.start),
        };
        if base > last_wanted {
            return;
        }
        let known: Vec<i64> = self.batches.range(first_read.min(base)..=last_wanted).map(|(first, _)| *first).collect();
        let Some(last_known) = known.last().map(|first| self.batches[first].last()) else {
            return self.acquire_new(want, limits, log, base, last_wanted, max, acquired);
        };
        let mut count = 0;
        for first in known {
            if count >= max {
                break;
            }
            let batch = self.batches.get_mut(&first).expect("it was there a moment ago");
            let throttled = batch
                .runs_in(first_read, last_wanted)
                .any(|(_, _, run)| run.is_available() && run.deliveries >= throttled_from(limits));
            if throttled && count > 0 {
                return;
            }
            let is_whole = batch.first() >= first_read && batch.last() <= last_wanted;
            let is_too_much = want.record_limit && batch.size() > max - count;
            let some = match batch.whole() {
                Some(run) if is_whole && !is_too_much && !throttled => {
                    if run.is_available() {
                        acquire_in(batch, want, limits, batch.first(), batch.last())
                    } else {
                        vec![]
                    }
                }
                _ => acquire_some(batch, want, limits, first_read, last_wanted, max - count),
            };
            let found: i64 = some.iter().map(Acquired::count).sum();
            acquired.extend(some);
            count += found;
            if throttled && found > 0 {
                max = 0;
            }
        }
        if count < max && last_known < last_wanted {
            self.acquire_new(want, limits, log, last_known + 1, last_wanted, max - count, acquired);
        }
    }

    /// Hands out records that nobody was given yet.
    #[allow(clippy::too_many_arguments, reason = "one step of acquire_up_to, cut out to be read by itself")]
    fn acquire_new(
        &mut self,
        want: &Acquire,
        limits: &RecordLimits,
        log: &[LogBatch],
        first: i64,
        last: i64,
        max: i64,
        acquired: &mut Vec<Acquired>,
    ) {
        let first = if self.batches.is_empty() { first.max(self.end) } else { first };
        let mut last = if max < last - first + 1 { whole_batches_to(log, first + max - 1) } else { last };
        if let Some((next, _)) = self.batches.range(first..).next() {
            last = last.min(next - 1);
        }
        if last < first {
            return;
        }
        let run = |first, last, state| (first, Run { last, state, deliveries: 0, decided: None });
        let locked = || State::Acquired { member: want.member.clone(), until: want.now.saturating_add(limits.lock) };
        if want.record_limit && last - first + 1 > max {
            // The batch is in flight as a whole, for whoever comes next.
            let (first, all) = run(first, last, State::Available);
            let mut batch = Batch::new(first, all);
            acquired.extend(acquire_in(&mut batch, want, limits, first, first + max - 1));
            self.batches.insert(first, batch);
            self.may_have_available = true;
        } else {
            for (first, last) in cut(log, first, last, if want.record_limit { i64::MAX } else { want.batch_size }) {
                let (first, mut all) = run(first, last, locked());
                all.deliveries = 1;
                self.batches.insert(first, Batch::new(first, all));
                acquired.push(Acquired { first, last, deliveries: 1 });
            }
        }
        if self.batches.first_key_value().is_some_and(|(lowest, _)| *lowest == first) {
            self.start = first;
        }
        self.end = self.end.max(last);
    }

    /// The log has nothing from `from` up to `to`: compaction has left a gap there.
    fn archive_missing(&mut self, from: i64, to: i64) {
        if from >= to || self.batches.is_empty() {
            return;
        }
        let first = self.batches.range(..=from).next_back().map_or(from, |(first, _)| *first);
        let mut any = false;
        for (_, batch) in self.batches.range_mut(first..to) {
            let gone: Vec<(i64, i64)> = batch
                .runs_in(from, to - 1)
                .filter(|(_, _, run)| run.is_available())
                .map(|(first, last, _)| (first, last))
                .collect();
            batch.change_in(&gone, |_, run| run.state = State::Archived);
            any |= !gone.is_empty();
        }
        if any {
            self.advance();
        }
    }

    /// Takes aborted records back out of what was acquired.
    fn archive_aborted(&mut self, log: &[LogBatch], acquired: &mut Vec<Acquired>) {
        if !log.iter().any(|batch| batch.aborted) {
            return;
        }
        let mut kept = Vec::with_capacity(acquired.len());
        for mut got in acquired.drain(..) {
            for batch in log.iter().filter(|batch| batch.aborted) {
                if batch.first > got.last || batch.last < got.first {
                    continue;
                }
                let (first, last) = (batch.first.max(got.first), batch.last.min(got.last));
                if let Some((_, in_flight)) = self.batches.range_mut(..=first).next_back() {
                    in_flight.change_in(&[(first, last)], |_, run| run.state = State::Archived);
                }
                if first > got.first {
                    kept.push(Acquired { last: first - 1, ..got });
                }
                got.first = last + 1;
            }
            if got.first <= got.last {
                kept.push(got);
            }
        }
        *acquired = kept;
        self.advance();
    }
}

/// Has the member acquire what is available of `first..=last`. Neighbours that were delivered as often go together.
fn acquire_in(batch: &mut Batch, want: &Acquire, limits: &RecordLimits, first: i64, last: i64) -> Vec<Acquired> {
    let available: Vec<Acquired> = batch
        .runs_in(first, last)
        .filter(|(_, _, run)| run.is_available())
        .map(|(first, last, run)| Acquired { first, last, deliveries: run.deliveries + 1 })
        .collect();
    let stretches: Vec<(i64, i64)> = available.iter().map(|got| (got.first, got.last)).collect();
    batch.change_in(&stretches, |_, run| {
        run.state = State::Acquired { member: want.member.clone(), until: want.now.saturating_add(limits.lock) };
        run.deliveries += 1;
    });
    available
}

/// The same, at most `max` records where that is a limit, and fewer of records that were delivered often.
fn acquire_some(
    batch: &mut Batch,
    want: &Acquire,
    limits: &RecordLimits,
    first: i64,
    last: i64,
    max: i64,
) -> Vec<Acquired> {
    let available: Vec<(i64, i64, i32)> = batch
        .runs_in(first, last)
        .filter(|(_, _, run)| run.is_available())
        .map(|(first, last, run)| (first, last, run.deliveries))
        .collect();
    let throttled_from = throttled_from(limits);
    let has_last_attempts = limits.deliveries > 2;
    let mut taken: Vec<Acquired> = Vec::new();
    let mut count = 0;
    let mut most = if want.record_limit { max } else { i64::MAX };
    let mut is_throttled = false;
    for (first, last, deliveries) in available {
        let is_last_attempt = has_last_attempts && deliveries == limits.deliveries - 1;
        // A record that is handed out for the last time goes alone.
        if count >= most || (is_last_attempt && count > 0) {
            break;
        }
        if deliveries >= throttled_from && !is_throttled {
            is_throttled = true;
            let fewer = (batch.size() >> (deliveries - throttled_from + 1).min(62)).max(1);
            if fewer > count {
                most = most.min(fewer);
            }
        }
        let last = if is_last_attempt { first } else { last.min(first.saturating_add(most - count - 1)) };
        taken.extend(acquire_in(batch, want, limits, first, last));
        count += last - first + 1;
        if is_last_attempt {
            break;
        }
    }
    taken
}

/// The last offset of the batch of the log that has `offset`, or `offset` itself where the log has none.
fn whole_batches_to(log: &[LogBatch], offset: i64) -> i64 {
    let before = log.partition_point(|batch| batch.first <= offset);
    match before.checked_sub(1).map(|place| log[place].last) {
        Some(last) if last >= offset => last,
        _ => offset,
    }
}

/// Cuts `first..=last` into batches of at least `size` records, at the boundaries of the log's.
fn cut(log: &[LogBatch], first: i64, last: i64, size: i64) -> Vec<(i64, i64)> {
    let mut cuts = Vec::new();
    let mut from = first;
    if last - first + 1 > size {
        for base in log.iter().map(|batch| batch.first).take_while(|base| *base <= last) {
            if base - from >= size.max(1) {
                cuts.push((from, base - 1));
                from = base;
            }
        }
    }
    cuts.push((from, last));
    cuts
}
