//! DeleteShareGroupOffsets: a share group without members forgets all that it has of topics (KIP-932). Answered when it
//! is durable.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::{Broker, groups};
use crate::coordinator::Reply;
use crate::protocol::messages::delete_share_group_offsets::{
    DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse, DeleteShareGroupOffsetsResponseTopic,
};
use crate::protocol::{ErrorCode, Uuid};

pub(super) const HANDLER: Handler = serial!(DeleteShareGroupOffsetsRequest, handle);

async fn handle(
    broker: Arc<Broker>,
    _: Context,
    request: DeleteShareGroupOffsetsRequest,
) -> DeleteShareGroupOffsetsResponse {
    if !broker.offers_share_groups() {
        return failed(ErrorCode::UnsupportedVersion, None);
    }
    if request.group_id.is_empty() {
        return failed(ErrorCode::InvalidGroupId, None);
    }
    let group = request.group_id.as_str();
    let kept = broker.groups().with(|coordinator, _| coordinator.share_partitions(group));
    let mut response = DeleteShareGroupOffsetsResponse::default();
    let mut topics: BTreeSet<Uuid> = BTreeSet::new();
    for topic in request.topics {
        let found = broker.topic_by_name(&topic.topic_name).map(|found| found.topic.id);
        let (topic_id, error_message) = match found {
            Ok(id) if kept.contains_key(&id) => {
                topics.insert(id);
                (id, None)
            }
            Ok(_) => (Uuid::ZERO, Some("There is no offset information to delete.")),
            Err(_) => (Uuid::ZERO, Some("This server does not host this topic-partition.")),
        };
        let error = if error_message.is_some() { ErrorCode::UnknownTopicOrPartition } else { ErrorCode::None };
        response.responses.push(DeleteShareGroupOffsetsResponseTopic {
            topic_name: topic.topic_name,
            topic_id,
            error_code: error.code(),
            error_message: error_message.map(str::to_owned),
        });
    }
    let delete =
        broker.groups().ask(|coordinator, now, token| coordinator.delete_share_offsets(now, token, group, &topics));
    let deleted = match broker.groups().with(|coordinator, _| coordinator.may_change_share_offsets(group)) {
        Ok(()) => broker.shares().exclusively(group, |(topic, _)| topics.contains(&topic), delete).await,
        Err(refused) => Some(Reply::ShareOffsets(Err(refused))),
    };
    match deleted {
        Some(Reply::ShareOffsets(Ok(()))) => response,
        Some(Reply::ShareOffsets(Err(refused))) => failed(groups::error_code(refused.error), Some(refused.message)),
        _ => failed(ErrorCode::CoordinatorNotAvailable, None),
    }
}

fn failed(error: ErrorCode, error_message: Option<String>) -> DeleteShareGroupOffsetsResponse {
    DeleteShareGroupOffsetsResponse { error_code: error.code(), error_message, ..Default::default() }
}
