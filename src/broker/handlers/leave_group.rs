//! LeaveGroup: members of a classic group go.
//!
//! - Up to v2 one member leaves and the error is the answer's; v3 takes many, each with its own error (KIP-345); v5
//!   carries reasons (KIP-800).

use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::{Broker, groups};
use crate::coordinator::{LeaveRequest, LeavingMember, Reply};
use crate::protocol::ErrorCode;
use crate::protocol::messages::leave_group::{LeaveGroupRequest, LeaveGroupResponse, MemberResponse};

pub(super) const HANDLER: Handler = serial!(LeaveGroupRequest, handle);

async fn handle(broker: Arc<Broker>, context: Context, request: LeaveGroupRequest) -> LeaveGroupResponse {
    let members = match context.version {
        ..=2 => vec![LeavingMember { member_id: request.member_id, group_instance_id: None }],
        _ => request
            .members
            .into_iter()
            .map(|member| LeavingMember { member_id: member.member_id, group_instance_id: member.group_instance_id })
            .collect(),
    };
    let leave = LeaveRequest { group_id: request.group_id, members };
    let failed = |error: ErrorCode| LeaveGroupResponse { error_code: error.code(), ..Default::default() };
    match broker.groups().ask(|coordinator, now, token| coordinator.leave(now, token, leave)).await {
        Some(Reply::Leave(Ok(outcomes))) if context.version <= 2 => {
            let error_code = outcomes.first().map_or(0, |outcome| groups::outcome_code(outcome.result));
            LeaveGroupResponse { error_code, ..Default::default() }
        }
        Some(Reply::Leave(Ok(outcomes))) => LeaveGroupResponse {
            members: outcomes
                .into_iter()
                .map(|outcome| MemberResponse {
                    member_id: outcome.member_id,
                    group_instance_id: outcome.group_instance_id,
                    error_code: groups::outcome_code(outcome.result),
                })
                .collect(),
            ..Default::default()
        },
        Some(Reply::Leave(Err(error))) => failed(groups::error_code(error)),
        _ => failed(ErrorCode::CoordinatorNotAvailable),
    }
}
