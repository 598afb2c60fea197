//! What is shown of a consumer group.

use std::sync::Arc;

use super::{ConsumerGroup, Member, Partitions, embedded};
use crate::coordinator::api::{AssignedTopic, DescribedConsumerGroup, DescribedConsumerMember};
use crate::coordinator::group::Shown;
use crate::coordinator::topics::Topics;
use crate::protocol::Uuid;

impl ConsumerGroup {
    pub fn state_name(&self) -> &'static str {
        let on_the_way = |member: &Member| !member.is_reconciled(self.assignment_epoch);
        match () {
            () if self.dead => "Dead",
            () if self.members.is_empty() => "Empty",
            () if self.epoch > self.assignment_epoch => "Assigning",
            () if self.members.values().any(on_the_way) => "Reconciling",
            () => "Stable",
        }
    }

    /// What may be shown: the group as it is, or what is stored of it while it is being written.
    pub fn shown(&self) -> Shown<'_> {
        self.ledger.what_may_be_shown()
    }

    pub fn describe(&self, topics: &Topics, default_assignor: &str) -> DescribedConsumerGroup {
        let nothing = Partitions::new();
        let described = |(id, member): (&Arc<str>, &Member)| DescribedConsumerMember {
            member_id: id.to_string(),
            instance_id: member.instance_id.as_deref().map(str::to_owned),
            rack_id: member.rack_id.clone(),
            epoch: member.epoch,
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            topic_names: member.topic_names.iter().cloned().collect(),
            topic_regex: member.topic_regex.clone(),
            assigned: named(embedded::listed(&member.assigned), topics),
            target: named(
                self.target.get(id).unwrap_or(&nothing).iter().map(|(id, all)| (*id, all.iter().copied().collect())),
                topics,
            ),
            is_classic: member.classic.is_some(),
        };
        DescribedConsumerGroup {
            group_id: self.id.to_string(),
            state: self.state_name(),
            epoch: self.epoch,
            assignment_epoch: self.assignment_epoch,
            assignor: self.preferred_assignor().map_or(default_assignor, |assignor| assignor.name()).to_owned(),
            // Kafka's hash tables show neighbouring names last to first.
            members: self.members.iter().rev().map(described).collect(),
        }
    }
}

/// Topics that are gone are left out.
fn named(partitions: impl Iterator<Item = (Uuid, Vec<i32>)>, topics: &Topics) -> Vec<AssignedTopic> {
    let named = |(id, partitions): (Uuid, Vec<i32>)| {
        let name = topics.name(id)?.to_string();
        Some(AssignedTopic { id, name, partitions })
    };
    partitions.filter_map(named).collect()
}
