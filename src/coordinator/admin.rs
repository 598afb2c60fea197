//! Looking at groups, deleting them, and clearing away those that nobody needs any more.

use std::sync::Arc;
use std::time::Duration;

use super::api::{Action, Actions, Change, DescribedGroup, ListedGroup, Now, Reply, Token};
use super::error::Error;
use super::group::Group;
use super::groups::GroupCoordinator;
use super::timers::Timer;
use super::writes::Purpose;

impl GroupCoordinator {
    /// DescribeGroups, for one group. `None`: there is no such group, or it is of another kind; clients are shown either as
    /// Dead.
    pub fn describe(&self, group_id: &str) -> Option<DescribedGroup> {
        let (id, group) = self.groups.get_key_value(group_id)?;
        group.look(id, Group::describe)?
    }

    /// Whether there is such a group, or offsets of it.
    pub fn knows_group(&self, group_id: &str) -> bool {
        self.groups.contains_key(group_id) || self.offsets.group(group_id).is_some()
    }

    /// ListGroups. An empty filter lets everything through; names compare without regard to case.
    pub fn list(&self, states: &[String], types: &[String]) -> Vec<ListedGroup> {
        let passes = |filter: &[String], name: &str| {
            filter.is_empty() || filter.iter().any(|wanted| wanted.trim().eq_ignore_ascii_case(name))
        };
        self.groups
            .iter()
            .filter_map(|(id, group)| group.look(id, |group| group.list(id)))
            .filter(|group| passes(states, group.state) && passes(types, group.group_type.name()))
            .collect()
    }

    /// DeleteGroups, for one group. Answered with [`Reply::DeleteGroup`], when it is durable.
    pub fn delete_group(&mut self, now: Now, token: Token, group_id: &str) -> Actions {
        let allowed = self.groups.get(group_id).ok_or(Error::GroupIdNotFound).and_then(Group::may_delete);
        if let Err(error) = allowed {
            return vec![Action::Reply { token, reply: Reply::DeleteGroup(Err(error)) }];
        }
        let mut actions = Actions::new();
        self.remove_group(now, &group_id.into(), Some(token), &mut actions);
        actions
    }

    /// The group with all its offsets, those that are on their way to the disk among them.
    fn remove_group(&mut self, now: Now, id: &Arc<str>, token: Option<Token>, actions: &mut Actions) {
        let mut changes = self.removals(id, &self.offsets_under_way_too(id));
        if let Some(Group::Share(group)) = self.groups.get(id) {
            changes.extend(group.removals());
        }
        changes.push(Change::RemoveGroup);
        let (mut context, groups, _) = self.split(now, actions);
        if let Some(group) = groups.get_mut(id) {
            group.die();
        }
        context.persist(id, changes, Purpose::RemoveGroup { token });
    }

    /// Removes offsets that have expired, and groups that have neither members nor offsets.
    pub(super) fn clean_up(&mut self, now: Now, actions: &mut Actions) {
        self.schedule_cleanup(now);
        for id in self.groups.keys().cloned().collect::<Vec<_>>() {
            // One that is being written to is in use; it has its turn next time.
            if self.writes.busy(&id) {
                continue;
            }
            let Some(group) = self.groups.get(&id) else { continue };
            let mut expired = Vec::new();
            let mut kept = false;
            for (topic, partitions) in self.offsets.group(&id).into_iter().flatten() {
                let subscribed = group.is_subscribed_to(topic);
                for (partition, offset) in partitions {
                    let stable = !self.pending.has(&id, topic, *partition);
                    if !subscribed && stable && self.has_expired(now, group, offset) {
                        expired.push((topic.clone(), *partition));
                    } else {
                        kept = true;
                    }
                }
            }
            if !kept && group.is_abandoned() && !self.pending.has_group(&id) {
                self.remove_group(now, &id, None, actions);
            } else if !expired.is_empty() {
                self.remove_offsets(now, &id, expired, None, actions);
            }
        }
    }

    fn has_expired(&self, now: Now, group: &Group, offset: &super::offsets::CommittedOffset) -> bool {
        match (group.expiry_base_ms(offset), offset.expire_timestamp_ms, self.config.offsets_retention_ms) {
            (None, _, _) | (Some(_), None, None) => false,
            (Some(_), Some(at), _) => now.wall_ms >= at,
            (Some(base), None, Some(retention)) => now.wall_ms.saturating_sub(base) >= retention,
        }
    }

    pub(super) fn schedule_cleanup(&mut self, now: Now) {
        let interval = Duration::from_millis(self.config.offsets_retention_check_interval_ms.max(1));
        self.timers.set(Timer::Cleanup, now.monotonic + interval);
    }
}
