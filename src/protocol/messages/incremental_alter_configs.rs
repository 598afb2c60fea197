//! IncrementalAlterConfigs (key 44).

use crate::protocol::message::message;

message! {
    IncrementalAlterConfigsRequest {
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
        config_operation: i8;
        value: Option<String>, null .., default Some(String::new());
    }

    IncrementalAlterConfigsResponse {
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
