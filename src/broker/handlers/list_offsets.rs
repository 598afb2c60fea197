//! ListOffsets: where a log starts and ends, and the first record at or after a time.
//!
//! - v2 adds the isolation level, v4 leader epochs, v7 the record with the largest timestamp (-3), v8 the earliest offset
//!   on local disks (-4), v9 the last offset in tiered storage (-5), v10 a time-out for what asks remote storage, v11 the
//!   first offset that waits for its upload (-6). Without tiered storage all is local, and nothing is or will be uploaded.

use std::collections::HashMap;
use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::refusal;
use crate::broker::{Broker, topics};
use crate::protocol::ErrorCode;
use crate::protocol::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsResponse,
    ListOffsetsTopicResponse,
};
use crate::storage::log::{PartitionLog, TimestampedOffset};

pub(super) const HANDLER: Handler = serial!(ListOffsetsRequest, handle);

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;
const EARLIEST_PENDING_UPLOAD: i64 = -6;

/// The replica id of a consumer, to whom the isolation level applies.
const CONSUMER: i32 = -1;

async fn handle(broker: Arc<Broker>, context: Context, request: ListOffsetsRequest) -> ListOffsetsResponse {
    let committed_only = request.isolation_level == 1 && request.replica_id == CONSUMER;
    let mut times = HashMap::new();
    for topic in &request.topics {
        for partition in &topic.partitions {
            *times.entry((topic.name.as_str(), partition.partition_index)).or_insert(0) += 1;
        }
    }
    let mut response = ListOffsetsResponse::default();
    for topic in &request.topics {
        let found = broker.topic_by_name(&topic.name);
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            // One that is asked for more than once is answered once.
            let answer = match (times.remove(&(topic.name.as_str(), asked.partition_index)), &found) {
                (None, _) => continue,
                (Some(2..), _) => Err(ErrorCode::InvalidRequest),
                (Some(_), Err(error)) => Err(*error),
                (Some(_), Ok(topic)) => match broker.partition(topic, asked.partition_index).await {
                    Ok(log) => look_up(&broker, log, asked, context.version, committed_only).await,
                    Err(error) => Err(error),
                },
            };
            partitions.push(match answer {
                Ok(found) => ListOffsetsPartitionResponse {
                    partition_index: asked.partition_index,
                    timestamp: found.timestamp,
                    offset: found.offset,
                    leader_epoch: found.leader_epoch.unwrap_or(-1),
                    ..Default::default()
                },
                Err(error) => ListOffsetsPartitionResponse {
                    partition_index: asked.partition_index,
                    error_code: error.code(),
                    ..Default::default()
                },
            });
        }
        response.topics.push(ListOffsetsTopicResponse { name: topic.name.clone(), partitions });
    }
    response
}

const NOTHING: TimestampedOffset = TimestampedOffset { offset: -1, timestamp: -1, leader_epoch: None };

async fn look_up(
    broker: &Broker,
    log: Arc<PartitionLog>,
    asked: &ListOffsetsPartition,
    version: i16,
    committed_only: bool,
) -> Result<TimestampedOffset, ErrorCode> {
    topics::check_leader_epoch(asked.current_leader_epoch)?;
    let first_version = match asked.timestamp {
        MAX_TIMESTAMP => 7,
        EARLIEST_LOCAL => 8,
        LATEST_TIERED => 9,
        EARLIEST_PENDING_UPLOAD => 11,
        ..EARLIEST_PENDING_UPLOAD => i16::MAX,
        _ => 0,
    };
    if version < first_version {
        return Err(ErrorCode::UnsupportedVersion);
    }
    let offsets = log.offsets();
    let end = if committed_only { offsets.last_stable } else { offsets.high_watermark };
    let at = |offset| TimestampedOffset { offset, timestamp: -1, leader_epoch: Some(topics::LEADER_EPOCH) };
    match asked.timestamp {
        LATEST => Ok(at(end)),
        EARLIEST | EARLIEST_LOCAL => Ok(at(offsets.start)),
        LATEST_TIERED | EARLIEST_PENDING_UPLOAD => Ok(NOTHING),
        timestamp => {
            // Reads and may inflate batches, so it goes where blocking is no harm.
            let found = broker
                .blocking(move || {
                    let found = match timestamp {
                        MAX_TIMESTAMP => log.max_timestamp(),
                        _ => log.offset_for_timestamp(timestamp),
                    };
                    found.map_err(|error| refusal::of_read(&log, &error))
                })
                .await??;
            Ok(found.filter(|found| found.offset < end).unwrap_or(NOTHING))
        }
    }
}
