//! JoinGroup: a member of a classic group joins the next generation.
//!
//! - v0 has no rebalance timeout; the session timeout stands in. v4 asks for a member id first (KIP-394), v5 knows static
//!   members (KIP-345), v8 carries a reason (KIP-800), v9 lets a static leader skip the assignment (KIP-814).

use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::{Broker, groups};
use crate::coordinator::{JoinRequest, Protocol, Reply};
use crate::protocol::ErrorCode;
use crate::protocol::messages::join_group::{JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember};

pub(super) const HANDLER: Handler = serial!(JoinGroupRequest, handle);

async fn handle(broker: Arc<Broker>, context: Context, request: JoinGroupRequest) -> JoinGroupResponse {
    if let Some(reason) = request.reason.as_ref().filter(|reason| !reason.is_empty()) {
        tracing::debug!(group = request.group_id, member = request.member_id, reason, "a member joins");
    }
    let join = JoinRequest {
        group_id: request.group_id,
        member_id: request.member_id.clone(),
        group_instance_id: request.group_instance_id,
        client_id: context.client_id.unwrap_or_default(),
        client_host: context.client.host(),
        session_timeout_ms: request.session_timeout_ms,
        rebalance_timeout_ms: match context.version {
            0 => request.session_timeout_ms,
            _ => request.rebalance_timeout_ms,
        },
        protocol_type: request.protocol_type,
        protocols: request.protocols.into_iter().map(|p| Protocol { name: p.name, metadata: p.metadata }).collect(),
        member_id_required: context.version >= 4,
        can_skip_assignment: context.version >= 9,
    };
    match broker.groups().ask(|coordinator, now, token| coordinator.join(now, token, join)).await {
        Some(Reply::Join(Ok(joined))) => JoinGroupResponse {
            generation_id: joined.generation_id,
            protocol_type: joined.protocol_type,
            protocol_name: joined.protocol_name,
            leader: joined.leader,
            skip_assignment: joined.skip_assignment,
            member_id: joined.member_id,
            members: joined
                .members
                .into_iter()
                .map(|member| JoinGroupResponseMember {
                    member_id: member.member_id,
                    group_instance_id: member.group_instance_id,
                    metadata: member.metadata,
                })
                .collect(),
            ..Default::default()
        },
        Some(Reply::Join(Err(refused))) => failed(groups::error_code(refused.error), refused.member_id),
        _ => failed(ErrorCode::CoordinatorNotAvailable, request.member_id),
    }
}

fn failed(error: ErrorCode, member_id: String) -> JoinGroupResponse {
    JoinGroupResponse { error_code: error.code(), protocol_name: None, member_id, ..Default::default() }
}
