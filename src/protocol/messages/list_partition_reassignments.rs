//! ListPartitionReassignments (key 46).

use crate::protocol::message::message;

message! {
    ListPartitionReassignmentsRequest {
        timeout_ms: i32, default 60000;
        topics: Option<Vec<ListPartitionReassignmentsTopics>>, null ..;
    }

    ListPartitionReassignmentsTopics {
        name: String;
        partition_indexes: Vec<i32>;
    }

    ListPartitionReassignmentsResponse {
        throttle_time_ms: i32;
        error_code: i16;
        error_message: Option<String>, null .., default Some(String::new());
        topics: Vec<OngoingTopicReassignment>;
    }

    OngoingTopicReassignment {
        name: String;
        partitions: Vec<OngoingPartitionReassignment>;
    }

    OngoingPartitionReassignment {
        partition_index: i32;
        replicas: Vec<i32>;
        adding_replicas: Vec<i32>;
        removing_replicas: Vec<i32>;
    }
}
