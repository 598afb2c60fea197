//! CreateDelegationToken (key 38).

use bytes::Bytes;

use crate::protocol::message::message;

message! {
    CreateDelegationTokenRequest {
        owner_principal_type: Option<String>, in 3.., null 3.., default Some(String::new());
        owner_principal_name: Option<String>, in 3.., null 3.., default Some(String::new());
        renewers: Vec<CreatableRenewers>;
        max_lifetime_ms: i64;
    }

    CreatableRenewers {
        principal_type: String;
        principal_name: String;
    }

    CreateDelegationTokenResponse {
        error_code: i16;
        principal_type: String;
        principal_name: String;
        token_requester_principal_type: String, in 3..;
        token_requester_principal_name: String, in 3..;
        issue_timestamp_ms: i64;
        expiry_timestamp_ms: i64;
        max_timestamp_ms: i64;
        token_id: String;
        hmac: Bytes;
        throttle_time_ms: i32;
    }
}
