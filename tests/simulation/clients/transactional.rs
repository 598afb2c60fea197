//! Producers with transactions: they commit, abort, let the timeout pass, or vanish and come back.

use std::collections::BTreeMap;
use std::time::Duration;

use doze::protocol::messages::end_txn::{EndTxnRequest, EndTxnResponse};
use doze::protocol::messages::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};
use doze::protocol::messages::txn_offset_commit::{
    TxnOffsetCommitRequest, TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use doze::protocol::{ErrorCode, Uuid};
use doze::record::BatchOptions;

use super::admin::COMPACTED;
use super::produce::{Batch, Produced, produce};
use super::{Client, Work, draw_partition, error, is_of_the_moment};
use crate::model::{End, OffsetKey};
use crate::net::Connection;
use crate::register::WriteId;

/// How often a request is made before a transaction is given up.
const ATTEMPTS: u32 = 4;
/// Milliseconds; short, so that some transactions time out.
const TIMEOUT_MS: i32 = 700;

/// The topics that transactions write to.
pub const TRANSACTIONAL: [&str; 2] = ["keep", COMPACTED];

pub struct Transactional {
    name: String,
    /// Id and epoch.
    producer: Option<(i64, i16)>,
    next: BTreeMap<(Uuid, i32), i32>,
    /// The transaction whose end was asked for and is not known, with what it was to be.
    ending: Option<Ending>,
}

#[derive(Clone)]
struct Ending {
    number: u64,
    committed: bool,
    /// The offset that it commits.
    offset: Option<(OffsetKey, WriteId)>,
}

impl Transactional {
    pub fn new(n: u64) -> Self {
        Transactional { name: format!("tx-{n}"), producer: None, next: BTreeMap::new(), ending: None }
    }

    /// From here on it starts anew, with another epoch.
    fn forget(&mut self) {
        self.producer = None;
        self.next.clear();
    }

    async fn step(&mut self, connection: &Connection) {
        let world = &connection.world;
        if let Some(ending) = self.ending.clone() {
            // The process died, or the answers got lost; sometimes the producer dies too, and leaves it at that.
            if self.producer.is_some() && connection.draw(|prng| prng.chance(3, 4)) {
                return self.end(connection, ending, true).await;
            }
            self.given_up(connection, &ending);
        }
        if self.producer.is_none() {
            return self.init(connection).await;
        }
        let number = world.model.borrow_mut().number();
        world.model.borrow_mut().transactions.insert(number, End::NeverCommitted);
        connection.note(format_args!("begins transaction {number}"));
        for _ in 0..connection.draw(|prng| prng.between(1, 3)) {
            if !self.produce(connection, number).await {
                return self.forget();
            }
            connection.think().await;
        }
        let mut offset = None;
        if connection.draw(|prng| prng.chance(1, 3)) {
            match self.commit_offset(connection, number).await {
                Some(key) => offset = Some(key),
                None => return self.forget(),
            }
        }
        let committed = match connection.draw(|prng| prng.below(20)) {
            0..12 => true,
            12..17 => false,
            17..19 => {
                connection.note(format_args!("vanishes in transaction {number}"));
                world.count("transactions left open by their producer");
                return self.forget();
            }
            _ => {
                connection.note(format_args!("lets the time of transaction {number} pass"));
                tokio::time::sleep(Duration::from_millis(TIMEOUT_MS as u64 + 300)).await;
                connection.draw(|prng| prng.chance(1, 2))
            }
        };
        let mut ending = Ending { number, committed, offset: None };
        if committed {
            let now = world.now();
            let mut model = world.model.borrow_mut();
            ending.offset = offset.map(|key| {
                let write = model.offset(key.clone()).begin(number as i64, now);
                (key, write)
            });
            model.transactions.insert(number, End::Asked);
        }
        self.end(connection, ending, false).await;
    }

    async fn init(&mut self, connection: &Connection) {
        let Some(answer) = init(connection, &self.name).await else { return };
        if error(answer.error_code) == ErrorCode::None {
            connection.note(format_args!("has producer {} epoch {}", answer.producer_id, answer.producer_epoch));
            self.forget();
            self.producer = Some((answer.producer_id, answer.producer_epoch));
        }
    }

    /// Answers whether it was acknowledged.
    async fn produce(&mut self, connection: &Connection, number: u64) -> bool {
        let Some((producer_id, producer_epoch)) = self.producer else { return false };
        let Some((name, id, partition)) = draw_partition(connection, |name| TRANSACTIONAL.contains(&name)) else {
            return false;
        };
        let next = self.next.entry((id, partition)).or_default();
        let options = BatchOptions {
            producer_id,
            producer_epoch,
            base_sequence: *next,
            transactional: true,
            ..BatchOptions::default()
        };
        let batch = Batch::new(connection, (&name, id, partition), Some(number), options);
        *next += batch.ids.len() as i32;
        let mut sent_before = false;
        for _ in 0..ATTEMPTS {
            match produce(connection, -1, Some(&self.name), &batch, sent_before).await {
                Produced::At(_) => return true,
                Produced::Unanswered => sent_before = true,
                Produced::Unknown(ErrorCode::ConcurrentTransactions)
                | Produced::Refused(ErrorCode::ConcurrentTransactions) => {}
                Produced::Unknown(error) if is_of_the_moment(error) => sent_before = true,
                Produced::Unknown(_) | Produced::Refused(_) => return false,
            }
            connection.think().await;
        }
        false
    }

    /// Answers what it is kept under, if it was taken.
    async fn commit_offset(&mut self, connection: &Connection, number: u64) -> Option<OffsetKey> {
        let (producer_id, producer_epoch) = self.producer?;
        let key = (format!("group-of-{}", self.name), "keep".to_owned(), 0);
        let request = TxnOffsetCommitRequest {
            transactional_id: self.name.clone(),
            group_id: key.0.clone(),
            producer_id,
            producer_epoch,
            topics: vec![TxnOffsetCommitRequestTopic {
                name: key.1.clone(),
                partitions: vec![TxnOffsetCommitRequestPartition {
                    committed_offset: number as i64,
                    ..Default::default()
                }],
            }],
            ..Default::default()
        };
        for _ in 0..ATTEMPTS {
            if let Some(answer) = connection.call(5, &request).await {
                match error(answer.topics[0].partitions[0].error_code) {
                    ErrorCode::None => return Some(key),
                    ErrorCode::ConcurrentTransactions => {}
                    error if is_of_the_moment(error) => {}
                    _ => return None,
                }
            }
            connection.think().await;
        }
        None
    }

    async fn end(&mut self, connection: &Connection, ending: Ending, mut asked_before: bool) {
        let world = &connection.world;
        let Some((producer_id, producer_epoch)) = self.producer else { return };
        self.ending = Some(ending.clone());
        let Ending { number, committed, .. } = ending;
        let request = EndTxnRequest { transactional_id: self.name.clone(), producer_id, producer_epoch, committed };
        for _ in 0..ATTEMPTS {
            let verb = if committed { "commit" } else { "abort" };
            connection.note(format_args!("asks to {verb} transaction {number}"));
            let answer: Option<EndTxnResponse> = connection.call(5, &request).await;
            let code = answer.as_ref().map(|answer| error(answer.error_code));
            connection.note(format_args!("the end of transaction {number}: {code:?}"));
            match code {
                Some(ErrorCode::None) => {
                    world.count(if committed { "transactions committed" } else { "transactions aborted" });
                    let answer = answer.expect("it has a code");
                    self.ended(connection, &ending);
                    self.next.clear();
                    self.producer = Some((answer.producer_id, answer.producer_epoch));
                    return;
                }
                Some(ErrorCode::ConcurrentTransactions) => {}
                None => asked_before = true,
                Some(error) if is_of_the_moment(error) => asked_before = true,
                Some(_) => {
                    if asked_before {
                        self.given_up(connection, &ending);
                    } else {
                        self.refused(connection, &ending);
                    }
                    return self.forget();
                }
            }
            connection.think().await;
        }
        // It is asked again at the next step.
    }

    /// The end was acknowledged.
    fn ended(&mut self, connection: &Connection, ending: &Ending) {
        self.ending = None;
        let world = &connection.world;
        if !ending.committed {
            return;
        }
        let now = world.now();
        let mut model = world.model.borrow_mut();
        let before = model.transactions.insert(ending.number, End::Committed);
        if let Some((key, write)) = &ending.offset {
            model.offset(key.clone()).acknowledged(*write, now);
        }
        drop(model);
        if before == Some(End::NeverCommitted) {
            world.violate(format!("transaction {} is committed, and was shown as aborted", ending.number));
        }
    }

    /// It was not committed, for certain.
    fn refused(&mut self, connection: &Connection, ending: &Ending) {
        self.ending = None;
        let world = &connection.world;
        world.count("ends of transactions refused");
        let mut model = world.model.borrow_mut();
        let before = model.transactions.insert(ending.number, End::NeverCommitted);
        if let Some((key, write)) = &ending.offset {
            model.offset(key.clone()).refused(*write);
        }
        drop(model);
        if before == Some(End::Committed) {
            world.violate(format!("transaction {} was shown as committed, and its commit is refused", ending.number));
        }
    }

    /// Nobody will ever be told.
    fn given_up(&mut self, connection: &Connection, ending: &Ending) {
        self.ending = None;
        self.forget();
        let world = &connection.world;
        let now = world.now();
        if let Some((key, write)) = &ending.offset {
            world.model.borrow_mut().offset(key.clone()).unknown(*write, now);
        }
    }
}

impl Client for Transactional {
    fn name(&self) -> &str {
        &self.name
    }

    fn live<'a>(&'a mut self, connection: &'a Connection) -> Work<'a> {
        Box::pin(async move {
            if self.ending.is_none() {
                // What was begun when the last life ended is given up.
                self.forget();
            }
            loop {
                connection.think().await;
                self.step(connection).await;
            }
        })
    }
}

async fn init(connection: &Connection, id: &str) -> Option<InitProducerIdResponse> {
    let request = InitProducerIdRequest {
        transactional_id: Some(id.to_owned()),
        transaction_timeout_ms: TIMEOUT_MS,
        ..Default::default()
    };
    connection.call(5, &request).await
}

/// Takes over the transactional ids, which aborts what they have open.
pub async fn end_what_is_open(connection: &Connection) {
    for n in 0..3 {
        for _ in 0..50 {
            let Some(answer) = init(connection, &format!("tx-{n}")).await else { continue };
            connection.note(format_args!("takes over tx-{n}: {:?}", error(answer.error_code)));
            if error(answer.error_code) == ErrorCode::None {
                break;
            }
            connection.think().await;
        }
    }
}
