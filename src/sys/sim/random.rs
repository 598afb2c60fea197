//! Randomness that comes from a seed.

use parking_lot::Mutex;

use super::prng::Prng;
use crate::sys::Random;

/// A seeded [`Random`]. Shared between threads; the draws of one are in the order in which they were made, so a run that is
/// to be repeated gives each part that draws a stream of its own.
#[derive(Debug)]
pub struct SimRandom {
    seed: u64,
    prng: Mutex<Prng>,
}

impl SimRandom {
    pub fn new(seed: u64) -> Self {
        SimRandom { seed, prng: Mutex::new(Prng::stream(seed, "random")) }
    }

    /// Another of the same seed, whose draws and this one's do not change each other.
    pub fn stream(&self, name: &str) -> Self {
        let mut prng = Prng::stream(self.seed, name);
        SimRandom { seed: prng.next_u64(), prng: Mutex::new(prng) }
    }
}

impl Random for SimRandom {
    fn fill(&self, bytes: &mut [u8]) {
        self.prng.lock().fill(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(random: &SimRandom) -> [u8; 16] {
        let mut bytes = [0; 16];
        random.fill(&mut bytes);
        bytes
    }

    #[test]
    fn one_more_draw_in_a_stream_does_not_reshuffle_another() {
        let (one, two) = (SimRandom::new(3), SimRandom::new(3));
        draw(&one);
        draw(&one.stream("a"));
        assert_eq!(draw(&one.stream("b")), draw(&two.stream("b")));
        assert_ne!(draw(&one.stream("b")), draw(&two.stream("a")));
        assert_ne!(draw(&one), draw(&two), "the first has drawn once before");
    }
}
