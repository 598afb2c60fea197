//! Fetch: what is read back, when the answer comes, and what sessions leave out.

use std::io::Read;
use std::time::{Duration, Instant};

use doze::protocol::messages::fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic};
use doze::protocol::{ErrorCode, Uuid};
use doze::record::Batches;

use crate::data::*;
use crate::harness::{Broker, Client};

/// Far longer than anything here takes: an answer that comes well before has not waited for it.
const LONG: i32 = 50_000;
const WELL_BEFORE: Duration = Duration::from_secs(25);

#[test]
fn every_version() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[]);
    let (first, second) = (batch(&[b"a", b"b"]), batch(&[b"c"]));
    produce_ok(&mut client, &topic, &first);
    produce_ok(&mut client, &topic, &second);
    let all = [stored(&first, 0), stored(&second, 2)].concat();
    for version in 4..=18 {
        let response = client.call(version, &fetch_request(&topic, 0, 0));
        assert_eq!((response.error_code, response.throttle_time_ms), (0, 0));
        let named = &response.responses[0];
        match version {
            ..13 => assert_eq!(named.topic, "t"),
            _ => assert_eq!(named.topic_id, topic.id),
        }
        let data = only(&response);
        assert_eq!((data.partition_index, data.error_code), (0, 0));
        assert_eq!((data.high_watermark, data.last_stable_offset), (3, 3));
        assert_eq!(data.log_start_offset, if version >= 5 { 0 } else { -1 });
        assert_eq!(data.preferred_read_replica, -1);
        assert_eq!(bytes_of(data), all, "v{version}");
        // An offset in the middle of a batch gets the batch whole.
        let response = client.call(version, &fetch_request(&topic, 0, 1));
        assert_eq!(bytes_of(only(&response)), all, "v{version}");
        let response = client.call(version, &fetch_request(&topic, 0, 2));
        assert_eq!(bytes_of(only(&response)), stored(&second, 2), "v{version}");
        let response = client.call(version, &fetch_request(&topic, 0, 3));
        assert_eq!((only(&response).error_code, bytes_of(only(&response)).len()), (0, 0), "the end is no error");
        let mut committed = fetch_request(&topic, 0, 0);
        committed.isolation_level = 1;
        let response = client.call(version, &committed);
        assert_eq!(bytes_of(only(&response)), all, "without transactions all is committed");
        assert_eq!(only(&response).aborted_transactions, Some(vec![]));
    }
}

#[test]
fn a_parked_fetch_is_woken_by_what_arrives() {
    let broker = Broker::start();
    let (mut reader, mut writer) = (broker.connect(), broker.connect());
    let topic = create_topic(&mut writer, "t", 2, &[]);
    for version in [4, 12, 18] {
        let at = end_offset(&mut writer, &topic);
        let mut request = fetch_request(&topic, 0, at);
        request.max_wait_ms = LONG;
        let begun = Instant::now();
        let id = reader.send(version, &request);
        // What goes to another partition is no reason to answer.
        assert_eq!(produce_at(&mut writer, 13, &topic, 1, 1, &batch(&[b"other"])).error_code, 0);
        std::thread::sleep(Duration::from_millis(100));
        let sent = batch(&[b"x"]);
        produce_ok(&mut writer, &topic, &sent);
        let response = reader.receive::<FetchRequest>(version, id);
        let took = begun.elapsed();
        assert!((Duration::from_millis(100)..WELL_BEFORE).contains(&took), "{took:?}");
        assert_eq!(bytes_of(only(&response)), stored(&sent, at));
    }
}

#[test]
fn a_parked_fetch_is_woken_by_the_deletion_of_its_topic() {
    let broker = Broker::start();
    let (mut reader, mut admin) = (broker.connect(), broker.connect());
    for version in [12, 18] {
        let topic = create_topic(&mut admin, "t", 1, &[]);
        let mut request = fetch_request(&topic, 0, 0);
        request.max_wait_ms = LONG;
        let begun = Instant::now();
        let id = reader.send(version, &request);
        std::thread::sleep(Duration::from_millis(100));
        delete_topic(&mut admin, &topic);
        let response = reader.receive::<FetchRequest>(version, id);
        assert!(begun.elapsed() < WELL_BEFORE, "{:?}", begun.elapsed());
        let code = error(only(&response).error_code);
        assert!(matches!(code, ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopicId), "{code}");
        // And once more, when it is gone.
        let response = reader.call(version, &request);
        let gone = if version >= 13 { ErrorCode::UnknownTopicId } else { ErrorCode::UnknownTopicOrPartition };
        assert_eq!(error(only(&response).error_code), gone);
        assert_eq!(only(&response).high_watermark, -1);
    }
}

#[test]
fn min_bytes_and_max_wait() {
    let broker = Broker::start();
    let (mut reader, mut writer) = (broker.connect(), broker.connect());
    let topic = create_topic(&mut writer, "t", 1, &[]);
    let one = batch(&[&[1; 100]]);
    produce_ok(&mut writer, &topic, &one);
    let mut request = fetch_request(&topic, 0, 0);
    (request.min_bytes, request.max_wait_ms) = (2 * one.len() as i32 + 1, 150);
    let begun = Instant::now();
    let response = reader.call(12, &request);
    assert!(begun.elapsed() >= Duration::from_millis(150), "{:?}", begun.elapsed());
    assert_eq!(bytes_of(only(&response)), stored(&one, 0), "too little, but what there is");
    // Enough arrives in two appends, of which the first is not.
    request.max_wait_ms = LONG;
    let begun = Instant::now();
    let id = reader.send(12, &request);
    std::thread::sleep(Duration::from_millis(50));
    let second = batch(&[&[2; 100]]);
    produce_ok(&mut writer, &topic, &second);
    std::thread::sleep(Duration::from_millis(100));
    let third = batch(&[b"3"]);
    produce_ok(&mut writer, &topic, &third);
    let response = reader.receive::<FetchRequest>(12, id);
    assert!(begun.elapsed() < WELL_BEFORE);
    let all = [stored(&one, 0), stored(&second, 1), stored(&third, 2)].concat();
    assert_eq!(bytes_of(only(&response)), all);
    // 0 bytes are there at once, and negative limits are 0.
    (request.min_bytes, request.topics[0].partitions[0].fetch_offset) = (0, 3);
    assert_eq!(bytes_of(only(&reader.call(12, &request))).len(), 0);
    (request.min_bytes, request.max_wait_ms) = (1, -1);
    assert_eq!(bytes_of(only(&reader.call(12, &request))).len(), 0);
    assert!(begun.elapsed() < WELL_BEFORE);
}

fn several(topic: &Topic, partitions: &[(i32, i64)]) -> FetchRequest {
    let mut request = fetch_request(topic, 0, 0);
    request.topics[0].partitions = partitions
        .iter()
        .map(|&(partition, fetch_offset)| FetchPartition {
            partition,
            fetch_offset,
            partition_max_bytes: i32::MAX,
            ..Default::default()
        })
        .collect();
    request
}

fn lengths(response: &FetchResponse) -> Vec<(i32, usize)> {
    let partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
    partitions.map(|data| (data.partition_index, bytes_of(data).len())).collect()
}

#[test]
fn limits_and_the_first_batch() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 3, &[]);
    let one = batch(&[&[1; 1000]]);
    let n = one.len();
    for partition in 1..3 {
        for _ in 0..4 {
            assert_eq!(produce_at(&mut client, 13, &topic, partition, 1, &one).error_code, 0);
        }
    }
    for version in [4, 12, 18] {
        let mut call = |max_bytes: usize, partition_max_bytes: usize| {
            let mut request = several(&topic, &[(0, 0), (1, 0), (2, 1)]);
            request.max_bytes = max_bytes as i32;
            request.topics[0].partitions.iter_mut().for_each(|p| p.partition_max_bytes = partition_max_bytes as i32);
            lengths(&client.call(version, &request))
        };
        assert_eq!(call(100 * n, 100 * n), [(0, 0), (1, 4 * n), (2, 3 * n)]);
        assert_eq!(call(100 * n, 2 * n), [(0, 0), (1, 2 * n), (2, 2 * n)], "batches that have room");
        assert_eq!(call(100 * n, 2 * n - 1), [(0, 0), (1, n), (2, n)], "no batch in pieces");
        assert_eq!(call(100 * n, n - 1), [(0, 0), (1, n), (2, 0)], "only the first of all may be larger");
        assert_eq!(call(100 * n, 1), [(0, 0), (1, n), (2, 0)]);
        assert_eq!(call(100 * n, 0), [(0, 0), (1, n), (2, 0)]);
        assert_eq!(call(1, 100 * n), [(0, 0), (1, n), (2, 0)]);
        assert_eq!(call(0, 100 * n), [(0, 0), (1, n), (2, 0)]);
        assert_eq!(call(3 * n, 2 * n), [(0, 0), (1, 2 * n), (2, n)]);
        assert_eq!(call(5 * n + 1, 100 * n), [(0, 0), (1, 4 * n), (2, n)]);
    }
}

#[test]
fn sessions() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 3, &[]);
    for version in [7, 12, 13, 18] {
        let start = end_offset(&mut client, &topic);
        let mut request = several(&topic, &[(0, start), (1, 0), (2, 0)]);
        request.session_epoch = 0;
        let full = client.call(version, &request);
        assert_eq!(lengths(&full), [(0, 0), (1, 0), (2, 0)], "a full response has all");
        assert_eq!(full.error_code, 0);
        let id = full.session_id;
        assert!(id > 0);
        let incremental = |epoch: i32| FetchRequest {
            session_id: id,
            session_epoch: epoch,
            max_bytes: i32::MAX,
            min_bytes: 1,
            max_wait_ms: 0,
            ..Default::default()
        };
        let nothing = client.call(version, &incremental(1));
        assert_eq!((nothing.error_code, nothing.session_id, nothing.responses.len()), (0, id, 0), "nothing new");
        let sent = batch(&[b"x"]);
        produce_ok(&mut client, &topic, &sent);
        let news = client.call(version, &incremental(2));
        assert_eq!(bytes_of(only(&news)), stored(&sent, start));
        // It was not told that this was read, so it says it again.
        let again = client.call(version, &incremental(3));
        assert_eq!(bytes_of(only(&again)), stored(&sent, start));
        let mut moved = incremental(4);
        moved.topics = several(&topic, &[(0, start + 1)]).topics;
        assert_eq!(client.call(version, &moved).responses.len(), 0);
        // A parked session wakes.
        let mut parked = incremental(5);
        parked.max_wait_ms = LONG;
        let begun = Instant::now();
        let (waiting, mut writer) = (client.send(version, &parked), broker.connect());
        std::thread::sleep(Duration::from_millis(50));
        produce_ok(&mut writer, &topic, &sent);
        let woken = client.receive::<FetchRequest>(version, waiting);
        assert!(begun.elapsed() < WELL_BEFORE);
        assert_eq!(bytes_of(only(&woken)), stored(&sent, start + 1));
        // What is forgotten is not told of any more.
        let mut forget = incremental(6);
        forget.forgotten_topics_data =
            vec![ForgottenTopic { topic: "t".into(), topic_id: topic.id, partitions: vec![0] }];
        produce_ok(&mut client, &topic, &sent);
        assert_eq!(client.call(version, &forget).responses.len(), 0);
        let mut back = incremental(7);
        back.topics = several(&topic, &[(0, start + 2)]).topics;
        assert_eq!(bytes_of(only(&client.call(version, &back))), stored(&sent, start + 2));
        // A partition that fails says so each time.
        let mut wrong = incremental(8);
        wrong.topics = several(&topic, &[(0, start + 100)]).topics;
        assert_eq!(error(only(&client.call(version, &wrong)).error_code), ErrorCode::OffsetOutOfRange);
        assert_eq!(error(only(&client.call(version, &incremental(9))).error_code), ErrorCode::OffsetOutOfRange);

        let refused = client.call(version, &incremental(9));
        assert_eq!(error(refused.error_code), ErrorCode::InvalidFetchSessionEpoch);
        assert_eq!((refused.session_id, refused.responses.len()), (0, 0));
        let mut unknown = incremental(10);
        unknown.session_id ^= 1;
        assert_eq!(error(client.call(version, &unknown).error_code), ErrorCode::FetchSessionIdNotFound);
        let naming = if version >= 13 { 12 } else { 13 };
        let other = client.call(naming, &incremental(10));
        assert_eq!(error(other.error_code), ErrorCode::FetchSessionTopicIdError);
        // The final epoch ends it.
        let mut last = several(&topic, &[(1, 0)]);
        (last.session_id, last.session_epoch) = (id, -1);
        let end = client.call(version, &last);
        assert_eq!((end.error_code, end.session_id, lengths(&end)), (0, 0, vec![(1, 0)]));
        assert_eq!(error(client.call(version, &incremental(10)).error_code), ErrorCode::FetchSessionIdNotFound);
    }
}

#[test]
fn a_topic_that_is_deleted_and_made_again_in_a_session() {
    let broker = Broker::start();
    let mut client = broker.connect();
    for version in [12, 17] {
        let topic = create_topic(&mut client, "t", 1, &[]);
        let mut request = several(&topic, &[(0, 0)]);
        request.session_epoch = 0;
        let id = client.call(version, &request).session_id;
        delete_topic(&mut client, &topic);
        let incremental = |epoch| FetchRequest { session_id: id, session_epoch: epoch, ..fetch_request(&topic, 0, 0) };
        let gone = client.call(version, &FetchRequest { topics: vec![], ..incremental(1) });
        let code = if version >= 13 { ErrorCode::UnknownTopicId } else { ErrorCode::UnknownTopicOrPartition };
        assert_eq!(error(only(&gone).error_code), code);
        let again = create_topic(&mut client, "t", 1, &[]);
        assert_ne!(again.id, topic.id);
        produce_ok(&mut client, &again, &batch(&[b"new"]));
        let response = client.call(version, &FetchRequest { topics: vec![], ..incremental(2) });
        match version {
            13.. => assert_eq!(error(only(&response).error_code), ErrorCode::UnknownTopicId, "that one is gone"),
            _ => assert_eq!(error(only(&response).error_code), ErrorCode::None),
        }
        delete_topic(&mut client, &again);
    }
}

#[test]
fn what_cannot_be_fetched() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[]);
    produce_ok(&mut client, &topic, &batch(&[b"a", b"b"]));
    let unknown = Topic { name: "u".into(), id: Uuid([9; 16]) };
    for version in 4..=18 {
        let mut code = |request: &FetchRequest| {
            let mut request = request.clone();
            // An error is told at once.
            request.max_wait_ms = LONG;
            let begun = Instant::now();
            let response = client.call(version, &request);
            assert!(begun.elapsed() < WELL_BEFORE);
            let data = only(&response);
            assert_eq!((data.high_watermark, bytes_of(data).len()), (-1, 0));
            error(data.error_code)
        };
        for offset in [-1, 3, i64::MAX, i64::MIN] {
            assert_eq!(code(&fetch_request(&topic, 0, offset)), ErrorCode::OffsetOutOfRange, "{offset}");
        }
        for partition in [1, -1, i32::MAX] {
            assert_eq!(code(&fetch_request(&topic, partition, 0)), ErrorCode::UnknownTopicOrPartition);
        }
        let expected = if version >= 13 { ErrorCode::UnknownTopicId } else { ErrorCode::UnknownTopicOrPartition };
        assert_eq!(code(&fetch_request(&unknown, 0, 0)), expected);
        if version >= 9 {
            let mut epoch = fetch_request(&topic, 0, 0);
            epoch.topics[0].partitions[0].current_leader_epoch = 1;
            assert_eq!(code(&epoch), ErrorCode::UnknownLeaderEpoch);
            epoch.topics[0].partitions[0].current_leader_epoch = -2;
            assert_eq!(error(only(&client.call(version, &epoch)).error_code), ErrorCode::None, "it does not say");
        }
    }
}

#[test]
fn segments_are_read_one_after_the_other() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic =
        create_topic(&mut client, "t", 1, &[("internal.segment.bytes", "4000"), ("index.interval.bytes", "500")]);
    let mut expected = vec![];
    for i in 0..120i64 {
        let batch = batch(&[format!("{i}").repeat(100).as_bytes(), b"second"]);
        assert_eq!(produce_at(&mut client, 13, &topic, 0, 1, &batch).base_offset, 2 * i);
        expected.push(stored(&batch, 2 * i));
    }
    let dir = broker.data_dir().join("t-0");
    let logs = |dir: &std::path::Path| {
        let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".log")).count()
    };
    assert!(logs(&dir) > 8, "{} segments", logs(&dir));
    let check = |client: &mut Client| {
        assert_eq!(fetch_all(client, &topic, 0, 0), expected.concat());
        for from in [1, 57, 119, 200, 239] {
            assert_eq!(fetch_all(client, &topic, 0, from), expected[from as usize / 2..].concat(), "from {from}");
        }
    };
    check(&mut client);
    let broker = broker.kill().start();
    check(&mut broker.connect());
    let broker = broker.stop().start();
    check(&mut broker.connect());
}

/// A large response goes to a client that takes its time, while others are served.
#[test]
fn a_large_response_to_a_slow_reader() {
    const SIZE: usize = 64 << 20;
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[("max.message.bytes", "10000000")]);
    let value = vec![0x5a; 8 << 20];
    let mut expected = 0;
    while expected < SIZE {
        let batch = batch(&[&value]);
        assert_eq!(produce_at(&mut client, 13, &topic, 0, 1, &batch).error_code, 0);
        expected += batch.len();
    }
    let before = resident_kib(broker.pid());
    let mut slow = broker.connect();
    slow.send(12, &fetch_request(&topic, 0, 0));
    // The broker's limit is 55 MiB; with its first batch a response never has less than it could.
    let whole = 55 * (1 << 20) / (expected / 8) * (expected / 8);
    let mut length = [0; 4];
    slow.socket().read_exact(&mut length).unwrap();
    let length = u32::from_be_bytes(length) as usize;
    assert!((whole..whole + 500).contains(&length), "{length}, of {whole} bytes of records");
    let (mut taken, mut piece, mut turns) = (0, vec![0; 1 << 20], 0);
    while taken < length {
        if turns < 10 {
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(end_offset(&mut client, &topic), 8, "others are served meanwhile");
            let now = resident_kib(broker.pid());
            assert!(now < before + 20_000, "{now} KiB resident, {before} before");
        }
        turns += 1;
        let want = piece.len().min(length - taken);
        slow.socket().read_exact(&mut piece[..want]).unwrap();
        taken += want;
    }
    let bytes = fetch_all(&mut client, &topic, 0, 0);
    assert_eq!(bytes.len(), expected);
    let mut batches = Batches::new(&bytes);
    assert_eq!(batches.by_ref().count(), 8);
}

/// The resident memory of a process.
pub fn resident_kib(pid: u32) -> usize {
    if let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) {
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        return line.split_whitespace().nth(1).unwrap().parse().unwrap();
    }
    // Where there is no /proc.
    let output = std::process::Command::new("ps").args(["-o", "rss=", "-p", &pid.to_string()]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

#[test]
fn many_topics_in_one_fetch() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topics: Vec<Topic> = (0..5).map(|i| create_topic(&mut client, &format!("t{i}"), 2, &[])).collect();
    for topic in &topics {
        produce_ok(&mut client, topic, &batch(&[topic.name.as_bytes()]));
    }
    let mut request = fetch_request(&topics[0], 0, 0);
    request.topics = topics.iter().flat_map(|topic| several(topic, &[(0, 0), (1, 0)]).topics).collect();
    request.topics.push(FetchTopic {
        topic: "no".into(),
        topic_id: Uuid([1; 16]),
        partitions: vec![Default::default()],
    });
    for version in [4, 12, 13, 18] {
        let response = client.call(version, &request);
        assert_eq!(response.responses.len(), 6);
        for (said, topic) in response.responses.iter().zip(&topics) {
            let bytes = bytes_of(&said.partitions[0]);
            assert!(bytes.windows(2).any(|pair| pair == topic.name.as_bytes()));
            assert_eq!(bytes_of(&said.partitions[1]).len(), 0);
        }
        assert_ne!(response.responses[5].partitions[0].error_code, 0);
    }
}
