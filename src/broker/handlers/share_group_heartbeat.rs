//! ShareGroupHeartbeat: members of share groups join, go on and leave (KIP-932).
//!
//! - Refused with UNSUPPORTED_VERSION while the feature `share.version` is at 0.

use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::{Broker, groups};
use crate::coordinator::{Reply, ShareHeartbeatRequest};
use crate::protocol::ErrorCode;
use crate::protocol::messages::share_group_heartbeat::{
    Assignment, ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse, TopicPartitions,
};

pub(super) const HANDLER: Handler = serial!(ShareGroupHeartbeatRequest, handle);

async fn handle(
    broker: Arc<Broker>,
    context: Context,
    request: ShareGroupHeartbeatRequest,
) -> ShareGroupHeartbeatResponse {
    if !broker.offers_share_groups() {
        return failed(ErrorCode::UnsupportedVersion, None);
    }
    let heartbeat = ShareHeartbeatRequest {
        group_id: request.group_id,
        member_id: request.member_id,
        member_epoch: request.member_epoch,
        rack_id: request.rack_id,
        client_id: context.client_id.unwrap_or_default(),
        client_host: context.client.host(),
        topic_names: request.subscribed_topic_names,
    };
    match broker.groups().ask(|coordinator, now, token| coordinator.share_heartbeat(now, token, heartbeat)).await {
        Some(Reply::ShareHeartbeat(Ok(answer))) => ShareGroupHeartbeatResponse {
            member_id: Some(answer.member_id),
            member_epoch: answer.member_epoch,
            heartbeat_interval_ms: answer.heartbeat_interval_ms,
            assignment: answer.assignment.map(|topics| Assignment {
                topic_partitions: topics
                    .into_iter()
                    .map(|(topic_id, partitions)| TopicPartitions { topic_id, partitions })
                    .collect(),
            }),
            ..Default::default()
        },
        Some(Reply::ShareHeartbeat(Err(refused))) => failed(groups::error_code(refused.error), Some(refused.message)),
        _ => failed(ErrorCode::CoordinatorNotAvailable, None),
    }
}

fn failed(error: ErrorCode, error_message: Option<String>) -> ShareGroupHeartbeatResponse {
    ShareGroupHeartbeatResponse { error_code: error.code(), error_message, ..Default::default() }
}
