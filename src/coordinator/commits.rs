//! OffsetCommit, OffsetFetch, OffsetDelete, and what else happens to committed offsets.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::api::{
    Action, Actions, Change, CommitPartition, CommitRequest, DeleteOffsetsRequest, FetchOffsetsRequest, FetchedOffsets,
    Now, PartitionOutcomes, Reply, Token,
};
use super::error::Error;
use super::group::Group;
use super::groups::GroupCoordinator;
use super::offsets::CommittedOffset;
use super::writes::Purpose;

impl GroupCoordinator {
    /// OffsetCommit. Answered with [`Reply::Commit`], when the offsets are durable; until then nobody sees them.
    pub fn commit(&mut self, now: Now, token: Token, request: CommitRequest) -> Actions {
        let mut actions = Actions::new();
        if let Err(error) = self.check_commit(now, &request, &mut actions) {
            return vec![Action::Reply { token, reply: Reply::Commit(Err(error)) }];
        }
        let expire_timestamp_ms =
            (request.retention_time_ms != -1).then(|| now.wall_ms.saturating_add(request.retention_time_ms));
        let (outcomes, offsets) = self.checked_offsets(now, &request.group_id, request.topics, expire_timestamp_ms);
        if offsets.is_empty() {
            actions.push(Action::Reply { token, reply: Reply::Commit(Ok(outcomes)) });
            return actions;
        }
        let changes = offsets
            .iter()
            .map(|(topic, partition, offset)| Change::PutOffset {
                topic: topic.clone(),
                partition: *partition,
                offset: offset.clone(),
            })
            .collect();
        let id: Arc<str> = request.group_id.into();
        self.split(now, &mut actions).0.persist(&id, changes, Purpose::Commit { token, outcomes, offsets });
        actions
    }

    /// The offsets of a commit that may be stored, and how it goes with each partition if they are.
    pub(super) fn checked_offsets(
        &self,
        now: Now,
        group: &str,
        topics: Vec<(String, Vec<CommitPartition>)>,
        expire_timestamp_ms: Option<i64>,
    ) -> (PartitionOutcomes, Vec<(Arc<str>, i32, CommittedOffset)>) {
        let mut outcomes = Vec::with_capacity(topics.len());
        let mut offsets = Vec::new();
        for (topic, partitions) in topics {
            let name: Arc<str> = topic.as_str().into();
            let mut results = Vec::with_capacity(partitions.len());
            for commit in partitions {
                let metadata = commit.metadata.unwrap_or_default();
                if self.is_too_long(&metadata) {
                    results.push((commit.partition, Err(Error::OffsetMetadataTooLarge)));
                    continue;
                }
                let commit_timestamp_ms = match commit.timestamp_ms {
                    -1 => now.wall_ms.max(self.least_commit_ms(group, &topic, commit.partition)),
                    given => given,
                };
                let offset = CommittedOffset {
                    offset: commit.offset,
                    leader_epoch: commit.leader_epoch.max(-1),
                    metadata,
                    commit_timestamp_ms,
                    expire_timestamp_ms,
                };
                offsets.push((name.clone(), commit.partition, offset));
                results.push((commit.partition, Ok(())));
            }
            outcomes.push((topic, results));
        }
        (outcomes, offsets)
    }

    /// The least timestamp with which a commit is later than all that came before it. The end of a transaction compares them
    /// (see `end_in_group`), and the wall clock may have been set back since.
    fn least_commit_ms(&self, group: &str, topic: &str, partition: i32) -> i64 {
        let committed = self.offsets.get(group, topic, partition).map(|offset| offset.commit_timestamp_ms);
        let pending = self.pending.latest_ms(group, topic, partition).map(|latest| latest.saturating_add(1));
        committed.max(pending).unwrap_or(i64::MIN).max(self.writes.least_commit_ms(group))
    }

    fn check_commit(&mut self, now: Now, request: &CommitRequest, actions: &mut Actions) -> Result<(), Error> {
        let (mut context, groups, _) = self.split(now, actions);
        match groups.get(request.group_id.as_str()) {
            Some(Group::Classic(group)) => {
                let instance = request.group_instance_id.as_deref();
                group.check_commit(&request.member_id, instance, request.generation_id)?;
                group.has_committed(&mut context, &request.member_id);
                Ok(())
            }
            Some(Group::Consumer(group)) => group.check_commit(request, context.topics),
            Some(Group::Share(_)) if request.knows_group_id_not_found => Err(Error::GroupIdNotFound),
            Some(Group::Share(_)) => Err(Error::IllegalGeneration),
            Some(Group::Streams(group)) => group.check_commit(request),
            // A consumer that manages its partitions by itself makes its group by committing.
            None if request.generation_id < 0 => Ok(()),
            None if request.knows_group_id_not_found => Err(Error::GroupIdNotFound),
            None => Err(Error::IllegalGeneration),
        }
    }

    /// Kafka counts in UTF-16 code units, of which there are never more than bytes.
    fn is_too_long(&self, metadata: &str) -> bool {
        let limit = self.config.offset_metadata_max_size;
        metadata.len() > limit && metadata.encode_utf16().count() > limit
    }

    /// OffsetFetch, for one group. Answered with [`Reply::FetchOffsets`]: at once, or with `require_stable` when the
    /// commits that came before it have reached the disk; then partitions with pending offsets are refused. An unknown
    /// group has committed nothing.
    pub fn fetch_offsets(&mut self, token: Token, request: FetchOffsetsRequest) -> Actions {
        if request.require_stable && self.writes.busy(&request.group_id) {
            let group = request.group_id.clone();
            self.writes.wait(&group, Purpose::Read { token, request });
            return Actions::new();
        }
        vec![Action::Reply { token, reply: Reply::FetchOffsets(self.read_offsets(&request)) }]
    }

    pub(super) fn read_offsets(&self, request: &FetchOffsetsRequest) -> FetchedOffsets {
        let group = request.group_id.as_str();
        let checked = |topic: &str, partition: i32, offset: Option<&CommittedOffset>| {
            if request.require_stable && self.pending.has(group, topic, partition) {
                return (partition, Err(Error::UnstableOffsetCommit));
            }
            (partition, Ok(offset.cloned()))
        };
        match &request.topics {
            Some(topics) => topics
                .iter()
                .map(|(topic, partitions)| {
                    let read = |partition: &i32| checked(topic, *partition, self.offsets.get(group, topic, *partition));
                    (topic.clone(), partitions.iter().map(read).collect())
                })
                .collect(),
            None => self
                .offsets
                .group(group)
                .into_iter()
                .flatten()
                .map(|(topic, partitions)| {
                    let read = |(partition, offset): (&i32, &CommittedOffset)| checked(topic, *partition, Some(offset));
                    (topic.to_string(), partitions.iter().map(read).collect())
                })
                .collect(),
        }
    }

    /// OffsetDelete. Answered with [`Reply::DeleteOffsets`], when it is durable.
    pub fn delete_offsets(&mut self, now: Now, token: Token, request: DeleteOffsetsRequest) -> Actions {
        let mut actions = Actions::new();
        let refuse = |error| vec![Action::Reply { token, reply: Reply::DeleteOffsets(Err(error)) }];
        if request.group_id.is_empty() {
            return refuse(Error::InvalidGroupId);
        }
        let Some((id, group)) = self.groups.get_key_value(request.group_id.as_str()) else {
            return refuse(Error::GroupIdNotFound);
        };
        if let Err(error) = group.may_delete_offsets() {
            return refuse(error);
        }
        let id = id.clone();
        let under_way: BTreeSet<(&Arc<str>, i32)> = self.writes.committing(&id).collect();
        let mut removed = Vec::new();
        let mut outcomes = Vec::with_capacity(request.topics.len());
        for (topic, partitions) in request.topics {
            let subscribed = group.is_subscribed_to(&topic);
            let name: Arc<str> = topic.as_str().into();
            let mut results = Vec::with_capacity(partitions.len());
            for partition in partitions {
                results.push((partition, if subscribed { Err(Error::GroupSubscribedToTopic) } else { Ok(()) }));
                let known = self.offsets.get(&id, &name, partition).is_some()
                    || self.pending.has(&id, &name, partition)
                    || under_way.contains(&(&name, partition));
                if known && !subscribed {
                    removed.push((name.clone(), partition));
                }
            }
            outcomes.push((topic, results));
        }
        if removed.is_empty() {
            actions.push(Action::Reply { token, reply: Reply::DeleteOffsets(Ok(outcomes)) });
        } else {
            self.remove_offsets(now, &id, removed, Some((token, outcomes)), &mut actions);
        }
        actions
    }

    /// A topic is gone, and what groups have committed for it goes too.
    pub fn topic_deleted(&mut self, now: Now, topic: &str) -> Actions {
        let mut actions = Actions::new();
        let with_offsets = self.offsets.groups().chain(self.pending.groups());
        let groups: BTreeSet<Arc<str>> = with_offsets.chain(self.writes.groups()).cloned().collect();
        for id in groups {
            let stored = self.offsets.group(&id).and_then(|topics| topics.get_key_value(topic));
            let stored = stored.into_iter().flat_map(|(name, partitions)| partitions.keys().map(move |&p| (name, p)));
            let not_yet = self.pending.partitions(&id).chain(self.writes.committing(&id));
            let not_yet = not_yet.filter(|(name, _)| ***name == *topic);
            let places: BTreeSet<(Arc<str>, i32)> =
                stored.chain(not_yet).map(|(name, partition)| (name.clone(), partition)).collect();
            if !places.is_empty() {
                self.remove_offsets(now, &id, places.into_iter().collect(), None, &mut actions);
            }
        }
        self.forget_deleted_topics(now, &mut actions);
        actions
    }

    /// Every partition that the group has committed something for, or is about to have.
    pub(super) fn offsets_under_way_too(&self, group: &str) -> BTreeSet<(Arc<str>, i32)> {
        let stored = self.offsets.partitions(group).chain(self.pending.partitions(group));
        stored.chain(self.writes.committing(group)).map(|(topic, partition)| (topic.clone(), partition)).collect()
    }

    pub(super) fn remove_offsets(
        &mut self,
        now: Now,
        id: &Arc<str>,
        removed: Vec<(Arc<str>, i32)>,
        reply: Option<(Token, super::api::PartitionOutcomes)>,
        actions: &mut Actions,
    ) {
        let changes = self.removals(id, &removed);
        self.split(now, actions).0.persist(id, changes, Purpose::RemoveOffsets { removed, reply });
    }

    /// What removes the offsets of these partitions, and what transactions have pending for them.
    pub(super) fn removals<'a>(
        &self,
        group: &str,
        places: impl IntoIterator<Item = &'a (Arc<str>, i32)>,
    ) -> Vec<Change> {
        let mut changes = Vec::new();
        for (topic, partition) in places {
            let (topic, partition) = (topic.clone(), *partition);
            let mut producers = self.pending.producers(group, &topic, partition);
            producers.extend(self.writes.producers_committing(group, &topic, partition));
            let pending = |producer_id| Change::RemovePendingOffset { producer_id, topic: topic.clone(), partition };
            changes.extend(producers.into_iter().map(pending));
            changes.push(Change::RemoveOffset { topic, partition });
        }
        changes
    }
}
