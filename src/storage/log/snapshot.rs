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
use crate::sys::{FileSystem, OpenMode};

const VERSION: u16 = 1;
const HEADER: usize = 10;
const CRC_FROM: usize = 6;
const ENTRY: usize = 46;

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
        let id = i64::from_be_bytes(field(entry, 0));
        let timestamp = i64::from_be_bytes(field(entry, 26));
        let batch = WrittenBatch {
            last_sequence: i32::from_be_bytes(field(entry, 10)),
            last_offset: i64::from_be_bytes(field(entry, 14)),
            delta: i32::from_be_bytes(field(entry, 22)),
            timestamp,
        };
        match producers.last_mut() {
            Some((last, producer)) if *last == id => {
                producer.keep(batch);
                producer.last_timestamp = timestamp;
            }
            _ => {
                let transaction_start = i64::from_be_bytes(field(entry, 38));
                let producer = Producer::new(
                    i16::from_be_bytes(field(entry, 8)),
                    i32::from_be_bytes(field(entry, 34)),
                    timestamp,
                    (transaction_start >= 0).then_some(transaction_start),
                    (batch.last_offset >= 0).then_some(batch),
                );
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
