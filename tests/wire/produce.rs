//! Produce: what is stored, what is refused, and what the answers say.

use std::io::Write;
use std::time::Duration;

use bytes::Bytes;
use doze::protocol::messages::produce::ProduceRequest;
use doze::protocol::{ErrorCode, Uuid};
use doze::record::{Batch, BatchBuilder, BatchOptions, Codec, Compression, TimestampType};

use crate::data::*;
use crate::harness::{Broker, Client, request_bytes};

#[test]
fn every_version_and_acks_stores_the_batch() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[]);
    let mut expected = vec![];
    let mut offset = 0;
    for version in 3..=13 {
        for acks in [ALL, 0, 1] {
            let batch = batch(&[format!("{version}-{acks}").as_bytes(), b"second"]);
            if acks == 0 {
                client.send(version, &produce_request(&topic, 0, 0, &batch));
            } else {
                let answer = produce_at(&mut client, version, &topic, 0, acks, &batch);
                assert_eq!(error(answer.error_code), ErrorCode::None, "v{version}, acks {acks}: {answer:?}");
                assert_eq!((answer.base_offset, answer.log_append_time_ms), (offset, -1));
                assert_eq!(answer.log_start_offset, if version >= 5 { 0 } else { -1 });
            }
            expected.extend_from_slice(&stored(&batch, offset));
            offset += 2;
        }
    }
    assert_eq!(fetch_all(&mut client, &topic, 0, 0), expected);
}

#[test]
fn versions_before_3_close_the_connection() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[]);
    for version in 0..3 {
        let mut old = broker.connect();
        // The form of version 3 has the transactional id in front, and is otherwise the same.
        let request = produce_request(&topic, 0, ALL, &batch(&[b"x"]));
        let mut bytes = request_bytes(3, 1, &request);
        bytes[6..8].copy_from_slice(&i16::to_be_bytes(version));
        old.send_raw(&bytes);
        assert_eq!(old.receive_raw(), None, "v{version}");
        bytes.drain(18..20);
        let length = bytes.len() as u32 - 4;
        bytes[..4].copy_from_slice(&length.to_be_bytes());
        let mut old = broker.connect();
        old.send_raw(&bytes);
        assert_eq!(old.receive_raw(), None, "v{version} in its own form");
    }
    assert_eq!(end_offset(&mut client, &topic), 0);
}

#[test]
fn every_codec_is_stored_as_it_came() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[]);
    let large: Vec<u8> = (0..200_000u32).map(|i| (i / 100) as u8).collect();
    let mut expected = vec![];
    for (i, codec) in CODECS.into_iter().enumerate() {
        let options = BatchOptions { codec, ..BatchOptions::default() };
        let batch = batch_of(options, now_ms(), &[b"small", &large, b""]);
        let offset = i as i64 * 3;
        assert_eq!(produce_ok(&mut client, &topic, &batch), offset);
        expected.extend_from_slice(&stored(&batch, offset));
    }
    assert_eq!(fetch_all(&mut client, &topic, 0, 0), expected);
}

#[test]
fn zstd_is_refused_before_version_7() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[]);
    let options = BatchOptions { codec: Codec::Zstd { level: 3 }, ..BatchOptions::default() };
    let batch = batch_of(options, now_ms(), &[b"x"]);
    let answer = produce_at(&mut client, 6, &topic, 0, ALL, &batch);
    assert_eq!(error(answer.error_code), ErrorCode::UnsupportedCompressionType);
    assert_eq!(end_offset(&mut client, &topic), 0);
    assert_eq!(error(produce_at(&mut client, 7, &topic, 0, ALL, &batch).error_code), ErrorCode::None);
}

#[test]
fn the_header_tells_the_latest_timestamp() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[]);
    let (now, right) = (now_ms(), batch(&[b"a", b"b", b"c"]));
    let wrong = with_header(&right, |header| header.max_timestamp = now - 1_000_000);
    produce_ok(&mut client, &topic, &wrong);
    assert_eq!(fetch_from(&mut client, &topic, 0), stored(&right, 0));
}

#[test]
fn log_append_time() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[("message.timestamp.type", "LogAppendTime")]);
    for codec in CODECS {
        // Its own time does not matter.
        let sent = batch_of(BatchOptions { codec, ..BatchOptions::default() }, 5, &[b"a", b"b"]);
        let before = now_ms();
        let answer = produce(&mut client, &topic, &sent);
        let after = now_ms();
        assert_eq!(error(answer.error_code), ErrorCode::None);
        assert!((before..=after).contains(&answer.log_append_time_ms), "{answer:?}");
        let bytes = fetch_from(&mut client, &topic, answer.base_offset);
        let back = Batch::parse(&bytes).unwrap();
        back.verify_crc().unwrap();
        assert_eq!(back.header().timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!(back.header().max_timestamp, answer.log_append_time_ms);
        assert_eq!(back.records_bytes(), &sent[61..], "the records are as they came");
        let mut records = back.records().unwrap();
        while let Some(record) = records.next_record().unwrap() {
            assert_eq!(record.timestamp(), answer.log_append_time_ms);
        }
    }
    let claimed = with_header(&batch(&[b"a"]), |header| header.set_timestamp_type(TimestampType::LogAppendTime));
    let answer = produce(&mut client, &topic, &claimed);
    assert_eq!(error(answer.error_code), ErrorCode::InvalidTimestamp, "only the broker knows when it appended");
    assert_eq!(end_offset(&mut client, &topic), 2 * CODECS.len() as i64);
}

#[test]
fn a_batch_of_max_message_bytes_is_taken_and_one_more_byte_is_not() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[("max.message.bytes", "1000")]);
    let overhead = batch(&[&[0; 500]]).len() - 500;
    let fits = batch(&[&vec![7; 1000 - overhead]]);
    assert_eq!(fits.len(), 1000);
    produce_ok(&mut client, &topic, &fits);
    let answer = produce(&mut client, &topic, &batch(&[&vec![7; 1001 - overhead]]));
    assert_eq!((error(answer.error_code), answer.base_offset), (ErrorCode::MessageTooLarge, -1));
    assert_eq!(end_offset(&mut client, &topic), 1);
}

#[test]
fn a_compacted_topic_takes_no_record_without_a_key() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[("cleanup.policy", "compact")]);
    for codec in CODECS {
        let mut builder = BatchBuilder::new(BatchOptions { codec, ..BatchOptions::default() }).unwrap();
        for key in [Some(&b"k"[..]), None, Some(b""), None] {
            builder.append(now_ms(), key, Some(b"v"), &[]).unwrap();
        }
        let answer = produce(&mut client, &topic, &builder.finish(None).unwrap());
        assert_eq!((error(answer.error_code), answer.base_offset), (ErrorCode::InvalidRecord, -1));
        let blamed: Vec<i32> = answer.record_errors.iter().map(|record| record.batch_index).collect();
        assert_eq!(blamed, [1, 3]);
        let text = answer.record_errors[0].batch_index_error_message.as_deref();
        assert_eq!(text, Some("Compacted topic cannot accept message without key in topic partition t-0"));
        assert!(answer.error_message.is_some());
    }
    assert_eq!(end_offset(&mut client, &topic), 0);
    produce_ok(&mut client, &topic, &batch(&[b"with a key"]));
}

/// Each is answered with Kafka's error, and nothing of it is stored.
#[test]
fn a_batch_that_does_not_check_out_is_refused() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let before = ("message.timestamp.before.max.ms", "600000");
    let topic = create_topic(&mut client, "t", 1, &[before, ("message.timestamp.after.max.ms", "600000")]);
    let good = batch(&[b"one", b"two"]);
    let changed = |at: usize, to: u8| -> Bytes {
        let mut bytes = good.to_vec();
        bytes[at] = to;
        bytes.into()
    };
    let at = |timestamp| batch_of(BatchOptions::default(), timestamp, &[b"x", b"y"]);
    let last = good.len() - 1;
    let (now, minutes) = (now_ms(), 60_000);
    for (what, records, expected) in [
        ("a damaged checksum", changed(17, good[17] ^ 1), ErrorCode::CorruptMessage),
        ("a damaged record", changed(last, good[last] ^ 1), ErrorCode::CorruptMessage),
        ("magic 3", changed(16, 3), ErrorCode::CorruptMessage),
        ("magic 1", changed(16, 1), ErrorCode::InvalidRecord),
        ("magic 0", changed(16, 0), ErrorCode::InvalidRecord),
        ("a control batch", with_header(&good, |header| header.set_control(true)), ErrorCode::InvalidRecord),
        ("two batches", [&good[..], &good[..]].concat().into(), ErrorCode::InvalidRecord),
        ("no records at all", Bytes::new(), ErrorCode::InvalidRecord),
        ("half a batch", good.slice(..good.len() - 5), ErrorCode::InvalidRecord),
        ("a count of three", with_header(&good, |header| header.records_count = 3), ErrorCode::InvalidRecord),
        (
            "a count and a last offset of three",
            with_header(&good, |header| (header.records_count, header.last_offset_delta) = (3, 2)),
            ErrorCode::InvalidRecord,
        ),
        (
            "a count and a last offset of one",
            with_header(&good, |header| (header.records_count, header.last_offset_delta) = (1, 0)),
            ErrorCode::InvalidRecord,
        ),
        ("a base offset", with_header(&good, |header| header.base_offset = 7), ErrorCode::InvalidRecord),
        ("a time too early", at(now - 11 * minutes), ErrorCode::InvalidTimestamp),
        ("a time too late", at(now + 11 * minutes), ErrorCode::InvalidTimestamp),
    ] {
        let answer = produce(&mut client, &topic, &records);
        assert_eq!(error(answer.error_code), expected, "{what}: {answer:?}");
        assert_eq!(answer.base_offset, -1, "{what}");
        let records = if expected == ErrorCode::InvalidTimestamp { 2 } else { 0 };
        assert_eq!(answer.record_errors.len(), records, "{what}: {answer:?}");
        assert_eq!(end_offset(&mut client, &topic), 0, "{what}");
    }
    let mut request = produce_request(&topic, 0, ALL, &good);
    request.topic_data[0].partition_data[0].records = None;
    let answer = client.call(13, &request);
    assert_eq!(error(answer.responses[0].partition_responses[0].error_code), ErrorCode::InvalidRecord, "null records");
    assert_eq!(end_offset(&mut client, &topic), 0);
    assert_eq!(produce_ok(&mut client, &topic, &at(now - 9 * minutes)), 0);
    assert_eq!(produce_ok(&mut client, &topic, &at(now + 9 * minutes)), 2);
    let timeless = batch_of(BatchOptions::default(), -1, &[b"x"]);
    assert_eq!(produce_ok(&mut client, &topic, &timeless), 4, "no time is none too early");
}

#[test]
fn unknown_topics_partitions_and_ids() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 2, &[]);
    let good = batch(&[b"x"]);
    let unknown = Topic { name: "u".into(), id: Uuid([9; 16]) };
    let answer = produce_at(&mut client, 12, &unknown, 0, ALL, &good);
    assert_eq!(error(answer.error_code), ErrorCode::UnknownTopicOrPartition);
    let answer = produce_at(&mut client, 13, &unknown, 0, ALL, &good);
    assert_eq!(error(answer.error_code), ErrorCode::UnknownTopicId);
    let answer = produce_at(&mut client, 13, &Topic { id: Uuid::ZERO, ..unknown }, 0, ALL, &good);
    assert_eq!(error(answer.error_code), ErrorCode::UnknownTopicId);
    for partition in [2, -1, i32::MAX, i32::MIN] {
        let answer = produce_at(&mut client, 13, &topic, partition, ALL, &good);
        assert_eq!((error(answer.error_code), answer.index), (ErrorCode::UnknownTopicOrPartition, partition));
    }
    let partial = {
        let mut request = produce_request(&topic, 1, ALL, &good);
        let mut more = request.topic_data[0].partition_data.clone();
        more[0].index = 5;
        request.topic_data[0].partition_data.extend(more);
        request
    };
    let answer = client.call(13, &partial);
    let codes: Vec<_> = answer.responses[0].partition_responses.iter().map(|p| error(p.error_code)).collect();
    assert_eq!(codes, [ErrorCode::None, ErrorCode::UnknownTopicOrPartition], "one does not spoil the other");
}

#[test]
fn acks_that_cannot_be() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[]);
    for acks in [2, -2, i16::MAX] {
        let answer = produce_at(&mut client, 13, &topic, 0, acks, &batch(&[b"x"]));
        assert_eq!((error(answer.error_code), answer.base_offset), (ErrorCode::InvalidRequiredAcks, -1));
        let answer = produce_at(&mut client, 13, &topic, 7, acks, &batch(&[b"x"]));
        assert_eq!(error(answer.error_code), ErrorCode::UnknownTopicOrPartition, "that is looked at first");
    }
    assert_eq!(end_offset(&mut client, &topic), 0);
}

#[test]
fn an_error_without_acks_closes_the_connection() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[]);
    let bad = with_header(&batch(&[b"x"]), |header| header.set_control(true));
    let mut silent = broker.connect();
    silent.send(13, &produce_request(&topic, 0, 0, &batch(&[b"good"])));
    silent.send(13, &produce_request(&topic, 0, 0, &bad));
    silent.send(13, &produce_request(&topic, 0, 0, &batch(&[b"never read"])));
    assert_eq!(silent.receive_raw(), None);
    assert_eq!(end_offset(&mut client, &topic), 1);
}

#[test]
fn compression_type_rewrites_what_comes_in_another_codec() {
    let broker = Broker::start();
    let mut client = broker.connect();
    for (name, codec) in ["uncompressed", "gzip", "snappy", "lz4", "zstd"].into_iter().zip(CODECS) {
        let topic = create_topic(&mut client, name, 1, &[("compression.type", name)]);
        for from in CODECS {
            let sent =
                batch_of(BatchOptions { codec: from, ..BatchOptions::default() }, now_ms(), &[b"a", &[b'b'; 9000]]);
            let offset = produce_ok(&mut client, &topic, &sent);
            let bytes = fetch_from(&mut client, &topic, offset);
            if from.compression() == codec.compression() {
                assert_eq!(bytes, stored(&sent, offset), "{from:?} to {name}");
                continue;
            }
            let back = Batch::parse(&bytes).unwrap();
            back.verify_crc().unwrap();
            assert_eq!(back.header().compression(), Ok(codec.compression()));
            assert_eq!(records_of(&back), records_of(&Batch::parse(&stored(&sent, offset)).unwrap()));
        }
    }
    let topic = create_topic(&mut client, "small", 1, &[("compression.type", "gzip"), ("max.message.bytes", "9000")]);
    let sent = batch_of(
        BatchOptions { codec: Codec::Zstd { level: 3 }, ..BatchOptions::default() },
        now_ms(),
        &[&[0; 20_000]],
    );
    produce_ok(&mut client, &topic, &sent);
    let bytes = fetch_from(&mut client, &topic, 0);
    assert_eq!(Batch::parse(&bytes).unwrap().header().compression(), Ok(Compression::Gzip));
}

/// Offset, time, key and value of each record.
fn records_of(batch: &Batch<'_>) -> Vec<String> {
    let mut records = batch.records().unwrap();
    let mut all = vec![];
    while let Some(record) = records.next_record().unwrap() {
        let (offset, timestamp) = (record.offset(), record.timestamp());
        all.push(format!("{offset} {timestamp} {:?} {:?}", record.key(), record.value()));
    }
    all
}

fn sequence_error(client: &mut Client, topic: &Topic, producer: (i64, i16), first: i32) -> ErrorCode {
    let before = end_offset(client, topic);
    let answer = produce(client, topic, &sequenced(producer, first, 2));
    assert_eq!((answer.base_offset, end_offset(client, topic)), (-1, before));
    error(answer.error_code)
}

#[test]
fn an_idempotent_producer_is_kept_to_its_sequence_over_stops_and_kills() {
    let broker = Broker::start();
    let mut client = broker.connect();
    // Some of the batches are in another segment than the last.
    let topic = create_topic(&mut client, "t", 1, &[("internal.segment.bytes", "500")]);
    let producer = new_producer(&mut client);
    let batches: Vec<Bytes> = (0..6).map(|i| sequenced(producer, 2 * i, 2)).collect();
    for (i, batch) in batches.iter().enumerate() {
        assert_eq!(produce_ok(&mut client, &topic, batch), 2 * i as i64);
    }
    let check = |client: &mut Client| {
        for (i, batch) in batches.iter().enumerate().skip(1) {
            assert_eq!(produce_ok(client, &topic, batch), 2 * i as i64, "sent again: the offset it has");
        }
        assert_eq!(
            sequence_error(client, &topic, producer, 0),
            ErrorCode::OutOfOrderSequenceNumber,
            "the sixth last is not remembered"
        );
        assert_eq!(sequence_error(client, &topic, producer, 13), ErrorCode::OutOfOrderSequenceNumber, "a gap");
        assert_eq!(end_offset(client, &topic), 12);
    };
    check(&mut client);
    let broker = broker.stop().start();
    check(&mut broker.connect());
    let broker = broker.kill().start();
    check(&mut broker.connect());
    let mut client = broker.connect();
    let newer = (producer.0, producer.1 + 1);
    assert_eq!(sequence_error(&mut client, &topic, newer, 12), ErrorCode::OutOfOrderSequenceNumber, "it starts at 0");
    assert_eq!(produce_ok(&mut client, &topic, &sequenced(newer, 0, 1)), 12);
    let old = |client: &mut Client| sequence_error(client, &topic, producer, 12);
    assert_eq!(old(&mut client), ErrorCode::InvalidProducerEpoch);
    let broker = broker.kill().start();
    let mut client = broker.connect();
    assert_eq!(old(&mut client), ErrorCode::InvalidProducerEpoch, "after a kill");
    let broker = broker.stop().start();
    let mut client = broker.connect();
    assert_eq!(old(&mut client), ErrorCode::InvalidProducerEpoch, "after a clean stop");
    assert_eq!(produce_ok(&mut client, &topic, &sequenced(newer, 1, 1)), 13);
    let other = new_producer(&mut client);
    assert_ne!(other.0, producer.0, "ids are never given twice");
}

#[test]
fn producer_ids() {
    use doze::protocol::messages::init_producer_id::InitProducerIdRequest;
    let broker = Broker::start();
    let mut client = broker.connect();
    let mut seen = std::collections::HashSet::new();
    for version in 0..=5 {
        let answer = client.call(version, &InitProducerIdRequest { transactional_id: None, ..Default::default() });
        assert_eq!((answer.error_code, answer.producer_epoch), (0, 0));
        assert!(seen.insert(answer.producer_id));
    }
    for (producer_id, producer_epoch) in [(5, -1), (-1, 0)] {
        let request =
            InitProducerIdRequest { transactional_id: None, producer_id, producer_epoch, ..Default::default() };
        let answer = client.call(4, &request);
        assert_eq!(error(answer.error_code), ErrorCode::InvalidRequest, "an id without an epoch, and the reverse");
        assert_eq!((answer.producer_id, answer.producer_epoch), (-1, -1));
    }
    let mut broker = broker;
    for round in 0..4 {
        broker = if round % 2 == 0 { broker.kill().start() } else { broker.stop().start() };
        assert!(seen.insert(new_producer(&mut broker.connect()).0), "given twice");
    }
}

/// Kafka asks for no more replicas than a partition has.
#[test]
fn min_insync_replicas_is_no_more_than_the_replicas_there_are() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[("min.insync.replicas", "2")]);
    for (offset, acks) in [ALL, 1].into_iter().enumerate() {
        let answer = produce_at(&mut client, 13, &topic, 0, acks, &batch(&[b"x"]));
        assert_eq!((error(answer.error_code), answer.base_offset), (ErrorCode::None, offset as i64));
    }
}

#[test]
fn transactional_batches_are_refused() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 2, &[]);
    let (id, epoch) = new_producer(&mut client);
    let transactional = with_header(&sequenced((id, epoch), 0, 1), |header| header.set_transactional(true));
    for version in [3, 8, 12, 13] {
        // Kafka refuses the request as a whole.
        let mut request = produce_request(&topic, 0, ALL, &batch(&[b"plain"]));
        let more = produce_request(&topic, 1, ALL, &transactional).topic_data.remove(0).partition_data.remove(0);
        request.topic_data[0].partition_data.push(more);
        let answer = client.call(version, &request);
        for partition in &answer.responses[0].partition_responses {
            assert_eq!(error(partition.error_code), ErrorCode::TransactionalIdAuthorizationFailed, "v{version}");
            assert_eq!(partition.base_offset, -1);
        }
        request.acks = 0;
        let mut silent = broker.connect();
        silent.send(version, &request);
        assert_eq!(silent.receive_raw(), None);
    }
    assert_eq!(end_offset(&mut client, &topic), 0);
}

/// Says so past the capture of what tests print.
#[allow(clippy::explicit_write)] // eprintln would be captured with the rest of the test's output.
fn skipped(why: &str) {
    writeln!(std::io::stderr(), "SKIPPED the count of flushes of pipelined requests: {why}").unwrap();
}

/// Requests that follow each other on one connection are answered in order, and one flush covers many of them.
#[test]
fn pipelined_requests_are_answered_in_order_and_share_flushes() {
    let strace = std::process::Command::new("strace").arg("-V").output().is_ok_and(|done| done.status.success());
    let broker = Broker::start_with(&["--fsync-interval", "0"]);
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[]);
    produce_ok(&mut client, &topic, &batch(&[b"the log is open"]));
    let out = tempfile::NamedTempFile::new().unwrap();
    let mut tracer = strace.then(|| {
        std::process::Command::new("strace")
            .args(["-f", "-qq", "-e", "trace=fsync,fdatasync", "-o"])
            .arg(out.path())
            .args(["-p", &broker.pid().to_string()])
            .stdin(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap()
    });
    let mut attached = tracer.is_none();
    let end = std::time::Instant::now() + Duration::from_secs(20);
    let gave_up = |tracer: &mut Option<std::process::Child>| {
        tracer.as_mut().is_some_and(|tracer| tracer.try_wait().unwrap().is_some())
    };
    while !attached && !gave_up(&mut tracer) && std::time::Instant::now() < end {
        // It traces all threads once the status of the last says so.
        attached = std::fs::read_dir(format!("/proc/{}/task", broker.pid())).unwrap().all(|task| {
            let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap_or_default();
            !status.contains("TracerPid:\t0\n")
        });
        std::thread::sleep(Duration::from_millis(5));
    }
    const REQUESTS: usize = 400;
    let batches: Vec<Bytes> = (0..REQUESTS).map(|i| batch(&[i.to_string().as_bytes()])).collect();
    let all: Vec<u8> = batches
        .iter()
        .enumerate()
        .flat_map(|(i, batch)| request_bytes(9, i as i32, &produce_request(&topic, 0, ALL, batch)))
        .collect();
    client.send_raw(&all);
    for i in 0..REQUESTS {
        let answer = client.receive::<ProduceRequest>(9, i as i32);
        let answer = &answer.responses[0].partition_responses[0];
        assert_eq!((answer.error_code, answer.base_offset), (0, i as i64 + 1));
    }
    let expected: Vec<u8> = batches.iter().enumerate().flat_map(|(i, batch)| stored(batch, i as i64 + 1)).collect();
    assert_eq!(fetch_all(&mut client, &topic, 0, 1), expected);
    match &mut tracer {
        Some(tracer) if attached => {
            // At SIGTERM it lets go of the broker.
            crate::harness::signal(tracer, "TERM");
            tracer.wait().unwrap();
            let trace = std::fs::read_to_string(out.path()).unwrap();
            let flushes = trace.lines().filter(|line| line.contains("sync(")).count();
            assert!(flushes > 0, "acks=all was answered without any flush");
            assert!(flushes < REQUESTS, "{flushes} flushes for {REQUESTS} requests");
        }
        Some(tracer) => {
            let _ = tracer.kill();
            let _ = tracer.wait();
            skipped("strace could not trace the broker");
        }
        None => skipped("there is no strace here"),
    }
}
