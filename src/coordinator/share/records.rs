//! A share group as the records that Apache Kafka's group coordinator keeps of it.

use std::sync::Arc;

use super::ShareGroup;
use crate::coordinator::records::{GroupRecords, listed};
use crate::protocol::Uuid;
use crate::protocol::coordinator_records::{
    About, ShareGroupCurrentMemberAssignmentValue, ShareGroupMemberMetadataValue, ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataValue, TargetAssignmentMemberValue, TargetAssignmentMetadataValue,
    TopicPartitionsInfo, flexible,
};

/// The state of every member, by Kafka's number: it has what it is to have.
const STABLE: i8 = 0;

impl ShareGroup {
    pub fn add_records(&self, records: &mut GroupRecords, name: &dyn Fn(Uuid) -> Option<Arc<str>>) {
        let id: &str = &self.id;
        let group = ShareGroupMetadataValue { epoch: self.epoch, metadata_hash: self.fingerprint as i64 };
        records.add(About::ShareGroup, &[id], flexible(0, &group));
        let target = TargetAssignmentMetadataValue { assignment_epoch: self.assignment_epoch, ..Default::default() };
        records.add(About::ShareTarget, &[id], flexible(0, &target));
        for (member_id, member) in &self.members {
            let subscription = ShareGroupMemberMetadataValue {
                rack_id: member.rack_id.clone(),
                client_id: member.client_id.clone(),
                client_host: member.client_host.clone(),
                subscribed_topic_names: member.topic_names.iter().cloned().collect(),
            };
            records.add(About::ShareMember, &[id, member_id], flexible(0, &subscription));
            let assignment = ShareGroupCurrentMemberAssignmentValue {
                member_epoch: member.epoch,
                previous_member_epoch: member.previous_epoch,
                state: STABLE,
                assigned_partitions: listed(&member.assigned),
            };
            records.add(About::ShareAssignment, &[id, member_id], flexible(0, &assignment));
        }
        for (member_id, partitions) in &self.target {
            let target = TargetAssignmentMemberValue { topic_partitions: listed(partitions) };
            records.add(About::ShareTargetOfMember, &[id, member_id], flexible(0, &target));
        }
        let initialized = listed(&self.initialized).into_iter().filter_map(|topic| {
            let topic_name = name(topic.topic_id)?.to_string();
            Some(TopicPartitionsInfo { topic_id: topic.topic_id, topic_name, partitions: topic.partitions })
        });
        let partitions =
            ShareGroupStatePartitionMetadataValue { initialized_topics: initialized.collect(), ..Default::default() };
        records.add(About::SharePartitions, &[id], flexible(0, &partitions));
    }
}
