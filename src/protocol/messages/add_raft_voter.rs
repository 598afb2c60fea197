//! AddRaftVoter (key 80).

use crate::protocol::message::message;
use crate::protocol::uuid::Uuid;

message! {
    AddRaftVoterRequest {
        cluster_id: Option<String>, null .., default Some(String::new());
        timeout_ms: i32;
        voter_id: i32;
        voter_directory_id: Uuid;
        listeners: Vec<Listener>;
        ack_when_committed: bool, in 1.., default true;
    }

    Listener {
        name: String;
        host: String;
        port: u16;
    }

    AddRaftVoterResponse {
        throttle_time_ms: i32;
        error_code: i16;
        error_message: Option<String>, null .., default Some(String::new());
    }
}
