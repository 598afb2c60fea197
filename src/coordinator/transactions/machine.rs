//! The coordinator itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error as ThisError;

use super::api::{
    Action, Actions, AddRequest, Config, EndRequest, Failed, InitRequest, Markers, Place, Producer, Reply, Version,
    Write,
};
use super::error::Error;
use super::metadata::{Metadata, State, Stop};
use crate::coordinator::stored::BadBytes;
use crate::coordinator::{Now, Token};

/// Markers that could not be written are tried again after this long, and then after twice as long each time.
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LAST_RETRY: Duration = Duration::from_secs(30);

/// The stored form of a transactional id makes no sense. The id counts as unknown.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error("what is stored of transactional id {transactional_id:?} cannot be read: {source}")]
pub struct RestoreError {
    pub transactional_id: String,
    pub source: BadBytes,
}

/// What a change is for, until it is made.
#[derive(Clone, Copy, Debug)]
enum Step {
    Init {
        token: Token,
        timeout_ms: i32,
        expected: Option<Producer>,
    },
    /// A client ends its transaction.
    End {
        token: Token,
        committed: bool,
        version: Version,
    },
    /// The coordinator aborts a transaction: for a new producer that waits, or because it took too long.
    Fence {
        token: Option<Token>,
    },
}

/// What is under way for a transactional id.
#[derive(Debug)]
enum Pending {
    ProducerId(Step),
    /// A write of this; `None` is the removal.
    Write {
        next: Option<Metadata>,
        reply: Option<(Token, Reply)>,
    },
    /// Markers are being written, or wait to be tried again.
    Markers {
        failures: u32,
        retry_at: Option<Duration>,
    },
}

#[derive(Debug, Default)]
struct Entry {
    /// What is durable. `None` for an id that is about to be stored for the first time.
    current: Option<Metadata>,
    pending: Option<Pending>,
}

/// All transactional ids.
///
/// To be held behind one lock: calls are quick and never wait. Each takes the time of the event and gives the [`Actions`]
/// to carry out, in order. Times never go back from one call to the next.
#[derive(Debug)]
pub struct TransactionCoordinator {
    config: Config,
    entries: BTreeMap<Arc<str>, Entry>,
    retries: BTreeSet<(Duration, Arc<str>)>,
    next_abort: Duration,
    next_expiry: Duration,
}

impl TransactionCoordinator {
    /// Without transactional ids; what is stored comes in through [`restore`](Self::restore) before the first request.
    pub fn new(config: Config, now: Now) -> Self {
        TransactionCoordinator {
            config,
            entries: BTreeMap::new(),
            retries: BTreeSet::new(),
            next_abort: now.monotonic + Duration::from_millis(config.abort_interval_ms.max(1)),
            next_expiry: now.monotonic + Duration::from_millis(config.expiry_interval_ms.max(1)),
        }
    }

    /// What counts from here on.
    pub fn configure(&mut self, config: Config) {
        self.config = config;
    }

    /// Takes in what a [`Write`] stored. The markers of a transaction whose end was decided are written again.
    pub fn restore(&mut self, transactional_id: &str, bytes: &[u8]) -> Result<Actions, RestoreError> {
        let metadata = Metadata::from_bytes(bytes)
            .map_err(|source| RestoreError { transactional_id: transactional_id.into(), source })?;
        let id: Arc<str> = transactional_id.into();
        let mut actions = Actions::new();
        let pending = metadata.state.is_prepared().then(|| {
            actions.push(Action::WriteMarkers(markers(&id, &metadata)));
            Pending::Markers { failures: 0, retry_at: None }
        });
        self.entries.insert(id, Entry { current: Some(metadata), pending });
        Ok(actions)
    }

    /// InitProducerId. Answered with [`Reply::Init`], when the producer's epoch is durable.
    pub fn init_producer_id(&mut self, now: Now, token: Token, request: InitRequest) -> Actions {
        let mut actions = Actions::new();
        let id: Arc<str> = request.transactional_id.as_str().into();
        match self.check_init(&request) {
            Err(error) => actions.push(refuse(Reply::Init, token, error)),
            Ok(step) => {
                self.entries.entry(id.clone()).or_default();
                let step = step(token);
                self.take_step(now, &id, step, None, &mut actions);
            }
        }
        actions
    }

    fn check_init(&self, request: &InitRequest) -> Result<impl FnOnce(Token) -> Step + use<>, Error> {
        if request.transactional_id.is_empty() {
            return Err(Error::InvalidRequest);
        }
        if request.two_phase_commit && !self.config.two_phase_commit {
            return Err(Error::TwoPhaseCommitDisabled);
        }
        if request.keep_prepared {
            return Err(Error::CannotKeepPrepared);
        }
        if !request.two_phase_commit && !(1..=self.config.max_timeout_ms).contains(&request.timeout_ms) {
            return Err(Error::InvalidTransactionTimeout);
        }
        let timeout_ms = if request.two_phase_commit { i32::MAX } else { request.timeout_ms };
        let expected = request.expected;
        let mut fence = false;
        if let Some(entry) = self.entries.get(request.transactional_id.as_str()) {
            let (None, Some(current)) = (&entry.pending, &entry.current) else {
                return Err(Error::ConcurrentTransactions);
            };
            if expected.is_some_and(|expected| !current.may_be(expected)) {
                return Err(Error::ProducerFenced);
            }
            fence = current.state == State::Ongoing;
        }
        Ok(move |token| match fence {
            true => Step::Fence { token: Some(token) },
            false => Step::Init { token, timeout_ms, expected },
        })
    }

    /// Partitions become part of a transaction. Answered with [`Reply::Add`], when that is durable.
    pub fn add(&mut self, now: Now, token: Token, request: &AddRequest) -> Actions {
        match self.check_add(request) {
            Err(error) => vec![refuse(Reply::Add, token, error)],
            Ok((_, current))
                if current.state == State::Ongoing && request.places.iter().all(|p| current.places.contains(p)) =>
            {
                vec![Action::Reply { token, reply: Reply::Add(Ok(())) }]
            }
            Ok((id, current)) => {
                let next = current.add(&request.places, request.version, now.wall_ms);
                let id = id.clone();
                vec![self.write(&id, Some(next), Some((token, Reply::Add(Ok(())))))]
            }
        }
    }

    fn check_add(&self, request: &AddRequest) -> Result<(&Arc<str>, &Metadata), Error> {
        let (id, entry) = self.find(&request.transactional_id)?;
        // First of all: what is under way may lead to the producer id that the client knows already.
        let (None, Some(current)) = (&entry.pending, &entry.current) else {
            return Err(Error::ConcurrentTransactions);
        };
        check_producer(current, request.producer)?;
        Ok((id, current))
    }

    /// Whether each of the partitions is part of the transaction that the producer has open.
    pub fn verify(
        &self,
        transactional_id: &str,
        producer: Producer,
        places: &BTreeSet<Place>,
    ) -> Result<Vec<Result<(), Error>>, Error> {
        let (_, entry) = self.find(transactional_id)?;
        let current = entry.current.as_ref().ok_or(Error::InvalidProducerIdMapping)?;
        check_producer(current, producer)?;
        if current.state.is_prepared() {
            return Err(Error::ConcurrentTransactions);
        }
        let is_part = |place| current.places.contains(place).then_some(()).ok_or(Error::TransactionAbortable);
        Ok(places.iter().map(is_part).collect())
    }

    /// Whether all of the partitions are part of the transaction that the producer has open.
    pub fn is_open(&self, transactional_id: &str, producer: Producer, places: &BTreeSet<Place>) -> bool {
        self.verify(transactional_id, producer, places).is_ok_and(|parts| parts.iter().all(Result::is_ok))
    }

    /// EndTxn. Answered with [`Reply::End`], when the decision is durable; the markers follow.
    pub fn end(&mut self, now: Now, token: Token, request: &EndRequest) -> Actions {
        let checked = self.find(&request.transactional_id).and_then(|(id, entry)| {
            let repeated = match request.version {
                Version::V1 => check_end_v1(entry, request)?.then_some(None),
                Version::V2 => check_end_v2(entry, request)?.map(Some),
            };
            Ok((id.clone(), repeated))
        });
        match checked {
            Err(error) => vec![refuse(Reply::End, token, error)],
            Ok((_, Some(producer))) => vec![Action::Reply { token, reply: Reply::End(Ok(producer)) }],
            Ok((id, None)) => {
                let mut actions = Actions::new();
                let step = Step::End { token, committed: request.committed, version: request.version };
                self.take_step(now, &id, step, None, &mut actions);
                actions
            }
        }
    }

    /// A new producer id, or that there is none.
    pub fn producer_id(&mut self, now: Now, transactional_id: &str, fresh: Result<i64, Failed>) -> Actions {
        let mut actions = Actions::new();
        let Some((id, entry)) = self.entries.get_key_value(transactional_id) else { return actions };
        let (id, Some(Pending::ProducerId(step))) = (id.clone(), &entry.pending) else { return actions };
        let step = *step;
        self.settle(&id);
        match fresh {
            Ok(fresh) => self.take_step(now, &id, step, Some(fresh), &mut actions),
            Err(Failed) => {
                actions.extend(refuse_step(step, Error::NotCoordinator));
                self.forget_if_blank(&id);
            }
        }
        actions
    }

    /// A write has become durable, or has failed and left nothing behind.
    pub fn persisted(&mut self, now: Now, transactional_id: &str, outcome: Result<(), Failed>) -> Actions {
        let mut actions = Actions::new();
        let Some((id, entry)) = self.entries.get_key_value(transactional_id) else { return actions };
        let id = id.clone();
        let Some(Pending::Write { .. }) = &entry.pending else { return actions };
        let Some(Pending::Write { next, reply }) = self.settle(&id) else { return actions };
        if outcome.is_err() {
            if let Some((token, reply)) = reply {
                actions.push(refused(token, &reply));
            }
            let prepared = self.visible(&id).is_some_and(|current| current.state.is_prepared());
            if prepared {
                // All markers are there, and only that could not be stored.
                self.retry_markers(now, &id, 1);
            }
            self.forget_if_blank(&id);
            return actions;
        }
        actions.extend(reply.map(|(token, reply)| Action::Reply { token, reply }));
        match next {
            None => {
                self.entries.remove(&id);
            }
            Some(next) => {
                let entry = self.entries.entry(id.clone()).or_default();
                if next.state.is_prepared() {
                    actions.push(Action::WriteMarkers(markers(&id, &next)));
                    entry.pending = Some(Pending::Markers { failures: 0, retry_at: None });
                }
                entry.current = Some(next);
            }
        }
        actions
    }

    /// All markers are durable, or some could not be written.
    pub fn markers_written(&mut self, now: Now, transactional_id: &str, outcome: Result<(), Failed>) -> Actions {
        let Some((id, entry)) = self.entries.get_key_value(transactional_id) else { return Actions::new() };
        let (Some(Pending::Markers { failures, retry_at: None }), Some(current)) = (&entry.pending, &entry.current)
        else {
            return Actions::new();
        };
        let (id, failures, complete) = (id.clone(), *failures, current.complete(now.wall_ms));
        match outcome {
            Ok(()) => vec![self.write(&id, Some(complete), None)],
            Err(Failed) => {
                self.retry_markers(now, &id, failures + 1);
                Actions::new()
            }
        }
    }

    /// When [`tick`](Self::tick) is to be called next, on the monotonic clock. Any call may change it.
    pub fn next_deadline(&self) -> Duration {
        let retry = self.retries.first().map(|(at, _)| *at);
        let next = self.next_abort.min(self.next_expiry);
        retry.map_or(next, |retry| retry.min(next))
    }

    /// Acts on every deadline that has come.
    pub fn tick(&mut self, now: Now) -> Actions {
        let mut actions = Actions::new();
        while self.retries.first().is_some_and(|(at, _)| *at <= now.monotonic) {
            let Some((_, id)) = self.retries.pop_first() else { break };
            let Some(entry) = self.entries.get_mut(&id) else { continue };
            if let (Some(Pending::Markers { retry_at, .. }), Some(current)) = (&mut entry.pending, &entry.current) {
                *retry_at = None;
                actions.push(Action::WriteMarkers(markers(&id, current)));
            }
        }
        if self.next_abort <= now.monotonic {
            self.next_abort = now.monotonic + Duration::from_millis(self.config.abort_interval_ms.max(1));
            for id in self.idle_ids(|current| has_timed_out(current, now.wall_ms)) {
                self.take_step(now, &id, Step::Fence { token: None }, None, &mut actions);
            }
        }
        if self.next_expiry <= now.monotonic {
            self.next_expiry = now.monotonic + Duration::from_millis(self.config.expiry_interval_ms.max(1));
            let before = now.wall_ms.saturating_sub(self.config.id_expiration_ms);
            let is_over = |state| matches!(state, State::Empty | State::CompleteCommit | State::CompleteAbort);
            for id in self.idle_ids(|current| is_over(current.state) && current.update_ms <= before) {
                actions.push(self.write(&id, None, None));
            }
        }
        actions
    }

    /// What is durable of an id.
    pub(super) fn visible(&self, transactional_id: &str) -> Option<&Metadata> {
        self.entries.get(transactional_id)?.current.as_ref()
    }

    pub(super) fn all_visible(&self) -> impl Iterator<Item = (&Arc<str>, &Metadata)> {
        self.entries.iter().filter_map(|(id, entry)| Some((id, entry.current.as_ref()?)))
    }

    /// The ids for which nothing is under way and of which this is true.
    fn idle_ids(&self, is_wanted: impl Fn(&Metadata) -> bool) -> Vec<Arc<str>> {
        let wanted = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.pending.is_none() && entry.current.as_ref().is_some_and(&is_wanted));
        wanted.map(|(id, _)| id.clone()).collect()
    }

    fn find(&self, transactional_id: &str) -> Result<(&Arc<str>, &Entry), Error> {
        if transactional_id.is_empty() {
            return Err(Error::InvalidRequest);
        }
        self.entries.get_key_value(transactional_id).ok_or(Error::InvalidProducerIdMapping)
    }

    /// Makes the change that a step asks for, once it has been checked, or asks for the producer id that it takes.
    fn take_step(&mut self, now: Now, id: &Arc<str>, step: Step, fresh: Option<i64>, actions: &mut Actions) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        let next = match (&entry.current, step) {
            (Some(current), Step::Init { timeout_ms, expected, .. }) => {
                current.initialize(timeout_ms, expected, fresh, now.wall_ms)
            }
            (None, Step::Init { timeout_ms, expected, .. }) => fresh.ok_or(Stop::NeedsProducerId).and_then(|fresh| {
                let blank = Metadata::new(fresh, timeout_ms, now.wall_ms);
                blank.initialize(timeout_ms, expected, None, now.wall_ms)
            }),
            (Some(current), Step::End { committed, version, .. }) => {
                current.prepare(committed, version, fresh, now.wall_ms)
            }
            (Some(current), Step::Fence { .. }) => current.fence(self.config.version, fresh, now.wall_ms),
            (None, Step::End { .. } | Step::Fence { .. }) => Err(Stop::Refused(Error::InvalidProducerIdMapping)),
        };
        match next {
            Err(Stop::NeedsProducerId) => {
                entry.pending = Some(Pending::ProducerId(step));
                actions.push(Action::NewProducerId { transactional_id: id.clone() });
            }
            Err(Stop::Refused(error)) => {
                actions.extend(refuse_step(step, error));
                self.forget_if_blank(id);
            }
            Ok(next) => {
                let reply = match step {
                    Step::Init { token, .. } => Some((token, Reply::Init(Ok(next.producer())))),
                    Step::End { token, version, .. } => {
                        let producer = (version == Version::V2).then(|| next.continued());
                        Some((token, Reply::End(Ok(producer))))
                    }
                    // It tries again, and is let in when the transaction is over.
                    Step::Fence { token } => {
                        token.map(|token| (token, Reply::Init(Err(Error::ConcurrentTransactions))))
                    }
                };
                actions.push(self.write(id, Some(next), reply));
            }
        }
    }

    fn write(&mut self, id: &Arc<str>, next: Option<Metadata>, reply: Option<(Token, Reply)>) -> Action {
        let write = Write { transactional_id: id.clone(), value: next.as_ref().map(Metadata::to_bytes) };
        self.entries.entry(id.clone()).or_default().pending = Some(Pending::Write { next, reply });
        Action::Persist(write)
    }

    /// Takes out what is under way.
    fn settle(&mut self, id: &str) -> Option<Pending> {
        self.entries.get_mut(id)?.pending.take()
    }

    /// An id that is not stored and about which nothing is under way goes.
    fn forget_if_blank(&mut self, id: &str) {
        if self.entries.get(id).is_some_and(|entry| entry.current.is_none() && entry.pending.is_none()) {
            self.entries.remove(id);
        }
    }

    fn retry_markers(&mut self, now: Now, id: &Arc<str>, failures: u32) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        let after = FIRST_RETRY.saturating_mul(1 << (failures - 1).min(16)).min(LAST_RETRY);
        let retry_at = Some(now.monotonic + after);
        self.retries.insert((now.monotonic + after, id.clone()));
        entry.pending = Some(Pending::Markers { failures, retry_at });
    }
}

fn refuse<T>(reply: impl FnOnce(Result<T, Error>) -> Reply, token: Token, error: Error) -> Action {
    Action::Reply { token, reply: reply(Err(error)) }
}

/// The answer to a request whose change could not be stored, in place of the one it would have had.
fn refused(token: Token, reply: &Reply) -> Action {
    let error = Error::NotCoordinator;
    match reply {
        Reply::Init(_) => refuse(Reply::Init, token, error),
        Reply::Add(_) => refuse(Reply::Add, token, error),
        Reply::End(_) => refuse(Reply::End, token, error),
    }
}

fn refuse_step(step: Step, error: Error) -> Option<Action> {
    match step {
        Step::Init { token, .. } | Step::Fence { token: Some(token) } => Some(refuse(Reply::Init, token, error)),
        Step::End { token, .. } => Some(refuse(Reply::End, token, error)),
        Step::Fence { token: None } => None,
    }
}

fn markers(id: &Arc<str>, prepared: &Metadata) -> Markers {
    Markers {
        transactional_id: id.clone(),
        producer: prepared.producer(),
        committed: prepared.state == State::PrepareCommit,
        version: prepared.version,
        places: prepared.places.iter().cloned().collect(),
    }
}

/// Transactions in two phases have no timeout.
fn has_timed_out(current: &Metadata, now_ms: i64) -> bool {
    current.state == State::Ongoing
        && current.timeout_ms != i32::MAX
        && current.start_ms.saturating_add(current.timeout_ms.into()) < now_ms
}

fn check_producer(current: &Metadata, producer: Producer) -> Result<(), Error> {
    if current.producer_id != producer.id {
        return Err(Error::InvalidProducerIdMapping);
    }
    if current.epoch != producer.epoch {
        return Err(Error::ProducerFenced);
    }
    Ok(())
}

/// Whether this end was carried out before.
fn check_end_v1(entry: &Entry, request: &EndRequest) -> Result<bool, Error> {
    let current = entry.current.as_ref().ok_or(Error::ConcurrentTransactions)?;
    check_producer(current, request.producer)?;
    match (current.state, request.committed) {
        _ if entry.pending.is_some() => Err(Error::ConcurrentTransactions),
        (State::Ongoing, _) => Ok(false),
        (State::CompleteCommit, true) | (State::CompleteAbort, false) => Ok(true),
        _ => Err(Error::InvalidTxnState),
    }
}

/// The producer as it goes on, if this end was carried out before.
fn check_end_v2(entry: &Entry, request: &EndRequest) -> Result<Option<Producer>, Error> {
    // First of all: what is under way may lead to the producer id that the client knows already.
    let (None, Some(current)) = (&entry.pending, &entry.current) else {
        return Err(Error::ConcurrentTransactions);
    };
    let (producer, is_over) = (request.producer, matches!(current.state, State::CompleteCommit | State::CompleteAbort));
    if current.producer_id != producer.id && !current.is_repeated_last_end(producer) {
        return Err(Error::InvalidProducerIdMapping);
    }
    let repeated = is_over && current.is_repeated_end(producer);
    if current.epoch != producer.epoch && !repeated {
        return Err(Error::ProducerFenced);
    }
    match (current.state, request.committed) {
        (State::Ongoing, _) => Ok(None),
        (State::CompleteCommit, true) | (State::CompleteAbort, false) if repeated => Ok(Some(current.producer())),
        // A client that is not sure whether it has anything open aborts, to have the next epoch.
        (State::Empty | State::CompleteCommit | State::CompleteAbort, false) if !repeated => Ok(None),
        _ => Err(Error::InvalidTxnState),
    }
}
