//! Age and size: when a segment is sealed because its time has come, and what of a log is too old or too much.
//!
//! A segment is as old as its latest record. Where no record has a timestamp, or the latest one is from the future (its
//! producer's clock was wrong), it is as old as the last write to its file: else it might stay for ever.

use super::PartitionLog;
use super::append::Writer;
use super::error::{AppendError, FileError, ReadError};
use super::segment::Segment;

impl PartitionLog {
    /// Seals the active segment if it has had its time, `segment.ms`, without waiting for an append. Answers whether it did.
    /// Does nothing where an append is under way: that one will see to it.
    pub fn roll_if_due(&self) -> Result<bool, AppendError> {
        let Some(mut writer) = self.writer.try_lock() else { return Ok(false) };
        if writer.closed || writer.position == 0 || self.flush.offline().is_some() {
            return Ok(false);
        }
        let now_ms = self.env.clock.now_ms();
        let since_ms = self.written_since(&mut writer, now_ms)?;
        if now_ms.saturating_sub(since_ms) <= writer.config.roll_ms() - writer.jitter_ms {
            return Ok(false);
        }
        writer.changed = true;
        self.roll(&mut writer)?;
        Ok(true)
    }

    /// Seals the active segment now, if it has records. Answers whether it did.
    pub fn seal(&self) -> Result<bool, AppendError> {
        let mut writer = self.writer.lock();
        if writer.closed {
            return Err(AppendError::Closed);
        }
        if writer.position == 0 {
            return Ok(false);
        }
        writer.changed = true;
        self.roll(&mut writer)?;
        Ok(true)
    }

    /// Since when the active segment has records, ms since the Unix epoch. Where this process did not write the first of
    /// them, that record's timestamp is believed, unless there is none or it is from the future.
    fn written_since(&self, writer: &mut Writer, now_ms: i64) -> Result<i64, FileError> {
        if let Some(since) = writer.written_since_ms {
            return Ok(since);
        }
        let first = self.first_timestamp(writer)?;
        let since =
            if (0..=now_ms).contains(&first) { first } else { writer.active.modified_ms(&*self.env.fs)?.min(now_ms) };
        writer.written_since_ms = Some(since);
        Ok(since)
    }

    /// Where the start of the log may be moved to ([`PartitionLog::advance_log_start`], once that is durable) as
    /// `retention.ms` and `retention.bytes` have it, if there is something to remove. The active segment always stays.
    pub fn retention_start(&self, now_ms: i64) -> Result<Option<i64>, ReadError> {
        self.steadily(|| self.retention_start_now(now_ms))
    }

    fn retention_start_now(&self, now_ms: i64) -> Result<Option<i64>, ReadError> {
        let (retention_ms, retention_bytes) = {
            let writer = self.writer.lock();
            match writer.config.delete {
                true => (writer.config.retention_ms, writer.config.retention_bytes),
                false => return Ok(None),
            }
        };
        let segments = {
            let view = self.view.read();
            if view.closed {
                return Err(ReadError::Closed);
            }
            if view.segments.len() < 2 || (retention_ms < 0 && retention_bytes < 0) {
                return Ok(None);
            }
            view.segments.clone()
        };
        let mut size: u64 = segments.iter().map(|segment| segment.size()).sum();
        let mut to = None;
        for pair in segments.windows(2) {
            let (segment, next) = (&pair[0], &pair[1]);
            let too_much = u64::try_from(retention_bytes).is_ok_and(|most| size - segment.size() >= most);
            let too_old = !too_much && retention_ms >= 0 && {
                let latest = self.age_of(segment, now_ms)?;
                now_ms.saturating_sub(latest) > retention_ms
            };
            if !too_old && !too_much {
                break;
            }
            size -= segment.size();
            to = Some(next.base);
        }
        Ok(to)
    }

    /// When the latest record of a sealed segment was written, ms since the Unix epoch, as far as that can be believed.
    pub(in crate::storage) fn age_of(&self, segment: &Segment, now_ms: i64) -> Result<i64, FileError> {
        match segment.latest(&*self.env.fs)?.0 {
            latest if (0..=now_ms).contains(&latest) => Ok(latest),
            _ => segment.modified_ms(&*self.env.fs),
        }
    }
}
