//! Producer snapshots. [`crate::storage::log`] says in `snapshot` what they look like.

use std::io;
use std::sync::Arc;

use super::Entry;
use super::damage::{Damage, DamageKind};
use super::page::Pages;
use crate::storage::log::{SNAPSHOT_ENTRY, SNAPSHOT_HEADER, SNAPSHOT_VERSION, SnapshotEntry};
use crate::sys::File;

/// Where the range of the checksum starts.
const CRC_FROM: u64 = 6;

/// Whose a snapshot is. The layout is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotFormat {
    /// One entry a producer, for its last batch: what Apache Kafka writes, and doze too where there is nothing more to say.
    Kafka,
    /// Some producer has several entries in a row, one for each of its batches that is remembered: only doze writes that.
    Doze,
}

impl SnapshotFormat {
    /// `kafka` or `doze`.
    pub fn name(self) -> &'static str {
        match self {
            SnapshotFormat::Kafka => "kafka",
            SnapshotFormat::Doze => "doze",
        }
    }
}

/// What stands in front of the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotHeader {
    pub version: i16,
    pub crc: u32,
    /// The checksum of the bytes that are there.
    pub computed_crc: u32,
    /// How many entries it says there are.
    pub entries: u32,
    pub format: SnapshotFormat,
}

/// A producer, or one of its batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerEntry {
    pub position: u64,
    pub producer_id: i64,
    pub epoch: i16,
    /// -1: it wrote none in this epoch.
    pub last_sequence: i32,
    pub last_offset: i64,
    /// The last offset of the batch less its first.
    pub offset_delta: i32,
    /// Of its latest batch or marker, where this is its last entry; else of the batch.
    pub timestamp: i64,
    /// Of the coordinator that last ended a transaction of it, -1 for none.
    pub coordinator_epoch: i32,
    /// Where its open transaction starts.
    pub transaction_start: Option<i64>,
}

#[derive(Debug)]
pub(super) struct SnapshotDump {
    file: Arc<dyn File>,
    size: u64,
    /// Once the header was told.
    entries: Option<Pages>,
    waiting: Vec<Entry>,
    done: bool,
}

impl SnapshotDump {
    pub fn new(file: Arc<dyn File>, size: u64) -> SnapshotDump {
        SnapshotDump { file, size, entries: None, waiting: Vec::new(), done: false }
    }

    pub fn next(&mut self) -> io::Result<Option<Entry>> {
        if let Some(entry) = self.waiting.pop() {
            return Ok(Some(entry));
        }
        if self.done {
            return Ok(None);
        }
        let Some(entries) = &mut self.entries else { return self.header() };
        let position = entries.position();
        if let Some(bytes) = entries.next()? {
            let SnapshotEntry { producer_id, epoch, batch, coordinator_epoch, transaction_start } =
                SnapshotEntry::decode(bytes);
            return Ok(Some(Entry::Producer(ProducerEntry {
                position,
                producer_id,
                epoch,
                last_sequence: batch.last_sequence,
                last_offset: batch.last_offset,
                offset_delta: batch.delta,
                timestamp: batch.timestamp,
                coordinator_epoch,
                transaction_start,
            })));
        }
        self.done = true;
        let left = entries.left();
        Ok((left > 0).then(|| torn(position, SNAPSHOT_ENTRY as u64, left)))
    }

    /// The header, with everything that can be said of the file as a whole.
    fn header(&mut self) -> io::Result<Option<Entry>> {
        let from = SNAPSHOT_HEADER as u64;
        if self.size < from {
            self.done = true;
            return Ok(Some(torn(0, from, self.size)));
        }
        let mut header = [0; SNAPSHOT_HEADER];
        self.file.read_exact_at(&mut header, 0)?;
        let [v0, v1, c0, c1, c2, c3, n0, n1, n2, n3] = header;
        let mut entries = Pages::new(self.file.clone(), from, self.size, SNAPSHOT_ENTRY);
        let mut computed_crc = crc32c::crc32c(&header[CRC_FROM as usize..]);
        let mut format = SnapshotFormat::Kafka;
        let mut before = None;
        while let Some(bytes) = entries.next()? {
            computed_crc = crc32c::crc32c_append(computed_crc, bytes);
            let id = SnapshotEntry::decode(bytes).producer_id;
            if before == Some(id) {
                format = SnapshotFormat::Doze;
            }
            before = Some(id);
        }
        let mut rest = vec![0; entries.left() as usize];
        self.file.read_exact_at(&mut rest, entries.position())?;
        computed_crc = crc32c::crc32c_append(computed_crc, &rest);
        let version = i16::from_be_bytes([v0, v1]);
        let crc = u32::from_be_bytes([c0, c1, c2, c3]);
        let claimed = u32::from_be_bytes([n0, n1, n2, n3]);
        let found = (self.size - from) / SNAPSHOT_ENTRY as u64;
        let mut wrong = Vec::new();
        if version != SNAPSHOT_VERSION as i16 {
            wrong.push(DamageKind::Version { found: i64::from(version) });
        }
        if crc != computed_crc {
            wrong.push(DamageKind::Crc { stored: crc, computed: computed_crc });
        }
        if u64::from(claimed) != found {
            wrong.push(DamageKind::Count { claimed: u64::from(claimed), found });
        }
        // Taken from the end.
        self.waiting = wrong.into_iter().rev().map(|kind| whole(self.size, kind)).collect();
        self.entries = Some(Pages::new(self.file.clone(), from, self.size, SNAPSHOT_ENTRY));
        Ok(Some(Entry::Snapshot(SnapshotHeader { version, crc, computed_crc, entries: claimed, format })))
    }
}

fn whole(bytes: u64, kind: DamageKind) -> Entry {
    Entry::Damage(Damage { position: 0, bytes, offsets: (None, None), kind })
}

fn torn(position: u64, needed: u64, left: u64) -> Entry {
    let kind = DamageKind::Torn { needed, left };
    Entry::Damage(Damage { position, bytes: left, offsets: (None, None), kind })
}
