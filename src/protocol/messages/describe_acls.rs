//! DescribeAcls (key 29).

use crate::protocol::message::message;

message! {
    DescribeAclsRequest {
        resource_type_filter: i8;
        resource_name_filter: Option<String>, null .., default Some(String::new());
        pattern_type_filter: i8, default 3;
        principal_filter: Option<String>, null .., default Some(String::new());
        host_filter: Option<String>, null .., default Some(String::new());
        operation: i8;
        permission_type: i8;
    }

    DescribeAclsResponse {
        throttle_time_ms: i32;
        error_code: i16;
        error_message: Option<String>, null .., default Some(String::new());
        resources: Vec<DescribeAclsResource>;
    }

    DescribeAclsResource {
        resource_type: i8;
        resource_name: String;
        pattern_type: i8, default 3;
        acls: Vec<AclDescription>;
    }

    AclDescription {
        principal: String;
        host: String;
        operation: i8;
        permission_type: i8;
    }
}
