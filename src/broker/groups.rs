//! Runs the group coordinator: requests go in, writes go to the catalog, answers come out, deadlines are kept.
//!
//! The coordinator itself is a state machine without clocks or I/O. It sits behind one lock, which is never held over a
//! wait. An answer that has to wait, for other members or for a write to be durable, is a channel kept under its token.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};

use super::state_topics::StateTopics;
use crate::coordinator::{
    Action, Actions, Change, CommittedOffset, Config, Error, GroupCoordinator, GroupSettings, Now, PendingOffset,
    PendingOffsetKey, Reply, SharePartitionKey, Token, TopicMetadata, Write, WriteFailed,
};
use crate::protocol::ErrorCode;
use crate::storage::catalog::{self, Mutation, Topics};
use crate::storage::store::Store;
use crate::sys::Env;

/// The groups of the broker. Shared between threads.
#[derive(Debug)]
pub struct Groups {
    env: Env,
    store: Arc<Store>,
    copies: Arc<StateTopics>,
    state: Mutex<State>,
    /// Told when the next deadline may have changed.
    deadline_changed: Notify,
}

#[derive(Debug)]
struct State {
    coordinator: GroupCoordinator,
    waiting: HashMap<Token, oneshot::Sender<Reply>>,
    next_token: Token,
    /// Nothing waits for other members any more.
    stopping: bool,
    /// The topics that the coordinator knows.
    topics: Arc<Topics>,
}

impl Groups {
    /// The groups as the catalog has them. A group whose stored form cannot be read is named in the log and starts empty.
    pub fn open(
        env: Env,
        store: Arc<Store>,
        copies: Arc<StateTopics>,
        config: Config,
    ) -> Result<Arc<Self>, catalog::CatalogError> {
        let (now, catalog) = (now(&env), store.catalog());
        let mut coordinator = GroupCoordinator::new(config, env.random.clone(), now);
        let topics = store.topics();
        coordinator.set_topics(for_coordinator(&topics));
        for group in catalog.groups_with_offsets()? {
            for (topic, partition, offset) in catalog.offsets(&group)? {
                coordinator.restore_offset(now, &group, &topic, partition, from_catalog(offset));
            }
        }
        for (key, value) in catalog.states(PendingOffsetKey::SPACE)? {
            match PendingOffsetKey::from_bytes(&key).and_then(|key| Ok((key, PendingOffset::from_bytes(&value)?))) {
                Ok((key, offset)) => coordinator.restore_pending_offset(now, key, offset),
                Err(error) => {
                    tracing::error!("an offset that a transaction was to commit cannot be read and is lost: {error}");
                }
            }
        }
        for (group, bytes) in catalog.groups()? {
            if let Err(error) = coordinator.restore_group(now, &group, &bytes) {
                tracing::error!(
                    group,
                    "the stored state of the group cannot be read, so its members have to join again: {error}"
                );
            }
        }
        let actions = coordinator.tick(now);
        let state = State { coordinator, waiting: HashMap::new(), next_token: 0, stopping: false, topics };
        let groups = Arc::new(Groups { env, store, copies, state: Mutex::new(state), deadline_changed: Notify::new() });
        groups.carry_out(actions);
        Ok(groups)
    }

    /// The coordinator, which knows the topics as they are.
    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock();
        let topics = self.store.topics();
        if !Arc::ptr_eq(&topics, &state.topics) {
            state.coordinator.set_topics(for_coordinator(&topics));
            state.topics = topics;
        }
        state
    }

    /// Puts a request to the coordinator and waits for its answer. `None` if the broker stops first.
    pub async fn ask(
        self: &Arc<Self>,
        request: impl FnOnce(&mut GroupCoordinator, Now, Token) -> Actions,
    ) -> Option<Reply> {
        let (sender, answer) = oneshot::channel();
        let actions = {
            let mut state = self.state();
            let token = state.next_token;
            state.next_token += 1;
            state.waiting.insert(token, sender);
            let now = now(&self.env);
            let mut actions = request(&mut state.coordinator, now, token);
            if state.stopping {
                actions.extend(state.coordinator.shut_down(now));
            }
            actions
        };
        self.carry_out(actions);
        answer.await.ok()
    }

    /// Looks at or changes the coordinator where no answer has to wait.
    pub fn with<T>(&self, look: impl FnOnce(&mut GroupCoordinator, Now) -> T) -> T {
        look(&mut self.state().coordinator, now(&self.env))
    }

    /// Like [`with`](Self::with), for what leads to actions.
    pub fn act(self: &Arc<Self>, change: impl FnOnce(&mut GroupCoordinator, Now) -> Actions) {
        let actions = self.with(change);
        self.carry_out(actions);
    }

    /// Refuses every request that waits for other members, now and from now on, so that connections can be closed.
    pub fn stop_waiting(self: &Arc<Self>) {
        self.state.lock().stopping = true;
        self.act(|coordinator, now| coordinator.shut_down(now));
    }

    /// Puts changed settings in force, and those of every group that has some of its own.
    pub fn configure(&self, config: Config, groups: BTreeMap<Arc<str>, GroupSettings>) {
        self.with(|coordinator, _| {
            coordinator.set_config(config);
            coordinator.set_group_settings(groups);
        });
    }

    /// Keeps the coordinator's deadlines until the task that runs this is ended.
    pub async fn keep_time(self: Arc<Self>) {
        loop {
            let next = self.state.lock().coordinator.next_deadline();
            let until = next.map(|at| at.saturating_sub(self.env.clock.monotonic()));
            tokio::select! {
                biased;
                () = self.deadline_changed.notified() => continue,
                () = tokio::time::sleep(until.unwrap_or_default()), if until.is_some() => {}
            }
            self.act(|coordinator, now| coordinator.tick(now));
        }
    }

    fn carry_out(self: &Arc<Self>, actions: Actions) {
        for action in actions {
            match action {
                Action::Reply { token, reply } => {
                    if let Some(waiting) = self.state.lock().waiting.remove(&token) {
                        // Whoever asked may have gone.
                        let _ = waiting.send(reply);
                    }
                }
                Action::Persist(write) => self.persist(write),
            }
        }
        self.deadline_changed.notify_one();
    }

    fn persist(self: &Arc<Self>, write: Write) {
        let Write { id, group, changes } = write;
        let topics = self.store.topics();
        let to_copy = self.copies.of_interest(&changes);
        let mutations = changes.into_iter().map(|change| match change {
            Change::PutGroup(bytes) => Mutation::PutGroup { group: group.clone(), value: bytes.to_vec() },
            Change::RemoveGroup => Mutation::DeleteGroup { group: group.clone() },
            Change::PutOffset { topic, partition, offset } => {
                let topic_id = topics.by_name(&topic).map(|topic| topic.id).unwrap_or_default();
                let offset = to_catalog(offset, topic_id);
                Mutation::CommitOffset { group: group.clone(), topic, partition, offset }
            }
            Change::RemoveOffset { topic, partition } => {
                Mutation::DeleteOffset { group: group.clone(), topic, partition }
            }
            Change::PutPendingOffset { producer_id, topic, partition, offset } => {
                let key = PendingOffsetKey { producer_id, group: group.clone(), topic, partition };
                set_pending(&key, Some(offset.to_bytes()))
            }
            Change::RemovePendingOffset { producer_id, topic, partition } => {
                set_pending(&PendingOffsetKey { producer_id, group: group.clone(), topic, partition }, None)
            }
            Change::PutSharePartition { topic, partition, value } => {
                set_share_partition(&SharePartitionKey::new(group.clone(), topic, partition), Some(value.to_vec()))
            }
            Change::RemoveSharePartition { topic, partition } => {
                set_share_partition(&SharePartitionKey::new(group.clone(), topic, partition), None)
            }
        });
        let this = self.clone();
        let name = group.clone();
        let done = move |result: Result<(), catalog::CatalogError>| {
            let result = result.map_err(|error| {
                tracing::error!(group = %name, "a change of the group could not be stored: {error}");
                WriteFailed
            });
            if result.is_ok() {
                this.copies.group_changed(&name, to_copy);
            }
            this.act(|coordinator, now| coordinator.persisted(now, id, result));
        };
        self.store.catalog().commit(mutations.collect(), Box::new(done));
    }
}

pub(super) fn set_share_partition(key: &SharePartitionKey, value: Option<Vec<u8>>) -> Mutation {
    Mutation::SetState { space: SharePartitionKey::SPACE, key: key.to_bytes(), value }
}

fn set_pending(key: &PendingOffsetKey, value: Option<Vec<u8>>) -> Mutation {
    Mutation::SetState { space: PendingOffsetKey::SPACE, key: key.to_bytes(), value }
}

fn for_coordinator(topics: &Topics) -> crate::coordinator::Topics {
    let metadata = |topic: &Arc<catalog::Topic>| TopicMetadata {
        name: topic.name.clone(),
        id: topic.id,
        partitions: topic.partitions,
    };
    topics.iter().map(metadata).collect()
}

pub(super) fn now(env: &Env) -> Now {
    Now { monotonic: env.clock.monotonic(), wall_ms: env.clock.now_ms() }
}

fn to_catalog(offset: CommittedOffset, topic_id: crate::protocol::Uuid) -> catalog::CommittedOffset {
    catalog::CommittedOffset {
        offset: offset.offset,
        leader_epoch: offset.leader_epoch,
        metadata: offset.metadata,
        commit_timestamp_ms: offset.commit_timestamp_ms,
        expire_timestamp_ms: offset.expire_timestamp_ms,
        topic_id,
    }
}

pub(super) fn from_catalog(offset: catalog::CommittedOffset) -> CommittedOffset {
    CommittedOffset {
        offset: offset.offset,
        leader_epoch: offset.leader_epoch,
        metadata: offset.metadata,
        commit_timestamp_ms: offset.commit_timestamp_ms,
        expire_timestamp_ms: offset.expire_timestamp_ms,
    }
}

/// The code of a refusal on the wire.
pub fn error_code(error: Error) -> ErrorCode {
    match error {
        Error::CoordinatorNotAvailable => ErrorCode::CoordinatorNotAvailable,
        Error::NotCoordinator => ErrorCode::NotCoordinator,
        Error::InvalidGroupId => ErrorCode::InvalidGroupId,
        Error::GroupIdNotFound => ErrorCode::GroupIdNotFound,
        Error::NonEmptyGroup => ErrorCode::NonEmptyGroup,
        Error::GroupMaxSizeReached => ErrorCode::GroupMaxSizeReached,
        Error::GroupSubscribedToTopic => ErrorCode::GroupSubscribedToTopic,
        Error::InconsistentGroupProtocol => ErrorCode::InconsistentGroupProtocol,
        Error::InvalidSessionTimeout => ErrorCode::InvalidSessionTimeout,
        Error::MemberIdRequired => ErrorCode::MemberIdRequired,
        Error::UnknownMemberId => ErrorCode::UnknownMemberId,
        Error::FencedInstanceId => ErrorCode::FencedInstanceId,
        Error::IllegalGeneration => ErrorCode::IllegalGeneration,
        Error::RebalanceInProgress => ErrorCode::RebalanceInProgress,
        Error::InvalidProducerEpoch => ErrorCode::InvalidProducerEpoch,
        Error::TransactionOver => ErrorCode::InvalidTxnState,
        Error::UnstableOffsetCommit => ErrorCode::UnstableOffsetCommit,
        Error::OffsetMetadataTooLarge => ErrorCode::OffsetMetadataTooLarge,
        Error::InvalidRequest => ErrorCode::InvalidRequest,
        Error::UnsupportedVersion => ErrorCode::UnsupportedVersion,
        Error::FencedMemberEpoch => ErrorCode::FencedMemberEpoch,
        Error::StaleMemberEpoch => ErrorCode::StaleMemberEpoch,
        Error::UnreleasedInstanceId => ErrorCode::UnreleasedInstanceId,
        Error::UnsupportedAssignor => ErrorCode::UnsupportedAssignor,
        Error::InvalidRegularExpression => ErrorCode::InvalidRegularExpression,
        Error::StreamsInvalidTopology => ErrorCode::StreamsInvalidTopology,
        Error::UnknownServerError => ErrorCode::UnknownServerError,
    }
}

/// The code of an outcome on the wire.
pub fn outcome_code(outcome: Result<(), Error>) -> i16 {
    outcome.err().map_or(ErrorCode::None, error_code).code()
}
