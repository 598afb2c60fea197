//! OffsetCommit (key 8).

use crate::protocol::message::message;
use crate::protocol::uuid::Uuid;

message! {
    OffsetCommitRequest {
        group_id: String;
        generation_id_or_member_epoch: i32, default -1;
        member_id: String;
        group_instance_id: Option<String>, in 7.., null 7..;
        retention_time_ms: i64, in ..=4, default -1;
        topics: Vec<OffsetCommitRequestTopic>;
    }

    OffsetCommitRequestTopic {
        name: String, in ..=9;
        topic_id: Uuid, in 10..;
        partitions: Vec<OffsetCommitRequestPartition>;
    }

    OffsetCommitRequestPartition {
        partition_index: i32;
        committed_offset: i64;
        committed_leader_epoch: i32, in 6.., default -1;
        committed_metadata: Option<String>, null .., default Some(String::new());
    }

    OffsetCommitResponse {
        throttle_time_ms: i32, in 3..;
        topics: Vec<OffsetCommitResponseTopic>;
    }

    OffsetCommitResponseTopic {
        name: String, in ..=9;
        topic_id: Uuid, in 10..;
        partitions: Vec<OffsetCommitResponsePartition>;
    }

    OffsetCommitResponsePartition {
        partition_index: i32;
        error_code: i16;
    }
}
