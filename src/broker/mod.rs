//! The broker: the registry of topics and partitions, the handlers of requests, and what waits in between.
//!
//! [`Broker::receive`] takes one request of a connection and hands back its answer, or the promise of one. Handlers (one
//! file an API) translate between the protocol and the layers below; they hold no storage logic. With `net` this is the
//! only async code.

mod client;
pub mod config;
mod configs;
mod dispatch;
mod features;
mod fetch_sessions;
mod groups;
mod handlers;
mod internal_topics;
pub mod log_levels;
mod operations;
mod produce_rules;
mod produce_transactions;
mod quotas;
mod read_flushes;
mod refusal;
mod scram;
pub mod settings;
mod shares;
mod start;
mod state_topics;
mod topics;
mod transactions;
mod upkeep;

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{oneshot, watch};

use crate::protocol::{ApiKey, ErrorCode, Uuid};
use crate::storage::catalog::{Mutation, Topic, Topics};
use crate::storage::cleaner::Cleaner;
use crate::storage::log::PartitionLog;
use crate::storage::scrub::Scrubber;
use crate::storage::store::Store;
use crate::sys::Env;
use config::{BrokerConfig, LiveConfig};
use features::Features;
use fetch_sessions::FetchSessions;
use groups::Groups;
use log_levels::LogLevels;
use quotas::Quotas;
use shares::Shares;
use state_topics::StateTopics;
use topics::{Refused, TopicCache, TopicRef};
use transactions::Transactions;

pub use client::ClientConnection;
pub use dispatch::{Pending, PendingReply, Reply};
pub use settings::Settings;
pub use start::{OpenBrokerError, kafka_log_config, offline_log_config};

/// A broker over one data directory. Shared between threads.
#[derive(Debug)]
pub struct Broker {
    env: Env,
    settings: Settings,
    config: Arc<LiveConfig>,
    store: Arc<Store>,
    cleaner: Arc<Cleaner>,
    scrubber: Arc<Scrubber>,
    groups: Arc<Groups>,
    shares: Arc<Shares>,
    transactions: Arc<Transactions>,
    copies: Arc<StateTopics>,
    topic_cache: TopicCache,
    fetch_sessions: FetchSessions,
    features: Features,
    quotas: Arc<Quotas>,
    next_connection: AtomicU64,
    stopping: watch::Sender<bool>,
    /// Held while configs are changed, so that changes do not overtake each other.
    altering: tokio::sync::Mutex<()>,
    background: parking_lot::Mutex<Vec<tokio::task::JoinHandle<()>>>,
}

/// What bounds connections.
#[derive(Clone, Copy, Debug)]
pub struct NetworkSettings {
    pub max_connections: usize,
    /// From the address that was asked about.
    pub max_connections_per_ip: usize,
    pub max_request_bytes: usize,
    pub max_idle: Duration,
}

impl Broker {
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// What is in force of the broker's configs.
    pub fn config(&self) -> Arc<BrokerConfig> {
        self.config.snapshot()
    }

    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    pub fn node_id(&self) -> i32 {
        self.config().node_id()
    }

    pub fn rack(&self) -> Option<String> {
        match self.config().get("broker.rack") {
            Some(config::Value::Text(rack)) => Some(rack.clone()),
            _ => None,
        }
    }

    pub fn cluster_id(&self) -> String {
        self.store.catalog().cluster_id().to_owned()
    }

    /// The host and port that a client is told: those that it connected to, unless the settings say otherwise.
    pub fn advertised(&self, client: &ClientConnection) -> (String, i32) {
        match &self.settings.advertise {
            Some(address) => (address.host.clone(), address.port.into()),
            None => (client.local.ip().to_canonical().to_string(), client.local.port().into()),
        }
    }

    /// What bounds a connection from `ip`.
    pub fn network_settings(&self, ip: IpAddr) -> NetworkSettings {
        let config = self.config();
        let count = |name| usize::try_from(config.int(name)).unwrap_or(0);
        NetworkSettings {
            max_connections: count("max.connections"),
            max_connections_per_ip: config.max_connections_of(ip),
            max_request_bytes: count("socket.request.max.bytes"),
            max_idle: self.max_idle(),
        }
    }

    /// `connections.max.idle.ms`: how long a connection may be quiet.
    fn max_idle(&self) -> Duration {
        let idle = self.config().long("connections.max.idle.ms");
        // Negative is no limit; a century is none either, and fits every clock.
        u64::try_from(idle).map_or(CENTURY, |ms| Duration::from_millis(ms).min(CENTURY))
    }

    /// A new connection from `peer` to `local`.
    pub fn connected(&self, peer: SocketAddr, local: SocketAddr) -> Arc<ClientConnection> {
        let id = self.next_connection.fetch_add(1, Ordering::Relaxed);
        Arc::new(ClientConnection::new(id, peer, local))
    }

    /// The connection is gone.
    pub fn disconnected(&self, client: &ClientConnection) {
        self.shares.disconnected(client.id);
    }

    /// Admits a connection from `ip`. One that comes too soon after others is to be closed after the time that is answered.
    pub fn connecting(&self, ip: IpAddr) -> Option<Duration> {
        self.quotas.connecting(ip)
    }

    /// How long no other connection is to be taken in after one that was (`max.connection.creation.rate`).
    pub fn pause_after_connection(&self) -> Duration {
        self.quotas.pause_after_connection(self.config().int("max.connection.creation.rate"))
    }

    /// Takes in one frame of a connection, without its length. `None` means that the connection is to be closed.
    pub async fn receive(self: &Arc<Self>, client: &Arc<ClientConnection>, frame: Bytes) -> Option<Pending> {
        dispatch::receive(self, client, frame).await
    }

    fn topics(&self) -> Arc<Topics> {
        self.store.topics()
    }

    fn topic_by_name(&self, name: &str) -> Result<TopicRef, ErrorCode> {
        let topics = self.topics();
        let topic = topics.by_name(name).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        self.topic_cache.get(self, topic)
    }

    fn topic_by_id(&self, id: Uuid) -> Result<TopicRef, ErrorCode> {
        let topics = self.topics();
        let topic = topics.by_id(id).ok_or(ErrorCode::UnknownTopicId)?;
        self.topic_cache.get(self, topic)
    }

    /// The topic that a Produce of this version means.
    fn topic_to_produce_to(&self, version: i16, name: &str, id: Uuid) -> Result<TopicRef, ErrorCode> {
        match version {
            13.. => self.topic_by_id(id),
            _ => self.topic_by_name(name),
        }
    }

    /// The log of a partition, opened if it was not. A partition that cannot be opened answers KAFKA_STORAGE_ERROR.
    async fn partition(self: &Arc<Self>, topic: &TopicRef, index: i32) -> Result<Arc<PartitionLog>, ErrorCode> {
        if !(0..topic.topic.partitions).contains(&index) {
            return Err(ErrorCode::UnknownTopicOrPartition);
        }
        topics::open_log(&self.env, &self.store, topic.topic.id, index).await
    }

    /// Whether the log of a partition takes no writes until a restart. Reads of it go on.
    fn is_offline(&self, topic_id: Uuid, partition: i32) -> bool {
        self.store.open_partition(topic_id, partition).is_some_and(|log| log.is_offline().is_some())
    }

    /// The replicas of a partition that are in sync, and those that are offline. A log that is offline leaves no replica in sync, which
    /// is what admin tools look for; its leader stays, since reads go on.
    fn replicas(&self, topic_id: Uuid, partition: i32) -> (Vec<i32>, Vec<i32>) {
        match self.is_offline(topic_id, partition) {
            true => (vec![], vec![self.node_id()]),
            false => (vec![self.node_id()], vec![]),
        }
    }

    /// Runs what may block on a thread that is there for it.
    async fn blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, ErrorCode> {
        topics::blocking(&self.env, work).await
    }

    fn log_levels(&self) -> Option<&dyn LogLevels> {
        self.settings.log_levels.as_deref()
    }

    /// The versions of an API that are named to clients.
    fn versions(&self, api: ApiKey) -> RangeInclusive<i16> {
        match self.config().boolean("unstable.api.versions.enable") {
            true => api.unstable_versions(),
            false => api.versions(),
        }
    }

    /// Makes changes of the catalog durable.
    async fn commit(&self, mutations: Vec<Mutation>) -> Result<(), Refused> {
        let (sender, done) = oneshot::channel();
        self.store.catalog().commit(mutations, Box::new(move |result| drop(sender.send(result))));
        match done.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                tracing::error!("a change could not be stored: {error}");
                Err(Refused::new(ErrorCode::KafkaStorageError, error.to_string()))
            }
            Err(_) => Err(Refused::new(ErrorCode::KafkaStorageError, "the broker stops")),
        }
    }

    fn auto_creates_topics(&self) -> bool {
        self.config().boolean("auto.create.topics.enable")
    }

    /// `max.request.partition.size.limit`: the most partitions that one DescribeTopicPartitions describes.
    fn max_described_partitions(&self) -> i32 {
        self.config().int("max.request.partition.size.limit").max(1)
    }

    /// Forgets what is kept of a topic that is gone.
    fn topic_deleted(&self, topic: &Topic) {
        self.topic_cache.clear();
        self.shares.topic_deleted(topic.id);
        self.groups.act(|coordinator, now| coordinator.topic_deleted(now, &topic.name));
    }

    fn groups(&self) -> &Arc<Groups> {
        &self.groups
    }

    fn shares(&self) -> &Arc<Shares> {
        &self.shares
    }

    /// Whether the feature `share.version` is at a level that has share groups.
    fn offers_share_groups(&self) -> bool {
        self.features().level(features::SHARE) >= 1
    }

    fn transactions(&self) -> &Arc<Transactions> {
        &self.transactions
    }

    /// `transaction.partition.verification.enable`: whether records of a transaction are only taken for partitions that
    /// were added to it.
    fn verifies_transactions(&self) -> bool {
        self.config().boolean("transaction.partition.verification.enable")
    }

    /// `add.partitions.to.txn.retry.backoff.max.ms`: how long what starts a transaction waits for the end of the one before.
    fn transaction_patience(&self) -> Duration {
        Duration::from_millis(
            self.config().int("add.partitions.to.txn.retry.backoff.max.ms").max(0).unsigned_abs().into(),
        )
    }

    /// Whether `group.coordinator.rebalance.protocols` has the consumer group protocol.
    fn offers_consumer_groups(&self) -> bool {
        self.offers_protocol("consumer")
    }

    /// The same of streams groups, which `streams.version` has to allow as well.
    fn offers_streams_groups(&self) -> bool {
        self.offers_protocol("streams") && self.features().level(features::STREAMS) > 0
    }

    fn offers_protocol(&self, protocol: &str) -> bool {
        let config = self.config();
        config.list("group.coordinator.rebalance.protocols").iter().any(|name| name.eq_ignore_ascii_case(protocol))
    }

    fn fetch_sessions(&self) -> &FetchSessions {
        &self.fetch_sessions
    }

    /// `fetch.max.bytes`: the most that one fetch returns, but for a first batch that is larger.
    fn fetch_max_bytes(&self) -> usize {
        usize::try_from(self.config().int("fetch.max.bytes")).unwrap_or(0)
    }

    /// Returns when the broker is stopping.
    async fn stopping(&self) {
        let mut stopping = self.stopping.subscribe();
        // The sender lives as long as the broker.
        let _ = stopping.wait_for(|stop| *stop).await;
    }

    /// Ends every wait: parked fetches answer with what there is, group requests that they cannot be answered.
    pub fn stop_waiting(&self) {
        self.stopping.send_replace(true);
        self.groups.stop_waiting();
    }
}

/// Who everybody is that has not authenticated.
const ANONYMOUS: &str = "ANONYMOUS";

const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// The APIs that are served, in the order of their keys.
pub fn served_apis() -> Vec<ApiKey> {
    let mut apis: Vec<ApiKey> = handlers::ALL.iter().map(|handler| handler.api).collect();
    apis.sort();
    apis
}
