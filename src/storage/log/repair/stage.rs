//! Writing segments anew without what is no good in them.

use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

use super::survey::{FRAME, Stretch, Surveyed};
use crate::storage::log::error::FileError;
use crate::storage::log::index::AbortedTransaction;
use crate::storage::log::open::remove_segment;
use crate::storage::log::rewrite::{self, NewSegment};
use crate::storage::log::scan::{LONG_WALK, Walker};
use crate::storage::names::{self, FileKind};
use crate::sys::{FileSystem, OpenMode};

/// How much of a new segment is held in memory before it is written, in bytes.
const BUFFER: usize = 256 * 1024;

/// Writes the segments of `files` anew, with their indexes, and puts them in the place of what is there. `files` are
/// neighbours, in the order in which they belong. Stretches that `goes` says yes to are left out, those that can be put
/// right are, the others stay as they are. `aborted`: the aborted transactions of each file, by its place.
///
/// A power cut leaves the old files or the new ones, and maybe staged files, which any start clears away or finishes.
/// When it has returned everything is on the medium.
pub(in crate::storage) fn restage(
    fs: &Arc<dyn FileSystem>,
    dir: &Arc<Path>,
    files: &[&Surveyed],
    aborted: &[Vec<AbortedTransaction>],
    interval: u32,
    goes: &dyn Fn(&Surveyed, &Stretch) -> bool,
) -> Result<(), FileError> {
    let sync = || fs.sync_dir(dir).map_err(FileError::of("flush", dir));
    let mut bases = Vec::new();
    for (file, aborted) in files.iter().zip(aborted) {
        let path = dir.join(names::segment_file(file.base, FileKind::Log));
        let modified_ms = fs.metadata(&path).map_err(FileError::of("look at", &path))?.modified_ms;
        let mut new = NewSegment::create(fs, dir, file.belongs, interval, BUFFER)?;
        write(&**fs, &path, file, &mut new, goes)?;
        aborted.iter().for_each(|entry| new.push_aborted(*entry));
        new.finish(modified_ms)?;
        bases.push(file.belongs);
    }
    rewrite::publish::<FileError>(&**fs, dir, &bases, &sync)?;
    rewrite::recover(&**fs, dir)?;
    // A file that had the name of another place, past all that belongs to these.
    for file in files.iter().filter(|file| !bases.contains(&file.base)) {
        remove_segment(&**fs, dir, file.base)?;
    }
    sync()
}

/// Finishes or clears away a rewrite of segments that was interrupted, as a start does.
pub(in crate::storage) fn finish_rewrite(fs: &dyn FileSystem, dir: &Path) -> Result<(), FileError> {
    rewrite::recover(fs, dir)?;
    fs.sync_dir(dir).map_err(FileError::of("flush", dir))
}

fn write(
    fs: &dyn FileSystem,
    path: &Path,
    file: &Surveyed,
    new: &mut NewSegment,
    goes: &dyn Fn(&Surveyed, &Stretch) -> bool,
) -> Result<(), FileError> {
    let opened = fs.open(path, OpenMode::Read).map_err(FileError::of("open", path))?;
    let mut walker = Walker::new(opened, 0, file.len, LONG_WALK);
    let mut stretches = file.stretches.iter().peekable();
    loop {
        let at = walker.position();
        if let Some(stretch) = stretches.next_if(|stretch| stretch.position == at) {
            if let Some(mend) = &stretch.mend {
                let mut bytes = slice(&mut walker, path, at, stretch.end())?.to_vec();
                bytes[..FRAME].copy_from_slice(&mend.frame);
                new.append(&mend.batch, &bytes)?;
            } else if !goes(file, stretch) {
                let mut from = at;
                while from < stretch.end() {
                    let to = stretch.end().min(from + LONG_WALK as u64);
                    new.append_hole(slice(&mut walker, path, from, to)?)?;
                    from = to;
                }
            }
            walker.skip_to(stretch.end());
            continue;
        }
        if at >= file.len {
            return Ok(());
        }
        let changed = || std::io::Error::other("it has changed since it was looked at");
        let batch = walker.next().and_then(|batch| batch.ok_or_else(changed));
        let batch = batch.map_err(FileError::of("read", path))?;
        new.append(&batch, slice(&mut walker, path, batch.position, batch.end())?)?;
    }
}

fn slice<'a>(walker: &'a mut Walker, path: &Path, from: u64, to: u64) -> Result<&'a [u8], FileError> {
    let short = || FileError::of("read", path)(std::io::ErrorKind::UnexpectedEof.into());
    match walker.slice(from, to) {
        Ok(slice) => slice.ok_or_else(short),
        Err(error) => Err(FileError::of("read", path)(error)),
    }
}

/// Cuts a file to `len` bytes, durably.
pub(in crate::storage) fn cut(fs: &dyn FileSystem, path: &Path, len: u64) -> Result<(), FileError> {
    let cut = || {
        let file = fs.open(path, OpenMode::ReadWrite)?;
        file.set_len(len)?;
        file.sync()
    };
    cut().map_err(FileError::of("cut", path))
}

/// Gives the file of a segment this content, in one step that is durable once the directory is flushed.
pub(super) fn replace(
    fs: &dyn FileSystem,
    dir: &Path,
    base: i64,
    kind: FileKind,
    content: &[u8],
) -> Result<(), FileError> {
    let staged = dir.join(names::staged_file(base, kind, names::Stage::Cleaned));
    let path = dir.join(names::segment_file(base, kind));
    let write = || {
        let file = fs.open(&staged, OpenMode::CreateOrTruncate)?;
        file.write_all_at(&[IoSlice::new(content)], 0)?;
        file.sync()?;
        fs.rename(&staged, &path)
    };
    write().map_err(FileError::of("write", &path))
}
