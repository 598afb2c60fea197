//! UnregisterBroker (key 64).

use crate::protocol::message::message;

message! {
    UnregisterBrokerRequest {
        broker_id: i32;
    }

    UnregisterBrokerResponse {
        throttle_time_ms: i32;
        error_code: i16;
        error_message: Option<String>, null .., default Some(String::new());
    }
}
