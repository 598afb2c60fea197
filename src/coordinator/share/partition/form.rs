//! The stored forms of a share partition and of the key that it is stored under. Numbers are big-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 1 | format version, 1 |
//! | 8 | start offset |
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
//! Records that are not in a stretch were not handed out, or are being handed out for the first time.

use std::sync::Arc;

use bytes::Bytes;

use super::batch::{Batch, Run, State};
use super::{SharePartition, Summary};
use crate::coordinator::stored::{BadBytes, Reader, Writer};
use crate::protocol::Uuid;

const VERSION: u8 = 1;

const AVAILABLE: u8 = 0;
const ACKNOWLEDGED: u8 = 2;
const ARCHIVED: u8 = 4;

/// What a share partition is stored under.
///
/// | bytes | what |
/// |---|---|
/// | 1 | format version, 1 |
/// | 4, n | group: length, id in UTF-8 |
/// | 16 | topic id |
/// | 4 | partition |
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SharePartitionKey {
    pub group: Arc<str>,
    pub topic: Uuid,
    pub partition: i32,
}

impl SharePartitionKey {
    pub fn new(group: impl Into<Arc<str>>, topic: Uuid, partition: i32) -> Self {
        SharePartitionKey { group: group.into(), topic, partition }
    }

    /// The space of the catalog's state in which share partitions are stored, under these keys.
    pub const SPACE: &str = "share-partition";

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.u8(VERSION);
        writer.string(&self.group);
        writer.raw(&self.topic.0);
        writer.i32(self.partition);
        writer.finish().into()
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadBytes> {
        let mut reader = Reader::new(bytes);
        reader.version(VERSION)?;
        let key = SharePartitionKey {
            group: reader.string("the group")?.into(),
            topic: Uuid(reader.array("the topic id")?),
            partition: reader.i32("the partition")?,
        };
        reader.end()?;
        Ok(key)
    }
}

/// A stretch as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub first: i64,
    pub last: i64,
    /// What has become of the records, by Kafka's numbers.
    pub state: u8,
    pub deliveries: i32,
}

impl Stretch {
    /// Whether the records are done with.
    pub fn is_done(&self) -> bool {
        self.state != AVAILABLE
    }

    /// How many records it has.
    pub fn count(&self) -> i64 {
        self.last - self.first + 1
    }
}

impl SharePartition {
    /// The state that all that has been decided so far leads to.
    pub fn to_bytes(&self) -> Bytes {
        let (start, stretches) = self.stretches();
        let mut writer = Writer::default();
        writer.u8(VERSION);
        writer.i64(start);
        writer.length(stretches.len());
        for stretch in stretches {
            writer.i64(stretch.first);
            writer.i64(stretch.last);
            writer.u8(stretch.state);
            writer.i32(stretch.deliveries);
        }
        writer.finish()
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

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadBytes> {
        let (start, stretches) = read(bytes)?;
        let mut partition = SharePartition::new(start);
        let mut next = start;
        for Stretch { first, last, state, deliveries } in stretches {
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
        Ok(partition)
    }

    fn put(&mut self, first: i64, run: Run) {
        self.end = run.last;
        self.batches.insert(first, Batch::new(first, run));
    }

    /// What is shown of a stored share partition.
    pub fn summary(bytes: &[u8]) -> Result<Summary, BadBytes> {
        let (start_offset, stretches) = read(bytes)?;
        let done = stretches.iter().filter(|stretch| stretch.is_done());
        Ok(Summary { start_offset, done: done.map(Stretch::count).sum() })
    }

    /// The start offset of a stored share partition, and its stretches.
    pub fn stored_stretches(bytes: &[u8]) -> Result<(i64, Vec<Stretch>), BadBytes> {
        read(bytes)
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

fn read(bytes: &[u8]) -> Result<(i64, Vec<Stretch>), BadBytes> {
    let mut reader = Reader::new(bytes);
    reader.version(VERSION)?;
    let start = reader.i64("the start offset")?;
    let mut stretches = Vec::new();
    let mut next = start;
    for _ in 0..reader.length("the number of stretches")? {
        let (first, last) = (reader.i64("a first offset")?, reader.i64("a last offset")?);
        let state = reader.u8("what has become of records")?;
        if !matches!(state, AVAILABLE | ACKNOWLEDGED | ARCHIVED) {
            return Err(reader.unknown("what has become of records", state));
        }
        if first < next || last < first || last == i64::MAX {
            return Err(BadBytes::Contradiction { what: format!("records {first} to {last} come after {next}") });
        }
        next = last + 1;
        stretches.push(Stretch { first, last, state, deliveries: reader.i32("a delivery count")? });
    }
    reader.end()?;
    Ok((start, stretches))
}
