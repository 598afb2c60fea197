//! The data directory as a whole: its lock, its catalog, its topics and their partitions' logs.
//!
//! ```text
//! DATA/
//!   .lock             held while a process has the directory open
//!   meta.db           the catalog (crate::storage::catalog), unless it was put elsewhere
//!   clean-shutdown    there while the last stop was a clean one
//!   <topic>-<n>/      one partition (crate::storage::log)
//! ```
//!
//! # What it promises
//!
//! - The catalog says which topics there are. A topic is in it only once the directories of all its partitions are
//!   durable (those of internal topics have none until they are read, [`crate::storage::internal_topics`]), and out of it before the first of them goes. A crash in between leaves directories that the next start
//!   recognises: those where no log ever was, and those of a topic that the catalog notes as deleted. It removes these, and
//!   no other: a directory with data that the catalog does not know is named in the log and left alone.
//! - An operation that was answered with an error has changed nothing, except where its documentation says so.
//! - Opening a data directory costs one listing, however many partitions it has. A partition is opened at its first use,
//!   once, while others go on; one that cannot be opened fails alone, and is tried again at its next use.
//! - The mark of a clean stop is there only if everything was flushed, and gone before anything is served.
//!
//! # Locks
//!
//! Taken in this order: `admin` (one change of topics at a time), a slot's `opening` (one opening, deletion or truncation
//! of a partition at a time), then `slots` and `trust` for moments only, and what the catalog and the logs take themselves.

mod close;
mod dirs;
mod error;
mod mark;
mod open;
mod parallel;
mod partitions;
mod size;
#[cfg(test)]
mod tests;
mod topics;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use parking_lot::{Mutex, RwLock};

pub use error::{
    ChangeTopicError, CloseStoreError, CreateTopicError, DeleteRecordsError, DirError, OpenStoreError, PartitionError,
};
pub use open::lock_data_dir;
pub use topics::{ConfigChange, NewTopic};

pub(in crate::storage) use mark::{Mark, leave as leave_mark, read as read_mark, take as take_mark};
pub(in crate::storage) use open::find_catalog;
pub(in crate::storage) use parallel::parallel_at_most;

use crate::protocol::Uuid;
use crate::storage::catalog::{Catalog, ConfigMap, Topics};
use crate::storage::log::LogConfig;
use crate::sys::LockGuard;
use dirs::Dirs;
use mark::Trust;
use partitions::Slot;

/// What a topic's own configs make of its logs, together with whatever the broker's say.
pub type LogConfigOf = Arc<dyn Fn(&ConfigMap) -> LogConfig + Send + Sync>;

/// How a data directory is opened.
#[derive(Clone)]
pub struct StoreConfig {
    /// Made if it is not there.
    pub data_dir: PathBuf,
    /// Where the catalog is, if not in the data directory.
    pub meta_db: Option<PathBuf>,
    /// Called whenever a log is opened or its topic's configs change.
    pub log_config: LogConfigOf,
}

impl std::fmt::Debug for StoreConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreConfig")
            .field("data_dir", &self.data_dir)
            .field("meta_db", &self.meta_db)
            .finish_non_exhaustive()
    }
}

/// An open data directory. Shared between threads. Its operations wait for the disk, so that they are not for a thread that
/// serves connections, except where they say so.
pub struct Store {
    dirs: Dirs,
    log_config: LogConfigOf,
    catalog: Catalog,
    started_clean: bool,
    unknown: Vec<PathBuf>,
    trust: Mutex<Trust>,
    slots: RwLock<BTreeMap<(Uuid, i32), Arc<Slot>>>,
    admin: Mutex<()>,
    closed: AtomicBool,
    config_changes: AtomicU64,
    locks: Mutex<Vec<Box<dyn LockGuard>>>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("dirs", &self.dirs).field("catalog", &self.catalog).finish_non_exhaustive()
    }
}

impl Store {
    pub fn data_dir(&self) -> &Path {
        &self.dirs.data_dir
    }

    /// For what is neither a topic nor a log: offsets, groups, configs of other resources, ids.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// All topics, sorted by name. Costs a reference count.
    pub fn topics(&self) -> Arc<Topics> {
        self.catalog.topics()
    }

    /// Whether the last stop was a clean one.
    pub fn started_clean(&self) -> bool {
        self.started_clean
    }

    /// Directories of partitions with data that the catalog does not know, as found at the start.
    pub fn unknown_directories(&self) -> &[PathBuf] {
        &self.unknown
    }
}
