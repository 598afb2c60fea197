//! Topics as the broker sees them: their names, their settings, how they are made.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::oneshot;

use super::Broker;
use super::config::{ConfigError, Overrides, Resource, TopicSettings};
use super::configs::config_code;
use crate::protocol::{ErrorCode, Uuid};
use crate::storage::catalog::{ResourceType, Topic};
pub use crate::storage::internal_topics::is_internal;
use crate::storage::log::PartitionLog;
use crate::storage::store::{ChangeTopicError, CreateTopicError, PartitionError, Store};
use crate::sys::Env;

/// The leader of every partition has been this node since the partition was made.
pub const LEADER_EPOCH: i32 = 0;

/// Whether a client that thinks of `epoch` as the leader's is right; -1 is one that does not say.
pub fn check_leader_epoch(epoch: i32) -> Result<(), ErrorCode> {
    match epoch {
        -1 | LEADER_EPOCH => Ok(()),
        ..LEADER_EPOCH => Err(ErrorCode::FencedLeaderEpoch),
        _ => Err(ErrorCode::UnknownLeaderEpoch),
    }
}

/// Where `epoch` of the leader ended in `log`: the latest epoch that is not above it, and the offset after its last
/// record; -1 and -1 where nothing is known. The leader's own epoch is known from the start, also of an empty log.
pub fn end_offset_for_epoch(log: &PartitionLog, epoch: i32) -> (i32, i64) {
    let own = || (epoch == LEADER_EPOCH).then(|| (LEADER_EPOCH, log.offsets().end));
    log.end_offset_for_epoch(epoch).or_else(own).unwrap_or((-1, -1))
}

/// The log of a partition, opened if it was not. A partition that cannot be opened answers KAFKA_STORAGE_ERROR.
pub async fn open_log(
    env: &Env,
    store: &Arc<Store>,
    topic: Uuid,
    partition: i32,
) -> Result<Arc<PartitionLog>, ErrorCode> {
    if let Some(log) = store.open_partition(topic, partition) {
        return Ok(log);
    }
    let store = store.clone();
    let open = move || store.partition(topic, partition).map_err(|error| not_open(&error));
    blocking(env, open).await?
}

/// Runs what may block on a thread that is there for it.
pub async fn blocking<T: Send + 'static>(env: &Env, work: impl FnOnce() -> T + Send + 'static) -> Result<T, ErrorCode> {
    let (sender, done) = oneshot::channel();
    env.workers.spawn(Box::new(move || drop(sender.send(work()))));
    // The only way to lose the answer is a panic in the work.
    done.await.map_err(|_| ErrorCode::UnknownServerError)
}

/// A topic with the settings that are in force for it.
#[derive(Clone, Debug)]
pub struct TopicRef {
    pub topic: Arc<Topic>,
    pub settings: Arc<TopicSettings>,
}

/// Settings by topic, so that a produce need not work them out. Shared between threads.
#[derive(Debug, Default)]
pub struct TopicCache(RwLock<HashMap<Uuid, TopicRef>>);

impl TopicCache {
    pub fn get(&self, broker: &Broker, topic: &Arc<Topic>) -> Result<TopicRef, ErrorCode> {
        if let Some(cached) = self.0.read().get(&topic.id).filter(|cached| Arc::ptr_eq(&cached.topic, topic)) {
            return Ok(cached.clone());
        }
        // Under the lock, so that a change of configs that clears the cache meanwhile cannot be overtaken by what was
        // worked out before it.
        let mut cache = self.0.write();
        let settings = Arc::new(settings(broker, &topic.name));
        let found = TopicRef { topic: topic.clone(), settings };
        cache.insert(topic.id, found.clone());
        Ok(found)
    }

    /// To be called after configs have changed and after topics were deleted.
    pub fn clear(&self) {
        self.0.write().clear();
    }
}

/// What is set on a topic.
pub fn overrides(broker: &Broker, topic: &str) -> Overrides {
    let configs = broker.store().catalog().configs();
    configs.get(ResourceType::Topic, topic).map(|configs| (**configs).clone()).unwrap_or_default()
}

/// What is in force for a topic. Configs were checked when they were set; one that does not go with what was set since is
/// named in the log.
fn settings(broker: &Broker, topic: &str) -> TopicSettings {
    let (settings, wrong) = TopicSettings::stored(&broker.config(), &overrides(broker, topic));
    for error in wrong {
        tracing::error!(topic, "a config of the topic is not in force: {error}");
    }
    settings
}

/// Why a topic could not be made or changed, for the client.
#[derive(Clone, Debug)]
pub struct Refused {
    pub code: ErrorCode,
    pub message: String,
}

impl Refused {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Refused { code, message: message.into() }
    }

    /// The message for the wire. `None` where the code says it all.
    pub fn into_message(self) -> Option<String> {
        Some(self.message).filter(|message| !message.is_empty())
    }

    pub fn of_config(error: &ConfigError, resource: &Resource) -> Self {
        Refused::new(config_code(error, resource), error.to_string())
    }
}

/// The longest name; with the partition's number and what is added at a deletion it has to fit a file name.
const MAX_NAME: usize = 249;

/// Whether a topic may have this name: ASCII letters, digits, dots, underscores and dashes.
pub fn check_name(name: &str) -> Result<(), Refused> {
    let why = match name {
        "" => "the empty string is not allowed".to_owned(),
        "." | ".." => format!("'{name}' is not allowed"),
        _ if name.len() > MAX_NAME => {
            format!("the length of '{name}' is longer than the max allowed length {MAX_NAME}")
        }
        _ if name.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_".contains(&b)) => return Ok(()),
        _ => format!("'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
    };
    Err(Refused::new(ErrorCode::InvalidTopicException, format!("Topic name is invalid: {why}")))
}

/// A topic to be made.
#[derive(Clone, Debug)]
pub struct Creation {
    pub name: String,
    /// -1 is `num.partitions`.
    pub partitions: i32,
    /// -1 is 1, whatever `default.replication.factor` says.
    pub replication_factor: i16,
    pub configs: Overrides,
}

impl Creation {
    /// As a topic that is made because a client asks for it.
    pub fn by_default(name: &str) -> Self {
        Creation { name: name.into(), partitions: -1, replication_factor: -1, configs: Overrides::new() }
    }
}

/// The most partitions that one request can make.
const MAX_PARTITIONS_AT_ONCE: i32 = 10_000;

/// Checks what can be checked without making the topic. Answers how many partitions it gets.
pub fn check(broker: &Broker, creation: &Creation) -> Result<i32, Refused> {
    let name = creation.name.as_str();
    check_name(name)?;
    let topics = broker.topics();
    if topics.by_name(name).is_some() {
        return Err(Refused::new(ErrorCode::TopicAlreadyExists, format!("Topic '{name}' already exists.")));
    }
    // Where names of metrics are made of topics, dots become underscores; Kafka lets no two be alike then.
    let plain = name.replace('.', "_");
    if name.contains(['.', '_'])
        && let Some(other) = topics.iter().find(|other| other.name.replace('.', "_") == plain)
    {
        let message = format!("Topic '{name}' collides with existing topic: {}", other.name);
        return Err(Refused::new(ErrorCode::InvalidTopicException, message));
    }
    let config = broker.config();
    let partitions = match creation.partitions {
        -1 => config.int("num.partitions"),
        n => n,
    };
    if partitions < 1 {
        let message = "Number of partitions was set to an invalid non-positive value.";
        return Err(Refused::new(ErrorCode::InvalidPartitions, message));
    }
    if partitions > MAX_PARTITIONS_AT_ONCE {
        let message = "Excessively large number of partitions per request.";
        return Err(Refused::new(ErrorCode::PolicyViolation, message));
    }
    match creation.replication_factor {
        -1 | 1 => {}
        ..=0 => {
            let message = "Replication factor must be larger than 0, or -1 to use the default value.";
            return Err(Refused::new(ErrorCode::InvalidReplicationFactor, message));
        }
        n => {
            let message = format!(
                "Unable to replicate the partition {n} time(s): The target replication factor of {n} cannot be reached \
                 because only 1 broker(s) are registered."
            );
            return Err(Refused::new(ErrorCode::InvalidReplicationFactor, message));
        }
    }
    TopicSettings::new(&config, &creation.configs)
        .map_err(|error| Refused::of_config(&error, &Resource::Topic(name.into())))?;
    Ok(partitions)
}

/// Makes a topic; it is complete and durable when this answers.
pub async fn create(broker: &Arc<Broker>, creation: Creation) -> Result<Arc<Topic>, Refused> {
    let partitions = check(broker, &creation)?;
    let this = broker.clone();
    broker
        .blocking(move || {
            let id = Uuid::random(&*this.env().random);
            let configs = creation.configs.into_iter().collect();
            this.store().create_topic(&creation.name, id, partitions, configs).map_err(|error| not_created(&error))
        })
        .await
        .map_err(|code| Refused::new(code, "the topic could not be made"))?
}

/// What a client is told when a topic is not made or not given more partitions.
pub fn not_created(error: &CreateTopicError) -> Refused {
    let code = match error {
        CreateTopicError::InvalidName | CreateTopicError::CaseCollision { .. } => ErrorCode::InvalidTopicException,
        CreateTopicError::InvalidPartitions => ErrorCode::InvalidPartitions,
        CreateTopicError::Exists => ErrorCode::TopicAlreadyExists,
        CreateTopicError::UnknownTopic => ErrorCode::UnknownTopicOrPartition,
        CreateTopicError::DirectoryInUse { .. }
        | CreateTopicError::Dir(_)
        | CreateTopicError::Catalog(_)
        | CreateTopicError::Closed => {
            tracing::error!("a topic was not made: {error}");
            ErrorCode::KafkaStorageError
        }
    };
    Refused::new(code, error.to_string())
}

/// What a client is told when a topic is not deleted.
pub fn not_deleted(error: &ChangeTopicError) -> Refused {
    let code = match error {
        ChangeTopicError::UnknownTopic => ErrorCode::UnknownTopicOrPartition,
        ChangeTopicError::Catalog(_) | ChangeTopicError::Closed => {
            tracing::error!("a topic was not deleted: {error}");
            ErrorCode::KafkaStorageError
        }
    };
    Refused::new(code, error.to_string())
}

/// What a client is told of a partition that cannot be opened. The store has said why in the log.
pub fn not_open(error: &PartitionError) -> ErrorCode {
    match error {
        PartitionError::Unknown => ErrorCode::UnknownTopicOrPartition,
        _ => ErrorCode::KafkaStorageError,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Apache Kafka 4.3.1 answers to CreateTopics.
    #[test]
    fn names_are_refused_in_kafkas_words() {
        let message = |name: &str| check_name(name).unwrap_err().message;
        assert_eq!(message(""), "Topic name is invalid: the empty string is not allowed");
        assert_eq!(message("."), "Topic name is invalid: '.' is not allowed");
        assert_eq!(message(".."), "Topic name is invalid: '..' is not allowed");
        let bad = "Topic name is invalid: 'b x' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'";
        assert_eq!(message("b x"), bad);
        assert!(message(&"x".repeat(250)).ends_with("is longer than the max allowed length 249"));
        for good in ["a", "A.b_c-9", "...", &"x".repeat(249)] {
            assert!(check_name(good).is_ok(), "{good}");
        }
    }
}
