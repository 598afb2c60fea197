//! IncrementalAlterConfigs: single configs are set, deleted, appended to or taken from (KIP-339). Of one resource all
//! changes take effect or none.

use std::sync::Arc;

use super::config_changes::{self, ConfigChange, Outcome};
use crate::broker::Broker;
use crate::broker::config::alter;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::log_levels::{self, BROKER_LOGGER};
use crate::broker::topics::Refused;
use crate::protocol::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterConfigsResourceResponse, IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse,
};

pub(super) const HANDLER: Handler = serial!(IncrementalAlterConfigsRequest, handle);

async fn handle(
    broker: Arc<Broker>,
    _: Context,
    request: IncrementalAlterConfigsRequest,
) -> IncrementalAlterConfigsResponse {
    let outcomes = config_changes::make(&broker, &request.resources, request.validate_only).await;
    IncrementalAlterConfigsResponse { responses: outcomes.map(on_the_wire).collect(), ..Default::default() }
}

fn on_the_wire(outcome: Outcome) -> AlterConfigsResourceResponse {
    let Outcome { error_code, error_message, resource_type, resource_name } = outcome;
    AlterConfigsResourceResponse { error_code, error_message, resource_type, resource_name }
}

impl ConfigChange for AlterConfigsResource {
    fn resource(&self) -> (i8, &str) {
        (self.resource_type, &self.resource_name)
    }

    async fn make(&self, broker: &Arc<Broker>, validate_only: bool) -> Result<(), Refused> {
        let changes: Vec<alter::Change<'_>> = self
            .configs
            .iter()
            .map(|config| alter::Change {
                name: &config.name,
                operation: config.config_operation,
                value: config.value.as_deref(),
            })
            .collect();
        if self.resource_type == BROKER_LOGGER {
            let name = &self.resource_name;
            return log_levels::alter(broker.log_levels(), &broker.config(), name, &changes, validate_only);
        }
        let resource = broker.alterable(self.resource_type, &self.resource_name)?;
        let change = |config: &_, stored: &_| alter::incremental(config, &resource, stored, &changes);
        broker.alter_configs(&resource, validate_only, change).await
    }
}
