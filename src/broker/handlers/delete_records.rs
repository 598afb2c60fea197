//! DeleteRecords: the log start moves up, durably, and whole segments below it go.
//!
//! - Offset -1 is the high watermark.

use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::topics::is_internal;
use crate::broker::{Broker, refusal};
use crate::protocol::ErrorCode;
use crate::protocol::messages::delete_records::{
    DeleteRecordsPartition, DeleteRecordsPartitionResult, DeleteRecordsRequest, DeleteRecordsResponse,
    DeleteRecordsTopicResult,
};

pub(super) const HANDLER: Handler = serial!(DeleteRecordsRequest, handle);

const HIGH_WATERMARK: i64 = -1;

async fn handle(broker: Arc<Broker>, _: Context, request: DeleteRecordsRequest) -> DeleteRecordsResponse {
    let mut response = DeleteRecordsResponse::default();
    for topic in request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            let (low_watermark, error) = match delete(&broker, &topic.name, asked).await {
                Ok(log_start) => (log_start, ErrorCode::None),
                Err(error) => (-1, error),
            };
            partitions.push(DeleteRecordsPartitionResult {
                partition_index: asked.partition_index,
                low_watermark,
                error_code: error.code(),
            });
        }
        response.topics.push(DeleteRecordsTopicResult { name: topic.name, partitions });
    }
    response
}

async fn delete(broker: &Arc<Broker>, topic: &str, asked: &DeleteRecordsPartition) -> Result<i64, ErrorCode> {
    let topic = broker.topic_by_name(topic)?;
    if is_internal(&topic.topic.name) {
        return Err(ErrorCode::InvalidTopicException);
    }
    let log = broker.partition(&topic, asked.partition_index).await?;
    let policy = topic.settings.cleanup_policy;
    if policy.compact && !policy.delete {
        return Err(ErrorCode::PolicyViolation);
    }
    let offsets = log.offsets();
    let to = match asked.offset {
        HIGH_WATERMARK => offsets.high_watermark,
        offset => offset,
    };
    if to < 0 || to > offsets.high_watermark {
        return Err(ErrorCode::OffsetOutOfRange);
    }
    let (this, partition) = (broker.clone(), asked.partition_index);
    broker
        .blocking(move || {
            let deleted = this.store().delete_records(topic.topic.id, partition, to);
            deleted.map_err(|error| refusal::of_delete_records(&log, &error))
        })
        .await?
}
