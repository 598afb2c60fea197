//! RenewDelegationToken (key 39).

use bytes::Bytes;

use crate::protocol::message::message;

message! {
    RenewDelegationTokenRequest {
        hmac: Bytes;
        renew_period_ms: i64;
    }

    RenewDelegationTokenResponse {
        error_code: i16;
        expiry_timestamp_ms: i64;
        throttle_time_ms: i32;
    }
}
