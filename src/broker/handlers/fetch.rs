//! Fetch: record bytes from the log, at once or when enough of them have arrived.
//!
//! - v7 adds incremental sessions (KIP-227), v9 the client's idea of the leader epoch, v12 divergence of epochs, v13 topic
//!   ids (KIP-516).
//! - `min_bytes` and `max_wait_ms` park the fetch until an append wakes it; nothing polls. `max_bytes` bounds the response
//!   and `partition_max_bytes` each partition, but the first batch of the response is always whole, so that no consumer
//!   gets stuck on a batch that is larger than its limits.
//! - A client that had more than its quota gets an empty response, and is held back (KIP-219).
//! - The response holds ranges of files; the socket gets them without a copy through user space.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::broker::dispatch::{Context, Handler, Pending, Reply, Start};
use crate::broker::fetch_sessions::{SessionFetch, TopicKey, Wanted};
use crate::broker::refusal;
use crate::broker::{Broker, topics};
use crate::protocol::messages::fetch::{
    AbortedTransaction, EpochEndOffset, FetchRequest, FetchResponse, FetchableTopicResponse, PartitionData,
};
use crate::protocol::wire::Records;
use crate::protocol::{ApiKey, ErrorCode, Uuid, frame};
use crate::storage::log::{Isolation, PartitionLog, WatchGuard};

pub(super) const HANDLER: Handler = Handler {
    api: ApiKey::Fetch,
    start: |broker, context, body| {
        let request: FetchRequest = frame::decode(body, ApiKey::Fetch.version(context.version))?;
        let env = broker.env();
        let begun = broker.fetch_sessions().begin(context.version, &request, &*env.clock, &*env.random);
        let session = match begun {
            Ok(session) => session,
            Err(error) => {
                let response = FetchResponse { error_code: error.code(), ..Default::default() };
                return Ok(Start::Pending(Pending::ready(context.reply::<FetchRequest>(&response))));
            }
        };
        // Serial, so that a connection has one fetch parked at most, however many it sends and however large they are.
        Ok(Start::Pending(Pending::later(true, answer(broker, context, request, session))))
    },
};

/// A partition of the fetch, found once.
struct Source {
    wanted: Wanted,
    topic_id: Uuid,
    log: Result<Arc<PartitionLog>, ErrorCode>,
}

/// What one look at all partitions found.
struct Look {
    partitions: Vec<PartitionData>,
    bytes: usize,
    /// Something is to be told at once: an error, or epochs that diverge.
    urgent: bool,
}

async fn answer(broker: Arc<Broker>, context: Context, request: FetchRequest, session: SessionFetch) -> Reply {
    let mut sources = Vec::with_capacity(session.wanted.len());
    for wanted in &session.wanted {
        let topic = match &wanted.topic {
            TopicKey::Id(id) => broker.topic_by_id(*id),
            TopicKey::Name(name) => broker.topic_by_name(name),
        };
        let (topic_id, log) = match topic {
            Ok(topic) => (topic.topic.id, broker.partition(&topic, wanted.partition).await),
            Err(error) => (Uuid::ZERO, Err(error)),
        };
        sources.push(Source { wanted: wanted.clone(), topic_id, log });
    }
    let isolation = if request.isolation_level == 1 { Isolation::ReadCommitted } else { Isolation::ReadUncommitted };
    let max_bytes = usize::try_from(request.max_bytes).unwrap_or(0).min(broker.fetch_max_bytes());
    let max_bytes = max_bytes.min(broker.quotas().max_fetch_bytes(context.client_id.as_deref()));
    let min_bytes = usize::try_from(request.min_bytes).unwrap_or(0).min(max_bytes);
    let wait = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0));
    // A client that has left is found out by the answer, so none is kept waiting for longer than it may be idle.
    let deadline = Instant::now() + wait.min(broker.max_idle());
    let arrived = Arc::new(Notify::new());
    let mut watches: Vec<WatchGuard> = vec![];
    let look = loop {
        let look = look(&broker, &sources, isolation, max_bytes);
        if look.urgent || look.bytes >= min_bytes || sources.is_empty() || Instant::now() >= deadline {
            break look;
        }
        if watches.is_empty() {
            // What arrives from here on wakes us; what arrived between the look and now is found by looking again.
            let wake = arrived.clone();
            let wake: Arc<dyn Fn() + Send + Sync> = Arc::new(move || wake.notify_one());
            watches = sources.iter().filter_map(|s| s.log.as_ref().ok()).map(|log| log.watch(wake.clone())).collect();
            continue;
        }
        tokio::select! {
            biased;
            () = arrived.notified() => {}
            () = tokio::time::sleep_until(deadline) => {}
            () = broker.stopping() => break look,
        }
    };
    drop(watches);
    let mut response = FetchResponse { session_id: session.session_id, ..Default::default() };
    for (source, partition) in sources.iter().zip(look.partitions) {
        let topic = &source.wanted.topic;
        if session.includes(topic, &partition) {
            topic_of(&mut response.responses, topic).partitions.push(partition);
        }
    }
    let reply = context.reply::<FetchRequest>(&response);
    let throttle_time_ms =
        broker.quotas().fetched(context.client_id.as_deref(), reply.size_in_bytes().saturating_sub(4));
    if throttle_time_ms > 0 {
        // It gets nothing now, and asks again for the same when its time has come.
        let response = FetchResponse { throttle_time_ms, session_id: session.session_id, ..Default::default() };
        return context.reply::<FetchRequest>(&response);
    }
    reply
}

/// The last topic of the response if it is this one, else a new one.
fn topic_of<'a>(responses: &'a mut Vec<FetchableTopicResponse>, topic: &TopicKey) -> &'a mut FetchableTopicResponse {
    let (name, id) = match topic {
        TopicKey::Id(id) => ("", *id),
        TopicKey::Name(name) => (&**name, Uuid::ZERO),
    };
    if responses.last().is_none_or(|last| last.topic != name || last.topic_id != id) {
        responses.push(FetchableTopicResponse { topic: name.into(), topic_id: id, partitions: vec![] });
    }
    responses.last_mut().expect("one was pushed if there was none")
}

fn look(broker: &Broker, sources: &[Source], isolation: Isolation, max_bytes: usize) -> Look {
    let mut look = Look { partitions: Vec::with_capacity(sources.len()), bytes: 0, urgent: false };
    for source in sources {
        let found = source.log.as_ref().map_err(|error| *error).and_then(|log| {
            let left = max_bytes.saturating_sub(look.bytes);
            read(broker, log, source, isolation, left, look.bytes == 0)
        });
        let data = found.unwrap_or_else(|error| PartitionData {
            partition_index: source.wanted.partition,
            error_code: error.code(),
            high_watermark: -1,
            // As Kafka has it: null where it looked into the log, empty where there was none.
            aborted_transactions: source.log.is_err().then(Vec::new),
            records: Some(Records::default()),
            ..Default::default()
        });
        look.bytes += data.records.as_ref().map_or(0, Records::len);
        look.urgent |= data.error_code != 0 || data.diverging_epoch != EpochEndOffset::default();
        look.partitions.push(data);
    }
    look
}

fn read(
    broker: &Broker,
    log: &Arc<PartitionLog>,
    source: &Source,
    isolation: Isolation,
    left: usize,
    first: bool,
) -> Result<PartitionData, ErrorCode> {
    let wanted = &source.wanted;
    // Any negative epoch is that of a consumer that does not say.
    topics::check_leader_epoch(wanted.current_leader_epoch.max(-1))?;
    if wanted.last_fetched_epoch >= 0 {
        let (epoch, end_offset) = topics::end_offset_for_epoch(log, wanted.last_fetched_epoch);
        if epoch < wanted.last_fetched_epoch || end_offset < wanted.fetch_offset {
            let offsets = log.offsets();
            return Ok(PartitionData {
                partition_index: wanted.partition,
                high_watermark: offsets.high_watermark,
                last_stable_offset: offsets.last_stable,
                log_start_offset: offsets.start,
                diverging_epoch: EpochEndOffset { epoch, end_offset },
                records: Some(Records::default()),
                ..Default::default()
            });
        }
    }
    let max_bytes = usize::try_from(wanted.max_bytes).unwrap_or(0).min(left);
    let found =
        log.read(wanted.fetch_offset, max_bytes, first, isolation).map_err(|error| refusal::of_read(log, &error))?;
    if let Some(range) = &found.range {
        let bytes = (range.position, range.position + range.len as u64);
        broker.scrubber.was_read(source.topic_id, wanted.partition, found.segment, bytes);
    }
    let aborted = found
        .aborted
        .into_iter()
        .map(|aborted| AbortedTransaction { producer_id: aborted.producer_id, first_offset: aborted.first_offset });
    Ok(PartitionData {
        partition_index: wanted.partition,
        high_watermark: found.high_watermark,
        last_stable_offset: found.last_stable_offset,
        log_start_offset: found.log_start_offset,
        aborted_transactions: match isolation {
            Isolation::ReadCommitted => Some(aborted.collect()),
            Isolation::ReadUncommitted => None,
        },
        records: Some(found.range.map_or_else(Records::default, Records::File)),
        ..Default::default()
    })
}
