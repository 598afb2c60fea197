//! Produce: batches are checked whole, appended in the order of the requests, and acknowledged as `acks` asks.
//!
//! - Versions 0 to 2 are advertised, since old librdkafka gives up without them, and refused, as Apache Kafka 4 does.
//! - v3 adds the transactional id. A request with a transactional batch and without an id is refused as a whole, as Kafka
//!   refuses what the id's owner did not authorize. v11 adds TRANSACTION_ABORTABLE. From v12 on partitions become part of a
//!   transaction by being written to (KIP-890).
//! - v5 adds the log start offset, v8 the errors of single records, v10 the current leader, v13 topic ids.
//! - `acks=all` is answered after an fsync that began after the append; while it runs, the next requests of the connection
//!   are read and appended, so that one fsync covers many of them. `acks=1` is answered from the page cache. `acks=0` is
//!   not answered; an error closes the connection, which is all that can be told to such a producer.
//! - `min.insync.replicas` never stands in the way: of a partition's replicas at least as many as there are are asked for,
//!   and there is one.
//! - A duplicate of a batch that the log holds is answered with its first offset, and waits for the fsync like any other.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::broker::dispatch::{Context, Handler, Pending, Reply, Start};
use crate::broker::produce_rules::produce_rules;
use crate::broker::produce_transactions::ProduceTransaction;
use crate::broker::refusal::Refusal;
use crate::broker::topics::TopicRef;
use crate::broker::{Broker, refusal, topics};
use crate::protocol::messages::produce::{
    PartitionProduceData, PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceData,
    TopicProduceResponse,
};
use crate::protocol::wire::Records;
use crate::protocol::{ApiKey, ErrorCode, frame};
use crate::record::{InvalidBatch, Step, Validator};
use crate::storage::log::{Appended, PartitionLog, SyncError};

pub(super) const HANDLER: Handler = Handler {
    api: ApiKey::Produce,
    start: |broker, context, body| {
        let request: ProduceRequest = frame::decode(body, ApiKey::Produce.version(context.version))?;
        Ok(Start::First(Box::pin(append_all(broker, context, request))))
    },
};

/// About how many bytes of records are checked before other connections get their turn.
const CHECK_BUDGET: usize = 256 * 1024;

const ALL: i16 = -1;

/// A response whose errors may still change when the flushes are done.
struct Answer {
    response: ProduceResponse,
    /// Flushes to wait for, with the place of the partition in the response.
    flushes: Vec<Flush>,
}

struct Flush {
    topic: usize,
    partition: usize,
    log: Arc<PartitionLog>,
    done: oneshot::Receiver<Result<(), SyncError>>,
}

async fn append_all(broker: Arc<Broker>, context: Context, request: ProduceRequest) -> Pending {
    let acks = request.acks;
    let mut answer = append_topics(&broker, &context, request).await;
    // From here on, so that no more of a client is taken in than its quota allows while this waits for its flush.
    let throttle_time_ms = broker.quotas().produced(context.client_id.as_deref(), context.size_in_bytes);
    if throttle_time_ms > 0 {
        context.client.hold_back(throttle_time_ms);
        answer.response.throttle_time_ms = throttle_time_ms;
    }
    let failed = |response: &ProduceResponse| {
        response.responses.iter().flat_map(|topic| &topic.partition_responses).any(|p| p.error_code != 0)
    };
    if acks == 0 {
        return Pending::ready(if failed(&answer.response) { Reply::Close } else { Reply::Nothing });
    }
    if answer.flushes.is_empty() {
        return Pending::ready(context.reply::<ProduceRequest>(&answer.response));
    }
    Pending::later(false, async move {
        let Answer { mut response, flushes } = answer;
        for flush in flushes {
            // The flusher answers every request; one that it dropped was not flushed.
            let done = flush.done.await.unwrap_or(Err(SyncError::Closed));
            if let Err(error) = done {
                let partition = &mut response.responses[flush.topic].partition_responses[flush.partition];
                *partition = refused(partition.index, refusal::of_sync(&flush.log, &error), -1);
            }
        }
        context.reply::<ProduceRequest>(&response)
    })
}

async fn append_topics(broker: &Arc<Broker>, context: &Context, request: ProduceRequest) -> Answer {
    let mut answer = Answer { response: ProduceResponse::default(), flushes: vec![] };
    let transaction = match ProduceTransaction::begin(broker, context.version, &request).await {
        Ok(transaction) => transaction,
        Err(error) => {
            answer.response.responses = request.topic_data.into_iter().map(|topic| all_refused(topic, error)).collect();
            return answer;
        }
    };
    for topic in request.topic_data {
        let TopicProduceData { name, topic_id, partition_data } = topic;
        let topic = broker.topic_to_produce_to(context.version, &name, topic_id);
        let mut partition_responses = Vec::with_capacity(partition_data.len());
        for data in partition_data {
            let index = data.index;
            let appended = match &topic {
                Ok(topic) => append(broker, context.version, topic, request.acks, data, transaction.as_ref()).await,
                Err(error) => Err((refusal::plain(*error), -1)),
            };
            partition_responses.push(match appended {
                Ok((log, appended)) => {
                    if request.acks == ALL || appended.flush_due {
                        let (sender, done) = oneshot::channel();
                        log.sync(Box::new(move |result| drop(sender.send(result))));
                        let (topic, partition) = (answer.response.responses.len(), partition_responses.len());
                        answer.flushes.push(Flush { topic, partition, log, done });
                    }
                    PartitionProduceResponse {
                        index,
                        base_offset: appended.first_offset,
                        log_append_time_ms: appended.log_append_time_ms,
                        log_start_offset: appended.log_start_offset,
                        ..Default::default()
                    }
                }
                Err((refusal, log_start_offset)) => refused(index, refusal, log_start_offset),
            });
        }
        answer.response.responses.push(TopicProduceResponse { name, topic_id, partition_responses });
    }
    answer
}

fn all_refused(topic: TopicProduceData, error: ErrorCode) -> TopicProduceResponse {
    let partitions = topic.partition_data.iter().map(|data| refused(data.index, refusal::plain(error), -1));
    TopicProduceResponse { name: topic.name, topic_id: topic.topic_id, partition_responses: partitions.collect() }
}

fn refused(index: i32, refusal: Refusal, log_start_offset: i64) -> PartitionProduceResponse {
    PartitionProduceResponse {
        index,
        error_code: refusal.error.code(),
        base_offset: -1,
        log_start_offset,
        record_errors: refusal.record_errors(),
        error_message: refusal.message,
        ..Default::default()
    }
}

/// Checks and appends what a request has for one partition. A refusal comes with the log start offset, where Kafka tells it.
async fn append(
    broker: &Arc<Broker>,
    version: i16,
    topic: &TopicRef,
    acks: i16,
    data: PartitionProduceData,
    transaction: Option<&ProduceTransaction>,
) -> Result<(Arc<PartitionLog>, Appended), (Refusal, i64)> {
    let plain = |error| (refusal::plain(error), -1);
    if topics::is_internal(&topic.topic.name) && (0..topic.topic.partitions).contains(&data.index) {
        return Err(plain(ErrorCode::InvalidTopicException));
    }
    let log = broker.partition(topic, data.index).await.map_err(plain)?;
    if !(ALL..=1).contains(&acks) {
        return Err(plain(ErrorCode::InvalidRequiredAcks));
    }
    if let Some(refusal) = transaction.and_then(|transaction| transaction.refusal(&log)) {
        return Err((refusal, -1));
    }
    let bytes = match data.records {
        Some(Records::Bytes(bytes)) => bytes,
        _ => bytes::Bytes::new(),
    };
    let refuse = |invalid: InvalidBatch| {
        let start = if refusal::is_of_records(&invalid) { log.offsets().start } else { -1 };
        (refusal::of_batch(&invalid), start)
    };
    let rules = produce_rules(&topic.settings, &topic.topic.name, data.index, version, broker.env().clock.now_ms());
    let mut validator = Validator::new(bytes, rules).map_err(refuse)?;
    let checked = loop {
        match validator.step(CHECK_BUDGET).map_err(refuse)? {
            Step::Done(checked) => break checked,
            Step::More => tokio::task::yield_now().await,
        }
    };
    let appended = match transaction {
        Some(transaction) => transaction.append(&log, *checked),
        None => log.append(*checked, topics::LEADER_EPOCH),
    };
    match appended {
        Ok(appended) => Ok((log, appended)),
        Err(error) => {
            let refusal = refusal::of_append(&log, &error);
            let start = log.offsets().start;
            Err((refusal, start))
        }
    }
}
