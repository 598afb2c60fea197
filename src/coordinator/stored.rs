//! Reading and writing the stored forms of groups and offsets: big-endian numbers, and strings and bytes with their length
//! in front; partitions by topic are a count, and for each topic 16 bytes of its id, a count and four bytes for each partition.
//! Every length is checked against what is left before anything is taken.

use bytes::Bytes;
use thiserror::Error;

use super::topics::Partitions;
use crate::protocol::Uuid;

/// Stored bytes that do not say what they should. Positions count from the start of the stored value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadBytes {
    #[error("format version {found} at byte {position}, where {expected} is the newest that is understood")]
    Version { position: usize, found: u8, expected: u8 },
    #[error("{what} at byte {position} needs {needed} bytes, and {left} are left")]
    Short { what: &'static str, position: usize, needed: usize, left: usize },
    #[error("{what} before byte {position} is {found}")]
    Value { what: &'static str, position: usize, found: i64 },
    #[error("{what} before byte {position} is not UTF-8")]
    NotText { what: &'static str, position: usize },
    #[error("{left} bytes are left over after byte {position}")]
    LeftOver { position: usize, left: usize },
    #[error("{what}")]
    Contradiction { what: String },
}

#[derive(Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, position: 0 }
    }

    fn take(&mut self, what: &'static str, needed: usize) -> Result<&'a [u8], BadBytes> {
        let left = self.bytes.len() - self.position;
        if needed > left {
            return Err(BadBytes::Short { what, position: self.position, needed, left });
        }
        let taken = &self.bytes[self.position..self.position + needed];
        self.position += needed;
        Ok(taken)
    }

    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], BadBytes> {
        Ok(self.take(what, N)?.try_into().expect("as many bytes as were asked for"))
    }

    pub fn u8(&mut self, what: &'static str) -> Result<u8, BadBytes> {
        Ok(self.array::<1>(what)?[0])
    }

    pub fn i32(&mut self, what: &'static str) -> Result<i32, BadBytes> {
        Ok(i32::from_be_bytes(self.array(what)?))
    }

    pub fn i64(&mut self, what: &'static str) -> Result<i64, BadBytes> {
        Ok(i64::from_be_bytes(self.array(what)?))
    }

    /// A length or count in four bytes; at least that many bytes follow it.
    pub fn length(&mut self, what: &'static str) -> Result<usize, BadBytes> {
        let length = u32::from_be_bytes(self.array(what)?) as usize;
        let left = self.bytes.len() - self.position;
        if length > left {
            return Err(BadBytes::Short { what, position: self.position, needed: length, left });
        }
        Ok(length)
    }

    pub fn bytes(&mut self, what: &'static str) -> Result<Bytes, BadBytes> {
        let length = self.length(what)?;
        Ok(Bytes::copy_from_slice(self.take(what, length)?))
    }

    pub fn string(&mut self, what: &'static str) -> Result<String, BadBytes> {
        let length = self.length(what)?;
        let text = self.take(what, length)?;
        match std::str::from_utf8(text) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(BadBytes::NotText { what, position: self.position }),
        }
    }

    pub fn partitions(&mut self) -> Result<Partitions, BadBytes> {
        let mut all = Partitions::new();
        for _ in 0..self.length("the number of topics")? {
            let topic = Uuid(self.array("a topic id")?);
            for _ in 0..self.length("the number of partitions")? {
                all.entry(topic).or_default().insert(self.i32("a partition")?);
            }
        }
        Ok(all)
    }

    /// A flag byte, and the value if it is 1.
    pub fn option<T>(
        &mut self,
        what: &'static str,
        read: impl FnOnce(&mut Self, &'static str) -> Result<T, BadBytes>,
    ) -> Result<Option<T>, BadBytes> {
        match self.u8(what)? {
            0 => Ok(None),
            1 => read(self, what).map(Some),
            found => Err(self.unknown(what, found)),
        }
    }

    /// A count, and that many of what `read` reads.
    pub fn list<T>(
        &mut self,
        what: &'static str,
        mut read: impl FnMut(&mut Self) -> Result<T, BadBytes>,
    ) -> Result<Vec<T>, BadBytes> {
        (0..self.length(what)?).map(|_| read(self)).collect()
    }

    pub fn version(&mut self, expected: u8) -> Result<(), BadBytes> {
        let position = self.position;
        let found = self.u8("the format version")?;
        if found == expected { Ok(()) } else { Err(BadBytes::Version { position, found, expected }) }
    }

    /// Says that what has just been read has a value that nobody knows.
    pub fn unknown(&self, what: &'static str, found: u8) -> BadBytes {
        BadBytes::Value { what, position: self.position, found: i64::from(found) }
    }

    pub fn end(self) -> Result<(), BadBytes> {
        let left = self.bytes.len() - self.position;
        if left == 0 { Ok(()) } else { Err(BadBytes::LeftOver { position: self.position, left }) }
    }
}

#[derive(Debug, Default)]
pub(super) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub fn i32(&mut self, value: i32) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    pub fn i64(&mut self, value: i64) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    pub fn length(&mut self, value: usize) {
        let value = u32::try_from(value).expect("everything here came in one frame, which is shorter than 4 GiB");
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// Bytes whose number goes without saying.
    pub fn raw(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
    }

    pub fn bytes(&mut self, value: &[u8]) {
        self.length(value.len());
        self.bytes.extend_from_slice(value);
    }

    pub fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        match value {
            None => self.u8(0),
            Some(value) => {
                self.u8(1);
                write(self, value);
            }
        }
    }

    /// A count, and each of them.
    pub fn list<I: IntoIterator<IntoIter: ExactSizeIterator>>(
        &mut self,
        values: I,
        mut write: impl FnMut(&mut Self, I::Item),
    ) {
        let values = values.into_iter();
        self.length(values.len());
        values.for_each(|value| write(self, value));
    }

    pub fn string(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }

    pub fn partitions(&mut self, all: &Partitions) {
        self.length(all.len());
        for (topic, partitions) in all {
            self.raw(&topic.0);
            self.length(partitions.len());
            partitions.iter().for_each(|partition| self.i32(*partition));
        }
    }

    pub fn finish(self) -> Bytes {
        self.bytes.into()
    }
}
