//! The state of a share partition as it is stored: what Apache Kafka's share coordinator keeps.
//!
//! It has a life of its own. Whoever hands out the records of a partition reads it once and then writes to it what has become
//! of them; brokers, and whoever speaks as they do, may initialize, read, write and delete it beside them. All of it goes
//! through [`StateChange`], by the same rules:
//!
//! - The *state epoch* is that of the group when the partition was initialized, and the *leader epoch* that of the last leader
//!   of the partition that has read it. A change that comes with an epoch below the highest that was seen is fenced; -1 stands
//!   for no epoch.
//! - A write adds to what is there. Of two things that are said of a record, the one with more deliveries holds, and of those
//!   the one that is further on.
//!
//! The stored form; numbers are big-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 1 | format version, 2 |
//! | 4, 4 | state epoch, and the highest that was seen |
//! | 4, 4 | leader epoch, and the highest that was seen |
//! | 8 | start offset; -1: nobody has fetched yet |
//! | 4 | how many records from the start offset on are done with; -1: not known |
//! | 4 | how many stretches |
//!
//! and for each stretch of neighbouring records that share one fate, in order, none below the start offset:
//!
//! | bytes | what |
//! |---|---|
//! | 8 | first offset |
//! | 8 | last offset |
//! | 1 | what has become of them, by Kafka's numbers: 0 available, 2 acknowledged, 4 archived |
//! | 4 | how often they were handed out |
//!
//! Records that are not in a stretch were not handed out, or are being handed out for the first time. Version 1 has no epochs,
//! which are 0, and no number of records that are done with, which are counted.

use bytes::Bytes;
use thiserror::Error;

use super::stretches::{self, Stretch};
use crate::coordinator::stored::{BadBytes, Reader, Writer};

const VERSION: u8 = 2;
const FIRST_VERSION: u8 = 1;

/// Stands for an epoch, a start offset or a number of records that is not given.
const NOT_GIVEN: i32 = -1;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Epoch {
    now: i32,
    highest: i32,
}

impl Epoch {
    fn new(now: i32) -> Self {
        Epoch { now, highest: now }
    }

    fn set(&mut self, now: i32) {
        *self = Epoch { now, highest: self.highest.max(now) };
    }

    fn fences(&self, given: i32) -> bool {
        given != NOT_GIVEN && given < self.highest
    }
}

/// What is stored of a partition of a share group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareState {
    state_epoch: Epoch,
    leader_epoch: Epoch,
    start: i64,
    done: i32,
    stretches: Vec<Stretch>,
}

/// What somebody says of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateWrite {
    pub state_epoch: i32,
    pub leader_epoch: i32,
    /// -1: it stays where it is.
    pub start: i64,
    /// How many records from the start offset on are done with; -1: not known.
    pub done: i32,
    pub stretches: Vec<Stretch>,
}

/// A change of what is stored of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateChange {
    /// It starts anew, at -1 where nobody has fetched yet.
    Initialize {
        state_epoch: i32,
        start: i64,
    },
    /// A leader reads it, and those before it are fenced.
    Read {
        leader_epoch: i32,
    },
    Write(StateWrite),
    Delete,
}

/// Why the state was not changed, or not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StateRefused {
    #[error("Read operation on uninitialized share partition not allowed.")]
    NotReadable,
    #[error("Write operation on uninitialized share partition not allowed.")]
    NotWritable,
    #[error("The leader epoch is lower than the highest that was seen.")]
    FencedLeaderEpoch,
    #[error("The state epoch is lower than the highest that was seen.")]
    FencedStateEpoch,
    #[error("An offset, a delivery state or a delivery count makes no sense.")]
    Nonsense,
}

impl ShareState {
    /// The start offset where nobody has fetched yet.
    pub const NO_START: i64 = NOT_GIVEN as i64;

    /// Of a partition of which nothing is known but where it starts.
    pub fn new(state_epoch: i32, start: i64) -> Self {
        ShareState {
            state_epoch: Epoch::new(state_epoch),
            leader_epoch: Epoch::default(),
            start,
            done: if start == Self::NO_START { NOT_GIVEN } else { 0 },
            stretches: Vec::new(),
        }
    }

    pub fn state_epoch(&self) -> i32 {
        self.state_epoch.now
    }

    pub fn leader_epoch(&self) -> i32 {
        self.leader_epoch.now
    }

    /// `None`: nobody has fetched yet.
    pub fn start_offset(&self) -> Option<i64> {
        (self.start != Self::NO_START).then_some(self.start)
    }

    /// How many records from the start offset on are done with; `None` where whoever wrote last has not said so.
    pub fn done(&self) -> Option<i32> {
        (self.done != NOT_GIVEN).then_some(self.done)
    }

    pub fn stretches(&self) -> &[Stretch] {
        &self.stretches
    }

    /// Of the records below this it says something.
    pub fn reach(&self) -> i64 {
        self.stretches.last().map_or(self.start, |stretch| stretch.last.saturating_add(1).max(self.start))
    }

    fn initialize(&mut self, state_epoch: i32, start: i64) -> Result<(), StateRefused> {
        if self.state_epoch.fences(state_epoch) {
            return Err(StateRefused::FencedStateEpoch);
        }
        let before = (self.state_epoch, self.leader_epoch);
        *self = ShareState::new(state_epoch, start);
        (self.state_epoch, self.leader_epoch) = before;
        self.state_epoch.set(state_epoch);
        self.leader_epoch.set(0);
        Ok(())
    }

    fn read(&mut self, leader_epoch: i32) -> Result<(), StateRefused> {
        if self.leader_epoch.fences(leader_epoch) {
            return Err(StateRefused::FencedLeaderEpoch);
        }
        if leader_epoch > self.leader_epoch.highest {
            self.leader_epoch.set(leader_epoch);
        }
        Ok(())
    }

    fn write(&mut self, write: StateWrite) -> Result<(), StateRefused> {
        if self.leader_epoch.fences(write.leader_epoch) {
            return Err(StateRefused::FencedLeaderEpoch);
        }
        if self.state_epoch.fences(write.state_epoch) {
            return Err(StateRefused::FencedStateEpoch);
        }
        if write.start != Self::NO_START {
            self.start = write.start;
        }
        self.done = write.done;
        self.stretches.extend(write.stretches);
        self.stretches = stretches::merge(std::mem::take(&mut self.stretches), self.start);
        Ok(())
    }

    pub fn to_bytes(&self) -> Bytes {
        let mut writer = Writer::default();
        writer.u8(VERSION);
        for Epoch { now, highest } in [self.state_epoch, self.leader_epoch] {
            writer.i32(now);
            writer.i32(highest);
        }
        writer.i64(self.start);
        writer.i32(self.done);
        writer.list(&self.stretches, |writer, stretch| {
            writer.i64(stretch.first);
            writer.i64(stretch.last);
            writer.u8(stretch.state);
            writer.i32(stretch.deliveries);
        });
        writer.finish()
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadBytes> {
        let mut reader = Reader::new(bytes);
        let first = bytes.first() == Some(&FIRST_VERSION);
        reader.version(if first { FIRST_VERSION } else { VERSION })?;
        let epoch = |reader: &mut Reader, what| match first {
            true => Ok(Epoch::default()),
            false => Ok(Epoch { now: reader.i32(what)?, highest: reader.i32(what)? }),
        };
        let (state_epoch, leader_epoch) = (epoch(&mut reader, "a state epoch")?, epoch(&mut reader, "a leader epoch")?);
        let start = reader.i64("the start offset")?;
        let done = if first { NOT_GIVEN } else { reader.i32("how many records are done with")? };
        let mut next = start;
        let stretches = reader.list("the number of stretches", |reader| {
            let (first, last) = (reader.i64("a first offset")?, reader.i64("a last offset")?);
            let state = reader.u8("what has become of records")?;
            let stretch = Stretch { first, last, state, deliveries: reader.i32("a delivery count")? };
            if first < next || !stretch.makes_sense() {
                return Err(BadBytes::Contradiction { what: format!("{stretch:?} comes where {next} is next") });
            }
            next = last + 1;
            Ok(stretch)
        })?;
        reader.end()?;
        let done = if first { stretches::done(&stretches) } else { done };
        Ok(ShareState { state_epoch, leader_epoch, start, done, stretches })
    }
}

impl StateChange {
    /// Changes `state`, which is `None` where the partition is not initialized. Nothing has changed where it is refused.
    pub fn apply(self, state: &mut Option<ShareState>) -> Result<(), StateRefused> {
        match self {
            StateChange::Initialize { start, .. } if start < ShareState::NO_START => Err(StateRefused::Nonsense),
            StateChange::Initialize { state_epoch, start } => match state {
                Some(state) => state.initialize(state_epoch, start),
                None => {
                    *state = Some(ShareState::new(state_epoch, start));
                    Ok(())
                }
            },
            StateChange::Read { leader_epoch } => match state {
                Some(state) => state.read(leader_epoch),
                None => Err(StateRefused::NotReadable),
            },
            StateChange::Write(write) => {
                let makes_sense = write.start >= ShareState::NO_START
                    && write.done >= NOT_GIVEN
                    && write.stretches.iter().all(Stretch::makes_sense);
                match state {
                    Some(_) if !makes_sense => Err(StateRefused::Nonsense),
                    Some(state) => state.write(write),
                    None => Err(StateRefused::NotWritable),
                }
            }
            StateChange::Delete => {
                *state = None;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::share::stretches::{ACKNOWLEDGED, AVAILABLE};

    fn write(state_epoch: i32, leader_epoch: i32, start: i64, stretches: &[Stretch]) -> StateChange {
        StateChange::Write(StateWrite { state_epoch, leader_epoch, start, done: 3, stretches: stretches.to_vec() })
    }

    fn initialize(state_epoch: i32, start: i64) -> StateChange {
        StateChange::Initialize { state_epoch, start }
    }

    fn read(leader_epoch: i32) -> StateChange {
        StateChange::Read { leader_epoch }
    }

    const SOME: Stretch = Stretch { first: 5, last: 7, state: AVAILABLE, deliveries: 1 };

    /// Applies changes one after the other, and answers the state after the last and how each went.
    fn apply(changes: &[StateChange]) -> (Option<ShareState>, Vec<Result<(), StateRefused>>) {
        let mut state = None;
        let told = changes.iter().map(|change| change.clone().apply(&mut state)).collect();
        (state, told)
    }

    #[test]
    fn epochs_below_the_highest_are_fenced_and_no_epoch_never_is() {
        use StateRefused::*;
        let changes = [
            initialize(4, -1),
            initialize(3, 0),
            initialize(-1, 0),
            read(7),
            read(6),
            read(-1),
            write(3, 7, 1, &[]),
            write(4, 6, 1, &[]),
            write(-1, -1, 1, &[]),
            write(9, 9, 2, &[]),
            initialize(4, 0),
            read(6),
        ];
        let (state, told) = apply(&changes);
        let fenced: Vec<(usize, StateRefused)> =
            told.into_iter().enumerate().filter_map(|(place, told)| Some((place, told.err()?))).collect();
        let expected = [(1, FencedStateEpoch), (4, FencedLeaderEpoch), (6, FencedStateEpoch), (7, FencedLeaderEpoch)];
        assert_eq!(fenced, [&expected[..], &[(11, FencedLeaderEpoch)]].concat());
        let state = state.unwrap();
        assert_eq!((state.state_epoch(), state.leader_epoch()), (4, 0), "a write takes no epoch along");
        assert_eq!(ShareState::from_bytes(&state.to_bytes()), Ok(state), "the highest are stored too");
    }

    #[test]
    fn a_write_adds_to_what_is_there_from_its_start_offset_on() {
        let acknowledged = Stretch { first: 7, last: 9, state: ACKNOWLEDGED, deliveries: 1 };
        let (state, told) = apply(&[
            initialize(0, 2),
            write(0, 0, -1, &[SOME]),
            write(0, 0, -1, &[acknowledged]),
            write(0, 0, 6, &[Stretch { first: 8, last: 8, deliveries: 2, ..SOME }]),
        ]);
        assert!(told.iter().all(Result::is_ok), "{told:?}");
        let state = state.unwrap();
        let expected = [
            Stretch { first: 6, last: 6, ..SOME },
            Stretch { first: 7, last: 7, ..acknowledged },
            Stretch { first: 8, last: 8, deliveries: 2, ..SOME },
            Stretch { first: 9, last: 9, ..acknowledged },
        ];
        assert_eq!(state.stretches(), expected);
        assert_eq!((state.start_offset(), state.done()), (Some(6), Some(3)));
        let (state, _) = apply(&[initialize(0, 2), write(0, 0, 3, &[SOME]), initialize(0, -1)]);
        assert_eq!(state, Some(ShareState::new(0, -1)), "it starts anew");
    }

    #[test]
    fn what_is_not_there_and_what_makes_no_sense_is_refused() {
        let (state, told) = apply(&[read(0), write(0, 0, 0, &[]), StateChange::Delete]);
        assert_eq!(told, [Err(StateRefused::NotReadable), Err(StateRefused::NotWritable), Ok(())]);
        assert_eq!(state, None);
        let (state, told) = apply(&[initialize(0, -2), initialize(0, 5), write(0, 0, -2, &[]), StateChange::Delete]);
        assert_eq!(told, [Err(StateRefused::Nonsense), Ok(()), Err(StateRefused::Nonsense), Ok(())]);
        assert_eq!(state, None);
    }

    #[test]
    fn bytes_that_make_no_sense_are_refused_and_the_first_version_is_read() {
        let (state, _) =
            apply(&[initialize(6, 2), read(3), write(6, 3, 4, &[SOME, Stretch { first: 9, last: 9, ..SOME }])]);
        let state = state.unwrap();
        let bytes = state.to_bytes();
        assert_eq!(ShareState::from_bytes(&bytes), Ok(state));
        for cut in 0..bytes.len() {
            assert!(ShareState::from_bytes(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        for (position, byte) in [(0, 9), (24, 200), (49, 1), (49, 3)] {
            let mut changed = bytes.to_vec();
            changed[position] = byte;
            assert!(ShareState::from_bytes(&changed).is_err(), "byte {position} is {byte}");
        }
        let mut first = vec![1];
        first.extend_from_slice(&7i64.to_be_bytes());
        first.extend_from_slice(&1u32.to_be_bytes());
        for offset in [8i64, 10] {
            first.extend_from_slice(&offset.to_be_bytes());
        }
        first.extend_from_slice(&[2, 0, 0, 0, 1]);
        let read = ShareState::from_bytes(&first).unwrap();
        assert_eq!((read.state_epoch(), read.start_offset(), read.done()), (0, Some(7), Some(3)));
        assert_eq!(read.stretches(), [Stretch { first: 8, last: 10, state: ACKNOWLEDGED, deliveries: 1 }]);
    }
}
