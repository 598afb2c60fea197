//! DescribeTransactions: the state of transactional ids (KIP-664).

use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::{Broker, transactions};
use crate::coordinator::transactions::{Error, Metadata, Place};
use crate::protocol::messages::describe_transactions::{
    DescribeTransactionsRequest, DescribeTransactionsResponse, TopicData, TransactionState,
};

pub(super) const HANDLER: Handler = serial!(DescribeTransactionsRequest, handle);

async fn handle(broker: Arc<Broker>, _: Context, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse {
    let describe = |transactional_id: String| {
        broker.transactions().with(|coordinator, _| match coordinator.describe(&transactional_id) {
            Ok(metadata) => TransactionState { transactional_id: transactional_id.clone(), ..described(metadata) },
            Err(error) => failed(transactional_id.clone(), error),
        })
    };
    DescribeTransactionsResponse {
        transaction_states: request.transactional_ids.into_iter().map(describe).collect(),
        ..Default::default()
    }
}

fn failed(transactional_id: String, error: Error) -> TransactionState {
    TransactionState { error_code: transactions::error_code(error).code(), transactional_id, ..Default::default() }
}

fn described(metadata: &Metadata) -> TransactionState {
    let places: Vec<&Place> = metadata.places.iter().collect();
    let topic = |topic: &[&Place]| TopicData {
        topic: topic[0].0.to_string(),
        partitions: topic.iter().map(|(_, partition)| *partition).collect(),
    };
    TransactionState {
        transaction_state: metadata.state.name().into(),
        transaction_timeout_ms: metadata.timeout_ms,
        transaction_start_time_ms: metadata.start_ms,
        producer_id: metadata.producer_id,
        producer_epoch: metadata.epoch,
        topics: places.chunk_by(|a, b| a.0 == b.0).map(topic).collect(),
        ..Default::default()
    }
}
