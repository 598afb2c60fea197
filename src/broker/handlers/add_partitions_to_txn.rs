//! AddPartitionsToTxn: partitions become part of a transaction, durably, before a record of it is written to them.
//!
//! - v2 adds PRODUCER_FENCED; older versions are told INVALID_PRODUCER_EPOCH. v4 and later come from brokers: many
//!   transactions at once, and a mere look whether the partitions are part of them (KIP-890).
//! - A partition that is not there fails the whole transaction, and nothing is added. So does one of an internal topic.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::topics::is_internal;
use crate::broker::{Broker, transactions};
use crate::coordinator::transactions::{AddRequest, Error, Place, Producer, Reply, Version};
use crate::protocol::ErrorCode;
use crate::protocol::messages::add_partitions_to_txn::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult, AddPartitionsToTxnTransaction,
};
use crate::storage::catalog::Topics;

pub(super) const HANDLER: Handler = serial!(AddPartitionsToTxnRequest, handle);

async fn handle(
    broker: Arc<Broker>,
    context: Context,
    request: AddPartitionsToTxnRequest,
) -> AddPartitionsToTxnResponse {
    if context.version < 4 {
        let transaction = AddPartitionsToTxnTransaction {
            transactional_id: request.v3_and_below_transactional_id,
            producer_id: request.v3_and_below_producer_id,
            producer_epoch: request.v3_and_below_producer_epoch,
            verify_only: false,
            topics: request.v3_and_below_topics,
        };
        let results_by_topic_v3_and_below = answer(&broker, context.version, transaction).await;
        return AddPartitionsToTxnResponse { results_by_topic_v3_and_below, ..Default::default() };
    }
    let mut response = AddPartitionsToTxnResponse::default();
    for transaction in request.transactions {
        response.results_by_transaction.push(AddPartitionsToTxnResult {
            transactional_id: transaction.transactional_id.clone(),
            topic_results: answer(&broker, context.version, transaction).await,
        });
    }
    response
}

/// Why a partition cannot be part of any transaction, if so.
fn refusal(topics: &Topics, (topic, partition): &Place) -> Option<ErrorCode> {
    if is_internal(topic) {
        return Some(ErrorCode::TopicAuthorizationFailed);
    }
    let is_there = topics.by_name(topic).is_some_and(|topic| (0..topic.partitions).contains(partition));
    (!is_there).then_some(ErrorCode::UnknownTopicOrPartition)
}

async fn answer(
    broker: &Arc<Broker>,
    version: i16,
    transaction: AddPartitionsToTxnTransaction,
) -> Vec<AddPartitionsToTxnTopicResult> {
    let mut places: BTreeSet<Place> = BTreeSet::new();
    for topic in &transaction.topics {
        let name: Arc<str> = topic.name.as_str().into();
        places.extend(topic.partitions.iter().map(|partition| (name.clone(), *partition)));
    }
    let topics = broker.topics();
    let codes: BTreeMap<Place, ErrorCode> = if places.iter().all(|place| refusal(&topics, place).is_none()) {
        take_part(broker, version, &transaction, &places).await
    } else {
        let code = |place: &Place| refusal(&topics, place).unwrap_or(ErrorCode::OperationNotAttempted);
        places.iter().map(|place| (place.clone(), code(place))).collect()
    };
    let codes: Vec<(Place, ErrorCode)> = codes.into_iter().collect();
    let topic = |topic: &[(Place, ErrorCode)]| AddPartitionsToTxnTopicResult {
        name: topic[0].0.0.to_string(),
        results_by_partition: topic
            .iter()
            .map(|((_, partition_index), code)| AddPartitionsToTxnPartitionResult {
                partition_index: *partition_index,
                partition_error_code: code.code(),
            })
            .collect(),
    };
    codes.chunk_by(|(a, _), (b, _)| a.0 == b.0).map(topic).collect()
}

/// Adds the partitions, or looks whether they are part of the transaction. Gives a code for each.
async fn take_part(
    broker: &Arc<Broker>,
    version: i16,
    transaction: &AddPartitionsToTxnTransaction,
    places: &BTreeSet<Place>,
) -> BTreeMap<Place, ErrorCode> {
    let transactional_id = transaction.transactional_id.clone();
    let producer = Producer { id: transaction.producer_id, epoch: transaction.producer_epoch };
    let result = if transaction.verify_only {
        broker.transactions().with(|coordinator, _| coordinator.verify(&transactional_id, producer, places))
    } else {
        let request = AddRequest {
            transactional_id,
            producer,
            places: places.clone(),
            version: if version > 4 { Version::V2 } else { Version::V1 },
        };
        let reply = broker.transactions().ask(|coordinator, now, token| coordinator.add(now, token, &request)).await;
        match reply {
            Some(Reply::Add(result)) => result.map(|()| vec![Ok(()); places.len()]),
            _ => Err(Error::NotCoordinator),
        }
    };
    let code = |error| match version {
        ..2 => transactions::error_code_before_fencing(error),
        _ => transactions::error_code(error),
    };
    let parts = result.unwrap_or_else(|error| vec![Err(error); places.len()]);
    places.iter().cloned().zip(parts.into_iter().map(|part| part.err().map_or(ErrorCode::None, code))).collect()
}
