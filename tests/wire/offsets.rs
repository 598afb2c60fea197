//! ListOffsets, DeleteRecords and OffsetForLeaderEpoch.

use doze::protocol::ErrorCode;
use doze::protocol::messages::delete_records::{DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic};
use doze::protocol::messages::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use doze::protocol::messages::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use doze::record::{BatchOptions, Codec};

use crate::data::*;
use crate::harness::{Broker, Client};

/// (error, offset, timestamp, leader epoch)
type Found = (ErrorCode, i64, i64, i32);

const NOTHING: Found = (ErrorCode::None, -1, -1, -1);

fn find(client: &mut Client, version: i16, topic: &Topic, timestamp: i64) -> Found {
    let answer = list_offset(client, version, topic, timestamp);
    (error(answer.error_code), answer.offset, answer.timestamp, answer.leader_epoch)
}

/// The version from which on each special timestamp is known.
const SPECIAL: [(i64, i16); 7] = [(-1, 1), (-2, 1), (-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, i16::MAX)];

#[test]
fn special_timestamps() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[("internal.segment.bytes", "2000")]);
    let check = |client: &mut Client, start: i64, end: i64, latest: Found| {
        for version in 1..=11 {
            let epoch = if version >= 4 { 0 } else { -1 };
            for (timestamp, since) in SPECIAL {
                let expected = match timestamp {
                    _ if version < since => (ErrorCode::UnsupportedVersion, -1, -1, -1),
                    -1 => (ErrorCode::None, end, -1, epoch),
                    -2 | -4 => (ErrorCode::None, start, -1, epoch),
                    -3 => latest,
                    _ => NOTHING,
                };
                assert_eq!(find(client, version, &topic, timestamp), expected, "{timestamp} in v{version}");
            }
            assert_eq!(find(client, version, &topic, i64::MIN).0, ErrorCode::UnsupportedVersion);
            assert_eq!(find(client, version, &topic, i64::MAX), NOTHING);
        }
    };
    check(&mut client, 0, 0, NOTHING);
    // The latest time is in the third batch, in another segment than the end.
    let now = now_ms();
    for (i, time) in [now, now - 50_000, now + 50_000, now + 1, now - 100].into_iter().enumerate() {
        let values: [&[u8]; 3] = [&[0; 400], b"b", b"c"];
        let at = produce_ok(&mut client, &topic, &batch_of(BatchOptions::default(), time, &values));
        assert_eq!(at, 3 * i as i64);
    }
    check(&mut client, 0, 15, (ErrorCode::None, 8, now + 50_002, 0));
    assert_eq!(delete_records(&mut client, 2, &topic, 4), (ErrorCode::None, 4));
    check(&mut client, 4, 15, (ErrorCode::None, 8, now + 50_002, 0));
    let broker = broker.kill().start();
    let mut client = broker.connect();
    check(&mut client, 4, 15, (ErrorCode::None, 8, now + 50_002, 0));
    assert_eq!(delete_records(&mut client, 2, &topic, -1), (ErrorCode::None, 15));
    check(&mut client, 15, 15, NOTHING);
}

#[test]
fn the_first_record_of_a_time_is_found_inside_its_batch() {
    let broker = Broker::start();
    let mut client = broker.connect();
    for (name, codec) in ["none", "gzip", "snappy", "lz4", "zstd"].into_iter().zip(CODECS) {
        let topic =
            create_topic(&mut client, name, 1, &[("internal.segment.bytes", "5000"), ("index.interval.bytes", "0")]);
        let base = now_ms() - 1_000_000;
        // 20 batches of 10 records, 10 ms between records.
        for i in 0..20i64 {
            let options = BatchOptions { codec, ..BatchOptions::default() };
            let mut builder = doze::record::BatchBuilder::new(options).unwrap();
            for j in 0..10 {
                builder.append(base + (10 * i + j) * 10, Some(b"k"), Some(&[i as u8; 80]), &[]).unwrap();
            }
            produce_ok(&mut client, &topic, &builder.finish(None).unwrap());
        }
        for offset in [0i64, 1, 9, 10, 11, 55, 100, 101, 199] {
            let time = base + 10 * offset;
            for version in [4, 6, 11] {
                assert_eq!(find(&mut client, version, &topic, time), (ErrorCode::None, offset, time, 0), "{name}");
                assert_eq!(find(&mut client, version, &topic, time - 9), (ErrorCode::None, offset, time, 0), "{name}");
            }
        }
        assert_eq!(find(&mut client, 7, &topic, 0), (ErrorCode::None, 0, base, 0));
        assert_eq!(find(&mut client, 7, &topic, base + 1991), NOTHING);
        assert_eq!(find(&mut client, 7, &topic, -3), (ErrorCode::None, 199, base + 1990, 0));
        // What was deleted is not found any more, even in a batch that is still there in part.
        assert_eq!(delete_records(&mut client, 2, &topic, 105), (ErrorCode::None, 105));
        assert_eq!(find(&mut client, 7, &topic, base), (ErrorCode::None, 105, base + 1050, 0));
    }
}

#[test]
fn partitions_that_are_asked_for_twice_or_are_not_there() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 2, &[]);
    let asked = |partition_index| ListOffsetsPartition { partition_index, timestamp: -1, ..Default::default() };
    let request = ListOffsetsRequest {
        replica_id: -1,
        topics: vec![
            ListOffsetsTopic { name: "t".into(), partitions: vec![asked(0), asked(1), asked(0), asked(2)] },
            ListOffsetsTopic { name: "u".into(), partitions: vec![asked(0)] },
        ],
        ..Default::default()
    };
    for version in 1..=11 {
        let response = client.call(version, &request);
        let codes = |name: &str| {
            let said = response.topics.iter().find(|topic| topic.name == name).unwrap();
            let mut codes: Vec<_> = said.partitions.iter().map(|p| (p.partition_index, error(p.error_code))).collect();
            codes.sort_by_key(|code| code.0);
            codes
        };
        let unknown = ErrorCode::UnknownTopicOrPartition;
        assert_eq!(codes("t"), [(0, ErrorCode::InvalidRequest), (1, ErrorCode::None), (2, unknown)]);
        assert_eq!(codes("u"), [(0, unknown)]);
    }
}

#[test]
fn leader_epochs_that_are_not_the_leaders() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1, &[]);
    for (current_leader_epoch, expected) in [
        (-1, ErrorCode::None),
        (0, ErrorCode::None),
        (1, ErrorCode::UnknownLeaderEpoch),
        (-2, ErrorCode::FencedLeaderEpoch),
    ] {
        let partitions = vec![ListOffsetsPartition { current_leader_epoch, timestamp: -1, ..Default::default() }];
        let topics = vec![ListOffsetsTopic { name: "t".into(), partitions }];
        let response = client.call(4, &ListOffsetsRequest { replica_id: -1, topics, ..Default::default() });
        assert_eq!(error(response.topics[0].partitions[0].error_code), expected);
        let found =
            end_of_epoch(&mut client, 4, "t", OffsetForLeaderPartition { current_leader_epoch, ..Default::default() });
        assert_eq!(error(found.error_code), expected);
    }
}

/// Answers the error and the low watermark.
fn delete_records(client: &mut Client, version: i16, topic: &Topic, offset: i64) -> (ErrorCode, i64) {
    delete_of(client, version, &topic.name, 0, offset)
}

fn delete_of(client: &mut Client, version: i16, name: &str, partition_index: i32, offset: i64) -> (ErrorCode, i64) {
    let partitions = vec![DeleteRecordsPartition { partition_index, offset }];
    let topics = vec![DeleteRecordsTopic { name: name.into(), partitions }];
    let response = client.call(version, &DeleteRecordsRequest { topics, timeout_ms: 30_000 });
    let answer = &response.topics[0].partitions[0];
    assert_eq!(answer.partition_index, partition_index);
    (error(answer.error_code), answer.low_watermark)
}

#[test]
fn deleted_records_stay_deleted() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[("internal.segment.bytes", "1000")]);
    let mut batches = vec![];
    for i in 0..10 {
        let batch = batch(&[&[i; 300], b"b"]);
        produce_ok(&mut client, &topic, &batch);
        batches.push(stored(&batch, 2 * i64::from(i)));
    }
    let start = |client: &mut Client| list_offset(client, 7, &topic, -2).offset;
    let fetched_code = |client: &mut Client, offset| {
        let response = client.call(12, &fetch_request(&topic, 0, offset));
        error(only(&response).error_code)
    };
    for version in 0..=2 {
        let to = 3 + i64::from(version);
        assert_eq!(delete_records(&mut client, version, &topic, to), (ErrorCode::None, to));
        assert_eq!(delete_records(&mut client, version, &topic, 1), (ErrorCode::None, to), "it never goes back");
        assert_eq!(start(&mut client), to);
        assert_eq!(fetched_code(&mut client, to - 1), ErrorCode::OffsetOutOfRange);
        for offset in [21, -2, i64::MAX, i64::MIN] {
            assert_eq!(delete_records(&mut client, version, &topic, offset), (ErrorCode::OffsetOutOfRange, -1));
        }
    }
    // A batch that is left in part is still given whole.
    let check = |client: &mut Client| {
        assert_eq!(start(client), 5);
        assert_eq!(fetched_code(client, 4), ErrorCode::OffsetOutOfRange);
        assert_eq!(fetch_all(client, &topic, 0, 5), batches[2..].concat());
    };
    check(&mut client);
    let first = broker.data_dir().join("t-0/00000000000000000000.log");
    let end = std::time::Instant::now() + crate::harness::PATIENCE;
    while first.exists() {
        assert!(std::time::Instant::now() < end, "the segment below the start goes");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let broker = broker.kill().start();
    check(&mut broker.connect());
    let broker = broker.stop().start();
    let mut client = broker.connect();
    check(&mut client);
    assert_eq!(produce(&mut client, &topic, &batch(&[b"x"])).log_start_offset, 5);
    assert_eq!(delete_records(&mut client, 2, &topic, -1), (ErrorCode::None, 21), "-1 is the high watermark");
    let broker = broker.kill().start();
    let mut client = broker.connect();
    assert_eq!((start(&mut client), end_offset(&mut client, &topic)), (21, 21));
    assert_eq!(produce_ok(&mut client, &topic, &batch(&[b"x"])), 21);
}

#[test]
fn records_that_cannot_be_deleted() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let compacted = create_topic(&mut client, "compacted", 1, &[("cleanup.policy", "compact")]);
    produce_ok(&mut client, &compacted, &batch(&[b"x"]));
    assert_eq!(delete_records(&mut client, 2, &compacted, 1), (ErrorCode::PolicyViolation, -1));
    let both = create_topic(&mut client, "both", 1, &[("cleanup.policy", "compact,delete")]);
    produce_ok(&mut client, &both, &batch(&[b"x"]));
    assert_eq!(delete_records(&mut client, 2, &both, 1), (ErrorCode::None, 1));
    let neither = create_topic(&mut client, "neither", 1, &[("cleanup.policy", "")]);
    produce_ok(&mut client, &neither, &batch(&[b"x"]));
    assert_eq!(delete_records(&mut client, 2, &neither, 1), (ErrorCode::None, 1));
    assert_eq!(delete_of(&mut client, 2, "no", 0, 0), (ErrorCode::UnknownTopicOrPartition, -1));
    assert_eq!(delete_of(&mut client, 2, "both", 1, 0), (ErrorCode::UnknownTopicOrPartition, -1));
}

fn end_of_epoch(client: &mut Client, version: i16, topic: &str, asked: OffsetForLeaderPartition) -> EpochEndOffset {
    let topics = vec![OffsetForLeaderTopic { topic: topic.into(), partitions: vec![asked] }];
    let mut response = client.call(version, &OffsetForLeaderEpochRequest { replica_id: -1, topics });
    assert_eq!(response.topics[0].topic, topic);
    response.topics[0].partitions.remove(0)
}

#[test]
fn where_a_leader_epoch_ended() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[]);
    let check = |client: &mut Client, end: i64| {
        for version in 2..=4 {
            for (leader_epoch, expected) in [(0, (0, end)), (1, (-1, -1)), (-1, (-1, -1))] {
                let asked = OffsetForLeaderPartition { current_leader_epoch: -1, leader_epoch, ..Default::default() };
                let found = end_of_epoch(client, version, "t", asked);
                assert_eq!(found.error_code, 0);
                assert_eq!((found.leader_epoch, found.end_offset), expected, "v{version}, epoch {leader_epoch}");
            }
        }
    };
    check(&mut client, 0);
    let options = BatchOptions { codec: Codec::Lz4, ..BatchOptions::default() };
    produce_ok(&mut client, &topic, &batch_of(options, now_ms(), &[b"a", b"b", b"c"]));
    check(&mut client, 3);
    let broker = broker.kill().start();
    check(&mut broker.connect(), 3);
    let broker = broker.stop().start();
    let mut client = broker.connect();
    check(&mut client, 3);
    for (name, partition) in [("u", 0), ("t", 1)] {
        let asked = OffsetForLeaderPartition { partition, current_leader_epoch: -1, ..Default::default() };
        let found = end_of_epoch(&mut client, 4, name, asked);
        assert_eq!(error(found.error_code), ErrorCode::UnknownTopicOrPartition);
        assert_eq!((found.partition, found.leader_epoch, found.end_offset), (partition, -1, -1));
    }
}
