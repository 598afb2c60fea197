//! CreatePartitions (key 37).

use crate::protocol::message::message;

message! {
    CreatePartitionsRequest {
        topics: Vec<CreatePartitionsTopic>;
        timeout_ms: i32;
        validate_only: bool;
    }

    CreatePartitionsTopic {
        name: String;
        count: i32;
        assignments: Option<Vec<CreatePartitionsAssignment>>, null .., default Some(vec![]);
    }

    CreatePartitionsAssignment {
        broker_ids: Vec<i32>;
    }

    CreatePartitionsResponse {
        throttle_time_ms: i32;
        results: Vec<CreatePartitionsTopicResult>;
    }

    CreatePartitionsTopicResult {
        name: String;
        error_code: i16;
        error_message: Option<String>, null ..;
    }
}
