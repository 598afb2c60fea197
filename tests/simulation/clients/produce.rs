//! Sending a batch.

use bytes::Bytes;
use doze::protocol::messages::produce::{PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData};
use doze::protocol::wire::Records;
use doze::protocol::{ErrorCode, Uuid};
use doze::record::{BatchOptions, Codec};

use super::error;
use crate::net::Connection;
use crate::world::Canary;

/// A batch for a partition, which can be sent again.
#[derive(Clone)]
pub struct Batch {
    pub log: (Uuid, i32),
    pub ids: Vec<u64>,
    pub base_sequence: i32,
    pub bytes: Bytes,
}

impl Batch {
    pub fn new(
        connection: &Connection,
        (topic, id, partition): (&str, Uuid, i32),
        transaction: Option<u64>,
        options: BatchOptions,
    ) -> Batch {
        let compacted = topic == super::admin::COMPACTED;
        let keys: Vec<(Vec<u8>, bool)> = connection.draw(|prng| {
            let key = |prng: &mut doze::sys::sim::Prng| {
                let key = format!("key-{}", prng.below(5)).into_bytes();
                (key, compacted && prng.chance(1, 6))
            };
            (0..=prng.below(3)).map(|_| key(prng)).collect()
        });
        let codec = connection.draw(|prng| if prng.chance(1, 8) { Codec::Lz4 } else { Codec::None });
        let world = &connection.world;
        let now_ms = doze::sys::Clock::now_ms(&*world.clock);
        let base_sequence = options.base_sequence;
        let options = BatchOptions { codec, ..options };
        let log = (id, partition);
        let (ids, bytes) = world.model.borrow_mut().batch(log, &keys, transaction, now_ms, options);
        Batch { log, ids, base_sequence, bytes }
    }
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Produced {
    At(i64),
    /// It is not there and never will be.
    Refused(ErrorCode),
    /// It may be there.
    Unknown(ErrorCode),
    /// There was no answer, so it may be there.
    Unanswered,
}

/// Sends a batch, and tells the model of the outcome. `sent_before`: an earlier attempt may have put it there, so that a
/// refusal says nothing.
pub async fn produce(
    connection: &Connection,
    acks: i16,
    transactional_id: Option<&str>,
    batch: &Batch,
    sent_before: bool,
) -> Produced {
    let request = request(connection, acks, transactional_id, batch, sent_before);
    let answer = connection.call(13, &request).await;
    came_of(connection, acks, batch, sent_before, answer)
}

/// Sends batches over one connection without waiting for the answers in between. An earlier one that fails takes those behind it
/// with it, so that only the refusal of the first says something.
pub async fn produce_pipelined(
    connection: &Connection,
    acks: i16,
    batches: &[Batch],
    sent_before: bool,
) -> Vec<Produced> {
    let requests: Vec<ProduceRequest> =
        batches.iter().map(|batch| request(connection, acks, None, batch, sent_before)).collect();
    let answers = connection.pipeline(13, &requests).await;
    let mut all: Vec<Produced> = Vec::new();
    for (n, (batch, answer)) in batches.iter().zip(answers).enumerate() {
        all.push(came_of(connection, acks, batch, sent_before || n > 0, answer));
    }
    // They are appended in the order in which they came.
    for (n, (batch, produced)) in batches.iter().zip(&all).enumerate() {
        for (later, later_produced) in batches.iter().zip(&all).skip(n + 1) {
            if let (Produced::At(one), Produced::At(other)) = (produced, later_produced)
                && batch.log == later.log
                && one >= other
            {
                let what = format!("{}: batches sent one after the other are at {one} and {other}", connection.name);
                connection.world.violate(what);
            }
        }
    }
    all
}

fn request(
    connection: &Connection,
    acks: i16,
    transactional_id: Option<&str>,
    batch: &Batch,
    sent_before: bool,
) -> ProduceRequest {
    let world = &connection.world;
    let data = PartitionProduceData { index: batch.log.1, records: Some(Records::Bytes(batch.bytes.clone())) };
    let acks_sent = if world.canary == Canary::EarlyAck && acks == -1 { 1 } else { acks };
    connection.note(format_args!(
        "produces {} to {} at acks {acks} to {}{}",
        batch.ids[0],
        batch.ids[batch.ids.len() - 1],
        world.model.borrow_mut().log(batch.log.0, batch.log.1).name,
        if sent_before { " again" } else { "" }
    ));
    ProduceRequest {
        transactional_id: transactional_id.map(str::to_owned),
        acks: acks_sent,
        timeout_ms: 30_000,
        topic_data: vec![TopicProduceData { topic_id: batch.log.0, partition_data: vec![data], ..Default::default() }],
    }
}

fn came_of(
    connection: &Connection,
    acks: i16,
    batch: &Batch,
    sent_before: bool,
    answer: Option<ProduceResponse>,
) -> Produced {
    let world = &connection.world;
    let (first, last) = (batch.ids[0], batch.ids[batch.ids.len() - 1]);
    if acks == 0 {
        return Produced::Unanswered;
    }
    let Some(answer) = answer else {
        connection.note(format_args!("{first} to {last}: no answer"));
        return Produced::Unanswered;
    };
    let partition = &answer.responses[0].partition_responses[0];
    let produced = match error(partition.error_code) {
        ErrorCode::None => Produced::At(partition.base_offset),
        error if super::is_of_the_moment(error) || sent_before => Produced::Unknown(error),
        // It may have been appended and not flushed when its topic was deleted.
        error @ (ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopicId) => Produced::Unknown(error),
        error => Produced::Refused(error),
    };
    connection.note(format_args!("{first} to {last}: {produced:?}"));
    let mut model = world.model.borrow_mut();
    match produced {
        Produced::At(offset) => {
            let result = model.acknowledged(batch.log, &batch.ids, offset, acks == -1);
            drop(model);
            world.check(result);
            world.count(&format!("batches acknowledged at acks={acks}"));
        }
        Produced::Refused(_) => model.refused(&batch.ids),
        Produced::Unknown(_) | Produced::Unanswered => {}
    }
    produced
}
