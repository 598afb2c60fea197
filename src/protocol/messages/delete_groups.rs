//! DeleteGroups (key 42).

use crate::protocol::message::message;

message! {
    DeleteGroupsRequest {
        groups_names: Vec<String>;
    }

    DeleteGroupsResponse {
        throttle_time_ms: i32;
        results: Vec<DeletableGroupResult>;
    }

    DeletableGroupResult {
        group_id: String;
        error_code: i16;
    }
}
