//! SaslHandshake (key 17).

use crate::protocol::message::message;

message! {
    SaslHandshakeRequest {
        mechanism: String;
    }

    SaslHandshakeResponse {
        error_code: i16;
        mechanisms: Vec<String>;
    }
}
