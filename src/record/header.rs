//! The 61 bytes in front of every version 2 record batch.
//!
//! | at | bytes | field |
//! |---:|------:|-------|
//! |  0 | 8 | base offset: the offset that the records' deltas count from |
//! |  8 | 4 | batch length: the bytes after this field, so the whole batch less 12 |
//! | 12 | 4 | partition leader epoch |
//! | 16 | 1 | magic, 2 |
//! | 17 | 4 | CRC-32C of everything from the attributes to the end of the batch |
//! | 21 | 2 | attributes: bits 0-2 codec, 3 timestamp type, 4 transactional, 5 control, 6 delete horizon |
//! | 23 | 4 | last offset delta |
//! | 27 | 8 | base timestamp, ms (the delete horizon where bit 6 is set) |
//! | 35 | 8 | maximum timestamp, ms |
//! | 43 | 8 | producer id, -1 for none |
//! | 51 | 2 | producer epoch |
//! | 53 | 4 | base sequence, -1 for none |
//! | 57 | 4 | number of records |
//! | 61 |   | the records, compressed as one stream by the codec |
//!
//! All numbers are big-endian. Base offset, length, leader epoch and magic stand before the CRC's range, so a broker can
//! assign offsets without touching the checksum.

use std::fmt;

use thiserror::Error;

/// The bytes of a batch header.
pub const HEADER_LEN: usize = 61;
/// The bytes of base offset and length, which the length does not count.
pub const LOG_OVERHEAD: usize = 12;
/// The magic of the only batch version that is written today.
pub const MAGIC_V2: i8 = 2;
/// A timestamp that says that there is none.
pub const NO_TIMESTAMP: i64 = -1;
/// The producer id of a batch without one.
pub const NO_PRODUCER_ID: i64 = -1;
/// The base sequence of a batch without one.
pub const NO_SEQUENCE: i32 = -1;

pub(super) const MAGIC_AT: usize = 16;
/// Where the range of the CRC starts.
pub(super) const CRC_FROM: usize = 21;
/// The smallest value that the length of a v2 batch can have: a header alone.
pub(super) const MIN_BATCH_LENGTH: i32 = (HEADER_LEN - LOG_OVERHEAD) as i32;

const CODEC_MASK: i16 = 0b111;
const LOG_APPEND_TIME: i16 = 1 << 3;
const TRANSACTIONAL: i16 = 1 << 4;
const CONTROL: i16 = 1 << 5;
const DELETE_HORIZON: i16 = 1 << 6;

/// How the records of a batch are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

impl Compression {
    /// The codec with this number, 0 to 4.
    pub fn from_id(id: u8) -> Option<Compression> {
        Some(match id {
            0 => Compression::None,
            1 => Compression::Gzip,
            2 => Compression::Snappy,
            3 => Compression::Lz4,
            4 => Compression::Zstd,
            _ => return None,
        })
    }

    /// The number that stands in the attributes.
    pub fn id(self) -> u8 {
        self as u8
    }

    /// The name, as `compression.type` spells it.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Snappy => "snappy",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a record's timestamp is: the time its producer gave it, or the time the broker appended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimestampType {
    CreateTime,
    LogAppendTime,
}

impl TimestampType {
    /// The name, as `message.timestamp.type` spells it.
    pub fn name(self) -> &'static str {
        match self {
            TimestampType::CreateTime => "CreateTime",
            TimestampType::LogAppendTime => "LogAppendTime",
        }
    }
}

/// What is wrong with the frame, the header or the checksum of a batch.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BatchError {
    #[error("{have} bytes are left, a batch header has {HEADER_LEN}")]
    ShortHeader { have: usize },
    #[error("the batch says it has {claimed} bytes, but only {have} are left")]
    Incomplete { claimed: u64, have: usize },
    #[error("the magic byte is {magic}, which no version of the format has")]
    UnknownMagic { magic: i8 },
    #[error("the magic byte is {magic}: a message set of the format before version 2")]
    OldFormat { magic: i8 },
    #[error("the batch length is {length}, less than the header takes")]
    BadLength { length: i32 },
    #[error("the codec in the attributes is {id}, which is none of Kafka's")]
    UnknownCodec { id: u8 },
    #[error("the number of records is {count} and the last offset delta {last_offset_delta}, which cannot be")]
    BadCounts { count: i32, last_offset_delta: i32 },
    #[error("the base offset is {base_offset} and the last offset delta {last_offset_delta}, which cannot be")]
    BadOffsets { base_offset: i64, last_offset_delta: i32 },
    #[error("the checksum in the header is {stored:08x}, that of the bytes {computed:08x}")]
    BadCrc { stored: u32, computed: u32 },
}

/// The fields of a version 2 batch header, just as they stand in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    pub base_offset: i64,
    /// The bytes after the length field: [`BatchHeader::size_in_bytes`] less 12.
    pub batch_length: i32,
    pub partition_leader_epoch: i32,
    pub crc: u32,
    /// Every bit, also those that have no meaning yet.
    pub attributes: i16,
    pub last_offset_delta: i32,
    /// Milliseconds since the Unix epoch; the records' deltas count from it.
    pub base_timestamp: i64,
    /// Milliseconds since the Unix epoch, -1 where no record has a timestamp.
    pub max_timestamp: i64,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub records_count: i32,
}

impl BatchHeader {
    /// Reads and checks a header: the magic is 2, the length covers a header, and counts and offsets can be. Says nothing of
    /// the records or the checksum.
    pub fn parse(bytes: &[u8]) -> Result<BatchHeader, BatchError> {
        let Some(fixed) = bytes.first_chunk::<HEADER_LEN>() else {
            return Err(BatchError::ShortHeader { have: bytes.len() });
        };
        check_magic(fixed[MAGIC_AT] as i8)?;
        let header = BatchHeader::read(fixed);
        if header.batch_length < MIN_BATCH_LENGTH {
            return Err(BatchError::BadLength { length: header.batch_length });
        }
        let BatchHeader { records_count: count, last_offset_delta, base_offset, .. } = header;
        // Compaction leaves fewer records than offsets, never more.
        if count < 0 || last_offset_delta < 0 || i64::from(count) > i64::from(last_offset_delta) + 1 {
            return Err(BatchError::BadCounts { count, last_offset_delta });
        }
        if base_offset < 0 || base_offset.checked_add(i64::from(last_offset_delta)).is_none() {
            return Err(BatchError::BadOffsets { base_offset, last_offset_delta });
        }
        header.compression()?;
        Ok(header)
    }

    /// Reads the fields, whatever they say. The magic is not looked at.
    pub fn read(bytes: &[u8; HEADER_LEN]) -> BatchHeader {
        BatchHeader {
            base_offset: i64::from_be_bytes(field(bytes, 0)),
            batch_length: i32::from_be_bytes(field(bytes, 8)),
            partition_leader_epoch: i32::from_be_bytes(field(bytes, 12)),
            crc: u32::from_be_bytes(field(bytes, 17)),
            attributes: i16::from_be_bytes(field(bytes, 21)),
            last_offset_delta: i32::from_be_bytes(field(bytes, 23)),
            base_timestamp: i64::from_be_bytes(field(bytes, 27)),
            max_timestamp: i64::from_be_bytes(field(bytes, 35)),
            producer_id: i64::from_be_bytes(field(bytes, 43)),
            producer_epoch: i16::from_be_bytes(field(bytes, 51)),
            base_sequence: i32::from_be_bytes(field(bytes, 53)),
            records_count: i32::from_be_bytes(field(bytes, 57)),
        }
    }

    /// The header's bytes.
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let mut out = [0; HEADER_LEN];
        out[0..8].copy_from_slice(&self.base_offset.to_be_bytes());
        out[8..12].copy_from_slice(&self.batch_length.to_be_bytes());
        out[12..16].copy_from_slice(&self.partition_leader_epoch.to_be_bytes());
        out[MAGIC_AT] = MAGIC_V2 as u8;
        out[17..21].copy_from_slice(&self.crc.to_be_bytes());
        out[21..23].copy_from_slice(&self.attributes.to_be_bytes());
        out[23..27].copy_from_slice(&self.last_offset_delta.to_be_bytes());
        out[27..35].copy_from_slice(&self.base_timestamp.to_be_bytes());
        out[35..43].copy_from_slice(&self.max_timestamp.to_be_bytes());
        out[43..51].copy_from_slice(&self.producer_id.to_be_bytes());
        out[51..53].copy_from_slice(&self.producer_epoch.to_be_bytes());
        out[53..57].copy_from_slice(&self.base_sequence.to_be_bytes());
        out[57..61].copy_from_slice(&self.records_count.to_be_bytes());
        out
    }

    /// The checksum that the header should hold in front of these records (everything after the 61 bytes).
    pub fn compute_crc(&self, records: &[u8]) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c(&self.encode()[CRC_FROM..]), records)
    }

    /// The header of a batch all of whose records are gone: it keeps the offsets, the producer's place and the time that
    /// the log goes by, and is a whole batch by itself. Compaction leaves it where a producer's last sequence must be kept.
    pub fn without_records(&self) -> BatchHeader {
        let mut header =
            BatchHeader { batch_length: MIN_BATCH_LENGTH, base_timestamp: NO_TIMESTAMP, records_count: 0, ..*self };
        header.set_compression(Compression::None);
        header.set_delete_horizon(false);
        header.crc = header.compute_crc(&[]);
        header
    }

    /// The bytes of the whole batch, header and records. A header that [`BatchHeader::parse`] let pass has at least 61.
    pub fn size_in_bytes(&self) -> usize {
        LOG_OVERHEAD + self.batch_length.max(0) as usize
    }

    /// The offset of the last record, also where compaction has removed it.
    pub fn last_offset(&self) -> i64 {
        self.base_offset.wrapping_add(i64::from(self.last_offset_delta))
    }

    /// The codec of the records.
    pub fn compression(&self) -> Result<Compression, BatchError> {
        let id = (self.attributes & CODEC_MASK) as u8;
        Compression::from_id(id).ok_or(BatchError::UnknownCodec { id })
    }

    pub fn set_compression(&mut self, compression: Compression) {
        self.attributes = (self.attributes & !CODEC_MASK) | i16::from(compression.id());
    }

    pub fn timestamp_type(&self) -> TimestampType {
        if self.attributes & LOG_APPEND_TIME == 0 { TimestampType::CreateTime } else { TimestampType::LogAppendTime }
    }

    pub fn set_timestamp_type(&mut self, to: TimestampType) {
        self.set_attribute(LOG_APPEND_TIME, to == TimestampType::LogAppendTime);
    }

    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    pub fn set_transactional(&mut self, to: bool) {
        self.set_attribute(TRANSACTIONAL, to);
    }

    /// Whether the records are markers that brokers write for each other; consumers are never shown them.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    pub fn set_control(&mut self, to: bool) {
        self.set_attribute(CONTROL, to);
    }

    /// Whether the base timestamp is the time from which compaction may drop the batch's tombstones and markers.
    pub fn has_delete_horizon(&self) -> bool {
        self.attributes & DELETE_HORIZON != 0
    }

    pub fn set_delete_horizon(&mut self, to: bool) {
        self.set_attribute(DELETE_HORIZON, to);
    }

    /// The time from which compaction may drop tombstones and markers, ms since the Unix epoch, if it was set.
    pub fn delete_horizon_ms(&self) -> Option<i64> {
        self.has_delete_horizon().then_some(self.base_timestamp)
    }

    /// Whether an idempotent or transactional producer wrote the batch.
    pub fn has_producer_id(&self) -> bool {
        self.producer_id > NO_PRODUCER_ID
    }

    /// The sequence number of the last record, -1 where there are none. They go around from `i32::MAX` to 0.
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence == NO_SEQUENCE {
            return NO_SEQUENCE;
        }
        (i64::from(self.base_sequence) + i64::from(self.last_offset_delta)).rem_euclid(1 << 31) as i32
    }

    fn set_attribute(&mut self, bit: i16, to: bool) {
        if to { self.attributes |= bit } else { self.attributes &= !bit }
    }
}

/// Refuses every magic but 2.
pub(super) fn check_magic(magic: i8) -> Result<(), BatchError> {
    match magic {
        MAGIC_V2 => Ok(()),
        0 | 1 => Err(BatchError::OldFormat { magic }),
        _ => Err(BatchError::UnknownMagic { magic }),
    }
}

fn field<const N: usize>(bytes: &[u8; HEADER_LEN], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> BatchHeader {
        BatchHeader {
            base_offset: 0x0102_0304_0506_0708,
            batch_length: 49,
            partition_leader_epoch: 7,
            crc: 0xdead_beef,
            attributes: 0b111_1100,
            last_offset_delta: 9,
            base_timestamp: 1_700_000_000_000,
            max_timestamp: 1_700_000_000_123,
            producer_id: 4000,
            producer_epoch: 3,
            base_sequence: i32::MAX - 2,
            records_count: 10,
        }
    }

    #[test]
    fn a_header_survives_encoding_and_every_flag_is_seen() {
        let header = sample();
        assert_eq!(BatchHeader::parse(&header.encode()), Ok(header));
        assert_eq!(header.compression(), Ok(Compression::Zstd));
        assert_eq!(header.timestamp_type(), TimestampType::LogAppendTime);
        assert!(header.is_transactional() && header.is_control() && header.has_delete_horizon());
        assert_eq!(header.delete_horizon_ms(), Some(1_700_000_000_000));
        assert_eq!(header.last_offset(), 0x0102_0304_0506_0708 + 9);
        assert_eq!(header.last_sequence(), 6, "sequences go around to 0");
        assert_eq!(header.size_in_bytes(), 61);
        let mut plain = header;
        plain.set_compression(Compression::None);
        plain.set_timestamp_type(TimestampType::CreateTime);
        plain.set_transactional(false);
        plain.set_control(false);
        plain.set_delete_horizon(false);
        assert_eq!(plain.attributes, 0);
    }

    #[test]
    fn each_thing_that_cannot_be_is_named() {
        let refuse = |change: fn(&mut BatchHeader)| {
            let mut header = sample();
            change(&mut header);
            BatchHeader::parse(&header.encode()).unwrap_err()
        };
        assert_eq!(refuse(|h| h.batch_length = 48), BatchError::BadLength { length: 48 });
        assert_eq!(refuse(|h| h.batch_length = -1), BatchError::BadLength { length: -1 });
        assert_eq!(refuse(|h| h.attributes = 5), BatchError::UnknownCodec { id: 5 });
        assert_eq!(refuse(|h| h.records_count = -1), BatchError::BadCounts { count: -1, last_offset_delta: 9 });
        assert_eq!(refuse(|h| h.records_count = 11), BatchError::BadCounts { count: 11, last_offset_delta: 9 });
        assert_eq!(refuse(|h| h.last_offset_delta = -1), BatchError::BadCounts { count: 10, last_offset_delta: -1 });
        let base_offset = i64::MAX - 8;
        assert_eq!(
            refuse(|h| h.base_offset = i64::MAX - 8),
            BatchError::BadOffsets { base_offset, last_offset_delta: 9 }
        );
        let mut bytes = sample().encode();
        for (magic, error) in [(1, BatchError::OldFormat { magic: 1 }), (3, BatchError::UnknownMagic { magic: 3 })] {
            bytes[16] = magic;
            assert_eq!(BatchHeader::parse(&bytes).unwrap_err(), error);
        }
        assert_eq!(BatchHeader::parse(&bytes[..60]).unwrap_err(), BatchError::ShortHeader { have: 60 });
    }
}
