//! AlterUserScramCredentials (key 51).

use bytes::Bytes;

use crate::protocol::message::message;

message! {
    AlterUserScramCredentialsRequest {
        deletions: Vec<ScramCredentialDeletion>;
        upsertions: Vec<ScramCredentialUpsertion>;
    }

    ScramCredentialDeletion {
        name: String;
        mechanism: i8;
    }

    ScramCredentialUpsertion {
        name: String;
        mechanism: i8;
        iterations: i32;
        salt: Bytes;
        salted_password: Bytes;
    }

    AlterUserScramCredentialsResponse {
        throttle_time_ms: i32;
        results: Vec<AlterUserScramCredentialsResult>;
    }

    AlterUserScramCredentialsResult {
        user: String;
        error_code: i16;
        error_message: Option<String>, null .., default Some(String::new());
    }
}
