//! AlterPartitionReassignments: a partition can be assigned to this node, where it is, and to no other.
//!
//! - v1 can refuse a change of the replication factor (KIP-860), which cannot come about here.

use std::sync::Arc;

use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::topics::Refused;
use crate::protocol::ErrorCode;
use crate::protocol::messages::alter_partition_reassignments::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse, ReassignablePartition,
    ReassignablePartitionResponse, ReassignableTopicResponse,
};

pub(super) const HANDLER: Handler = serial!(AlterPartitionReassignmentsRequest, handle);

async fn handle(
    broker: Arc<Broker>,
    _: Context,
    request: AlterPartitionReassignmentsRequest,
) -> AlterPartitionReassignmentsResponse {
    let responses = request.topics.into_iter().map(|topic| ReassignableTopicResponse {
        partitions: topic.partitions.iter().map(|partition| answer(&broker, &topic.name, partition)).collect(),
        name: topic.name,
    });
    AlterPartitionReassignmentsResponse {
        allow_replication_factor_change: request.allow_replication_factor_change,
        error_message: None,
        responses: responses.collect(),
        ..Default::default()
    }
}

fn answer(broker: &Broker, topic: &str, asked: &ReassignablePartition) -> ReassignablePartitionResponse {
    let (error, error_message) = match reassign(broker, topic, asked) {
        Ok(()) => (ErrorCode::None, None),
        Err(refused) => (refused.code, refused.into_message()),
    };
    ReassignablePartitionResponse { partition_index: asked.partition_index, error_code: error.code(), error_message }
}

fn reassign(broker: &Broker, topic: &str, asked: &ReassignablePartition) -> Result<(), Refused> {
    let unknown = |message| Refused::new(ErrorCode::UnknownTopicOrPartition, message);
    let partitions = match broker.topics().by_name(topic) {
        Some(found) => found.partitions,
        None => return Err(unknown(format!("Unable to find a topic named {topic}."))),
    };
    if !(0..partitions).contains(&asked.partition_index) {
        return Err(unknown(format!("Unable to find partition {topic}:{}.", asked.partition_index)));
    }
    let invalid = |message| Err(Refused::new(ErrorCode::InvalidReplicaAssignment, message));
    let node = broker.node_id();
    match asked.replicas.as_deref() {
        // To cancel one that is under way, which none is.
        None => Err(Refused::new(ErrorCode::NoReassignmentInProgress, "")),
        Some([]) => invalid("The manual partition assignment includes an empty replica list.".to_owned()),
        Some(replicas) => match replicas.iter().find(|replica| **replica != node) {
            Some(other) => invalid(format!(
                "The manual partition assignment includes broker {other}, but no such broker is registered."
            )),
            None if replicas.len() > 1 => {
                invalid(format!("The manual partition assignment includes the broker {node} more than once."))
            }
            None => Ok(()),
        },
    }
}
