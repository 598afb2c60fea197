//! Configs that change while the broker runs: what is stored of them, and how a change takes effect.
//!
//! A change is durable in the catalog before it is in force and before it is answered. Changes are made one at a time.

use std::sync::Arc;

use super::Broker;
use super::config::{BrokerConfig, Code, ConfigError, Overrides, Resource};
use super::topics::{self, Refused};
use crate::protocol::ErrorCode;
use crate::storage::catalog::{Catalog, Mutation, ResourceType};

/// The code of the protocol for a config that was not accepted.
pub fn config_code(error: &ConfigError, resource: &Resource) -> ErrorCode {
    match error.code(resource) {
        Code::InvalidConfig => ErrorCode::InvalidConfig,
        Code::InvalidRequest => ErrorCode::InvalidRequest,
    }
}

fn resource_type(resource: &Resource) -> ResourceType {
    match resource {
        Resource::Topic(_) => ResourceType::Topic,
        Resource::Broker(_) => ResourceType::Broker,
        Resource::Group(_) => ResourceType::Group,
        Resource::ClientMetrics(_) => ResourceType::ClientMetrics,
    }
}

/// What the catalog holds for a resource.
pub fn stored(catalog: &Catalog, resource: &Resource) -> Overrides {
    let configs = catalog.configs();
    configs.get(resource_type(resource), resource.name()).map(|configs| (**configs).clone()).unwrap_or_default()
}

/// The broker's settings from the start under the changes that the catalog remembers. A change that does not go with the
/// settings of this start is named in the log and does not count.
pub fn with_stored_changes(at_start: &BrokerConfig, catalog: &Catalog) -> BrokerConfig {
    let cluster = stored(catalog, &Resource::Broker(String::new()));
    let node = stored(catalog, &Resource::Broker(at_start.node_id().to_string()));
    let (config, wrong) = at_start.with_stored_changes(&cluster, &node);
    for (key, error) in wrong {
        tracing::error!(key, "a config that was changed while the broker ran is not in force: {error}");
    }
    config
}

/// The changes that every Kafka cluster starts with and that can never be taken back, where the catalog does not have them.
pub fn missing_changes(config: &BrokerConfig, catalog: &Catalog) -> Vec<Mutation> {
    let stored = stored(catalog, &Resource::Broker(String::new()));
    let missing = config.first_cluster_overrides().into_iter().filter(|(key, _)| !stored.contains_key(key));
    let set = |(key, value)| Mutation::SetConfig {
        resource_type: ResourceType::Broker,
        name: String::new(),
        key,
        value: Some(value),
    };
    missing.map(set).collect()
}

impl Broker {
    /// What was set on a resource since the start.
    pub(super) fn overrides(&self, resource: &Resource) -> Overrides {
        stored(self.store.catalog(), resource)
    }

    /// The resource of an alteration, if it is there.
    pub(super) fn alterable(&self, kind: i8, name: &str) -> Result<Resource, Refused> {
        let resource =
            Resource::new(kind, name).map_err(|error| Refused::new(ErrorCode::InvalidRequest, error.to_string()))?;
        if let Resource::Topic(name) = &resource
            && !name.is_empty()
        {
            topics::check_name(name)?;
            if self.topics().by_name(name).is_none() {
                let message = format!("The topic '{name}' does not exist.");
                return Err(Refused::new(ErrorCode::UnknownTopicOrPartition, message));
            }
        }
        Ok(resource)
    }

    /// Makes of what is stored of `resource` what `change` says, durably, and puts it in force.
    pub(super) async fn alter_configs(
        self: &Arc<Self>,
        resource: &Resource,
        validate_only: bool,
        change: impl Fn(&BrokerConfig, &Overrides) -> Result<Overrides, ConfigError>,
    ) -> Result<(), Refused> {
        let _one_at_a_time = self.altering.lock().await;
        let before = self.overrides(resource);
        let after = change(&self.config(), &before).map_err(|error| Refused::of_config(&error, resource))?;
        if validate_only || before == after {
            return Ok(());
        }
        let (kind, name) = (resource_type(resource), resource.name().to_owned());
        let set = |key: &String, value: Option<&String>| Mutation::SetConfig {
            resource_type: kind,
            name: name.clone(),
            key: key.clone(),
            value: value.cloned(),
        };
        let removed = before.keys().filter(|key| !after.contains_key(*key)).map(|key| set(key, None));
        let changed = after.iter().filter(|(key, value)| before.get(*key) != Some(value));
        let mutations = removed.chain(changed.map(|(key, value)| set(key, Some(value)))).collect();
        self.commit(mutations).await?;
        self.put_in_force(resource);
        Ok(())
    }

    fn put_in_force(&self, resource: &Resource) {
        match resource {
            Resource::Topic(name) => {
                self.topic_cache.clear();
                self.store.refresh_log_configs(Some(name));
            }
            Resource::Broker(_) => {
                self.config.replace(with_stored_changes(&self.config(), self.store.catalog()));
                self.configure_groups();
                self.topic_cache.clear();
                self.store.refresh_log_configs(None);
            }
            Resource::Group(_) => self.configure_groups(),
            Resource::ClientMetrics(_) => {}
        }
    }
}
