//! What is known of a transactional id, and what each step makes of it.

use std::collections::BTreeSet;

use super::api::{Place, Producer, Version};
use super::error::Error;

/// No producer id.
pub const NO_ID: i64 = -1;
/// No producer epoch.
pub const NO_EPOCH: i16 = -1;

/// The epoch from which on a producer id is given up for a new one. The one after it is there for fencing.
const LAST_EPOCH: i16 = i16::MAX - 1;

/// The states that a transactional id can be seen in. The numbers are stored, and are Kafka's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum State {
    Empty = 0,
    Ongoing = 1,
    PrepareCommit = 2,
    PrepareAbort = 3,
    CompleteCommit = 4,
    CompleteAbort = 5,
}

impl State {
    pub const ALL: [State; 6] = [
        State::Empty,
        State::Ongoing,
        State::PrepareCommit,
        State::PrepareAbort,
        State::CompleteCommit,
        State::CompleteAbort,
    ];

    pub fn from_number(number: u8) -> Option<Self> {
        State::ALL.into_iter().find(|state| *state as u8 == number)
    }

    /// As clients see it.
    pub fn name(self) -> &'static str {
        match self {
            State::Empty => "Empty",
            State::Ongoing => "Ongoing",
            State::PrepareCommit => "PrepareCommit",
            State::PrepareAbort => "PrepareAbort",
            State::CompleteCommit => "CompleteCommit",
            State::CompleteAbort => "CompleteAbort",
        }
    }

    /// Decided, and markers are being written.
    pub fn is_prepared(self) -> bool {
        matches!(self, State::PrepareCommit | State::PrepareAbort)
    }
}

/// All that is known of a transactional id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    pub producer_id: i64,
    /// Before the latest change, -1 for none.
    pub previous_producer_id: i64,
    /// With which the producer goes on once the markers are written, -1 where it keeps its own.
    pub next_producer_id: i64,
    /// -1 until there is a producer.
    pub epoch: i16,
    /// With which the producer asked for the current epoch, -1 where it did not say.
    pub last_epoch: i16,
    pub timeout_ms: i32,
    pub state: State,
    /// Of the transaction that is open or being ended.
    pub places: BTreeSet<Place>,
    /// Milliseconds since the Unix epoch, -1 before the first transaction.
    pub start_ms: i64,
    /// Milliseconds since the Unix epoch.
    pub update_ms: i64,
    /// That of the client at the latest change of the transaction.
    pub version: Version,
}

/// Why there is no next step yet, or none at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    NeedsProducerId,
    Refused(Error),
}

impl Metadata {
    /// A new transactional id, without a producer so far.
    pub fn new(producer_id: i64, timeout_ms: i32, now_ms: i64) -> Self {
        Metadata {
            producer_id,
            previous_producer_id: NO_ID,
            next_producer_id: NO_ID,
            epoch: NO_EPOCH,
            last_epoch: NO_EPOCH,
            timeout_ms,
            state: State::Empty,
            places: BTreeSet::new(),
            start_ms: -1,
            update_ms: now_ms,
            version: Version::V1,
        }
    }

    pub fn producer(&self) -> Producer {
        Producer { id: self.producer_id, epoch: self.epoch }
    }

    fn exhausted(epoch: i16) -> bool {
        epoch >= LAST_EPOCH
    }

    fn step(&self, state: State, now_ms: i64) -> Self {
        Metadata { state, previous_producer_id: self.producer_id, update_ms: now_ms, ..self.clone() }
    }

    /// Whether `expected` may be the producer that has the id now: by its own account, or as one that did not get the answer
    /// in which it was given a new producer id.
    pub fn may_be(&self, expected: Producer) -> bool {
        self.epoch == NO_EPOCH
            || expected.id == self.producer_id
            || (expected.id == self.previous_producer_id && Metadata::exhausted(expected.epoch))
    }

    /// Another producer, or the same one with another epoch, where no transaction is open.
    pub fn initialize(
        &self,
        timeout_ms: i32,
        expected: Option<Producer>,
        fresh: Option<i64>,
        now_ms: i64,
    ) -> Result<Metadata, Stop> {
        let mut next = Metadata {
            timeout_ms,
            places: BTreeSet::new(),
            start_ms: -1,
            next_producer_id: NO_ID,
            ..self.step(State::Empty, now_ms)
        };
        if Metadata::exhausted(self.epoch) {
            if expected.is_some_and(|expected| expected.epoch != self.epoch) {
                return Err(Stop::Refused(Error::EpochsExhausted));
            }
            next.producer_id = fresh.ok_or(Stop::NeedsProducerId)?;
            next.epoch = 0;
            next.last_epoch = if expected.is_some() { self.epoch } else { NO_EPOCH };
            return Ok(next);
        }
        match expected {
            None => (next.epoch, next.last_epoch) = (self.epoch + 1, NO_EPOCH),
            Some(expected) if self.epoch == NO_EPOCH || expected.epoch == self.epoch => {
                (next.epoch, next.last_epoch) = (self.epoch + 1, self.epoch);
            }
            // It did not get the answer, and nobody else has come since, or there would be no last epoch.
            Some(expected) if expected.epoch == self.last_epoch => {}
            Some(_) => return Err(Stop::Refused(Error::ProducerFenced)),
        }
        Ok(next)
    }

    /// The partitions become part of the transaction, which starts if none is open.
    pub fn add(&self, places: &BTreeSet<Place>, version: Version, now_ms: i64) -> Metadata {
        let mut next = Metadata { version, ..self.step(State::Ongoing, now_ms) };
        if self.state != State::Ongoing {
            next.start_ms = now_ms;
        }
        next.places.extend(places.iter().cloned());
        next
    }

    /// The end is decided. Without partitions there is nothing to write, and it is over.
    pub fn prepare(
        &self,
        committed: bool,
        version: Version,
        fresh: Option<i64>,
        now_ms: i64,
    ) -> Result<Metadata, Stop> {
        let state = if committed { State::PrepareCommit } else { State::PrepareAbort };
        let mut next = Metadata { version, next_producer_id: NO_ID, ..self.step(state, now_ms) };
        if version == Version::V2 {
            if Metadata::exhausted(self.epoch) {
                next.next_producer_id = fresh.ok_or(Stop::NeedsProducerId)?;
            }
            next.epoch = self.epoch.saturating_add(1);
            next.last_epoch = self.epoch;
        }
        if self.state != State::Ongoing {
            next.start_ms = now_ms;
        }
        Ok(if next.places.is_empty() { next.complete(now_ms) } else { next })
    }

    /// The coordinator aborts the transaction, and whoever had it open is fenced.
    pub fn fence(&self, version: Version, fresh: Option<i64>, now_ms: i64) -> Result<Metadata, Stop> {
        let mut next = self.prepare(false, version, fresh, now_ms)?;
        if version == Version::V1 {
            (next.epoch, next.last_epoch) = (self.epoch.saturating_add(1), NO_EPOCH);
        }
        Ok(next)
    }

    /// All markers are written.
    pub fn complete(&self, now_ms: i64) -> Metadata {
        let state = match self.state {
            State::PrepareCommit => State::CompleteCommit,
            _ => State::CompleteAbort,
        };
        let Producer { id, epoch } = self.continued();
        Metadata {
            producer_id: id,
            epoch,
            next_producer_id: NO_ID,
            places: BTreeSet::new(),
            ..self.step(state, now_ms)
        }
    }

    /// The producer as it goes on after the end that is decided.
    pub fn continued(&self) -> Producer {
        match self.next_producer_id {
            NO_ID => self.producer(),
            id => Producer { id, epoch: 0 },
        }
    }

    /// Whether a client of the second version sends an end again that was carried out, and whose answer it did not get.
    pub fn is_repeated_end(&self, producer: Producer) -> bool {
        let new_epoch = producer.epoch.checked_add(1) == Some(self.epoch);
        new_epoch || self.is_repeated_last_end(producer)
    }

    /// The same, where the end has led to a new producer id.
    pub fn is_repeated_last_end(&self, producer: Producer) -> bool {
        self.previous_producer_id == producer.id && producer.epoch == LAST_EPOCH && self.epoch == 0
    }
}
