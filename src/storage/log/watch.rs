//! Being told when something happened: a log grew.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// What is called when a log grew, or whatever else is watched. It is called on the thread of whoever did it (an appender's)
/// and must not block.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// Those who watch. Shared between threads.
#[derive(Default)]
pub struct Watchers {
    /// So that an append which nobody waits for takes no lock.
    count: AtomicUsize,
    list: Mutex<(u64, Vec<(u64, Waker)>)>,
}

impl Watchers {
    /// Has `waker` called from now on, until the guard is dropped.
    pub fn add(self: &Arc<Self>, waker: Waker) -> WatchGuard {
        let mut list = self.list.lock();
        list.0 += 1;
        let id = list.0;
        list.1.push((id, waker));
        self.count.store(list.1.len(), Ordering::SeqCst);
        WatchGuard { watchers: self.clone(), id }
    }

    /// Calls every waker. None is called under a lock, so a waker may drop its guard.
    pub fn notify(&self) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let wakers: Vec<Waker> = self.list.lock().1.iter().map(|(_, waker)| waker.clone()).collect();
        wakers.iter().for_each(|waker| waker());
    }
}

impl fmt::Debug for Watchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchers").field("count", &self.count).finish()
    }
}

/// Ends the watch when it is dropped. A call that is under way then may still happen.
#[derive(Debug)]
pub struct WatchGuard {
    watchers: Arc<Watchers>,
    id: u64,
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        let mut list = self.watchers.list.lock();
        list.1.retain(|(id, _)| *id != self.id);
        self.watchers.count.store(list.1.len(), Ordering::SeqCst);
    }
}
