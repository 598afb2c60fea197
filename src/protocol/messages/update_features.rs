//! UpdateFeatures (key 57).

use crate::protocol::message::message;

message! {
    UpdateFeaturesRequest {
        timeout_ms: i32, default 60000;
        feature_updates: Vec<FeatureUpdateKey>;
        validate_only: bool, in 1..;
    }

    FeatureUpdateKey {
        feature: String;
        max_version_level: i16;
        allow_downgrade: bool, in ..=0;
        upgrade_type: i8, in 1.., default 1;
    }

    UpdateFeaturesResponse {
        throttle_time_ms: i32;
        error_code: i16;
        error_message: Option<String>, null .., default Some(String::new());
        results: Vec<UpdatableFeatureResult>, in ..=1;
    }

    UpdatableFeatureResult {
        feature: String;
        error_code: i16;
        error_message: Option<String>, null .., default Some(String::new());
    }
}
