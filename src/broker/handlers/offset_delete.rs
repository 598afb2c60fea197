//! OffsetDelete: committed offsets go, of topics that no member of the group subscribes to (KIP-496).

use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::{Broker, groups};
use crate::coordinator::{DeleteOffsetsRequest, Reply};
use crate::protocol::ErrorCode;
use crate::protocol::messages::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteResponse, OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};

pub(super) const HANDLER: Handler = serial!(OffsetDeleteRequest, handle);

async fn handle(broker: Arc<Broker>, _: Context, request: OffsetDeleteRequest) -> OffsetDeleteResponse {
    let known = broker.topics();
    let mut response = OffsetDeleteResponse::default();
    let mut deletions = vec![];
    for topic in request.topics {
        let count = known.by_name(&topic.name).map_or(0, |topic| topic.partitions);
        let (there, missing): (Vec<i32>, Vec<i32>) =
            topic.partitions.iter().map(|p| p.partition_index).partition(|index| (0..count).contains(index));
        let partitions = missing.into_iter().map(|partition_index| OffsetDeleteResponsePartition {
            partition_index,
            error_code: ErrorCode::UnknownTopicOrPartition.code(),
        });
        response.topics.push(OffsetDeleteResponseTopic { name: topic.name.clone(), partitions: partitions.collect() });
        if !there.is_empty() {
            deletions.push((topic.name, there));
        }
    }
    let delete = DeleteOffsetsRequest { group_id: request.group_id, topics: deletions };
    match broker.groups().ask(|coordinator, now, token| coordinator.delete_offsets(now, token, delete)).await {
        Some(Reply::DeleteOffsets(Ok(outcomes))) => {
            for (name, partitions) in outcomes {
                let Some(topic) = response.topics.iter_mut().find(|topic| topic.name == name) else { continue };
                topic.partitions.extend(partitions.into_iter().map(|(partition_index, outcome)| {
                    OffsetDeleteResponsePartition { partition_index, error_code: groups::outcome_code(outcome) }
                }));
            }
        }
        Some(Reply::DeleteOffsets(Err(error))) => {
            response = OffsetDeleteResponse { error_code: groups::error_code(error).code(), ..Default::default() };
        }
        _ => response.error_code = ErrorCode::CoordinatorNotAvailable.code(),
    }
    response
}
