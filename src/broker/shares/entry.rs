//! One partition of one share group while somebody uses it: its state, those who wait for it, and its writes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use super::Shares;
use crate::broker::groups::set_share_partition;
use crate::coordinator::{AckRefused, Acknowledgement, SharePartition, SharePartitionKey, Token};
use crate::protocol::ErrorCode;
use crate::storage::log::Watchers;

/// Why acknowledgements of a partition were refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AckError {
    pub code: ErrorCode,
    pub message: Option<String>,
}

impl AckError {
    pub fn plain(code: ErrorCode) -> Self {
        AckError { code, message: None }
    }

    fn refused(why: AckRefused) -> Self {
        let code = match why {
            AckRefused::FirstIsPast | AckRefused::LastIsPast | AckRefused::UnknownType(_) => ErrorCode::InvalidRequest,
            AckRefused::NotFound
            | AckRefused::NotAcquired
            | AckRefused::NotTheOwner
            | AckRefused::UnderWay
            | AckRefused::NoRenewals => ErrorCode::InvalidRecordState,
        };
        AckError { code, message: Some(why.to_string()) }
    }

    /// The state was replaced, or could not be stored.
    fn lost() -> Self {
        let message = "the acknowledgement could not be stored, and the records stay as they were".to_owned();
        AckError { code: ErrorCode::CoordinatorNotAvailable, message: Some(message) }
    }
}

type Outcome = Result<(), AckError>;

/// An acknowledgement that was taken in.
#[derive(Debug)]
pub enum Acknowledging {
    Done(Outcome),
    Storing(oneshot::Receiver<Outcome>),
}

impl Acknowledging {
    /// How it went, once that is durable.
    pub async fn outcome(self) -> Outcome {
        match self {
            Acknowledging::Done(outcome) => outcome,
            Acknowledging::Storing(outcome) => outcome.await.unwrap_or_else(|_| Err(AckError::lost())),
        }
    }
}

/// Shared between threads.
#[derive(Debug)]
pub struct Entry {
    pub(super) key: SharePartitionKey,
    pub(super) state: Mutex<State>,
    /// Told when there may be more to acquire.
    pub(super) watchers: Arc<Watchers>,
    /// Told when a write has ended.
    written: Notify,
}

#[derive(Debug)]
pub(super) struct State {
    pub partition: SharePartition,
    /// What is stored is not this any more: nothing is handed out or taken in.
    pub fenced: bool,
    writing: bool,
    waiting: HashMap<Token, oneshot::Sender<Outcome>>,
    next_token: Token,
    /// The deadline that the keeper of time knows.
    deadline: Option<Duration>,
}

impl Entry {
    pub fn new(key: SharePartitionKey, partition: SharePartition) -> Self {
        Entry {
            key,
            state: Mutex::new(State {
                partition,
                fenced: false,
                writing: false,
                waiting: HashMap::new(),
                next_token: 0,
                deadline: None,
            }),
            watchers: Arc::default(),
            written: Notify::new(),
        }
    }

    /// Nothing is handed out or taken in from here on; the write that is under way ends by itself.
    pub fn mark_fenced(&self) {
        self.state.lock().fenced = true;
        self.watchers.notify();
    }

    /// The same, and waits until no write is under way.
    pub async fn fence(&self) {
        self.mark_fenced();
        loop {
            let ended = self.written.notified();
            if !self.state.lock().writing {
                return;
            }
            ended.await;
        }
    }

    /// Fences it if reading it in anew would bring the same. Answers whether it was.
    pub fn retire_if_idle(&self) -> bool {
        let mut state = self.state.lock();
        let idle = state.partition.is_idle() && !state.writing;
        state.fenced |= idle;
        idle
    }
}

impl Shares {
    pub(super) fn acknowledge_in(
        self: &Arc<Self>,
        entry: &Arc<Entry>,
        member: &str,
        acknowledgements: &[Acknowledgement],
    ) -> Acknowledging {
        let limits = self.config(&entry.key.group).limits;
        let now = self.env.clock.monotonic();
        let answer = {
            let mut state = entry.state.lock();
            if state.fenced {
                return Acknowledging::Done(Err(AckError::plain(ErrorCode::NotLeaderOrFollower)));
            }
            let token = state.next_token;
            state.next_token += 1;
            match state.partition.acknowledge(now, token, member, acknowledgements, &limits) {
                Ok(true) => {
                    let (sender, receiver) = oneshot::channel();
                    state.waiting.insert(token, sender);
                    Acknowledging::Storing(receiver)
                }
                Ok(false) => Acknowledging::Done(Ok(())),
                Err(refused) => Acknowledging::Done(Err(AckError::refused(refused))),
            }
        };
        self.settle(entry);
        answer
    }

    /// Gives back what a member has acquired.
    pub(super) fn release(self: &Arc<Self>, entry: &Arc<Entry>, member: &str) {
        let limits = self.config(&entry.key.group).limits;
        entry.state.lock().partition.release(member, &limits);
        self.settle(entry);
    }

    /// The deadline `at` has come, and is not kept any more.
    pub(super) fn expire_in(self: &Arc<Self>, entry: &Arc<Entry>, now: Duration, at: Duration) {
        let limits = self.config(&entry.key.group).limits;
        let any = {
            let mut state = entry.state.lock();
            state.deadline.take_if(|deadline| *deadline == at);
            state.partition.expire(now, &limits)
        };
        if any {
            entry.watchers.notify();
        }
        self.settle(entry);
    }

    /// To be called after every change: has what changed stored, and the next deadline kept.
    pub(super) fn settle(self: &Arc<Self>, entry: &Arc<Entry>) {
        let bytes = {
            let mut state = entry.state.lock();
            self.keep_deadline(entry, &mut state);
            match state.fenced {
                true => None,
                false => state.partition.begin_write().inspect(|_| state.writing = true),
            }
        };
        let Some(bytes) = bytes else { return };
        // Not under the lock: a catalog that is closed answers at once.
        let (this, of) = (self.clone(), entry.clone());
        let write = vec![set_share_partition(&entry.key, Some(bytes.to_vec()))];
        self.store.catalog().commit(
            write,
            Box::new(move |result| {
                if let Err(error) = &result {
                    let SharePartitionKey { group, topic, partition } = &of.key;
                    tracing::error!(%group, %topic, partition, "what became of records could not be stored: {error}");
                }
                if result.is_ok() {
                    this.follow(&of.key, bytes);
                }
                this.written(&of, result.is_ok());
            }),
        );
    }

    fn written(self: &Arc<Self>, entry: &Arc<Entry>, stored: bool) {
        let answers = {
            let mut state = entry.state.lock();
            state.writing = false;
            let answered = state.partition.written(stored);
            let outcome = if stored { Ok(()) } else { Err(AckError::lost()) };
            let mut answers: Vec<_> = answered
                .into_iter()
                .filter_map(|token| Some((state.waiting.remove(&token)?, outcome.clone())))
                .collect();
            if state.fenced {
                // What came after this write will not be stored.
                answers.extend(state.waiting.drain().map(|(_, waiting)| (waiting, Err(AckError::lost()))));
            }
            answers
        };
        for (waiting, outcome) in answers {
            // Whoever asked may have gone.
            let _ = waiting.send(outcome);
        }
        entry.written.notify_waiters();
        entry.watchers.notify();
        self.settle(entry);
    }

    fn keep_deadline(&self, entry: &Entry, state: &mut State) {
        let next = if state.fenced { None } else { state.partition.next_deadline() };
        if next == state.deadline {
            return;
        }
        let mut deadlines = self.deadlines.lock();
        if let Some(before) = state.deadline {
            deadlines.remove(&(before, entry.key.clone()));
        }
        if let Some(next) = next {
            deadlines.insert((next, entry.key.clone()));
        }
        let is_first = next.is_some_and(|next| deadlines.first().is_some_and(|(first, _)| *first == next));
        drop(deadlines);
        state.deadline = next;
        if is_first {
            self.deadline_changed.notify_one();
        }
    }
}
