//! doze: a durable single-node Kafka broker and its storage engine, as a library.
//!
//! Layers, top to bottom; a layer uses those below it and never one above: `net`, `broker`, `coordinator`, `storage`,
//! `record`, `protocol`, [`sys`]. `docs/design.md` says how they fit together.

#![warn(missing_debug_implementations)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod broker;
pub mod coordinator;
pub mod net;
pub mod protocol;
pub mod record;
pub mod storage;
pub mod sys;
