//! Appending.

use std::io::IoSlice;
use std::sync::Arc;

use super::error::{AppendError, FileError};
use super::producers::{EndMarker, InTransaction, Producers};
use super::scan::BatchAt;
use super::segment::Segment;
use super::{LogConfig, PartitionLog, StableOffset};
use crate::record::control::EndTxnMarker;
use crate::record::{BatchHeader, CheckedBatch, HEADER_LEN, TimestampType};
use crate::storage::names::FileKind;

/// What appenders have, one at a time.
#[derive(Debug)]
pub(super) struct Writer {
    pub config: LogConfig,
    pub active: Arc<Segment>,
    /// Bytes of the active segment, where the next batch goes.
    pub position: u64,
    /// The offset of the next record.
    pub end: i64,
    pub producers: Producers,
    /// The maximum timestamp of the active segment's first batch, once it was looked at.
    pub first_timestamp: Option<i64>,
    /// When this process wrote the active segment's first batch, or what else is known of that, ms since the Unix epoch.
    pub written_since_ms: Option<i64>,
    /// When the active segment was made or opened, ms since the Unix epoch.
    pub created_ms: i64,
    /// What is taken off `segment_ms` for the active segment.
    pub jitter_ms: i64,
    /// The offset of the latest producer snapshot there is.
    pub snapshot: Option<i64>,
    /// Whether there is anything that a close would have to write.
    pub changed: bool,
    pub closed: bool,
}

/// How a batch came to be in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    pub first_offset: i64,
    pub last_offset: i64,
    /// When the batch was appended, where the topic has it say so, and -1 otherwise; for a duplicate the maximum timestamp of
    /// the batch that is there. Milliseconds since the Unix epoch.
    pub log_append_time_ms: i64,
    pub log_start_offset: i64,
    /// The batch was in the log already; this is where. It may not be flushed.
    pub duplicate: bool,
    /// `flush.messages` has it flushed before it is answered, whatever the producer asked for.
    pub flush_due: bool,
}

impl PartitionLog {
    /// Appends a batch at the end of the log. It is in the page cache then; [`PartitionLog::sync`] brings it to the medium.
    /// Nobody is asked about the transaction that the batch may be in.
    pub fn append(&self, batch: CheckedBatch, leader_epoch: i32) -> Result<Appended, AppendError> {
        self.append_checked(batch, leader_epoch, None)
    }

    /// Like [`append`](Self::append), for a batch that may be in a transaction, about which the coordinator is asked.
    pub fn append_in_transaction(
        &self,
        batch: CheckedBatch,
        leader_epoch: i32,
        rules: &InTransaction<'_>,
    ) -> Result<Appended, AppendError> {
        self.append_checked(batch, leader_epoch, Some(rules))
    }

    fn append_checked(
        &self,
        batch: CheckedBatch,
        leader_epoch: i32,
        rules: Option<&InTransaction<'_>>,
    ) -> Result<Appended, AppendError> {
        let mut writer = self.writer.lock();
        self.check_writable(&writer)?;
        if let Some(rules) = rules {
            writer.producers.check_transaction(&batch.header, rules)?;
        }
        if batch.header.has_producer_id()
            && let Some(there) = writer.producers.check(&batch.header)?
        {
            return Ok(Appended {
                first_offset: there.first_offset(),
                last_offset: there.last_offset,
                log_append_time_ms: there.timestamp,
                log_start_offset: self.view.read().start,
                duplicate: true,
                flush_due: false,
            });
        }
        let CheckedBatch { header, records, .. } = batch;
        let (header, at) = self.write(&mut writer, header, &records, leader_epoch)?;
        if header.has_producer_id() {
            let place = (writer.active.base, at.position);
            writer.producers.wrote(&header, Some(place));
        }
        let appended = self.publish(&mut writer, &header, &at);
        drop(writer);
        self.watchers.notify();
        Ok(appended)
    }

    /// Ends a transaction: writes its marker at the end of the log.
    pub fn append_end_txn_marker(&self, marker: EndMarker, leader_epoch: i32) -> Result<Appended, AppendError> {
        let EndMarker { producer_id, producer_epoch, committed, coordinator_epoch, .. } = marker;
        let now_ms = self.env.clock.now_ms();
        let batch = EndTxnMarker { committed, coordinator_epoch }
            .batch(0, now_ms, producer_id, producer_epoch)
            .expect("a batch of one small record without compression can always be made");
        let CheckedBatch { header, records, .. } = CheckedBatch::of_own(batch).expect("the batch was just made");
        let mut writer = self.writer.lock();
        self.check_writable(&writer)?;
        writer.producers.check_marker(&marker)?;
        let (header, at) = self.write(&mut writer, header, &records, leader_epoch)?;
        let ended = writer.producers.ended(&marker, header.base_offset, now_ms);
        if let Some(ended) = ended.filter(|ended| ended.aborted) {
            // Before the last stable offset moves, so that no reader takes the records for committed ones.
            writer.active.push_aborted(ended.into());
        }
        let appended = self.publish(&mut writer, &header, &at);
        drop(writer);
        self.watchers.notify();
        Ok(appended)
    }

    fn check_writable(&self, writer: &Writer) -> Result<(), AppendError> {
        if writer.closed {
            return Err(AppendError::Closed);
        }
        self.flush.offline().map_or(Ok(()), |offline| Err(offline.into()))
    }

    /// Writes a batch behind the active segment's last, in a new segment if it is time for one. Nobody sees it yet.
    fn write(
        &self,
        writer: &mut Writer,
        mut header: BatchHeader,
        records: &[u8],
        leader_epoch: i32,
    ) -> Result<(BatchHeader, BatchAt), AppendError> {
        let size = (HEADER_LEN + records.len()) as u64;
        assert_eq!(size, header.size_in_bytes() as u64, "a checked batch is as long as its header says");
        let limit = writer.config.segment_bytes;
        if size > u64::from(limit) {
            return Err(AppendError::TooLarge { size, limit });
        }
        header.base_offset = writer.end;
        header.partition_leader_epoch = leader_epoch;
        if self.is_roll_due(writer, &header, size)? {
            self.roll(writer)?;
        }
        let path = writer.active.path(FileKind::Log);
        let file = writer.active.file(&*self.env.fs)?;
        let position = writer.position;
        // Before the write: what a failed one leaves has to be dealt with by a close.
        writer.changed = true;
        let encoded = header.encode();
        if let Err(source) = file.write_all_at(&[IoSlice::new(&encoded), IoSlice::new(records)], position) {
            let action = format!("write {size} bytes at {position} of");
            if let Err(cut) = file.set_len(position) {
                let reason = format!(
                    "cannot {action} {}: {source}; nor cut it back to where it was: {cut}; so its end is unknown",
                    path.display()
                );
                return Err(self.take_offline(reason).into());
            }
            return Err(FileError { action, path, source }.into());
        }
        let at = BatchAt {
            position,
            size,
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            max_timestamp: header.max_timestamp,
            header: Some(header),
        };
        Ok((header, at))
    }

    /// Lets everybody see a batch that was written.
    fn publish(&self, writer: &mut Writer, header: &BatchHeader, at: &BatchAt) -> Appended {
        if at.position == 0 {
            writer.first_timestamp = Some(header.max_timestamp);
            writer.written_since_ms = Some(self.env.clock.now_ms());
        }
        writer.position = at.end();
        writer.end = at.last_offset + 1;
        let active = writer.active.clone();
        // Before its entries: whoever comes to it by an index finds it in the log.
        active.publish(at.end());
        active.index_batch(at);
        // What cannot be written now waits in memory, and is written later or made anew.
        if let Err(error) = active.write_indexes(&*self.env.fs, false) {
            tracing::warn!(topic = self.topic, partition = self.partition, %error, "index entries wait in memory");
        }
        let log_start_offset = {
            let mut view = self.view.write();
            view.end = writer.end;
            view.end_position = at.end();
            view.last_stable = stable_offset(&writer.producers, writer.end, (active.base, at.end()));
            view.epochs.assign(header.partition_leader_epoch, header.base_offset);
            view.start
        };
        let unflushed = self.flush.wrote(writer.end, self.env.clock.monotonic());
        let appended_at = match header.timestamp_type() {
            TimestampType::LogAppendTime => header.max_timestamp,
            TimestampType::CreateTime => -1,
        };
        Appended {
            first_offset: header.base_offset,
            last_offset: at.last_offset,
            log_append_time_ms: appended_at,
            log_start_offset,
            duplicate: false,
            flush_due: unflushed >= writer.config.flush_messages,
        }
    }
}

/// The last stable offset of a log that ends at `end`, which is at `end_place`.
pub(super) fn stable_offset(producers: &Producers, end: i64, end_place: (i64, u64)) -> StableOffset {
    match producers.first_open() {
        Some((offset, open)) => StableOffset { offset, place: open.place },
        None => StableOffset { offset: end, place: Some(end_place) },
    }
}
