//! SyncGroup: the leader hands in the assignment of a generation, every member gets its part.
//!
//! - v3 knows static members (KIP-345); v5 names the protocol, which has to be the group's (KIP-559).

use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::{Broker, groups};
use crate::coordinator::{Reply, SyncRequest};
use crate::protocol::ErrorCode;
use crate::protocol::messages::sync_group::{SyncGroupRequest, SyncGroupResponse};

pub(super) const HANDLER: Handler = serial!(SyncGroupRequest, handle);

async fn handle(broker: Arc<Broker>, context: Context, request: SyncGroupRequest) -> SyncGroupResponse {
    // Both or neither, or the response could not name what the request left out.
    if context.version >= 5 && (request.protocol_type.is_none() || request.protocol_name.is_none()) {
        return failed(ErrorCode::InconsistentGroupProtocol);
    }
    let sync = SyncRequest {
        group_id: request.group_id,
        generation_id: request.generation_id,
        member_id: request.member_id,
        group_instance_id: request.group_instance_id,
        protocol_type: request.protocol_type,
        protocol_name: request.protocol_name,
        assignments: request.assignments.into_iter().map(|a| (a.member_id, a.assignment)).collect(),
    };
    match broker.groups().ask(|coordinator, now, token| coordinator.sync(now, token, sync)).await {
        Some(Reply::Sync(Ok(synced))) => SyncGroupResponse {
            protocol_type: synced.protocol_type,
            protocol_name: synced.protocol_name,
            assignment: synced.assignment,
            ..Default::default()
        },
        Some(Reply::Sync(Err(error))) => failed(groups::error_code(error)),
        _ => failed(ErrorCode::CoordinatorNotAvailable),
    }
}

fn failed(error: ErrorCode) -> SyncGroupResponse {
    SyncGroupResponse { error_code: error.code(), ..Default::default() }
}
