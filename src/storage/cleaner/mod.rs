//! The cleaner: keeps the latest record of each key of the topics that ask for it (`cleanup.policy=compact`).
//!
//! A pass over a log ([`pass`]) reads what was never cleaned into a map of keys to their latest offsets ([`key_map`]), whose
//! size is fixed: when it is full the pass ends there, and the next one goes on. Then it rewrites the log's segments from the
//! first on, keeping what the map lets stay ([`filter`]), and swaps each group of them in (`crate::storage::log`, `rewrite`).
//!
//! # What it promises
//!
//! - Only sealed segments are touched, and only those below the last stable offset.
//! - Offsets never move. The log's start does not move either; a segment that is left with nothing goes, unless it is the first.
//! - What it holds is the map and two buffers for each pass under way; what runs at once is bounded. A segment that loses
//!   nothing is not written.
//! - An error on one log is said with its cause, tried again later and later, shown in [`Cleaner::states`] and in the log's
//!   checkpoint file, and holds up no other.
//! - While producers write, a pass takes no more than half of the time, and never more bytes a second than it may.
//!
//! [`Cleaner::step`] is to be called again and again, by as many callers as there are to be passes at once; each does a bit of
//! work, and is told when to come back.

mod checkpoint;
mod filter;
mod key_map;
mod output;
mod pass;
mod plan;
mod siphash;
#[cfg(test)]
pub(in crate::storage) mod tests;
mod transactions;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

pub use checkpoint::Checkpoint;
pub use filter::PassStats;
pub use pass::Unreadable;
use pass::{Cleaned, Memory, Pass};
use plan::Plan;

use crate::protocol::Uuid;
use crate::storage::backoff::Backoff;
use crate::storage::log::{LONG_WALK, PartitionLog, RewriteError, Walker};
use crate::storage::store::Store;
use crate::sys::Env;

/// How much is read between two looks at the clock, in bytes.
const STEP: u64 = 4 << 20;
/// How often it is found out whether producers write.
const ACTIVITY: Duration = Duration::from_secs(1);
/// A tombstone that is due has its log cleaned no sooner than this after the last pass.
const HORIZON_REST: Duration = Duration::from_secs(60);
/// Buffers are no smaller than this, in bytes.
const SMALLEST_BUFFER: usize = 16 * 1024;

/// How the cleaner is to work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CleanerSettings {
    /// `log.cleaner.threads`: how many passes run at once; what follows is shared by them.
    pub threads: usize,
    /// `log.cleaner.dedupe.buffer.size`: bytes of memory for the maps.
    pub map_bytes: usize,
    /// `log.cleaner.io.buffer.load.factor`: how full a map may become, 0 to 1.
    pub load_factor: f64,
    /// `log.cleaner.io.buffer.size`: bytes of memory for the buffers.
    pub buffer_bytes: usize,
    /// `log.cleaner.io.max.bytes.per.second`: the most that is read and written.
    pub bytes_per_second: f64,
    /// `log.cleaner.backoff.ms`: how long it rests when there is nothing to clean.
    pub rest: Duration,
}

impl Default for CleanerSettings {
    fn default() -> Self {
        CleanerSettings {
            threads: 1,
            map_bytes: 56 << 20,
            load_factor: 0.9,
            buffer_bytes: 512 << 10,
            bytes_per_second: f64::MAX,
            rest: Duration::from_secs(1),
        }
    }
}

impl CleanerSettings {
    fn memory(&self) -> Memory {
        let threads = self.threads.max(1);
        Memory {
            map_bytes: self.map_bytes / threads,
            load: self.load_factor,
            buffer: (self.buffer_bytes / threads / 2).max(SMALLEST_BUFFER),
        }
    }
}

/// What is known of the cleaning of an open log.
#[derive(Clone, Debug)]
pub struct CleanerState {
    pub topic: String,
    pub partition: i32,
    pub checkpoint: Checkpoint,
    /// Whether a pass is under way.
    pub is_running: bool,
    /// How long it is left alone after what has failed.
    pub retry_in: Option<Duration>,
    /// What the last pass since the start has done.
    pub last: Option<PassStats>,
    /// What it could not read, and left as it is.
    pub unreadable: Vec<Unreadable>,
}

#[derive(Debug, Default)]
struct LogState {
    /// Read from its file when it is first needed.
    checkpoint: Option<Checkpoint>,
    running: bool,
    backoff: Backoff,
    last: Option<PassStats>,
    /// On the steady clock.
    finished_at: Option<Duration>,
    unreadable: Vec<Unreadable>,
}

type Logs = Mutex<HashMap<(Uuid, i32), LogState>>;

/// Marks a log as one that a pass is under way over, until it is dropped.
#[derive(Debug)]
struct Running {
    logs: Arc<Logs>,
    id: (Uuid, i32),
    log: Arc<PartitionLog>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut logs = self.logs.lock();
        let Some(state) = logs.get_mut(&self.id) else { return };
        state.running = false;
        if std::thread::panicking() {
            let again_s = state.backoff.failed(self.log.env().clock.monotonic()).as_secs();
            let (topic, partition) = (self.log.topic(), self.log.partition());
            tracing::error!(topic, partition, again_s, "the cleaner has panicked over the log");
        }
    }
}

/// Cleans the logs of a data directory. Shared between threads.
#[derive(Debug)]
pub struct Cleaner {
    store: Arc<Store>,
    logs: Arc<Logs>,
    activity: Mutex<Activity>,
}

/// Whether producers write.
#[derive(Debug, Default)]
struct Activity {
    looked_at: Option<Duration>,
    offsets: i64,
    is_busy: bool,
}

/// A pass that a caller of [`Cleaner::step`] has under way, between two calls.
#[derive(Debug, Default)]
pub struct Work {
    pass: Option<(Running, Pass)>,
}

impl Work {
    pub fn is_idle(&self) -> bool {
        self.pass.is_none()
    }
}

impl Cleaner {
    pub fn new(store: Arc<Store>) -> Self {
        Cleaner { store, logs: Arc::default(), activity: Mutex::default() }
    }

    /// Goes on with the pass that `work` has, or starts one of the log that needs it most. Answers for how long to rest
    /// before the next call. Waits for the disk.
    pub fn step(&self, work: &mut Work, settings: &CleanerSettings) -> Duration {
        let clock = &self.store.env().clock;
        let started = clock.monotonic();
        if work.pass.is_none() {
            work.pass = self.start_most_dirty(settings);
        }
        let Some((running, mut pass)) = work.pass.take() else { return settings.rest };
        let bytes = match pass.step(STEP) {
            Ok((bytes, None)) => {
                work.pass = Some((running, pass));
                bytes
            }
            Ok((bytes, Some(cleaned))) => {
                self.finished(running.id, &running.log, cleaned);
                bytes
            }
            Err(error) => {
                self.failed(running.id, &running.log, &error);
                0
            }
        };
        let took = clock.monotonic().saturating_sub(started);
        let allowed = Duration::try_from_secs_f64(bytes as f64 / settings.bytes_per_second.max(1.0));
        let paced = allowed.unwrap_or_default().saturating_sub(took);
        if self.is_busy(started) { paced.max(took) } else { paced }
    }

    /// Whether a log is to be cleaned before old segments of it are removed.
    pub fn is_due(&self, topic_id: Uuid, log: &PartitionLog) -> bool {
        let config = log.config();
        if !config.compact || !config.delete {
            return false;
        }
        let mut logs = self.logs.lock();
        let state = logs.entry((topic_id, log.partition())).or_default();
        let is_left_alone = state.backoff.holds(log.env().clock.monotonic());
        state.running || (!is_left_alone && matches!(self.plan(state, log), Ok(Some(_))))
    }

    /// The state of every log that is open and was cleaned or looked at, by topic and partition.
    pub fn states(&self) -> Vec<CleanerState> {
        let now = self.store.env().clock.monotonic();
        let logs = self.logs.lock();
        let mut states: Vec<CleanerState> = self
            .store
            .open_partitions()
            .into_iter()
            .filter_map(|(id, log)| {
                let state = logs.get(&(id, log.partition()))?;
                Some(CleanerState {
                    topic: log.topic().to_owned(),
                    partition: log.partition(),
                    checkpoint: state.checkpoint.clone()?,
                    is_running: state.running,
                    retry_in: state.backoff.holds(now).then(|| state.backoff.until() - now),
                    last: state.last,
                    unreadable: state.unreadable.clone(),
                })
            })
            .collect();
        states.sort_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
        states
    }

    fn start_most_dirty(&self, settings: &CleanerSettings) -> Option<(Running, Pass)> {
        let now = self.store.env().clock.monotonic();
        let open = self.store.open_partitions();
        let mut logs = self.logs.lock();
        logs.retain(|id, state| state.running || self.store.open_partition(id.0, id.1).is_some());
        let mut most: Option<(Uuid, Arc<PartitionLog>, Plan)> = None;
        for (topic_id, log) in open {
            if !log.config().compact || log.is_closed() || log.is_offline().is_some() {
                continue;
            }
            let state = logs.entry((topic_id, log.partition())).or_default();
            if state.running || state.backoff.holds(now) {
                continue;
            }
            match self.plan(state, &log) {
                Ok(Some(plan)) if most.as_ref().is_none_or(|(.., most)| plan.ratio > most.ratio) => {
                    most = Some((topic_id, log, plan));
                }
                Ok(_) => {}
                Err(error) => note_failure(state, &log, now, &error),
            }
        }
        let (topic_id, log, plan) = most?;
        let state = logs.entry((topic_id, log.partition())).or_default();
        match Pass::new(log.clone(), plan, settings.memory()) {
            Ok(pass) => {
                state.running = true;
                Some((Running { logs: self.logs.clone(), id: (topic_id, log.partition()), log }, pass))
            }
            Err(error) => {
                note_failure(state, &log, now, &error);
                None
            }
        }
    }

    fn plan(&self, state: &mut LogState, log: &PartitionLog) -> Result<Option<Plan>, RewriteError> {
        let Env { fs, clock, .. } = log.env();
        if state.checkpoint.is_none() {
            let read = Checkpoint::read(&**fs, &log.dir()).unwrap_or_else(|error| {
                let (topic, partition) = (log.topic(), log.partition());
                tracing::warn!(topic, partition, %error, "the cleaner's checkpoint cannot be read; all of the log is cleaned");
                Checkpoint::default()
            });
            state.checkpoint = Some(read);
        }
        let checkpoint = state.checkpoint.as_ref().expect("it was just put there");
        let rests = state.finished_at.is_some_and(|at| clock.monotonic().saturating_sub(at) < HORIZON_REST);
        let plan = Plan::of(log, checkpoint, clock.now_ms())?;
        Ok(plan.filter(|plan| plan.end() > plan.dirty_from || !rests))
    }

    fn finished(&self, id: (Uuid, i32), log: &PartitionLog, cleaned: Cleaned) {
        let Env { fs, clock, .. } = log.env();
        let (topic, partition) = (log.topic(), log.partition());
        let Cleaned { to, horizon_ms, stats, unreadable, segments } = cleaned;
        tracing::info!(
            topic,
            partition,
            to,
            records = stats.records_read,
            records_kept = stats.records_kept,
            bytes = stats.read_bytes,
            bytes_kept = stats.kept_bytes,
            bytes_written = stats.written_bytes,
            keys = stats.keys,
            segments = segments.0,
            segments_kept = segments.1,
            "cleaned"
        );
        let checkpoint = Checkpoint { cleaned: to, horizon_ms, failures: 0, error: None };
        let written = checkpoint.write(&**fs, &log.dir());
        let mut logs = self.logs.lock();
        let state = logs.entry(id).or_default();
        for batch in &unreadable {
            if !state.unreadable.contains(batch) {
                let Unreadable { base_offset, last_offset, reason } = batch;
                tracing::warn!(topic, partition, base_offset, last_offset, reason, "kept a batch that cannot be read");
            }
        }
        state.unreadable = unreadable;
        state.last = Some(stats);
        state.finished_at = Some(clock.monotonic());
        match written {
            Ok(()) => {
                state.backoff = Backoff::default();
                state.checkpoint = Some(checkpoint);
            }
            // Another pass from the old one on would come to the same; not at once, as the disk may be full.
            Err(error) if !log.is_closed() => {
                let again_s = state.backoff.failed(clock.monotonic()).as_secs();
                tracing::error!(topic, partition, %error, again_s, "the cleaner's checkpoint cannot be written");
                let before = state.checkpoint.take().unwrap_or_default();
                let (failures, error) = (state.backoff.failures(), Some(error.to_string()));
                state.checkpoint = Some(Checkpoint { failures, error, ..before });
            }
            Err(_) => {}
        }
    }

    fn failed(&self, id: (Uuid, i32), log: &PartitionLog, error: &RewriteError) {
        let now = log.env().clock.monotonic();
        let mut logs = self.logs.lock();
        let state = logs.entry(id).or_default();
        note_failure(state, log, now, error);
        drop(logs);
        log.give_up_rewrite();
    }

    /// Whether producers have written lately.
    fn is_busy(&self, now: Duration) -> bool {
        let mut activity = self.activity.lock();
        if activity.looked_at.is_none_or(|at| now.saturating_sub(at) >= ACTIVITY) {
            let offsets = self.store.open_partitions().iter().map(|(_, log)| log.offsets().end).sum();
            activity.is_busy = activity.looked_at.is_some() && offsets > activity.offsets;
            (activity.looked_at, activity.offsets) = (Some(now), offsets);
        }
        activity.is_busy
    }
}

/// Takes note of a failure and has the log left alone for a while. What was deleted under the cleaner is none.
fn note_failure(state: &mut LogState, log: &PartitionLog, now: Duration, error: &RewriteError) {
    let is_none = matches!(error, RewriteError::Gone) || log.is_closed();
    if is_none {
        return;
    }
    let again_s = state.backoff.failed(now).as_secs();
    let (topic, partition) = (log.topic(), log.partition());
    tracing::error!(topic, partition, %error, again_s, "the log cannot be cleaned");
    let before = state.checkpoint.take().unwrap_or_default();
    let checkpoint = Checkpoint { failures: state.backoff.failures(), error: Some(error.to_string()), ..before };
    // For those who look at the files; where that fails as well, the state tells.
    let _ = checkpoint.write(&*log.env().fs, &log.dir());
    state.checkpoint = Some(checkpoint);
}

/// Cleans one log until there is nothing left to clean of it, without rest: for a data directory that nobody serves.
/// Answers what the passes have done.
pub fn clean_now(log: &Arc<PartitionLog>, settings: &CleanerSettings) -> Result<Vec<PassStats>, CleanError> {
    let (fs, dir) = (log.env().fs.clone(), log.dir());
    let checkpoint = Checkpoint::read(&*fs, &dir).map_err(CleanError::Checkpoint)?;
    let mut save = |checkpoint: &Checkpoint| checkpoint.write(&*fs, &dir);
    clean_up_to(log, i64::MAX, checkpoint, settings, &mut save)
}

/// The same for a log whose checkpoint is elsewhere: `checkpoint` is what it says, and `save` brings what it is to say onto the
/// medium. Only what lies below `most` is cleaned.
pub(in crate::storage) fn clean_up_to(
    log: &Arc<PartitionLog>,
    most: i64,
    mut checkpoint: Checkpoint,
    settings: &CleanerSettings,
    save: &mut dyn FnMut(&Checkpoint) -> io::Result<()>,
) -> Result<Vec<PassStats>, CleanError> {
    let mut passes = Vec::new();
    while let Some(plan) = Plan::up_to(log, most, &checkpoint, log.env().clock.now_ms())? {
        let mut pass = Pass::new(log.clone(), plan, settings.memory())?;
        let cleaned = loop {
            match pass.step(STEP) {
                Ok((_, Some(cleaned))) => break cleaned,
                Ok((_, None)) => {}
                Err(error) => {
                    log.give_up_rewrite();
                    return Err(error.into());
                }
            }
        };
        let progress = cleaned.to > checkpoint.cleaned;
        checkpoint = Checkpoint { cleaned: cleaned.to, horizon_ms: cleaned.horizon_ms, failures: 0, error: None };
        save(&checkpoint).map_err(CleanError::Checkpoint)?;
        passes.push(cleaned.stats);
        if !progress {
            break;
        }
    }
    Ok(passes)
}

/// What cleaning a log would do, and whether it would do more than this says: where the keys do not fit into the memory there is,
/// only the first pass is looked at. `None` if there is nothing to clean. Writes nothing. `with_active`: as if the active
/// segment had been sealed before.
pub fn estimate(
    log: &Arc<PartitionLog>,
    settings: &CleanerSettings,
    with_active: bool,
) -> Result<Option<(PassStats, bool)>, CleanError> {
    let checkpoint = Checkpoint::read(&*log.env().fs, &log.dir()).map_err(CleanError::Checkpoint)?;
    let plan_of = if with_active { Plan::as_if_sealed } else { Plan::of };
    count(log, plan_of(log, &checkpoint, log.env().clock.now_ms())?, settings)
}

/// The same of what [`clean_up_to`] would do.
pub(in crate::storage) fn estimate_up_to(
    log: &Arc<PartitionLog>,
    most: i64,
    checkpoint: &Checkpoint,
    settings: &CleanerSettings,
) -> Result<Option<(PassStats, bool)>, CleanError> {
    count(log, Plan::up_to(log, most, checkpoint, log.env().clock.now_ms())?, settings)
}

fn count(
    log: &Arc<PartitionLog>,
    plan: Option<Plan>,
    settings: &CleanerSettings,
) -> Result<Option<(PassStats, bool)>, CleanError> {
    let Some(plan) = plan else { return Ok(None) };
    let end = plan.end();
    let mut pass = Pass::counting(log.clone(), plan, settings.memory())?;
    loop {
        if let (_, Some(cleaned)) = pass.step(STEP)? {
            return Ok(Some((cleaned.stats, cleaned.to < end)));
        }
    }
}

/// Whether [`clean_up_to`] would find anything to clean.
pub(in crate::storage) fn is_due_up_to(
    log: &PartitionLog,
    most: i64,
    checkpoint: &Checkpoint,
) -> Result<bool, CleanError> {
    Ok(Plan::up_to(log, most, checkpoint, log.env().clock.now_ms())?.is_some())
}

/// The first time at which something that lies below `cleaned` may go, as the headers of its batches say, ms since the Unix epoch.
/// For a log whose checkpoint does not tell.
pub(in crate::storage) fn first_horizon(log: &PartitionLog, cleaned: i64) -> Result<Option<i64>, CleanError> {
    let mut first: Option<i64> = None;
    for (segment, _) in log.rewritable()?.segments.iter().take_while(|(segment, _)| segment.base < cleaned) {
        let file = segment.file(&*log.env().fs).map_err(RewriteError::from)?;
        let mut walker = Walker::new(file, 0, segment.size(), LONG_WALK);
        while let Some(batch) = segment.step(&mut walker).map_err(RewriteError::from)? {
            let horizon = batch.header.and_then(|header| header.delete_horizon_ms());
            first = first.into_iter().chain(horizon).min();
        }
    }
    Ok(first)
}

/// Why a log was not cleaned.
#[derive(Debug, thiserror::Error)]
pub enum CleanError {
    #[error("{0}")]
    Rewrite(Box<dyn std::error::Error + Send + Sync>),
    #[error("the cleaner's checkpoint cannot be read or written: {0}")]
    Checkpoint(std::io::Error),
}

impl From<RewriteError> for CleanError {
    fn from(error: RewriteError) -> Self {
        CleanError::Rewrite(Box::new(error))
    }
}
