//! Broker configs do what they say, as far as a client can see it.

use std::time::{Duration, Instant};

use doze::protocol::ErrorCode::{self, *};
use doze::protocol::messages::fetch::{FetchPartition, FetchRequest, FetchTopic};
use doze::protocol::messages::join_group::{JoinGroupRequest, JoinGroupRequestProtocol};
use doze::protocol::messages::metadata::MetadataRequest;
use doze::protocol::messages::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use doze::protocol::wire::Records;
use doze::record::{Batch, BatchBuilder, BatchOptions, TimestampType};

use crate::asks::*;
use crate::harness::{Broker, Client};

fn broker(configs: &[&str]) -> Broker {
    let args: Vec<&str> = configs.iter().flat_map(|config| ["--override", config]).collect();
    Broker::start_with(&args)
}

fn join(client: &mut Client, group: &str) -> ErrorCode {
    let request = JoinGroupRequest {
        group_id: group.into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupRequestProtocol { name: "range".into(), ..Default::default() }],
        ..Default::default()
    };
    ErrorCode::from_code(client.call(3, &request).error_code).unwrap()
}

/// The bytes that a fetch from the beginning gets.
fn fetch(client: &mut Client, topic: &str) -> Vec<u8> {
    let partition = FetchPartition { partition_max_bytes: 10_000_000, ..Default::default() };
    let topic = FetchTopic { topic: topic.into(), partitions: vec![partition], ..Default::default() };
    let response = client.call(12, &FetchRequest { topics: vec![topic], ..Default::default() });
    match &response.responses[0].partitions[0].records {
        Some(Records::Bytes(bytes)) => bytes.to_vec(),
        _ => vec![],
    }
}

#[test]
fn groups_may_be_so_large_and_wait_so_long() {
    let broker = broker(&["group.max.size=1"]);
    let [mut a, mut b] = [broker.connect(), broker.connect()];
    assert_eq!(join(&mut a, "g"), None);
    assert_eq!(join(&mut b, "g"), GroupMaxSizeReached);

    let broker = self::broker(&["group.initial.rebalance.delay.ms=400"]);
    let mut client = broker.connect();
    let start = Instant::now();
    assert_eq!(join(&mut client, "g"), None);
    assert!(start.elapsed() >= Duration::from_millis(400), "{:?}", start.elapsed());
}

#[test]
fn a_fetch_returns_so_much_at_most() {
    let broker = broker(&["fetch.max.bytes=2000"]);
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    for _ in 0..5 {
        produce(&mut client, "t", 0, &[0; 600]).unwrap();
    }
    let got = fetch(&mut client, "t").len();
    assert!((1000..=2000).contains(&got), "{got}");
}

#[test]
fn connections_may_be_so_many_so_idle_and_requests_so_large() {
    let broker = broker(&["max.connections=2", "connections.max.idle.ms=400", "socket.request.max.bytes=1000"]);
    let works = |client: &mut Client| {
        use std::io::Write;
        let request = crate::harness::request_bytes(0, 1, &MetadataRequest::default());
        client.socket().write_all(&request).is_ok() && client.receive_raw().is_some()
    };
    let mut clients = [broker.connect(), broker.connect(), broker.connect()];
    assert_eq!(clients.each_mut().map(works), [true, true, false]);
    // Both are closed when they have been idle, and leave room for others.
    let start = Instant::now();
    let [a, b, _] = &mut clients;
    assert!(a.receive_raw().is_none() && b.receive_raw().is_none());
    assert!((300..10_000).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    produce(&mut client, "t", 0, &[0; 500]).unwrap();
    client.send(12, &produce_request("t", 0, -1, &[0; 1000]));
    assert!(client.receive_raw().is_none(), "too large");
}

#[test]
fn topics_have_the_brokers_configs() {
    let broker = broker(&[
        "log.segment.bytes=1048576",
        "log.index.interval.bytes=0",
        "log.message.timestamp.type=LogAppendTime",
        "compression.type=zstd",
        "log.preallocate=false",
    ]);
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    let uncompressed = |name: &str, client: &mut Client| {
        create_topic_with(client, name, 1, &[("compression.type", "uncompressed"), ("segment.bytes", "2000000")]);
    };
    uncompressed("plain", &mut client);
    for topic in ["t", "plain"] {
        // What does not compress.
        let mut seed = 1u32;
        for _ in 0..4 {
            let noise = std::iter::repeat_with(|| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 24) as u8
            });
            let value: Vec<u8> = noise.take(500_000).collect();
            produce(&mut client, topic, 0, &value).unwrap();
        }
    }
    let files = |topic: &str, ending: &str| {
        let dir = broker.data_dir().join(format!("{topic}-0"));
        let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
        files.filter(|file| file.file_name().to_str().unwrap().ends_with(ending)).count()
    };
    assert_eq!((files("t", ".log"), files("plain", ".log")), (2, 2));
    let bytes = fetch(&mut client, "t");
    let header = *Batch::parse(&bytes).unwrap().header();
    assert_eq!(header.timestamp_type(), TimestampType::LogAppendTime);
    assert_eq!(header.attributes & 7, 4, "zstd");
    let bytes = fetch(&mut client, "plain");
    assert_eq!(Batch::parse(&bytes).unwrap().header().attributes & 7, 0);
}

fn produce_as(client: &mut Client, topic: &str, producer_id: i64, sequence: i32) -> ErrorCode {
    let options = BatchOptions { producer_id, producer_epoch: 0, base_sequence: sequence, ..Default::default() };
    let mut batch = BatchBuilder::new(options).unwrap();
    batch.append(1_700_000_000_000, Option::None, Some(b"x"), &[]).unwrap();
    let records = Some(Records::Bytes(batch.finish(Option::None).unwrap()));
    let topic = TopicProduceData {
        name: topic.into(),
        partition_data: vec![PartitionProduceData { index: 0, records }],
        ..Default::default()
    };
    let request = ProduceRequest { acks: -1, timeout_ms: 1000, topic_data: vec![topic], ..Default::default() };
    let response = client.call(12, &request);
    ErrorCode::from_code(response.responses[0].partition_responses[0].error_code).unwrap()
}

#[test]
fn producers_are_forgotten_when_they_have_been_silent_for_long() {
    let broker = broker(&["producer.id.expiration.ms=1", "producer.id.expiration.check.interval.ms=1"]);
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    assert_eq!(produce_as(&mut client, "t", 7, 0), None);
    let end = Instant::now() + Duration::from_secs(10);
    // A gap in the sequence is refused for as long as the producer is known.
    while produce_as(&mut client, "t", 7, 5) != None {
        assert!(Instant::now() < end, "it is never forgotten");
        std::thread::sleep(Duration::from_millis(20));
    }
    let broker = self::broker(&[]);
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    assert_eq!(produce_as(&mut client, "t", 7, 0), None);
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(produce_as(&mut client, "t", 7, 5), OutOfOrderSequenceNumber);
}
