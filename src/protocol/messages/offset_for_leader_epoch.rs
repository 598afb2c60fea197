//! OffsetForLeaderEpoch (key 23).

use crate::protocol::message::message;

message! {
    OffsetForLeaderEpochRequest {
        replica_id: i32, in 3.., default -2;
        topics: Vec<OffsetForLeaderTopic>;
    }

    OffsetForLeaderTopic {
        topic: String;
        partitions: Vec<OffsetForLeaderPartition>;
    }

    OffsetForLeaderPartition {
        partition: i32;
        current_leader_epoch: i32, default -1;
        leader_epoch: i32;
    }

    OffsetForLeaderEpochResponse {
        throttle_time_ms: i32;
        topics: Vec<OffsetForLeaderTopicResult>;
    }

    OffsetForLeaderTopicResult {
        topic: String;
        partitions: Vec<EpochEndOffset>;
    }

    EpochEndOffset {
        error_code: i16;
        partition: i32;
        leader_epoch: i32, default -1;
        end_offset: i64, default -1;
    }
}
