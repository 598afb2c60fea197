//! The log as its users see it, on real directories and on a file system that fails when it is told to.

mod basics;
mod faults;
mod kafka;
mod powercut;
mod recovery;
pub(in crate::storage) mod support;
mod transactions;
