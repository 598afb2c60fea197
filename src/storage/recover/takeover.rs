//! What of a damaged catalog goes into the one that is made anew: all that can be read of it, as far as it agrees with the
//! folders of the partitions.

use std::collections::BTreeMap;

use crate::protocol::Uuid;
use crate::storage::catalog::salvage::Salvaged;
use crate::storage::catalog::{Mutation, ResourceType, Topic};
use crate::storage::internal_topics::is_internal;

/// What is taken over.
#[derive(Debug, Default)]
pub(super) struct Takeover {
    pub mutations: Vec<Mutation>,
    /// What, and how many.
    pub taken: BTreeMap<&'static str, u64>,
    /// What can be read and is not taken over, each with the reason.
    pub refused: Vec<String>,
}

impl Takeover {
    fn take(&mut self, what: &'static str, mutation: Mutation) {
        *self.taken.entry(what).or_default() += 1;
        self.mutations.push(mutation);
    }

    fn refuse(&mut self, why: String) {
        if !self.refused.contains(&why) {
            self.refused.push(why);
        }
    }
}

/// Decides what is taken over of `salvaged` when these are the topics that there are folders of: name, id, partitions.
pub(super) fn take_over(salvaged: Salvaged, topics: &[(String, Uuid, i32)]) -> Takeover {
    let mut all = Takeover::default();
    let ids: BTreeMap<&str, (Uuid, i32)> =
        topics.iter().map(|(name, id, count)| (name.as_str(), (*id, *count))).collect();
    let counts: BTreeMap<Uuid, i32> = topics.iter().map(|(_, id, count)| (*id, *count)).collect();
    let known: BTreeMap<&str, Uuid> = salvaged.topics.iter().map(|topic| (&*topic.name, topic.id)).collect();
    // Whether what belongs to a name belongs to the topic whose folders there are.
    let is_same = |name: &str| match (ids.get(name), known.get(name)) {
        (Some((id, _)), Some(known)) => id == known,
        (Some(_), None) => true,
        (None, _) => is_internal(name),
    };
    for topic in &salvaged.topics {
        match ids.get(&*topic.name) {
            Some((id, _)) if *id == topic.id => {}
            Some((id, _)) => {
                all.refuse(format!("the topic {} had the id {} there, and its folders have {id}", topic.name, topic.id))
            }
            // These get folders when somebody reads them.
            None if is_internal(&topic.name) => {
                let Topic { name, id, partitions } = topic.clone();
                all.take("internal topics", Mutation::PutTopic(Topic { name, id, partitions }));
            }
            None => all.refuse(format!("the topic {} with id {}: there is no folder of it", topic.name, topic.id)),
        }
    }
    for (resource_type, name, key, value) in salvaged.configs {
        let what = match resource_type {
            ResourceType::Topic if !is_same(&name) => {
                all.refuse(format!("configs of the topic {name}: there is no folder of it, or one with another id"));
                continue;
            }
            ResourceType::Topic => "configs of topics",
            _ => "configs of the broker, of groups and of client metrics",
        };
        all.take(what, Mutation::SetConfig { resource_type, name, key, value: Some(value) });
    }
    for (group, topic, partition, offset) in salvaged.offsets {
        let own = ids.get(topic.as_str()).filter(|own| offset.topic_id.is_zero() || offset.topic_id == own.0);
        if own.is_some_and(|own| (0..own.1).contains(&partition)) && is_same(&topic) {
            let (group, topic) = (group.into(), topic.into());
            all.take("committed offsets", Mutation::CommitOffset { group, topic, partition, offset });
        } else {
            all.refuse(format!(
                "offsets of the group {group} in {topic}: it is not the topic that they were committed for"
            ));
        }
    }
    for (group, value) in salvaged.groups {
        all.take("groups", Mutation::PutGroup { group: group.into(), value });
    }
    for (topic_id, partition, offset) in salvaged.log_starts {
        if counts.get(&topic_id).is_some_and(|count| (0..*count).contains(&partition)) {
            all.take("offsets that logs start at", Mutation::RaiseLogStart { topic_id, partition, offset });
        }
    }
    for (id, value) in salvaged.transactional_ids {
        all.take("transactional ids", Mutation::PutTransactionalId { id: id.into(), value });
    }
    for (space, key, value) in salvaged.states {
        let what = match space.as_str() {
            "scram" => "SCRAM credentials",
            "client-quota" => "quotas",
            "share-partition" => "share partitions",
            "pending-offsets" => "offsets of open transactions",
            _ => "other entries",
        };
        all.take(what, Mutation::RestoreState { space, key, value });
    }
    if let Some(to) = salvaged.next_producer_id {
        all.mutations.push(Mutation::RaiseNextProducerId { to });
    }
    all
}
