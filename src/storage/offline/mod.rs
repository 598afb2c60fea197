//! A data directory that no broker has open, looked at and never written to: doze's own, or a log directory of Apache Kafka.
//!
//! [`DataDir::open`] says whose it is, holds it so that no broker starts in it meanwhile, lists what there is and opens the
//! catalog read-only. What is missing or damaged is a state here, and no error: the commands that look at such directories are
//! there for just those. [`OpenDirError`] is only for what cannot be looked at at all.
//!
//! Of Apache Kafka's own files these are read; all three kinds are text:
//!
//! | file | content |
//! |---|---|
//! | `meta.properties` | `key=value` lines: `version` (1 here), `cluster.id`, `node.id`, `directory.id` |
//! | `*-offset-checkpoint` | `0`, a count, and as many lines of topic, partition and offset with spaces between |
//! | `.kafka_cleanshutdown` | that it is there is what it says |
//!
//! Topics and configs are in the metadata log of a node: see [`KafkaMetadata`].

mod checkpoints;
mod error;
mod folders;
pub(in crate::storage) mod kafka_mark;
mod metadata;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

pub(in crate::storage) use checkpoints::write_checkpoint;
pub use checkpoints::{Checkpoint, KafkaState, OffsetMap};
pub use error::OpenDirError;
pub use folders::{Leftover, PartitionFolder};
pub use metadata::{KafkaMetadata, KafkaTopic, MetadataError, Replicas};

use crate::protocol::Uuid;
use crate::storage::catalog::{Catalog, OpenCatalogError, lock_file};
use crate::storage::log::read_partition_metadata;
use crate::storage::names::{self, PartitionDir};
use crate::storage::store::{DirError, Mark, find_catalog, read_mark};
use crate::sys::{DirEntry, Env, LockGuard};
use folders::Folders;

/// Who wrote a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Doze,
    Kafka,
}

impl Origin {
    /// `doze` or `kafka`, as JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Doze => "doze",
            Origin::Kafka => "kafka",
        }
    }
}

/// How the broker that had the directory last stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It flushed everything; the next start trusts all files but those in the folders that are named.
    Clean { unchecked: HashSet<String> },
    /// It was killed, or the power failed: the next start checks the last segment of each log.
    Unclean,
    /// The mark is there and cannot be read: taken for an unclean stop.
    Nonsense,
}

/// What there is of the catalog.
#[derive(Debug)]
pub enum CatalogState {
    Open(Catalog),
    /// There is no file.
    Missing,
    /// It cannot be read as a catalog, in whole or in part.
    Damaged {
        reason: String,
    },
    /// The file could not be read.
    Unreadable {
        reason: String,
    },
    /// There is none: Apache Kafka's metadata is in a log, and the folder of a partition by itself has nothing around it.
    None,
}

/// Whether the directory is held, so that no broker starts in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    Yes,
    /// There is no lock file: no broker that keeps to the rules has it open, and one that starts now is not kept out.
    NoLockFile,
    /// The lock file could not be read.
    Unknown {
        reason: String,
    },
}

/// A stopped data directory. Shared between threads. It is held until this is dropped.
#[derive(Debug)]
pub struct DataDir {
    env: Env,
    path: PathBuf,
    origin: Origin,
    stop: Stop,
    held: Held,
    catalog_path: PathBuf,
    catalog: CatalogState,
    kafka: KafkaState,
    folders: Folders,
    /// The one partition that it is about, where the folder of one was named.
    only: Option<(String, i32)>,
    is_lone: bool,
    _locks: Vec<Box<dyn LockGuard>>,
}

/// How a directory is to be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Look,
    Write,
}

impl DataDir {
    /// Looks at the directory at `path`: a data directory of doze, a log directory of Apache Kafka, or the folder of one
    /// partition in either or by itself. `meta_db` is where the catalog is, if not where `doze serve` would look.
    ///
    /// Writes nothing, and does not need to be allowed to. Others may look at the same time.
    pub fn open(env: &Env, path: &Path, meta_db: Option<&Path>) -> Result<DataDir, OpenDirError> {
        Self::open_for(env, path, meta_db, Access::Look)
    }

    /// The same for one who is going to write to it: holds it as a broker does, against everybody. Makes the lock file if there
    /// is none, and writes nothing else.
    pub fn open_to_write(env: &Env, path: &Path, meta_db: Option<&Path>) -> Result<DataDir, OpenDirError> {
        Self::open_for(env, path, meta_db, Access::Write)
    }

    fn open_for(env: &Env, path: &Path, meta_db: Option<&Path>, access: Access) -> Result<DataDir, OpenDirError> {
        let mut path = path.to_owned();
        let mut entries = list(env, &path)?;
        let mut only = None;
        if let Some(partition) = lone_partition(&path, &entries) {
            // What is around it says whose it is and whether a broker has it.
            let parent = parent_of(&path);
            entries = list(env, &parent)?;
            only = Some(partition);
            path = parent;
        }
        let origin = recognise(&path, &entries)?;
        let is_lone = only.is_some() && meta_db.is_none() && !entries.iter().any(|entry| folders::is_mark(&entry.name));
        let mut locks = Vec::new();
        let held = hold(env, &path.join(names::LOCK), &path, access, &mut locks)?;
        let place = match origin {
            Origin::Doze if is_lone => None,
            Origin::Doze => Some(find_catalog(env, &path, meta_db, &entries)?),
            Origin::Kafka => None,
        };
        let mut catalog = CatalogState::None;
        let mut catalog_path = path.join(names::CATALOG);
        if let Some(place) = place {
            if place.outside {
                hold(env, &lock_file(&place.path), &place.path, access, &mut locks)?;
            }
            catalog = if place.exists { open_catalog(env, &place.path)? } else { CatalogState::Missing };
            catalog_path = place.path;
        }
        let kafka = match origin {
            Origin::Doze => KafkaState::default(),
            Origin::Kafka => KafkaState::read(env, &path)?,
        };
        let stop = read_stop(env, &path, origin, &entries)?;
        let folders = Folders::of(&path, entries);
        Ok(DataDir {
            env: env.clone(),
            path,
            origin,
            stop,
            held,
            catalog_path,
            catalog,
            kafka,
            folders,
            only,
            is_lone,
            _locks: locks,
        })
    }

    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The directory; where the folder of a partition was named, the one around it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn origin(&self) -> Origin {
        self.origin
    }

    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    pub fn held(&self) -> &Held {
        &self.held
    }

    /// The partition whose folder was named instead of a directory.
    pub fn only(&self) -> Option<(&str, i32)> {
        self.only.as_ref().map(|(topic, partition)| (topic.as_str(), *partition))
    }

    /// Whether the folder of a partition was named and nothing around it says whose it is: a copy of one, say. It is taken for
    /// doze's then, and there is no catalog.
    pub fn is_lone(&self) -> bool {
        self.is_lone
    }

    /// Where the catalog is or would be.
    pub fn catalog_path(&self) -> &Path {
        &self.catalog_path
    }

    pub fn catalog_state(&self) -> &CatalogState {
        &self.catalog
    }

    /// The catalog, if it can be read.
    pub fn catalog(&self) -> Option<&Catalog> {
        match &self.catalog {
            CatalogState::Open(catalog) => Some(catalog),
            _ => None,
        }
    }

    /// What Apache Kafka keeps beside the partitions. Empty in a directory of doze's.
    pub fn kafka(&self) -> &KafkaState {
        &self.kafka
    }

    /// What the metadata log in the directory says of topics and configs, of one of Apache Kafka's.
    pub fn kafka_metadata(&self) -> Result<KafkaMetadata, MetadataError> {
        let folder = self.path.join(names::partition_dir(names::KAFKA_METADATA_TOPIC, 0));
        KafkaMetadata::read(&self.env, &folder, !matches!(self.stop, Stop::Clean { .. }))
    }

    /// The folders of partitions, sorted by topic and number; all of them, whatever was named.
    pub fn partitions(&self) -> &[PartitionFolder] {
        &self.folders.partitions
    }

    /// Folders that were partitions, or are to be.
    pub fn leftovers(&self) -> &[Leftover] {
        &self.folders.leftovers
    }

    /// What is in the directory and neither doze's nor Apache Kafka's, names that are no UTF-8 among it.
    pub fn foreign(&self) -> &[DirEntry] {
        &self.folders.foreign
    }

    /// Whether the next start takes the files of a partition's folder as they are. If not, it checks the last segment.
    pub fn is_trusted(&self, folder: &str) -> bool {
        matches!(&self.stop, Stop::Clean { unchecked } if !unchecked.contains(folder))
    }

    /// The topic's id, as the partition's folder has it. `None` if it has none or it makes no sense.
    pub fn topic_id(&self, folder: &PartitionFolder) -> Result<Option<Uuid>, DirError> {
        read_partition_metadata(&*self.env.fs, &folder.path).map_err(DirError::of("read the metadata of", &folder.path))
    }
}

fn list(env: &Env, path: &Path) -> Result<Vec<DirEntry>, OpenDirError> {
    let not_there = |why| OpenDirError::NotADataDirectory { path: path.to_owned(), why };
    match env.fs.metadata(path) {
        Ok(metadata) if !metadata.is_dir => return Err(not_there("it is a file".to_owned())),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(not_there("there is no such directory".into()));
        }
        Err(e) => return Err(DirError::of("look at", path)(e).into()),
        Ok(_) => {}
    }
    let mut entries = env.fs.list(path).map_err(DirError::of("list", path))?;
    entries.sort();
    Ok(entries)
}

/// The partition that a directory is the folder of: its name and what is in it both say so.
fn lone_partition(path: &Path, entries: &[DirEntry]) -> Option<(String, i32)> {
    let Some(PartitionDir::Live { topic, partition }) = names::parse_partition_dir(path.file_name()?) else {
        return None;
    };
    let is_segment = |entry: &DirEntry| {
        let file = names::parse_partition_file(&entry.name);
        !entry.is_dir && matches!(file, names::PartitionFile::Segment { .. } | names::PartitionFile::Metadata)
    };
    entries.iter().any(is_segment).then_some((topic, partition))
}

fn parent_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) => parent.to_owned(),
        None => path.to_owned(),
    }
}

/// Whose directory it is.
fn recognise(path: &Path, entries: &[DirEntry]) -> Result<Origin, OpenDirError> {
    let has = |name: &str| entries.iter().any(|entry| entry.name == name);
    if has(names::KAFKA_META_PROPERTIES) {
        return Ok(Origin::Kafka);
    }
    if has(names::CATALOG) || has(names::CLEAN_SHUTDOWN) {
        return Ok(Origin::Doze);
    }
    let marks = [names::KAFKA_RECOVERY_POINTS, names::KAFKA_HIGH_WATERMARKS, names::KAFKA_CLEAN_SHUTDOWN];
    if marks.iter().any(|name| has(name)) {
        return Ok(Origin::Kafka);
    }
    // Partitions without a catalog: it was lost, or is elsewhere.
    if entries.iter().any(folders::is_partition) {
        return Ok(Origin::Doze);
    }
    let why = match entries.iter().find(|entry| entry.name != names::LOCK) {
        None => "it is empty".to_owned(),
        Some(entry) => format!("it holds no partition and no catalog, but {:?}", entry.name),
    };
    Err(OpenDirError::NotADataDirectory { path: path.to_owned(), why })
}

fn hold(
    env: &Env,
    lock: &Path,
    what: &Path,
    access: Access,
    locks: &mut Vec<Box<dyn LockGuard>>,
) -> Result<Held, OpenDirError> {
    let taken = match access {
        Access::Look => env.fs.lock_to_read(lock),
        Access::Write => env.fs.lock(lock).map(Some),
    };
    match taken {
        Ok(Some(guard)) => {
            locks.push(guard);
            Ok(Held::Yes)
        }
        Ok(None) => Ok(Held::NoLockFile),
        Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => Err(OpenDirError::InUse { path: what.to_owned() }),
        Err(e) if access == Access::Look => Ok(Held::Unknown { reason: e.to_string() }),
        Err(e) => Err(DirError::of("lock", lock)(e).into()),
    }
}

fn open_catalog(env: &Env, path: &Path) -> Result<CatalogState, OpenDirError> {
    Ok(match Catalog::open_read_only(env, path) {
        Ok(catalog) => CatalogState::Open(catalog),
        Err(OpenCatalogError::NewerFormat { path, found, known }) => {
            let what = format!("the catalog has format {found}, and this doze knows up to {known}");
            return Err(OpenDirError::NewerFormat { path, what });
        }
        Err(OpenCatalogError::NotACatalog { .. }) => {
            CatalogState::Damaged { reason: "it does not begin as a catalog does".into() }
        }
        Err(OpenCatalogError::Damaged { reason, .. }) => CatalogState::Damaged { reason },
        Err(OpenCatalogError::Io { source, .. }) => CatalogState::Unreadable { reason: source.to_string() },
    })
}

fn read_stop(env: &Env, path: &Path, origin: Origin, entries: &[DirEntry]) -> Result<Stop, OpenDirError> {
    if origin == Origin::Kafka {
        let clean = entries.iter().any(|entry| entry.name == names::KAFKA_CLEAN_SHUTDOWN);
        return Ok(if clean { Stop::Clean { unchecked: HashSet::new() } } else { Stop::Unclean });
    }
    Ok(match read_mark(&*env.fs, path)? {
        Mark::Left(unchecked) => Stop::Clean { unchecked },
        Mark::Missing => Stop::Unclean,
        Mark::Nonsense => Stop::Nonsense,
    })
}
