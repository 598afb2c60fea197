//! What those find who read `__consumer_offsets` and `__transaction_state`: what the coordinators know, as Kafka's records.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use doze::protocol::ErrorCode;
use doze::protocol::messages::delete_groups::DeleteGroupsRequest;
use doze::protocol::messages::init_producer_id::InitProducerIdRequest;
use doze::protocol::messages::join_group::{JoinGroupRequest, JoinGroupRequestProtocol};
use doze::protocol::messages::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use doze::protocol::messages::metadata::{MetadataRequest, MetadataRequestTopic};
use doze::protocol::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use doze::protocol::messages::sync_group::SyncGroupRequest;
use doze::record::Batches;

use crate::asks::{GROUP, TRANSACTION, assert_code, create_topic, delete_topic, look_up};
use crate::data::{Topic, fetch_all};
use crate::harness::{Broker, Client, PATIENCE};

const OFFSETS: &str = "__consumer_offsets";
const TRANSACTIONS: &str = "__transaction_state";
/// One partition each, so that everything is in order.
const ONE: &[&str] =
    &["--override", "offsets.topic.num.partitions=1", "--override", "transaction.state.log.num.partitions=1"];

/// Keys and values of a topic, in order.
type Entries = Vec<(Vec<u8>, Option<Vec<u8>>)>;

fn offset(client: &mut Client, topic: &str, timestamp: i64) -> i64 {
    let partitions = vec![ListOffsetsPartition { timestamp, ..Default::default() }];
    let topics = vec![ListOffsetsTopic { name: topic.into(), partitions }];
    let answer = client.call(7, &ListOffsetsRequest { replica_id: -1, topics, ..Default::default() });
    answer.topics[0].partitions[0].offset
}

fn entries(client: &mut Client, name: &str) -> Entries {
    let asked = MetadataRequestTopic { name: Some(name.into()), ..Default::default() };
    let metadata = client.call(12, &MetadataRequest { topics: Some(vec![asked]), ..Default::default() });
    let topic = Topic { name: name.into(), id: metadata.topics[0].topic_id };
    let (start, end) = (offset(client, name, -2), offset(client, name, -1));
    if start == end {
        return vec![];
    }
    let bytes = fetch_all(client, &topic, 0, start);
    let mut entries = vec![];
    for batch in Batches::new(&bytes) {
        let mut records = batch.records().unwrap();
        while let Some(record) = records.next_record().unwrap() {
            entries.push((record.key().unwrap().to_vec(), record.value().map(<[u8]>::to_vec)));
        }
    }
    entries
}

/// Waits until the topic is as it is to be, and answers what is in it.
#[track_caller]
fn expect(client: &mut Client, topic: &str, is_so: impl Fn(&Entries) -> bool) -> Entries {
    let until = Instant::now() + PATIENCE;
    loop {
        let found = entries(client, topic);
        if is_so(&found) {
            return found;
        }
        assert!(Instant::now() < until, "{found:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What counts of each key.
fn last(entries: &Entries) -> BTreeMap<Vec<u8>, Option<Vec<u8>>> {
    entries.iter().cloned().collect()
}

fn commit(client: &mut Client, group: &str, offset: i64) {
    let partition = OffsetCommitRequestPartition { committed_offset: offset, ..Default::default() };
    let topic = OffsetCommitRequestTopic { name: "t".into(), partitions: vec![partition], ..Default::default() };
    let request = OffsetCommitRequest { group_id: group.into(), topics: vec![topic], ..Default::default() };
    assert_code(client.call(9, &request).topics[0].partitions[0].error_code, ErrorCode::None);
}

/// The key of an offset of partition 0 of `t`.
fn offset_key(group: &str) -> Vec<u8> {
    [&[0, 1, 0, group.len() as u8], group.as_bytes(), &[0, 1, b't', 0, 0, 0, 0]].concat()
}

/// Whether the group's last word is this offset, in version 4.
fn has_offset(entries: &Entries, group: &str, offset: i64) -> bool {
    let expected = [&[0, 4][..], &offset.to_be_bytes()].concat();
    matches!(last(entries).get(&offset_key(group)), Some(Some(value)) if value.starts_with(&expected))
}

#[test]
fn committed_offsets_are_copied_and_made_anew_after_a_kill() {
    let broker = Broker::start_with(ONE);
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    look_up(&mut client, GROUP);
    commit(&mut client, "g", 5);
    expect(&mut client, OFFSETS, |found| has_offset(found, "g", 5));
    // The broker may be gone before these are copied.
    commit(&mut client, "h", 6);
    commit(&mut client, "g", 7);
    let broker = broker.kill().start();
    let mut client = broker.connect();
    // What was there before goes when all is there once more.
    let until = Instant::now() + PATIENCE;
    while offset(&mut client, OFFSETS, -2) == 0 {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(20));
    }
    let found = entries(&mut client, OFFSETS);
    assert!(has_offset(&found, "g", 7) && has_offset(&found, "h", 6), "{found:?}");
    assert_eq!(found.iter().filter(|(key, _)| *key == offset_key("g")).count(), 1);
    // What is deleted leaves a tombstone.
    let deleted = client.call(2, &DeleteGroupsRequest { groups_names: vec!["g".into()] });
    assert_code(deleted.results[0].error_code, ErrorCode::None);
    let is_gone = |found: &Entries| last(found).get(&offset_key("g")) == Some(&None);
    expect(&mut client, OFFSETS, is_gone);
    // After a clean stop the copy is as it was, with what came last.
    commit(&mut client, "h", 8);
    let broker = broker.stop().start();
    let mut client = broker.connect();
    let found = entries(&mut client, OFFSETS);
    assert!(has_offset(&found, "h", 8) && is_gone(&found), "{found:?}");
    // A topic that is made anew gets all that there is.
    delete_topic(&mut client, OFFSETS);
    look_up(&mut client, GROUP);
    expect(&mut client, OFFSETS, |found| has_offset(found, "h", 8));
}

#[test]
fn groups_and_transactional_ids_are_copied() {
    let broker = Broker::start_with(ONE);
    let mut client = broker.connect();
    look_up(&mut client, GROUP);
    look_up(&mut client, TRANSACTION);
    let protocol = JoinGroupRequestProtocol { name: "range".into(), metadata: "s".into() };
    let join = JoinGroupRequest {
        group_id: "g".into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        protocol_type: "consumer".into(),
        protocols: vec![protocol],
        ..Default::default()
    };
    let joined = client.call(3, &join);
    assert_code(joined.error_code, ErrorCode::None);
    let sync = SyncGroupRequest {
        group_id: "g".into(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        ..Default::default()
    };
    assert_code(client.call(3, &sync).error_code, ErrorCode::None);
    let key = b"\0\x02\0\x01g".to_vec();
    let value = |found: &Entries| last(found).get(&key).cloned().flatten().unwrap_or_default();
    // Version 3, and the protocol type.
    let found = expect(&mut client, OFFSETS, |found| value(found).starts_with(b"\0\x03\0\x08consumer"));
    let first = found[0].1.clone().unwrap();
    assert!(first.starts_with(&[0, 3, 0, 0, 0, 0, 0, 0]), "first of all there is an empty group: {first:?}");
    let member = joined.member_id.as_bytes();
    assert!(value(&found).windows(member.len()).any(|part| part == member));
    let init = InitProducerIdRequest {
        transactional_id: Some("x".into()),
        transaction_timeout_ms: 60_000,
        producer_id: -1,
        producer_epoch: -1,
        ..Default::default()
    };
    assert_code(client.call(4, &init).error_code, ErrorCode::None);
    let found = expect(&mut client, TRANSACTIONS, |found| !found.is_empty());
    assert_eq!(found[0].0, b"\0\0\0\x01x");
    assert!(found[0].1.as_ref().unwrap().starts_with(&[0, 1]), "{found:?}");
}
