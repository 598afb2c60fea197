//! What the catalog keeps in memory: topics and configs, as of the last commit that is durable.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::protocol::Uuid;

/// A topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    pub name: Arc<str>,
    pub id: Uuid,
    /// How many partitions, at least 1.
    pub partitions: i32,
}

/// The topics at one moment.
#[derive(Clone, Debug, Default)]
pub struct Topics {
    by_name: BTreeMap<Arc<str>, Arc<Topic>>,
    by_id: HashMap<Uuid, Arc<Topic>>,
}

impl Topics {
    pub fn by_name(&self, name: &str) -> Option<&Arc<Topic>> {
        self.by_name.get(name)
    }

    pub fn by_id(&self, id: Uuid) -> Option<&Arc<Topic>> {
        self.by_id.get(&id)
    }

    /// Sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Topic>> {
        self.by_name.values()
    }

    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub(super) fn insert(&mut self, topic: Topic) {
        self.remove(&topic.name.clone());
        let topic = Arc::new(topic);
        self.by_name.insert(topic.name.clone(), topic.clone());
        self.by_id.insert(topic.id, topic);
    }

    pub(super) fn remove(&mut self, name: &str) {
        if let Some(topic) = self.by_name.remove(name) {
            self.by_id.remove(&topic.id);
        }
    }
}

/// What a config belongs to, with Kafka's number for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ResourceType {
    Topic = 2,
    /// The name is the broker's id, or empty for the default of the whole cluster.
    Broker = 4,
    BrokerLogger = 8,
    ClientMetrics = 16,
    Group = 32,
}

impl ResourceType {
    pub(super) fn from_number(number: u8) -> Option<Self> {
        use ResourceType::*;
        [Topic, Broker, BrokerLogger, ClientMetrics, Group].into_iter().find(|t| *t as u8 == number)
    }
}

/// The configs that were set on one resource: key to value, as text.
pub type ConfigMap = BTreeMap<String, String>;

/// The configs at one moment.
#[derive(Clone, Debug, Default)]
pub struct Configs(BTreeMap<ResourceType, BTreeMap<String, Arc<ConfigMap>>>);

impl Configs {
    /// What was set on a resource; `None` if nothing was.
    pub fn get(&self, resource_type: ResourceType, name: &str) -> Option<&Arc<ConfigMap>> {
        self.0.get(&resource_type)?.get(name)
    }

    /// The resources of a type that have a config, sorted by name.
    pub fn iter(&self, resource_type: ResourceType) -> impl Iterator<Item = (&str, &Arc<ConfigMap>)> {
        self.0.get(&resource_type).into_iter().flatten().map(|(name, configs)| (name.as_str(), configs))
    }

    pub(super) fn set(&mut self, resource_type: ResourceType, name: &str, key: &str, value: Option<&str>) {
        let names = self.0.entry(resource_type).or_default();
        match value {
            Some(value) => {
                let configs = names.entry(name.to_owned()).or_default();
                Arc::make_mut(configs).insert(key.to_owned(), value.to_owned());
            }
            None => {
                if let Some(configs) = names.get_mut(name) {
                    Arc::make_mut(configs).remove(key);
                    if configs.is_empty() {
                        names.remove(name);
                    }
                }
            }
        }
    }

    pub(super) fn clear(&mut self, resource_type: ResourceType, name: &str) {
        if let Some(names) = self.0.get_mut(&resource_type) {
            names.remove(name);
        }
    }
}
