//! A whole batch in memory, and the batches that follow each other in a slice.

use super::header::{BatchError, BatchHeader, HEADER_LEN, LOG_OVERHEAD, MAGIC_AT, MIN_BATCH_LENGTH, check_magic};
use super::reader::{RecordError, RecordReader};

/// The magic and size of whatever entry a slice starts with, of any version of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// 0, 1 or 2.
    pub magic: i8,
    /// The bytes of the whole entry, 26 at least.
    pub size: usize,
}

/// The bytes that [`peek`] needs.
pub(super) const PEEK_LEN: usize = MAGIC_AT + 1;
/// The smallest lengths that a message of version 0, one of version 1 and a batch can have.
const MIN_LENGTHS: [i32; 3] = [14, 22, MIN_BATCH_LENGTH];

/// Looks at the first 17 bytes of an entry. Whether all of it is there is not looked at.
pub fn peek(bytes: &[u8]) -> Result<Frame, BatchError> {
    if bytes.len() < PEEK_LEN {
        return Err(BatchError::ShortHeader { have: bytes.len() });
    }
    let length = i32::from_be_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
    let magic = bytes[MAGIC_AT] as i8;
    let least = usize::try_from(magic).ok().and_then(|at| MIN_LENGTHS.get(at));
    let least = *least.ok_or(BatchError::UnknownMagic { magic })?;
    if length < least {
        return Err(BatchError::BadLength { length });
    }
    Ok(Frame { magic, size: LOG_OVERHEAD + length as usize })
}

/// A version 2 batch, whole, in memory. Cheap to copy, shared between threads.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    header: BatchHeader,
    bytes: &'a [u8],
}

impl<'a> Batch<'a> {
    /// The batch that `bytes` start with. Its header makes sense and all of it is there; the checksum is not looked at.
    pub fn parse(bytes: &'a [u8]) -> Result<Batch<'a>, BatchError> {
        let header = BatchHeader::parse(bytes)?;
        let size = header.size_in_bytes();
        let bytes = bytes.get(..size).ok_or(BatchError::Incomplete { claimed: size as u64, have: bytes.len() })?;
        Ok(Batch { header, bytes })
    }

    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The whole batch.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Everything after the header.
    pub fn records_bytes(&self) -> &'a [u8] {
        &self.bytes[HEADER_LEN..]
    }

    /// Whether the bytes are those that the checksum was made of.
    pub fn verify_crc(&self) -> Result<(), BatchError> {
        let computed = crc32c::crc32c(&self.bytes[super::header::CRC_FROM..]);
        if computed != self.header.crc {
            return Err(BatchError::BadCrc { stored: self.header.crc, computed });
        }
        Ok(())
    }

    /// Reads the records through the batch's codec.
    pub fn records(&self) -> Result<RecordReader<&'a [u8]>, RecordError> {
        RecordReader::new(&self.header, self.records_bytes())
    }
}

/// Where and why [`Batches`] went no further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// How many bytes of the slice are whole, good batches.
    pub position: usize,
    /// `None` at the end of the slice. [`BatchError::ShortHeader`] and [`BatchError::Incomplete`] are a torn tail.
    pub why: Option<BatchError>,
}

/// The batches of a slice, one after the other: each with a header that makes sense and, unless told otherwise, the right
/// checksum. This is the check that recovery makes; the records are not looked at. Ends at the first that is not good,
/// and [`Batches::stop`] says where and why.
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    bytes: &'a [u8],
    position: usize,
    check_crc: bool,
    why: Option<BatchError>,
}

impl<'a> Batches<'a> {
    pub fn new(bytes: &'a [u8]) -> Batches<'a> {
        Batches { bytes, position: 0, check_crc: true, why: None }
    }

    /// For bytes that were checked before.
    pub fn without_crc(bytes: &'a [u8]) -> Batches<'a> {
        Batches { check_crc: false, ..Batches::new(bytes) }
    }

    /// Where the next batch starts, or why there is none.
    pub fn stop(&self) -> Stop {
        Stop { position: self.position, why: self.why.clone() }
    }

    fn read(&self) -> Result<Batch<'a>, BatchError> {
        let rest = &self.bytes[self.position..];
        // A magic or length that cannot be is damage, also where too little follows for a header.
        if rest.len() >= PEEK_LEN {
            let frame = peek(rest)?;
            check_magic(frame.magic)?;
            if frame.size > rest.len() {
                return Err(BatchError::Incomplete { claimed: frame.size as u64, have: rest.len() });
            }
        }
        let batch = Batch::parse(rest)?;
        if self.check_crc {
            batch.verify_crc()?;
        }
        Ok(batch)
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Batch<'a>;

    fn next(&mut self) -> Option<Batch<'a>> {
        if self.why.is_some() || self.position == self.bytes.len() {
            return None;
        }
        match self.read() {
            Ok(batch) => {
                self.position += batch.bytes.len();
                Some(batch)
            }
            Err(why) => {
                self.why = Some(why);
                None
            }
        }
    }
}
