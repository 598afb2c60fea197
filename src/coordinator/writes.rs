//! The writes that are on their way to the disk, group by group, and what is to happen when they are done.
//!
//! The coordinator changes what it has promised to keep only when a write has become durable. A group has one write under
//! way at most; what comes up in the meantime goes into the next one together. So nothing depends on the order in which
//! writes reach the disk or their completions come back, and however many commits a group has in flight, they take two
//! flushes at most.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use super::api::{
    Change, FetchOffsetsRequest, JoinRequest, LeaveOutcome, PartitionOutcomes, Reply, Token, Write, WriteId,
};
use super::offsets::CommittedOffset;

/// What a write was for.
#[derive(Debug)]
pub(super) enum Purpose {
    /// The leader's assignment for a generation.
    Assignment { generation: i32, assignments: BTreeMap<String, Bytes> },
    /// A static member came back under a new member id, without a rebalance.
    ReplaceStatic { token: Token, request: JoinRequest, old_member: Arc<str>, new_member: Arc<str> },
    /// The group lost its last member; whoever asked for that waits for an answer.
    Emptied { leave: Option<(Token, Vec<LeaveOutcome>)> },
    /// Offsets are committed.
    Commit { token: Token, outcomes: PartitionOutcomes, offsets: Vec<(Arc<str>, i32, CommittedOffset)> },
    /// Offsets go, for nobody in particular or for somebody who waits.
    RemoveOffsets { removed: Vec<(Arc<str>, i32)>, reply: Option<(Token, PartitionOutcomes)> },
    /// The group goes with everything it has.
    RemoveGroup { token: Option<Token> },
    /// Offsets become pending.
    CommitPending {
        token: Token,
        outcomes: PartitionOutcomes,
        producer_id: i64,
        offsets: Vec<(Arc<str>, i32, CommittedOffset)>,
    },
    /// Pending offsets of a producer go, and these are committed.
    TransactionEnded {
        token: Token,
        producer_id: i64,
        removed: Vec<(Arc<str>, i32)>,
        offsets: Vec<(Arc<str>, i32, CommittedOffset)>,
    },
    /// A group that is written whole, as it was at a version of it.
    Whole { version: u64 },
    /// Something that these answers wait for and nothing else does.
    Answer { answers: Vec<(Token, Reply)> },
    /// Not a write: a reader that waits for the writes before it.
    Read { token: Token, request: FetchOffsetsRequest },
    /// Not a write yet: the end of a transaction that waits for the writes before it.
    EndTransaction { token: Token, producer_id: i64, committed: bool },
}

impl Purpose {
    /// The least timestamp with which a commit is later than those that this is for; `i64::MIN` if it is for none.
    fn least_commit_ms(&self) -> i64 {
        let (offsets, step) = match self {
            Purpose::Commit { offsets, .. } | Purpose::TransactionEnded { offsets, .. } => (offsets, 0),
            Purpose::CommitPending { offsets, .. } => (offsets, 1),
            _ => return i64::MIN,
        };
        offsets.iter().map(|(_, _, offset)| offset.commit_timestamp_ms.saturating_add(step)).max().unwrap_or(i64::MIN)
    }
}

#[derive(Debug)]
struct Entry {
    /// Empty for one that waits, and once the write that covers the entry is under way.
    changes: Vec<Change>,
    purpose: Purpose,
}

impl Entry {
    fn only_waits(&self) -> bool {
        matches!(self.purpose, Purpose::Read { .. } | Purpose::EndTransaction { .. })
    }
}

#[derive(Debug)]
struct Queue {
    /// The write that is under way, and how many entries from the front it covers.
    under_way: Option<(WriteId, usize)>,
    entries: VecDeque<Entry>,
    /// The least timestamp with which a commit is later than all that were in the queue.
    least_commit_ms: i64,
}

impl Default for Queue {
    fn default() -> Self {
        Queue { under_way: None, entries: VecDeque::new(), least_commit_ms: i64::MIN }
    }
}

/// No queue is ever empty.
#[derive(Debug, Default)]
pub(super) struct Writes {
    next: u64,
    versions: u64,
    queues: HashMap<Arc<str>, Queue>,
    group_of: HashMap<WriteId, Arc<str>>,
}

impl Writes {
    /// A number that is higher than all before.
    pub fn next_version(&mut self) -> u64 {
        self.versions += 1;
        self.versions
    }

    /// Takes changes in. Gives a write to carry out, unless they have to wait for one that is under way.
    pub fn issue(&mut self, group: &Arc<str>, changes: Vec<Change>, purpose: Purpose) -> Option<Write> {
        let queue = self.queues.entry(group.clone()).or_default();
        queue.least_commit_ms = queue.least_commit_ms.max(purpose.least_commit_ms());
        queue.entries.push_back(Entry { changes, purpose });
        self.start(group)
    }

    /// The least timestamp with which a commit is later than those whose writes have not ended, in milliseconds since the
    /// Unix epoch.
    pub fn least_commit_ms(&self, group: &str) -> i64 {
        self.queues.get(group).map_or(i64::MIN, |queue| queue.least_commit_ms)
    }

    /// Forms a write of everything that waits for one, if none is under way.
    pub fn start(&mut self, group: &Arc<str>) -> Option<Write> {
        let queue = self.queues.get_mut(group).filter(|queue| queue.under_way.is_none())?;
        let id = WriteId(self.next);
        self.next += 1;
        queue.under_way = Some((id, queue.entries.len()));
        self.group_of.insert(id, group.clone());
        let changes = queue.entries.iter_mut().flat_map(|entry| std::mem::take(&mut entry.changes)).collect();
        Some(Write { id, group: group.clone(), changes })
    }

    /// Lets what is no write wait for the writes of a group that is [`busy`](Self::busy).
    pub fn wait(&mut self, group: &str, purpose: Purpose) {
        let queue = self.queues.get_mut(group).expect("a busy group has a queue");
        queue.entries.push_back(Entry { changes: Vec::new(), purpose });
    }

    /// Whether the group has writes that have not ended.
    pub fn busy(&self, group: &str) -> bool {
        self.queues.contains_key(group)
    }

    /// Takes out what a write that has ended was for, in order, with those who waited for nothing else. An id that
    /// is not under way is nobody's.
    pub fn complete(&mut self, id: WriteId) -> Option<(Arc<str>, Vec<Purpose>)> {
        let group = self.group_of.remove(&id)?;
        let queue = self.queues.get_mut(&group)?;
        let (_, covered) = queue.under_way.take()?;
        let waiting = queue.entries.iter().skip(covered).take_while(|entry| entry.only_waits()).count();
        let ended = queue.entries.drain(..covered + waiting).map(|entry| entry.purpose).collect();
        if queue.entries.is_empty() {
            self.queues.remove(&group);
        }
        Some((group, ended))
    }

    /// The partitions that commits of the group that have not ended are about.
    pub fn committing(&self, group: &str) -> impl Iterator<Item = (&Arc<str>, i32)> {
        let entries = self.queues.get(group).into_iter().flat_map(|queue| &queue.entries);
        let offsets = entries.flat_map(|entry| match &entry.purpose {
            Purpose::Commit { offsets, .. }
            | Purpose::CommitPending { offsets, .. }
            | Purpose::TransactionEnded { offsets, .. } => offsets.as_slice(),
            _ => &[],
        });
        offsets.map(|(topic, partition, _)| (topic, *partition))
    }

    /// The groups in which a producer commits offsets with writes that have not ended.
    pub fn groups_committing(&self, producer: i64) -> impl Iterator<Item = &Arc<str>> {
        let is_of = move |entry: &Entry| match &entry.purpose {
            Purpose::CommitPending { producer_id, .. } => *producer_id == producer,
            _ => false,
        };
        self.queues.iter().filter(move |(_, queue)| queue.entries.iter().any(is_of)).map(|(group, _)| group)
    }

    /// The producers that are about to have something pending for a partition.
    pub fn producers_committing(&self, group: &str, topic: &str, partition: i32) -> Vec<i64> {
        let entries = self.queues.get(group).into_iter().flat_map(|queue| &queue.entries);
        let producers = entries.filter_map(|entry| match &entry.purpose {
            Purpose::CommitPending { producer_id, offsets, .. } => {
                let has = offsets.iter().any(|(name, index, _)| **name == *topic && *index == partition);
                has.then_some(*producer_id)
            }
            _ => None,
        });
        producers.collect()
    }

    /// The groups with writes that have not ended.
    pub fn groups(&self) -> impl Iterator<Item = &Arc<str>> {
        self.queues.keys()
    }
}
