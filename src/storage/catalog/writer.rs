//! Group commit: changes are queued, and whatever is queued when the writer starts goes to the disk as one transaction.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::error::CatalogError;
use super::{Catalog, Mutation, Shared};
use crate::storage::Done;

/// What waits to be written, in order.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    idle: Condvar,
}

#[derive(Default)]
struct State {
    pending: Vec<Pending>,
    writer: Writer,
    closed: bool,
}

struct Pending {
    batch: Vec<Mutation>,
    done: Done<Result<(), CatalogError>>,
}

#[derive(Default, PartialEq)]
enum Writer {
    #[default]
    None,
    /// A job was given to the workers and has not begun.
    Scheduled,
    Writing,
}

impl Catalog {
    /// Makes the changes of `batch` durable, all or none, after those of every earlier call. `done` runs on another
    /// thread, in the order of the calls, and must not block. By then reads show the changes; on an error there is
    /// nothing of them.
    pub fn commit(&self, batch: Vec<Mutation>, done: Done<Result<(), CatalogError>>) {
        let mut state = self.shared.queue.state.lock();
        if state.closed {
            drop(state);
            return done(Err(self.shared.closed()));
        }
        state.pending.push(Pending { batch, done });
        if state.writer == Writer::None {
            self.shared.schedule(state);
        }
    }

    /// As [`Catalog::commit`], and waits. Not to be called from a `done`.
    pub fn commit_blocking(&self, batch: Vec<Mutation>) -> Result<(), CatalogError> {
        let (sender, receiver) = mpsc::channel();
        let mut state = self.shared.queue.state.lock();
        if state.closed {
            return Err(self.shared.closed());
        }
        let done: Done<_> = Box::new(move |result| {
            let _ = sender.send(result);
        });
        state.pending.push(Pending { batch, done });
        if state.writer != Writer::Writing {
            // Nobody writes yet, so this thread does, and needs no worker.
            self.shared.write_once(state);
        } else {
            drop(state);
        }
        receiver.recv().unwrap_or_else(|_| Err(self.shared.closed()))
    }

    /// Lets what was queued be written, takes nothing more, and closes the file.
    pub fn close(&self) -> Result<(), CatalogError> {
        let mut state = self.shared.queue.state.lock();
        state.closed = true;
        while !state.pending.is_empty() || state.writer == Writer::Writing {
            if state.writer == Writer::Writing {
                self.shared.queue.idle.wait(&mut state);
            } else {
                self.shared.write_once(state);
                state = self.shared.queue.state.lock();
            }
        }
        drop(state);
        self.shared.engine.close()
    }
}

impl Shared {
    fn closed(&self) -> CatalogError {
        CatalogError::Closed { path: self.engine.path().to_owned() }
    }

    fn schedule(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        state.writer = Writer::Scheduled;
        drop(state);
        let shared = self.clone();
        self.workers.spawn(Box::new(move || {
            let state = shared.queue.state.lock();
            // A blocking commit may have taken over what this job was for.
            if state.writer == Writer::Scheduled {
                shared.write_once(state);
            }
        }));
    }

    /// Writes what is queued as one transaction, answers it, and sees to it that what was queued meanwhile has a writer.
    fn write_once(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        state.writer = Writer::Writing;
        let group = std::mem::take(&mut state.pending);
        drop(state);
        let result = self.write_group(&group);
        for pending in group {
            let result = result.clone();
            // One that panics must not take the others' answers with it.
            let _ = catch_unwind(AssertUnwindSafe(|| (pending.done)(result)));
        }
        let mut state = self.queue.state.lock();
        state.writer = Writer::None;
        self.queue.idle.notify_all();
        if !state.pending.is_empty() {
            self.schedule(state);
        }
    }

    fn write_group(&self, group: &[Pending]) -> Result<(), CatalogError> {
        let mutations = || group.iter().flat_map(|pending| &pending.batch);
        if mutations().next().is_some() {
            self.engine.write(|tables| mutations().try_for_each(|mutation| mutation.apply(tables)))?;
            let image = &mut *self.image.write();
            for mutation in mutations() {
                mutation.show(&mut image.topics, &mut image.configs);
            }
        }
        Ok(())
    }
}
