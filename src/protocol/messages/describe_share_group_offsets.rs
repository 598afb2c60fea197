//! DescribeShareGroupOffsets (key 90).

use crate::protocol::message::message;
use crate::protocol::uuid::Uuid;

message! {
    DescribeShareGroupOffsetsRequest {
        groups: Vec<DescribeShareGroupOffsetsRequestGroup>;
    }

    DescribeShareGroupOffsetsRequestGroup {
        group_id: String;
        topics: Option<Vec<DescribeShareGroupOffsetsRequestTopic>>, null .., default Some(vec![]);
    }

    DescribeShareGroupOffsetsRequestTopic {
        topic_name: String;
        partitions: Vec<i32>;
    }

    DescribeShareGroupOffsetsResponse {
        throttle_time_ms: i32;
        groups: Vec<DescribeShareGroupOffsetsResponseGroup>;
    }

    DescribeShareGroupOffsetsResponseGroup {
        group_id: String;
        topics: Vec<DescribeShareGroupOffsetsResponseTopic>;
        error_code: i16;
        error_message: Option<String>, null ..;
    }

    DescribeShareGroupOffsetsResponseTopic {
        topic_name: String;
        topic_id: Uuid;
        partitions: Vec<DescribeShareGroupOffsetsResponsePartition>;
    }

    DescribeShareGroupOffsetsResponsePartition {
        partition_index: i32;
        start_offset: i64;
        leader_epoch: i32;
        lag: i64, in 1.., default -1;
        error_code: i16;
        error_message: Option<String>, null ..;
    }
}
