//! Kafka's own topics as clients see them ([`internal_topics`]): made when a coordinator is first looked up, with the partitions
//! and configs that Apache Kafka gives them, listed and described, and never produced to by clients.
//!
//! The coordinators have their state in the catalog, and what they hold is a copy ([`state_topics`](super::state_topics)): whoever
//! deletes such a topic deletes no offset with it, and the next look-up makes it anew.

use std::sync::Arc;

use super::Broker;
use super::config::{BrokerConfig, Overrides};
use super::topics::{self, Creation};
use crate::protocol::ErrorCode;
use crate::storage::internal_topics::{OFFSETS, SHARE_STATE, TRANSACTIONS};

/// How such a topic is made. `None` for any other name.
pub fn creation(config: &BrokerConfig, name: &str) -> Option<Creation> {
    let text = |key: &str| config.get(key).map(ToString::to_string).unwrap_or_default();
    let (partitions, configs) = match name {
        OFFSETS => {
            let configs = [
                ("cleanup.policy", "compact".to_owned()),
                ("compression.type", "producer".to_owned()),
                ("segment.bytes", text("offsets.topic.segment.bytes")),
            ];
            (config.int("offsets.topic.num.partitions"), configs.to_vec())
        }
        TRANSACTIONS => {
            let configs = [
                ("cleanup.policy", "compact".to_owned()),
                ("compression.type", "uncompressed".to_owned()),
                ("min.insync.replicas", text("transaction.state.log.min.isr")),
                ("segment.bytes", text("transaction.state.log.segment.bytes")),
                ("unclean.leader.election.enable", "false".to_owned()),
            ];
            (config.int("transaction.state.log.num.partitions"), configs.to_vec())
        }
        SHARE_STATE => {
            let configs = [
                // Kafka removes what it no longer needs by itself; here every record is a whole state, and the last one counts.
                ("cleanup.policy", "compact".to_owned()),
                ("compression.type", "producer".to_owned()),
                ("segment.bytes", text("share.coordinator.state.topic.segment.bytes")),
            ];
            (config.int("share.coordinator.state.topic.num.partitions"), configs.to_vec())
        }
        _ => return None,
    };
    let configs: Overrides = configs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    Some(Creation { name: name.into(), partitions, replication_factor: 1, configs })
}

impl Broker {
    /// Whether there is a coordinator for a group. Kafka has none before somebody has looked one up, which makes the topic;
    /// here that is so for groups that nobody knows yet, and those that there are go on, whatever becomes of the topic.
    pub(super) fn has_coordinator(&self, group: &str) -> bool {
        self.topics().by_name(OFFSETS).is_some() || self.groups().with(|coordinator, _| coordinator.knows_group(group))
    }

    /// Makes an internal topic if it is not there yet. The coordinator can do without it, so that a failure is only named in
    /// the log; the next look-up tries again.
    pub(super) async fn ensure_internal_topic(self: &Arc<Self>, name: &str) {
        if self.topics().by_name(name).is_some() {
            return;
        }
        let Some(creation) = creation(&self.config(), name) else { return };
        match topics::create(self, creation).await {
            Ok(_) => self.copies.topic_made(),
            Err(refused) if refused.code == ErrorCode::TopicAlreadyExists => {}
            Err(refused) => tracing::error!(topic = name, "an internal topic was not made: {}", refused.message),
        }
    }
}
