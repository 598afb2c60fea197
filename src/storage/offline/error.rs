//! Why a directory cannot be looked at.

use std::path::PathBuf;

use crate::storage::store::DirError;

/// Why a directory cannot be looked at. Each says which exit code of the commands it is.
#[derive(Debug, thiserror::Error)]
pub enum OpenDirError {
    /// Exit code 3.
    #[error("{} is in use by another process; stop the broker first", path.display())]
    InUse { path: PathBuf },

    /// Exit code 4. Nothing of doze's or Apache Kafka's is there.
    #[error("{} is neither a data directory of doze nor a log directory of Apache Kafka: {why}", path.display())]
    NotADataDirectory { path: PathBuf, why: String },

    /// Exit code 4.
    #[error("{} is of a newer format: {what}", path.display())]
    NewerFormat { path: PathBuf, what: String },

    /// Exit code 2.
    #[error("{}: {}", .0, .0.source)]
    Dir(#[from] DirError),
}
