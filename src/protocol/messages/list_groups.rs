//! ListGroups (key 16).

use crate::protocol::message::message;

message! {
    ListGroupsRequest {
        states_filter: Vec<String>, in 4..;
        types_filter: Vec<String>, in 5..;
    }

    ListGroupsResponse {
        throttle_time_ms: i32, in 1..;
        error_code: i16;
        groups: Vec<ListedGroup>;
    }

    ListedGroup {
        group_id: String;
        protocol_type: String;
        group_state: String, in 4..;
        group_type: String, in 5..;
    }
}
