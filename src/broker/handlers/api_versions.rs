//! ApiVersions: what is served, built from the table of handlers.
//!
//! - v3 names the client's software; a name or version that is none is refused with INVALID_REQUEST (KIP-511).
//! - A version that doze does not know is answered in the form of v0 with UNSUPPORTED_VERSION and the versions of
//!   ApiVersions itself; the client asks again with one of them.
//! - Up to v3 a feature that can be at level 0 is left out of the supported ones, since older clients cannot read it
//!   (KIP-1022).

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::ALL;
use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, Reply, serial};
use crate::broker::features;
use crate::protocol::messages::api_versions::{
    ApiVersion, ApiVersionsRequest, ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey,
};
use crate::protocol::{ApiKey, ErrorCode, frame};

pub(super) const HANDLER: Handler = serial!(ApiVersionsRequest, handle);

async fn handle(broker: Arc<Broker>, context: Context, request: ApiVersionsRequest) -> ApiVersionsResponse {
    if context.version >= 3 {
        let (name, version) = (&request.client_software_name, &request.client_software_version);
        if !is_software_word(name) || !is_software_word(version) {
            return ApiVersionsResponse { error_code: ErrorCode::InvalidRequest.code(), ..Default::default() };
        }
        context.client.set_software(name, version);
    }
    let mut api_keys: Vec<ApiVersion> =
        ALL.iter().map(|handler| api_version(handler.api, broker.versions(handler.api))).collect();
    api_keys.sort_by_key(|api| api.api_key);
    let supported_features =
        features::ALL.iter().filter(|feature| context.version >= 4 || feature.min > 0).map(|feature| {
            SupportedFeatureKey { name: feature.name.into(), min_version: feature.min, max_version: feature.max }
        });
    let levels = broker.features();
    let finalized_features = levels.finalized().map(|(feature, level)| FinalizedFeatureKey {
        name: feature.name.into(),
        max_version_level: level,
        min_version_level: level,
    });
    ApiVersionsResponse {
        api_keys,
        supported_features: supported_features.collect(),
        finalized_features_epoch: levels.epoch(),
        finalized_features: finalized_features.collect(),
        ..Default::default()
    }
}

fn api_version(api: ApiKey, versions: RangeInclusive<i16>) -> ApiVersion {
    ApiVersion { api_key: api.key(), min_version: *versions.start(), max_version: *versions.end() }
}

/// The answer to a version of ApiVersions that is not served.
pub(in crate::broker) fn unsupported_version(correlation_id: i32) -> Reply {
    let response = ApiVersionsResponse {
        error_code: ErrorCode::UnsupportedVersion.code(),
        api_keys: vec![api_version(ApiKey::ApiVersions, ApiKey::ApiVersions.versions())],
        ..Default::default()
    };
    Reply::Frame(frame::encode_response::<ApiVersionsRequest>(0, correlation_id, &response))
}

/// Letters and digits, with dashes and dots between them.
fn is_software_word(word: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    edge(word.chars().next())
        && edge(word.chars().last())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.')
}
