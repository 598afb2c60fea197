//! AlterConfigs: all configs of a resource are replaced by those of the request.

use std::sync::Arc;

use super::config_changes::{self, ConfigChange, Outcome};
use crate::broker::Broker;
use crate::broker::config::alter;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::topics::Refused;
use crate::protocol::messages::alter_configs::{
    AlterConfigsRequest, AlterConfigsResource, AlterConfigsResourceResponse, AlterConfigsResponse,
};

pub(super) const HANDLER: Handler = serial!(AlterConfigsRequest, handle);

async fn handle(broker: Arc<Broker>, _: Context, request: AlterConfigsRequest) -> AlterConfigsResponse {
    let outcomes = config_changes::make(&broker, &request.resources, request.validate_only).await;
    AlterConfigsResponse { responses: outcomes.map(on_the_wire).collect(), ..Default::default() }
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
        let resource = broker.alterable(self.resource_type, &self.resource_name)?;
        let entries: Vec<(&str, Option<&str>)> =
            self.configs.iter().map(|config| (config.name.as_str(), config.value.as_deref())).collect();
        let change = |config: &_, stored: &_| alter::replace(config, &resource, stored, &entries);
        broker.alter_configs(&resource, validate_only, change).await
    }
}
