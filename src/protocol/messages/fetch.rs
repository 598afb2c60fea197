//! Fetch (key 1).

use crate::protocol::message::message;
use crate::protocol::uuid::Uuid;
use crate::protocol::wire::Records;

message! {
    FetchRequest {
        cluster_id: Option<String>, in 12.., tag 0, null 12..;
        replica_id: i32, in ..=14, default -1;
        replica_state: ReplicaState, in 15.., tag 1;
        max_wait_ms: i32;
        min_bytes: i32;
        max_bytes: i32, default i32::MAX;
        isolation_level: i8;
        session_id: i32, in 7..;
        session_epoch: i32, in 7.., default -1;
        topics: Vec<FetchTopic>;
        forgotten_topics_data: Vec<ForgottenTopic>, in 7..;
        rack_id: String, in 11..;
    }

    ReplicaState {
        replica_id: i32, in 15.., default -1;
        replica_epoch: i64, in 15.., default -1;
    }

    FetchTopic {
        topic: String, in ..=12;
        topic_id: Uuid, in 13..;
        partitions: Vec<FetchPartition>;
    }

    FetchPartition {
        partition: i32;
        current_leader_epoch: i32, in 9.., default -1;
        fetch_offset: i64;
        last_fetched_epoch: i32, in 12.., default -1;
        log_start_offset: i64, in 5.., default -1;
        partition_max_bytes: i32;
        replica_directory_id: Uuid, in 17.., tag 0;
        high_watermark: i64, in 18.., tag 1, default i64::MAX;
    }

    ForgottenTopic {
        topic: String, in 7..=12;
        topic_id: Uuid, in 13..;
        partitions: Vec<i32>, in 7..;
    }

    FetchResponse {
        throttle_time_ms: i32;
        error_code: i16, in 7..;
        session_id: i32, in 7..;
        responses: Vec<FetchableTopicResponse>;
        node_endpoints: Vec<NodeEndpoint>, in 16.., tag 0;
    }

    FetchableTopicResponse {
        topic: String, in ..=12;
        topic_id: Uuid, in 13..;
        partitions: Vec<PartitionData>;
    }

    PartitionData {
        partition_index: i32;
        error_code: i16;
        high_watermark: i64;
        last_stable_offset: i64, default -1;
        log_start_offset: i64, in 5.., default -1;
        diverging_epoch: EpochEndOffset, in 12.., tag 0;
        current_leader: LeaderIdAndEpoch, in 12.., tag 1;
        snapshot_id: SnapshotId, in 12.., tag 2;
        aborted_transactions: Option<Vec<AbortedTransaction>>, null .., default Some(vec![]);
        preferred_read_replica: i32, in 11.., default -1;
        records: Option<Records>, null ..;
    }

    EpochEndOffset {
        epoch: i32, in 12.., default -1;
        end_offset: i64, in 12.., default -1;
    }

    LeaderIdAndEpoch {
        leader_id: i32, in 12.., default -1;
        leader_epoch: i32, in 12.., default -1;
    }

    SnapshotId {
        end_offset: i64, default -1;
        epoch: i32, default -1;
    }

    AbortedTransaction {
        producer_id: i64;
        first_offset: i64;
    }

    NodeEndpoint {
        node_id: i32, in 16..;
        host: String, in 16..;
        port: i32, in 16..;
        rack: Option<String>, in 16.., null 16..;
    }
}
