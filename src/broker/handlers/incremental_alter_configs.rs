//! IncrementalAlterConfigs: single configs are set, deleted, appended to or taken from (KIP-339). Of one resource all
//! changes take effect or none.

use std::collections::HashMap;
use std::sync::Arc;

use crate::broker::Broker;
use crate::broker::config::alter;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::log_levels::{self, BROKER_LOGGER};
use crate::broker::topics::Refused;
use crate::protocol::ErrorCode;
use crate::protocol::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterConfigsResourceResponse, IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse,
};

pub(super) const HANDLER: Handler = serial!(IncrementalAlterConfigsRequest, handle);

async fn handle(
    broker: Arc<Broker>,
    _: Context,
    request: IncrementalAlterConfigsRequest,
) -> IncrementalAlterConfigsResponse {
    let mut response = IncrementalAlterConfigsResponse::default();
    let twice =
        twice(request.resources.iter().map(|resource| (resource.resource_type, resource.resource_name.as_str())));
    for (resource, twice) in request.resources.into_iter().zip(twice) {
        let result = match twice {
            Some(refused) => Err(refused),
            None => change(&broker, &resource, request.validate_only).await,
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

/// For each resource of a request, the refusal of one that is in it more than once.
pub(super) fn twice<'a>(resources: impl Iterator<Item = (i8, &'a str)>) -> Vec<Option<Refused>> {
    let resources: Vec<_> = resources.collect();
    let mut times = HashMap::<_, usize>::new();
    resources.iter().for_each(|resource| *times.entry(resource).or_default() += 1);
    let refuse = |resource| {
        (times[resource] > 1)
            .then(|| Refused::new(ErrorCode::InvalidRequest, "Each resource must appear at most once."))
    };
    resources.iter().map(refuse).collect()
}

/// What a change of configs came to, on the wire.
pub(super) fn outcome(result: Result<(), Refused>) -> (i16, Option<String>) {
    match result {
        Ok(()) => (ErrorCode::None.code(), None),
        Err(refused) => (refused.code.code(), Some(refused.message)),
    }
}

async fn change(broker: &Arc<Broker>, asked: &AlterConfigsResource, validate_only: bool) -> Result<(), Refused> {
    let changes: Vec<alter::Change<'_>> = asked
        .configs
        .iter()
        .map(|config| alter::Change {
            name: &config.name,
            operation: config.config_operation,
            value: config.value.as_deref(),
        })
        .collect();
    if asked.resource_type == BROKER_LOGGER {
        let name = &asked.resource_name;
        return log_levels::alter(broker.log_levels(), &broker.config(), name, &changes, validate_only);
    }
    let resource = broker.alterable(asked.resource_type, &asked.resource_name)?;
    let change = |config: &_, stored: &_| alter::incremental(config, &resource, stored, &changes);
    broker.alter_configs(&resource, validate_only, change).await
}
