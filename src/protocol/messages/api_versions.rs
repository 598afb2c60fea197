//! ApiVersions (key 18).

use crate::protocol::message::message;

message! {
    ApiVersionsRequest {
        client_software_name: String, in 3..;
        client_software_version: String, in 3..;
    }

    ApiVersionsResponse {
        error_code: i16;
        api_keys: Vec<ApiVersion>;
        throttle_time_ms: i32, in 1..;
        supported_features: Vec<SupportedFeatureKey>, in 3.., tag 0;
        finalized_features_epoch: i64, in 3.., tag 1, default -1;
        finalized_features: Vec<FinalizedFeatureKey>, in 3.., tag 2;
        zk_migration_ready: bool, in 3.., tag 3;
    }

    ApiVersion {
        api_key: i16;
        min_version: i16;
        max_version: i16;
    }

    SupportedFeatureKey {
        name: String, in 3..;
        min_version: i16, in 3..;
        max_version: i16, in 3..;
    }

    FinalizedFeatureKey {
        name: String, in 3..;
        max_version_level: i16, in 3..;
        min_version_level: i16, in 3..;
    }
}
