//! AddOffsetsToTxn (key 25).

use crate::protocol::message::message;

message! {
    AddOffsetsToTxnRequest {
        transactional_id: String;
        producer_id: i64;
        producer_epoch: i16;
        group_id: String;
    }

    AddOffsetsToTxnResponse {
        throttle_time_ms: i32;
        error_code: i16;
    }
}
