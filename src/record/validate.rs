//! The check of what a producer sent, before any of it is stored.
//!
//! A batch is refused for what Apache Kafka 4.3 refuses it for, and with the same error ([`InvalidKind`] says which). Besides,
//! doze refuses what Kafka takes in these cases, each of them a batch that says one thing and holds another:
//! - bytes after the batch that are not a whole batch (Kafka drops them, acknowledged);
//! - offset deltas that are not 0, 1, 2 and so on (Kafka keeps them, unless the batch is compressed);
//! - fields that do not fill a compressed record to the length it says, a number with bits past those that it can have, or
//!   bytes after the compressed stream (Kafka does not look).
//!
//! One pass through the codec, which holds neither the inflated batch nor a record of it; and only a part of the pass at each
//! call of [`Validator::step`], so that a batch that inflates to terabytes holds nobody up. A batch without a codec is checked
//! where it lies.
//!
//! A batch that passes is stored as it came; where the topic's `compression.type` names another codec, the inflated bytes go
//! straight on into that one. Base offset and leader epoch are for the log to set. The header's maximum timestamp is made
//! that of the latest record (or the append time), and only where that changes anything is the checksum made anew.

mod invalid;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;

pub use invalid::{InvalidBatch, InvalidKind, RecordFault};

use super::batch::{Batch, PEEK_LEN, peek};
use super::codec::{Codec, Deflate, Inflate};
use super::header::{
    BatchError, BatchHeader, Compression, HEADER_LEN, LOG_OVERHEAD, MAGIC_AT, MAGIC_V2, NO_TIMESTAMP, TimestampType,
};
use super::reader::RecordError;
use super::record::{self, Parsed, RecordInfo, Scanner};

/// The list of faulty records ends here: a few compressed bytes can hold any number of faulty records.
const MAX_FAULTS: usize = 1000;

/// What a topic asks of a batch.
#[derive(Clone, Debug)]
pub struct Rules {
    /// `topic-partition`, for messages.
    pub topic_partition: Arc<str>,
    /// `max.message.bytes`: the most that a batch may have, header and all; also after it was compressed anew.
    pub max_message_bytes: usize,
    /// `cleanup.policy` has `compact` in it: every record needs a key.
    pub compacted: bool,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`, 0 or more.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`, 0 or more.
    pub timestamp_after_max_ms: i64,
    /// The time, ms since the Unix epoch: what timestamps are compared with, and the append time.
    pub now_ms: i64,
    /// `compression.type` and level; `None` for `producer`, which keeps every batch as it is.
    pub codec: Option<Codec>,
    /// Produce requests of version 7 and later may send zstd.
    pub zstd_allowed: bool,
}

/// A batch that may be appended.
#[derive(Clone, Debug)]
pub struct CheckedBatch {
    /// With base offset 0; it and the leader epoch may be set without touching the checksum.
    pub header: BatchHeader,
    /// Everything after the 61 bytes of the header.
    pub records: Bytes,
    /// The offset delta of the first record with the latest timestamp; 0 where the batch has the append time or no record
    /// has a timestamp.
    pub offset_of_max_timestamp: i32,
    /// The bytes of the records, inflated.
    pub inflated_bytes: u64,
    /// Whether the records were compressed anew.
    pub recompressed: bool,
}

impl CheckedBatch {
    /// For a batch that doze made itself, a control batch say: its header, checksum and records are read, and it is taken as it
    /// is, control flag, base offset and timestamps too.
    pub fn of_own(batch: Bytes) -> Result<CheckedBatch, RecordError> {
        let parsed = Batch::parse(&batch)?;
        parsed.verify_crc()?;
        let header = *parsed.header();
        let mut reader = parsed.records()?;
        let (mut latest, mut offset_of_max_timestamp, mut inflated_bytes) = (NO_TIMESTAMP, 0, 0);
        while let Some(info) = reader.skip_record()? {
            let timestamp = header.base_timestamp.wrapping_add(info.timestamp_delta);
            inflated_bytes += info.size as u64;
            if header.timestamp_type() == TimestampType::CreateTime && timestamp > latest {
                (latest, offset_of_max_timestamp) = (timestamp, info.offset_delta);
            }
        }
        let records = batch.slice(HEADER_LEN..header.size_in_bytes());
        Ok(CheckedBatch { header, records, offset_of_max_timestamp, inflated_bytes, recompressed: false })
    }
}

/// What [`Validator::step`] came to.
#[derive(Debug)]
pub enum Step {
    /// There is more to do.
    More,
    /// The batch is good. The validator has nothing more to do.
    Done(Box<CheckedBatch>),
}

/// Checks one batch, a part at each call. Owned by one caller at a time; may move between threads.
#[derive(Debug)]
pub struct Validator {
    bytes: Bytes,
    header: BatchHeader,
    inflate: Inflate<Bytes>,
    records: Records,
    recompress: Option<Deflate>,
    rules: Rules,
    inflated_bytes: u64,
}

impl Validator {
    /// Takes what a producer sent for one partition, which is to be exactly one batch. Checks its header and its
    /// checksum, so the cost is that of passing over the compressed bytes.
    pub fn new(bytes: Bytes, rules: Rules) -> Result<Validator, InvalidBatch> {
        let header = check_frame(&bytes, &rules)?;
        let compression = check_header(&header, &bytes, &rules)?;
        let inflate = Inflate::new(compression, bytes.slice(HEADER_LEN..)).map_err(RecordError::from)?;
        let codec = rules.codec.filter(|codec| codec.compression() != compression);
        let recompress = codec
            .map(|codec| Deflate::new(codec, vec![0; HEADER_LEN]))
            .transpose()
            .map_err(|e| InvalidBatch::Recompress { reason: e.to_string() })?;
        let records = Records::new(&header, &rules);
        Ok(Validator { bytes, header, inflate, records, recompress, rules, inflated_bytes: 0 })
    }

    /// Goes on with the check for about `budget` inflated bytes (for as many as a codec inflates at a time at least: 64 KiB, for
    /// lz4 up to the 4 MiB that a block may have). After [`Step::Done`] or an error there is nothing to call it for.
    pub fn step(&mut self, budget: usize) -> Result<Step, InvalidBatch> {
        let mut left = budget.max(1);
        while left > 0 {
            let piece = self.inflate.fill().map_err(RecordError::from)?;
            if piece.is_empty() {
                return self.finish().map(|batch| Step::Done(Box::new(batch)));
            }
            let piece = &piece[..piece.len().min(left)];
            self.records.check(piece, &self.rules)?;
            if let Some(deflate) = &mut self.recompress {
                let failed = |e: std::io::Error| InvalidBatch::Recompress { reason: e.to_string() };
                deflate.write(piece).map_err(failed)?;
                check_size(deflate.len(), &self.rules)?;
            }
            let n = piece.len();
            self.inflate.consume(n);
            self.inflated_bytes += n as u64;
            left -= n;
        }
        Ok(Step::More)
    }

    /// Does the whole check at one go, for callers whom nothing waits for.
    pub fn run(mut self) -> Result<CheckedBatch, InvalidBatch> {
        loop {
            if let Step::Done(batch) = self.step(1 << 20)? {
                return Ok(*batch);
            }
        }
    }

    fn finish(&mut self) -> Result<CheckedBatch, InvalidBatch> {
        self.records.finish()?;
        let mut header = self.header;
        let (max_timestamp, offset_of_max_timestamp) = match self.rules.timestamp_type {
            TimestampType::CreateTime => (self.records.max_timestamp, self.records.index_of_max_timestamp),
            TimestampType::LogAppendTime => (self.rules.now_ms, 0),
        };
        header.max_timestamp = max_timestamp;
        header.set_timestamp_type(self.rules.timestamp_type);
        let recompressed = self.recompress.is_some();
        let records = match self.recompress.take() {
            None => self.bytes.slice(HEADER_LEN..),
            Some(deflate) => {
                let batch = deflate.finish().map_err(|e| InvalidBatch::Recompress { reason: e.to_string() })?;
                check_size(batch.len(), &self.rules)?;
                header.batch_length = i32::try_from(batch.len() - LOG_OVERHEAD)
                    .map_err(|_| InvalidBatch::TooLarge { size: batch.len(), limit: i32::MAX as usize })?;
                let codec = self.rules.codec.map_or(Compression::None, |codec| codec.compression());
                header.set_compression(codec);
                Bytes::from(batch).slice(HEADER_LEN..)
            }
        };
        if header != self.header || recompressed {
            header.crc = header.compute_crc(&records);
        }
        Ok(CheckedBatch { header, records, offset_of_max_timestamp, inflated_bytes: self.inflated_bytes, recompressed })
    }
}

/// Exactly one batch of version 2, whole.
fn check_frame(bytes: &[u8], rules: &Rules) -> Result<BatchHeader, InvalidBatch> {
    if bytes.len() < PEEK_LEN {
        return Err(InvalidBatch::NoBatch);
    }
    let length = i32::from_be_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
    let magic = bytes[MAGIC_AT] as i8;
    match peek(bytes) {
        // A message of an old version may be shorter than that version allows and is refused for its version all the same.
        Err(BatchError::BadLength { .. }) if length >= 14 && magic < MAGIC_V2 => {}
        Err(e) => return Err(InvalidBatch::Corrupt(e)),
        Ok(_) => {}
    }
    let size = LOG_OVERHEAD + length as usize;
    if size > bytes.len() {
        return Err(InvalidBatch::NoBatch);
    }
    if magic != MAGIC_V2 {
        return Err(InvalidBatch::OldFormat { magic });
    }
    let Some(fixed) = bytes.first_chunk::<HEADER_LEN>() else {
        return Err(InvalidBatch::Corrupt(BatchError::BadLength { length }));
    };
    let header = BatchHeader::read(fixed);
    if !rules.zstd_allowed && header.compression() == Ok(Compression::Zstd) {
        return Err(InvalidBatch::ZstdTooEarly);
    }
    if size < bytes.len() {
        return Err(InvalidBatch::MoreThanOneBatch { left_over: bytes.len() - size });
    }
    Ok(header)
}

/// Everything that can be told without reading the records, in Kafka's order.
fn check_header(header: &BatchHeader, bytes: &[u8], rules: &Rules) -> Result<Compression, InvalidBatch> {
    let &BatchHeader { base_offset, records_count: count, last_offset_delta, base_sequence, producer_id, .. } = header;
    if base_offset != 0 {
        return Err(InvalidBatch::BaseOffset { base_offset });
    }
    check_size(bytes.len(), rules)?;
    let computed = header.compute_crc(&bytes[HEADER_LEN..]);
    if computed != header.crc {
        return Err(InvalidBatch::Corrupt(BatchError::BadCrc { stored: header.crc, computed }));
    }
    let compression =
        header.compression().map_err(|_| InvalidBatch::UnknownCodec { id: (header.attributes & 0b111) as u8 })?;
    if count <= 0 || i64::from(last_offset_delta) + 1 != i64::from(count) {
        return Err(InvalidBatch::Counts { count, last_offset_delta });
    }
    if header.is_control() {
        return Err(InvalidBatch::Control);
    }
    if header.has_producer_id() && base_sequence < 0 {
        return Err(InvalidBatch::Sequence { base_sequence, producer_id });
    }
    Ok(compression)
}

fn check_size(size: usize, rules: &Rules) -> Result<(), InvalidBatch> {
    let limit = rules.max_message_bytes;
    if size > limit { Err(InvalidBatch::TooLarge { size, limit }) } else { Ok(()) }
}

/// How far the check of the records has come.
#[derive(Debug)]
struct Records {
    declared: i32,
    index: i32,
    /// For a record that goes on from one piece into the next.
    scanner: Scanner,
    base_timestamp: i64,
    /// Set where the producer says that the batch has the append time, which it cannot know: the time that it says. Kafka
    /// compares that with what is allowed then, and so does doze.
    claimed_append_time: Option<i64>,
    /// The timestamps that are taken.
    earliest: i64,
    latest: i64,
    max_timestamp: i64,
    index_of_max_timestamp: i32,
    faults: Vec<RecordFault>,
    bad_timestamp: bool,
}

impl Records {
    fn new(header: &BatchHeader, rules: &Rules) -> Records {
        Records {
            declared: header.records_count,
            index: 0,
            scanner: Scanner::default(),
            base_timestamp: header.base_timestamp,
            claimed_append_time: (header.timestamp_type() == TimestampType::LogAppendTime)
                .then_some(header.max_timestamp),
            earliest: rules.now_ms.saturating_sub(rules.timestamp_before_max_ms),
            latest: rules.now_ms.saturating_add(rules.timestamp_after_max_ms),
            max_timestamp: NO_TIMESTAMP,
            index_of_max_timestamp: 0,
            faults: Vec::new(),
            bad_timestamp: false,
        }
    }

    fn check(&mut self, piece: &[u8], rules: &Rules) -> Result<(), InvalidBatch> {
        let mut at = 0;
        while at < piece.len() {
            if self.scanner.is_between_records() {
                if self.index == self.declared {
                    return Err(RecordError::Extra { declared: self.declared }.into());
                }
                let parsed = record::parse(&piece[at..]);
                if let Parsed::Whole(info, _) = parsed.map_err(|flaw| self.malformed(flaw))? {
                    at += info.size;
                    self.record(&info, rules)?;
                    continue;
                }
            }
            let (taken, found) = self.scanner.feed(&piece[at..]).map_err(|flaw| self.malformed(flaw))?;
            at += taken;
            if let Some(info) = found {
                self.record(&info, rules)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn record(&mut self, info: &RecordInfo, rules: &Rules) -> Result<(), InvalidBatch> {
        let timestamp = self.base_timestamp.wrapping_add(info.timestamp_delta);
        let stated = self.claimed_append_time.unwrap_or(timestamp);
        let bad_time = match rules.timestamp_type {
            TimestampType::CreateTime if stated != NO_TIMESTAMP => stated < self.earliest || stated > self.latest,
            _ => self.claimed_append_time.is_some(),
        };
        if info.offset_delta != self.index || (rules.compacted && !info.has_key()) || bad_time {
            self.fault(info, stated, rules)?;
        }
        if timestamp > self.max_timestamp {
            self.max_timestamp = timestamp;
            self.index_of_max_timestamp = self.index;
        }
        self.index += 1;
        Ok(())
    }

    #[cold]
    fn fault(&mut self, info: &RecordInfo, stated: i64, rules: &Rules) -> Result<(), InvalidBatch> {
        let (index, partition) = (self.index, &rules.topic_partition);
        let message = if info.offset_delta != index {
            format!(
                "The record has the offset delta {} in place {index} of its batch for {partition}",
                info.offset_delta
            )
        } else if rules.compacted && !info.has_key() {
            format!("Compacted topic cannot accept message without key in topic partition {partition}")
        } else if rules.timestamp_type == TimestampType::LogAppendTime || stated == NO_TIMESTAMP {
            self.bad_timestamp = true;
            format!("The timestamp type of the batch for {partition} is LogAppendTime, which a producer cannot set")
        } else {
            self.bad_timestamp = true;
            let (earliest, latest) = (self.earliest, self.latest);
            format!("The timestamp {stated} of record {index} for {partition} is outside of [{earliest}, {latest}]")
        };
        self.faults.push(RecordFault { batch_index: index, message });
        if self.faults.len() >= MAX_FAULTS { self.refuse_faults() } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<(), InvalidBatch> {
        if !self.scanner.is_between_records() {
            return Err(RecordError::CutShort { index: self.index }.into());
        }
        if self.index < self.declared {
            return Err(RecordError::Missing { declared: self.declared, found: self.index }.into());
        }
        self.refuse_faults()
    }

    fn refuse_faults(&mut self) -> Result<(), InvalidBatch> {
        if self.faults.is_empty() {
            return Ok(());
        }
        let faults = std::mem::take(&mut self.faults);
        Err(if self.bad_timestamp { InvalidBatch::Timestamps { faults } } else { InvalidBatch::Records { faults } })
    }

    fn malformed(&self, flaw: record::RecordFlaw) -> InvalidBatch {
        RecordError::Malformed { index: self.index, flaw }.into()
    }
}
