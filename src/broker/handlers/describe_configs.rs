//! DescribeConfigs: what is in force for topics, brokers, groups and client metrics subscriptions, and where it is from.
//!
//! - Loggers have levels, which are described like configs (KIP-412).
//! - v3 adds types and documentation (KIP-569). No keys in the request, or null, means all of them.

use std::sync::Arc;

use crate::broker::Broker;
use crate::broker::config::{Resource, describe};
use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::log_levels::{self, BROKER_LOGGER};
use crate::broker::topics::{self, Refused};
use crate::protocol::ErrorCode;
use crate::protocol::messages::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResourceResult, DescribeConfigsResponse,
    DescribeConfigsResult, DescribeConfigsSynonym,
};

pub(super) const HANDLER: Handler = serial!(DescribeConfigsRequest, handle);

async fn handle(broker: Arc<Broker>, _: Context, request: DescribeConfigsRequest) -> DescribeConfigsResponse {
    let (synonyms, documentation) = (request.include_synonyms, request.include_documentation);
    let describe = |resource: DescribeConfigsResource| {
        let found = match resource.resource_type {
            BROKER_LOGGER => loggers(&broker, &resource),
            _ => configs(&broker, &resource, synonyms, documentation),
        };
        let (error, error_message, configs) = match found {
            Ok(configs) => (ErrorCode::None, Some(String::new()), configs),
            Err(refused) => (refused.code, Some(refused.message), vec![]),
        };
        DescribeConfigsResult {
            error_code: error.code(),
            error_message,
            resource_type: resource.resource_type,
            resource_name: resource.resource_name,
            configs,
        }
    };
    DescribeConfigsResponse { results: request.resources.into_iter().map(describe).collect(), ..Default::default() }
}

fn is_wanted(asked: &DescribeConfigsResource, name: &str) -> bool {
    match asked.configuration_keys.as_deref() {
        None | Some([]) => true,
        Some(keys) => keys.iter().any(|key| key == name),
    }
}

fn loggers(broker: &Broker, asked: &DescribeConfigsResource) -> Result<Vec<DescribeConfigsResourceResult>, Refused> {
    let loggers = log_levels::described(broker.log_levels(), &broker.config(), &asked.resource_name)?;
    let loggers = loggers.into_iter().filter(|(name, _)| is_wanted(asked, name));
    Ok(loggers
        .map(|(name, level)| DescribeConfigsResourceResult {
            name: name.into(),
            value: Some(level.to_string()),
            config_source: log_levels::SOURCE,
            ..Default::default()
        })
        .collect())
}

fn configs(
    broker: &Broker,
    asked: &DescribeConfigsResource,
    synonyms: bool,
    documentation: bool,
) -> Result<Vec<DescribeConfigsResourceResult>, Refused> {
    let unknown =
        |error: crate::broker::config::ConfigError| Refused::new(ErrorCode::InvalidRequest, error.to_string());
    let resource = Resource::new(asked.resource_type, &asked.resource_name).map_err(unknown)?;
    if let Resource::Topic(name) = &resource {
        topics::check_name(name)?;
        broker.topic_by_name(name).map_err(|code| Refused::new(code, ""))?;
    }
    let wanted = |name: &str| is_wanted(asked, name);
    let described = describe::describe(&broker.config(), &resource, &broker.overrides(&resource), wanted)
        .map_err(|error| Refused::of_config(&error, &resource))?;
    Ok(described.into_iter().map(|config| on_the_wire(config, synonyms, documentation)).collect())
}

fn on_the_wire(config: describe::Described, synonyms: bool, documentation: bool) -> DescribeConfigsResourceResult {
    let synonym = |synonym: describe::Synonym| DescribeConfigsSynonym {
        name: synonym.name,
        value: synonym.value,
        source: synonym.source as i8,
    };
    DescribeConfigsResourceResult {
        name: config.name,
        value: config.value,
        read_only: config.read_only,
        config_source: config.source as i8,
        is_sensitive: config.sensitive,
        synonyms: if synonyms { config.synonyms.into_iter().map(synonym).collect() } else { vec![] },
        config_type: config.kind.map_or(0, |kind| kind as i8),
        documentation: documentation.then(|| config.documentation.to_owned()),
    }
}
