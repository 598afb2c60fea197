//! Heartbeat: a member of a classic group is alive.

use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::{Broker, groups};
use crate::coordinator;
use crate::protocol::messages::heartbeat::{HeartbeatRequest, HeartbeatResponse};

pub(super) const HANDLER: Handler = serial!(HeartbeatRequest, handle);

async fn handle(broker: Arc<Broker>, _: Context, request: HeartbeatRequest) -> HeartbeatResponse {
    let heartbeat = coordinator::HeartbeatRequest {
        group_id: request.group_id,
        generation_id: request.generation_id,
        member_id: request.member_id,
        group_instance_id: request.group_instance_id,
    };
    let outcome = broker.groups().with(|coordinator, now| coordinator.heartbeat(now, &heartbeat));
    HeartbeatResponse { error_code: groups::outcome_code(outcome), ..Default::default() }
}
