//! What can go wrong with a data directory, by operation.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::storage::catalog::{CatalogError, OpenCatalogError};
use crate::storage::log::{CloseError, OpenError, TruncateError};

/// An operation on a file or a directory failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {}", path.display())]
pub struct DirError {
    pub doing: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

impl DirError {
    pub(in crate::storage) fn of(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DirError {
        let path = path.to_owned();
        move |source| DirError { doing, path, source }
    }
}

/// Why a data directory cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenStoreError {
    /// Another process has it open.
    #[error("{} is in use by another process", path.display())]
    InUse { path: PathBuf },

    /// It holds something else, and doze does not mix its files with that.
    #[error("{} is not a data directory of doze: it holds {example:?}; an empty directory would do", path.display())]
    NotADataDirectory { path: PathBuf, example: String },

    #[error(
        "{} is a log directory of Apache Kafka (it has a meta.properties); doze does not serve from it, but its offline \
         commands (inspect, verify, dump-segment, recover, compact) work on it",
        path.display()
    )]
    KafkaLogDirectory { path: PathBuf },

    /// Starting with an empty catalog would hide what is there.
    #[error(
        "{} holds {partitions} partitions ({example:?} for one), and the catalog {} that names them is not there; put it \
         back, say where it is with --meta-db, or have 'doze recover' make it anew",
        path.display(), catalog.display()
    )]
    CatalogMissing { path: PathBuf, catalog: PathBuf, partitions: usize, example: String },

    /// Among them: a newer format, and damage.
    #[error(transparent)]
    Catalog(#[from] OpenCatalogError),

    #[error(transparent)]
    Dir(#[from] DirError),
}

/// Why a topic was not made, or was given no more partitions. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
pub enum CreateTopicError {
    #[error("a topic name has 1 to 249 characters of a-z, A-Z, 0-9, '.', '_' and '-', and is neither '.' nor '..'")]
    InvalidName,
    #[error("a topic has at least one partition, and can only be given more than it has")]
    InvalidPartitions,
    #[error("the topic exists")]
    Exists,
    /// Of [`super::Store::add_partitions`].
    #[error("the topic does not exist")]
    UnknownTopic,
    #[error("the file system does not tell upper from lower case, and the topic '{existing}' exists")]
    CaseCollision { existing: String },
    #[error("{} holds data of a topic that the catalog does not know; move it away, or recover it", path.display())]
    DirectoryInUse { path: PathBuf },
    #[error(transparent)]
    Dir(#[from] Arc<DirError>),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error("the data directory is closed")]
    Closed,
}

impl From<DirError> for CreateTopicError {
    fn from(error: DirError) -> Self {
        Arc::new(error).into()
    }
}

/// Why a topic was not deleted or its configs not changed. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeTopicError {
    #[error("the topic does not exist")]
    UnknownTopic,
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error("the data directory is closed")]
    Closed,
}

/// Why a partition cannot be used. Cheap to clone.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PartitionError {
    #[error("there is no such topic or partition")]
    Unknown,
    #[error("the partition {}: {source}", dir.display())]
    Open { dir: PathBuf, source: Arc<OpenError> },
    #[error("{} is of the topic with id {found}, and the catalog says {expected}", dir.display())]
    OtherTopic { dir: PathBuf, found: String, expected: String },
    #[error(transparent)]
    Dir(#[from] Arc<DirError>),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error("the data directory is closed")]
    Closed,
}

/// Why records were not deleted.
#[derive(Debug, thiserror::Error)]
pub enum DeleteRecordsError {
    #[error("offset {offset} is not in the log, which has {start} up to {end}")]
    OutOfRange { offset: i64, start: i64, end: i64 },
    #[error(transparent)]
    Partition(#[from] PartitionError),
    /// The new start is not durable, and nothing has changed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The new start holds. Files below it may still be there until the partition is opened anew.
    #[error(transparent)]
    Log(#[from] TruncateError),
}

/// What was not brought to rest. The next start checks the logs as after a crash.
#[derive(Debug, thiserror::Error)]
#[error("the stop was not a clean one: {}", summary(.logs, .catalog, .mark))]
pub struct CloseStoreError {
    /// Partitions whose log could not be flushed.
    pub logs: Vec<(PathBuf, CloseError)>,
    pub catalog: Option<CatalogError>,
    /// Everything was flushed, and that could not be noted.
    pub mark: Option<DirError>,
}

impl CloseStoreError {
    /// Whether everything is on the medium all the same, and only the mark of a clean stop is missing: on a full disk there may be
    /// no room for it.
    pub fn is_flushed(&self) -> bool {
        self.logs.is_empty() && self.catalog.is_none()
    }
}

fn summary(logs: &[(PathBuf, CloseError)], catalog: &Option<CatalogError>, mark: &Option<DirError>) -> String {
    let logs = logs.iter().map(|(dir, error)| format!("{}: {error}", dir.display()));
    let catalog = catalog.iter().map(|error| error.to_string());
    let mark = mark.iter().map(|error| format!("{error}: {}", error.source));
    logs.chain(catalog).chain(mark).collect::<Vec<_>>().join("; ")
}
