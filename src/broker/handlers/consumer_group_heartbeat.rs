//! ConsumerGroupHeartbeat: members of the consumer group protocol join, go on and leave (KIP-848).
//!
//! - In v0 the broker makes the ids of members; from v1 on members make their own (KIP-1082) and may subscribe by regular
//!   expression.
//! - Refused with UNSUPPORTED_VERSION where `group.coordinator.rebalance.protocols` leaves the protocol out.

use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::{Broker, groups};
use crate::coordinator::{ConsumerHeartbeatRequest, Reply};
use crate::protocol::ErrorCode;
use crate::protocol::messages::consumer_group_heartbeat::{
    Assignment, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, ResponseTopicPartitions,
};

pub(super) const HANDLER: Handler = serial!(ConsumerGroupHeartbeatRequest, handle);

async fn handle(
    broker: Arc<Broker>,
    context: Context,
    request: ConsumerGroupHeartbeatRequest,
) -> ConsumerGroupHeartbeatResponse {
    if !broker.offers_consumer_groups() {
        return failed(ErrorCode::UnsupportedVersion, None);
    }
    let owned = request.topic_partitions.map(|topics| {
        let topic = |topic: crate::protocol::messages::consumer_group_heartbeat::RequestTopicPartitions| {
            (topic.topic_id, topic.partitions)
        };
        topics.into_iter().map(topic).collect()
    });
    let heartbeat = ConsumerHeartbeatRequest {
        group_id: request.group_id,
        member_id: request.member_id,
        member_epoch: request.member_epoch,
        instance_id: request.instance_id,
        rack_id: request.rack_id,
        rebalance_timeout_ms: request.rebalance_timeout_ms,
        client_id: context.client_id.unwrap_or_default(),
        client_host: context.client.host(),
        topic_names: request.subscribed_topic_names,
        topic_regex: request.subscribed_topic_regex,
        server_assignor: request.server_assignor,
        owned,
        member_id_required: context.version >= 1,
    };
    let reply =
        broker.groups().ask(|coordinator, now, token| coordinator.consumer_heartbeat(now, token, heartbeat)).await;
    match reply {
        Some(Reply::ConsumerHeartbeat(Ok(answer))) => ConsumerGroupHeartbeatResponse {
            member_id: Some(answer.member_id),
            member_epoch: answer.member_epoch,
            heartbeat_interval_ms: answer.heartbeat_interval_ms,
            assignment: answer.assignment.map(|topics| Assignment {
                topic_partitions: topics
                    .into_iter()
                    .map(|(topic_id, partitions)| ResponseTopicPartitions { topic_id, partitions })
                    .collect(),
            }),
            ..Default::default()
        },
        Some(Reply::ConsumerHeartbeat(Err(refused))) => {
            failed(groups::error_code(refused.error), Some(refused.message))
        }
        _ => failed(ErrorCode::CoordinatorNotAvailable, None),
    }
}

fn failed(error: ErrorCode, error_message: Option<String>) -> ConsumerGroupHeartbeatResponse {
    ConsumerGroupHeartbeatResponse { error_code: error.code(), error_message, ..Default::default() }
}
