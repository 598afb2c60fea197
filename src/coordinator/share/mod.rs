//! The share group (KIP-932): members that take records of the same partitions, each record going to one of them.
//!
//! Two things that know nothing of each other. The group (this file, `heartbeat`, `assignor`, `offsets`, `form`) is who is
//! in it and which partitions each member fetches from; [`partition`] is what has become of the records of one partition, and
//! [`state`] what is stored of that.
//!
//! A group has an epoch, which rises when something changes that the assignment depends on; a target assignment with the
//! epoch that it was made for; and members, which come to their part of the target with their next heartbeat, since nobody
//! has to let go of a partition before somebody else may fetch from it.
//!
//! A partition that members subscribe to is *initialized* by the heartbeat that first finds it, and assigned from the next
//! epoch on. Only of those the group keeps state; it is theirs until their topic, their offsets or the group are deleted.
//!
//! What it promises: epochs only rise, a member whose epoch is wrong is fenced, and once members have heard of the target
//! every initialized partition that somebody subscribes to is fetched by at least one of those who do.

mod assignor;
mod form;
mod heartbeat;
mod offsets;
pub(super) mod partition;
mod records;
pub(super) mod state;
pub(super) mod stretches;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::api::{AssignedTopic, Change, DescribedShareGroup, DescribedShareMember, Reply, Token};
use super::config::ShareSettings;
use super::context::Context;
use super::error::Error;
use super::group::{Group, Shown};
use super::ledger::Ledger;
use super::timers::Timer;
use super::topics::{Partitions, Topics};
use crate::protocol::Uuid;

pub(super) use heartbeat::check_request;

/// The name of the only assignor.
const ASSIGNOR: &str = "simple";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Member {
    rack_id: Option<String>,
    client_id: String,
    client_host: String,
    topic_names: BTreeSet<String>,
    epoch: i32,
    previous_epoch: i32,
    assigned: Partitions,
}

#[derive(Debug)]
pub(super) struct ShareGroup {
    id: Arc<str>,
    epoch: i32,
    /// The group's epoch that the target is for.
    assignment_epoch: i32,
    /// When the target was made; `None` if that was in another life.
    assigned_at: Option<Duration>,
    members: BTreeMap<Arc<str>, Member>,
    target: BTreeMap<Arc<str>, Partitions>,
    /// The partitions that the group has, or may have, state of.
    initialized: Partitions,
    /// Of the topics that the group subscribes to, with ids and partition counts; the epoch rises when it changes.
    fingerprint: u64,
    /// Which state of the topics the fingerprint was last compared with.
    seen_topics: Option<u64>,
    /// Changes to what is stored of share partitions, which go with the next write of the group.
    changes: Vec<Change>,
    /// The group's removal is on its way to the disk.
    dead: bool,
    ledger: Ledger,
}

impl ShareGroup {
    /// One without members. `shown` is what is stored under its name.
    pub fn new(id: Arc<str>, shown: Option<bytes::Bytes>) -> Self {
        ShareGroup {
            id,
            // So that a member is not told 0, which means that it is none.
            epoch: 1,
            assignment_epoch: 0,
            assigned_at: None,
            members: BTreeMap::new(),
            target: BTreeMap::new(),
            initialized: Partitions::new(),
            fingerprint: Topics::FINGERPRINT_OF_NOTHING,
            seen_topics: None,
            changes: Vec::new(),
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

    pub fn is_subscribed_to(&self, topic: &str) -> bool {
        self.members.values().any(|member| member.topic_names.contains(topic))
    }

    pub fn is_initialized(&self, topic: Uuid, partition: i32) -> bool {
        !self.dead && self.initialized.get(&topic).is_some_and(|partitions| partitions.contains(&partition))
    }

    pub fn initialized(&self) -> &Partitions {
        &self.initialized
    }

    /// What removes all state of the group's partitions.
    pub fn removals(&self) -> Vec<Change> {
        self.initialized.iter().flat_map(|(topic, partitions)| removals(*topic, partitions)).collect()
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
            context.timers.cancel(&self.session_timer(id));
        }
    }

    /// Refuses every request that waits for a write.
    pub fn refuse_waiting(&mut self, context: &mut Context, error: Error) {
        self.ledger.refuse_waiting(context, error);
    }

    /// Answers when the group as it is now is durable.
    fn answer(&mut self, context: &mut Context, token: Token, reply: Reply) {
        self.ledger.answer(context, token, reply);
    }

    /// To be called after every event: writes what has changed.
    fn settle(&mut self, context: &mut Context) {
        if !self.dead && self.ledger.is_due() {
            let bytes = self.to_bytes();
            self.ledger.write(context, &self.id, std::mem::take(&mut self.changes), bytes);
        }
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
        let blank = Group::Share(ShareGroup::new(self.id.clone(), None));
        Some(Group::gone_back(context, &self.id, self.ledger.shown(), blank, self.dead))
    }

    fn settings(&self, context: &Context) -> ShareSettings {
        context.group_settings.get(&self.id).map_or(context.config.share, |settings| settings.share)
    }

    fn session_timer(&self, member: &Arc<str>) -> Timer {
        Timer::Session { group: self.id.clone(), member: member.clone() }
    }

    /// The member has been heard of.
    fn refresh_session(&self, context: &mut Context, id: &Arc<str>) {
        let timeout = self.settings(context).session_timeout_ms;
        context.set_timer(self.session_timer(id), timeout);
    }

    /// Starts everybody's session anew after a restart.
    pub fn restored(&mut self, context: &mut Context) {
        for id in self.members.keys() {
            self.refresh_session(context, id);
        }
    }

    /// A member is gone.
    fn fence(&mut self, context: &mut Context, id: &Arc<str>, answer: Option<(Token, Reply)>) {
        context.timers.cancel(&self.session_timer(id));
        self.members.remove(id);
        self.target.remove(id);
        self.fingerprint = self.topics_fingerprint(context.topics);
        self.epoch += 1;
        self.ledger.changed(context);
        if let Some((token, reply)) = answer {
            self.answer(context, token, reply);
        }
        self.settle(context);
    }

    /// A deadline of a member has come.
    pub fn expired(&mut self, context: &mut Context, timer: &Timer) {
        if let Timer::Session { member, .. } = timer
            && !self.dead
            && self.members.contains_key(member)
        {
            self.fence(context, member, None);
        }
    }

    fn subscribed_names(&self) -> BTreeSet<&str> {
        self.members.values().flat_map(|member| member.topic_names.iter().map(String::as_str)).collect()
    }

    fn topics_fingerprint(&self, topics: &Topics) -> u64 {
        topics.fingerprint(self.subscribed_names())
    }

    pub fn state_name(&self) -> &'static str {
        match () {
            () if self.dead => "Dead",
            () if self.members.is_empty() => "Empty",
            () => "Stable",
        }
    }

    /// What may be shown: the group as it is, or what is stored of it while it is being written.
    pub fn shown(&self) -> Shown<'_> {
        self.ledger.what_may_be_shown()
    }

    pub fn describe(&self, topics: &Topics) -> DescribedShareGroup {
        let named = |(id, partitions): (&Uuid, &BTreeSet<i32>)| {
            // Topics that are gone are left out.
            let name = topics.name(*id)?.to_string();
            Some(AssignedTopic { id: *id, name, partitions: partitions.iter().copied().collect() })
        };
        let described = |(id, member): (&Arc<str>, &Member)| DescribedShareMember {
            member_id: id.to_string(),
            rack_id: member.rack_id.clone(),
            epoch: member.epoch,
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            topic_names: member.topic_names.iter().cloned().collect(),
            assigned: member.assigned.iter().filter_map(named).collect(),
        };
        DescribedShareGroup {
            group_id: self.id.to_string(),
            state: self.state_name(),
            epoch: self.epoch,
            assignment_epoch: self.assignment_epoch,
            assignor: ASSIGNOR,
            // Kafka's hash tables show neighbouring names last to first.
            members: self.members.iter().rev().map(described).collect(),
        }
    }

    #[cfg(test)]
    pub fn has_member(&self, id: &str) -> bool {
        self.members.contains_key(id)
    }

    /// Checks what has to be true at any time.
    #[cfg(test)]
    pub fn check(&self) {
        assert!(self.assignment_epoch <= self.epoch);
        assert!(self.target.keys().all(|id| self.members.contains_key(id)));
        for (id, member) in &self.members {
            assert!(member.epoch <= self.epoch, "{id} is ahead of the group");
        }
        let all = [&self.initialized].into_iter().chain(self.target.values());
        assert!(all.flat_map(BTreeMap::values).all(|partitions| !partitions.is_empty()), "an empty set is kept");
    }
}

fn removals(topic: Uuid, partitions: &BTreeSet<i32>) -> impl Iterator<Item = Change> {
    partitions.iter().map(move |partition| Change::RemoveSharePartition { topic, partition: *partition })
}
