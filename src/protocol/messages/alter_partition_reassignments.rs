//! AlterPartitionReassignments (key 45).

use crate::protocol::message::message;

message! {
    AlterPartitionReassignmentsRequest {
        timeout_ms: i32, default 60000;
        allow_replication_factor_change: bool, in 1.., default true;
        topics: Vec<ReassignableTopic>;
    }

    ReassignableTopic {
        name: String;
        partitions: Vec<ReassignablePartition>;
    }

    ReassignablePartition {
        partition_index: i32;
        replicas: Option<Vec<i32>>, null ..;
    }

    AlterPartitionReassignmentsResponse {
        throttle_time_ms: i32;
        allow_replication_factor_change: bool, in 1.., default true;
        error_code: i16;
        error_message: Option<String>, null .., default Some(String::new());
        responses: Vec<ReassignableTopicResponse>;
    }

    ReassignableTopicResponse {
        name: String;
        partitions: Vec<ReassignablePartitionResponse>;
    }

    ReassignablePartitionResponse {
        partition_index: i32;
        error_code: i16;
        error_message: Option<String>, null .., default Some(String::new());
    }
}
