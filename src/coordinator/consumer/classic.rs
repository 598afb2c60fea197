//! Members that speak the classic protocol in a group of the new one. Nobody leads there and nobody else's assignment is
//! waited for: a join takes the member one step on its way, a sync tells it what it has, and a heartbeat sends it back to
//! join when there is another step to take.

use std::sync::Arc;

use super::{ClassicMember, ConsumerGroup, Member, MemberState, embedded};
use crate::coordinator::api::{
    HeartbeatRequest, JoinRequest, Joined, LeaveOutcome, LeaveRequest, LeavingMember, Protocol, Reply, SyncRequest,
    Synced, Token,
};
use crate::coordinator::classic::{ClassicGroup, keep_protocols, refuse_join};
use crate::coordinator::context::Context;
use crate::coordinator::error::Error;
use crate::coordinator::timers::Timer;
use crate::protocol::Uuid;

/// The protocol type of consumers.
pub(super) const CONSUMER: &str = "consumer";

impl ConsumerGroup {
    /// JoinGroup. Gives the group back as a classic one if it goes on as that.
    pub fn join(&mut self, context: &mut Context, token: Token, mut request: JoinRequest) -> Option<ClassicGroup> {
        request.protocols = keep_protocols(std::mem::take(&mut request.protocols));
        match self.try_join(context, token, request) {
            Ok(next) => next,
            Err(error) => {
                context.reply(token, refuse_join(error, ""));
                None
            }
        }
    }

    fn try_join(
        &mut self,
        context: &mut Context,
        token: Token,
        request: JoinRequest,
    ) -> Result<Option<ClassicGroup>, Error> {
        if self.dead {
            return Err(Error::CoordinatorNotAvailable);
        }
        let migration = context.config.consumer_migration;
        if !migration.upgrade && !migration.downgrade {
            return Err(Error::InconsistentGroupProtocol);
        }
        self.check_room(context, &request.member_id).map_err(|refused| refused.error)?;
        if request.protocol_type != CONSUMER || !self.speaks_with_classic(&request.protocols) {
            return Err(Error::InconsistentGroupProtocol);
        }
        let is_new = request.member_id.is_empty();
        let id: Arc<str> = match is_new {
            true => Uuid::random(context.random).to_string().into(),
            false => request.member_id.as_str().into(),
        };
        let instance = request.group_instance_id.as_deref();
        if is_new && instance.is_none() && request.member_id_required {
            context.reply(token, refuse_join(Error::MemberIdRequired, &id));
            return Ok(None);
        }
        // What a client says about itself in its own protocol has to be readable, or nothing can be assigned to it.
        let subscription = embedded::subscription(&request.protocols[0].metadata).ok_or(Error::UnknownServerError)?;
        let known = instance.and_then(|instance| self.instances.get(instance)).cloned();
        let (member, replaced) = match (instance, known) {
            (None, _) => (self.members.get(&id).cloned().unwrap_or_else(Member::new), None),
            (Some(_), Some(known)) if is_new => {
                let member = Member { epoch: 0, previous_epoch: 0, ..self.members[&known].clone() };
                (member, Some(known))
            }
            (Some(_), None) if is_new => (Member::new(), None),
            (Some(_), None) => return Err(Error::UnknownMemberId),
            (Some(_), Some(known)) if known != id => return Err(Error::FencedInstanceId),
            (Some(_), Some(_)) => (self.members[&id].clone(), None),
        };
        // Nothing is refused from here on.
        let mut updated = member.clone();
        updated.instance_id = instance.map(Arc::from).or(updated.instance_id);
        updated.rack_id = subscription.rack.or(updated.rack_id);
        updated.rebalance_timeout_ms = request.rebalance_timeout_ms;
        updated.topic_names = subscription.topics;
        updated.topic_regex = None;
        updated.client_id = request.client_id;
        updated.client_host = request.client_host;
        updated.server_assignor = None;
        let session_timeout_ms = request.session_timeout_ms;
        updated.classic = Some(ClassicMember { session_timeout_ms, protocols: request.protocols });
        let changed = updated.topic_names != member.topic_names || updated.topic_regex != member.topic_regex;
        let goes_classic = replaced.as_ref().is_some_and(|old| self.goes_classic_with(context, old));
        let protocol_name = updated.classic.as_ref().map(|classic| classic.protocols[0].name.clone());
        if let Some(old) = &replaced {
            self.replace(context, old, &id, updated);
        } else if self.members.get(&id) != Some(&updated) {
            self.put(&id, updated);
            self.ledger.changed(context);
        }
        context.timers.cancel(&self.rebalance_timer(&id));
        context.timers.cancel(&self.join_timer(&id));
        self.keep_patterns(context.topics);
        self.look_at_topics(context, changed);
        let stale = goes_classic && self.assignment_epoch < self.epoch;
        if !goes_classic {
            self.assign_if_due(context);
        }
        if !stale {
            let owned = embedded::by_id(&subscription.owned, context.topics);
            let owned: Vec<(Uuid, Vec<i32>)> =
                owned.into_iter().map(|(topic, partitions)| (topic, partitions.into_iter().collect())).collect();
            self.reconcile(context, &id, changed, Some(&owned));
        }
        let reply = Reply::Join(Ok(Joined {
            generation_id: self.members[&id].epoch,
            protocol_type: Some(CONSUMER.to_owned()),
            protocol_name,
            leader: String::new(),
            skip_assignment: false,
            member_id: id.to_string(),
            members: Vec::new(),
        }));
        if goes_classic {
            return Ok(Some(self.downgrade(context, &[], Some(&id), stale, Some((token, reply)))));
        }
        self.refresh_session(context, &id);
        context.set_timer(self.sync_timer(&id), request.rebalance_timeout_ms);
        self.answer(context, token, reply);
        self.settle(context);
        Ok(None)
    }

    /// Whether one of the protocols is spoken by every classic member.
    fn speaks_with_classic(&self, protocols: &[Protocol]) -> bool {
        protocols.iter().any(|protocol| {
            let mut classic = self.members.values().filter_map(|member| member.classic.as_ref());
            classic.all(|classic| classic.protocols.iter().any(|known| known.name == protocol.name))
        })
    }

    /// The classic member that a request is from.
    fn classic_member(&self, id: &str, instance: Option<&str>) -> Result<(&Arc<str>, &Member, &ClassicMember), Error> {
        if self.dead {
            return Err(Error::CoordinatorNotAvailable);
        }
        if let Some(instance) = instance {
            let known = self.instances.get(instance).ok_or(Error::UnknownMemberId)?;
            if **known != *id {
                return Err(Error::FencedInstanceId);
            }
        }
        let (id, member) = self.members.get_key_value(id).ok_or(Error::UnknownMemberId)?;
        let classic = member.classic.as_ref().ok_or(Error::UnknownMemberId)?;
        Ok((id, member, classic))
    }

    /// SyncGroup.
    pub fn sync(&mut self, context: &mut Context, token: Token, request: SyncRequest) {
        let reply = match self.try_sync(context, &request) {
            Ok(synced) => Reply::Sync(Ok(synced)),
            Err(error) => return context.reply(token, Reply::Sync(Err(error))),
        };
        self.answer(context, token, reply);
        self.settle(context);
    }

    fn try_sync(&self, context: &mut Context, request: &SyncRequest) -> Result<Synced, Error> {
        let (id, member, classic) = self.classic_member(&request.member_id, request.group_instance_id.as_deref())?;
        if member.epoch != request.generation_id {
            return Err(Error::IllegalGeneration);
        }
        let differs = |theirs: &Option<String>, ours: &str| theirs.as_deref().is_some_and(|theirs| theirs != ours);
        if differs(&request.protocol_type, CONSUMER) || differs(&request.protocol_name, &classic.protocols[0].name) {
            return Err(Error::InconsistentGroupProtocol);
        }
        // One that has to give up partitions has joined for that already.
        if self.assignment_epoch > member.epoch && member.state != MemberState::Unrevoked {
            self.expect_join(context, id, member);
            return Err(Error::RebalanceInProgress);
        }
        context.timers.cancel(&self.sync_timer(id));
        self.refresh_session(context, id);
        let assigned = embedded::listed(&member.assigned);
        Ok(Synced {
            protocol_type: request.protocol_type.clone(),
            protocol_name: request.protocol_name.clone(),
            assignment: embedded::write_assignment(&classic.protocols[0].metadata, assigned, context.topics),
        })
    }

    /// It is told to join again, and has its rebalance timeout for that.
    fn expect_join(&self, context: &mut Context, id: &Arc<str>, member: &Member) {
        let timer: Timer = self.join_timer(id);
        if !context.timers.is_set(&timer) {
            context.set_timer(timer, member.rebalance_timeout_ms);
        }
    }

    /// Heartbeat.
    pub fn classic_heartbeat(&mut self, context: &mut Context, request: &HeartbeatRequest) -> Result<(), Error> {
        // Where nobody speaks the new protocol, it is a join that makes the next target.
        let assignment_due = self.is_assignment_due(context);
        let (id, member, _) = self.classic_member(&request.member_id, request.group_instance_id.as_deref())?;
        if member.epoch != request.generation_id {
            return Err(Error::IllegalGeneration);
        }
        self.refresh_session(context, id);
        let can_go_on = match member.state {
            MemberState::Stable => false,
            MemberState::Unrevoked => true,
            MemberState::Unreleased => !self.waits_for_others(id, member),
        };
        if member.epoch < self.assignment_epoch || can_go_on || assignment_due {
            self.expect_join(context, id, member);
            return Err(Error::RebalanceInProgress);
        }
        Ok(())
    }

    /// Whether something of its target is still somebody else's.
    fn waits_for_others(&self, id: &Arc<str>, member: &Member) -> bool {
        self.target.get(id).into_iter().flatten().any(|(topic, partitions)| {
            let missing = |partition: &&i32| member.owned_since(*topic, **partition).is_none();
            partitions.iter().filter(missing).any(|partition| self.owners.contains_key(&(*topic, *partition)))
        })
    }

    /// LeaveGroup, which administrators use for members of either protocol.
    pub fn classic_leave(
        &mut self,
        context: &mut Context,
        token: Token,
        request: LeaveRequest,
    ) -> Option<ClassicGroup> {
        if self.dead {
            context.reply(token, Reply::Leave(Err(Error::CoordinatorNotAvailable)));
            return None;
        }
        let mut leaving: Vec<Arc<str>> = Vec::new();
        let outcomes: Vec<LeaveOutcome> = request
            .members
            .into_iter()
            .map(|member| {
                let result = self.leaving(&member).map(|id| {
                    if !leaving.contains(&id) {
                        leaving.push(id);
                    }
                });
                LeaveOutcome { member_id: member.member_id, group_instance_id: member.group_instance_id, result }
            })
            .collect();
        let reply = Reply::Leave(Ok(outcomes));
        if leaving.is_empty() {
            context.reply(token, reply);
            return None;
        }
        self.fence(context, &leaving, Some((token, reply)))
    }

    fn leaving(&self, member: &LeavingMember) -> Result<Arc<str>, Error> {
        let id = match member.group_instance_id.as_deref() {
            None => member.member_id.as_str(),
            Some(instance) => {
                let known = self.instances.get(instance).ok_or(Error::UnknownMemberId)?;
                if !member.member_id.is_empty() && **known != *member.member_id {
                    return Err(Error::FencedInstanceId);
                }
                known
            }
        };
        self.members.get_key_value(id).map(|(id, _)| id.clone()).ok_or(Error::UnknownMemberId)
    }
}
