//! The file system as doze sees it: few operations, each with a contract that a simulation can keep or break.

use std::ffi::OsString;
use std::fmt::Debug;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

/// How [`FileSystem::open`] opens a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// For reading; the file must be there.
    Read,
    /// For reading and writing; the file must be there.
    ReadWrite,
    /// For reading and writing; made empty if it is not there, left as it is if it is.
    CreateOrOpen,
    /// For reading and writing; it must not be there yet.
    CreateNew,
    /// For reading and writing; made if it is not there, emptied if it is.
    CreateOrTruncate,
}

/// An open file. Shared between threads: positions are explicit and no call has a cursor.
pub trait File: Send + Sync + Debug {
    /// Reads up to `buf.len()` bytes at `position`. Answers how many; 0 only at or past the end.
    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<usize>;

    /// Writes all of `bufs`, one after the other, at `position`, growing the file where needed. On an error any part of
    /// them may have been written.
    fn write_all_at(&self, bufs: &[IoSlice<'_>], position: u64) -> io::Result<()>;

    /// The length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts the file, or grows it with zeros, to `len` bytes.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Returns once every byte written and the length are on the medium itself, past any volatile cache. It says nothing
    /// of the file's name: that takes [`FileSystem::sync_dir`]. After an error nothing is known of what was written since
    /// the last success, and a second call that succeeds proves nothing.
    fn sync(&self) -> io::Result<()>;

    /// Says when the content last changed, in milliseconds since the Unix epoch: for a file that takes the place of
    /// another. `Unsupported` where that cannot be said.
    fn set_modified(&self, modified_ms: i64) -> io::Result<()> {
        let _ = modified_ms;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Has the system forget what it has cached of a range, where it can: what is read next comes from the medium. Nothing that was
    /// written and not flushed is lost by it. Does nothing where the system cannot.
    fn drop_cached(&self, position: u64, len: u64) {
        let _ = (position, len);
    }

    /// Whether nothing was ever stored in a range: it takes no room on the medium and is zeros there. `false` where that cannot
    /// be told.
    fn is_hole(&self, position: u64, len: u64) -> bool {
        let _ = (position, len);
        false
    }

    /// The descriptor, for `sendfile`. `None` for a file that only exists in a simulation.
    fn fd(&self) -> Option<BorrowedFd<'_>>;

    /// Fills `buf` from `position`, or fails with `UnexpectedEof`.
    fn read_exact_at(&self, buf: &mut [u8], position: u64) -> io::Result<()> {
        let mut filled = 0;
        while filled < buf.len() {
            match self.read_at(&mut buf[filled..], position + filled as u64) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    pub name: OsString,
    pub is_dir: bool,
}

/// What the file system knows of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    pub len: u64,
    pub is_dir: bool,
    /// When the content last changed, in milliseconds since the Unix epoch.
    pub modified_ms: i64,
}

/// The room on a file system, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    pub total: u64,
    /// What a process without privileges may still use.
    pub available: u64,
}

/// Holds a lock until it is dropped.
pub trait LockGuard: Send + Sync + Debug {}

/// A file system. Shared between threads. A name that was created, renamed or removed is only certain to be so after a
/// power cut once [`FileSystem::sync_dir`] of its directory has returned.
pub trait FileSystem: Send + Sync + Debug {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;

    /// Makes one directory. `AlreadyExists` if there is one.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// The names in a directory, in no order.
    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>>;

    /// Follows symbolic links.
    fn metadata(&self, path: &Path) -> io::Result<Metadata>;

    /// Gives `from` the name `to`, in one step that replaces a file that has it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// Returns once the names in the directory are on the medium.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Locks the file at `path` (made if it is not there) against every other process, until the guard is dropped or the
    /// process ends, however it ends. `WouldBlock` when another holds it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>>;

    /// As [`FileSystem::lock`], for one who only looks: nothing is written, no file is made, and others may look as well.
    /// `None` where there is no such file. `WouldBlock` when somebody holds it to write.
    fn lock_to_read(&self, path: &Path) -> io::Result<Option<Box<dyn LockGuard>>> {
        if self.exists(path)? { self.lock(path).map(Some) } else { Ok(None) }
    }

    /// Gives the file at `to` the owner, the group and the permissions of the one at `from`. Does nothing where files have none.
    fn copy_owner(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _ = (from, to);
        Ok(())
    }

    /// How much room there is on the file system of `path`. `Unsupported` where that cannot be told.
    fn space(&self, path: &Path) -> io::Result<Space> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Whether there is something at `path`.
    fn exists(&self, path: &Path) -> io::Result<bool> {
        match self.metadata(path) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Makes a directory and those above it that are missing, and makes their names durable.
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        if path.as_os_str().is_empty() || self.exists(path)? {
            return Ok(());
        }
        let parent = path.parent().unwrap_or(Path::new(""));
        self.create_dir_all(parent)?;
        match self.create_dir(path) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
            _ => self.sync_dir(if parent.as_os_str().is_empty() { Path::new(".") } else { parent }),
        }
    }

    /// Removes a directory and all in it.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        for entry in self.list(path)? {
            let child = path.join(&entry.name);
            if entry.is_dir { self.remove_dir_all(&child)? } else { self.remove_file(&child)? }
        }
        self.remove_dir(path)
    }
}

/// A range of bytes in an open file; the file stays readable while one is held, even after it was removed.
#[derive(Clone, Debug)]
pub struct FileRange {
    pub file: Arc<dyn File>,
    /// Where it starts, in bytes from the start of the file.
    pub position: u64,
    /// How many bytes.
    pub len: usize,
}

impl FileRange {
    /// Reads the whole range into memory.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.len];
        self.file.read_exact_at(&mut bytes, self.position)?;
        Ok(bytes)
    }
}
