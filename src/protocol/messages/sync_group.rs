//! SyncGroup (key 14).

use bytes::Bytes;

use crate::protocol::message::message;

message! {
    SyncGroupRequest {
        group_id: String;
        generation_id: i32;
        member_id: String;
        group_instance_id: Option<String>, in 3.., null 3..;
        protocol_type: Option<String>, in 5.., null 5..;
        protocol_name: Option<String>, in 5.., null 5..;
        assignments: Vec<SyncGroupRequestAssignment>;
    }

    SyncGroupRequestAssignment {
        member_id: String;
        assignment: Bytes;
    }

    SyncGroupResponse {
        throttle_time_ms: i32, in 1..;
        error_code: i16;
        protocol_type: Option<String>, in 5.., null 5..;
        protocol_name: Option<String>, in 5.., null 5..;
        assignment: Bytes;
    }
}
