//! The traits of `sys` over a simulated disk.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use super::names::Node;
use super::{Noted, OpKind, SimFileSystem};
use crate::sys::sim::fault::{Effect, FULL_DISK, SyncFailure};
use crate::sys::{DirEntry, File, FileSystem, LockGuard, Metadata, OpenMode};

#[derive(Debug)]
struct SimFile {
    fs: SimFileSystem,
    id: u64,
    /// By which it was opened.
    path: PathBuf,
    writable: bool,
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.fs.disk(|disk| {
            if disk.start == self.fs.start {
                let file = disk.file(self.id);
                file.handles = file.handles.saturating_sub(1);
            }
        });
    }
}

impl SimFile {
    fn noted(&self, position: Option<u64>, len: Option<usize>) -> Noted<'_> {
        Noted { position, len, ..Noted::path(&self.path) }
    }

    fn now_ms(&self) -> i64 {
        self.fs.shared.clock.now_ms()
    }
}

impl File for SimFile {
    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<usize> {
        let noted = self.noted(Some(position), Some(buf.len()));
        self.fs.step(OpKind::Read, noted, |disk, _, effect| {
            let content = &mut disk.file(self.id).content;
            let n = content.live.read(buf, position);
            if let Some(Effect::FlipBit { bit, for_good }) = effect
                && n > 0
            {
                let at = (bit / 8) as usize % n;
                buf[at] ^= 1 << (bit % 8);
                if for_good {
                    content.flip(position + at as u64, (bit % 8) as u8);
                }
            }
            Ok(n)
        })
    }

    fn write_all_at(&self, bufs: &[IoSlice<'_>], position: u64) -> io::Result<()> {
        let mut data = Vec::with_capacity(bufs.iter().map(|buf| buf.len()).sum());
        bufs.iter().for_each(|buf| data.extend_from_slice(buf));
        let now_ms = self.now_ms();
        self.fs.step(OpKind::Write, self.noted(Some(position), Some(data.len())), |disk, number, effect| {
            if !self.writable {
                return Err(Errno::BADF.into());
            }
            let (wanted, error) = match effect {
                Some(Effect::Ignored) => return Ok(()),
                Some(Effect::ShortWrite { bytes, error }) => {
                    (bytes.min((data.len() as u64).saturating_sub(1)) as usize, Some(error))
                }
                _ => (data.len(), None),
            };
            let room = disk.space_for(self.id, position, wanted);
            let file = disk.file(self.id);
            file.content.write(&data[..room], position, number);
            file.modified_ms = now_ms;
            if room < wanted {
                disk.faults.count(OpKind::Write, FULL_DISK);
                return Err(Errno::NOSPC.into());
            }
            match error {
                Some(error) => Err(io::Error::new(error, "a fault was injected: a short write")),
                None => Ok(()),
            }
        })
    }

    fn len(&self) -> io::Result<u64> {
        self.fs.step(OpKind::Metadata, self.noted(None, None), |disk, _, _| Ok(disk.file(self.id).content.live.len))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let now_ms = self.now_ms();
        self.fs.step(OpKind::SetLen, self.noted(Some(len), None), |disk, number, effect| {
            if !self.writable {
                return Err(Errno::INVAL.into());
            }
            if effect != Some(Effect::Ignored) {
                let file = disk.file(self.id);
                file.content.set_len(len, number);
                file.modified_ms = now_ms;
            }
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.fs.step(OpKind::Sync, self.noted(None, None), |disk, _, effect| {
            let file = disk.file(self.id);
            match effect {
                Some(Effect::Sync(how)) => {
                    file.content.fail_sync(how);
                    Err(io::Error::other("a fault was injected: a flush failed"))
                }
                Some(Effect::Ignored) => Ok(()),
                _ => {
                    file.sync();
                    Ok(())
                }
            }
        })
    }

    fn set_modified(&self, modified_ms: i64) -> io::Result<()> {
        let noted = self.noted(u64::try_from(modified_ms).ok(), None);
        self.fs.step(OpKind::SetModified, noted, |disk, _, effect| {
            if !self.writable {
                return Err(Errno::BADF.into());
            }
            if effect != Some(Effect::Ignored) {
                disk.file(self.id).modified_ms = modified_ms;
            }
            Ok(())
        })
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

#[derive(Debug)]
struct SimLock {
    fs: SimFileSystem,
    lock: u64,
}

impl LockGuard for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.fs.disk(|disk| disk.unlock(self.lock));
    }
}

impl SimFileSystem {
    /// Runs an operation on a path that answers nothing.
    fn step_on(
        &self,
        kind: OpKind,
        noted: Noted<'_>,
        f: impl FnOnce(&mut super::Disk) -> io::Result<()>,
    ) -> io::Result<()> {
        self.step(kind, noted, |disk, _, effect| if effect == Some(Effect::Ignored) { Ok(()) } else { f(disk) })
    }
}

impl FileSystem for SimFileSystem {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let kind = match mode {
            OpenMode::Read | OpenMode::ReadWrite => OpKind::Open,
            OpenMode::CreateOrOpen | OpenMode::CreateNew | OpenMode::CreateOrTruncate => OpKind::Create,
        };
        let now_ms = self.shared.clock.now_ms();
        let id = self.step(kind, Noted::path(path), |disk, number, _| {
            let id = disk.open(path, mode, kind, number, now_ms)?;
            disk.file(id).handles += 1;
            Ok(id)
        })?;
        Ok(Arc::new(SimFile { fs: self.clone(), id, path: path.to_owned(), writable: mode != OpenMode::Read }))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.step_on(OpKind::CreateDir, Noted::path(path), |disk| disk.create_dir(path))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.step(OpKind::List, Noted::path(path), |disk, _, _| disk.list(path))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.step(OpKind::Metadata, Noted::path(path), |disk, _, _| {
            Ok(match disk.find(path)? {
                Node::Dir(_) => Metadata { len: 0, is_dir: true, modified_ms: super::super::START_MS },
                Node::File(id) => {
                    let file = disk.file(id);
                    Metadata { len: file.content.live.len, is_dir: false, modified_ms: file.modified_ms }
                }
            })
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step_on(OpKind::Rename, Noted { to: Some(to), ..Noted::path(from) }, |disk| disk.rename(from, to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.step_on(OpKind::RemoveFile, Noted::path(path), |disk| disk.remove_file(path))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.step_on(OpKind::RemoveDir, Noted::path(path), |disk| disk.remove_dir(path))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.step_on(OpKind::SyncDir, Noted::path(path), |disk| disk.sync_dir(path))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        let now_ms = self.shared.clock.now_ms();
        let lock = self.step(OpKind::Lock, Noted::path(path), |disk, number, _| {
            let file = disk.open(path, OpenMode::CreateOrOpen, OpKind::Lock, number, now_ms)?;
            disk.lock(file)
        })?;
        Ok(Box::new(SimLock { fs: self.clone(), lock }))
    }
}

/// The failures of a flush, for those who try each.
impl SyncFailure {
    pub const ALL: [SyncFailure; 3] = [SyncFailure::Dropped, SyncFailure::MarkedClean, SyncFailure::Written];
}
