//! Time and workers of a simulated process.

use std::time::Duration;

use doze::sys::sim::{Prng, START_MS};
use doze::sys::{Clock, Job, Workers};
use parking_lot::Mutex;
use tokio::time::Instant;

/// The clock of a machine, which goes with tokio's paused time while a process runs on it.
#[derive(Debug, Default)]
pub struct VirtualClock {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Since the machine was first started.
    passed: Duration,
    /// When the process started that runs now.
    started: Option<Instant>,
    /// How many milliseconds the wall clock is wrong.
    wrong_ms: i64,
}

impl VirtualClock {
    /// A process starts. To be called inside its runtime.
    pub fn start(&self) {
        self.state.lock().started = Some(Instant::now());
    }

    /// Somebody sets the wall clock: from here on it is wrong by so much. Answers by how many milliseconds it was set.
    pub fn set_wrong(&self, ms: i64) -> i64 {
        ms - std::mem::replace(&mut self.state.lock().wrong_ms, ms)
    }

    /// Milliseconds since the machine was first started, whatever the wall clock says.
    pub fn elapsed_ms(&self) -> i64 {
        let state = self.state.lock();
        let lived = state.started.map_or(Duration::ZERO, |started| started.elapsed());
        i64::try_from((state.passed + lived).as_millis()).expect("a history is short")
    }

    /// It has ended, and the next one starts after `pause`.
    pub fn stop(&self, pause: Duration) {
        let mut state = self.state.lock();
        let lived = state.started.take().map_or(Duration::ZERO, |started| started.elapsed());
        state.passed += lived + pause;
    }
}

impl Clock for VirtualClock {
    fn now_ms(&self) -> i64 {
        let wrong_ms = self.state.lock().wrong_ms;
        START_MS + self.elapsed_ms() + wrong_ms
    }

    fn monotonic(&self) -> Duration {
        self.state.lock().started.map_or(Duration::ZERO, |started| started.elapsed())
    }
}

/// Workers whose jobs each run whole, at a moment of the seed's choosing. They end with the runtime.
#[derive(Debug)]
pub struct TimedWorkers {
    prng: Mutex<Prng>,
}

impl TimedWorkers {
    pub fn new(seed: u64) -> Self {
        TimedWorkers { prng: Mutex::new(Prng::stream(seed, "workers")) }
    }
}

impl Workers for TimedWorkers {
    fn spawn(&self, job: Job) {
        let delay = match self.prng.lock().below(10) {
            0..5 => 0,
            5..9 => 1,
            _ => 4,
        };
        // Without a runtime the process is about to go.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                match delay {
                    0 => tokio::task::yield_now().await,
                    ms => tokio::time::sleep(Duration::from_millis(ms)).await,
                }
                job();
            });
        }
    }
}
