//! EndTxn: a transaction is committed or aborted. Answered when that is decided durably; the markers are written then, and
//! until they are there the transactional id answers CONCURRENT_TRANSACTIONS.
//!
//! - v2 adds PRODUCER_FENCED; older versions are told INVALID_PRODUCER_EPOCH. v5 is the second version of the transaction
//!   protocol (KIP-890): the producer is given another epoch, or another id, for its next transaction.

use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::{Broker, transactions};
use crate::coordinator::transactions::{EndRequest, Error, Producer, Reply, Version};
use crate::protocol::messages::end_txn::{EndTxnRequest, EndTxnResponse};

pub(super) const HANDLER: Handler = serial!(EndTxnRequest, handle);

async fn handle(broker: Arc<Broker>, context: Context, request: EndTxnRequest) -> EndTxnResponse {
    let end = EndRequest {
        transactional_id: request.transactional_id,
        producer: Producer { id: request.producer_id, epoch: request.producer_epoch },
        committed: request.committed,
        version: if context.version > 4 { Version::V2 } else { Version::V1 },
    };
    let reply = broker.transactions().ask(|coordinator, now, token| coordinator.end(now, token, &end)).await;
    let result = match reply {
        Some(Reply::End(result)) => result,
        _ => Err(Error::NotCoordinator),
    };
    let code = |error| match context.version {
        ..2 => transactions::error_code_before_fencing(error),
        _ => transactions::error_code(error),
    };
    let result = result.map_err(code);
    let next = result.ok().flatten();
    EndTxnResponse {
        error_code: transactions::code_of(result),
        producer_id: next.map_or(-1, |producer| producer.id),
        producer_epoch: next.map_or(-1, |producer| producer.epoch),
        ..Default::default()
    }
}
