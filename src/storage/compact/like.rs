//! A file system over another one that gives each new file the owner, the group and the permissions of those it is put beside: for
//! working as root in a directory of somebody else, who has to be able to read and write what is left there.
//!
//! The file that is looked at is the one whose place the new one is to take (its name without `.cleaned`, `.swap`, `.tmp`), else
//! the first of its kind in the directory, else the first of any.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::storage::names::{Stage, TEMPORARY};
use crate::sys::{DirEntry, Env, File, FileSystem, LockGuard, Metadata, OpenMode, Space};

/// The same world with new files that are like those beside them.
pub fn like_neighbours(env: &Env) -> Env {
    Env { fs: Arc::new(Like(env.fs.clone())), ..env.clone() }
}

#[derive(Debug)]
struct Like(Arc<dyn FileSystem>);

impl Like {
    /// The file that a new one at `path` is to be like.
    fn neighbour(&self, path: &Path) -> io::Result<Option<PathBuf>> {
        let (Some(dir), Some(name)) = (path.parent(), path.file_name().and_then(OsStr::to_str)) else {
            return Ok(None);
        };
        let ends = [Stage::Cleaned.suffix(), Stage::Swap.suffix(), TEMPORARY];
        let plain = ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        if plain != name && self.0.exists(&dir.join(plain))? {
            return Ok(Some(dir.join(plain)));
        }
        let mut others: Vec<PathBuf> = self
            .0
            .list(dir)?
            .into_iter()
            .filter(|entry| !entry.is_dir && entry.name != name)
            .map(|entry| PathBuf::from(entry.name))
            .collect();
        others.sort_unstable();
        let is_of_its_kind = |other: &&PathBuf| other.extension() == Path::new(plain).extension();
        let found = others.iter().find(is_of_its_kind).or(others.first());
        Ok(found.map(|name| dir.join(name)))
    }

    fn make_like_neighbours(&self, path: &Path) -> io::Result<()> {
        match self.neighbour(path)? {
            Some(neighbour) => self.0.copy_owner(&neighbour, path),
            None => Ok(()),
        }
    }
}

impl FileSystem for Like {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let is_new = match mode {
            OpenMode::Read | OpenMode::ReadWrite => false,
            OpenMode::CreateOrOpen | OpenMode::CreateNew | OpenMode::CreateOrTruncate => !self.0.exists(path)?,
        };
        let file = self.0.open(path, mode)?;
        if is_new && let Err(error) = self.make_like_neighbours(path) {
            // Nobody is to find a file that its owner cannot read.
            self.0.remove_file(path)?;
            return Err(error);
        }
        Ok(file)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.0.create_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.0.list(path)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.0.metadata(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.0.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.0.remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.0.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        if !self.0.exists(path)? {
            self.open(path, OpenMode::CreateOrOpen)?;
        }
        self.0.lock(path)
    }

    fn lock_to_read(&self, path: &Path) -> io::Result<Option<Box<dyn LockGuard>>> {
        self.0.lock_to_read(path)
    }

    fn copy_owner(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.copy_owner(from, to)
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        self.0.space(path)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    #[test]
    fn new_files_have_the_permissions_of_those_they_replace() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, mode: u32| {
            let path = dir.path().join(name);
            std::fs::write(&path, "x").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        put("00000000000000000000.log", 0o600);
        put("00000000000000000007.log", 0o640);
        put("partition.metadata", 0o604);
        let env = like_neighbours(&Env::real());
        for (new, mode) in [
            ("00000000000000000007.log.cleaned", 0o640),
            ("00000000000000000003.log.cleaned", 0o600),
            ("partition.metadata.tmp", 0o604),
            ("00000000000000000007.txnindex.swap", 0o600),
        ] {
            env.fs.open(&dir.path().join(new), OpenMode::CreateOrTruncate).unwrap();
            let metadata = std::fs::metadata(dir.path().join(new)).unwrap();
            assert_eq!(metadata.mode() & 0o777, mode, "{new}");
        }
        // Who is not root can give nothing away.
        let owner = |name: &str| std::fs::metadata(dir.path().join(name)).unwrap().uid();
        if std::os::unix::fs::chown(dir.path().join("00000000000000000000.log"), Some(12_345), None).is_ok() {
            env.fs.lock(&dir.path().join(".lock")).unwrap();
            assert_eq!((owner(".lock"), owner("partition.metadata.tmp")), (12_345, owner("partition.metadata")));
        }
    }
}
