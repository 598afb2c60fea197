//! The record layer as a whole: against Apache Kafka's own bytes, and against bytes that are damaged.

use bytes::Bytes;

use super::control::{ControlRecord, EndTxnMarker};
use super::legacy::{Entries, LegacyError};
use super::*;

mod damage;

const KAFKA_TIME: i64 = 1_700_000_000_000;

/// One of the files that Apache Kafka made: its bytes, and what Kafka reads in them.
fn golden(name: &str) -> (Bytes, String) {
    let path = format!("{}/src/record/testdata/{name}", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(format!("{path}.bin")).unwrap();
    (bytes.into(), std::fs::read_to_string(format!("{path}.txt")).unwrap())
}

fn field(bytes: Option<&[u8]>) -> String {
    match bytes {
        None => "null".to_owned(),
        Some(bytes) if bytes.len() > 100 => format!("{}:{:x}", bytes.len(), crc32c::crc32c(bytes)),
        Some(bytes) => format!("\"{}\"", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}

/// The records of a batch, in the notation of the golden files.
fn read(batch: &[u8]) -> Result<String, RecordError> {
    let batch = Batch::parse(batch)?;
    batch.verify_crc()?;
    let mut reader = batch.records()?;
    let mut text = String::new();
    while let Some(record) = reader.next_record()? {
        text += &format!("{} {} ", record.offset(), record.timestamp());
        text += &format!("{} {}", field(record.key()), field(record.value()));
        for header in record.headers() {
            text += &format!(" {}={}", field(Some(header.name)), field(header.value));
        }
        text.push('\n');
    }
    Ok(text)
}

/// The same records in a batch that doze's own builder makes.
fn rebuild(batch: &[u8], codec: Codec) -> Bytes {
    let batch = Batch::parse(batch).unwrap();
    let mut builder = BatchBuilder::new(BatchOptions::like(batch.header(), codec)).unwrap();
    let mut reader = batch.records().unwrap();
    while let Some(record) = reader.next_record().unwrap() {
        builder.append_record(&record).unwrap();
    }
    builder.finish(None).unwrap()
}

const ALL: [Codec; 5] = [Codec::None, Codec::Gzip { level: 1 }, Codec::Snappy, Codec::Lz4, Codec::Zstd { level: 1 }];

const V2: [&str; 11] = [
    "v2-none",
    "v2-gzip",
    "v2-snappy",
    "v2-lz4",
    "v2-zstd",
    "v2-long-gzip",
    "v2-long-snappy",
    "v2-long-lz4",
    "v2-long-zstd",
    "v2-append-time",
    "v2-transactional",
];

#[test]
fn what_kafka_wrote_reads_as_kafka_reads_it() {
    for name in V2 {
        let (bytes, text) = golden(name);
        assert_eq!(read(&bytes).unwrap(), text, "{name}");
        for codec in ALL {
            assert_eq!(read(&rebuild(&bytes, codec)).unwrap(), text, "{name} as {codec:?}");
        }
        let header = *Batch::parse(&bytes).unwrap().header();
        assert_eq!(BatchHeader::parse(&header.encode()), Ok(header));
        assert_eq!((header.base_offset, header.partition_leader_epoch), (1000, 5));
        assert_eq!(header.is_transactional(), name == "v2-transactional");
        if header.is_transactional() {
            assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (4001, 3, 17));
            assert_eq!(header.last_sequence(), 22);
        }
    }
}

#[test]
fn doze_makes_the_very_bytes_that_kafka_makes() {
    for name in ["v2-none", "v2-append-time", "control-commit", "control-abort"] {
        let (bytes, _) = golden(name);
        assert_eq!(rebuild(&bytes, Codec::None), bytes, "{name}");
    }
    let (commit, _) = golden("control-commit");
    let marker = EndTxnMarker { committed: true, coordinator_epoch: 9 };
    let mut ours = marker.batch(77, KAFKA_TIME, 4001, 3).unwrap().to_vec();
    ours[12..16].copy_from_slice(&5i32.to_be_bytes());
    assert_eq!(ours, commit, "all but the leader epoch, which is the log's to set");
    assert_eq!(CheckedBatch::of_own(commit.clone()).unwrap().records, commit[HEADER_LEN..]);
}

#[test]
fn the_validator_takes_what_kafkas_producers_send() {
    for name in V2.iter().filter(|name| **name != "v2-append-time") {
        let (bytes, text) = golden(name);
        let mut sent = bytes.to_vec();
        sent[..8].fill(0);
        for codec in [None, Some(Codec::None), Some(Codec::Zstd { level: -5 })] {
            let rules = Rules {
                topic_partition: "t-0".into(),
                max_message_bytes: 1 << 20,
                compacted: false,
                timestamp_type: TimestampType::CreateTime,
                timestamp_before_max_ms: i64::MAX,
                timestamp_after_max_ms: 3_600_000,
                now_ms: KAFKA_TIME,
                codec,
                zstd_allowed: true,
            };
            let checked = Validator::new(Bytes::from(sent.clone()), rules).unwrap().run().unwrap();
            let mut header = checked.header;
            header.base_offset = 1000;
            let stored = [&header.encode(), &checked.records[..]].concat();
            assert_eq!(read(&stored).unwrap(), text, "{name} into {codec:?}");
            if codec.is_none() {
                assert_eq!(stored, bytes, "{name}");
            }
        }
    }
}

#[test]
fn control_records_of_kafkas() {
    let parse = |name: &str| {
        let (bytes, _) = golden(name);
        let batch = Batch::parse(&bytes).unwrap();
        assert!(batch.header().is_control());
        let mut reader = batch.records().unwrap();
        let record = reader.next_record().unwrap().unwrap();
        ControlRecord::parse(&record).unwrap()
    };
    let end = |committed, coordinator_epoch| ControlRecord::EndTxn(EndTxnMarker { committed, coordinator_epoch });
    assert_eq!(parse("control-commit"), end(true, 9));
    assert_eq!(parse("control-abort"), end(false, 10));
    assert_eq!(parse("control-leader-change"), ControlRecord::Other { kind: 2 });
}

/// The messages of a set, in the notation of the golden files.
fn read_legacy(bytes: &[u8], limit: usize) -> Result<String, LegacyError> {
    let mut text = String::new();
    for entry in Entries::new(bytes) {
        let entry = entry?;
        entry.verify_crc()?;
        for message in entry.messages(limit)? {
            let message = message?;
            text += &format!("{} {} ", message.offset, message.timestamp);
            text += &format!("{} {}\n", field(message.key.as_deref()), field(message.value.as_deref()));
        }
    }
    Ok(text)
}

const LEGACY: [&str; 9] =
    ["v0-none", "v0-gzip", "v0-snappy", "v0-lz4", "v1-none", "v1-gzip", "v1-snappy", "v1-lz4", "v1-append-time-gzip"];

#[test]
fn message_sets_of_old_read_as_kafka_reads_them() {
    for name in LEGACY {
        let (bytes, text) = golden(name);
        assert_eq!(read_legacy(&bytes, 1 << 20).unwrap(), text, "{name}");
        let magic = i8::from(name.starts_with("v1"));
        let entries = Entries::new(&bytes).map(|entry| entry.unwrap());
        assert_eq!(entries.map(|entry| (entry.magic, entry.bytes().len())).next().unwrap().0, magic);
        assert_eq!(Batch::parse(&bytes).unwrap_err(), BatchError::OldFormat { magic });
        assert_eq!(Batches::new(&bytes).stop().why, None);
        if name.ends_with("gzip") {
            assert!(matches!(read_legacy(&bytes, 5000), Err(LegacyError::TooLarge { limit: 5000, .. })));
        }
    }
}

#[test]
fn a_damaged_message_set_is_refused_wherever_the_damage_is() {
    for name in LEGACY {
        let (bytes, text) = golden(name);
        let sizes = Entries::new(&bytes).map(|entry| entry.unwrap().bytes().len());
        let starts: Vec<usize> = sizes.scan(0, |at, size| Some((*at, *at += size).0)).collect();
        for at in 0..bytes.len().min(600) {
            for bit in [0, 3, 7] {
                let mut bent = bytes.to_vec();
                bent[at] ^= 1 << bit;
                // An entry's own offset is outside of the checksum's range.
                let in_offset = starts.iter().any(|start| (*start..start + 8).contains(&at));
                let read = read_legacy(&bent, 1 << 20);
                assert_eq!(read.is_ok(), in_offset, "bit {bit} of byte {at} of {name}: {read:?}");
            }
        }
        for cut in 0..bytes.len() {
            let read = read_legacy(&bytes[..cut], 1 << 20);
            assert!(read.is_err() || text.starts_with(&read.unwrap()), "{name} cut at {cut}");
        }
    }
}

#[test]
fn compaction_keeps_a_batchs_span_and_place() {
    let (bytes, _) = golden("v2-transactional");
    let batch = Batch::parse(&bytes).unwrap();
    let header = *batch.header();
    let options = BatchOptions { delete_horizon: Some(KAFKA_TIME + 9000), ..BatchOptions::like(&header, Codec::None) };
    let mut builder = BatchBuilder::new(options).unwrap();
    let mut reader = batch.records().unwrap();
    while let Some(record) = reader.next_record().unwrap() {
        if matches!(record.offset(), 1001 | 1004) {
            builder.append_record(&record).unwrap();
        }
    }
    let compacted = builder.finish(Some(header.last_offset_delta)).unwrap();
    let kept = *Batch::parse(&compacted).unwrap().header();
    assert_eq!((kept.base_offset, kept.last_offset(), kept.records_count), (1000, 1005, 2));
    assert_eq!((kept.producer_id, kept.producer_epoch, kept.last_sequence()), (4001, 3, 22));
    assert_eq!(kept.delete_horizon_ms(), Some(KAFKA_TIME + 9000));
    assert_eq!(kept.max_timestamp, KAFKA_TIME + 300);
    let text = read(&compacted).unwrap();
    assert!(text.starts_with("1001 1700000000300 null ") && text.contains("\n1004 1700000000002 "), "{text}");

    let empty = header.without_records().encode();
    let batch = Batch::parse(&empty).unwrap();
    batch.verify_crc().unwrap();
    assert_eq!(batch.header().last_sequence(), 22);
    assert_eq!(batch.header().last_offset(), 1005);
    assert_eq!(read(&empty).unwrap(), "");
}

#[test]
fn the_builder_refuses_what_no_batch_can_hold() {
    let options = BatchOptions { base_offset: 10, max_bytes: 200, ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(options).unwrap();
    builder.append_at(12, 0, None, None, &[]).unwrap();
    for offset in [9, 12, 11, 10 + (1 << 31), i64::MIN] {
        assert!(matches!(builder.append_at(offset, 0, None, None, &[]), Err(BuildError::BadOffset { .. })), "{offset}");
    }
    assert!(matches!(builder.append(0, None, Some(&[0; 200]), &[]), Err(BuildError::TooLarge { limit: 200 })));
}

#[test]
fn a_record_is_lent_only_up_to_the_limit() {
    for name in ["v2-long-gzip", "v2-long-snappy", "v2-long-lz4", "v2-long-zstd"] {
        let (bytes, _) = golden(name);
        let batch = Batch::parse(&bytes).unwrap();
        let mut reader = batch.records().unwrap().with_record_limit(60_000);
        let mut lent = 0;
        let error = loop {
            match reader.next_record() {
                Ok(record) => lent += i32::from(record.is_some()),
                Err(e) => break e,
            }
        };
        assert_eq!(lent, 40);
        assert!(matches!(error, RecordError::TooLarge { index: 40, limit: 60_000, .. }), "{error}");
        let mut reader = batch.records().unwrap().with_record_limit(0);
        let mut sizes = Vec::new();
        while let Some(info) = reader.skip_record().unwrap() {
            sizes.push(info.value_len);
        }
        assert_eq!((sizes.len(), sizes[40]), (81, 70_000), "passing over records holds nothing, so it has no limit");
    }
}
