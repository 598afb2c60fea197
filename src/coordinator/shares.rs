//! Requests about share groups, and what the broker has to know of such groups to serve their partitions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::api::{Actions, ConsumerRefused, DescribedShareGroup, Now, Reply, ShareHeartbeatRequest, Token};
use super::context::Context;
use super::error::Error;
use super::group::Group;
use super::groups::GroupCoordinator;
use super::share::partition::SharePartitionKey;
use super::share::{ShareGroup, check_request};
use crate::protocol::Uuid;

impl GroupCoordinator {
    /// ShareGroupHeartbeat. Answered with [`Reply::ShareHeartbeat`], when what it says is durable.
    pub fn share_heartbeat(&mut self, now: Now, token: Token, request: ShareHeartbeatRequest) -> Actions {
        let mut actions = Actions::new();
        let id: Arc<str> = request.group_id.as_str().into();
        let (mut context, groups, _) = self.split(now, &mut actions);
        let ready = check_request(&request).and_then(|()| ready_group(groups, &id, request.member_epoch == 0));
        match ready {
            Ok(group) => group.heartbeat(&mut context, token, request),
            Err(refused) => context.reply(token, Reply::ShareHeartbeat(Err(refused))),
        }
        self.forget_if_blank(&id);
        actions
    }

    /// ShareGroupDescribe, for one group.
    pub fn describe_share(&self, group_id: &str) -> Result<DescribedShareGroup, ConsumerRefused> {
        if group_id.is_empty() {
            return Err(ConsumerRefused { error: Error::InvalidGroupId, message: String::new() });
        }
        let described = self.groups.get_key_value(group_id).and_then(|(id, group)| {
            group.look(id, |group| match group {
                Group::Share(group) => Some(group.describe(&self.topics)),
                _ => None,
            })
        });
        match described {
            Some(Some(described)) => Ok(described),
            Some(None) => Err(not_a_share_group(group_id)),
            None => {
                Err(ConsumerRefused { error: Error::GroupIdNotFound, message: format!("Group {group_id} not found.") })
            }
        }
    }

    /// Whether the group keeps state of a partition; only then may it be fetched from.
    pub fn keeps_share_partition(&self, group_id: &str, topic: Uuid, partition: i32) -> bool {
        match self.groups.get(group_id) {
            Some(Group::Share(group)) => group.is_initialized(topic, partition),
            _ => false,
        }
    }

    /// The partitions that the group keeps state of, by topic; none if there is no such group.
    pub fn share_partitions(&self, group_id: &str) -> BTreeMap<Uuid, BTreeSet<i32>> {
        match self.groups.get(group_id) {
            Some(Group::Share(group)) => group.initialized().clone(),
            _ => BTreeMap::new(),
        }
    }

    /// Of every group, the partitions that it keeps state of.
    pub fn all_share_partitions(&self) -> BTreeSet<SharePartitionKey> {
        let mut all = BTreeSet::new();
        for (id, group) in &self.groups {
            let Group::Share(group) = group else { continue };
            for (topic, partitions) in group.initialized() {
                all.extend(partitions.iter().map(|partition| SharePartitionKey::new(id.clone(), *topic, *partition)));
            }
        }
        all
    }

    /// AlterShareGroupOffsets, for a group without members, which is made if it is not there. Answered with
    /// [`Reply::ShareOffsets`], when the new offsets are durable.
    pub fn alter_share_offsets(
        &mut self,
        now: Now,
        token: Token,
        group_id: &str,
        starts: &[(Uuid, i32, i64)],
    ) -> Actions {
        let id: Arc<str> = group_id.into();
        self.with_share_group(now, token, &id, true, |group, context| group.alter_offsets(context, token, starts))
    }

    /// DeleteShareGroupOffsets, for a group without members. Answered with [`Reply::ShareOffsets`], when it is durable.
    pub fn delete_share_offsets(&mut self, now: Now, token: Token, group_id: &str, topics: &BTreeSet<Uuid>) -> Actions {
        let id: Arc<str> = group_id.into();
        self.with_share_group(now, token, &id, false, |group, context| group.delete_offsets(context, token, topics))
    }

    /// Whether the offsets of a group may be altered or deleted now: nobody has to be in it. A group that is not there is
    /// no obstacle.
    pub fn may_change_share_offsets(&self, group_id: &str) -> Result<(), ConsumerRefused> {
        match self.groups.get(group_id) {
            Some(Group::Share(group)) => group.check_empty(),
            Some(_) => Err(not_a_share_group(group_id)),
            None => Ok(()),
        }
    }

    fn with_share_group(
        &mut self,
        now: Now,
        token: Token,
        id: &Arc<str>,
        make: bool,
        act: impl FnOnce(&mut ShareGroup, &mut Context),
    ) -> Actions {
        let mut actions = Actions::new();
        let (mut context, groups, _) = self.split(now, &mut actions);
        match ready_group(groups, id, make) {
            Ok(group) => act(group, &mut context),
            Err(refused) => context.reply(token, Reply::ShareOffsets(Err(refused))),
        }
        self.forget_if_blank(id);
        actions
    }

    /// Has share groups forget what they keep of topics that are gone.
    pub(super) fn forget_deleted_topics(&mut self, now: Now, actions: &mut Actions) {
        let (mut context, groups, _) = self.split(now, actions);
        for group in groups.values_mut() {
            if let Group::Share(group) = group {
                group.forget_deleted_topics(&mut context);
            }
        }
    }
}

/// The share group of this id; made, if that is asked for, where there is no group.
fn ready_group<'a>(
    groups: &'a mut BTreeMap<Arc<str>, Group>,
    id: &Arc<str>,
    make: bool,
) -> Result<&'a mut ShareGroup, ConsumerRefused> {
    if make && !groups.contains_key(id) {
        groups.insert(id.clone(), Group::Share(ShareGroup::new(id.clone(), None)));
    }
    match groups.get_mut(id) {
        Some(Group::Share(group)) if group.is_dead() => {
            let error = Error::CoordinatorNotAvailable;
            Err(ConsumerRefused { error, message: error.to_string() })
        }
        Some(Group::Share(group)) => Ok(group),
        Some(_) => Err(not_a_share_group(id)),
        None => Err(ConsumerRefused { error: Error::GroupIdNotFound, message: format!("Share group {id} not found.") }),
    }
}

fn not_a_share_group(id: &str) -> ConsumerRefused {
    ConsumerRefused { error: Error::GroupIdNotFound, message: format!("Group {id} is not a share group.") }
}
