//! ListOffsets (key 2).

use crate::protocol::message::message;

message! {
    ListOffsetsRequest {
        replica_id: i32;
        isolation_level: i8, in 2..;
        topics: Vec<ListOffsetsTopic>;
        timeout_ms: i32, in 10..;
    }

    ListOffsetsTopic {
        name: String;
        partitions: Vec<ListOffsetsPartition>;
    }

    ListOffsetsPartition {
        partition_index: i32;
        current_leader_epoch: i32, in 4.., default -1;
        timestamp: i64;
    }

    ListOffsetsResponse {
        throttle_time_ms: i32, in 2..;
        topics: Vec<ListOffsetsTopicResponse>;
    }

    ListOffsetsTopicResponse {
        name: String;
        partitions: Vec<ListOffsetsPartitionResponse>;
    }

    ListOffsetsPartitionResponse {
        partition_index: i32;
        error_code: i16;
        timestamp: i64, default -1;
        offset: i64, default -1;
        leader_epoch: i32, in 4.., default -1;
    }
}
