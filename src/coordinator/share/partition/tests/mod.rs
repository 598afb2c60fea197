//! One share partition, with what it is told of a log.

mod acknowledging;
mod acquiring;
mod history;
mod storing;

use std::time::Duration;

use super::*;

const LOCK: Duration = Duration::from_secs(30);

fn limits() -> RecordLimits {
    RecordLimits { deliveries: 5, in_flight: 2000, lock: LOCK, renewals: true }
}

/// The batches of a log, from first offsets and an end.
fn log(firsts: &[i64], end: i64) -> Vec<LogBatch> {
    let ends = firsts.iter().skip(1).copied().chain([end]);
    firsts.iter().zip(ends).map(|(first, next)| LogBatch { first: *first, last: next - 1, aborted: false }).collect()
}

fn want(member: &str, max_records: i64) -> Acquire {
    Acquire { member: member.into(), record_limit: false, batch_size: 500, max_records, now: Duration::ZERO }
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A partition that starts at 0, the log that it reads, and its clock.
struct Test {
    partition: SharePartition,
    log: Vec<LogBatch>,
    now: Duration,
    limits: RecordLimits,
    token: Token,
}

impl Test {
    fn new(log: Vec<LogBatch>) -> Self {
        Test { partition: SharePartition::new(0), log, now: Duration::ZERO, limits: limits(), token: 0 }
    }

    /// Acquires what there is; answers first and last offsets and delivery counts.
    fn acquire(&mut self, want: &Acquire) -> Vec<(i64, i64, i32)> {
        let from = self.partition.next_fetch_offset();
        let read: Vec<LogBatch> = self.log.iter().filter(|batch| batch.last >= from).copied().collect();
        let want = Acquire { now: self.now, ..want.clone() };
        let acquired = self.partition.acquire(&want, &self.limits, from, &read);
        self.partition.check();
        acquired.into_iter().map(|got| (got.first, got.last, got.deliveries)).collect()
    }

    /// Says something of records, which has to be stored.
    fn say(&mut self, member: &str, first: i64, last: i64, types: &[i8]) -> Result<Token, AckRefused> {
        self.token += 1;
        let said = [Acknowledgement { first, last, types: types.to_vec() }];
        let done = self.partition.acknowledge(self.now, self.token, member, &said, &self.limits);
        self.partition.check();
        done.map(|to_store| if to_store { self.token } else { 0 })
    }

    /// The same, and stores it.
    #[track_caller]
    fn said(&mut self, member: &str, first: i64, last: i64, types: &[i8]) {
        let token = self.say(member, first, last, types).unwrap();
        self.store();
        assert_ne!(token, 0);
    }

    fn store(&mut self) -> Vec<Token> {
        assert!(self.partition.begin_write().is_some(), "there is something to store");
        let answered = self.partition.written(true);
        self.partition.check();
        answered
    }

    fn expire(&mut self, now: Duration) -> bool {
        self.now = now;
        let any = self.partition.expire(now, &self.limits);
        self.partition.check();
        any
    }
}
