//! Finding offsets by time.

use std::sync::Arc;

use super::PartitionLog;
use super::error::{FileError, ReadError};
use super::scan::BatchAt;
use super::segment::Segment;
use crate::record::{Batch, RecordError, TimestampType};

/// A record's place in the log, found by its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampedOffset {
    pub offset: i64,
    /// Milliseconds since the Unix epoch.
    pub timestamp: i64,
    /// The leader epoch of its batch; `None` for one of a version before 2.
    pub leader_epoch: Option<i32>,
}

impl PartitionLog {
    /// The first record, by offset, whose timestamp is `timestamp` or later. `None` if there is none.
    ///
    /// A batch whose records cannot be read is gone by its header: its first offset is answered.
    pub fn offset_for_timestamp(&self, timestamp: i64) -> Result<Option<TimestampedOffset>, ReadError> {
        self.steadily(|| self.offset_for_timestamp_now(timestamp))
    }

    fn offset_for_timestamp_now(&self, timestamp: i64) -> Result<Option<TimestampedOffset>, ReadError> {
        let (segments, start) = self.segments_from_start()?;
        for segment in segments {
            if segment.latest(&*self.env.fs)?.0 >= timestamp
                && let Some(found) = self.find_in(&segment, timestamp, start)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The first record with the latest timestamp of the log. `None` if no record has a timestamp.
    pub fn max_timestamp(&self) -> Result<Option<TimestampedOffset>, ReadError> {
        self.steadily(|| self.max_timestamp_now())
    }

    fn max_timestamp_now(&self) -> Result<Option<TimestampedOffset>, ReadError> {
        let (segments, start) = self.segments_from_start()?;
        let mut latest: Option<(i64, Arc<Segment>)> = None;
        for segment in segments {
            let timestamp = segment.latest(&*self.env.fs)?.0;
            if timestamp > latest.as_ref().map_or(-1, |latest| latest.0) {
                latest = Some((timestamp, segment));
            }
        }
        match latest {
            Some((timestamp, segment)) => Ok(self.find_in(&segment, timestamp, start)?),
            None => Ok(None),
        }
    }

    /// The segments that may have something at or after the log's start, and that start.
    fn segments_from_start(&self) -> Result<(Vec<Arc<Segment>>, i64), ReadError> {
        let view = self.view.read();
        if view.closed {
            return Err(ReadError::Closed);
        }
        let first = view.segments.partition_point(|segment| segment.base <= view.start).saturating_sub(1);
        Ok((view.segments[first..].to_vec(), view.start))
    }

    fn find_in(&self, segment: &Segment, timestamp: i64, start: i64) -> Result<Option<TimestampedOffset>, FileError> {
        let from = segment.floor_of_timestamp(&*self.env.fs, timestamp)?;
        let mut walker = segment.indexed_walk(&*self.env.fs, from, segment.size(), 0, i64::MAX)?;
        while let Some(batch) = segment.step(&mut walker)? {
            if batch.max_timestamp >= timestamp
                && batch.last_offset >= start
                && let Some(found) = self.find_in_batch(segment, &batch, timestamp, start)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn find_in_batch(
        &self,
        segment: &Segment,
        batch: &BatchAt,
        timestamp: i64,
        start: i64,
    ) -> Result<Option<TimestampedOffset>, FileError> {
        let by_header = TimestampedOffset {
            offset: batch.base_offset.max(start),
            timestamp: batch.max_timestamp,
            leader_epoch: batch.header.map(|header| header.partition_leader_epoch),
        };
        let Some(header) = batch.header else { return Ok(Some(by_header)) };
        let bytes = segment.read_batch(&*self.env.fs, batch)?;
        let search = || -> Result<Option<TimestampedOffset>, RecordError> {
            let mut records = Batch::parse(&bytes)?.records()?;
            while let Some(record) = records.skip_record()? {
                let time = match header.timestamp_type() {
                    TimestampType::CreateTime => header.base_timestamp.wrapping_add(record.timestamp_delta),
                    TimestampType::LogAppendTime => header.max_timestamp,
                };
                let offset = header.base_offset + i64::from(record.offset_delta);
                if time >= timestamp && offset >= start {
                    return Ok(Some(TimestampedOffset { offset, timestamp: time, ..by_header }));
                }
            }
            Ok(None)
        };
        Ok(search().unwrap_or(Some(by_header)))
    }
}
