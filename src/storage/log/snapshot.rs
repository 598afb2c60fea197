//! Producer snapshots: the producers as they were before an offset, so that a start need not read the log to know them.
//!
//! `<20 digits>.snapshot`, all numbers big-endian:
//!
//! | at | bytes | field |
//! |---:|------:|-------|
//! | 0 | 2 | version, 1 |
//! | 2 | 4 | CRC-32C of everything after it |
//! | 6 | 4 | number of entries |
//! | 10 | 46 each | the entries |
//!
//! A producer has an entry for each of its batches that is remembered, in a row and oldest first, and one where there is
//! none. Kafka writes the last alone; of several that it reads, it goes by the last. With the last alone, a producer whose
//! requests were under way at a roll and a kill would have those that it sends again refused, all but one.
//!
//! An entry:
//!
//! | at | bytes | field |
//! |---:|------:|-------|
//! |  0 | 8 | producer id |
//! |  8 | 2 | producer epoch |
//! | 10 | 4 | last sequence of the batch, -1 if none was written in this epoch |
//! | 14 | 8 | last offset of the batch, -1 likewise |
//! | 22 | 4 | last offset of the batch less its first |
//! | 26 | 8 | timestamp of the batch, in the last entry of the last batch or marker |
//! | 34 | 4 | epoch of the coordinator that last ended a transaction, -1 for none |
//! | 38 | 8 | first offset of the open transaction, -1 for none |

use std::io::{self, IoSlice};
use std::path::Path;

use super::producers::{Producer, Producers, WrittenBatch};
use crate::sys::{File, FileSystem, OpenMode};

/// The only version there is.
pub(in crate::storage) const VERSION: u16 = 1;
/// The bytes in front of the entries.
pub(in crate::storage) const HEADER: usize = 10;
/// The bytes of an entry.
pub(in crate::storage) const ENTRY: usize = 46;
const CRC_FROM: usize = 6;
/// How many entries a scan holds.
const SCAN_ENTRIES: usize = 1000;

/// An entry, as it stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::storage) struct SnapshotEntry {
    pub producer_id: i64,
    pub epoch: i16,
    /// Its last offset is -1 where there is none.
    pub batch: WrittenBatch,
    pub coordinator_epoch: i32,
    pub transaction_start: Option<i64>,
}

impl SnapshotEntry {
    /// `bytes` are [`ENTRY`].
    pub fn decode(bytes: &[u8]) -> SnapshotEntry {
        let transaction_start = i64::from_be_bytes(field(bytes, 38));
        SnapshotEntry {
            producer_id: i64::from_be_bytes(field(bytes, 0)),
            epoch: i16::from_be_bytes(field(bytes, 8)),
            batch: WrittenBatch {
                last_sequence: i32::from_be_bytes(field(bytes, 10)),
                last_offset: i64::from_be_bytes(field(bytes, 14)),
                delta: i32::from_be_bytes(field(bytes, 22)),
                timestamp: i64::from_be_bytes(field(bytes, 26)),
            },
            coordinator_epoch: i32::from_be_bytes(field(bytes, 34)),
            transaction_start: (transaction_start >= 0).then_some(transaction_start),
        }
    }
}

fn encode(producers: &Producers) -> Vec<u8> {
    let mut out = vec![0; HEADER];
    for (id, producer) in producers.entries() {
        let nothing = [WrittenBatch { last_sequence: -1, last_offset: -1, delta: 0, timestamp: -1 }];
        let (last, earlier) = producer.batches().split_last().unwrap_or((&nothing[0], &[]));
        for batch in earlier {
            encode_entry(&mut out, id, producer, batch, batch.timestamp);
        }
        encode_entry(&mut out, id, producer, last, producer.last_timestamp);
    }
    let entries = (out.len() - HEADER) / ENTRY;
    out[..2].copy_from_slice(&VERSION.to_be_bytes());
    out[CRC_FROM..HEADER].copy_from_slice(&(entries as u32).to_be_bytes());
    let crc = crc32c::crc32c(&out[CRC_FROM..]);
    out[2..CRC_FROM].copy_from_slice(&crc.to_be_bytes());
    out
}

fn encode_entry(out: &mut Vec<u8>, id: i64, producer: &Producer, batch: &WrittenBatch, timestamp: i64) {
    out.extend_from_slice(&id.to_be_bytes());
    out.extend_from_slice(&producer.epoch.to_be_bytes());
    out.extend_from_slice(&batch.last_sequence.to_be_bytes());
    out.extend_from_slice(&batch.last_offset.to_be_bytes());
    out.extend_from_slice(&batch.delta.to_be_bytes());
    out.extend_from_slice(&timestamp.to_be_bytes());
    out.extend_from_slice(&producer.coordinator_epoch.to_be_bytes());
    out.extend_from_slice(&producer.transaction_start.unwrap_or(-1).to_be_bytes());
}

/// Why a snapshot is not a whole one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::storage) enum SnapshotFlaw {
    #[error("it has {len} bytes, and its header {HEADER}")]
    Short { len: u64 },
    #[error("its version is {version}, and {VERSION} was expected")]
    Version { version: u16 },
    #[error("its checksum is {stored:08x}, that of its bytes {computed:08x}")]
    BadCrc { stored: u32, computed: u32 },
    #[error("it says that it has {entries} entries, which {len} bytes are not")]
    Count { entries: u32, len: u64 },
}

fn check_header(header: &[u8], len: u64) -> Result<(), SnapshotFlaw> {
    let (version, entries) = (u16::from_be_bytes(field(header, 0)), u32::from_be_bytes(field(header, 6)));
    if version != VERSION {
        return Err(SnapshotFlaw::Version { version });
    }
    if len - HEADER as u64 != u64::from(entries) * ENTRY as u64 {
        return Err(SnapshotFlaw::Count { entries, len });
    }
    Ok(())
}

/// Goes over the snapshot in a file and gives `each` its entries, if it is a whole one. Holds little of it, however large it is.
pub(in crate::storage) fn scan(
    file: &dyn File,
    mut each: impl FnMut(SnapshotEntry),
) -> io::Result<Result<(), SnapshotFlaw>> {
    let len = file.len()?;
    let mut header = [0; HEADER];
    if len < HEADER as u64 {
        return Ok(Err(SnapshotFlaw::Short { len }));
    }
    file.read_exact_at(&mut header, 0)?;
    if let Err(flaw) = check_header(&header, len) {
        return Ok(Err(flaw));
    }
    let mut page = vec![0; SCAN_ENTRIES * ENTRY];
    let mut computed = crc32c::crc32c(&header[CRC_FROM..]);
    let mut pages = |each: &mut dyn FnMut(&[u8])| -> io::Result<()> {
        let mut at = HEADER as u64;
        while at < len {
            let size = usize::try_from(len - at).unwrap_or(usize::MAX).min(page.len());
            file.read_exact_at(&mut page[..size], at)?;
            each(&page[..size]);
            at += size as u64;
        }
        Ok(())
    };
    pages(&mut |page| computed = crc32c::crc32c_append(computed, page))?;
    let stored = u32::from_be_bytes(field(&header, 2));
    if stored != computed {
        return Ok(Err(SnapshotFlaw::BadCrc { stored, computed }));
    }
    pages(&mut |page| page.chunks_exact(ENTRY).map(SnapshotEntry::decode).for_each(&mut each))?;
    Ok(Ok(()))
}

fn decode(bytes: &[u8]) -> Option<Vec<(i64, Producer)>> {
    let (header, entries) = bytes.split_at_checked(HEADER)?;
    let stored = u32::from_be_bytes(field(header, 2));
    if u16::from_be_bytes(field(header, 0)) != VERSION || stored != crc32c::crc32c(&bytes[CRC_FROM..]) {
        return None;
    }
    if entries.len() as u64 != u64::from(u32::from_be_bytes(field(header, 6))) * ENTRY as u64 {
        return None;
    }
    let mut producers: Vec<(i64, Producer)> = Vec::new();
    for entry in entries.chunks_exact(ENTRY) {
        let SnapshotEntry { producer_id: id, epoch, batch, coordinator_epoch, transaction_start } =
            SnapshotEntry::decode(entry);
        match producers.last_mut() {
            Some((last, producer)) if *last == id => {
                producer.keep(batch);
                producer.last_timestamp = batch.timestamp;
            }
            _ => {
                let there = (batch.last_offset >= 0).then_some(batch);
                let producer = Producer::new(epoch, coordinator_epoch, batch.timestamp, transaction_start, there);
                producers.push((id, producer));
            }
        }
    }
    Some(producers)
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("the slice has the array's length")
}

/// Writes a snapshot. On return its content is on the medium; its name is once the directory is synced. The checksum tells
/// a snapshot that a power cut left half written.
pub(super) fn write(fs: &dyn FileSystem, path: &Path, producers: &Producers) -> io::Result<()> {
    let file = fs.open(path, OpenMode::CreateOrTruncate)?;
    file.write_all_at(&[IoSlice::new(&encode(producers))], 0)?;
    file.sync()
}

/// The producers in a snapshot. `None` if it is not a whole one.
pub(super) fn read(fs: &dyn FileSystem, path: &Path) -> io::Result<Option<Producers>> {
    let file = fs.open(path, OpenMode::Read)?;
    let mut bytes = vec![0; usize::try_from(file.len()?).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(decode(&bytes).map(Producers::restore))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_read_as_it_was_written_and_no_flipped_bit_passes() {
        let batch = WrittenBatch { last_sequence: 12, last_offset: 99, delta: 4, timestamp: 1234 };
        let mut several = Producer::new(0, -1, 1270, None, Some(batch));
        for i in 1..8 {
            several.keep(WrittenBatch { last_sequence: 12 + i, last_offset: 99 + 2 * i64::from(i), delta: 0, ..batch });
        }
        several.keep(WrittenBatch { last_sequence: 20, last_offset: 200, delta: 0, timestamp: 1270 });
        let entries = vec![
            (7, Producer::new(3, 5, 1234, Some(90), Some(batch))),
            (8, Producer::new(0, -1, 55, None, None)),
            (9, several),
        ];
        let written = encode(&Producers::restore(entries.clone()));
        assert_eq!(written.len(), HEADER + (1 + 1 + 5) * ENTRY);
        let mut read = decode(&written).unwrap();
        read.sort_by_key(|entry| entry.0);
        assert_eq!(read, entries);
        assert_eq!(Producers::restore(read).first_open().map(|open| open.0), Some(90));
        for bit in 0..written.len() * 8 {
            let mut damaged = written.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&damaged).is_none(), "bit {bit}");
        }
        for len in 0..written.len() {
            assert!(decode(&written[..len]).is_none(), "length {len}");
        }
    }
}
