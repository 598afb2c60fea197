//! ReadShareGroupStateSummary (key 87).

use crate::protocol::message::message;
use crate::protocol::uuid::Uuid;

message! {
    ReadShareGroupStateSummaryRequest {
        group_id: String;
        topics: Vec<ReadStateSummaryData>;
    }

    ReadStateSummaryData {
        topic_id: Uuid;
        partitions: Vec<PartitionData>;
    }

    PartitionData {
        partition: i32;
        leader_epoch: i32;
    }

    ReadShareGroupStateSummaryResponse {
        results: Vec<ReadStateSummaryResult>;
    }

    ReadStateSummaryResult {
        topic_id: Uuid;
        partitions: Vec<PartitionResult>;
    }

    PartitionResult {
        partition: i32;
        error_code: i16;
        error_message: Option<String>, null ..;
        state_epoch: i32;
        leader_epoch: i32;
        start_offset: i64;
        delivery_complete_count: i32, in 1.., default -1;
    }
}
