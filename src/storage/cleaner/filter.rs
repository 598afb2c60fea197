//! What becomes of one batch.
//!
//! - A record stays if it is the latest of its key as far as the map goes, or lies behind that, or has no key.
//! - A tombstone (a null value) that stays gives its batch a delete horizon, `delete.retention.ms` from now, where the header
//!   has room for it. It goes with the first pass after that time.
//! - The records of aborted transactions go. A marker stays as long as the log has a batch of its transaction; then it gets a
//!   horizon like a tombstone.
//! - A batch that loses all its records goes, unless it is the last that its producer wrote, or the last of what is cleaned:
//!   then its header stays, so that the producer's sequence and the end of the log are known whatever else is lost.
//! - A batch that loses some keeps its base offset and its span, and is written in the topic's codec.
//! - One that cannot be read stays as it is, and its keys supersede nothing.
//! - An entry of a message set of version 0 or 1 is read and never written: it goes once none of its records stays, and else stays
//!   byte for byte. While a record that was superseded stays with it, so does a tombstone of its key, else the record would be
//!   back.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;

use super::key_map::{Full, KeyHash, KeyMap};
use super::transactions::{Marker, Transactions};
use crate::record::control::ControlRecord;
use crate::record::legacy;
use crate::record::{Batch, BatchBuilder, BatchHeader, BatchOptions, BuildError, Codec, RecordError};
use crate::storage::log::{AbortedTransaction, LastOfProducer, LogConfig};

/// The largest record that is taken into memory, in bytes; a batch with a larger one counts as one that cannot be read.
const LARGEST_RECORD: usize = 16 << 20;

/// More keys are not held: then every tombstone stays.
const MOST_HELD: usize = 1 << 20;

/// What a pass has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassStats {
    /// Bytes read to fill the map.
    pub map_bytes: u64,
    /// Bytes read to be written anew or kept.
    pub read_bytes: u64,
    /// Bytes that are left of them.
    pub kept_bytes: u64,
    /// Bytes written. Segments that lose nothing are not written.
    pub written_bytes: u64,
    pub records_read: u64,
    pub records_kept: u64,
    /// Keys in the map.
    pub keys: u64,
    /// Entries of message sets of versions 0 and 1 that stay as they are with records that were superseded.
    pub old_entries_held: u64,
    /// Batches that were kept because they cannot be read.
    pub unreadable: u64,
}

/// What becomes of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Keep,
    Drop,
    Replace(Bytes),
    /// It is kept as it is, and this is why.
    Unreadable(String),
}

/// Decides on the batches of a log, which have to be asked for in their order.
#[derive(Debug)]
pub(super) struct Filter {
    pub map: KeyMap,
    /// The map has every key up to this offset, from where it starts.
    pub mapped_to: i64,
    pub transactions: Transactions,
    pub last_of_producers: HashMap<i64, LastOfProducer>,
    now_ms: i64,
    delete_retention_ms: i64,
    codec: Option<Codec>,
    max_message_bytes: usize,
    /// Keys of which a superseded record stays, in an entry of version 0 or 1.
    held: Held,
    /// When the first tombstone or marker that was kept may go, ms since the Unix epoch.
    pub horizon_ms: Option<i64>,
    /// The abort markers that were kept, since they were last taken.
    pub aborts: Vec<AbortedTransaction>,
    pub stats: PassStats,
    /// Of the batch at hand: the keys with their offsets, or which records stay.
    keys: Vec<(KeyHash, i64)>,
    stays: Vec<bool>,
}

impl Filter {
    pub fn new(map: KeyMap, mapped_to: i64, config: &LogConfig, now_ms: i64) -> Filter {
        Filter {
            map,
            mapped_to,
            transactions: Transactions::new(Vec::new()),
            last_of_producers: HashMap::new(),
            now_ms,
            delete_retention_ms: config.delete_retention_ms,
            codec: config.compaction_codec,
            max_message_bytes: config.max_message_bytes as usize,
            held: Held::Keys(HashSet::new()),
            horizon_ms: None,
            aborts: Vec::new(),
            stats: PassStats::default(),
            keys: Vec::new(),
            stays: Vec::new(),
        }
    }

    /// Takes the keys of a batch into the map, those at `from` and after it. `Err` if the map is full: then
    /// [`Filter::mapped_to`] is the last offset that it has taken.
    pub fn map_batch(&mut self, bytes: &[u8], header: &BatchHeader, from: i64) -> Result<(), Full> {
        let last = header.last_offset();
        if header.is_control() {
            if let Ok(committed) = read_marker(bytes) {
                self.transactions.marker(header, committed.flatten());
            }
        } else if !self.transactions.records(header) && self.read_keys(bytes, from).is_ok() {
            // Only once all of it was read: a batch that cannot be read to its end supersedes nothing.
            for (key, offset) in self.keys.drain(..) {
                self.map.put(key, offset)?;
                self.mapped_to = offset;
            }
        }
        self.mapped_to = self.mapped_to.max(last);
        Ok(())
    }

    fn read_keys(&mut self, bytes: &[u8], from: i64) -> Result<(), RecordError> {
        self.keys.clear();
        let batch = Batch::parse(bytes)?;
        batch.verify_crc()?;
        let mut records = batch.records()?.with_record_limit(LARGEST_RECORD);
        while let Some(record) = records.next_record()? {
            self.stats.records_read += 1;
            if let Some(key) = record.key()
                && record.offset() >= from
            {
                self.keys.push((self.map.hash(key), record.offset()));
            }
        }
        Ok(())
    }

    /// The same of an entry of version 0 or 1, whose last offset is `last`.
    pub fn map_old(&mut self, bytes: &[u8], last: i64, from: i64) -> Result<(), Full> {
        if self.read_old_keys(bytes, from).is_ok() {
            for (key, offset) in self.keys.drain(..) {
                self.map.put(key, offset)?;
                self.mapped_to = offset;
            }
        }
        self.mapped_to = self.mapped_to.max(last);
        Ok(())
    }

    fn read_old_keys(&mut self, bytes: &[u8], from: i64) -> Result<(), legacy::LegacyError> {
        self.keys.clear();
        let entry = legacy::Entry::parse(bytes)?;
        entry.verify_crc()?;
        for message in entry.messages(LARGEST_RECORD)? {
            let message = message?;
            if let Some(key) = &message.key
                && message.offset >= from
            {
                self.keys.push((self.map.hash(key), message.offset));
            }
        }
        Ok(())
    }

    /// Decides on an entry of version 0 or 1: it stays as it is or it goes.
    pub fn judge_old(&mut self, bytes: &[u8], is_last: bool) -> Verdict {
        match self.judge_old_records(bytes) {
            Ok((records, stay)) => {
                let goes = stay == 0 && !is_last;
                self.stats.records_read += records;
                self.stats.records_kept += if goes { 0 } else { records };
                if goes {
                    return Verdict::Drop;
                }
                self.stats.old_entries_held += u64::from(stay < records);
                for (key, _) in self.keys.drain(..) {
                    self.held.hold(key);
                }
                Verdict::Keep
            }
            Err(error) => {
                // Whatever keys it has.
                self.held = Held::All;
                Verdict::Unreadable(error.to_string())
            }
        }
    }

    /// Says in `keys` which keys have records in the entry that were superseded. Answers how many records there are, and how many
    /// of them stay.
    fn judge_old_records(&mut self, bytes: &[u8]) -> Result<(u64, u64), legacy::LegacyError> {
        self.keys.clear();
        let entry = legacy::Entry::parse(bytes)?;
        entry.verify_crc()?;
        let (mut records, mut stay) = (0, 0);
        for message in entry.messages(LARGEST_RECORD)? {
            let message = message?;
            records += 1;
            match &message.key {
                Some(key) if message.offset <= self.mapped_to => {
                    let key = self.map.hash(key);
                    match self.map.get(key) {
                        Some(latest) if message.offset < latest => self.keys.push((key, message.offset)),
                        _ => stay += 1,
                    }
                }
                _ => stay += 1,
            }
        }
        Ok((records, stay))
    }

    /// Decides on a batch. `is_last`: it is the last of all that is cleaned.
    pub fn judge(&mut self, bytes: &[u8], header: &BatchHeader, is_last: bool) -> Verdict {
        let checked = Batch::parse(bytes).and_then(|batch| batch.verify_crc());
        if let Err(error) = checked {
            self.note_transaction_of_unreadable(header);
            return Verdict::Unreadable(error.to_string());
        }
        let keep_header = is_last || self.is_last_of_producer(header);
        if header.is_control() {
            return self.judge_control(bytes, header, keep_header);
        }
        if self.transactions.records(header) {
            return without_records(header, keep_header);
        }
        if header.base_offset > self.mapped_to {
            return Verdict::Keep;
        }
        let judged = self.judge_records(bytes, header);
        match judged {
            Ok((stay, tombstones)) => self.rewrite(bytes, header, stay, tombstones, keep_header),
            Err(error) => Verdict::Unreadable(error.to_string()),
        }
    }

    /// Its transaction must not lose its marker.
    fn note_transaction_of_unreadable(&mut self, header: &BatchHeader) {
        if !header.is_control() {
            self.transactions.records(header);
        }
    }

    fn is_last_of_producer(&self, header: &BatchHeader) -> bool {
        header.has_producer_id()
            && match self.last_of_producers.get(&header.producer_id) {
                Some(LastOfProducer::Batch(last_offset)) => header.last_offset() == *last_offset,
                Some(LastOfProducer::Marker(epoch)) => header.is_control() && header.producer_epoch == *epoch,
                None => false,
            }
    }

    fn judge_control(&mut self, bytes: &[u8], header: &BatchHeader, keep_header: bool) -> Verdict {
        let committed = match read_marker(bytes) {
            Ok(Some(committed)) => committed,
            Ok(None) => return Verdict::Keep,
            Err(error) => return Verdict::Unreadable(error),
        };
        match self.transactions.marker(header, committed) {
            Marker::Needed => return Verdict::Keep,
            Marker::Aborts(aborted) => {
                self.aborts.push(aborted);
                return Verdict::Keep;
            }
            Marker::Spent => {}
        }
        if header.records_count == 0 {
            return without_records(header, keep_header);
        }
        match header.delete_horizon_ms() {
            Some(horizon) if horizon <= self.now_ms => without_records(header, keep_header),
            Some(horizon) => {
                self.note_horizon(horizon);
                Verdict::Keep
            }
            None => {
                let horizon = self.now_ms.saturating_add(self.delete_retention_ms);
                self.note_horizon(horizon);
                self.stays.clear();
                self.stays.resize(header.records_count as usize, true);
                self.build(bytes, header, Some(horizon))
            }
        }
    }

    /// Says in `stays` which records stay. Answers how many, and how many of those are tombstones that are waiting for their
    /// time.
    fn judge_records(&mut self, bytes: &[u8], header: &BatchHeader) -> Result<(usize, usize), RecordError> {
        self.stays.clear();
        let (mut stay, mut tombstones) = (0, 0);
        let is_over = header.delete_horizon_ms().is_some_and(|horizon| horizon <= self.now_ms);
        let mut records = Batch::parse(bytes)?.records()?.with_record_limit(LARGEST_RECORD);
        while let Some(record) = records.next_record()? {
            let offset = record.offset();
            let stays = match record.key() {
                Some(key) if offset <= self.mapped_to => {
                    let key = self.map.hash(key);
                    let latest = self.map.get(key).is_none_or(|latest| offset >= latest);
                    let tombstone = !record.info().has_value();
                    tombstones += usize::from(latest && tombstone && !is_over);
                    latest && !(tombstone && is_over && !self.held.holds(key))
                }
                _ => true,
            };
            stay += usize::from(stays);
            self.stays.push(stays);
        }
        Ok((stay, tombstones))
    }

    fn rewrite(
        &mut self,
        bytes: &[u8],
        header: &BatchHeader,
        stay: usize,
        tombstones: usize,
        keep_header: bool,
    ) -> Verdict {
        if stay == 0 {
            return without_records(header, keep_header);
        }
        let new_horizon = tombstones > 0 && !header.has_delete_horizon();
        let horizon = match new_horizon {
            true => Some(self.now_ms.saturating_add(self.delete_retention_ms)),
            false => header.delete_horizon_ms(),
        };
        if tombstones > 0 {
            horizon.into_iter().for_each(|horizon| self.note_horizon(horizon));
        }
        if stay == self.stays.len() && !new_horizon {
            return Verdict::Keep;
        }
        self.build(bytes, header, horizon)
    }

    fn note_horizon(&mut self, horizon: i64) {
        self.horizon_ms = Some(self.horizon_ms.map_or(horizon, |first| first.min(horizon)));
    }

    /// The batch with the records that stay.
    fn build(&self, bytes: &[u8], header: &BatchHeader, horizon: Option<i64>) -> Verdict {
        let own = header.compression().map_or(Codec::None, Codec::of);
        let codec = if header.is_control() { Codec::None } else { self.codec.unwrap_or(own) };
        let largest = match self.codec {
            Some(_) => self.max_message_bytes.max(bytes.len()),
            None => i32::MAX as usize,
        };
        let built = match self.build_as(bytes, header, horizon, codec, largest) {
            Err(BuildFailure::Build(BuildError::TooLarge { .. })) if codec != own => {
                self.build_as(bytes, header, horizon, own, i32::MAX as usize)
            }
            built => built,
        };
        match built {
            Ok(batch) => Verdict::Replace(batch),
            Err(BuildFailure::Read(error)) => Verdict::Unreadable(error.to_string()),
            Err(BuildFailure::Build(error)) => Verdict::Unreadable(error.to_string()),
        }
    }

    fn build_as(
        &self,
        bytes: &[u8],
        header: &BatchHeader,
        horizon: Option<i64>,
        codec: Codec,
        max_bytes: usize,
    ) -> Result<Bytes, BuildFailure> {
        let options = BatchOptions { delete_horizon: horizon, max_bytes, ..BatchOptions::like(header, codec) };
        let mut builder = BatchBuilder::new(options)?;
        let mut records = Batch::parse(bytes).map_err(RecordError::from)?.records()?;
        for stays in &self.stays {
            let Some(record) = records.next_record()? else { break };
            if *stays {
                builder.append_record(&record)?;
            }
        }
        Ok(builder.finish(Some(header.last_offset_delta))?)
    }
}

/// Keys whose tombstones stay.
#[derive(Debug)]
enum Held {
    Keys(HashSet<KeyHash>),
    All,
}

impl Held {
    fn hold(&mut self, key: KeyHash) {
        if let Held::Keys(keys) = self {
            keys.insert(key);
            if keys.len() > MOST_HELD {
                *self = Held::All;
            }
        }
    }

    fn holds(&self, key: KeyHash) -> bool {
        match self {
            Held::Keys(keys) => keys.contains(&key),
            Held::All => true,
        }
    }
}

#[derive(Debug)]
enum BuildFailure {
    Read(RecordError),
    Build(BuildError),
}

impl From<RecordError> for BuildFailure {
    fn from(error: RecordError) -> Self {
        BuildFailure::Read(error)
    }
}

impl From<BuildError> for BuildFailure {
    fn from(error: BuildError) -> Self {
        BuildFailure::Build(error)
    }
}

fn without_records(header: &BatchHeader, keep_header: bool) -> Verdict {
    match keep_header {
        true if header.records_count == 0 => Verdict::Keep,
        true => Verdict::Replace(Bytes::copy_from_slice(&header.without_records().encode())),
        false => Verdict::Drop,
    }
}

/// What the marker in a control batch says: `Some(None)` where its record was removed before, `None` where it is not of a
/// transaction.
fn read_marker(bytes: &[u8]) -> Result<Option<Option<bool>>, String> {
    let batch = Batch::parse(bytes).map_err(|error| error.to_string())?;
    let mut records = batch.records().map_err(|error| error.to_string())?;
    let Some(record) = records.next_record().map_err(|error| error.to_string())? else { return Ok(Some(None)) };
    match ControlRecord::parse(&record).map_err(|error| error.to_string())? {
        ControlRecord::EndTxn(marker) => Ok(Some(Some(marker.committed))),
        ControlRecord::Other { .. } => Ok(None),
    }
}
