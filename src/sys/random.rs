//! Randomness, for identifiers (cluster, topic and member ids). Nothing here is used as a secret.

use std::fmt::Debug;

/// A source of random bytes. Shared between threads.
pub trait Random: Send + Sync + Debug {
    fn fill(&self, bytes: &mut [u8]);
}

/// The operating system's generator.
#[derive(Debug)]
pub struct OsRandom;

impl Random for OsRandom {
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the operating system always has random bytes once it has booted");
    }
}
