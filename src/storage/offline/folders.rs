//! What a data directory has in it.

use std::path::{Path, PathBuf};

use crate::storage::names::{self, LeftoverDir, PartitionDir};
use crate::sys::DirEntry;

/// The folder of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionFolder {
    pub path: PathBuf,
    pub topic: String,
    pub partition: i32,
}

impl PartitionFolder {
    /// The folder's name, `<topic>-<n>`.
    pub fn name(&self) -> String {
        names::partition_dir(&self.topic, self.partition)
    }
}

/// A folder that was a partition, or is to become one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    pub path: PathBuf,
    pub kind: LeftoverDir,
}

#[derive(Debug, Default)]
pub(super) struct Folders {
    pub partitions: Vec<PartitionFolder>,
    pub leftovers: Vec<Leftover>,
    pub foreign: Vec<DirEntry>,
}

pub(super) fn is_partition(entry: &DirEntry) -> bool {
    entry.is_dir && matches!(names::parse_partition_dir(&entry.name), Some(PartitionDir::Live { .. }))
}

/// Whether something of this name says that it is in a data directory.
pub(super) fn is_mark(name: &std::ffi::OsStr) -> bool {
    name != names::LOCK && name.to_str().is_some_and(is_own)
}

/// Files that doze or Apache Kafka keeps beside the partitions.
fn is_own(name: &str) -> bool {
    const OWN: [&str; 9] = [
        names::CATALOG,
        names::CLEAN_SHUTDOWN,
        names::LOCK,
        names::KAFKA_META_PROPERTIES,
        names::KAFKA_CLEAN_SHUTDOWN,
        names::KAFKA_RECOVERY_POINTS,
        names::KAFKA_LOG_STARTS,
        names::KAFKA_HIGH_WATERMARKS,
        names::KAFKA_CLEANER_OFFSETS,
    ];
    // A cut can leave the beginnings of some: "meta.db.new", "clean-shutdown.tmp", "meta.properties.tmp".
    let unfinished = [".new", ".lock", names::TEMPORARY].iter().find_map(|end| name.strip_suffix(end));
    OWN.contains(&name) || unfinished.is_some_and(|name| OWN.contains(&name)) || name == "bootstrap.checkpoint"
}

impl Folders {
    pub fn of(dir: &Path, entries: Vec<DirEntry>) -> Folders {
        let mut folders = Folders::default();
        for entry in entries {
            let path = dir.join(&entry.name);
            if entry.is_dir
                && let Some(PartitionDir::Live { topic, partition }) = names::parse_partition_dir(&entry.name)
            {
                folders.partitions.push(PartitionFolder { path, topic, partition });
            } else if entry.is_dir
                && let Some(kind) = names::parse_leftover_dir(&entry.name)
            {
                folders.leftovers.push(Leftover { path, kind });
            } else if entry.is_dir && names::is_quarantine_dir(&entry.name) {
                // What a recovery has removed from here.
            } else if entry.is_dir || !entry.name.to_str().is_some_and(is_own) {
                folders.foreign.push(entry);
            }
        }
        folders.partitions.sort_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
        folders
    }
}
