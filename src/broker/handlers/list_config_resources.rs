//! ListConfigResources: what has configs that can be described (KIP-1142).
//!
//! - v0 lists client metrics subscriptions (KIP-714); v1 the types that the request names, or all of them.

use std::sync::Arc;

use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::protocol::ErrorCode;
use crate::protocol::messages::list_config_resources::{
    ConfigResource, ListConfigResourcesRequest, ListConfigResourcesResponse,
};
use crate::storage::catalog::ResourceType;

pub(super) const HANDLER: Handler = serial!(ListConfigResourcesRequest, handle);

/// In the order in which Kafka lists them. Loggers (8) have this node for their name, as brokers (4) do.
const TYPES: [i8; 5] = [GROUP, CLIENT_METRICS, BROKER_LOGGER, BROKER, TOPIC];
const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const BROKER_LOGGER: i8 = 8;
const CLIENT_METRICS: i8 = 16;
const GROUP: i8 = 32;

async fn handle(
    broker: Arc<Broker>,
    context: Context,
    request: ListConfigResourcesRequest,
) -> ListConfigResourcesResponse {
    let asked = match (context.version, request.resource_types) {
        (0, _) => vec![CLIENT_METRICS],
        (_, types) if types.is_empty() => TYPES.to_vec(),
        (_, types) => types,
    };
    if asked.iter().any(|kind| !TYPES.contains(kind)) {
        return ListConfigResourcesResponse { error_code: ErrorCode::UnsupportedVersion.code(), ..Default::default() };
    }
    let configs = broker.store().catalog().configs();
    let configured = |kind| configs.iter(kind).map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
    let mut config_resources = vec![];
    for resource_type in TYPES.into_iter().filter(|kind| asked.contains(kind)) {
        let names = match resource_type {
            TOPIC => broker.topics().iter().map(|topic| topic.name.to_string()).collect(),
            GROUP => configured(ResourceType::Group),
            CLIENT_METRICS => configured(ResourceType::ClientMetrics),
            _ => vec![broker.node_id().to_string()],
        };
        config_resources.extend(names.into_iter().map(|resource_name| ConfigResource { resource_name, resource_type }));
    }
    ListConfigResourcesResponse { config_resources, ..Default::default() }
}
