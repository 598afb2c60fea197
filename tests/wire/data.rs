//! What the tests of produce and fetch have in common: topics, batches, and the requests that carry them.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use doze::protocol::messages::create_topics::{CreatableTopic, CreatableTopicConfig, CreateTopicsRequest};
use doze::protocol::messages::delete_topics::DeleteTopicsRequest;
use doze::protocol::messages::fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData};
use doze::protocol::messages::init_producer_id::InitProducerIdRequest;
use doze::protocol::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsTopic,
};
use doze::protocol::messages::produce::{
    PartitionProduceData, PartitionProduceResponse, ProduceRequest, TopicProduceData,
};
use doze::protocol::wire::Records;
use doze::protocol::{ErrorCode, Uuid};
use doze::record::{BatchBuilder, BatchHeader, BatchOptions, Codec};

use crate::harness::Client;

pub const ALL: i16 = -1;
pub const CODECS: [Codec; 5] =
    [Codec::None, Codec::Gzip { level: -1 }, Codec::Snappy, Codec::Lz4, Codec::Zstd { level: 3 }];

#[derive(Clone, Debug)]
pub struct Topic {
    pub name: String,
    pub id: Uuid,
}

/// Makes a topic, which has to work.
pub fn create_topic(client: &mut Client, name: &str, partitions: i32, configs: &[(&str, &str)]) -> Topic {
    let configs =
        configs.iter().map(|(name, value)| CreatableTopicConfig { name: (*name).into(), value: Some((*value).into()) });
    let topic = CreatableTopic {
        name: name.into(),
        num_partitions: partitions,
        replication_factor: 1,
        configs: configs.collect(),
        ..Default::default()
    };
    let response = client.call(7, &CreateTopicsRequest { topics: vec![topic], ..Default::default() });
    let made = &response.topics[0];
    assert_eq!(made.error_code, 0, "{name}: {:?}", made.error_message);
    Topic { name: name.into(), id: made.topic_id }
}

pub fn delete_topic(client: &mut Client, topic: &Topic) {
    let request =
        DeleteTopicsRequest { topic_names: vec![topic.name.clone()], timeout_ms: 30_000, ..Default::default() };
    let response = client.call(5, &request);
    assert_eq!(response.responses[0].error_code, 0, "{:?}", response.responses[0]);
}

pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

/// A batch of one record a value, a millisecond apart, with keys and a header.
pub fn batch_of(options: BatchOptions, first_timestamp: i64, values: &[&[u8]]) -> Bytes {
    let mut builder = BatchBuilder::new(options).unwrap();
    for (i, value) in values.iter().enumerate() {
        let key = format!("key-{i}");
        let headers: [(&[u8], Option<&[u8]>); 2] = [(b"h", Some(b"1")), (b"h", None)];
        builder.append(first_timestamp + i as i64, Some(key.as_bytes()), Some(value), &headers).unwrap();
    }
    builder.finish(None).unwrap()
}

/// A plain batch of records of now.
pub fn batch(values: &[&[u8]]) -> Bytes {
    batch_of(BatchOptions::default(), now_ms(), values)
}

/// A batch of an idempotent producer with `count` records.
pub fn sequenced(producer: (i64, i16), first: i32, count: usize) -> Bytes {
    let options = BatchOptions {
        producer_id: producer.0,
        producer_epoch: producer.1,
        base_sequence: first,
        ..BatchOptions::default()
    };
    let value = format!("{first}");
    batch_of(options, now_ms(), &vec![value.as_bytes(); count])
}

/// Changes a header and makes the checksum right again.
pub fn with_header(batch: &Bytes, change: impl FnOnce(&mut BatchHeader)) -> Bytes {
    let mut header = BatchHeader::read(batch.first_chunk().unwrap());
    change(&mut header);
    header.crc = header.compute_crc(&batch[61..]);
    [&header.encode()[..], &batch[61..]].concat().into()
}

/// How the batch reads back once it is stored: with its offset and the leader epoch, and otherwise as it was sent.
pub fn stored(batch: &[u8], offset: i64) -> Bytes {
    let mut bytes = batch.to_vec();
    bytes[..8].copy_from_slice(&offset.to_be_bytes());
    bytes[12..16].copy_from_slice(&0i32.to_be_bytes());
    bytes.into()
}

pub fn produce_request(topic: &Topic, partition: i32, acks: i16, records: &Bytes) -> ProduceRequest {
    ProduceRequest {
        acks,
        timeout_ms: 30_000,
        topic_data: vec![TopicProduceData {
            name: topic.name.clone(),
            topic_id: topic.id,
            partition_data: vec![PartitionProduceData {
                index: partition,
                records: Some(Records::Bytes(records.clone())),
            }],
        }],
        ..Default::default()
    }
}

/// Produces to a partition of a topic and answers what is said of it.
pub fn produce_at(
    client: &mut Client,
    version: i16,
    topic: &Topic,
    partition: i32,
    acks: i16,
    records: &Bytes,
) -> PartitionProduceResponse {
    let mut response = client.call(version, &produce_request(topic, partition, acks, records));
    assert_eq!(response.responses.len(), 1);
    response.responses[0].partition_responses.remove(0)
}

/// Produces to partition 0 with acks=all.
pub fn produce(client: &mut Client, topic: &Topic, records: &Bytes) -> PartitionProduceResponse {
    produce_at(client, 13, topic, 0, ALL, records)
}

/// Produces what has to be taken. Answers the first offset.
pub fn produce_ok(client: &mut Client, topic: &Topic, records: &Bytes) -> i64 {
    let answer = produce(client, topic, records);
    assert_eq!(error(answer.error_code), ErrorCode::None, "{answer:?}");
    answer.base_offset
}

pub fn error(code: i16) -> ErrorCode {
    ErrorCode::from_code(code).unwrap()
}

/// Asks for a partition's records from `offset`, with room for everything and without a wait.
pub fn fetch_request(topic: &Topic, partition: i32, offset: i64) -> FetchRequest {
    FetchRequest {
        max_wait_ms: 0,
        min_bytes: 1,
        max_bytes: i32::MAX,
        topics: vec![FetchTopic {
            topic: topic.name.clone(),
            topic_id: topic.id,
            partitions: vec![FetchPartition {
                partition,
                fetch_offset: offset,
                partition_max_bytes: i32::MAX,
                ..Default::default()
            }],
        }],
        ..Default::default()
    }
}

/// The only partition of a response.
pub fn only(response: &FetchResponse) -> &PartitionData {
    assert_eq!((response.responses.len(), response.responses[0].partitions.len()), (1, 1), "{response:?}");
    &response.responses[0].partitions[0]
}

/// The record bytes of a partition's data.
pub fn bytes_of(data: &PartitionData) -> Bytes {
    match &data.records {
        Some(Records::Bytes(bytes)) => bytes.clone(),
        None => Bytes::new(),
        Some(Records::File(_)) => unreachable!("a decoded response is in memory"),
    }
}

pub fn fetch_from(client: &mut Client, topic: &Topic, offset: i64) -> Bytes {
    let response = client.call(16, &fetch_request(topic, 0, offset));
    let data = only(&response);
    assert_eq!(error(data.error_code), ErrorCode::None, "{data:?}");
    bytes_of(data)
}

/// Everything in a partition, however many segments it has.
pub fn fetch_all(client: &mut Client, topic: &Topic, partition: i32, start: i64) -> Vec<u8> {
    let mut all = vec![];
    let mut offset = start;
    loop {
        let response = client.call(16, &fetch_request(topic, partition, offset));
        let data = only(&response);
        assert_eq!(error(data.error_code), ErrorCode::None, "{data:?}");
        let bytes = bytes_of(data);
        if bytes.is_empty() {
            assert_eq!(offset, data.high_watermark, "nothing, and yet not the end");
            return all;
        }
        for batch in doze::record::Batches::without_crc(&bytes) {
            offset = batch.header().last_offset() + 1;
        }
        all.extend_from_slice(&bytes);
    }
}

pub fn list_offset(client: &mut Client, version: i16, topic: &Topic, timestamp: i64) -> ListOffsetsPartitionResponse {
    let partitions = vec![ListOffsetsPartition { timestamp, ..Default::default() }];
    let topics = vec![ListOffsetsTopic { name: topic.name.clone(), partitions }];
    let mut response =
        client.call(version, &ListOffsetsRequest { replica_id: -1, topics, timeout_ms: 30_000, ..Default::default() });
    response.topics[0].partitions.remove(0)
}

/// The offset that the next record will get.
pub fn end_offset(client: &mut Client, topic: &Topic) -> i64 {
    let answer = list_offset(client, 7, topic, -1);
    assert_eq!(answer.error_code, 0);
    answer.offset
}

/// A new producer id, with epoch 0.
pub fn new_producer(client: &mut Client) -> (i64, i16) {
    let answer = client.call(4, &InitProducerIdRequest { transactional_id: None, ..Default::default() });
    assert_eq!(answer.error_code, 0);
    (answer.producer_id, answer.producer_epoch)
}
