//! How far a look has come, and the way to stop it.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::sys::File;

/// How far a look has come. Shared between threads: one looks, others ask, and any may stop it.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    cancelled: AtomicBool,
}

impl Progress {
    pub fn new() -> Arc<Progress> {
        Arc::default()
    }

    /// Bytes of log files that were looked at.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Bytes that there are to look at; 0 until that is known.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Has the look end at its next read. What was found until then is reported.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    pub(super) fn set_total(&self, bytes: u64) {
        self.total.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// A file that is read no further once the look is cancelled, and never written.
#[derive(Debug)]
pub(super) struct Watched {
    pub file: Arc<dyn File>,
    pub progress: Arc<Progress>,
}

impl File for Watched {
    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<usize> {
        if self.progress.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.file.read_at(buf, position)
    }

    fn write_all_at(&self, _bufs: &[IoSlice<'_>], _position: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, _len: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn sync(&self) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.file.fd()
    }
}
