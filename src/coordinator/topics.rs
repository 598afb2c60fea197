//! What the coordinator knows of topics: plain data that it is handed whenever it changes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::protocol::Uuid;

/// Partitions by topic; no empty sets.
pub(super) type Partitions = BTreeMap<Uuid, BTreeSet<i32>>;

/// A topic, as far as groups are concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicMetadata {
    pub name: Arc<str>,
    pub id: Uuid,
    /// How many partitions it has; they are numbered from 0.
    pub partitions: i32,
}

/// Every topic there is at one moment.
#[derive(Clone, Debug, Default)]
pub struct Topics {
    by_name: BTreeMap<Arc<str>, (Uuid, i32)>,
    by_id: HashMap<Uuid, Arc<str>>,
}

impl Topics {
    /// The id of a topic and how many partitions it has.
    pub(super) fn by_name(&self, name: &str) -> Option<(Uuid, i32)> {
        self.by_name.get(name).copied()
    }

    pub(super) fn name(&self, id: Uuid) -> Option<&Arc<str>> {
        self.by_id.get(&id)
    }

    /// How many partitions the topic with this id has; none if there is no such topic.
    pub(super) fn partitions(&self, id: Uuid) -> i32 {
        self.name(id).and_then(|name| self.by_name(name)).map_or(0, |(_, partitions)| partitions)
    }

    /// Of topics none of which exists.
    pub(super) const FINGERPRINT_OF_NOTHING: u64 = 0xcbf2_9ce4_8422_2325;

    /// FNV-1a over those of these topics that exist: their ids and partition counts. The names come in order.
    pub(super) fn fingerprint<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> u64 {
        let mut hash = Self::FINGERPRINT_OF_NOTHING;
        for name in names {
            let Some((id, partitions)) = self.by_name(name) else { continue };
            for byte in id.0.iter().chain(&partitions.to_be_bytes()) {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
        hash
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.by_name.keys()
    }
}

impl FromIterator<TopicMetadata> for Topics {
    fn from_iter<I: IntoIterator<Item = TopicMetadata>>(topics: I) -> Self {
        let mut all = Topics::default();
        for topic in topics {
            all.by_id.insert(topic.id, topic.name.clone());
            all.by_name.insert(topic.name, (topic.id, topic.partitions));
        }
        all
    }
}
