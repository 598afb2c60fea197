//! RemoveRaftVoter (key 81).

use crate::protocol::message::message;
use crate::protocol::uuid::Uuid;

message! {
    RemoveRaftVoterRequest {
        cluster_id: Option<String>, null .., default Some(String::new());
        voter_id: i32;
        voter_directory_id: Uuid;
    }

    RemoveRaftVoterResponse {
        throttle_time_ms: i32;
        error_code: i16;
        error_message: Option<String>, null .., default Some(String::new());
    }
}
