//! Looking at transactional ids. What is shown is what is durable.

use std::sync::Arc;

use regex::Regex;

use super::error::Error;
use super::machine::TransactionCoordinator;
use super::metadata::{Metadata, State};

/// Which transactional ids to list.
#[derive(Debug, Default)]
pub struct Filter {
    /// `None` lets every state through.
    pub states: Option<Vec<State>>,
    /// Empty lets every producer through.
    pub producer_ids: Vec<i64>,
    /// Milliseconds since the start of the transaction, more than which it must have been open; negative for any.
    pub duration_ms: i64,
    /// What the whole of a transactional id must match.
    pub pattern: Option<Regex>,
}

/// A transactional id in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub transactional_id: Arc<str>,
    pub producer_id: i64,
    pub state: State,
}

impl TransactionCoordinator {
    pub fn describe(&self, transactional_id: &str) -> Result<&Metadata, Error> {
        if transactional_id.is_empty() {
            return Err(Error::InvalidRequest);
        }
        self.visible(transactional_id).ok_or(Error::TransactionalIdNotFound)
    }

    /// Sorted by transactional id.
    pub fn list(&self, filter: &Filter, now_ms: i64) -> Vec<Listed> {
        let passes = |id: &str, metadata: &Metadata| {
            filter.states.as_ref().is_none_or(|states| states.contains(&metadata.state))
                && (filter.producer_ids.is_empty() || filter.producer_ids.contains(&metadata.producer_id))
                && (filter.duration_ms < 0 || now_ms.saturating_sub(metadata.start_ms) > filter.duration_ms)
                && filter.pattern.as_ref().is_none_or(|pattern| pattern.is_match(id))
        };
        self.all_visible()
            .filter(|(id, metadata)| passes(id, metadata))
            .map(|(id, metadata)| Listed {
                transactional_id: id.clone(),
                producer_id: metadata.producer_id,
                state: metadata.state,
            })
            .collect()
    }
}
