//! DescribeTopicPartitions (KIP-966): topics with their partitions, page by page.
//!
//! - Topics come sorted by name; no topics in the request means all of them. A response holds
//!   `response_partition_limit` partitions at most (and `max.request.partition.size.limit`), and a cursor where the next
//!   request is to go on.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::topics;
use crate::broker::{Broker, operations};
use crate::protocol::ErrorCode;
use crate::protocol::messages::describe_topic_partitions::{
    DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic, ResponseCursor,
};

pub(super) const HANDLER: Handler = serial!(DescribeTopicPartitionsRequest, handle);

async fn handle(
    broker: Arc<Broker>,
    _: Context,
    request: DescribeTopicPartitionsRequest,
) -> DescribeTopicPartitionsResponse {
    let all = broker.topics();
    let asked_for_all = request.topics.is_empty();
    let mut names: BTreeSet<&str> = match asked_for_all {
        true => all.iter().map(|topic| &*topic.name).collect(),
        false => request.topics.iter().map(|topic| topic.name.as_str()).collect(),
    };
    if let Some(cursor) = &request.cursor
        && (cursor.partition_index < 0 || !asked_for_all && !names.contains(cursor.topic_name.as_str()))
    {
        tracing::debug!(?cursor, "a DescribeTopicPartitions goes on where it cannot have been before");
        let topics = names.into_iter().map(|name| failed(name, ErrorCode::InvalidRequest)).collect();
        return DescribeTopicPartitionsResponse { topics, ..Default::default() };
    }
    let mut first_partition = 0;
    if let Some(cursor) = &request.cursor {
        names = names.split_off(cursor.topic_name.as_str());
        // A topic that was deleted in the meantime is skipped; the next one starts at its beginning.
        if names.first() == Some(&cursor.topic_name.as_str()) {
            first_partition = cursor.partition_index;
        }
    }
    let limit = request.response_partition_limit.clamp(1, broker.max_described_partitions());
    let mut left = limit;
    let mut response = DescribeTopicPartitionsResponse::default();
    for name in names {
        if left == 0 {
            response.next_cursor = Some(ResponseCursor { topic_name: name.into(), partition_index: 0 });
            break;
        }
        let Some(topic) = all.by_name(name) else {
            let error = match topics::check_name(name) {
                Ok(()) => ErrorCode::UnknownTopicOrPartition,
                Err(_) => ErrorCode::InvalidTopicException,
            };
            response.topics.push(failed(name, error));
            continue;
        };
        let first = std::mem::take(&mut first_partition).min(topic.partitions);
        let last = first.saturating_add(left).min(topic.partitions);
        left -= last - first;
        let node = broker.node_id();
        let partition = |partition_index| {
            let (isr_nodes, offline_replicas) = broker.replicas(topic.id, partition_index);
            DescribeTopicPartitionsResponsePartition {
                partition_index,
                leader_id: node,
                leader_epoch: topics::LEADER_EPOCH,
                replica_nodes: vec![node],
                isr_nodes,
                eligible_leader_replicas: Some(vec![]),
                last_known_elr: Some(vec![]),
                offline_replicas,
                ..Default::default()
            }
        };
        response.topics.push(DescribeTopicPartitionsResponseTopic {
            name: Some(name.into()),
            topic_id: topic.id,
            is_internal: topics::is_internal(name),
            partitions: (first..last).map(partition).collect(),
            topic_authorized_operations: operations::TOPIC,
            ..Default::default()
        });
        if last < topic.partitions {
            response.next_cursor = Some(ResponseCursor { topic_name: name.into(), partition_index: last });
            break;
        }
    }
    response
}

fn failed(name: &str, error: ErrorCode) -> DescribeTopicPartitionsResponseTopic {
    DescribeTopicPartitionsResponseTopic {
        error_code: error.code(),
        name: Some(name.into()),
        topic_authorized_operations: if error == ErrorCode::InvalidRequest { i32::MIN } else { operations::TOPIC },
        ..Default::default()
    }
}
