//! The transaction coordinator: which producer speaks for a transactional id, and what becomes of its transaction.
//!
//! A pure state machine like that of the groups: an event and its time go in, [`Actions`] come out. What it promises:
//!
//! - Every request is answered exactly once, if its writes end. What is acknowledged is durable before; a write that fails
//!   is answered with [`Error::NotCoordinator`] and changes nothing.
//! - A transactional id has one change under way at most. Whatever comes up against it in the meantime is answered with
//!   [`Error::ConcurrentTransactions`], which clients try again.
//! - The end of a transaction is decided once, durably, before the first marker is written, and answered then. Markers are
//!   written until all of them are there, over failures and restarts; only then does the next transaction of the id start.
//! - A transaction that nobody ends is aborted after its timeout, and its producer is fenced.
//!
//! Behaviour is that of Apache Kafka 4.3's coordinator for both versions of the protocol: in the second (KIP-890) each end
//! of a transaction gives the producer a new epoch, so that nothing late can reach into the next transaction.

mod api;
mod describe;
mod error;
mod machine;
mod metadata;
mod stored;

#[cfg(test)]
mod tests;

pub use api::*;
pub use describe::{Filter, Listed};
pub use error::Error;
pub use machine::{RestoreError, TransactionCoordinator};
pub use metadata::{Metadata, State};
