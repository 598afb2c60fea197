//! What the broker knows of a connection.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// One client's connection. Shared between threads.
#[derive(Debug)]
pub struct ClientConnection {
    /// Unique in this run of the broker.
    pub id: u64,
    pub peer: SocketAddr,
    /// The address that the client connected to; it is told this one again, since it can reach it.
    pub local: SocketAddr,
    software: Mutex<Option<String>>,
    since: Instant,
    /// Until when it is held back, in milliseconds after `since`; 0 where it is not.
    held_until_ms: AtomicU64,
}

impl ClientConnection {
    pub fn new(id: u64, peer: SocketAddr, local: SocketAddr) -> Self {
        ClientConnection {
            id,
            peer,
            local,
            software: Mutex::new(None),
            since: Instant::now(),
            held_until_ms: AtomicU64::new(0),
        }
    }

    /// Has nothing read from the connection for this long.
    pub fn hold_back(&self, ms: i32) {
        let now = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let until = now.saturating_add(u64::try_from(ms).unwrap_or(0)).max(1);
        self.held_until_ms.fetch_max(until, Ordering::Relaxed);
    }

    /// Until when nothing is to be read from the connection, if that is yet to come.
    pub fn held_until(&self) -> Option<Instant> {
        match self.held_until_ms.load(Ordering::Relaxed) {
            0 => None,
            ms => Some(self.since + Duration::from_millis(ms)).filter(|until| *until > Instant::now()),
        }
    }

    /// The client's name and version of itself (KIP-511), as far as it told.
    pub fn software(&self) -> String {
        self.software.lock().clone().unwrap_or_else(|| "unknown".into())
    }

    pub fn set_software(&self, name: &str, version: &str) {
        *self.software.lock() = Some(format!("{name} {version}"));
    }

    /// The client's address in the form of Java's `InetAddress`, as groups show it.
    pub fn host(&self) -> String {
        format!("/{}", self.peer.ip().to_canonical())
    }
}
