//! What a fetch of one partition has answered, as a consumer takes it in.

use std::collections::BTreeSet;

use doze::protocol::messages::fetch::{FetchPartition, FetchRequest, FetchTopic, PartitionData};
use doze::protocol::wire::Records;
use doze::protocol::{ErrorCode, Uuid};
use doze::record::Batches;

use crate::net::Connection;

/// The key of a control record that ends a transaction by aborting it: version 0, type 0.
const ABORT: [u8; 4] = [0; 4];

/// A record that was read.
#[derive(Clone, Debug)]
pub struct ReadRecord {
    pub offset: i64,
    /// The record's own number, which no other has.
    pub id: u64,
    pub key: Vec<u8>,
    /// `None` for a tombstone.
    pub value: Option<Vec<u8>>,
    /// Of a transaction that was aborted, so that a reader of committed records passes it over.
    pub aborted: bool,
}

#[derive(Clone, Debug)]
pub struct Fetched {
    pub from: i64,
    pub committed: bool,
    pub high_watermark: i64,
    pub last_stable: i64,
    pub log_start: i64,
    /// First and last offset of each batch.
    pub batches: Vec<(i64, i64)>,
    pub records: Vec<ReadRecord>,
    /// Why what follows the last batch cannot be read, if something does.
    pub damage: Option<String>,
}

impl Fetched {
    /// The offset after what was read.
    pub fn next(&self) -> i64 {
        self.batches.last().map_or(self.from, |(_, last)| last + 1)
    }
}

/// Fetches from one partition. `None` if there is no answer.
pub async fn fetch(
    connection: &Connection,
    topic: Uuid,
    partition: i32,
    from: i64,
    committed: bool,
    max_wait_ms: i32,
) -> Option<Result<Fetched, ErrorCode>> {
    let partition = FetchPartition {
        partition,
        fetch_offset: from,
        partition_max_bytes: if connection.is_client() {
            connection.draw(|prng| *prng.pick(&[1, 500, 1 << 20]))
        } else {
            1 << 20
        },
        ..Default::default()
    };
    let request = FetchRequest {
        max_wait_ms,
        min_bytes: 1,
        isolation_level: i8::from(committed),
        topics: vec![FetchTopic { topic_id: topic, partitions: vec![partition], ..Default::default() }],
        ..Default::default()
    };
    let answer = connection.call(13, &request).await?;
    if let Some(error) = ErrorCode::from_code(answer.error_code).filter(|error| *error != ErrorCode::None) {
        return Some(Err(error));
    }
    let Some(data) = answer.responses.first().and_then(|topic| topic.partitions.first()) else {
        connection.world.violate(format!("{}: a fetch was answered without its partition", connection.name));
        return None;
    };
    match ErrorCode::from_code(data.error_code) {
        Some(ErrorCode::None) => Some(Ok(read(from, committed, data))),
        error => Some(Err(error.unwrap_or(ErrorCode::UnknownServerError))),
    }
}

/// The records in what a share fetch has answered of one partition, and why what follows them cannot be read.
pub fn records_of(records: &Records) -> (Vec<ReadRecord>, Option<String>) {
    let fetched = read(0, false, &PartitionData { records: Some(records.clone()), ..Default::default() });
    (fetched.records, fetched.damage)
}

fn read(from: i64, committed: bool, data: &PartitionData) -> Fetched {
    let mut fetched = Fetched {
        from,
        committed,
        high_watermark: data.high_watermark,
        last_stable: data.last_stable_offset,
        log_start: data.log_start_offset,
        batches: Vec::new(),
        records: Vec::new(),
        damage: None,
    };
    let Some(Records::Bytes(bytes)) = &data.records else { return fetched };
    let mut to_come: Vec<(i64, i64)> =
        data.aborted_transactions.iter().flatten().map(|aborted| (aborted.first_offset, aborted.producer_id)).collect();
    to_come.sort_unstable();
    to_come.reverse();
    let mut aborted = BTreeSet::new();
    let mut batches = Batches::new(bytes);
    for batch in &mut batches {
        let header = batch.header();
        while to_come.last().is_some_and(|(first, _)| *first <= header.last_offset()) {
            aborted.insert(to_come.pop().expect("it was just looked at").1);
        }
        fetched.batches.push((header.base_offset, header.last_offset()));
        let mut records = match batch.records() {
            Ok(records) => records,
            Err(error) => {
                fetched.damage = Some(error.to_string());
                return fetched;
            }
        };
        loop {
            let record = match records.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(error) => {
                    fetched.damage = Some(error.to_string());
                    return fetched;
                }
            };
            if header.is_control() {
                if record.key() == Some(&ABORT) {
                    aborted.remove(&header.producer_id);
                }
                continue;
            }
            let id = record.headers().find_map(|header| header.value?.try_into().ok().map(u64::from_be_bytes));
            fetched.records.push(ReadRecord {
                offset: record.offset(),
                id: id.unwrap_or(0),
                key: record.key().unwrap_or_default().to_vec(),
                value: record.value().map(<[u8]>::to_vec),
                aborted: header.is_transactional() && aborted.contains(&header.producer_id),
            });
        }
    }
    // A batch that was cut off by the size of the answer is none that is damaged.
    fetched.damage = batches.stop().why.map(|why| why.to_string());
    fetched
}
