//! What batches hold: how many, in which codecs, and how well those compress.

use std::collections::BTreeMap;

use crate::record::{Batch, Compression};
use crate::storage::log::BatchAt;

/// The batches of one codec.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodecUse {
    pub batches: u64,
    /// Bytes of these batches, headers and all.
    pub bytes: u64,
    /// Bytes of records, as they are stored, of the batches that were inflated to be measured.
    pub measured_stored: u64,
    /// The same records without the codec.
    pub measured_inflated: u64,
}

/// What the batches of a log hold, as far as they were looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// Batches whose header was read.
    pub batches: u64,
    /// Records in them.
    pub records: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Bytes of the log.
    pub of_bytes: u64,
    /// By codec. Message sets of versions 0 and 1 are not among them.
    pub codecs: BTreeMap<u8, CodecUse>,
    /// Control batches: ends of transactions.
    pub control_batches: u64,
    /// Entries of message sets of versions 0 and 1. How many records one holds is not looked at.
    pub old_entries: u64,
}

impl Content {
    /// Whether every batch was looked at.
    pub fn exact(&self) -> bool {
        self.bytes >= self.of_bytes
    }

    /// Batches of the log: counted, or scaled up from the sample.
    pub fn batches_about(&self) -> u64 {
        self.scaled(self.batches)
    }

    /// Records of the log: counted, or scaled up from the sample. `None` where message sets of the old versions are among
    /// them.
    pub fn records_about(&self) -> Option<u64> {
        (self.old_entries == 0).then(|| self.scaled(self.records))
    }

    fn scaled(&self, found: u64) -> u64 {
        if self.exact() || self.bytes == 0 {
            return found;
        }
        (u128::from(found) * u128::from(self.of_bytes) / u128::from(self.bytes)) as u64
    }

    /// Bytes of records without their codec for each byte that is stored, over the batches that were measured. `None` where
    /// none was: nothing is compressed.
    pub fn ratio(&self) -> Option<f64> {
        let sum = |part: fn(&CodecUse) -> u64| self.codecs.values().map(part).sum::<u64>();
        let stored = sum(|codec| codec.measured_stored);
        (stored > 0).then(|| sum(|codec| codec.measured_inflated) as f64 / stored as f64)
    }

    /// Takes another part of the log in.
    pub fn merge(&mut self, other: &Content) {
        self.batches += other.batches;
        self.records += other.records;
        self.bytes += other.bytes;
        self.of_bytes += other.of_bytes;
        self.control_batches += other.control_batches;
        self.old_entries += other.old_entries;
        for (id, other) in &other.codecs {
            let codec = self.codecs.entry(*id).or_default();
            codec.batches += other.batches;
            codec.bytes += other.bytes;
            codec.measured_stored += other.measured_stored;
            codec.measured_inflated += other.measured_inflated;
        }
    }

    /// Takes a batch in by its header.
    pub(super) fn take(&mut self, at: &BatchAt) {
        self.batches += 1;
        self.bytes += at.size;
        let Some(header) = &at.header else {
            self.old_entries += 1;
            return;
        };
        self.records += header.records_count as u64;
        if header.is_control() {
            self.control_batches += 1;
            return;
        }
        let codec = self.codecs.entry(header.compression().unwrap_or(Compression::None).id()).or_default();
        codec.batches += 1;
        codec.bytes += at.size;
    }

    /// Whether it is worth measuring how well this batch is compressed.
    pub(super) fn wants_measure(&self, at: &BatchAt) -> bool {
        /// Enough for a figure, in bytes of a codec.
        const ENOUGH: u64 = 256 * 1024;
        /// What is not read into memory for it.
        const LARGEST: u64 = 4 << 20;
        let Some(header) = at.header.filter(|_| at.size <= LARGEST) else { return false };
        let measured = |id: u8| self.codecs.get(&id).map_or(0, |codec| codec.measured_stored);
        header.compression().is_ok_and(|codec| codec != Compression::None && measured(codec.id()) < ENOUGH)
    }

    /// Measures how well a batch is compressed. One that cannot be read tells nothing.
    pub(super) fn measure(&mut self, bytes: &[u8]) {
        let inflate = || {
            let batch = Batch::parse(bytes).ok()?;
            let mut records = batch.records().ok()?;
            let mut inflated = 0;
            while let Some(info) = records.skip_record().ok()? {
                inflated += info.size as u64;
            }
            Some((batch.header().compression().ok()?, batch.records_bytes().len() as u64, inflated))
        };
        if let Some((codec, stored, inflated)) = inflate() {
            let codec = self.codecs.entry(codec.id()).or_default();
            codec.measured_stored += stored;
            codec.measured_inflated += inflated;
        }
    }
}
