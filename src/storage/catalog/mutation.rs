//! The changes that can be made to the catalog, and what each does to the tables and to the memory image.

use std::sync::Arc;

use redb::ReadableTable;

use super::error::Failure;
use super::image::{Configs, ResourceType, Topic, Topics};
use super::offsets::CommittedOffset;
use super::tables::{META_NEXT_PRODUCER_ID, Tables, groups_with_offsets, partitions_of_topic};
use super::topics;
use crate::protocol::Uuid;

/// One change. Each says what the state is afterwards, whatever it was before, so that none can fail by itself.
#[derive(Clone, Debug)]
pub enum Mutation {
    /// A new topic, or more partitions of one that is there.
    PutTopic(Topic),
    /// Removes the topic with its configs, log start offsets and committed offsets (those that were committed for another
    /// topic of the same name stay, as in Kafka), and notes that its files are to be removed.
    DeleteTopic {
        name: Arc<str>,
    },
    /// The files of a deleted topic are gone.
    ForgetDeletion {
        topic_id: Uuid,
    },
    /// `None` removes the key.
    SetConfig {
        resource_type: ResourceType,
        name: String,
        key: String,
        value: Option<String>,
    },
    /// Removes all configs of a resource.
    ClearConfigs {
        resource_type: ResourceType,
        name: String,
    },
    CommitOffset {
        group: Arc<str>,
        topic: Arc<str>,
        partition: i32,
        offset: CommittedOffset,
    },
    DeleteOffset {
        group: Arc<str>,
        topic: Arc<str>,
        partition: i32,
    },
    /// Bytes of the group coordinator.
    PutGroup {
        group: Arc<str>,
        value: Vec<u8>,
    },
    /// Removes the group and its committed offsets.
    DeleteGroup {
        group: Arc<str>,
    },
    /// Producer ids below this may be in use.
    RaiseNextProducerId {
        to: i64,
    },
    /// The log start offset is this or a later one.
    RaiseLogStart {
        topic_id: Uuid,
        partition: i32,
        offset: i64,
    },
    /// Bytes of the transaction coordinator.
    PutTransactionalId {
        id: Arc<str>,
        value: Vec<u8>,
    },
    DeleteTransactionalId {
        id: Arc<str>,
    },
    /// Bytes of whoever owns `space`; `None` removes the key.
    SetState {
        space: &'static str,
        key: Vec<u8>,
        value: Option<Vec<u8>>,
    },
    /// Puts back what was in a catalog that was lost, in whatever space.
    RestoreState {
        space: String,
        key: Vec<u8>,
        value: Vec<u8>,
    },
}

impl Mutation {
    pub(super) fn apply(&self, tables: &mut Tables<'_>) -> Result<(), Failure> {
        match self {
            Mutation::PutTopic(topic) => {
                tables.topics.insert(&*topic.name, topics::encode(topic).as_slice())?;
            }
            Mutation::DeleteTopic { name } => delete_topic(tables, name)?,
            Mutation::ForgetDeletion { topic_id } => {
                tables.deletions.remove(topic_id.0)?;
            }
            Mutation::SetConfig { resource_type, name, key, value } => {
                let key = (*resource_type as u8, name.as_str(), key.as_str());
                match value {
                    Some(value) => tables.configs.insert(key, value.as_str())?,
                    None => tables.configs.remove(key)?,
                };
            }
            Mutation::ClearConfigs { resource_type, name } => clear_configs(tables, *resource_type, name)?,
            Mutation::CommitOffset { group, topic, partition, offset } => {
                tables.offsets.insert((&**group, &**topic, *partition), offset.encode().as_slice())?;
            }
            Mutation::DeleteOffset { group, topic, partition } => {
                tables.offsets.remove((&**group, &**topic, *partition))?;
            }
            Mutation::PutGroup { group, value } => {
                tables.groups.insert(&**group, value.as_slice())?;
            }
            Mutation::DeleteGroup { group } => {
                tables.groups.remove(&**group)?;
                let after = format!("{group}\0");
                tables.offsets.retain_in((&**group, "", i32::MIN)..(after.as_str(), "", i32::MIN), |_, _| false)?;
            }
            Mutation::RaiseNextProducerId { to } => {
                let next = super::producer_ids::next(&tables.meta)?;
                if *to > next {
                    tables.meta.insert(META_NEXT_PRODUCER_ID, to.to_be_bytes().as_slice())?;
                }
            }
            Mutation::RaiseLogStart { topic_id, partition, offset } => {
                let key = (topic_id.0, *partition);
                let start = tables.log_starts.get(key)?.map_or(0, |start| start.value());
                if *offset > start {
                    tables.log_starts.insert(key, *offset)?;
                }
            }
            Mutation::PutTransactionalId { id, value } => {
                tables.transactional_ids.insert(&**id, value.as_slice())?;
            }
            Mutation::DeleteTransactionalId { id } => {
                tables.transactional_ids.remove(&**id)?;
            }
            Mutation::SetState { space, key, value } => {
                match value {
                    Some(value) => tables.state.insert((*space, key.as_slice()), value.as_slice())?,
                    None => tables.state.remove((*space, key.as_slice()))?,
                };
            }
            Mutation::RestoreState { space, key, value } => {
                tables.state.insert((space.as_str(), key.as_slice()), value.as_slice())?;
            }
        }
        Ok(())
    }

    /// Shows the change in memory, once it is durable.
    pub(super) fn show(&self, topics: &mut Arc<Topics>, configs: &mut Arc<Configs>) {
        match self {
            Mutation::PutTopic(topic) => Arc::make_mut(topics).insert(topic.clone()),
            Mutation::DeleteTopic { name } => {
                Arc::make_mut(topics).remove(name);
                Arc::make_mut(configs).clear(ResourceType::Topic, name);
            }
            Mutation::SetConfig { resource_type, name, key, value } => {
                Arc::make_mut(configs).set(*resource_type, name, key, value.as_deref());
            }
            Mutation::ClearConfigs { resource_type, name } => Arc::make_mut(configs).clear(*resource_type, name),
            _ => {}
        }
    }
}

fn delete_topic(tables: &mut Tables<'_>, name: &Arc<str>) -> Result<(), Failure> {
    let Some(topic) = tables.topics.remove(&**name)?.map(|value| topics::decode(name, value.value())).transpose()?
    else {
        return Ok(());
    };
    tables.deletions.insert(topic.id.0, topics::encode_deletion(&topic).as_slice())?;
    clear_configs(tables, ResourceType::Topic, name)?;
    tables.log_starts.retain_in((topic.id.0, i32::MIN)..=(topic.id.0, i32::MAX), |_, _| false)?;
    for group in groups_with_offsets(&tables.offsets)? {
        for partition in partitions_of_topic(&tables.offsets, &group, name)? {
            let key = (group.as_str(), &**name, partition);
            let committed = match tables.offsets.get(key)? {
                Some(value) => CommittedOffset::decode(value.value())?.topic_id,
                None => continue,
            };
            if committed.is_zero() || committed == topic.id {
                tables.offsets.remove(key)?;
            }
        }
    }
    Ok(())
}

fn clear_configs(tables: &mut Tables<'_>, resource_type: ResourceType, name: &str) -> Result<(), Failure> {
    let after = format!("{name}\0");
    let number = resource_type as u8;
    Ok(tables.configs.retain_in((number, name, "")..(number, after.as_str(), ""), |_, _| false)?)
}
