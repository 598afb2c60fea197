//! JoinGroup.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use super::super::api::{JoinRequest, Protocol, Reply, Token};
use super::super::context::Context;
use super::super::error::Error;
use super::super::writes::Purpose;
use super::{ClassicGroup, Member, State, refuse_join};

/// A member's protocols as they are kept: copied out of the request's frame, the first of each name.
pub(in crate::coordinator) fn keep_protocols(protocols: Vec<Protocol>) -> Vec<Protocol> {
    let mut names = HashSet::new();
    let first: Vec<bool> = protocols.iter().map(|protocol| names.insert(protocol.name.as_str())).collect();
    let kept = protocols.into_iter().zip(first).filter(|(_, first)| *first);
    kept.map(|(protocol, _)| Protocol { metadata: Bytes::copy_from_slice(&protocol.metadata), ..protocol }).collect()
}

impl ClassicGroup {
    pub fn join(&mut self, context: &mut Context, token: Token, mut request: JoinRequest) {
        if self.state == State::Dead {
            return context.reply(token, refuse_join(Error::CoordinatorNotAvailable, &request.member_id));
        }
        if !self.has_room_for(context, &request.member_id) {
            self.remove(context, &request.member_id, Error::GroupMaxSizeReached);
            context.reply(token, refuse_join(Error::GroupMaxSizeReached, ""));
            return self.complete_join_if_all_joined(context);
        }
        request.protocols = keep_protocols(request.protocols);
        if !self.supports(&request.protocol_type, &request.protocols) {
            return context.reply(token, refuse_join(Error::InconsistentGroupProtocol, &request.member_id));
        }
        if request.member_id.is_empty() {
            self.join_new(context, token, request);
        } else if self.pending_join.contains(request.member_id.as_str()) {
            if request.group_instance_id.is_some() {
                return context.reply(token, refuse_join(Error::UnknownServerError, &request.member_id));
            }
            let id = request.member_id.as_str().into();
            self.add(context, token, id, request);
        } else {
            self.rejoin(context, token, request);
        }
    }

    /// Members that are in are welcome; so is everybody else up to the largest size.
    fn has_room_for(&self, context: &Context, member_id: &str) -> bool {
        let member = self.members.get(member_id);
        match self.state {
            State::Empty | State::Dead => true,
            // Who has joined counts here, not who is in: when the limit has been lowered, the last to join are out.
            State::PreparingRebalance => {
                member.is_some_and(|member| member.join.is_some()) || self.awaiting_join < context.config.max_size
            }
            State::CompletingRebalance | State::Stable => {
                member.is_some() || self.members.len() < context.config.max_size
            }
        }
    }

    fn join_new(&mut self, context: &mut Context, token: Token, request: JoinRequest) {
        if let Some(instance) = request.group_instance_id.as_deref() {
            let id = context.new_member_id(instance);
            match self.instances.get(instance).cloned() {
                Some(old) => self.replace_static(context, token, request, old, id),
                None => self.add(context, token, id, request),
            }
        } else {
            let id = context.new_member_id(&request.client_id);
            if !request.member_id_required {
                return self.add(context, token, id, request);
            }
            if self.pending_join.len() >= context.config.max_pending_members {
                return context.reply(token, refuse_join(Error::GroupMaxSizeReached, ""));
            }
            context.set_timer(self.session_timer(&id), request.session_timeout_ms);
            context.reply(token, refuse_join(Error::MemberIdRequired, &id));
            self.pending_join.insert(id);
        }
    }

    fn add(&mut self, context: &mut Context, token: Token, id: Arc<str>, request: JoinRequest) {
        if let Some(delay) = &mut self.initial_delay {
            delay.member_added = true;
        }
        let member = Member {
            instance_id: request.group_instance_id.as_deref().map(Arc::from),
            client_id: request.client_id,
            client_host: request.client_host,
            session_timeout_ms: request.session_timeout_ms,
            rebalance_timeout_ms: request.rebalance_timeout_ms,
            protocols: request.protocols,
            assignment: Bytes::new(),
            is_new: true,
            join: Some(token),
            sync: None,
        };
        // It cannot send heartbeats before it knows its id, and a client that hung up cannot be told from one that waits.
        // So the wait itself is limited; whoever is still there joins again.
        context.set_timer(self.session_timer(&id), context.config.new_member_join_timeout_ms);
        self.insert(id, member, &request.protocol_type);
        self.rebalance_or_complete_join(context);
    }

    fn rejoin(&mut self, context: &mut Context, token: Token, request: JoinRequest) {
        let id = request.member_id.as_str();
        if let Err(error) = self.check_member(id, request.group_instance_id.as_deref()) {
            return context.reply(token, refuse_join(error, id));
        }
        let unchanged = self.members.get(id).is_some_and(|member| member.protocols == request.protocols);
        let only_asks = match self.state {
            State::PreparingRebalance => false,
            // It did not get the answer to its first join.
            State::CompletingRebalance => unchanged,
            // A leader joins again when something changed that the assignment depends on.
            State::Stable => unchanged && !self.is_leader(id),
            State::Empty | State::Dead => {
                return context.reply(token, refuse_join(Error::UnknownMemberId, id));
            }
        };
        if only_asks {
            let answer = self.joined(id);
            return context.reply(token, Reply::Join(Ok(answer)));
        }
        self.wait_for_join(context, id, token);
        self.take_over(id, &request);
        self.rebalance_or_complete_join(context);
    }

    /// Lets a join of a member wait. One that was waiting already has been given up by its client.
    fn wait_for_join(&mut self, context: &mut Context, id: &str, token: Token) {
        let Some(member) = self.members.get_mut(id) else { return };
        match member.join.replace(token) {
            Some(earlier) => context.reply(earlier, refuse_join(Error::RebalanceInProgress, id)),
            None => self.awaiting_join += 1,
        }
    }

    /// Takes over what a request says about a member.
    fn take_over(&mut self, id: &str, request: &JoinRequest) {
        let Some((id, mut member)) = self.members.remove_entry(id) else { return };
        self.discount_protocols(&member.protocols);
        self.count_protocols(&request.protocols);
        member.protocols.clone_from(&request.protocols);
        member.session_timeout_ms = request.session_timeout_ms;
        member.rebalance_timeout_ms = request.rebalance_timeout_ms;
        self.members.insert(id, member);
    }

    /// A static member has come back and does not know its member id any more.
    fn replace_static(
        &mut self,
        context: &mut Context,
        token: Token,
        request: JoinRequest,
        old_member: Arc<str>,
        new_member: Arc<str>,
    ) {
        if self.state == State::Stable {
            let mut next = self.clone();
            next.rename(&old_member, &new_member);
            next.take_over(&new_member, &request);
            if next.select_protocol() == self.protocol {
                // Nothing changes for the others. The old member stays until the new one is durable.
                self.stored = true;
                let purpose = Purpose::ReplaceStatic { token, request, old_member, new_member };
                return next.persist(context, None, purpose);
            }
        }
        self.fence(context, &old_member, &new_member);
        self.wait_for_join(context, &new_member, token);
        self.take_over(&new_member, &request);
        self.refresh_session(context, &new_member);
        self.rebalance_or_complete_join(context);
    }

    /// The replacement is durable. Gives the request back if the group has moved on in the meantime, so that it has to be
    /// handled anew.
    pub fn static_replaced(
        &mut self,
        context: &mut Context,
        token: Token,
        request: JoinRequest,
        old_member: &Arc<str>,
        new_member: &Arc<str>,
    ) -> Option<JoinRequest> {
        let in_place = request.group_instance_id.as_deref().and_then(|instance| self.instances.get(instance));
        if self.state != State::Stable || in_place != Some(old_member) {
            return Some(request);
        }
        let mut next = self.clone();
        next.rename(old_member, new_member);
        next.take_over(new_member, &request);
        if next.select_protocol() != self.protocol {
            return Some(request);
        }
        let leader_before = self.leader.as_deref().unwrap_or_default().to_owned();
        self.fence(context, old_member, new_member);
        self.take_over(new_member, &request);
        self.refresh_session(context, new_member);
        let mut answer = self.joined(new_member);
        if request.can_skip_assignment {
            answer.skip_assignment = self.is_leader(new_member);
        } else {
            // A client that cannot be told to leave the assignment alone is not told that it leads.
            answer.leader = leader_before;
            answer.members = Vec::new();
        }
        context.reply(token, Reply::Join(Ok(answer)));
        None
    }

    /// Renames a member and turns away whoever still uses the old id.
    fn fence(&mut self, context: &mut Context, old: &Arc<str>, new: &Arc<str>) {
        context.timers.cancel(&self.session_timer(old));
        self.rename(old, new);
        let Some((id, mut member)) = self.members.remove_entry(new) else { return };
        self.answer_waiting(context, &mut member, Error::FencedInstanceId, old);
        self.members.insert(id, member);
    }

    fn rename(&mut self, old: &Arc<str>, new: &Arc<str>) {
        let Some(mut member) = self.members.remove(old) else { return };
        member.is_new = false;
        if let Some(instance) = &member.instance_id {
            self.instances.insert(instance.clone(), new.clone());
        }
        if self.is_leader(old) {
            self.leader = Some(new.clone());
        }
        if self.pending_sync.remove(old) {
            self.pending_sync.insert(new.clone());
        }
        self.members.insert(new.clone(), member);
    }
}
