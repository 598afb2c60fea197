//! InitializeShareGroupState, ReadShareGroupState, WriteShareGroupState, DeleteShareGroupState and ReadShareGroupStateSummary:
//! what the leader of a partition asks of the coordinator that keeps the state of share groups (KIP-932). Here both are in one
//! broker and need no messages; these are for others who look at the state or change it.
//!
//! - WriteShareGroupState v1 and ReadShareGroupStateSummary v1 add the number of records that are done with (KIP-1226).
//! - A change is durable when it is answered. Whoever hands out the records of the partition goes on as before; the state
//!   counts when they are read in again, and writes that its epochs fence fail.
//! - A request without a group, or without partitions, is answered with nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::shares::{ChangeError, Place};
use crate::coordinator::{ShareState, StateChange, StateRefused, StateWrite, Stretch};
use crate::protocol::messages::delete_share_group_state::{
    self as delete_state, DeleteShareGroupStateRequest, DeleteShareGroupStateResponse, DeleteStateResult,
};
use crate::protocol::messages::initialize_share_group_state::{
    self as initialize_state, InitializeShareGroupStateRequest, InitializeShareGroupStateResponse,
    InitializeStateResult,
};
use crate::protocol::messages::read_share_group_state::{
    self as read_state, ReadShareGroupStateRequest, ReadShareGroupStateResponse, ReadStateResult,
};
use crate::protocol::messages::read_share_group_state_summary::{
    self as summary, ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryResponse, ReadStateSummaryResult,
};
use crate::protocol::messages::write_share_group_state::{
    self as write_state, StateBatch, WriteShareGroupStateRequest, WriteShareGroupStateResponse, WriteStateResult,
};
use crate::protocol::{ErrorCode, Uuid};

pub(super) const INITIALIZE: Handler = serial!(InitializeShareGroupStateRequest, initialize);
pub(super) const READ: Handler = serial!(ReadShareGroupStateRequest, read);
pub(super) const WRITE: Handler = serial!(WriteShareGroupStateRequest, write);
pub(super) const DELETE: Handler = serial!(DeleteShareGroupStateRequest, delete);
pub(super) const SUMMARIZE: Handler = serial!(ReadShareGroupStateSummaryRequest, summarize);

/// What is answered of partitions, by topic. Of one that is named twice the last answer counts.
type Results<T> = BTreeMap<Uuid, BTreeMap<i32, T>>;

fn listed<T, R>(results: Results<T>, result: impl Fn(Uuid, Vec<T>) -> R) -> Vec<R> {
    results.into_iter().map(|(topic, partitions)| result(topic, partitions.into_values().collect())).collect()
}

/// A code, and what there is to say of it.
#[derive(Default)]
struct Refusal {
    code: i16,
    message: Option<String>,
}

impl Refusal {
    fn new(code: ErrorCode, message: impl ToString) -> Self {
        Refusal { code: code.code(), message: Some(message.to_string()) }
    }
}

impl From<ChangeError> for Refusal {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::NotStored => {
                Refusal::new(ErrorCode::CoordinatorNotAvailable, "The state could not be read or stored.")
            }
            ChangeError::Refused(why) => {
                let code = match why {
                    StateRefused::FencedLeaderEpoch => ErrorCode::FencedLeaderEpoch,
                    StateRefused::FencedStateEpoch => ErrorCode::FencedStateEpoch,
                    StateRefused::NotReadable | StateRefused::NotWritable | StateRefused::Nonsense => {
                        ErrorCode::InvalidRequest
                    }
                };
                Refusal::new(code, why)
            }
        }
    }
}

/// Whether there is such a partition.
fn check(broker: &Broker, (topic, partition): Place) -> Result<(), Refusal> {
    if partition < 0 {
        return Err(Refusal::new(ErrorCode::InvalidRequest, "The partition id cannot be a negative number."));
    }
    match broker.topic_by_id(topic) {
        Ok(found) if partition < found.topic.partitions => Ok(()),
        _ => {
            let message = "This server does not host this topic-partition.";
            Err(Refusal::new(ErrorCode::UnknownTopicOrPartition, message))
        }
    }
}

async fn change(
    broker: &Arc<Broker>,
    group: &str,
    place: Place,
    change: StateChange,
) -> Result<Option<ShareState>, Refusal> {
    check(broker, place)?;
    Ok(broker.shares().change_state(group, place, change).await?)
}

/// Like [`change`]; of a partition that is not there nothing can be initialized.
async fn change_initialized(
    broker: &Arc<Broker>,
    group: &str,
    place: Place,
    wanted: StateChange,
    otherwise: StateRefused,
) -> Result<Option<ShareState>, Refusal> {
    match check(broker, place) {
        Ok(()) => change(broker, group, place, wanted).await,
        Err(refusal) if refusal.code == ErrorCode::InvalidRequest.code() => Err(refusal),
        Err(_) => Err(ChangeError::Refused(otherwise).into()),
    }
}

async fn initialize(
    broker: Arc<Broker>,
    _: Context,
    request: InitializeShareGroupStateRequest,
) -> InitializeShareGroupStateResponse {
    let mut results: Results<initialize_state::PartitionResult> = BTreeMap::new();
    if request.group_id.is_empty() {
        return InitializeShareGroupStateResponse::default();
    }
    for topic in request.topics {
        for asked in topic.partitions {
            let place = (topic.topic_id, asked.partition);
            let wanted = StateChange::Initialize { state_epoch: asked.state_epoch, start: asked.start_offset };
            let told = change(&broker, &request.group_id, place, wanted).await;
            let Refusal { code, message } = told.err().unwrap_or_default();
            let result = initialize_state::PartitionResult {
                partition: asked.partition,
                error_code: code,
                error_message: message,
            };
            results.entry(topic.topic_id).or_default().insert(asked.partition, result);
        }
    }
    InitializeShareGroupStateResponse {
        results: listed(results, |topic_id, partitions| InitializeStateResult { topic_id, partitions }),
    }
}

async fn read(broker: Arc<Broker>, _: Context, request: ReadShareGroupStateRequest) -> ReadShareGroupStateResponse {
    let mut results: Results<read_state::PartitionResult> = BTreeMap::new();
    if request.group_id.is_empty() || request.topics.iter().any(|topic| topic.partitions.is_empty()) {
        return ReadShareGroupStateResponse::default();
    }
    for topic in request.topics {
        for asked in topic.partitions {
            let place = (topic.topic_id, asked.partition);
            let wanted = StateChange::Read { leader_epoch: asked.leader_epoch };
            let told = change_initialized(&broker, &request.group_id, place, wanted, StateRefused::NotReadable).await;
            let result = match told {
                Ok(Some(state)) => readable(asked.partition, &state),
                Ok(None) => read_state::PartitionResult { partition: asked.partition, ..Default::default() },
                Err(Refusal { code, message }) => read_state::PartitionResult {
                    partition: asked.partition,
                    error_code: code,
                    error_message: message,
                    ..Default::default()
                },
            };
            results.entry(topic.topic_id).or_default().insert(asked.partition, result);
        }
    }
    ReadShareGroupStateResponse {
        results: listed(results, |topic_id, partitions| ReadStateResult { topic_id, partitions }),
    }
}

fn readable(partition: i32, state: &ShareState) -> read_state::PartitionResult {
    let batch = |stretch: &Stretch| read_state::StateBatch {
        first_offset: stretch.first,
        last_offset: stretch.last,
        delivery_state: stretch.state as i8,
        delivery_count: i16::try_from(stretch.deliveries).unwrap_or(i16::MAX),
    };
    read_state::PartitionResult {
        partition,
        state_epoch: state.state_epoch(),
        start_offset: state.start_offset().unwrap_or(ShareState::NO_START),
        state_batches: state.stretches().iter().map(batch).collect(),
        ..Default::default()
    }
}

async fn write(broker: Arc<Broker>, _: Context, request: WriteShareGroupStateRequest) -> WriteShareGroupStateResponse {
    let mut results: Results<write_state::PartitionResult> = BTreeMap::new();
    if request.group_id.is_empty() || request.topics.iter().any(|topic| topic.partitions.is_empty()) {
        return WriteShareGroupStateResponse::default();
    }
    for topic in request.topics {
        for asked in topic.partitions {
            let (partition, place) = (asked.partition, (topic.topic_id, asked.partition));
            let wanted = StateChange::Write(StateWrite {
                state_epoch: asked.state_epoch,
                leader_epoch: asked.leader_epoch,
                start: asked.start_offset,
                done: asked.delivery_complete_count,
                stretches: asked.state_batches.iter().map(stretch).collect(),
            });
            let told = change_initialized(&broker, &request.group_id, place, wanted, StateRefused::NotWritable).await;
            let Refusal { code, message } = told.err().unwrap_or_default();
            let result = write_state::PartitionResult { partition, error_code: code, error_message: message };
            results.entry(topic.topic_id).or_default().insert(partition, result);
        }
    }
    WriteShareGroupStateResponse {
        results: listed(results, |topic_id, partitions| WriteStateResult { topic_id, partitions }),
    }
}

fn stretch(batch: &StateBatch) -> Stretch {
    Stretch {
        first: batch.first_offset,
        last: batch.last_offset,
        state: batch.delivery_state as u8,
        deliveries: i32::from(batch.delivery_count),
    }
}

async fn delete(
    broker: Arc<Broker>,
    _: Context,
    request: DeleteShareGroupStateRequest,
) -> DeleteShareGroupStateResponse {
    let mut results: Results<delete_state::PartitionResult> = BTreeMap::new();
    if request.group_id.is_empty() || request.topics.iter().any(|topic| topic.partitions.is_empty()) {
        return DeleteShareGroupStateResponse::default();
    }
    for topic in request.topics {
        for asked in topic.partitions {
            let (partition, place) = (asked.partition, (topic.topic_id, asked.partition));
            let told = change(&broker, &request.group_id, place, StateChange::Delete).await;
            let Refusal { code, message } = told.err().unwrap_or_default();
            let result = delete_state::PartitionResult { partition, error_code: code, error_message: message };
            results.entry(topic.topic_id).or_default().insert(partition, result);
        }
    }
    DeleteShareGroupStateResponse {
        results: listed(results, |topic_id, partitions| DeleteStateResult { topic_id, partitions }),
    }
}

async fn summarize(
    broker: Arc<Broker>,
    _: Context,
    request: ReadShareGroupStateSummaryRequest,
) -> ReadShareGroupStateSummaryResponse {
    let mut results: Results<summary::PartitionResult> = BTreeMap::new();
    if request.group_id.is_empty() || request.topics.iter().any(|topic| topic.partitions.is_empty()) {
        return ReadShareGroupStateSummaryResponse::default();
    }
    for topic in request.topics {
        for asked in topic.partitions {
            let place = (topic.topic_id, asked.partition);
            let result =
                summary_of(&broker, &request.group_id, place).await.unwrap_or_else(|Refusal { code, message }| {
                    summary::PartitionResult {
                        partition: asked.partition,
                        error_code: code,
                        error_message: message,
                        ..Default::default()
                    }
                });
            results.entry(topic.topic_id).or_default().insert(asked.partition, result);
        }
    }
    ReadShareGroupStateSummaryResponse {
        results: listed(results, |topic_id, partitions| ReadStateSummaryResult { topic_id, partitions }),
    }
}

async fn summary_of(broker: &Broker, group: &str, place: Place) -> Result<summary::PartitionResult, Refusal> {
    check(broker, place)?;
    let state = broker.shares().stored_state(group, place).await.map_err(|_| ChangeError::NotStored)?;
    // Of a partition that is not initialized, as of one that nobody has fetched from.
    let state = state.unwrap_or(ShareState::new(0, ShareState::NO_START));
    Ok(summary::PartitionResult {
        partition: place.1,
        state_epoch: state.state_epoch(),
        leader_epoch: state.leader_epoch(),
        start_offset: state.start_offset().unwrap_or(ShareState::NO_START),
        delivery_complete_count: state.done().unwrap_or(-1),
        ..Default::default()
    })
}
