//! ShareAcknowledge (key 79).

use crate::protocol::message::message;
use crate::protocol::uuid::Uuid;

message! {
    ShareAcknowledgeRequest {
        group_id: Option<String>, null ..;
        member_id: Option<String>, null .., default Some(String::new());
        share_session_epoch: i32;
        is_renew_ack: bool, in 2..;
        topics: Vec<AcknowledgeTopic>;
    }

    AcknowledgeTopic {
        topic_id: Uuid;
        partitions: Vec<AcknowledgePartition>;
    }

    AcknowledgePartition {
        partition_index: i32;
        acknowledgement_batches: Vec<AcknowledgementBatch>;
    }

    AcknowledgementBatch {
        first_offset: i64;
        last_offset: i64;
        acknowledge_types: Vec<i8>;
    }

    ShareAcknowledgeResponse {
        throttle_time_ms: i32;
        error_code: i16;
        error_message: Option<String>, null ..;
        acquisition_lock_timeout_ms: i32, in 2..;
        responses: Vec<ShareAcknowledgeTopicResponse>;
        node_endpoints: Vec<NodeEndpoint>;
    }

    ShareAcknowledgeTopicResponse {
        topic_id: Uuid;
        partitions: Vec<PartitionData>;
    }

    PartitionData {
        partition_index: i32;
        error_code: i16;
        error_message: Option<String>, null ..;
        current_leader: LeaderIdAndEpoch;
    }

    LeaderIdAndEpoch {
        leader_id: i32;
        leader_epoch: i32;
    }

    NodeEndpoint {
        node_id: i32;
        host: String;
        port: i32;
        rack: Option<String>, null ..;
    }
}
