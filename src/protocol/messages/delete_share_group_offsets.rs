//! DeleteShareGroupOffsets (key 92).

use crate::protocol::message::message;
use crate::protocol::uuid::Uuid;

message! {
    DeleteShareGroupOffsetsRequest {
        group_id: String;
        topics: Vec<DeleteShareGroupOffsetsRequestTopic>;
    }

    DeleteShareGroupOffsetsRequestTopic {
        topic_name: String;
    }

    DeleteShareGroupOffsetsResponse {
        throttle_time_ms: i32;
        error_code: i16;
        error_message: Option<String>, null ..;
        responses: Vec<DeleteShareGroupOffsetsResponseTopic>;
    }

    DeleteShareGroupOffsetsResponseTopic {
        topic_name: String;
        topic_id: Uuid;
        error_code: i16;
        error_message: Option<String>, null ..;
    }
}
