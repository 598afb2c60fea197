//! ShareGroupHeartbeat (key 76).

use crate::protocol::message::message;
use crate::protocol::uuid::Uuid;

message! {
    ShareGroupHeartbeatRequest {
        group_id: String;
        member_id: String;
        member_epoch: i32;
        rack_id: Option<String>, null ..;
        subscribed_topic_names: Option<Vec<String>>, null ..;
    }

    ShareGroupHeartbeatResponse {
        throttle_time_ms: i32;
        error_code: i16;
        error_message: Option<String>, null ..;
        member_id: Option<String>, null ..;
        member_epoch: i32;
        heartbeat_interval_ms: i32;
        assignment: Option<Assignment>, null ..;
    }

    Assignment {
        topic_partitions: Vec<TopicPartitions>;
    }

    TopicPartitions {
        topic_id: Uuid;
        partitions: Vec<i32>;
    }
}
