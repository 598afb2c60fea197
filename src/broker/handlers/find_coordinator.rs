//! FindCoordinator: of groups, transactions and share partitions it is always this node. The first one who asks brings about
//! the topic in which Kafka keeps what this coordinator knows, and by which clients tell that there is one.
//!
//! - v1 asks for one of two kinds of coordinator; v4 asks for many keys at once; v6 adds share partitions (KIP-932), whose keys
//!   are `group:topic id:partition`.

use std::sync::Arc;

use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::protocol::messages::find_coordinator::{Coordinator, FindCoordinatorRequest, FindCoordinatorResponse};
use crate::protocol::{ErrorCode, Uuid};
use crate::storage::internal_topics;

pub(super) const HANDLER: Handler = serial!(FindCoordinatorRequest, handle);

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;
const SHARE: i8 = 2;

async fn handle(broker: Arc<Broker>, context: Context, request: FindCoordinatorRequest) -> FindCoordinatorResponse {
    let (host, port) = broker.advertised(&context.client);
    let error = match request.key_type {
        GROUP | TRANSACTION => ErrorCode::None,
        SHARE if context.version >= 6 => ErrorCode::None,
        _ => ErrorCode::InvalidRequest,
    };
    match request.key_type {
        GROUP => broker.ensure_internal_topic(internal_topics::OFFSETS).await,
        TRANSACTION => broker.ensure_internal_topic(internal_topics::TRANSACTIONS).await,
        SHARE if context.version >= 6 && request.coordinator_keys.iter().any(|key| is_share_partition(key)) => {
            broker.ensure_internal_topic(internal_topics::SHARE_STATE).await;
        }
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
    let coordinator = |key: String| match request.key_type == SHARE && !is_share_partition(&key) {
        true => Coordinator {
            key,
            node_id: -1,
            port: -1,
            error_code: ErrorCode::InvalidRequest.code(),
            ..Default::default()
        },
        false => Coordinator { key, node_id, host: host.clone(), port, error_code: error.code(), ..Default::default() },
    };
    FindCoordinatorResponse {
        coordinators: request.coordinator_keys.into_iter().map(coordinator).collect(),
        ..Default::default()
    }
}

/// Whether the key is that of a share partition. Kafka takes colons behind it for nothing.
fn is_share_partition(key: &str) -> bool {
    let mut parts = key.trim_end_matches(':').rsplitn(3, ':');
    let partition = parts.next().is_some_and(|partition| partition.parse::<i32>().is_ok());
    let topic = parts.next().is_some_and(|topic| topic.parse::<Uuid>().is_ok());
    partition && topic && parts.next().is_some_and(|group| !group.trim().is_empty())
}
