//! The directories of partitions: made, found left over, removed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::DirError;
use crate::protocol::Uuid;
use crate::storage::log::{read_partition_metadata, write_partition_metadata};
use crate::storage::names::{self, PartitionFile};
use crate::sys::{Env, FileSystem};

/// Where partitions live. Cheap to clone; shared between threads.
#[derive(Clone, Debug)]
pub(super) struct Dirs {
    pub env: Env,
    pub data_dir: Arc<Path>,
}

/// What a directory with a partition's name is, when the catalog does not know the partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leftover {
    /// Of a topic whose making was interrupted: no log was ever in it.
    HalfMade,
    /// Of a topic whose deletion was interrupted.
    Deleted(Uuid),
    /// It has data that nobody asked to delete.
    Unknown,
}

impl Dirs {
    pub fn path(&self, topic: &str, partition: i32) -> PathBuf {
        self.data_dir.join(names::partition_dir(topic, partition))
    }

    fn fs(&self) -> &dyn FileSystem {
        &*self.env.fs
    }

    /// Makes a partition's directory with its metadata, durable but for the directory's own name.
    pub fn make(&self, dir: &Path, topic_id: Uuid) -> Result<(), DirError> {
        self.fs().create_dir(dir).map_err(DirError::of("create", dir))?;
        self.write_metadata(dir, topic_id).inspect_err(|_| self.discard(dir))
    }

    /// Writes the partition's metadata, durably.
    pub fn write_metadata(&self, dir: &Path, topic_id: Uuid) -> Result<(), DirError> {
        let file = || dir.join(names::PARTITION_METADATA);
        write_partition_metadata(self.fs(), dir, topic_id).map_err(|e| DirError::of("write", &file())(e))?;
        self.fs().sync_dir(dir).map_err(DirError::of("flush", dir))
    }

    /// Makes the names in the data directory durable.
    pub fn sync(&self) -> Result<(), DirError> {
        self.fs().sync_dir(&self.data_dir).map_err(DirError::of("flush", &self.data_dir))
    }

    /// Removes what was half made. What cannot be removed now is at the next start.
    pub fn discard(&self, dir: &Path) {
        if let Err(error) = self.fs().remove_dir_all(dir)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(dir = %dir.display(), %error, "cannot remove what was made of a partition; the next start will");
        }
    }

    /// Looks at a directory that has a partition's name and is not in the catalog. `deleted` says of a topic id whether
    /// it is of a deleted topic.
    pub fn examine(&self, dir: &Path, deleted: impl Fn(Uuid) -> bool) -> Result<Leftover, DirError> {
        let entries = self.fs().list(dir).map_err(DirError::of("list", dir))?;
        let unused = entries.iter().all(|entry| {
            let file = names::parse_partition_file(&entry.name);
            !entry.is_dir && matches!(file, PartitionFile::Metadata | PartitionFile::Temporary)
        });
        if unused {
            return Ok(Leftover::HalfMade);
        }
        let id = read_partition_metadata(self.fs(), dir).map_err(DirError::of("read the metadata of", dir))?;
        Ok(match id {
            Some(id) if deleted(id) => Leftover::Deleted(id),
            _ => Leftover::Unknown,
        })
    }

    /// Gives a partition's directory a name that says that it is to be removed, and answers it.
    pub fn rename_deleted(&self, topic: &str, partition: i32) -> Result<PathBuf, DirError> {
        let from = self.path(topic, partition);
        let mut unique = [0; 16];
        self.env.random.fill(&mut unique);
        let to = self.data_dir.join(names::deleted_dir(topic, partition, u128::from_be_bytes(unique)));
        self.fs().rename(&from, &to).map_err(DirError::of("rename", &from))?;
        Ok(to)
    }

    /// Removes a directory that has such a name.
    pub fn remove_deleted(&self, dir: &Path) -> Result<(), DirError> {
        self.fs().remove_dir_all(dir).map_err(DirError::of("remove", dir))
    }
}
