//! One record of a version 2 batch.
//!
//! | field | shape |
//! |-------|-------|
//! | length | varint: the bytes after it |
//! | attributes | 1 byte, unused |
//! | timestamp delta | varlong, ms from the batch's base timestamp |
//! | offset delta | varint, from the batch's base offset |
//! | key | varint length (negative: null), then the bytes |
//! | value | varint length (negative: null, a tombstone on a compacted topic), then the bytes |
//! | headers | varint count; for each a varint length and the name, then a varint length (negative: null) and the value |
//!
//! A record is read in one of two ways that agree on what is right: [`parse`] where its bytes lie in one piece, and
//! [`Scanner`] where they come piece by piece, which holds none of them.

use thiserror::Error;

use super::header::{BatchHeader, TimestampType};
use super::varint::{self, Bad};

/// What is wrong inside a record.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum RecordFlaw {
    #[error("a number in it is longer than its type allows")]
    BadNumber,
    #[error("it ends inside one of its fields")]
    CutShort,
    #[error("its length is {0}")]
    BadLength(i32),
    #[error("the name of a header has the length {0}")]
    BadHeaderName(i32),
    #[error("it says it has {0} headers, which cannot be")]
    BadHeaderCount(i32),
    #[error("{0} bytes are left over after its last field")]
    TrailingBytes(u32),
}

/// What stands in a record besides keys, values and headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordInfo {
    /// Unused by every version so far.
    pub attributes: i8,
    /// Milliseconds from the batch's base timestamp.
    pub timestamp_delta: i64,
    /// From the batch's base offset.
    pub offset_delta: i32,
    /// Bytes; negative for a null key.
    pub key_len: i32,
    /// Bytes; negative for a null value.
    pub value_len: i32,
    pub header_count: i32,
    /// All bytes of the record, the length in front of it as well.
    pub size: usize,
}

impl RecordInfo {
    pub fn has_key(&self) -> bool {
        self.key_len >= 0
    }

    pub fn has_value(&self) -> bool {
        self.value_len >= 0
    }
}

/// What a record's deltas count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Base {
    offset: i64,
    timestamp: i64,
    /// Set where the batch's maximum timestamp is that of every record.
    append_time: Option<i64>,
}

impl Base {
    pub(super) fn of(header: &BatchHeader) -> Base {
        Base {
            offset: header.base_offset,
            timestamp: header.base_timestamp,
            append_time: (header.timestamp_type() == TimestampType::LogAppendTime).then_some(header.max_timestamp),
        }
    }
}

/// A record whose bytes are at hand until the reader is asked for the next.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    pub(super) info: RecordInfo,
    pub(super) base: Base,
    pub(super) raw: &'a [u8],
    pub(super) layout: Layout,
}

impl<'a> Record<'a> {
    pub fn info(&self) -> &RecordInfo {
        &self.info
    }

    pub fn offset(&self) -> i64 {
        self.base.offset.wrapping_add(i64::from(self.info.offset_delta))
    }

    /// Milliseconds since the Unix epoch, -1 for none: the producer's, or the batch's append time where that is what the
    /// batch has.
    pub fn timestamp(&self) -> i64 {
        self.base.append_time.unwrap_or(self.create_time())
    }

    /// The timestamp that the producer gave the record, whatever the batch's timestamp type is.
    pub fn create_time(&self) -> i64 {
        self.base.timestamp.wrapping_add(self.info.timestamp_delta)
    }

    /// `None` is a null key.
    pub fn key(&self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.info.key_len).ok()?;
        Some(&self.raw[self.layout.key..self.layout.key + len])
    }

    /// `None` is a null value.
    pub fn value(&self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.info.value_len).ok()?;
        Some(&self.raw[self.layout.value..self.layout.value + len])
    }

    /// The headers in their order, duplicates and all.
    pub fn headers(&self) -> Headers<'a> {
        Headers { rest: &self.raw[self.layout.headers..], left: self.info.header_count }
    }

    /// Every byte of the record, the length in front of it as well.
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// The bytes from the length of the key to the end: what stays the same when offset or timestamp base change.
    pub(super) fn tail(&self) -> &'a [u8] {
        &self.raw[self.layout.tail..]
    }
}

/// A header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader<'a> {
    /// UTF-8 by agreement; nothing checks it.
    pub name: &'a [u8],
    pub value: Option<&'a [u8]>,
}

/// The headers of a record. See [`Record::headers`].
#[derive(Clone, Debug)]
pub struct Headers<'a> {
    rest: &'a [u8],
    left: i32,
}

impl<'a> Iterator for Headers<'a> {
    type Item = RecordHeader<'a>;

    fn next(&mut self) -> Option<RecordHeader<'a>> {
        if self.left <= 0 {
            return None;
        }
        self.left -= 1;
        let mut fields = Fields { buf: self.rest, pos: 0 };
        const CHECKED: &str = "a record is only lent after its headers were checked";
        let name = fields.bytes().expect(CHECKED).unwrap_or_default();
        let value = fields.bytes().expect(CHECKED);
        self.rest = &self.rest[fields.pos..];
        Some(RecordHeader { name, value })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.left.max(0) as usize;
        (left, Some(left))
    }
}

/// Where in a record's bytes things are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Layout {
    /// The length of the key.
    tail: usize,
    key: usize,
    value: usize,
    headers: usize,
}

/// What [`parse`] found.
pub(super) enum Parsed {
    Whole(RecordInfo, Layout),
    /// The record goes on past the bytes given.
    Partial,
}

/// The size of the record that `start` is the start of, the length in front included; `None` while the length is not whole.
pub(super) fn size(start: &[u8]) -> Result<Option<usize>, RecordFlaw> {
    let mut at = 0;
    match varint::read_i32(start, &mut at) {
        Ok(len) => Ok(Some(at + usize::try_from(len).map_err(|_| RecordFlaw::BadLength(len))?)),
        Err(Bad::Short) => Ok(None),
        Err(Bad::TooLong) => Err(RecordFlaw::BadNumber),
    }
}

/// Reads the record that `buf` starts with. Checks it whole.
#[inline(always)]
pub(super) fn parse(buf: &[u8]) -> Result<Parsed, RecordFlaw> {
    let mut start = 0;
    let len = match varint::read_i32(buf, &mut start) {
        Ok(len) => usize::try_from(len).map_err(|_| RecordFlaw::BadLength(len))?,
        Err(Bad::Short) => return Ok(Parsed::Partial),
        Err(Bad::TooLong) => return Err(RecordFlaw::BadNumber),
    };
    let Some(raw) = buf.get(..start + len) else { return Ok(Parsed::Partial) };
    let mut fields = Fields { buf: raw, pos: start };
    let mut info = RecordInfo { size: raw.len(), ..RecordInfo::default() };
    let mut layout = Layout::default();
    info.attributes = fields.byte()?;
    info.timestamp_delta = fields.i64()?;
    info.offset_delta = fields.i32()?;
    layout.tail = fields.pos;
    info.key_len = fields.i32()?;
    layout.key = fields.pos;
    fields.skip(info.key_len)?;
    info.value_len = fields.i32()?;
    layout.value = fields.pos;
    fields.skip(info.value_len)?;
    info.header_count = fields.i32()?;
    layout.headers = fields.pos;
    check_header_count(info.header_count, raw.len() - fields.pos)?;
    for _ in 0..info.header_count {
        let name_len = fields.i32()?;
        if name_len < 0 {
            return Err(RecordFlaw::BadHeaderName(name_len));
        }
        fields.skip(name_len)?;
        let value_len = fields.i32()?;
        fields.skip(value_len)?;
    }
    if fields.pos != raw.len() {
        return Err(RecordFlaw::TrailingBytes((raw.len() - fields.pos) as u32));
    }
    Ok(Parsed::Whole(info, layout))
}

/// Each header takes two bytes at least.
fn check_header_count(count: i32, left: usize) -> Result<(), RecordFlaw> {
    match usize::try_from(count) {
        Ok(n) if n <= left / 2 => Ok(()),
        _ => Err(RecordFlaw::BadHeaderCount(count)),
    }
}

struct Fields<'a> {
    buf: &'a [u8],
    pos: usize,
}

impl<'a> Fields<'a> {
    #[inline(always)]
    fn byte(&mut self) -> Result<i8, RecordFlaw> {
        let byte = *self.buf.get(self.pos).ok_or(RecordFlaw::CutShort)?;
        self.pos += 1;
        Ok(byte as i8)
    }

    #[inline(always)]
    fn i32(&mut self) -> Result<i32, RecordFlaw> {
        varint::read_i32(self.buf, &mut self.pos).map_err(flaw)
    }

    #[inline(always)]
    fn i64(&mut self) -> Result<i64, RecordFlaw> {
        varint::read_i64(self.buf, &mut self.pos).map_err(flaw)
    }

    /// Passes over `len` bytes; none where it is negative, which stands for null.
    #[inline(always)]
    fn skip(&mut self, len: i32) -> Result<(), RecordFlaw> {
        let len = len.max(0) as usize;
        if len > self.buf.len() - self.pos {
            return Err(RecordFlaw::CutShort);
        }
        self.pos += len;
        Ok(())
    }

    fn bytes(&mut self) -> Result<Option<&'a [u8]>, RecordFlaw> {
        let len = self.i32()?;
        let from = self.pos;
        self.skip(len)?;
        Ok((len >= 0).then(|| &self.buf[from..self.pos]))
    }
}

fn flaw(bad: Bad) -> RecordFlaw {
    match bad {
        Bad::Short => RecordFlaw::CutShort,
        Bad::TooLong => RecordFlaw::BadNumber,
    }
}

/// Reads a record whose bytes come piece by piece, and holds none of them.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    stage: Stage,
    number: varint::Partial,
    /// The bytes of the record that are still to come, once its length is known.
    left: usize,
    /// The bytes of the current key, value, name or header value that are still to come.
    skip: usize,
    headers_left: i32,
    info: RecordInfo,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Length,
    Attributes,
    TimestampDelta,
    OffsetDelta,
    KeyLength,
    Key,
    ValueLength,
    Value,
    HeaderCount,
    HeaderNameLength,
    HeaderName,
    HeaderValueLength,
    HeaderValue,
}

impl Scanner {
    /// Whether no byte of a record has been taken yet.
    pub(super) fn is_between_records(&self) -> bool {
        self.stage == Stage::Length && self.info.size == 0
    }

    /// Takes bytes from the start of `piece`; answers how many, and the record if its last byte was among them. If not, all
    /// of them were taken.
    pub(super) fn feed(&mut self, piece: &[u8]) -> Result<(usize, Option<RecordInfo>), RecordFlaw> {
        let mut at = 0;
        loop {
            // Stages that need no byte end at once, so that an empty field at the very end of a record ends it.
            match self.stage {
                Stage::Key if self.skip == 0 => self.stage = Stage::ValueLength,
                Stage::Value if self.skip == 0 => self.stage = Stage::HeaderCount,
                Stage::HeaderName if self.skip == 0 => self.stage = Stage::HeaderValueLength,
                Stage::HeaderValue if self.skip == 0 => {
                    if self.headers_left == 0 {
                        return self.finish(at);
                    }
                    self.headers_left -= 1;
                    self.stage = Stage::HeaderNameLength;
                }
                _ => {
                    if self.left == 0 && self.stage != Stage::Length {
                        return Err(RecordFlaw::CutShort);
                    }
                    let Some(&byte) = piece.get(at) else { return Ok((at, None)) };
                    if self.skip > 0 {
                        let n = self.skip.min(piece.len() - at);
                        self.skip -= n;
                        self.take(n);
                        at += n;
                    } else {
                        self.take(1);
                        at += 1;
                        self.field(byte)?;
                    }
                }
            }
        }
    }

    fn take(&mut self, n: usize) {
        self.info.size += n;
        if self.stage != Stage::Length {
            self.left -= n;
        }
    }

    /// One byte of a number or of the attributes.
    fn field(&mut self, byte: u8) -> Result<(), RecordFlaw> {
        if self.stage == Stage::Attributes {
            self.info.attributes = byte as i8;
            self.stage = Stage::TimestampDelta;
            return Ok(());
        }
        let bits = if self.stage == Stage::TimestampDelta { 64 } else { 32 };
        let Some(value) = self.number.push(byte, bits).map_err(flaw)? else { return Ok(()) };
        if self.stage == Stage::TimestampDelta {
            self.info.timestamp_delta = value;
            self.stage = Stage::OffsetDelta;
            return Ok(());
        }
        let value = value as i32;
        match self.stage {
            Stage::Length => {
                self.left = usize::try_from(value).map_err(|_| RecordFlaw::BadLength(value))?;
                self.stage = Stage::Attributes;
            }
            Stage::OffsetDelta => {
                self.info.offset_delta = value;
                self.stage = Stage::KeyLength;
            }
            Stage::KeyLength => {
                self.info.key_len = value;
                self.start_skip(value, Stage::Key)?;
            }
            Stage::ValueLength => {
                self.info.value_len = value;
                self.start_skip(value, Stage::Value)?;
            }
            Stage::HeaderCount => {
                check_header_count(value, self.left)?;
                self.info.header_count = value;
                self.headers_left = value;
                self.stage = Stage::HeaderValue;
            }
            Stage::HeaderNameLength if value < 0 => return Err(RecordFlaw::BadHeaderName(value)),
            Stage::HeaderNameLength => self.start_skip(value, Stage::HeaderName)?,
            Stage::HeaderValueLength => self.start_skip(value, Stage::HeaderValue)?,
            stage => unreachable!("{stage:?} has no number"),
        }
        Ok(())
    }

    fn start_skip(&mut self, len: i32, stage: Stage) -> Result<(), RecordFlaw> {
        self.skip = len.max(0) as usize;
        self.stage = stage;
        if self.skip > self.left { Err(RecordFlaw::CutShort) } else { Ok(()) }
    }

    fn finish(&mut self, at: usize) -> Result<(usize, Option<RecordInfo>), RecordFlaw> {
        if self.left > 0 {
            return Err(RecordFlaw::TrailingBytes(self.left as u32));
        }
        let info = self.info;
        *self = Scanner::default();
        Ok((at, Some(info)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the scanner makes of `bytes` when they come in pieces of `size`.
    fn scan(bytes: &[u8], size: usize) -> Result<Option<RecordInfo>, RecordFlaw> {
        let mut scanner = Scanner::default();
        for piece in bytes.chunks(size.max(1)) {
            if let (_, Some(info)) = scanner.feed(piece)? {
                return Ok(Some(info));
            }
        }
        Ok(None)
    }

    #[test]
    fn both_ways_of_reading_agree_on_every_damaged_record() {
        let mut good = Vec::new();
        crate::record::builder::write_record(
            &mut good,
            300,
            2,
            Some(b"key"),
            Some(&[7; 70]),
            &[(b"a".as_slice(), Some(b"1".as_slice())), (b"a", None), (b"", Some(b""))],
        );
        let mut compared = 0;
        for at in 0..good.len() {
            for byte in 0..=255 {
                let mut bytes = good.clone();
                bytes[at] = byte;
                let whole = match parse(&bytes) {
                    Ok(Parsed::Whole(info, _)) => Ok(Some(info)),
                    Ok(Parsed::Partial) => continue,
                    Err(flaw) => Err(flaw),
                };
                for size in [1, 2, 7, 1000] {
                    assert_eq!(scan(&bytes, size), whole, "byte {at} set to {byte}, pieces of {size}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 10_000, "only {compared} comparisons");
    }

    #[test]
    fn each_flaw_is_named() {
        let flaw = |bytes: &[u8]| parse(bytes).map(|_| ()).unwrap_err();
        // length 6: attributes, timestamp, offset, null key, null value, no headers
        assert!(matches!(parse(&[12, 0, 0, 0, 1, 1, 0]), Ok(Parsed::Whole(..))));
        assert!(matches!(parse(&[14, 0, 0, 0, 1, 1, 0]), Ok(Parsed::Partial)));
        assert_eq!(flaw(&[1]), RecordFlaw::BadLength(-1));
        assert_eq!(flaw(&[0]), RecordFlaw::CutShort);
        assert_eq!(flaw(&[10, 0, 0, 0, 1, 1, 0]), RecordFlaw::CutShort);
        assert_eq!(flaw(&[14, 0, 0, 0, 1, 1, 0, 9]), RecordFlaw::TrailingBytes(1));
        assert_eq!(flaw(&[12, 0, 0, 0, 20, 1, 0]), RecordFlaw::CutShort);
        assert_eq!(flaw(&[12, 0, 0, 0, 1, 1, 1]), RecordFlaw::BadHeaderCount(-1));
        assert_eq!(flaw(&[12, 0, 0, 0, 1, 1, 2]), RecordFlaw::BadHeaderCount(1));
        assert_eq!(flaw(&[16, 0, 0, 0, 1, 1, 2, 1, 0]), RecordFlaw::BadHeaderName(-1));
        assert_eq!(flaw(&[0x80, 0x80, 0x80, 0x80, 0x80, 0]), RecordFlaw::BadNumber);
    }
}
