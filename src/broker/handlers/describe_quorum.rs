//! DescribeQuorum: this node is the only voter of its cluster, and leads it.
//!
//! - v1 adds the times of the last fetch, v2 the nodes with their addresses, directory ids and messages (KIP-853).
//! - doze keeps no metadata log; where Apache Kafka says how far its own is, doze says the epoch of the features, which is
//!   an offset of that log there.

use std::sync::Arc;

use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::protocol::messages::describe_quorum::{
    DescribeQuorumRequest, DescribeQuorumResponse, Listener, Node, ReplicaState, ResponsePartitionData,
    ResponseTopicData,
};
use crate::protocol::{ErrorCode, Uuid};

pub(super) const HANDLER: Handler = serial!(DescribeQuorumRequest, handle);

/// The topic under whose name Kafka keeps its metadata.
const METADATA_TOPIC: &str = "__cluster_metadata";

async fn handle(broker: Arc<Broker>, context: Context, request: DescribeQuorumRequest) -> DescribeQuorumResponse {
    let of_metadata = match request.topics.as_slice() {
        [topic] => topic.topic_name == METADATA_TOPIC && topic.partitions.iter().map(|p| p.partition_index).eq([0]),
        _ => false,
    };
    if !of_metadata {
        let unknown = |partition_index| ResponsePartitionData {
            partition_index,
            error_code: ErrorCode::UnknownTopicOrPartition.code(),
            error_message: Some("This server does not host this topic-partition.".into()),
            ..Default::default()
        };
        let topics = request.topics.into_iter().map(|topic| ResponseTopicData {
            topic_name: topic.topic_name,
            partitions: topic.partitions.iter().map(|partition| unknown(partition.partition_index)).collect(),
        });
        return DescribeQuorumResponse { topics: topics.collect(), ..Default::default() };
    }
    let (node_id, end, now) = (broker.node_id(), broker.features().epoch(), broker.env().clock.now_ms());
    let this = ReplicaState {
        replica_id: node_id,
        replica_directory_id: Uuid::ZERO,
        log_end_offset: end,
        last_fetch_timestamp: now,
        last_caught_up_timestamp: now,
    };
    let partition = ResponsePartitionData {
        leader_id: node_id,
        leader_epoch: 1,
        high_watermark: end,
        current_voters: vec![this],
        ..Default::default()
    };
    let (host, port) = broker.advertised(&context.client);
    let listener = Listener { name: "PLAINTEXT".into(), host, port: u16::try_from(port).unwrap_or(0) };
    DescribeQuorumResponse {
        topics: vec![ResponseTopicData { topic_name: METADATA_TOPIC.into(), partitions: vec![partition] }],
        nodes: vec![Node { node_id, listeners: vec![listener] }],
        ..Default::default()
    }
}
