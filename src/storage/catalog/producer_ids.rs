//! Producer ids, each handed out once in the life of a data directory.
//!
//! They are taken from the catalog in blocks of [`BLOCK`]: the counter is durable past the block before the first id of
//! it is used, and what is left of a block when doze stops is skipped.

use std::collections::VecDeque;

use parking_lot::Mutex;
use redb::ReadableTable;

use super::codec::Malformed;
use super::error::{CatalogError, Failure};
use super::tables::META_NEXT_PRODUCER_ID;
use super::{Catalog, Mutation};
use crate::storage::Done;

/// How many ids are made durable at once, as in Kafka.
pub const BLOCK: i64 = 1000;

#[derive(Default)]
pub(super) struct ProducerIds(Mutex<State>);

#[derive(Default)]
struct State {
    /// The ids that may be handed out: from here...
    next: i64,
    /// ...up to here, which is where the durable counter stands.
    end: i64,
    fetching: bool,
    waiting: VecDeque<Done<Result<i64, CatalogError>>>,
}

impl ProducerIds {
    pub(super) fn new(next: i64) -> Self {
        ProducerIds(Mutex::new(State { next, end: next, ..State::default() }))
    }
}

/// Reads the counter from the `meta` table.
pub(super) fn next<T>(meta: &T) -> Result<i64, Failure>
where
    T: ReadableTable<&'static str, &'static [u8]>,
{
    let Some(value) = meta.get(META_NEXT_PRODUCER_ID)? else { return Ok(0) };
    let bytes = value.value().try_into().map_err(|_| Malformed::Short { what: "the producer-id counter" })?;
    Ok(i64::from_be_bytes(bytes))
}

impl Catalog {
    /// Hands out a producer id that was never handed out before, from 0 up. `done` runs at once unless a new block has to
    /// be made durable first.
    pub fn producer_id(&self, done: Done<Result<i64, CatalogError>>) {
        let mut state = self.shared.producer_ids.0.lock();
        if state.next < state.end && state.waiting.is_empty() {
            let id = state.next;
            state.next += 1;
            drop(state);
            return done(Ok(id));
        }
        state.waiting.push_back(done);
        if !state.fetching {
            state.fetching = true;
            let end = state.end;
            drop(state);
            self.fetch_producer_ids(end);
        }
    }

    fn fetch_producer_ids(&self, end: i64) {
        let catalog = self.clone();
        let to = end + BLOCK;
        self.commit(
            vec![Mutation::RaiseNextProducerId { to }],
            Box::new(move |result| catalog.producer_ids_fetched(to, result)),
        );
    }

    fn producer_ids_fetched(&self, to: i64, result: Result<(), CatalogError>) {
        let mut answers = Vec::new();
        let mut state = self.shared.producer_ids.0.lock();
        match result {
            Ok(()) => {
                state.end = to;
                while state.next < state.end
                    && let Some(done) = state.waiting.pop_front()
                {
                    answers.push((done, Ok(state.next)));
                    state.next += 1;
                }
            }
            Err(error) => answers.extend(state.waiting.drain(..).map(|done| (done, Err(error.clone())))),
        }
        state.fetching = !state.waiting.is_empty();
        let again = state.fetching;
        drop(state);
        for (done, answer) in answers {
            done(answer);
        }
        if again {
            self.fetch_producer_ids(to);
        }
    }
}
