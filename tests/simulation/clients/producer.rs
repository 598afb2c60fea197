//! Producers without transactions: plain ones at each acks level, and idempotent ones, which send again what they have no
//! answer for.

use std::collections::{BTreeMap, BTreeSet};

use doze::protocol::messages::init_producer_id::InitProducerIdRequest;
use doze::protocol::{ErrorCode, Uuid};
use doze::record::BatchOptions;

use super::admin::RETAINED;
use super::produce::{Batch, Produced, produce, produce_pipelined};
use super::{Client, Work, draw_partition, error};
use crate::net::Connection;

pub struct Producer {
    name: String,
    /// For an idempotent producer.
    sequences: Option<Sequences>,
}

#[derive(Default)]
struct Sequences {
    /// Id and epoch.
    producer: Option<(i64, i16)>,
    next: BTreeMap<(Uuid, i32), i32>,
    /// What was sent and not answered, in order.
    unanswered: Vec<Batch>,
    /// Partitions in which a batch was sent behind the producer's very first one. It may have been taken where the first one
    /// failed: a partition takes whatever sequence a producer begins with, as Kafka's do.
    overtaken: BTreeSet<(Uuid, i32)>,
    /// The last that was acknowledged, and where it is.
    last: Option<(Batch, i64)>,
}

impl Producer {
    pub fn new(name: &str, is_idempotent: bool) -> Self {
        Producer { name: name.into(), sequences: is_idempotent.then(Sequences::default) }
    }
}

impl Client for Producer {
    fn name(&self) -> &str {
        &self.name
    }

    fn live<'a>(&'a mut self, connection: &'a Connection) -> Work<'a> {
        Box::pin(async move {
            loop {
                connection.think().await;
                match &mut self.sequences {
                    None => send_plain(connection).await,
                    Some(sequences) => sequences.send(connection).await,
                }
            }
        })
    }
}

async fn send_plain(connection: &Connection) {
    let Some((name, id, partition)) = draw_partition(connection, |_| true) else { return };
    let batch = Batch::new(connection, (&name, id, partition), None, BatchOptions::default());
    let acks = connection.draw(|prng| *prng.pick(&[0, 1, -1, -1]));
    if acks == 0 || connection.draw(|prng| prng.chance(2, 3)) {
        produce(connection, acks, None, &batch, false).await;
        return;
    }
    let mut batches = vec![batch];
    for _ in 0..connection.draw(|prng| prng.between(1, 3)) {
        let Some((name, id, partition)) = draw_partition(connection, |_| true) else { break };
        batches.push(Batch::new(connection, (&name, id, partition), None, BatchOptions::default()));
    }
    produce_pipelined(connection, acks, &batches, false).await;
}

impl Sequences {
    async fn send(&mut self, connection: &Connection) {
        let Some((producer_id, producer_epoch)) = self.producer else { return self.init(connection).await };
        if !self.unanswered.is_empty() {
            connection.world.count("batches sent again by idempotent producers");
            return self.deliver(connection, true).await;
        }
        if let Some((batch, offset)) = self.last.clone()
            && connection.draw(|prng| prng.chance(1, 6))
            && connection.world.model.borrow_mut().log(batch.log.0, batch.log.1).keeps(offset)
        {
            return self.repeat(connection, &batch, offset).await;
        }
        let several = connection.draw(|prng| if prng.chance(1, 3) { prng.between(2, 5) } else { 1 });
        for _ in 0..several {
            let Some((name, id, partition)) = draw_partition(connection, |name| name != RETAINED) else { break };
            let next = self.next.entry((id, partition)).or_default();
            let options = BatchOptions { producer_id, producer_epoch, base_sequence: *next, ..BatchOptions::default() };
            let batch = Batch::new(connection, (&name, id, partition), None, options);
            *next += batch.ids.len() as i32;
            self.unanswered.push(batch);
        }
        self.deliver(connection, false).await;
    }

    async fn init(&mut self, connection: &Connection) {
        let request =
            InitProducerIdRequest { transactional_id: None, transaction_timeout_ms: 1000, ..Default::default() };
        let Some(answer) = connection.call(4, &request).await else { return };
        if error(answer.error_code) != ErrorCode::None {
            return;
        }
        let id = answer.producer_id;
        connection.note(format_args!("has producer id {id}"));
        let is_new = connection.world.model.borrow_mut().producer_ids.insert(id);
        if !is_new {
            connection.world.violate(format!("{}: producer id {id} was handed out before", connection.name));
        }
        *self = Sequences { producer: Some((id, answer.producer_epoch)), ..Sequences::default() };
    }

    /// Sends all that is unanswered, in order.
    async fn deliver(&mut self, connection: &Connection, sent_before: bool) {
        let world = &connection.world;
        let batches = self.unanswered.clone();
        for (n, first) in batches.iter().enumerate().filter(|(_, batch)| batch.base_sequence == 0) {
            if batches[n + 1..].iter().any(|behind| behind.log == first.log) {
                self.overtaken.insert(first.log);
            }
        }
        let produced = match &batches[..] {
            [] => return,
            [one] => vec![produce(connection, -1, None, one, sent_before).await],
            several => produce_pipelined(connection, -1, several, sent_before).await,
        };
        self.unanswered.clear();
        for (batch, produced) in batches.into_iter().zip(produced) {
            match produced {
                Produced::At(offset) => self.last = Some((batch, offset)),
                Produced::Unanswered => self.unanswered.push(batch),
                Produced::Unknown(error) if super::is_of_the_moment(error) => self.unanswered.push(batch),
                // The topic is gone.
                Produced::Unknown(ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopicId) => {}
                // The one before it in this partition has failed.
                Produced::Unknown(ErrorCode::OutOfOrderSequenceNumber)
                    if self.unanswered.iter().any(|before| before.log == batch.log) =>
                {
                    world.count("batches refused behind one that failed");
                    self.unanswered.push(batch);
                }
                Produced::Unknown(ErrorCode::OutOfOrderSequenceNumber)
                    if batch.base_sequence == 0 && self.overtaken.contains(&batch.log) =>
                {
                    world.count("first batches overtaken by those behind them");
                    *self = Sequences::default();
                    return;
                }
                Produced::Refused(error) | Produced::Unknown(error) => {
                    // A producer may be forgotten with its last record.
                    if world.model.borrow_mut().log(batch.log.0, batch.log.1).keeps(0) {
                        world.violate(format!("an idempotent producer is refused: {error:?}"));
                    }
                    *self = Sequences::default();
                    return;
                }
            }
        }
    }

    /// Sends the last acknowledged batch once more, having missed the answer, so to say.
    async fn repeat(&mut self, connection: &Connection, batch: &Batch, offset: i64) {
        let world = &connection.world;
        match produce(connection, -1, None, batch, true).await {
            Produced::At(again) => {
                world.count("duplicates acknowledged");
                if again != offset {
                    world.violate(format!("a batch that was acknowledged at {offset} is acknowledged at {again} too"));
                }
            }
            Produced::Unanswered => {}
            Produced::Unknown(_) | Produced::Refused(_) => self.last = None,
        }
    }
}
