//! DeleteAcls (key 31).

use crate::protocol::message::message;

message! {
    DeleteAclsRequest {
        filters: Vec<DeleteAclsFilter>;
    }

    DeleteAclsFilter {
        resource_type_filter: i8;
        resource_name_filter: Option<String>, null .., default Some(String::new());
        pattern_type_filter: i8, default 3;
        principal_filter: Option<String>, null .., default Some(String::new());
        host_filter: Option<String>, null .., default Some(String::new());
        operation: i8;
        permission_type: i8;
    }

    DeleteAclsResponse {
        throttle_time_ms: i32;
        filter_results: Vec<DeleteAclsFilterResult>;
    }

    DeleteAclsFilterResult {
        error_code: i16;
        error_message: Option<String>, null .., default Some(String::new());
        matching_acls: Vec<DeleteAclsMatchingAcl>;
    }

    DeleteAclsMatchingAcl {
        error_code: i16;
        error_message: Option<String>, null .., default Some(String::new());
        resource_type: i8;
        resource_name: String;
        pattern_type: i8, default 3;
        principal: String;
        host: String;
        operation: i8;
        permission_type: i8;
    }
}
