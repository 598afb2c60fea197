//! A copy of a directory, to repair that and leave the original alone.

use std::io::{self, IoSlice};
use std::path::Path;

use super::error::RecoverError;
use crate::storage::names;
use crate::storage::offline::{DataDir, Origin};
use crate::storage::store::DirError;
use crate::sys::{Env, FileSystem, OpenMode};

const PIECE: usize = 256 * 1024;

/// Copies all of `dir` into `to`, which is made, or is there and empty. On return the copy is on the medium. Of the original
/// nothing is written. Quarantine folders and lock files are not copied. `progress` is told bytes that were copied.
///
/// What makes the copy one that a broker starts from (doze's catalog, Apache Kafka's `meta.properties`) is copied last, so one that
/// was interrupted is not taken for whole.
pub fn copy(dir: &DataDir, to: &Path, progress: &mut dyn FnMut(u64)) -> Result<(), RecoverError> {
    let (env, fs): (&Env, &dyn FileSystem) = (dir.env(), &*dir.env().fs);
    if to.starts_with(dir.path()) {
        return Err(RecoverError::Inside { path: to.to_owned() });
    }
    fs.create_dir_all(to).map_err(DirError::of("create", to))?;
    if !fs.list(to).map_err(DirError::of("list", to))?.is_empty() {
        return Err(RecoverError::NotEmpty { path: to.to_owned() });
    }
    let mut last = Vec::new();
    for entry in env.fs.list(dir.path()).map_err(DirError::of("list", dir.path()))? {
        let (from, target) = (dir.path().join(&entry.name), to.join(&entry.name));
        let own = entry.name == names::CATALOG || entry.name == names::KAFKA_META_PROPERTIES;
        if entry.is_dir && names::is_quarantine_dir(&entry.name) || entry.name == names::LOCK {
            continue;
        }
        if own && !entry.is_dir {
            last.push((from, target));
        } else if entry.is_dir {
            copy_dir(fs, &from, &target, progress)?;
        } else {
            copy_file(fs, &from, &target, progress)?;
        }
    }
    fs.sync_dir(to).map_err(DirError::of("flush", to))?;
    let catalog = dir.catalog_path();
    if dir.origin() == Origin::Doze
        && catalog.parent() != Some(dir.path())
        && fs.exists(catalog).map_err(DirError::of("look at", catalog))?
    {
        last.push((catalog.to_owned(), to.join(names::CATALOG)));
    }
    for (from, target) in last {
        copy_file(fs, &from, &target, progress)?;
    }
    fs.sync_dir(to).map_err(DirError::of("flush", to))?;
    Ok(())
}

fn copy_dir(fs: &dyn FileSystem, from: &Path, to: &Path, progress: &mut dyn FnMut(u64)) -> Result<(), DirError> {
    fs.create_dir(to).map_err(DirError::of("create", to))?;
    for entry in fs.list(from).map_err(DirError::of("list", from))? {
        let (from, to) = (from.join(&entry.name), to.join(&entry.name));
        if entry.is_dir { copy_dir(fs, &from, &to, progress)? } else { copy_file(fs, &from, &to, progress)? }
    }
    fs.sync_dir(to).map_err(DirError::of("flush", to))
}

fn copy_file(fs: &dyn FileSystem, from: &Path, to: &Path, progress: &mut dyn FnMut(u64)) -> Result<(), DirError> {
    let modified_ms = fs.metadata(from).map_err(DirError::of("look at", from))?.modified_ms;
    let source = fs.open(from, OpenMode::Read).map_err(DirError::of("read", from))?;
    let len = source.len().map_err(DirError::of("read", from))?;
    let target = fs.open(to, OpenMode::CreateNew).map_err(DirError::of("create", to))?;
    let mut buffer = vec![0; PIECE.min(usize::try_from(len).unwrap_or(PIECE))];
    let mut done = 0;
    while done < len {
        let n = buffer.len().min(usize::try_from(len - done).unwrap_or(PIECE));
        source.read_exact_at(&mut buffer[..n], done).map_err(DirError::of("read", from))?;
        target.write_all_at(&[IoSlice::new(&buffer[..n])], done).map_err(DirError::of("write", to))?;
        done += n as u64;
        progress(n as u64);
    }
    // Retention goes by it where records have no timestamps.
    match target.set_modified(modified_ms) {
        Err(error) if error.kind() != io::ErrorKind::Unsupported => {
            return Err(DirError::of("set the age of", to)(error));
        }
        _ => {}
    }
    target.sync().map_err(DirError::of("flush", to))
}
