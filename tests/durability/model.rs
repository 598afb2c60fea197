//! What was promised, apart from doze: whatever was acknowledged, and whatever may have come of what was not.

use std::collections::BTreeMap;
use std::fmt::Debug;

use bytes::Bytes;
use doze::protocol::Uuid;
use doze::record::CheckedBatch;

/// What a process left to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Before {
    /// All that it wrote: it was killed, or stopped.
    AllKept,
    /// Not all: the power was cut, or a flush lost pages.
    AnyLost,
}

/// A value that was acknowledged, and those that may have taken its place since: their change failed in a way, or at a
/// moment, that leaves open whether it was made.
#[derive(Clone, Debug, Default)]
pub struct Known<T> {
    sure: T,
    maybe: Vec<T>,
}

impl<T: Clone + Debug + PartialEq> Known<T> {
    pub fn new(sure: T) -> Self {
        Known { sure, maybe: Vec::new() }
    }

    pub fn sure(&self) -> &T {
        &self.sure
    }

    pub fn is_sure(&self) -> bool {
        self.maybe.is_empty()
    }

    pub fn acknowledge(&mut self, value: T) {
        *self = Known::new(value);
    }

    pub fn maybe(&mut self, value: T) {
        self.maybe.push(value);
    }

    /// This is what was found. What was once shown must not go again.
    pub fn found(&mut self, value: T, what: &str) {
        assert!(
            value == self.sure || self.maybe.contains(&value),
            "{what}: found {value:?}, acknowledged is {:?}, possible {:?}",
            self.sure,
            self.maybe
        );
        self.acknowledge(value);
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct TopicState {
    pub id: Uuid,
    pub partitions: i32,
    pub configs: BTreeMap<String, String>,
}

/// What may happen to a log besides appends and DeleteRecords.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Policy {
    #[default]
    Keep,
    /// Old segments go.
    Retain,
    /// The latest record of each key stays.
    Compact,
}

/// A record's key, and its value, which a tombstone has none of.
pub type Keyed = (Vec<u8>, Option<Vec<u8>>);

/// A batch that a producer sent.
#[derive(Clone, Debug)]
pub struct Sent {
    pub batch: CheckedBatch,
    pub records: Vec<Keyed>,
    /// Its bytes from the checksum on, which nothing may change.
    pub tail: Bytes,
}

/// A batch that the log took.
#[derive(Clone, Debug)]
pub struct Entry {
    pub sent: Sent,
    pub last_offset: i64,
    /// A flush that covers it was acknowledged.
    pub sure: bool,
    /// Its transaction was aborted.
    pub aborted: bool,
}

#[derive(Clone, Debug, Default)]
pub struct LogModel {
    pub policy: Policy,
    /// By first offset.
    pub entries: BTreeMap<i64, Entry>,
    pub start: Known<i64>,
    /// The process started anew, and has not looked at the log since.
    pub restarted: Option<Before>,
    /// The end that the log should say it has.
    pub end: i64,
    /// What the idempotent producer has sent and not been told the outcome of, in order.
    pub unanswered: Vec<Sent>,
    /// Where its last acknowledged batch is.
    pub last_answered: Option<(i64, Sent)>,
    pub next_sequence: i32,
}

impl LogModel {
    pub fn took(&mut self, first_offset: i64, last_offset: i64, sent: Sent) {
        assert_eq!(first_offset, self.end, "an append goes where the log ends, and what was refused left nothing");
        self.end = last_offset + 1;
        self.entries.insert(first_offset, Entry { sent, last_offset, sure: false, aborted: false });
    }

    /// A flush was acknowledged: all that was there before it is on the medium.
    pub fn flushed(&mut self) {
        self.entries.values_mut().for_each(|entry| entry.sure = true);
    }

    /// The end below which everything was acknowledged.
    pub fn sure_end(&self) -> i64 {
        self.entries.values().rev().find(|entry| entry.sure).map_or(0, |entry| entry.last_offset + 1)
    }
}

#[derive(Clone, Debug, Default)]
pub struct Model {
    pub topics: BTreeMap<String, Known<Option<TopicState>>>,
    pub logs: BTreeMap<(Uuid, i32), LogModel>,
    /// By group, topic and partition.
    pub offsets: BTreeMap<(String, String, i32), Known<Option<i64>>>,
    pub cluster_id: Option<String>,
    /// Makes each batch unlike any other.
    pub batches: u64,
    pub topics_made: u64,
    /// A mistake that has to be found: what was appended is acknowledged before it is flushed.
    pub acknowledges_early: bool,
    /// What was acknowledged, for the count.
    pub acknowledged: u64,
}

impl Model {
    pub fn topic(&self, name: &str) -> Option<&TopicState> {
        self.topics.get(name)?.sure().as_ref()
    }
}
