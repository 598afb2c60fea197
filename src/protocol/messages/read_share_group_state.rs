//! ReadShareGroupState (key 84).

use crate::protocol::message::message;
use crate::protocol::uuid::Uuid;

message! {
    ReadShareGroupStateRequest {
        group_id: String;
        topics: Vec<ReadStateData>;
    }

    ReadStateData {
        topic_id: Uuid;
        partitions: Vec<PartitionData>;
    }

    PartitionData {
        partition: i32;
        leader_epoch: i32;
    }

    ReadShareGroupStateResponse {
        results: Vec<ReadStateResult>;
    }

    ReadStateResult {
        topic_id: Uuid;
        partitions: Vec<PartitionResult>;
    }

    PartitionResult {
        partition: i32;
        error_code: i16;
        error_message: Option<String>, null ..;
        state_epoch: i32;
        start_offset: i64;
        state_batches: Vec<StateBatch>;
    }

    StateBatch {
        first_offset: i64;
        last_offset: i64;
        delivery_state: i8;
        delivery_count: i16;
    }
}
