//! How much a client used: as a rate over a sliding window, or as tokens of a bucket. Both follow Apache Kafka's figures,
//! so that a client is held back for as long as it is there. Plain state machines; times are milliseconds of one clock.

use std::collections::VecDeque;

/// Over what a quota is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// How many samples count, at least 1.
    pub samples: u32,
    /// How long one sample is.
    pub sample_ms: i64,
}

impl Window {
    pub fn length_ms(&self) -> i64 {
        i64::from(self.samples).saturating_mul(self.sample_ms)
    }
}

#[derive(Clone, Debug)]
struct Sample {
    start_ms: i64,
    last_ms: i64,
    value: f64,
}

/// What was used in the samples of a window. The oldest sample may have begun before the window.
#[derive(Clone, Debug, Default)]
pub struct Rate(VecDeque<Sample>);

impl Rate {
    pub fn record(&mut self, window: Window, now_ms: i64, value: f64) {
        if self.0.back().is_none_or(|sample| now_ms - sample.start_ms >= window.sample_ms) {
            self.0.push_back(Sample { start_ms: now_ms, last_ms: now_ms, value: 0.0 });
            while self.0.len() > window.samples as usize + 1 {
                self.0.pop_front();
            }
        }
        let sample = self.0.back_mut().expect("one was added if there was none");
        sample.value += value;
        sample.last_ms = now_ms;
    }

    /// How many milliseconds a client has to pause until its rate is `limit` a second; 0 where it is no higher.
    pub fn throttle_ms(&mut self, window: Window, now_ms: i64, limit: f64) -> i64 {
        self.0.retain(|sample| now_ms - sample.last_ms < window.length_ms());
        let elapsed = self.0.front().map_or(0, |oldest| now_ms - oldest.start_ms);
        // A rate is never taken over less than all samples but the last, else the first bytes would look like a flood.
        let missing = (i64::from(window.samples) - 1 - elapsed / window.sample_ms).max(0);
        let span_ms = (elapsed + missing * window.sample_ms).max(1) as f64;
        let used: f64 = self.0.iter().map(|sample| sample.value).sum();
        let rate = used * 1000.0 / span_ms;
        if rate > limit { ((rate - limit) / limit * span_ms).round() as i64 } else { 0 }
    }

    /// Nothing of it counts any more.
    pub fn is_over(&self, window: Window, now_ms: i64) -> bool {
        self.0.back().is_none_or(|sample| now_ms - sample.last_ms >= window.length_ms())
    }
}

/// Tokens that come back at a steady rate. It may go below empty once, and refuses from then on until it is not.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    tokens: f64,
    at_ms: i64,
}

impl TokenBucket {
    pub fn full(window: Window, now_ms: i64, limit: f64) -> Self {
        TokenBucket { tokens: burst(window, limit), at_ms: now_ms }
    }

    fn refill(&mut self, window: Window, now_ms: i64, limit: f64) {
        let back = limit * (now_ms - self.at_ms) as f64 / 1000.0;
        self.tokens = burst(window, limit).min(self.tokens + back);
        self.at_ms = now_ms;
    }

    /// How many milliseconds it takes until it is no longer below empty; 0 where it is not.
    pub fn throttle_ms(&mut self, window: Window, now_ms: i64, limit: f64) -> i64 {
        self.refill(window, now_ms, limit);
        if self.tokens < 0.0 { (-self.tokens / limit * 1000.0).round() as i64 } else { 0 }
    }

    pub fn take(&mut self, window: Window, now_ms: i64, limit: f64, tokens: f64) {
        self.refill(window, now_ms, limit);
        self.tokens -= tokens;
    }

    /// Whether it is full again, at a rate of `limit`.
    pub fn is_over(&self, window: Window, now_ms: i64, limit: f64) -> bool {
        let back = limit * (now_ms - self.at_ms) as f64 / 1000.0;
        self.tokens + back >= burst(window, limit)
    }
}

fn burst(window: Window, limit: f64) -> f64 {
    limit * window.length_ms() as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window { samples: 11, sample_ms: 1000 };

    #[test]
    fn a_rate_is_taken_over_ten_seconds_at_first() {
        let mut rate = Rate::default();
        rate.record(WINDOW, 5_000, 10_000.0);
        // 10,000 bytes in the 10 seconds that are assumed: 1,000 a second.
        assert_eq!(rate.throttle_ms(WINDOW, 5_000, 1_000.0), 0);
        rate.record(WINDOW, 5_000, 10_000.0);
        // Twice as much takes twice as long.
        assert_eq!(rate.throttle_ms(WINDOW, 5_000, 1_000.0), 10_000);
        // The pause is over when it was kept.
        assert_eq!(rate.throttle_ms(WINDOW, 15_000, 1_000.0), 10_000);
        assert_eq!(rate.throttle_ms(WINDOW, 16_000, 1_000.0), 0);
    }

    #[test]
    fn a_steady_client_is_held_to_its_rate() {
        let (mut rate, mut now, mut sent) = (Rate::default(), 0, 0);
        while now < 200_000 {
            rate.record(WINDOW, now, 5_000.0);
            sent += 5_000;
            now += rate.throttle_ms(WINDOW, now, 1_000.0) + 10;
        }
        let per_second = sent / 200;
        assert!((900..1_200).contains(&per_second), "{per_second} bytes a second");
    }

    #[test]
    fn a_bucket_may_be_overdrawn_once() {
        let mut bucket = TokenBucket::full(WINDOW, 0, 2.0);
        bucket.take(WINDOW, 0, 2.0, 30.0);
        assert_eq!(bucket.throttle_ms(WINDOW, 0, 2.0), 4_000);
        assert_eq!(bucket.throttle_ms(WINDOW, 3_000, 2.0), 1_000);
        assert_eq!(bucket.throttle_ms(WINDOW, 4_000, 2.0), 0);
        assert!(!bucket.is_over(WINDOW, 14_000, 2.0) && bucket.is_over(WINDOW, 15_000, 2.0));
        bucket.take(WINDOW, 100_000, 2.0, 22.0);
        assert_eq!(bucket.throttle_ms(WINDOW, 100_000, 2.0), 0);
    }
}
