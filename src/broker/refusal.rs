//! What the broker answers when a layer below refuses: the one place where its errors become codes of the protocol.

use crate::protocol::ErrorCode;
use crate::protocol::messages::produce::BatchIndexAndErrorMessage;
use crate::record::{InvalidBatch, InvalidKind, RecordFault};
use crate::storage::log::{AppendError, PartitionLog, ReadError, SyncError};
use crate::storage::store::{DeleteRecordsError, PartitionError};

/// An error for one partition of a produce.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub error: ErrorCode,
    pub message: Option<String>,
    faults: Vec<RecordFault>,
}

impl Refusal {
    /// The single records that are to blame.
    pub fn record_errors(&self) -> Vec<BatchIndexAndErrorMessage> {
        let error = |fault: &RecordFault| BatchIndexAndErrorMessage {
            batch_index: fault.batch_index,
            batch_index_error_message: Some(fault.message.clone()),
        };
        self.faults.iter().map(error).collect()
    }
}

/// A code that says it all.
pub fn plain(error: ErrorCode) -> Refusal {
    Refusal { error, message: None, faults: vec![] }
}

/// A code, and what happened.
pub fn with_message(error: ErrorCode, message: String) -> Refusal {
    Refusal { error, message: Some(message), faults: vec![] }
}

/// A batch that does not check out.
pub fn of_batch(invalid: &InvalidBatch) -> Refusal {
    let error = match invalid.kind() {
        InvalidKind::CorruptMessage => ErrorCode::CorruptMessage,
        InvalidKind::InvalidRecord => ErrorCode::InvalidRecord,
        InvalidKind::InvalidTimestamp => ErrorCode::InvalidTimestamp,
        InvalidKind::MessageTooLarge => ErrorCode::MessageTooLarge,
        InvalidKind::UnsupportedCompressionType => ErrorCode::UnsupportedCompressionType,
        InvalidKind::Unreadable => ErrorCode::UnknownServerError,
    };
    Refusal { error, message: Some(invalid.to_string()), faults: invalid.record_faults().to_vec() }
}

/// Whether a refusal is of what the batch holds and not of its form. With these Kafka tells where the log starts.
pub fn is_of_records(invalid: &InvalidBatch) -> bool {
    !matches!(
        invalid,
        InvalidBatch::NoBatch
            | InvalidBatch::OldFormat { .. }
            | InvalidBatch::MoreThanOneBatch { .. }
            | InvalidBatch::ZstdTooEarly
            | InvalidBatch::Corrupt(_)
            | InvalidBatch::TooLarge { .. }
    )
}

/// A batch that checks out and cannot be appended.
pub fn of_append(log: &PartitionLog, refused: &AppendError) -> Refusal {
    let error = match refused {
        AppendError::TooLarge { .. } => ErrorCode::RecordListTooLarge,
        AppendError::OutOfOrderSequence { .. } => ErrorCode::OutOfOrderSequenceNumber,
        AppendError::InvalidProducerEpoch { .. } => ErrorCode::InvalidProducerEpoch,
        AppendError::NotInTransaction { .. } | AppendError::InvalidTransactionState { .. } => {
            ErrorCode::InvalidTxnState
        }
        AppendError::CoordinatorFenced { .. } => ErrorCode::TransactionCoordinatorFenced,
        AppendError::File(_) | AppendError::Offline(_) => {
            tracing::error!(topic = log.topic(), partition = log.partition(), "a produce was refused: {refused}");
            ErrorCode::KafkaStorageError
        }
        // The topic was deleted, or the broker stops.
        AppendError::Closed => return plain(ErrorCode::UnknownTopicOrPartition),
    };
    with_message(error, refused.to_string())
}

/// A batch that was appended and could not be flushed.
pub fn of_sync(log: &PartitionLog, failed: &SyncError) -> Refusal {
    match failed {
        SyncError::Failed(_) | SyncError::Poisoned(_) => {
            tracing::error!(topic = log.topic(), partition = log.partition(), "a produce is not on the disk: {failed}");
            with_message(ErrorCode::KafkaStorageError, failed.to_string())
        }
        SyncError::Closed => plain(ErrorCode::UnknownTopicOrPartition),
    }
}

/// A read that cannot be answered.
pub fn of_read(log: &PartitionLog, failed: &ReadError) -> ErrorCode {
    match failed {
        ReadError::OutOfRange { .. } => ErrorCode::OffsetOutOfRange,
        ReadError::File(_) => {
            tracing::error!(topic = log.topic(), partition = log.partition(), "a read failed: {failed}");
            ErrorCode::KafkaStorageError
        }
        ReadError::Closed => ErrorCode::UnknownTopicOrPartition,
    }
}

/// A log start that did not move.
pub fn of_delete_records(log: &PartitionLog, failed: &DeleteRecordsError) -> ErrorCode {
    match failed {
        DeleteRecordsError::OutOfRange { .. } => ErrorCode::OffsetOutOfRange,
        DeleteRecordsError::Partition(PartitionError::Unknown) => ErrorCode::UnknownTopicOrPartition,
        _ => {
            tracing::error!(topic = log.topic(), partition = log.partition(), "records were not deleted: {failed}");
            ErrorCode::KafkaStorageError
        }
    }
}
