//! InitProducerId (key 22).

use crate::protocol::message::message;

message! {
    InitProducerIdRequest {
        transactional_id: Option<String>, null .., default Some(String::new());
        transaction_timeout_ms: i32;
        producer_id: i64, in 3.., default -1;
        producer_epoch: i16, in 3.., default -1;
        enable2_pc: bool, in 6..;
        keep_prepared_txn: bool, in 6..;
    }

    InitProducerIdResponse {
        throttle_time_ms: i32;
        error_code: i16;
        producer_id: i64, default -1;
        producer_epoch: i16;
        ongoing_txn_producer_id: i64, in 6.., default -1;
        ongoing_txn_producer_epoch: i16, in 6.., default -1;
    }
}
