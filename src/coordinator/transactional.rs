//! TxnOffsetCommit and what a transaction's end does to the offsets that it commits.
//!
//! A pending offset is durable before it is acknowledged. When the transaction ends, the pending offsets of each of its
//! groups become committed ones, or go, in one write a group: after a power cut a group has all of them or still none, and
//! the coordinator of the transaction asks again until every group has ended it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::api::{Action, Actions, Change, CommitRequest, Now, Reply, Token};
use super::error::Error;
use super::group::Group;
use super::groups::GroupCoordinator;
use super::offsets::CommittedOffset;
use super::pending::{PendingOffset, PendingOffsetKey};
use super::transactions::{Producer, Version};
use super::writes::Purpose;

/// An end of a transaction that some groups have not carried out yet.
#[derive(Debug)]
pub(super) struct Ending {
    groups_left: usize,
    failed: bool,
}

impl GroupCoordinator {
    /// Takes in what [`Change::PutPendingOffset`] stored.
    pub fn restore_pending_offset(&mut self, now: Now, key: PendingOffsetKey, pending: PendingOffset) {
        let PendingOffsetKey { producer_id, group: id, topic, partition } = key;
        self.pending.put(&id, producer_id, topic, partition, pending.offset);
        self.know_epoch(Producer { id: producer_id, epoch: pending.producer_epoch });
        self.groups.entry(id.clone()).or_insert_with(|| Group::simple(id, now.wall_ms));
    }

    fn know_epoch(&mut self, producer: Producer) {
        let known = self.pending_epochs.entry(producer.id).or_insert(producer.epoch);
        *known = producer.epoch.max(*known);
    }

    /// TxnOffsetCommit, by a producer whose transaction is known to be open. Answered with [`Reply::Commit`], when the
    /// offsets are durable as pending ones.
    pub fn commit_in_transaction(
        &mut self,
        now: Now,
        token: Token,
        producer: Producer,
        request: CommitRequest,
    ) -> Actions {
        let mut actions = Actions::new();
        let checked = match request.group_id.is_empty() {
            true => Err(Error::InvalidGroupId),
            false => self.check_transactional_commit(&request),
        };
        if let Err(error) = checked {
            return vec![Action::Reply { token, reply: Reply::Commit(Err(error)) }];
        }
        let (outcomes, offsets) = self.checked_offsets(now, &request.group_id, request.topics, None);
        if offsets.is_empty() {
            return vec![Action::Reply { token, reply: Reply::Commit(Ok(outcomes)) }];
        }
        self.know_epoch(producer);
        let (producer_id, producer_epoch) = (producer.id, producer.epoch);
        let change = |(topic, partition, offset): &(Arc<str>, i32, CommittedOffset)| Change::PutPendingOffset {
            producer_id,
            topic: topic.clone(),
            partition: *partition,
            offset: PendingOffset { producer_epoch, offset: offset.clone() },
        };
        let changes = offsets.iter().map(change).collect();
        let purpose = Purpose::CommitPending { token, outcomes, producer_id, offsets };
        self.split(now, &mut actions).0.persist(&request.group_id.into(), changes, purpose);
        actions
    }

    fn check_transactional_commit(&self, request: &CommitRequest) -> Result<(), Error> {
        match self.groups.get(request.group_id.as_str()) {
            Some(Group::Classic(group)) => group.check_transactional_commit(
                &request.member_id,
                request.group_instance_id.as_deref(),
                request.generation_id,
            ),
            Some(Group::Consumer(group)) => {
                group.check_transactional_commit(request, &self.topics).map_err(as_generation)
            }
            Some(Group::Streams(group)) => group.check_transactional_commit(request).map_err(as_generation),
            Some(Group::Share(_)) => Err(Error::IllegalGeneration),
            None if request.generation_id < 0 => Ok(()),
            None => Err(Error::IllegalGeneration),
        }
    }

    /// A transaction has ended. Answered with [`Reply::TransactionEnded`], when that is durable in every group that it
    /// commits offsets of. One that came late, after the transaction that is open, is refused.
    pub fn end_transaction(
        &mut self,
        now: Now,
        token: Token,
        producer: Producer,
        version: Version,
        committed: bool,
    ) -> Actions {
        let producer_id = producer.id;
        let is_late = |known: i16| match version {
            Version::V1 => producer.epoch < known,
            // The end has an epoch of its own.
            Version::V2 => producer.epoch <= known,
        };
        if self.pending_epochs.get(&producer_id).is_some_and(|known| is_late(*known)) {
            let reply = Reply::TransactionEnded(Err(Error::InvalidProducerEpoch));
            return vec![Action::Reply { token, reply }];
        }
        self.pending_epochs.remove(&producer_id);
        let durable = self.pending.groups_of(producer_id);
        let groups: BTreeSet<Arc<str>> = durable.chain(self.writes.groups_committing(producer_id)).cloned().collect();
        if groups.is_empty() {
            return vec![Action::Reply { token, reply: Reply::TransactionEnded(Ok(())) }];
        }
        let mut actions = Actions::new();
        self.endings.insert(token, Ending { groups_left: groups.len(), failed: false });
        for group in groups {
            // What is on its way to the disk counts as well, so it has to arrive first.
            if self.writes.busy(&group) {
                self.writes.wait(&group, Purpose::EndTransaction { token, producer_id, committed });
            } else {
                self.end_in_group(now, &group, token, producer_id, committed, &mut actions);
            }
        }
        actions
    }

    pub(super) fn end_in_group(
        &mut self,
        now: Now,
        id: &Arc<str>,
        token: Token,
        producer_id: i64,
        committed: bool,
        actions: &mut Actions,
    ) {
        let (mut changes, mut removed, mut offsets) = (Vec::new(), Vec::new(), Vec::new());
        for (topic, partitions) in self.pending.of_producer(id, producer_id).into_iter().flatten() {
            for (&partition, offset) in partitions {
                removed.push((topic.clone(), partition));
                changes.push(Change::RemovePendingOffset { producer_id, topic: topic.clone(), partition });
                // A commit outside of the transaction that came later stays; it has a later timestamp, whatever the clock did.
                let there = self.offsets.get(id, topic, partition);
                if committed && there.is_none_or(|there| there.commit_timestamp_ms <= offset.commit_timestamp_ms) {
                    let (topic, offset) = (topic.clone(), offset.clone());
                    offsets.push((topic.clone(), partition, offset.clone()));
                    changes.push(Change::PutOffset { topic, partition, offset });
                }
            }
        }
        if changes.is_empty() {
            return self.ended_in_group(token, Ok(()), actions);
        }
        let purpose = Purpose::TransactionEnded { token, producer_id, removed, offsets };
        self.split(now, actions).0.persist(id, changes, purpose);
    }

    pub(super) fn ended_in_group(&mut self, token: Token, outcome: Result<(), Error>, actions: &mut Actions) {
        let Some(ending) = self.endings.get_mut(&token) else { return };
        ending.groups_left -= 1;
        ending.failed |= outcome.is_err();
        if ending.groups_left == 0 {
            let result = if ending.failed { Err(Error::NotCoordinator) } else { Ok(()) };
            self.endings.remove(&token);
            actions.push(Action::Reply { token, reply: Reply::TransactionEnded(result) });
        }
    }
}

/// Producers know of generations alone.
fn as_generation(error: Error) -> Error {
    if error == Error::StaleMemberEpoch { Error::IllegalGeneration } else { error }
}
