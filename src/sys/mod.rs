//! The one seam to the outside world: files, time, randomness and threads.
//!
//! Everything that doze reads from or writes to a disk, every clock it looks at, every random number it draws and every
//! thread it hands work to goes through the traits of this module. [`Env`] carries one of each. [`Env::real`] is the
//! machine; a simulation puts its own in their place, and can then cut the power, fill the disk or fail an fsync at any
//! single operation and replay the run from its seed.
//!
//! What differs between Linux and macOS lives here and nowhere else: a flush that reaches the medium (`fdatasync`,
//! `F_FULLFSYNC`), `sendfile`, file locks, the limit on open files. Windows is not supported.

mod clock;
mod file;
mod limits;
mod os_file;
mod random;
mod sendfile;
pub mod sim;
mod workers;

use std::sync::Arc;

pub use clock::{Clock, OsClock};
pub use file::{DirEntry, File, FileRange, FileSystem, LockGuard, Metadata, OpenMode, Space};
pub use limits::{peak_resident_bytes, raise_open_file_limit, resident_bytes};
pub use os_file::OsFileSystem;
pub use random::{OsRandom, Random};
pub use sendfile::send_file;
pub use workers::{Job, ThreadWorkers, Workers};

/// One of each of the outside world's parts. Cheap to clone, shared between threads.
#[derive(Clone, Debug)]
pub struct Env {
    pub fs: Arc<dyn FileSystem>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub workers: Arc<dyn Workers>,
}

impl Env {
    /// The machine that the process runs on.
    pub fn real() -> Self {
        Env {
            fs: Arc::new(OsFileSystem),
            clock: Arc::new(OsClock::new()),
            random: Arc::new(OsRandom),
            workers: Arc::new(ThreadWorkers::new(32)),
        }
    }
}
