//! ElectLeaders (key 43).

use crate::protocol::message::message;

message! {
    ElectLeadersRequest {
        election_type: i8, in 1..;
        topic_partitions: Option<Vec<TopicPartitions>>, null .., default Some(vec![]);
        timeout_ms: i32, default 60000;
    }

    TopicPartitions {
        topic: String;
        partitions: Vec<i32>;
    }

    ElectLeadersResponse {
        throttle_time_ms: i32;
        error_code: i16, in 1..;
        replica_election_results: Vec<ReplicaElectionResult>;
    }

    ReplicaElectionResult {
        topic: String;
        partition_result: Vec<PartitionResult>;
    }

    PartitionResult {
        partition_id: i32;
        error_code: i16;
        error_message: Option<String>, null .., default Some(String::new());
    }
}
