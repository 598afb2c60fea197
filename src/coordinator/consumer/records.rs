//! A consumer group as the records that Apache Kafka keeps of it.

use std::collections::BTreeMap;

use super::{ConsumerGroup, Member, MemberState, Owned};
use crate::coordinator::records::{GroupRecords, listed};
use crate::protocol::Uuid;
use crate::protocol::coordinator_records::{
    About, ClassicMemberMetadata, ClassicProtocol, ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue, ConsumerGroupMetadataValue, OwnedPartitions, TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue, flexible,
};

impl ConsumerGroup {
    pub fn add_records(&self, records: &mut GroupRecords) {
        let id: &str = &self.id;
        let group = ConsumerGroupMetadataValue { epoch: self.epoch, metadata_hash: self.fingerprint as i64 };
        records.add(About::ConsumerGroup, &[id], flexible(0, &group));
        let target = TargetAssignmentMetadataValue { assignment_epoch: self.assignment_epoch, ..Default::default() };
        records.add(About::ConsumerTarget, &[id], flexible(0, &target));
        for (member_id, member) in &self.members {
            records.add(About::ConsumerMember, &[id, member_id], flexible(0, &subscription(member)));
            records.add(About::ConsumerAssignment, &[id, member_id], flexible(0, &assignment(member)));
        }
        for (member_id, partitions) in &self.target {
            let target = TargetAssignmentMemberValue { topic_partitions: listed(partitions) };
            records.add(About::ConsumerTargetOfMember, &[id, member_id], flexible(0, &target));
        }
    }
}

fn subscription(member: &Member) -> ConsumerGroupMemberMetadataValue {
    let classic = member.classic.as_ref().map(|classic| ClassicMemberMetadata {
        session_timeout_ms: classic.session_timeout_ms,
        supported_protocols: classic
            .protocols
            .iter()
            .map(|protocol| ClassicProtocol { name: protocol.name.clone(), metadata: protocol.metadata.clone() })
            .collect(),
    });
    ConsumerGroupMemberMetadataValue {
        instance_id: member.instance_id.as_deref().map(str::to_owned),
        rack_id: member.rack_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        subscribed_topic_names: member.topic_names.iter().cloned().collect(),
        subscribed_topic_regex: member.topic_regex.clone(),
        rebalance_timeout_ms: member.rebalance_timeout_ms,
        server_assignor: member.server_assignor.clone(),
        classic_member_metadata: classic,
    }
}

fn assignment(member: &Member) -> ConsumerGroupCurrentMemberAssignmentValue {
    ConsumerGroupCurrentMemberAssignmentValue {
        member_epoch: member.epoch,
        previous_member_epoch: member.previous_epoch,
        state: match member.state {
            MemberState::Stable => 0,
            MemberState::Unrevoked => 1,
            MemberState::Unreleased => 2,
        },
        assigned_partitions: owned(&member.assigned),
        partitions_pending_revocation: owned(&member.revoking),
    }
}

fn owned(owned: &Owned) -> Vec<OwnedPartitions> {
    let listed = |(topic_id, partitions): (&Uuid, &BTreeMap<i32, i32>)| {
        let (partitions, epochs) = partitions.iter().map(|(partition, epoch)| (*partition, *epoch)).unzip();
        OwnedPartitions { topic_id: *topic_id, partitions, assignment_epochs: Some(epochs) }
    };
    owned.iter().map(listed).collect()
}
