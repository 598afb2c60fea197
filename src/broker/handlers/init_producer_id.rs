//! InitProducerId: an id for an idempotent producer, never given twice; with a transactional id, the id and epoch with which
//! the producer speaks for it, and whoever did so before is fenced.
//!
//! - v3 lets a producer go on with the id it has and the next epoch (KIP-360). That is for transactional producers; an
//!   idempotent one that asks so gets a new id, as Kafka gives it.
//! - v4 adds PRODUCER_FENCED; older versions are told INVALID_PRODUCER_EPOCH.
//! - v6 lets a transaction be part of a commit in two phases (KIP-939), which `transaction.two.phase.commit.enable` allows;
//!   what is prepared cannot be kept, as in Kafka.
//! - Ids are handed out of a block that the catalog has made durable before.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::{Broker, transactions};
use crate::coordinator::transactions::{Error, InitRequest, Producer, Reply};
use crate::protocol::ErrorCode;
use crate::protocol::messages::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};

pub(super) const HANDLER: Handler = serial!(InitProducerIdRequest, handle);

const NONE: i64 = -1;

async fn handle(broker: Arc<Broker>, context: Context, request: InitProducerIdRequest) -> InitProducerIdResponse {
    let expected = match (request.producer_id, request.producer_epoch) {
        (NONE, -1) => None,
        (NONE, _) | (_, -1) => return failed(ErrorCode::InvalidRequest),
        (id, epoch) => Some(Producer { id, epoch }),
    };
    let Some(transactional_id) = request.transactional_id else { return idempotent(&broker).await };
    let init = InitRequest {
        transactional_id,
        timeout_ms: request.transaction_timeout_ms,
        expected,
        two_phase_commit: request.enable2_pc,
        keep_prepared: request.keep_prepared_txn,
    };
    let reply =
        broker.transactions().ask(|coordinator, now, token| coordinator.init_producer_id(now, token, init)).await;
    let result = match reply {
        Some(Reply::Init(result)) => result,
        _ => Err(Error::NotCoordinator),
    };
    match result {
        Ok(Producer { id, epoch }) => {
            InitProducerIdResponse { producer_id: id, producer_epoch: epoch, ..Default::default() }
        }
        Err(error) if context.version < 4 => failed(transactions::error_code_before_fencing(error)),
        Err(error) => failed(transactions::error_code(error)),
    }
}

async fn idempotent(broker: &Broker) -> InitProducerIdResponse {
    let (sender, given) = oneshot::channel();
    broker.store().catalog().producer_id(Box::new(move |result| drop(sender.send(result))));
    match given.await {
        Ok(Ok(producer_id)) => InitProducerIdResponse { producer_id, producer_epoch: 0, ..Default::default() },
        Ok(Err(error)) => {
            tracing::error!("no producer id can be given: {error}");
            failed(ErrorCode::CoordinatorNotAvailable)
        }
        Err(_) => failed(ErrorCode::CoordinatorNotAvailable),
    }
}

fn failed(error: ErrorCode) -> InitProducerIdResponse {
    InitProducerIdResponse { error_code: error.code(), producer_epoch: -1, ..Default::default() }
}
