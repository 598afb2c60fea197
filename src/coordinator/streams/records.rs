//! A streams group as the records that Apache Kafka keeps of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::api::TaskSet;
use super::topology::{InternalTopic, Subtopology, Topology};
use super::{Held, Member, MemberState, StreamsGroup};
use crate::coordinator::records::GroupRecords;
use crate::protocol::coordinator_records::{
    self as wire, About, CopartitionGroup, Endpoint, KeyValue, StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue, StreamsGroupMetadataValue, StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTopologyValue, TargetAssignmentMetadataValue, TaskIds, TopicInfo, flexible,
};

impl StreamsGroup {
    pub fn add_records(&self, records: &mut GroupRecords) {
        let id: &str = &self.id;
        let standbys = self
            .standbys
            .map(|standbys| vec![KeyValue { key: "num.standby.replicas".to_owned(), value: standbys.to_string() }]);
        let group = StreamsGroupMetadataValue {
            epoch: self.epoch,
            metadata_hash: self.fingerprint as i64,
            validated_topology_epoch: self.validated_epoch,
            last_assignment_configs: standbys,
        };
        records.add(About::StreamsGroup, &[id], flexible(0, &group));
        let target = TargetAssignmentMetadataValue { assignment_epoch: self.assignment_epoch, ..Default::default() };
        records.add(About::StreamsTarget, &[id], flexible(0, &target));
        if let Some(topology) = &self.topology {
            records.add(About::StreamsTopology, &[id], flexible(0, &described(topology)));
        }
        for (member_id, member) in &self.members {
            records.add(About::StreamsMember, &[id, member_id], flexible(0, &about(member)));
            records.add(About::StreamsAssignment, &[id, member_id], flexible(0, &assignment(member)));
        }
        for (member_id, tasks) in &self.target {
            let target = StreamsGroupTargetAssignmentMemberValue {
                active_tasks: without_epochs(&tasks.active),
                standby_tasks: without_epochs(&tasks.standby),
                warmup_tasks: vec![],
            };
            records.add(About::StreamsTargetOfMember, &[id, member_id], flexible(0, &target));
        }
    }
}

fn about(member: &Member) -> StreamsGroupMemberMetadataValue {
    StreamsGroupMemberMetadataValue {
        instance_id: None,
        rack_id: member.rack_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        rebalance_timeout_ms: member.rebalance_timeout_ms,
        topology_epoch: member.topology_epoch,
        process_id: member.process_id.clone(),
        user_endpoint: member.endpoint.as_ref().map(|at| Endpoint { host: at.host.clone(), port: at.port }),
        client_tags: pairs(&member.client_tags),
    }
}

fn assignment(member: &Member) -> StreamsGroupCurrentMemberAssignmentValue {
    StreamsGroupCurrentMemberAssignmentValue {
        member_epoch: member.epoch,
        previous_member_epoch: member.previous_epoch,
        state: match member.state {
            MemberState::Stable => 1,
            MemberState::Unrevoked => 2,
            MemberState::Unreleased => 3,
        },
        active_tasks: with_epochs(&member.assigned),
        standby_tasks: without_epochs(&member.assigned.standby),
        active_tasks_pending_revocation: with_epochs(&member.revoking),
        standby_tasks_pending_revocation: without_epochs(&member.revoking.standby),
        ..Default::default()
    }
}

fn with_epochs(held: &Held) -> Vec<TaskIds> {
    let listed = |(subtopology, tasks): (&Arc<str>, &BTreeMap<i32, i32>)| {
        let (partitions, epochs) = tasks.iter().map(|(partition, epoch)| (*partition, *epoch)).unzip();
        TaskIds { subtopology_id: subtopology.to_string(), partitions, assignment_epochs: Some(epochs) }
    };
    held.active.iter().map(listed).collect()
}

fn without_epochs(tasks: &TaskSet) -> Vec<TaskIds> {
    let listed = |(subtopology, partitions): (&Arc<str>, &BTreeSet<i32>)| TaskIds {
        subtopology_id: subtopology.to_string(),
        partitions: partitions.iter().copied().collect(),
        assignment_epochs: None,
    };
    tasks.iter().map(listed).collect()
}

fn pairs(all: &BTreeMap<String, String>) -> Vec<KeyValue> {
    all.iter().map(|(key, value)| KeyValue { key: key.clone(), value: value.clone() }).collect()
}

fn described(topology: &Topology) -> StreamsGroupTopologyValue {
    let topic = |topic: &InternalTopic| TopicInfo {
        name: topic.name.clone(),
        partitions: topic.partitions,
        replication_factor: topic.replication_factor,
        topic_configs: pairs(&topic.configs),
    };
    let subtopology = |one: &Subtopology| wire::Subtopology {
        subtopology_id: one.id.clone(),
        source_topics: one.source_topics.clone(),
        source_topic_regex: vec![],
        state_changelog_topics: one.changelogs.iter().map(topic).collect(),
        repartition_sink_topics: one.sink_topics.clone(),
        repartition_source_topics: one.repartition_sources.iter().map(topic).collect(),
        copartition_groups: copartition_groups(one),
    };
    StreamsGroupTopologyValue {
        epoch: topology.epoch,
        subtopologies: topology.subtopologies.iter().map(subtopology).collect(),
    }
}

/// The sources of a group by where they stand in the lists of sources.
fn copartition_groups(one: &Subtopology) -> Vec<CopartitionGroup> {
    let places = |names: Vec<&str>, group: &BTreeSet<String>| -> Vec<i16> {
        let found = names.iter().enumerate().filter(|(_, name)| group.contains(**name));
        found.filter_map(|(place, _)| i16::try_from(place).ok()).collect()
    };
    let listed = |group: &BTreeSet<String>| CopartitionGroup {
        source_topics: places(one.source_topics.iter().map(String::as_str).collect(), group),
        source_topic_regex: vec![],
        repartition_source_topics: places(
            one.repartition_sources.iter().map(|topic| topic.name.as_str()).collect(),
            group,
        ),
    };
    one.copartition_groups.iter().map(listed).collect()
}
