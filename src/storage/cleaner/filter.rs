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

use std::collections::HashMap;

use bytes::Bytes;

use super::key_map::{Full, KeyHash, KeyMap};
use super::transactions::{Marker, Transactions};
use crate::record::control::ControlRecord;
use crate::record::{Batch, BatchBuilder, BatchHeader, BatchOptions, BuildError, Codec, RecordError};
use crate::storage::log::{AbortedTransaction, LastOfProducer, LogConfig};

/// The largest record that is taken into memory, in bytes; a batch with a larger one counts as one that cannot be read.
const LARGEST_RECORD: usize = 16 << 20;

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
    codec: Codec,
    max_message_bytes: usize,
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
                    let latest = self.map.get(self.map.hash(key)).is_none_or(|latest| offset >= latest);
                    let tombstone = !record.info().has_value();
                    tombstones += usize::from(latest && tombstone && !is_over);
                    latest && !(tombstone && is_over)
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
        let codec = if header.is_control() { Codec::None } else { self.codec };
        let own = header.compression().map_or(Codec::None, Codec::of);
        let largest = self.max_message_bytes.max(bytes.len());
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
