//! Closing a log, and removing some or all of it.

use std::path::Path;
use std::sync::Arc;

use super::PartitionLog;
use super::append::Writer;
use super::error::{CloseError, FileError, SyncError, TruncateError};
use super::open::remove_segment;
use super::segment::Segment;
use crate::storage::names::{self, FileKind};

impl PartitionLog {
    /// Moves the start of the log to `to` and removes the segments that are all below it; never the active one. Nothing
    /// happens if the start is there or after it already.
    ///
    /// The caller has made the new start durable before. So wherever the power is cut, the next open, which is told that
    /// start, removes what is left below it: all segments that were to go if none of their names' removals reached the
    /// medium, any of them if some did, and pieces of one segment (files without their log are removed too).
    pub fn advance_log_start(&self, to: i64) -> Result<(), TruncateError> {
        let _rewrites = self.rewrites.lock();
        let removed = {
            // With the appenders' lock, so that the active segment stays the same.
            let writer = self.writer.lock();
            if writer.closed {
                return Err(TruncateError::Closed);
            }
            let mut view = self.view.write();
            if to > view.end || to < 0 {
                return Err(TruncateError::OutOfRange { offset: to, start: view.start, end: view.end });
            }
            if to <= view.start {
                return Ok(());
            }
            view.start = to;
            view.epochs.truncate_start(to);
            let below = view.segments.windows(2).take_while(|pair| pair[1].base <= to).count();
            let removed: Vec<Arc<Segment>> = view.segments.drain(..below).collect();
            removed
        };
        if removed.is_empty() {
            return Ok(());
        }
        // No reader finds them any more; those that did read on.
        for segment in &removed {
            remove_segment(&*self.env.fs, &self.dir, segment.base)?;
        }
        self.env.fs.sync_dir(&self.dir).map_err(|error| self.flush_failed(&self.dir, &error))?;
        Ok(())
    }

    /// Flushes everything and writes what lets the next open trust the files. After it, every operation says that the log
    /// is closed, also if it failed; then the stop is no clean one.
    pub fn close(&self) -> Result<(), CloseError> {
        let result = {
            let _rewrites = self.rewrites.lock();
            let mut writer = self.writer.lock();
            if writer.closed {
                return Err(CloseError::Closed);
            }
            let _gate = self.flush.gate.lock();
            let result = self.finish(&mut writer);
            self.shut(&mut writer);
            result
        };
        let answer = match &result {
            Ok(()) => Ok(()),
            Err(CloseError::Offline(offline)) => Err(SyncError::Failed(offline.clone())),
            Err(_) => Err(SyncError::Closed),
        };
        self.flush.close(answer);
        self.watchers.notify();
        result
    }

    /// Brings all there is onto the medium.
    fn finish(&self, writer: &mut Writer) -> Result<(), CloseError> {
        if let Some(offline) = self.flush.offline() {
            return Err(offline.into());
        }
        if !writer.changed {
            return Ok(());
        }
        let (fs, active) = (&*self.env.fs, &writer.active);
        let path = active.path(FileKind::Log);
        let file = active.file(fs)?;
        if file.len().map_err(FileError::of("look at", &path))? > writer.position {
            // It was preallocated.
            file.set_len(writer.position).map_err(FileError::of("cut", &path))?;
        }
        file.sync().map_err(|error| self.flush_failed(&path, &error))?;
        let active = active.clone();
        let noted = self.write_notes(writer, &active)?;
        fs.sync_dir(&self.dir).map_err(|error| self.flush_failed(&self.dir, &error))?;
        self.flush.flushed(writer.end, self.env.clock.monotonic());
        noted.map_err(CloseError::Unnoted)?;
        writer.changed = false;
        Ok(())
    }

    /// Writes what can be made anew from the log, for which there may be no room. The outer error is a flush that failed.
    fn write_notes(&self, writer: &mut Writer, active: &Segment) -> Result<Result<(), FileError>, CloseError> {
        let fs = &*self.env.fs;
        if let Err(error) = active.finish_indexes(fs) {
            return Ok(Err(error));
        }
        active.sync_indexes(fs).map_err(|error| self.take_offline(error.to_string()))?;
        Ok(self.write_snapshot(writer).and_then(|()| self.write_leader_epochs()))
    }

    /// From here on every operation says that the log is closed.
    fn shut(&self, writer: &mut Writer) {
        writer.closed = true;
        let mut view = self.view.write();
        view.closed = true;
        let active = view.active().clone();
        drop(view);
        active.let_go();
        self.hints.lock().release();
    }

    /// Removes the partition: its directory and all in it. It may be closed already. Readers of what they were given read on.
    ///
    /// The directory is renamed first, and that made durable: after a power cut the whole partition is there under its name,
    /// or what is left of it is under a name that the next start removes. An error after that leaves it there as well.
    pub fn delete(&self) -> Result<(), CloseError> {
        {
            let _rewrites = self.rewrites.lock();
            let mut writer = self.writer.lock();
            let _gate = self.flush.gate.lock();
            self.shut(&mut writer);
        }
        self.flush.close(Err(SyncError::Closed));
        self.watchers.notify();
        let fs = &*self.env.fs;
        let mut unique = [0; 16];
        self.env.random.fill(&mut unique);
        let parent = self.dir.parent().unwrap_or(Path::new(""));
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let to = parent.join(names::deleted_dir(&self.topic, self.partition, u128::from_be_bytes(unique)));
        fs.rename(&self.dir, &to).map_err(FileError::of("rename", &self.dir))?;
        fs.sync_dir(parent).map_err(FileError::of("flush", parent))?;
        fs.remove_dir_all(&to).map_err(FileError::of("remove", &to))?;
        fs.sync_dir(parent).map_err(FileError::of("flush", parent))?;
        Ok(())
    }
}
