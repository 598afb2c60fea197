//! End markers of transactions in what is no good batch, as far as there is proof of them.
//!
//! Without its marker a transaction goes on: readers of committed records wait for its end, or take that of the producer's
//! next transaction for it, and a consumer that was told of an abort passes over all that the producer writes until it
//! meets an abort marker. So a marker that rotted is written again, but only where it is known what it said:
//!
//! - The index of aborted transactions names the offset of each abort marker. It is a file of its own, written before the
//!   last stable offset moved. The producer must have a transaction open there.
//! - A batch whose header still says that it is a control batch of a producer that has a transaction open there, which that
//!   index does not name although it names all of its segment, was a commit; unless its record can be read and says
//!   otherwise.
//!
//! Anything else is not guessed at.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use super::indexes::aborted_of;
use super::survey::{Stretch, StretchKind, Surveyed};
use crate::record::BatchHeader;
use crate::storage::log::error::FileError;
use crate::storage::log::index::AbortedTransaction;
use crate::storage::log::producers::{EndMarker, Producers};
use crate::storage::log::replay::parse_marker;
use crate::storage::log::scan::{BatchAt, LONG_WALK, Walker};
use crate::storage::log::snapshot;
use crate::storage::names::{self, FileKind, PartitionFile, Stage};
use crate::sys::{FileSystem, OpenMode};

/// More than a batch with an end marker has, in bytes.
const LARGEST: u64 = 256;

/// What of the index of aborted transactions of a segment can be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::storage) enum Trust {
    Nothing,
    /// What it names; it may lack something.
    Entries,
    /// That it names all of them.
    Whole,
}

/// Looks for end markers in the stretches of a log's files that are damaged. Answers them by their offsets. Writes nothing.
pub(in crate::storage) fn lost_markers(
    fs: &dyn FileSystem,
    dir: &Path,
    files: &[Surveyed],
    trust: &dyn Fn(&Surveyed) -> Trust,
) -> Result<BTreeMap<i64, EndMarker>, FileError> {
    let mut found = BTreeMap::new();
    let counts: Vec<&Surveyed> = files.iter().filter(|file| file.surplus.is_none()).collect();
    let Some(first) = counts.first() else { return Ok(found) };
    let mut producers = producers_before(fs, dir, first.belongs)?;
    for file in counts {
        let path = dir.join(names::segment_file(file.base, FileKind::Log));
        let trust = trust(file);
        let aborted = match trust {
            Trust::Nothing => None,
            Trust::Entries | Trust::Whole => aborted_of(fs, dir, file.base)?,
        };
        let opened = fs.open(&path, OpenMode::Read).map_err(FileError::of("open", &path))?;
        let mut walker = Walker::new(opened, 0, file.len, LONG_WALK);
        let mut walk = Walk { producers: &mut producers, aborted: aborted.as_deref(), trust, found: &mut found };
        walk.run(file, &mut walker).map_err(FileError::of("read", &path))?;
    }
    Ok(found)
}

/// What a snapshot tells of the producers before the first batch.
fn producers_before(fs: &dyn FileSystem, dir: &Path, first: i64) -> Result<Producers, FileError> {
    let mut known = Producers::default();
    for entry in fs.list(dir).map_err(FileError::of("list", dir))? {
        if let PartitionFile::Segment { base, kind: FileKind::Snapshot, stage: Stage::Live } =
            names::parse_partition_file(&entry.name)
            && base == first
        {
            let path = dir.join(&entry.name);
            known = snapshot::read(fs, &path).map_err(FileError::of("read", &path))?.unwrap_or_default();
        }
    }
    Ok(known)
}

struct Walk<'a> {
    producers: &'a mut Producers,
    aborted: Option<&'a [AbortedTransaction]>,
    trust: Trust,
    found: &'a mut BTreeMap<i64, EndMarker>,
}

impl Walk<'_> {
    fn run(&mut self, file: &Surveyed, walker: &mut Walker) -> io::Result<()> {
        let mut stretches = file.stretches.iter().peekable();
        loop {
            let at = walker.position();
            if let Some(stretch) = stretches.next_if(|stretch| stretch.position == at) {
                if let Some(mend) = &stretch.mend {
                    self.batch(walker, &mend.batch)?;
                } else if stretch.kind == StretchKind::Damaged {
                    self.damaged(walker, stretch)?;
                }
                walker.skip_to(stretch.end());
                continue;
            }
            let Some(batch) = walker.next()? else { return Ok(()) };
            self.batch(walker, &batch)?;
            walker.skip_to(batch.end());
        }
    }

    fn batch(&mut self, walker: &mut Walker, batch: &BatchAt) -> io::Result<()> {
        let Some(header) = batch.header.filter(BatchHeader::has_producer_id) else { return Ok(()) };
        if !header.is_control() {
            self.producers.wrote(&header, None);
        } else if batch.size <= LARGEST
            && let Some(bytes) = walker.slice(batch.position, batch.end())?
            && let Some((marker, timestamp)) = parse_marker(&header, bytes)
        {
            self.producers.ended(&marker, header.base_offset, timestamp);
        }
        Ok(())
    }

    fn damaged(&mut self, walker: &mut Walker, stretch: &Stretch) -> io::Result<()> {
        let (from, to) = stretch.offsets;
        let entries = self.aborted.unwrap_or_default().iter();
        let named: Vec<&AbortedTransaction> = entries.filter(|entry| (from..to).contains(&entry.last_offset)).collect();
        let is_one = to - from == 1 && stretch.bytes <= LARGEST;
        let bytes = if is_one { walker.slice(stretch.position, stretch.end())? } else { None };
        let header = bytes.and_then(|bytes| BatchHeader::parse(bytes).ok());
        for entry in &named {
            let epoch = header.filter(|header| header.producer_id == entry.producer_id);
            self.take(entry.producer_id, entry.last_offset, false, epoch.map(|header| header.producer_epoch));
        }
        let (Some(bytes), Some(header)) = (bytes, header) else { return Ok(()) };
        if !named.is_empty() || self.trust != Trust::Whole {
            return Ok(());
        }
        let is_marker = header.is_control() && header.is_transactional() && header.records_count == 1;
        let says_abort = parse_marker(&header, bytes).is_some_and(|(marker, _)| !marker.committed);
        if is_marker && header.size_in_bytes() == bytes.len() && !says_abort {
            self.take(header.producer_id, from, true, Some(header.producer_epoch));
        }
        Ok(())
    }

    /// The marker of a producer that has a transaction open.
    fn take(&mut self, producer_id: i64, offset: i64, committed: bool, epoch: Option<i16>) {
        let all = self.producers.describe();
        let known = all.iter().find(|known| known.producer_id == producer_id && known.transaction_start.is_some());
        let Some(known) = known.filter(|known| known.transaction_start < Some(offset)) else { return };
        // In the second version of the protocol the marker has the next epoch.
        let next = known.epoch.saturating_add(1);
        let marker = EndMarker {
            producer_id,
            producer_epoch: if epoch == Some(next) { next } else { known.epoch },
            committed,
            coordinator_epoch: known.coordinator_epoch.max(0),
            transaction_version: 0,
        };
        self.producers.ended(&marker, offset, known.last_timestamp);
        self.found.insert(offset, marker);
    }
}
