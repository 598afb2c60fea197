//! InitializeShareGroupState (key 83).

use crate::protocol::message::message;
use crate::protocol::uuid::Uuid;

message! {
    InitializeShareGroupStateRequest {
        group_id: String;
        topics: Vec<InitializeStateData>;
    }

    InitializeStateData {
        topic_id: Uuid;
        partitions: Vec<PartitionData>;
    }

    PartitionData {
        partition: i32;
        state_epoch: i32;
        start_offset: i64;
    }

    InitializeShareGroupStateResponse {
        results: Vec<InitializeStateResult>;
    }

    InitializeStateResult {
        topic_id: Uuid;
        partitions: Vec<PartitionResult>;
    }

    PartitionResult {
        partition: i32;
        error_code: i16;
        error_message: Option<String>, null ..;
    }
}
