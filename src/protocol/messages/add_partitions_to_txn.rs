//! AddPartitionsToTxn (key 24).

use crate::protocol::message::message;

message! {
    AddPartitionsToTxnRequest {
        transactions: Vec<AddPartitionsToTxnTransaction>, in 4..;
        v3_and_below_transactional_id: String, in ..=3;
        v3_and_below_producer_id: i64, in ..=3;
        v3_and_below_producer_epoch: i16, in ..=3;
        v3_and_below_topics: Vec<AddPartitionsToTxnTopic>, in ..=3;
    }

    AddPartitionsToTxnTransaction {
        transactional_id: String, in 4..;
        producer_id: i64, in 4..;
        producer_epoch: i16, in 4..;
        verify_only: bool, in 4..;
        topics: Vec<AddPartitionsToTxnTopic>, in 4..;
    }

    AddPartitionsToTxnTopic {
        name: String;
        partitions: Vec<i32>;
    }

    AddPartitionsToTxnResponse {
        throttle_time_ms: i32;
        error_code: i16, in 4..;
        results_by_transaction: Vec<AddPartitionsToTxnResult>, in 4..;
        results_by_topic_v3_and_below: Vec<AddPartitionsToTxnTopicResult>, in ..=3;
    }

    AddPartitionsToTxnResult {
        transactional_id: String, in 4..;
        topic_results: Vec<AddPartitionsToTxnTopicResult>, in 4..;
    }

    AddPartitionsToTxnTopicResult {
        name: String;
        results_by_partition: Vec<AddPartitionsToTxnPartitionResult>;
    }

    AddPartitionsToTxnPartitionResult {
        partition_index: i32;
        partition_error_code: i16;
    }
}
