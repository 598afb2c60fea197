//! ListConfigResources (key 74).

use crate::protocol::message::message;

message! {
    ListConfigResourcesRequest {
        resource_types: Vec<i8>, in 1..;
    }

    ListConfigResourcesResponse {
        throttle_time_ms: i32;
        error_code: i16;
        config_resources: Vec<ConfigResource>;
    }

    ConfigResource {
        resource_name: String;
        resource_type: i8, in 1.., default 16;
    }
}
