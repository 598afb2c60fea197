//! ConsumerGroupHeartbeat: how members of the consumer protocol join, go on and leave.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::reconcile::is_subset;
use super::{AWAY, ConsumerGroup, Member, Owned, embedded, patterns};
use crate::coordinator::api::{ConsumerHeartbeat, ConsumerHeartbeatRequest, ConsumerRefused, Reply, Token};
use crate::coordinator::classic::ClassicGroup;
use crate::coordinator::config::Config;
use crate::coordinator::context::Context;
use crate::coordinator::error::Error;
use crate::protocol::Uuid;

fn refuse(error: Error, message: impl Into<String>) -> ConsumerRefused {
    ConsumerRefused { error, message: message.into() }
}

/// Whether a request makes sense by itself.
pub fn check_request(request: &ConsumerHeartbeatRequest, config: &Config) -> Result<(), ConsumerRefused> {
    let invalid = |message: &str| Err(refuse(Error::InvalidRequest, message));
    let is_empty = |text: &Option<String>| text.as_deref() == Some("");
    if request.member_id.is_empty() && (request.member_id_required || request.member_epoch != 0) {
        return invalid("MemberId can't be empty.");
    }
    if request.group_id.is_empty() {
        return invalid("GroupId can't be empty.");
    }
    if is_empty(&request.instance_id) {
        return invalid("InstanceId can't be empty.");
    }
    if is_empty(&request.rack_id) {
        return invalid("RackId can't be empty.");
    }
    match request.member_epoch {
        0 if request.rebalance_timeout_ms == -1 => {
            return invalid("RebalanceTimeoutMs must be provided in first request.");
        }
        0 if request.owned.as_ref().is_none_or(|owned| !owned.is_empty()) => {
            return invalid("TopicPartitions must be empty when (re-)joining.");
        }
        0 if request.topic_names.is_none() && request.topic_regex.is_none() => {
            return invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.");
        }
        AWAY if request.instance_id.is_none() => return invalid("InstanceId can't be null."),
        AWAY.. => {}
        _ => return invalid("MemberEpoch is invalid."),
    }
    if let Some(wanted) = &request.server_assignor
        && !config.consumer_assignors.iter().any(|assignor| assignor.name() == wanted)
    {
        let names: Vec<&str> = config.consumer_assignors.iter().map(|assignor| assignor.name()).collect();
        let names = names.join(", ");
        let message = format!("ServerAssignor {wanted} is not supported. Supported assignors: {names}.");
        return Err(refuse(Error::UnsupportedAssignor, message));
    }
    if let Some(pattern) = request.topic_regex.as_deref().filter(|pattern| !pattern.is_empty())
        && let Err(why) = patterns::compile(pattern)
    {
        let message = format!("SubscribedTopicRegex `{pattern}` is not a valid regular expression: {why}.");
        return Err(refuse(Error::InvalidRegularExpression, message));
    }
    Ok(())
}

impl ConsumerGroup {
    /// Handles a request that has been checked. Gives the group back as a classic one if it goes on as that.
    pub fn heartbeat(
        &mut self,
        context: &mut Context,
        token: Token,
        request: ConsumerHeartbeatRequest,
    ) -> Option<ClassicGroup> {
        let next = match request.member_epoch {
            ..0 => self.leave(context, token, &request),
            _ => self.go_on(context, token, request).map(|()| None),
        };
        match next {
            Ok(next) => next,
            Err(refused) => {
                context.reply(token, Reply::ConsumerHeartbeat(Err(refused)));
                None
            }
        }
    }

    /// Whether somebody of this id may come in.
    pub fn check_room(&self, context: &Context, member_id: &str) -> Result<(), ConsumerRefused> {
        let most = context.config.consumer_max_size;
        if self.members.len() >= most && !self.members.contains_key(member_id) {
            let message = format!("The consumer group has reached its maximum capacity of {most} members.");
            return Err(refuse(Error::GroupMaxSizeReached, message));
        }
        Ok(())
    }

    /// Joins, or goes on.
    fn go_on(
        &mut self,
        context: &mut Context,
        token: Token,
        request: ConsumerHeartbeatRequest,
    ) -> Result<(), ConsumerRefused> {
        self.check_room(context, &request.member_id)?;
        let id: Arc<str> = match request.member_id.as_str() {
            "" => Uuid::random(context.random).to_string().into(),
            id => id.into(),
        };
        let owned = request.owned.as_deref();
        let (member, replaced) = match request.instance_id.as_deref() {
            None => (self.dynamic_member(&id, request.member_epoch, owned)?, None),
            Some(instance) => self.static_member(&id, instance, request.member_epoch, owned)?,
        };
        // Nothing is refused from here on.
        let was_lost = request.member_epoch < member.epoch;
        let is_full = request.member_epoch == 0
            || request.rebalance_timeout_ms != -1 && request.topic_names.is_some() && request.owned.is_some();
        let before: Vec<(Uuid, Vec<i32>)> = embedded::listed(&member.assigned).collect();
        let mut updated = member.clone();
        take_over(&mut updated, &request);
        let names_or_regex = updated.topic_names != member.topic_names || updated.topic_regex != member.topic_regex;
        // Only looked up where it matters: there may be thousands.
        let subscribed = names_or_regex.then(|| self.subscribed_ids(&member, context.topics));
        let updated_names = updated.topic_names != member.topic_names;
        if let Some(old) = replaced {
            self.replace(context, &old, &id, updated);
        } else if self.members.get(&id) != Some(&updated) {
            self.put(&id, updated);
            self.ledger.changed(context);
        }
        if member.classic.is_some() {
            // It spoke the classic protocol until now.
            context.timers.cancel(&self.join_timer(&id));
            context.timers.cancel(&self.sync_timer(&id));
        }
        if names_or_regex {
            self.keep_patterns(context.topics);
        }
        // An expression that means nothing yet changes nothing for anybody.
        let bumps = updated_names
            || subscribed.is_some_and(|before| self.subscribed_ids(&self.members[&id], context.topics) != before);
        self.look_at_topics(context, bumps);
        self.assign_if_due(context);
        self.reconcile(context, &id, names_or_regex, owned);
        self.refresh_session(context, &id);
        let member = &self.members[&id];
        let assigned: Vec<(Uuid, Vec<i32>)> = embedded::listed(&member.assigned).collect();
        let reply = ConsumerHeartbeat {
            member_id: id.to_string(),
            member_epoch: member.epoch,
            heartbeat_interval_ms: self.settings(context).heartbeat_interval_ms,
            // One that comes with the epoch before has not had the last answer.
            assignment: (is_full || was_lost || assigned != before).then_some(assigned),
        };
        self.answer(context, token, Reply::ConsumerHeartbeat(Ok(reply)));
        self.settle(context);
        Ok(())
    }

    fn unknown_member(&self, id: &str) -> ConsumerRefused {
        refuse(Error::UnknownMemberId, format!("Member {id} is not a member of group {}.", self.id))
    }

    fn dynamic_member(
        &self,
        id: &Arc<str>,
        epoch: i32,
        owned: Option<&[(Uuid, Vec<i32>)]>,
    ) -> Result<Member, ConsumerRefused> {
        match self.members.get(id) {
            Some(member) => check_epoch(member, epoch, owned).map(|()| member.clone()),
            None if epoch == 0 => Ok(Member::new()),
            None => Err(self.unknown_member(id)),
        }
    }

    /// The member, and the id that it has had so far if it comes with a new one.
    fn static_member(
        &self,
        id: &Arc<str>,
        instance: &str,
        epoch: i32,
        owned: Option<&[(Uuid, Vec<i32>)]>,
    ) -> Result<(Member, Option<Arc<str>>), ConsumerRefused> {
        let known = self.instances.get(instance).map(|known| (known, &self.members[known]));
        if epoch != 0 {
            let member = self.known_instance(id, instance)?;
            check_epoch(member, epoch, owned)?;
            return Ok((member.clone(), None));
        }
        let Some((known, member)) = known else {
            return Ok((self.members.get(id).cloned().unwrap_or_else(Member::new), None));
        };
        // Its own client may ask once more: the answer may not have reached it.
        if member.classic.is_none() && member.epoch != AWAY && known != id {
            let message = format!(
                "Static member {id} with instance id {instance} cannot join the group because the instance id is owned \
                 by {known} member."
            );
            return Err(refuse(Error::UnreleasedInstanceId, message));
        }
        let member = Member { epoch: 0, previous_epoch: 0, ..member.clone() };
        Ok((member, Some(known.clone())))
    }

    /// The member that an instance id stands for, if it is the one that says so.
    fn known_instance(&self, id: &str, instance: &str) -> Result<&Member, ConsumerRefused> {
        let Some(known) = self.instances.get(instance) else {
            return Err(refuse(Error::UnknownMemberId, format!("Instance id {instance} is unknown.")));
        };
        if **known != *id {
            let message = format!("Static member {id} with instance id {instance} was fenced by member {known}.");
            return Err(refuse(Error::FencedInstanceId, message));
        }
        Ok(&self.members[known])
    }

    fn leave(
        &mut self,
        context: &mut Context,
        token: Token,
        request: &ConsumerHeartbeatRequest,
    ) -> Result<Option<ClassicGroup>, ConsumerRefused> {
        match request.instance_id.as_deref() {
            None if self.members.contains_key(request.member_id.as_str()) => {}
            None => return Err(self.unknown_member(&request.member_id)),
            Some(instance) => drop(self.known_instance(&request.member_id, instance)?),
        }
        let id: Arc<str> = request.member_id.as_str().into();
        let reply = Reply::ConsumerHeartbeat(Ok(ConsumerHeartbeat {
            member_id: request.member_id.clone(),
            member_epoch: request.member_epoch,
            heartbeat_interval_ms: 0,
            assignment: None,
        }));
        if request.member_epoch != AWAY {
            return Ok(self.fence(context, &[id], Some((token, reply))));
        }
        // It is to come back; what it has stays its own until its session runs out.
        let mut member = self.members[&id].clone();
        member.epoch = AWAY;
        member.revoking = Owned::new();
        context.timers.cancel(&self.rebalance_timer(&id));
        self.put(&id, member);
        self.ledger.changed(context);
        self.answer(context, token, reply);
        self.settle(context);
        Ok(None)
    }
}

/// Takes over what a request says about a member; what it leaves out stays as it was.
fn take_over(member: &mut Member, request: &ConsumerHeartbeatRequest) {
    if let Some(instance) = &request.instance_id {
        member.instance_id = Some(instance.as_str().into());
    }
    if let Some(rack) = &request.rack_id {
        member.rack_id = Some(rack.clone());
    }
    if request.rebalance_timeout_ms != -1 {
        member.rebalance_timeout_ms = request.rebalance_timeout_ms;
    }
    if let Some(assignor) = &request.server_assignor {
        member.server_assignor = Some(assignor.clone());
    }
    if let Some(names) = &request.topic_names {
        member.topic_names = names.iter().cloned().collect::<BTreeSet<_>>();
    }
    if let Some(regex) = &request.topic_regex {
        member.topic_regex = Some(regex.clone()).filter(|regex| !regex.is_empty());
    }
    member.client_id.clone_from(&request.client_id);
    member.client_host.clone_from(&request.client_host);
    member.classic = None;
}

/// Whether the epoch that a member comes with is its own. The one before will do if the answer with the new one may have
/// been lost: if it has nothing but what is still its.
fn check_epoch(member: &Member, epoch: i32, owned: Option<&[(Uuid, Vec<i32>)]>) -> Result<(), ConsumerRefused> {
    let than = |what: &str| {
        let message = format!(
            "The consumer group member has a {what} member epoch ({epoch}) than the one known by the group coordinator \
             ({}). The member must abandon all its partitions and rejoin.",
            member.epoch
        );
        Err(refuse(Error::FencedMemberEpoch, message))
    };
    match epoch.cmp(&member.epoch) {
        _ if epoch == 0 => Ok(()),
        std::cmp::Ordering::Greater => than("greater"),
        std::cmp::Ordering::Less if epoch != member.previous_epoch || !is_subset(owned, &member.assigned) => {
            than("smaller")
        }
        std::cmp::Ordering::Less | std::cmp::Ordering::Equal => Ok(()),
    }
}
