//! Why a directory was not repaired, or not all of it.

use std::path::PathBuf;

use crate::storage::catalog::{CatalogError, OpenCatalogError};
use crate::storage::log::{CloseError, FileError, OpenError};
use crate::storage::store::DirError;

/// A repair ended before its end. What was removed until then is in the quarantine folder, and another run goes on from what
/// is there.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    #[error("{}: {}", .0, .0.source)]
    Dir(#[from] DirError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    OpenCatalog(#[from] OpenCatalogError),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error("the repaired log {} cannot be opened: {source}", dir.display())]
    Open { dir: PathBuf, source: OpenError },
    #[error("the repaired log {} cannot be flushed: {source}", dir.display())]
    Close { dir: PathBuf, source: CloseError },
    /// The engine saw other than the look before.
    #[error("the repaired log {} ends at offset {found}, and {expected} was expected", dir.display())]
    Unexpected { dir: PathBuf, found: i64, expected: i64 },
    /// Of a copy.
    #[error("{} is not empty; a copy goes into a new or an empty directory", path.display())]
    NotEmpty { path: PathBuf },
    /// Of a copy.
    #[error("{} is in the directory that is to be copied", path.display())]
    Inside { path: PathBuf },
}
