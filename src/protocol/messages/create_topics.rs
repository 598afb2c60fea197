//! CreateTopics (key 19).

use crate::protocol::message::message;
use crate::protocol::uuid::Uuid;

message! {
    CreateTopicsRequest {
        topics: Vec<CreatableTopic>;
        timeout_ms: i32, default 60000;
        validate_only: bool;
    }

    CreatableTopic {
        name: String;
        num_partitions: i32;
        replication_factor: i16;
        assignments: Vec<CreatableReplicaAssignment>;
        configs: Vec<CreatableTopicConfig>;
    }

    CreatableReplicaAssignment {
        partition_index: i32;
        broker_ids: Vec<i32>;
    }

    CreatableTopicConfig {
        name: String;
        value: Option<String>, null .., default Some(String::new());
    }

    CreateTopicsResponse {
        throttle_time_ms: i32;
        topics: Vec<CreatableTopicResult>;
    }

    CreatableTopicResult {
        name: String;
        topic_id: Uuid, in 7..;
        error_code: i16;
        error_message: Option<String>, null .., default Some(String::new());
        topic_config_error_code: i16, in 5.., tag 0;
        num_partitions: i32, in 5.., default -1;
        replication_factor: i16, in 5.., default -1;
        configs: Option<Vec<CreatableTopicConfigs>>, in 5.., null 5.., default Some(vec![]);
    }

    CreatableTopicConfigs {
        name: String, in 5..;
        value: Option<String>, in 5.., null 5.., default Some(String::new());
        read_only: bool, in 5..;
        config_source: i8, in 5.., default -1;
        is_sensitive: bool, in 5..;
    }
}
