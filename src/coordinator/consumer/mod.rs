//! The consumer group (KIP-848): the coordinator decides who has which partition, and members come to it one by one.
//!
//! A group has an epoch, which rises when something changes that the assignment depends on; a target assignment with the
//! epoch that it was made for; and members, each with the epoch that it has come to on its way to the target.
//!
//! What it promises, whatever members do:
//! - No partition belongs to two members at one time, and a member keeps what it has until it has given it up, left or
//!   fallen silent.
//! - Epochs only rise. A member whose epoch is wrong is fenced and starts over without partitions.
//! - When all members have reconciled, every partition that somebody subscribes to belongs to somebody who does.
//!
//! This file holds what a group is; `heartbeat` is what members of this protocol say, `reconcile` how one gets from what
//! it has to what it is to have, `assignors` make targets, `patterns` are subscriptions by regular expression. `classic` is
//! for members that speak the classic protocol, `migrate` for groups that go from one protocol to the other, `form` is how
//! a group is stored.

mod assignors;
mod classic;
mod describe;
mod embedded;
mod form;
mod heartbeat;
mod migrate;
mod patterns;
mod reconcile;
mod records;
mod target;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::api::{CommitRequest, Protocol, Reply, Token};
use super::classic::ClassicGroup;
use super::config::ConsumerSettings;
use super::context::Context;
use super::error::Error;
use super::group::Group;
use super::ledger::Ledger;
use super::timers::Timer;
use super::topics::{Partitions, Topics};
use crate::protocol::Uuid;
use patterns::Patterns;

pub use assignors::Assignor;
pub(super) use heartbeat::check_request;

/// Partitions by topic, each with the epoch in which the member got it; no empty maps.
type Owned = BTreeMap<Uuid, BTreeMap<i32, i32>>;

/// The epoch of a static member that has left for a while.
const AWAY: i32 = -2;

/// Where a member is on its way to the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberState {
    /// It has what it was to have in its epoch.
    Stable,
    /// It has to give up partitions first.
    Unrevoked,
    /// Others have not let go yet of what is to be its.
    Unreleased,
}

/// What makes a member one of the classic protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ClassicMember {
    session_timeout_ms: i32,
    /// Not empty; what the first one says is the member's subscription.
    protocols: Vec<Protocol>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Member {
    instance_id: Option<Arc<str>>,
    rack_id: Option<String>,
    client_id: String,
    client_host: String,
    rebalance_timeout_ms: i32,
    server_assignor: Option<String>,
    topic_names: BTreeSet<String>,
    topic_regex: Option<String>,
    classic: Option<ClassicMember>,
    epoch: i32,
    previous_epoch: i32,
    state: MemberState,
    assigned: Owned,
    /// What it has been asked to give up and may still have.
    revoking: Owned,
}

impl Member {
    fn new() -> Self {
        Member {
            instance_id: None,
            rack_id: None,
            client_id: String::new(),
            client_host: String::new(),
            rebalance_timeout_ms: -1,
            server_assignor: None,
            topic_names: BTreeSet::new(),
            topic_regex: None,
            classic: None,
            epoch: 0,
            previous_epoch: 0,
            state: MemberState::Stable,
            assigned: Owned::new(),
            revoking: Owned::new(),
        }
    }

    /// Everything that nobody else may have.
    fn owned(&self) -> impl Iterator<Item = (Uuid, i32)> {
        let all = self.assigned.iter().chain(&self.revoking);
        all.flat_map(|(topic, partitions)| partitions.keys().map(move |partition| (*topic, *partition)))
    }

    /// When the member got a partition that it has.
    fn owned_since(&self, topic: Uuid, partition: i32) -> Option<i32> {
        [&self.assigned, &self.revoking].into_iter().find_map(|owned| owned.get(&topic)?.get(&partition).copied())
    }

    /// Whether the epoch that a commit comes with is the member's, or was when it got the partitions.
    fn check_commit(&self, commit: &CommitRequest, topics: &Topics) -> Result<(), Error> {
        let epoch = commit.generation_id;
        let wrong = if self.classic.is_some() { Error::IllegalGeneration } else { Error::StaleMemberEpoch };
        match epoch.cmp(&self.epoch) {
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Greater => Err(wrong),
            // It has not heard of its newer epoch yet; what it has had since before then is still its.
            std::cmp::Ordering::Less => {
                for (topic, partitions) in &commit.topics {
                    let id = topics.by_name(topic).map(|(id, _)| id).ok_or(wrong)?;
                    for commit in partitions {
                        let since = self.owned_since(id, commit.partition).ok_or(wrong)?;
                        if epoch < since {
                            return Err(wrong);
                        }
                    }
                }
                Ok(())
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct ConsumerGroup {
    id: Arc<str>,
    epoch: i32,
    /// The group's epoch that the target is for.
    assignment_epoch: i32,
    /// When the target was made; `None` if that was in another life.
    assigned_at: Option<Duration>,
    members: BTreeMap<Arc<str>, Member>,
    /// Instance id to member id.
    instances: BTreeMap<Arc<str>, Arc<str>>,
    target: BTreeMap<Arc<str>, Partitions>,
    /// Whose a partition is. What is in here and what members say that they own is the same.
    owners: HashMap<(Uuid, i32), Arc<str>>,
    patterns: Patterns,
    /// Of the topics that the group subscribes to, with ids and partition counts; the epoch rises when it changes.
    fingerprint: u64,
    /// Which state of the topics the fingerprint was last compared with.
    seen_topics: Option<u64>,
    /// The group's removal is on its way to the disk.
    dead: bool,
    ledger: Ledger,
}

impl ConsumerGroup {
    /// One without members. `shown` is what is stored under its name.
    pub fn new(id: Arc<str>, shown: Option<bytes::Bytes>) -> Self {
        ConsumerGroup {
            id,
            // So that a member that subscribes to nothing, and changes nothing, is not told 0, which means that it is none.
            epoch: 1,
            assignment_epoch: 0,
            assigned_at: None,
            members: BTreeMap::new(),
            instances: BTreeMap::new(),
            target: BTreeMap::new(),
            owners: HashMap::new(),
            patterns: Patterns::default(),
            fingerprint: Topics::FINGERPRINT_OF_NOTHING,
            seen_topics: None,
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
        self.members.values().any(|member| member.topic_names.contains(topic)) || self.patterns.contains_topic(topic)
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
        for id in self.members.keys() {
            self.cancel_member_timers(context, id);
        }
    }

    /// Refuses every request that waits for a write.
    pub fn refuse_waiting(&mut self, context: &mut Context, error: Error) {
        self.ledger.refuse_waiting(context, error);
    }

    /// Whether a commit is in order. Commits of members of the consumer protocol come with version 9 of the request or
    /// later, which knows the error that tells them to try again with their new epoch.
    pub fn check_commit(&self, commit: &CommitRequest, topics: &Topics) -> Result<(), Error> {
        if self.dead {
            return Err(Error::CoordinatorNotAvailable);
        }
        if commit.generation_id < 0 && self.is_empty() {
            return Ok(());
        }
        let member = self.members.get(commit.member_id.as_str()).ok_or(Error::UnknownMemberId)?;
        if member.classic.is_none() && !commit.knows_group_id_not_found {
            return Err(Error::UnsupportedVersion);
        }
        member.check_commit(commit, topics)
    }

    /// The same in a transaction. A producer need not say on whose behalf it commits.
    pub fn check_transactional_commit(&self, commit: &CommitRequest, topics: &Topics) -> Result<(), Error> {
        if self.dead {
            return Err(Error::CoordinatorNotAvailable);
        }
        if !commit.says_who() || (commit.generation_id < 0 && self.is_empty()) {
            return Ok(());
        }
        let member = self.members.get(commit.member_id.as_str()).ok_or(Error::UnknownMemberId)?;
        member.check_commit(commit, topics)
    }

    /// Whether somebody who says who it is may read the group's offsets.
    pub fn check_fetch(&self, member_id: &str, epoch: i32) -> Result<(), Error> {
        let member = self.members.get(member_id).ok_or(Error::UnknownMemberId)?;
        match &member.classic {
            _ if member.epoch == epoch => Ok(()),
            Some(_) => Err(Error::IllegalGeneration),
            None => Err(Error::StaleMemberEpoch),
        }
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
        let blank = Group::Consumer(ConsumerGroup::new(self.id.clone(), None));
        Some(Group::gone_back(context, &self.id, self.ledger.shown(), blank, self.dead))
    }

    fn settings(&self, context: &Context) -> ConsumerSettings {
        context.group_settings.get(&self.id).map_or(context.config.consumer, |settings| settings.consumer)
    }

    fn session_timer(&self, member: &Arc<str>) -> Timer {
        Timer::Session { group: self.id.clone(), member: member.clone() }
    }

    fn rebalance_timer(&self, member: &Arc<str>) -> Timer {
        Timer::Rebalance { group: self.id.clone(), member: member.clone() }
    }

    fn join_timer(&self, member: &Arc<str>) -> Timer {
        Timer::MemberJoin { group: self.id.clone(), member: member.clone() }
    }

    fn sync_timer(&self, member: &Arc<str>) -> Timer {
        Timer::MemberSync { group: self.id.clone(), member: member.clone() }
    }

    fn cancel_member_timers(&self, context: &mut Context, id: &Arc<str>) {
        for timer in [self.session_timer(id), self.rebalance_timer(id), self.join_timer(id), self.sync_timer(id)] {
            context.timers.cancel(&timer);
        }
    }

    /// The member has been heard of.
    fn refresh_session(&self, context: &mut Context, id: &Arc<str>) {
        let Some(member) = self.members.get(id) else { return };
        let timeout = match &member.classic {
            Some(classic) => classic.session_timeout_ms,
            None => self.settings(context).session_timeout_ms,
        };
        context.set_timer(self.session_timer(id), timeout);
    }

    /// Starts everybody's session anew after a restart.
    pub fn restored(&mut self, context: &mut Context) {
        self.keep_patterns(context.topics);
        for (id, member) in &self.members {
            self.refresh_session(context, id);
            if member.state == MemberState::Unrevoked && member.classic.is_none() {
                context.set_timer(self.rebalance_timer(id), member.rebalance_timeout_ms);
            }
        }
    }

    /// Puts a member in, or what it has become.
    fn put(&mut self, id: &Arc<str>, member: Member) {
        self.take_out(id);
        for place in member.owned() {
            let before = self.owners.insert(place, id.clone());
            debug_assert!(before.is_none(), "{place:?} of {id} is also {before:?}'s");
        }
        if let Some(instance) = &member.instance_id {
            self.instances.insert(instance.clone(), id.clone());
        }
        self.members.insert(id.clone(), member);
    }

    fn take_out(&mut self, id: &Arc<str>) -> Option<Member> {
        let member = self.members.remove(id)?;
        for place in member.owned() {
            self.owners.remove(&place);
        }
        if let Some(instance) = &member.instance_id
            && self.instances.get(instance) == Some(id)
        {
            self.instances.remove(instance);
        }
        Some(member)
    }

    /// A static member comes back under another member id and takes over what there is of it.
    fn replace(&mut self, context: &mut Context, old: &Arc<str>, new: &Arc<str>, member: Member) {
        self.cancel_member_timers(context, old);
        self.take_out(old);
        if let Some(target) = self.target.remove(old) {
            self.target.insert(new.clone(), target);
        }
        self.put(new, member);
        self.ledger.changed(context);
    }

    /// Members are gone, and what they had is free. Gives the group back as a classic one if that is what it is now.
    fn fence(
        &mut self,
        context: &mut Context,
        ids: &[Arc<str>],
        answer: Option<(Token, Reply)>,
    ) -> Option<ClassicGroup> {
        if self.goes_classic_without(context, ids) {
            return Some(self.downgrade(context, ids, None, true, answer));
        }
        for id in ids {
            self.cancel_member_timers(context, id);
            self.take_out(id);
            self.target.remove(id);
        }
        self.keep_patterns(context.topics);
        self.fingerprint = self.topics_fingerprint(context.topics);
        self.epoch += 1;
        self.ledger.changed(context);
        if let Some((token, reply)) = answer {
            self.answer(context, token, reply);
        }
        self.settle(context);
        None
    }

    /// A deadline of a member has come.
    pub fn expired(&mut self, context: &mut Context, timer: &Timer) -> Option<ClassicGroup> {
        let (Timer::Session { member, .. }
        | Timer::Rebalance { member, .. }
        | Timer::MemberJoin { member, .. }
        | Timer::MemberSync { member, .. }) = timer
        else {
            return None;
        };
        if self.dead || !self.members.contains_key(member) {
            return None;
        }
        self.fence(context, std::slice::from_ref(member), None)
    }

    #[cfg(test)]
    pub fn has_member(&self, id: &str) -> bool {
        self.members.contains_key(id)
    }

    /// Checks what has to be true at any time.
    #[cfg(test)]
    pub fn check(&self) {
        let mut owners = HashMap::new();
        for (id, member) in &self.members {
            for place in member.owned() {
                assert_eq!(owners.insert(place, id.clone()), None, "{place:?} belongs to two members");
            }
            assert!(member.epoch <= self.epoch, "{id} is ahead of the group");
            assert!(member.state == MemberState::Unrevoked || member.revoking.is_empty() || member.epoch == AWAY);
            if let Some(instance) = &member.instance_id {
                assert_eq!(self.instances.get(instance), Some(id));
            }
            assert!(member.classic.as_ref().is_none_or(|classic| !classic.protocols.is_empty()));
        }
        assert_eq!(owners, self.owners);
        assert!(self.assignment_epoch <= self.epoch);
        assert!(self.target.keys().all(|id| self.members.contains_key(id)));
        let mut targets = BTreeSet::new();
        for (topic, partition) in
            self.target.values().flatten().flat_map(|(topic, all)| all.iter().map(move |partition| (topic, partition)))
        {
            assert!(targets.insert((topic, partition)), "{topic}-{partition} is to belong to two members");
        }
    }
}
