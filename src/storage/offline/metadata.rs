//! What Apache Kafka's metadata log says of topics: `__cluster_metadata-0`, in a log directory of the node.
//!
//! A node's metadata is the latest snapshot (`<end offset, 20 digits>-<epoch, 10 digits>.checkpoint`, batches as in a log) and the
//! records of the log from the snapshot's end on. All of the log counts: where several controllers vote, the end of it may not
//! be agreed on yet, and nothing on the disk tells. Records between the beginning of a transaction and its end count once it
//! has ended.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::protocol::Uuid;
use crate::protocol::metadata_records::{MetadataRecord, MetadataRecordError};
use crate::record::{Batch, BatchError, RecordError};
use crate::storage::catalog::{ConfigMap, ResourceType};
use crate::storage::log::{FileError, LONG_WALK, Walker};
use crate::storage::names::{self, FileKind, PartitionFile, Stage};
use crate::sys::{Env, OpenMode};

/// A batch of the metadata log is never larger; Apache Kafka's own limit is 8 MiB.
const LARGEST_BATCH: u64 = 64 << 20;

/// The topics and configs of a cluster, as the metadata log of one of its nodes has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KafkaMetadata {
    topics: BTreeMap<String, KafkaTopic>,
    names: BTreeMap<Uuid, String>,
    configs: BTreeMap<(i8, String), ConfigMap>,
    /// The offset after the last record.
    end: i64,
    /// The records of a transaction that has not ended.
    pending: Option<Vec<MetadataRecord>>,
}

/// A file of the log, which has every offset from its first one on: nothing ever compacts it.
#[derive(Clone, Copy, Debug)]
struct LogFile {
    base: i64,
    /// What is no batch at its end was never whole.
    may_be_torn: bool,
}

/// A topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KafkaTopic {
    pub id: Uuid,
    /// By number.
    pub partitions: BTreeMap<i32, Replicas>,
}

/// Where a partition lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replicas {
    /// The ids of the nodes.
    pub nodes: Vec<i32>,
    /// The log directory on each of them; empty where the metadata is older than directories' ids.
    pub directories: Vec<Uuid>,
}

/// Why the metadata cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    #[error("the metadata log {} is not there", path.display())]
    Missing { path: PathBuf },
    #[error("the metadata log starts at offset {start}, and no snapshot in {} has what came before", path.display())]
    NoSnapshot { path: PathBuf, start: i64 },
    #[error("{} ends at offset {end}, and the file after it does not go on from there", path.display())]
    Gap { path: PathBuf, end: i64 },
    #[error("{} is damaged at position {position}", path.display())]
    Damaged { path: PathBuf, position: u64 },
    #[error("the batch at position {position} of {} cannot be read: {source}", path.display())]
    Batch { path: PathBuf, position: u64, source: RecordError },
    #[error("the record at offset {offset} in {} cannot be read: {source}", path.display())]
    Record { path: PathBuf, offset: i64, source: MetadataRecordError },
    #[error("the record at offset {offset} in {} is about a topic that is not known", path.display())]
    UnknownTopic { path: PathBuf, offset: i64 },
    #[error(transparent)]
    File(#[from] FileError),
}

impl KafkaMetadata {
    /// Reads what is in `folder`, the one of the metadata log. `may_be_torn`: the node was not stopped cleanly, so that what is
    /// no batch at the log's end was never whole.
    pub fn read(env: &Env, folder: &Path, may_be_torn: bool) -> Result<KafkaMetadata, MetadataError> {
        let missing = || MetadataError::Missing { path: folder.to_owned() };
        if !env.fs.exists(folder).map_err(FileError::of("look at", folder))? {
            return Err(missing());
        }
        let (mut snapshots, mut logs) = (Vec::new(), Vec::new());
        for entry in env.fs.list(folder).map_err(FileError::of("list", folder))? {
            match names::parse_partition_file(&entry.name) {
                PartitionFile::Segment { base, kind: FileKind::Log, stage: Stage::Live } => logs.push(base),
                _ => snapshots.extend(names::parse_metadata_snapshot(&entry.name)),
            }
        }
        logs.sort_unstable();
        let mut metadata = KafkaMetadata::default();
        if let Some((end, epoch)) = snapshots.into_iter().max() {
            metadata.replay(env, &folder.join(names::metadata_snapshot(end, epoch)), None)?;
            // The records of a snapshot have offsets of their own.
            metadata.end = end;
            metadata.pending = None;
        } else if logs.is_empty() {
            return Err(missing());
        }
        if let Some(start) = logs.first().copied().filter(|start| *start > metadata.end) {
            return Err(MetadataError::NoSnapshot { path: folder.to_owned(), start });
        }
        for (number, base) in logs.iter().copied().enumerate() {
            let next = logs.get(number + 1);
            if next.is_some_and(|next| *next <= metadata.end) {
                continue;
            }
            let path = folder.join(names::segment_file(base, FileKind::Log));
            let may_be_torn = may_be_torn && next.is_none();
            let end = metadata.replay(env, &path, Some(LogFile { base, may_be_torn }))?;
            if next.is_some_and(|next| *next != end) {
                return Err(MetadataError::Gap { path, end });
            }
        }
        metadata.pending = None;
        Ok(metadata)
    }

    /// Takes the records of a snapshot, or those of a file of the log that lie at the end and after it. Answers the offset
    /// after the file's last.
    fn replay(&mut self, env: &Env, path: &Path, log: Option<LogFile>) -> Result<i64, MetadataError> {
        let of_file = |doing| FileError::of(doing, path);
        let file = env.fs.open(path, OpenMode::Read).map_err(of_file("open"))?;
        let len = file.len().map_err(of_file("look at"))?;
        let mut walker = Walker::new(file, 0, len, LONG_WALK);
        let may_be_torn = log.is_some_and(|log| log.may_be_torn);
        let mut due = log.map_or(0, |log| log.base);
        while walker.position() < len {
            let position = walker.position();
            let damaged = || MetadataError::Damaged { path: path.to_owned(), position };
            let unreadable = |source| MetadataError::Batch { path: path.to_owned(), position, source };
            let next = walker.next().map_err(of_file("read"))?;
            if next.is_none() && may_be_torn {
                break;
            }
            let at = next.filter(|at| at.size <= LARGEST_BATCH && at.header.is_some()).ok_or_else(damaged)?;
            let bytes = walker.slice(at.position, at.end()).map_err(of_file("read"))?.ok_or_else(damaged)?;
            let batch = Batch::parse(bytes).map_err(|error| unreadable(error.into()))?;
            match batch.verify_crc() {
                Err(BatchError::BadCrc { .. }) if may_be_torn && at.end() == len => break,
                checked => checked.map_err(|error| unreadable(error.into()))?,
            }
            if log.is_some() && at.base_offset != due {
                return Err(damaged());
            }
            due = at.last_offset.saturating_add(1);
            if batch.header().is_control() {
                continue;
            }
            let mut records = batch.records().map_err(unreadable)?;
            while let Some(record) = records.next_record().map_err(unreadable)? {
                let offset = record.offset();
                if log.is_some() && offset < self.end {
                    continue;
                }
                let read = MetadataRecord::decode(record.value().unwrap_or_default())
                    .map_err(|source| MetadataError::Record { path: path.to_owned(), offset, source })?;
                let taken = self.take(read);
                taken.ok_or_else(|| MetadataError::UnknownTopic { path: path.to_owned(), offset })?;
            }
        }
        self.end = self.end.max(due);
        Ok(due)
    }

    /// Takes a record, or keeps it until its transaction ends. `None` if it is about a topic that is not known.
    fn take(&mut self, record: MetadataRecord) -> Option<()> {
        match (record, &mut self.pending) {
            (MetadataRecord::BeginTransaction, _) => self.pending = Some(Vec::new()),
            (MetadataRecord::AbortTransaction, _) => self.pending = None,
            (MetadataRecord::EndTransaction, _) => {
                for record in self.pending.take().unwrap_or_default() {
                    self.apply(record)?;
                }
            }
            (MetadataRecord::Other { .. }, _) => {}
            (record, Some(pending)) => pending.push(record),
            (record, None) => self.apply(record)?,
        }
        Some(())
    }

    fn apply(&mut self, record: MetadataRecord) -> Option<()> {
        match record {
            MetadataRecord::Topic(topic) => {
                self.names.insert(topic.topic_id, topic.name.clone());
                self.topics.insert(topic.name, KafkaTopic { id: topic.topic_id, ..KafkaTopic::default() });
            }
            MetadataRecord::Partition(partition) => {
                let replicas = Replicas { nodes: partition.replicas, directories: partition.directories };
                self.topic_of(partition.topic_id)?.partitions.insert(partition.partition_id, replicas);
            }
            MetadataRecord::PartitionChange(change) => {
                let replicas = self.topic_of(change.topic_id)?.partitions.get_mut(&change.partition_id)?;
                if let Some(nodes) = change.replicas {
                    replicas.nodes = nodes;
                }
                if let Some(directories) = change.directories {
                    replicas.directories = directories;
                }
            }
            MetadataRecord::Config(config) => {
                let configs = self.configs.entry((config.resource_type, config.resource_name)).or_default();
                match config.value {
                    Some(value) => drop(configs.insert(config.name, value)),
                    None => drop(configs.remove(&config.name)),
                }
            }
            MetadataRecord::RemoveTopic(removed) => {
                let name = self.names.remove(&removed.topic_id)?;
                self.configs.remove(&(ResourceType::Topic as i8, name.clone()));
                self.topics.remove(&name);
            }
            MetadataRecord::BeginTransaction
            | MetadataRecord::EndTransaction
            | MetadataRecord::AbortTransaction
            | MetadataRecord::Other { .. } => {}
        }
        Some(())
    }

    fn topic_of(&mut self, id: Uuid) -> Option<&mut KafkaTopic> {
        self.topics.get_mut(self.names.get(&id)?)
    }

    /// The topic of a name.
    pub fn topic(&self, name: &str) -> Option<&KafkaTopic> {
        self.topics.get(name)
    }

    /// The configs that were set on a topic, or on a broker (an empty name: on all of them).
    pub fn configs(&self, resource: ResourceType, name: &str) -> ConfigMap {
        self.configs.get(&(resource as i8, name.to_owned())).cloned().unwrap_or_default()
    }

    /// The same of a topic, shared.
    pub fn topic_configs(&self, name: &str) -> Arc<ConfigMap> {
        Arc::new(self.configs(ResourceType::Topic, name))
    }
}
