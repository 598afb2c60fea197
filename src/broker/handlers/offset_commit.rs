//! OffsetCommit: how far a group has come, durable before it is answered.
//!
//! - What was read is flushed first: where it had been appended with `acks=1`, a power cut could take the records and leave the
//!   offset, and the group would pass over those that come to stand in their place.
//! - Up to v4 the client says how long to keep the offsets. v6 adds leader epochs, v7 static members, v9 the member epoch
//!   of the consumer protocol (KIP-848), v10 topic ids.

use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::read_flushes::ReadFlushes;
use crate::broker::{Broker, groups};
use crate::coordinator::{CommitPartition, CommitRequest, Reply};
use crate::protocol::ErrorCode;
use crate::protocol::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestTopic, OffsetCommitResponse, OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
};

pub(super) const HANDLER: Handler = serial!(OffsetCommitRequest, handle);

async fn handle(broker: Arc<Broker>, context: Context, request: OffsetCommitRequest) -> OffsetCommitResponse {
    let topics = broker.topics();
    let mut response = OffsetCommitResponse::default();
    let mut commits: Vec<(String, Vec<CommitPartition>)> = vec![];
    // Where the answer of each committed partition goes: topic and partition of the response.
    let mut places = vec![];
    let find = |topic: &OffsetCommitRequestTopic| match context.version {
        10.. => topics.by_id(topic.topic_id),
        _ => topics.by_name(&topic.name),
    };
    // All at once.
    let mut flushes = ReadFlushes::default();
    for topic in &request.topics {
        let id = find(topic).map(|topic| topic.id).unwrap_or_default();
        for read in &topic.partitions {
            flushes.ask(&broker.store, id, read.partition_index, read.committed_offset);
        }
    }
    for (t, topic) in request.topics.into_iter().enumerate() {
        let found = find(&topic);
        let unknown = match context.version {
            10.. => ErrorCode::UnknownTopicId,
            _ => ErrorCode::UnknownTopicOrPartition,
        };
        let mut committed = vec![];
        let mut partitions = vec![];
        for (p, partition) in topic.partitions.into_iter().enumerate() {
            let index = partition.partition_index;
            let is_flushed = flushes.next().await;
            let error = match found {
                None => unknown,
                Some(topic) if !(0..topic.partitions).contains(&index) => ErrorCode::UnknownTopicOrPartition,
                // Clients try again at this one.
                Some(_) if !is_flushed => ErrorCode::NotCoordinator,
                Some(_) => {
                    places.push((t, p));
                    committed.push(CommitPartition {
                        partition: index,
                        offset: partition.committed_offset,
                        leader_epoch: partition.committed_leader_epoch,
                        timestamp_ms: -1,
                        metadata: partition.committed_metadata,
                    });
                    ErrorCode::None
                }
            };
            partitions.push(OffsetCommitResponsePartition { partition_index: index, error_code: error.code() });
        }
        if let Some(found) = found.filter(|_| !committed.is_empty()) {
            commits.push((found.name.to_string(), committed));
        }
        response.topics.push(OffsetCommitResponseTopic { name: topic.name, topic_id: topic.topic_id, partitions });
    }
    if commits.is_empty() {
        return response;
    }
    let commit = CommitRequest {
        group_id: request.group_id,
        member_id: request.member_id,
        group_instance_id: request.group_instance_id,
        generation_id: request.generation_id_or_member_epoch,
        retention_time_ms: request.retention_time_ms,
        knows_group_id_not_found: context.version >= 9,
        topics: commits,
    };
    let reply = broker.groups().ask(|coordinator, now, token| coordinator.commit(now, token, commit)).await;
    let codes: Vec<i16> = match reply {
        Some(Reply::Commit(Ok(outcomes))) => outcomes
            .into_iter()
            .flat_map(|(_, partitions)| partitions)
            .map(|(_, outcome)| groups::outcome_code(outcome))
            .collect(),
        Some(Reply::Commit(Err(error))) => vec![groups::error_code(error).code(); places.len()],
        _ => vec![ErrorCode::CoordinatorNotAvailable.code(); places.len()],
    };
    for ((topic, partition), error_code) in places.into_iter().zip(codes) {
        response.topics[topic].partitions[partition].error_code = error_code;
    }
    response
}
