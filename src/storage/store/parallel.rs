//! Work on many partitions at once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex};

use crate::sys::Workers;

/// How many workers help at most; flushes wait for the disk, so that more of them than processors pay.
const HELPERS: usize = 15;

struct Shared<T> {
    next: AtomicUsize,
    results: Mutex<(Vec<Option<T>>, usize)>,
    all_done: Condvar,
}

/// Calls `f` with each number below `n`, on this thread and on such workers as are free, and answers the results in
/// order. It needs no worker to come to an end, so that it may be called from one. Panics if `f` does.
pub(super) fn parallel<T: Send + 'static>(
    workers: &dyn Workers,
    n: usize,
    f: impl Fn(usize) -> T + Send + Sync + 'static,
) -> Vec<T> {
    parallel_at_most(workers, HELPERS, n, f)
}

/// The same with at most `helpers` workers beside this thread.
pub(in crate::storage) fn parallel_at_most<T: Send + 'static>(
    workers: &dyn Workers,
    helpers: usize,
    n: usize,
    f: impl Fn(usize) -> T + Send + Sync + 'static,
) -> Vec<T> {
    let shared = Arc::new(Shared {
        next: AtomicUsize::new(0),
        results: Mutex::new(((0..n).map(|_| None).collect(), 0)),
        all_done: Condvar::new(),
    });
    let f = Arc::new(f);
    for _ in 0..helpers.min(n.saturating_sub(1)) {
        let (shared, f) = (shared.clone(), f.clone());
        workers.spawn(Box::new(move || take_turns(&shared, n, &*f)));
    }
    take_turns(&shared, n, &*f);
    let mut results = shared.results.lock();
    while results.1 < n {
        shared.all_done.wait(&mut results);
    }
    std::mem::take(&mut results.0).into_iter().map(|result| result.expect("none of the calls panicked")).collect()
}

fn take_turns<T>(shared: &Shared<T>, n: usize, f: &dyn Fn(usize) -> T) {
    loop {
        let i = shared.next.fetch_add(1, Ordering::Relaxed);
        if i >= n {
            return;
        }
        // One that panics must not leave the caller waiting.
        let result = catch_unwind(AssertUnwindSafe(|| f(i))).ok();
        let mut results = shared.results.lock();
        results.0[i] = result;
        results.1 += 1;
        if results.1 == n {
            shared.all_done.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{Job, ThreadWorkers};

    /// Takes jobs and never runs them.
    #[derive(Debug)]
    struct NoWorkers;

    impl Workers for NoWorkers {
        fn spawn(&self, _job: Job) {}
    }

    #[test]
    fn each_is_done_once_whoever_does_it() {
        for n in [0, 1, 2, 1000] {
            let expected: Vec<usize> = (0..n).map(|i| i * 2).collect();
            assert_eq!(parallel(&NoWorkers, n, |i| i * 2), expected);
            assert_eq!(parallel(&ThreadWorkers::new(4), n, |i| i * 2), expected);
        }
    }
}
