//! What a broker is started with. Plain data, checked before it gets here.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::config::{BrokerConfig, ConfigError, HostPort};
use super::log_levels::LogLevels;
use crate::storage::scrub::ScrubSettings;

/// What a broker is started with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen. Port 0 picks one.
    pub listen: HostPort,
    /// What clients are told to connect to; `None` tells each the address that it connected to.
    pub advertise: Option<HostPort>,
    /// The data directory. It is made where it does not exist.
    pub data_dir: PathBuf,
    /// The catalog's file; `None` is `meta.db` in the data directory, or beside it where an earlier version left it.
    pub meta_db: Option<PathBuf>,
    /// How often everything that was written is flushed; `None` leaves it to acks=all, to the topics' own `flush.ms` and
    /// `flush.messages`, and to the stop.
    pub fsync_interval: Option<Duration>,
    /// How sealed segments are looked over in the background.
    pub scrub: ScrubSettings,
    /// Everything under Kafka's names. The fields above that have such a name have been taken from here.
    pub config: BrokerConfig,
    /// The loggers that clients can see and change; `None` shows them none.
    pub log_levels: Option<Arc<dyn LogLevels>>,
}

impl Settings {
    /// Takes `listeners`, `advertised.listeners` and `log.dirs` (else `log.dir`) from `config`.
    pub fn new(
        config: BrokerConfig,
        meta_db: Option<PathBuf>,
        fsync_interval: Option<Duration>,
    ) -> Result<Settings, ConfigError> {
        let dirs = if config.get("log.dirs").is_some() { config.list("log.dirs") } else { config.list("log.dir") };
        let data_dir = PathBuf::from(&dirs[0]);
        Ok(Settings {
            listen: config.listen()?,
            advertise: config.advertised()?,
            meta_db,
            data_dir,
            fsync_interval,
            scrub: ScrubSettings::default(),
            config,
            log_levels: None,
        })
    }
}
