//! The Kafka wire protocol: messages, their versions, frames, error codes. Bytes only; it does no I/O of its own.
//!
//! Messages are declared in doze's own notation (see [`message`]), one file an API in [`messages`], and work in both
//! directions. Whatever a length or count claims is checked against the bytes that remain before memory is reserved.
//! Record bytes are slices of the frame on the way in, and slices or ranges of files on the way out.

pub mod api;
pub mod coordinator_records;
pub mod error;
pub mod frame;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod json;
mod message;
pub mod messages;
pub mod metadata_records;
pub mod uuid;
pub mod wire;

pub use api::{ApiKey, Request};
pub use error::ErrorCode;
pub use uuid::Uuid;
