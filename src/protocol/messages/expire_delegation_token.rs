//! ExpireDelegationToken (key 40).

use bytes::Bytes;

use crate::protocol::message::message;

message! {
    ExpireDelegationTokenRequest {
        hmac: Bytes;
        expiry_time_period_ms: i64;
    }

    ExpireDelegationTokenResponse {
        error_code: i16;
        expiry_timestamp_ms: i64;
        throttle_time_ms: i32;
    }
}
