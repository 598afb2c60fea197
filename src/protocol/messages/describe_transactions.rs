//! DescribeTransactions (key 65).

use crate::protocol::message::message;

message! {
    DescribeTransactionsRequest {
        transactional_ids: Vec<String>;
    }

    DescribeTransactionsResponse {
        throttle_time_ms: i32;
        transaction_states: Vec<TransactionState>;
    }

    TransactionState {
        error_code: i16;
        transactional_id: String;
        transaction_state: String;
        transaction_timeout_ms: i32;
        transaction_start_time_ms: i64;
        producer_id: i64;
        producer_epoch: i16;
        topics: Vec<TopicData>;
    }

    TopicData {
        topic: String;
        partitions: Vec<i32>;
    }
}
