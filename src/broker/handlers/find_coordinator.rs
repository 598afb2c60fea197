//! FindCoordinator: of groups and transactions it is always this node. The first one who asks brings about the topic in which
//! Kafka keeps what this coordinator knows, and by which clients tell that there is one.
//!
//! - v1 asks for one of two kinds of coordinator; v4 asks for many keys at once; v6 adds share groups (KIP-932).

use std::sync::Arc;

use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::protocol::ErrorCode;
use crate::protocol::messages::find_coordinator::{Coordinator, FindCoordinatorRequest, FindCoordinatorResponse};
use crate::storage::internal_topics;

pub(super) const HANDLER: Handler = serial!(FindCoordinatorRequest, handle);

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;

async fn handle(broker: Arc<Broker>, context: Context, request: FindCoordinatorRequest) -> FindCoordinatorResponse {
    let (host, port) = broker.advertised(&context.client);
    let error = match request.key_type {
        GROUP | TRANSACTION => ErrorCode::None,
        _ => ErrorCode::InvalidRequest,
    };
    match request.key_type {
        GROUP => broker.ensure_internal_topic(internal_topics::OFFSETS).await,
        TRANSACTION => broker.ensure_internal_topic(internal_topics::TRANSACTIONS).await,
        _ => {}
    }
    let (node_id, host, port) = match error {
        ErrorCode::None => (broker.node_id(), host, port),
        _ => (-1, String::new(), -1),
    };
    if context.version < 4 {
        return FindCoordinatorResponse {
            error_code: error.code(),
            error_message: Some(match error {
                ErrorCode::None => error.name().into(),
                _ => format!("There is no coordinator of type {}.", request.key_type),
            }),
            node_id,
            host,
            port,
            ..Default::default()
        };
    }
    let coordinator = |key: String| Coordinator {
        key,
        node_id,
        host: host.clone(),
        port,
        error_code: error.code(),
        ..Default::default()
    };
    FindCoordinatorResponse {
        coordinators: request.coordinator_keys.into_iter().map(coordinator).collect(),
        ..Default::default()
    }
}
