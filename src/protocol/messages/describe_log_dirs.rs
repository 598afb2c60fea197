//! DescribeLogDirs (key 35).

use crate::protocol::message::message;

message! {
    DescribeLogDirsRequest {
        topics: Option<Vec<DescribableLogDirTopic>>, null .., default Some(vec![]);
    }

    DescribableLogDirTopic {
        topic: String;
        partitions: Vec<i32>;
    }

    DescribeLogDirsResponse {
        throttle_time_ms: i32;
        error_code: i16, in 3..;
        results: Vec<DescribeLogDirsResult>;
    }

    DescribeLogDirsResult {
        error_code: i16;
        log_dir: String;
        topics: Vec<DescribeLogDirsTopic>;
        total_bytes: i64, in 4.., default -1;
        usable_bytes: i64, in 4.., default -1;
        is_cordoned: bool, in 5..;
    }

    DescribeLogDirsTopic {
        name: String;
        partitions: Vec<DescribeLogDirsPartition>;
    }

    DescribeLogDirsPartition {
        partition_index: i32;
        partition_size: i64;
        offset_lag: i64;
        is_future_key: bool;
    }
}
