//! ConsumerGroupHeartbeat (key 68).

use crate::protocol::message::message;
use crate::protocol::uuid::Uuid;

message! {
    ConsumerGroupHeartbeatRequest {
        group_id: String;
        member_id: String;
        member_epoch: i32;
        instance_id: Option<String>, null ..;
        rack_id: Option<String>, null ..;
        rebalance_timeout_ms: i32, default -1;
        subscribed_topic_names: Option<Vec<String>>, null ..;
        subscribed_topic_regex: Option<String>, in 1.., null 1..;
        server_assignor: Option<String>, null ..;
        topic_partitions: Option<Vec<RequestTopicPartitions>>, null ..;
    }

    RequestTopicPartitions {
        topic_id: Uuid;
        partitions: Vec<i32>;
    }

    ConsumerGroupHeartbeatResponse {
        throttle_time_ms: i32;
        error_code: i16;
        error_message: Option<String>, null ..;
        member_id: Option<String>, null ..;
        member_epoch: i32;
        heartbeat_interval_ms: i32;
        assignment: Option<Assignment>, null ..;
    }

    Assignment {
        topic_partitions: Vec<ResponseTopicPartitions>;
    }

    ResponseTopicPartitions {
        topic_id: Uuid;
        partitions: Vec<i32>;
    }
}
