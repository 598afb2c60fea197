//! What is in force on the broker.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;

use super::checks;
use super::def::{Def, Effect};
use super::error::ConfigError;
use super::table::{self, BROKER};
use super::value::{Kind, Value};
use super::{Overrides, describe::Source};

/// The broker's configs: what was set at the start, under the default that was set for all brokers since, under what
/// was set for this one. A value: it never changes, and may be shared between threads.
#[derive(Clone, Debug)]
pub struct BrokerConfig {
    node_id: i32,
    at_start: Overrides,
    cluster: Overrides,
    node: Overrides,
    /// Every key of the table that is not null, by name.
    values: BTreeMap<&'static str, Value>,
}

impl BrokerConfig {
    /// Checks the settings of a broker that starts. `node.id` and `broker.id` are one setting, and each is there
    /// afterwards whichever was given.
    pub fn at_start(mut settings: Overrides) -> Result<BrokerConfig, ConfigError> {
        for (name, text) in &settings {
            match table::broker_or_listener(name) {
                Some(def) => drop(def.parse(text)?),
                None if table::listener_key(name).is_some() => {}
                None => return Err(ConfigError::UnknownBrokerConfig { name: name.clone() }),
            }
        }
        match (settings.get("node.id").cloned(), settings.get("broker.id").cloned()) {
            (Some(node), Some(broker)) if node != broker => {
                return Err(ConfigError::Conflict("You must set `node.id` to the same value as `broker.id`.".into()));
            }
            (Some(id), _) | (None, Some(id)) => {
                settings.insert("node.id".into(), id.clone());
                settings.insert("broker.id".into(), id);
            }
            (None, None) => {}
        }
        let mut config = BrokerConfig::build(settings, Overrides::new(), Overrides::new())?;
        config.node_id = config.int("node.id");
        checks::broker(&config)?;
        checks::at_start(&config)?;
        Ok(config)
    }

    /// The settings of an Apache Kafka node that was started with these: its defaults count where doze's are others.
    pub fn of_kafka(settings: Overrides) -> Result<BrokerConfig, ConfigError> {
        let mut all = Overrides::new();
        for def in BROKER.iter() {
            let is_set = |key: &&str| settings.contains_key(*key);
            if let Some(kafka) = def.differs.and_then(|differs| differs.kafka)
                && !def.chain.iter().any(is_set)
            {
                all.insert(def.name.to_owned(), kafka.to_owned());
            }
        }
        all.extend(settings);
        BrokerConfig::at_start(all)
    }

    /// The same broker with these changes made since its start: `cluster` for all brokers, `node` for this one.
    /// Fails where a value is not of its key's kind or the whole does not hold together.
    pub fn with_changes(&self, cluster: Overrides, node: Overrides) -> Result<BrokerConfig, ConfigError> {
        let mut config = BrokerConfig::build(self.at_start.clone(), cluster, node)?;
        config.node_id = self.node_id;
        checks::broker(&config)?;
        Ok(config)
    }

    /// As [`BrokerConfig::with_changes`], with changes that were accepted once. The settings of this start may be others, or
    /// this doze may be older than the one that accepted them: a change that does not go with the rest does not count,
    /// and is handed back with its name and why.
    pub fn with_stored_changes(
        &self,
        cluster: &Overrides,
        node: &Overrides,
    ) -> (BrokerConfig, Vec<(String, ConfigError)>) {
        let mut config = self.clone();
        match config.with_changes(cluster.clone(), node.clone()) {
            Ok(config) => return (config, Vec::new()),
            // One at a time, then, to find out which.
            Err(_) => (config.cluster, config.node) = (Overrides::new(), Overrides::new()),
        }
        let mut refused = Vec::new();
        for (source, changes) in [(Source::Cluster, cluster), (Source::Node, node)] {
            for (name, text) in changes {
                let (mut cluster, mut node) = (config.cluster.clone(), config.node.clone());
                let of_source = if source == Source::Cluster { &mut cluster } else { &mut node };
                of_source.insert(name.clone(), text.clone());
                match config.with_changes(cluster, node) {
                    Ok(with) => config = with,
                    Err(error) => refused.push((name.clone(), error)),
                }
            }
        }
        (config, refused)
    }

    fn build(at_start: Overrides, cluster: Overrides, node: Overrides) -> Result<BrokerConfig, ConfigError> {
        let mut texts: BTreeMap<&str, &str> = at_start.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        for (name, text) in cluster.iter().chain(&node) {
            // A change takes the place of everything that says the same thing in other units.
            if let Some(def) = BROKER.get(name) {
                for other in def.chain {
                    texts.remove(other);
                }
            }
            texts.insert(name, text);
        }
        let mut values = BTreeMap::new();
        for def in BROKER.iter() {
            let value = match texts.get(def.name) {
                Some(text) => Some(def.parse(text)?),
                None => def.default_value(),
            };
            values.extend(value.map(|value| (def.name, value)));
        }
        Ok(BrokerConfig { node_id: 0, at_start, cluster, node, values })
    }

    /// Whether the broker was started with a value for this key.
    pub fn is_set_at_start(&self, name: &str) -> bool {
        self.at_start.contains_key(name)
    }

    /// The number by which clients know this broker. It cannot change while the broker runs.
    pub fn node_id(&self) -> i32 {
        self.node_id
    }

    /// The value in force; `None` is null or a key that is not in the table.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// What is set where, as text.
    pub fn set_at(&self, source: Source) -> &Overrides {
        match source {
            Source::Node => &self.node,
            Source::Cluster => &self.cluster,
            _ => &self.at_start,
        }
    }

    /// What to store as the defaults for all brokers when a data directory is made. Kafka's clusters of today keep
    /// eligible leader replicas, and with that `min.insync.replicas` has such a default from the beginning, which can
    /// be changed but not removed.
    pub fn first_cluster_overrides(&self) -> Overrides {
        Overrides::from([(MIN_INSYNC.to_owned(), self.int(MIN_INSYNC).to_string())])
    }

    /// The first value that is not null among the keys that stand in for `name`, with the key that it is from.
    pub(super) fn first_of(&self, name: &str) -> Option<(&'static str, &Value)> {
        let def = BROKER.get(name)?;
        let own = [def.name];
        let chain = if def.chain.is_empty() { &own } else { def.chain };
        chain.iter().find_map(|&key| Some((key, self.values.get(key)?)))
    }

    /// The settings from the start that have no effect, with the reason. For the log.
    pub fn without_effect(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.at_start.keys().filter_map(|name| match table::broker_or_listener(name).map(|def| def.effect) {
            Some(Effect::Idle(why)) => Some((name.as_str(), why)),
            Some(Effect::Works) if table::listener_key(name).is_none() => None,
            _ => Some((name.as_str(), "doze has one listener")),
        })
    }

    /// A boolean config.
    ///
    /// # Panics
    /// As the other typed getters do, when the table has no such key of that kind or its value is null: that is a
    /// slip in the program, not in the settings.
    pub fn boolean(&self, name: &str) -> bool {
        match self.values.get(name) {
            Some(Value::Boolean(b)) => *b,
            other => wrong(name, Kind::Boolean, other),
        }
    }

    /// A config of 16 or 32 bits.
    pub fn int(&self, name: &str) -> i32 {
        match self.values.get(name) {
            Some(Value::Int(n)) => *n,
            Some(Value::Short(n)) => i32::from(*n),
            other => wrong(name, Kind::Int, other),
        }
    }

    /// A config of 16, 32 or 64 bits.
    pub fn long(&self, name: &str) -> i64 {
        match self.values.get(name) {
            Some(Value::Long(n)) => *n,
            Some(Value::Int(n)) => i64::from(*n),
            Some(Value::Short(n)) => i64::from(*n),
            other => wrong(name, Kind::Long, other),
        }
    }

    pub fn double(&self, name: &str) -> f64 {
        match self.values.get(name) {
            Some(Value::Double(n)) => *n,
            other => wrong(name, Kind::Double, other),
        }
    }

    pub fn text(&self, name: &str) -> &str {
        match self.values.get(name) {
            Some(Value::Text(text)) => text,
            other => wrong(name, Kind::String, other),
        }
    }

    pub fn list(&self, name: &str) -> &[String] {
        match self.values.get(name) {
            Some(Value::List(items)) => items,
            other => wrong(name, Kind::List, other),
        }
    }
}

fn wrong(name: &str, kind: Kind, value: Option<&Value>) -> ! {
    panic!("{name} was read as {}, and is {value:?}", kind.name())
}

pub(super) const MIN_INSYNC: &str = "min.insync.replicas";

/// The broker's configs as they change. Shared between threads.
#[derive(Debug)]
pub struct LiveConfig(RwLock<Arc<BrokerConfig>>);

impl LiveConfig {
    pub fn new(config: BrokerConfig) -> LiveConfig {
        LiveConfig(RwLock::new(Arc::new(config)))
    }

    /// What is in force now. The snapshot does not change under its holder.
    pub fn snapshot(&self) -> Arc<BrokerConfig> {
        self.0.read().clone()
    }

    /// Puts `config` in force.
    pub fn replace(&self, config: BrokerConfig) {
        *self.0.write() = Arc::new(config);
    }
}

/// Whether a broker config of that name is never shown: a password, or a key that nobody knows.
pub(super) fn is_sensitive(name: &str) -> bool {
    table::broker_or_listener(name).is_none_or(Def::is_sensitive)
}
