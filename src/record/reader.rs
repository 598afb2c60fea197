//! Reads the records of a batch through its codec, one at a time.

use thiserror::Error;

use super::codec::{CodecError, Inflate};
use super::header::{BatchError, BatchHeader};
use super::record::{self, Base, Layout, Parsed, Record, RecordFlaw, RecordInfo, Scanner};

/// Why the records of a batch cannot be read, or cannot be read on.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RecordError {
    #[error(transparent)]
    Batch(#[from] BatchError),
    #[error(transparent)]
    Codec(#[from] CodecError),
    #[error("record {index} of the batch is malformed: {flaw}")]
    Malformed { index: i32, flaw: RecordFlaw },
    #[error("the batch says it has {declared} records, but its bytes end after {found}")]
    Missing { declared: i32, found: i32 },
    #[error("the bytes of the batch end inside record {index}")]
    CutShort { index: i32 },
    #[error("the batch says it has {declared} records, but more bytes follow them")]
    Extra { declared: i32 },
    #[error("record {index} of the batch has {size} bytes, more than the {limit} that are taken")]
    TooLarge { index: i32, size: usize, limit: usize },
}

/// The records of a batch, one at a time. `S` is everything after the batch's header, a slice or `Bytes`.
///
/// Holds what the codec needs and, only where a record that is asked for by [`RecordReader::next_record`] does not lie in
/// one piece, that record. After an error there is no next record.
#[derive(Debug)]
pub struct RecordReader<S: AsRef<[u8]>> {
    inflate: Inflate<S>,
    base: Base,
    declared: i32,
    /// Of the next record.
    index: i32,
    /// The bytes of the piece that the record which was lent last takes.
    lent: usize,
    scratch: Vec<u8>,
    limit: usize,
    failed: bool,
}

/// Where the next record lies.
struct Found {
    info: RecordInfo,
    layout: Layout,
    /// In the scratch; else at the start of the codec's piece.
    gathered: bool,
}

impl<S: AsRef<[u8]>> RecordReader<S> {
    /// Fails only where the batch's codec is not known or cannot be started.
    pub fn new(header: &BatchHeader, records: S) -> Result<RecordReader<S>, RecordError> {
        Ok(RecordReader {
            inflate: Inflate::new(header.compression()?, records)?,
            base: Base::of(header),
            declared: header.records_count,
            index: 0,
            lent: 0,
            scratch: Vec::new(),
            limit: usize::MAX,
            failed: false,
        })
    }

    /// Refuses to lend a record of more than `bytes`. Without it a record may take as much memory as it has bytes, which a
    /// few compressed bytes can make many.
    pub fn with_record_limit(mut self, bytes: usize) -> RecordReader<S> {
        self.limit = bytes;
        self
    }

    /// The next record, lent until the next call. `None` after the last, and only if nothing follows it.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, RecordError> {
        if self.failed {
            return Ok(None);
        }
        let found = self.find_next();
        self.failed = found.is_err();
        let Some(Found { info, layout, gathered }) = found? else { return Ok(None) };
        let raw = if gathered { &self.scratch[..] } else { &self.inflate.piece()[..self.lent] };
        Ok(Some(Record { info, base: self.base, raw, layout }))
    }

    /// Passes over the next record without holding any of it, and says what it is. `None` after the last, and only if
    /// nothing follows it.
    pub fn skip_record(&mut self) -> Result<Option<RecordInfo>, RecordError> {
        if self.failed {
            return Ok(None);
        }
        let skipped = self.skip();
        self.failed = skipped.is_err();
        skipped
    }

    fn find_next(&mut self) -> Result<Option<Found>, RecordError> {
        if self.at_end()? {
            return Ok(None);
        }
        let index = self.index;
        let malformed = |flaw| RecordError::Malformed { index, flaw };
        self.index += 1;
        if let Parsed::Whole(info, layout) = record::parse(self.inflate.piece()).map_err(malformed)? {
            if info.size > self.limit {
                return Err(RecordError::TooLarge { index, size: info.size, limit: self.limit });
            }
            self.lent = info.size;
            return Ok(Some(Found { info, layout, gathered: false }));
        }
        self.gather(index)?;
        match record::parse(&self.scratch).map_err(malformed)? {
            Parsed::Whole(info, layout) => Ok(Some(Found { info, layout, gathered: true })),
            Parsed::Partial => Err(RecordError::CutShort { index }),
        }
    }

    /// Copies the next record together from its pieces. What is reserved never runs ahead of what has come.
    fn gather(&mut self, index: i32) -> Result<(), RecordError> {
        self.scratch.clear();
        self.scratch.shrink_to(64 * 1024);
        let mut size = None;
        while size.is_none_or(|size| self.scratch.len() < size) {
            let piece = self.inflate.fill()?;
            if piece.is_empty() {
                return Err(RecordError::CutShort { index });
            }
            let n = match size {
                Some(size) => piece.len().min(size - self.scratch.len()),
                None => 1,
            };
            self.scratch.extend_from_slice(&piece[..n]);
            self.inflate.consume(n);
            if size.is_none() {
                size = record::size(&self.scratch).map_err(|flaw| RecordError::Malformed { index, flaw })?;
                if let Some(size) = size.filter(|&size| size > self.limit) {
                    return Err(RecordError::TooLarge { index, size, limit: self.limit });
                }
            }
        }
        Ok(())
    }

    fn skip(&mut self) -> Result<Option<RecordInfo>, RecordError> {
        if self.at_end()? {
            return Ok(None);
        }
        let index = self.index;
        let malformed = |flaw| RecordError::Malformed { index, flaw };
        self.index += 1;
        if let Parsed::Whole(info, _) = record::parse(self.inflate.piece()).map_err(malformed)? {
            self.inflate.consume(info.size);
            return Ok(Some(info));
        }
        let mut scanner = Scanner::default();
        loop {
            let piece = self.inflate.fill()?;
            if piece.is_empty() {
                return Err(RecordError::CutShort { index });
            }
            let (taken, found) = scanner.feed(piece).map_err(malformed)?;
            self.inflate.consume(taken);
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    /// Whether all records were read; refuses bytes after them and an end before them. Leaves a piece to read from.
    fn at_end(&mut self) -> Result<bool, RecordError> {
        self.inflate.consume(std::mem::take(&mut self.lent));
        let nothing_left = self.inflate.fill()?.is_empty();
        match (self.index >= self.declared, nothing_left) {
            (true, true) => Ok(true),
            (true, false) => Err(RecordError::Extra { declared: self.declared }),
            (false, true) => Err(RecordError::Missing { declared: self.declared, found: self.index }),
            (false, false) => Ok(false),
        }
    }
}
