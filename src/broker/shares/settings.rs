//! What is in force for the partitions of share groups.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::broker::config::{BrokerConfig, GroupSettings, OffsetReset, Overrides};
use crate::coordinator::RecordLimits;

/// What is in force for the partitions of one group.
#[derive(Clone, Debug)]
pub struct ShareConfig {
    pub limits: RecordLimits,
    /// Whether records of transactions that are not committed are left out.
    pub read_committed: bool,
    /// Where the group starts to read.
    pub reset: OffsetReset,
}

impl ShareConfig {
    fn new(settings: &GroupSettings) -> Self {
        let lock_ms = u64::try_from(settings.share_record_lock_duration_ms).unwrap_or(0);
        ShareConfig {
            limits: RecordLimits {
                deliveries: settings.share_delivery_count_limit,
                in_flight: settings.share_partition_max_record_locks,
                lock: Duration::from_millis(lock_ms),
                renewals: settings.share_renew_acknowledge_enable,
            },
            read_committed: settings.share_read_committed,
            reset: settings.share_auto_offset_reset,
        }
    }

    /// How long an acquired record stays locked, in milliseconds, as clients are told.
    pub fn lock_ms(&self) -> i32 {
        i32::try_from(self.limits.lock.as_millis()).unwrap_or(i32::MAX)
    }
}

#[derive(Debug)]
pub struct Settings {
    default: ShareConfig,
    own: HashMap<Arc<str>, ShareConfig>,
}

impl Settings {
    /// Of groups that have configs of their own, and of all others.
    pub fn new(config: &BrokerConfig, own: &BTreeMap<Arc<str>, GroupSettings>) -> Self {
        let (default, _) = GroupSettings::stored(config, &Overrides::new());
        Settings {
            default: ShareConfig::new(&default),
            own: own.iter().map(|(group, settings)| (group.clone(), ShareConfig::new(settings))).collect(),
        }
    }

    pub fn of(&self, group: &str) -> ShareConfig {
        self.own.get(group).unwrap_or(&self.default).clone()
    }
}
