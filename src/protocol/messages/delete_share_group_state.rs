//! DeleteShareGroupState (key 86).

use crate::protocol::message::message;
use crate::protocol::uuid::Uuid;

message! {
    DeleteShareGroupStateRequest {
        group_id: String;
        topics: Vec<DeleteStateData>;
    }

    DeleteStateData {
        topic_id: Uuid;
        partitions: Vec<PartitionData>;
    }

    PartitionData {
        partition: i32;
    }

    DeleteShareGroupStateResponse {
        results: Vec<DeleteStateResult>;
    }

    DeleteStateResult {
        topic_id: Uuid;
        partitions: Vec<PartitionResult>;
    }

    PartitionResult {
        partition: i32;
        error_code: i16;
        error_message: Option<String>, null ..;
    }
}
