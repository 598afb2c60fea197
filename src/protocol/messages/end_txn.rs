//! EndTxn (key 26).

use crate::protocol::message::message;

message! {
    EndTxnRequest {
        transactional_id: String;
        producer_id: i64;
        producer_epoch: i16;
        committed: bool;
    }

    EndTxnResponse {
        throttle_time_ms: i32;
        error_code: i16;
        producer_id: i64, in 5.., default -1;
        producer_epoch: i16, in 5.., default -1;
    }
}
