//! GetTelemetrySubscriptions (key 71).

use crate::protocol::message::message;
use crate::protocol::uuid::Uuid;

message! {
    GetTelemetrySubscriptionsRequest {
        client_instance_id: Uuid;
    }

    GetTelemetrySubscriptionsResponse {
        throttle_time_ms: i32;
        error_code: i16;
        client_instance_id: Uuid;
        subscription_id: i32;
        accepted_compression_types: Vec<i8>;
        push_interval_ms: i32;
        telemetry_max_bytes: i32;
        delta_temporality: bool;
        requested_metrics: Vec<String>;
    }
}
