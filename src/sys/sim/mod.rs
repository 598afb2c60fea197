//! The outside world simulated: a disk that loses power and fails, time advanced by hand, seeded randomness, work that runs
//! in an order of the seed's choosing.
//!
//! [`SimFileSystem`] has a durable image beside the live one. [`SimFileSystem::power_cut`] leaves what a disk may leave;
//! [`SimFileSystem::kill`] ends the process alone. [`Fault`]s hit single operations, and every operation has a number, so
//! that a test can count a workload's, then run it again with each failing, or with the power cut after each.
//!
//! One seed is one history, as long as one thread runs it.

mod clock;
mod fault;
mod fs;
mod prng;
mod random;
mod workers;

use std::sync::Arc;

pub use clock::SimClock;
pub use fault::{Effect, Fault, SyncFailure};
pub use fs::{Cut, DataCut, NamesCut, OpKind, Operation, SimFileSystem};
pub use prng::Prng;
pub use random::SimRandom;
pub use workers::SimWorkers;

use super::Env;

/// What the wall clock of a simulation shows at first: 14 November 2023, in milliseconds since the Unix epoch.
pub const START_MS: i64 = 1_700_000_000_000;

/// The handles of a simulated world; [`SimEnv::env`] is what the program under test is given. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SimEnv {
    pub seed: u64,
    pub fs: SimFileSystem,
    pub clock: Arc<SimClock>,
    pub random: Arc<SimRandom>,
    pub workers: Arc<SimWorkers>,
    /// How often the process was started anew: no two starts share the order of jobs.
    starts: u64,
}

impl SimEnv {
    /// A world with an empty disk.
    pub fn new(seed: u64) -> (Env, SimEnv) {
        let clock = Arc::new(SimClock::new(START_MS));
        let sim = SimEnv {
            seed,
            fs: SimFileSystem::new(clock.clone()),
            clock,
            random: Arc::new(SimRandom::new(seed)),
            workers: Arc::new(SimWorkers::new(seed)),
            starts: 0,
        };
        (sim.env(), sim)
    }

    /// A world around a disk that there is, with jobs that run at once.
    pub fn around(seed: u64, fs: SimFileSystem) -> (Env, SimEnv) {
        let (_, mut sim) = SimEnv::new(seed);
        sim.fs = fs;
        sim.workers = Arc::new(SimWorkers::immediate());
        (sim.env(), sim)
    }

    pub fn env(&self) -> Env {
        Env {
            fs: Arc::new(self.fs.clone()),
            clock: self.clock.clone(),
            random: self.random.clone(),
            workers: self.workers.clone(),
        }
    }

    /// The process is killed and started anew: its handles fail, its locks are gone, its jobs never run, and what it wrote
    /// is in the page cache as before.
    pub fn kill(&mut self) -> Env {
        self.fs = self.fs.kill();
        self.restart()
    }

    /// The power is cut and comes back. See [`SimFileSystem::power_cut`].
    pub fn power_cut(&mut self, cut: Cut, prng: &mut Prng) -> Env {
        self.fs = self.fs.power_cut(cut, prng);
        self.restart()
    }

    fn restart(&mut self) -> Env {
        self.starts += 1;
        let workers = self.workers.successor(self.seed.wrapping_add(self.starts));
        std::mem::replace(&mut self.workers, Arc::new(workers)).stop();
        self.env()
    }
}
