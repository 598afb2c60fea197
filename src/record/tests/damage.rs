//! Bytes that are not what they should be: bent, cut, random. Each run prints the seed that it can be repeated with.

use super::*;

/// Random numbers that a seed repeats (SplitMix64).
struct Dice(u64);

impl Dice {
    /// `DOZE_TEST_SEED`, or another one at each run. A test that fails shows it.
    fn new() -> Dice {
        let seed = match std::env::var("DOZE_TEST_SEED") {
            Ok(seed) => seed.parse().unwrap(),
            Err(_) => std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64,
        };
        println!("repeat with DOZE_TEST_SEED={seed}");
        Dice(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn bytes(&mut self, up_to: usize) -> Option<Vec<u8>> {
        let len = self.below(up_to + 2);
        let noise = self.below(2) == 0;
        (len <= up_to).then(|| (0..len).map(|i| if noise { self.next() as u8 } else { (i / 8) as u8 }).collect())
    }
}

fn rules() -> Rules {
    Rules {
        topic_partition: "t-0".into(),
        max_message_bytes: 1 << 20,
        compacted: false,
        timestamp_type: TimestampType::CreateTime,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: i64::MAX,
        now_ms: KAFKA_TIME,
        codec: None,
        zstd_allowed: true,
    }
}

fn random_batch(dice: &mut Dice) -> Bytes {
    let codec = ALL[dice.below(ALL.len())];
    let mut builder = BatchBuilder::new(BatchOptions { codec, ..BatchOptions::default() }).unwrap();
    for _ in 0..1 + dice.below(20) {
        // Now and then one that lies across a codec's blocks.
        let size = if dice.below(40) == 0 { 70_000 } else { [3, 100, 1000][dice.below(3)] };
        let (key, value) = (dice.bytes(20), dice.bytes(size));
        let headers: Vec<_> = (0..dice.below(3)).map(|_| (dice.bytes(5).unwrap_or_default(), dice.bytes(9))).collect();
        let headers: Vec<_> = headers.iter().map(|(name, value)| (&name[..], value.as_deref())).collect();
        let time = KAFKA_TIME + dice.below(1000) as i64 - 500;
        builder.append(time, key.as_deref(), value.as_deref(), &headers).unwrap();
    }
    builder.finish(None).unwrap()
}

/// Puts the right checksum on whatever a batch has become.
fn reseal(bytes: &mut [u8]) {
    let crc = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
}

fn validate(bytes: &[u8], rules: Rules) -> Result<CheckedBatch, InvalidBatch> {
    let mut validator = Validator::new(Bytes::copy_from_slice(bytes), rules)?;
    loop {
        // Small steps, so that records lie across them.
        if let Step::Done(checked) = validator.step(37)? {
            return Ok(*checked);
        }
    }
}

/// What a reader that passes over the records finds.
fn skim(bytes: &[u8]) -> Result<usize, RecordError> {
    let mut reader = Batch::parse(bytes)?.records()?;
    let mut count = 0;
    while reader.skip_record()?.is_some() {
        count += 1;
    }
    Ok(count)
}

#[test]
fn a_bent_bit_anywhere_is_seen() {
    for name in ["v2-none", "v2-gzip", "v2-snappy", "v2-lz4", "v2-zstd"] {
        let mut good = golden(name).0.to_vec();
        good[..8].fill(0);
        validate(&good, rules()).unwrap();
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bent = good.clone();
                bent[at] ^= 1 << bit;
                // The leader epoch is the broker's to set and outside of the checksum's range.
                let epoch = (12..16).contains(&at);
                assert_eq!(validate(&bent, rules()).is_ok(), epoch, "{name}, bit {bit} of byte {at}");
                let mut batches = Batches::new(&bent);
                let whole = batches.next().is_some();
                assert_eq!(whole, epoch || (at < 8 && (at, bit) != (0, 7)), "{name}, bit {bit} of byte {at}");
                assert_eq!(batches.stop().position, if whole { bent.len() } else { 0 });
            }
        }
    }
}

#[test]
fn a_slice_cut_anywhere_ends_with_the_last_whole_batch() {
    let parts = ["v2-none", "v2-zstd", "control-commit"].map(|name| golden(name).0);
    let all = parts.concat();
    let ends: Vec<usize> = parts.iter().scan(0, |end, part| Some((*end += part.len(), *end).1)).collect();
    for cut in 0..=all.len() {
        let mut batches = Batches::new(&all[..cut]);
        let found = batches.by_ref().count();
        assert_eq!(found, ends.iter().filter(|&&end| end <= cut).count(), "cut at {cut}");
        let stop = batches.stop();
        assert_eq!(stop.position, if found == 0 { 0 } else { ends[found - 1] });
        let torn = matches!(stop.why, Some(BatchError::ShortHeader { .. } | BatchError::Incomplete { .. }));
        assert_eq!(torn, stop.position != cut, "cut at {cut}: {stop:?}");
    }
    let stop_after = |at: usize, to: u8| {
        let mut bytes = all.clone();
        bytes[ends[0] + at] = to;
        let mut batches = Batches::new(&bytes);
        assert_eq!(batches.by_ref().count(), 1);
        assert_eq!(batches.stop().position, ends[0]);
        assert!(batches.next().is_none(), "it does not go on");
        batches.stop().why.unwrap()
    };
    assert_eq!(stop_after(16, 9), BatchError::UnknownMagic { magic: 9 });
    assert_eq!(stop_after(16, 1), BatchError::OldFormat { magic: 1 });
    assert!(matches!(stop_after(8, 0x80), BatchError::BadLength { .. }));
    assert!(matches!(stop_after(8, 0x10), BatchError::Incomplete { .. }));
    assert!(matches!(stop_after(80, 0xaa), BatchError::BadCrc { .. }));
    let mut bytes = all.clone();
    bytes[80] ^= 1;
    assert_eq!(Batches::without_crc(&bytes).count(), 3);
}

#[test]
fn what_the_validator_takes_every_reader_can_read() {
    let mut dice = Dice::new();
    let (mut taken, mut refused) = (0, 0);
    for round in 0..3000 {
        let mut bytes = random_batch(&mut dice).to_vec();
        let good = bytes.clone();
        // Half of them keep the right checksum over the wrong bytes; the first few stay good.
        for _ in 0..dice.below(4) {
            match dice.below(4) {
                0 => {
                    let at = dice.below(bytes.len());
                    bytes[at] ^= 1 << dice.below(8);
                }
                1 => {
                    let (from, at) = (dice.below(bytes.len()), dice.below(bytes.len()));
                    let len = dice.below(30).min(bytes.len() - from.max(at));
                    bytes.copy_within(from..from + len, at);
                }
                2 => {
                    let at = 61 + dice.below(bytes.len() - 60);
                    let junk = dice.bytes(12).unwrap_or_default();
                    bytes.splice(at..at, junk);
                    let length = (bytes.len() - 12) as u32;
                    bytes[8..12].copy_from_slice(&length.to_be_bytes());
                }
                _ => {
                    let at = 57 + dice.below(bytes.len() - 56).min(4);
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte = [0, 1, 2, 0x7f, 0x80, 0xff][dice.below(6)];
                    }
                }
            }
        }
        if dice.below(2) == 0 {
            reseal(&mut bytes);
        }
        let codec = [None, Some(ALL[dice.below(ALL.len())])][dice.below(2)];
        match validate(&bytes, Rules { codec, ..rules() }) {
            Ok(checked) => {
                taken += 1;
                let stored = [&checked.header.encode(), &checked.records[..]].concat();
                assert_eq!(read(&stored).unwrap().lines().count(), checked.header.records_count as usize);
                assert_eq!(skim(&stored).unwrap(), checked.header.records_count as usize);
                assert_eq!(validate(&stored, rules()).unwrap().header, checked.header, "round {round}");
                if codec.is_none() {
                    assert_eq!(stored[61..], bytes[61..]);
                }
                if bytes == good {
                    assert_eq!(read(&stored).unwrap(), read(&good).unwrap(), "round {round}");
                }
            }
            Err(error) => {
                assert!(bytes != good, "round {round}: {error}");
                assert!(!error.to_string().is_empty());
                refused += 1;
                // Reading must agree with skipping, and neither may panic.
                if Batch::parse(&bytes).is_ok_and(|batch| batch.verify_crc().is_ok()) {
                    assert_eq!(read(&bytes).is_ok(), skim(&bytes).is_ok(), "round {round}: {error}");
                }
            }
        }
    }
    assert!(taken > 500 && refused > 500, "{taken} taken, {refused} refused");
}

#[test]
fn random_bytes_never_panic() {
    let mut dice = Dice::new();
    for _ in 0..3000 {
        let mut bytes = dice.bytes(300).unwrap_or_default();
        if bytes.len() > 17 {
            bytes[16] = dice.below(3) as u8;
            let length = (bytes.len() - 12 - dice.below(2)) as u32;
            bytes[8..12].copy_from_slice(&length.to_be_bytes());
        }
        if bytes.len() > 61 && dice.below(3) > 0 {
            bytes[22] = dice.below(5) as u8;
            bytes[23..27].fill(0);
            bytes[57..61].copy_from_slice(&[0, 0, 0, 1]);
            bytes[..8].fill(0);
            reseal(&mut bytes);
        }
        let _ = validate(&bytes, rules());
        let _ = read(&bytes);
        let _ = skim(&bytes);
        let _ = read_legacy(&bytes, 1 << 16);
        let _ = Batches::new(&bytes).count();
        let _ = peek(&bytes);
    }
}
