//! AlterShareGroupOffsets (key 91).

use crate::protocol::message::message;
use crate::protocol::uuid::Uuid;

message! {
    AlterShareGroupOffsetsRequest {
        group_id: String;
        topics: Vec<AlterShareGroupOffsetsRequestTopic>;
    }

    AlterShareGroupOffsetsRequestTopic {
        topic_name: String;
        partitions: Vec<AlterShareGroupOffsetsRequestPartition>;
    }

    AlterShareGroupOffsetsRequestPartition {
        partition_index: i32;
        start_offset: i64;
    }

    AlterShareGroupOffsetsResponse {
        throttle_time_ms: i32;
        error_code: i16;
        error_message: Option<String>, null ..;
        responses: Vec<AlterShareGroupOffsetsResponseTopic>;
    }

    AlterShareGroupOffsetsResponseTopic {
        topic_name: String;
        topic_id: Uuid;
        partitions: Vec<AlterShareGroupOffsetsResponsePartition>;
    }

    AlterShareGroupOffsetsResponsePartition {
        partition_index: i32;
        error_code: i16;
        error_message: Option<String>, null ..;
    }
}
