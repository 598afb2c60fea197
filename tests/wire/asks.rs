//! The requests that most tests need, in short.

use std::ops::RangeInclusive;

use bytes::Bytes;
use doze::protocol::messages::create_topics::{CreatableTopic, CreatableTopicConfig, CreateTopicsRequest};
use doze::protocol::messages::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use doze::protocol::messages::find_coordinator::FindCoordinatorRequest;
use doze::protocol::messages::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use doze::protocol::messages::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use doze::protocol::wire::Records;
use doze::protocol::{ErrorCode, Request, Uuid};
use doze::record::{BatchBuilder, BatchOptions};

use crate::harness::Client;

/// The versions of an API that are served.
pub fn versions<R: Request>() -> RangeInclusive<i16> {
    R::API.versions()
}

pub fn newest<R: Request>() -> i16 {
    *versions::<R>().end()
}

pub fn oldest_and_newest<R: Request>() -> [i16; 2] {
    [*versions::<R>().start(), newest::<R>()]
}

#[track_caller]
pub fn assert_code(code: i16, expected: ErrorCode) {
    assert_eq!(ErrorCode::from_code(code), Some(expected));
}

pub fn topic(name: &str, partitions: i32) -> CreatableTopic {
    CreatableTopic { name: name.into(), num_partitions: partitions, replication_factor: 1, ..Default::default() }
}

/// Makes a topic, which has to work. Answers its id.
#[track_caller]
pub fn create_topic(client: &mut Client, name: &str, partitions: i32) -> Uuid {
    create_topic_with(client, name, partitions, &[])
}

#[track_caller]
pub fn create_topic_with(client: &mut Client, name: &str, partitions: i32, configs: &[(&str, &str)]) -> Uuid {
    let config =
        |(name, value): &(&str, &str)| CreatableTopicConfig { name: (*name).into(), value: Some((*value).into()) };
    let topic = CreatableTopic { configs: configs.iter().map(config).collect(), ..topic(name, partitions) };
    let response = client.call(7, &CreateTopicsRequest { topics: vec![topic], ..Default::default() });
    let result = &response.topics[0];
    assert_eq!((result.error_code, &result.error_message), (0, &None));
    result.topic_id
}

#[track_caller]
pub fn delete_topic(client: &mut Client, name: &str) {
    let state = DeleteTopicState { name: Some(name.into()), ..Default::default() };
    let response = client.call(6, &DeleteTopicsRequest { topics: vec![state], ..Default::default() });
    assert_eq!((response.responses[0].error_code, &response.responses[0].error_message), (0, &None));
}

/// A batch of one record with this value.
/// The kinds of coordinator.
pub const GROUP: i8 = 0;
pub const TRANSACTION: i8 = 1;

/// Asks for a coordinator, as clients do before they ask anything of it.
#[track_caller]
pub fn look_up(client: &mut Client, key_type: i8) {
    let request = FindCoordinatorRequest { key_type, coordinator_keys: vec!["x".into()], ..Default::default() };
    let found = client.call(6, &request);
    assert_eq!((found.coordinators[0].error_code, found.coordinators[0].node_id), (0, 1));
}

pub fn batch(value: &[u8]) -> Bytes {
    let mut batch = BatchBuilder::new(BatchOptions::default()).unwrap();
    batch.append(1_700_000_000_000, Some(b"key"), Some(value), &[]).unwrap();
    batch.finish(None).unwrap()
}

pub fn produce_request(topic: &str, partition: i32, acks: i16, value: &[u8]) -> ProduceRequest {
    let partition = PartitionProduceData { index: partition, records: Some(Records::Bytes(batch(value))) };
    let topic = TopicProduceData { name: topic.into(), partition_data: vec![partition], ..Default::default() };
    ProduceRequest { acks, timeout_ms: 30_000, topic_data: vec![topic], ..Default::default() }
}

/// Produces one record with acks=all. Answers its offset or why not.
pub fn produce(client: &mut Client, topic: &str, partition: i32, value: &[u8]) -> Result<i64, ErrorCode> {
    let response = client.call(12, &produce_request(topic, partition, -1, value));
    let result = &response.responses[0].partition_responses[0];
    match result.error_code {
        0 => Ok(result.base_offset),
        code => Err(ErrorCode::from_code(code).unwrap()),
    }
}

/// Where a partition ends.
pub fn end_offset(client: &mut Client, topic: &str, partition: i32) -> Result<i64, ErrorCode> {
    let partition = ListOffsetsPartition { partition_index: partition, timestamp: -1, ..Default::default() };
    let topic = ListOffsetsTopic { name: topic.into(), partitions: vec![partition] };
    let response = client.call(10, &ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..Default::default() });
    let found = &response.topics[0].partitions[0];
    match found.error_code {
        0 => Ok(found.offset),
        code => Err(ErrorCode::from_code(code).unwrap()),
    }
}
