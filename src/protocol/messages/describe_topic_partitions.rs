//! DescribeTopicPartitions (key 75).

use crate::protocol::message::message;
use crate::protocol::uuid::Uuid;

message! {
    DescribeTopicPartitionsRequest {
        topics: Vec<TopicRequest>;
        response_partition_limit: i32, default 2000;
        cursor: Option<RequestCursor>, null ..;
    }

    TopicRequest {
        name: String;
    }

    RequestCursor {
        topic_name: String;
        partition_index: i32;
    }

    DescribeTopicPartitionsResponse {
        throttle_time_ms: i32;
        topics: Vec<DescribeTopicPartitionsResponseTopic>;
        next_cursor: Option<ResponseCursor>, null ..;
    }

    DescribeTopicPartitionsResponseTopic {
        error_code: i16;
        name: Option<String>, null .., default Some(String::new());
        topic_id: Uuid;
        is_internal: bool;
        partitions: Vec<DescribeTopicPartitionsResponsePartition>;
        topic_authorized_operations: i32, default i32::MIN;
    }

    DescribeTopicPartitionsResponsePartition {
        error_code: i16;
        partition_index: i32;
        leader_id: i32;
        leader_epoch: i32, default -1;
        replica_nodes: Vec<i32>;
        isr_nodes: Vec<i32>;
        eligible_leader_replicas: Option<Vec<i32>>, null ..;
        last_known_elr: Option<Vec<i32>>, null ..;
        offline_replicas: Vec<i32>;
    }

    ResponseCursor {
        topic_name: String;
        partition_index: i32;
    }
}
