//! Producers without transactions: plain ones at each acks level, and idempotent ones, which send again what they have no
//! answer for.

use std::collections::BTreeMap;

use doze::protocol::messages::init_producer_id::InitProducerIdRequest;
use doze::protocol::{ErrorCode, Uuid};
use doze::record::BatchOptions;

use super::admin::RETAINED;
use super::produce::{Batch, Produced, produce};
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
    /// What was sent and not answered.
    unanswered: Option<Batch>,
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
    produce(connection, acks, None, &batch, false).await;
}

impl Sequences {
    async fn send(&mut self, connection: &Connection) {
        let Some((producer_id, producer_epoch)) = self.producer else { return self.init(connection).await };
        if let Some(batch) = self.unanswered.clone() {
            connection.world.count("batches sent again by idempotent producers");
            return self.deliver(connection, batch, true).await;
        }
        if let Some((batch, offset)) = self.last.clone()
            && connection.draw(|prng| prng.chance(1, 6))
            && connection.world.model.borrow_mut().log(batch.log.0, batch.log.1).keeps(offset)
        {
            return self.repeat(connection, &batch, offset).await;
        }
        let Some((name, id, partition)) = draw_partition(connection, |name| name != RETAINED) else { return };
        let next = self.next.entry((id, partition)).or_default();
        let options = BatchOptions { producer_id, producer_epoch, base_sequence: *next, ..BatchOptions::default() };
        let batch = Batch::new(connection, (&name, id, partition), None, options);
        *next += batch.ids.len() as i32;
        self.unanswered = Some(batch.clone());
        self.deliver(connection, batch, false).await;
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

    async fn deliver(&mut self, connection: &Connection, batch: Batch, sent_before: bool) {
        let world = &connection.world;
        match produce(connection, -1, None, &batch, sent_before).await {
            Produced::At(offset) => {
                self.unanswered = None;
                self.last = Some((batch, offset));
            }
            Produced::Unanswered => {}
            Produced::Unknown(error) if super::is_of_the_moment(error) => {}
            // The topic is gone.
            Produced::Unknown(ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopicId) => self.unanswered = None,
            Produced::Refused(error) | Produced::Unknown(error) => {
                // A producer may be forgotten with its last record.
                if world.model.borrow_mut().log(batch.log.0, batch.log.1).keeps(0) {
                    world.violate(format!("an idempotent producer is refused: {error:?}"));
                }
                *self = Sequences::default();
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
