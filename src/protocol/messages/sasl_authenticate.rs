//! SaslAuthenticate (key 36).

use bytes::Bytes;

use crate::protocol::message::message;

message! {
    SaslAuthenticateRequest {
        auth_bytes: Bytes;
    }

    SaslAuthenticateResponse {
        error_code: i16;
        error_message: Option<String>, null .., default Some(String::new());
        auth_bytes: Bytes;
        session_lifetime_ms: i64, in 1..;
    }
}
