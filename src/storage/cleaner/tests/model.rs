//! What was appended to a log, and what cleaning may make of it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::record::{Batch, BatchBuilder, BatchOptions, Batches, CheckedBatch, Codec};
use crate::storage::cleaner::{Checkpoint, CleanerSettings, PassStats, clean_now};
use crate::storage::log::tests::support::{NOW, bytes_of};
use crate::storage::log::{EndMarker, Isolation, LogConfig, PartitionLog};

/// A splitmix64 generator.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.roll(n) == 0
    }
}

pub type Bytes = Vec<u8>;

/// A record as a reader gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub timestamp: i64,
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
    pub headers: Vec<(Bytes, Option<Bytes>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Plain,
    /// Of a transaction that is open, of this producer.
    Open(i64),
    Committed,
    Aborted,
}

#[derive(Debug)]
struct Appended {
    record: Seen,
    fate: Fate,
    /// When a tombstone was first found below the cleaned point.
    cleaned_ms: Option<i64>,
}

#[derive(Debug, Default)]
struct Writer {
    sequence: i32,
    in_transaction: bool,
    /// The last batch: base offset, sequence, records.
    last: Option<(i64, i32, usize)>,
}

/// Everything that was appended.
#[derive(Debug, Default)]
pub struct Model {
    records: BTreeMap<i64, Appended>,
    writers: BTreeMap<i64, Writer>,
    end: i64,
    next_value: u64,
}

pub const RETENTION_MS: i64 = 10_000;

pub fn config(config: &mut LogConfig) {
    config.compact = true;
    config.delete = false;
    config.segment_bytes = 3000;
    config.index_interval_bytes = 300;
    config.min_cleanable_dirty_ratio = 0.0;
    config.delete_retention_ms = RETENTION_MS;
    config.producer_id_expiration_ms = i64::MAX;
}

/// So that a map holds few keys, and it takes several passes.
pub fn few_keys() -> CleanerSettings {
    CleanerSettings { load_factor: 0.015, ..CleanerSettings::default() }
}

pub fn clean(log: &Arc<PartitionLog>, settings: &CleanerSettings) -> Vec<PassStats> {
    clean_now(log, settings).unwrap_or_else(|error| panic!("{error}"))
}

impl Model {
    pub fn append(&mut self, log: &PartitionLog, dice: &mut Dice, now_ms: i64) {
        let producer = match dice.roll(3) {
            0 => -1,
            1 => 1 + dice.roll(2) as i64,
            _ => 10 + dice.roll(3) as i64,
        };
        let writer = self.writers.entry(producer).or_default();
        let transactional = producer >= 10;
        let codecs =
            [Codec::None, Codec::None, Codec::Gzip { level: 1 }, Codec::Snappy, Codec::Lz4, Codec::Zstd { level: 1 }];
        let mut options =
            BatchOptions { codec: codecs[dice.roll(6) as usize], transactional, ..BatchOptions::default() };
        if producer >= 0 {
            options.producer_id = producer;
            options.producer_epoch = 0;
            options.base_sequence = writer.sequence;
        }
        if dice.one_in(5) {
            options.log_append_time = Some(now_ms);
        }
        let append_time = options.log_append_time;
        let mut builder = BatchBuilder::new(options).unwrap();
        let count = 1 + dice.roll(12) as usize;
        let mut records = Vec::new();
        for _ in 0..count {
            self.next_value += 1;
            let key = format!("key-{}", dice.roll(40)).into_bytes();
            let tombstone = dice.one_in(6);
            let filler = "x".repeat(dice.roll(60) as usize);
            let value = (!tombstone).then(|| format!("value {} {filler}", self.next_value).into_bytes());
            let headers: Vec<(Bytes, Option<Bytes>)> = (0..dice.roll(4))
                .map(|i| (b"name".to_vec(), (i != 1).then(|| format!("{}", self.next_value + i).into_bytes())))
                .collect();
            let timestamp = now_ms - dice.roll(1000) as i64;
            let lent: Vec<(&[u8], Option<&[u8]>)> =
                headers.iter().map(|(name, value)| (&name[..], value.as_deref())).collect();
            builder.append(timestamp, Some(&key), value.as_deref(), &lent).unwrap();
            let timestamp = append_time.unwrap_or(timestamp);
            records.push(Seen { timestamp, key: Some(key), value, headers });
        }
        let batch = CheckedBatch::of_own(builder.finish(None).unwrap()).unwrap();
        let base = log.append(batch, 0).unwrap().first_offset;
        assert_eq!(base, self.end);
        if producer >= 0 {
            writer.last = Some((base, writer.sequence, count));
            writer.sequence += count as i32;
            writer.in_transaction = transactional;
        }
        let fate = if transactional { Fate::Open(producer) } else { Fate::Plain };
        for (offset, record) in (base..).zip(records) {
            self.records.insert(offset, Appended { record, fate, cleaned_ms: None });
        }
        self.end = base + count as i64;
    }

    /// Ends some open transaction, if there is one.
    pub fn end_transaction(&mut self, log: &PartitionLog, dice: &mut Dice) {
        let open: Vec<i64> =
            self.writers.iter().filter(|(_, writer)| writer.in_transaction).map(|(id, _)| *id).collect();
        if open.is_empty() {
            return;
        }
        let producer_id = open[dice.roll(open.len() as u64) as usize];
        let committed = dice.one_in(2);
        let marker =
            EndMarker { producer_id, producer_epoch: 0, committed, coordinator_epoch: 1, transaction_version: 1 };
        assert_eq!(log.append_end_txn_marker(marker, 0).unwrap().first_offset, self.end);
        self.end += 1;
        self.writers.get_mut(&producer_id).unwrap().in_transaction = false;
        for appended in self.records.values_mut().filter(|appended| appended.fate == Fate::Open(producer_id)) {
            appended.fate = if committed { Fate::Committed } else { Fate::Aborted };
        }
    }

    /// The latest record of each key that a reader of committed records should find below `below`.
    fn latest(&self, below: i64) -> BTreeMap<&[u8], (i64, &Seen)> {
        let mut latest = BTreeMap::new();
        for (offset, appended) in self.records.range(..below) {
            if matches!(appended.fate, Fate::Plain | Fate::Committed) {
                latest.insert(appended.record.key.as_deref().unwrap(), (*offset, &appended.record));
            }
        }
        latest
    }

    /// Checks the log: everything that a reader sees is what was appended there, for each key the latest is seen, and if
    /// the log was cleaned up to `cleaned`, nothing else is seen below, and everything behind.
    pub fn check(&mut self, log: &PartitionLog, cleaned: i64, now_ms: i64, context: &str) {
        let there = self.check_seen(log, context);
        self.check_cleaned(&there, cleaned, now_ms, context);
    }

    /// Checks a log that may have been cleaned in part. Answers the offsets of the records that are there.
    pub fn check_seen(&self, log: &PartitionLog, context: &str) -> HashSet<i64> {
        let offsets = log.offsets();
        assert_eq!((offsets.start, offsets.end), (0, self.end), "{context}");
        let open = self.records.iter().find(|(_, appended)| matches!(appended.fate, Fate::Open(_)));
        let stable = open.map_or(self.end, |(offset, _)| *offset);
        assert_eq!(offsets.last_stable, stable, "{context}");

        let all = read_all(log, context);
        let mut before = -1;
        for (offset, record) in &all {
            assert!(*offset > before, "{context}: {offset} after {before}");
            before = *offset;
            assert_eq!(
                Some(record),
                self.records.get(offset).map(|appended| &appended.record),
                "{context}: at {offset}"
            );
        }
        let there: HashSet<i64> = all.iter().map(|(offset, _)| *offset).collect();
        for (key, (offset, record)) in self.latest(self.end) {
            let may_be_gone = record.value.is_none() && self.records[&offset].cleaned_ms.is_some();
            assert!(
                there.contains(&offset) || may_be_gone,
                "{context}: {} has lost its latest at {offset}",
                String::from_utf8_lossy(key)
            );
        }
        there
    }

    fn check_cleaned(&mut self, there: &HashSet<i64>, cleaned: i64, now_ms: i64, context: &str) {
        let unclean = self.records.range(cleaned..).map(|(offset, _)| *offset);
        let missing: Vec<i64> =
            unclean.filter(|offset| self.records[offset].fate != Fate::Aborted && !there.contains(offset)).collect();
        assert_eq!(missing, [0i64; 0], "{context}: records that were not cleaned are gone; cleaned up to {cleaned}");
        // Below the cleaned point there is the latest of each key up to there, and nothing else.
        let latest: BTreeMap<i64, Seen> =
            self.latest(cleaned).into_values().map(|(offset, record)| (offset, record.clone())).collect();
        for (offset, record) in self.records.range_mut(..cleaned) {
            let is_latest = latest.contains_key(offset);
            let is_there = there.contains(offset);
            if !is_latest {
                assert!(!is_there, "{context}: {offset} was superseded or aborted, cleaned up to {cleaned}");
            } else if record.record.value.is_some() {
                assert!(is_there, "{context}: {offset} is the latest of its key up to {cleaned}");
            } else {
                let cleaned_ms = *record.cleaned_ms.get_or_insert(now_ms);
                let over = now_ms - cleaned_ms >= RETENTION_MS;
                assert!(is_there || over, "{context}: the tombstone at {offset} has gone before its time");
            }
        }
    }

    /// A reader of committed records finds what was committed: of each key the latest below the last stable offset.
    pub fn check_committed(&self, log: &PartitionLog, context: &str) {
        let stable = log.offsets().last_stable;
        let mut seen: HashMap<Bytes, (i64, Option<Bytes>)> = HashMap::new();
        for (offset, record) in read_committed(log, context) {
            assert!(
                matches!(self.records[&offset].fate, Fate::Plain | Fate::Committed),
                "{context}: {offset} is {:?}",
                self.records[&offset].fate
            );
            seen.insert(record.key.unwrap(), (offset, record.value));
        }
        for (key, (offset, record)) in self.latest(stable) {
            match seen.get(key) {
                Some((at, value)) => assert_eq!((*at, value), (offset, &record.value), "{context}"),
                None => assert!(record.value.is_none(), "{context}: {offset} is not seen"),
            }
        }
    }

    /// Every producer's last batch is known again when it is sent again.
    pub fn check_duplicates(&self, log: &PartitionLog, context: &str) {
        for (id, writer) in &self.writers {
            let Some((base, sequence, count)) = writer.last else { continue };
            let options = BatchOptions {
                producer_id: *id,
                producer_epoch: 0,
                base_sequence: sequence,
                transactional: *id >= 10,
                ..BatchOptions::default()
            };
            let mut builder = BatchBuilder::new(options).unwrap();
            for _ in 0..count {
                builder.append(NOW, Some(b"key"), None, &[]).unwrap();
            }
            let batch = CheckedBatch::of_own(builder.finish(None).unwrap()).unwrap();
            let again = log.append(batch, 0).unwrap_or_else(|error| panic!("{context}: producer {id}: {error}"));
            assert!(again.duplicate && again.first_offset == base, "{context}: producer {id}: {again:?}, not {base}");
        }
    }
}

fn records_of(batch: &Batch<'_>) -> Vec<(i64, Seen)> {
    let mut seen = Vec::new();
    let mut records = batch.records().unwrap();
    while let Some(record) = records.next_record().unwrap() {
        let headers = record.headers().map(|header| (header.name.to_vec(), header.value.map(<[u8]>::to_vec)));
        seen.push((
            record.offset(),
            Seen {
                timestamp: record.timestamp(),
                key: record.key().map(<[u8]>::to_vec),
                value: record.value().map(<[u8]>::to_vec),
                headers: headers.collect(),
            },
        ));
    }
    seen
}

fn each_batch(
    log: &PartitionLog,
    isolation: Isolation,
    context: &str,
    mut each: impl FnMut(&Batch<'_>, &mut Vec<(i64, i64)>),
) {
    let offsets = log.offsets();
    let end = if isolation == Isolation::ReadCommitted { offsets.last_stable } else { offsets.end };
    let mut next = offsets.start;
    while next < end {
        let read = log.read(next, 700, true, isolation).unwrap_or_else(|error| panic!("{context}: at {next}: {error}"));
        let mut aborted: Vec<_> = read.aborted.iter().map(|entry| (entry.producer_id, entry.first_offset)).collect();
        // Nothing at all is left up to the end.
        let Some(range) = read.range else { break };
        let bytes = bytes_of(&range);
        let mut batches = Batches::new(&bytes);
        let before = next;
        for batch in batches.by_ref() {
            assert!(batch.header().last_offset() >= next, "{context}: {next}, {:?}", batch.header());
            next = batch.header().last_offset() + 1;
            each(&batch, &mut aborted);
        }
        assert_eq!(batches.stop().why, None, "{context}");
        assert!(next > before, "{context}");
    }
}

/// All records but the control ones.
pub fn read_all(log: &PartitionLog, context: &str) -> Vec<(i64, Seen)> {
    let mut all = Vec::new();
    each_batch(log, Isolation::ReadUncommitted, context, |batch, _| {
        if !batch.header().is_control() {
            all.extend(records_of(batch));
        }
    });
    all
}

/// The records that a consumer with `isolation.level=read_committed` hands out, found as it does.
fn read_committed(log: &PartitionLog, context: &str) -> Vec<(i64, Seen)> {
    let mut all = Vec::new();
    let mut aborting: HashSet<i64> = HashSet::new();
    each_batch(log, Isolation::ReadCommitted, context, |batch, aborted| {
        let header = batch.header();
        aborted.retain(|(id, first)| {
            let has_started = *first <= header.last_offset();
            if has_started {
                aborting.insert(*id);
            }
            !has_started
        });
        if header.is_control() {
            let is_abort = records_of(batch)
                .first()
                .is_some_and(|(_, record)| record.key.as_deref().is_some_and(|key| key[2..4] == [0, 0]));
            if is_abort {
                aborting.remove(&header.producer_id);
            }
        } else if !(header.is_transactional() && aborting.contains(&header.producer_id)) {
            all.extend(records_of(batch));
        }
    });
    all
}

/// The offset up to which the files say that the log was cleaned.
pub fn cleaned_to(log: &PartitionLog) -> i64 {
    Checkpoint::read(&*log.env().fs, &log.dir()).unwrap().cleaned
}
