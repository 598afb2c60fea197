//! ElectLeaders: this node leads every partition already, so that none ever needs an election.
//!
//! - v1 tells preferred (0) from unclean (1) elections (KIP-460); another type is refused for every partition.
//! - Without a list, all partitions are meant; those that need no election are then not named.

use std::sync::Arc;

use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::protocol::ErrorCode;
use crate::protocol::messages::elect_leaders::{
    ElectLeadersRequest, ElectLeadersResponse, PartitionResult, ReplicaElectionResult, TopicPartitions,
};
use crate::storage::catalog::Topics;

pub(super) const HANDLER: Handler = serial!(ElectLeadersRequest, handle);

async fn handle(broker: Arc<Broker>, context: Context, request: ElectLeadersRequest) -> ElectLeadersResponse {
    let topics = broker.topics();
    if context.version >= 1 && !matches!(request.election_type, 0 | 1) {
        let message = format!("Unknown election type {}", request.election_type);
        let refuse = |_: &str, _| (ErrorCode::InvalidRequest, message.clone());
        return ElectLeadersResponse {
            error_code: ErrorCode::InvalidRequest.code(),
            replica_election_results: results(request.topic_partitions.unwrap_or_default(), refuse),
            ..Default::default()
        };
    }
    let replica_election_results = match request.topic_partitions {
        Some(asked) => results(asked, |topic, partition| elect(&topics, topic, partition)),
        None => {
            let quiet = |name: &Arc<str>| ReplicaElectionResult { topic: name.to_string(), partition_result: vec![] };
            topics.iter().map(|topic| quiet(&topic.name)).collect()
        }
    };
    ElectLeadersResponse { replica_election_results, ..Default::default() }
}

fn results(
    asked: Vec<TopicPartitions>,
    result: impl Fn(&str, i32) -> (ErrorCode, String),
) -> Vec<ReplicaElectionResult> {
    let one = |topic: &str, partition_id: i32| {
        let (error, message) = result(topic, partition_id);
        PartitionResult { partition_id, error_code: error.code(), error_message: Some(message) }
    };
    let of_topic = |asked: TopicPartitions| ReplicaElectionResult {
        partition_result: asked.partitions.iter().map(|partition| one(&asked.topic, *partition)).collect(),
        topic: asked.topic,
    };
    asked.into_iter().map(of_topic).collect()
}

fn elect(topics: &Topics, topic: &str, partition: i32) -> (ErrorCode, String) {
    match topics.by_name(topic) {
        None => (ErrorCode::UnknownTopicOrPartition, format!("No such topic as {topic}")),
        Some(found) if !(0..found.partitions).contains(&partition) => {
            (ErrorCode::UnknownTopicOrPartition, format!("No such partition as {topic}-{partition}"))
        }
        Some(_) => (ErrorCode::ElectionNotNeeded, "Leader election not needed for topic partition.".into()),
    }
}
