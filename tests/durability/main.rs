//! Durability, proved on a simulated disk: a workload is run with each of its file operations failing, and with the power
//! cut after each, and whatever was acknowledged has to be there.

#![allow(clippy::unwrap_used)]

mod broker;
mod compacted;
mod consumer_groups;
mod faults;
mod life;
mod model;
mod order;
mod regressions;
mod requests;
mod share_groups;
mod streams_groups;
mod sweep;
mod transactions;
