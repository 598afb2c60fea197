//! OffsetFetch: what groups have committed.
//!
//! - v2 can ask for all of a group's partitions, v7 for offsets that no open transaction may still change (KIP-447), v8
//!   for many groups, v9 as a member of the consumer protocol (KIP-848), v10 by topic id.
//! - A partition without a committed offset has offset -1 and no error.
//! - NOT_COORDINATOR for a group that nobody knows before anybody has looked up a group's coordinator.

use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::{Broker, groups};
use crate::coordinator::{FetchOffsetsRequest, Reply};
use crate::protocol::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics, OffsetFetchResponse,
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions, OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
};
use crate::protocol::{ErrorCode, Uuid};

pub(super) const HANDLER: Handler = serial!(OffsetFetchRequest, handle);

async fn handle(broker: Arc<Broker>, context: Context, request: OffsetFetchRequest) -> OffsetFetchResponse {
    let stable = request.require_stable;
    if context.version >= 8 {
        let mut response = OffsetFetchResponse::default();
        for group in request.groups {
            response.groups.push(fetch(&broker, context.version, group, stable).await);
        }
        return response;
    }
    let topics = request.topics.map(|topics| {
        let topic =
            |topic: crate::protocol::messages::offset_fetch::OffsetFetchRequestTopic| OffsetFetchRequestTopics {
                name: topic.name,
                partition_indexes: topic.partition_indexes,
                ..Default::default()
            };
        topics.into_iter().map(topic).collect()
    });
    let group = OffsetFetchRequestGroup { group_id: request.group_id, topics, ..Default::default() };
    let found = fetch(&broker, context.version, group, stable).await;
    let partition = |partition: OffsetFetchResponsePartitions| OffsetFetchResponsePartition {
        partition_index: partition.partition_index,
        committed_offset: partition.committed_offset,
        committed_leader_epoch: partition.committed_leader_epoch,
        metadata: partition.metadata,
        error_code: partition.error_code,
    };
    OffsetFetchResponse {
        error_code: found.error_code,
        topics: found
            .topics
            .into_iter()
            .map(|topic| OffsetFetchResponseTopic {
                name: topic.name,
                partitions: topic.partitions.into_iter().map(partition).collect(),
            })
            .collect(),
        ..Default::default()
    }
}

/// A topic of the answer that needs no look at the coordinator: nobody knows its id.
fn unknown(topic: &OffsetFetchRequestTopics) -> OffsetFetchResponseTopics {
    let partition = |index: &i32| OffsetFetchResponsePartitions {
        partition_index: *index,
        committed_offset: -1,
        error_code: ErrorCode::UnknownTopicId.code(),
        ..Default::default()
    };
    OffsetFetchResponseTopics {
        topic_id: topic.topic_id,
        partitions: topic.partition_indexes.iter().map(partition).collect(),
        ..Default::default()
    }
}

fn without_coordinator((name, partitions): (String, Vec<i32>)) -> OffsetFetchResponseTopics {
    let partition = |partition_index| OffsetFetchResponsePartitions {
        partition_index,
        committed_offset: -1,
        error_code: ErrorCode::NotCoordinator.code(),
        ..Default::default()
    };
    let partitions = partitions.into_iter().map(partition).collect();
    OffsetFetchResponseTopics { name, partitions, ..Default::default() }
}

async fn fetch(
    broker: &Arc<Broker>,
    version: i16,
    group: OffsetFetchRequestGroup,
    require_stable: bool,
) -> OffsetFetchResponseGroup {
    let by_id = version >= 10;
    let known = broker.topics();
    let mut unknowns = vec![];
    let topics = group.topics.map(|topics| {
        let mut named = vec![];
        for topic in topics {
            match known.by_id(topic.topic_id) {
                Some(found) if by_id => named.push((found.name.to_string(), topic.partition_indexes)),
                None if by_id => unknowns.push(unknown(&topic)),
                _ => named.push((topic.name, topic.partition_indexes)),
            }
        }
        named
    });
    let mut response = OffsetFetchResponseGroup { group_id: group.group_id.clone(), ..Default::default() };
    if !broker.has_coordinator(&group.group_id) {
        match topics {
            // The first versions can only say it of partitions.
            Some(topics) if version < 2 => response.topics.extend(topics.into_iter().map(without_coordinator)),
            _ => response.error_code = ErrorCode::NotCoordinator.code(),
        }
        return response;
    }
    // An administrator, or a client that is in no group, says neither.
    if group.member_id.is_some() || group.member_epoch >= 0 {
        let member_id = group.member_id.as_deref().unwrap_or_default();
        let checked = broker
            .groups()
            .with(|coordinator, _| coordinator.check_fetch(&group.group_id, member_id, group.member_epoch));
        if let Err(error) = checked {
            response.error_code = groups::error_code(error).code();
            return response;
        }
    }
    let request = FetchOffsetsRequest { group_id: group.group_id, topics, require_stable };
    let reply = broker.groups().ask(|coordinator, _, token| coordinator.fetch_offsets(token, request)).await;
    let Some(Reply::FetchOffsets(found)) = reply else {
        response.error_code = ErrorCode::CoordinatorNotAvailable.code();
        return response;
    };
    for (name, partitions) in found {
        let topic_id = match by_id {
            // A topic that was deleted in the meantime has no id to name it by.
            true => match known.by_name(&name) {
                Some(topic) => topic.id,
                None => continue,
            },
            false => Uuid::ZERO,
        };
        let partition = |(partition_index, outcome)| {
            let absent = OffsetFetchResponsePartitions { partition_index, committed_offset: -1, ..Default::default() };
            match outcome {
                Ok(Some(committed)) => {
                    let committed: crate::coordinator::CommittedOffset = committed;
                    OffsetFetchResponsePartitions {
                        committed_offset: committed.offset,
                        committed_leader_epoch: committed.leader_epoch,
                        metadata: Some(committed.metadata),
                        ..absent
                    }
                }
                Ok(None) => absent,
                Err(error) => OffsetFetchResponsePartitions { error_code: groups::error_code(error).code(), ..absent },
            }
        };
        response.topics.push(OffsetFetchResponseTopics {
            name,
            topic_id,
            partitions: partitions.into_iter().map(partition).collect(),
        });
    }
    response.topics.extend(unknowns);
    response
}
