//! The machine's own file system.

use std::fs;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{FlockOperation, fcntl_lock, flock};
use rustix::io::Errno;

use super::file::{DirEntry, File, FileSystem, LockGuard, Metadata, OpenMode, Space};

/// The machine's file system.
#[derive(Debug)]
pub struct OsFileSystem;

#[derive(Debug)]
struct OsFile(fs::File);

/// A lock lives as long as its descriptor, so the kernel ends it with the process.
#[derive(Debug)]
struct OsLock(#[allow(dead_code)] fs::File);

impl LockGuard for OsLock {}

/// The most buffers that one `pwritev` takes on Linux and macOS.
const MAX_IO_SLICES: usize = 1024;

impl File for OsFile {
    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<usize> {
        loop {
            match self.0.read_at(buf, position) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    fn write_all_at(&self, bufs: &[IoSlice<'_>], mut position: u64) -> io::Result<()> {
        let mut copy = bufs.to_vec();
        let mut left = &mut copy[..];
        IoSlice::advance_slices(&mut left, 0);
        while !left.is_empty() {
            match rustix::io::pwritev(&self.0, &left[..left.len().min(MAX_IO_SLICES)], position) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    position += n as u64;
                    IoSlice::advance_slices(&mut left, n);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    /// `fdatasync` on Linux; on macOS the standard library makes this `F_FULLFSYNC`, which empties the disk's own cache.
    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn set_modified(&self, modified_ms: i64) -> io::Result<()> {
        let since = Duration::from_millis(u64::try_from(modified_ms).unwrap_or(0));
        self.0.set_modified(UNIX_EPOCH + since)
    }

    fn drop_cached(&self, position: u64, len: u64) {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(len) = std::num::NonZeroU64::new(len) {
            // It is a hint, and failing it costs nothing but its effect.
            let _ = rustix::fs::fadvise(&self.0, position, Some(len), rustix::fs::Advice::DontNeed);
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let _ = (position, len);
    }

    fn is_hole(&self, position: u64, len: u64) -> bool {
        // It moves the descriptor's own position, which nothing here goes by.
        match rustix::fs::seek(&self.0, rustix::fs::SeekFrom::Data(position)) {
            Ok(data) => data >= position.saturating_add(len),
            // There is no data from there on.
            Err(error) => error == rustix::io::Errno::NXIO,
        }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }
}

/// Takes the other kind of lock as well, the one of POSIX. Java has no other, so it is the one that Apache Kafka holds. A file
/// system that does not have it is no reason to refuse.
fn respect_java(file: &fs::File, operation: FlockOperation) -> io::Result<()> {
    match fcntl_lock(file, operation) {
        Err(Errno::AGAIN | Errno::ACCESS) => Err(io::ErrorKind::WouldBlock.into()),
        _ => Ok(()),
    }
}

impl FileSystem for OsFileSystem {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true);
        match mode {
            OpenMode::Read => &mut options,
            OpenMode::ReadWrite => options.write(true),
            OpenMode::CreateOrOpen => options.write(true).create(true),
            OpenMode::CreateNew => options.write(true).create_new(true),
            OpenMode::CreateOrTruncate => options.write(true).create(true).truncate(true),
        };
        Ok(Arc::new(OsFile(options.open(path)?)))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        fs::read_dir(path)?
            .map(|entry| {
                let entry = entry?;
                Ok(DirEntry { name: entry.file_name(), is_dir: entry.file_type()?.is_dir() })
            })
            .collect()
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let metadata = fs::metadata(path)?;
        let modified_ms = match metadata.modified()?.duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            Err(_) => 0,
        };
        Ok(Metadata { len: metadata.len(), is_dir: metadata.is_dir(), modified_ms })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        fs::File::open(path)?.sync_all()
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        let stat = rustix::fs::statvfs(path)?;
        Ok(Space { total: stat.f_blocks * stat.f_frsize, available: stat.f_bavail * stat.f_frsize })
    }

    fn copy_owner(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (wanted, has) = (fs::metadata(from)?, fs::metadata(to)?);
        if (wanted.uid(), wanted.gid()) != (has.uid(), has.gid()) {
            std::os::unix::fs::chown(to, Some(wanted.uid()), Some(wanted.gid()))?;
        }
        if wanted.permissions() != has.permissions() {
            fs::set_permissions(to, wanted.permissions())?;
        }
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        let file = fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        respect_java(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Box::new(OsLock(file)))
    }

    fn lock_to_read(&self, path: &Path) -> io::Result<Option<Box<dyn LockGuard>>> {
        let file = match fs::File::open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        flock(&file, FlockOperation::NonBlockingLockShared)?;
        respect_java(&file, FlockOperation::NonBlockingLockShared)?;
        Ok(Some(Box::new(OsLock(file))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_of_more_slices_than_one_call_takes_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let file = OsFileSystem.open(&dir.path().join("f"), OpenMode::CreateNew).unwrap();
        let parts: Vec<Vec<u8>> = (0..3000u32).map(|i| i.to_be_bytes()[..(i % 5) as usize % 4].to_vec()).collect();
        let slices: Vec<IoSlice<'_>> = parts.iter().map(|p| IoSlice::new(p)).collect();
        file.write_all_at(&slices, 7).unwrap();
        let expected: Vec<u8> = [0; 7].into_iter().chain(parts.concat()).collect();
        let mut read = vec![0; expected.len()];
        file.read_exact_at(&mut read, 0).unwrap();
        assert_eq!(read, expected);
        assert_eq!(file.len().unwrap(), expected.len() as u64);
        assert_eq!(file.read_exact_at(&mut read, 1).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn what_was_never_written_is_a_hole() {
        let dir = tempfile::tempdir().unwrap();
        let file = OsFileSystem.open(&dir.path().join("f"), OpenMode::CreateNew).unwrap();
        file.set_len(8 << 20).unwrap();
        let page = vec![1; 4096];
        file.write_all_at(&[IoSlice::new(&page)], 4 << 20).unwrap();
        assert!(!file.is_hole(4 << 20, 4096) && !file.is_hole((4 << 20) - 1, 2), "what was written is none");
        // A file system may know nothing of holes; the usual ones do.
        println!("holes are seen here: {}", file.is_hole(0, 1 << 20) && file.is_hole(6 << 20, 2 << 20));
    }

    #[test]
    fn a_lock_is_held_until_its_guard_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = OsFileSystem.lock(&path).unwrap();
        assert_eq!(OsFileSystem.lock(&path).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(held);
        OsFileSystem.lock(&path).unwrap();
    }

    #[test]
    fn those_who_look_share_a_lock_and_make_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        assert!(OsFileSystem.lock_to_read(&path).unwrap().is_none());
        assert!(!path.exists());
        let held = OsFileSystem.lock(&path).unwrap();
        assert_eq!(OsFileSystem.lock_to_read(&path).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(held);
        let looking = [(); 2].map(|()| OsFileSystem.lock_to_read(&path).unwrap().unwrap());
        assert_eq!(OsFileSystem.lock(&path).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(looking);
        OsFileSystem.lock(&path).unwrap();
    }
}
