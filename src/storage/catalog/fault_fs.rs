//! For tests: the machine's file system with faults in it, at chosen operations.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::sys::{DirEntry, Env, File, FileSystem, LockGuard, Metadata, OpenMode, OsFileSystem};

/// What is to fail, and what was done. Operations are those that change something or flush.
#[derive(Debug, Default)]
pub struct Faults {
    pub operations: usize,
    /// The operation with this number fails, and no other.
    pub fail_at: Option<usize>,
    /// The operation with this number and all after it fail, as if the process had been killed.
    pub kill_at: Option<usize>,
    /// Every write and every growth fails, as on a full disk.
    pub full: bool,
    pub fail_syncs: bool,
    /// Two names that differ in case are one.
    pub fold_case: bool,
    pub injected: usize,
    pub syncs: usize,
    pub dir_syncs: usize,
    /// Directories listed, files opened, metadata asked for.
    pub looks: usize,
    /// The operations, in order.
    pub trace: Vec<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Space,
    Sync,
    SyncDir,
    Other,
}

#[derive(Clone, Debug, Default)]
pub struct FaultFs {
    faults: Arc<Mutex<Faults>>,
}

#[derive(Debug)]
struct FaultFile {
    fs: FaultFs,
    name: String,
    file: Arc<dyn File>,
}

/// The machine, with a file system that fails on demand.
pub fn faulty_env() -> (Env, FaultFs) {
    let fs = FaultFs::default();
    (Env { fs: Arc::new(fs.clone()), ..Env::real() }, fs)
}

impl FaultFs {
    pub fn with<T>(&self, f: impl FnOnce(&mut Faults) -> T) -> T {
        f(&mut self.faults.lock())
    }

    /// From now on nothing reaches the disk, as if the process had been killed.
    pub fn kill(&self) {
        self.with(|faults| faults.kill_at = Some(faults.operations));
    }

    fn step(&self, kind: Kind, what: &str, name: impl AsRef<Path>) -> io::Result<()> {
        self.with(|faults| {
            let number = faults.operations;
            faults.operations += 1;
            faults.trace.push(format!("{what} {}", name.as_ref().display()));
            let killed = faults.kill_at.is_some_and(|at| number >= at);
            let full = faults.full && kind == Kind::Space;
            let sync = faults.fail_syncs && matches!(kind, Kind::Sync | Kind::SyncDir);
            if killed || full || sync || faults.fail_at == Some(number) {
                faults.injected += 1;
                let kind = if full { io::ErrorKind::StorageFull } else { io::ErrorKind::Other };
                return Err(io::Error::new(kind, format!("injected at {what}")));
            }
            match kind {
                Kind::Sync => faults.syncs += 1,
                Kind::SyncDir => faults.dir_syncs += 1,
                _ => {}
            }
            Ok(())
        })
    }

    fn look(&self) {
        self.with(|faults| faults.looks += 1);
    }
}

impl File for FaultFile {
    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<usize> {
        self.file.read_at(buf, position)
    }

    fn write_all_at(&self, bufs: &[IoSlice<'_>], position: u64) -> io::Result<()> {
        self.fs.step(Kind::Space, "write", &self.name)?;
        self.file.write_all_at(bufs, position)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let kind = if len > self.file.len()? { Kind::Space } else { Kind::Other };
        self.fs.step(kind, "set_len", &self.name)?;
        self.file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        // What a kill leaves is in the page cache, so that nothing has to reach the disk.
        self.fs.step(Kind::Sync, "sync", &self.name)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.file.fd()
    }
}

impl FileSystem for FaultFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        match mode {
            OpenMode::Read | OpenMode::ReadWrite => self.look(),
            _ => self.step(Kind::Space, "create", path)?,
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Arc::new(FaultFile { fs: self.clone(), name, file: OsFileSystem.open(path, mode)? }))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.step(Kind::Space, "create_dir", path)?;
        if self.with(|faults| faults.fold_case)
            && let (Some(parent), Some(name)) = (path.parent(), path.file_name())
            && OsFileSystem.list(parent)?.iter().any(|entry| entry.name.eq_ignore_ascii_case(name))
        {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        OsFileSystem.create_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.look();
        OsFileSystem.list(path)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.look();
        OsFileSystem.metadata(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(Kind::Other, "rename", from)?;
        OsFileSystem.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.step(Kind::Other, "remove_file", path)?;
        OsFileSystem.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.step(Kind::Other, "remove_dir", path)?;
        OsFileSystem.remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.step(Kind::SyncDir, "sync_dir", path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        self.step(Kind::Other, "lock", path)?;
        OsFileSystem.lock(path)
    }
}
