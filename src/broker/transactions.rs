//! Runs the transaction coordinator: requests go in, writes go to the catalog, markers to the logs and the groups, answers
//! come out, deadlines are kept.
//!
//! The coordinator itself is a state machine without clocks or I/O. It sits behind one lock, which is never held over a
//! wait or over a call into a log or the groups; those may call [`Transactions::is_open`] under their own locks.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;

use super::groups::{Groups, now};
use super::state_topics::StateTopics;
use super::topics::{self, LEADER_EPOCH};
use crate::coordinator::transactions::{
    Action, Actions, AddRequest, Config, Error, Failed, Markers, OFFSETS_TOPIC, Place, Producer, Reply,
    TransactionCoordinator, Version, Write,
};
use crate::coordinator::{self, Now, Token};
use crate::protocol::ErrorCode;
use crate::storage::catalog::{CatalogError, Mutation};
use crate::storage::log::{AppendError, EndMarker, PartitionLog, SyncError};
use crate::storage::store::Store;
use crate::sys::Env;

/// The epoch of the coordinator in markers. It has never been another node.
const COORDINATOR_EPOCH: i32 = 0;

const PATIENCE_AT_STOP: Duration = Duration::from_secs(5);

/// The transactions of the broker. Shared between threads.
#[derive(Debug)]
pub struct Transactions {
    env: Env,
    store: Arc<Store>,
    groups: Arc<Groups>,
    copies: Arc<StateTopics>,
    runtime: Handle,
    /// `offsets.topic.num.partitions`: how many partitions stand for the offsets of groups.
    offsets_partitions: i32,
    state: Mutex<State>,
    /// Told when the next deadline may have changed.
    deadline_changed: Notify,
    /// Told when something that was under way may have ended.
    changed: Notify,
    /// How many ends of transactions are being written.
    ending: watch::Sender<usize>,
    /// From here on no end is begun to be written: that is left to the next start.
    stopping: AtomicBool,
}

#[derive(Debug)]
struct State {
    coordinator: TransactionCoordinator,
    waiting: HashMap<Token, oneshot::Sender<Reply>>,
    next_token: Token,
}

impl Transactions {
    /// The transactional ids as the catalog has them. One whose stored form cannot be read is named in the log and counts
    /// as unknown. Called inside a tokio runtime.
    pub fn open(
        env: Env,
        store: Arc<Store>,
        groups: Arc<Groups>,
        copies: Arc<StateTopics>,
        config: Config,
        offsets_partitions: i32,
    ) -> Result<Arc<Self>, CatalogError> {
        let mut coordinator = TransactionCoordinator::new(config, now(&env));
        let mut actions = Actions::new();
        for (id, bytes) in store.catalog().transactional_ids()? {
            match coordinator.restore(&id, &bytes) {
                Ok(more) => actions.extend(more),
                Err(error) => tracing::error!("a transactional id counts as unknown: {error}"),
            }
        }
        let state = State { coordinator, waiting: HashMap::new(), next_token: 0 };
        let transactions = Arc::new(Transactions {
            env,
            store,
            groups,
            copies,
            runtime: Handle::current(),
            offsets_partitions,
            state: Mutex::new(state),
            deadline_changed: Notify::new(),
            changed: Notify::new(),
            ending: watch::Sender::new(0),
            stopping: AtomicBool::new(false),
        });
        transactions.carry_out(actions);
        Ok(transactions)
    }

    /// What counts from here on.
    pub fn configure(&self, config: Config) {
        self.state.lock().coordinator.configure(config);
    }

    /// Puts a request to the coordinator and waits for its answer. `None` if the broker stops first.
    pub async fn ask(
        self: &Arc<Self>,
        request: impl FnOnce(&mut TransactionCoordinator, Now, Token) -> Actions,
    ) -> Option<Reply> {
        let (sender, answer) = oneshot::channel();
        let actions = {
            let mut state = self.state.lock();
            let token = state.next_token;
            state.next_token += 1;
            state.waiting.insert(token, sender);
            request(&mut state.coordinator, now(&self.env), token)
        };
        self.carry_out(actions);
        answer.await.ok()
    }

    /// Looks at the coordinator.
    pub fn with<T>(&self, look: impl FnOnce(&TransactionCoordinator, Now) -> T) -> T {
        look(&self.state.lock().coordinator, now(&self.env))
    }

    /// Adds partitions to a transaction. While the end of the one before is being written, this waits for it, so that the
    /// client need not try again with all it has sent; but not for longer than `patience`.
    pub async fn add_soon(self: &Arc<Self>, request: AddRequest, patience: Duration) -> Result<(), Error> {
        let deadline = Instant::now() + patience;
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed.
            changed.as_mut().enable();
            let reply = self.ask(|coordinator, now, token| coordinator.add(now, token, &request)).await;
            match reply {
                Some(Reply::Add(Err(Error::ConcurrentTransactions))) if Instant::now() < deadline => {}
                Some(Reply::Add(result)) => return result,
                _ => return Err(Error::NotCoordinator),
            }
            tokio::select! {
                biased;
                () = changed => {}
                () = tokio::time::sleep_until(deadline) => {}
            }
        }
    }

    /// Whether all of the partitions are part of the transaction that the producer has open. May be called under the locks
    /// of logs and groups.
    pub fn is_open(&self, transactional_id: &str, producer: Producer, places: &BTreeSet<Place>) -> bool {
        self.state.lock().coordinator.is_open(transactional_id, producer, places)
    }

    /// What stands for the offsets of a group in a transaction: the partition that Kafka would keep them in.
    pub fn offsets_place(&self, group: &str) -> Place {
        (OFFSETS_TOPIC.into(), partition_of_name(group, self.offsets_partitions.max(1)))
    }

    /// The logs are about to be closed: waits for the ends of transactions that are being written, but not for long. What
    /// is left is for the next start.
    pub async fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        let mut ending = self.ending.subscribe();
        // The sender is our own, so the only other outcome is the time that is up.
        let _ = tokio::time::timeout(PATIENCE_AT_STOP, ending.wait_for(|n| *n == 0)).await;
    }

    /// Keeps the coordinator's deadlines until the task that runs this is ended.
    pub async fn keep_time(self: Arc<Self>) {
        loop {
            let next = self.state.lock().coordinator.next_deadline();
            let until = next.saturating_sub(self.env.clock.monotonic());
            tokio::select! {
                biased;
                () = self.deadline_changed.notified() => continue,
                () = tokio::time::sleep(until) => {}
            }
            self.act(|coordinator, now| coordinator.tick(now));
        }
    }

    fn act(self: &Arc<Self>, change: impl FnOnce(&mut TransactionCoordinator, Now) -> Actions) {
        let actions = change(&mut self.state.lock().coordinator, now(&self.env));
        self.carry_out(actions);
        // Not after a request: one that is put off would wake itself, and whoever else waits, again and again.
        self.changed.notify_waiters();
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
                Action::NewProducerId { transactional_id } => self.new_producer_id(transactional_id),
                Action::WriteMarkers(markers) => {
                    self.runtime.spawn(self.clone().end_transaction(markers));
                }
            }
        }
        self.deadline_changed.notify_one();
    }

    fn persist(self: &Arc<Self>, write: Write) {
        let Write { transactional_id: id, value } = write;
        let mutation = match &value {
            Some(value) => Mutation::PutTransactionalId { id: id.clone(), value: value.to_vec() },
            None => Mutation::DeleteTransactionalId { id: id.clone() },
        };
        let this = self.clone();
        let done = move |result: Result<(), CatalogError>| {
            let result = result.map_err(|error| {
                tracing::error!(transactional_id = %id, "a change of the transaction could not be stored: {error}");
                Failed
            });
            if result.is_ok() {
                this.copies.transaction_changed(&id, value);
            }
            this.act(|coordinator, now| coordinator.persisted(now, &id, result));
        };
        self.store.catalog().commit(vec![mutation], Box::new(done));
    }

    fn new_producer_id(self: &Arc<Self>, id: Arc<str>) {
        let this = self.clone();
        let done = move |result: Result<i64, CatalogError>| {
            let result = result.map_err(|error| {
                tracing::error!(transactional_id = %id, "no producer id can be given: {error}");
                Failed
            });
            this.act(|coordinator, now| coordinator.producer_id(now, &id, result));
        };
        self.store.catalog().producer_id(Box::new(done));
    }

    async fn end_transaction(self: Arc<Self>, markers: Markers) {
        if self.stopping.load(Ordering::Relaxed) {
            return;
        }
        self.ending.send_modify(|n| *n += 1);
        let result = self.write_markers(&markers).await;
        self.act(|coordinator, now| coordinator.markers_written(now, &markers.transactional_id, result));
        self.ending.send_modify(|n| *n -= 1);
    }

    async fn write_markers(&self, markers: &Markers) -> Result<(), Failed> {
        let marker = EndMarker {
            producer_id: markers.producer.id,
            producer_epoch: markers.producer.epoch,
            committed: markers.committed,
            coordinator_epoch: COORDINATOR_EPOCH,
            transaction_version: match markers.version {
                Version::V1 => 1,
                Version::V2 => 2,
            },
        };
        let mut result = Ok(());
        let mut flushes = vec![];
        // What stands for the offsets of groups has no log to write to.
        for (topic, partition) in markers.places.iter().filter(|(topic, _)| &**topic != OFFSETS_TOPIC) {
            match self.append_marker(topic, *partition, marker).await {
                Ok(Some((log, flushed))) => flushes.push((log, flushed)),
                Ok(None) => {}
                Err(error) => {
                    let id = &markers.transactional_id;
                    tracing::error!(transactional_id = %id, %topic, partition, "a transaction's end is not written: {error}");
                    result = Err(Failed);
                }
            }
        }
        // The groups whose offsets it commits, beside the flushes of the logs.
        let id = &markers.transactional_id;
        match self.end_in_groups(markers.producer, markers.version, markers.committed).await {
            Ok(()) => {}
            // A later epoch has been here, so this transaction is long over.
            Err(error @ coordinator::Error::InvalidProducerEpoch) => {
                tracing::warn!(transactional_id = %id, "passing over groups at the end of a transaction: {error}");
            }
            Err(error) => {
                tracing::error!(transactional_id = %id, "a transaction's end has not reached all groups: {error}");
                result = Err(Failed);
            }
        }
        for (log, flushed) in flushes {
            let flushed = flushed.await.unwrap_or(Err(SyncError::Closed));
            match flushed {
                Ok(()) => {}
                // The topic was deleted meanwhile.
                Err(SyncError::Closed) if self.store.topics().by_name(log.topic()).is_none() => {}
                Err(error) => {
                    let (topic, partition) = (log.topic(), log.partition());
                    tracing::error!(topic, partition, "a transaction's end is not on the disk: {error}");
                    result = Err(Failed);
                }
            }
        }
        result
    }

    /// Writes a marker to a partition and starts to flush it. `None` where there is nothing to end.
    async fn append_marker(
        &self,
        topic: &str,
        partition: i32,
        marker: EndMarker,
    ) -> Result<Option<(Arc<PartitionLog>, oneshot::Receiver<Result<(), SyncError>>)>, String> {
        let known = self.store.topics().by_name(topic).cloned();
        let Some(known) = known.filter(|topic| (0..topic.partitions).contains(&partition)) else { return Ok(None) };
        let log = match topics::open_log(&self.env, &self.store, known.id, partition).await {
            Ok(log) => log,
            Err(_) if self.store.topics().by_id(known.id).is_none() => return Ok(None),
            Err(error) => return Err(format!("the partition cannot be opened ({})", error.name())),
        };
        match log.append_end_txn_marker(marker, LEADER_EPOCH) {
            Ok(_) => {
                let (sender, flushed) = oneshot::channel();
                log.sync(Box::new(move |result| drop(sender.send(result))));
                Ok(Some((log, flushed)))
            }
            // A later epoch has been here, so this transaction is long over.
            Err(error @ (AppendError::InvalidProducerEpoch { .. } | AppendError::CoordinatorFenced { .. })) => {
                tracing::warn!(topic, partition, "passing over a partition at the end of a transaction: {error}");
                Ok(None)
            }
            Err(AppendError::Closed) if self.store.topics().by_id(known.id).is_none() => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Commits or drops what a producer's transaction has pending in groups.
    pub async fn end_in_groups(
        &self,
        producer: Producer,
        version: Version,
        committed: bool,
    ) -> Result<(), coordinator::Error> {
        let end = |groups: &mut coordinator::GroupCoordinator, now, token| {
            groups.end_transaction(now, token, producer, version, committed)
        };
        match self.groups.ask(end).await {
            Some(coordinator::Reply::TransactionEnded(result)) => result,
            _ => Err(coordinator::Error::NotCoordinator),
        }
    }
}

/// The partition of a coordinator's topic that Kafka keeps something of this name in: by Java's hash of it.
pub fn partition_of_name(name: &str, partitions: i32) -> i32 {
    let hash = name.encode_utf16().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(unit.into()));
    hash.checked_abs().unwrap_or(0) % partitions
}

/// The code of a refusal on the wire.
pub fn error_code(error: Error) -> ErrorCode {
    match error {
        Error::NotCoordinator => ErrorCode::NotCoordinator,
        Error::ConcurrentTransactions => ErrorCode::ConcurrentTransactions,
        Error::ProducerFenced => ErrorCode::ProducerFenced,
        Error::InvalidProducerIdMapping => ErrorCode::InvalidProducerIdMapping,
        Error::InvalidTxnState => ErrorCode::InvalidTxnState,
        Error::TransactionAbortable => ErrorCode::TransactionAbortable,
        Error::InvalidRequest => ErrorCode::InvalidRequest,
        Error::InvalidTransactionTimeout => ErrorCode::InvalidTransactionTimeout,
        Error::TwoPhaseCommitDisabled => ErrorCode::TransactionalIdAuthorizationFailed,
        Error::CannotKeepPrepared => ErrorCode::UnsupportedVersion,
        Error::TransactionalIdNotFound => ErrorCode::TransactionalIdNotFound,
        Error::EpochsExhausted => ErrorCode::UnknownServerError,
    }
}

/// The same, for clients of versions before PRODUCER_FENCED was made up.
pub fn error_code_before_fencing(error: Error) -> ErrorCode {
    match error_code(error) {
        ErrorCode::ProducerFenced => ErrorCode::InvalidProducerEpoch,
        code => code,
    }
}

/// The code of a result on the wire.
pub fn code_of<T>(result: Result<T, ErrorCode>) -> i16 {
    result.err().unwrap_or(ErrorCode::None).code()
}

/// What a client that appends is told, by what its version knows of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knows {
    /// The partition has to be part of the transaction; INVALID_TXN_STATE if it is not.
    InvalidTxnState,
    /// The same, and TRANSACTION_ABORTABLE.
    Abortable,
    /// The partition becomes part of the transaction (KIP-890 part 2).
    Adding,
}

impl Knows {
    /// The code for a partition that did not become, or is not, part of a transaction.
    pub fn code(self, error: Error) -> ErrorCode {
        match error_code_before_fencing(error) {
            ErrorCode::TransactionAbortable if self == Knows::InvalidTxnState => ErrorCode::InvalidTxnState,
            code => code,
        }
    }
}

impl Transactions {
    /// Sees to it that partitions are part of the transaction that a producer has open: adds them, or looks. Gives those
    /// that are not, with why.
    pub async fn take_part(
        self: &Arc<Self>,
        transactional_id: &str,
        producer: Producer,
        places: BTreeSet<Place>,
        knows: Knows,
        patience: Duration,
    ) -> HashMap<Place, ErrorCode> {
        let result = match knows {
            Knows::Adding => {
                let request = AddRequest {
                    transactional_id: transactional_id.to_owned(),
                    producer,
                    places: places.clone(),
                    version: Version::V2,
                };
                self.add_soon(request, patience).await.map(|()| vec![])
            }
            Knows::InvalidTxnState | Knows::Abortable => {
                self.with(|coordinator, _| coordinator.verify(transactional_id, producer, &places))
            }
        };
        match result {
            Err(error) => places.into_iter().map(|place| (place, knows.code(error))).collect(),
            Ok(parts) => {
                let refused = places.into_iter().zip(parts);
                refused.filter_map(|(place, part)| Some((place, knows.code(part.err()?)))).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_spread_as_kafka_spreads_them() {
        // The last one is the text whose hash in Java is -2147483648, which has no absolute value.
        for (group, partition) in [("", 0), ("g", 3), ("abc", 4), ("polygenelubricants", 0)] {
            assert_eq!(partition_of_name(group, 50), partition, "{group}");
        }
    }
}
