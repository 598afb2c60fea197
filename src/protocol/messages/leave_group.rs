//! LeaveGroup (key 13).

use crate::protocol::message::message;

message! {
    LeaveGroupRequest {
        group_id: String;
        member_id: String, in ..=2;
        members: Vec<MemberIdentity>, in 3..;
    }

    MemberIdentity {
        member_id: String, in 3..;
        group_instance_id: Option<String>, in 3.., null 3..;
        reason: Option<String>, in 5.., null 5..;
    }

    LeaveGroupResponse {
        throttle_time_ms: i32, in 1..;
        error_code: i16;
        members: Vec<MemberResponse>, in 3..;
    }

    MemberResponse {
        member_id: String, in 3..;
        group_instance_id: Option<String>, in 3.., null 3.., default Some(String::new());
        error_code: i16, in 3..;
    }
}
