//! AlterReplicaLogDirs (key 34).

use crate::protocol::message::message;

message! {
    AlterReplicaLogDirsRequest {
        dirs: Vec<AlterReplicaLogDir>;
    }

    AlterReplicaLogDir {
        path: String;
        topics: Vec<AlterReplicaLogDirTopic>;
    }

    AlterReplicaLogDirTopic {
        name: String;
        partitions: Vec<i32>;
    }

    AlterReplicaLogDirsResponse {
        throttle_time_ms: i32;
        results: Vec<AlterReplicaLogDirTopicResult>;
    }

    AlterReplicaLogDirTopicResult {
        topic_name: String;
        partitions: Vec<AlterReplicaLogDirPartitionResult>;
    }

    AlterReplicaLogDirPartitionResult {
        partition_index: i32;
        error_code: i16;
    }
}
