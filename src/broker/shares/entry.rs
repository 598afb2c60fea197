//! One partition of one share group while somebody uses it: its state, those who wait for it, and its writes.
//!
//! The records are handed out by what is in memory, and what is stored of it changes by writes: those of the partition itself, and
//! those of others ([`state`](super::state)), which the partition learns of when it is read in again. One write to the catalog
//! is under way at a time, and takes along all changes that there are when it begins.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use super::Shares;
use super::state::ChangeError;
use crate::coordinator::{
    AckRefused, Acknowledgement, SharePartition, SharePartitionKey, ShareState, StateChange, StateRefused, Token,
};
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

    /// What is stored is not the partition's any more.
    fn not_the_leader(why: StateRefused) -> Self {
        AckError { code: error_code_for_members(why), message: Some(why.to_string()) }
    }
}

/// What members are told where the state cannot be read or written.
pub(super) fn error_code_for_members(why: StateRefused) -> ErrorCode {
    match why {
        StateRefused::FencedLeaderEpoch | StateRefused::FencedStateEpoch => ErrorCode::NotLeaderOrFollower,
        StateRefused::NotReadable | StateRefused::NotWritable | StateRefused::Nonsense => ErrorCode::UnknownServerError,
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
    /// `None`: it was deleted.
    stored: Option<ShareState>,
    writing: Option<Writing>,
    waiting: HashMap<Token, oneshot::Sender<Outcome>>,
    /// Changes that others want.
    wanted: Vec<(StateChange, oneshot::Sender<Told>)>,
    next_token: Token,
    /// The deadline that the keeper of time knows.
    deadline: Option<Duration>,
}

/// What has become of a change that somebody else wanted: the state after it.
pub(super) type Told = Result<Option<ShareState>, ChangeError>;

/// A write that is under way.
#[derive(Debug)]
struct Writing {
    next: Option<ShareState>,
    /// It has something of the partition's own.
    of_partition: bool,
    told: Vec<(oneshot::Sender<Told>, Told)>,
}

/// Who is told what after a change.
#[derive(Debug, Default)]
struct Answers {
    outcomes: Vec<(oneshot::Sender<Outcome>, Outcome)>,
    told: Vec<(oneshot::Sender<Told>, Told)>,
}

impl Answers {
    fn send(self) {
        // Whoever asked may have gone.
        for (waiting, outcome) in self.outcomes {
            let _ = waiting.send(outcome);
        }
        for (waiting, told) in self.told {
            let _ = waiting.send(told);
        }
    }
}

impl State {
    /// Begins a write if there is something to write and none is under way. Answers what is to be stored, and who is to be told
    /// what at once.
    fn begin_write(&mut self) -> (Option<Option<ShareState>>, Answers) {
        let mut answers = Answers::default();
        if self.fenced {
            // Whoever wants something finds out what the state is now, and asks again.
            self.wanted.clear();
            return (None, answers);
        }
        if self.writing.is_some() {
            return (None, answers);
        }
        let own = self.partition.begin_write();
        if own.is_none() && self.wanted.is_empty() {
            return (None, answers);
        }
        let mut next = self.stored.clone();
        let mut of_partition = false;
        if let Some(write) = own {
            match StateChange::Write(write).apply(&mut next) {
                Ok(()) => of_partition = true,
                Err(refused) => {
                    self.fenced = true;
                    answers.outcomes = self.end_own_write(Err(AckError::not_the_leader(refused)));
                    self.wanted.clear();
                    return (None, answers);
                }
            }
        }
        let told: Vec<_> = std::mem::take(&mut self.wanted)
            .into_iter()
            .map(|(change, waiting)| {
                let told = change.apply(&mut next).map(|()| next.clone()).map_err(ChangeError::Refused);
                (waiting, told)
            })
            .collect();
        if !of_partition && next == self.stored {
            answers.told = told;
            return (None, answers);
        }
        self.writing = Some(Writing { next: next.clone(), of_partition, told });
        (Some(next), answers)
    }

    /// The write that was under way has become durable, or has failed and left nothing behind.
    fn end_write(&mut self, stored: bool) -> Answers {
        let mut answers = Answers::default();
        let Some(Writing { next, of_partition, told }) = self.writing.take() else { return answers };
        answers.told = told;
        if stored {
            self.stored = next;
        } else {
            answers.told.iter_mut().for_each(|(_, told)| *told = Err(ChangeError::NotStored));
        }
        if of_partition {
            answers.outcomes = self.end_own_write(if stored { Ok(()) } else { Err(AckError::lost()) });
        }
        if self.fenced {
            // What came after this write will not be stored.
            answers.outcomes.extend(self.waiting.drain().map(|(_, waiting)| (waiting, Err(AckError::lost()))));
        }
        answers
    }

    fn end_own_write(&mut self, outcome: Outcome) -> Vec<(oneshot::Sender<Outcome>, Outcome)> {
        let answered = self.partition.written(outcome.is_ok());
        answered.into_iter().filter_map(|token| Some((self.waiting.remove(&token)?, outcome.clone()))).collect()
    }
}

impl Entry {
    pub fn new(key: SharePartitionKey, partition: SharePartition, stored: ShareState) -> Self {
        Entry {
            key,
            state: Mutex::new(State {
                partition,
                fenced: false,
                stored: Some(stored),
                writing: None,
                waiting: HashMap::new(),
                wanted: Vec::new(),
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
            if self.state.lock().writing.is_none() {
                return;
            }
            ended.await;
        }
    }

    /// Fences it if reading it in anew would bring the same. Answers whether it was.
    pub fn retire_if_idle(&self) -> bool {
        let mut state = self.state.lock();
        let idle = state.partition.is_idle() && state.writing.is_none() && state.wanted.is_empty();
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
        let (write, answers, fenced) = {
            let mut state = entry.state.lock();
            let before = state.fenced;
            let (write, answers) = state.begin_write();
            self.keep_deadline(entry, &mut state);
            (write, answers, state.fenced && !before)
        };
        answers.send();
        if fenced {
            self.forget(entry);
            entry.watchers.notify();
        }
        // Not under the lock: a catalog that is closed answers at once.
        let Some(next) = write else { return };
        let (this, of) = (self.clone(), entry.clone());
        self.commit_state(&entry.key, next, move |stored| {
            of.state.lock().end_write(stored).send();
            of.written.notify_waiters();
            of.watchers.notify();
            this.settle(&of);
        });
    }

    /// Changes what is stored of a partition that is read in. `None`: it has just been forgotten.
    pub(super) async fn change_in(self: &Arc<Self>, entry: &Arc<Entry>, change: StateChange) -> Option<Told> {
        let (sender, told) = oneshot::channel();
        entry.state.lock().wanted.push((change, sender));
        self.settle(entry);
        told.await.ok()
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
