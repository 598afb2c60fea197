//! The records of one batch, of whatever version.

use crate::record::control::{ControlError, ControlRecord};
use crate::record::legacy::{self, LegacyError, Messages};
use crate::record::{BatchHeader, Headers, NO_SEQUENCE, Record, RecordError, RecordHeader, RecordReader};

/// Why the records of a batch cannot be read, or cannot be read on.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum RecordsError {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Legacy(#[from] LegacyError),
    #[error("the batch has {size} bytes and a wrong checksum, so it is not read into memory")]
    NotHeld { size: u64 },
    #[error("the file has become shorter")]
    Gone,
}

/// A record. Lent until the next one is asked for.
#[derive(Clone, Debug)]
pub struct RecordEntry<'a> {
    pub offset: i64,
    /// Milliseconds since the Unix epoch, -1 for none: the producer's or the broker's, as the batch's timestamp type says.
    pub timestamp: i64,
    /// Of a batch with a producer id; else -1.
    pub sequence: i32,
    pub key: Option<&'a [u8]>,
    /// `None`: a tombstone, on a compacted topic.
    pub value: Option<&'a [u8]>,
    pub headers: DumpHeaders<'a>,
    /// Of a control batch.
    pub control: Option<Control>,
}

/// The headers of a record. See [`Headers`].
#[derive(Clone, Debug)]
pub struct DumpHeaders<'a>(Option<Headers<'a>>);

impl<'a> Iterator for DumpHeaders<'a> {
    type Item = RecordHeader<'a>;

    fn next(&mut self) -> Option<RecordHeader<'a>> {
        self.0.as_mut()?.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.as_ref().map_or((0, Some(0)), Headers::size_hint)
    }
}

/// What a control record says, or why that cannot be told.
pub type Control = Result<ControlRecord, ControlError>;

/// The records of one batch, one at a time.
#[derive(Debug)]
pub struct Records<'a>(State<'a>);

#[derive(Debug)]
enum State<'a> {
    None,
    Batch {
        reader: Box<RecordReader<&'a [u8]>>,
        header: BatchHeader,
    },
    Messages {
        messages: Box<Messages<'a>>,
        last: Option<legacy::Message>,
    },
    Failed(RecordsError),
    /// There was an error.
    Ended,
}

impl<'a> Records<'a> {
    pub(super) fn none() -> Records<'a> {
        Records(State::None)
    }

    pub(super) fn failed(error: impl Into<RecordsError>) -> Records<'a> {
        Records(State::Failed(error.into()))
    }

    /// Of a version 2 batch; `records` is everything behind its header. A record of more than `limit` bytes is refused.
    pub(super) fn of_batch(header: &BatchHeader, records: &'a [u8], limit: usize) -> Records<'a> {
        match RecordReader::new(header, records) {
            Ok(reader) => Records(State::Batch { reader: Box::new(reader.with_record_limit(limit)), header: *header }),
            Err(error) => Records::failed(error),
        }
    }

    /// Of a message, or a wrapper around many.
    pub(super) fn of_message(bytes: &'a [u8], limit: usize) -> Records<'a> {
        match legacy::Entry::parse(bytes).and_then(|entry| entry.messages(limit)) {
            Ok(messages) => Records(State::Messages { messages: Box::new(messages), last: None }),
            Err(error) => Records::failed(error),
        }
    }

    /// The next record. `None` after the last, and after an error.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<RecordEntry<'_>>, RecordsError> {
        if let State::Failed(error) = &self.0 {
            let error = error.clone();
            self.0 = State::Ended;
            return Err(error);
        }
        match &mut self.0 {
            State::None | State::Failed(_) | State::Ended => Ok(None),
            State::Batch { reader, header } => Ok(reader.next_record()?.map(|record| of_record(&record, header))),
            State::Messages { messages, last } => {
                *last = messages.next().transpose()?;
                Ok(last.as_ref().map(|message| RecordEntry {
                    offset: message.offset,
                    timestamp: message.timestamp,
                    sequence: NO_SEQUENCE,
                    key: message.key.as_deref(),
                    value: message.value.as_deref(),
                    headers: DumpHeaders(None),
                    control: None,
                }))
            }
        }
    }
}

fn of_record<'a>(record: &Record<'a>, header: &BatchHeader) -> RecordEntry<'a> {
    let sequence = match header.base_sequence {
        NO_SEQUENCE => NO_SEQUENCE,
        // They go around from i32::MAX to 0.
        base => (i64::from(base) + i64::from(record.info().offset_delta)).rem_euclid(1 << 31) as i32,
    };
    RecordEntry {
        offset: record.offset(),
        timestamp: record.timestamp(),
        sequence,
        key: record.key(),
        value: record.value(),
        headers: DumpHeaders(Some(record.headers())),
        control: header.is_control().then(|| ControlRecord::parse(record)),
    }
}
