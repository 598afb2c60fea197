//! What goes into the transaction coordinator and what comes out of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use super::error::Error;
use crate::coordinator::Token;

/// In a transaction, a partition of this topic stands for the offsets that the transaction commits.
pub use crate::storage::internal_topics::OFFSETS as OFFSETS_TOPIC;

/// Topic and partition.
pub type Place = (Arc<str>, i32);

/// A producer id with the epoch of whoever speaks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Producer {
    pub id: i64,
    pub epoch: i16,
}

/// Versions of the protocol between a client and the coordinator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// One epoch for as many transactions as the producer likes.
    #[default]
    V1,
    /// Each transaction ends with an epoch of its own (KIP-890).
    V2,
}

/// Settings, each named after the broker config that it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// `transaction.max.timeout.ms`, milliseconds.
    pub max_timeout_ms: i32,
    /// `transactional.id.expiration.ms`, milliseconds.
    pub id_expiration_ms: i64,
    /// `transaction.abort.timed.out.transaction.cleanup.interval.ms`, milliseconds: how often to look for transactions that
    /// have timed out.
    pub abort_interval_ms: u64,
    /// `transaction.remove.expired.transaction.cleanup.interval.ms`, milliseconds.
    pub expiry_interval_ms: u64,
    /// `transaction.two.phase.commit.enable`: whether a producer may have transactions without a timeout.
    pub two_phase_commit: bool,
    /// That of the feature `transaction.version`: how the coordinator itself ends transactions.
    pub version: Version,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            max_timeout_ms: 900_000,
            id_expiration_ms: 604_800_000,
            abort_interval_ms: 10_000,
            expiry_interval_ms: 3_600_000,
            two_phase_commit: false,
            version: Version::V2,
        }
    }
}

/// What the caller has to do, in this order.
pub type Actions = Vec<Action>;

#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Answer a request. Each token is answered exactly once.
    Reply { token: Token, reply: Reply },
    /// Get a producer id that nobody has, then call [`producer_id`](super::TransactionCoordinator::producer_id).
    NewProducerId { transactional_id: Arc<str> },
    /// Make a write durable, then call [`persisted`](super::TransactionCoordinator::persisted).
    Persist(Write),
    /// Write markers and make them durable, then call
    /// [`markers_written`](super::TransactionCoordinator::markers_written).
    WriteMarkers(Markers),
}

/// What is stored of a transactional id; `None` removes it. An id has one write under way at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    pub transactional_id: Arc<str>,
    pub value: Option<Bytes>,
}

/// The end of a transaction, to be written to each of its partitions; it may have been written to some of them before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Markers {
    pub transactional_id: Arc<str>,
    pub producer: Producer,
    pub committed: bool,
    pub version: Version,
    /// In order. Those of [`OFFSETS_TOPIC`] stand for pending offsets.
    pub places: Vec<Place>,
}

/// What the caller tried did not work and left nothing behind. Whoever tried has reported why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Init(Result<Producer, Error>),
    Add(Result<(), Error>),
    /// With the producer as it goes on, in the second version of the protocol.
    End(Result<Option<Producer>, Error>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitRequest {
    pub transactional_id: String,
    /// Milliseconds.
    pub timeout_ms: i32,
    /// The producer that wants to go on with the next epoch (KIP-360).
    pub expected: Option<Producer>,
    /// Transactions of this producer have no timeout (KIP-939).
    pub two_phase_commit: bool,
    pub keep_prepared: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddRequest {
    pub transactional_id: String,
    pub producer: Producer,
    pub places: BTreeSet<Place>,
    pub version: Version,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndRequest {
    pub transactional_id: String,
    pub producer: Producer,
    pub committed: bool,
    pub version: Version,
}
