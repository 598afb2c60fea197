//! AlterClientQuotas (key 49).

use crate::protocol::message::message;

message! {
    AlterClientQuotasRequest {
        entries: Vec<RequestEntryData>;
        validate_only: bool;
    }

    RequestEntryData {
        entity: Vec<RequestEntityData>;
        ops: Vec<OpData>;
    }

    RequestEntityData {
        entity_type: String;
        entity_name: Option<String>, null .., default Some(String::new());
    }

    OpData {
        key: String;
        value: f64;
        remove: bool;
    }

    AlterClientQuotasResponse {
        throttle_time_ms: i32;
        entries: Vec<ResponseEntryData>;
    }

    ResponseEntryData {
        error_code: i16;
        error_message: Option<String>, null .., default Some(String::new());
        entity: Vec<ResponseEntityData>;
    }

    ResponseEntityData {
        entity_type: String;
        entity_name: Option<String>, null .., default Some(String::new());
    }
}
