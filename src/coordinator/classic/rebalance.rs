//! The rounds: when one starts, whom it waits for, how it ends.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::super::api::{Change, Reply, Synced};
use super::super::context::Context;
use super::super::error::Error;
use super::super::writes::Purpose;
use super::{ClassicGroup, InitialDelay, State};

/// Clients choose the rebalance timeout, and one of zero must not make the clock run hot.
const SHORTEST_POSTPONEMENT_MS: i32 = 1000;

impl ClassicGroup {
    /// Somebody came, went or changed: a new round starts, or the one that is running may be complete.
    pub(super) fn rebalance_or_complete_join(&mut self, context: &mut Context) {
        match self.state {
            State::Empty | State::CompletingRebalance | State::Stable => self.prepare_rebalance(context),
            State::PreparingRebalance => self.complete_join_if_all_joined(context),
            State::Dead => {}
        }
    }

    pub(super) fn prepare_rebalance(&mut self, context: &mut Context) {
        if self.state == State::CompletingRebalance {
            self.refuse_assignments(context, Error::RebalanceInProgress);
        }
        self.pending_sync.clear();
        context.timers.cancel(&self.sync_timer());
        let initial = self.is_empty();
        self.transition(context, State::PreparingRebalance);
        if initial {
            let delay_ms = context.config.initial_rebalance_delay_ms;
            self.initial_delay = Some(InitialDelay {
                current_ms: delay_ms,
                remaining_ms: self.rebalance_timeout_ms().saturating_sub(delay_ms).max(0),
                member_added: false,
            });
            if delay_ms > 0 {
                context.set_timer(self.join_timer(), delay_ms);
            } else {
                self.complete_join(context);
            }
        } else if self.all_joined() {
            self.complete_join(context);
        } else {
            context.set_timer(self.join_timer(), self.rebalance_timeout_ms());
        }
    }

    /// Ends the round when nobody is missing. The first round of an empty group waits its delay out.
    pub(super) fn complete_join_if_all_joined(&mut self, context: &mut Context) {
        if self.state == State::PreparingRebalance && self.initial_delay.is_none() && self.all_joined() {
            self.complete_join(context);
        }
    }

    /// The time to join is up.
    pub fn join_expired(&mut self, context: &mut Context) {
        if self.state != State::PreparingRebalance {
            return;
        }
        if let Some(delay) = &mut self.initial_delay
            && delay.member_added
            && delay.remaining_ms > 0
        {
            let next_ms = context.config.initial_rebalance_delay_ms.min(delay.remaining_ms);
            delay.remaining_ms = (delay.remaining_ms - delay.current_ms).max(0);
            delay.current_ms = next_ms;
            delay.member_added = false;
            context.set_timer(self.join_timer(), next_ms);
            return;
        }
        self.complete_join(context);
    }

    /// Ends the round with those who have joined. Static members stay although they have not.
    pub(super) fn complete_join(&mut self, context: &mut Context) {
        context.timers.cancel(&self.join_timer());
        let missing = self.members.iter().filter(|(_, member)| member.join.is_none() && member.instance_id.is_none());
        for id in missing.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.remove(context, &id, Error::UnknownMemberId);
        }
        if !self.elect_joined_leader() && !self.members.is_empty() {
            // Only static members that have not joined are left: their sessions decide.
            self.initial_delay = None;
            context.set_timer(self.join_timer(), self.rebalance_timeout_ms().max(SHORTEST_POSTPONEMENT_MS));
            return;
        }
        self.initial_delay = None;
        self.generation = self.generation.checked_add(1).unwrap_or(1);
        self.pending_sync.clear();
        if self.members.is_empty() {
            self.protocol = None;
            self.subscribed = self.subscriptions();
            self.transition(context, State::Empty);
            let leave = context.leaving.take();
            self.persist(context, None, Purpose::Emptied { leave });
            return;
        }
        self.protocol = self.select_protocol();
        self.subscribed = self.subscriptions();
        self.transition(context, State::CompletingRebalance);
        for id in self.members.keys().cloned().collect::<Vec<_>>() {
            let answer = self.joined(&id);
            let member = self.members.get_mut(&id).expect("the id comes from the members");
            member.is_new = false;
            if let Some(token) = member.join.take() {
                self.awaiting_join -= 1;
                context.reply(token, Reply::Join(Ok(answer)));
            }
            self.refresh_session(context, &id);
            self.pending_sync.insert(id);
        }
        context.set_timer(self.sync_timer(), self.rebalance_timeout_ms());
    }

    /// Members that have joined and did not sync in time are out.
    pub fn sync_expired(&mut self, context: &mut Context) {
        if !matches!(self.state, State::CompletingRebalance | State::Stable) || self.pending_sync.is_empty() {
            return;
        }
        for id in std::mem::take(&mut self.pending_sync) {
            self.remove(context, &id, Error::UnknownMemberId);
        }
        self.prepare_rebalance(context);
    }

    /// The leader's assignment is durable, or could not be made so.
    pub fn assignment_stored(
        &mut self,
        context: &mut Context,
        generation: i32,
        mut assignments: BTreeMap<String, Bytes>,
        stored: bool,
    ) {
        if self.state != State::CompletingRebalance || self.generation != generation {
            return;
        }
        if !stored {
            self.refuse_assignments(context, Error::NotCoordinator);
            self.prepare_rebalance(context);
            return;
        }
        self.transition(context, State::Stable);
        for id in self.members.keys().cloned().collect::<Vec<_>>() {
            let member = self.members.get_mut(&id).expect("the id comes from the members");
            member.assignment = assignments.remove(&*id).unwrap_or_default();
            if let Some(token) = member.sync.take() {
                let answer = self.synced(&id);
                context.reply(token, Reply::Sync(Ok(answer)));
                self.refresh_session(context, &id);
            }
        }
    }

    pub(super) fn synced(&self, member_id: &str) -> Synced {
        Synced {
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol.clone(),
            assignment: self.members.get(member_id).map(|member| member.assignment.clone()).unwrap_or_default(),
        }
    }

    /// Writes the group as it is, or as it will be with the assignments of its leader.
    pub(super) fn persist(
        &mut self,
        context: &mut Context,
        assignments: Option<&BTreeMap<String, Bytes>>,
        purpose: Purpose,
    ) {
        self.stored = true;
        let bytes = self.to_bytes(assignments);
        context.persist(&self.id, vec![Change::PutGroup(bytes)], purpose);
    }

    fn refuse_assignments(&mut self, context: &mut Context, error: Error) {
        for id in self.members.keys().cloned().collect::<Vec<_>>() {
            let member = self.members.get_mut(&id).expect("the id comes from the members");
            member.assignment = Bytes::new();
            if let Some(token) = member.sync.take() {
                context.reply(token, Reply::Sync(Err(error)));
                self.refresh_session(context, &id);
            }
        }
    }

    pub(super) fn all_joined(&self) -> bool {
        self.members.len() == self.awaiting_join && self.pending_join.is_empty()
    }

    /// Whether there is a leader that has joined, after choosing another one if need be.
    fn elect_joined_leader(&mut self) -> bool {
        let joined = |id: &str| self.members.get(id).is_some_and(|member| member.join.is_some());
        if self.leader.as_deref().is_some_and(joined) {
            return true;
        }
        match self.members.iter().find(|(_, member)| member.join.is_some()) {
            Some((id, _)) => {
                self.leader = Some(id.clone());
                true
            }
            None => false,
        }
    }

    /// The longest of the members'.
    fn rebalance_timeout_ms(&self) -> i32 {
        self.members.values().map(|member| member.rebalance_timeout_ms).max().unwrap_or(0)
    }
}
