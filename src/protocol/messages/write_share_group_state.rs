//! WriteShareGroupState (key 85).

use crate::protocol::message::message;
use crate::protocol::uuid::Uuid;

message! {
    WriteShareGroupStateRequest {
        group_id: String;
        topics: Vec<WriteStateData>;
    }

    WriteStateData {
        topic_id: Uuid;
        partitions: Vec<PartitionData>;
    }

    PartitionData {
        partition: i32;
        state_epoch: i32;
        leader_epoch: i32;
        start_offset: i64;
        delivery_complete_count: i32, in 1.., default -1;
        state_batches: Vec<StateBatch>;
    }

    WriteShareGroupStateResponse {
        results: Vec<WriteStateResult>;
    }

    WriteStateResult {
        topic_id: Uuid;
        partitions: Vec<PartitionResult>;
    }

    PartitionResult {
        partition: i32;
        error_code: i16;
        error_message: Option<String>, null ..;
    }

    StateBatch {
        first_offset: i64;
        last_offset: i64;
        delivery_state: i8;
        delivery_count: i16;
    }
}
