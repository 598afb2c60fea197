//! Sealing the active segment and starting the next.

use std::io;
use std::sync::Arc;

use super::append::Writer;
use super::error::{AppendError, FileError};
use super::segment::Segment;
use super::{PartitionLog, snapshot};
use crate::record::BatchHeader;
use crate::storage::names::{self, FileKind};
use crate::sys::{Env, OpenMode};

impl PartitionLog {
    /// Whether the batch has to go into a new segment.
    pub(super) fn is_roll_due(&self, writer: &mut Writer, header: &BatchHeader, size: u64) -> Result<bool, FileError> {
        let Writer { config, active, position, .. } = &*writer;
        if *position == 0 {
            return Ok(false);
        }
        if position + size > u64::from(config.segment_bytes)
            || header.last_offset() - active.base > i64::from(i32::MAX)
            || active.is_index_full(config.segment_index_bytes)
        {
            return Ok(true);
        }
        let first = self.first_timestamp(writer)?;
        let waited = match first >= 0 {
            true => header.max_timestamp.saturating_sub(first),
            false => self.env.clock.now_ms().saturating_sub(writer.created_ms),
        };
        Ok(waited > writer.config.roll_ms() - writer.jitter_ms)
    }

    /// The maximum timestamp of the active segment's first batch, -1 if it has none or there is no batch.
    pub(super) fn first_timestamp(&self, writer: &mut Writer) -> Result<i64, FileError> {
        if let Some(first) = writer.first_timestamp {
            return Ok(first);
        }
        let first = writer.active.walk_to(&*self.env.fs, 0, |_| true)?.map_or(-1, |batch| batch.max_timestamp);
        writer.first_timestamp = Some(first);
        Ok(first)
    }

    /// Seals the active segment and makes the next. If that fails nothing has changed, and it may be tried again.
    ///
    /// After a power cut in the middle of it the segment is still the last one, and is looked at as such; what is on the
    /// medium of the indexes, the snapshot and the next segment's empty file does no harm. Once the next segment's name
    /// can be on the medium, all of this segment is.
    pub(super) fn roll(&self, writer: &mut Writer) -> Result<(), AppendError> {
        let fs = &*self.env.fs;
        let _gate = self.flush.gate.lock();
        // The flush that held the gate may have failed.
        self.flush.offline().map_or(Ok(()), |offline| Err(AppendError::from(offline)))?;
        let sealed = writer.active.clone();
        let (path, file) = (sealed.path(FileKind::Log), sealed.file(fs)?);
        if writer.config.preallocate {
            file.set_len(writer.position).map_err(FileError::of("cut", &path))?;
        }
        file.sync().map_err(|error| self.flush_failed(&path, &error))?;
        sealed.finish_indexes(fs)?;
        sealed.sync_indexes(fs).map_err(|error| self.take_offline(error.to_string()))?;
        self.write_snapshot(writer)?;
        self.write_leader_epochs()?;
        fs.sync_dir(&self.dir).map_err(|error| self.flush_failed(&self.dir, &error))?;

        let next = match create_segment(&self.env, &self.dir, writer.end, &writer.config) {
            Ok(next) => next,
            Err(error) => return Err(self.undo_create(writer.end, error)),
        };
        let now = self.env.clock.monotonic();
        let next = Arc::new(next);
        writer.active = next.clone();
        writer.position = 0;
        writer.first_timestamp = None;
        writer.written_since_ms = None;
        writer.created_ms = self.env.clock.now_ms();
        writer.jitter_ms = jitter_ms(&self.env, &writer.config);
        let keep_from = {
            let mut view = self.view.write();
            view.end_position = 0;
            if view.last_stable.offset == view.end {
                view.last_stable.place = Some((next.base, 0));
            }
            view.segments.push(next);
            view.segments[view.segments.len() - 2].base
        };
        sealed.let_go();
        self.flush.rolled(writer.end, now);
        self.remove_snapshots(keep_from, writer.end);
        Ok(())
    }

    /// The next segment could not be made. Its file must not stay: the log may go on in this segment past where that one
    /// would start. For the same reason the removal of its name belongs to the next flush.
    fn undo_create(&self, base: i64, error: FileError) -> AppendError {
        self.flush.names_changed();
        let path = self.dir.join(names::segment_file(base, FileKind::Log));
        match self.env.fs.remove_file(&path) {
            Err(left) if left.kind() != io::ErrorKind::NotFound => {
                self.take_offline(format!("{error}; nor can {} be removed: {left}", path.display())).into()
            }
            _ => error.into(),
        }
    }

    /// Writes a snapshot of the producers at the end of the log, unless there is one.
    pub(super) fn write_snapshot(&self, writer: &mut Writer) -> Result<(), FileError> {
        if writer.snapshot != Some(writer.end) {
            let path = self.dir.join(names::segment_file(writer.end, FileKind::Snapshot));
            snapshot::write(&*self.env.fs, &path, &writer.producers).map_err(FileError::of("write", &path))?;
            writer.snapshot = Some(writer.end);
        }
        Ok(())
    }

    /// Writes the leader epochs, if the file has not got them.
    pub(super) fn write_leader_epochs(&self) -> Result<(), FileError> {
        let epochs = self.view.read().epochs.clone();
        if epochs.is_dirty() {
            let path = self.dir.join(names::LEADER_EPOCH_CHECKPOINT);
            super::files::write_leader_epochs(&*self.env.fs, &self.dir, epochs.entries())
                .map_err(FileError::of("write", &path))?;
            // Only appenders change them, and they wait.
            self.view.write().epochs.mark_written();
        }
        Ok(())
    }

    /// Removes the snapshots that no start will look at: all but those from `keep_from` on. One that stays costs nothing
    /// but its bytes.
    fn remove_snapshots(&self, keep_from: i64, end: i64) {
        let Ok(listed) = self.env.fs.list(&self.dir) else { return };
        for entry in listed {
            if let names::PartitionFile::Segment { base, kind: FileKind::Snapshot, stage: names::Stage::Live } =
                names::parse_partition_file(&entry.name)
                && base < keep_from
                && base < end
            {
                let _ = self.env.fs.remove_file(&self.dir.join(&entry.name));
            }
        }
    }
}

/// Makes the file of a new segment.
pub(super) fn create_segment(
    env: &Env,
    dir: &Arc<std::path::Path>,
    base: i64,
    config: &super::LogConfig,
) -> Result<Segment, FileError> {
    // A try that failed may have left them.
    for kind in [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TxnIndex] {
        let path = dir.join(names::segment_file(base, kind));
        match env.fs.remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(FileError::of("remove", &path)(e)),
            _ => {}
        }
    }
    let path = dir.join(names::segment_file(base, FileKind::Log));
    let create = || {
        let file = env.fs.open(&path, OpenMode::CreateOrTruncate)?;
        if config.preallocate {
            file.set_len(u64::from(config.segment_bytes))?;
        }
        Ok(file)
    };
    let file = create().map_err(FileError::of("create", &path))?;
    Ok(Segment::active(dir.clone(), base, file, config.index_interval_bytes))
}

/// What is taken off `segment.ms` for a new segment, so that segments of many logs are not all sealed at once.
pub(super) fn jitter_ms(env: &Env, config: &super::LogConfig) -> i64 {
    let most = config.segment_jitter_ms.min(config.roll_ms());
    if most <= 0 {
        return 0;
    }
    let mut bytes = [0; 8];
    env.random.fill(&mut bytes);
    (u64::from_be_bytes(bytes) % most as u64) as i64
}
