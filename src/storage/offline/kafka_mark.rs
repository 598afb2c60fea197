//! Apache Kafka's mark of a clean stop, `.kafka_cleanshutdown`, while somebody else changes what it vouches for.
//!
//! It has the epoch of the broker in it, and only the one that the node left is of use. So it is put aside under another name
//! in the same directory, which nobody reads, and gets its own back: content, owner and times are those it had.

use std::path::{Path, PathBuf};

use crate::storage::names;
use crate::storage::store::DirError;
use crate::sys::FileSystem;

fn paths(dir: &Path) -> (PathBuf, PathBuf) {
    let aside = format!("{}{}", names::KAFKA_CLEAN_SHUTDOWN, names::TEMPORARY);
    (dir.join(names::KAFKA_CLEAN_SHUTDOWN), dir.join(aside))
}

/// Puts the mark aside. On return it is certain to be gone, whatever happens. Answers whether there was one.
pub(in crate::storage) fn put_aside(fs: &dyn FileSystem, dir: &Path) -> Result<bool, DirError> {
    let (mark, aside) = paths(dir);
    if !fs.exists(&mark).map_err(DirError::of("look at", &mark))? {
        return Ok(false);
    }
    fs.rename(&mark, &aside).map_err(DirError::of("rename", &mark))?;
    fs.sync_dir(dir).map_err(DirError::of("flush", dir))?;
    Ok(true)
}

/// Gives the mark that was put aside its name again: everything is flushed.
pub(in crate::storage) fn put_back(fs: &dyn FileSystem, dir: &Path) -> Result<(), DirError> {
    let (mark, aside) = paths(dir);
    fs.rename(&aside, &mark).map_err(DirError::of("rename", &aside))?;
    fs.sync_dir(dir).map_err(DirError::of("flush", dir))
}

/// Removes a mark that was put aside: it does not hold any more.
pub(in crate::storage) fn discard(fs: &dyn FileSystem, dir: &Path) -> Result<(), DirError> {
    let (_, aside) = paths(dir);
    fs.remove_file(&aside).map_err(DirError::of("remove", &aside))
}
