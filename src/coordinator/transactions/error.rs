//! What the transaction coordinator refuses with, under Kafka's own names. The broker maps each to its code on the wire.

use thiserror::Error;

/// Why a request about a transaction was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Error {
    /// The change could not be made durable; the client finds the coordinator again and retries.
    #[error("NOT_COORDINATOR: the change could not be stored")]
    NotCoordinator,
    /// Something else of this transactional id is not over yet; the client retries.
    #[error("CONCURRENT_TRANSACTIONS: the transactional id has an operation under way")]
    ConcurrentTransactions,
    #[error("PRODUCER_FENCED: another producer has taken over, or the epoch is not the current one")]
    ProducerFenced,
    #[error("INVALID_PRODUCER_ID_MAPPING: the transactional id is not known or has another producer id")]
    InvalidProducerIdMapping,
    #[error("INVALID_TXN_STATE: the transaction is in no state for this")]
    InvalidTxnState,
    #[error("TRANSACTION_ABORTABLE: the partition is not part of the transaction")]
    TransactionAbortable,
    #[error("INVALID_REQUEST: the transactional id is empty")]
    InvalidRequest,
    #[error("INVALID_TRANSACTION_TIMEOUT: the timeout is not above 0 and up to transaction.max.timeout.ms")]
    InvalidTransactionTimeout,
    #[error("TRANSACTIONAL_ID_AUTHORIZATION_FAILED: transaction.two.phase.commit.enable is off")]
    TwoPhaseCommitDisabled,
    #[error("UNSUPPORTED_VERSION: a prepared transaction cannot be kept")]
    CannotKeepPrepared,
    #[error("TRANSACTIONAL_ID_NOT_FOUND: the transactional id is not known")]
    TransactionalIdNotFound,
    /// The producer says that it goes on with an epoch that it cannot have.
    #[error("UNKNOWN_SERVER_ERROR: the producer has no epochs left and asks to go on with another one")]
    EpochsExhausted,
}
