//! A coordinator with a model of a disk beside it, and requests with sensible contents.

mod admin;
mod consumer;
mod consumer_history;
mod history;
mod join;
mod migration;
mod offsets;
mod restart;
mod rounds;
mod share;
mod statics;
mod streams;
mod streams_history;
mod streams_topology;
mod transactional;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;

use super::subscription::tests::subscription;
use super::*;
use crate::sys::Random;

/// Random bytes that are the same for every run: a counter, stirred.
#[derive(Debug, Default)]
pub struct SeededRandom(AtomicU64);

impl SeededRandom {
    pub fn new(seed: u64) -> Self {
        SeededRandom(AtomicU64::new(seed))
    }

    pub fn next(&self) -> u64 {
        let mut z = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

impl Random for SeededRandom {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let random = self.next().to_le_bytes();
            chunk.copy_from_slice(&random[..chunk.len()]);
        }
    }
}

pub type Place = (String, String, i32);

/// What a disk would hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Disk {
    pub groups: BTreeMap<String, Bytes>,
    pub offsets: BTreeMap<Place, Bytes>,
    pub pending: BTreeMap<Vec<u8>, Bytes>,
    pub shares: BTreeMap<Vec<u8>, Bytes>,
}

impl Disk {
    pub fn apply(&mut self, write: &Write) {
        for change in &write.changes {
            match change {
                Change::PutGroup(bytes) => {
                    self.groups.insert(write.group.to_string(), bytes.clone());
                }
                Change::RemoveGroup => {
                    self.groups.remove(&*write.group);
                }
                Change::PutOffset { topic, partition, offset } => {
                    self.offsets.insert((write.group.to_string(), topic.to_string(), *partition), offset.to_bytes());
                }
                Change::RemoveOffset { topic, partition } => {
                    self.offsets.remove(&(write.group.to_string(), topic.to_string(), *partition));
                }
                Change::PutPendingOffset { producer_id, topic, partition, offset } => {
                    let key = pending_key(write, *producer_id, topic, *partition);
                    self.pending.insert(key.to_bytes(), offset.to_bytes().into());
                }
                Change::RemovePendingOffset { producer_id, topic, partition } => {
                    self.pending.remove(&pending_key(write, *producer_id, topic, *partition).to_bytes());
                }
                Change::PutSharePartition { topic, partition, value } => {
                    let key = SharePartitionKey::new(write.group.clone(), *topic, *partition);
                    self.shares.insert(key.to_bytes(), value.clone());
                }
                Change::RemoveSharePartition { topic, partition } => {
                    let key = SharePartitionKey::new(write.group.clone(), *topic, *partition);
                    self.shares.remove(&key.to_bytes());
                }
            }
        }
    }
}

fn pending_key(write: &Write, producer_id: i64, topic: &Arc<str>, partition: i32) -> PendingOffsetKey {
    PendingOffsetKey { producer_id, group: write.group.clone(), topic: topic.clone(), partition }
}

pub struct Harness {
    pub coordinator: GroupCoordinator,
    pub now_ms: u64,
    /// By how much the wall clock is wrong.
    pub wrong_ms: i64,
    pub disk: Disk,
    /// Writes that have been asked for and not ended.
    pub writes: VecDeque<Write>,
    /// Whether writes end at once.
    pub prompt: bool,
    next_token: Token,
    /// In the order in which they were given, until somebody looks at them.
    replies: Vec<(Token, Reply)>,
    answered: BTreeSet<Token>,
}

/// Milliseconds since the Unix epoch when a test starts.
pub const START_MS: i64 = 1_700_000_000_000;

impl Harness {
    pub fn new() -> Self {
        Self::with(Config::default())
    }

    pub fn with(config: Config) -> Self {
        let now = Now { monotonic: Duration::ZERO, wall_ms: START_MS };
        Harness {
            coordinator: GroupCoordinator::new(config, Arc::new(SeededRandom::default()), now),
            now_ms: 0,
            wrong_ms: 0,
            disk: Disk::default(),
            writes: VecDeque::new(),
            prompt: true,
            next_token: 0,
            replies: Vec::new(),
            answered: BTreeSet::new(),
        }
    }

    pub fn now(&self) -> Now {
        Now { monotonic: Duration::from_millis(self.now_ms), wall_ms: START_MS + self.now_ms as i64 + self.wrong_ms }
    }

    pub fn token(&mut self) -> Token {
        self.next_token += 1;
        self.next_token
    }

    pub fn take(&mut self, actions: Actions) {
        for action in actions {
            match action {
                Action::Reply { token, reply } => {
                    assert!(token <= self.next_token, "token {token} was never given");
                    assert!(self.answered.insert(token), "token {token} is answered twice");
                    self.replies.push((token, reply));
                }
                Action::Persist(write) => {
                    let other = self.writes.iter().find(|other| other.group == write.group);
                    assert_eq!(other, None, "a group has one write under way");
                    self.writes.push_back(write);
                }
            }
        }
        while self.prompt && !self.writes.is_empty() {
            self.end_write(Ok(()));
        }
    }

    /// Ends the oldest write.
    pub fn end_write(&mut self, outcome: Result<(), WriteFailed>) {
        let write = self.writes.pop_front().expect("a write is under way");
        if outcome.is_ok() {
            self.disk.apply(&write);
        }
        let actions = self.coordinator.persisted(self.now(), write.id, outcome);
        self.take(actions);
    }

    /// Lets time pass, deadline by deadline.
    pub fn advance(&mut self, ms: u64) {
        let end = self.now_ms + ms;
        while let Some(due) = self.coordinator.next_deadline().filter(|due| *due <= Duration::from_millis(end)) {
            self.now_ms = self.now_ms.max(due.as_millis() as u64);
            let actions = self.coordinator.tick(self.now());
            self.take(actions);
        }
        self.now_ms = end;
    }

    /// The answer to a request, if there is one yet.
    pub fn answer(&mut self, token: Token) -> Option<Reply> {
        let place = self.replies.iter().position(|(answered, _)| *answered == token)?;
        Some(self.replies.remove(place).1)
    }

    pub fn join(&mut self, request: JoinRequest) -> Token {
        let token = self.token();
        let actions = self.coordinator.join(self.now(), token, request);
        self.take(actions);
        token
    }

    pub fn joined(&mut self, token: Token) -> Joined {
        match self.answer(token) {
            Some(Reply::Join(Ok(joined))) => joined,
            other => panic!("not a completed join: {other:?}"),
        }
    }

    pub fn join_refused(&mut self, token: Token) -> JoinRefused {
        match self.answer(token) {
            Some(Reply::Join(Err(refused))) => refused,
            other => panic!("not a refused join: {other:?}"),
        }
    }

    pub fn sync(&mut self, member: &Joined, assignments: &[(&str, &str)]) -> Token {
        self.sync_with(SyncRequest {
            group_id: "g".into(),
            generation_id: member.generation_id,
            member_id: member.member_id.clone(),
            group_instance_id: None,
            protocol_type: member.protocol_type.clone(),
            protocol_name: member.protocol_name.clone(),
            assignments: assignments
                .iter()
                .map(|(id, assignment)| ((*id).to_owned(), Bytes::copy_from_slice(assignment.as_bytes())))
                .collect(),
        })
    }

    pub fn sync_with(&mut self, request: SyncRequest) -> Token {
        let token = self.token();
        let actions = self.coordinator.sync(self.now(), token, request);
        self.take(actions);
        token
    }

    pub fn synced(&mut self, token: Token) -> Result<Synced, Error> {
        match self.answer(token) {
            Some(Reply::Sync(result)) => result,
            other => panic!("not an answer to a sync: {other:?}"),
        }
    }

    pub fn heartbeat(&mut self, member_id: &str, generation_id: i32) -> Result<(), Error> {
        let request = HeartbeatRequest {
            group_id: "g".into(),
            generation_id,
            member_id: member_id.into(),
            group_instance_id: None,
        };
        self.coordinator.heartbeat(self.now(), &request)
    }

    pub fn leave(&mut self, members: &[(&str, Option<&str>)]) -> Token {
        let token = self.token();
        let members = members
            .iter()
            .map(|(id, instance)| LeavingMember {
                member_id: (*id).into(),
                group_instance_id: instance.map(str::to_owned),
            })
            .collect();
        let actions = self.coordinator.leave(self.now(), token, LeaveRequest { group_id: "g".into(), members });
        self.take(actions);
        token
    }

    pub fn left(&mut self, token: Token) -> Vec<Result<(), Error>> {
        match self.answer(token) {
            Some(Reply::Leave(Ok(outcomes))) => outcomes.into_iter().map(|outcome| outcome.result).collect(),
            other => panic!("not an answer to a leave: {other:?}"),
        }
    }

    pub fn commit(&mut self, request: CommitRequest) -> Token {
        let token = self.token();
        let actions = self.coordinator.commit(self.now(), token, request);
        self.take(actions);
        token
    }

    pub fn committed(&mut self, token: Token) -> Result<PartitionOutcomes, Error> {
        match self.answer(token) {
            Some(Reply::Commit(result)) => result,
            other => panic!("not an answer to a commit: {other:?}"),
        }
    }

    /// The offset that the group `g` has committed for a partition, as a fetch shows it.
    pub fn offset(&mut self, topic: &str, partition: i32) -> Option<i64> {
        self.stored(topic, partition).map(|stored| stored.offset)
    }

    pub fn stored(&mut self, topic: &str, partition: i32) -> Option<CommittedOffset> {
        let token = self.token();
        let topics = Some(vec![(topic.to_owned(), vec![partition])]);
        let request = FetchOffsetsRequest { group_id: "g".into(), topics, require_stable: false };
        let actions = self.coordinator.fetch_offsets(token, request);
        self.take(actions);
        match self.answer(token) {
            Some(Reply::FetchOffsets(fetched)) => fetched[0].1[0].1.clone().unwrap(),
            other => panic!("not an answer to a fetch: {other:?}"),
        }
    }

    pub fn state(&self) -> &'static str {
        self.coordinator.describe("g").map_or("none", |group| group.state)
    }

    /// A coordinator that knows what is on the disk and nothing else.
    pub fn restart(&mut self, config: Config) {
        let random = SeededRandom::new(self.now_ms);
        self.coordinator = GroupCoordinator::new(config, Arc::new(random), self.now());
        self.writes.clear();
        let now = self.now();
        for (group, bytes) in &self.disk.groups {
            self.coordinator.restore_group(now, group, bytes).unwrap();
        }
        for ((group, topic, partition), bytes) in &self.disk.offsets {
            let offset = CommittedOffset::from_bytes(bytes).unwrap();
            self.coordinator.restore_offset(now, group, topic, *partition, offset);
        }
        for (key, bytes) in &self.disk.pending {
            let (key, offset) = (PendingOffsetKey::from_bytes(key).unwrap(), PendingOffset::from_bytes(bytes).unwrap());
            self.coordinator.restore_pending_offset(now, key, offset);
        }
    }

    /// A Stable group of dynamic members; the first one leads.
    pub fn stable(&mut self, members: usize) -> Vec<Joined> {
        self.stable_with((0..members).map(|_| joining()).collect())
    }

    /// A Stable group of the members that make these requests; the first one leads. Each is assigned its place in the list.
    pub fn stable_with(&mut self, requests: Vec<JoinRequest>) -> Vec<Joined> {
        let mut requests = requests.into_iter();
        let leading = requests.next().unwrap();
        let first = self.join(leading.clone());
        let mut leader = self.joined(first);
        let mut others: Vec<Token> = requests.map(|request| self.join(request)).collect();
        let mut joined = Vec::new();
        if !others.is_empty() {
            let token = self.join(JoinRequest { member_id: leader.member_id, ..leading });
            leader = self.joined(token);
            joined = others.drain(..).map(|token| self.joined(token)).collect();
        }
        joined.insert(0, leader);
        let names: Vec<String> = (0..joined.len()).map(|place| place.to_string()).collect();
        let assignments: Vec<(&str, &str)> =
            joined.iter().zip(&names).map(|(member, name)| (member.member_id.as_str(), name.as_str())).collect();
        let tokens: Vec<Token> = joined.iter().rev().map(|member| self.sync(member, &assignments)).collect();
        for (token, name) in tokens.into_iter().rev().zip(&names) {
            assert_eq!(self.synced(token).unwrap().assignment, name.as_bytes());
        }
        assert_eq!(self.state(), "Stable");
        joined
    }

    /// The same member joins again, with what the group knows of it.
    pub fn rejoining(&self, member: &Joined) -> JoinRequest {
        let described = self.coordinator.describe("g").unwrap();
        let known = described.members.into_iter().find(|known| known.member_id == member.member_id).unwrap();
        JoinRequest { member_id: known.member_id, group_instance_id: known.group_instance_id, ..joining() }
    }
}

/// Writes that end after a while, some of them with an error, and are reported in any order.
#[derive(Debug, Default)]
pub struct OutOfOrder(Vec<(WriteId, Result<(), WriteFailed>)>);

impl OutOfOrder {
    /// Some of the writes that are under way end, and some of those that have ended are reported.
    pub fn step(&mut self, h: &mut Harness, random: &SeededRandom) {
        for _ in 0..random.below(h.writes.len() + 1) {
            let write = h.writes.pop_front().expect("there are that many");
            let outcome = if random.below(10) == 0 { Err(WriteFailed) } else { Ok(()) };
            if outcome.is_ok() {
                h.disk.apply(&write);
            }
            self.0.push((write.id, outcome));
        }
        for _ in 0..random.below(self.0.len() + 1) {
            let (id, outcome) = self.0.swap_remove(random.below(self.0.len()));
            let actions = h.coordinator.persisted(h.now(), id, outcome);
            h.take(actions);
        }
    }

    /// All of them end well.
    pub fn finish(&mut self, h: &mut Harness) {
        // The end of one may start another.
        while !h.writes.is_empty() || !self.0.is_empty() {
            if let Some(write) = h.writes.pop_front() {
                h.disk.apply(&write);
                self.0.push((write.id, Ok(())));
            }
            if let Some((id, outcome)) = self.0.pop() {
                let actions = h.coordinator.persisted(h.now(), id, outcome);
                h.take(actions);
            }
        }
    }
}

/// A new consumer that need not know its member id, subscribed to `t`, for group `g`.
pub fn joining() -> JoinRequest {
    JoinRequest {
        group_id: "g".into(),
        member_id: String::new(),
        group_instance_id: None,
        client_id: "client".into(),
        client_host: "/127.0.0.1".into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 30_000,
        protocol_type: "consumer".into(),
        protocols: vec![protocol("range"), protocol("sticky")],
        member_id_required: false,
        can_skip_assignment: true,
    }
}

pub fn static_joining(instance: &str) -> JoinRequest {
    JoinRequest { group_instance_id: Some(instance.into()), ..joining() }
}

pub fn protocol(name: &str) -> Protocol {
    Protocol { name: name.into(), metadata: subscription(&["t"]).into() }
}

/// A commit of one partition of topic `t` of group `g`, by nobody in particular.
pub fn committing(partition: i32, offset: i64) -> CommitRequest {
    CommitRequest {
        group_id: "g".into(),
        member_id: String::new(),
        group_instance_id: None,
        generation_id: -1,
        retention_time_ms: -1,
        knows_group_id_not_found: true,
        topics: vec![(
            "t".into(),
            vec![CommitPartition { partition, offset, leader_epoch: -1, timestamp_ms: -1, metadata: None }],
        )],
    }
}

pub fn committing_as(member: &Joined, partition: i32, offset: i64) -> CommitRequest {
    CommitRequest {
        member_id: member.member_id.clone(),
        generation_id: member.generation_id,
        ..committing(partition, offset)
    }
}
