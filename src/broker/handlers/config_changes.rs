//! What AlterConfigs and IncrementalAlterConfigs have in common: each resource of a request is changed by itself, and
//! answered with its name and what came of it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::broker::Broker;
use crate::broker::topics::Refused;
use crate::protocol::ErrorCode;

/// A resource of a request, with what is to become of its configs.
pub(super) trait ConfigChange: Sync {
    fn resource(&self) -> (i8, &str);

    fn make(&self, broker: &Arc<Broker>, validate_only: bool) -> impl Future<Output = Result<(), Refused>> + Send;
}

/// What came of the change of one resource, on the wire.
pub(super) struct Outcome {
    pub error_code: i16,
    pub error_message: Option<String>,
    pub resource_type: i8,
    pub resource_name: String,
}

/// Makes the changes in order, but for those of a resource that is in the request more than once.
pub(super) async fn make<R: ConfigChange>(
    broker: &Arc<Broker>,
    resources: &[R],
    validate_only: bool,
) -> impl Iterator<Item = Outcome> {
    let mut times = HashMap::<_, usize>::new();
    resources.iter().for_each(|resource| *times.entry(resource.resource()).or_default() += 1);
    let mut outcomes = Vec::with_capacity(resources.len());
    for resource in resources {
        let (resource_type, resource_name) = resource.resource();
        let result = match times[&(resource_type, resource_name)] {
            1 => resource.make(broker, validate_only).await,
            _ => Err(Refused::new(ErrorCode::InvalidRequest, "Each resource must appear at most once.")),
        };
        let (error_code, error_message) = on_the_wire(result);
        let resource_name = resource_name.to_owned();
        outcomes.push(Outcome { error_code, error_message, resource_type, resource_name });
    }
    outcomes.into_iter()
}

/// What a change came to, on the wire.
pub(super) fn on_the_wire(result: Result<(), Refused>) -> (i16, Option<String>) {
    match result {
        Ok(()) => (ErrorCode::None.code(), None),
        Err(refused) => (refused.code.code(), Some(refused.message)),
    }
}
