//! AddOffsetsToTxn: the offsets of a group become part of a transaction.
//!
//! - v2 adds PRODUCER_FENCED; older versions are told INVALID_PRODUCER_EPOCH.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::{Broker, transactions};
use crate::coordinator::transactions::{AddRequest, Error, Producer, Reply, Version};
use crate::protocol::messages::add_offsets_to_txn::{AddOffsetsToTxnRequest, AddOffsetsToTxnResponse};

pub(super) const HANDLER: Handler = serial!(AddOffsetsToTxnRequest, handle);

async fn handle(broker: Arc<Broker>, context: Context, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse {
    let add = AddRequest {
        transactional_id: request.transactional_id,
        producer: Producer { id: request.producer_id, epoch: request.producer_epoch },
        places: BTreeSet::from([broker.transactions().offsets_place(&request.group_id)]),
        version: Version::V1,
    };
    let reply = broker.transactions().ask(|coordinator, now, token| coordinator.add(now, token, &add)).await;
    let result = match reply {
        Some(Reply::Add(result)) => result,
        _ => Err(Error::NotCoordinator),
    };
    let code = |error| match context.version {
        ..2 => transactions::error_code_before_fencing(error),
        _ => transactions::error_code(error),
    };
    AddOffsetsToTxnResponse { error_code: transactions::code_of(result.map_err(code)), ..Default::default() }
}
