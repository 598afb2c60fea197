//! TxnOffsetCommit: offsets that a transaction will commit. Durable as pending ones before the answer; nobody sees them
//! until the transaction is committed.
//!
//! - v2 adds leader epochs, v3 the member that commits, to be checked as in OffsetCommit (KIP-447). v4 adds
//!   TRANSACTION_ABORTABLE. v5 is the second version of the transaction protocol (KIP-890): the offsets become part of the
//!   transaction by being committed. For the versions before, it is checked that they were added.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::read_flushes::ReadFlushes;
use crate::broker::transactions::Knows;
use crate::broker::{Broker, groups};
use crate::coordinator::transactions::Producer;
use crate::coordinator::{Action, CommitPartition, CommitRequest, Reply};
use crate::protocol::ErrorCode;
use crate::protocol::messages::txn_offset_commit::{
    TxnOffsetCommitRequest, TxnOffsetCommitResponse, TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
};

pub(super) const HANDLER: Handler = serial!(TxnOffsetCommitRequest, handle);

async fn handle(broker: Arc<Broker>, context: Context, mut request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse {
    let topics = broker.topics();
    let mut response = TxnOffsetCommitResponse::default();
    let mut commits: Vec<(String, Vec<CommitPartition>)> = vec![];
    // Where the answer of each committed partition goes: topic and partition of the response.
    let mut slots = vec![];
    // What was read is flushed first, as in OffsetCommit; all at once.
    let mut flushes = ReadFlushes::default();
    for topic in &request.topics {
        let id = topics.by_name(&topic.name).map(|topic| topic.id).unwrap_or_default();
        for read in &topic.partitions {
            flushes.ask(&broker.store, id, read.partition_index, read.committed_offset);
        }
    }
    for (t, topic) in std::mem::take(&mut request.topics).into_iter().enumerate() {
        let known = topics.by_name(&topic.name).map_or(0, |topic| topic.partitions);
        let (mut committed, mut partitions) = (vec![], vec![]);
        for (p, partition) in topic.partitions.into_iter().enumerate() {
            let partition_index = partition.partition_index;
            let is_known = (0..known).contains(&partition_index);
            let is_flushed = flushes.next().await;
            if is_known && is_flushed {
                slots.push((t, p));
                committed.push(CommitPartition {
                    partition: partition_index,
                    offset: partition.committed_offset,
                    leader_epoch: partition.committed_leader_epoch,
                    timestamp_ms: -1,
                    metadata: partition.committed_metadata,
                });
            }
            let error = match (is_known, is_flushed) {
                (false, _) => ErrorCode::UnknownTopicOrPartition,
                (true, false) => ErrorCode::NotCoordinator,
                (true, true) => ErrorCode::None,
            };
            partitions.push(TxnOffsetCommitResponsePartition { partition_index, error_code: error.code() });
        }
        if !committed.is_empty() {
            commits.push((topic.name.clone(), committed));
        }
        response.topics.push(TxnOffsetCommitResponseTopic { name: topic.name, partitions });
    }
    if commits.is_empty() {
        return response;
    }
    let codes = match commit(&broker, &context, request, commits).await {
        Ok(codes) => codes,
        Err(code) => vec![code.code(); slots.len()],
    };
    for ((topic, partition), error_code) in slots.into_iter().zip(codes) {
        response.topics[topic].partitions[partition].error_code = error_code;
    }
    response
}

/// Gives a code for each partition, or one for all.
async fn commit(
    broker: &Arc<Broker>,
    context: &Context,
    request: TxnOffsetCommitRequest,
    topics: Vec<(String, Vec<CommitPartition>)>,
) -> Result<Vec<i16>, ErrorCode> {
    if request.group_id.is_empty() {
        return Err(ErrorCode::InvalidGroupId);
    }
    let transactions = broker.transactions();
    let transactional_id = request.transactional_id;
    let producer = Producer { id: request.producer_id, epoch: request.producer_epoch };
    let places = BTreeSet::from([transactions.offsets_place(&request.group_id)]);
    let knows = match context.version {
        ..4 => Knows::InvalidTxnState,
        4 => Knows::Abortable,
        5.. => Knows::Adding,
    };
    let is_checked = knows == Knows::Adding || broker.verifies_transactions();
    if is_checked {
        let patience = broker.transaction_patience();
        let refused = transactions.take_part(&transactional_id, producer, places.clone(), knows, patience).await;
        if let Some(code) = refused.into_values().next() {
            return Err(code);
        }
    }
    let commit = CommitRequest {
        group_id: request.group_id,
        member_id: request.member_id,
        group_instance_id: request.group_instance_id,
        generation_id: request.generation_id,
        retention_time_ms: -1,
        knows_group_id_not_found: false,
        topics,
    };
    let reply = broker
        .groups()
        .ask(|coordinator, now, token| {
            // Under the lock of the groups: whatever ends the transaction comes to them later than this.
            if is_checked && !transactions.is_open(&transactional_id, producer, &places) {
                let reply = Reply::Commit(Err(crate::coordinator::Error::TransactionOver));
                return vec![Action::Reply { token, reply }];
            }
            coordinator.commit_in_transaction(now, token, producer, commit)
        })
        .await;
    match reply {
        Some(Reply::Commit(Ok(outcomes))) => {
            let partitions = outcomes.into_iter().flat_map(|(_, partitions)| partitions);
            Ok(partitions.map(|(_, outcome)| groups::outcome_code(outcome)).collect())
        }
        Some(Reply::Commit(Err(error))) => Err(groups::error_code(error)),
        _ => Err(ErrorCode::CoordinatorNotAvailable),
    }
}
