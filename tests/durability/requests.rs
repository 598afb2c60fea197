//! Requests that change something, each made of as little as it takes, and the code that each is answered with.

use bytes::Bytes;
use doze::protocol::ErrorCode;
use doze::protocol::messages::add_offsets_to_txn::AddOffsetsToTxnRequest;
use doze::protocol::messages::add_partitions_to_txn::{AddPartitionsToTxnRequest, AddPartitionsToTxnTopic};
use doze::protocol::messages::alter_client_quotas::{
    AlterClientQuotasRequest, OpData, RequestEntityData, RequestEntryData,
};
use doze::protocol::messages::alter_configs::{self, AlterConfigsRequest};
use doze::protocol::messages::alter_user_scram_credentials::{
    AlterUserScramCredentialsRequest, ScramCredentialUpsertion,
};
use doze::protocol::messages::create_partitions::{CreatePartitionsRequest, CreatePartitionsTopic};
use doze::protocol::messages::create_topics::{CreatableTopic, CreateTopicsRequest};
use doze::protocol::messages::delete_groups::DeleteGroupsRequest;
use doze::protocol::messages::delete_records::{DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic};
use doze::protocol::messages::delete_topics::DeleteTopicsRequest;
use doze::protocol::messages::end_txn::EndTxnRequest;
use doze::protocol::messages::incremental_alter_configs::{self, IncrementalAlterConfigsRequest};
use doze::protocol::messages::init_producer_id::InitProducerIdRequest;
use doze::protocol::messages::metadata::{MetadataRequest, MetadataRequestTopic};
use doze::protocol::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use doze::protocol::messages::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use doze::protocol::messages::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use doze::protocol::messages::txn_offset_commit::{
    TxnOffsetCommitRequest, TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use doze::protocol::messages::update_features::{FeatureUpdateKey, UpdateFeaturesRequest};
use doze::protocol::wire::Records;
use doze::record::{BatchBuilder, BatchOptions};
use doze::sys::sim::START_MS;

use crate::broker::Life;

/// A producer with a transactional id, as the broker named it.
#[derive(Clone, Copy, Debug)]
pub struct Producer {
    pub id: i64,
    pub epoch: i16,
}

fn code(code: i16) -> ErrorCode {
    ErrorCode::from_code(code).unwrap_or_else(|| panic!("code {code} is none of the protocol's"))
}

pub fn batch(options: BatchOptions, value: &str) -> Bytes {
    let mut builder = BatchBuilder::new(options).unwrap();
    builder.append(START_MS, Some(b"key"), Some(value.as_bytes()), &[]).unwrap();
    builder.finish(None).unwrap()
}

pub fn produce_request(topic: &str, partition: i32, acks: i16, records: Bytes) -> ProduceRequest {
    let partition = PartitionProduceData { index: partition, records: Some(Records::Bytes(records)) };
    let topic = TopicProduceData { name: topic.into(), partition_data: vec![partition], ..Default::default() };
    ProduceRequest { acks, timeout_ms: 30_000, topic_data: vec![topic], ..Default::default() }
}

/// The code, and the offset.
pub fn produce(life: &Life, topic: &str, partition: i32, acks: i16) -> Option<(ErrorCode, i64)> {
    let answer = life.call(9, &produce_request(topic, partition, acks, batch(BatchOptions::default(), "x")))?;
    let partition = &answer.responses[0].partition_responses[0];
    Some((code(partition.error_code), partition.base_offset))
}

pub fn create_topic(life: &Life, name: &str, partitions: i32) -> Option<ErrorCode> {
    let topic =
        CreatableTopic { name: name.into(), num_partitions: partitions, replication_factor: 1, ..Default::default() };
    let answer = life.call(7, &CreateTopicsRequest { topics: vec![topic], ..Default::default() })?;
    Some(code(answer.topics[0].error_code))
}

pub fn delete_topic(life: &Life, name: &str) -> Option<ErrorCode> {
    let request = DeleteTopicsRequest { topic_names: vec![name.into()], timeout_ms: 30_000, ..Default::default() };
    Some(code(life.call(5, &request)?.responses[0].error_code))
}

pub fn create_partitions(life: &Life, name: &str, count: i32) -> Option<ErrorCode> {
    let topics = vec![CreatePartitionsTopic { name: name.into(), count, assignments: None }];
    let answer = life.call(3, &CreatePartitionsRequest { topics, timeout_ms: 30_000, ..Default::default() })?;
    Some(code(answer.results[0].error_code))
}

pub fn delete_records(life: &Life, topic: &str, partition_index: i32, offset: i64) -> Option<ErrorCode> {
    let partitions = vec![DeleteRecordsPartition { partition_index, offset }];
    let topics = vec![DeleteRecordsTopic { name: topic.into(), partitions }];
    let answer = life.call(2, &DeleteRecordsRequest { topics, timeout_ms: 30_000 })?;
    Some(code(answer.topics[0].partitions[0].error_code))
}

const TOPIC: i8 = 2;
const BROKER: i8 = 4;

pub fn alter_configs(life: &Life, topic: &str) -> Option<ErrorCode> {
    let config = alter_configs::AlterableConfig { name: "retention.ms".into(), value: Some("5".into()) };
    let resource = alter_configs::AlterConfigsResource {
        resource_type: TOPIC,
        resource_name: topic.into(),
        configs: vec![config],
    };
    let answer = life.call(2, &AlterConfigsRequest { resources: vec![resource], validate_only: false })?;
    Some(code(answer.responses[0].error_code))
}

fn incrementally(life: &Life, resource_type: i8, name: &str, key: &str, value: &str) -> Option<ErrorCode> {
    let config =
        incremental_alter_configs::AlterableConfig { name: key.into(), config_operation: 0, value: Some(value.into()) };
    let resource = incremental_alter_configs::AlterConfigsResource {
        resource_type,
        resource_name: name.into(),
        configs: vec![config],
    };
    let answer = life.call(1, &IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false })?;
    Some(code(answer.responses[0].error_code))
}

pub fn alter_topic_incrementally(life: &Life, topic: &str) -> Option<ErrorCode> {
    incrementally(life, TOPIC, topic, "segment.bytes", "2000000")
}

pub fn alter_broker_incrementally(life: &Life) -> Option<ErrorCode> {
    incrementally(life, BROKER, "", "log.retention.ms", "77777")
}

pub fn alter_quotas(life: &Life) -> Option<ErrorCode> {
    let entity = RequestEntityData { entity_type: "client-id".into(), entity_name: Some("c".into()) };
    let op = OpData { key: "producer_byte_rate".into(), value: 1e9, remove: false };
    let entries = vec![RequestEntryData { entity: vec![entity], ops: vec![op] }];
    let answer = life.call(1, &AlterClientQuotasRequest { entries, validate_only: false })?;
    Some(code(answer.entries[0].error_code))
}

pub fn alter_credentials(life: &Life) -> Option<ErrorCode> {
    let upsertion = ScramCredentialUpsertion {
        name: "u".into(),
        mechanism: 1,
        iterations: 4096,
        salt: b"salt"[..].into(),
        salted_password: b"secret"[..].into(),
    };
    let request = AlterUserScramCredentialsRequest { deletions: vec![], upsertions: vec![upsertion] };
    Some(code(life.call(0, &request)?.results[0].error_code))
}

pub fn update_features(life: &Life) -> Option<ErrorCode> {
    let update = FeatureUpdateKey {
        feature: "eligible.leader.replicas.version".into(),
        max_version_level: 0,
        upgrade_type: 2,
        ..Default::default()
    };
    let request = UpdateFeaturesRequest { feature_updates: vec![update], ..Default::default() };
    let answer = life.call(2, &request)?;
    Some(code(answer.error_code))
}

/// By the group itself, which has no members.
pub fn commit_offset(life: &Life, group: &str, offset: i64) -> Option<ErrorCode> {
    commit_offset_of(life, group, 0, offset)
}

pub fn commit_offset_of(life: &Life, group: &str, partition_index: i32, offset: i64) -> Option<ErrorCode> {
    let partition = OffsetCommitRequestPartition { partition_index, committed_offset: offset, ..Default::default() };
    let topic = OffsetCommitRequestTopic { name: "t".into(), partitions: vec![partition], ..Default::default() };
    let request = OffsetCommitRequest { group_id: group.into(), topics: vec![topic], ..Default::default() };
    Some(code(life.call(8, &request)?.topics[0].partitions[0].error_code))
}

pub fn delete_offset(life: &Life, group: &str) -> Option<ErrorCode> {
    let topic = OffsetDeleteRequestTopic {
        name: "t".into(),
        partitions: vec![OffsetDeleteRequestPartition { partition_index: 0 }],
    };
    let answer = life.call(0, &OffsetDeleteRequest { group_id: group.into(), topics: vec![topic] })?;
    let partition = answer.topics.first().and_then(|topic| topic.partitions.first());
    Some(code(partition.map_or(answer.error_code, |partition| partition.error_code)))
}

pub fn delete_group(life: &Life, group: &str) -> Option<ErrorCode> {
    let answer = life.call(2, &DeleteGroupsRequest { groups_names: vec![group.into()] })?;
    Some(code(answer.results[0].error_code))
}

/// The code, and the producer.
pub fn init_producer(life: &Life, transactional_id: &str) -> Option<(ErrorCode, Producer)> {
    let request = InitProducerIdRequest {
        transactional_id: Some(transactional_id.into()),
        transaction_timeout_ms: 60_000,
        ..Default::default()
    };
    let answer = life.call_until_free(4, &request, |answer| answer.error_code)?;
    Some((code(answer.error_code), Producer { id: answer.producer_id, epoch: answer.producer_epoch }))
}

pub fn add_partition(life: &Life, id: &str, producer: Producer, partition: i32) -> Option<ErrorCode> {
    let request = AddPartitionsToTxnRequest {
        v3_and_below_transactional_id: id.into(),
        v3_and_below_producer_id: producer.id,
        v3_and_below_producer_epoch: producer.epoch,
        v3_and_below_topics: vec![AddPartitionsToTxnTopic { name: "t".into(), partitions: vec![partition] }],
        ..Default::default()
    };
    let answer = life.call(3, &request)?;
    Some(code(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code))
}

pub fn add_offsets(life: &Life, id: &str, producer: Producer, group: &str) -> Option<ErrorCode> {
    let request = AddOffsetsToTxnRequest {
        transactional_id: id.into(),
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        group_id: group.into(),
    };
    Some(code(life.call(3, &request)?.error_code))
}

pub fn commit_offset_in(life: &Life, id: &str, producer: Producer, group: &str, offset: i64) -> Option<ErrorCode> {
    let partition = TxnOffsetCommitRequestPartition { committed_offset: offset, ..Default::default() };
    let request = TxnOffsetCommitRequest {
        transactional_id: id.into(),
        group_id: group.into(),
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        topics: vec![TxnOffsetCommitRequestTopic { name: "t".into(), partitions: vec![partition] }],
        ..Default::default()
    };
    Some(code(life.call(3, &request)?.topics[0].partitions[0].error_code))
}

pub fn end(life: &Life, id: &str, producer: Producer, committed: bool) -> Option<ErrorCode> {
    let request = EndTxnRequest {
        transactional_id: id.into(),
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        committed,
    };
    Some(code(life.call(3, &request)?.error_code))
}

/// The code for a topic that is made by being asked for.
pub fn ask_for_topic(life: &Life, name: &str) -> Option<ErrorCode> {
    let topic = MetadataRequestTopic { name: Some(name.into()), ..Default::default() };
    let request = MetadataRequest { topics: Some(vec![topic]), allow_auto_topic_creation: true, ..Default::default() };
    Some(code(life.call(9, &request)?.topics[0].error_code))
}
