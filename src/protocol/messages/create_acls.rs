//! CreateAcls (key 30).

use crate::protocol::message::message;

message! {
    CreateAclsRequest {
        creations: Vec<AclCreation>;
    }

    AclCreation {
        resource_type: i8;
        resource_name: String;
        resource_pattern_type: i8, default 3;
        principal: String;
        host: String;
        operation: i8;
        permission_type: i8;
    }

    CreateAclsResponse {
        throttle_time_ms: i32;
        results: Vec<AclCreationResult>;
    }

    AclCreationResult {
        error_code: i16;
        error_message: Option<String>, null .., default Some(String::new());
    }
}
