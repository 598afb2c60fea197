//! The message sets of the formats before version 2, to be read only: old Apache Kafka logs hold them.
//!
//! | at | bytes | field |
//! |---:|------:|-------|
//! |  0 | 8 | offset |
//! |  8 | 4 | the bytes after this field |
//! | 12 | 4 | CRC-32 of everything after it |
//! | 16 | 1 | magic, 0 or 1 |
//! | 17 | 1 | attributes: bits 0-2 codec, and in version 1 bit 3 timestamp type |
//! | 18 | 8 | timestamp, ms; only in version 1 |
//! |    | 4 | length of the key, -1 for null; the key follows |
//! |    | 4 | length of the value, -1 for null; the value follows |
//!
//! A message with a codec is a wrapper: its value is a compressed message set of the same version. The wrapper's offset is
//! that of the last message in it; the offsets inside are absolute in version 0 and count from 0 in version 1. Where the
//! wrapper of version 1 has the append time, that is the time of all messages inside.

use flate2::Crc;
use thiserror::Error;

use super::batch::{Frame, peek};
use super::codec::{CodecError, Inflate};
use super::header::{BatchError, Compression, LOG_OVERHEAD, NO_TIMESTAMP, TimestampType};

const CRC_AT: usize = 12;
const CRC_FROM: usize = 16;
const ATTRIBUTES_AT: usize = 17;
const TIMESTAMP_AT: usize = 18;

/// Why a message set cannot be read, or cannot be read on.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LegacyError {
    #[error(transparent)]
    Frame(#[from] BatchError),
    #[error("the checksum of the message at offset {offset} is {stored:08x}, that of its bytes {computed:08x}")]
    BadCrc { offset: i64, stored: u32, computed: u32 },
    #[error("the key and the value of the message at offset {offset} do not fill it as their lengths say")]
    BadFields { offset: i64 },
    #[error("the message at offset {offset} cannot be inflated: {source}")]
    Codec { offset: i64, source: CodecError },
    #[error("the codec of the message at offset {offset} is {id}, which that version does not have")]
    UnknownCodec { offset: i64, id: u8 },
    #[error("the wrapper at offset {offset} has no messages in it")]
    EmptyWrapper { offset: i64 },
    #[error(
        "the wrapper at offset {offset} of version {magic} holds a message that is compressed or of version {inner}"
    )]
    BadInner { offset: i64, magic: i8, inner: i8 },
    #[error("a message in the wrapper at offset {offset} has {size} bytes, more than the {limit} that are taken")]
    TooLarge { offset: i64, size: usize, limit: usize },
}

/// An entry of a message set as it stands in the log: a message, or a wrapper around many. Cheap to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Of the message, or of the last one in the wrapper.
    pub offset: i64,
    /// 0 or 1.
    pub magic: i8,
    pub compression: Compression,
    pub timestamp_type: TimestampType,
    /// Milliseconds since the Unix epoch; -1 for none, and always so in version 0.
    pub timestamp: i64,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    bytes: &'a [u8],
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub offset: i64,
    pub timestamp: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
}

impl<'a> Entry<'a> {
    /// The entry that `bytes` start with: whole, its fields filling it. The checksum is not looked at.
    pub fn parse(bytes: &'a [u8]) -> Result<Entry<'a>, LegacyError> {
        let Frame { magic, size } = peek(bytes)?;
        if magic > 1 {
            return Err(BatchError::UnknownMagic { magic }.into());
        }
        let bytes = bytes.get(..size).ok_or(BatchError::Incomplete { claimed: size as u64, have: bytes.len() })?;
        let offset = number(bytes, 0).map(i64::from_be_bytes).unwrap_or_default();
        let bad_fields = LegacyError::BadFields { offset };
        let attributes = bytes[ATTRIBUTES_AT];
        let id = attributes & 0b111;
        let compression = Compression::from_id(id)
            .filter(|&codec| codec != Compression::Zstd)
            .ok_or(LegacyError::UnknownCodec { offset, id })?;
        let mut at = TIMESTAMP_AT;
        let mut timestamp = NO_TIMESTAMP;
        if magic == 1 {
            timestamp = number(bytes, at).map(i64::from_be_bytes).ok_or(bad_fields.clone())?;
            at += 8;
        }
        let append_time = magic == 1 && attributes & 1 << 3 != 0;
        let timestamp_type = if append_time { TimestampType::LogAppendTime } else { TimestampType::CreateTime };
        let key = field(bytes, &mut at).ok_or(bad_fields.clone())?;
        let value = field(bytes, &mut at).ok_or(bad_fields.clone())?;
        if at != bytes.len() {
            return Err(bad_fields);
        }
        Ok(Entry { offset, magic, compression, timestamp_type, timestamp, key, value, bytes })
    }

    /// All bytes of the entry.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether the bytes are those that the checksum was made of.
    pub fn verify_crc(&self) -> Result<(), LegacyError> {
        let stored = number(self.bytes, CRC_AT).map(u32::from_be_bytes).unwrap_or_default();
        let mut crc = Crc::new();
        crc.update(&self.bytes[CRC_FROM..]);
        if crc.sum() == stored {
            return Ok(());
        }
        Err(LegacyError::BadCrc { offset: self.offset, stored, computed: crc.sum() })
    }

    /// The messages of the entry: itself, or those in the wrapper. None of them may have more than `limit` bytes.
    pub fn messages(&self, limit: usize) -> Result<Messages<'a>, LegacyError> {
        let mut shift = 0;
        if self.compression != Compression::None && self.magic == 1 {
            // The offsets count from 0 and the wrapper knows only the last, so that has to be found first.
            let mut last = None;
            let mut inner = Inner::open(self, limit)?;
            while let Some(entry) = inner.next()? {
                last = Some(entry.offset);
            }
            shift = self.offset.wrapping_sub(last.ok_or(LegacyError::EmptyWrapper { offset: self.offset })?);
        }
        let source = match self.compression {
            Compression::None => Source::Single(true),
            _ => Source::Wrapped(Box::new(Inner::open(self, limit)?)),
        };
        Ok(Messages { entry: *self, source, shift, failed: false })
    }
}

/// The entries of a message set in a slice, one after the other. Ends after the first error.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    bytes: &'a [u8],
    position: usize,
    failed: bool,
}

impl<'a> Entries<'a> {
    pub fn new(bytes: &'a [u8]) -> Entries<'a> {
        Entries { bytes, position: 0, failed: false }
    }

    /// How many bytes of the slice the entries so far take.
    pub fn position(&self) -> usize {
        self.position
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, LegacyError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.position == self.bytes.len() {
            return None;
        }
        let entry = Entry::parse(&self.bytes[self.position..]);
        match &entry {
            Ok(entry) => self.position += entry.bytes.len(),
            Err(_) => self.failed = true,
        }
        Some(entry)
    }
}

/// The messages of an entry, inflated one at a time. Ends after the first error.
#[derive(Debug)]
pub struct Messages<'a> {
    entry: Entry<'a>,
    source: Source<'a>,
    /// What is added to the offsets inside.
    shift: i64,
    failed: bool,
}

#[derive(Debug)]
enum Source<'a> {
    /// The entry itself, if it is still to come.
    Single(bool),
    Wrapped(Box<Inner<'a>>),
}

impl Iterator for Messages<'_> {
    type Item = Result<Message, LegacyError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let entry = match &mut self.source {
            Source::Single(left) => std::mem::take(left).then_some(self.entry),
            Source::Wrapped(inner) => match inner.next() {
                Ok(entry) => entry,
                Err(e) => {
                    self.failed = true;
                    return Some(Err(e));
                }
            },
        }?;
        let append_time = self.entry.timestamp_type == TimestampType::LogAppendTime;
        Some(Ok(Message {
            offset: entry.offset.wrapping_add(self.shift),
            timestamp: if append_time { self.entry.timestamp } else { entry.timestamp },
            key: entry.key.map(<[u8]>::to_vec),
            value: entry.value.map(<[u8]>::to_vec),
        }))
    }
}

/// The message set in a wrapper. Holds one message.
#[derive(Debug)]
struct Inner<'a> {
    inflate: Inflate<&'a [u8]>,
    message: Vec<u8>,
    /// Of the wrapper.
    offset: i64,
    magic: i8,
    limit: usize,
}

impl<'a> Inner<'a> {
    fn open(wrapper: &Entry<'a>, limit: usize) -> Result<Inner<'a>, LegacyError> {
        let &Entry { offset, magic, compression, .. } = wrapper;
        let value = wrapper.value.ok_or(LegacyError::EmptyWrapper { offset })?;
        let inflate = match (compression, magic) {
            (Compression::Lz4, 0) => Inflate::with_wrong_lz4_checksum(value),
            _ => Inflate::new(compression, value).map_err(|source| LegacyError::Codec { offset, source })?,
        };
        Ok(Inner { inflate, message: Vec::new(), offset, magic, limit })
    }

    fn next(&mut self) -> Result<Option<Entry<'_>>, LegacyError> {
        self.message.clear();
        self.gather(LOG_OVERHEAD)?;
        if self.message.is_empty() {
            return Ok(None);
        }
        let claimed = number(&self.message, 8).map(u32::from_be_bytes).unwrap_or_default();
        let size = LOG_OVERHEAD + claimed as usize;
        let &mut Inner { offset, magic, limit, .. } = self;
        if size > limit {
            return Err(LegacyError::TooLarge { offset, size, limit });
        }
        self.gather(size)?;
        let entry = Entry::parse(&self.message)?;
        entry.verify_crc()?;
        if entry.magic != magic || entry.compression != Compression::None {
            return Err(LegacyError::BadInner { offset, magic, inner: entry.magic });
        }
        Ok(Some(entry))
    }

    /// Adds inflated bytes until the message has `size` or there are no more. Reserves only what has come.
    fn gather(&mut self, size: usize) -> Result<(), LegacyError> {
        while self.message.len() < size {
            let offset = self.offset;
            let piece = self.inflate.fill().map_err(|source| LegacyError::Codec { offset, source })?;
            if piece.is_empty() {
                break;
            }
            let n = piece.len().min(size - self.message.len());
            self.message.extend_from_slice(&piece[..n]);
            self.inflate.consume(n);
        }
        Ok(())
    }
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// The key or value at `at`, which is moved past it. `None` where it does not fit, or its length is less than -1.
fn field<'a>(bytes: &'a [u8], at: &mut usize) -> Option<Option<&'a [u8]>> {
    let len = number(bytes, *at).map(i32::from_be_bytes)?;
    *at += 4;
    if len == -1 {
        return Some(None);
    }
    let field = bytes[*at..].get(..usize::try_from(len).ok()?)?;
    *at += field.len();
    Some(Some(field))
}
