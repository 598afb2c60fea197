//! ShareGroupDescribe: state and members of share groups (KIP-932).

use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::{Broker, groups, operations};
use crate::coordinator::{AssignedTopic, DescribedShareMember};
use crate::protocol::ErrorCode;
use crate::protocol::messages::share_group_describe::{
    Assignment, DescribedGroup, Member, ShareGroupDescribeRequest, ShareGroupDescribeResponse, TopicPartitions,
};

pub(super) const HANDLER: Handler = serial!(ShareGroupDescribeRequest, handle);

async fn handle(broker: Arc<Broker>, _: Context, request: ShareGroupDescribeRequest) -> ShareGroupDescribeResponse {
    let offered = broker.offers_share_groups();
    let describe = |group_id: String| {
        if !offered {
            let error_code = ErrorCode::UnsupportedVersion.code();
            return DescribedGroup { group_id, error_code, ..Default::default() };
        }
        match broker.groups().with(|coordinator, _| coordinator.describe_share(&group_id)) {
            Ok(group) => DescribedGroup {
                group_id,
                group_state: group.state.into(),
                group_epoch: group.epoch,
                assignment_epoch: group.assignment_epoch,
                assignor_name: group.assignor.into(),
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
    ShareGroupDescribeResponse { groups: request.group_ids.into_iter().map(describe).collect(), ..Default::default() }
}

fn member(member: DescribedShareMember) -> Member {
    let topic = |topic: AssignedTopic| TopicPartitions {
        topic_id: topic.id,
        topic_name: topic.name,
        partitions: topic.partitions,
    };
    Member {
        member_id: member.member_id,
        rack_id: member.rack_id,
        member_epoch: member.epoch,
        client_id: member.client_id,
        client_host: member.client_host,
        subscribed_topic_names: member.topic_names,
        assignment: Assignment { topic_partitions: member.assigned.into_iter().map(topic).collect() },
    }
}
