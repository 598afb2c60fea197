//! ShareGroupHeartbeat: how members join, go on and leave, and when the group's epoch rises.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::assignor::{self, Subscriber};
use super::state::ShareState;
use super::{Member, ShareGroup};
use crate::coordinator::api::{Change, ConsumerRefused, Reply, ShareHeartbeat, ShareHeartbeatRequest, Token};
use crate::coordinator::context::Context;
use crate::coordinator::error::Error;
use crate::coordinator::topics::{Partitions, Topics};
use crate::protocol::Uuid;

const LEAVES: i32 = -1;

/// The longest member id, in UTF-16 code units: that of a UUID in its longest form.
const MAX_MEMBER_ID: usize = 36;

fn refuse<T>(error: Error, message: impl Into<String>) -> Result<T, ConsumerRefused> {
    Err(ConsumerRefused { error, message: message.into() })
}

/// Whether a request makes sense by itself.
pub fn check_request(request: &ShareHeartbeatRequest) -> Result<(), ConsumerRefused> {
    let invalid = |message: &str| refuse(Error::InvalidRequest, message);
    if request.member_id.is_empty() || request.member_id.encode_utf16().count() > MAX_MEMBER_ID {
        return invalid("Invalid member id in the request.");
    }
    if request.group_id.is_empty() {
        return invalid("GroupId can't be empty.");
    }
    if request.rack_id.as_deref() == Some("") {
        return invalid("RackId can't be empty.");
    }
    match request.member_epoch {
        0 if request.topic_names.as_ref().is_none_or(Vec::is_empty) => {
            invalid("SubscribedTopicNames must be set in first request.")
        }
        LEAVES.. => Ok(()),
        _ => invalid("MemberEpoch is invalid."),
    }
}

impl ShareGroup {
    /// Handles a request that has been checked.
    pub fn heartbeat(&mut self, context: &mut Context, token: Token, request: ShareHeartbeatRequest) {
        let handled = match request.member_epoch {
            LEAVES => self.leave(context, token, &request),
            _ => self.go_on(context, token, request),
        };
        if let Err(refused) = handled {
            context.reply(token, Reply::ShareHeartbeat(Err(refused)));
        }
    }

    fn leave(
        &mut self,
        context: &mut Context,
        token: Token,
        request: &ShareHeartbeatRequest,
    ) -> Result<(), ConsumerRefused> {
        if !self.members.contains_key(request.member_id.as_str()) {
            return self.unknown_member(&request.member_id);
        }
        let reply = Reply::ShareHeartbeat(Ok(ShareHeartbeat {
            member_id: request.member_id.clone(),
            member_epoch: request.member_epoch,
            heartbeat_interval_ms: 0,
            assignment: None,
        }));
        self.fence(context, &request.member_id.as_str().into(), Some((token, reply)));
        Ok(())
    }

    fn unknown_member<T>(&self, id: &str) -> Result<T, ConsumerRefused> {
        refuse(Error::UnknownMemberId, format!("Member {id} is not a member of group {}.", self.id))
    }

    /// Joins, or goes on.
    fn go_on(
        &mut self,
        context: &mut Context,
        token: Token,
        request: ShareHeartbeatRequest,
    ) -> Result<(), ConsumerRefused> {
        let id: Arc<str> = request.member_id.as_str().into();
        let most = context.config.share_max_size;
        if self.members.len() >= most && !self.members.contains_key(&id) {
            let message = format!("The share group has reached its maximum capacity of {most} members.");
            return refuse(Error::GroupMaxSizeReached, message);
        }
        let before = match self.members.get(&id) {
            Some(member) => check_epoch(member, request.member_epoch).map(|()| member.clone())?,
            None if request.member_epoch == 0 => Member::default(),
            None => return self.unknown_member(&id),
        };
        // Nothing is refused from here on.
        let is_full = request.member_epoch == 0 || request.topic_names.is_some();
        let mut member = before.clone();
        member.rack_id = request.rack_id.or(member.rack_id);
        member.client_id = request.client_id;
        member.client_host = request.client_host;
        if let Some(names) = request.topic_names {
            member.topic_names = names.into_iter().collect();
        }
        let mut rises = member.topic_names != before.topic_names;
        if self.members.get(&id) != Some(&member) {
            self.members.insert(id.clone(), member);
            self.ledger.changed(context);
        }
        rises |= self.assignment_epoch >= self.epoch && self.has_unassigned(context.topics);
        rises |= self.topics_have_changed(context);
        if rises {
            self.fingerprint = self.topics_fingerprint(context.topics);
            self.epoch += 1;
            self.ledger.changed(context);
        }
        self.assign_if_due(context);
        self.reconcile(context, &id, rises);
        self.initialize(context);
        self.refresh_session(context, &id);
        let member = &self.members[&id];
        let reply = ShareHeartbeat {
            member_id: id.to_string(),
            member_epoch: member.epoch,
            heartbeat_interval_ms: self.settings(context).heartbeat_interval_ms,
            assignment: (is_full || member.assigned != before.assigned).then(|| listed(&member.assigned)),
        };
        self.answer(context, token, Reply::ShareHeartbeat(Ok(reply)));
        self.settle(context);
        Ok(())
    }

    /// Whether partitions have been initialized that the target does not have.
    fn has_unassigned(&self, topics: &Topics) -> bool {
        let mut assigned = Partitions::new();
        for (topic, partitions) in self.target.values().flatten() {
            assigned.entry(*topic).or_default().extend(partitions);
        }
        let subscribed = self.subscribed_names().into_iter().filter_map(|name| topics.by_name(name));
        subscribed.into_iter().any(|(topic, _)| self.initialized.get(&topic) != assigned.get(&topic))
    }

    /// Whether the topics that the group subscribes to are not those that it knew.
    fn topics_have_changed(&mut self, context: &Context) -> bool {
        if self.seen_topics == Some(context.topics_version) {
            return false;
        }
        self.seen_topics = Some(context.topics_version);
        self.topics_fingerprint(context.topics) != self.fingerprint
    }

    fn subscribed_ids(&self, member: &Member, topics: &Topics) -> BTreeSet<Uuid> {
        member.topic_names.iter().filter_map(|name| topics.by_name(name)).map(|(id, _)| id).collect()
    }

    /// Makes a new target if the epoch has risen and the last one was not made a moment ago.
    fn assign_if_due(&mut self, context: &mut Context) {
        if self.epoch <= self.assignment_epoch {
            return;
        }
        let interval = self.settings(context).assignment_interval_ms;
        let interval = Duration::from_millis(u64::try_from(interval).unwrap_or(0));
        if self.assigned_at.is_some_and(|at| context.now.monotonic < at.saturating_add(interval)) {
            return;
        }
        let nothing = Partitions::new();
        let members: Vec<Subscriber> = self
            .members
            .iter()
            .map(|(id, member)| Subscriber {
                id,
                topics: self.subscribed_ids(member, context.topics),
                current: self.target.get(id).unwrap_or(&nothing),
            })
            .collect();
        self.target = assignor::assign(&members, &self.initialized);
        self.assignment_epoch = self.epoch;
        self.assigned_at = Some(context.now.monotonic);
        self.ledger.changed(context);
    }

    /// Takes a member to the target. Others need not have let go of anything.
    fn reconcile(&mut self, context: &mut Context, id: &Arc<str>, subscription_changed: bool) {
        let Some(member) = self.members.get(id) else { return };
        if member.epoch == self.assignment_epoch && !subscription_changed {
            return;
        }
        let subscribed = self.subscribed_ids(member, context.topics);
        let mut assigned = self.target.get(id).cloned().unwrap_or_default();
        assigned.retain(|topic, _| subscribed.contains(topic));
        let mut next = Member { assigned, ..member.clone() };
        if next.epoch != self.assignment_epoch {
            next.previous_epoch = std::mem::replace(&mut next.epoch, self.assignment_epoch);
        }
        if next != *member {
            self.members.insert(id.clone(), next);
            self.ledger.changed(context);
        }
    }

    /// Has the group keep state of every partition that is subscribed to. They are assigned in the epoch after.
    fn initialize(&mut self, context: &mut Context) {
        let mut found = Partitions::new();
        for name in self.subscribed_names() {
            let Some((topic, count)) = context.topics.by_name(name) else { continue };
            let known = self.initialized.get(&topic);
            let new = (0..count).filter(|partition| known.is_none_or(|known| !known.contains(partition)));
            let new: BTreeSet<i32> = new.collect();
            if !new.is_empty() {
                found.insert(topic, new);
            }
        }
        if !found.is_empty() {
            let nobody_has_fetched = ShareState::new(self.epoch, ShareState::NO_START).to_bytes();
            for (topic, partitions) in found {
                self.changes.extend(partitions.iter().map(|partition| Change::PutSharePartition {
                    topic,
                    partition: *partition,
                    value: nobody_has_fetched.clone(),
                }));
                self.initialized.entry(topic).or_default().extend(partitions);
            }
            self.ledger.changed(context);
        }
    }
}

/// Whether the epoch that a member comes with is its own, or the one before: then the answer with the new one was lost.
fn check_epoch(member: &Member, epoch: i32) -> Result<(), ConsumerRefused> {
    if epoch == 0 || epoch == member.epoch || (epoch < member.epoch && epoch == member.previous_epoch) {
        return Ok(());
    }
    let known = member.epoch;
    let message = match epoch > known {
        true => format!(
            "The share group member has a greater member epoch ({epoch}) than the one known by the group coordinator \
             ({known}). The member must abandon all its partitions and rejoin."
        ),
        false => format!(
            "The share group member has a smaller member epoch ({epoch}) than the one known by the group coordinator \
             ({known}), and it does not match the previous member epoch ({}). The member must abandon all its partitions \
             and rejoin.",
            member.previous_epoch
        ),
    };
    refuse(Error::FencedMemberEpoch, message)
}

fn listed(partitions: &Partitions) -> Vec<(Uuid, Vec<i32>)> {
    partitions.iter().map(|(topic, partitions)| (*topic, partitions.iter().copied().collect())).collect()
}
