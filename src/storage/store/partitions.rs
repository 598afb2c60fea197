//! Partitions: opened at their first use, and what is done to all that are open.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;

use super::Store;
use super::error::{DeleteRecordsError, DirError, PartitionError};
use crate::protocol::Uuid;
use crate::storage::catalog::{ConfigMap, Mutation, ResourceType};
use crate::storage::internal_topics::is_internal;
use crate::storage::log::{LogConfig, PartitionLog, read_partition_metadata};
use crate::storage::names;
use crate::sys::Env;

/// The place of a partition's log. Only partitions that were asked for have one.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub log: OnceLock<Arc<PartitionLog>>,
    pub opening: Mutex<Opening>,
}

#[derive(Debug, Default)]
pub(super) struct Opening {
    /// Why it could not be opened, as was said in the log.
    said: Option<String>,
}

impl Store {
    /// The log of a partition, which is opened now if it was not yet. Others are not held up meanwhile. Waits for the disk
    /// only then.
    pub fn partition(&self, topic_id: Uuid, partition: i32) -> Result<Arc<PartitionLog>, PartitionError> {
        if let Some(log) = self.open_partition(topic_id, partition) {
            return Ok(log);
        }
        self.name_of(topic_id, partition)?;
        let slot = self.slots.write().entry((topic_id, partition)).or_default().clone();
        let mut opening = slot.opening.lock();
        if let Some(log) = slot.log.get() {
            return Ok(log.clone());
        }
        if self.closed.load(Ordering::Acquire) {
            return Err(PartitionError::Closed);
        }
        // It may have been deleted while this waited for the lock.
        let opened = self.name_of(topic_id, partition).and_then(|name| self.open_log(&name, topic_id, partition));
        match opened {
            Ok(log) => {
                opening.said = None;
                Ok(slot.log.get_or_init(|| log).clone())
            }
            Err(PartitionError::Unknown) => {
                self.forget_slot(topic_id, partition);
                Err(PartitionError::Unknown)
            }
            Err(error) => {
                let said = error.to_string();
                if opening.said.as_ref() != Some(&said) {
                    tracing::error!(error = said, "a partition cannot be opened; it is tried again at its next use");
                    opening.said = Some(said);
                }
                Err(error)
            }
        }
    }

    /// The log of a partition if it is open. Never waits.
    pub fn open_partition(&self, topic_id: Uuid, partition: i32) -> Option<Arc<PartitionLog>> {
        self.slots.read().get(&(topic_id, partition))?.log.get().cloned()
    }

    /// All logs that are open, by topic id and partition. Never waits.
    pub fn open_partitions(&self) -> Vec<(Uuid, Arc<PartitionLog>)> {
        let slots = self.slots.read();
        slots.iter().filter_map(|((id, _), slot)| Some((*id, slot.log.get()?.clone()))).collect()
    }

    /// Rises with every change of what is in force for some log.
    pub(in crate::storage) fn config_changes(&self) -> u64 {
        self.config_changes.load(Ordering::Acquire)
    }

    /// The machine that it runs on.
    pub(in crate::storage) fn env(&self) -> &Env {
        &self.dirs.env
    }

    /// The directory of a partition.
    pub(in crate::storage) fn partition_dir(&self, topic: &str, partition: i32) -> PathBuf {
        self.dirs.path(topic, partition)
    }

    /// Whether a partition has a directory. Those of internal topics get theirs when they are first opened.
    pub fn has_directory(&self, topic: &str, partition: i32) -> bool {
        // One that cannot be looked at is opened, and that says why.
        self.dirs.env.fs.exists(&self.dirs.path(topic, partition)).unwrap_or(true)
    }

    pub(super) fn name_of(&self, topic_id: Uuid, partition: i32) -> Result<Arc<str>, PartitionError> {
        let topics = self.topics();
        let topic = topics.by_id(topic_id).filter(|topic| (0..topic.partitions).contains(&partition));
        Ok(topic.ok_or(PartitionError::Unknown)?.name.clone())
    }

    fn open_log(&self, name: &str, topic_id: Uuid, partition: i32) -> Result<Arc<PartitionLog>, PartitionError> {
        let dir = self.dirs.path(name, partition);
        if is_internal(name) {
            self.make_internal(&dir, topic_id).map_err(Arc::new)?;
        }
        self.check_metadata(&dir, topic_id)?;
        let log_start = self.catalog.log_start(topic_id, partition)?;
        let dir_name = names::partition_dir(name, partition);
        let clean = self.trust.lock().includes(&dir_name);
        PartitionLog::open(self.dirs.env.clone(), dir.clone(), self.log_config(name), clean, log_start).map_err(|e| {
            self.trust.lock().remove(&dir_name);
            PartitionError::Open { dir, source: Arc::new(e) }
        })
    }

    /// Makes the directory of an internal topic's partition if there is none. A power cut may take it, and nothing with it.
    fn make_internal(&self, dir: &Path, topic_id: Uuid) -> Result<(), DirError> {
        if self.dirs.env.fs.exists(dir).map_err(DirError::of("look at", dir))? {
            return Ok(());
        }
        self.dirs.make(dir, topic_id)?;
        self.dirs.sync()
    }

    /// The directory has to be this topic's. Metadata that is missing or torn is made anew: the catalog knows better.
    fn check_metadata(&self, dir: &Path, topic_id: Uuid) -> Result<(), PartitionError> {
        let found = read_partition_metadata(&*self.dirs.env.fs, dir);
        match found.map_err(|e| Arc::new(DirError::of("read the metadata of", dir)(e)))? {
            Some(found) if found == topic_id => Ok(()),
            Some(found) => Err(PartitionError::OtherTopic {
                dir: dir.to_owned(),
                found: found.to_string(),
                expected: topic_id.to_string(),
            }),
            None => Ok(self.dirs.write_metadata(dir, topic_id).map_err(Arc::new)?),
        }
    }

    /// What is in force for the logs of a topic.
    pub(in crate::storage) fn log_config(&self, topic: &str) -> LogConfig {
        match self.catalog.configs().get(ResourceType::Topic, topic) {
            Some(configs) => (self.log_config)(configs),
            None => (self.log_config)(&ConfigMap::new()),
        }
    }

    /// Has the open logs of one topic, or of all, follow their configs: after a change of what the broker's defaults are.
    pub fn refresh_log_configs(&self, topic: Option<&str>) {
        self.config_changes.fetch_add(1, Ordering::AcqRel);
        let slots: Vec<Arc<Slot>> = self.slots.read().values().cloned().collect();
        for slot in slots {
            // One that is being opened may have read the configs as they were.
            let _opening = slot.opening.lock();
            if let Some(log) = slot.log.get()
                && topic.is_none_or(|topic| topic == log.topic())
            {
                log.update_config(self.log_config(log.topic()));
            }
        }
    }

    /// Deletes the records below `offset`, which is at most the end of the log: makes the new log start offset durable,
    /// then has the log follow. Answers the log start offset, which is higher where it was already.
    pub fn delete_records(&self, topic_id: Uuid, partition: i32, offset: i64) -> Result<i64, DeleteRecordsError> {
        let log = self.partition(topic_id, partition)?;
        let offsets = log.offsets();
        if offset < 0 || offset > offsets.end {
            return Err(DeleteRecordsError::OutOfRange { offset, start: offsets.start, end: offsets.end });
        }
        if offset > offsets.start {
            self.catalog.commit_blocking(vec![Mutation::RaiseLogStart { topic_id, partition, offset }])?;
            log.advance_log_start(offset)?;
        }
        Ok(log.offsets().start)
    }

    /// For the timer: starts a flush of each open log where something has waited for one for `longest`, or for its
    /// `flush.ms`. Touches no other, and none of an internal topic, whose records are copies. Answers how many. Does not wait.
    pub fn flush_dirty(&self, longest: Duration) -> usize {
        let logs = self.open_partitions();
        logs.iter().filter(|(_, log)| !is_internal(log.topic()) && log.flush_if_due(longest)).count()
    }

    /// The slot of a partition that is being deleted, so that its lock can be taken.
    pub(super) fn slot_of_deleted(&self, topic_id: Uuid, partition: i32) -> Arc<Slot> {
        self.slots.write().entry((topic_id, partition)).or_default().clone()
    }

    pub(super) fn forget_slot(&self, topic_id: Uuid, partition: i32) {
        self.slots.write().remove(&(topic_id, partition));
    }
}
