//! What is no request, or more than the limits allow: it ends its connection at most, costs bounded memory, and disturbs
//! nobody else.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use bytes::Bytes;
use doze::protocol::messages::api_versions::{ApiVersion, ApiVersionsRequest};
use doze::protocol::messages::create_topics::CreateTopicsRequest;
use doze::protocol::messages::fetch::FetchRequest;
use doze::protocol::messages::join_group::JoinGroupRequest;
use doze::protocol::messages::list_offsets::ListOffsetsRequest;
use doze::protocol::messages::metadata::MetadataRequest;
use doze::protocol::messages::offset_commit::OffsetCommitRequest;
use doze::protocol::messages::produce::ProduceRequest;
use doze::protocol::{ApiKey, ErrorCode, Request, frame};
use doze::record::{BatchHeader, Compression};

use crate::data::*;
use crate::fetch::resident_kib;
use crate::harness::{Broker, Client, PATIENCE, request_bytes};

fn framed(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_be_bytes()[..], body].concat()
}

/// A request header of the oldest form and a body.
fn raw(api_key: i16, version: i16, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![];
    bytes.extend_from_slice(&api_key.to_be_bytes());
    bytes.extend_from_slice(&version.to_be_bytes());
    bytes.extend_from_slice(&7i32.to_be_bytes());
    bytes.extend_from_slice(&(-1i16).to_be_bytes());
    bytes.extend_from_slice(body);
    framed(&bytes)
}

/// The broker closes the connection after these bytes, without an answer.
fn is_closed_on(broker: &Broker, bytes: &[u8], what: &str) {
    let mut client = broker.connect();
    // The broker may close before all is sent.
    let _ = client.socket().write_all(bytes);
    assert_eq!(client.receive_raw(), None, "{what}");
}

#[test]
fn frames_that_cannot_be() {
    let broker = Broker::start();
    for length in [-1, i32::MIN, 0, 1, 7, 104_857_601, i32::MAX] {
        is_closed_on(&broker, &[&length.to_be_bytes()[..], &[0; 100]].concat(), &format!("a frame of {length} bytes"));
    }
    for length in [8, 9] {
        is_closed_on(&broker, &framed(&vec![0; length]), "a header without a client id");
    }
    for api in [-1, 74, 1000, i16::MAX, i16::MIN, 4, 5, 6, 7] {
        is_closed_on(&broker, &raw(api, 0, &[]), &format!("API key {api}"));
    }
    for api in ApiKey::ALL {
        if *api == ApiKey::ApiVersions {
            continue;
        }
        for version in [-1, api.versions().end() + 1, i16::MAX, i16::MIN] {
            is_closed_on(&broker, &raw(api.key(), version, &[]), &format!("{} v{version}", api.name()));
        }
        if let Some(before) = api.versions().start().checked_sub(1).filter(|version| *version >= 0) {
            is_closed_on(&broker, &raw(api.key(), before, &[]), &format!("{} v{before}", api.name()));
        }
    }
    // The connection ends in the middle of a frame.
    let mut client = broker.connect();
    client.send_raw(&[0, 0, 0, 100, 1, 2, 3]);
    client.socket().shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.receive_raw(), None);
    create_topic(&mut broker.connect(), "others-are-served", 1, &[]);
}

#[test]
fn a_frame_of_the_largest_size_is_read() {
    let broker = Broker::start_with(&["--override", "socket.request.max.bytes=20000"]);
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[]);
    let empty = request_bytes(9, 1, &produce_request(&topic, 0, ALL, &batch(&[&[0; 18_000]]))).len() - 4 - 18_000;
    let sized = |frame: usize| batch(&[&vec![0; frame - empty]]);
    assert_eq!(produce_at(&mut client, 9, &topic, 0, ALL, &sized(20_000)).error_code, 0);
    let over = request_bytes(9, 1, &produce_request(&topic, 0, ALL, &sized(20_001)));
    assert_eq!(over.len(), 20_005);
    is_closed_on(&broker, &over, "one byte more than socket.request.max.bytes");
    assert_eq!(end_offset(&mut client, &topic), 1);
}

#[test]
fn api_versions_of_the_future() {
    let broker = Broker::start();
    for version in [5, 99, i16::MAX, -1] {
        let mut client = broker.connect();
        client.send_raw(&raw(18, version, b"\x00\x05abcd\x03xy\x00"));
        let answer = client.receive_raw().unwrap();
        let (id, answer) = frame::decode_response::<ApiVersionsRequest>(0, answer).unwrap();
        assert_eq!((id, error(answer.error_code)), (7, ErrorCode::UnsupportedVersion), "v{version}");
        assert_eq!(answer.api_keys, [ApiVersion { api_key: 18, min_version: 0, max_version: 4 }]);
        // The connection lives, and the client asks again.
        let request = ApiVersionsRequest { client_software_name: "test".into(), client_software_version: "1.0".into() };
        for version in 0..=4 {
            let answer = client.call(version, &request);
            assert_eq!(answer.error_code, 0);
            let produce = answer.api_keys.iter().find(|api| api.api_key == 0).unwrap();
            assert_eq!((produce.min_version, produce.max_version), (0, 13));
        }
        let answer = client.call(3, &ApiVersionsRequest { client_software_name: "not a word!".into(), ..request });
        assert_eq!(error(answer.error_code), ErrorCode::InvalidRequest);
    }
}

/// Splitmix64.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.next() as u8).collect()
    }
}

/// Sends bytes, gives the broker the end of them, and takes in whatever it says.
fn send_and_hang_up(broker: &Broker, bytes: &[u8]) {
    let mut socket = TcpStream::connect(broker.address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let _ = socket.write_all(bytes);
    let _ = socket.shutdown(Shutdown::Write);
    let mut sink = [0; 4096];
    loop {
        match socket.read(&mut sink) {
            Ok(1..) => {}
            Ok(0) => return,
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => return,
            Err(e) => panic!("the broker neither answers nor closes: {e}"),
        }
    }
}

#[test]
fn random_bytes() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| now_ms() as u64);
    println!("SEED={seed}");
    let mut rng = Rng(seed);
    // Damage may make a fetch wait for ever; it is not kept for longer than it might be idle.
    let broker = Broker::start_with(&["--override", "connections.max.idle.ms=1000"]);
    let mut other = broker.connect();
    let topic = create_topic(&mut other, "t", 1, &[]);
    let first = batch(&[b"x"]);
    produce_ok(&mut other, &topic, &first);
    let first = stored(&first, 0);
    let before = resident_kib(broker.pid());
    for i in 0..3000 {
        let n = rng.below(300) as usize;
        let body = rng.bytes(n);
        let bytes = match i % 4 {
            // Plainly random; a frame of random content; a real header before random content; a real request, damaged.
            0 => body,
            1 => framed(&body),
            2 => {
                let api = ApiKey::ALL[rng.below(ApiKey::ALL.len() as u64) as usize];
                let versions = api.versions();
                let version = versions.start() + rng.below((versions.end() - versions.start() + 1) as u64) as i16;
                raw(api.key(), version, &body)
            }
            _ => {
                let mut bytes = some_request(rng.below(SOME_REQUESTS), &topic);
                for _ in 0..1 + rng.below(4) {
                    let at = 4 + rng.below(bytes.len() as u64 - 4) as usize;
                    bytes[at] = rng.next() as u8;
                }
                bytes
            }
        };
        send_and_hang_up(&broker, &bytes);
    }
    let after = resident_kib(broker.pid());
    assert!(after < before + 100_000, "{after} KiB resident, {before} before");
    let mut other = broker.connect();
    // Damage may leave a produce whole, but nothing touches what is there.
    assert!(fetch_from(&mut other, &topic, 0).starts_with(&first), "SEED={seed}");
}

const SOME_REQUESTS: u64 = 8;

fn some_request(which: u64, topic: &Topic) -> Vec<u8> {
    fn request<R: Request>(version: i16, request: &R) -> Vec<u8> {
        request_bytes(version, 1, request)
    }
    let mut join = JoinGroupRequest::default();
    (join.group_id, join.protocol_type, join.session_timeout_ms) = ("g".into(), "consumer".into(), 10_000);
    let create = CreateTopicsRequest { validate_only: true, ..Default::default() };
    match which {
        0 => request(9, &produce_request(topic, 0, ALL, &batch(&[b"abc", b"def"]))),
        1 => request(3, &produce_request(topic, 0, 1, &batch(&[b"abc", b"def"]))),
        2 => request(13, &fetch_request(topic, 0, 0)),
        3 => request(4, &fetch_request(topic, 0, 0)),
        4 => request(9, &MetadataRequest { topics: None, ..Default::default() }),
        5 => request(9, &join),
        6 => request(8, &OffsetCommitRequest { group_id: "g".into(), ..Default::default() }),
        _ => request(7, &create),
    }
}

#[test]
fn requests_cut_off_at_every_length() {
    let broker = Broker::start();
    let mut other = broker.connect();
    let topic = create_topic(&mut other, "t", 1, &[]);
    for which in 0..SOME_REQUESTS {
        let whole = some_request(which, &topic);
        for n in 0..whole.len() {
            // The connection ends there; and then the frame itself is so short.
            send_and_hang_up(&broker, &whole[..n]);
            if n >= 4 {
                is_closed_on(&broker, &framed(&whole[4..n]), &format!("request {which} cut to {n} bytes"));
            }
        }
        is_closed_on(&broker, &framed(&[&whole[4..], &[0]].concat()), &format!("request {which} and a byte"));
    }
    assert_eq!(end_offset(&mut other, &topic), 0);
}

/// Counts and lengths that claim what is not there.
#[test]
fn claims_of_two_billion_elements() {
    let broker = Broker::start();
    let mut other = broker.connect();
    let topic = create_topic(&mut other, "t", 1, &[]);
    let before = resident_kib(broker.pid());
    let max = i32::MAX.to_be_bytes();
    // In the flexible form, as a varint of one more.
    let compact = [0xff, 0xff, 0xff, 0xff, 0x07];
    let flexible = |api, version, body: &[u8]| raw(api, version, &[&[0], body].concat());
    for _ in 0..20 {
        for (what, bytes) in [
            ("produce topics", raw(0, 3, &[&[0xff, 0xff, 0, 1, 0, 0, 0, 0][..], &max].concat())),
            ("fetch topics", raw(1, 4, &[&[0xff; 4][..], &[0; 13], &max].concat())),
            ("metadata topics", raw(3, 1, &max)),
            ("list offsets topics", raw(2, 1, &[&[0xff; 4][..], &max].concat())),
            ("flexible metadata topics", flexible(3, 9, &compact)),
            ("flexible produce topics", flexible(0, 9, &[&[0, 0, 1, 0, 0, 0, 0][..], &compact].concat())),
            ("tagged fields", flexible(18, 3, &[&[2, b'a', 2, b'1'][..], &compact].concat())),
            ("a client id of 32 KiB", framed(&[&[0, 18, 0, 0, 0, 0, 0, 1, 0x7f, 0xff][..], &[0; 10]].concat())),
        ] {
            is_closed_on(&broker, &bytes, what);
        }
    }
    // As many elements as a large frame can hold, each of which would take many times its bytes in memory.
    let mut body = vec![0xff, 0xff, 0xff, 0xff];
    let count = 20_000_000u32;
    body.extend_from_slice(&count.to_be_bytes());
    body.resize(8 + 6 * count as usize / 2, 0);
    is_closed_on(&broker, &raw(2, 1, &body), "more topics than bytes");
    let after = resident_kib(broker.pid());
    assert!(after < before + 300_000, "{after} KiB resident, {before} before");
    produce_ok(&mut other, &topic, &batch(&[b"x"]));
}

#[test]
fn frames_that_were_begun_hold_only_what_has_come() {
    let broker = Broker::start();
    let before = resident_kib(broker.pid());
    let connections: Vec<Client> = (0..100)
        .map(|_| {
            let mut client = broker.connect();
            client.send_raw(&[&100_000_000u32.to_be_bytes()[..], &[0; 100]].concat());
            client
        })
        .collect();
    let mut other = broker.connect();
    let topic = create_topic(&mut other, "t", 1, &[]);
    produce_ok(&mut other, &topic, &batch(&[b"x"]));
    let after = resident_kib(broker.pid());
    assert!(after < before + 20_000, "{after} KiB resident, {before} before; 10 GB were announced");
    drop(connections);
}

#[test]
fn a_connection_has_one_fetch_parked_however_many_it_sends() {
    let broker = Broker::start();
    let mut other = broker.connect();
    let topic = create_topic(&mut other, "t", 1, &[]);
    let before = resident_kib(broker.pid());
    let mut request = fetch_request(&topic, 0, 0);
    request.max_wait_ms = 60_000;
    let partition = request.topics[0].partitions[0].clone();
    request.topics[0].partitions = vec![partition; 20_000];
    let bytes = request_bytes(12, 1, &request);
    let greedy = broker.connect();
    let mut sender = greedy.socket().try_clone().unwrap();
    let sending = std::thread::spawn(move || (0..60).all(|_| sender.write_all(&bytes).is_ok()));
    let mut most = 0;
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(50));
        most = most.max(resident_kib(broker.pid()));
        assert_eq!(end_offset(&mut other, &topic), 0);
    }
    assert!(most < before + 60_000, "{most} KiB resident, {before} before");
    greedy.socket().shutdown(Shutdown::Both).unwrap();
    assert!(!sending.join().unwrap(), "not all of it was taken in");
}

/// A batch of one record whose value is so many zeros.
fn bomb(size: usize, codec: Compression) -> Bytes {
    fn varint(mut n: u64, out: &mut Vec<u8>) {
        while n >= 0x80 {
            out.push(n as u8 | 0x80);
            n >>= 7;
        }
        out.push(n as u8);
    }
    let zigzag = |n: i64| ((n << 1) ^ (n >> 63)) as u64;
    let mut front = vec![0, 0, 0, 1];
    varint(zigzag(size as i64), &mut front);
    let mut prefix = vec![];
    varint(zigzag((front.len() + size + 1) as i64), &mut prefix);
    prefix.extend_from_slice(&front);
    let mut records = vec![];
    match codec {
        Compression::Zstd => {
            // A frame with a window of 128 KiB and no size, of blocks that repeat a byte.
            records.extend_from_slice(&[0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38]);
            let mut block = |kind: u32, size: usize, last: bool, content: &[u8]| {
                let header = u32::from(last) | (kind << 1) | ((size as u32) << 3);
                records.extend_from_slice(&header.to_le_bytes()[..3]);
                records.extend_from_slice(content);
            };
            block(0, prefix.len(), false, &prefix);
            let mut left = size;
            while left > 0 {
                let some = left.min(128 * 1024);
                block(1, some, false, &[0]);
                left -= some;
            }
            block(0, 1, true, &[0]);
        }
        Compression::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(records, flate2::Compression::fast());
            encoder.write_all(&prefix).unwrap();
            let zeros = vec![0; 1 << 20];
            for _ in 0..size / zeros.len() {
                encoder.write_all(&zeros).unwrap();
            }
            encoder.write_all(&[0]).unwrap();
            records = encoder.finish().unwrap();
        }
        other => panic!("no bomb of {other:?}"),
    }
    let mut header = BatchHeader::read(batch(&[b"x"]).first_chunk().unwrap());
    header.batch_length = 49 + records.len() as i32;
    header.set_compression(codec);
    header.crc = header.compute_crc(&records);
    assert!(records.len() < 1_000_000, "{} bytes", records.len());
    [&header.encode()[..], &records].concat().into()
}

#[test]
fn a_decompression_bomb_costs_no_memory_and_holds_nobody_up() {
    let broker = Broker::start();
    let mut other = broker.connect();
    let topic = create_topic(&mut other, "t", 2, &[]);
    produce_ok(&mut other, &topic, &batch(&[b"warm"]));
    assert_eq!(produce_at(&mut other, 13, &topic, 1, ALL, &batch(&[b"warm"])).error_code, 0);
    for (codec, size, bombs) in [(Compression::Zstd, 1usize << 30, 12), (Compression::Gzip, 1 << 27, 4)] {
        let bomb = bomb(size, codec);
        let before = resident_kib(broker.pid());
        // More than there are threads to be held up.
        let mut bombers: Vec<Client> = (0..bombs).map(|_| broker.connect()).collect();
        let begun = Instant::now();
        for bomber in &mut bombers {
            bomber.send(9, &produce_request(&topic, 1, ALL, &bomb));
        }
        for bomber in &bombers {
            bomber.socket().set_nonblocking(true).unwrap();
        }
        let is_answered = |client: &Client| client.socket().peek(&mut [0; 1]).is_ok();
        let (mut acks, mut slowest, mut most) = (0, Duration::ZERO, 0);
        while !bombers.iter().all(is_answered) {
            let sent = Instant::now();
            produce_ok(&mut other, &topic, &batch(&[b"meanwhile"]));
            slowest = slowest.max(sent.elapsed());
            acks += 1;
            most = most.max(resident_kib(broker.pid()));
            assert!(begun.elapsed() < PATIENCE);
        }
        let took = begun.elapsed();
        for bomber in &mut bombers {
            bomber.socket().set_nonblocking(false).unwrap();
            let answer = bomber.receive::<ProduceRequest>(9, 1);
            let answer = &answer.responses[0].partition_responses[0];
            assert_eq!(error(answer.error_code), ErrorCode::None, "it is a good batch: {answer:?}");
        }
        println!("{codec:?}: {bombs} bombs took {took:?}, the slowest of {acks} acks meanwhile {slowest:?}");
        assert!(slowest < took / 3 || slowest < Duration::from_millis(100), "{slowest:?} of {took:?}");
        assert!(acks >= 3, "{acks} acks in {took:?}");
        assert!(most < before + 30_000, "{most} KiB resident, {before} before");
    }
}

#[test]
fn connections_per_address_are_limited() {
    let broker = Broker::start_with(&[
        "--override",
        "max.connections.per.ip=1",
        "--override",
        "max.connections.per.ip.overrides=10.1.1.1:7,127.0.0.1:3",
    ]);
    let mut held: Vec<Client> = (0..3).map(|_| broker.connect()).collect();
    let request = ApiVersionsRequest::default();
    for client in &mut held {
        assert_eq!(client.call(0, &request).error_code, 0);
    }
    let mut fourth = broker.connect();
    assert_eq!(fourth.receive_raw(), None);
    broker.expect_to_say("max.connections.per.ip");
    held.pop();
    let end = Instant::now() + PATIENCE;
    loop {
        // The broker needs a moment to see that one has left.
        let mut again = broker.connect();
        let _ = again.socket().write_all(&request_bytes(0, 1, &request));
        if again.receive_raw().is_some() {
            break;
        }
        assert!(Instant::now() < end, "the place of one that left is free again");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(held[0].call(0, &request).error_code, 0);
}

#[test]
fn idle_connections_are_closed_and_waiting_ones_are_not() {
    let broker = Broker::start_with(&["--override", "connections.max.idle.ms=700"]);
    let mut idle = broker.connect();
    let mut waiting = broker.connect();
    let mut busy = broker.connect();
    let topic = create_topic(&mut busy, "t", 1, &[]);
    let mut request = fetch_request(&topic, 0, 0);
    request.max_wait_ms = 2000;
    let id = waiting.send(12, &request);
    let begun = Instant::now();
    let mut half = broker.connect();
    half.send_raw(&[0, 0, 1, 0, 0]);
    let mut slow = broker.connect();
    let mut bytes = request_bytes(0, 1, &ApiVersionsRequest::default()).into_iter();
    let watcher = std::thread::spawn(move || {
        assert_eq!(idle.receive_raw(), None);
        let idled = begun.elapsed();
        assert_eq!(half.receive_raw(), None, "a request that was begun is no reason to stay");
        idled
    });
    while begun.elapsed() < Duration::from_millis(2000) {
        assert_eq!(busy.call(0, &ApiVersionsRequest::default()).error_code, 0);
        slow.send_raw(bytes.next().as_slice());
        std::thread::sleep(Duration::from_millis(100));
    }
    bytes.for_each(|byte| slow.send_raw(&[byte]));
    assert_eq!(slow.receive::<ApiVersionsRequest>(0, 1).error_code, 0, "a request that arrives slowly arrives");
    assert_eq!(only(&waiting.receive::<FetchRequest>(12, id)).error_code, 0);
    let idled = watcher.join().unwrap();
    assert!((Duration::from_millis(500)..Duration::from_secs(20)).contains(&idled), "{idled:?}");
}

#[test]
fn a_half_closed_client_gets_its_answers() {
    let broker = Broker::start();
    let mut other = broker.connect();
    let topic = create_topic(&mut other, "t", 1, &[]);
    let mut client = broker.connect();
    let mut parked = fetch_request(&topic, 0, 3);
    parked.max_wait_ms = 300;
    let mut ids = vec![];
    for i in 0..3u8 {
        ids.push(client.send(9, &produce_request(&topic, 0, ALL, &batch(&[&[i]]))));
    }
    let fetch = client.send(12, &parked);
    let list = client.send(1, &ListOffsetsRequest { replica_id: -1, ..Default::default() });
    client.socket().shutdown(Shutdown::Write).unwrap();
    for (i, id) in ids.into_iter().enumerate() {
        let answer = client.receive::<ProduceRequest>(9, id);
        assert_eq!(answer.responses[0].partition_responses[0].base_offset, i as i64);
    }
    assert_eq!(only(&client.receive::<FetchRequest>(12, fetch)).high_watermark, 3);
    client.receive::<ListOffsetsRequest>(1, list);
    assert_eq!(client.receive_raw(), None, "and then the connection ends");
    assert_eq!(end_offset(&mut other, &topic), 3);
}
