//! DescribeGroups (key 15).

use bytes::Bytes;

use crate::protocol::message::message;

message! {
    DescribeGroupsRequest {
        groups: Vec<String>;
        include_authorized_operations: bool, in 3..;
    }

    DescribeGroupsResponse {
        throttle_time_ms: i32, in 1..;
        groups: Vec<DescribedGroup>;
    }

    DescribedGroup {
        error_code: i16;
        error_message: Option<String>, in 6.., null 6..;
        group_id: String;
        group_state: String;
        protocol_type: String;
        protocol_data: String;
        members: Vec<DescribedGroupMember>;
        authorized_operations: i32, in 3.., default i32::MIN;
    }

    DescribedGroupMember {
        member_id: String;
        group_instance_id: Option<String>, in 4.., null 4..;
        client_id: String;
        client_host: String;
        member_metadata: Bytes;
        member_assignment: Bytes;
    }
}
