//! The mark of a clean stop, and which partitions' files may be trusted because of it.
//!
//! A stop that flushed everything leaves `clean-shutdown` behind; the next start removes it, durably, before it touches
//! anything else. So the mark is only ever there while nobody has written since:
//!
//! - Power cut while the mark is made: it takes its name in one step, after all logs are flushed. It is there whole, or
//!   not at all, and then the files are checked though they need not be.
//! - Power cut while it is removed: it may come back, and nothing was written in between.
//! - A removal that fails refuses the start, since a crash later on would find a mark that no longer holds.
//!
//! A start without the mark trusts no partition. One that is then never used is never checked and never flushed, so the next
//! clean stop cannot vouch for it, and names it in the mark:
//!
//! ```text
//! version: 0
//! unchecked: <count>
//! <directory>          one a line, as many as that
//! ```

use std::collections::HashSet;
use std::io::{self, IoSlice};
use std::path::Path;

use super::error::DirError;
use crate::storage::names;
use crate::sys::{DirEntry, FileSystem, OpenMode};

/// More than a mark ever has, in bytes: a name for each of a million partitions.
const LARGEST: u64 = 256 << 20;

/// Which partitions' files are known to be flushed, by directory name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::storage) enum Trust {
    /// After a clean stop: all but these.
    AllBut(HashSet<String>),
    /// After any other: only these, which were made or closed since.
    Only(HashSet<String>),
}

impl Trust {
    pub(super) fn includes(&self, dir: &str) -> bool {
        match self {
            Trust::AllBut(not) => !not.contains(dir),
            Trust::Only(trusted) => trusted.contains(dir),
        }
    }

    /// The files in `dir` are flushed, or there are none.
    pub(super) fn add(&mut self, dir: &str) {
        match self {
            Trust::AllBut(not) => not.remove(dir),
            Trust::Only(trusted) => trusted.insert(dir.to_owned()),
        };
    }

    /// Something was tried with the files in `dir` that may have changed them.
    pub(super) fn remove(&mut self, dir: &str) {
        match self {
            Trust::AllBut(not) => not.insert(dir.to_owned()),
            Trust::Only(trusted) => trusted.remove(dir),
        };
    }
}

/// Reads the mark and removes it, durably. One that makes no sense trusts nobody, as none does.
pub(in crate::storage) fn take(fs: &dyn FileSystem, data_dir: &Path) -> Result<Trust, DirError> {
    let trust = match read(fs, data_dir)? {
        Mark::Missing => return Ok(Trust::Only(HashSet::new())),
        Mark::Nonsense => Trust::Only(HashSet::new()),
        Mark::Left(unchecked) => Trust::AllBut(unchecked),
    };
    let path = data_dir.join(names::CLEAN_SHUTDOWN);
    fs.remove_file(&path).map_err(DirError::of("remove", &path))?;
    fs.sync_dir(data_dir).map_err(DirError::of("flush", data_dir))?;
    Ok(trust)
}

/// What the mark says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::storage) enum Mark {
    /// There is none.
    Missing,
    /// The last stop was a clean one, for all but these directories.
    Left(HashSet<String>),
    /// It cannot be read as one.
    Nonsense,
}

/// Reads the mark and leaves it where it is.
pub(in crate::storage) fn read(fs: &dyn FileSystem, data_dir: &Path) -> Result<Mark, DirError> {
    let path = data_dir.join(names::CLEAN_SHUTDOWN);
    let file = match fs.open(&path, OpenMode::Read) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Mark::Missing),
        Err(e) => return Err(DirError::of("open", &path)(e)),
        Ok(file) => file,
    };
    let len = file.len().map_err(DirError::of("read", &path))?;
    if len > LARGEST {
        return Ok(Mark::Nonsense);
    }
    let mut bytes = vec![0; len as usize];
    file.read_exact_at(&mut bytes, 0).map_err(DirError::of("read", &path))?;
    Ok(parse(&bytes).map_or(Mark::Nonsense, Mark::Left))
}

fn parse(bytes: &[u8]) -> Option<HashSet<String>> {
    let mut lines = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?.split('\n');
    if lines.next()? != "version: 0" {
        return None;
    }
    let count: usize = lines.next()?.strip_prefix("unchecked: ")?.parse().ok()?;
    let dirs: HashSet<String> = lines.map(str::to_owned).collect();
    (dirs.len() == count).then_some(dirs)
}

fn temporary() -> String {
    format!("{}{}", names::CLEAN_SHUTDOWN, names::TEMPORARY)
}

/// Removes what is left of a mark that was not finished.
pub(super) fn tidy(fs: &dyn FileSystem, data_dir: &Path, entries: &[DirEntry]) {
    let temporary = temporary();
    if entries.iter().any(|entry| entry.name == temporary.as_str())
        && let Err(error) = fs.remove_file(&data_dir.join(&temporary))
    {
        tracing::warn!(temporary, %error, "cannot remove an unfinished mark; the next clean stop replaces it");
    }
}

/// Leaves the mark, durably. `unchecked`: the directories that it does not vouch for.
pub(in crate::storage) fn leave(fs: &dyn FileSystem, data_dir: &Path, unchecked: &[String]) -> Result<(), DirError> {
    let path = data_dir.join(names::CLEAN_SHUTDOWN);
    let temporary = data_dir.join(temporary());
    let mut text = format!("version: 0\nunchecked: {}\n", unchecked.len());
    for dir in unchecked {
        text += dir;
        text += "\n";
    }
    let write = || {
        let file = fs.open(&temporary, OpenMode::CreateOrTruncate)?;
        file.write_all_at(&[IoSlice::new(text.as_bytes())], 0)?;
        file.sync()
    };
    write().map_err(DirError::of("write", &temporary))?;
    fs.rename(&temporary, &path).map_err(DirError::of("rename", &temporary))?;
    fs.sync_dir(data_dir).map_err(DirError::of("flush", data_dir))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::OsFileSystem;

    #[test]
    fn the_mark_is_read_once_and_only_whole() {
        let dir = tempfile::tempdir().unwrap();
        let nobody = Trust::Only(HashSet::new());
        assert_eq!(take(&OsFileSystem, dir.path()).unwrap(), nobody);
        for unchecked in [vec![], vec!["a-0".to_owned(), "b-1".to_owned()]] {
            leave(&OsFileSystem, dir.path(), &unchecked).unwrap();
            let trust = take(&OsFileSystem, dir.path()).unwrap();
            assert_eq!(trust, Trust::AllBut(unchecked.iter().cloned().collect()));
            assert!(trust.includes("c-0"));
            assert_eq!(trust.includes("a-0"), unchecked.is_empty());
            assert_eq!(take(&OsFileSystem, dir.path()).unwrap(), nobody);
        }
        leave(&OsFileSystem, dir.path(), &["a-0".to_owned()]).unwrap();
        let whole = std::fs::read(dir.path().join("clean-shutdown")).unwrap();
        for cut in 0..whole.len() {
            assert_eq!(parse(&whole[..cut]), None, "cut to {cut}");
        }
        assert_eq!(parse(b"version: 1\nunchecked: 0\n"), None);
    }
}
