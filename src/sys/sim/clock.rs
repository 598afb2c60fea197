//! Time that only goes on when it is told to.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use crate::sys::Clock;

/// A clock advanced by hand. Shared between threads.
#[derive(Debug)]
pub struct SimClock {
    wall_ms: AtomicI64,
    steady_nanos: AtomicU64,
}

impl SimClock {
    /// `now_ms`: what the wall clock shows, in milliseconds since the Unix epoch. The steady clock starts at 0.
    pub fn new(now_ms: i64) -> Self {
        SimClock { wall_ms: AtomicI64::new(now_ms), steady_nanos: AtomicU64::new(0) }
    }

    /// Both clocks go on, the wall clock by whole milliseconds.
    pub fn advance(&self, by: Duration) {
        let nanos = u64::try_from(by.as_nanos()).expect("nobody simulates more than 500 years");
        let before = self.steady_nanos.fetch_add(nanos, Ordering::SeqCst);
        let passed_ms = (before + nanos) / 1_000_000 - before / 1_000_000;
        self.wall_ms.fetch_add(passed_ms as i64, Ordering::SeqCst);
    }

    /// Sets the wall clock, forward or back; the steady clock takes no notice.
    pub fn set_wall_ms(&self, now_ms: i64) {
        self.wall_ms.store(now_ms, Ordering::SeqCst);
    }
}

impl Clock for SimClock {
    fn now_ms(&self) -> i64 {
        self.wall_ms.load(Ordering::SeqCst)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_nanos(self.steady_nanos.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stands_still_unless_it_is_advanced() {
        let clock = SimClock::new(1000);
        assert_eq!((clock.now_ms(), clock.monotonic()), (1000, Duration::ZERO));
        for _ in 0..4 {
            clock.advance(Duration::from_micros(500));
        }
        assert_eq!((clock.now_ms(), clock.monotonic()), (1002, Duration::from_millis(2)));
        clock.set_wall_ms(5);
        assert_eq!((clock.now_ms(), clock.monotonic()), (5, Duration::from_millis(2)));
    }
}
