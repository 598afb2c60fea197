//! Kafka's own topics: there once a coordinator was looked up, empty, and nobody's to write to.

use std::collections::BTreeMap;
use std::fs;

use doze::protocol::ErrorCode::{self, InvalidTopicException, TopicAuthorizationFailed};
use doze::protocol::messages::add_partitions_to_txn::{AddPartitionsToTxnRequest, AddPartitionsToTxnTopic};
use doze::protocol::messages::delete_records::{DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic};
use doze::protocol::messages::describe_configs::{DescribeConfigsRequest, DescribeConfigsResource};
use doze::protocol::messages::describe_log_dirs::DescribeLogDirsRequest;
use doze::protocol::messages::metadata::{MetadataRequest, MetadataRequestTopic};
use doze::protocol::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use doze::protocol::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use doze::protocol::messages::streams_group_heartbeat::{StreamsGroupHeartbeatRequest, Topology};

use crate::asks::{GROUP, TRANSACTION, assert_code, create_topic, delete_topic, end_offset, look_up, produce};
use crate::data::{Topic, fetch_from};
use crate::harness::{Broker, Client};

const OFFSETS: &str = "__consumer_offsets";
const TRANSACTIONS: &str = "__transaction_state";

/// All topics: how many partitions, and whether they are internal.
fn topics(client: &mut Client) -> BTreeMap<String, (usize, bool)> {
    let all = client.call(12, &MetadataRequest { topics: None, ..Default::default() });
    all.topics.into_iter().map(|topic| (topic.name.unwrap(), (topic.partitions.len(), topic.is_internal))).collect()
}

fn commit(client: &mut Client, group: &str, offset: i64) {
    let partition = OffsetCommitRequestPartition { committed_offset: offset, ..Default::default() };
    let topic = OffsetCommitRequestTopic { name: "t".into(), partitions: vec![partition], ..Default::default() };
    let commit = OffsetCommitRequest { group_id: group.into(), topics: vec![topic], ..Default::default() };
    assert_code(client.call(9, &commit).topics[0].partitions[0].error_code, ErrorCode::None);
}

fn expect<const N: usize>(client: &mut Client, expected: [(&str, usize, bool); N]) {
    let expected = expected.into_iter().map(|(name, count, internal)| (name.to_owned(), (count, internal)));
    assert_eq!(topics(client), expected.collect());
}

fn folders(broker: &Broker) -> Vec<String> {
    let entries = fs::read_dir(broker.data_dir()).unwrap().map(|entry| entry.unwrap());
    let folders = entries.filter(|entry| entry.file_type().unwrap().is_dir());
    let mut names: Vec<String> = folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_look_up_of_a_coordinator_brings_its_topic_and_nothing_on_the_disk() {
    let broker = Broker::start_with(&["--override", "transaction.state.log.num.partitions=7"]);
    let mut client = broker.connect();
    expect(&mut client, []);
    for _ in 0..2 {
        look_up(&mut client, GROUP);
        expect(&mut client, [(OFFSETS, 50, true)]);
    }
    look_up(&mut client, TRANSACTION);
    expect(&mut client, [(OFFSETS, 50, true), (TRANSACTIONS, 7, true)]);
    let sizes = client.call(4, &DescribeLogDirsRequest { topics: None });
    let sizes = sizes.results[0].topics.iter().flat_map(|topic| &topic.partitions).map(|p| p.partition_size);
    assert_eq!(sizes.collect::<Vec<_>>(), [0; 57]);
    let configs = |client: &mut Client, name: &str| -> BTreeMap<String, String> {
        let resource = DescribeConfigsResource {
            resource_type: 2,
            resource_name: name.into(),
            configuration_keys: Some(vec!["cleanup.policy".into(), "compression.type".into(), "segment.bytes".into()]),
        };
        let described = client.call(4, &DescribeConfigsRequest { resources: vec![resource], ..Default::default() });
        let configs = described.results[0].configs.iter();
        configs.map(|config| (config.name.clone(), config.value.clone().unwrap())).collect()
    };
    let expected = |codec: &str| {
        let pairs = [("cleanup.policy", "compact"), ("compression.type", codec), ("segment.bytes", "104857600")];
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
    };
    assert_eq!(configs(&mut client, OFFSETS), expected("producer"));
    assert_eq!(configs(&mut client, TRANSACTIONS), expected("uncompressed"));
    assert_eq!(folders(&broker), Vec::<String>::new());
    // They are there after a kill, and a name of the kind brings the same by being asked for.
    let broker = broker.kill().start();
    let mut client = broker.connect();
    let asked = MetadataRequestTopic { name: Some("__share_group_state".into()), ..Default::default() };
    let request = MetadataRequest { topics: Some(vec![asked]), allow_auto_topic_creation: true, ..Default::default() };
    assert_code(client.call(12, &request).topics[0].error_code, ErrorCode::None);
    expect(&mut client, [(OFFSETS, 50, true), (TRANSACTIONS, 7, true), ("__share_group_state", 50, true)]);
    assert_eq!(folders(&broker), Vec::<String>::new());
}

#[test]
fn internal_topics_are_read_as_empty_and_not_written_to() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    look_up(&mut client, GROUP);
    look_up(&mut client, TRANSACTION);
    for name in [OFFSETS, TRANSACTIONS] {
        assert_eq!(produce(&mut client, name, 0, b"x"), Err(InvalidTopicException));
        assert_eq!(produce(&mut client, name, 50, b"x"), Err(ErrorCode::UnknownTopicOrPartition));
        let partition = DeleteRecordsPartition { partition_index: 0, offset: -1 };
        let topic = DeleteRecordsTopic { name: name.into(), partitions: vec![partition] };
        let answer = client.call(2, &DeleteRecordsRequest { topics: vec![topic], ..Default::default() });
        assert_code(answer.topics[0].partitions[0].error_code, InvalidTopicException);
        let topic = |name: &str| AddPartitionsToTxnTopic { name: name.into(), partitions: vec![0] };
        let request = AddPartitionsToTxnRequest {
            v3_and_below_transactional_id: "tx".into(),
            v3_and_below_topics: vec![topic(name), topic("t")],
            ..Default::default()
        };
        let answer = client.call(3, &request);
        let codes = answer.results_by_topic_v3_and_below.iter().map(|topic| {
            let partition = &topic.results_by_partition[0];
            (topic.name.as_str(), ErrorCode::from_code(partition.partition_error_code).unwrap())
        });
        let expected = [(name, TopicAuthorizationFailed), ("t", ErrorCode::OperationNotAttempted)];
        assert_eq!(codes.collect::<Vec<_>>(), expected);
        assert_eq!(end_offset(&mut client, name, 49), Ok(0));
    }
    let asked = MetadataRequestTopic { name: Some(OFFSETS.into()), ..Default::default() };
    let asked = client.call(12, &MetadataRequest { topics: Some(vec![asked]), ..Default::default() });
    assert!(fetch_from(&mut client, &Topic { name: OFFSETS.into(), id: asked.topics[0].topic_id }, 0).is_empty());
    assert_eq!(folders(&broker), ["__consumer_offsets-0", "__consumer_offsets-49", "__transaction_state-49", "t-0"]);
    // What was read has a directory from then on, and is as empty after a start.
    let broker = broker.kill().start();
    let mut client = broker.connect();
    assert_eq!(end_offset(&mut client, OFFSETS, 49), Ok(0));
}

#[test]
fn whoever_deletes_the_topic_of_offsets_deletes_no_offset() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    look_up(&mut client, GROUP);
    commit(&mut client, "g", 5);
    delete_topic(&mut client, OFFSETS);
    expect(&mut client, [("t", 1, false)]);
    let fetch = |client: &mut Client| {
        let group = OffsetFetchRequestGroup { group_id: "g".into(), topics: None, ..Default::default() };
        let mut fetched = client.call(9, &OffsetFetchRequest { groups: vec![group], ..Default::default() });
        let group = fetched.groups.pop().unwrap();
        (group.error_code, group.topics.iter().map(|topic| topic.partitions[0].committed_offset).collect::<Vec<_>>())
    };
    assert_eq!(fetch(&mut client), (0, vec![5]));
    look_up(&mut client, GROUP);
    expect(&mut client, [(OFFSETS, 50, true), ("t", 1, false)]);
    assert_eq!(fetch(&mut client), (0, vec![5]));
}

#[test]
fn a_new_group_has_no_coordinator_before_one_was_looked_up() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    let beat = |client: &mut Client, group: &str| {
        let request = StreamsGroupHeartbeatRequest {
            group_id: group.into(),
            member_id: "member".into(),
            rebalance_timeout_ms: 1000,
            topology: Some(Topology { epoch: 1, ..Default::default() }),
            active_tasks: Some(vec![]),
            standby_tasks: Some(vec![]),
            warmup_tasks: Some(vec![]),
            process_id: Some("process".into()),
            ..Default::default()
        };
        client.call(0, &request).error_code
    };
    let offset = |client: &mut Client, group: &str| {
        let topics =
            vec![OffsetFetchRequestTopics { name: "t".into(), partition_indexes: vec![0], ..Default::default() }];
        let group = OffsetFetchRequestGroup { group_id: group.into(), topics: Some(topics), ..Default::default() };
        let mut answer = client.call(9, &OffsetFetchRequest { groups: vec![group], ..Default::default() });
        let group = answer.groups.remove(0);
        (group.error_code, group.topics.first().map(|topic| topic.partitions[0].committed_offset))
    };
    let not_there = ErrorCode::NotCoordinator.code();
    assert_eq!((beat(&mut client, "s"), offset(&mut client, "g")), (not_there, (not_there, None)));
    let topics = vec![OffsetFetchRequestTopic { name: "t".into(), partition_indexes: vec![0] }];
    let old = OffsetFetchRequest { group_id: "g".into(), topics: Some(topics), ..Default::default() };
    assert_eq!(client.call(1, &old).topics[0].partitions[0].error_code, not_there);
    look_up(&mut client, GROUP);
    assert_eq!((beat(&mut client, "s"), offset(&mut client, "g")), (0, (0, Some(-1))));
    // A group that there is goes on whatever becomes of the topic.
    commit(&mut client, "g", 5);
    delete_topic(&mut client, OFFSETS);
    assert_eq!(offset(&mut client, "g"), (0, Some(5)));
    assert_eq!((beat(&mut client, "u"), offset(&mut client, "h")), (not_there, (not_there, None)));
    look_up(&mut client, GROUP);
    assert_eq!(offset(&mut client, "h"), (0, Some(-1)));
}
