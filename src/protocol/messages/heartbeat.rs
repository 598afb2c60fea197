//! Heartbeat (key 12).

use crate::protocol::message::message;

message! {
    HeartbeatRequest {
        group_id: String;
        generation_id: i32;
        member_id: String;
        group_instance_id: Option<String>, in 3.., null 3..;
    }

    HeartbeatResponse {
        throttle_time_ms: i32, in 1..;
        error_code: i16;
    }
}
