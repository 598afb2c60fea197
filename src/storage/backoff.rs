//! How long to leave alone what has failed.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(300);

/// Twice as long after each failure in a row, from a second to five minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::storage) struct Backoff {
    failures: u32,
    /// On the steady clock.
    until: Duration,
}

impl Backoff {
    /// It failed once more. Answers for how long it is to be left alone.
    pub fn failed(&mut self, now: Duration) -> Duration {
        let wait = FIRST.saturating_mul(1 << self.failures.min(16)).min(LONGEST);
        self.failures += 1;
        self.until = now + wait;
        wait
    }

    /// Whether it is still to be left alone.
    pub fn holds(&self, now: Duration) -> bool {
        now < self.until
    }

    /// How often it failed in a row.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// When it is no longer to be left alone, on the steady clock.
    pub fn until(&self) -> Duration {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_waits_twice_as_long_each_time_up_to_five_minutes() {
        let mut backoff = Backoff::default();
        assert!(!backoff.holds(Duration::ZERO));
        let waits: Vec<u64> = (0..10).map(|_| backoff.failed(Duration::from_secs(10)).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
        assert!(backoff.holds(Duration::from_secs(309)) && !backoff.holds(Duration::from_secs(310)));
    }
}
