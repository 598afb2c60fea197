//! OffsetFetch (key 9).

use crate::protocol::message::message;
use crate::protocol::uuid::Uuid;

message! {
    OffsetFetchRequest {
        group_id: String, in ..=7;
        topics: Option<Vec<OffsetFetchRequestTopic>>, in ..=7, null 2..=7, default Some(vec![]);
        groups: Vec<OffsetFetchRequestGroup>, in 8..;
        require_stable: bool, in 7..;
    }

    OffsetFetchRequestTopic {
        name: String, in ..=7;
        partition_indexes: Vec<i32>, in ..=7;
    }

    OffsetFetchRequestGroup {
        group_id: String, in 8..;
        member_id: Option<String>, in 9.., null 9..;
        member_epoch: i32, in 9.., default -1;
        topics: Option<Vec<OffsetFetchRequestTopics>>, in 8.., null 8.., default Some(vec![]);
    }

    OffsetFetchRequestTopics {
        name: String, in 8..=9;
        topic_id: Uuid, in 10..;
        partition_indexes: Vec<i32>, in 8..;
    }

    OffsetFetchResponse {
        throttle_time_ms: i32, in 3..;
        topics: Vec<OffsetFetchResponseTopic>, in ..=7;
        error_code: i16, in 2..=7;
        groups: Vec<OffsetFetchResponseGroup>, in 8..;
    }

    OffsetFetchResponseTopic {
        name: String, in ..=7;
        partitions: Vec<OffsetFetchResponsePartition>, in ..=7;
    }

    OffsetFetchResponsePartition {
        partition_index: i32, in ..=7;
        committed_offset: i64, in ..=7;
        committed_leader_epoch: i32, in 5..=7, default -1;
        metadata: Option<String>, in ..=7, null ..=7, default Some(String::new());
        error_code: i16, in ..=7;
    }

    OffsetFetchResponseGroup {
        group_id: String, in 8..;
        topics: Vec<OffsetFetchResponseTopics>, in 8..;
        error_code: i16, in 8..;
    }

    OffsetFetchResponseTopics {
        name: String, in 8..=9;
        topic_id: Uuid, in 10..;
        partitions: Vec<OffsetFetchResponsePartitions>, in 8..;
    }

    OffsetFetchResponsePartitions {
        partition_index: i32, in 8..;
        committed_offset: i64, in 8..;
        committed_leader_epoch: i32, in 8.., default -1;
        metadata: Option<String>, in 8.., null 8.., default Some(String::new());
        error_code: i16, in 8..;
    }
}
