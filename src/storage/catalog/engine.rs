//! One redb database that survives I/O errors.
//!
//! - A commit is durable when [`Engine::write`] answers `Ok`, with one fsync, and leaves no trace when it answers `Err`:
//!   neither now nor after a restart (except that one whose fsync failed may turn out to be there after a restart).
//! - After a write that failed, the database is opened anew over the same file from its last durable state, and goes on.
//! - After an fsync that failed, nothing is written any more. Reads show the last durable state.
//! - redb checks its pages with assertions in places. A panic on damaged bytes ends here, as an error.
//!
//! Commits are redb's one-phase kind: one fsync, checked by checksums when the file is opened after a crash. The
//! two-phase kind with a saved allocator state ("quick repair") would make that opening cheaper, by a few milliseconds
//! for every MB, and every commit twice as dear; a clean close saves the allocator state all the same.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use redb::{Database, ReadTransaction, ReadableDatabase, StorageBackend};

use super::backend::{Backend, CatalogFile, View};
use super::error::{CatalogError, Failure};
use super::tables::Tables;
use crate::sys::File;

/// What redb may keep of the file in memory, in bytes.
const CACHE: usize = 2 * 1024 * 1024;

/// Shared between threads: any number of readers beside one writer.
#[derive(Debug)]
pub(super) struct Engine {
    path: PathBuf,
    file: Arc<CatalogFile>,
    slot: RwLock<Slot>,
}

enum Slot {
    Writable(Database),
    /// Reads only, from the last durable state: there was an error, and opening for writing was not tried or failed.
    View(Database),
    /// There was an error; the next use opens.
    Failed,
    Closed,
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Slot::Writable(_) => "Writable",
            Slot::View(_) => "View",
            Slot::Failed => "Failed",
            Slot::Closed => "Closed",
        })
    }
}

/// Runs `f`; a panic in it becomes a failure.
fn guarded<T>(f: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| {
        let text = panic_text(panic.as_ref());
        Err(Failure::Damage(format!("its pages contradict each other ({text})")))
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no reason given")
}

fn open_database(backend: impl StorageBackend) -> Result<Database, Failure> {
    guarded(|| Ok(Database::builder().set_cache_size(CACHE).create_with_backend(backend)?))
}

impl Engine {
    /// Opens the database in `file`, making an empty file one.
    pub(super) fn open(path: PathBuf, file: Arc<dyn File>) -> Result<Self, Failure> {
        let file = CatalogFile::new(file);
        let database = open_database(Backend(file.clone()))?;
        Ok(Engine { path, file, slot: RwLock::new(Slot::Writable(database)) })
    }

    /// Opens the database in `file` for reading. The file is not written to.
    pub(super) fn open_view(path: PathBuf, file: Arc<dyn File>) -> Result<Self, Failure> {
        let file = CatalogFile::new(file);
        let view = View::new(file.clone()).map_err(Failure::Io)?;
        let database = open_database(view)?;
        Ok(Engine { path, file, slot: RwLock::new(Slot::View(database)) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// How many fsyncs have succeeded.
    #[cfg(test)]
    pub(super) fn syncs(&self) -> u64 {
        self.file.syncs()
    }

    /// Why nothing is written any more.
    pub(super) fn poison(&self) -> Option<CatalogError> {
        self.file.failed_sync().map(|source| CatalogError::Poisoned { path: self.path.clone(), source })
    }

    fn closed(&self) -> CatalogError {
        CatalogError::Closed { path: self.path.clone() }
    }

    /// Runs `f` on the last durable state.
    pub(super) fn read<T>(&self, f: impl Fn(&ReadTransaction) -> Result<T, Failure>) -> Result<T, CatalogError> {
        let mut tries_left = 1;
        loop {
            let slot = self.slot.read();
            let failure = match &*slot {
                Slot::Writable(database) | Slot::View(database) => match guarded(|| f(&database.begin_read()?)) {
                    Ok(value) => return Ok(value),
                    Err(failure) => failure,
                },
                Slot::Failed => {
                    drop(slot);
                    self.reopen_for_reading()?;
                    continue;
                }
                Slot::Closed => return Err(self.closed()),
            };
            drop(slot);
            // redb remembers an error that it met, the writer's too, and answers nothing else from then on.
            let error = self.explain(failure);
            if tries_left == 0 || matches!(error, CatalogError::Damaged { .. }) {
                return Err(error);
            }
            tries_left -= 1;
            self.fail();
        }
    }

    /// Runs `f` in a transaction and makes it durable. One caller at a time.
    pub(super) fn write(&self, f: impl FnOnce(&mut Tables<'_>) -> Result<(), Failure>) -> Result<(), CatalogError> {
        let slot = loop {
            if let Some(poison) = self.poison() {
                return Err(poison);
            }
            let slot = self.slot.read();
            match &*slot {
                Slot::Writable(_) => break slot,
                Slot::Closed => return Err(self.closed()),
                Slot::View(_) | Slot::Failed => drop(slot),
            }
            self.reopen_for_writing()?;
        };
        let Slot::Writable(database) = &*slot else { unreachable!("the loop ends with this one") };
        let before = self.file.syncs();
        let result = guarded(|| {
            let transaction = database.begin_write()?;
            let mut tables = Tables::open(&transaction)?;
            f(&mut tables)?;
            drop(tables);
            Ok(transaction.commit()?)
        });
        // The one fsync of a commit comes last; only cutting surplus space off the file can fail after it. (Nobody else
        // flushes the file while the slot is held.)
        let durable = self.file.syncs() > before;
        drop(slot);
        let Err(failure) = result else { return Ok(()) };
        self.fail();
        if durable {
            return self.poison().map_or(Ok(()), Err);
        }
        let error = self.explain(failure);
        // redb writes the header that points to the new state before the last of its pages, and what is on its way to the
        // medium gets there sooner or later. If this fails, the next use of the catalog tries it again.
        if self.file.failed_sync().is_none()
            && let Err(error) = self.file.undo()
        {
            tracing::warn!(catalog = %self.path.display(), %error, "cannot undo a change that failed");
        }
        Err(self.poison().unwrap_or(error))
    }

    /// The I/O error behind a failure, where there was one: redb may have stumbled over what came of it.
    fn explain(&self, failure: Failure) -> CatalogError {
        match self.file.take_error() {
            Some(source) => CatalogError::Io { path: self.path.clone(), source },
            None => failure.into_catalog_error(self.path.clone()),
        }
    }

    /// Gives up the database, so that the next use opens it anew.
    fn fail(&self) {
        let mut slot = self.slot.write();
        if !matches!(*slot, Slot::Closed) {
            discard(std::mem::replace(&mut *slot, Slot::Failed));
        }
    }

    fn open_writable(&self) -> Result<Database, Failure> {
        self.file.restore_header().map_err(Failure::Io)?;
        open_database(Backend(self.file.clone()))
    }

    fn reopen_for_writing(&self) -> Result<(), CatalogError> {
        let mut slot = self.slot.write();
        match &*slot {
            Slot::Writable(_) => return Ok(()),
            Slot::Closed => return Err(self.closed()),
            Slot::View(_) | Slot::Failed => {}
        }
        match self.open_writable() {
            Ok(database) => {
                discard(std::mem::replace(&mut *slot, Slot::Writable(database)));
                Ok(())
            }
            Err(failure) => Err(self.poison().unwrap_or_else(|| failure.into_catalog_error(self.path.clone()))),
        }
    }

    fn reopen_for_reading(&self) -> Result<(), CatalogError> {
        let mut slot = self.slot.write();
        if !matches!(*slot, Slot::Failed) {
            return Ok(());
        }
        if self.file.failed_sync().is_none()
            && let Ok(database) = self.open_writable()
        {
            *slot = Slot::Writable(database);
            return Ok(());
        }
        let view = View::new(self.file.clone()).map_err(Failure::Io).and_then(open_database);
        *slot = Slot::View(view.map_err(|failure| failure.into_catalog_error(self.path.clone()))?);
        Ok(())
    }

    /// Runs `f` with the database to itself.
    pub(super) fn exclusive<T>(
        &mut self,
        f: impl FnOnce(&mut Database) -> Result<T, Failure>,
    ) -> Result<T, CatalogError> {
        match self.slot.get_mut() {
            Slot::Writable(database) | Slot::View(database) => {
                guarded(|| f(database)).map_err(|failure| failure.into_catalog_error(self.path.clone()))
            }
            Slot::Failed | Slot::Closed => Err(self.closed()),
        }
    }

    /// Saves what makes the next opening fast. Everything answered with `Ok` is durable without.
    pub(super) fn close(&self) -> Result<(), CatalogError> {
        let slot = std::mem::replace(&mut *self.slot.write(), Slot::Closed);
        discard(slot);
        self.poison().map_or(Ok(()), Err)
    }
}

impl Drop for Engine {
    /// One that was not closed, and may be damaged.
    fn drop(&mut self) {
        discard(std::mem::replace(self.slot.get_mut(), Slot::Closed));
    }
}

/// Drops a database; redb writes to the file when it is sound, and may panic when it is not.
fn discard(slot: Slot) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(slot)));
}
