//! Making, growing and deleting topics, and their configs.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Store;
use super::dirs::{Dirs, Leftover};
use super::error::{ChangeTopicError, CreateTopicError, DirError};
use super::parallel::parallel;
use crate::protocol::Uuid;
use crate::storage::catalog::{CatalogError, ConfigMap, Mutation, ResourceType, Topic};
use crate::storage::internal_topics::is_internal;
use crate::storage::names;

/// A topic to be made.
#[derive(Clone, Debug)]
pub struct NewTopic {
    pub name: String,
    /// One that no topic ever had.
    pub id: Uuid,
    /// At least 1.
    pub partitions: i32,
    pub configs: ConfigMap,
}

/// A change of one config; `None` takes the value back.
pub type ConfigChange = (String, Option<String>);

/// Partitions whose directories are to be made, and what came of it.
struct Making {
    topic: Topic,
    from: i32,
    configs: ConfigMap,
    made: Vec<PathBuf>,
}

impl Store {
    /// Makes a topic. Once this is answered with `Ok` the topic is there whatever happens.
    pub fn create_topic(
        &self,
        name: &str,
        id: Uuid,
        partitions: i32,
        configs: ConfigMap,
    ) -> Result<Arc<Topic>, CreateTopicError> {
        let topic = NewTopic { name: name.to_owned(), id, partitions, configs };
        self.create_topics(vec![topic]).pop().expect("there is an answer for each topic")
    }

    /// Makes topics, each by itself, at little more than the cost of one. Answers in order.
    pub fn create_topics(&self, topics: Vec<NewTopic>) -> Vec<Result<Arc<Topic>, CreateTopicError>> {
        let _admin = self.admin.lock();
        let known = self.topics();
        let mut names = HashSet::new();
        let making = topics.into_iter().map(|new| {
            let topic = Topic { name: new.name.as_str().into(), id: new.id, partitions: new.partitions };
            if !is_valid_name(&new.name) {
                return Err(CreateTopicError::InvalidName);
            }
            if new.partitions < 1 {
                return Err(CreateTopicError::InvalidPartitions);
            }
            if known.by_name(&new.name).is_some() || known.by_id(new.id).is_some() || !names.insert(new.name) {
                return Err(CreateTopicError::Exists);
            }
            Ok(Making { topic, from: 0, configs: new.configs, made: Vec::new() })
        });
        let making = making.collect();
        self.make(making)
    }

    /// Gives a topic more partitions, so that it has `partitions`.
    pub fn add_partitions(&self, name: &str, partitions: i32) -> Result<Arc<Topic>, CreateTopicError> {
        let _admin = self.admin.lock();
        let topics = self.topics();
        let topic = topics.by_name(name).ok_or(CreateTopicError::UnknownTopic)?;
        if partitions <= topic.partitions {
            return Err(CreateTopicError::InvalidPartitions);
        }
        let grown = Topic { partitions, ..Topic::clone(topic) };
        let making = Making { topic: grown, from: topic.partitions, configs: ConfigMap::new(), made: Vec::new() };
        self.make(vec![Ok(making)]).pop().expect("there is an answer for each topic")
    }

    fn make(&self, mut making: Vec<Result<Making, CreateTopicError>>) -> Vec<Result<Arc<Topic>, CreateTopicError>> {
        if self.closed.load(Ordering::Acquire) {
            return making.into_iter().map(|_| Err(CreateTopicError::Closed)).collect();
        }
        if let Err(error) = self.catalog.takes_changes() {
            // An earlier attempt at one of these topics may be what the next start finds in the catalog: its directories
            // have to stay as they are.
            return making.into_iter().map(|making| making.and(Err(error.clone().into()))).collect();
        }
        self.make_dirs(&mut making);
        if making.iter().flatten().any(|making| !making.made.is_empty())
            && let Err(error) = self.dirs.sync()
        {
            let error = Arc::new(error);
            self.give_up(&mut making, || error.clone().into());
        }
        let batch: Vec<Mutation> = making.iter().flatten().flat_map(Making::mutations).collect();
        if !batch.is_empty()
            && let Err(error) = self.catalog.commit_blocking(batch)
        {
            if matches!(error, CatalogError::Poisoned { .. }) {
                // The topics may turn out to be there at the next start, which removes the directories if they are not.
                making.iter_mut().flatten().for_each(|making| making.made.clear());
            }
            self.give_up(&mut making, || error.clone().into());
        }
        let topics = self.topics();
        let mut trust = self.trust.lock();
        making
            .into_iter()
            .map(|making| {
                let making = making?;
                for partition in making.from..making.topic.partitions {
                    trust.add(&names::partition_dir(&making.topic.name, partition));
                }
                Ok(topics.by_name(&making.topic.name).cloned().unwrap_or_else(|| Arc::new(making.topic)))
            })
            .collect()
    }

    /// Makes the directories, of all topics at once. A topic of which one cannot be made becomes an error.
    fn make_dirs(&self, making: &mut [Result<Making, CreateTopicError>]) {
        let mut wanted = Vec::new();
        for (i, making) in making.iter().enumerate() {
            let Ok(making) = making else { continue };
            let name = &making.topic.name;
            if is_internal(name) {
                continue;
            }
            wanted
                .extend((making.from..making.topic.partitions).map(|n| (i, self.dirs.path(name, n), making.topic.id)));
        }
        let wanted = Arc::new(wanted);
        let results = {
            let (dirs, wanted) = (self.dirs.clone(), wanted.clone());
            parallel(&*self.dirs.env.workers, wanted.len(), move |n| dirs.make(&wanted[n].1, wanted[n].2))
        };
        let mut failed = Vec::new();
        for ((i, dir, id), result) in wanted.iter().zip(results) {
            let result = match result {
                Err(e) if e.source.kind() == io::ErrorKind::AlreadyExists => self.make_despite(&making[*i], dir, *id),
                other => other.map_err(CreateTopicError::from),
            };
            match result {
                Ok(()) => {
                    if let Ok(making) = &mut making[*i] {
                        making.made.push(dir.clone());
                    }
                }
                Err(error) => failed.push((*i, error)),
            }
        }
        for (i, error) in failed {
            if let Ok(making) = std::mem::replace(&mut making[i], Err(error)) {
                making.made.iter().for_each(|dir| self.dirs.discard(dir));
            }
        }
    }

    /// Makes a directory where there is one: that of an earlier attempt, or of another topic.
    fn make_despite(
        &self,
        making: &Result<Making, CreateTopicError>,
        dir: &Path,
        id: Uuid,
    ) -> Result<(), CreateTopicError> {
        let Ok(making) = making else { return Ok(()) };
        let name = &making.topic.name;
        if let Some(existing) = self.other_case_of(dir)? {
            return Err(CreateTopicError::CaseCollision { existing });
        }
        let deletions = self.catalog.deletions()?;
        match self.dirs.examine(dir, |id| deletions.iter().any(|topic| topic.id == id))? {
            Leftover::HalfMade => Ok(self.dirs.write_metadata(dir, id)?),
            Leftover::Deleted(_) => {
                let partition = dir.file_name().and_then(names::parse_partition_dir);
                let Some(names::PartitionDir::Live { partition, .. }) = partition else {
                    return Err(CreateTopicError::DirectoryInUse { path: dir.to_owned() });
                };
                let gone = self.dirs.rename_deleted(name, partition)?;
                if let Err(error) = self.dirs.remove_deleted(&gone) {
                    tracing::warn!(%error, source = %error.source, "a deleted partition is still there");
                }
                Ok(self.dirs.make(dir, id)?)
            }
            Leftover::Unknown => Err(CreateTopicError::DirectoryInUse { path: dir.to_owned() }),
        }
    }

    /// The topic whose directory stands in the place of `dir`, where the file system takes two names for one.
    fn other_case_of(&self, dir: &Path) -> Result<Option<String>, DirError> {
        let data_dir = &self.dirs.data_dir;
        let entries = self.dirs.env.fs.list(data_dir).map_err(DirError::of("list", data_dir))?;
        let name = dir.file_name().unwrap_or_default();
        if entries.iter().any(|entry| entry.name == name) {
            return Ok(None);
        }
        let other = entries.iter().find(|entry| entry.name.eq_ignore_ascii_case(name));
        Ok(match other.and_then(|entry| names::parse_partition_dir(&entry.name)) {
            Some(names::PartitionDir::Live { topic, .. }) => Some(topic),
            _ => None,
        })
    }

    fn give_up(&self, making: &mut [Result<Making, CreateTopicError>], error: impl Fn() -> CreateTopicError) {
        for making in making.iter_mut().filter(|making| making.is_ok()) {
            if let Ok(making) = std::mem::replace(making, Err(error())) {
                making.made.iter().for_each(|dir| self.dirs.discard(dir));
            }
        }
    }

    /// Deletes a topic. Once this is answered with `Ok` it is gone, and so are its files, or at least their names; what of
    /// them could not be removed is removed at the next start.
    pub fn delete_topic(&self, name: &str) -> Result<Arc<Topic>, ChangeTopicError> {
        self.delete_topics(&[name]).pop().expect("there is an answer for each topic")
    }

    /// Deletes topics, each by itself, at little more than the cost of one. Answers in order.
    pub fn delete_topics(&self, names: &[&str]) -> Vec<Result<Arc<Topic>, ChangeTopicError>> {
        let _admin = self.admin.lock();
        if self.closed.load(Ordering::Acquire) {
            return names.iter().map(|_| Err(ChangeTopicError::Closed)).collect();
        }
        let topics = self.topics();
        let mut seen = HashSet::new();
        let mut answers = Vec::new();
        for name in names {
            let topic = topics.by_name(name).filter(|topic| seen.insert(topic.id));
            answers.push(topic.cloned().ok_or(ChangeTopicError::UnknownTopic));
        }
        let deleted: Vec<Arc<Topic>> = answers.iter().flatten().cloned().collect();
        if deleted.is_empty() {
            return answers;
        }
        let batch = deleted.iter().map(|topic| Mutation::DeleteTopic { name: topic.name.clone() }).collect();
        if let Err(error) = self.catalog.commit_blocking(batch) {
            for answer in answers.iter_mut().filter(|answer| answer.is_ok()) {
                *answer = Err(error.clone().into());
            }
            return answers;
        }
        let forget = self.remove_files(&deleted);
        if !forget.is_empty() {
            // Nobody has to wait for that: until it is durable, a start looks once more for what is gone.
            self.catalog.commit(forget, Box::new(|_| {}));
        }
        answers
    }

    /// Removes the files of deleted topics. Answers what to tell the catalog.
    fn remove_files(&self, deleted: &[Arc<Topic>]) -> Vec<Mutation> {
        let partitions = deleted.iter().flat_map(|topic| (0..topic.partitions).map(move |n| (topic.clone(), n)));
        let slots: Vec<_> = partitions.map(|(topic, n)| (self.slot_of_deleted(topic.id, n), topic, n)).collect();
        let slots = Arc::new(slots);
        let results = {
            let (dirs, slots) = (self.dirs.clone(), slots.clone());
            parallel(&*self.dirs.env.workers, slots.len(), move |i| {
                let (slot, topic, n) = &slots[i];
                // Whoever is about to open it looks into the catalog again, under this lock.
                let _opening = slot.opening.lock();
                remove_partition(&dirs, slot.log.get(), topic, *n)
            })
        };
        let mut left = HashSet::new();
        let mut renamed = Vec::new();
        for ((_, topic, n), result) in slots.iter().zip(results) {
            self.forget_slot(topic.id, *n);
            match result {
                Ok(to) => renamed.extend(to),
                Err(error) => {
                    tracing::warn!(
                        topic = &*topic.name,
                        partition = n,
                        error,
                        "the files of a deleted partition are left"
                    );
                    left.insert(topic.id);
                }
            }
        }
        if let Err(error) = self.dirs.sync() {
            tracing::warn!(%error, source = %error.source, "the files of deleted topics may come back, and go at the next start");
            return Vec::new();
        }
        let dirs = self.dirs.clone();
        parallel(&*self.dirs.env.workers, renamed.len(), move |i| {
            if let Err(error) = dirs.remove_deleted(&renamed[i]) {
                tracing::warn!(%error, source = %error.source, "a deleted partition is left, and goes at the next start");
            }
        });
        let gone = deleted.iter().filter(|topic| !left.contains(&topic.id));
        gone.map(|topic| Mutation::ForgetDeletion { topic_id: topic.id }).collect()
    }

    /// Changes configs of a topic, durably, and has its open logs follow them.
    pub fn alter_topic_configs(&self, name: &str, changes: Vec<ConfigChange>) -> Result<(), ChangeTopicError> {
        {
            let _admin = self.admin.lock();
            if self.closed.load(Ordering::Acquire) {
                return Err(ChangeTopicError::Closed);
            }
            if self.topics().by_name(name).is_none() {
                return Err(ChangeTopicError::UnknownTopic);
            }
            let set = |(key, value)| Mutation::SetConfig {
                resource_type: ResourceType::Topic,
                name: name.to_owned(),
                key,
                value,
            };
            self.catalog.commit_blocking(changes.into_iter().map(set).collect())?;
        }
        self.refresh_log_configs(Some(name));
        Ok(())
    }
}

impl Making {
    fn mutations(&self) -> Vec<Mutation> {
        let config = |(key, value): (&String, &String)| Mutation::SetConfig {
            resource_type: ResourceType::Topic,
            name: self.topic.name.to_string(),
            key: key.clone(),
            value: Some(value.clone()),
        };
        [Mutation::PutTopic(self.topic.clone())].into_iter().chain(self.configs.iter().map(config)).collect()
    }
}

/// Answers the directory that is still to be removed, if there is one.
fn remove_partition(
    dirs: &Dirs,
    log: Option<&Arc<crate::storage::log::PartitionLog>>,
    topic: &Topic,
    partition: i32,
) -> Result<Option<PathBuf>, String> {
    if let Some(log) = log {
        return log.delete().map(|()| None).map_err(|error| error.to_string());
    }
    match dirs.rename_deleted(&topic.name, partition) {
        Ok(to) => Ok(Some(to)),
        Err(DirError { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{error}: {}", error.source)),
    }
}

fn is_valid_name(name: &str) -> bool {
    let valid = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    (1..=249).contains(&name.len()) && name != "." && name != ".." && name.bytes().all(valid)
}
