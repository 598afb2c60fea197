//! The clients: one file a kind.

mod admin;
mod classic_group;
mod consumer_group;
mod produce;
mod producer;
mod reader;
pub mod share_admin;
pub mod share_group;
pub mod standing;
pub mod streams_group;
mod transactional;

use std::future::Future;
use std::pin::Pin;

use doze::protocol::{ErrorCode, Uuid};
use doze::sys::sim::Prng;

use crate::net::Connection;

pub use admin::{config_keys, make_stable_topics, policy_of};
pub use transactional::{TRANSACTIONAL, end_what_is_open};

/// What a client does in one life of the broker.
pub type Work<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A client. It outlives the broker: what it has no answer for when a life ends it knows of in the next one. Its work is
/// dropped wherever it waits, so whatever it sends is noted, in itself and in the model, before it waits for the answer.
pub trait Client {
    fn name(&self) -> &str;

    /// Makes requests until it is dropped.
    fn live<'a>(&'a mut self, connection: &'a Connection) -> Work<'a>;
}

/// The clients of a history.
pub fn draw(prng: &mut Prng) -> Vec<Box<dyn Client>> {
    let mut clients: Vec<Box<dyn Client>> = vec![Box::new(producer::Producer::new("plain-0", false))];
    if prng.chance(4, 5) {
        clients.push(Box::new(producer::Producer::new("idempotent-0", true)));
    }
    if prng.chance(1, 4) {
        clients.push(Box::new(producer::Producer::new("idempotent-1", true)));
    }
    for n in 0..prng.below(3) {
        clients.push(Box::new(transactional::Transactional::new(n)));
    }
    for n in 0..prng.below(3) {
        clients.push(Box::new(reader::Reader::new(n)));
    }
    if prng.chance(1, 2) {
        clients.push(Box::new(admin::Admin::new()));
    }
    match prng.below(12) {
        0..2 => (0..2).for_each(|n| clients.push(Box::new(classic_group::Member::new(n)))),
        2..4 => (0..2).for_each(|n| clients.push(Box::new(consumer_group::Member::new(n)))),
        4..8 => {
            let members = prng.between(1, share_group::MOST_MEMBERS);
            (0..members).for_each(|n| clients.push(Box::new(share_group::Member::new(n))));
            if prng.chance(1, 2) {
                clients.push(Box::new(share_admin::ShareAdmin::default()));
            }
        }
        8..11 => (0..prng.between(1, 3)).for_each(|n| clients.push(Box::new(streams_group::Member::new(n)))),
        _ => {}
    }
    clients
}

/// One of the partitions that there are, by topic id, with its topic's name.
fn draw_partition(connection: &Connection, wanted: impl Fn(&str) -> bool) -> Option<(String, Uuid, i32)> {
    let model = connection.world.model.borrow();
    let topics: Vec<(&String, Uuid, i32)> = model
        .topics
        .keys()
        .filter(|name| wanted(name))
        .filter_map(|name| model.id_of(name).map(|(id, partitions)| (name, id, partitions)))
        .collect();
    if topics.is_empty() {
        return None;
    }
    let (name, id, partitions) = *connection.draw(|prng| prng.pick(&topics));
    let partition = connection.draw(|prng| prng.below(partitions as u64)) as i32;
    Some((name.clone(), id, partition))
}

fn error(code: i16) -> ErrorCode {
    ErrorCode::from_code(code).unwrap_or(ErrorCode::UnknownServerError)
}

/// Whether an error says nothing of what came of a request, or is the disk's.
fn is_of_the_moment(error: ErrorCode) -> bool {
    matches!(
        error,
        ErrorCode::KafkaStorageError
            | ErrorCode::UnknownServerError
            | ErrorCode::NotCoordinator
            | ErrorCode::CoordinatorNotAvailable
            | ErrorCode::RequestTimedOut
    )
}
