//! What goes on in the background with the logs: old segments go, compacted topics are cleaned, sealed segments are looked over.
//!
//! The work is done on the threads that are there for what blocks; nothing of it has a thread of its own.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::Broker;
use super::config::BrokerConfig;
use crate::storage::cleaner::{CleanerSettings, CleanerState, Work};
use crate::storage::retention::Retention;
use crate::storage::scrub::Checkpoint;

/// How often segments are looked for that are too old or too many, and how often the number of cleaners is.
const SWEEP: Duration = Duration::from_secs(1);
/// How long after the start the scrub begins, at most.
const SCRUB_DELAY: Duration = Duration::from_secs(60);
/// A cleaner that finds nothing to do rests at least this long.
const SHORTEST_REST: Duration = Duration::from_millis(10);

/// Removes what is too old or too much, for ever.
pub(super) async fn sweep_logs(broker: Arc<Broker>) {
    let retention = Arc::new(Retention::new(broker.store().clone()));
    let mut ticks = tokio::time::interval(SWEEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick comes at once: not before there is something else to do.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let (retention, this) = (retention.clone(), broker.clone());
        let is_cleaned = cleaners(&broker.config()) > 0;
        // Only a panic in the sweep loses its answer; the next one goes on.
        let _ = broker
            .blocking(move || retention.sweep(|topic_id, log| !is_cleaned || !this.cleaner.is_due(topic_id, log)))
            .await;
    }
}

/// Has as many cleaners as the configs say, for ever.
pub(super) async fn clean_logs(broker: Arc<Broker>) {
    // A place has one cleaner or none; they end with this.
    let mut places: Vec<JoinSet<()>> = Vec::new();
    let mut ticks = tokio::time::interval(SWEEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let wanted = cleaners(&broker.config());
        if places.len() < wanted {
            places.resize_with(wanted, JoinSet::new);
        }
        for (number, place) in places.iter_mut().enumerate().take(wanted) {
            while place.try_join_next().is_some() {}
            if place.is_empty() {
                place.spawn(clean(broker.clone(), number));
            }
        }
    }
}

/// One cleaner. It ends when there are to be fewer, and never in a pass.
async fn clean(broker: Arc<Broker>, number: usize) {
    let mut work = Work::default();
    loop {
        let config = broker.config();
        if work.is_idle() && number >= cleaners(&config) {
            return;
        }
        let settings = settings(&config);
        let (cleaner, mut taken) = (broker.cleaner.clone(), std::mem::take(&mut work));
        let done = broker
            .blocking(move || {
                let rest = cleaner.step(&mut taken, &settings);
                (taken, rest)
            })
            .await;
        // The cleaner has taken note of a panic in its work.
        let (taken, rest) = done.unwrap_or_else(|_| (Work::default(), settings.rest));
        work = taken;
        if !rest.is_zero() {
            tokio::time::sleep(rest).await;
        }
    }
}

/// How many passes may run at once.
fn cleaners(config: &BrokerConfig) -> usize {
    match config.boolean("log.cleaner.enable") {
        true => usize::try_from(config.int("log.cleaner.threads")).unwrap_or(0),
        false => 0,
    }
}

fn settings(config: &BrokerConfig) -> CleanerSettings {
    let bytes = |n: i64| usize::try_from(n).unwrap_or(0);
    CleanerSettings {
        threads: cleaners(config),
        map_bytes: bytes(config.long("log.cleaner.dedupe.buffer.size")),
        load_factor: config.double("log.cleaner.io.buffer.load.factor"),
        buffer_bytes: bytes(config.int("log.cleaner.io.buffer.size").into()),
        bytes_per_second: config.double("log.cleaner.io.max.bytes.per.second"),
        rest: Duration::from_millis(u64::try_from(config.long("log.cleaner.backoff.ms")).unwrap_or(0))
            .max(SHORTEST_REST),
    }
}

/// Looks over sealed segments, for ever; not at all if the settings have it so.
pub(super) async fn scrub_logs(broker: Arc<Broker>) {
    let settings = broker.settings.scrub;
    if settings.bytes_per_second == 0 {
        return;
    }
    // A start has other things to do.
    let mut rest = SCRUB_DELAY.min(settings.interval);
    loop {
        tokio::time::sleep(rest).await;
        let scrubber = broker.scrubber.clone();
        // Only a panic in a step loses its answer.
        rest = broker.blocking(move || scrubber.step(&settings)).await.unwrap_or(SCRUB_DELAY);
    }
}

impl Broker {
    /// How far the scrub is, and what it has found damaged.
    pub fn scrub_state(&self) -> Checkpoint {
        self.scrubber.checkpoint()
    }

    /// Writes to the log how the logs are: how many are open and which of them take no more writes, how far the cleaner is with
    /// each and what has failed, and how far the scrub is and what it has found.
    pub fn tell_state(&self) {
        let open = self.store.open_partitions();
        let topics = self.topics();
        let partitions: i32 = topics.iter().map(|topic| topic.partitions).sum();
        tracing::info!(topics = topics.len(), partitions, open = open.len(), "state: logs");
        for (_, log) in &open {
            if let Some(offline) = log.is_offline() {
                let (topic, partition) = (log.topic(), log.partition());
                tracing::info!(topic, partition, reason = &*offline.reason, "state: offline until a restart");
            }
        }
        for state in self.cleaner_states() {
            let CleanerState { topic, partition, checkpoint, is_running, retry_in, unreadable, .. } = state;
            tracing::info!(
                topic,
                partition,
                cleaned_to = checkpoint.cleaned,
                is_running,
                failures = checkpoint.failures,
                error = checkpoint.error,
                retry_in = retry_in.map(|rest| format!("{rest:.0?}")),
                unreadable_batches = unreadable.len(),
                "state: cleaner"
            );
        }
        let Checkpoint { started_ms, finished_ms, at, findings, more } = self.scrub_state();
        let damaged = findings.len() as u64 + more;
        let at = at.map(|at| format!("{}-{}, offset {}", at.topic, at.partition, at.offset));
        tracing::info!(started_ms, finished_ms, at, damaged, "state: scrub");
    }

    /// What is known of the cleaning of the logs, by topic and partition.
    pub fn cleaner_states(&self) -> Vec<CleanerState> {
        self.cleaner.states()
    }
}
