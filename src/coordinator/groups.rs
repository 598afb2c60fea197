//! The coordinator itself: it finds the group that an event is about, and acts on time and on writes that have ended.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use super::api::{
    Action, Actions, HeartbeatRequest, JoinRequest, LeaveOutcome, LeaveRequest, LeavingMember, Now, Reply, SyncRequest,
    Token, WriteFailed, WriteId,
};
use super::classic::{ClassicGroup, refuse_join};
use super::config::{Config, GroupSettings};
use super::context::Context;
use super::error::Error as Refusal;
use super::group::Group;
use super::offsets::{CommittedOffset, Offsets};
use super::pending::PendingOffsets;
use super::stored::BadBytes;
use super::timers::{Timer, Timers};
use super::topics::Topics;
use super::transactional::Ending;
use super::writes::{Purpose, Writes};
use crate::sys::Random;

/// The stored metadata of a group makes no sense. The group counts as empty; its offsets are untouched.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the stored metadata of group {group:?} cannot be read, its members have to join again: {source}")]
pub struct RestoreError {
    pub group: String,
    pub source: BadBytes,
}

/// All groups and their committed offsets.
///
/// To be held behind one lock: calls are quick and never wait. Each takes the time of the event and gives the
/// [`Actions`] to carry out, in order. Times never go back from one call to the next.
pub struct GroupCoordinator {
    pub(super) config: Config,
    pub(super) group_settings: BTreeMap<Arc<str>, GroupSettings>,
    pub(super) topics: Topics,
    pub(super) topics_version: u64,
    pub(super) random: Arc<dyn Random>,
    pub(super) groups: BTreeMap<Arc<str>, Group>,
    pub(super) offsets: Offsets,
    pub(super) pending: PendingOffsets,
    /// With which epoch producers have something pending, or about to be.
    pub(super) pending_epochs: HashMap<i64, i16>,
    /// Ends of transactions that are under way.
    pub(super) endings: HashMap<Token, Ending>,
    pub(super) timers: Timers,
    pub(super) writes: Writes,
}

impl fmt::Debug for GroupCoordinator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupCoordinator").field("config", &self.config).field("groups", &self.groups.len()).finish()
    }
}

impl GroupCoordinator {
    /// Without groups; what is stored comes in through [`restore_group`](Self::restore_group) and
    /// [`restore_offset`](Self::restore_offset) before the first request. Member ids are made with `random`.
    pub fn new(config: Config, random: Arc<dyn Random>, now: Now) -> Self {
        let mut coordinator = GroupCoordinator {
            config,
            group_settings: BTreeMap::new(),
            topics: Topics::default(),
            topics_version: 0,
            random,
            groups: BTreeMap::new(),
            offsets: Offsets::default(),
            pending: PendingOffsets::default(),
            pending_epochs: HashMap::new(),
            endings: HashMap::new(),
            timers: Timers::default(),
            writes: Writes::default(),
        };
        coordinator.schedule_cleanup(now);
        coordinator
    }

    /// The settings. Timeouts that are running keep the length they had.
    pub fn set_config(&mut self, config: Config) {
        self.config = config;
    }

    /// Takes in what [`Change::PutGroup`](super::Change::PutGroup) stored. Members keep their generation and assignment
    /// and have a whole session timeout to be heard of.
    pub fn restore_group(&mut self, now: Now, group_id: &str, bytes: &[u8]) -> Result<(), RestoreError> {
        let id: Arc<str> = group_id.into();
        let (mut group, result) = match Group::from_bytes(id.clone(), bytes) {
            Ok(group) => (group, Ok(())),
            Err(source) => {
                (Group::unreadable(id.clone(), now.wall_ms), Err(RestoreError { group: group_id.into(), source }))
            }
        };
        let mut actions = Actions::new();
        group.restored(&mut self.split(now, &mut actions).0);
        debug_assert!(actions.is_empty(), "nobody waits for anything yet");
        self.groups.insert(id, group);
        result
    }

    /// Takes in what [`Change::PutOffset`](super::Change::PutOffset) stored.
    pub fn restore_offset(&mut self, now: Now, group_id: &str, topic: &str, partition: i32, offset: CommittedOffset) {
        let id: Arc<str> = group_id.into();
        self.offsets.put(&id, topic.into(), partition, offset);
        self.groups.entry(id.clone()).or_insert_with(|| Group::simple(id, now.wall_ms));
    }

    /// JoinGroup. Answered with [`Reply::Join`], when the round is complete.
    pub fn join(&mut self, now: Now, token: Token, request: JoinRequest) -> Actions {
        let mut actions = Actions::new();
        self.handle_join(now, token, request, &mut actions);
        actions
    }

    fn handle_join(&mut self, now: Now, token: Token, request: JoinRequest, actions: &mut Actions) {
        let sessions = self.config.min_session_timeout_ms..=self.config.max_session_timeout_ms;
        let (mut context, groups, _) = self.split(now, actions);
        if request.group_id.is_empty() {
            return context.reply(token, refuse_join(Refusal::InvalidGroupId, &request.member_id));
        }
        if !sessions.contains(&request.session_timeout_ms) {
            return context.reply(token, refuse_join(Refusal::InvalidSessionTimeout, &request.member_id));
        }
        let id: Arc<str> = request.group_id.as_str().into();
        if !groups.contains_key(&id) {
            if !request.member_id.is_empty() {
                return context.reply(token, refuse_join(Refusal::UnknownMemberId, &request.member_id));
            }
            groups.insert(id.clone(), Group::simple(id.clone(), now.wall_ms));
        }
        let retired = match groups.get_mut(&id) {
            Some(Group::Consumer(group)) if group.is_empty() && !group.is_dead() => Some(group.retire(&mut context)),
            Some(Group::Streams(group)) if group.is_empty() && !group.is_dead() => Some(group.retire(&mut context)),
            _ => None,
        };
        if let Some(stored) = retired {
            // Nobody is left who would speak the other protocol.
            groups.insert(id.clone(), Group::Classic(ClassicGroup::after_another(id.clone(), now.wall_ms, stored)));
        }
        let next = match groups.get_mut(&id) {
            Some(Group::Classic(group)) => {
                group.join(&mut context, token, request);
                None
            }
            Some(Group::Consumer(group)) => group.join(&mut context, token, request),
            Some(group @ (Group::Share(_) | Group::Streams(_))) => {
                let error = match group.is_dead() {
                    true => Refusal::CoordinatorNotAvailable,
                    false => Refusal::InconsistentGroupProtocol,
                };
                context.reply(token, refuse_join(error, ""));
                None
            }
            None => None,
        };
        self.goes_on_as_classic(&id, next);
        self.forget_if_blank(&id);
    }

    /// SyncGroup. Answered with [`Reply::Sync`], when the leader's assignment is durable.
    pub fn sync(&mut self, now: Now, token: Token, request: SyncRequest) -> Actions {
        let mut actions = Actions::new();
        let (mut context, groups, _) = self.split(now, &mut actions);
        if request.group_id.is_empty() {
            context.reply(token, Reply::Sync(Err(Refusal::InvalidGroupId)));
        } else if let Some(Group::Classic(group)) = groups.get_mut(request.group_id.as_str()) {
            group.sync(&mut context, token, request);
        } else if let Some(Group::Consumer(group)) = groups.get_mut(request.group_id.as_str()) {
            group.sync(&mut context, token, request);
        } else {
            context.reply(token, Reply::Sync(Err(Refusal::UnknownMemberId)));
        }
        actions
    }

    /// Heartbeat. The answer is at hand, and nothing else comes of it.
    pub fn heartbeat(&mut self, now: Now, request: &HeartbeatRequest) -> Result<(), Refusal> {
        if request.group_id.is_empty() {
            return Err(Refusal::InvalidGroupId);
        }
        let mut actions = Actions::new();
        let (mut context, groups, _) = self.split(now, &mut actions);
        match groups.get_mut(request.group_id.as_str()) {
            Some(Group::Classic(group)) => group.heartbeat(&mut context, request),
            Some(Group::Consumer(group)) => group.classic_heartbeat(&mut context, request),
            Some(Group::Share(_) | Group::Streams(_)) | None => Err(Refusal::UnknownMemberId),
        }
    }

    /// LeaveGroup. Answered with [`Reply::Leave`]; when the last member leaves, after that is durable.
    pub fn leave(&mut self, now: Now, token: Token, request: LeaveRequest) -> Actions {
        let mut actions = Actions::new();
        let (mut context, groups, _) = self.split(now, &mut actions);
        if request.group_id.is_empty() {
            context.reply(token, Reply::Leave(Err(Refusal::InvalidGroupId)));
            return actions;
        }
        let id: Arc<str> = request.group_id.as_str().into();
        if let Some(Group::Classic(group)) = groups.get_mut(&id) {
            group.leave(&mut context, token, request);
            self.forget_if_blank(&id);
        } else if let Some(Group::Consumer(group)) = groups.get_mut(&id) {
            let next = group.classic_leave(&mut context, token, request);
            self.goes_on_as_classic(&id, next);
        } else {
            let nobody = |member: LeavingMember| LeaveOutcome {
                member_id: member.member_id,
                group_instance_id: member.group_instance_id,
                result: Err(Refusal::UnknownMemberId),
            };
            context.reply(token, Reply::Leave(Ok(request.members.into_iter().map(nobody).collect())));
        }
        actions
    }

    /// When [`tick`](Self::tick) is to be called next, on the monotonic clock. Any call may change it.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.timers.next()
    }

    /// Acts on every deadline that has come.
    pub fn tick(&mut self, now: Now) -> Actions {
        let mut actions = Actions::new();
        while let Some(timer) = self.timers.pop_due(now.monotonic) {
            let id = match &timer {
                Timer::Session { group, .. }
                | Timer::Join { group }
                | Timer::Sync { group }
                | Timer::Rebalance { group, .. }
                | Timer::FirstAssignment { group }
                | Timer::MemberJoin { group, .. }
                | Timer::MemberSync { group, .. } => group.clone(),
                Timer::Cleanup => {
                    self.clean_up(now, &mut actions);
                    continue;
                }
            };
            let (mut context, groups, _) = self.split(now, &mut actions);
            let next = match (groups.get_mut(&id), timer) {
                (Some(Group::Consumer(group)), timer) => group.expired(&mut context, &timer),
                (Some(Group::Classic(group)), timer) => {
                    group.expired(&mut context, &timer);
                    None
                }
                (Some(Group::Share(group)), timer) => {
                    group.expired(&mut context, &timer);
                    None
                }
                (Some(Group::Streams(group)), timer) => {
                    group.expired(&mut context, &timer);
                    None
                }
                (None, _) => None,
            };
            self.goes_on_as_classic(&id, next);
            self.forget_if_blank(&id);
        }
        actions
    }

    /// A write has become durable, or has failed and left nothing behind. To be called once for every write.
    pub fn persisted(&mut self, now: Now, id: WriteId, outcome: Result<(), WriteFailed>) -> Actions {
        let mut actions = Actions::new();
        if let Some((group, ended)) = self.writes.complete(id) {
            for purpose in ended {
                self.finish(now, &group, purpose, outcome, &mut actions);
            }
            actions.extend(self.writes.start(&group).map(Action::Persist));
            self.forget_if_blank(&group);
        }
        actions
    }

    /// Refuses every request that waits for other members, so that connections can be closed. Nothing but the completion
    /// of writes may follow.
    pub fn shut_down(&mut self, now: Now) -> Actions {
        let mut actions = Actions::new();
        let (mut context, groups, _) = self.split(now, &mut actions);
        for group in groups.values_mut() {
            group.refuse_waiting(&mut context, Refusal::NotCoordinator);
        }
        actions
    }

    fn finish(
        &mut self,
        now: Now,
        id: &Arc<str>,
        purpose: Purpose,
        outcome: Result<(), WriteFailed>,
        actions: &mut Actions,
    ) {
        let stored = outcome.is_ok();
        let refused = outcome.map_err(|WriteFailed| Refusal::NotCoordinator);
        let (mut context, groups, offsets) = self.split(now, actions);
        match purpose {
            Purpose::Assignment { generation, assignments } => {
                if let Some(Group::Classic(group)) = groups.get_mut(id) {
                    group.assignment_stored(&mut context, generation, assignments, stored);
                }
            }
            Purpose::ReplaceStatic { token, request, old_member, new_member } => {
                if let Err(error) = refused {
                    return context.reply(token, refuse_join(error, ""));
                }
                let again = match groups.get_mut(id) {
                    Some(Group::Classic(group)) => {
                        group.static_replaced(&mut context, token, request, &old_member, &new_member)
                    }
                    Some(_) | None => Some(request),
                };
                if let Some(request) = again {
                    self.handle_join(now, token, request, actions);
                }
            }
            Purpose::Emptied { leave } => {
                if let Some((token, outcomes)) = leave {
                    context.reply(token, Reply::Leave(refused.map(|()| outcomes)));
                }
            }
            Purpose::Whole { version } => {
                let before = match groups.get_mut(id) {
                    Some(Group::Consumer(group)) => group.written(&mut context, version, stored),
                    Some(Group::Share(group)) => group.written(&mut context, version, stored),
                    Some(Group::Streams(group)) => group.written(&mut context, version, stored),
                    Some(Group::Classic(_)) | None => None,
                };
                if let Some(before) = before {
                    groups.insert(id.clone(), before);
                }
            }
            Purpose::Answer { answers } => {
                for (token, reply) in answers {
                    context.reply(token, if stored { reply } else { reply.not_stored() });
                }
            }
            Purpose::Commit { token, outcomes, offsets: committed } => {
                if stored {
                    groups.entry(id.clone()).or_insert_with(|| Group::simple(id.clone(), now.wall_ms));
                    for (topic, partition, offset) in committed {
                        offsets.put(id, topic, partition, offset);
                    }
                }
                context.reply(token, Reply::Commit(refused.map(|()| outcomes)));
            }
            Purpose::CommitPending { token, outcomes, producer_id, offsets: committed } => {
                context.reply(token, Reply::Commit(refused.map(|()| outcomes)));
                if stored {
                    groups.entry(id.clone()).or_insert_with(|| Group::simple(id.clone(), now.wall_ms));
                    for (topic, partition, offset) in committed {
                        self.pending.put(id, producer_id, topic, partition, offset);
                    }
                }
            }
            Purpose::TransactionEnded { token, producer_id, removed, offsets: committed } => {
                if stored {
                    groups.entry(id.clone()).or_insert_with(|| Group::simple(id.clone(), now.wall_ms));
                    for (topic, partition, offset) in committed {
                        offsets.put(id, topic, partition, offset);
                    }
                    for (topic, partition) in removed {
                        self.pending.remove_of(id, producer_id, &topic, partition);
                    }
                }
                self.ended_in_group(token, refused, actions);
            }
            Purpose::EndTransaction { token, producer_id, committed } => {
                self.end_in_group(now, id, token, producer_id, committed, actions);
            }
            Purpose::RemoveOffsets { removed, reply } => {
                if stored {
                    for (topic, partition) in &removed {
                        offsets.remove(id, topic, *partition);
                    }
                }
                if let Some((token, outcomes)) = reply {
                    context.reply(token, Reply::DeleteOffsets(refused.map(|()| outcomes)));
                }
                if stored {
                    removed.iter().for_each(|(topic, partition)| self.pending.remove(id, topic, *partition));
                }
            }
            Purpose::RemoveGroup { token } => {
                if stored {
                    offsets.remove_group(id);
                    if let Some(group) = groups.remove(id) {
                        group.cancel_timers(&mut context);
                    }
                } else if let Some(group) = groups.get_mut(id) {
                    group.revive();
                }
                if let Some(token) = token {
                    context.reply(token, Reply::DeleteGroup(refused));
                }
                if stored {
                    self.pending.remove_group(id);
                }
            }
            Purpose::Read { token, request } => {
                let fetched = self.read_offsets(&request);
                actions.push(Action::Reply { token, reply: Reply::FetchOffsets(fetched) });
            }
        }
    }

    /// The group has become a classic one.
    pub(super) fn goes_on_as_classic(&mut self, id: &Arc<str>, group: Option<ClassicGroup>) {
        if let Some(group) = group {
            self.groups.insert(id.clone(), Group::Classic(group));
        }
    }

    /// A group that only ever was an id somebody asked about goes at once; nothing of it is stored.
    pub(super) fn forget_if_blank(&mut self, id: &Arc<str>) {
        let blank = self.groups.get(id).is_some_and(Group::is_blank);
        let has_offsets = self.offsets.group(id).is_some() || self.pending.has_group(id);
        if blank && !has_offsets && !self.writes.busy(id) {
            self.groups.remove(id);
        }
    }

    #[cfg(test)]
    pub(super) fn has_member(&self, group: &str, member: &str) -> bool {
        match self.groups.get(group) {
            Some(Group::Classic(group)) => group.describe().members.iter().any(|known| known.member_id == member),
            Some(Group::Consumer(group)) => group.has_member(member),
            Some(Group::Share(group)) => group.has_member(member),
            Some(Group::Streams(group)) => group.has_member(member),
            None => false,
        }
    }

    /// Checks what every group has to be true of at any time.
    #[cfg(test)]
    pub(super) fn check(&self) {
        for group in self.groups.values() {
            match group {
                Group::Classic(group) => group.check_counts(),
                Group::Consumer(group) => group.check(),
                Group::Share(group) => group.check(),
                Group::Streams(group) => group.check(),
            }
        }
        for group in self.offsets.groups().chain(self.pending.groups()) {
            assert!(self.groups.contains_key(group), "offsets without a group");
        }
    }

    pub(super) fn split<'a>(
        &'a mut self,
        now: Now,
        actions: &'a mut Actions,
    ) -> (Context<'a>, &'a mut BTreeMap<Arc<str>, Group>, &'a mut Offsets) {
        let context = Context {
            now,
            config: &self.config,
            group_settings: &self.group_settings,
            topics: &self.topics,
            topics_version: self.topics_version,
            timers: &mut self.timers,
            writes: &mut self.writes,
            random: &*self.random,
            actions,
            leaving: None,
        };
        (context, &mut self.groups, &mut self.offsets)
    }
}
