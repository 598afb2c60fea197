//! What can go wrong with a log, by operation.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

/// An operation on a file or a directory failed.
#[derive(Debug, Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct FileError {
    /// What was being done: "read", "write 120 bytes at 4096 of", ...
    pub action: String,
    pub path: PathBuf,
    pub source: io::Error,
}

impl FileError {
    /// For `map_err`: the error of doing `action` to `path`.
    pub(in crate::storage) fn of<'a>(action: &'a str, path: &'a Path) -> impl FnOnce(io::Error) -> FileError + 'a {
        move |source| FileError { action: action.to_string(), path: path.to_path_buf(), source }
    }
}

/// Why a log takes no more writes until it is opened anew. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the log is offline until it is opened anew: {reason}")]
pub struct Offline {
    /// What failed, in words.
    pub reason: Arc<str>,
}

/// A log could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{} is not the directory of a partition: its name is not <topic>-<number>", path.display())]
    Name { path: PathBuf },
}

/// A batch was not appended. Nothing of it is in the log.
#[derive(Debug, Error)]
pub enum AppendError {
    #[error("the batch of {size} bytes is larger than segment.bytes={limit}")]
    TooLarge { size: u64, limit: u32 },
    #[error("producer {producer_id} sent sequence {first} with epoch {epoch}, the sequence after {last} was due")]
    OutOfOrderSequence { producer_id: i64, epoch: i16, first: i32, last: i32 },
    #[error("producer {producer_id} sent epoch {epoch}, epoch {current} is known of it")]
    InvalidProducerEpoch { producer_id: i64, epoch: i16, current: i16 },
    #[error("producer {producer_id} sent a batch in a transaction that it does not have open")]
    NotInTransaction { producer_id: i64 },
    #[error("producer {producer_id} has a transaction open and sent a batch that is in none")]
    InvalidTransactionState { producer_id: i64 },
    #[error(
        "a transaction coordinator of epoch {epoch} ended a transaction of producer {producer_id}, epoch {current} is known"
    )]
    CoordinatorFenced { producer_id: i64, epoch: i32, current: i32 },
    /// The disk refused. Worth another try.
    #[error("the batch was not stored: {0}")]
    File(#[from] FileError),
    /// Only opening the log anew helps.
    #[error(transparent)]
    Offline(#[from] Offline),
    #[error("the log is closed")]
    Closed,
}

/// What was appended may not be on the medium. Cheap to clone.
#[derive(Clone, Debug, Error)]
pub enum SyncError {
    /// This flush failed.
    #[error("the flush failed; {0}")]
    Failed(Offline),
    /// An earlier I/O error poisoned the log: no flush was tried.
    #[error("poisoned by an earlier I/O error: {0}")]
    Poisoned(Offline),
    #[error("the log is closed")]
    Closed,
}

/// A read could not be answered.
#[derive(Debug, Error)]
pub enum ReadError {
    #[error("offset {offset} is not in the log, which has {start} up to {end}")]
    OutOfRange { offset: i64, start: i64, end: i64 },
    #[error(transparent)]
    File(#[from] FileError),
    #[error("the log is closed")]
    Closed,
}

/// The log start did not move, or what is below it could not all be removed (the next open tries again).
#[derive(Debug, Error)]
pub enum TruncateError {
    #[error("offset {offset} is not in the log, which has {start} up to {end}")]
    OutOfRange { offset: i64, start: i64, end: i64 },
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Offline(#[from] Offline),
    #[error("the log is closed")]
    Closed,
}

/// A log could not be closed so that the next open may trust its files, or could not be deleted.
#[derive(Debug, Error)]
pub enum CloseError {
    #[error(transparent)]
    File(#[from] FileError),
    /// Everything is on the medium. What would let the next open trust the files could not all be written: it looks at them as
    /// after a crash, and makes it anew.
    #[error("it is all flushed, and that could not be noted: {0}")]
    Unnoted(#[source] FileError),
    #[error(transparent)]
    Offline(#[from] Offline),
    #[error("the log is closed")]
    Closed,
}
