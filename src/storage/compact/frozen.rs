//! A file system over another one that writes nothing to it: for opening a log as the broker does, only to look.
//!
//! Files are opened for reading whatever was asked for, and writing to them fails. What a start clears away is not cleared
//! away and said to be gone, which a start can live with.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::sys::{DirEntry, Env, File, FileSystem, LockGuard, Metadata, OpenMode, Space};

/// The same world with files that cannot change.
pub fn frozen(env: &Env) -> Env {
    Env { fs: Arc::new(Frozen(env.fs.clone())), ..env.clone() }
}

#[derive(Debug)]
struct Frozen(Arc<dyn FileSystem>);

#[derive(Debug)]
struct FrozenFile(Arc<dyn File>);

fn refused<T>() -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "nothing is written in a dry run"))
}

impl FileSystem for Frozen {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        match mode {
            OpenMode::Read | OpenMode::ReadWrite => Ok(Arc::new(FrozenFile(self.0.open(path, OpenMode::Read)?))),
            OpenMode::CreateOrOpen | OpenMode::CreateNew | OpenMode::CreateOrTruncate => refused(),
        }
    }

    fn create_dir(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.0.list(path)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.0.metadata(path)
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        refused()
    }

    fn remove_file(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn LockGuard>> {
        refused()
    }

    fn lock_to_read(&self, path: &Path) -> io::Result<Option<Box<dyn LockGuard>>> {
        self.0.lock_to_read(path)
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        self.0.space(path)
    }
}

impl File for FrozenFile {
    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<usize> {
        self.0.read_at(buf, position)
    }

    fn write_all_at(&self, _: &[io::IoSlice<'_>], _: u64) -> io::Result<()> {
        refused()
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        refused()
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.0.fd()
    }
}
