//! What `__consumer_offsets` and `__transaction_state` hold: a copy of what the coordinators know, for those who read Kafka's topics.
//!
//! doze has it in its catalog and never reads it here. What has become durable there is appended as the records that Apache
//! Kafka's coordinators write, to the partitions that they write it to. Groups go at once, offsets a little later, and of a group
//! or an offset that changes more than once meanwhile the last word only. Nobody waits for it, and it is flushed when the broker
//! stops and not before; compaction keeps it small, as it keeps any such topic.
//!
//! So that the copy is whole, it is made anew where it may not be: where the topic is new, where records could not be appended,
//! and after a stop that was not a clean one. What stood in the topic before is deleted once the new copy is there. That a copy
//! was whole is noted in the catalog under the topic's name, with its id.
//!
//! Offsets that a transaction will commit are there once it has.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::topics::{self, LEADER_EPOCH};
use super::transactions::partition_of_name;
use crate::coordinator::records::{GroupRecords, offset_key, offset_value, transaction_key, transaction_value};
use crate::coordinator::{BadBytes, Change, CommittedOffset};
use crate::protocol::Uuid;
use crate::record::{BatchBuilder, BatchOptions, BuildError, CheckedBatch};
use crate::storage::catalog::{CatalogError, Mutation, Topic};
use crate::storage::internal_topics::{OFFSETS, TRANSACTIONS};
use crate::storage::log::AppendError;
use crate::storage::store::{DeleteRecordsError, PartitionError, Store};
use crate::sys::Env;

/// How long offsets and transactional ids that have changed may wait for more.
const LINGER: Duration = Duration::from_millis(500);

/// How long a copy that could not be made is left alone.
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// How many changes of transactional ids may wait. With one more the copy is made anew.
const MOST_TRANSACTIONS: usize = 20_000;

/// About how many bytes of keys and values go into a batch.
const BATCH_BYTES: usize = 256 << 10;

/// The space of the catalog's state that says of which topics the copy was whole, by name; the value is the topic's id.
const SPACE: &str = "state-topics";

/// Why the copy is not whole.
#[derive(Debug, thiserror::Error)]
enum CopyError {
    #[error("the catalog cannot be used: {0}")]
    Catalog(#[from] CatalogError),
    #[error("partition {partition} cannot be opened: {source}")]
    Open { partition: i32, source: PartitionError },
    #[error("partition {partition} takes no records: {source}")]
    Append { partition: i32, source: AppendError },
    #[error("partition {partition} keeps what was there before: {source}")]
    Delete { partition: i32, source: DeleteRecordsError },
    #[error("records do not go into a batch: {0}")]
    Build(#[from] BuildError),
}

/// Group, topic and partition.
type OffsetPlace = (Arc<str>, Arc<str>, i32);

/// A partition of a topic by its number, and the records for it, in order.
type Records = BTreeMap<i32, Vec<(Bytes, Option<Bytes>)>>;

/// The copies. Shared between threads.
#[derive(Debug)]
pub struct StateTopics {
    env: Env,
    store: Arc<Store>,
    changes: Mutex<Changes>,
    changed: Notify,
    /// Told of what is not to wait for more.
    changed_now: Notify,
    /// Held while records are written.
    copied: Mutex<Copied>,
}

/// What has changed and is not copied yet; `None` for what is gone.
#[derive(Debug, Default)]
struct Changes {
    groups: HashMap<Arc<str>, Option<Bytes>>,
    offsets: HashMap<OffsetPlace, Option<(CommittedOffset, Uuid)>>,
    /// In order, each change by itself.
    transactional_ids: Vec<(Arc<str>, Option<Bytes>)>,
    too_many: bool,
}

#[derive(Debug, Default)]
struct Copied {
    /// The topics whose copy is whole, by name.
    whole: HashMap<&'static str, Uuid>,
    /// When those that could not be made are tried again, on the monotonic clock.
    retry_at: HashMap<&'static str, Duration>,
    /// The keys of a group's records, with hashes of the values.
    groups: HashMap<Arc<str>, BTreeMap<Bytes, u64>>,
}

impl StateTopics {
    pub fn open(env: Env, store: Arc<Store>) -> Result<Arc<Self>, CatalogError> {
        let mut copied = Copied::default();
        if store.started_clean() {
            for name in [OFFSETS, TRANSACTIONS] {
                let id = store.catalog().state(SPACE, name.as_bytes())?;
                if let Some(id) = id.and_then(|id| id.try_into().ok()) {
                    copied.whole.insert(name, Uuid(id));
                }
            }
        }
        let topics = StateTopics {
            env,
            store,
            changes: Mutex::default(),
            changed: Notify::new(),
            changed_now: Notify::new(),
            copied: Mutex::default(),
        };
        if topics.is_whole(&copied, OFFSETS).is_some() {
            for (group, bytes) in topics.store.catalog().groups()? {
                let group: Arc<str> = group.into();
                let keys = topics.records_of(&group, &bytes).map(|records| hashes(&records)).unwrap_or_default();
                copied.groups.insert(group, keys);
            }
        }
        *topics.copied.lock() = copied;
        // There may be something to copy.
        topics.changed_now.notify_one();
        Ok(Arc::new(topics))
    }

    /// The topic, if the copy in it is whole.
    fn is_whole(&self, copied: &Copied, name: &str) -> Option<Arc<Topic>> {
        let topic = self.store.topics().by_name(name)?.clone();
        (copied.whole.get(name) == Some(&topic.id)).then_some(topic)
    }

    fn is_there(&self, name: &str) -> bool {
        self.store.topics().by_name(name).is_some()
    }

    /// What of a group's changes is to be handed to [`group_changed`](Self::group_changed) once they are durable.
    pub fn of_interest(&self, changes: &[Change]) -> Vec<Change> {
        if self.is_there(OFFSETS) { changes.to_vec() } else { Vec::new() }
    }

    /// Changes of a group are durable.
    pub fn group_changed(&self, group: &Arc<str>, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        let topics = self.store.topics();
        let mut all = self.changes.lock();
        for change in changes {
            match change {
                Change::PutGroup(bytes) => drop(all.groups.insert(group.clone(), Some(bytes))),
                Change::RemoveGroup => drop(all.groups.insert(group.clone(), None)),
                Change::PutOffset { topic, partition, offset } => {
                    let id = topics.by_name(&topic).map(|topic| topic.id).unwrap_or_default();
                    all.offsets.insert((group.clone(), topic, partition), Some((offset, id)));
                }
                Change::RemoveOffset { topic, partition } => {
                    all.offsets.insert((group.clone(), topic, partition), None);
                }
                Change::PutPendingOffset { .. }
                | Change::RemovePendingOffset { .. }
                | Change::PutSharePartition { .. }
                | Change::RemoveSharePartition { .. } => {}
            }
        }
        match all.groups.is_empty() {
            true => self.changed.notify_one(),
            false => self.changed_now.notify_one(),
        }
    }

    /// What is stored of a transactional id is durable; `None`: nothing is.
    pub fn transaction_changed(&self, id: &Arc<str>, value: Option<Bytes>) {
        if self.is_there(TRANSACTIONS) {
            let mut all = self.changes.lock();
            if all.transactional_ids.len() >= MOST_TRANSACTIONS {
                all.transactional_ids.clear();
                all.too_many = true;
            }
            all.transactional_ids.push((id.clone(), value));
            self.changed.notify_one();
        }
    }

    /// Such a topic was made.
    pub fn topic_made(&self) {
        self.changed_now.notify_one();
    }

    /// Copies what changes, until the task that runs this is ended.
    pub async fn keep(self: Arc<Self>) {
        loop {
            let soon = async {
                self.changed.notified().await;
                tokio::time::sleep(LINGER).await;
            };
            tokio::select! {
                () = soon => {}
                () = self.changed_now.notified() => {}
            }
            self.copy().await;
        }
    }

    /// Copies what has changed so far.
    pub async fn copy(self: &Arc<Self>) {
        let this = self.clone();
        // It can only fail by a panic, which the log tells of.
        let _ = topics::blocking(&self.env, move || this.copy_now()).await;
    }

    fn copy_now(&self) {
        let mut copied = self.copied.lock();
        let changes = std::mem::take(&mut *self.changes.lock());
        let outcome = match self.is_whole(&copied, OFFSETS) {
            Some(topic) => self.append(&topic, self.group_records(&mut copied, &topic, &changes)),
            None => self.copy_all(&mut copied, OFFSETS, Self::copy_groups),
        };
        self.judge(&mut copied, OFFSETS, outcome);
        if changes.too_many {
            copied.whole.remove(TRANSACTIONS);
        }
        let outcome = match self.is_whole(&copied, TRANSACTIONS) {
            Some(topic) => self.append(&topic, self.transaction_records(&topic, changes.transactional_ids)),
            None => self.copy_all(&mut copied, TRANSACTIONS, Self::copy_transactional_ids),
        };
        self.judge(&mut copied, TRANSACTIONS, outcome);
    }

    /// A copy that has failed is made anew with a later change, or at the next start.
    fn judge(&self, copied: &mut Copied, name: &'static str, outcome: Result<(), CopyError>) {
        let Err(error) = outcome else { return };
        copied.retry_at.insert(name, self.env.clock.monotonic().saturating_add(RETRY_AFTER));
        if copied.whole.remove(name).is_some() {
            tracing::warn!(topic = name, "the copy for those who read the topic is not whole: {error}");
            let note = Mutation::SetState { space: SPACE, key: name.into(), value: None };
            self.store.catalog().commit(vec![note], Box::new(drop));
        }
    }

    /// Has `copy` write all that there is to the topic, if it is there, and deletes what stood in it before.
    fn copy_all(
        &self,
        copied: &mut Copied,
        name: &'static str,
        copy: impl FnOnce(&Self, &mut Copied, &Topic) -> Result<(), CopyError>,
    ) -> Result<(), CopyError> {
        let Some(topic) = self.store.topics().by_name(name).cloned() else { return Ok(()) };
        if copied.retry_at.get(name).is_some_and(|at| self.env.clock.monotonic() < *at) {
            return Ok(());
        }
        let mut before = Vec::new();
        for partition in 0..topic.partitions {
            // One without a directory is empty.
            if !self.store.has_directory(&topic.name, partition) {
                continue;
            }
            let log = self.store.partition(topic.id, partition);
            let offsets = log.map_err(|source| CopyError::Open { partition, source })?.offsets();
            if offsets.start < offsets.end {
                before.push((partition, offsets.end));
            }
        }
        copy(self, copied, &topic)?;
        for (partition, end) in before {
            let deleted = self.store.delete_records(topic.id, partition, end);
            deleted.map_err(|source| CopyError::Delete { partition, source })?;
        }
        let note = Mutation::SetState { space: SPACE, key: name.into(), value: Some(topic.id.0.to_vec()) };
        self.store.catalog().commit_blocking(vec![note])?;
        copied.whole.insert(name, topic.id);
        Ok(())
    }

    fn copy_groups(&self, copied: &mut Copied, topic: &Topic) -> Result<(), CopyError> {
        copied.groups.clear();
        let catalog = self.store.catalog();
        for (group, bytes) in catalog.groups()? {
            let changes = Changes { groups: [(group.into(), Some(bytes.into()))].into(), ..Changes::default() };
            self.append(topic, self.group_records(copied, topic, &changes))?;
        }
        for group in catalog.groups_with_offsets()? {
            let group: Arc<str> = group.into();
            let mut changes = Changes::default();
            for (of, partition, offset) in catalog.offsets(&group)? {
                let id = offset.topic_id;
                let place = (group.clone(), of.into(), partition);
                changes.offsets.insert(place, Some((super::groups::from_catalog(offset), id)));
            }
            self.append(topic, self.group_records(copied, topic, &changes))?;
        }
        Ok(())
    }

    fn copy_transactional_ids(&self, _: &mut Copied, topic: &Topic) -> Result<(), CopyError> {
        let ids = self.store.catalog().transactional_ids()?;
        let ids = ids.into_iter().map(|(id, bytes)| (id.into(), Some(bytes.into())));
        self.append(topic, self.transaction_records(topic, ids.collect()))
    }

    fn records_of(&self, group: &Arc<str>, bytes: &[u8]) -> Result<GroupRecords, BadBytes> {
        let topics = self.store.topics();
        GroupRecords::of(group, bytes, &|id| topics.by_id(id).map(|topic| topic.name.clone()))
    }

    fn group_records(&self, copied: &mut Copied, topic: &Topic, changes: &Changes) -> Records {
        let mut records = Records::new();
        let place = |group: &str| partition_of_name(group, topic.partitions.max(1));
        for (group, bytes) in &changes.groups {
            let to = records.entry(place(group)).or_default();
            let before = copied.groups.remove(group);
            let now = match bytes.as_ref().map(|bytes| self.records_of(group, bytes)) {
                Some(Ok(now)) => now,
                // What does not read is named in the log by those who have to read it.
                Some(Err(_)) | None => GroupRecords::default(),
            };
            if before.is_none()
                && let Some((key, value)) = bytes.as_ref().and_then(|bytes| GroupRecords::first_of(group, bytes))
            {
                to.push((key, Some(value)));
            }
            let before = before.unwrap_or_default();
            let known = hashes(&now);
            to.extend(before.keys().filter(|key| !known.contains_key(*key)).map(|key| (key.clone(), None)));
            for (key, value) in now.records {
                if before.get(&key) != known.get(&key) {
                    to.push((key, Some(value)));
                }
            }
            if bytes.is_some() {
                copied.groups.insert(group.clone(), known);
            }
        }
        for ((group, of, partition), offset) in &changes.offsets {
            let value = offset.as_ref().map(|(offset, id)| offset_value(offset, *id));
            // What has no place in a record is left out: a name or a text that is longer than one can be.
            if let (Some(key), None | Some(Some(_))) = (offset_key(group, of, *partition), &value) {
                records.entry(place(group)).or_default().push((key, value.flatten()));
            }
        }
        records
    }

    fn transaction_records(&self, topic: &Topic, ids: Vec<(Arc<str>, Option<Bytes>)>) -> Records {
        let mut records = Records::new();
        for (id, bytes) in ids {
            let value = match bytes.map(|bytes| transaction_value(&bytes)) {
                None => None,
                Some(Ok(Some(value))) => Some(value),
                Some(Ok(None) | Err(_)) => continue,
            };
            if let Some(key) = transaction_key(&id) {
                let place = partition_of_name(&id, topic.partitions.max(1));
                records.entry(place).or_default().push((key, value));
            }
        }
        records
    }

    fn append(&self, topic: &Topic, records: Records) -> Result<(), CopyError> {
        let now_ms = self.env.clock.now_ms();
        for (partition, records) in records {
            if records.is_empty() {
                continue;
            }
            let log = self.store.partition(topic.id, partition);
            let log = log.map_err(|source| CopyError::Open { partition, source })?;
            let mut records = records.into_iter().peekable();
            while records.peek().is_some() {
                let (mut builder, mut size) = (BatchBuilder::new(BatchOptions::default())?, 0);
                while let Some((key, value)) = records.next_if(|_| size < BATCH_BYTES) {
                    size += key.len() + value.as_ref().map_or(0, Bytes::len);
                    builder.append(now_ms, Some(&key), value.as_deref(), &[])?;
                }
                let batch = CheckedBatch::of_own(builder.finish(None)?);
                let batch = batch.expect("a batch that was just made is whole");
                log.append(batch, LEADER_EPOCH).map_err(|source| CopyError::Append { partition, source })?;
            }
        }
        Ok(())
    }
}

fn hashes(records: &GroupRecords) -> BTreeMap<Bytes, u64> {
    let hash = |(key, value): (&Bytes, &Bytes)| {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        (key.clone(), hasher.finish())
    };
    records.records.iter().map(hash).collect()
}
