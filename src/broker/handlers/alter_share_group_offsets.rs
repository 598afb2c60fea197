//! AlterShareGroupOffsets: a share group without members starts its partitions at other offsets (KIP-932). What became of
//! their records is forgotten. Answered when it is durable.

use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::{Broker, groups};
use crate::coordinator::Reply;
use crate::protocol::messages::alter_share_group_offsets::{
    AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse, AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
};
use crate::protocol::{ErrorCode, Uuid};

pub(super) const HANDLER: Handler = serial!(AlterShareGroupOffsetsRequest, handle);

async fn handle(
    broker: Arc<Broker>,
    _: Context,
    request: AlterShareGroupOffsetsRequest,
) -> AlterShareGroupOffsetsResponse {
    if !broker.offers_share_groups() {
        return failed(ErrorCode::UnsupportedVersion, None);
    }
    if request.group_id.is_empty() {
        return failed(ErrorCode::InvalidGroupId, None);
    }
    let mut starts: Vec<(Uuid, i32, i64)> = vec![];
    let mut response = AlterShareGroupOffsetsResponse::default();
    for topic in request.topics {
        let found = broker.topic_by_name(&topic.topic_name).ok();
        let topic_id = found.as_ref().map_or(Uuid::ZERO, |found| found.topic.id);
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in topic.partitions {
            let count = found.as_ref().map_or(0, |found| found.topic.partitions);
            let (error, message) = match asked.start_offset {
                _ if !(0..count).contains(&asked.partition_index) => (
                    ErrorCode::UnknownTopicOrPartition,
                    Some("This server does not host this topic-partition.".to_owned()),
                ),
                0.. => {
                    starts.push((topic_id, asked.partition_index, asked.start_offset));
                    (ErrorCode::None, None)
                }
                negative => (ErrorCode::InvalidRequest, Some(format!("Offset {negative} cannot be started at."))),
            };
            partitions.push(AlterShareGroupOffsetsResponsePartition {
                partition_index: asked.partition_index,
                error_code: error.code(),
                error_message: message,
            });
        }
        let topic_name = topic.topic_name;
        response.responses.push(AlterShareGroupOffsetsResponseTopic { topic_name, topic_id, partitions });
    }
    let group = request.group_id.as_str();
    let alter =
        broker.groups().ask(|coordinator, now, token| coordinator.alter_share_offsets(now, token, group, &starts));
    let altered = match broker.groups().with(|coordinator, _| coordinator.may_change_share_offsets(group)) {
        Ok(()) => {
            let is_altered = |place| starts.iter().any(|(topic, partition, _)| (*topic, *partition) == place);
            broker.shares().exclusively(group, is_altered, alter).await
        }
        // Those who use the group are left in peace.
        Err(refused) => Some(Reply::ShareOffsets(Err(refused))),
    };
    match altered {
        Some(Reply::ShareOffsets(Ok(()))) => response,
        Some(Reply::ShareOffsets(Err(refused))) => failed(groups::error_code(refused.error), Some(refused.message)),
        _ => failed(ErrorCode::CoordinatorNotAvailable, None),
    }
}

fn failed(error: ErrorCode, error_message: Option<String>) -> AlterShareGroupOffsetsResponse {
    AlterShareGroupOffsetsResponse { error_code: error.code(), error_message, ..Default::default() }
}
