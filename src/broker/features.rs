//! Feature levels (KIP-584): by which of them clients decide how to talk to the broker.
//!
//! A feature is at the level of [`ALL`] until UpdateFeatures has changed it; from then on the catalog has its level. So a
//! newer doze raises the levels that nobody has touched, and leaves those that somebody has.
//!
//! ```text
//! state "feature"         key: name of the feature    value: version 1, level: i32
//! state "feature-epoch"   key: empty                  value: version 1, how often levels have changed, from 1: i64
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;

use super::Broker;
use super::start::transaction_config;
use super::topics::Refused;
use crate::protocol::ErrorCode;
use crate::storage::catalog::{Catalog, CatalogError, Decoder, Encoder, Malformed, Mutation};

/// A feature and the levels of it that doze can be at.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    pub name: &'static str,
    pub min: i16,
    pub max: i16,
    /// The level it is at until it is changed.
    pub level: i16,
}

/// `metadata.version` 4.3-IV0, as Apache Kafka 4.3.1 numbers it; the earliest that Kafka 4 can be at is 3.3-IV3.
const METADATA_4_3: i16 = 30;
const METADATA_3_3: i16 = 7;

const METADATA: &str = "metadata.version";
const KRAFT: &str = "kraft.version";
/// At 1, there are share groups (KIP-932).
pub const SHARE: &str = "share.version";
/// At 1, there are streams groups (KIP-1071).
pub const STREAMS: &str = "streams.version";
/// At 2, each transaction ends with an epoch of its own (KIP-890 part 2).
pub const TRANSACTION: &str = "transaction.version";

/// A level is raised here with what it stands for. KRaft and eligible leader replicas mean nothing on one node, and are at the levels
/// of a new Kafka cluster.
pub const ALL: &[Feature] = &[
    Feature { name: "eligible.leader.replicas.version", min: 0, max: 1, level: 1 },
    Feature { name: "group.version", min: 0, max: 1, level: 1 },
    Feature { name: KRAFT, min: 0, max: 1, level: 0 },
    Feature { name: METADATA, min: METADATA_3_3, max: METADATA_4_3, level: METADATA_4_3 },
    Feature { name: SHARE, min: 0, max: 1, level: 1 },
    Feature { name: STREAMS, min: 0, max: 1, level: 1 },
    Feature { name: TRANSACTION, min: 0, max: 2, level: 2 },
];

const SPACE: &str = "feature";
const EPOCH_SPACE: &str = "feature-epoch";
const VERSION: u8 = 1;

/// The levels that all features are at. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Levels {
    changed: Arc<BTreeMap<String, i16>>,
    epoch: i64,
}

impl Levels {
    /// The level of a feature; 0 for one that is not known.
    pub fn level(&self, name: &str) -> i16 {
        let Some(feature) = ALL.iter().find(|feature| feature.name == name) else { return 0 };
        // A level from a newer doze counts as far as this one goes.
        self.changed.get(name).copied().unwrap_or(feature.level).min(feature.max)
    }

    /// How often the levels have changed, as a count that starts above none.
    pub fn epoch(&self) -> i64 {
        self.epoch
    }

    /// The features that are at a level above 0, and which.
    pub fn finalized(&self) -> impl Iterator<Item = (&'static Feature, i16)> {
        ALL.iter().map(|feature| (feature, self.level(feature.name))).filter(|(_, level)| *level > 0)
    }
}

/// The levels in force. Shared between threads.
#[derive(Debug)]
pub struct Features(RwLock<Levels>);

impl Features {
    /// Reads what was changed.
    pub fn open(catalog: &Catalog) -> Result<Features, CatalogError> {
        let mut changed = BTreeMap::new();
        for (key, value) in catalog.states(SPACE)? {
            match (String::from_utf8(key), decode_level(&value)) {
                (Ok(name), Ok(level)) => drop(changed.insert(name, level)),
                (name, level) => {
                    tracing::error!(?name, ?level, "a feature level in the catalog does not read, and is not in force");
                }
            }
        }
        let epoch = match catalog.state(EPOCH_SPACE, b"")? {
            Some(value) => decode_epoch(&value).unwrap_or_else(|error| {
                tracing::error!("the epoch of the features does not read, and starts anew: {error}");
                1
            }),
            None => 1,
        };
        Ok(Features(RwLock::new(Levels { changed: Arc::new(changed), epoch })))
    }

    pub fn levels(&self) -> Levels {
        self.0.read().clone()
    }
}

fn decode_level(value: &[u8]) -> Result<i16, Malformed> {
    let what = "a feature level";
    let mut decoder = Decoder::new(what, value, VERSION)?;
    let level = i16::try_from(decoder.i32()?).map_err(|_| Malformed::Content { what })?;
    decoder.finish()?;
    Ok(level)
}

fn decode_epoch(value: &[u8]) -> Result<i64, Malformed> {
    let mut decoder = Decoder::new("the epoch of the features", value, VERSION)?;
    let epoch = decoder.i64()?;
    decoder.finish()?;
    Ok(epoch)
}

/// In which direction an update may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Upgrade,
    SafeDowngrade,
    UnsafeDowngrade,
}

/// A feature that is to be at another level.
#[derive(Clone, Debug)]
pub struct Update {
    pub feature: String,
    pub level: i16,
    /// `None` is a kind of change that is not known.
    pub change: Option<Change>,
}

/// Whether a level may be changed so, in Apache Kafka's words.
fn check(levels: &Levels, node_id: i32, update: &Update) -> Result<(), String> {
    let Update { feature: name, level, .. } = update;
    let (level, refuse) =
        (*level, |why: String| Err(format!("Invalid update version {level} for feature {name}. {why}")));
    let Some(change) = update.change else {
        return refuse("The controller does not support the given upgrade type.".into());
    };
    if level < 0 {
        return refuse("A feature version cannot be less than 0.".into());
    }
    let Some(feature) = ALL.iter().find(|feature| feature.name == *name) else {
        return refuse(match level {
            // Every feature that there could be is at level 0.
            0 => format!("Feature {name} not found."),
            _ => format!("Local controller {node_id} does not support this feature."),
        });
    };
    if !(feature.min..=feature.max).contains(&level) {
        let (min, max) = (feature.min, feature.max);
        return refuse(format!("Local controller {node_id} only supports versions {min}-{max}"));
    }
    let now = levels.level(name);
    if level < now && change == Change::Upgrade {
        let why = "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe \
                   downgrade.";
        return refuse(why.into());
    }
    if level > now && change != Change::Upgrade {
        return refuse("Can't downgrade to a newer version.".into());
    }
    if level < now && *name == KRAFT {
        return refuse("Can't downgrade the version of this feature.".into());
    }
    if level < now && *name == METADATA {
        // 4.3-IV0 has records that no earlier version has, so that Kafka cannot go back from it either.
        let why = match change {
            Change::UnsafeDowngrade => "Unsafe metadata downgrade is not supported in this version.",
            _ => "Refusing to perform the requested downgrade because it might delete metadata information.",
        };
        return Err(format!("Unsupported metadata.version downgrade from {now} to {level}. {why}"));
    }
    Ok(())
}

impl Broker {
    /// The levels that features are at.
    pub(super) fn features(&self) -> Levels {
        self.features.levels()
    }

    /// Changes levels, all of `updates` or none. They are durable when this answers. Of several updates of one feature the
    /// last one counts.
    pub(super) async fn update_features(&self, updates: Vec<Update>, validate_only: bool) -> Result<(), Refused> {
        let _one_at_a_time = self.altering.lock().await;
        let levels = self.features();
        let mut changed = BTreeMap::clone(&levels.changed);
        let mut mutations = vec![];
        let last: BTreeMap<&str, usize> = updates.iter().enumerate().map(|(i, u)| (u.feature.as_str(), i)).collect();
        for (i, update) in updates.iter().enumerate() {
            if last[update.feature.as_str()] != i {
                continue;
            }
            check(&levels, self.node_id(), update).map_err(|why| {
                let all = "The update failed for all features since the following feature had an error";
                Refused::new(ErrorCode::InvalidUpdateVersion, format!("{all}: {why}"))
            })?;
            changed.insert(update.feature.clone(), update.level);
            mutations.push(Mutation::SetState {
                space: SPACE,
                key: update.feature.clone().into_bytes(),
                value: Some(Encoder::new(VERSION).i32(update.level.into()).finish()),
            });
        }
        if validate_only || mutations.is_empty() {
            return Ok(());
        }
        let epoch = levels.epoch + 1;
        let value = Some(Encoder::new(VERSION).i64(epoch).finish());
        mutations.push(Mutation::SetState { space: EPOCH_SPACE, key: vec![], value });
        self.commit(mutations).await?;
        let levels = Levels { changed: Arc::new(changed), epoch };
        *self.features.0.write() = levels.clone();
        self.transactions.configure(transaction_config(&self.config(), &levels));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Apache Kafka 4.3.1 answers to UpdateFeatures.
    #[test]
    fn changes_are_refused_in_kafkas_words() {
        let levels = Levels { changed: Arc::default(), epoch: 1 };
        let refusal = |feature: &str, level, change| {
            check(&levels, 0, &Update { feature: feature.into(), level, change }).err().unwrap_or_default()
        };
        let (up, safe) = (Some(Change::Upgrade), Some(Change::SafeDowngrade));
        let invalid = |level: i16, feature: &str, why: &str| {
            format!("Invalid update version {level} for feature {feature}. {why}")
        };
        let why = "Local controller 0 does not support this feature.";
        assert_eq!(refusal("nope", 1, up), invalid(1, "nope", why));
        assert_eq!(refusal("", 1, up), invalid(1, "", why));
        assert_eq!(refusal("nope", 0, up), invalid(0, "nope", "Feature nope not found."));
        assert_eq!(
            refusal(KRAFT, 1, None),
            invalid(1, KRAFT, "The controller does not support the given upgrade type.")
        );
        assert_eq!(refusal(KRAFT, -1, up), invalid(-1, KRAFT, "A feature version cannot be less than 0."));
        assert_eq!(refusal(KRAFT, 2, up), invalid(2, KRAFT, "Local controller 0 only supports versions 0-1"));
        assert_eq!(refusal(KRAFT, 1, safe), invalid(1, KRAFT, "Can't downgrade to a newer version."));
        let why = "Local controller 0 only supports versions 7-30";
        assert_eq!(refusal(METADATA, 6, safe), invalid(6, METADATA, why));
        let why = "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade.";
        assert_eq!(refusal(METADATA, 29, up), invalid(29, METADATA, why));
        assert_eq!(
            refusal(METADATA, 28, safe),
            "Unsupported metadata.version downgrade from 30 to 28. Refusing to perform the requested downgrade because it \
             might delete metadata information."
        );
        assert_eq!(
            refusal(METADATA, 7, Some(Change::UnsafeDowngrade)),
            "Unsupported metadata.version downgrade from 30 to 7. Unsafe metadata downgrade is not supported in this version."
        );
        for (feature, level, change) in [(METADATA, 30, up), (KRAFT, 0, up), (KRAFT, 0, safe), (KRAFT, 1, up)] {
            assert_eq!(refusal(feature, level, change), "", "{feature} {level}");
        }
    }
}
