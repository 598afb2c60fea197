//! A classic group as the record that Apache Kafka keeps of it.

use bytes::Bytes;

use super::ClassicGroup;
use crate::coordinator::records::GroupRecords;
use crate::protocol::coordinator_records::{About, GroupMember, GroupMetadataValue, fixed};

/// The version that Kafka writes.
const VERSION: i16 = 3;

impl ClassicGroup {
    pub fn add_records(&self, records: &mut GroupRecords) {
        let protocol = self.protocol.as_deref();
        let members = self.members.iter().map(|(id, member)| GroupMember {
            member_id: id.to_string(),
            group_instance_id: member.instance_id.as_deref().map(str::to_owned),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            rebalance_timeout: member.rebalance_timeout_ms,
            session_timeout: member.session_timeout_ms,
            subscription: member.metadata(protocol),
            assignment: member.assignment.clone(),
        });
        let value = GroupMetadataValue {
            protocol_type: self.protocol_type().to_owned(),
            generation: self.generation,
            protocol: self.protocol.clone(),
            leader: self.leader.as_deref().map(str::to_owned),
            current_state_timestamp: self.state_since_ms.unwrap_or(-1),
            members: members.collect(),
        };
        records.add(About::Group, &[&self.id], fixed(VERSION, &value));
    }

    /// That there is a group, of which nobody has become a member yet.
    pub fn first_record(id: &str) -> Option<(Bytes, Bytes)> {
        Some((About::Group.key(&[id], None)?, fixed(VERSION, &GroupMetadataValue::default())?))
    }
}
