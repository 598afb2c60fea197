//! DescribeConfigs (key 32).

use crate::protocol::message::message;

message! {
    DescribeConfigsRequest {
        resources: Vec<DescribeConfigsResource>;
        include_synonyms: bool;
        include_documentation: bool, in 3..;
    }

    DescribeConfigsResource {
        resource_type: i8;
        resource_name: String;
        configuration_keys: Option<Vec<String>>, null .., default Some(vec![]);
    }

    DescribeConfigsResponse {
        throttle_time_ms: i32;
        results: Vec<DescribeConfigsResult>;
    }

    DescribeConfigsResult {
        error_code: i16;
        error_message: Option<String>, null .., default Some(String::new());
        resource_type: i8;
        resource_name: String;
        configs: Vec<DescribeConfigsResourceResult>;
    }

    DescribeConfigsResourceResult {
        name: String;
        value: Option<String>, null .., default Some(String::new());
        read_only: bool;
        config_source: i8, default -1;
        is_sensitive: bool;
        synonyms: Vec<DescribeConfigsSynonym>;
        config_type: i8, in 3..;
        documentation: Option<String>, in 3.., null 3.., default Some(String::new());
    }

    DescribeConfigsSynonym {
        name: String;
        value: Option<String>, null .., default Some(String::new());
        source: i8;
    }
}
