//! Time: the wall clock that records carry, and the steady clock that timeouts are measured with.

use std::fmt::Debug;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A source of time. Shared between threads.
pub trait Clock: Send + Sync + Debug {
    /// Milliseconds since the Unix epoch. May jump in either direction when the machine's clock is set.
    fn now_ms(&self) -> i64;

    /// Time since some fixed moment in the past. Never goes back.
    fn monotonic(&self) -> Duration;
}

/// The machine's clocks.
#[derive(Debug)]
pub struct OsClock {
    started: Instant,
}

impl OsClock {
    pub fn new() -> Self {
        OsClock { started: Instant::now() }
    }
}

impl Default for OsClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for OsClock {
    fn now_ms(&self) -> i64 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
        }
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}
