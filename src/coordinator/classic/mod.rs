//! The classic group: its members agree on a protocol, one of them leads and assigns, the coordinator keeps the rounds.
//!
//! ```text
//!            first member joins                everybody joined, or time is up
//!   Empty ───────────────────────► Preparing ────────────────────────────────► Completing
//!     ▲                             ▲  ▲  │                                        │  │
//!     └──── nobody joined ──────────┼──┼──┘                  somebody joins, leaves │  │ the leader's assignment
//!                                   │  └────────────────────────────────────────────┘  │ is durable
//!                                   └──── somebody joins, leaves, dies ─────── Stable ◄┘
//! ```
//! A group is Dead while its removal is on the way to the disk.
//!
//! This file holds what a group is; `join` takes members in, `rebalance` turns the wheel above, `session` is what members
//! do inside a generation, `form` is how a group is stored.

mod form;
mod join;
mod migrate;
mod rebalance;
mod records;
mod session;

pub(super) use join::keep_protocols;
pub(super) use migrate::Migrant;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::api::{DescribedGroup, DescribedMember, Joined, JoinedMember, Protocol, Reply, Token};
use super::context::Context;
use super::error::Error;
use super::offsets::CommittedOffset;
use super::subscription;
use super::timers::Timer;

/// The protocol type of consumers, whose metadata the coordinator can read.
const CONSUMER: &str = "consumer";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Empty,
    PreparingRebalance,
    CompletingRebalance,
    Stable,
    Dead,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Empty => "Empty",
            State::PreparingRebalance => "PreparingRebalance",
            State::CompletingRebalance => "CompletingRebalance",
            State::Stable => "Stable",
            State::Dead => "Dead",
        }
    }
}

#[derive(Clone, Debug)]
struct Member {
    instance_id: Option<Arc<str>>,
    client_id: String,
    client_host: String,
    session_timeout_ms: i32,
    rebalance_timeout_ms: i32,
    /// No two of the same name.
    protocols: Vec<Protocol>,
    assignment: Bytes,
    /// Has not been in a generation, so that it cannot have sent a heartbeat.
    is_new: bool,
    /// The join that waits for the round to complete.
    join: Option<Token>,
    /// The sync that waits for the assignment.
    sync: Option<Token>,
}

impl Member {
    fn metadata(&self, protocol: Option<&str>) -> Bytes {
        let found = self.protocols.iter().find(|known| Some(known.name.as_str()) == protocol);
        found.map(|protocol| protocol.metadata.clone()).unwrap_or_default()
    }
}

/// How long the first rebalance of an empty group still waits for members, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct InitialDelay {
    current_ms: i32,
    remaining_ms: i32,
    /// Whether somebody joined since the delay was last set.
    member_added: bool,
}

#[derive(Clone, Debug)]
pub(super) struct ClassicGroup {
    id: Arc<str>,
    state: State,
    /// Milliseconds since the Unix epoch.
    state_since_ms: Option<i64>,
    generation: i32,
    protocol_type: Option<String>,
    protocol: Option<String>,
    leader: Option<Arc<str>>,
    members: BTreeMap<Arc<str>, Member>,
    /// Instance id to member id.
    instances: BTreeMap<Arc<str>, Arc<str>>,
    /// Member ids given out and not joined with.
    pending_join: BTreeSet<Arc<str>>,
    /// Members that have not synced in this generation.
    pending_sync: BTreeSet<Arc<str>>,
    /// Protocol name to how many members speak it; no zeros.
    supported: BTreeMap<String, usize>,
    awaiting_join: usize,
    /// Set during the first rebalance of an empty group.
    initial_delay: Option<InitialDelay>,
    /// What the members of this generation subscribe to, as far as that can be known.
    subscribed: Option<BTreeSet<String>>,
    /// Whether there may be a stored form.
    stored: bool,
}

impl ClassicGroup {
    pub fn new(id: Arc<str>, now_ms: i64) -> Self {
        ClassicGroup {
            id,
            state: State::Empty,
            state_since_ms: Some(now_ms),
            generation: 0,
            protocol_type: None,
            protocol: None,
            leader: None,
            members: BTreeMap::new(),
            instances: BTreeMap::new(),
            pending_join: BTreeSet::new(),
            pending_sync: BTreeSet::new(),
            supported: BTreeMap::new(),
            awaiting_join: 0,
            initial_delay: None,
            subscribed: None,
            stored: false,
        }
    }

    /// One that starts where there was a group of another kind; `stored` says whether that is stored.
    pub fn after_another(id: Arc<str>, now_ms: i64, stored: bool) -> Self {
        ClassicGroup { stored, ..ClassicGroup::new(id, now_ms) }
    }

    /// A deadline has come.
    pub fn expired(&mut self, context: &mut Context, timer: &Timer) {
        match timer {
            Timer::Session { member, .. } => self.session_expired(context, member),
            Timer::Join { .. } => self.join_expired(context),
            Timer::Sync { .. } => self.sync_expired(context),
            // Those of groups of other kinds.
            Timer::Rebalance { .. }
            | Timer::FirstAssignment { .. }
            | Timer::MemberJoin { .. }
            | Timer::MemberSync { .. }
            | Timer::Cleanup => {}
        }
    }

    /// Stands in for a group whose stored form cannot be read, and which is still to be cleared away one day.
    pub fn unreadable(id: Arc<str>, now_ms: i64) -> Self {
        ClassicGroup { stored: true, ..ClassicGroup::new(id, now_ms) }
    }

    pub fn state_name(&self) -> &'static str {
        self.state.name()
    }

    pub fn protocol_type(&self) -> &str {
        self.protocol_type.as_deref().unwrap_or_default()
    }

    pub fn is_empty(&self) -> bool {
        self.state == State::Empty
    }

    /// Nobody would miss it: it never had a member, nothing is stored of it and nobody is about to join.
    pub fn is_blank(&self) -> bool {
        self.is_empty() && self.generation == 0 && !self.stored && self.pending_join.is_empty()
    }

    /// Empty, and nobody is about to join.
    pub fn is_abandoned(&self) -> bool {
        self.is_empty() && self.pending_join.is_empty()
    }

    /// The removal is on its way to the disk.
    pub fn die(&mut self) {
        self.state = State::Dead;
    }

    /// The removal failed.
    pub fn revive(&mut self) {
        self.state = State::Empty;
    }

    /// Gives up the deadlines of a group that is removed.
    pub fn cancel_timers(&self, context: &mut Context) {
        for member in self.members.keys().chain(&self.pending_join) {
            context.timers.cancel(&self.session_timer(member));
        }
        context.timers.cancel(&self.join_timer());
        context.timers.cancel(&self.sync_timer());
    }

    /// Whether committed offsets of the topic are in use. A consumer group whose subscriptions cannot be read may be
    /// subscribed to anything.
    pub fn is_subscribed_to(&self, topic: &str) -> bool {
        match &self.subscribed {
            Some(topics) => topics.contains(topic),
            None => self.is_consumer(),
        }
    }

    /// When the time starts after which an offset may expire, in milliseconds since the Unix epoch. `None`: not now.
    pub fn expiry_base_ms(&self, offset: &CommittedOffset) -> Option<i64> {
        if self.protocol_type.is_none() {
            return Some(offset.commit_timestamp_ms);
        }
        match self.state {
            State::Empty => Some(self.state_since_ms.unwrap_or(offset.commit_timestamp_ms)),
            State::Stable if self.is_consumer() && self.subscribed.is_some() => Some(offset.commit_timestamp_ms),
            _ => None,
        }
    }

    pub fn may_delete(&self) -> Result<(), Error> {
        match self.state {
            State::Empty => Ok(()),
            State::Dead => Err(Error::GroupIdNotFound),
            _ => Err(Error::NonEmptyGroup),
        }
    }

    pub fn may_delete_offsets(&self) -> Result<(), Error> {
        match self.state {
            State::Empty => Ok(()),
            State::Dead => Err(Error::GroupIdNotFound),
            _ if self.is_consumer() => Ok(()),
            _ => Err(Error::NonEmptyGroup),
        }
    }

    pub fn describe(&self) -> DescribedGroup {
        let protocol = if self.state == State::Stable { self.protocol.as_deref() } else { None };
        DescribedGroup {
            group_id: self.id.to_string(),
            state: self.state.name(),
            protocol_type: self.protocol_type().to_owned(),
            protocol_name: protocol.unwrap_or_default().to_owned(),
            members: self
                .members
                .iter()
                .map(|(id, member)| DescribedMember {
                    member_id: id.to_string(),
                    group_instance_id: member.instance_id.as_deref().map(str::to_owned),
                    client_id: member.client_id.clone(),
                    client_host: member.client_host.clone(),
                    metadata: member.metadata(protocol),
                    assignment: member.assignment.clone(),
                })
                .collect(),
        }
    }

    /// Refuses every request that waits.
    pub fn refuse_waiting(&mut self, context: &mut Context, error: Error) {
        for id in self.members.keys().cloned().collect::<Vec<_>>() {
            let (id, mut member) = self.members.remove_entry(&id).expect("the id comes from the members");
            self.answer_waiting(context, &mut member, error, &id);
            self.members.insert(id, member);
        }
    }

    fn is_consumer(&self) -> bool {
        self.protocol_type.as_deref() == Some(CONSUMER)
    }

    fn is_leader(&self, member_id: &str) -> bool {
        self.leader.as_deref() == Some(member_id)
    }

    fn session_timer(&self, member: &Arc<str>) -> Timer {
        Timer::Session { group: self.id.clone(), member: member.clone() }
    }

    fn join_timer(&self) -> Timer {
        Timer::Join { group: self.id.clone() }
    }

    fn sync_timer(&self) -> Timer {
        Timer::Sync { group: self.id.clone() }
    }

    fn transition(&mut self, context: &Context, state: State) {
        self.state = state;
        self.state_since_ms = Some(context.now.wall_ms);
    }

    /// The member has been heard of.
    fn refresh_session(&self, context: &mut Context, member_id: &str) {
        if let Some((id, member)) = self.members.get_key_value(member_id) {
            context.set_timer(self.session_timer(id), member.session_timeout_ms);
        }
    }

    /// Whether the member id, and the instance id that comes with it, belong to this group.
    fn check_member(&self, member_id: &str, instance_id: Option<&str>) -> Result<(), Error> {
        if let Some(instance_id) = instance_id {
            match self.instances.get(instance_id) {
                None => return Err(Error::UnknownMemberId),
                Some(current) if **current != *member_id => return Err(Error::FencedInstanceId),
                Some(_) => {}
            }
        }
        if self.members.contains_key(member_id) { Ok(()) } else { Err(Error::UnknownMemberId) }
    }

    fn count_protocols(&mut self, protocols: &[Protocol]) {
        for protocol in protocols {
            *self.supported.entry(protocol.name.clone()).or_default() += 1;
        }
    }

    fn discount_protocols(&mut self, protocols: &[Protocol]) {
        for protocol in protocols {
            if let Some(count) = self.supported.get_mut(&protocol.name) {
                *count -= 1;
                if *count == 0 {
                    self.supported.remove(&protocol.name);
                }
            }
        }
    }

    /// Whether somebody with these protocols and the members that are there have one in common.
    fn supports(&self, protocol_type: &str, protocols: &[Protocol]) -> bool {
        if self.is_empty() {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        self.protocol_type.as_deref() == Some(protocol_type)
            && protocols
                .iter()
                .any(|protocol| self.supported.get(&protocol.name).copied().unwrap_or_default() == self.members.len())
    }

    /// The protocol that everybody speaks and most prefer; among equals, the one that the leader prefers.
    fn select_protocol(&self) -> Option<String> {
        let everybody = self.members.len();
        let common = |protocol: &&Protocol| self.supported.get(&protocol.name) == Some(&everybody);
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for member in self.members.values() {
            if let Some(choice) = member.protocols.iter().find(common) {
                *votes.entry(&choice.name).or_default() += 1;
            }
        }
        let most = votes.values().max()?;
        let leader = self.members.get(self.leader.as_deref()?)?;
        let winner = |name: &str| votes.get(name) == Some(most);
        let preferred = leader.protocols.iter().map(|protocol| protocol.name.as_str()).find(|name| winner(name));
        preferred.map(str::to_owned)
    }

    fn subscriptions(&self) -> Option<BTreeSet<String>> {
        if !self.is_consumer() {
            return None;
        }
        let protocol = self.protocol.as_deref();
        let mut all = BTreeSet::new();
        for member in self.members.values() {
            all.append(&mut subscription::topics(&member.metadata(protocol))?);
        }
        Some(all)
    }

    /// Puts a member in that is not there yet.
    fn insert(&mut self, id: Arc<str>, member: Member, protocol_type: &str) {
        if self.members.is_empty() {
            self.protocol_type = Some(protocol_type.to_owned());
        }
        if let Some(instance) = &member.instance_id {
            self.instances.insert(instance.clone(), id.clone());
        }
        self.count_protocols(&member.protocols);
        self.awaiting_join += usize::from(member.join.is_some());
        self.leader.get_or_insert_with(|| id.clone());
        self.pending_join.remove(&id);
        self.members.insert(id, member);
    }

    /// Takes a member or a pending member out. Requests of it that still wait get the error.
    fn remove(&mut self, context: &mut Context, member_id: &str, error: Error) {
        if let Some(id) = self.pending_join.take(member_id) {
            context.timers.cancel(&self.session_timer(&id));
        }
        let Some((id, mut member)) = self.members.remove_entry(member_id) else { return };
        context.timers.cancel(&self.session_timer(&id));
        self.answer_waiting(context, &mut member, error, "");
        self.discount_protocols(&member.protocols);
        if let Some(instance) = &member.instance_id {
            self.instances.remove(instance);
        }
        self.pending_sync.remove(member_id);
        if self.is_leader(member_id) {
            self.leader = self.members.keys().next().cloned();
        }
    }

    /// Refuses whatever the member waits for.
    fn answer_waiting(&mut self, context: &mut Context, member: &mut Member, error: Error, member_id: &str) {
        if let Some(token) = member.join.take() {
            self.awaiting_join -= 1;
            context.reply(token, refuse_join(error, member_id));
        }
        if let Some(token) = member.sync.take() {
            context.reply(token, Reply::Sync(Err(error)));
        }
    }

    /// Whether everything that is kept twice agrees.
    #[cfg(test)]
    pub fn check_counts(&self) {
        let waiting = |member: &&Member| member.join.is_some();
        assert_eq!(self.awaiting_join, self.members.values().filter(waiting).count());
        let mut counted = ClassicGroup::new(self.id.clone(), 0);
        for (id, member) in &self.members {
            counted.count_protocols(&member.protocols);
            if let Some(instance) = &member.instance_id {
                counted.instances.insert(instance.clone(), id.clone());
            }
        }
        assert_eq!((&self.supported, &self.instances), (&counted.supported, &counted.instances));
        assert_eq!(self.leader.is_some(), !self.members.is_empty());
        assert!(self.leader.as_ref().is_none_or(|leader| self.members.contains_key(leader)));
        assert!(self.members.is_empty() || self.select_protocol().is_some(), "members have a protocol in common");
        assert!(self.pending_sync.iter().all(|id| self.members.contains_key(id)));
        assert!(self.pending_join.iter().all(|id| !self.members.contains_key(id)));
        match self.state {
            State::Empty | State::Dead => assert!(self.members.is_empty()),
            State::CompletingRebalance => assert!(!self.members.is_empty() && self.awaiting_join == 0),
            State::Stable => {
                assert!(self.members.values().all(|member| member.join.is_none() && member.sync.is_none()));
            }
            State::PreparingRebalance => assert!(self.members.values().all(|member| member.sync.is_none())),
        }
    }

    /// The answer to a join of the current generation.
    fn joined(&self, member_id: &str) -> Joined {
        Joined {
            generation_id: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol.clone(),
            leader: self.leader.as_deref().unwrap_or_default().to_owned(),
            skip_assignment: false,
            member_id: member_id.to_owned(),
            members: if self.is_leader(member_id) { self.joined_members() } else { Vec::new() },
        }
    }

    fn joined_members(&self) -> Vec<JoinedMember> {
        let protocol = self.protocol.as_deref();
        self.members
            .iter()
            .map(|(id, member)| JoinedMember {
                member_id: id.to_string(),
                group_instance_id: member.instance_id.as_deref().map(str::to_owned),
                metadata: member.metadata(protocol),
            })
            .collect()
    }
}

pub(super) fn refuse_join(error: Error, member_id: &str) -> Reply {
    Reply::Join(Err(super::api::JoinRefused { error, member_id: member_id.to_owned() }))
}
