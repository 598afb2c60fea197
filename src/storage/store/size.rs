//! How much room things take.

use std::io;

use super::Store;
use super::error::{DirError, PartitionError};
use crate::protocol::Uuid;
use crate::storage::internal_topics::is_internal;
use crate::storage::names::{FileKind, PartitionFile, parse_partition_file};
use crate::sys::Space;

impl Store {
    /// Bytes of a partition's segments. One that is not open is measured by its files, and stays closed.
    pub fn partition_size(&self, topic_id: Uuid, partition: i32) -> Result<u64, PartitionError> {
        if let Some(log) = self.open_partition(topic_id, partition) {
            return Ok(log.size_bytes());
        }
        let name = self.name_of(topic_id, partition)?;
        let dir = self.dirs.path(&name, partition);
        let fs = &self.dirs.env.fs;
        let failed = |error: io::Error| std::sync::Arc::new(DirError::of("measure", &dir)(error));
        let mut bytes = 0;
        let entries = match fs.list(&dir) {
            // Only an internal topic's partition may have none.
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_internal(&name) => return Ok(0),
            listed => listed.map_err(failed)?,
        };
        for entry in entries {
            if let PartitionFile::Segment { kind: FileKind::Log, .. } = parse_partition_file(&entry.name) {
                bytes += fs.metadata(&dir.join(&entry.name)).map_err(failed)?.len;
            }
        }
        Ok(bytes)
    }

    /// The room on the file system that the data directory is on.
    pub fn disk_space(&self) -> io::Result<Space> {
        self.dirs.env.fs.space(&self.dirs.data_dir)
    }
}
