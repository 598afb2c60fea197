//! ShareFetch: records for a member of a share group, and what it says of those that it got before (KIP-932).
//!
//! - v2 adds a mode in which `max_records` is a limit (KIP-1206) and renewals of locks (KIP-1222): a request that renews
//!   fetches nothing.
//! - A member has one session, opened with epoch 0 and ended with -1, which gives back what it holds.
//! - The answer to acknowledgements comes when they are durable, and the response waits for both.
//! - A client that had more than its quota is held back after its response (KIP-219), which has its records all the same:
//!   they are acquired.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, Pending, Reply, Start};
use crate::broker::shares::{Acknowledged, Fetched, Place, Want};
use crate::coordinator::Acknowledgement;
use crate::protocol::messages::share_fetch::{
    AcquiredRecords, PartitionData, ShareFetchRequest, ShareFetchResponse, ShareFetchableTopicResponse,
};
use crate::protocol::wire::Records;
use crate::protocol::{ApiKey, ErrorCode, frame};

pub(super) const HANDLER: Handler = Handler {
    api: ApiKey::ShareFetch,
    start: |broker, context, body| {
        let request: ShareFetchRequest = frame::decode(body, ApiKey::ShareFetch.version(context.version))?;
        // Serial, so that a connection has one fetch parked at most.
        Ok(Start::Pending(Pending::later(true, answer(broker, context, request))))
    },
};

/// The modes of acquiring records.
const BATCH_OPTIMIZED: i8 = 0;
const RECORD_LIMIT: i8 = 1;

type Refused = (ErrorCode, Option<&'static str>);

async fn answer(broker: Arc<Broker>, context: Context, request: ShareFetchRequest) -> Reply {
    match fetch(&broker, &context, request).await {
        Ok(mut response) => {
            let size = context.reply::<ShareFetchRequest>(&response).size_in_bytes().saturating_sub(4);
            response.throttle_time_ms = broker.quotas().fetched(context.client_id.as_deref(), size);
            context.reply::<ShareFetchRequest>(&response)
        }
        Err((error, message)) => context.reply::<ShareFetchRequest>(&ShareFetchResponse {
            error_code: error.code(),
            error_message: message.map(str::to_owned),
            ..Default::default()
        }),
    }
}

fn check(broker: &Broker, request: &ShareFetchRequest) -> Result<(), Refused> {
    let invalid = |message| Err((ErrorCode::InvalidRequest, Some(message)));
    let fetches = (request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms) != (0, 0, 0, 0);
    match request {
        _ if !broker.offers_share_groups() => Err((ErrorCode::UnsupportedVersion, None)),
        ShareFetchRequest { group_id: None, .. } => invalid("Invalid group id in the request."),
        ShareFetchRequest { member_id, .. } if !is_member_id(member_id.as_deref()) => {
            invalid("Invalid member id in the request.")
        }
        ShareFetchRequest { is_renew_ack: true, .. } if fetches => {
            invalid("maxBytes, minBytes, maxRecords and maxWaitMs must be set to 0, if isRenewAck is true.")
        }
        ShareFetchRequest { share_acquire_mode: ..BATCH_OPTIMIZED | 2.., .. } => invalid("Unknown share acquire mode."),
        _ => Ok(()),
    }
}

/// Whether a member can have this id: it is there, and not longer than a UUID in its longest form.
pub(super) fn is_member_id(id: Option<&str>) -> bool {
    id.is_some_and(|id| !id.is_empty() && id.encode_utf16().count() <= 36)
}

async fn fetch(
    broker: &Arc<Broker>,
    context: &Context,
    request: ShareFetchRequest,
) -> Result<ShareFetchResponse, Refused> {
    check(broker, &request)?;
    let (group, member) = (request.group_id.unwrap_or_default(), request.member_id.unwrap_or_default());
    let shares = broker.shares();
    let wait = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0)).min(broker.max_idle());
    let mut added: Vec<Place> = vec![];
    let mut acknowledgements = vec![];
    for topic in request.topics {
        for partition in topic.partitions {
            let place = (topic.topic_id, partition.partition_index);
            added.push(place);
            let batches = partition.acknowledgement_batches.into_iter().map(|batch| Acknowledgement {
                first: batch.first_offset,
                last: batch.last_offset,
                types: batch.acknowledge_types,
            });
            acknowledgements.push((place, batches.collect::<Vec<_>>()));
        }
    }
    let forgotten: Vec<Place> = request
        .forgotten_topics_data
        .iter()
        .flat_map(|topic| topic.partitions.iter().map(|partition| (topic.topic_id, *partition)))
        .collect();
    let acknowledges = acknowledgements.iter().any(|(_, batches)| !batches.is_empty());
    let epoch = request.share_session_epoch;
    let give_up = Instant::now() + wait;
    let session = loop {
        let freed = shares.sessions().freed();
        let begun =
            shares.sessions().begin(&group, &member, epoch, &added, &forgotten, acknowledges, context.client.id);
        match begun {
            Ok(session) => break session,
            // A client that is refused comes again at once, so it waits here, perhaps for a session of somebody else to end.
            Err(ErrorCode::ShareSessionLimitReached) if Instant::now() < give_up => {
                tokio::select! {
                    () = freed => {}
                    () = tokio::time::sleep_until(give_up) => {}
                    () = broker.stopping() => return Err((ErrorCode::ShareSessionLimitReached, None)),
                }
            }
            Err(error) => return Err((error, None)),
        }
    };
    let acknowledging = acknowledges
        .then(|| shares.acknowledge(broker, &group, &member, acknowledgements, context.version, request.is_renew_ack));
    let mut response =
        ShareFetchResponse { acquisition_lock_timeout_ms: shares.config(&group).lock_ms(), ..Default::default() };
    if !session.is_final && !request.is_renew_ack {
        let max_bytes = usize::try_from(request.max_bytes).unwrap_or(0).min(broker.fetch_max_bytes());
        let max_bytes = max_bytes.min(broker.quotas().max_fetch_bytes(context.client_id.as_deref()));
        let want = Want {
            group: group.as_str().into(),
            member: member.as_str().into(),
            record_limit: request.share_acquire_mode == RECORD_LIMIT,
            max_records: request.max_records,
            batch_size: request.batch_size,
            min_bytes: usize::try_from(request.min_bytes).unwrap_or(0).min(max_bytes),
            max_bytes,
            wait,
        };
        for fetched in shares.fetch(broker, &want, &session.places).await {
            let (place, data) = partition_data(fetched);
            let news = shares.sessions().note(&group, &member, place, !data.records.is_empty(), data.error_code != 0);
            if news || !session.incremental {
                topic_of(&mut response, place).partitions.push(data);
            }
        }
    }
    if let Some(acknowledging) = acknowledging {
        acknowledging.await.into_iter().for_each(|acknowledged| merge(&mut response, acknowledged));
    }
    if session.is_final {
        shares.end_session(&group, &member);
    }
    Ok(response)
}

fn partition_data(fetched: Fetched) -> (Place, PartitionData) {
    let partition_index = fetched.place.1;
    let data = match fetched.result {
        Ok((acquired, range)) => PartitionData {
            partition_index,
            records: range.map_or_else(Records::default, Records::File),
            acquired_records: acquired
                .into_iter()
                .map(|got| AcquiredRecords {
                    first_offset: got.first,
                    last_offset: got.last,
                    delivery_count: i16::try_from(got.deliveries).unwrap_or(i16::MAX),
                })
                .collect(),
            ..Default::default()
        },
        Err(failed) => PartitionData {
            partition_index,
            error_code: failed.code.code(),
            error_message: failed.message,
            ..Default::default()
        },
    };
    (fetched.place, data)
}

fn topic_of(response: &mut ShareFetchResponse, place: Place) -> &mut ShareFetchableTopicResponse {
    let at = response.responses.iter().position(|topic| topic.topic_id == place.0).unwrap_or_else(|| {
        response.responses.push(ShareFetchableTopicResponse { topic_id: place.0, partitions: vec![] });
        response.responses.len() - 1
    });
    &mut response.responses[at]
}

/// Says how acknowledgements went, beside what was fetched from the partition.
fn merge(response: &mut ShareFetchResponse, (place, outcome): Acknowledged) {
    let partitions = &mut topic_of(response, place).partitions;
    let at = partitions.iter().position(|data| data.partition_index == place.1).unwrap_or_else(|| {
        partitions.push(PartitionData { partition_index: place.1, ..Default::default() });
        partitions.len() - 1
    });
    if let Err(error) = outcome {
        partitions[at].acknowledge_error_code = error.code.code();
        partitions[at].acknowledge_error_message = error.message;
    }
}
