//! DeleteTopics (key 20).

use crate::protocol::message::message;
use crate::protocol::uuid::Uuid;

message! {
    DeleteTopicsRequest {
        topics: Vec<DeleteTopicState>, in 6..;
        topic_names: Vec<String>, in ..=5;
        timeout_ms: i32;
    }

    DeleteTopicState {
        name: Option<String>, in 6.., null 6..;
        topic_id: Uuid, in 6..;
    }

    DeleteTopicsResponse {
        throttle_time_ms: i32;
        responses: Vec<DeletableTopicResult>;
    }

    DeletableTopicResult {
        name: Option<String>, null 6.., default Some(String::new());
        topic_id: Uuid, in 6..;
        error_code: i16;
        error_message: Option<String>, in 5.., null 5..;
    }
}
