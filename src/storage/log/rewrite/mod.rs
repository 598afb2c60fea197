//! Replacing sealed segments by others with the same records or fewer: what the cleaner does to a log.
//!
//! Some originals, neighbours, are replaced by any number of new segments, the first of which starts where the first
//! original does. Offsets stay, so no new segment reaches past the last original.
//!
//! # On disk
//!
//! Every file of a new segment is made with the suffix `.cleaned`, gets `.swap` once all of them are whole, and then its own
//! name. `S` is a flush of the directory:
//!
//! 1. Remove what an attempt that failed has left. Make the `.cleaned` files and flush each. `S`
//! 2. Give all of them `.swap`, but for the first segment's log. `S`
//! 3. Give the first segment's log `.swap`. `S` **From here on the new segments count.**
//! 4. Readers are given the new segments, through descriptors that are open already and indexes that are in memory.
//! 5. Remove the originals' indexes, and the originals whose offsets the new segments reach into. `S`
//! 6. Give the new logs their own names, from the first on, `S` after each: those that are still to be renamed after a power
//!    cut are the last ones, and what is there from their bases on are originals. The first rename replaces the first original.
//! 7. Remove the originals that lie behind all that the new segments have, from the first on, `S` after each: whatever a
//!    power cut leaves of them still ends like the log did, so that no record is left without the marker or the
//!    tombstone after it.
//! 8. Give the new indexes their own names.
//!
//! # After a power cut
//!
//! [`recover`] looks at the staged files when a log is opened. Any subset of the renames since the last `S` may be on the
//! medium, so:
//!
//! - A `.log.cleaned` is there: step 3 was not reached, or not durable. All originals are there. The staged files from that
//!   base on go (in doze these are all there are, in Apache Kafka's directories there may be a whole rewrite before them),
//!   the `.log.cleaned` last, as it is what tells.
//! - Otherwise each `.log.swap` is whole, and the steps from 5 on are taken (again), but for 7: those stay, and go with a
//!   later rewrite.
//! - A staged index whose log has its own name already gets its own as well, unless there is one. Others go: they are made anew.
//!
//! # When a step fails
//!
//! Up to 3 nothing has changed: the originals are read on, the staged files are removed. After it readers have the new
//! segments, and the rest is tried again before the next rewrite. A flush of the directory that fails takes the log
//! offline, since a later one might hide that the name of an active segment is not durable; reads go on.

mod new_segment;
mod recover;

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::MutexGuard;
use thiserror::Error;

use super::error::{FileError, Offline};
use super::index::AbortedTransaction;
use super::open::remove_segment;
use super::producers::LastOfProducer;
use super::segment::Segment;
use super::{LogConfig, PartitionLog};
use crate::storage::names::{self, FileKind, Stage};
use crate::sys::{Env, FileSystem};
pub(in crate::storage) use new_segment::NewSegment;
pub(in crate::storage) use recover::last_offset;
pub(super) use recover::recover;

/// Why segments were not replaced.
#[derive(Debug, Error)]
pub(in crate::storage) enum RewriteError {
    /// If new segments were to be read already they are; the rest is done before the next rewrite.
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Offline(#[from] Offline),
    /// Some original is no longer in the log: it was deleted meanwhile, or the log was closed. Nothing is wrong.
    #[error("the segments are no longer there")]
    Gone,
}

/// What of a log sealed segments are replaced by, one rewrite at a time.
#[derive(Debug, Default)]
pub(super) struct Rewrites {
    /// New segments are read, and their files have not all got their names.
    unfinished: Option<Unfinished>,
}

#[derive(Debug)]
struct Unfinished {
    new: Vec<Arc<Segment>>,
    /// Base offsets, rising.
    originals: Vec<i64>,
    /// The last offset in the new segments; less than any original's if there are none.
    covered: i64,
    /// How many of the steps have been taken.
    done: u8,
}

/// What can be rewritten of a log, at one moment.
#[derive(Debug)]
pub(in crate::storage) struct Rewritable {
    /// The sealed segments, and for each the base offset of the next.
    pub segments: Vec<(Arc<Segment>, i64)>,
    pub start: i64,
    pub last_stable: i64,
    pub config: LogConfig,
}

impl PartitionLog {
    /// Finishes what an earlier rewrite has left, and answers what there is to rewrite. `Gone` if the log is closed.
    pub(in crate::storage) fn rewritable(&self) -> Result<Rewritable, RewriteError> {
        drop(self.rewrites()?);
        let config = self.config();
        let view = self.view.read();
        if view.closed {
            return Err(RewriteError::Gone);
        }
        let segments = view.segments.windows(2).map(|pair| (pair[0].clone(), pair[1].base)).collect();
        Ok(Rewritable { segments, start: view.start, last_stable: view.last_stable.offset.max(view.start), config })
    }

    /// The active segment with the end of the log for the base of the next, if it has anything.
    pub(in crate::storage) fn active_as_sealed(&self) -> Option<(Arc<Segment>, i64)> {
        let view = self.view.read();
        let active = view.active();
        (active.size() > 0).then(|| (active.clone(), view.end))
    }

    /// What is in force.
    pub(in crate::storage) fn config(&self) -> LogConfig {
        self.writer.lock().config.clone()
    }

    /// Makes the log file of a new segment that starts at `base`, which is written `buffer` bytes at a time; `first` is
    /// whether it is the first of its rewrite.
    pub(in crate::storage) fn new_segment(
        &self,
        base: i64,
        first: bool,
        buffer: usize,
    ) -> Result<NewSegment, RewriteError> {
        if first {
            let _rewrites = self.rewrites()?;
            self.discard_staged()?;
        }
        let interval = self.config().index_interval_bytes;
        Ok(NewSegment::create(&self.env.fs, &self.dir, base, interval, buffer)?)
    }

    /// Removes what a rewrite that is given up has left, if that can be done now; else it is done later.
    pub(in crate::storage) fn give_up_rewrite(&self) {
        if let Ok(_rewrites) = self.rewrites() {
            let _ = self.discard_staged();
        }
    }

    fn discard_staged(&self) -> Result<(), FileError> {
        recover::discard(&*self.env.fs, &self.dir, i64::MIN, &|| {
            self.env.fs.sync_dir(&self.dir).map_err(|error| {
                self.flush_failed(&self.dir, &error);
                FileError::of("flush", &self.dir)(error)
            })
        })
    }

    /// The transactions that were aborted and have anything from `from` up to `to`, in the order of their markers; some that
    /// have nothing may be among them.
    pub(in crate::storage) fn aborted_transactions(
        &self,
        from: i64,
        to: i64,
    ) -> Result<Vec<AbortedTransaction>, RewriteError> {
        let segments = {
            let view = self.view.read();
            let first = view.segments.partition_point(|segment| segment.base <= from).saturating_sub(1);
            view.segments[first..].to_vec()
        };
        let mut aborted = Vec::new();
        for segment in segments {
            if segment.aborted(&*self.env.fs, (from, to), &mut aborted)? {
                break;
            }
        }
        Ok(aborted)
    }

    /// Where each producer that is known wrote last.
    pub(in crate::storage) fn last_of_producers(&self) -> HashMap<i64, LastOfProducer> {
        self.writer.lock().producers.last_written()
    }

    pub(in crate::storage) fn env(&self) -> &Env {
        &self.env
    }

    /// Whether a segment is the log's first.
    pub(in crate::storage) fn is_first(&self, segment: &Segment) -> bool {
        self.view.read().segments[0].id == segment.id
    }

    /// Puts new segments (with rising bases, the first with that of the first original; or none at all) in the place of
    /// `originals`, neighbours that [`PartitionLog::rewritable`] has answered. `modified_ms` is what their files are to
    /// say of their age.
    pub(in crate::storage) fn replace(
        &self,
        originals: &[Arc<Segment>],
        new: Vec<NewSegment>,
        modified_ms: i64,
    ) -> Result<(), RewriteError> {
        let mut rewrites = self.rewrites()?;
        self.find(originals)?;
        let covered = new.last().map_or(i64::MIN, |last| last.last_offset().unwrap_or(last.base()));
        let staged = self.stage(new, modified_ms);
        let new = match staged {
            Ok(new) => new,
            Err(error) => {
                // What cannot be removed now is before the next rewrite, or at the next open.
                if self.flush.offline().is_none() {
                    let _ = self.discard_staged();
                }
                return Err(error);
            }
        };
        {
            let mut view = self.view.write();
            let Some(at) = view.segments.iter().position(|segment| segment.id == originals[0].id) else {
                // Nobody removes segments without the lock that is held.
                return Err(RewriteError::Gone);
            };
            originals.iter().for_each(|original| original.retire());
            view.segments.splice(at..at + originals.len(), new.iter().cloned());
            view.rewrites += 1;
        }
        let originals = originals.iter().map(|original| original.base).collect();
        rewrites.unfinished = Some(Unfinished { new, originals, covered, done: 0 });
        self.finish_rewrite(&mut rewrites)
    }

    /// Steps 1 to 3.
    fn stage(&self, new: Vec<NewSegment>, modified_ms: i64) -> Result<Vec<Arc<Segment>>, RewriteError> {
        let mut segments = Vec::new();
        for new in new {
            segments.push(new.finish(modified_ms)?);
        }
        let sync = || self.env.fs.sync_dir(&self.dir).map_err(|error| self.flush_failed(&self.dir, &error).into());
        let bases: Vec<i64> = segments.iter().map(|segment| segment.base).collect();
        publish::<RewriteError>(&*self.env.fs, &self.dir, &bases, &sync)?;
        Ok(segments)
    }

    /// Whether the originals are still neighbours in the log.
    fn find(&self, originals: &[Arc<Segment>]) -> Result<(), RewriteError> {
        let view = self.view.read();
        let at = view.segments.iter().position(|segment| segment.id == originals[0].id);
        let there = at.is_some_and(|at| {
            let sealed = &view.segments[at..view.segments.len() - 1];
            sealed.len() >= originals.len() && sealed.iter().zip(originals).all(|(there, of)| there.id == of.id)
        });
        if view.closed || !there { Err(RewriteError::Gone) } else { Ok(()) }
    }

    /// Takes the lock of whoever replaces or removes sealed segments, and finishes what was not finished.
    fn rewrites(&self) -> Result<MutexGuard<'_, Rewrites>, RewriteError> {
        if let Some(offline) = self.flush.offline() {
            return Err(offline.into());
        }
        let mut rewrites = self.rewrites.lock();
        self.finish_rewrite(&mut rewrites)?;
        Ok(rewrites)
    }

    /// Steps 5 to 8, from where they were left.
    fn finish_rewrite(&self, rewrites: &mut Rewrites) -> Result<(), RewriteError> {
        let Some(unfinished) = &mut rewrites.unfinished else { return Ok(()) };
        let fs = &*self.env.fs;
        let sync = || fs.sync_dir(&self.dir).map_err(|error| self.flush_failed(&self.dir, &error));
        let is_new = |base: i64| unfinished.new.iter().any(|segment| segment.base == base);
        if unfinished.done < 1 && !unfinished.new.is_empty() {
            for base in &unfinished.originals {
                for kind in [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TxnIndex] {
                    self.remove(*base, kind)?;
                }
                if *base <= unfinished.covered && !is_new(*base) {
                    self.remove(*base, FileKind::Log)?;
                }
            }
            sync()?;
        }
        unfinished.done = unfinished.done.max(1);
        if unfinished.done < 2 && !unfinished.new.is_empty() {
            for segment in &unfinished.new {
                self.rename(segment.base, FileKind::Log, Stage::Swap, Stage::Live)?;
                sync()?;
            }
        }
        unfinished.done = unfinished.done.max(2);
        for base in unfinished.originals.iter().filter(|base| **base > unfinished.covered) {
            if !is_new(*base) {
                remove_segment(fs, &self.dir, *base)?;
                sync()?;
            }
        }
        for segment in &unfinished.new {
            for kind in [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TxnIndex] {
                self.rename(segment.base, kind, Stage::Swap, Stage::Live)?;
            }
            segment.settle();
        }
        rewrites.unfinished = None;
        Ok(())
    }

    fn remove(&self, base: i64, kind: FileKind) -> Result<(), FileError> {
        super::open::remove_if_there(&*self.env.fs, &self.dir.join(names::segment_file(base, kind)))
    }

    fn rename(&self, base: i64, kind: FileKind, from: Stage, to: Stage) -> Result<(), FileError> {
        rename(&*self.env.fs, &self.dir, base, kind, from, to)
    }
}

/// Steps 1 to 3 for `.cleaned` files that are whole, of the segments with these rising bases: when it has returned, they
/// count. `sync` flushes the directory.
pub(super) fn publish<E: From<FileError>>(
    fs: &dyn FileSystem,
    dir: &Path,
    bases: &[i64],
    sync: &dyn Fn() -> Result<(), E>,
) -> Result<(), E> {
    let Some((first, others)) = bases.split_first() else { return Ok(()) };
    sync()?;
    for base in bases {
        for kind in [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TxnIndex] {
            rename(fs, dir, *base, kind, Stage::Cleaned, Stage::Swap)?;
        }
    }
    for base in others {
        rename(fs, dir, *base, FileKind::Log, Stage::Cleaned, Stage::Swap)?;
    }
    sync()?;
    rename(fs, dir, *first, FileKind::Log, Stage::Cleaned, Stage::Swap)?;
    sync()
}

/// Takes a file from one stage to the next, unless that was done before or there is no such file.
fn rename(fs: &dyn FileSystem, dir: &Path, base: i64, kind: FileKind, from: Stage, to: Stage) -> Result<(), FileError> {
    let from = dir.join(names::staged_file(base, kind, from));
    match fs.rename(&from, &dir.join(names::staged_file(base, kind, to))) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(FileError::of("rename", &from)(error)),
        _ => Ok(()),
    }
}
