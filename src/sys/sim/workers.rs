//! Work that runs when it is told to, in an order that the seed chooses.

use std::fmt;

use parking_lot::Mutex;

use super::prng::Prng;
use crate::sys::{Job, Workers};

/// Workers without threads. Shared between threads, though a run that is to be repeated uses one.
pub struct SimWorkers {
    state: Mutex<State>,
}

struct State {
    queue: Vec<Job>,
    prng: Prng,
    mode: Mode,
    running: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Queued,
    Immediate,
    Stopped,
}

impl SimWorkers {
    /// Jobs wait for [`SimWorkers::run_one`]; the seed chooses which of those that wait is next.
    pub fn new(seed: u64) -> Self {
        Self::with_mode(seed, Mode::Queued)
    }

    /// A job runs before `spawn` returns, on the caller's thread; one that it spawns itself, after it. For tests that are
    /// one sequence of steps.
    pub fn immediate() -> Self {
        Self::with_mode(0, Mode::Immediate)
    }

    /// Those of the next process: of the same kind, with nothing to do.
    pub(super) fn successor(&self, seed: u64) -> Self {
        Self::with_mode(seed, self.state.lock().mode)
    }

    fn with_mode(seed: u64, mode: Mode) -> Self {
        let prng = Prng::stream(seed, "workers");
        SimWorkers { state: Mutex::new(State { queue: Vec::new(), prng, mode, running: false }) }
    }

    /// How many jobs wait.
    pub fn waiting(&self) -> usize {
        self.state.lock().queue.len()
    }

    /// Runs one of the jobs that wait. Answers whether there was one.
    pub fn run_one(&self) -> bool {
        let job = {
            let mut state = self.state.lock();
            if state.queue.is_empty() {
                return false;
            }
            let chosen = if state.mode == Mode::Immediate {
                0
            } else {
                let len = state.queue.len();
                state.prng.index(len)
            };
            state.queue.remove(chosen)
        };
        job();
        true
    }

    /// Runs jobs, those that they spawn too, until none waits. Answers how many.
    pub fn run_until_idle(&self) -> usize {
        let mut ran = 0;
        while self.run_one() {
            ran += 1;
        }
        ran
    }

    /// The process ends: what waits, and whatever comes, never runs.
    pub fn stop(&self) {
        let dropped = {
            let mut state = self.state.lock();
            state.mode = Mode::Stopped;
            std::mem::take(&mut state.queue)
        };
        // What a job owns may spawn another when it goes; that takes the lock.
        drop(dropped);
    }
}

impl Workers for SimWorkers {
    fn spawn(&self, job: Job) {
        {
            let mut state = self.state.lock();
            match state.mode {
                Mode::Stopped => return,
                Mode::Queued => return state.queue.push(job),
                Mode::Immediate => state.queue.push(job),
            }
            if std::mem::replace(&mut state.running, true) {
                return;
            }
        }
        self.run_until_idle();
        self.state.lock().running = false;
    }
}

impl fmt::Debug for SimWorkers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("SimWorkers").field("mode", &state.mode).field("waiting", &state.queue.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn order(seed: u64) -> Vec<usize> {
        let workers = SimWorkers::new(seed);
        let ran = Arc::new(Mutex::new(Vec::new()));
        for i in 0..8 {
            let ran = ran.clone();
            workers.spawn(Box::new(move || ran.lock().push(i)));
        }
        assert!(ran.lock().is_empty());
        assert!(workers.run_one());
        assert_eq!((ran.lock().len(), workers.waiting()), (1, 7));
        assert_eq!(workers.run_until_idle(), 7);
        assert!(!workers.run_one());
        ran.lock().clone()
    }

    #[test]
    fn the_seed_chooses_the_order() {
        assert_eq!(order(1), order(1));
        let orders: std::collections::BTreeSet<_> = (0..50).map(order).collect();
        assert!(orders.len() > 40);
    }

    #[test]
    fn an_immediate_job_runs_before_spawn_returns_and_its_own_jobs_after_it() {
        let workers = Arc::new(SimWorkers::immediate());
        let ran = Arc::new(Mutex::new(Vec::new()));
        let (inner, log) = (workers.clone(), ran.clone());
        workers.spawn(Box::new(move || {
            let second = log.clone();
            inner.spawn(Box::new(move || second.lock().push(2)));
            log.lock().push(1);
        }));
        assert_eq!(*ran.lock(), [1, 2]);
    }

    #[test]
    fn what_has_stopped_runs_nothing() {
        let workers = SimWorkers::new(1);
        workers.spawn(Box::new(|| panic!("never")));
        workers.stop();
        workers.spawn(Box::new(|| panic!("never")));
        assert_eq!(workers.run_until_idle(), 0);
    }
}
