//! One segment, by its ends.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::content::Content;
use super::partition::Depth;
use crate::storage::log::{BatchAt, IndexEntry, LONG_WALK, OffsetEntry, TimeEntry, Walker};
use crate::storage::names::{self, FileKind};
use crate::sys::{File, FileSystem, OpenMode};

/// How many bytes are walked over at each end of a segment for a sample.
const SAMPLE: u64 = 64 * 1024;

/// What is known of a segment.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentSummary {
    pub base_offset: i64,
    /// Of the log file.
    pub bytes: u64,
    /// Of the indexes and the snapshot.
    pub index_bytes: u64,
    /// The offset after its last batch; the base where it has none.
    pub end_offset: i64,
    /// Bytes behind the last batch that make none: a torn tail, or room that was reserved.
    pub tail_bytes: u64,
    /// The base timestamp of its first batch, milliseconds since the Unix epoch. `None` if it has none.
    pub first_timestamp: Option<i64>,
    /// The largest timestamp.
    pub last_timestamp: Option<i64>,
    /// When the log file was last changed, milliseconds since the Unix epoch.
    pub modified_ms: i64,
    pub content: Content,
    /// How many transactions its index says were aborted.
    pub aborted_transactions: u64,
}

impl SegmentSummary {
    /// Looks at the segment of `dir` that starts at `base`.
    pub(super) fn read(fs: &dyn FileSystem, dir: &Path, base: i64, depth: Depth) -> io::Result<SegmentSummary> {
        let path = |kind| dir.join(names::segment_file(base, kind));
        let metadata = fs.metadata(&path(FileKind::Log))?;
        let file = fs.open(&path(FileKind::Log), OpenMode::Read)?;
        let len = |kind| fs.metadata(&path(kind)).map_or(0, |metadata| metadata.len);
        let mut summary = SegmentSummary {
            base_offset: base,
            bytes: metadata.len,
            index_bytes: FileKind::ALL[1..].iter().map(|kind| len(*kind)).sum(),
            end_offset: base,
            tail_bytes: 0,
            first_timestamp: None,
            last_timestamp: None,
            modified_ms: metadata.modified_ms,
            content: Content { of_bytes: metadata.len, ..Content::default() },
            aborted_transactions: len(FileKind::TxnIndex) / 34,
        };
        let latest = last_entry::<TimeEntry>(fs, &path(FileKind::TimeIndex))?;
        summary.last_timestamp = latest.map(|entry| entry.timestamp).filter(|timestamp| *timestamp >= 0);
        let indexed = last_entry::<OffsetEntry>(fs, &path(FileKind::OffsetIndex))?;
        summary.walk(file, indexed.map_or(0, |entry| u64::from(entry.position)), depth)?;
        Ok(summary)
    }

    /// Walks over all of it, or over its first batches and those from the last that is in its index.
    fn walk(&mut self, file: Arc<dyn File>, indexed: u64, depth: Depth) -> io::Result<()> {
        let mut walker = Walker::new(file, 0, self.bytes, LONG_WALK);
        let sample = if depth == Depth::Count { u64::MAX } else { SAMPLE };
        while walker.position() < sample {
            let Some(batch) = walker.next()? else { break };
            self.take(&mut walker, &batch)?;
        }
        let seen = walker.position();
        if seen >= self.bytes {
            return Ok(());
        }
        let before = self.end_offset;
        walker.skip_to(indexed.max(seen));
        while let Some(batch) = walker.next()? {
            self.take(&mut walker, &batch)?;
        }
        if walker.position() == indexed && indexed > seen && self.end_offset == before {
            // The index does not say where a batch starts.
            walker.skip_to(seen);
            while let Some(batch) = walker.next()? {
                self.take(&mut walker, &batch)?;
            }
        }
        self.tail_bytes = self.bytes - walker.position();
        self.content.of_bytes -= self.tail_bytes;
        Ok(())
    }

    fn take(&mut self, walker: &mut Walker, batch: &BatchAt) -> io::Result<()> {
        if self.first_timestamp.is_none() {
            let base = batch.header.filter(|header| !header.has_delete_horizon()).map(|header| header.base_timestamp);
            self.first_timestamp = Some(base.unwrap_or(batch.max_timestamp)).filter(|timestamp| *timestamp >= 0);
        }
        if batch.max_timestamp >= 0 {
            self.last_timestamp = self.last_timestamp.max(Some(batch.max_timestamp));
        }
        self.end_offset = self.end_offset.max(batch.last_offset.saturating_add(1));
        self.content.take(batch);
        if self.content.wants_measure(batch)
            && let Some(bytes) = walker.slice(batch.position, batch.end())?
        {
            self.content.measure(bytes);
        }
        Ok(())
    }
}

/// The last entry of an index that is used: behind it there may be zeros, room that Apache Kafka took in advance. `None` if
/// there is none, or no file.
fn last_entry<E: IndexEntry>(fs: &dyn FileSystem, path: &Path) -> io::Result<Option<E>> {
    let file = match fs.open(path, OpenMode::Read) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    let entries = file.len()? / E::SIZE as u64;
    let mut bytes = vec![0; E::SIZE];
    // The used ones come first, and none of those behind the first is all zeros.
    let (mut used, mut unused) = (0, entries);
    while used < unused {
        let middle = used + (unused - used) / 2;
        file.read_exact_at(&mut bytes, middle * E::SIZE as u64)?;
        if bytes.iter().any(|byte| *byte != 0) { used = middle + 1 } else { unused = middle }
    }
    if used == 0 {
        return Ok(None);
    }
    file.read_exact_at(&mut bytes, (used - 1) * E::SIZE as u64)?;
    Ok(Some(E::decode(&bytes)))
}
