//! Random histories of a share partition: members acquire, say this and that of what they have, fall silent and go; the log
//! grows, is compacted and cut; writes take their time and fail; the broker restarts with what is stored.
//!
//! Beside it a model keeps the fate of every record. Whatever happens:
//! - no record belongs to two members;
//! - a record whose acknowledgement was answered never comes again, over any restart;
//! - delivery counts are those of the model, where a restart takes back what was not stored;
//! - no record is lost: in the end, each that is in the log was done with by somebody.
//!
//! `DOZE_SEED=n` runs the history of one seed alone.

use super::*;
use crate::coordinator::share::state::{ShareState, StateChange};
use crate::coordinator::tests::SeededRandom;

const HISTORIES: u64 = 300;
const STEPS: usize = 300;
const MEMBERS: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Debug, PartialEq)]
enum Owner {
    Nobody,
    Member(usize, Duration),
    /// What a member has said of it is to be stored: `Some` with the record done with or not.
    Deciding {
        done: bool,
    },
}

#[derive(Clone, Debug)]
struct Fate {
    in_log: bool,
    aborted: bool,
    owner: Owner,
    deliveries: i32,
    /// Of this many a restart knows.
    stored: i32,
    /// Done with, and answered: for good.
    answered: bool,
    /// Done with in this life; a restart may forget it.
    done: bool,
    /// Was so in a life before.
    was_done: bool,
}

/// What the write that is under way has of deliveries.
struct Written {
    write: StateWrite,
    deliveries: Vec<i32>,
}

struct History {
    seed: u64,
    random: SeededRandom,
    partition: SharePartition,
    limits: RecordLimits,
    now: Duration,
    log: Vec<LogBatch>,
    log_start: i64,
    fates: Vec<Fate>,
    stored: ShareState,
    writing: Option<Written>,
    /// Acknowledgements that wait: token, and each record with whether it is to be done with.
    waiting: Vec<(Token, Vec<(usize, bool)>)>,
    next_token: Token,
    acquired: usize,
    accepted: usize,
    restarts: usize,
}

impl History {
    fn new(seed: u64) -> Self {
        let random = SeededRandom::new(seed);
        let limits = RecordLimits {
            deliveries: 2 + random.below(5) as i32,
            in_flight: 20 + random.below(200) as i32,
            ..limits()
        };
        let partition = SharePartition::new(0);
        History {
            seed,
            random,
            stored: ShareState::new(0, 0),
            partition,
            limits,
            now: Duration::ZERO,
            log: vec![],
            log_start: 0,
            fates: vec![],
            writing: None,
            waiting: vec![],
            next_token: 0,
            acquired: 0,
            accepted: 0,
            restarts: 0,
        }
    }

    fn end(&self) -> i64 {
        self.fates.len() as i64
    }

    fn grow(&mut self) {
        let count = 1 + self.random.below(12) as i64;
        let aborted = self.random.below(8) == 0;
        self.log.push(LogBatch { first: self.end(), last: self.end() + count - 1, aborted });
        let fate = Fate {
            in_log: true,
            aborted,
            owner: Owner::Nobody,
            deliveries: 0,
            stored: 0,
            answered: false,
            done: false,
            was_done: false,
        };
        self.fates.extend(std::iter::repeat_n(fate, count as usize));
    }

    fn acquire(&mut self, everything: bool) -> usize {
        let from = self.partition.next_fetch_offset();
        if !self.partition.can_acquire(&self.limits) {
            return 0;
        }
        if from < self.log_start {
            self.partition.log_starts_at(self.log_start);
            return self.acquire(everything);
        }
        let member = self.random.below(MEMBERS.len());
        let max_records = if everything { 1000 } else { 1 + self.random.below(30) as i64 };
        let read: Vec<LogBatch> = self.log.iter().filter(|batch| batch.last >= from).copied().collect();
        let want = Acquire {
            member: MEMBERS[member].into(),
            record_limit: self.random.below(2) == 0,
            batch_size: 1 + self.random.below(20) as i64,
            max_records,
            now: self.now,
        };
        let got = self.partition.acquire(&want, &self.limits, from, &read);
        let count: i64 = got.iter().map(|got| got.last - got.first + 1).sum();
        assert!(!want.record_limit || count <= max_records, "seed {}: {got:?} for {want:?}", self.seed);
        for got in got {
            for offset in got.first..=got.last {
                let fate = &mut self.fates[offset as usize];
                assert!(!fate.answered, "seed {}: {offset} comes again", self.seed);
                assert!(!fate.done, "seed {}: {offset} was done with", self.seed);
                // What compaction took in between goes with its neighbours.
                assert!(!fate.aborted || !fate.in_log, "seed {}: {offset} was aborted", self.seed);
                assert!(offset >= self.log_start, "seed {}: {offset} is gone", self.seed);
                assert_eq!(fate.owner, Owner::Nobody, "seed {}: {offset} is not free", self.seed);
                fate.deliveries += 1;
                assert_eq!(fate.deliveries, got.deliveries, "seed {}: deliveries of {offset}", self.seed);
                fate.owner = Owner::Member(member, self.now + self.limits.lock);
                fate.was_done = false;
                self.acquired += 1;
            }
        }
        count as usize
    }

    /// Says something of a stretch that is all one member's, or of one that is not and is refused.
    fn acknowledge(&mut self) {
        if self.fates.is_empty() {
            return;
        }
        let member = self.random.below(MEMBERS.len());
        let first = self.partition.start_offset().min(self.end() - 1) as usize;
        let first = first + self.random.below(self.fates.len() - first);
        let last = (first + self.random.below(15)).min(self.fates.len() - 1);
        let one_type = self.random.below(2) == 0;
        let types: Vec<i8> = (0..if one_type { 1 } else { last - first + 1 })
            .map(|_| [1, 1, 2, 3, 4, 0][self.random.below(6)])
            .collect();
        let said = Acknowledgement { first: first as i64, last: last as i64, types: types.clone() };
        self.next_token += 1;
        let (token, limits) = (self.next_token, self.limits);
        let result = self.partition.acknowledge(self.now, token, MEMBERS[member], &[said], &limits);
        let start = self.partition.start_offset() as usize;
        let places = first.max(start)..=last;
        let theirs =
            places.clone().all(|offset| matches!(self.fates[offset].owner, Owner::Member(of, _) if of == member));
        let Ok(to_store) = result else {
            assert!(!theirs, "seed {}: {first} to {last} are {member}'s, and {result:?}", self.seed);
            return;
        };
        let mut decided = vec![];
        for offset in places {
            let fate = &mut self.fates[offset];
            match (&fate.owner, types[if one_type { 0 } else { offset - first }]) {
                (Owner::Member(of, _), 4) if *of == member => {
                    fate.owner = Owner::Member(member, self.now + limits.lock);
                }
                (Owner::Member(of, _), kind) if *of == member => {
                    let done = kind != 2 || fate.deliveries >= limits.deliveries;
                    fate.owner = Owner::Deciding { done };
                    decided.push((offset, done));
                }
                // What is not in the log is in no batch, and may be in the middle.
                (owner, _) => assert!(!fate.in_log, "seed {}: {offset} was {owner:?}'s", self.seed),
            }
        }
        assert_eq!(to_store, !decided.is_empty(), "seed {}", self.seed);
        if to_store {
            self.waiting.push((token, decided));
        }
    }

    fn release(&mut self) {
        let member = self.random.below(MEMBERS.len());
        self.partition.release(MEMBERS[member], &self.limits);
        self.next_token += 1;
        let mut decided = vec![];
        for (offset, fate) in self.fates.iter_mut().enumerate() {
            if matches!(fate.owner, Owner::Member(of, _) if of == member) {
                let done = fate.deliveries >= self.limits.deliveries;
                fate.owner = Owner::Deciding { done };
                decided.push((offset, done));
            }
        }
        // Nobody waits for this; it is over with the next write that begins.
        self.waiting.push((0, decided));
    }

    fn pass_time(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.partition.expire(self.now, &self.limits);
        for fate in &mut self.fates {
            if matches!(fate.owner, Owner::Member(_, until) if until <= self.now) {
                fate.owner = Owner::Nobody;
                fate.done = fate.deliveries >= self.limits.deliveries;
            }
        }
    }

    fn begin_write(&mut self) {
        if let Some(write) = self.partition.begin_write() {
            let deliveries = self.fates.iter().map(|fate| match fate.owner {
                Owner::Member(..) => fate.deliveries - 1,
                _ => fate.deliveries,
            });
            self.writing = Some(Written { write, deliveries: deliveries.collect() });
            // What is said from here on goes into the next write.
            for (token, _) in &mut self.waiting {
                if *token == 0 {
                    *token = Token::MAX;
                }
            }
        }
    }

    fn end_write(&mut self, stored: bool) {
        let Some(written) = self.writing.take() else { return };
        let answered = self.partition.written(stored);
        let (over, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|(token, _)| !stored || *token == Token::MAX || answered.contains(token));
        self.waiting = rest;
        for (token, decided) in over {
            for (offset, done) in decided {
                let fate = &mut self.fates[offset];
                match stored {
                    true => {
                        fate.owner = Owner::Nobody;
                        fate.done = done;
                        fate.answered |= done && token != Token::MAX;
                        self.accepted += usize::from(fate.answered);
                    }
                    // It is a member's as before. To keep the model simple, all locks run out now.
                    false => fate.owner = Owner::Member(0, self.now),
                }
            }
        }
        if stored {
            self.store(written.write);
            for (fate, deliveries) in self.fates.iter_mut().zip(written.deliveries) {
                fate.stored = deliveries;
            }
        } else {
            self.pass_time(3600);
        }
    }

    /// What a partition writes adds up to what it knows.
    fn store(&mut self, write: StateWrite) {
        let mut stored = Some(self.stored.clone());
        StateChange::Write(write.clone()).apply(&mut stored).unwrap();
        self.stored = stored.unwrap();
        assert_eq!(self.stored.start_offset(), Some(write.start), "seed {}", self.seed);
        assert_eq!(self.stored.stretches(), write.stretches, "seed {}", self.seed);
    }

    fn restart(&mut self) {
        if let Some(written) = self.writing.take()
            && self.random.below(2) == 0
        {
            // It was durable, and nobody has been told.
            self.store(written.write);
            for (fate, deliveries) in self.fates.iter_mut().zip(written.deliveries) {
                fate.stored = deliveries;
                // It may be done with, and may be what was said after the write began.
                fate.was_done |= fate.owner == Owner::Deciding { done: true };
            }
        }
        let stored = ShareState::from_bytes(&self.stored.to_bytes()).unwrap();
        self.partition = SharePartition::from_state(&stored, 0, 0);
        self.waiting.clear();
        for fate in &mut self.fates {
            fate.owner = Owner::Nobody;
            fate.deliveries = fate.stored;
            fate.was_done |= std::mem::take(&mut fate.done);
        }
        self.restarts += 1;
    }

    fn cut(&mut self) {
        let to = self.log_start + self.random.below(6) as i64;
        self.log_start = to.min(self.end()).max(self.log_start);
        let start = self.log_start;
        self.log.retain(|batch| batch.last >= start);
        self.fates.iter_mut().take(start as usize).for_each(|fate| fate.in_log = false);
    }

    fn compact(&mut self) {
        // Never the last one: a log keeps its end.
        if self.log.len() > 1 {
            let gone = self.log.remove(self.random.below(self.log.len() - 1));
            for offset in gone.first..=gone.last {
                self.fates[offset as usize].in_log = false;
            }
        }
    }

    fn step(&mut self) {
        match self.random.below(40) {
            0..=5 => self.grow(),
            6..=15 => drop(self.acquire(false)),
            16..=27 => self.acknowledge(),
            28..=30 => self.begin_write(),
            31..=33 => self.end_write(true),
            34 => self.end_write(self.random.below(3) > 0),
            35 => self.pass_time(self.random.below(40) as u64),
            36 => self.release(),
            37 => self.compact(),
            38 => self.cut(),
            _ => {
                if self.random.below(3) == 0 {
                    self.restart();
                }
            }
        }
        self.partition.check();
    }

    /// Everybody lets go, and one member takes all that is left.
    fn drain(&mut self) {
        for _ in 0..1000 {
            self.pass_time(3600);
            self.begin_write();
            self.end_write(true);
            self.begin_write();
            self.end_write(true);
            if self.acquire(true) == 0 && !self.partition.can_acquire(&self.limits) {
                continue;
            }
            for (member, name) in MEMBERS.iter().enumerate() {
                let theirs: Vec<usize> = (0..self.fates.len())
                    .filter(|offset| matches!(self.fates[*offset].owner, Owner::Member(of, _) if of == member))
                    .collect();
                for offset in theirs {
                    self.next_token += 1;
                    let said = Acknowledgement { first: offset as i64, last: offset as i64, types: vec![1] };
                    let limits = self.limits;
                    if self.partition.acknowledge(self.now, self.next_token, name, &[said], &limits) == Ok(true) {
                        self.fates[offset].owner = Owner::Deciding { done: true };
                        self.waiting.push((self.next_token, vec![(offset, true)]));
                    }
                }
            }
            self.begin_write();
            self.end_write(true);
            if self.partition.next_fetch_offset() >= self.end() {
                break;
            }
        }
        assert_eq!(self.partition.next_fetch_offset(), self.end(), "seed {}: it does not come to its end", self.seed);
        for (offset, fate) in self.fates.iter().enumerate() {
            let is_over = !fate.in_log || fate.aborted || fate.answered || fate.done || fate.was_done;
            assert!(is_over, "seed {}: {offset} is lost: {fate:?}", self.seed);
        }
    }
}

#[test]
fn no_record_is_lost_or_comes_again_whatever_happens() {
    let seeds = match std::env::var("DOZE_SEED") {
        Ok(seed) => vec![seed.parse().expect("DOZE_SEED is a number")],
        Err(_) => (0..HISTORIES).collect(),
    };
    let several = seeds.len() > 1;
    let (mut acquired, mut accepted, mut restarts) = (0, 0, 0);
    for seed in seeds {
        let run = std::panic::catch_unwind(|| {
            let mut history = History::new(seed);
            (0..STEPS).for_each(|_| history.step());
            history.drain();
            (history.acquired, history.accepted, history.restarts)
        });
        let seen = run.unwrap_or_else(|panic| {
            eprintln!("DOZE_SEED={seed} runs this history alone");
            std::panic::resume_unwind(panic)
        });
        acquired += seen.0;
        accepted += seen.1;
        restarts += seen.2;
    }
    println!("{acquired} records acquired, {accepted} accepted, {restarts} restarts");
    assert!(
        !several || (acquired > 100_000 && accepted > 30_000 && restarts > 200),
        "{acquired} {accepted} {restarts}"
    );
}
