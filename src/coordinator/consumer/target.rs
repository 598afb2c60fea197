//! When the group's epoch rises, and what its members are to have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::assignors::{self, Assignor, Subscriber};
use super::reconcile::Step;
use super::{ConsumerGroup, Member, MemberState, Partitions};
use crate::coordinator::context::Context;
use crate::coordinator::topics::Topics;
use crate::protocol::Uuid;

impl ConsumerGroup {
    fn subscribed_patterns(&self) -> BTreeSet<&str> {
        self.members.values().filter_map(|member| member.topic_regex.as_deref()).collect()
    }

    /// Matches expressions that are new, and forgets those that nobody subscribes by any more.
    pub(super) fn keep_patterns(&mut self, topics: &Topics) {
        let mut patterns = std::mem::take(&mut self.patterns);
        patterns.keep(&self.subscribed_patterns(), topics);
        self.patterns = patterns;
    }

    /// The topics that a member subscribes to and that exist.
    pub(super) fn subscribed_ids(&self, member: &Member, topics: &Topics) -> BTreeSet<Uuid> {
        let matched = member.topic_regex.as_deref().and_then(|pattern| self.patterns.topics(pattern));
        let matched = matched.into_iter().flatten().map(|name| &**name);
        let names = member.topic_names.iter().map(String::as_str).chain(matched);
        names.filter_map(|name| topics.by_name(name)).map(|(id, _)| id).collect()
    }

    /// Of the topics that the group subscribes to.
    pub(super) fn topics_fingerprint(&self, topics: &Topics) -> u64 {
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for member in self.members.values() {
            names.extend(member.topic_names.iter().map(String::as_str));
        }
        for pattern in self.subscribed_patterns() {
            names.extend(self.patterns.topics(pattern).into_iter().flatten().map(|name| &**name));
        }
        topics.fingerprint(names)
    }

    /// Raises the epoch if somebody subscribes to something else, or the topics that are subscribed to have.
    pub(super) fn look_at_topics(&mut self, context: &mut Context, subscription_changed: bool) {
        let now = context.now.monotonic;
        let changed = self.seen_topics != Some(context.topics_version);
        if changed || self.patterns.are_due(now, context.config.consumer_regex_refresh_interval_ms) {
            self.patterns.refresh(now, context.topics);
        } else if !subscription_changed {
            return;
        }
        self.seen_topics = Some(context.topics_version);
        let fingerprint = self.topics_fingerprint(context.topics);
        if subscription_changed || fingerprint != self.fingerprint {
            self.fingerprint = fingerprint;
            self.epoch += 1;
            self.ledger.changed(context);
        }
    }

    /// Whether the epoch has risen, or is about to because topics have changed, and the last target was not made a moment
    /// ago.
    pub(super) fn is_assignment_due(&mut self, context: &Context) -> bool {
        let interval = self.settings(context).assignment_interval_ms;
        let interval = Duration::from_millis(u64::try_from(interval).unwrap_or(0));
        if self.assigned_at.is_some_and(|at| context.now.monotonic < at.saturating_add(interval)) {
            return false;
        }
        if self.seen_topics != Some(context.topics_version) {
            self.patterns.refresh(context.now.monotonic, context.topics);
            if self.topics_fingerprint(context.topics) != self.fingerprint {
                return true;
            }
            self.seen_topics = Some(context.topics_version);
        }
        self.epoch > self.assignment_epoch
    }

    /// Makes a new target if it is time.
    pub(super) fn assign_if_due(&mut self, context: &mut Context) {
        if self.epoch <= self.assignment_epoch || !self.is_assignment_due(context) {
            return;
        }
        let nothing = Partitions::new();
        let members: Vec<Subscriber> = self
            .members
            .iter()
            .map(|(id, member)| Subscriber {
                id,
                instance_id: member.instance_id.as_ref(),
                topics: self.subscribed_ids(member, context.topics),
                current: self.target.get(id).unwrap_or(&nothing),
            })
            .collect();
        let target = assignors::assign(self.assignor(context), &members, |topic| context.topics.partitions(topic));
        self.target = target;
        self.assignment_epoch = self.epoch;
        self.assigned_at = Some(context.now.monotonic);
        self.ledger.changed(context);
    }

    /// The assignor that most members ask for, or else the broker's first.
    fn assignor(&self, context: &Context) -> Assignor {
        let offered = |assignor: &Assignor| context.config.consumer_assignors.contains(assignor);
        self.preferred_assignor().filter(offered).unwrap_or(context.config.default_assignor())
    }

    /// The assignor that most members ask for; of equals, the one that comes first by name.
    pub(super) fn preferred_assignor(&self) -> Option<Assignor> {
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for name in self.members.values().filter_map(|member| member.server_assignor.as_deref()) {
            *votes.entry(name).or_default() += 1;
        }
        let (name, _) = votes.into_iter().rev().max_by_key(|(_, votes)| *votes)?;
        Assignor::named(name)
    }

    /// Takes a member one step towards the target.
    pub(super) fn reconcile(
        &mut self,
        context: &mut Context,
        id: &Arc<str>,
        subscription_changed: bool,
        owned: Option<&[(Uuid, Vec<i32>)]>,
    ) {
        let Some(before) = self.members.get(id) else { return };
        if !subscription_changed && before.is_reconciled(self.assignment_epoch) {
            return;
        }
        let mut member = before.clone();
        let subscribed = self.subscribed_ids(&member, context.topics);
        let nothing = Partitions::new();
        let step = Step {
            target_epoch: self.assignment_epoch,
            target: self.target.get(id).unwrap_or(&nothing),
            subscribed: &subscribed,
            subscription_changed,
            owned,
        };
        member.reconcile(&step, |topic, partition| self.owners.contains_key(&(topic, partition)));
        if member == *before {
            return;
        }
        if member.classic.is_none() {
            match member.state {
                MemberState::Unrevoked => context.set_timer(self.rebalance_timer(id), member.rebalance_timeout_ms),
                MemberState::Stable | MemberState::Unreleased => context.timers.cancel(&self.rebalance_timer(id)),
            }
        }
        self.put(id, member);
        self.ledger.changed(context);
    }
}
