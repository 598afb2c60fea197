//! AlterConfigs (key 33).

use crate::protocol::message::message;

message! {
    AlterConfigsRequest {
        resources: Vec<AlterConfigsResource>;
        validate_only: bool;
    }

    AlterConfigsResource {
        resource_type: i8;
        resource_name: String;
        configs: Vec<AlterableConfig>;
    }

    AlterableConfig {
        name: String;
        value: Option<String>, null .., default Some(String::new());
    }

    AlterConfigsResponse {
        throttle_time_ms: i32;
        responses: Vec<AlterConfigsResourceResponse>;
    }

    AlterConfigsResourceResponse {
        error_code: i16;
        error_message: Option<String>, null .., default Some(String::new());
        resource_type: i8;
        resource_name: String;
    }
}
