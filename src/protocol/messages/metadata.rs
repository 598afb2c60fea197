//! Metadata (key 3).

use crate::protocol::message::message;
use crate::protocol::uuid::Uuid;

message! {
    MetadataRequest {
        topics: Option<Vec<MetadataRequestTopic>>, null 1.., default Some(vec![]);
        allow_auto_topic_creation: bool, in 4.., default true;
        include_cluster_authorized_operations: bool, in 8..=10;
        include_topic_authorized_operations: bool, in 8..;
    }

    MetadataRequestTopic {
        topic_id: Uuid, in 10..;
        name: Option<String>, null 10.., default Some(String::new());
    }

    MetadataResponse {
        throttle_time_ms: i32, in 3..;
        brokers: Vec<MetadataResponseBroker>;
        cluster_id: Option<String>, in 2.., null 2..;
        controller_id: i32, in 1.., default -1;
        topics: Vec<MetadataResponseTopic>;
        cluster_authorized_operations: i32, in 8..=10, default i32::MIN;
        error_code: i16, in 13..;
    }

    MetadataResponseBroker {
        node_id: i32;
        host: String;
        port: i32;
        rack: Option<String>, in 1.., null 1..;
    }

    MetadataResponseTopic {
        error_code: i16;
        name: Option<String>, null 12.., default Some(String::new());
        topic_id: Uuid, in 10..;
        is_internal: bool, in 1..;
        partitions: Vec<MetadataResponsePartition>;
        topic_authorized_operations: i32, in 8.., default i32::MIN;
    }

    MetadataResponsePartition {
        error_code: i16;
        partition_index: i32;
        leader_id: i32;
        leader_epoch: i32, in 7.., default -1;
        replica_nodes: Vec<i32>;
        isr_nodes: Vec<i32>;
        offline_replicas: Vec<i32>, in 5..;
    }
}
