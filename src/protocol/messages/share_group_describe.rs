//! ShareGroupDescribe (key 77).

use crate::protocol::message::message;
use crate::protocol::uuid::Uuid;

message! {
    ShareGroupDescribeRequest {
        group_ids: Vec<String>;
        include_authorized_operations: bool;
    }

    ShareGroupDescribeResponse {
        throttle_time_ms: i32;
        groups: Vec<DescribedGroup>;
    }

    DescribedGroup {
        error_code: i16;
        error_message: Option<String>, null ..;
        group_id: String;
        group_state: String;
        group_epoch: i32;
        assignment_epoch: i32;
        assignor_name: String;
        members: Vec<Member>;
        authorized_operations: i32, default i32::MIN;
    }

    Member {
        member_id: String;
        rack_id: Option<String>, null ..;
        member_epoch: i32;
        client_id: String;
        client_host: String;
        subscribed_topic_names: Vec<String>;
        assignment: Assignment;
    }

    Assignment {
        topic_partitions: Vec<TopicPartitions>;
    }

    TopicPartitions {
        topic_id: Uuid;
        topic_name: String;
        partitions: Vec<i32>;
    }
}
