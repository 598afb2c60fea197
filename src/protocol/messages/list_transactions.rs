//! ListTransactions (key 66).

use crate::protocol::message::message;

message! {
    ListTransactionsRequest {
        state_filters: Vec<String>;
        producer_id_filters: Vec<i64>;
        duration_filter: i64, in 1.., default -1;
        transactional_id_pattern: Option<String>, in 2.., null 2..;
    }

    ListTransactionsResponse {
        throttle_time_ms: i32;
        error_code: i16;
        unknown_state_filters: Vec<String>;
        transaction_states: Vec<TransactionState>;
    }

    TransactionState {
        transactional_id: String;
        producer_id: i64;
        transaction_state: String;
    }
}
