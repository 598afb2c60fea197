//! OffsetDelete (key 47).

use crate::protocol::message::message;

message! {
    OffsetDeleteRequest {
        group_id: String;
        topics: Vec<OffsetDeleteRequestTopic>;
    }

    OffsetDeleteRequestTopic {
        name: String;
        partitions: Vec<OffsetDeleteRequestPartition>;
    }

    OffsetDeleteRequestPartition {
        partition_index: i32;
    }

    OffsetDeleteResponse {
        error_code: i16;
        throttle_time_ms: i32;
        topics: Vec<OffsetDeleteResponseTopic>;
    }

    OffsetDeleteResponseTopic {
        name: String;
        partitions: Vec<OffsetDeleteResponsePartition>;
    }

    OffsetDeleteResponsePartition {
        partition_index: i32;
        error_code: i16;
    }
}
