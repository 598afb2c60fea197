//! The streams group (KIP-1071): the members run a Kafka Streams application, and the coordinator decides which of its tasks
//! each of them has.
//!
//! The first member brings the topology, which the group keeps. Once all of its topics are there, it makes tasks. A group has
//! an epoch, which rises when something changes that the assignment depends on; a target assignment with the epoch that it
//! was made for; and members, each with the epoch that it has come to on its way to the target.
//!
//! What it promises, whatever members do:
//! - No task is active with two members at one time, and the state of a task is open once in a process. A member keeps what
//!   it has until it has given it up, left or fallen silent.
//! - Epochs only rise. A member whose epoch is wrong is fenced and starts over without tasks.
//! - When all members have reconciled, every task is active with one of them, if the topics are there.
//!
//! As in Apache Kafka 4.3, there are no static members, no warm-up tasks and no sources by regular expression, and a group's
//! topology stays what it is.
//!
//! This file holds what a group is; `heartbeat` is what members say, `configure` fits a topology to the topics, `assignor`
//! shares out tasks, `target` says when, `reconcile` how one gets from what it has to what it is to have, `endpoints` where
//! partitions are served. `form` is how a group is stored.

mod api;
mod assignor;
mod configure;
mod describe;
mod endpoints;
mod form;
mod heartbeat;
mod reconcile;
mod records;
mod target;
mod topology;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::api::{CommitRequest, Reply, Token};
use super::config::StreamsSettings;
use super::context::Context;
use super::error::Error;
use super::group::Group;
use super::ledger::Ledger;
use super::timers::Timer;
use super::topics::Topics;
use configure::Found;

pub use api::*;
pub(super) use heartbeat::check_request;
pub use topology::{InternalTopic, Subtopology, Topology};

/// What a member does with a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Active,
    Standby,
}

/// Where a member is on its way to the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberState {
    /// It has what it was to have in its epoch.
    Stable,
    /// It has to give up tasks first.
    Unrevoked,
    /// Others have not let go yet of what is to be its.
    Unreleased,
}

/// Tasks that a member has; active ones with the epoch in which it got them. No empty maps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Held {
    active: BTreeMap<Arc<str>, BTreeMap<i32, i32>>,
    standby: TaskSet,
}

impl Held {
    fn is_empty(&self) -> bool {
        self.active.is_empty() && self.standby.is_empty()
    }

    fn each(&self) -> impl Iterator<Item = (Role, Arc<str>, i32)> {
        let active = self.active.iter().flat_map(|(id, all)| all.keys().map(|n| (Role::Active, id.clone(), *n)));
        active.chain(self.standby.iter().flat_map(|(id, all)| all.iter().map(|n| (Role::Standby, id.clone(), *n))))
    }

    fn tasks(&self) -> Tasks {
        let active = self.active.iter().map(|(id, all)| (id.clone(), all.keys().copied().collect()));
        Tasks { active: active.collect(), standby: self.standby.clone() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Member {
    rack_id: Option<String>,
    client_id: String,
    client_host: String,
    rebalance_timeout_ms: i32,
    /// Of the topology that it has joined with.
    topology_epoch: i32,
    process_id: String,
    endpoint: Option<Endpoint>,
    client_tags: BTreeMap<String, String>,
    epoch: i32,
    previous_epoch: i32,
    state: MemberState,
    assigned: Held,
    /// What it has been asked to give up and may still have.
    revoking: Held,
}

impl Member {
    fn new() -> Self {
        Member {
            rack_id: None,
            client_id: String::new(),
            client_host: String::new(),
            rebalance_timeout_ms: -1,
            topology_epoch: -1,
            process_id: String::new(),
            endpoint: None,
            client_tags: BTreeMap::new(),
            epoch: 0,
            previous_epoch: 0,
            state: MemberState::Stable,
            assigned: Held::default(),
            revoking: Held::default(),
        }
    }

    /// Everything that may be in the way of others.
    fn held(&self) -> impl Iterator<Item = (Role, Arc<str>, i32)> {
        self.assigned.each().chain(self.revoking.each())
    }

    /// When the member got an active task that it has.
    fn active_since(&self, subtopology: &str, partition: i32) -> Option<i32> {
        let find = |held: &Held| held.active.get(subtopology)?.get(&partition).copied();
        [&self.assigned, &self.revoking].into_iter().find_map(find)
    }

    /// Whether the epoch that a commit comes with is the member's, or was when it got the tasks.
    fn check_commit(&self, commit: &CommitRequest, topology: Option<&Topology>) -> Result<(), Error> {
        let epoch = commit.generation_id;
        match epoch.cmp(&self.epoch) {
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Greater => Err(Error::StaleMemberEpoch),
            // It has not heard of its newer epoch yet; what it has had since before then is still its.
            std::cmp::Ordering::Less => {
                for (topic, partitions) in &commit.topics {
                    let reader = topology.and_then(|topology| topology.reader_of(topic));
                    let reader = reader.ok_or(Error::StaleMemberEpoch)?;
                    for commit in partitions {
                        match self.active_since(&reader.id, commit.partition) {
                            Some(since) if epoch >= since => {}
                            _ => return Err(Error::StaleMemberEpoch),
                        }
                    }
                }
                Ok(())
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct StreamsGroup {
    id: Arc<str>,
    epoch: i32,
    /// The group's epoch that the target is for.
    assignment_epoch: i32,
    /// When the target was made; `None` if that was in another life.
    assigned_at: Option<Duration>,
    topology: Option<Topology>,
    /// The epoch of the topology whose topics are all there; -1 if there is none.
    validated_epoch: i32,
    /// Of the topics that the topology needs, with ids and partition counts; the epoch rises when it changes.
    fingerprint: u64,
    /// How many standbys the last target was made with, or the next one will be. The epoch rises when it changes.
    standbys: Option<i32>,
    /// Rises with what is to be known of endpoints.
    endpoint_epoch: i32,
    members: BTreeMap<Arc<str>, Member>,
    target: BTreeMap<Arc<str>, Tasks>,
    /// Whose an active task is. What is in here and what members have is the same.
    active: HashMap<(Arc<str>, i32), Arc<str>>,
    standby: HashMap<(Arc<str>, i32), BTreeSet<Arc<str>>>,
    /// What the topology makes of the topics. `None`: nobody has looked yet.
    found: Option<Found>,
    /// Which state of the topics that is of.
    seen_topics: Option<u64>,
    /// Who wants the whole application to stop. It holds until nobody is left.
    shutdown_by: Option<Arc<str>>,
    /// The group's removal is on its way to the disk.
    dead: bool,
    ledger: Ledger,
}

impl StreamsGroup {
    /// One without members. `shown` is what is stored under its name.
    pub fn new(id: Arc<str>, shown: Option<bytes::Bytes>) -> Self {
        StreamsGroup {
            id,
            // A member that has nothing yet is told this epoch, and not 0, which means that it is none.
            epoch: 1,
            assignment_epoch: 1,
            assigned_at: None,
            topology: None,
            validated_epoch: 0,
            fingerprint: Topics::FINGERPRINT_OF_NOTHING,
            standbys: None,
            endpoint_epoch: 0,
            members: BTreeMap::new(),
            target: BTreeMap::new(),
            active: HashMap::new(),
            standby: HashMap::new(),
            found: None,
            seen_topics: None,
            shutdown_by: None,
            dead: false,
            ledger: Ledger::new(shown),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Nobody would miss it: it has no members and nothing is stored of it.
    pub fn is_blank(&self) -> bool {
        self.is_empty() && !self.ledger.has_stored() && self.ledger.is_durable()
    }

    pub fn may_delete(&self) -> Result<(), Error> {
        self.ledger.may_delete(self.dead, self.is_empty())
    }

    pub fn may_delete_offsets(&self) -> Result<(), Error> {
        if self.dead { Err(Error::GroupIdNotFound) } else { Ok(()) }
    }

    pub fn is_subscribed_to(&self, topic: &str) -> bool {
        !self.is_empty() && self.topology.as_ref().is_some_and(|topology| topology.reader_of(topic).is_some())
    }

    pub fn die(&mut self) {
        self.dead = true;
    }

    pub fn revive(&mut self) {
        self.dead = false;
    }

    pub fn is_dead(&self) -> bool {
        self.dead
    }

    pub fn cancel_timers(&self, context: &mut Context) {
        context.timers.cancel(&self.delay_timer());
        for id in self.members.keys() {
            self.cancel_member_timers(context, id);
        }
    }

    /// Refuses every request that waits for a write.
    pub fn refuse_waiting(&mut self, context: &mut Context, error: Error) {
        self.ledger.refuse_waiting(context, error);
    }

    /// Whether a commit is in order. Members commit with version 9 of the request or later, which knows the error that tells
    /// them to try again with their new epoch.
    pub fn check_commit(&self, commit: &CommitRequest) -> Result<(), Error> {
        if self.dead {
            return Err(Error::CoordinatorNotAvailable);
        }
        if commit.generation_id < 0 && self.is_empty() {
            return Ok(());
        }
        let member = self.members.get(commit.member_id.as_str()).ok_or(Error::UnknownMemberId)?;
        if !commit.knows_group_id_not_found {
            return Err(Error::UnsupportedVersion);
        }
        member.check_commit(commit, self.topology.as_ref())
    }

    /// The same in a transaction. A producer need not say on whose behalf it commits.
    pub fn check_transactional_commit(&self, commit: &CommitRequest) -> Result<(), Error> {
        if self.dead {
            return Err(Error::CoordinatorNotAvailable);
        }
        if !commit.says_who() || (commit.generation_id < 0 && self.is_empty()) {
            return Ok(());
        }
        let member = self.members.get(commit.member_id.as_str()).ok_or(Error::UnknownMemberId)?;
        member.check_commit(commit, self.topology.as_ref())
    }

    /// Whether somebody who says who it is may read the group's offsets.
    pub fn check_fetch(&self, member_id: &str, epoch: i32) -> Result<(), Error> {
        let member = self.members.get(member_id).ok_or(Error::UnknownMemberId)?;
        if member.epoch == epoch { Ok(()) } else { Err(Error::StaleMemberEpoch) }
    }

    /// Answers when the group as it is now is durable.
    fn answer(&mut self, context: &mut Context, token: Token, reply: Reply) {
        self.ledger.answer(context, token, reply);
    }

    /// To be called after every event: writes what has changed.
    fn settle(&mut self, context: &mut Context) {
        if !self.dead && self.ledger.is_due() {
            let bytes = self.to_bytes();
            self.ledger.write(context, &self.id, Vec::new(), bytes);
        }
    }

    /// Another kind of group takes its place; it has no members. Answers whether something is stored of it.
    pub fn retire(&mut self, context: &mut Context) -> bool {
        context.timers.cancel(&self.delay_timer());
        let bytes = self.to_bytes();
        self.ledger.retire(context, &self.id, bytes)
    }

    /// A write has ended. When it has failed, gives what the group goes back to.
    pub fn written(&mut self, context: &mut Context, version: u64, stored: bool) -> Option<Group> {
        if !self.ledger.ended(context, version, stored) {
            return None;
        }
        if stored {
            self.settle(context);
            return None;
        }
        self.cancel_timers(context);
        let blank = Group::Streams(StreamsGroup::new(self.id.clone(), None));
        let mut group = Group::gone_back(context, &self.id, self.ledger.shown(), blank, self.dead);
        if let Group::Streams(group) = &mut group {
            group.shutdown_by = self.shutdown_by.take().filter(|_| !group.is_empty());
        }
        Some(group)
    }

    fn settings(&self, context: &Context) -> StreamsSettings {
        context.group_settings.get(&self.id).map_or(context.config.streams, |settings| settings.streams)
    }

    fn session_timer(&self, member: &Arc<str>) -> Timer {
        Timer::Session { group: self.id.clone(), member: member.clone() }
    }

    fn rebalance_timer(&self, member: &Arc<str>) -> Timer {
        Timer::Rebalance { group: self.id.clone(), member: member.clone() }
    }

    fn delay_timer(&self) -> Timer {
        Timer::FirstAssignment { group: self.id.clone() }
    }

    fn cancel_member_timers(&self, context: &mut Context, id: &Arc<str>) {
        context.timers.cancel(&self.session_timer(id));
        context.timers.cancel(&self.rebalance_timer(id));
    }

    /// The member has been heard of.
    fn refresh_session(&self, context: &mut Context, id: &Arc<str>) {
        context.set_timer(self.session_timer(id), self.settings(context).session_timeout_ms);
    }

    /// Starts everybody's session anew after a restart.
    pub fn restored(&mut self, context: &mut Context) {
        for (id, member) in &self.members {
            self.refresh_session(context, id);
            if member.state == MemberState::Unrevoked {
                context.set_timer(self.rebalance_timer(id), member.rebalance_timeout_ms);
            }
        }
    }

    /// Puts a member in, or what it has become.
    fn put(&mut self, id: &Arc<str>, member: Member) {
        self.take_out(id);
        for (role, subtopology, partition) in member.held() {
            let task = (subtopology, partition);
            match role {
                Role::Active => {
                    let before = self.active.insert(task, id.clone());
                    debug_assert!(
                        before.is_none(),
                        "{subtopology} of {id} is also {before:?}'s",
                        subtopology = partition
                    );
                }
                Role::Standby => drop(self.standby.entry(task).or_default().insert(id.clone())),
            }
        }
        self.members.insert(id.clone(), member);
    }

    fn take_out(&mut self, id: &Arc<str>) -> Option<Member> {
        let member = self.members.remove(id)?;
        for (role, subtopology, partition) in member.held() {
            let task = (subtopology, partition);
            match role {
                Role::Active => drop(self.active.remove(&task)),
                Role::Standby => {
                    if let Some(holders) = self.standby.get_mut(&task) {
                        holders.remove(id);
                        if holders.is_empty() {
                            self.standby.remove(&task);
                        }
                    }
                }
            }
        }
        Some(member)
    }

    /// Whether another member has a task so that this one, which runs in `process`, cannot have it in this role.
    fn is_taken(&self, id: &Arc<str>, process: &str, role: Role, subtopology: &str, partition: i32) -> bool {
        let task = (Arc::from(subtopology), partition);
        let is_near = |other: &Arc<str>| self.members.get(other).is_some_and(|other| other.process_id == process);
        let active = self.active.get(&task).filter(|other| *other != id);
        active.is_some_and(|other| role == Role::Active || is_near(other))
            || self.standby.get(&task).into_iter().flatten().any(|other| other != id && is_near(other))
    }

    /// A member is gone, and what it had is free.
    fn fence(&mut self, context: &mut Context, id: &Arc<str>, answer: Option<(Token, Reply)>) {
        self.cancel_member_timers(context, id);
        self.take_out(id);
        self.target.remove(id);
        if self.is_empty() {
            self.shutdown_by = None;
        }
        self.epoch += 1;
        self.ledger.changed(context);
        if let Some((token, reply)) = answer {
            self.answer(context, token, reply);
        }
        self.settle(context);
    }

    /// A deadline of the group or of a member has come.
    pub fn expired(&mut self, context: &mut Context, timer: &Timer) {
        match timer {
            _ if self.dead => {}
            Timer::Session { member, .. } | Timer::Rebalance { member, .. } if self.members.contains_key(member) => {
                self.fence(context, member, None);
            }
            Timer::FirstAssignment { .. } if !self.is_empty() => {
                self.assign_if_due(context);
                self.settle(context);
            }
            _ => {}
        }
    }

    #[cfg(test)]
    pub fn has_member(&self, id: &str) -> bool {
        self.members.contains_key(id)
    }

    /// Checks what has to be true at any time.
    #[cfg(test)]
    pub fn check(&self) {
        let mut active = HashMap::new();
        let mut standby: HashMap<(Arc<str>, i32), BTreeSet<Arc<str>>> = HashMap::new();
        let mut open: HashMap<(Arc<str>, i32), BTreeSet<&str>> = HashMap::new();
        for (id, member) in &self.members {
            for (role, subtopology, partition) in member.held() {
                let task = (subtopology, partition);
                if role == Role::Active {
                    assert_eq!(active.insert(task.clone(), id.clone()), None, "{task:?} is active with two members");
                } else {
                    standby.entry(task.clone()).or_default().insert(id.clone());
                }
                let new = open.entry(task.clone()).or_default().insert(&member.process_id);
                assert!(new, "{task:?} is open twice in process {}", member.process_id);
            }
            assert!(member.epoch <= self.epoch, "{id} is ahead of the group");
            assert!(member.state == MemberState::Unrevoked || member.revoking.is_empty());
        }
        assert_eq!(active, self.active);
        assert_eq!(standby, self.standby);
        assert!(self.assignment_epoch <= self.epoch);
        assert!(self.target.keys().all(|id| self.members.contains_key(id)));
        assert!(self.shutdown_by.is_none() || !self.is_empty());
    }
}
