//! JoinGroup (key 11).

use bytes::Bytes;

use crate::protocol::message::message;

message! {
    JoinGroupRequest {
        group_id: String;
        session_timeout_ms: i32;
        rebalance_timeout_ms: i32, in 1.., default -1;
        member_id: String;
        group_instance_id: Option<String>, in 5.., null 5..;
        protocol_type: String;
        protocols: Vec<JoinGroupRequestProtocol>;
        reason: Option<String>, in 8.., null 8..;
    }

    JoinGroupRequestProtocol {
        name: String;
        metadata: Bytes;
    }

    JoinGroupResponse {
        throttle_time_ms: i32, in 2..;
        error_code: i16;
        generation_id: i32, default -1;
        protocol_type: Option<String>, in 7.., null 7..;
        protocol_name: Option<String>, null 7.., default Some(String::new());
        leader: String;
        skip_assignment: bool, in 9..;
        member_id: String;
        members: Vec<JoinGroupResponseMember>;
    }

    JoinGroupResponseMember {
        member_id: String;
        group_instance_id: Option<String>, in 5.., null 5..;
        metadata: Bytes;
    }
}
