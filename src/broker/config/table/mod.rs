//! The tables, by area, and looking a key up in them.

mod cluster;
mod group;
mod group_resource;
mod log;
mod metrics;
mod network;
mod security;
mod share;
mod topic;
mod transaction;

use std::sync::LazyLock;

use super::def::Def;

/// Tables put together and sorted by name.
#[derive(Debug)]
pub struct Table(Vec<&'static Def>);

impl Table {
    fn of(parts: &[&'static [Def]]) -> Table {
        let mut defs: Vec<&'static Def> = parts.iter().flat_map(|part| part.iter()).collect();
        defs.sort_by_key(|def| def.name);
        Table(defs)
    }

    pub fn get(&self, name: &str) -> Option<&'static Def> {
        let at = self.0.binary_search_by(|def| def.name.cmp(name)).ok()?;
        Some(self.0[at])
    }

    /// All keys, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &'static Def> + '_ {
        self.0.iter().copied()
    }
}

/// The broker configs.
pub static BROKER: LazyLock<Table> = LazyLock::new(|| {
    Table::of(&[
        log::TABLE,
        network::TABLE,
        group::TABLE,
        transaction::TABLE,
        share::TABLE,
        security::TABLE,
        cluster::TABLE,
    ])
});

/// The topic configs.
pub static TOPIC: LazyLock<Table> = LazyLock::new(|| Table::of(&[topic::TABLE]));

/// The group configs.
pub static GROUP: LazyLock<Table> = LazyLock::new(|| Table::of(&[group_resource::TABLE]));

/// The configs of a client metrics subscription.
pub static METRICS: LazyLock<Table> = LazyLock::new(|| Table::of(&[metrics::TABLE]));

/// The key that `name` is for one listener alone: `ssl.client.auth` of `listener.name.external.ssl.client.auth`.
pub fn listener_key(name: &str) -> Option<&str> {
    name.strip_prefix("listener.name.")?.split_once('.').map(|(_, key)| key)
}

/// The broker config of that name, or the one that it sets for one listener alone.
pub fn broker_or_listener(name: &str) -> Option<&'static Def> {
    BROKER.get(name).or_else(|| BROKER.get(listener_key(name)?))
}
