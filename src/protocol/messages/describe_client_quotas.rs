//! DescribeClientQuotas (key 48).

use crate::protocol::message::message;

message! {
    DescribeClientQuotasRequest {
        components: Vec<ComponentData>;
        strict: bool;
    }

    ComponentData {
        entity_type: String;
        match_type: i8;
        r#match: Option<String>, null .., default Some(String::new());
    }

    DescribeClientQuotasResponse {
        throttle_time_ms: i32;
        error_code: i16;
        error_message: Option<String>, null .., default Some(String::new());
        entries: Option<Vec<EntryData>>, null .., default Some(vec![]);
    }

    EntryData {
        entity: Vec<EntityData>;
        values: Vec<ValueData>;
    }

    EntityData {
        entity_type: String;
        entity_name: Option<String>, null .., default Some(String::new());
    }

    ValueData {
        key: String;
        value: f64;
    }
}
