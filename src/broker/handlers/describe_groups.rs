//! DescribeGroups: state and members of classic groups.
//!
//! - A group that is not there, or that follows another protocol, is Dead up to v5 and GROUP_ID_NOT_FOUND from v6 on (KIP-1043).

use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::{Broker, operations};
use crate::protocol::ErrorCode;
use crate::protocol::messages::describe_groups::{
    DescribeGroupsRequest, DescribeGroupsResponse, DescribedGroup, DescribedGroupMember,
};

pub(super) const HANDLER: Handler = serial!(DescribeGroupsRequest, handle);

async fn handle(broker: Arc<Broker>, context: Context, request: DescribeGroupsRequest) -> DescribeGroupsResponse {
    let describe = |group_id: String| {
        let mut group = match broker.groups().with(|coordinator, _| coordinator.describe(&group_id)) {
            Some(group) => DescribedGroup {
                group_id,
                group_state: group.state.into(),
                protocol_type: group.protocol_type,
                protocol_data: group.protocol_name,
                members: group
                    .members
                    .into_iter()
                    .map(|member| DescribedGroupMember {
                        member_id: member.member_id,
                        group_instance_id: member.group_instance_id,
                        client_id: member.client_id,
                        client_host: member.client_host,
                        member_metadata: member.metadata,
                        member_assignment: member.assignment,
                    })
                    .collect(),
                ..Default::default()
            },
            None => {
                let why = match broker.groups().with(|coordinator, _| coordinator.group_type(&group_id)) {
                    Some(_) => format!("Group {group_id} is not a classic group."),
                    None => format!("Group {group_id} not found."),
                };
                let error = if context.version < 6 { ErrorCode::None } else { ErrorCode::GroupIdNotFound };
                DescribedGroup {
                    error_code: error.code(),
                    error_message: Some(why),
                    group_state: "Dead".into(),
                    group_id,
                    ..Default::default()
                }
            }
        };
        if request.include_authorized_operations && group.error_code == 0 {
            group.authorized_operations = operations::GROUP;
        }
        group
    };
    DescribeGroupsResponse { groups: request.groups.into_iter().map(describe).collect(), ..Default::default() }
}
