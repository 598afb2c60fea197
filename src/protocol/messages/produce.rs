//! Produce (key 0).

use crate::protocol::message::message;
use crate::protocol::uuid::Uuid;
use crate::protocol::wire::Records;

message! {
    ProduceRequest {
        transactional_id: Option<String>, null ..;
        acks: i16;
        timeout_ms: i32;
        topic_data: Vec<TopicProduceData>;
    }

    TopicProduceData {
        name: String, in ..=12;
        topic_id: Uuid, in 13..;
        partition_data: Vec<PartitionProduceData>;
    }

    PartitionProduceData {
        index: i32;
        records: Option<Records>, null ..;
    }

    ProduceResponse {
        responses: Vec<TopicProduceResponse>;
        throttle_time_ms: i32;
        node_endpoints: Vec<NodeEndpoint>, in 10.., tag 0;
    }

    TopicProduceResponse {
        name: String, in ..=12;
        topic_id: Uuid, in 13..;
        partition_responses: Vec<PartitionProduceResponse>;
    }

    PartitionProduceResponse {
        index: i32;
        error_code: i16;
        base_offset: i64;
        log_append_time_ms: i64, default -1;
        log_start_offset: i64, in 5.., default -1;
        record_errors: Vec<BatchIndexAndErrorMessage>, in 8..;
        error_message: Option<String>, in 8.., null 8..;
        current_leader: LeaderIdAndEpoch, in 10.., tag 0;
    }

    BatchIndexAndErrorMessage {
        batch_index: i32, in 8..;
        batch_index_error_message: Option<String>, in 8.., null 8..;
    }

    LeaderIdAndEpoch {
        leader_id: i32, in 10.., default -1;
        leader_epoch: i32, in 10.., default -1;
    }

    NodeEndpoint {
        node_id: i32, in 10..;
        host: String, in 10..;
        port: i32, in 10..;
        rack: Option<String>, in 10.., null 10..;
    }
}
