//! What can go wrong with the catalog.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::codec::Malformed;

/// Why a read or a commit failed. Cheap to clone, as everything in one transaction fails alike.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CatalogError {
    /// Nothing of the commit is stored. It may be tried again, and works once the cause is gone: space is freed.
    #[error("the catalog {} could not be read or written; nothing of this change is stored", path.display())]
    Io { path: PathBuf, source: Arc<io::Error> },

    /// An fsync failed, now or earlier. The catalog takes no more changes until it is opened anew; reads go on.
    #[error(
        "the catalog {} is poisoned by an earlier I/O error: an fsync failed, so what the disk holds of the last changes is \
         not known; doze has to be restarted",
        path.display()
    )]
    Poisoned { path: PathBuf, source: Arc<io::Error> },

    /// The bytes are not what was written.
    #[error("the catalog {} is damaged: {reason}", path.display())]
    Damaged { path: PathBuf, reason: String },

    /// The catalog was closed before.
    #[error("the catalog {} is closed", path.display())]
    Closed { path: PathBuf },
}

/// Why a catalog cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenCatalogError {
    #[error("cannot {doing} {}", path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },

    /// Something else has this name.
    #[error("{} is not a catalog of doze", path.display())]
    NotACatalog { path: PathBuf },

    #[error("the catalog {} has format {found}, and this doze knows up to {known}; a newer doze wrote it", path.display())]
    NewerFormat { path: PathBuf, found: u32, known: u32 },

    #[error("the catalog {} is damaged: {reason}", path.display())]
    Damaged { path: PathBuf, reason: String },
}

/// What goes wrong inside a transaction, before it is known what that means for the catalog.
#[derive(Debug)]
pub(super) enum Failure {
    Io(io::Error),
    Damage(String),
}

impl From<redb::Error> for Failure {
    fn from(error: redb::Error) -> Self {
        match error {
            redb::Error::Io(e) => Failure::Io(e),
            redb::Error::PreviousIo => Failure::Io(io::Error::other("an earlier read or write failed")),
            other => Failure::Damage(other.to_string()),
        }
    }
}

macro_rules! from_redb {
    ($($error:ident)*) => {
        $(impl From<redb::$error> for Failure {
            fn from(error: redb::$error) -> Self {
                redb::Error::from(error).into()
            }
        })*
    };
}

from_redb!(StorageError TableError TransactionError CommitError DatabaseError CompactionError);

impl From<Malformed> for Failure {
    fn from(malformed: Malformed) -> Self {
        Failure::Damage(malformed.to_string())
    }
}

impl Failure {
    pub(super) fn into_catalog_error(self, path: PathBuf) -> CatalogError {
        match self {
            Failure::Io(e) => CatalogError::Io { path, source: Arc::new(e) },
            Failure::Damage(reason) => CatalogError::Damaged { path, reason },
        }
    }

    pub(super) fn into_open_error(self, path: PathBuf) -> OpenCatalogError {
        match self {
            Failure::Io(source) => OpenCatalogError::Io { doing: "read", path, source },
            Failure::Damage(reason) => OpenCatalogError::Damaged { path, reason },
        }
    }
}
