//! DescribeProducers (key 61).

use crate::protocol::message::message;

message! {
    DescribeProducersRequest {
        topics: Vec<TopicRequest>;
    }

    TopicRequest {
        name: String;
        partition_indexes: Vec<i32>;
    }

    DescribeProducersResponse {
        throttle_time_ms: i32;
        topics: Vec<TopicResponse>;
    }

    TopicResponse {
        name: String;
        partitions: Vec<PartitionResponse>;
    }

    PartitionResponse {
        partition_index: i32;
        error_code: i16;
        error_message: Option<String>, null ..;
        active_producers: Vec<ProducerState>;
    }

    ProducerState {
        producer_id: i64;
        producer_epoch: i32;
        last_sequence: i32, default -1;
        last_timestamp: i64, default -1;
        coordinator_epoch: i32;
        current_txn_start_offset: i64, default -1;
    }
}
