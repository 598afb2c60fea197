//! DescribeQuorum (key 55).

use crate::protocol::message::message;
use crate::protocol::uuid::Uuid;

message! {
    DescribeQuorumRequest {
        topics: Vec<RequestTopicData>;
    }

    RequestTopicData {
        topic_name: String;
        partitions: Vec<RequestPartitionData>;
    }

    RequestPartitionData {
        partition_index: i32;
    }

    DescribeQuorumResponse {
        error_code: i16;
        error_message: Option<String>, in 2.., null 2.., default Some(String::new());
        topics: Vec<ResponseTopicData>;
        nodes: Vec<Node>, in 2..;
    }

    ResponseTopicData {
        topic_name: String;
        partitions: Vec<ResponsePartitionData>;
    }

    ResponsePartitionData {
        partition_index: i32;
        error_code: i16;
        error_message: Option<String>, in 2.., null 2.., default Some(String::new());
        leader_id: i32;
        leader_epoch: i32;
        high_watermark: i64;
        current_voters: Vec<ReplicaState>;
        observers: Vec<ReplicaState>;
    }

    ReplicaState {
        replica_id: i32;
        replica_directory_id: Uuid, in 2..;
        log_end_offset: i64;
        last_fetch_timestamp: i64, in 1.., default -1;
        last_caught_up_timestamp: i64, in 1.., default -1;
    }

    Node {
        node_id: i32, in 2..;
        listeners: Vec<Listener>, in 2..;
    }

    Listener {
        name: String, in 2..;
        host: String, in 2..;
        port: u16, in 2..;
    }
}
