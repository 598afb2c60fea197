//! Retention: old segments go when they are too old or too many, by each topic's own settings.
//!
//! [`Retention::sweep`] is to be called about once a second. It looks at every open partition then, and about once a minute
//! at the others; each of these is looked at once, by its files alone, and after that not before something of it can be due
//! (`idle`), so that thousands of partitions that nobody uses cost nothing. One that has something due is opened. A change of
//! a topic's settings or of the broker's counts at the next sweep.
//!
//! # What it promises
//!
//! - The new start of a log is durable in the catalog before any of its files goes. All logs that are due at once share one
//!   commit.
//! - Only whole segments go, never the active one. A quiet active segment is sealed when `segment.ms` is over.
//! - An error on one partition is logged with its cause, tried again later and later, and holds up no other.

mod idle;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::protocol::Uuid;
use crate::storage::backoff::Backoff;
use crate::storage::catalog::Mutation;
use crate::storage::log::PartitionLog;
use crate::storage::store::Store;
use idle::IdleTopics;

/// How long after one look at the partitions that are not open there is another.
const IDLE_LOOK: Duration = Duration::from_secs(60);

/// Sweeps the logs of a data directory. Shared between threads; sweeps follow each other.
#[derive(Debug)]
pub struct Retention {
    store: Arc<Store>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: HashMap<(Uuid, i32), Backoff>,
    idle: IdleTopics,
    /// On the steady clock, when the partitions that are not open were last looked at.
    idle_looked_at: Option<Duration>,
}

/// A log whose start is to move.
struct Trim {
    topic_id: Uuid,
    log: Arc<PartitionLog>,
    to: i64,
}

impl Retention {
    pub fn new(store: Arc<Store>) -> Self {
        Retention { store, state: Mutex::default() }
    }

    /// Seals what has had its time, and removes what is too old or too much. `ready` says of a topic's log whether
    /// segments of it may be removed now, and not only after it was cleaned. Waits for the disk. Answers how many logs have
    /// become shorter.
    pub fn sweep(&self, ready: impl Fn(Uuid, &PartitionLog) -> bool) -> usize {
        let mut state = self.state.lock();
        let now = self.store.env().clock.monotonic();
        self.open_what_is_due(&mut state, now);
        let mut trims = Vec::new();
        for (topic_id, log) in self.store.open_partitions() {
            let key = (topic_id, log.partition());
            if state.failures.get(&key).is_some_and(|failure| failure.holds(now)) {
                continue;
            }
            match self.look_at(topic_id, &log, &ready) {
                Ok(to) => trims.extend(to.map(|to| Trim { topic_id, log, to })),
                Err(error) => self.failed(&mut state, &log, key, now, &error),
            }
        }
        if trims.is_empty() {
            return 0;
        }
        let raise = |trim: &Trim| Mutation::RaiseLogStart {
            topic_id: trim.topic_id,
            partition: trim.log.partition(),
            offset: trim.to,
        };
        let durable = self.store.catalog().commit_blocking(trims.iter().map(raise).collect());
        let mut trimmed = 0;
        for Trim { topic_id, log, to } in trims {
            let key = (topic_id, log.partition());
            let before = log.offsets().start;
            let done = match &durable {
                Ok(()) => log.advance_log_start(to).map_err(|error| error.to_string()),
                Err(error) => Err(format!("the new start of the log cannot be noted: {error}")),
            };
            match done {
                Ok(()) => {
                    tracing::info!(
                        topic = log.topic(),
                        partition = log.partition(),
                        from = before,
                        to,
                        "old segments are gone"
                    );
                    state.failures.remove(&key);
                    trimmed += 1;
                }
                Err(error) => self.failed(&mut state, &log, key, now, &error),
            }
        }
        trimmed
    }

    /// Seals the active segment if it is time, and says where the log should start.
    fn look_at(
        &self,
        topic_id: Uuid,
        log: &PartitionLog,
        ready: &impl Fn(Uuid, &PartitionLog) -> bool,
    ) -> Result<Option<i64>, String> {
        if log.is_closed() || log.is_offline().is_some() {
            return Ok(None);
        }
        log.roll_if_due().map_err(|error| error.to_string())?;
        if !ready(topic_id, log) {
            return Ok(None);
        }
        log.retention_start(self.store.env().clock.now_ms()).map_err(|error| error.to_string())
    }

    /// Opens the partitions that are not open and have something due.
    fn open_what_is_due(&self, state: &mut State, now: Duration) {
        let changed = state.idle.follow(self.store.config_changes());
        if !changed && state.idle_looked_at.is_some_and(|last| now.saturating_sub(last) < IDLE_LOOK) {
            return;
        }
        state.idle_looked_at = Some(now);
        for (topic, partition) in state.idle.due(&self.store) {
            // One that cannot be opened is named in the log by the store.
            let _ = self.store.partition(topic.id, partition);
        }
        let topics = self.store.topics();
        state.failures.retain(|(id, _), _| topics.by_id(*id).is_some());
    }

    fn failed(&self, state: &mut State, log: &PartitionLog, key: (Uuid, i32), now: Duration, error: &str) {
        if log.is_closed() {
            return;
        }
        let failure = state.failures.entry(key).or_default();
        let again = failure.failed(now);
        let (topic, partition, again_s) = (log.topic(), log.partition(), again.as_secs());
        tracing::error!(topic, partition, again_s, error, "old segments cannot be removed");
    }
}
