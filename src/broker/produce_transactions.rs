//! What a produce with records of a transaction needs before anything of it is appended: that the partitions are part of
//! the transaction. In the second version of the protocol (version 12 of Produce and later) they become so here; before, it
//! is checked that the client has added them (KIP-890).

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::Broker;
use super::refusal::{self, Refusal};
use super::topics::{LEADER_EPOCH, is_internal};
use super::transactions::{Knows, Transactions};
use crate::coordinator::transactions::{Place, Producer};
use crate::protocol::ErrorCode;
use crate::protocol::messages::produce::ProduceRequest;
use crate::protocol::wire::Records;
use crate::record::{BatchHeader, CheckedBatch};
use crate::storage::log::{AppendError, Appended, InTransaction, PartitionLog, Standing};

/// The transaction that a produce belongs to.
#[derive(Debug)]
pub struct ProduceTransaction {
    transactions: Arc<Transactions>,
    transactional_id: String,
    producer: Producer,
    knows: Knows,
    /// Whether anybody is asked at all.
    is_checked: bool,
    refused: HashMap<Place, ErrorCode>,
}

/// The header of the first batch, if that is one of a transaction.
fn transactional_header(records: &Option<Records>) -> Option<BatchHeader> {
    let Some(Records::Bytes(bytes)) = records else { return None };
    BatchHeader::parse(bytes).ok().filter(BatchHeader::is_transactional)
}

impl ProduceTransaction {
    /// Looks for a transaction in a request and has its partitions be part of it. An error is about the whole request.
    pub async fn begin(
        broker: &Arc<Broker>,
        version: i16,
        request: &ProduceRequest,
    ) -> Result<Option<ProduceTransaction>, ErrorCode> {
        let mut producers = HashSet::new();
        let mut parts = vec![];
        for topic in &request.topic_data {
            for data in &topic.partition_data {
                let Some(header) = transactional_header(&data.records) else { continue };
                producers.insert((header.producer_id, header.producer_epoch));
                parts.push((topic, data.index));
            }
        }
        let Some(&(id, epoch)) = producers.iter().next() else { return Ok(None) };
        let Some(transactional_id) = &request.transactional_id else {
            return Err(ErrorCode::TransactionalIdAuthorizationFailed);
        };
        if producers.len() > 1 {
            return Err(ErrorCode::InvalidProducerIdMapping);
        }
        let knows = match version {
            ..11 => Knows::InvalidTxnState,
            11 => Knows::Abortable,
            12.. => Knows::Adding,
        };
        let mut transaction = ProduceTransaction {
            transactions: broker.transactions().clone(),
            transactional_id: transactional_id.clone(),
            producer: Producer { id, epoch },
            knows,
            is_checked: knows == Knows::Adding || broker.verifies_transactions(),
            refused: HashMap::new(),
        };
        if !transaction.is_checked {
            return Ok(Some(transaction));
        }
        let mut places = BTreeSet::new();
        for (topic, index) in parts {
            // What is not there, and what is internal, is refused when it is to be appended.
            let found = broker.topic_to_produce_to(version, &topic.name, topic.topic_id);
            let Some(topic) = found.ok().filter(|found| !is_internal(&found.topic.name)) else { continue };
            let Ok(log) = broker.partition(&topic, index).await else { continue };
            let place = (topic.topic.name.clone(), index);
            match log.standing(id, epoch) {
                Standing::Fenced => drop(transaction.refused.insert(place, ErrorCode::InvalidProducerEpoch)),
                // Once a batch is in the log, the others go with it.
                Standing::InTransaction => {}
                Standing::Free => drop(places.insert(place)),
            }
        }
        if !places.is_empty() {
            let patience = broker.transaction_patience();
            let asked =
                transaction.transactions.take_part(transactional_id, transaction.producer, places, knows, patience);
            transaction.refused.extend(asked.await);
        }
        Ok(Some(transaction))
    }

    /// Why nothing may be appended to a partition, if so.
    pub fn refusal(&self, log: &PartitionLog) -> Option<Refusal> {
        let code = *self.refused.get(&(log.topic().into(), log.partition()))?;
        // Older clients do not try again at what the coordinator answers, but do at this.
        let old = self.knows != Knows::Adding;
        Some(match code {
            ErrorCode::InvalidTxnState => {
                refusal::with_message(code, "Partition was not added to the transaction".to_owned())
            }
            ErrorCode::NotCoordinator => cannot_tell(code),
            ErrorCode::ConcurrentTransactions if old => cannot_tell(code),
            code => refusal::plain(code),
        })
    }

    /// Appends a batch that may be one of the transaction.
    pub fn append(&self, log: &PartitionLog, batch: CheckedBatch) -> Result<Appended, AppendError> {
        if !self.is_checked {
            return log.append(batch, LEADER_EPOCH);
        }
        let places = BTreeSet::from([(log.topic().into(), log.partition())]);
        let is_open = || self.transactions.is_open(&self.transactional_id, self.producer, &places);
        let rules = InTransaction { is_open: &is_open, starts_at_zero: self.knows == Knows::Adding };
        log.append_in_transaction(batch, LEADER_EPOCH, &rules)
    }
}

fn cannot_tell(code: ErrorCode) -> Refusal {
    let why = "Unable to verify the partition has been added to the transaction. Underlying error";
    refusal::with_message(ErrorCode::NotEnoughReplicas, format!("{why}: {}", code.name()))
}
