//! Requests of the consumer group protocol, and what such groups need to know of the world.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::api::{
    Actions, ConsumerHeartbeatRequest, ConsumerRefused, DescribedConsumerGroup, GroupType, Now, Reply, Token,
};
use super::classic::ClassicGroup;
use super::config::GroupSettings;
use super::consumer::{ConsumerGroup, check_request};
use super::context::Context;
use super::error::Error;
use super::group::Group;
use super::groups::GroupCoordinator;
use super::topics::Topics;

impl GroupCoordinator {
    /// All topics that there are now. Members of consumer groups are told of what has changed with their next heartbeats.
    pub fn set_topics(&mut self, topics: Topics) {
        self.topics = topics;
        self.topics_version += 1;
    }

    /// The settings of every group that has some of its own.
    pub fn set_group_settings(&mut self, settings: BTreeMap<Arc<str>, GroupSettings>) {
        self.group_settings = settings;
    }

    /// ConsumerGroupHeartbeat. Answered with [`Reply::ConsumerHeartbeat`], when what it says is durable.
    pub fn consumer_heartbeat(&mut self, now: Now, token: Token, request: ConsumerHeartbeatRequest) -> Actions {
        let mut actions = Actions::new();
        let id: Arc<str> = request.group_id.as_str().into();
        let ready = check_request(&request, &self.config).and_then(|()| {
            let (mut context, groups, _) = self.split(now, &mut actions);
            ready_group(&mut context, groups, &id, request.member_epoch == 0)
        });
        let (mut context, groups, _) = self.split(now, &mut actions);
        match (ready, groups.get_mut(&id)) {
            (Ok(()), Some(Group::Consumer(group))) => {
                let next = group.heartbeat(&mut context, token, request);
                self.goes_on_as_classic(&id, next);
                self.forget_if_blank(&id);
            }
            (Ok(()), _) => context.reply(token, Reply::ConsumerHeartbeat(Err(not_found(&id)))),
            (Err(refused), _) => context.reply(token, Reply::ConsumerHeartbeat(Err(refused))),
        }
        actions
    }

    /// ConsumerGroupDescribe, for one group.
    pub fn describe_consumer(&self, group_id: &str) -> Result<DescribedConsumerGroup, ConsumerRefused> {
        if group_id.is_empty() {
            return Err(ConsumerRefused { error: Error::InvalidGroupId, message: String::new() });
        }
        let missing = |message| ConsumerRefused { error: Error::GroupIdNotFound, message };
        let default = self.config.default_assignor().name();
        let described = self.groups.get_key_value(group_id).and_then(|(id, group)| {
            group.look(id, |group| match group {
                Group::Consumer(group) => Some(group.describe(&self.topics, default)),
                Group::Classic(_) | Group::Share(_) | Group::Streams(_) => None,
            })
        });
        match described {
            Some(Some(described)) => Ok(described),
            Some(None) => Err(missing(format!("Group {group_id} is not a consumer group."))),
            None => Err(missing(format!("Group {group_id} not found."))),
        }
    }

    /// What kind of group it is. `None`: there is no such group.
    pub fn group_type(&self, group_id: &str) -> Option<GroupType> {
        let (id, group) = self.groups.get_key_value(group_id)?;
        group.look(id, Group::group_type)
    }

    /// Whether somebody who says who it is may read a group's offsets.
    pub fn check_fetch(&self, group_id: &str, member_id: &str, member_epoch: i32) -> Result<(), Error> {
        match self.groups.get(group_id) {
            Some(Group::Consumer(group)) => group.check_fetch(member_id, member_epoch),
            Some(Group::Streams(group)) => group.check_fetch(member_id, member_epoch),
            Some(Group::Classic(_) | Group::Share(_)) | None => Ok(()),
        }
    }
}

fn not_found(id: &str) -> ConsumerRefused {
    ConsumerRefused { error: Error::GroupIdNotFound, message: format!("Consumer group {id} not found.") }
}

fn not_a_consumer_group(id: &str) -> ConsumerRefused {
    ConsumerRefused { error: Error::GroupIdNotFound, message: format!("Group {id} is not a consumer group.") }
}

/// Sees to it that there is a consumer group if somebody joins it.
fn ready_group(
    context: &mut Context,
    groups: &mut BTreeMap<Arc<str>, Group>,
    id: &Arc<str>,
    joins: bool,
) -> Result<(), ConsumerRefused> {
    match groups.get_mut(id) {
        Some(group) if group.is_dead() => Err(going()),
        Some(Group::Consumer(_)) => Ok(()),
        Some(Group::Classic(group)) if joins => {
            let group = match group.is_empty() {
                true => empty(context, group),
                false => ConsumerGroup::upgrade(context, group)?,
            };
            groups.insert(id.clone(), Group::Consumer(group));
            Ok(())
        }
        Some(_) => Err(not_a_consumer_group(id)),
        None if joins => {
            groups.insert(id.clone(), Group::Consumer(ConsumerGroup::new(id.clone(), None)));
            Ok(())
        }
        None => Err(not_found(id)),
    }
}

/// A consumer group in place of a classic one without members.
fn empty(context: &mut Context, classic: &ClassicGroup) -> ConsumerGroup {
    classic.cancel_timers(context);
    ConsumerGroup::new(classic.id().clone(), classic.stored_form())
}

fn going() -> ConsumerRefused {
    let error = Error::CoordinatorNotAvailable;
    ConsumerRefused { error, message: error.to_string() }
}
