//! The primitive types of the Kafka wire format, read with bounds and written without copying record bytes.
//!
//! | type | plain | in flexible versions |
//! |---|---|---|
//! | bool, i8, i16, u16, i32, i64, f64 | big-endian | the same |
//! | uuid | 16 bytes | the same |
//! | string | i16 length, bytes; length -1 is null | varint of length + 1, bytes; 0 is null |
//! | bytes, records | i32 length, bytes; length -1 is null | varint of length + 1, bytes; 0 is null |
//! | array | i32 count, elements; count -1 is null | varint of count + 1, elements; 0 is null |
//! | struct | its fields | its fields, then tagged fields |
//! | nullable struct | i8 1 or -1, then the struct | the same |
//! | tagged fields | none | varint count, then for each varint tag, varint size, that many bytes |
//!
//! Source: the Kafka protocol guide; KIP-482 for flexible versions.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::uuid::Uuid;
use crate::sys::FileRange;

/// Why bytes from the wire are not the message they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("the message ends where {needed} more bytes should follow, with {remaining} left")]
    Truncated { needed: usize, remaining: usize },
    #[error("a length or count of {0} cannot be")]
    BadLength(i64),
    #[error("a varint is longer than five bytes")]
    BadVarint,
    #[error("a string is not UTF-8")]
    BadUtf8,
    #[error("null where the version allows none")]
    UnexpectedNull,
    #[error("{0} bytes follow the end of the message")]
    TrailingBytes(usize),
    #[error("tagged field {0} has another size than it says")]
    BadTaggedField(u32),
    #[error("the message holds more elements than {DECODED_LIMIT} bytes of memory can")]
    TooLarge,
    #[error("an element is of a kind that is not known")]
    UnknownElement,
}

/// The most memory that the elements of one decoded message may take. A frame of two-byte elements could otherwise claim
/// many times its own size.
pub const DECODED_LIMIT: usize = 128 * 1024 * 1024;

/// Which form of a message is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    pub number: i16,
    /// Compact lengths and tagged fields (KIP-482).
    pub flexible: bool,
}

/// Reads from a frame. Byte fields are slices of it, not copies.
#[derive(Debug)]
pub struct Reader {
    bytes: Bytes,
    budget: usize,
}

impl Reader {
    pub fn new(bytes: Bytes) -> Self {
        Reader { bytes, budget: DECODED_LIMIT }
    }

    pub fn remaining(&self) -> usize {
        self.bytes.len()
    }

    /// Fails when anything is left.
    pub fn finish(self) -> Result<(), DecodeError> {
        if self.bytes.is_empty() { Ok(()) } else { Err(DecodeError::TrailingBytes(self.bytes.len())) }
    }

    /// What is left, whole.
    pub fn into_rest(self) -> Bytes {
        self.bytes
    }

    fn need(&self, needed: usize) -> Result<(), DecodeError> {
        if self.bytes.len() < needed {
            return Err(DecodeError::Truncated { needed, remaining: self.bytes.len() });
        }
        Ok(())
    }

    pub fn take(&mut self, len: usize) -> Result<Bytes, DecodeError> {
        self.need(len)?;
        Ok(self.bytes.split_to(len))
    }

    /// An unsigned varint of at most 32 bits.
    pub fn uvarint(&mut self) -> Result<u32, DecodeError> {
        let mut value = 0u64;
        for i in 0..5 {
            self.need(1)?;
            let byte = self.bytes.get_u8();
            value |= u64::from(byte & 0x7f) << (7 * i);
            if byte & 0x80 == 0 {
                return u32::try_from(value).map_err(|_| DecodeError::BadVarint);
            }
        }
        Err(DecodeError::BadVarint)
    }

    /// The length in front of a string, bytes or an array; `None` is null.
    fn length(&mut self, v: Version, short: bool) -> Result<Option<usize>, DecodeError> {
        if v.flexible {
            return Ok((self.uvarint()? as usize).checked_sub(1));
        }
        let length = if short { i64::from(i16::read(self, v)?) } else { i64::from(i32::read(self, v)?) };
        match length {
            -1 => Ok(None),
            n => usize::try_from(n).map(Some).map_err(|_| DecodeError::BadLength(n)),
        }
    }

    /// Takes from what the decoded message may use.
    fn spend(&mut self, bytes: usize) -> Result<(), DecodeError> {
        self.budget = self.budget.checked_sub(bytes).ok_or(DecodeError::TooLarge)?;
        Ok(())
    }

    /// Reads the tagged fields that end a struct in flexible versions, giving each to `field`; a field that it does not
    /// know (it answers `false`) is skipped.
    pub fn tagged_fields(
        &mut self,
        v: Version,
        mut field: impl FnMut(u32, &mut Reader) -> Result<bool, DecodeError>,
    ) -> Result<(), DecodeError> {
        if !v.flexible {
            return Ok(());
        }
        for _ in 0..self.uvarint()? {
            let tag = self.uvarint()?;
            let size = self.uvarint()? as usize;
            let mut inner = Reader { bytes: self.take(size)?, budget: self.budget };
            if field(tag, &mut inner)? && inner.remaining() > 0 {
                return Err(DecodeError::BadTaggedField(tag));
            }
            self.budget = inner.budget;
        }
        Ok(())
    }
}

/// A piece of an encoded message: bytes in memory, or bytes that go from a file to the socket.
#[derive(Clone, Debug)]
pub enum Chunk {
    Bytes(Bytes),
    File(FileRange),
}

impl Chunk {
    pub fn len(&self) -> usize {
        match self {
            Chunk::Bytes(bytes) => bytes.len(),
            Chunk::File(range) => range.len,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Writes a message as a row of chunks.
#[derive(Debug, Default)]
pub struct Writer {
    chunks: Vec<Chunk>,
    /// Bytes in `chunks`.
    length: usize,
    tail: BytesMut,
}

/// Byte fields of at least this size become chunks of their own; smaller ones are copied.
const COPY_LIMIT: usize = 1024;

impl Writer {
    pub fn new() -> Self {
        Writer::default()
    }

    /// Bytes written so far.
    pub fn len(&self) -> usize {
        self.length + self.tail.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn into_chunks(mut self) -> Vec<Chunk> {
        self.end_chunk();
        self.chunks
    }

    /// All of it in memory, file ranges read in.
    pub fn into_bytes(self) -> std::io::Result<Bytes> {
        let mut all = BytesMut::with_capacity(self.len());
        for chunk in self.into_chunks() {
            match chunk {
                Chunk::Bytes(bytes) => all.put(bytes),
                Chunk::File(range) => all.put_slice(&range.read()?),
            }
        }
        Ok(all.freeze())
    }

    fn end_chunk(&mut self) {
        if !self.tail.is_empty() {
            let bytes = self.tail.split().freeze();
            self.length += bytes.len();
            self.chunks.push(Chunk::Bytes(bytes));
        }
    }

    pub fn put_slice(&mut self, bytes: &[u8]) {
        self.tail.put_slice(bytes);
    }

    /// Appends bytes, by reference where they are many.
    pub fn put_bytes(&mut self, bytes: &Bytes) {
        if bytes.len() < COPY_LIMIT {
            self.tail.put_slice(bytes);
        } else {
            self.end_chunk();
            self.length += bytes.len();
            self.chunks.push(Chunk::Bytes(bytes.clone()));
        }
    }

    pub fn put_file(&mut self, range: &FileRange) {
        if range.len > 0 {
            self.end_chunk();
            self.length += range.len;
            self.chunks.push(Chunk::File(range.clone()));
        }
    }

    pub fn uvarint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.tail.put_u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.tail.put_u8(value as u8);
    }

    fn put_writer(&mut self, other: Writer) {
        for chunk in other.into_chunks() {
            match chunk {
                Chunk::Bytes(bytes) => self.put_bytes(&bytes),
                Chunk::File(range) => self.put_file(&range),
            }
        }
    }

    /// A length in front of a string, bytes or an array. Every length that doze writes fits, since it came out of a frame
    /// or a limit that is far below 2^31.
    fn length(&mut self, length: Option<usize>, v: Version, short: bool) {
        if v.flexible {
            self.uvarint(length.map_or(0, |n| u32::try_from(n + 1).expect("lengths are below 2^31")));
        } else if short {
            self.tail.put_i16(length.map_or(-1, |n| i16::try_from(n).expect("strings on the wire are below 2^15")));
        } else {
            self.tail.put_i32(length.map_or(-1, |n| i32::try_from(n).expect("lengths are below 2^31")));
        }
    }
}

/// The tagged fields of one struct, collected before they are written.
#[derive(Debug, Default)]
pub struct TaggedFields(Vec<(u32, Writer)>);

impl TaggedFields {
    pub fn add(&mut self, tag: u32, write: impl FnOnce(&mut Writer)) {
        let mut writer = Writer::new();
        write(&mut writer);
        self.0.push((tag, writer));
    }

    pub fn write(mut self, w: &mut Writer, v: Version) {
        if !v.flexible {
            return;
        }
        self.0.sort_by_key(|(tag, _)| *tag);
        w.uvarint(self.0.len() as u32);
        for (tag, field) in self.0 {
            w.uvarint(tag);
            w.uvarint(u32::try_from(field.len()).expect("lengths are below 2^31"));
            w.put_writer(field);
        }
    }
}

/// A type that has a form on the wire.
pub trait Wire: Sized {
    fn read(r: &mut Reader, v: Version) -> Result<Self, DecodeError>;
    fn write(&self, w: &mut Writer, v: Version);

    /// The `throttle_time_ms` of a response; 0 where it has none.
    fn throttle_time_ms(&self) -> i32 {
        0
    }

    /// Sets the `throttle_time_ms` of a response that has one.
    fn set_throttle_time_ms(&mut self, _: i32) {}

    /// Reads one that may be null. Structs say so with a byte in front; types with a length override this.
    fn read_nullable(r: &mut Reader, v: Version) -> Result<Option<Self>, DecodeError> {
        match i8::read(r, v)? {
            ..0 => Ok(None),
            _ => Self::read(r, v).map(Some),
        }
    }

    fn write_nullable(this: Option<&Self>, w: &mut Writer, v: Version) {
        match this {
            None => (-1i8).write(w, v),
            Some(value) => {
                1i8.write(w, v);
                value.write(w, v);
            }
        }
    }
}

/// Reads a field that some versions allow to be null.
pub fn read_option<T: Wire>(r: &mut Reader, v: Version, nullable: bool) -> Result<Option<T>, DecodeError> {
    if nullable { T::read_nullable(r, v) } else { T::read(r, v).map(Some) }
}

/// Writes a field that some versions allow to be null; in the others null becomes the empty value.
pub fn write_option<T: Wire + Default>(field: &Option<T>, w: &mut Writer, v: Version, nullable: bool) {
    match field {
        _ if nullable => T::write_nullable(field.as_ref(), w, v),
        Some(value) => value.write(w, v),
        None => T::default().write(w, v),
    }
}

macro_rules! numbers {
    ($($ty:ty, $get:ident, $put:ident;)*) => {$(
        impl Wire for $ty {
            fn read(r: &mut Reader, _: Version) -> Result<Self, DecodeError> {
                r.need(size_of::<$ty>())?;
                Ok(r.bytes.$get())
            }
            fn write(&self, w: &mut Writer, _: Version) {
                w.tail.$put(*self);
            }
        }
    )*};
}
numbers! {
    i8, get_i8, put_i8;
    i16, get_i16, put_i16;
    u16, get_u16, put_u16;
    i32, get_i32, put_i32;
    u32, get_u32, put_u32;
    i64, get_i64, put_i64;
    f64, get_f64, put_f64;
}

impl Wire for bool {
    fn read(r: &mut Reader, v: Version) -> Result<Self, DecodeError> {
        Ok(i8::read(r, v)? != 0)
    }
    fn write(&self, w: &mut Writer, v: Version) {
        i8::from(*self).write(w, v);
    }
}

impl Wire for Uuid {
    fn read(r: &mut Reader, _: Version) -> Result<Self, DecodeError> {
        let mut bytes = [0; 16];
        r.need(16)?;
        r.bytes.copy_to_slice(&mut bytes);
        Ok(Uuid(bytes))
    }
    fn write(&self, w: &mut Writer, _: Version) {
        w.put_slice(&self.0);
    }
}

/// For the types that say null with their length.
macro_rules! with_length {
    () => {
        fn read(r: &mut Reader, v: Version) -> Result<Self, DecodeError> {
            Self::read_nullable(r, v)?.ok_or(DecodeError::UnexpectedNull)
        }
        fn write(&self, w: &mut Writer, v: Version) {
            Self::write_nullable(Some(self), w, v);
        }
    };
}

impl Wire for String {
    with_length!();

    fn read_nullable(r: &mut Reader, v: Version) -> Result<Option<Self>, DecodeError> {
        let Some(length) = r.length(v, true)? else { return Ok(None) };
        r.need(length)?;
        let text = std::str::from_utf8(&r.bytes[..length]).map_err(|_| DecodeError::BadUtf8)?.to_owned();
        r.bytes.advance(length);
        Ok(Some(text))
    }

    fn write_nullable(this: Option<&Self>, w: &mut Writer, v: Version) {
        w.length(this.map(String::len), v, true);
        w.put_slice(this.map_or(&[], |s| s.as_bytes()));
    }
}

impl Wire for Bytes {
    with_length!();

    fn read_nullable(r: &mut Reader, v: Version) -> Result<Option<Self>, DecodeError> {
        let Some(length) = r.length(v, false)? else { return Ok(None) };
        r.take(length).map(Some)
    }

    fn write_nullable(this: Option<&Self>, w: &mut Writer, v: Version) {
        w.length(this.map(Bytes::len), v, false);
        if let Some(bytes) = this {
            w.put_bytes(bytes);
        }
    }
}

impl<T: Wire> Wire for Vec<T> {
    with_length!();

    fn read_nullable(r: &mut Reader, v: Version) -> Result<Option<Self>, DecodeError> {
        let Some(count) = r.length(v, false)? else { return Ok(None) };
        // No element is shorter than a byte, so a larger count is a lie.
        r.need(count)?;
        r.spend(count.saturating_mul(size_of::<T>()))?;
        let mut elements = Vec::with_capacity(count.min(1024));
        for _ in 0..count {
            elements.push(T::read(r, v)?);
        }
        Ok(Some(elements))
    }

    fn write_nullable(this: Option<&Self>, w: &mut Writer, v: Version) {
        w.length(this.map(Vec::len), v, false);
        for element in this.into_iter().flatten() {
            element.write(w, v);
        }
    }
}

/// Record batches: a slice of the frame on the way in, a slice or a range of a file on the way out.
#[derive(Clone, Debug)]
pub enum Records {
    Bytes(Bytes),
    File(FileRange),
}

impl Records {
    pub fn len(&self) -> usize {
        match self {
            Records::Bytes(bytes) => bytes.len(),
            Records::File(range) => range.len,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Default for Records {
    fn default() -> Self {
        Records::Bytes(Bytes::new())
    }
}

/// By content, for what is in memory; ranges of files are never equal.
impl PartialEq for Records {
    fn eq(&self, other: &Self) -> bool {
        matches!((self, other), (Records::Bytes(a), Records::Bytes(b)) if a == b)
    }
}

impl Wire for Records {
    with_length!();

    fn read_nullable(r: &mut Reader, v: Version) -> Result<Option<Self>, DecodeError> {
        Ok(Bytes::read_nullable(r, v)?.map(Records::Bytes))
    }

    fn write_nullable(this: Option<&Self>, w: &mut Writer, v: Version) {
        match this {
            None => Bytes::write_nullable(None, w, v),
            Some(Records::Bytes(bytes)) => bytes.write(w, v),
            Some(Records::File(range)) => {
                w.length(Some(range.len), v, false);
                w.put_file(range);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Version = Version { number: 0, flexible: false };
    const FLEXIBLE: Version = Version { number: 0, flexible: true };

    #[test]
    fn a_count_that_cannot_fit_is_refused_before_memory_is_reserved() {
        for (v, bytes) in [(PLAIN, &[0x7f, 0xff, 0xff, 0xff, 0][..]), (FLEXIBLE, &[0xff, 0xff, 0xff, 0xff, 0x0f, 0])] {
            let error = Vec::<String>::read(&mut Reader::new(Bytes::copy_from_slice(bytes)), v).unwrap_err();
            assert!(matches!(error, DecodeError::Truncated { .. }), "{error}");
        }
    }

    #[test]
    fn many_small_elements_cannot_take_more_memory_than_the_limit() {
        let count = DECODED_LIMIT / size_of::<Vec<String>>() + 1;
        let mut bytes = vec![];
        bytes.extend((count as i32).to_be_bytes());
        bytes.resize(bytes.len() + count * 4, 0);
        let error = Vec::<Vec<String>>::read(&mut Reader::new(bytes.into()), PLAIN).unwrap_err();
        assert_eq!(error, DecodeError::TooLarge);
    }

    #[test]
    fn negative_lengths_other_than_null_are_refused() {
        let error = String::read(&mut Reader::new(Bytes::from_static(&[0xff, 0xfe])), PLAIN).unwrap_err();
        assert_eq!(error, DecodeError::BadLength(-2));
        let error = String::read(&mut Reader::new(Bytes::from_static(&[0xff, 0xff])), PLAIN).unwrap_err();
        assert_eq!(error, DecodeError::UnexpectedNull);
    }

    #[test]
    fn unknown_tagged_fields_are_skipped_and_known_ones_must_fill_their_size() {
        let mut seen = vec![];
        let mut r = Reader::new(Bytes::from_static(&[2, 9, 2, 1, 2, 3, 1, 7, 0xaa]));
        r.tagged_fields(FLEXIBLE, |tag, inner| {
            if tag == 3 {
                seen.push(i8::read(inner, FLEXIBLE)?);
            }
            Ok(tag == 3)
        })
        .unwrap();
        assert_eq!((seen, r.remaining()), (vec![7], 1));
        let mut r = Reader::new(Bytes::from_static(&[1, 3, 2, 7, 7]));
        let error = r.tagged_fields(FLEXIBLE, |_, inner| i8::read(inner, FLEXIBLE).map(|_| true)).unwrap_err();
        assert_eq!(error, DecodeError::BadTaggedField(3));
    }

    #[test]
    fn large_bytes_are_not_copied() {
        let large = Bytes::from(vec![7; COPY_LIMIT]);
        let mut w = Writer::new();
        5i32.write(&mut w, PLAIN);
        large.write(&mut w, PLAIN);
        6i8.write(&mut w, PLAIN);
        let chunks = w.into_chunks();
        let Chunk::Bytes(middle) = &chunks[1] else { panic!("{chunks:?}") };
        assert_eq!((chunks.len(), middle.as_ptr()), (3, large.as_ptr()));
    }
}
