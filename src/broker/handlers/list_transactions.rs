//! ListTransactions: the transactional ids that are known (KIP-664).
//!
//! - v1 asks for those that have been open for long, v2 for those that match a pattern. Patterns are in the syntax of the
//!   `regex` crate, which has no look-around and no back-references; one that does not read is refused.

use std::sync::Arc;

use regex::Regex;

use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::coordinator::transactions::{Filter, Listed, State};
use crate::protocol::ErrorCode;
use crate::protocol::messages::list_transactions::{
    ListTransactionsRequest, ListTransactionsResponse, TransactionState,
};

pub(super) const HANDLER: Handler = serial!(ListTransactionsRequest, handle);

/// States that Kafka knows and that no transactional id is ever seen in.
const UNSEEN: [&str; 2] = ["Dead", "PrepareEpochFence"];

async fn handle(broker: Arc<Broker>, _: Context, request: ListTransactionsRequest) -> ListTransactionsResponse {
    let mut response = ListTransactionsResponse::default();
    let mut states = vec![];
    let is_filtered = !request.state_filters.is_empty();
    for name in request.state_filters {
        match State::ALL.into_iter().find(|state| state.name() == name) {
            Some(state) => states.push(state),
            None if UNSEEN.contains(&name.as_str()) => {}
            None => response.unknown_state_filters.push(name),
        }
    }
    let pattern = request.transactional_id_pattern.filter(|pattern| !pattern.is_empty());
    let pattern = match pattern.map(|pattern| Regex::new(&format!("^(?:{pattern})$"))).transpose() {
        Ok(pattern) => pattern,
        Err(error) => {
            tracing::debug!("a pattern for transactional ids cannot be read: {error}");
            response.error_code = ErrorCode::InvalidRegularExpression.code();
            return response;
        }
    };
    let filter = Filter {
        states: is_filtered.then_some(states),
        producer_ids: request.producer_id_filters,
        duration_ms: request.duration_filter,
        pattern,
    };
    let listed = broker.transactions().with(|coordinator, now| coordinator.list(&filter, now.wall_ms));
    let state = |Listed { transactional_id, producer_id, state }| TransactionState {
        transactional_id: transactional_id.to_string(),
        producer_id,
        transaction_state: state.name().into(),
    };
    response.transaction_states = listed.into_iter().map(state).collect();
    response
}
