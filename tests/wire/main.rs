//! The executable as its users have it: started, asked over TCP, stopped, killed, started again.

#![allow(clippy::unwrap_used)]

mod admin;
mod asks;
mod bad_input;
mod cluster;
mod configs;
mod consumer_groups;
mod credentials;
mod data;
mod durability;
mod fetch;
mod full_disk;
mod groups;
mod harness;
mod internal_topics;
mod offsets;
mod produce;
mod producer;
mod quotas;
mod rot;
mod serve;
mod share_groups;
mod share_state;
mod state_topics;
mod strace;
mod streams_groups;
mod transactions;
