//! FindCoordinator (key 10).

use crate::protocol::message::message;

message! {
    FindCoordinatorRequest {
        key: String, in ..=3;
        key_type: i8, in 1..;
        coordinator_keys: Vec<String>, in 4..;
    }

    FindCoordinatorResponse {
        throttle_time_ms: i32, in 1..;
        error_code: i16, in ..=3;
        error_message: Option<String>, in 1..=3, null 1..=3, default Some(String::new());
        node_id: i32, in ..=3;
        host: String, in ..=3;
        port: i32, in ..=3;
        coordinators: Vec<Coordinator>, in 4..;
    }

    Coordinator {
        key: String, in 4..;
        node_id: i32, in 4..;
        host: String, in 4..;
        port: i32, in 4..;
        error_code: i16, in 4..;
        error_message: Option<String>, in 4.., null 4.., default Some(String::new());
    }
}
