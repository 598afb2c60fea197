//! OffsetForLeaderEpoch: where an epoch of the leader ended (KIP-101, KIP-320).

use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::{Broker, topics};
use crate::protocol::ErrorCode;
use crate::protocol::messages::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
};

pub(super) const HANDLER: Handler = serial!(OffsetForLeaderEpochRequest, handle);

async fn handle(broker: Arc<Broker>, _: Context, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse {
    let mut response = OffsetForLeaderEpochResponse::default();
    for topic in request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            partitions.push(match look_up(&broker, &topic.topic, asked).await {
                Ok(found) => found,
                Err(error) => {
                    EpochEndOffset { error_code: error.code(), partition: asked.partition, ..Default::default() }
                }
            });
        }
        response.topics.push(OffsetForLeaderTopicResult { topic: topic.topic, partitions });
    }
    response
}

async fn look_up(
    broker: &Arc<Broker>,
    topic: &str,
    asked: &OffsetForLeaderPartition,
) -> Result<EpochEndOffset, ErrorCode> {
    let log = broker.partition(&broker.topic_by_name(topic)?, asked.partition).await?;
    topics::check_leader_epoch(asked.current_leader_epoch)?;
    let (leader_epoch, end_offset) = topics::end_offset_for_epoch(&log, asked.leader_epoch);
    Ok(EpochEndOffset { partition: asked.partition, leader_epoch, end_offset, ..Default::default() })
}
