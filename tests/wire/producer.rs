//! A transactional producer of either version of the protocol, and what readers of committed records see.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bytes::Bytes;
use doze::protocol::ErrorCode;
use doze::protocol::messages::add_offsets_to_txn::AddOffsetsToTxnRequest;
use doze::protocol::messages::add_partitions_to_txn::{AddPartitionsToTxnRequest, AddPartitionsToTxnTopic};
use doze::protocol::messages::describe_transactions::{DescribeTransactionsRequest, TransactionState};
use doze::protocol::messages::end_txn::{EndTxnRequest, EndTxnResponse};
use doze::protocol::messages::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};
use doze::protocol::messages::offset_fetch::{OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use doze::protocol::messages::produce::PartitionProduceResponse;
use doze::protocol::messages::txn_offset_commit::{
    TxnOffsetCommitRequest, TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use doze::record::{BatchOptions, Batches};

use crate::data::*;
use crate::harness::{Broker, Client, PATIENCE};

/// The two versions of the protocol, by the versions of the requests that they use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Protocol {
    First,
    Second,
}

use Protocol::{First, Second};

/// A transactional producer.
pub struct Producer {
    pub client: Client,
    pub protocol: Protocol,
    pub id: i64,
    pub epoch: i16,
    /// The sequence of the next record, for one partition only.
    pub sequence: i32,
}

pub fn init_request(timeout_ms: i32) -> InitProducerIdRequest {
    InitProducerIdRequest {
        transactional_id: Some("tx".into()),
        transaction_timeout_ms: timeout_ms,
        ..Default::default()
    }
}

/// Asks until nothing else of the transactional id is under way.
pub fn init(client: &mut Client, request: &InitProducerIdRequest) -> InitProducerIdResponse {
    let end = Instant::now() + PATIENCE;
    loop {
        let answer = client.call(5, request);
        if error(answer.error_code) != ErrorCode::ConcurrentTransactions {
            return answer;
        }
        assert!(Instant::now() < end, "{request:?} is never let in");
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Producer {
    pub fn new(broker: &Broker, protocol: Protocol) -> Self {
        Producer::with_timeout(broker, protocol, 60_000)
    }

    pub fn with_timeout(broker: &Broker, protocol: Protocol, timeout_ms: i32) -> Self {
        let mut client = broker.connect();
        let answer = init(&mut client, &init_request(timeout_ms));
        assert_eq!(error(answer.error_code), ErrorCode::None);
        Producer { client, protocol, id: answer.producer_id, epoch: answer.producer_epoch, sequence: 0 }
    }

    pub fn batch(&self, sequence: i32, value: &str) -> Bytes {
        let options = BatchOptions {
            producer_id: self.id,
            producer_epoch: self.epoch,
            base_sequence: sequence,
            transactional: true,
            ..BatchOptions::default()
        };
        batch_of(options, now_ms(), &[value.as_bytes()])
    }

    pub fn add(&mut self, topic: &Topic, partition: i32) -> ErrorCode {
        let request = AddPartitionsToTxnRequest {
            v3_and_below_transactional_id: "tx".into(),
            v3_and_below_producer_id: self.id,
            v3_and_below_producer_epoch: self.epoch,
            v3_and_below_topics: vec![AddPartitionsToTxnTopic {
                name: topic.name.clone(),
                partitions: vec![partition],
            }],
            ..Default::default()
        };
        let answer = self.client.call(3, &request);
        error(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)
    }

    /// Adds the partition, if that is for the client to do, while the transaction before is being ended.
    pub fn begin(&mut self, topic: &Topic, partition: i32) {
        let end = Instant::now() + PATIENCE;
        while self.protocol == First {
            match self.add(topic, partition) {
                ErrorCode::None => return,
                ErrorCode::ConcurrentTransactions if Instant::now() < end => {}
                error => panic!("{error:?}"),
            }
        }
    }

    pub fn produce_at(
        &mut self,
        version: i16,
        topic: &Topic,
        partition: i32,
        batch: &Bytes,
    ) -> PartitionProduceResponse {
        let mut request = produce_request(topic, partition, ALL, batch);
        request.transactional_id = Some("tx".into());
        let mut answer = self.client.call(version, &request);
        answer.responses[0].partition_responses.remove(0)
    }

    pub fn try_produce(&mut self, topic: &Topic, partition: i32, value: &str) -> ErrorCode {
        let version = if self.protocol == First { 11 } else { 13 };
        let batch = self.batch(self.sequence, value);
        error(self.produce_at(version, topic, partition, &batch).error_code)
    }

    /// Writes one record in the transaction, which has to work.
    pub fn produce(&mut self, topic: &Topic, partition: i32, value: &str) {
        self.begin(topic, partition);
        let end = Instant::now() + PATIENCE;
        loop {
            match self.try_produce(topic, partition, value) {
                ErrorCode::None => break,
                ErrorCode::ConcurrentTransactions if Instant::now() < end => {}
                error => panic!("{value}: {error:?}"),
            }
        }
        self.sequence += 1;
    }

    pub fn try_end(&mut self, committed: bool) -> EndTxnResponse {
        let request = EndTxnRequest {
            transactional_id: "tx".into(),
            producer_id: self.id,
            producer_epoch: self.epoch,
            committed,
        };
        self.client.call(if self.protocol == First { 4 } else { 5 }, &request)
    }

    pub fn end(&mut self, committed: bool) {
        let answer = self.try_end(committed);
        assert_eq!(error(answer.error_code), ErrorCode::None);
        if self.protocol == Second {
            assert_eq!((answer.producer_id, answer.producer_epoch), (self.id, self.epoch + 1));
            (self.epoch, self.sequence) = (answer.producer_epoch, 0);
        }
    }

    /// Commits one offset of partition 0 of a topic for group `g`.
    pub fn try_commit_offset(&mut self, version: i16, topic: &Topic, offset: i64) -> ErrorCode {
        let request = TxnOffsetCommitRequest {
            transactional_id: "tx".into(),
            group_id: "g".into(),
            producer_id: self.id,
            producer_epoch: self.epoch,
            topics: vec![TxnOffsetCommitRequestTopic {
                name: topic.name.clone(),
                partitions: vec![TxnOffsetCommitRequestPartition { committed_offset: offset, ..Default::default() }],
            }],
            ..Default::default()
        };
        let answer = self.client.call(version, &request);
        error(answer.topics[0].partitions[0].error_code)
    }

    pub fn add_offsets(&mut self) -> ErrorCode {
        let request = AddOffsetsToTxnRequest {
            transactional_id: "tx".into(),
            producer_id: self.id,
            producer_epoch: self.epoch,
            group_id: "g".into(),
        };
        error(self.client.call(4, &request).error_code)
    }

    pub fn commit_offset(&mut self, topic: &Topic, offset: i64) {
        let version = match self.protocol {
            First => {
                assert_eq!(self.add_offsets(), ErrorCode::None);
                4
            }
            Second => 5,
        };
        assert_eq!(self.try_commit_offset(version, topic, offset), ErrorCode::None);
    }
}

/// The values that a reader of committed records gets, the way consumers find them: what is below the last stable offset,
/// without control batches and without what the list of aborted transactions names.
pub fn committed(client: &mut Client, topic: &Topic, partition: i32) -> Vec<String> {
    let mut request = fetch_request(topic, partition, 0);
    request.isolation_level = 1;
    let response = client.call(16, &request);
    let data = only(&response);
    assert_eq!(error(data.error_code), ErrorCode::None);
    let mut aborted: Vec<(i64, i64)> =
        data.aborted_transactions.iter().flatten().map(|aborted| (aborted.first_offset, aborted.producer_id)).collect();
    let (mut open, mut values) = (BTreeSet::new(), vec![]);
    for batch in Batches::new(&bytes_of(data)) {
        let header = *batch.header();
        assert!(header.last_offset() < data.last_stable_offset, "{header:?} is not stable");
        aborted.retain(|(first, producer)| {
            let begins = *first <= header.base_offset;
            if begins {
                open.insert(*producer);
            }
            !begins
        });
        if header.is_control() {
            open.remove(&header.producer_id);
        } else if !header.is_transactional() || !open.contains(&header.producer_id) {
            let mut records = batch.records().unwrap();
            while let Some(record) = records.next_record().unwrap() {
                values.push(String::from_utf8(record.value().unwrap().to_vec()).unwrap());
            }
        }
    }
    values
}

/// Waits until a reader of committed records gets just these.
pub fn expect_committed(client: &mut Client, topic: &Topic, partition: i32, expected: &[&str]) {
    let end = Instant::now() + PATIENCE;
    loop {
        let values = committed(client, topic, partition);
        if values == expected {
            return;
        }
        assert!(Instant::now() < end, "there is {values:?} instead of {expected:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What group `g` has committed for partition 0, as one that asks for stable offsets is told.
pub fn stable_offset(client: &mut Client, topic: &Topic) -> Result<i64, ErrorCode> {
    let request = OffsetFetchRequest {
        groups: vec![OffsetFetchRequestGroup {
            group_id: "g".into(),
            topics: Some(vec![OffsetFetchRequestTopics {
                name: topic.name.clone(),
                partition_indexes: vec![0],
                ..Default::default()
            }]),
            ..Default::default()
        }],
        require_stable: true,
        ..Default::default()
    };
    let answer = client.call(9, &request);
    let partition = &answer.groups[0].topics[0].partitions[0];
    match error(partition.error_code) {
        ErrorCode::None => Ok(partition.committed_offset),
        error => Err(error),
    }
}

pub fn expect_offset(client: &mut Client, topic: &Topic, expected: i64) {
    let end = Instant::now() + PATIENCE;
    while stable_offset(client, topic) != Ok(expected) {
        assert!(Instant::now() < end, "there is {:?} instead of {expected}", stable_offset(client, topic));
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn describe(client: &mut Client, id: &str) -> TransactionState {
    let request = DescribeTransactionsRequest { transactional_ids: vec![id.into()] };
    client.call(0, &request).transaction_states.remove(0)
}

pub fn expect_state(client: &mut Client, expected: &str) -> TransactionState {
    let end = Instant::now() + PATIENCE;
    loop {
        let state = describe(client, "tx");
        if state.transaction_state == expected {
            return state;
        }
        assert!(Instant::now() < end, "{state:?} never becomes {expected}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
