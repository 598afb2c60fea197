//! ShareAcknowledge: what a member of a share group says of records that it got (KIP-932).
//!
//! - v2 adds renewals of locks (KIP-1222).
//! - Epoch -1 ends the member's session, which gives back what it holds.
//! - Answered when it is durable.

use std::sync::Arc;

use super::share_fetch::is_member_id;
use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::coordinator::Acknowledgement;
use crate::protocol::ErrorCode;
use crate::protocol::messages::share_acknowledge::{
    PartitionData, ShareAcknowledgeRequest, ShareAcknowledgeResponse, ShareAcknowledgeTopicResponse,
};

pub(super) const HANDLER: Handler = serial!(ShareAcknowledgeRequest, handle);

const ENDS_SESSION: i32 = -1;

async fn handle(broker: Arc<Broker>, context: Context, request: ShareAcknowledgeRequest) -> ShareAcknowledgeResponse {
    let invalid = |message| failed(ErrorCode::InvalidRequest, Some(message));
    if !broker.offers_share_groups() {
        return failed(ErrorCode::UnsupportedVersion, None);
    }
    let Some(group) = request.group_id else { return invalid("Invalid group id in the request.") };
    let Some(member) = request.member_id.filter(|id| is_member_id(Some(id))) else {
        return invalid("Invalid member id in the request.");
    };
    let (shares, epoch) = (broker.shares(), request.share_session_epoch);
    if let Err(error) = shares.sessions().acknowledge(&group, &member, epoch) {
        return failed(error, None);
    }
    let mut asked = vec![];
    for topic in request.topics {
        for partition in topic.partitions {
            let batches = partition.acknowledgement_batches.into_iter().map(|batch| Acknowledgement {
                first: batch.first_offset,
                last: batch.last_offset,
                types: batch.acknowledge_types,
            });
            asked.push(((topic.topic_id, partition.partition_index), batches.collect()));
        }
    }
    let acknowledging = shares.acknowledge(&broker, &group, &member, asked, context.version, request.is_renew_ack);
    let mut response =
        ShareAcknowledgeResponse { acquisition_lock_timeout_ms: shares.config(&group).lock_ms(), ..Default::default() };
    for ((topic_id, partition_index), outcome) in acknowledging.await {
        // They come in the order of topics.
        if response.responses.last().is_none_or(|topic| topic.topic_id != topic_id) {
            response.responses.push(ShareAcknowledgeTopicResponse { topic_id, partitions: vec![] });
        }
        let error = outcome.err();
        let data = PartitionData {
            partition_index,
            error_code: error.as_ref().map_or(ErrorCode::None, |error| error.code).code(),
            error_message: error.and_then(|error| error.message),
            ..Default::default()
        };
        response.responses.last_mut().expect("one was pushed if there was none").partitions.push(data);
    }
    if epoch == ENDS_SESSION {
        shares.end_session(&group, &member);
    }
    response
}

fn failed(error: ErrorCode, message: Option<&str>) -> ShareAcknowledgeResponse {
    ShareAcknowledgeResponse {
        error_code: error.code(),
        error_message: message.map(str::to_owned),
        ..Default::default()
    }
}
