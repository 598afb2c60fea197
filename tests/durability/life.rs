//! One life of a process on a simulated disk: what it does with the store, what it is told, and what it finds.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use doze::protocol::Uuid;
use doze::record::{BatchBuilder, BatchOptions, Batches, CheckedBatch};
use doze::storage::catalog::{CatalogError, CommittedOffset, ConfigMap, Mutation, ResourceType};
use doze::storage::log::{AppendError, Isolation, LogConfig, PartitionLog, SyncError};
use doze::storage::store::{
    ChangeTopicError, CreateTopicError, DeleteRecordsError, OpenStoreError, Store, StoreConfig,
};
use doze::sys::sim::{START_MS, SimEnv, SimFileSystem};

use crate::model::{Before, Keyed, Known, LogModel, Model, Policy, Sent, TopicState};

pub struct Life<'a> {
    pub sim: SimEnv,
    pub store: Arc<Store>,
    pub model: &'a mut Model,
}

fn store_config() -> StoreConfig {
    StoreConfig {
        data_dir: PathBuf::from("/data"),
        meta_db: None,
        log_config: Arc::new(|configs: &ConfigMap| LogConfig {
            segment_bytes: configs.get("segment.bytes").map_or(1 << 20, |bytes| bytes.parse().unwrap()),
            index_interval_bytes: 200,
            retention_ms: configs.get("retention.ms").map_or(-1, |ms| ms.parse().unwrap()),
            retention_bytes: configs.get("retention.bytes").map_or(-1, |bytes| bytes.parse().unwrap()),
            compact: policy_of(configs) == Policy::Compact,
            delete: policy_of(configs) != Policy::Compact,
            min_cleanable_dirty_ratio: 0.0,
            delete_retention_ms: 0,
            ..LogConfig::default()
        }),
    }
}

fn policy_of(configs: &ConfigMap) -> Policy {
    match configs.get("cleanup.policy").map(String::as_str) {
        Some("compact") => Policy::Compact,
        _ if configs.contains_key("retention.bytes") => Policy::Retain,
        _ => Policy::Keep,
    }
}

/// Whether the outcome of a failed change is open.
fn is_open(error: &CatalogError) -> bool {
    matches!(error, CatalogError::Poisoned { .. })
}

/// A batch of these records.
pub fn sent(records: Vec<Keyed>, number: u64, options: BatchOptions) -> Sent {
    let mut builder = BatchBuilder::new(options).unwrap();
    for (key, value) in &records {
        builder.append(START_MS + number as i64, Some(key), value.as_deref(), &[]).unwrap();
    }
    let bytes: Bytes = builder.finish(None).unwrap();
    let tail = bytes.slice(17..);
    Sent { batch: CheckedBatch::of_own(bytes).unwrap(), records, tail }
}

impl<'a> Life<'a> {
    /// Starts on the disk, and looks at everything that is there.
    pub fn start(seed: u64, fs: SimFileSystem, model: &'a mut Model, before: Before) -> Result<Self, OpenStoreError> {
        let (_, mut sim) = SimEnv::new(seed);
        sim.fs = fs;
        for log in model.logs.values_mut().filter(|log| log.restarted != Some(Before::AnyLost)) {
            log.restarted = Some(before);
        }
        let store = Arc::new(Store::open(sim.env(), store_config())?);
        let mut life = Life { sim, store, model };
        life.look();
        Ok(life)
    }

    /// The machine has failed, or is made to: errors are to be expected, and say nothing.
    pub fn is_troubled(&self) -> bool {
        self.sim.fs.total_injected() > 0 || self.sim.fs.has_stopped()
    }

    /// An error where nothing fails is one of doze.
    pub fn expect_trouble(&self, error: &dyn std::fmt::Display, doing: &str) {
        assert!(self.is_troubled(), "{doing}: {error}");
    }

    /// The log of a partition, which was looked at since the start. `None` if that is not possible now.
    pub fn log(&mut self, topic: &str, partition: i32) -> Option<(Uuid, Arc<PartitionLog>)> {
        let id = self.model.topic(topic)?.id;
        match self.store.partition(id, partition) {
            Ok(log) => {
                let known = self.model_log(id, partition).restarted.is_none();
                (known || self.look_at_log(topic, id, partition, &log)).then_some((id, log))
            }
            Err(error) => {
                self.expect_trouble(&error, "opening a partition");
                None
            }
        }
    }

    pub fn model_log(&mut self, id: Uuid, partition: i32) -> &mut LogModel {
        self.model.logs.get_mut(&(id, partition)).expect("it was made with its topic")
    }

    /// Compares everything with what was acknowledged.
    fn look(&mut self) {
        let cluster_id = self.store.catalog().cluster_id().to_owned();
        let known = self.model.cluster_id.get_or_insert_with(|| cluster_id.clone());
        assert_eq!(*known, cluster_id, "the cluster id");
        let topics = self.store.topics();
        assert!(topics.iter().all(|topic| self.model.topics.contains_key(&*topic.name)), "a topic nobody made");
        assert_eq!(self.store.unknown_directories(), [] as [PathBuf; 0]);
        for (name, known) in &mut self.model.topics {
            let configs = self.store.catalog().configs().get(ResourceType::Topic, name).cloned();
            let found = topics.by_name(name).map(|topic| TopicState {
                id: topic.id,
                partitions: topic.partitions,
                configs: configs.map(|configs| (*configs).clone()).unwrap_or_default(),
            });
            known.found(found, &format!("topic {name}"));
        }
        self.look_at_logs();
        for ((group, topic, partition), known) in &mut self.model.offsets {
            match self.store.catalog().offset(group, topic, *partition) {
                Ok(found) => {
                    known.found(found.map(|offset| offset.offset), &format!("{group}'s offset in {topic}-{partition}"));
                }
                Err(error) => assert!(self.sim.fs.total_injected() > 0 || self.sim.fs.has_stopped(), "{error}"),
            }
        }
    }

    /// Compares a log with what it took. Where it was opened anew, what it did not acknowledge may be gone. Answers
    /// whether it could be read.
    fn look_at_log(&mut self, name: &str, id: Uuid, partition: i32, log: &PartitionLog) -> bool {
        let what = format!("{name}-{partition}");
        let troubled = self.is_troubled();
        let model = self.model.logs.get_mut(&(id, partition)).expect("it was made with its topic");
        let restarted = model.restarted;
        let offsets = log.offsets();
        if model.policy == Policy::Retain {
            // It may go on at any sweep, and never back.
            assert!(offsets.start >= *model.start.sure(), "{what}: it starts at {}", offsets.start);
            model.start.acknowledge(offsets.start);
        } else if restarted.is_some() {
            model.start.found(offsets.start, &format!("{what}: log start"));
        } else if model.start.is_sure() {
            assert_eq!(offsets.start, *model.start.sure(), "{what}: log start");
        }
        if model.policy == Policy::Compact {
            return self.look_at_compacted(&what, id, partition, log);
        }
        let mut found = BTreeMap::new();
        let mut next = offsets.start;
        while next < offsets.end {
            let bytes = log.read(next, 1 << 20, true, Isolation::ReadUncommitted).and_then(|result| {
                result.range.map_or(Ok(Vec::new()), |range| {
                    range.read().map_err(|source| {
                        let (action, path) = ("read".into(), what.clone().into());
                        doze::storage::log::FileError { action, path, source }.into()
                    })
                })
            });
            let bytes = match bytes {
                Ok(bytes) if bytes.is_empty() => break,
                Ok(bytes) => bytes,
                Err(error) => {
                    assert!(troubled || self.sim.fs.total_injected() > 0, "{what}: {error}");
                    return false;
                }
            };
            let from = next;
            for batch in Batches::new(&bytes) {
                let header = *batch.header();
                assert!(header.last_offset() >= next, "{what}: {header:?} after offset {next}");
                batch.verify_crc().unwrap_or_else(|error| panic!("{what}: offset {}: {error}", header.base_offset));
                found.insert(header.base_offset, batch.bytes()[17..header.size_in_bytes()].to_vec());
                next = header.last_offset() + 1;
            }
            if next == from {
                // The pages of a flush that failed may read as zeros.
                assert!(log.is_offline().is_some(), "{what}: what is at {next} is no batch");
                break;
            }
        }
        for (offset, tail) in &found {
            let entry = model.entries.get(offset);
            let entry = entry.unwrap_or_else(|| panic!("{what}: at offset {offset} is a batch that it never took"));
            assert!(entry.sent.tail == *tail, "{what}: other bytes at offset {offset}");
        }
        let must_have_all = match restarted {
            Some(before) => before == Before::AllKept,
            None => log.is_offline().is_none(),
        };
        for (offset, entry) in &model.entries {
            let wanted = (entry.sure || must_have_all) && entry.last_offset >= offsets.start;
            assert!(
                !wanted || found.contains_key(offset),
                "{what}: LOST offset {offset}, {}; the log has {offsets:?}, found {:?}",
                if entry.sure { "acknowledged" } else { "written and not cut off from power" },
                found.keys()
            );
        }
        assert!(offsets.end >= model.sure_end() && offsets.end <= model.end.max(offsets.start), "{what}: {offsets:?}");
        assert!(!must_have_all || offsets.end == model.end, "{what}: {offsets:?}, it should end at {}", model.end);
        if restarted.is_some() {
            model.entries.retain(|offset, entry| found.contains_key(offset) || entry.last_offset < offsets.start);
            model.end = offsets.end;
            model.restarted = None;
        }
        true
    }

    /// Looks at the logs as they are now.
    pub fn look_at_logs(&mut self) {
        let topics: Vec<(String, TopicState)> =
            self.model.topics.iter().filter_map(|(n, t)| Some((n.clone(), t.sure().clone()?))).collect();
        for (name, topic) in &topics {
            for partition in 0..topic.partitions {
                if let Some((_, log)) = self.log(name, partition) {
                    self.look_at_log(name, topic.id, partition, &log);
                }
            }
        }
    }

    pub fn create_topic(&mut self, name: &str, partitions: i32, configs: &[(&str, &str)]) {
        self.model.topics_made += 1;
        let mut id = [7; 16];
        id[..8].copy_from_slice(&self.model.topics_made.to_be_bytes());
        let configs: ConfigMap = configs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let state = TopicState { id: Uuid(id), partitions, configs: configs.clone() };
        let result = self.store.create_topic(name, state.id, partitions, configs);
        for partition in 0..partitions {
            self.model.logs.entry((state.id, partition)).or_default().policy = policy_of(&state.configs);
        }
        let open = matches!(&result, Err(CreateTopicError::Catalog(error)) if is_open(error));
        self.change_topic(name, Some(state), result.map(|_| ()), open);
    }

    pub fn add_partitions(&mut self, name: &str, partitions: i32) {
        let Some(state) = self.model.topic(name).cloned() else { return };
        let result = self.store.add_partitions(name, partitions);
        for partition in 0..partitions {
            self.model.logs.entry((state.id, partition)).or_default();
        }
        let open = matches!(&result, Err(CreateTopicError::Catalog(error)) if is_open(error));
        self.change_topic(name, Some(TopicState { partitions, ..state }), result.map(|_| ()), open);
    }

    pub fn alter_topic(&mut self, name: &str, key: &str, value: &str) {
        let Some(mut state) = self.model.topic(name).cloned() else { return };
        state.configs.insert(key.to_owned(), value.to_owned());
        let result = self.store.alter_topic_configs(name, vec![(key.to_owned(), Some(value.to_owned()))]);
        let open = matches!(&result, Err(ChangeTopicError::Catalog(error)) if is_open(error));
        self.change_topic(name, Some(state), result, open);
    }

    pub fn delete_topic(&mut self, name: &str) {
        if self.model.topic(name).is_none() {
            return;
        }
        let result = self.store.delete_topic(name).map(|_| ());
        self.sim.workers.run_until_idle();
        let open = matches!(&result, Err(ChangeTopicError::Catalog(error)) if is_open(error));
        let offsets = self.model.offsets.iter_mut().filter(|((_, topic, _), _)| topic == name);
        for (_, known) in offsets {
            match &result {
                Ok(()) => known.acknowledge(None),
                Err(_) => known.maybe(None),
            }
        }
        self.change_topic(name, None, result, open);
    }

    fn change_topic<E: std::fmt::Display>(
        &mut self,
        name: &str,
        to: Option<TopicState>,
        result: Result<(), E>,
        open: bool,
    ) {
        let stopped = self.sim.fs.has_stopped();
        if let Err(error) = &result {
            self.expect_trouble(error, name);
        }
        let known = self.model.topics.entry(name.to_owned()).or_insert_with(|| Known::new(None));
        match result {
            Ok(()) => {
                known.acknowledge(to);
                self.model.acknowledged += 1;
            }
            Err(_) if open || stopped => known.maybe(to),
            Err(_) => {}
        }
    }

    fn batch(&mut self, partition: i32, records: usize, sequence: Option<i32>) -> Sent {
        self.model.batches += 1;
        let number = self.model.batches;
        let options = match sequence {
            Some(base_sequence) => BatchOptions {
                producer_id: 1000 + i64::from(partition),
                producer_epoch: 0,
                base_sequence,
                ..BatchOptions::default()
            },
            None => BatchOptions::default(),
        };
        let value = |i| vec![number as u8; 30 + (number as usize * 7 + i) % 60];
        let key = |i| vec![(number as usize + i) as u8 % 4];
        sent((0..records).map(|i| (key(i), Some(value(i)))).collect(), number, options)
    }

    /// The number of the next batch.
    pub fn next_number(&mut self) -> u64 {
        self.model.batches += 1;
        self.model.batches
    }

    /// Appends without waiting for a flush, as at acks=1.
    pub fn append(&mut self, topic: &str, partition: i32, records: usize) {
        let Some((id, log)) = self.log(topic, partition) else { return };
        let sent = self.batch(partition, records, None);
        self.append_to(id, partition, &log, sent);
    }

    pub fn append_to(&mut self, id: Uuid, partition: i32, log: &PartitionLog, sent: Sent) -> Option<i64> {
        let before = log.offsets().end;
        match log.append(sent.batch.clone(), 0) {
            Ok(appended) if appended.duplicate => Some(appended.first_offset),
            Ok(appended) => {
                self.model_log(id, partition).took(appended.first_offset, appended.last_offset, sent);
                if self.model.acknowledges_early {
                    self.model_log(id, partition).flushed();
                }
                Some(appended.first_offset)
            }
            Err(error) => {
                assert!(matches!(error, AppendError::File(_) | AppendError::Offline(_)), "{error}");
                self.expect_trouble(&error, "appending");
                assert_eq!(log.offsets().end, before, "a refused append left an offset behind");
                None
            }
        }
    }

    /// Has the partitions flushed, all at the same time.
    pub fn sync(&mut self, partitions: &[(&str, i32)]) {
        let mut asked = Vec::new();
        for (topic, partition) in partitions {
            let Some((id, log)) = self.log(topic, *partition) else { continue };
            let answer: Arc<Mutex<Option<Result<(), SyncError>>>> = Arc::default();
            let put = answer.clone();
            log.sync(Box::new(move |result| *put.lock().unwrap() = Some(result)));
            asked.push((id, *partition, answer));
        }
        self.sim.workers.run_until_idle();
        for (id, partition, answer) in asked {
            match answer.lock().unwrap().take().expect("there is an answer once the workers are idle") {
                Ok(()) => {
                    self.model_log(id, partition).flushed();
                    self.model.acknowledged += 1;
                }
                Err(error) => self.expect_trouble(&error, "flushing"),
            }
        }
    }

    /// Appends and has it flushed, as at acks=all.
    pub fn produce(&mut self, topic: &str, partition: i32, records: usize) {
        self.append(topic, partition, records);
        self.sync(&[(topic, partition)]);
    }

    /// An idempotent producer sends a batch, once more if it is refused, and what it has no answer for before it.
    pub fn produce_idempotent(&mut self, topic: &str, partition: i32, records: usize) {
        let Some((id, _)) = self.log(topic, partition) else { return };
        let sequence = self.model_log(id, partition).next_sequence;
        let sent = self.batch(partition, records, Some(sequence));
        let model = self.model_log(id, partition);
        model.next_sequence += records as i32;
        model.unanswered.push(sent);
        for _ in 0..2 {
            self.retry_unanswered(topic, partition);
        }
    }

    /// The idempotent producer sends again what it has no answer for.
    pub fn retry_unanswered(&mut self, topic: &str, partition: i32) {
        let Some((id, log)) = self.log(topic, partition) else { return };
        let unanswered = self.model_log(id, partition).unanswered.clone();
        if unanswered.is_empty() {
            return;
        }
        let mut answers = Vec::new();
        for sent in &unanswered {
            let Some(offset) = self.append_to(id, partition, &log, sent.clone()) else { break };
            let entry = self.model_log(id, partition).entries.get(&offset);
            assert_eq!(entry.map(|entry| &entry.sent.tail), Some(&sent.tail), "{topic}-{partition}: {offset}");
            answers.push((offset, sent.clone()));
        }
        let before = self.model.acknowledged;
        self.sync(&[(topic, partition)]);
        if self.model.acknowledged > before && !answers.is_empty() {
            let model = self.model_log(id, partition);
            model.unanswered.drain(..answers.len());
            model.last_answered = answers.pop();
        }
    }

    /// The idempotent producer sends its last acknowledged batch again, having missed the answer.
    pub fn retry_answered(&mut self, topic: &str, partition: i32) {
        let Some((id, log)) = self.log(topic, partition) else { return };
        let model = self.model_log(id, partition);
        let Some((offset, sent)) = model.last_answered.clone() else { return };
        // A producer whose records are all deleted may be forgotten.
        if offset < *model.start.sure() || !model.unanswered.is_empty() {
            return;
        }
        let end = log.offsets().end;
        match log.append(sent.batch.clone(), 0) {
            Ok(appended) => {
                assert!(
                    appended.duplicate && appended.first_offset == offset,
                    "{topic}-{partition}: the batch at {offset} was stored a second time: {appended:?}"
                );
                assert_eq!(log.offsets().end, end);
            }
            Err(error) => self.expect_trouble(&error, "sending a batch again"),
        }
        self.sync(&[(topic, partition)]);
    }

    pub fn delete_records(&mut self, topic: &str, partition: i32, offset: i64) {
        let Some((id, log)) = self.log(topic, partition) else { return };
        let offset = offset.min(log.offsets().end);
        let result = self.store.delete_records(id, partition, offset);
        let stopped = self.sim.fs.has_stopped();
        if let Err(error) = &result {
            self.expect_trouble(error, "deleting records");
        }
        let model = self.model_log(id, partition);
        match result {
            Ok(start) => {
                model.start.acknowledge(start);
                self.model.acknowledged += 1;
            }
            Err(DeleteRecordsError::Log(_)) => model.start.acknowledge(offset),
            Err(DeleteRecordsError::Catalog(error)) if stopped || is_open(&error) => model.start.maybe(offset),
            Err(_) => {}
        }
    }

    /// Groups commit their offsets, all at the same time.
    pub fn commit(&mut self, commits: &[(&str, &str, i32, i64)]) {
        let mut asked = Vec::new();
        for (group, topic, partition, offset) in commits {
            let Some(id) = self.model.topic(topic).map(|topic| topic.id) else { continue };
            let value = CommittedOffset {
                offset: *offset,
                leader_epoch: 0,
                metadata: "m".into(),
                commit_timestamp_ms: START_MS,
                expire_timestamp_ms: None,
                topic_id: id,
            };
            let mutation = Mutation::CommitOffset {
                group: (*group).into(),
                topic: (*topic).into(),
                partition: *partition,
                offset: value,
            };
            let answer: Arc<Mutex<Option<Result<(), CatalogError>>>> = Arc::default();
            let put = answer.clone();
            self.store.catalog().commit(vec![mutation], Box::new(move |result| *put.lock().unwrap() = Some(result)));
            asked.push((((*group).to_owned(), (*topic).to_owned(), *partition), *offset, answer));
        }
        self.sim.workers.run_until_idle();
        let stopped = self.sim.fs.has_stopped();
        for (key, offset, answer) in asked {
            let known = self.model.offsets.entry(key).or_insert_with(|| Known::new(None));
            match answer.lock().unwrap().take().expect("there is an answer once the workers are idle") {
                Ok(()) => {
                    known.acknowledge(Some(offset));
                    self.model.acknowledged += 1;
                }
                Err(error) if stopped || is_open(&error) => known.maybe(Some(offset)),
                Err(error) => assert!(self.sim.fs.total_injected() > 0, "committing an offset: {error}"),
            }
        }
    }

    /// Stops in good order. Answers whether it was.
    pub fn stop(&mut self) -> bool {
        self.sim.workers.run_until_idle();
        match self.store.close() {
            Ok(()) => {
                self.model.logs.values_mut().for_each(LogModel::flushed);
                true
            }
            Err(error) => {
                self.expect_trouble(&error, "stopping");
                false
            }
        }
    }
}
