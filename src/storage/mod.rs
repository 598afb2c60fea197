//! What is on disk, and how it gets there and back. Synchronous; it names no request and no response of the protocol.

mod backoff;
pub mod catalog;
pub mod cleaner;
pub mod compact;
pub mod dump;
pub mod inspect;
pub mod internal_topics;
pub mod log;
pub mod names;
pub mod offline;
pub mod recover;
mod replace;
pub mod retention;
mod rewrite;
pub mod scrub;
pub mod store;
pub mod verify;

/// Told the outcome of an operation that completes later, once. It must not block.
pub type Done<T> = Box<dyn FnOnce(T) + Send>;
