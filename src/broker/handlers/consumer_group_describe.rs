//! ConsumerGroupDescribe: state and members of groups of the consumer group protocol (KIP-848).
//!
//! - v1 says of each member which protocol it speaks (KIP-1099).

use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::{Broker, groups, operations};
use crate::coordinator::{AssignedTopic, DescribedConsumerMember};
use crate::protocol::ErrorCode;
use crate::protocol::messages::consumer_group_describe::{
    Assignment, ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, DescribedGroup, Member, TopicPartitions,
};

pub(super) const HANDLER: Handler = serial!(ConsumerGroupDescribeRequest, handle);

/// How a member's protocol is numbered.
const CLASSIC: i8 = 0;
const CONSUMER: i8 = 1;

async fn handle(
    broker: Arc<Broker>,
    _: Context,
    request: ConsumerGroupDescribeRequest,
) -> ConsumerGroupDescribeResponse {
    let offered = broker.offers_consumer_groups();
    let describe = |group_id: String| {
        if !offered {
            let error_code = ErrorCode::UnsupportedVersion.code();
            return DescribedGroup { group_id, error_code, ..Default::default() };
        }
        match broker.groups().with(|coordinator, _| coordinator.describe_consumer(&group_id)) {
            Ok(group) => DescribedGroup {
                group_id,
                group_state: group.state.into(),
                group_epoch: group.epoch,
                assignment_epoch: group.assignment_epoch,
                assignor_name: group.assignor,
                members: group.members.into_iter().map(member).collect(),
                authorized_operations: match request.include_authorized_operations {
                    true => operations::GROUP,
                    false => i32::MIN,
                },
                ..Default::default()
            },
            Err(refused) => DescribedGroup {
                group_id,
                error_code: groups::error_code(refused.error).code(),
                error_message: Some(refused.message).filter(|message| !message.is_empty()),
                ..Default::default()
            },
        }
    };
    ConsumerGroupDescribeResponse {
        groups: request.group_ids.into_iter().map(describe).collect(),
        ..Default::default()
    }
}

fn member(member: DescribedConsumerMember) -> Member {
    Member {
        member_id: member.member_id,
        instance_id: member.instance_id,
        rack_id: member.rack_id,
        member_epoch: member.epoch,
        client_id: member.client_id,
        client_host: member.client_host,
        subscribed_topic_names: member.topic_names,
        // Kafka shows an empty one where there is none.
        subscribed_topic_regex: Some(member.topic_regex.unwrap_or_default()),
        assignment: assignment(member.assigned),
        target_assignment: assignment(member.target),
        member_type: if member.is_classic { CLASSIC } else { CONSUMER },
    }
}

fn assignment(topics: Vec<AssignedTopic>) -> Assignment {
    let topic = |topic: AssignedTopic| TopicPartitions {
        topic_id: topic.id,
        topic_name: topic.name,
        partitions: topic.partitions,
    };
    Assignment { topic_partitions: topics.into_iter().map(topic).collect() }
}
