//! Makes a batch, record by record: for rewriting in another codec, for compaction, for control records and for tests.

use std::io;

use bytes::Bytes;
use thiserror::Error;

use super::codec::{Codec, Deflate};
use super::header::{BatchHeader, HEADER_LEN, LOG_OVERHEAD, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP, TimestampType};
use super::record::Record;
use super::varint;

/// Why no batch could be made.
#[derive(Debug, Error)]
pub enum BuildError {
    #[error("the batch grew past the {limit} bytes that it may have")]
    TooLarge { limit: usize },
    #[error("the offset {offset} cannot be in a batch that starts at {base_offset} after the offset {after:?}")]
    BadOffset { offset: i64, base_offset: i64, after: Option<i64> },
    #[error("compressing the batch as {codec:?} failed")]
    Codec { codec: Codec, source: io::Error },
}

/// What a batch is to be besides its records.
#[derive(Clone, Debug)]
pub struct BatchOptions {
    pub codec: Codec,
    pub base_offset: i64,
    pub partition_leader_epoch: i32,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub transactional: bool,
    pub control: bool,
    /// Set: every record's time is this, ms since the Unix epoch, and the batch says that it was appended then.
    pub log_append_time: Option<i64>,
    /// Set: the batch says that compaction may drop its tombstones and markers from then on, ms since the Unix epoch.
    pub delete_horizon: Option<i64>,
    /// The most bytes that the finished batch may have, header and all.
    pub max_bytes: usize,
}

impl Default for BatchOptions {
    /// No codec, no producer, offset 0, and as large as a batch can be.
    fn default() -> BatchOptions {
        BatchOptions {
            codec: Codec::None,
            base_offset: 0,
            partition_leader_epoch: -1,
            producer_id: NO_PRODUCER_ID,
            producer_epoch: -1,
            base_sequence: NO_SEQUENCE,
            transactional: false,
            control: false,
            log_append_time: None,
            delete_horizon: None,
            max_bytes: i32::MAX as usize,
        }
    }
}

impl BatchOptions {
    /// What `header` says, so that a batch of some or all of its records keeps its place, its producer and its flags; with the
    /// codec given. The base offset is kept; give [`BatchBuilder::finish`] the last offset delta to keep the whole span.
    pub fn like(header: &BatchHeader, codec: Codec) -> BatchOptions {
        BatchOptions {
            codec,
            base_offset: header.base_offset,
            partition_leader_epoch: header.partition_leader_epoch,
            producer_id: header.producer_id,
            producer_epoch: header.producer_epoch,
            base_sequence: header.base_sequence,
            transactional: header.is_transactional(),
            control: header.is_control(),
            log_append_time: (header.timestamp_type() == TimestampType::LogAppendTime).then_some(header.max_timestamp),
            delete_horizon: header.delete_horizon_ms(),
            max_bytes: i32::MAX as usize,
        }
    }
}

/// Makes one batch. The compressed bytes are held, the records are not. Not for use by several threads at once.
#[derive(Debug)]
pub struct BatchBuilder {
    options: BatchOptions,
    records: Deflate,
    base_timestamp: Option<i64>,
    max_timestamp: i64,
    count: i32,
    last_offset: Option<i64>,
    /// One record, before it goes to the codec.
    scratch: Vec<u8>,
}

impl BatchBuilder {
    pub fn new(options: BatchOptions) -> Result<BatchBuilder, BuildError> {
        let codec = options.codec;
        let records = Deflate::new(codec, vec![0; HEADER_LEN]).map_err(|source| BuildError::Codec { codec, source })?;
        Ok(BatchBuilder {
            records,
            base_timestamp: options.delete_horizon,
            max_timestamp: NO_TIMESTAMP,
            count: 0,
            last_offset: None,
            scratch: Vec::new(),
            options,
        })
    }

    /// Adds a record at the offset after the last one's.
    pub fn append(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&[u8], Option<&[u8]>)],
    ) -> Result<(), BuildError> {
        let offset = self.last_offset.map_or(self.options.base_offset, |last| last.wrapping_add(1));
        self.append_at(offset, timestamp, key, value, headers)
    }

    /// Adds a record at an offset of its own, past every one before.
    pub fn append_at(
        &mut self,
        offset: i64,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&[u8], Option<&[u8]>)],
    ) -> Result<(), BuildError> {
        let (timestamp_delta, offset_delta) = self.deltas(offset, timestamp)?;
        self.scratch.clear();
        write_record(&mut self.scratch, timestamp_delta, offset_delta, key, value, headers);
        self.add(offset, timestamp)
    }

    /// Adds a record of another batch with its offset, time, attributes, key, value and headers.
    pub fn append_record(&mut self, record: &Record<'_>) -> Result<(), BuildError> {
        let (offset, timestamp) = (record.offset(), record.create_time());
        let (timestamp_delta, offset_delta) = self.deltas(offset, timestamp)?;
        let tail = record.tail();
        self.scratch.clear();
        let body = 1 + varint::len(timestamp_delta) + varint::len(i64::from(offset_delta)) + tail.len();
        varint::write(&mut self.scratch, body as i64);
        self.scratch.push(record.info().attributes as u8);
        varint::write(&mut self.scratch, timestamp_delta);
        varint::write(&mut self.scratch, i64::from(offset_delta));
        self.scratch.extend_from_slice(tail);
        self.add(offset, timestamp)
    }

    /// How many records it has.
    pub fn count(&self) -> i32 {
        self.count
    }

    /// About how many bytes the batch has so far: a codec holds some back.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The whole batch. `last_offset_delta` keeps the span of a batch whose last records are gone; without it the span ends
    /// at the last record. A batch without records has no timestamps and no codec; to empty one that there is,
    /// [`BatchHeader::without_records`] keeps more of it.
    pub fn finish(self, last_offset_delta: Option<i32>) -> Result<Bytes, BuildError> {
        let BatchOptions { codec, max_bytes, base_offset, log_append_time, .. } = self.options;
        let mut batch = if self.count == 0 {
            vec![0; HEADER_LEN]
        } else {
            self.records.finish().map_err(|source| BuildError::Codec { codec, source })?
        };
        let length = i32::try_from(batch.len() - LOG_OVERHEAD).ok().filter(|_| batch.len() <= max_bytes);
        let own_delta = self.last_offset.map_or(0, |last| (last - base_offset) as i32);
        let mut header = BatchHeader {
            base_offset,
            batch_length: length.ok_or(BuildError::TooLarge { limit: max_bytes })?,
            partition_leader_epoch: self.options.partition_leader_epoch,
            crc: 0,
            attributes: 0,
            last_offset_delta: last_offset_delta.unwrap_or(own_delta).max(own_delta),
            base_timestamp: self.base_timestamp.unwrap_or(NO_TIMESTAMP),
            max_timestamp: log_append_time.unwrap_or(self.max_timestamp),
            producer_id: self.options.producer_id,
            producer_epoch: self.options.producer_epoch,
            base_sequence: self.options.base_sequence,
            records_count: self.count,
        };
        if self.count > 0 {
            header.set_compression(codec.compression());
        }
        if log_append_time.is_some() {
            header.set_timestamp_type(TimestampType::LogAppendTime);
        }
        header.set_transactional(self.options.transactional);
        header.set_control(self.options.control);
        header.set_delete_horizon(self.options.delete_horizon.is_some());
        header.crc = header.compute_crc(&batch[HEADER_LEN..]);
        batch[..HEADER_LEN].copy_from_slice(&header.encode());
        Ok(batch.into())
    }

    fn deltas(&mut self, offset: i64, timestamp: i64) -> Result<(i64, i32), BuildError> {
        let BatchOptions { base_offset, .. } = self.options;
        let delta = offset.checked_sub(base_offset).and_then(|delta| i32::try_from(delta).ok());
        let in_order = self.last_offset.is_none_or(|last| offset > last) && self.count < i32::MAX;
        match delta.filter(|&delta| delta >= 0 && in_order) {
            Some(delta) => Ok((timestamp.wrapping_sub(*self.base_timestamp.get_or_insert(timestamp)), delta)),
            None => Err(BuildError::BadOffset { offset, base_offset, after: self.last_offset }),
        }
    }

    /// Adds what stands in the scratch.
    fn add(&mut self, offset: i64, timestamp: i64) -> Result<(), BuildError> {
        let BatchOptions { codec, max_bytes, .. } = self.options;
        if self.scratch.len() > i32::MAX as usize {
            return Err(BuildError::TooLarge { limit: max_bytes });
        }
        self.records.write(&self.scratch).map_err(|source| BuildError::Codec { codec, source })?;
        if self.records.len() > max_bytes {
            return Err(BuildError::TooLarge { limit: max_bytes });
        }
        self.max_timestamp = self.max_timestamp.max(timestamp);
        self.count += 1;
        self.last_offset = Some(offset);
        Ok(())
    }
}

/// Appends a record to `out`.
pub(super) fn write_record(
    out: &mut Vec<u8>,
    timestamp_delta: i64,
    offset_delta: i32,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: &[(&[u8], Option<&[u8]>)],
) {
    let field_len = |field: Option<&[u8]>| field.map_or(1, |bytes| varint::len(bytes.len() as i64) + bytes.len());
    let body = 1
        + varint::len(timestamp_delta)
        + varint::len(i64::from(offset_delta))
        + field_len(key)
        + field_len(value)
        + varint::len(headers.len() as i64)
        + headers.iter().map(|(name, value)| field_len(Some(name)) + field_len(*value)).sum::<usize>();
    varint::write(out, body as i64);
    out.push(0);
    varint::write(out, timestamp_delta);
    varint::write(out, i64::from(offset_delta));
    write_field(out, key);
    write_field(out, value);
    varint::write(out, headers.len() as i64);
    for (name, value) in headers {
        write_field(out, Some(name));
        write_field(out, *value);
    }
}

fn write_field(out: &mut Vec<u8>, field: Option<&[u8]>) {
    match field {
        Some(bytes) => {
            varint::write(out, bytes.len() as i64);
            out.extend_from_slice(bytes);
        }
        None => varint::write(out, -1),
    }
}
