//! Starting and stopping: from settings to a broker that can be asked, and back to a directory that can be trusted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio::sync::watch;

use super::config::{BrokerConfig, ConfigError, GroupSettings, HostPort, LiveConfig, Overrides, TopicSettings, Value};
use super::configs::{missing_changes, with_stored_changes};
use super::features::{self, Features, Levels};
use super::fetch_sessions::FetchSessions;
use super::groups::Groups;
use super::produce_rules::topic_codec;
use super::quotas::Quotas;
use super::shares::Shares;
use super::state_topics::StateTopics;
use super::topics::TopicCache;
use super::transactions::Transactions;
use super::upkeep::{clean_logs, scrub_logs, sweep_logs};
use super::{Broker, Settings};
use crate::coordinator::{self, Assignor, ConsumerSettings, Migration, ShareSettings, StreamsSettings, transactions};
use crate::record::Codec;
use crate::storage::catalog::{Catalog, CatalogError, ConfigMap, ResourceType};
use crate::storage::cleaner::Cleaner;
use crate::storage::log::LogConfig;
use crate::storage::scrub::Scrubber;
use crate::storage::store::{CloseStoreError, LogConfigOf, OpenStoreError, Store, StoreConfig};
use crate::sys::Env;

/// Why a broker cannot start over a data directory.
#[derive(Debug, thiserror::Error)]
pub enum OpenBrokerError {
    #[error(transparent)]
    Store(#[from] OpenStoreError),
    #[error("the catalog cannot be used: {0}")]
    Catalog(#[source] CatalogError),
}

impl Broker {
    /// Opens the data directory and starts what runs in the background. Called inside a tokio runtime.
    pub fn open(env: Env, settings: Settings) -> Result<Arc<Broker>, OpenBrokerError> {
        let live = Arc::new(LiveConfig::new(settings.config.clone()));
        let for_logs = live.clone();
        let store = Arc::new(Store::open(
            env.clone(),
            StoreConfig {
                data_dir: settings.data_dir.clone(),
                meta_db: settings.meta_db.clone(),
                log_config: Arc::new(move |overrides: &Overrides| log_config(&for_logs.snapshot(), overrides)),
            },
        )?);
        let missing = missing_changes(&settings.config, store.catalog());
        if !missing.is_empty() {
            store.catalog().commit_blocking(missing).map_err(OpenBrokerError::Catalog)?;
        }
        live.replace(with_stored_changes(&settings.config, store.catalog()));
        let config = live.snapshot();
        let copies = StateTopics::open(env.clone(), store.clone()).map_err(OpenBrokerError::Catalog)?;
        let groups = Groups::open(env.clone(), store.clone(), copies.clone(), group_config(&config))
            .map_err(OpenBrokerError::Catalog)?;
        let shares =
            Shares::open(env.clone(), store.clone(), groups.clone(), &config).map_err(OpenBrokerError::Catalog)?;
        let features = Features::open(store.catalog()).map_err(OpenBrokerError::Catalog)?;
        let quotas = Arc::new(Quotas::open(env.clone(), store.catalog(), &config).map_err(OpenBrokerError::Catalog)?);
        let transactions = Transactions::open(
            env.clone(),
            store.clone(),
            groups.clone(),
            copies.clone(),
            transaction_config(&config, &features.levels()),
            config.int("offsets.topic.num.partitions"),
        )
        .map_err(OpenBrokerError::Catalog)?;
        let slots = usize::try_from(config.int("max.incremental.fetch.session.cache.slots")).unwrap_or(0);
        let broker = Arc::new(Broker {
            env,
            settings,
            config: live,
            cleaner: Arc::new(Cleaner::new(store.clone())),
            scrubber: Arc::new(Scrubber::new(store.clone())),
            store,
            groups,
            shares,
            transactions,
            copies,
            topic_cache: TopicCache::default(),
            fetch_sessions: FetchSessions::new(slots),
            features,
            quotas,
            next_connection: AtomicU64::new(0),
            stopping: watch::Sender::new(false),
            altering: tokio::sync::Mutex::new(()),
            background: parking_lot::Mutex::default(),
        });
        check_share_assignors(config.list("group.share.assignors"));
        broker.configure_groups();
        broker.start_background();
        Ok(broker)
    }

    /// Shows the port that was picked in `listeners`, where port 0 was asked for.
    pub fn listening_on(&self, port: u16) {
        if self.settings.listen.port != 0 {
            return;
        }
        let address = HostPort { host: self.settings.listen.host.clone(), port };
        match self.config.snapshot().listening_on(&address) {
            Ok(config) => self.config.replace(config),
            Err(error) => tracing::error!("the port that was picked is not shown in the configs: {error}"),
        }
    }

    fn start_background(self: &Arc<Self>) {
        let mut tasks = vec![
            tokio::spawn(self.groups.clone().keep_time()),
            tokio::spawn(self.shares.clone().keep_time()),
            tokio::spawn(self.shares.clone().keep_journal()),
            tokio::spawn(self.transactions.clone().keep_time()),
            tokio::spawn(self.copies.clone().keep()),
            tokio::spawn(keep_house(self.clone())),
            tokio::spawn(expire_producers(self.clone())),
            tokio::spawn(sweep_logs(self.clone())),
            tokio::spawn(clean_logs(self.clone())),
            tokio::spawn(scrub_logs(self.clone())),
        ];
        if let Some(interval) = self.settings.fsync_interval {
            tasks.push(tokio::spawn(flush_every(self.clone(), interval)));
        }
        *self.background.lock() = tasks;
    }

    /// Flushes and closes everything and, when all of that worked, marks the directory as cleanly stopped. To be called
    /// when no request is under way any more.
    pub async fn close(self: &Arc<Self>) -> Result<(), CloseStoreError> {
        for task in self.background.lock().drain(..) {
            task.abort();
        }
        self.transactions.stop().await;
        self.copies.copy().await;
        let this = self.clone();
        self.blocking(move || {
            this.scrubber.stop();
            this.store.close()
        })
        .await
        .expect("closing does not panic")
    }
}

/// Flushes what was written since the last time: what acks=1 and acks=0 leave to be flushed.
async fn flush_every(broker: Arc<Broker>, interval: Duration) {
    let mut ticks = tokio::time::interval(interval.max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        broker.store.flush_dirty(Duration::ZERO);
    }
}

/// How often topics with a `flush.ms` of their own are looked at.
const FLUSH_CHECK: Duration = Duration::from_millis(500);

async fn keep_house(broker: Arc<Broker>) {
    let mut ticks = tokio::time::interval(FLUSH_CHECK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // How often open logs forget producers that have not been heard of for long.
    let clean_up = broker.config().int("producer.id.expiration.check.interval.ms");
    let clean_up = Duration::from_millis(u64::try_from(clean_up).unwrap_or(0));
    let mut cleaned_up = tokio::time::Instant::now();
    loop {
        ticks.tick().await;
        broker.store.flush_dirty(Duration::MAX);
        if cleaned_up.elapsed() >= clean_up {
            cleaned_up = tokio::time::Instant::now();
            for (_, log) in broker.store.open_partitions() {
                log.housekeep();
            }
        }
    }
}

/// Forgets producers that have written nothing for `producer.id.expiration.ms`, in the logs that are open; the others are
/// looked at when they are opened.
async fn expire_producers(broker: Arc<Broker>) {
    let every = broker.config().int("producer.id.expiration.check.interval.ms").max(1).unsigned_abs();
    let mut ticks = tokio::time::interval(Duration::from_millis(every.into()));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        for (_, log) in broker.store.open_partitions() {
            log.expire_producers();
        }
    }
}

/// What topics' configs mean to their logs where no broker runs: under `at_start`, the settings that the broker is started with,
/// and the changes that the catalog remembers.
pub fn offline_log_config(at_start: &BrokerConfig, catalog: Option<&Catalog>) -> LogConfigOf {
    let config = catalog.map_or_else(|| at_start.clone(), |catalog| with_stored_changes(at_start, catalog));
    Arc::new(move |overrides: &ConfigMap| log_config(&config, overrides))
}

/// What a topic's configs mean to its logs on an Apache Kafka node with these settings, as its cleaner has it: what is written anew
/// keeps its codec. No producer is taken for expired, since the node knows of them from snapshots. Fails at a config that doze
/// knows and whose value it does not.
pub fn kafka_log_config(config: &BrokerConfig, overrides: &Overrides) -> Result<LogConfig, ConfigError> {
    let (_, errors) = TopicSettings::stored(config, overrides);
    let is_unknown_key = |error: &ConfigError| matches!(error, ConfigError::UnknownTopicConfig { .. });
    if let Some(error) = errors.into_iter().find(|error| !is_unknown_key(error)) {
        return Err(error);
    }
    let config = log_config(config, overrides);
    Ok(LogConfig { compaction_codec: None, producer_id_expiration_ms: i64::MAX, ..config })
}

/// What a topic's configs mean to its logs.
fn log_config(config: &BrokerConfig, overrides: &Overrides) -> LogConfig {
    // What of it is not in force is said where topics are looked up.
    let (settings, _) = TopicSettings::stored(config, overrides);
    let unsigned = |n: i32| u32::try_from(n).unwrap_or(0);
    LogConfig {
        segment_bytes: unsigned(settings.segment_bytes),
        segment_ms: settings.segment_ms,
        segment_jitter_ms: settings.segment_jitter_ms,
        segment_index_bytes: unsigned(settings.segment_index_bytes),
        index_interval_bytes: unsigned(settings.index_interval_bytes),
        preallocate: settings.preallocate,
        flush_messages: settings.flush_messages,
        flush_ms: settings.flush_ms,
        retention_ms: settings.retention_ms,
        retention_bytes: settings.retention_bytes,
        delete: settings.cleanup_policy.delete,
        compact: settings.cleanup_policy.compact,
        compaction_codec: Some(topic_codec(&settings).unwrap_or(Codec::None)),
        max_message_bytes: unsigned(settings.max_message_bytes),
        delete_retention_ms: settings.delete_retention_ms,
        min_cleanable_dirty_ratio: settings.min_cleanable_dirty_ratio,
        min_compaction_lag_ms: settings.min_compaction_lag_ms,
        max_compaction_lag_ms: settings.max_compaction_lag_ms,
        producer_id_expiration_ms: i64::from(config.int("producer.id.expiration.ms")),
    }
}

/// What the broker's configs mean to transactions.
pub(super) fn transaction_config(config: &BrokerConfig, levels: &Levels) -> transactions::Config {
    let interval = |name| u64::try_from(config.int(name)).unwrap_or(0);
    transactions::Config {
        max_timeout_ms: config.int("transaction.max.timeout.ms"),
        id_expiration_ms: config.int("transactional.id.expiration.ms").into(),
        abort_interval_ms: interval("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
        expiry_interval_ms: interval("transaction.remove.expired.transaction.cleanup.interval.ms"),
        two_phase_commit: config.boolean("transaction.two.phase.commit.enable"),
        version: match levels.level(features::TRANSACTION) {
            2.. => transactions::Version::V2,
            _ => transactions::Version::V1,
        },
    }
}

/// What the broker's configs mean to the groups.
pub(super) fn group_config(config: &BrokerConfig) -> coordinator::Config {
    let count = |name| usize::try_from(config.int(name)).unwrap_or(0);
    coordinator::Config {
        min_session_timeout_ms: config.int("group.min.session.timeout.ms"),
        max_session_timeout_ms: config.int("group.max.session.timeout.ms"),
        max_size: count("group.max.size"),
        initial_rebalance_delay_ms: config.int("group.initial.rebalance.delay.ms"),
        offset_metadata_max_size: count("offset.metadata.max.bytes"),
        offsets_retention_ms: match config.get("offsets.retention.minutes") {
            Some(Value::Int(minutes)) => Some(i64::from(*minutes) * 60_000),
            // doze's own default: committed offsets stay.
            _ => None,
        },
        offsets_retention_check_interval_ms: u64::try_from(config.long("offsets.retention.check.interval.ms"))
            .unwrap_or(0),
        consumer: ConsumerSettings {
            session_timeout_ms: config.int("group.consumer.session.timeout.ms"),
            heartbeat_interval_ms: config.int("group.consumer.heartbeat.interval.ms"),
            assignment_interval_ms: config.int("group.consumer.assignment.interval.ms"),
        },
        consumer_max_size: count("group.consumer.max.size"),
        consumer_assignors: assignors(config.list("group.consumer.assignors")),
        consumer_regex_refresh_interval_ms: config.int("group.consumer.regex.refresh.interval.ms"),
        consumer_migration: migration(config.text("group.consumer.migration.policy")),
        streams: StreamsSettings {
            session_timeout_ms: config.int("group.streams.session.timeout.ms"),
            heartbeat_interval_ms: config.int("group.streams.heartbeat.interval.ms"),
            assignment_interval_ms: config.int("group.streams.assignment.interval.ms"),
            initial_rebalance_delay_ms: config.int("group.streams.initial.rebalance.delay.ms"),
            num_standby_replicas: config.int("group.streams.num.standby.replicas"),
        },
        streams_max_size: count("group.streams.max.size"),
        share: ShareSettings {
            session_timeout_ms: config.int("group.share.session.timeout.ms"),
            heartbeat_interval_ms: config.int("group.share.heartbeat.interval.ms"),
            assignment_interval_ms: config.int("group.share.assignment.interval.ms"),
        },
        share_max_size: count("group.share.max.size"),
        ..coordinator::Config::default()
    }
}

fn assignors(names: &[String]) -> Vec<Assignor> {
    let mut found = Vec::new();
    for name in names {
        match Assignor::named(name) {
            Some(assignor) if !found.contains(&assignor) => found.push(assignor),
            Some(_) => {}
            None => {
                tracing::warn!(assignor = name, "group.consumer.assignors names an assignor that doze does not have")
            }
        }
    }
    if found.is_empty() { vec![Assignor::Uniform] } else { found }
}

/// Share groups have one assignor.
fn check_share_assignors(names: &[String]) {
    const SIMPLE: [&str; 2] = ["simple", "org.apache.kafka.coordinator.group.assignor.SimpleAssignor"];
    for name in names.iter().filter(|name| !SIMPLE.contains(&name.as_str())) {
        tracing::warn!(assignor = name, "group.share.assignors names an assignor that doze does not have");
    }
}

fn migration(policy: &str) -> Migration {
    let is = |name: &str| policy.eq_ignore_ascii_case(name);
    let both = is("bidirectional");
    Migration { upgrade: both || is("upgrade"), downgrade: both || is("downgrade") }
}

/// What is in force for the groups that have configs of their own.
pub(super) fn own_group_settings(config: &BrokerConfig, catalog: &Catalog) -> BTreeMap<Arc<str>, GroupSettings> {
    let configs = catalog.configs();
    let settings = |(group, overrides): (&str, &Arc<ConfigMap>)| {
        let (settings, wrong) = GroupSettings::stored(config, overrides);
        for error in wrong {
            tracing::error!(group, "a config of the group is not in force as it was set: {error}");
        }
        (Arc::from(group), settings)
    };
    configs.iter(ResourceType::Group).map(settings).collect()
}

impl Broker {
    /// Puts the configs of groups in force, and the broker's that are theirs by default.
    pub(super) fn configure_groups(&self) {
        let config = self.config();
        let own = own_group_settings(&config, self.store.catalog());
        let for_coordinator = own.iter().map(|(group, settings)| (group.clone(), coordinator_settings(settings)));
        self.groups.configure(group_config(&config), for_coordinator.collect());
        self.shares.configure(&config, &own);
    }
}

fn coordinator_settings(settings: &GroupSettings) -> coordinator::GroupSettings {
    coordinator::GroupSettings {
        consumer: ConsumerSettings {
            session_timeout_ms: settings.consumer_session_timeout_ms,
            heartbeat_interval_ms: settings.consumer_heartbeat_interval_ms,
            assignment_interval_ms: settings.consumer_assignment_interval_ms,
        },
        share: ShareSettings {
            session_timeout_ms: settings.share_session_timeout_ms,
            heartbeat_interval_ms: settings.share_heartbeat_interval_ms,
            assignment_interval_ms: settings.share_assignment_interval_ms,
        },
        streams: StreamsSettings {
            session_timeout_ms: settings.streams_session_timeout_ms,
            heartbeat_interval_ms: settings.streams_heartbeat_interval_ms,
            assignment_interval_ms: settings.streams_assignment_interval_ms,
            initial_rebalance_delay_ms: settings.streams_initial_rebalance_delay_ms,
            num_standby_replicas: settings.streams_num_standby_replicas,
        },
    }
}
