//! What a start makes of the staged files of a rewrite; the rules stand in the module above.

use std::path::Path;

use crate::storage::log::error::FileError;
use crate::storage::log::open::remove_if_there;
use crate::storage::log::scan::{LONG_WALK, Walker};
use crate::storage::names::{self, FileKind, PartitionFile, Stage};
use crate::sys::{FileSystem, OpenMode};

const INDEXES: [FileKind; 3] = [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TxnIndex];

/// A file of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Staged {
    base: i64,
    kind: FileKind,
    stage: Stage,
}

impl Staged {
    fn is_log(&self, stage: Stage) -> bool {
        self.kind == FileKind::Log && self.stage == stage
    }
}

fn list(fs: &dyn FileSystem, dir: &Path) -> Result<Vec<Staged>, FileError> {
    let entries = fs.list(dir).map_err(FileError::of("list", dir))?;
    let mut files: Vec<Staged> = entries
        .iter()
        .filter_map(|entry| match names::parse_partition_file(&entry.name) {
            PartitionFile::Segment { base, kind, stage } => Some(Staged { base, kind, stage }),
            _ => None,
        })
        .collect();
    files.sort_by_key(|file| (file.base, file.kind));
    Ok(files)
}

fn name(file: &Staged) -> String {
    names::staged_file(file.base, file.kind, file.stage)
}

fn sync(fs: &dyn FileSystem, dir: &Path) -> Result<(), FileError> {
    fs.sync_dir(dir).map_err(FileError::of("flush", dir))
}

fn rename(fs: &dyn FileSystem, dir: &Path, file: &Staged, to: Stage) -> Result<(), FileError> {
    let path = dir.join(name(file));
    let to = dir.join(names::staged_file(file.base, file.kind, to));
    fs.rename(&path, &to).map_err(FileError::of("rename", &path))
}

/// Removes the staged files of a rewrite that is not to be, those of bases from `from` on. A power cut anywhere in it leaves what is removed at the next
/// start, and nothing that would be taken for a rewrite that is whole. `sync` flushes the directory.
pub(super) fn discard(
    fs: &dyn FileSystem,
    dir: &Path,
    from: i64,
    sync: &dyn Fn() -> Result<(), FileError>,
) -> Result<(), FileError> {
    let mut staged = list(fs, dir)?;
    staged.retain(|file| file.base >= from && matches!(file.stage, Stage::Cleaned | Stage::Swap));
    if staged.is_empty() {
        return Ok(());
    }
    let mut changed = false;
    if !staged.iter().any(|file| file.is_log(Stage::Cleaned))
        && let Some(first) = staged.iter_mut().find(|file| file.is_log(Stage::Swap))
    {
        rename(fs, dir, first, Stage::Cleaned)?;
        first.stage = Stage::Cleaned;
        sync()?;
    }
    for file in staged.iter().filter(|file| !file.is_log(Stage::Cleaned)) {
        remove_if_there(fs, &dir.join(name(file)))?;
        changed = true;
    }
    if changed {
        sync()?;
    }
    for file in staged.iter().filter(|file| file.is_log(Stage::Cleaned)) {
        remove_if_there(fs, &dir.join(name(file)))?;
    }
    Ok(())
}

/// Finishes or discards what a rewrite has left in the directory of a log that is being opened. Each step may be cut off:
/// the next start goes on from there.
pub(in crate::storage::log) fn recover(fs: &dyn FileSystem, dir: &Path) -> Result<(), FileError> {
    let files = list(fs, dir)?;
    if files.iter().all(|file| matches!(file.stage, Stage::Live | Stage::Deleted)) {
        return Ok(());
    }
    let first_cleaned = files.iter().find(|file| file.is_log(Stage::Cleaned)).map(|file| file.base);
    if let Some(first) = first_cleaned {
        discard(fs, dir, first, &|| sync(fs, dir))?;
    }
    let is_whole = |file: &&Staged| file.is_log(Stage::Swap) && first_cleaned.is_none_or(|first| file.base < first);
    let swaps: Vec<&Staged> = files.iter().filter(is_whole).collect();
    if !swaps.is_empty() {
        tracing::info!(dir = %dir.display(), segments = swaps.len(), "a rewrite of segments is being finished");
        let mut covered = i64::MIN;
        for swap in &swaps {
            covered = covered.max(last_offset(fs, &dir.join(name(swap)))?.unwrap_or(swap.base));
        }
        let replaced = swaps[0].base..=covered;
        for original in files.iter().filter(|file| file.stage == Stage::Live && replaced.contains(&file.base)) {
            // The producer snapshots stay: compaction does not change the producers. A log of the same base is replaced in
            // one step.
            let goes = match original.kind {
                FileKind::Snapshot => false,
                FileKind::Log => !swaps.iter().any(|swap| swap.base == original.base),
                _ => true,
            };
            if goes {
                remove_if_there(fs, &dir.join(name(original)))?;
            }
        }
        sync(fs, dir)?;
        for swap in &swaps {
            rename(fs, dir, swap, Stage::Live)?;
            sync(fs, dir)?;
        }
    }
    let mut changed = false;
    let files = list(fs, dir)?;
    let is_live = |base, kind| files.contains(&Staged { base, kind, stage: Stage::Live });
    for file in files.iter().filter(|file| matches!(file.stage, Stage::Cleaned | Stage::Swap)) {
        let takes_its_name = file.stage == Stage::Swap
            && INDEXES.contains(&file.kind)
            && is_live(file.base, FileKind::Log)
            && !is_live(file.base, file.kind);
        match takes_its_name {
            true => rename(fs, dir, file, Stage::Live)?,
            false => remove_if_there(fs, &dir.join(name(file)))?,
        }
        changed = true;
    }
    if changed { sync(fs, dir) } else { Ok(()) }
}

/// The last offset in a log file.
pub(in crate::storage) fn last_offset(fs: &dyn FileSystem, path: &Path) -> Result<Option<i64>, FileError> {
    let walk = || {
        let file = fs.open(path, OpenMode::Read)?;
        let len = file.len()?;
        let mut walker = Walker::new(file, 0, len, LONG_WALK);
        let mut last = None;
        while walker.position() < len {
            match walker.next()? {
                Some(batch) => last = Some(batch.last_offset),
                // Bytes that were no batch in the original are none in the rewrite.
                None if walker.find_next(0..=i64::MAX)? => {}
                None => break,
            }
        }
        Ok(last)
    };
    walk().map_err(FileError::of("read", path))
}
