//! Why a producer's batch is refused.

use thiserror::Error;

use crate::record::header::BatchError;
use crate::record::reader::RecordError;

/// Why a batch is refused. Its text is for the producer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum InvalidBatch {
    #[error("the request holds no whole record batch for this partition")]
    NoBatch,
    #[error("a record batch of the format of version {magic}; only version 2 is taken")]
    OldFormat { magic: i8 },
    #[error("{left_over} bytes follow the record batch; a request may hold just one for each partition")]
    MoreThanOneBatch { left_over: usize },
    #[error("zstd needs a produce request of version 7 or later")]
    ZstdTooEarly,
    #[error("the codec in the attributes of the batch is {id}, which is none of Kafka's")]
    UnknownCodec { id: u8 },
    #[error("the record batch is corrupt: {0}")]
    Corrupt(BatchError),
    #[error("the base offset of the batch is {base_offset}; a producer's is 0")]
    BaseOffset { base_offset: i64 },
    #[error("the batch has {size} bytes or more, and max.message.bytes is {limit}")]
    TooLarge { size: usize, limit: usize },
    #[error("the number of records is {count} and the last offset delta {last_offset_delta}, which do not go together")]
    Counts { count: i32, last_offset_delta: i32 },
    #[error("clients may not write control records")]
    Control,
    #[error("the sequence number is {base_sequence} in a batch with the producer id {producer_id}")]
    Sequence { base_sequence: i32, producer_id: i64 },
    #[error("the records of the batch cannot be read: {0}")]
    Unreadable(#[from] RecordError),
    #[error("{} of the batch's records are refused; the first: {}", .faults.len(), first(.faults))]
    Records { faults: Vec<RecordFault> },
    #[error("{} of the batch's records are refused, some for their timestamps; the first: {}", .faults.len(), first(.faults))]
    Timestamps { faults: Vec<RecordFault> },
    #[error("writing the batch in the topic's codec failed: {reason}")]
    Recompress { reason: String },
}

/// A record that is refused, as a produce response names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordFault {
    /// Its place in the batch, from 0.
    pub batch_index: i32,
    pub message: String,
}

/// The error that Apache Kafka 4.3 answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidKind {
    /// CORRUPT_MESSAGE: frame, header or checksum.
    CorruptMessage,
    /// INVALID_RECORD.
    InvalidRecord,
    /// INVALID_TIMESTAMP.
    InvalidTimestamp,
    /// MESSAGE_TOO_LARGE.
    MessageTooLarge,
    /// UNSUPPORTED_COMPRESSION_TYPE.
    UnsupportedCompressionType,
    /// UNKNOWN_SERVER_ERROR: Kafka has no error for a batch with the right checksum over bytes that its codec cannot read,
    /// nor for a codec that there is not. A producer does not send such a batch again, as it would after CORRUPT_MESSAGE.
    Unreadable,
}

impl InvalidBatch {
    pub fn kind(&self) -> InvalidKind {
        match self {
            InvalidBatch::Corrupt(_) => InvalidKind::CorruptMessage,
            InvalidBatch::NoBatch
            | InvalidBatch::OldFormat { .. }
            | InvalidBatch::MoreThanOneBatch { .. }
            | InvalidBatch::BaseOffset { .. }
            | InvalidBatch::Counts { .. }
            | InvalidBatch::Control
            | InvalidBatch::Sequence { .. }
            | InvalidBatch::Records { .. } => InvalidKind::InvalidRecord,
            InvalidBatch::Timestamps { .. } => InvalidKind::InvalidTimestamp,
            InvalidBatch::TooLarge { .. } => InvalidKind::MessageTooLarge,
            InvalidBatch::ZstdTooEarly => InvalidKind::UnsupportedCompressionType,
            InvalidBatch::Unreadable(RecordError::Codec(_))
            | InvalidBatch::UnknownCodec { .. }
            | InvalidBatch::Recompress { .. } => InvalidKind::Unreadable,
            InvalidBatch::Unreadable(_) => InvalidKind::InvalidRecord,
        }
    }

    /// The records that are to blame, as a produce response lists them; of very many the first thousand.
    pub fn record_faults(&self) -> &[RecordFault] {
        match self {
            InvalidBatch::Records { faults } | InvalidBatch::Timestamps { faults } => faults,
            _ => &[],
        }
    }
}

fn first(faults: &[RecordFault]) -> &str {
    faults.first().map_or("", |fault| &fault.message)
}
