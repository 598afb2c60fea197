//! WriteTxnMarkers: whoever may do so ends a transaction in single partitions, past its coordinator. Between brokers Kafka
//! writes its markers so; `kafka-transactions.sh abort` uses it to end a transaction that hangs.
//!
//! - v2 says which version of the transaction protocol the marker is of (KIP-1228).

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::{Broker, groups, refusal, topics};
use crate::coordinator::transactions::{OFFSETS_TOPIC, Producer, Version};
use crate::protocol::ErrorCode;
use crate::protocol::messages::write_txn_markers::{
    WritableTxnMarker, WritableTxnMarkerPartitionResult, WritableTxnMarkerResult, WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest, WriteTxnMarkersResponse,
};
use crate::storage::log::{EndMarker, SyncError};

pub(super) const HANDLER: Handler = serial!(WriteTxnMarkersRequest, handle);

async fn handle(broker: Arc<Broker>, _: Context, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse {
    let mut response = WriteTxnMarkersResponse::default();
    for marker in request.markers {
        response.markers.push(write(&broker, marker).await);
    }
    response
}

async fn write(broker: &Arc<Broker>, marker: WritableTxnMarker) -> WritableTxnMarkerResult {
    let end = EndMarker {
        producer_id: marker.producer_id,
        producer_epoch: marker.producer_epoch,
        committed: marker.transaction_result,
        coordinator_epoch: marker.coordinator_epoch,
        transaction_version: marker.transaction_version.into(),
    };
    let mut result = WritableTxnMarkerResult { producer_id: marker.producer_id, topics: vec![] };
    for topic in marker.topics {
        let mut partitions = Vec::with_capacity(topic.partition_indexes.len());
        for partition_index in topic.partition_indexes {
            let written = write_to(broker, &topic.name, partition_index, end).await;
            let error_code = written.err().unwrap_or(ErrorCode::None).code();
            partitions.push(WritableTxnMarkerPartitionResult { partition_index, error_code });
        }
        result.topics.push(WritableTxnMarkerTopicResult { name: topic.name, partitions });
    }
    result
}

async fn write_to(broker: &Arc<Broker>, topic: &str, partition: i32, end: EndMarker) -> Result<(), ErrorCode> {
    if topic == OFFSETS_TOPIC {
        let producer = Producer { id: end.producer_id, epoch: end.producer_epoch };
        let version = if end.transaction_version >= 2 { Version::V2 } else { Version::V1 };
        let ended = broker.transactions().end_in_groups(producer, version, end.committed).await;
        return ended.map_err(groups::error_code);
    }
    let topic = broker.topic_by_name(topic)?;
    let log = broker.partition(&topic, partition).await?;
    log.append_end_txn_marker(end, topics::LEADER_EPOCH).map_err(|error| refusal::of_append(&log, &error).error)?;
    let (sender, flushed) = oneshot::channel();
    log.sync(Box::new(move |result| drop(sender.send(result))));
    let flushed = flushed.await.unwrap_or(Err(SyncError::Closed));
    flushed.map_err(|error| refusal::of_sync(&log, &error).error)
}
