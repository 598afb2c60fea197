//! What is shown of a streams group.

use std::sync::Arc;

use super::api::{DescribedStreamsGroup, DescribedStreamsMember};
use super::configure::{Found, configure};
use super::topology::Topology;
use super::{Member, StreamsGroup};
use crate::coordinator::group::Shown;
use crate::coordinator::topics::Topics;

impl StreamsGroup {
    pub fn state_name(&self) -> &'static str {
        let is_ready = self.topology.as_ref().is_some_and(|topology| topology.epoch == self.validated_epoch);
        match () {
            () if self.dead => "Dead",
            () if self.members.is_empty() => "Empty",
            () if !is_ready => "NotReady",
            () if self.epoch > self.assignment_epoch => "Assigning",
            () if self.members.values().any(|member| !member.is_reconciled(self.assignment_epoch)) => "Reconciling",
            () => "Stable",
        }
    }

    /// What may be shown: the group as it is, or what is stored of it while it is being written.
    pub fn shown(&self) -> Shown<'_> {
        self.ledger.what_may_be_shown()
    }

    pub fn describe(&self, topics: &Topics) -> DescribedStreamsGroup {
        let described = |(id, member): (&Arc<str>, &Member)| DescribedStreamsMember {
            member_id: id.to_string(),
            rack_id: member.rack_id.clone(),
            epoch: member.epoch,
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            topology_epoch: member.topology_epoch,
            process_id: member.process_id.clone(),
            endpoint: member.endpoint.clone(),
            client_tags: member.client_tags.clone(),
            assigned: member.assigned.tasks(),
            target: self.target.get(id).cloned().unwrap_or_default(),
        };
        DescribedStreamsGroup {
            group_id: self.id.to_string(),
            state: self.state_name(),
            epoch: self.epoch,
            assignment_epoch: self.assignment_epoch,
            topology: self.topology.as_ref().map(|topology| sized(topology, topics)),
            // Kafka's hash tables show neighbouring names last to first.
            members: self.members.iter().rev().map(described).collect(),
        }
    }
}

/// The topology with the partition counts of its internal topics, if all topics are there.
fn sized(topology: &Topology, topics: &Topics) -> Topology {
    let mut topology = topology.clone();
    if let Ok(Found { subtopologies: Some(mut configured), problem: None, .. }) = configure(&topology, topics) {
        for subtopology in &mut topology.subtopologies {
            if let Some(configured) = configured.remove(&subtopology.id) {
                subtopology.repartition_sources = configured.repartition_sources;
                subtopology.changelogs = configured.changelogs;
            }
        }
    }
    topology
}
