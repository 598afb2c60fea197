//! What members do within a generation: SyncGroup, Heartbeat, LeaveGroup, commits, and falling silent.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::super::api::{HeartbeatRequest, LeaveOutcome, LeaveRequest, LeavingMember, Reply, SyncRequest, Token};
use super::super::context::Context;
use super::super::error::Error;
use super::super::writes::Purpose;
use super::{ClassicGroup, State};

impl ClassicGroup {
    pub fn sync(&mut self, context: &mut Context, token: Token, request: SyncRequest) {
        if let Err(error) = self.check_sync(&request) {
            return context.reply(token, Reply::Sync(Err(error)));
        }
        let id = request.member_id.as_str();
        match self.state {
            State::CompletingRebalance => {
                self.has_synced(context, id);
                let member = self.members.get_mut(id).expect("the request has been checked");
                if let Some(earlier) = member.sync.replace(token) {
                    // Its client has given it up and asks again.
                    context.reply(earlier, Reply::Sync(Err(Error::RebalanceInProgress)));
                }
                if self.is_leader(id) {
                    self.take_assignments(context, request.assignments);
                }
            }
            State::Stable => {
                self.has_synced(context, id);
                let answer = self.synced(id);
                context.reply(token, Reply::Sync(Ok(answer)));
            }
            State::PreparingRebalance | State::Empty | State::Dead => {
                context.reply(token, Reply::Sync(Err(Error::RebalanceInProgress)));
            }
        }
    }

    fn check_sync(&self, request: &SyncRequest) -> Result<(), Error> {
        match self.state {
            State::Dead => return Err(Error::CoordinatorNotAvailable),
            State::Empty => return Err(Error::UnknownMemberId),
            _ => {}
        }
        self.check_member(&request.member_id, request.group_instance_id.as_deref())?;
        if request.generation_id != self.generation {
            return Err(Error::IllegalGeneration);
        }
        let differs =
            |theirs: &Option<String>, ours: &Option<String>| theirs.is_some() && ours.is_some() && theirs != ours;
        if differs(&request.protocol_type, &self.protocol_type) || differs(&request.protocol_name, &self.protocol) {
            return Err(Error::InconsistentGroupProtocol);
        }
        Ok(())
    }

    fn has_synced(&mut self, context: &mut Context, member_id: &str) {
        self.pending_sync.remove(member_id);
        if self.pending_sync.is_empty() {
            context.timers.cancel(&self.sync_timer());
        }
    }

    /// Members that the leader has not thought of get an empty assignment, and strangers that it has thought of get none.
    fn take_assignments(&mut self, context: &mut Context, given: Vec<(String, Bytes)>) {
        let assignments: BTreeMap<String, Bytes> = given
            .into_iter()
            .filter(|(id, _)| self.members.contains_key(id.as_str()))
            .map(|(id, assignment)| (id, Bytes::copy_from_slice(&assignment)))
            .collect();
        let purpose = Purpose::Assignment { generation: self.generation, assignments: assignments.clone() };
        self.persist(context, Some(&assignments), purpose);
    }

    pub fn heartbeat(&mut self, context: &mut Context, request: &HeartbeatRequest) -> Result<(), Error> {
        if self.state == State::Dead {
            return Err(Error::CoordinatorNotAvailable);
        }
        self.check_member(&request.member_id, request.group_instance_id.as_deref())?;
        if request.generation_id != self.generation {
            return Err(Error::IllegalGeneration);
        }
        self.refresh_session(context, &request.member_id);
        if self.state == State::PreparingRebalance { Err(Error::RebalanceInProgress) } else { Ok(()) }
    }

    pub fn leave(&mut self, context: &mut Context, token: Token, request: LeaveRequest) {
        if self.state == State::Dead {
            return context.reply(token, Reply::Leave(Err(Error::CoordinatorNotAvailable)));
        }
        let outcomes: Vec<LeaveOutcome> = request
            .members
            .into_iter()
            .map(|member| {
                let result = self.leave_one(context, &member);
                LeaveOutcome { member_id: member.member_id, group_instance_id: member.group_instance_id, result }
            })
            .collect();
        let anybody = outcomes.iter().any(|outcome| outcome.result.is_ok());
        context.leaving = Some((token, outcomes));
        if anybody && !self.is_empty() {
            self.rebalance_or_complete_join(context);
        }
        if let Some((token, outcomes)) = context.leaving.take() {
            context.reply(token, Reply::Leave(Ok(outcomes)));
        }
    }

    fn leave_one(&mut self, context: &mut Context, member: &LeavingMember) -> Result<(), Error> {
        let instance = member.group_instance_id.as_deref();
        let id = if member.member_id.is_empty() {
            instance.and_then(|instance| self.instances.get(instance)).ok_or(Error::UnknownMemberId)?.clone()
        } else {
            if !self.pending_join.contains(member.member_id.as_str()) {
                self.check_member(&member.member_id, instance)?;
            }
            member.member_id.as_str().into()
        };
        self.remove(context, &id, Error::UnknownMemberId);
        Ok(())
    }

    /// Whether a commit is in order.
    pub fn check_commit(&self, member_id: &str, instance_id: Option<&str>, generation: i32) -> Result<(), Error> {
        if self.state == State::Dead {
            return Err(Error::CoordinatorNotAvailable);
        }
        if generation < 0 && self.is_empty() {
            return Ok(());
        }
        if generation >= 0 || !member_id.is_empty() || instance_id.is_some() {
            self.check_member(member_id, instance_id)?;
            if generation != self.generation {
                return Err(Error::IllegalGeneration);
            }
        } else {
            // It does not say who it is, and the group has members that manage its offsets.
            return Err(Error::UnknownMemberId);
        }
        // It knows the generation from its join and has not synced yet.
        if self.state == State::CompletingRebalance {
            return Err(Error::RebalanceInProgress);
        }
        Ok(())
    }

    /// Whether a commit in a transaction is in order. The protocol's first versions say nothing of members.
    pub fn check_transactional_commit(
        &self,
        member_id: &str,
        instance_id: Option<&str>,
        generation: i32,
    ) -> Result<(), Error> {
        if self.state == State::Dead {
            return Err(Error::CoordinatorNotAvailable);
        }
        let says_who = generation >= 0 || !member_id.is_empty() || instance_id.is_some();
        if !says_who || (generation < 0 && self.is_empty()) {
            return Ok(());
        }
        self.check_member(member_id, instance_id)?;
        if generation == self.generation { Ok(()) } else { Err(Error::IllegalGeneration) }
    }

    /// A commit counts as a heartbeat.
    pub fn has_committed(&self, context: &mut Context, member_id: &str) {
        if matches!(self.state, State::Stable | State::PreparingRebalance) {
            self.refresh_session(context, member_id);
        }
    }

    /// A member, or a pending one, has not been heard of for its session timeout.
    pub fn session_expired(&mut self, context: &mut Context, member_id: &str) {
        let pending = self.pending_join.contains(member_id);
        if let Some(member) = self.members.get(member_id) {
            // Whoever waits for an answer is known to be there; the answer starts a new session. A new member's wait has
            // a limit of its own, and this is it.
            if !member.is_new && (member.join.is_some() || member.sync.is_some()) {
                return;
            }
        } else if !pending {
            return;
        }
        self.remove(context, member_id, Error::UnknownMemberId);
        match self.state {
            State::Stable | State::CompletingRebalance if !pending => self.prepare_rebalance(context),
            State::PreparingRebalance if self.all_joined() => self.complete_join(context),
            _ => {}
        }
    }
}
