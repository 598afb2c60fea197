use super::*;
use crate::record::header::MIN_BATCH_LENGTH;
use crate::record::{BatchBuilder, BatchOptions};

const NOW: i64 = 1_700_000_000_000;

const CODECS: [Codec; 5] =
    [Codec::None, Codec::Gzip { level: -1 }, Codec::Snappy, Codec::Lz4, Codec::Zstd { level: 3 }];

fn rules() -> Rules {
    Rules {
        topic_partition: "orders-3".into(),
        max_message_bytes: 1 << 20,
        compacted: false,
        timestamp_type: TimestampType::CreateTime,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: 3_600_000,
        now_ms: NOW,
        codec: None,
        zstd_allowed: true,
    }
}

/// `n` records, the latest in the middle, every third without a key.
fn batch(codec: Codec, n: i32) -> Bytes {
    let mut builder = BatchBuilder::new(BatchOptions { codec, ..BatchOptions::default() }).unwrap();
    for i in 0..n {
        let key = format!("key-{i}");
        let key = (i % 3 != 0).then_some(key.as_bytes());
        let value = format!("value {i} ").repeat(i as usize % 40);
        let time = NOW - i64::from((i - n / 2).abs());
        builder.append(time, key, Some(value.as_bytes()), &[(b"h", None), (b"h", Some(b"2"))]).unwrap();
    }
    builder.finish(None).unwrap()
}

/// The batch with another header, the checksum made anew.
fn with_header(batch: &Bytes, change: impl FnOnce(&mut BatchHeader)) -> Bytes {
    let mut header = BatchHeader::read(batch.first_chunk().unwrap());
    change(&mut header);
    header.crc = header.compute_crc(&batch[HEADER_LEN..]);
    [&header.encode(), &batch[HEADER_LEN..]].concat().into()
}

/// A batch with these bytes for its records, the checksum right.
fn with_records(count: i32, compression: Compression, records: &[u8]) -> Bytes {
    with_header(&[&batch(Codec::None, 1)[..HEADER_LEN], records].concat().into(), |header| {
        header.records_count = count;
        header.last_offset_delta = count - 1;
        header.batch_length = MIN_BATCH_LENGTH + records.len() as i32;
        header.set_compression(compression);
    })
}

fn check(bytes: &Bytes, rules: Rules) -> Result<CheckedBatch, InvalidBatch> {
    Validator::new(bytes.clone(), rules)?.run()
}

fn refused(bytes: &Bytes, rules: Rules) -> InvalidKind {
    check(bytes, rules).unwrap_err().kind()
}

/// The whole batch again, as it would stand in the log.
fn whole(checked: &CheckedBatch) -> Bytes {
    [&checked.header.encode(), &checked.records[..]].concat().into()
}

/// Everything that a consumer would see of a batch.
fn contents(bytes: &[u8]) -> Vec<String> {
    let batch = Batch::parse(bytes).unwrap();
    batch.verify_crc().unwrap();
    let mut reader = batch.records().unwrap();
    let mut seen = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        let headers: Vec<_> = record.headers().collect();
        let (offset, time) = (record.offset(), record.timestamp());
        seen.push(format!("{offset} {time} {:?} {:?} {headers:?}", record.key(), record.value()));
    }
    seen
}

#[test]
fn a_good_batch_of_any_codec_is_kept_as_it_came() {
    for codec in CODECS {
        for n in [1, 2, 500, 20_000] {
            let rules = Rules { max_message_bytes: 1 << 30, ..rules() };
            let sent = batch(codec, n);
            let checked = check(&sent, rules).unwrap();
            assert_eq!(whole(&checked), sent, "{codec:?} {n}");
            assert_eq!(checked.offset_of_max_timestamp, n / 2);
            assert!(!checked.recompressed);
        }
    }
}

#[test]
fn every_codec_is_written_anew_in_every_other() {
    for from in CODECS {
        for to in CODECS {
            let sent = batch(from, 2000);
            let checked = check(&sent, Rules { codec: Some(to), ..rules() }).unwrap();
            let stored = whole(&checked);
            assert_eq!(checked.header.compression(), Ok(to.compression()));
            assert_eq!(checked.recompressed, from != to);
            assert_eq!(contents(&stored), contents(&sent), "{from:?} to {to:?}");
            assert_eq!(stored == sent, from == to);
        }
    }
}

#[test]
fn the_latest_timestamp_and_the_append_time_are_set_and_nothing_else() {
    for codec in CODECS {
        let good = batch(codec, 9);
        let lying = with_header(&good, |header| header.max_timestamp = 5);
        assert_eq!(whole(&check(&lying, rules()).unwrap()), good, "the maximum is that of the records");

        let append_time = Rules { timestamp_type: TimestampType::LogAppendTime, ..rules() };
        let checked = check(&good, append_time.clone()).unwrap();
        assert_eq!(checked.header.timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!(checked.header.max_timestamp, NOW);
        assert!(contents(&whole(&checked)).iter().all(|record| record.contains(&format!(" {NOW} "))));

        // A producer cannot say that it is the append time; on a topic with create times the flag just goes.
        let claimed = with_header(&good, |header| header.set_timestamp_type(TimestampType::LogAppendTime));
        assert_eq!(refused(&claimed, append_time), InvalidKind::InvalidTimestamp);
        assert_eq!(whole(&check(&claimed, rules()).unwrap()), good);
        let claimed_late = with_header(&claimed, |header| header.max_timestamp = NOW + 3_600_001);
        assert_eq!(refused(&claimed_late, rules()), InvalidKind::InvalidTimestamp);
        let claimed_none = with_header(&claimed, |header| header.max_timestamp = NO_TIMESTAMP);
        assert_eq!(refused(&claimed_none, rules()), InvalidKind::InvalidTimestamp);
    }
}

#[test]
fn what_the_header_alone_condemns() {
    let good = batch(Codec::None, 5);
    let header_refused = |change: fn(&mut BatchHeader)| refused(&with_header(&good, change), rules());
    assert_eq!(header_refused(|h| h.base_offset = 1), InvalidKind::InvalidRecord);
    assert_eq!(header_refused(|h| h.records_count = 0), InvalidKind::InvalidRecord);
    assert_eq!(header_refused(|h| h.records_count = -1), InvalidKind::InvalidRecord);
    assert_eq!(header_refused(|h| h.records_count = 4), InvalidKind::InvalidRecord);
    assert_eq!(header_refused(|h| h.last_offset_delta = 5), InvalidKind::InvalidRecord);
    assert_eq!(header_refused(|h| h.last_offset_delta = -1), InvalidKind::InvalidRecord);
    assert_eq!(header_refused(|h| h.set_control(true)), InvalidKind::InvalidRecord);
    assert_eq!(header_refused(|h| h.producer_id = 7), InvalidKind::InvalidRecord);
    assert_eq!(header_refused(|h| h.attributes = 6), InvalidKind::Unreadable);
    let with_producer = with_header(&good, |h| (h.producer_id, h.producer_epoch, h.base_sequence) = (7, 0, 0));
    assert!(check(&with_producer, rules()).is_ok());

    let mut bent = good.to_vec();
    bent[70] ^= 1;
    assert_eq!(refused(&bent.into(), rules()), InvalidKind::CorruptMessage);
    let exact = Rules { max_message_bytes: good.len(), ..rules() };
    assert!(check(&good, exact).is_ok());
    let small = Rules { max_message_bytes: good.len() - 1, ..rules() };
    assert_eq!(refused(&good, small), InvalidKind::MessageTooLarge);
    let early = Rules { zstd_allowed: false, ..rules() };
    assert!(check(&good, early.clone()).is_ok());
    assert_eq!(refused(&batch(CODECS[4], 1), early), InvalidKind::UnsupportedCompressionType);
}

#[test]
fn exactly_one_whole_batch_of_version_2() {
    let good = batch(Codec::None, 1);
    let kind = |bytes: &[u8]| refused(&Bytes::copy_from_slice(bytes), rules());
    assert_eq!(kind(&[]), InvalidKind::InvalidRecord);
    for cut in 1..good.len() {
        assert_eq!(kind(&good[..cut]), InvalidKind::InvalidRecord, "cut at {cut}");
    }
    assert_eq!(kind(&[&good[..], &good[..]].concat()), InvalidKind::InvalidRecord);
    assert_eq!(kind(&[&good[..], &good[..3]].concat()), InvalidKind::InvalidRecord);
    let changed = |at: usize, to: u8| {
        let mut bytes = good.to_vec();
        bytes[at] = to;
        kind(&bytes)
    };
    assert_eq!(changed(16, 1), InvalidKind::InvalidRecord, "an old version");
    assert_eq!(changed(16, 0), InvalidKind::InvalidRecord, "an old version");
    assert_eq!(changed(16, 3), InvalidKind::CorruptMessage, "no version");
    assert_eq!(changed(8, 0xff), InvalidKind::CorruptMessage, "a negative length");
    assert_eq!(changed(11, 48), InvalidKind::CorruptMessage, "a length less than the header's");
}

#[test]
fn records_that_are_not_there_and_bytes_that_are_no_records() {
    // attributes, timestamp, offset, null key, null value, no headers
    let one = [12, 0, 0, 0, 1, 1, 0];
    let two = [&one[..], &[12, 0, 0, 2, 1, 1, 0]].concat();
    for codec in CODECS {
        let with = |count, records: &[u8]| {
            let mut deflate = Deflate::new(codec, Vec::new()).unwrap();
            deflate.write(records).unwrap();
            refused_or_ok(&with_records(count, codec.compression(), &deflate.finish().unwrap()))
        };
        assert_eq!(with(1, &one), None);
        assert_eq!(with(2, &two), None);
        for (count, records, why) in [
            (1, &two[..], "more records than said"),
            (3, &two, "fewer records than said"),
            (2, &two[..13], "the last cut short"),
            (2, &[&two[..], &[0]].concat(), "a byte after the last"),
            (2, &[one, one].concat(), "the same offset twice"),
            (1, &[14, 0, 0, 0, 1, 1, 0, 5], "a byte left over in a record"),
            (1, &[12, 0, 0, 0, 40, 1, 0], "a key longer than its record"),
            (1, &[12, 0, 0, 0, 1, 1, 2], "a header that is not there"),
            (1, &[12, 0, 0, 0, 1, 1, 1], "a negative count of headers"),
            (1, &[1], "a negative length"),
            (1, &[0xfe, 0xff, 0xff, 0xff, 0x0f], "a record of 2 GiB"),
            (i32::MAX, &two, "two billion records"),
        ] {
            assert_eq!(with(count, records), Some(InvalidKind::InvalidRecord), "{codec:?}: {why}");
        }
        if codec != Codec::None {
            let garbage = with_records(2, codec.compression(), b"\x05this is no compressed stream at all");
            assert_eq!(refused(&garbage, rules()), InvalidKind::Unreadable, "{codec:?}");
            let mut deflate = Deflate::new(codec, Vec::new()).unwrap();
            deflate.write(&two).unwrap();
            let mut stream = deflate.finish().unwrap();
            stream.push(0x5a);
            let longer = with_records(2, codec.compression(), &stream);
            assert_eq!(refused(&longer, rules()), InvalidKind::Unreadable, "{codec:?}: a byte after the stream");
            let shorter = with_records(2, codec.compression(), &stream[..stream.len() - 2]);
            assert_eq!(refused(&shorter, rules()), InvalidKind::Unreadable, "{codec:?}: a byte short");
        }
    }
}

fn refused_or_ok(bytes: &Bytes) -> Option<InvalidKind> {
    check(bytes, rules()).err().map(|e| e.kind())
}

#[test]
fn records_are_refused_by_name() {
    for codec in CODECS {
        let error = check(&batch(codec, 7), Rules { compacted: true, ..rules() }).unwrap_err();
        assert_eq!(error.kind(), InvalidKind::InvalidRecord);
        let faults: Vec<_> = error.record_faults().iter().map(|fault| fault.batch_index).collect();
        assert_eq!(faults, [0, 3, 6], "those without a key");
        let message = "Compacted topic cannot accept message without key in topic partition orders-3";
        assert_eq!(error.record_faults()[1].message, message);

        // The times are NOW less 3, 2, 1, 0, 1, 2, 3.
        let strict = Rules { timestamp_before_max_ms: 2, ..rules() };
        let error = check(&batch(codec, 7), strict).unwrap_err();
        assert_eq!(error.kind(), InvalidKind::InvalidTimestamp);
        let faults: Vec<_> = error.record_faults().iter().map(|fault| fault.batch_index).collect();
        assert_eq!(faults, [0, 6]);
        let late = Rules { now_ms: NOW - 1001, timestamp_after_max_ms: 1000, ..rules() };
        let error = check(&batch(codec, 7), late).unwrap_err();
        assert_eq!(error.kind(), InvalidKind::InvalidTimestamp);
        assert_eq!(error.record_faults().len(), 1);
        assert_eq!(error.record_faults()[0].batch_index, 3);
        let both = Rules { compacted: true, timestamp_before_max_ms: 1, ..rules() };
        let error = check(&batch(codec, 7), both).unwrap_err();
        assert_eq!(error.kind(), InvalidKind::InvalidTimestamp, "one bad timestamp decides");
        assert_eq!(error.record_faults().len(), 5);
    }
    let error =
        check(&batch(Codec::None, 9000), Rules { compacted: true, max_message_bytes: 1 << 30, ..rules() }).unwrap_err();
    assert_eq!(error.record_faults().len(), MAX_FAULTS, "the list of faults has an end");
}

#[test]
fn a_record_without_a_timestamp_is_never_out_of_range() {
    let mut builder = BatchBuilder::new(BatchOptions::default()).unwrap();
    builder.append(-1, None, None, &[]).unwrap();
    let sent = builder.finish(None).unwrap();
    let checked = check(&sent, Rules { timestamp_before_max_ms: 1, ..rules() }).unwrap();
    assert_eq!(whole(&checked), sent);
    assert_eq!(checked.offset_of_max_timestamp, 0);
}

/// One record with a value of so many MiB of zeros. What gzip and zstd inflate may be several streams, one after the other,
/// so a MiB is compressed once and repeated.
fn bomb(codec: Codec, mib: usize) -> Bytes {
    let stream = |bytes: &[u8]| {
        let mut deflate = Deflate::new(codec, Vec::new()).unwrap();
        deflate.write(bytes).unwrap();
        deflate.finish().unwrap()
    };
    let size = mib << 20;
    let mut start = Vec::new();
    let body = 5 + varint_len(size) + size;
    crate::record::varint::write(&mut start, body as i64);
    start.extend_from_slice(&[0, 0, 0, 1]);
    crate::record::varint::write(&mut start, size as i64);
    let records = [stream(&start), stream(&vec![0; 1 << 20]).repeat(mib), stream(&[0])].concat();
    with_records(1, codec.compression(), &records)
}

fn varint_len(size: usize) -> usize {
    crate::record::varint::len(size as i64)
}

#[test]
fn a_bomb_is_taken_apart_in_small_steps_and_costs_no_memory() {
    const SIZE: usize = 256 << 20;
    const BUDGET: usize = 1 << 20;
    for codec in [Codec::Gzip { level: 9 }, Codec::Zstd { level: 3 }] {
        let bytes = bomb(codec, SIZE >> 20);
        assert!(bytes.len() < 300_000, "{} bytes", bytes.len());
        let before = peak();
        let mut validator = Validator::new(bytes.clone(), rules()).unwrap();
        let mut steps = 0;
        let checked = loop {
            steps += 1;
            match validator.step(BUDGET).unwrap() {
                Step::More => assert!(steps * BUDGET <= validator.inflated_bytes as usize + 64 * 1024),
                Step::Done(checked) => break checked,
            }
        };
        assert!(steps > SIZE / BUDGET, "{steps} steps");
        assert!(checked.inflated_bytes > SIZE as u64);
        assert!(peak() - before < (SIZE / 2) as u64, "{} bytes more", peak() - before);
        // Into a codec that does not make it small: given up as soon as it is too large.
        let mut validator = Validator::new(bytes, Rules { codec: Some(Codec::None), ..rules() }).unwrap();
        let error = loop {
            if let Err(error) = validator.step(BUDGET) {
                break error;
            }
        };
        assert_eq!(error.kind(), InvalidKind::MessageTooLarge);
        assert!(validator.inflated_bytes < 2 << 20, "{} bytes inflated", validator.inflated_bytes);
    }
}

#[test]
fn checks_and_readers_may_move_between_threads() {
    fn moves<T: Send>() {}
    moves::<Validator>();
    moves::<CheckedBatch>();
    moves::<BatchBuilder>();
    moves::<crate::record::RecordReader<Bytes>>();
}

fn peak() -> u64 {
    crate::sys::peak_resident_bytes().unwrap_or(0)
}
