//! The group coordinator: who is in a group, what each member is assigned, and how far the group has read.
//!
//! A pure state machine: an event and its time go in, [`Actions`] come out. It does no I/O, looks at no clock and names no
//! message of the wire protocol; randomness comes from [`Random`](crate::sys::Random). The same events at the same times
//! give the same actions.
//!
//! What it promises:
//! - Every request is answered exactly once, if its writes end and [`GroupCoordinator::tick`] is called when it is due.
//! - What is acknowledged is durable before: committed and deleted offsets, assignments, replaced static members, deleted
//!   groups. Until a write is known to be durable, nobody is shown what it says. A write that fails is answered with
//!   [`Error::NotCoordinator`] and changes nothing that is kept; a group whose assignment could not be stored rebalances.
//! - After a restart, groups have the members, the generation and the assignments that were stored last, and go on without
//!   a rebalance.
//! - Offsets that a transaction commits are pending until it ends: durable, seen by nobody, and in the way of those who ask
//!   for stable offsets.
//! - What waits has a limit: member ids that nobody uses run out with their session timeout, requests of clients that have
//!   gone end with their round, groups without members and offsets are cleared away.
//!
//! Behaviour is that of Apache Kafka 4.3's group coordinator. A group is one of several kinds ([`GroupType`]); offsets
//! belong to groups of every kind alike.

mod admin;
mod api;
mod classic;
mod commits;
mod config;
mod consumer;
mod consumers;
mod context;
mod error;
mod group;
mod groups;
mod ledger;
mod offsets;
mod pending;
pub mod records;
mod share;
mod shares;
mod stored;
mod streams;
mod streams_groups;
mod subscription;
mod timers;
mod topics;
mod transactional;
pub mod transactions;
mod writes;

#[cfg(test)]
mod tests;

pub use api::*;
pub use config::{Config, ConsumerSettings, GroupSettings, Migration, ShareSettings, StreamsSettings};
pub use consumer::Assignor;
pub use error::Error;
pub use groups::{GroupCoordinator, RestoreError};
pub use offsets::CommittedOffset;
pub use pending::{PendingOffset, PendingOffsetKey};
pub use share::partition::{
    AckRefused, Acknowledgement, Acquire, Acquired, LogBatch, RecordLimits, SharePartition, SharePartitionKey,
};
pub use share::state::{ShareState, StateChange, StateRefused, StateWrite};
pub use share::stretches::Stretch;
pub use stored::BadBytes;
pub use streams::{
    DescribedStreamsGroup, DescribedStreamsMember, Endpoint, EndpointPartitions, InternalTopic, StreamsHeartbeat,
    StreamsHeartbeatRequest, StreamsStatus, Subtopology, TaskSet, Tasks, Topology,
};
pub use topics::{TopicMetadata, Topics};
