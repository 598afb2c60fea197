//! DescribeProducers: who writes to a partition, and what transactions are open in it (KIP-664).

use std::sync::Arc;

use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::topics::{Refused, check_name};
use crate::protocol::ErrorCode;
use crate::protocol::messages::describe_producers::{
    DescribeProducersRequest, DescribeProducersResponse, PartitionResponse, ProducerState, TopicResponse,
};
use crate::storage::log::ProducerInfo;

pub(super) const HANDLER: Handler = serial!(DescribeProducersRequest, handle);

async fn handle(broker: Arc<Broker>, _: Context, request: DescribeProducersRequest) -> DescribeProducersResponse {
    let mut response = DescribeProducersResponse::default();
    for topic in request.topics {
        let mut partitions = Vec::with_capacity(topic.partition_indexes.len());
        for index in topic.partition_indexes {
            partitions.push(describe(&broker, &topic.name, index).await);
        }
        response.topics.push(TopicResponse { name: topic.name, partitions });
    }
    response
}

async fn describe(broker: &Arc<Broker>, topic: &str, partition_index: i32) -> PartitionResponse {
    let failed = |error: ErrorCode, error_message| PartitionResponse {
        partition_index,
        error_code: error.code(),
        error_message,
        ..Default::default()
    };
    if let Err(Refused { code, message }) = check_name(topic) {
        return failed(code, Some(message));
    }
    let log = match broker.topic_by_name(topic) {
        Ok(topic) => broker.partition(&topic, partition_index).await,
        Err(error) => Err(error),
    };
    match log {
        Ok(log) => PartitionResponse {
            partition_index,
            active_producers: log.producers().into_iter().map(described).collect(),
            ..Default::default()
        },
        Err(error) => failed(error, None),
    }
}

fn described(producer: ProducerInfo) -> ProducerState {
    ProducerState {
        producer_id: producer.producer_id,
        producer_epoch: producer.epoch.into(),
        last_sequence: producer.last_sequence,
        last_timestamp: producer.last_timestamp,
        coordinator_epoch: producer.coordinator_epoch,
        current_txn_start_offset: producer.transaction_start.unwrap_or(-1),
    }
}
