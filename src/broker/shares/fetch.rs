//! Fetching for share groups: reading where there may be records to hand out, handing them out, and waiting where there
//! are none.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Shares;
use super::entry::Entry;
use super::load::NotLoaded;
use super::sessions::Place;
use super::settings::ShareConfig;
use crate::broker::{Broker, refusal};
use crate::coordinator::{Acquire, Acquired, LogBatch};
use crate::protocol::ErrorCode;
use crate::storage::log::{BatchInRange, Isolation, PartitionLog, ReadError, ReadResult, WatchGuard, batches_in};
use crate::sys::FileRange;

/// What a member wants.
#[derive(Clone, Debug)]
pub struct Want {
    pub group: Arc<str>,
    pub member: Arc<str>,
    /// Not more records than `max_records`; otherwise batches are handed out whole.
    pub record_limit: bool,
    pub max_records: i32,
    pub batch_size: i32,
    pub min_bytes: usize,
    pub max_bytes: usize,
    pub wait: Duration,
}

/// What there was in one partition.
#[derive(Debug)]
pub struct Fetched {
    pub place: Place,
    /// Records that the member has acquired, and batches of the log that have them.
    pub result: Result<(Vec<Acquired>, Option<FileRange>), NotLoaded>,
}

/// A partition of the fetch, found once.
struct Source {
    place: Place,
    log: Arc<PartitionLog>,
    entry: Arc<Entry>,
}

/// What one look at all partitions found.
#[derive(Default)]
struct Look {
    fetched: Vec<Fetched>,
    /// There is something to answer with at once: records, or an error.
    urgent: bool,
}

impl Shares {
    /// Hands out records of these partitions, or waits for some. Partitions in which there was nothing to look for are left
    /// out.
    pub async fn fetch(self: &Arc<Self>, broker: &Arc<Broker>, want: &Want, places: &[Place]) -> Vec<Fetched> {
        if want.max_records <= 0 || want.max_bytes == 0 {
            return vec![];
        }
        let (sources, mut failed) = self.sources(broker, want, places).await;
        let config = self.config(&want.group);
        let deadline = Instant::now() + want.wait;
        let arrived = Arc::new(Notify::new());
        let mut watches: Vec<WatchGuard> = vec![];
        let look = loop {
            let is_last = Instant::now() >= deadline || sources.is_empty();
            let look = self.look(want, &config, &sources, is_last);
            if look.urgent || is_last {
                break look;
            }
            if watches.is_empty() {
                // What comes from here on wakes us; what came between the look and now is found by looking again.
                let wake = arrived.clone();
                let wake: Arc<dyn Fn() + Send + Sync> = Arc::new(move || wake.notify_one());
                watches.extend(sources.iter().map(|source| source.log.watch(wake.clone())));
                watches.extend(sources.iter().map(|source| source.entry.watchers.add(wake.clone())));
                continue;
            }
            tokio::select! {
                () = arrived.notified() => {}
                () = tokio::time::sleep_until(deadline) => {}
                () = broker.stopping() => break look,
            }
        };
        failed.extend(look.fetched);
        failed
    }

    /// The partitions that can be fetched from, and those that cannot. What has to be read in first is, all at once.
    async fn sources(
        self: &Arc<Self>,
        broker: &Arc<Broker>,
        want: &Want,
        places: &[Place],
    ) -> (Vec<Source>, Vec<Fetched>) {
        let mut found = Vec::with_capacity(places.len());
        let mut finding = JoinSet::new();
        for (turn, place) in places.iter().copied().enumerate() {
            if let Some(source) = self.ready_source(broker, &want.group, place) {
                found.push((turn, place, Ok(source)));
                continue;
            }
            let (this, broker, group) = (self.clone(), broker.clone(), want.group.clone());
            finding.spawn(async move { (turn, place, this.source(&broker, &group, place).await) });
        }
        // A task that panics loses its partition, and with it the fetch; nothing else does.
        found.extend(finding.join_all().await);
        found.sort_by_key(|(turn, _, _)| *turn);
        let (mut sources, mut failed) = (vec![], vec![]);
        for (_, place, source) in found {
            match source {
                Ok((log, entry)) => sources.push(Source { place, log, entry }),
                Err(error) => failed.push(Fetched { place, result: Err(error) }),
            }
        }
        (sources, failed)
    }

    /// One that was fetched from before.
    fn ready_source(&self, broker: &Broker, group: &str, place: Place) -> Option<(Arc<PartitionLog>, Arc<Entry>)> {
        broker.topic_by_id(place.0).ok()?;
        Some((broker.store().open_partition(place.0, place.1)?, self.known(group, place)?))
    }

    async fn source(
        self: &Arc<Self>,
        broker: &Arc<Broker>,
        group: &str,
        place: Place,
    ) -> Result<(Arc<PartitionLog>, Arc<Entry>), NotLoaded> {
        let topic = broker.topic_by_id(place.0)?;
        let log = broker.partition(&topic, place.1).await?;
        let entry = self.entry(group, place, &log).await?;
        Ok((log, entry))
    }

    fn look(self: &Arc<Self>, want: &Want, config: &ShareConfig, sources: &[Source], is_last: bool) -> Look {
        let mut look = Look::default();
        let can_acquire = |source: &&Source| {
            let mut state = source.entry.state.lock();
            !state.fenced && state.partition.can_acquire(&config.limits)
        };
        let sources: Vec<&Source> = sources.iter().filter(can_acquire).collect();
        let each = (want.max_bytes / sources.len().max(1)).max(1);
        let isolation = if config.read_committed { Isolation::ReadCommitted } else { Isolation::ReadUncommitted };
        if want.min_bytes > 1 && !is_last && !has_bytes(&sources, want.min_bytes, each, isolation) {
            return look;
        }
        let mut left = i64::from(want.max_records);
        let mut bytes = 0;
        for source in sources {
            if left <= 0 {
                break;
            }
            let result = self.take(want, config, source, isolation, each, bytes == 0, left);
            if let Ok((acquired, range)) = &result {
                left -= acquired.iter().map(|got| got.last - got.first + 1).sum::<i64>();
                bytes += range.as_ref().map_or(0, |range| range.len);
            }
            look.urgent |= result.as_ref().map_or(true, |(acquired, _)| !acquired.is_empty());
            let result = result.map_err(NotLoaded::from);
            look.fetched.push(Fetched { place: source.place, result });
        }
        look
    }

    /// Hands out what there is in one partition.
    #[allow(clippy::too_many_arguments, reason = "one step of look, cut out to be read by itself")]
    fn take(
        self: &Arc<Self>,
        want: &Want,
        config: &ShareConfig,
        source: &Source,
        isolation: Isolation,
        max_bytes: usize,
        min_one_batch: bool,
        max_records: i64,
    ) -> Result<(Vec<Acquired>, Option<FileRange>), ErrorCode> {
        let taken = {
            let mut state = source.entry.state.lock();
            let (from, read) = loop {
                let from = state.partition.next_fetch_offset();
                match source.log.read(from, max_bytes, min_one_batch, isolation) {
                    // Retention or DeleteRecords has taken what was next.
                    Err(ReadError::OutOfRange { start, .. }) if start > from => state.partition.log_starts_at(start),
                    // Somebody had the group start behind the end of the log.
                    Err(ReadError::OutOfRange { .. }) => return Ok((vec![], None)),
                    Err(error) => return Err(refusal::of_read(&source.log, &error)),
                    Ok(read) => break (from, read),
                }
            };
            let Some(range) = &read.range else { return Ok((vec![], None)) };
            let enough = from.max(state.partition.end_offset()).saturating_add(max_records).saturating_add(1);
            let batches = batches_in(range, enough).map_err(|error| {
                tracing::error!(
                    topic = source.log.topic(),
                    partition = source.log.partition(),
                    "a read failed: {error}"
                );
                ErrorCode::KafkaStorageError
            })?;
            let acquire = Acquire {
                member: want.member.clone(),
                record_limit: want.record_limit,
                batch_size: want.batch_size.into(),
                max_records,
                now: self.env.clock.monotonic(),
            };
            let log: Vec<LogBatch> = batches.iter().map(|batch| log_batch(batch, &read)).collect();
            let acquired = state.partition.acquire(&acquire, &config.limits, from, &log);
            let range = slice(range, &batches, &acquired);
            (acquired, range)
        };
        self.settle(&source.entry);
        Ok(taken)
    }
}

/// Whether there are `min_bytes` to read in all.
fn has_bytes(sources: &[&Source], min_bytes: usize, each: usize, isolation: Isolation) -> bool {
    let mut bytes = 0;
    for source in sources {
        let from = source.entry.state.lock().partition.next_fetch_offset();
        match source.log.read(from, each, bytes == 0, isolation) {
            Ok(read) => bytes += read.range.map_or(0, |range| range.len),
            // Whoever looks closer finds out what is wrong.
            Err(_) => return true,
        }
    }
    bytes >= min_bytes
}

fn log_batch(batch: &BatchInRange, read: &ReadResult) -> LogBatch {
    let aborted = batch.in_transaction_of.is_some_and(|producer| {
        let in_it = |aborted: &crate::storage::log::AbortedTransaction| {
            aborted.producer_id == producer && (aborted.first_offset..aborted.last_offset).contains(&batch.first_offset)
        };
        read.aborted.iter().any(in_it)
    });
    LogBatch { first: batch.first_offset, last: batch.last_offset, aborted }
}

/// The batches that have what was acquired.
fn slice(range: &FileRange, batches: &[BatchInRange], acquired: &[Acquired]) -> Option<FileRange> {
    let (first, last) = (acquired.first()?.first, acquired.last()?.last);
    let mut those = batches.iter().filter(|batch| batch.last_offset >= first && batch.first_offset <= last);
    let start = those.next()?;
    let end = those.next_back().unwrap_or(start);
    let len = usize::try_from(end.position + end.size - start.position).ok()?;
    Some(FileRange { file: range.file.clone(), position: range.position + start.position, len })
}
