//! Threads for work that blocks: flushes above all.

use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// A piece of work that may block.
pub type Job = Box<dyn FnOnce() + Send + 'static>;

/// Runs jobs somewhere that is not the caller's thread. Shared between threads.
pub trait Workers: Send + Sync + Debug {
    /// Queues `job`. Jobs may run in any order and at the same time; each runs once, unless the process ends first.
    fn spawn(&self, job: Job);
}

/// Threads that are started when there is work, up to a limit, and end after ten idle seconds.
pub struct ThreadWorkers {
    shared: Arc<Shared>,
}

struct Shared {
    limit: usize,
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

const IDLE: Duration = Duration::from_secs(10);

impl ThreadWorkers {
    /// `limit` is the largest number of threads, at least 1.
    pub fn new(limit: usize) -> Self {
        let shared = Shared { limit: limit.max(1), state: Mutex::default(), work: Condvar::new() };
        ThreadWorkers { shared: Arc::new(shared) }
    }
}

impl Debug for ThreadWorkers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadWorkers").field("limit", &self.shared.limit).finish()
    }
}

impl Workers for ThreadWorkers {
    fn spawn(&self, job: Job) {
        let mut state = self.shared.state.lock();
        state.queue.push_back(job);
        if state.idle >= state.queue.len() {
            self.shared.work.notify_one();
            return;
        }
        if state.threads < self.shared.limit {
            let shared = self.shared.clone();
            let started = std::thread::Builder::new()
                .name("doze-worker".into())
                .stack_size(512 * 1024)
                .spawn(move || shared.run());
            match started {
                Ok(_) => state.threads += 1,
                // The machine has no thread to give: the others will get to the job, and with none it runs here.
                Err(_) if state.threads > 0 => {}
                Err(_) => {
                    let job = state.queue.pop_back().expect("it was pushed above, under the same lock");
                    drop(state);
                    job();
                }
            }
        }
    }
}

impl Shared {
    fn run(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.queue.pop_front() {
                drop(state);
                // A job that panics must not take the thread's place in the count with it.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
                state = self.state.lock();
                continue;
            }
            state.idle += 1;
            let timed_out = self.work.wait_for(&mut state, IDLE).timed_out();
            state.idle -= 1;
            if timed_out && state.queue.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_job_runs_once_and_a_panic_stops_none() {
        let workers = ThreadWorkers::new(4);
        let ran = Arc::new(AtomicUsize::new(0));
        let (done, wait) = std::sync::mpsc::channel::<()>();
        for i in 0..200 {
            let (ran, done) = (ran.clone(), done.clone());
            workers.spawn(Box::new(move || {
                ran.fetch_add(1, Ordering::SeqCst);
                drop(done);
                assert!(i % 50 != 7, "one that panics, on purpose");
            }));
        }
        drop(done);
        assert!(wait.recv().is_err(), "nothing is sent; the channel closes with the last job");
        assert_eq!(ran.load(Ordering::SeqCst), 200);
    }
}
