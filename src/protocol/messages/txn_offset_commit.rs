//! TxnOffsetCommit (key 28).

use crate::protocol::message::message;

message! {
    TxnOffsetCommitRequest {
        transactional_id: String;
        group_id: String;
        producer_id: i64;
        producer_epoch: i16;
        generation_id: i32, in 3.., default -1;
        member_id: String, in 3..;
        group_instance_id: Option<String>, in 3.., null 3..;
        topics: Vec<TxnOffsetCommitRequestTopic>;
    }

    TxnOffsetCommitRequestTopic {
        name: String;
        partitions: Vec<TxnOffsetCommitRequestPartition>;
    }

    TxnOffsetCommitRequestPartition {
        partition_index: i32;
        committed_offset: i64;
        committed_leader_epoch: i32, in 2.., default -1;
        committed_metadata: Option<String>, null .., default Some(String::new());
    }

    TxnOffsetCommitResponse {
        throttle_time_ms: i32;
        topics: Vec<TxnOffsetCommitResponseTopic>;
    }

    TxnOffsetCommitResponseTopic {
        name: String;
        partitions: Vec<TxnOffsetCommitResponsePartition>;
    }

    TxnOffsetCommitResponsePartition {
        partition_index: i32;
        error_code: i16;
    }
}
