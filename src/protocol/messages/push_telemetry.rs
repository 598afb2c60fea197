//! PushTelemetry (key 72).

use bytes::Bytes;

use crate::protocol::message::message;
use crate::protocol::uuid::Uuid;

message! {
    PushTelemetryRequest {
        client_instance_id: Uuid;
        subscription_id: i32;
        terminating: bool;
        compression_type: i8;
        metrics: Bytes;
    }

    PushTelemetryResponse {
        throttle_time_ms: i32;
        error_code: i16;
    }
}
