//! Flushing: one flush at a time, and each covers all that was appended before it started.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::error::{Offline, SyncError};
use super::{Done, PartitionLog};
use crate::storage::names::{self, FileKind};
use crate::sys::OpenMode;

/// What is known of what is on the medium.
#[derive(Debug)]
pub(super) struct Flush {
    /// Held by whoever flushes the active segment, or makes another the active one.
    pub gate: Mutex<()>,
    /// The log's `flush.ms`.
    pub flush_ms: AtomicI64,
    state: Mutex<State>,
}

struct State {
    /// The end of the log, as the appender last said.
    end: i64,
    /// Everything below is on the medium. -1 while not even the names of the files are known to be.
    flushed: i64,
    /// Whether the active segment's name may not be on the medium, or another may be that must not.
    name_dirty: bool,
    /// On the steady clock, since when something is not flushed.
    dirty_since: Option<Duration>,
    /// Who waits, and up to where the log has to be flushed for it.
    waiting: Vec<(i64, Done<Result<(), SyncError>>)>,
    /// Whether a flush is under way or about to be.
    running: bool,
    offline: Option<Offline>,
    closed: bool,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("end", &self.end)
            .field("flushed", &self.flushed)
            .field("waiting", &self.waiting.len())
            .field("offline", &self.offline)
            .finish_non_exhaustive()
    }
}

impl State {
    fn has_flushed(&self, offset: i64) -> bool {
        offset <= self.flushed
    }
}

/// What of a log is not known to be on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unflushed {
    /// Records, or offsets that had one. At least 1.
    pub records: i64,
    /// For how long the first of them has been waiting.
    pub since: Duration,
}

impl Flush {
    /// `flushed`: whether all that the log has is known to be on the medium.
    pub fn new(flush_ms: i64, end: i64, flushed: bool, name_dirty: bool, now: Duration) -> Self {
        Flush {
            gate: Mutex::default(),
            flush_ms: AtomicI64::new(flush_ms),
            state: Mutex::new(State {
                end,
                flushed: if flushed { end } else { -1 },
                name_dirty,
                dirty_since: (!flushed).then_some(now),
                waiting: Vec::new(),
                running: false,
                offline: None,
                closed: false,
            }),
        }
    }

    pub fn offline(&self) -> Option<Offline> {
        self.state.lock().offline.clone()
    }

    /// Something was appended up to `end`. Answers how many records are not flushed.
    pub fn wrote(&self, end: i64, now: Duration) -> i64 {
        let mut state = self.state.lock();
        state.end = end;
        state.dirty_since.get_or_insert(now);
        end - state.flushed.max(0)
    }

    /// A roll flushed everything up to `end`, and made a file whose name is not certain.
    pub fn rolled(&self, end: i64, now: Duration) {
        let mut state = self.state.lock();
        state.name_dirty = true;
        state.dirty_since = None;
        Self::covered(&mut state, end, now);
        // Those that wait are answered by the flush that is about to run for them.
    }

    /// A name in the directory may not be on the medium, or its removal.
    pub fn names_changed(&self) {
        self.state.lock().name_dirty = true;
    }

    fn covered(state: &mut State, end: i64, now: Duration) {
        state.flushed = state.flushed.max(end);
        state.dirty_since = (state.flushed < state.end).then_some(now);
    }

    /// Ends all flushing. Who waits gets `answer`.
    pub fn close(&self, answer: Result<(), SyncError>) {
        let waiting = {
            let mut state = self.state.lock();
            state.closed = true;
            state.dirty_since = None;
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(|(_, done)| done(answer.clone()));
    }

    /// Everything up to `end` is on the medium, names too.
    pub fn flushed(&self, end: i64, now: Duration) {
        let mut state = self.state.lock();
        state.name_dirty = false;
        Self::covered(&mut state, end, now);
    }
}

impl PartitionLog {
    /// Calls `done` once all that was appended before this call is on the medium, or once it is known that it will not be.
    ///
    /// At once, on this thread, if it is there already or no flush will be tried; else on a worker, after a flush that
    /// started after this call. A duplicate of a batch is no exception: the batch that is there may not be flushed.
    pub fn sync(self: &Arc<Self>, done: Done<Result<(), SyncError>>) {
        self.sync_to(i64::MAX, done);
    }

    /// Whether all records below `offset` are known to be on the medium.
    pub fn is_flushed_to(&self, offset: i64) -> bool {
        self.flush.state.lock().has_flushed(offset)
    }

    /// The same as [`sync`](Self::sync) for the records below `offset` alone, of those that the log has.
    pub fn sync_to(self: &Arc<Self>, offset: i64, done: Done<Result<(), SyncError>>) {
        let answer = {
            let mut state = self.flush.state.lock();
            let end = state.end.min(offset);
            if state.has_flushed(offset) {
                Ok(())
            } else if state.closed {
                Err(SyncError::Closed)
            } else if let Some(offline) = &state.offline {
                Err(SyncError::Poisoned(offline.clone()))
            } else if state.flushed >= end {
                Ok(())
            } else {
                state.waiting.push((end, done));
                let start = !std::mem::replace(&mut state.running, true);
                drop(state);
                // Without the lock: a job may run on this thread where there is no other.
                if start {
                    self.spawn_flush();
                }
                return;
            }
        };
        done(answer);
    }

    /// What is not flushed; `None` if all is.
    pub fn unflushed(&self) -> Option<Unflushed> {
        let state = self.flush.state.lock();
        let since = self.env.clock.monotonic().saturating_sub(state.dirty_since?);
        Some(Unflushed { records: (state.end - state.flushed.max(0)).max(1), since })
    }

    /// For a timer: starts a flush if something has been waiting for one longer than `flush.ms`, or than `longest`. Answers
    /// whether it did. A failure shows in [`PartitionLog::is_offline`].
    pub fn flush_if_due(self: &Arc<Self>, longest: Duration) -> bool {
        let Some(unflushed) = self.unflushed() else { return false };
        let flush_ms = u64::try_from(self.flush.flush_ms.load(Ordering::Relaxed)).unwrap_or(0);
        if unflushed.since < longest.min(Duration::from_millis(flush_ms)) {
            return false;
        }
        self.sync(Box::new(|_| {}));
        true
    }

    fn spawn_flush(self: &Arc<Self>) {
        let log = self.clone();
        self.env.workers.spawn(Box::new(move || log.run_flush()));
    }

    fn run_flush(self: Arc<Self>) {
        let gate = self.flush.gate.lock();
        let name_dirty = self.flush.state.lock().name_dirty;
        // What is in the view was written before the flush starts, so it is covered.
        let (active, covered) = {
            let view = self.view.read();
            (view.active().clone(), view.end)
        };
        let started = self.env.clock.monotonic();
        // A roll may have flushed all of it while this waited for the gate.
        let needed = {
            let state = self.flush.state.lock();
            !state.closed && state.offline.is_none() && state.flushed < covered
        };
        if needed {
            let path = active.path(FileKind::Log);
            let flushed = active
                .file(&*self.env.fs)
                .map_err(|error| self.take_offline(error.to_string()))
                .and_then(|file| file.sync().map_err(|error| self.flush_failed(&path, &error)))
                .and_then(|()| match name_dirty {
                    true => self.env.fs.sync_dir(&self.dir).map_err(|error| self.flush_failed(&self.dir, &error)),
                    false => Ok(()),
                });
            if flushed.is_ok() {
                self.flush.flushed(covered, started);
            }
        }
        drop(gate);
        self.answer_waiting();
    }

    /// Answers those whose records are on the medium, or all if no flush will be tried; starts another flush for the rest.
    fn answer_waiting(self: &Arc<Self>) {
        let mut ready = Vec::new();
        let again;
        {
            let mut state = self.flush.state.lock();
            let (flushed, offline, closed) = (state.flushed, state.offline.clone(), state.closed);
            let answer = match offline {
                Some(offline) => Some(Err(SyncError::Failed(offline))),
                None if closed => Some(Err(SyncError::Closed)),
                None => None,
            };
            for (end, done) in std::mem::take(&mut state.waiting) {
                match &answer {
                    _ if end <= flushed => ready.push((done, Ok(()))),
                    Some(answer) => ready.push((done, answer.clone())),
                    None => state.waiting.push((end, done)),
                }
            }
            state.running = !state.waiting.is_empty();
            again = state.running;
        }
        if again {
            self.spawn_flush();
        }
        ready.into_iter().for_each(|(done, answer)| done(answer));
    }

    /// A flush of `path` failed: takes the log offline.
    pub(super) fn flush_failed(&self, path: &Path, error: &io::Error) -> Offline {
        self.take_offline(format!("cannot flush {}: {error}", path.display()))
    }

    /// Lets the log take no more writes until it is opened anew. Answers why, which is the first reason that there was.
    pub(super) fn take_offline(&self, reason: String) -> Offline {
        let offline = Offline { reason: reason.into() };
        {
            let mut state = self.flush.state.lock();
            if let Some(offline) = &state.offline {
                return offline.clone();
            }
            state.offline = Some(offline.clone());
        }
        tracing::error!(
            topic = self.topic,
            partition = self.partition,
            reason = &*offline.reason,
            "the log takes no more writes until doze is restarted; reads go on. Look at the disk before that: whatever was not \
             acknowledged with acks=all may be lost"
        );
        // It need not be flushed: it counts only as long as the page cache does that it warns of.
        let mark = self.dir.join(names::FLUSH_FAILED);
        if let Err(error) = self.env.fs.open(&mark, OpenMode::CreateOrOpen) {
            tracing::error!(path = %mark.display(), %error, "cannot note that a flush failed");
        }
        offline
    }
}
