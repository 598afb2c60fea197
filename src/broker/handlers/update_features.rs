//! UpdateFeatures: levels are raised and lowered, all that a request names or none.
//!
//! - v1 tells upgrade, safe and unsafe downgrade apart and can only validate (KIP-778). v0 has a flag for
//!   downgrades, which Apache Kafka 4.3.1 does not look at: nothing is lowered with v0.
//! - v2 answers for the request as a whole; before, each feature that was updated is named with the message NONE.

use std::sync::Arc;

use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::features::{Change, Update};
use crate::protocol::ErrorCode;
use crate::protocol::messages::update_features::{
    FeatureUpdateKey, UpdatableFeatureResult, UpdateFeaturesRequest, UpdateFeaturesResponse,
};

pub(super) const HANDLER: Handler = serial!(UpdateFeaturesRequest, handle);

async fn handle(broker: Arc<Broker>, context: Context, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse {
    let update = |key: &FeatureUpdateKey| Update {
        feature: key.feature.clone(),
        level: key.max_version_level,
        change: match (context.version, key.upgrade_type) {
            (0, _) | (_, 1) => Some(Change::Upgrade),
            (_, 2) => Some(Change::SafeDowngrade),
            (_, 3) => Some(Change::UnsafeDowngrade),
            _ => None,
        },
    };
    let updates: Vec<Update> = request.feature_updates.iter().map(update).collect();
    match broker.update_features(updates, request.validate_only).await {
        Ok(()) => {
            let updated = |key: FeatureUpdateKey| UpdatableFeatureResult {
                feature: key.feature,
                error_code: ErrorCode::None.code(),
                error_message: Some(ErrorCode::None.name().into()),
            };
            UpdateFeaturesResponse {
                error_message: None,
                results: request.feature_updates.into_iter().map(updated).collect(),
                ..Default::default()
            }
        }
        Err(refused) => UpdateFeaturesResponse {
            error_code: refused.code.code(),
            error_message: Some(refused.message),
            ..Default::default()
        },
    }
}
