//! DescribeDelegationToken (key 41).

use bytes::Bytes;

use crate::protocol::message::message;

message! {
    DescribeDelegationTokenRequest {
        owners: Option<Vec<DescribeDelegationTokenOwner>>, null .., default Some(vec![]);
    }

    DescribeDelegationTokenOwner {
        principal_type: String;
        principal_name: String;
    }

    DescribeDelegationTokenResponse {
        error_code: i16;
        tokens: Vec<DescribedDelegationToken>;
        throttle_time_ms: i32;
    }

    DescribedDelegationToken {
        principal_type: String;
        principal_name: String;
        token_requester_principal_type: String, in 3..;
        token_requester_principal_name: String, in 3..;
        issue_timestamp: i64;
        expiry_timestamp: i64;
        max_timestamp: i64;
        token_id: String;
        hmac: Bytes;
        renewers: Vec<DescribedDelegationTokenRenewer>;
    }

    DescribedDelegationTokenRenewer {
        principal_type: String;
        principal_name: String;
    }
}
