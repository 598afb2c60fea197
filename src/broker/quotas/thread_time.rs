//! The time that a request takes of doze's threads, for the quota that is a percentage of one thread's time. What a
//! request waits, for a flush or for records to arrive, does not count.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;

use super::Quotas;

/// The time of one request. Shared by the futures that the request is made of, of which one runs at a time.
#[derive(Debug)]
pub struct ThreadTime {
    quotas: Arc<Quotas>,
    client_id: Option<String>,
    clocked: Mutex<Clocked>,
}

#[derive(Debug)]
struct Clocked {
    /// When the thread that is at it now began; `None` while none is.
    since: Option<Duration>,
    /// What was spent and is not counted yet.
    spent: Duration,
}

impl ThreadTime {
    /// Begins, if there is a quota to measure for.
    pub fn begin(quotas: &Arc<Quotas>, client_id: Option<&str>) -> Option<Arc<ThreadTime>> {
        if !quotas.measures_time() {
            return None;
        }
        let since = Some(quotas.env.clock.monotonic());
        Some(Arc::new(ThreadTime {
            quotas: quotas.clone(),
            client_id: client_id.map(str::to_owned),
            clocked: Mutex::new(Clocked { since, spent: Duration::ZERO }),
        }))
    }

    fn go(&self) {
        self.clocked.lock().since = Some(self.quotas.env.clock.monotonic());
    }

    /// The thread turns to something else.
    pub fn pause(&self) {
        let now = self.quotas.env.clock.monotonic();
        let mut clocked = self.clocked.lock();
        if let Some(since) = clocked.since.take() {
            clocked.spent += now.saturating_sub(since);
        }
    }

    /// Counts what was spent; answers for how many milliseconds the client is to be held back.
    pub fn throttle_ms(&self) -> i32 {
        let now = self.quotas.env.clock.monotonic();
        let mut clocked = self.clocked.lock();
        let running = clocked.since.replace(now).map_or(Duration::ZERO, |since| now.saturating_sub(since));
        let spent = std::mem::take(&mut clocked.spent) + running;
        self.quotas.spent(self.client_id.as_deref(), spent)
    }
}

impl Drop for ThreadTime {
    /// What it took to write the answer down.
    fn drop(&mut self) {
        let spent = self.clocked.get_mut().spent;
        self.quotas.spent(self.client_id.as_deref(), spent);
    }
}

/// Runs a part of the request on the clock.
pub fn timed<T>(
    time: Arc<ThreadTime>,
    mut part: Pin<Box<dyn Future<Output = T> + Send>>,
) -> Pin<Box<dyn Future<Output = T> + Send>>
where
    T: 'static,
{
    Box::pin(std::future::poll_fn(move |cx: &mut Context<'_>| -> Poll<T> {
        time.go();
        let polled = part.as_mut().poll(cx);
        time.pause();
        polled
    }))
}
