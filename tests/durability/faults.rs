//! A disk that misbehaves, as clients see it: API by API, below the sockets.

use std::io::ErrorKind;
use std::path::Path;

use doze::protocol::ErrorCode::{self, KafkaStorageError, NotCoordinator, UnknownTopicOrPartition};
use doze::protocol::messages::describe_log_dirs::DescribeLogDirsRequest;
use doze::protocol::messages::fetch::{FetchPartition, FetchRequest, FetchTopic};
use doze::protocol::messages::heartbeat::HeartbeatRequest;
use doze::protocol::messages::join_group::{JoinGroupRequest, JoinGroupRequestProtocol};
use doze::protocol::messages::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use doze::protocol::messages::metadata::{MetadataRequest, MetadataRequestTopic};
use doze::protocol::messages::offset_fetch::{OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use doze::protocol::messages::sync_group::{SyncGroupRequest, SyncGroupRequestAssignment};
use doze::record::BatchOptions;
use doze::sys::sim::{Effect, Fault, OpKind, SimFileSystem, SyncFailure};

use crate::broker::{Life, new_disk};
use crate::requests::*;

/// A broker with something of everything in it, before its disk begins to fail.
struct Scene {
    life: Life,
    /// Of `tx`, whose transaction is open and has partition 0 of `t` and the group `in-tx` in it.
    open: Producer,
    /// Of `tx-2`, which has no transaction.
    idle: Producer,
    /// A member of the group `members`, and its generation.
    member: (String, i32),
}

fn scene(fs: SimFileSystem) -> Scene {
    let life = Life::start(7, fs).unwrap();
    for name in ["t", "u", "gone"] {
        assert_eq!(create_topic(&life, name, 3), Some(ErrorCode::None));
    }
    for partition in 0..3 {
        assert_eq!(produce(&life, "t", partition, -1), Some((ErrorCode::None, 0)));
    }
    assert_eq!(commit_offset(&life, "g", 5), Some(ErrorCode::None));
    assert_eq!(commit_offset(&life, "h", 6), Some(ErrorCode::None));
    let (code, open) = init_producer(&life, "tx").unwrap();
    assert_eq!(code, ErrorCode::None);
    assert_eq!(add_partition(&life, "tx", open, 0), Some(ErrorCode::None));
    assert_eq!(add_offsets(&life, "tx", open, "in-tx"), Some(ErrorCode::None));
    let (code, idle) = init_producer(&life, "tx-2").unwrap();
    assert_eq!(code, ErrorCode::None);
    let member = join(&life, "members", "");
    assert_eq!(sync(&life, "members", &member), ErrorCode::None);
    Scene { life, open, idle, member }
}

/// Joins a group that nobody else is in. Answers the member and the generation.
fn join(life: &Life, group: &str, member_id: &str) -> (String, i32) {
    let request = |member_id: &str| JoinGroupRequest {
        group_id: group.into(),
        session_timeout_ms: 60_000,
        rebalance_timeout_ms: 60_000,
        member_id: member_id.into(),
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupRequestProtocol { name: "range".into(), metadata: Default::default() }],
        ..Default::default()
    };
    let mut answer = life.call(5, &request(member_id)).unwrap();
    if ErrorCode::from_code(answer.error_code) == Some(ErrorCode::MemberIdRequired) {
        answer = life.call(5, &request(&answer.member_id.clone())).unwrap();
    }
    assert_eq!(answer.error_code, 0, "a join is answered");
    (answer.member_id, answer.generation_id)
}

fn sync(life: &Life, group: &str, (member_id, generation_id): &(String, i32)) -> ErrorCode {
    let assignment = SyncGroupRequestAssignment { member_id: member_id.clone(), assignment: b"all"[..].into() };
    let request = SyncGroupRequest {
        group_id: group.into(),
        generation_id: *generation_id,
        member_id: member_id.clone(),
        assignments: vec![assignment],
        ..Default::default()
    };
    ErrorCode::from_code(life.call(3, &request).unwrap().error_code).unwrap()
}

/// Everything that a client can ask for and that has to reach the disk, with what it is told when it does not.
fn refusals(scene: &Scene) -> Vec<(&'static str, Option<ErrorCode>, ErrorCode)> {
    let Scene { life, open, idle, .. } = scene;
    let produced = |acks| {
        produce(life, "t", 1, acks).map(|(code, offset)| {
            assert_eq!(offset == -1, code != ErrorCode::None, "acks={acks}");
            code
        })
    };
    vec![
        ("Produce, acks=all", produced(-1), KafkaStorageError),
        ("Produce, acks=1", produced(1), KafkaStorageError),
        ("CreateTopics", create_topic(life, "new", 1), KafkaStorageError),
        ("DeleteTopics", delete_topic(life, "gone"), KafkaStorageError),
        ("CreatePartitions", create_partitions(life, "u", 5), KafkaStorageError),
        ("DeleteRecords", delete_records(life, "t", 2, 1), KafkaStorageError),
        ("AlterConfigs", alter_configs(life, "t"), KafkaStorageError),
        ("IncrementalAlterConfigs of a topic", alter_topic_incrementally(life, "t"), KafkaStorageError),
        ("IncrementalAlterConfigs of the broker", alter_broker_incrementally(life), KafkaStorageError),
        ("AlterClientQuotas", alter_quotas(life), KafkaStorageError),
        ("AlterUserScramCredentials", alter_credentials(life), KafkaStorageError),
        ("UpdateFeatures", update_features(life), KafkaStorageError),
        ("OffsetCommit", commit_offset(life, "g", 50), NotCoordinator),
        // The group's coordinator answers these, as in Kafka.
        ("OffsetDelete", delete_offset(life, "h"), NotCoordinator),
        ("DeleteGroups", delete_group(life, "h"), NotCoordinator),
        ("InitProducerId of a new transactional id", init_producer(life, "tx-3").map(|init| init.0), NotCoordinator),
        ("InitProducerId of a known transactional id", init_producer(life, "tx-2").map(|init| init.0), NotCoordinator),
        ("AddPartitionsToTxn", add_partition(life, "tx", *open, 1), NotCoordinator),
        ("AddPartitionsToTxn that begins one", add_partition(life, "tx-2", *idle, 1), NotCoordinator),
        ("AddOffsetsToTxn", add_offsets(life, "tx-2", *idle, "g"), NotCoordinator),
        ("TxnOffsetCommit", commit_offset_in(life, "tx", *open, "in-tx", 9), NotCoordinator),
        ("EndTxn", end(life, "tx", *open, true), NotCoordinator),
        ("Metadata that would create a topic", ask_for_topic(life, "asked-for"), UnknownTopicOrPartition),
    ]
}

fn check_refusals(scene: &Scene, what: &str) {
    for (api, answered, expected) in refusals(scene) {
        assert_eq!(answered, Some(expected), "{what}: {api}");
    }
    let records = batch(BatchOptions::default(), "x");
    assert!(scene.life.closes_connection(9, &produce_request("t", 1, 0, records)), "{what}: acks=0");
}

/// What touches no disk, or only reads, goes on. Answers a member that was let in and not assigned anything.
fn check_reads(scene: &Scene, what: &str) -> String {
    let Scene { life, member, .. } = scene;
    for partition in 0..3 {
        assert_eq!(end_offset(life, "t", partition), 1, "{what}: a refused write left an offset behind");
        assert!(fetch(life, "t", partition, 0) > 0, "{what}: fetch");
    }
    assert_eq!(committed(life, "g"), 5, "{what}");
    assert_eq!(committed(life, "h"), 6, "{what}");
    let request = HeartbeatRequest {
        group_id: "members".into(),
        generation_id: member.1,
        member_id: member.0.clone(),
        ..Default::default()
    };
    assert_eq!(life.call(3, &request).unwrap().error_code, 0, "{what}: heartbeat");
    // A member that joins is let in; what its leader assigns has to be kept, and is refused as in Kafka until it can be.
    let newcomer = join(life, "new-members", "");
    assert_eq!(sync(life, "new-members", &newcomer), NotCoordinator, "{what}");
    let all = life.call(9, &MetadataRequest { topics: None, ..Default::default() }).unwrap();
    let mut names: Vec<_> = all.topics.into_iter().filter_map(|topic| topic.name).collect();
    names.sort();
    assert_eq!(names, ["gone", "t", "u"], "{what}: nothing that was refused was done");
    newcomer.0
}

fn end_offset(life: &Life, topic: &str, partition_index: i32) -> i64 {
    let partitions = vec![ListOffsetsPartition { partition_index, timestamp: -1, ..Default::default() }];
    let topics = vec![ListOffsetsTopic { name: topic.into(), partitions }];
    let answer = life.call(4, &ListOffsetsRequest { replica_id: -1, topics, ..Default::default() }).unwrap();
    let partition = &answer.topics[0].partitions[0];
    assert_eq!(partition.error_code, 0);
    partition.offset
}

/// How many bytes of records there are.
fn fetch(life: &Life, topic: &str, partition: i32, fetch_offset: i64) -> usize {
    let partition = FetchPartition { partition, fetch_offset, partition_max_bytes: i32::MAX, ..Default::default() };
    let topics = vec![FetchTopic { topic: topic.into(), partitions: vec![partition], ..Default::default() }];
    let answer = life.call(12, &FetchRequest { max_bytes: i32::MAX, topics, ..Default::default() }).unwrap();
    let data = &answer.responses[0].partitions[0];
    assert_eq!(data.error_code, 0);
    data.records.as_ref().map_or(0, |records| records.len())
}

fn committed(life: &Life, group: &str) -> i64 {
    let topic = OffsetFetchRequestTopics { name: "t".into(), partition_indexes: vec![0], ..Default::default() };
    let group = OffsetFetchRequestGroup { group_id: group.into(), topics: Some(vec![topic]), ..Default::default() };
    let answer = life.call(8, &OffsetFetchRequest { groups: vec![group], ..Default::default() }).unwrap();
    let partition = &answer.groups[0].topics[0].partitions[0];
    assert_eq!((answer.groups[0].error_code, partition.error_code), (0, 0));
    partition.committed_offset
}

/// Once nothing fails any more, everything that was refused is done when it is asked for again, without a restart.
fn check_resumed(scene: &Scene, newcomer: &str, what: &str) {
    let life = &scene.life;
    for (api, answered) in refusals_again(scene) {
        assert_eq!(answered, Some(ErrorCode::None), "{what}, once there is room: {api}");
    }
    let newcomer = join(life, "new-members", newcomer);
    assert_eq!(sync(life, "new-members", &newcomer), ErrorCode::None, "{what}");
}

fn refusals_again(scene: &Scene) -> Vec<(&'static str, Option<ErrorCode>)> {
    let Scene { life, open, .. } = scene;
    let mut again = vec![
        (
            "Produce, acks=all",
            produce(life, "t", 1, -1).map(|(code, offset)| {
                assert_eq!(offset, 1, "no offset was left behind");
                code
            }),
        ),
        ("CreateTopics", create_topic(life, "new", 1)),
        ("DeleteTopics", delete_topic(life, "gone")),
        ("CreatePartitions", create_partitions(life, "u", 5)),
        ("DeleteRecords", delete_records(life, "t", 2, 1)),
        ("AlterConfigs", alter_configs(life, "t")),
        ("IncrementalAlterConfigs of a topic", alter_topic_incrementally(life, "t")),
        ("IncrementalAlterConfigs of the broker", alter_broker_incrementally(life)),
        ("AlterClientQuotas", alter_quotas(life)),
        ("AlterUserScramCredentials", alter_credentials(life)),
        ("UpdateFeatures", update_features(life)),
        ("OffsetCommit", commit_offset(life, "g", 50)),
        ("OffsetDelete", delete_offset(life, "h")),
        ("AddPartitionsToTxn", add_partition(life, "tx", *open, 1)),
        ("TxnOffsetCommit", commit_offset_in(life, "tx", *open, "in-tx", 9)),
        ("EndTxn", end(life, "tx", *open, true)),
        ("InitProducerId", init_producer(life, "tx-2").map(|init| init.0)),
        ("Metadata that creates a topic", ask_for_topic(life, "asked-for")),
    ];
    life.settle();
    again.push(("the offset of the transaction", (committed(life, "in-tx") == 9).then_some(ErrorCode::None)));
    again
}

/// What needs room. To cut a file back needs none.
const WRITES: [OpKind; 3] = [OpKind::Write, OpKind::Create, OpKind::CreateDir];

#[test]
fn a_full_disk_refuses_every_write_with_its_code_and_goes_on_when_there_is_room() {
    for error in [ErrorKind::StorageFull, ErrorKind::Other, ErrorKind::QuotaExceeded] {
        let fs = new_disk(7);
        let scene = scene(fs.clone());
        fs.inject(Fault::on(&WRITES, Effect::Error(error)).forever());
        let what = format!("{error:?}");
        check_refusals(&scene, &what);
        let newcomer = check_reads(&scene, &what);
        let injected = fs.total_injected();
        assert!(injected > 20, "{injected} writes were refused");
        fs.clear_faults();
        check_resumed(&scene, &newcomer, &what);
        println!("{what}: {injected} operations failed");
    }
}

#[test]
fn a_write_that_stops_half_way_is_refused_like_one_that_did_not_begin() {
    for bytes in [1, 40, 5000] {
        let fs = new_disk(7);
        let scene = scene(fs.clone());
        let error = ErrorKind::StorageFull;
        fs.inject(Fault::on(&[OpKind::Write], Effect::ShortWrite { bytes, error }).forever());
        fs.inject(Fault::on(&[OpKind::Create, OpKind::CreateDir], Effect::Error(error)).forever());
        check_refusals(&scene, &format!("{bytes} bytes"));
        let newcomer = check_reads(&scene, &format!("{bytes} bytes"));
        fs.clear_faults();
        check_resumed(&scene, &newcomer, &format!("{bytes} bytes"));
    }
}

/// What is in the catalog is refused until a restart; records that need nothing of it go on.
#[test]
fn a_failed_flush_of_the_catalog_refuses_what_is_kept_there_until_a_restart() {
    for failure in SyncFailure::ALL {
        let fs = new_disk(7);
        let before = scene(fs.clone());
        fs.inject(Fault::on(&[OpKind::Sync], Effect::Sync(failure)).path("data/meta.db*"));
        assert_eq!(commit_offset(&before.life, "g", 50), Some(NotCoordinator), "{failure:?}");
        assert_eq!(fs.total_injected(), 1);
        // The disk is well again, and what it has of the last flush is not known.
        for (api, answered, expected) in refusals(&before) {
            match api {
                "Produce, acks=all" | "Produce, acks=1" => {
                    assert_eq!(answered, Some(ErrorCode::None), "{failure:?}: {api}")
                }
                _ => assert_eq!(answered, Some(expected), "{failure:?}: {api}"),
            }
        }
        drop(before);
        let life = Life::start(8, fs.kill()).unwrap();
        assert!([5, 50].contains(&committed(&life, "g")), "what was not answered may be there or not");
        assert_eq!(commit_offset(&life, "g", 51), Some(ErrorCode::None), "{failure:?}");
        assert_eq!(create_topic(&life, "new", 1), Some(ErrorCode::None), "{failure:?}");
    }
}

fn partition_state(life: &Life, topic: &str, partition: usize) -> (i32, Vec<i32>, Vec<i32>) {
    let asked = MetadataRequestTopic { name: Some(topic.into()), ..Default::default() };
    let answer = life.call(9, &MetadataRequest { topics: Some(vec![asked]), ..Default::default() }).unwrap();
    let partition = &answer.topics[0].partitions[partition];
    (partition.leader_id, partition.isr_nodes.clone(), partition.offline_replicas.clone())
}

fn log_dir_error(life: &Life) -> (ErrorCode, usize) {
    let answer = life.call(4, &DescribeLogDirsRequest { topics: None }).unwrap();
    let dir = &answer.results[0];
    let listed = dir.topics.iter().map(|topic| topic.partitions.len()).sum();
    (ErrorCode::from_code(dir.error_code).unwrap(), listed)
}

#[test]
fn a_failed_flush_takes_one_log_offline_until_a_restart_and_shows() {
    for (failure, kind, path) in [
        (Some(SyncFailure::Dropped), OpKind::Sync, "data/t-1/*.log"),
        (Some(SyncFailure::MarkedClean), OpKind::Sync, "data/t-1/*.log"),
        (Some(SyncFailure::Written), OpKind::Sync, "data/t-1/*.log"),
    ] {
        let fs = new_disk(7);
        let Scene { life, .. } = scene(fs.clone());
        assert_eq!(partition_state(&life, "t", 1), (1, vec![1], vec![]));
        assert_eq!(log_dir_error(&life), (ErrorCode::None, 9));
        let effect = failure.map_or(Effect::Error(ErrorKind::Other), Effect::Sync);
        fs.inject(Fault::on(&[kind], effect).path(path));
        assert_eq!(produce(&life, "t", 1, -1), Some((KafkaStorageError, -1)), "{failure:?}");
        assert_eq!(fs.total_injected(), 1);
        // The disk is well again; nothing is tried with it.
        for acks in [-1, 1] {
            assert_eq!(produce(&life, "t", 1, acks), Some((KafkaStorageError, -1)), "{failure:?}, acks={acks}");
        }
        let records = batch(BatchOptions::default(), "x");
        assert!(life.closes_connection(9, &produce_request("t", 1, 0, records)), "{failure:?}, acks=0");
        // Whoever looks sees it: no replica in sync, and an error of the directory. The leader stays, for readers.
        assert_eq!(partition_state(&life, "t", 1), (1, vec![], vec![1]), "{failure:?}");
        assert_eq!(log_dir_error(&life), (KafkaStorageError, 9), "{failure:?}");
        assert!(fetch(&life, "t", 1, 0) > 0, "{failure:?}");
        // Its neighbours know nothing of it.
        for partition in [0, 2] {
            assert_eq!(produce(&life, "t", partition, -1).unwrap().0, ErrorCode::None, "{failure:?}");
            assert_eq!(partition_state(&life, "t", partition as usize), (1, vec![1], vec![]));
        }
        assert_eq!(commit_offset(&life, "g", 7), Some(ErrorCode::None));
        // What was flushed before may be noted as read, and what may be lost not.
        assert_eq!(commit_offset_of(&life, "g", 1, 1), Some(ErrorCode::None));
        assert_eq!(commit_offset_of(&life, "g", 1, 2), Some(ErrorCode::NotCoordinator));
        assert!(fs.image().contains_key(Path::new("data/t-1/flush-failed")), "the next start is warned");
        drop(life);
        let life = Life::start(8, fs.kill()).unwrap();
        assert_eq!(partition_state(&life, "t", 1), (1, vec![1], vec![]));
        assert_eq!(log_dir_error(&life), (ErrorCode::None, 9));
        let (code, offset) = produce(&life, "t", 1, -1).unwrap();
        assert_eq!(code, ErrorCode::None, "{failure:?}");
        // The batch whose flush failed may be there or not; no offset is given twice.
        assert!([1, 2].contains(&offset), "{failure:?}: {offset}");
        assert_eq!(end_offset(&life, "t", 1), offset + 1);
    }
}
