//! Sockets: the listener, connections, frames, limits, and the drain on shutdown.
//!
//! A connection is one task. It reads frames in order, hands each to the broker in order, and writes the answers in
//! order; but it reads the next request while earlier ones still wait, for a flush say. Record bytes of a fetch go from
//! the file to the socket inside the kernel.

mod connection;
mod frame_reader;
mod quota;
mod server;
mod write;

pub use server::{ListenError, Listening, listen};
