//! ShareFetch (key 78).

use crate::protocol::message::message;
use crate::protocol::uuid::Uuid;
use crate::protocol::wire::Records;

message! {
    ShareFetchRequest {
        group_id: Option<String>, null ..;
        member_id: Option<String>, null .., default Some(String::new());
        share_session_epoch: i32;
        max_wait_ms: i32;
        min_bytes: i32;
        max_bytes: i32, default i32::MAX;
        max_records: i32;
        batch_size: i32;
        share_acquire_mode: i8, in 2..;
        is_renew_ack: bool, in 2..;
        topics: Vec<FetchTopic>;
        forgotten_topics_data: Vec<ForgottenTopic>;
    }

    FetchTopic {
        topic_id: Uuid;
        partitions: Vec<FetchPartition>;
    }

    FetchPartition {
        partition_index: i32;
        acknowledgement_batches: Vec<AcknowledgementBatch>;
    }

    AcknowledgementBatch {
        first_offset: i64;
        last_offset: i64;
        acknowledge_types: Vec<i8>;
    }

    ForgottenTopic {
        topic_id: Uuid;
        partitions: Vec<i32>;
    }

    ShareFetchResponse {
        throttle_time_ms: i32;
        error_code: i16;
        error_message: Option<String>, null ..;
        acquisition_lock_timeout_ms: i32;
        responses: Vec<ShareFetchableTopicResponse>;
        node_endpoints: Vec<NodeEndpoint>;
    }

    ShareFetchableTopicResponse {
        topic_id: Uuid;
        partitions: Vec<PartitionData>;
    }

    PartitionData {
        partition_index: i32;
        error_code: i16;
        error_message: Option<String>, null ..;
        acknowledge_error_code: i16;
        acknowledge_error_message: Option<String>, null ..;
        current_leader: LeaderIdAndEpoch;
        records: Records;
        acquired_records: Vec<AcquiredRecords>;
    }

    LeaderIdAndEpoch {
        leader_id: i32;
        leader_epoch: i32;
    }

    AcquiredRecords {
        first_offset: i64;
        last_offset: i64;
        delivery_count: i16;
    }

    NodeEndpoint {
        node_id: i32;
        host: String;
        port: i32;
        rack: Option<String>, null ..;
    }
}
