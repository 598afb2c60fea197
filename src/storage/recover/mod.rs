//! Repairing a stopped data directory, doze's or Apache Kafka's, from what a verification found.
//!
//! [`plan`] looks at what [`crate::storage::verify`] found and says step by step what is to be done; nothing is written by it.
//! [`apply`] does it. [`copy`] makes a copy of a directory first, for those who want the original left alone.
//!
//! # What it promises
//!
//! - A batch that is good stays, at its offset. A batch whose frame can be put right is.
//! - Whatever is cut off, taken out or removed is kept in a quarantine folder, with a manifest, and is on the medium there before
//!   the first byte of the directory changes ([`quarantine`]).
//! - Offsets are never given twice, and none is missing: an empty batch stands for those whose records are lost.
//! - What loses records that may have been acknowledged ([`Step::loses`]) is only done if that was accepted. What is not done is
//!   answered as left.
//! - The mark of a clean stop goes before anything is changed, and comes back when everything was checked and flushed. So after
//!   a power cut in the middle the directory is one that was stopped uncleanly, and another recovery goes on from there.
//! - Log files are replaced as the cleaner does it: after a power cut there is the old segment or the new one.
//!
//! A rebuilt catalog has what the partitions' folders tell and what the old one still does: see [`catalog`].

mod apply;
mod catalog;
mod copy;
mod error;
mod partition;
mod plan;
mod quarantine;
mod takeover;
#[cfg(test)]
mod tests;

pub use apply::{Applied, Options, apply};
pub use catalog::Rebuilt;
pub use copy::copy;
pub use error::RecoverError;
pub use plan::{Action, Left, Plan, Step, plan};
pub use quarantine::Kept;
