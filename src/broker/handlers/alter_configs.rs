//! AlterConfigs: all configs of a resource are replaced by those of the request.

use std::sync::Arc;

use super::incremental_alter_configs::{outcome, twice};
use crate::broker::Broker;
use crate::broker::config::alter;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::topics::Refused;
use crate::protocol::messages::alter_configs::{
    AlterConfigsRequest, AlterConfigsResource, AlterConfigsResourceResponse, AlterConfigsResponse,
};

pub(super) const HANDLER: Handler = serial!(AlterConfigsRequest, handle);

async fn handle(broker: Arc<Broker>, _: Context, request: AlterConfigsRequest) -> AlterConfigsResponse {
    let mut response = AlterConfigsResponse::default();
    let twice =
        twice(request.resources.iter().map(|resource| (resource.resource_type, resource.resource_name.as_str())));
    for (resource, twice) in request.resources.into_iter().zip(twice) {
        let result = match twice {
            Some(refused) => Err(refused),
            None => replace(&broker, &resource, request.validate_only).await,
        };
        let (error_code, error_message) = outcome(result);
        response.responses.push(AlterConfigsResourceResponse {
            error_code,
            error_message,
            resource_type: resource.resource_type,
            resource_name: resource.resource_name,
        });
    }
    response
}

async fn replace(broker: &Arc<Broker>, asked: &AlterConfigsResource, validate_only: bool) -> Result<(), Refused> {
    let resource = broker.alterable(asked.resource_type, &asked.resource_name)?;
    let entries: Vec<(&str, Option<&str>)> =
        asked.configs.iter().map(|config| (config.name.as_str(), config.value.as_deref())).collect();
    let change = |config: &_, stored: &_| alter::replace(config, &resource, stored, &entries);
    broker.alter_configs(&resource, validate_only, change).await
}
