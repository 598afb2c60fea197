//! DescribeUserScramCredentials (key 50).

use crate::protocol::message::message;

message! {
    DescribeUserScramCredentialsRequest {
        users: Option<Vec<UserName>>, null .., default Some(vec![]);
    }

    UserName {
        name: String;
    }

    DescribeUserScramCredentialsResponse {
        throttle_time_ms: i32;
        error_code: i16;
        error_message: Option<String>, null .., default Some(String::new());
        results: Vec<DescribeUserScramCredentialsResult>;
    }

    DescribeUserScramCredentialsResult {
        user: String;
        error_code: i16;
        error_message: Option<String>, null .., default Some(String::new());
        credential_infos: Vec<CredentialInfo>;
    }

    CredentialInfo {
        mechanism: i8;
        iterations: i32;
    }
}
