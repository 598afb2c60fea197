//! What is on disk, and how it gets there and back. Synchronous; it names no request and no response of the protocol.

pub mod catalog;
pub mod log;
pub mod names;
mod rewrite;
pub mod store;

/// Told the outcome of an operation that completes later, once. It must not block.
pub type Done<T> = Box<dyn FnOnce(T) + Send>;
