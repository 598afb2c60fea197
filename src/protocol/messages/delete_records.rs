//! DeleteRecords (key 21).

use crate::protocol::message::message;

message! {
    DeleteRecordsRequest {
        topics: Vec<DeleteRecordsTopic>;
        timeout_ms: i32;
    }

    DeleteRecordsTopic {
        name: String;
        partitions: Vec<DeleteRecordsPartition>;
    }

    DeleteRecordsPartition {
        partition_index: i32;
        offset: i64;
    }

    DeleteRecordsResponse {
        throttle_time_ms: i32;
        topics: Vec<DeleteRecordsTopicResult>;
    }

    DeleteRecordsTopicResult {
        name: String;
        partitions: Vec<DeleteRecordsPartitionResult>;
    }

    DeleteRecordsPartitionResult {
        partition_index: i32;
        low_watermark: i64;
        error_code: i16;
    }
}
