//! One segment: its batches, and its indexes against them.
//!
//! At the default level and at deep it goes over the log as a start does after an unclean stop ([`Checker`]), so that what
//! this calls damaged is what the broker would. Nothing larger than a read buffer is held but at level deep, where it is one
//! batch of at most [`records::LARGEST`].

use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use super::damage;
use super::epochs::EpochCheck;
use super::finding::{Consequence, Kind, Repair};
use super::indexes::{Entries, OffsetCheck, Rules, TimeCheck};
use super::layout::{FoundFile, SegmentFiles, open};
use super::notes::{Notes, Place};
use super::producers::SegmentProducers;
use super::progress::{Progress, Watched};
use super::records::{self, Wants};
use super::report::{Level, Totals};
use crate::storage::log::{
    AbortedTransaction, BatchAt, Checker, IndexEntry, LeaderEpochs, OffsetEntry, Segment, TXN_INDEX_VERSION, TimeEntry,
    has_marker, parse_marker,
};
use crate::sys::{Env, File};

/// A batch that is larger than this is inflated while no other such is, whatever the number of jobs, in bytes.
const LARGE: u64 = 1 << 20;
/// How much is read at once, in bytes: batches that a read cuts off are read again with the next.
const STEP: usize = 1 << 20;
/// How much is gone over between two words to [`Progress`], in bytes.
const REPORT: u64 = 1 << 20;

/// A segment that is to be gone over, and what its partition knows of it.
#[derive(Debug)]
pub(super) struct Task {
    pub env: Env,
    pub dir: Arc<Path>,
    pub files: SegmentFiles,
    /// Base offset of the segment after it; `None` for the last.
    pub next_base: Option<i64>,
    /// The next start looks at this one batch by batch and makes its indexes anew.
    pub is_checked_at_start: bool,
    /// It may be Apache Kafka's: longer than used, its indexes too, whose entries may be of several batches.
    pub is_kafka: bool,
    pub level: Level,
    /// The log is compacted.
    pub is_compacted: bool,
    /// Below this offset compaction may have taken batches out.
    pub sparse_below: i64,
    pub log_start: i64,
    pub epochs: Option<Arc<LeaderEpochs>>,
    pub progress: Arc<Progress>,
    /// Held while a large batch is inflated.
    pub large: Arc<Mutex<()>>,
}

/// Bytes at the end of a log file that are no good batch.
#[derive(Clone, Debug)]
pub(super) struct Tail {
    pub position: u64,
    pub bytes: u64,
    pub kind: Kind,
    pub why: String,
}

/// What was found of a segment.
#[derive(Debug)]
pub(super) struct Scanned {
    pub notes: Notes,
    pub totals: Totals,
    /// The offset after the last that is whole.
    pub end: i64,
    /// What of the last segment's file is behind its last good batch.
    pub tail: Option<Tail>,
    pub producers: SegmentProducers,
    pub epochs: EpochCheck,
    /// Batches whose records were not looked at, as they are too large to be held.
    pub too_large: u64,
    /// It could not be read to its end.
    pub failed: bool,
}

impl Task {
    fn last_possible(&self) -> i64 {
        self.next_base.map_or(self.files.base.saturating_add(i64::from(i32::MAX)), |next| next - 1)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let file = open(&*self.env.fs, &self.dir, name)?;
        Ok(Arc::new(Watched { file, progress: self.progress.clone() }))
    }

    /// Who puts an index of this segment right, where the start does not notice.
    fn repair(&self) -> Repair {
        if self.is_checked_at_start { Repair::Start } else { Repair::Recover }
    }

    /// Goes over the segment.
    pub fn run(&self, mut notes: Notes) -> Scanned {
        let txn_repair = match &self.files.aborted {
            Some(file) if file.len % AbortedTransaction::SIZE as u64 != 0 => Repair::Start,
            _ => self.repair(),
        };
        let strict = self.sparse_below <= self.files.base;
        let is_start = self.files.base == 0 && self.log_start == 0;
        let aborted = match &self.files.aborted {
            Some(file) => self.index::<AbortedTransaction>(Some(file), "", txn_repair, &mut notes),
            // There is none where nothing was aborted; what should be in it is found under its name.
            None => Entries::new(&self.index_name(crate::storage::names::FileKind::TxnIndex), None, 0),
        };
        let mut scanned = Scanned {
            notes: notes.fresh(),
            totals: Totals { segments: 1, ..Totals::default() },
            end: self.files.base,
            tail: None,
            producers: SegmentProducers::new(aborted, txn_repair, strict, is_start),
            epochs: EpochCheck::new(self.epochs.clone()),
            too_large: 0,
            failed: false,
        };
        scanned.notes.take(notes);
        let result = match self.level {
            Level::Quick => self.run_quick(&mut scanned),
            _ => self.run_whole(&mut scanned),
        };
        if let Err(error) = result {
            scanned.failed = true;
            if !self.progress.is_cancelled() {
                scanned.notes.unreadable(&self.files.log.name, &error);
            }
        }
        scanned.notes.findings.sort_by_key(|finding| finding.position);
        scanned
    }

    /// The entries of an index, its length looked at. `missing`: what it is called if there is no file and there should be.
    fn index<E: IndexEntry>(
        &self,
        file: Option<&FoundFile>,
        missing: &str,
        repair: Repair,
        notes: &mut Notes,
    ) -> Entries<E> {
        let rebuild = (Consequence::Rebuild, repair);
        let Some(file) = file else {
            if !missing.is_empty() {
                notes.add(missing, Place::FILE, Kind::StaleIndex, rebuild, "it is missing");
            }
            return Entries::new(missing, None, 0);
        };
        if file.len % E::SIZE as u64 != 0 {
            let whole = file.len - file.len % E::SIZE as u64;
            let why = format!("it has {} bytes, and each entry {}", file.len, E::SIZE);
            notes.add(&file.name, Place::bytes(whole, file.len - whole), Kind::TornIndex, rebuild, why);
        }
        match self.open(&file.name) {
            Ok(opened) => Entries::new(&file.name, Some(opened), file.len),
            Err(error) => {
                notes.unreadable(&file.name, &error);
                Entries::new(&file.name, None, 0)
            }
        }
    }

    /// The versions of the entries of an index of aborted transactions.
    fn check_versions(&self, file: &FoundFile, repair: Repair, notes: &mut Notes) -> io::Result<()> {
        let opened = self.open(&file.name)?;
        let whole = file.len / AbortedTransaction::SIZE as u64 * AbortedTransaction::SIZE as u64;
        let mut page = vec![0; 1000 * AbortedTransaction::SIZE];
        let mut at = 0;
        while at < whole {
            let size = usize::try_from(whole - at).unwrap_or(usize::MAX).min(page.len());
            opened.read_exact_at(&mut page[..size], at)?;
            for entry in page[..size].chunks_exact(AbortedTransaction::SIZE) {
                let version = AbortedTransaction::version(entry);
                if version != TXN_INDEX_VERSION {
                    let place = Place::bytes(at, entry.len() as u64);
                    let why = format!("an entry has version {version}, and {TXN_INDEX_VERSION} was expected");
                    notes.add(&file.name, place, Kind::BadTxnIndex, (Consequence::Rebuild, repair), why);
                }
                at += entry.len() as u64;
            }
        }
        Ok(())
    }

    /// Whether the broker would take the index files as they are; the same code says so.
    fn are_indexes_trusted(&self) -> io::Result<bool> {
        let segment = Segment::sealed(self.dir.clone(), self.files.base, self.files.log.len, 4096);
        segment.trusts_indexes(&*self.env.fs).map_err(|error| error.source)
    }

    fn index_name(&self, kind: crate::storage::names::FileKind) -> String {
        crate::storage::names::segment_file(self.files.base, kind)
    }

    /// Level quick: the first batch, the indexes as a start looks at them, and from the last index entry on by headers.
    fn run_quick(&self, scanned: &mut Scanned) -> io::Result<()> {
        use crate::storage::log::Walker;
        let (len, base) = (self.files.log.len, self.files.base);
        let file = self.open(&self.files.log.name)?;
        scanned.totals.bytes = len;
        scanned.end = self.next_base.unwrap_or(base);
        let mut walker = Walker::new(file.clone(), 0, len, 4096);
        let first = walker.next()?;
        let possible = base..=self.last_possible();
        if len > 0 && first.is_none_or(|first| !possible.contains(&first.last_offset)) {
            let tail = damage::describe(&file, base, possible, 0, len)?;
            self.end_of_file(scanned, base, tail);
            self.progress.add(len);
            return Ok(());
        }
        let mut position = 0;
        if !self.is_checked_at_start {
            if self.are_indexes_trusted()? {
                let mut offsets =
                    self.index::<OffsetEntry>(self.files.offsets.as_ref(), "", Repair::Start, &mut scanned.notes);
                position = offsets.last()?.map_or(0, |last| u64::from(last.position));
            } else if len > 0 {
                let name = self.index_name(crate::storage::names::FileKind::OffsetIndex);
                let why = "the indexes cannot be those of the log: torn, missing, or older than it";
                let rebuild = (Consequence::Rebuild, Repair::Start);
                scanned.notes.add(name, Place::FILE, Kind::StaleIndex, rebuild, why);
            }
        }
        walker.skip_to(position);
        let mut end = base;
        while let Some(batch) = walker.next()? {
            end = batch.last_offset.saturating_add(1);
            scanned.totals.batches += 1;
            scanned.totals.records += records_of(&batch);
        }
        scanned.end = end;
        if walker.position() < len {
            let tail = damage::describe(&file, end, end..=self.last_possible(), walker.position(), len)?;
            self.end_of_file(scanned, end, tail);
        } else if let Some(next) = self.next_base
            && next > end.max(self.sparse_below)
        {
            self.missing(scanned, end.max(self.sparse_below), next);
        }
        self.progress.add(len);
        Ok(())
    }

    fn run_whole(&self, scanned: &mut Scanned) -> io::Result<()> {
        let (len, base) = (self.files.log.len, self.files.base);
        if let Some(aborted) = &self.files.aborted {
            self.check_versions(aborted, scanned.producers.repair(), &mut scanned.notes)?;
        }
        let file = self.open(&self.files.log.name)?;
        let found_before = scanned.notes.findings.len();
        // The last segment's are written when it is sealed or its log closed.
        let has_indexes = len > 0 && !self.is_checked_at_start;
        let name_of = |kind| if has_indexes { self.index_name(kind) } else { String::new() };
        let rules = Rules { base, lenient: self.is_kafka, repair: self.repair() };
        let (offset_name, time_name) = (
            name_of(crate::storage::names::FileKind::OffsetIndex),
            name_of(crate::storage::names::FileKind::TimeIndex),
        );
        let mut offsets = self.index(self.files.offsets.as_ref(), &offset_name, rules.repair, &mut scanned.notes);
        let mut times = self.index(self.files.times.as_ref(), &time_name, rules.repair, &mut scanned.notes);
        if self.is_kafka && self.is_checked_at_start {
            offsets.cut_padding(|entry: &OffsetEntry| entry.position == 0)?;
            times.cut_padding(|entry: &TimeEntry| entry.timestamp == 0)?;
        }
        let mut pass = Pass {
            task: self,
            log: &self.files.log.name,
            offsets: OffsetCheck::new(offsets, rules),
            times: TimeCheck::new(times, rules),
            due: base,
        };
        let mut checker = Checker::new(file.clone(), base, self.last_possible(), len, STEP);
        if self.is_kafka {
            checker.look_for_old();
        }
        let mut reported = 0;
        while let Some(batch) = checker.next_good()? {
            for damaged in checker.take_damage() {
                pass.damage(&file, &damaged, scanned)?;
            }
            pass.batch(&batch, &mut checker, scanned)?;
            if batch.end() - reported >= REPORT {
                self.progress.add(batch.end() - reported);
                reported = batch.end();
            }
        }
        scanned.end = checker.end();
        scanned.totals.bytes = len;
        if checker.size() < len {
            let possible = checker.end()..=self.last_possible();
            let tail = damage::describe(&file, checker.end(), possible, checker.size(), len)?;
            scanned.producers.lose_track(checker.end(), self.next_base.unwrap_or(i64::MAX));
            pass.offsets.damage(checker.size(), len);
            pass.times.damage(checker.end(), self.next_base.unwrap_or(i64::MAX));
            self.end_of_file(scanned, checker.end(), tail);
        } else if let Some(next) = self.next_base {
            let from = checker.end().max(self.sparse_below).max(self.log_start);
            if next > from {
                self.missing(scanned, from, next);
                scanned.producers.lose_track(from, next);
            }
        }
        pass.offsets.finish(&mut scanned.notes)?;
        pass.times.finish(&mut scanned.notes)?;
        scanned.producers.finish(&mut scanned.notes)?;
        self.look_at_indexes(scanned, found_before)?;
        self.progress.add(len - reported);
        Ok(())
    }

    /// What the broker makes of index files that were found wrong; and whether it would make anew any that were not.
    fn look_at_indexes(&self, scanned: &mut Scanned, found_before: usize) -> io::Result<()> {
        if self.is_checked_at_start
            || self.is_kafka
            || self.files.log.len == 0
            || !self.files.log.name.ends_with(".log")
        {
            return Ok(());
        }
        let is_index = |kind| matches!(kind, Kind::BadIndex | Kind::TornIndex | Kind::StaleIndex);
        let from = found_before.min(scanned.notes.findings.len());
        let found = &mut scanned.notes.findings[from..];
        let is_damaged = scanned.tail.is_some() || found.iter().any(|finding| finding.consequence == Consequence::Lost);
        let trusted = self.are_indexes_trusted()?;
        if !trusted {
            found
                .iter_mut()
                .filter(|finding| is_index(finding.kind))
                .for_each(|finding| finding.repair = Repair::Start);
        }
        if !trusted && !is_damaged && !found.iter().any(|finding| is_index(finding.kind)) {
            let name = self.index_name(crate::storage::names::FileKind::OffsetIndex);
            let why = "it or the time index beside it ends long before the log does";
            scanned.notes.add(name, Place::FILE, Kind::StaleIndex, (Consequence::Rebuild, Repair::Start), why);
        }
        Ok(())
    }

    /// Bytes at the end of the file that are no good batch.
    fn end_of_file(&self, scanned: &mut Scanned, end: i64, found: damage::Described) {
        let damage::Described { position, bytes, kind, why, .. } = found;
        let Some(next) = self.next_base else {
            scanned.tail = Some(Tail { position, bytes, kind, why });
            return;
        };
        let to = if kind == Kind::Overlap { found.offsets.1 } else { next };
        let from = if kind == Kind::Overlap { found.offsets.0 } else { end };
        let consequence = if kind == Kind::Overlap { Consequence::Suspect } else { Consequence::Lost };
        let place = Place::bytes(position, bytes).with_offsets(from, to);
        scanned.notes.add(&self.files.log.name, place, kind, (consequence, Repair::Recover), why);
    }

    fn missing(&self, scanned: &mut Scanned, from: i64, next: i64) {
        let why = format!("the log ends before offset {from}, and the next segment starts with {next}");
        let place = Place { position: Some(self.files.log.len), ..Place::offsets(from, next) };
        let lost = (Consequence::Lost, Repair::Nothing);
        scanned.notes.add(&self.files.log.name, place, Kind::MissingOffsets, lost, why);
    }
}

fn records_of(batch: &BatchAt) -> u64 {
    batch.header.map_or(1, |header| u64::try_from(header.records_count).unwrap_or(0))
}

/// A pass over a segment from its first batch to its last.
struct Pass<'a> {
    task: &'a Task,
    log: &'a str,
    offsets: OffsetCheck,
    times: TimeCheck,
    /// The offset after the last batch, also after one that is damaged.
    due: i64,
}

impl Pass<'_> {
    fn damage(
        &mut self,
        file: &Arc<dyn File>,
        damaged: &crate::storage::log::Damage,
        scanned: &mut Scanned,
    ) -> io::Result<()> {
        let (from, to) = damaged.offsets;
        let end = damaged.position + damaged.bytes;
        let possible = from..=to.saturating_sub(1).max(from);
        let found = damage::describe(file, from, possible, damaged.position, end)?;
        let place = Place::bytes(damaged.position, damaged.bytes).with_offsets(from, to);
        let consequence = if found.kind == Kind::Overlap { Consequence::Suspect } else { Consequence::Lost };
        scanned.notes.add(self.log, place, found.kind, (consequence, Repair::Recover), found.why);
        scanned.producers.lose_track(from, to);
        self.offsets.damage(damaged.position, end);
        self.times.damage(from, to);
        self.due = to;
        Ok(())
    }

    fn batch(&mut self, batch: &BatchAt, checker: &mut Checker, scanned: &mut Scanned) -> io::Result<()> {
        let task = self.task;
        scanned.totals.batches += 1;
        scanned.totals.records += records_of(batch);
        self.offsets.batch(batch, &mut scanned.notes)?;
        self.times.batch(batch, &mut scanned.notes)?;
        let is_sparse = batch.base_offset < task.sparse_below;
        if let Some(header) = &batch.header {
            let from = self.due.max(task.sparse_below).max(task.log_start);
            if batch.base_offset > from {
                let place = Place::bytes(batch.position, 0).with_offsets(from, batch.base_offset);
                let why = format!("the log goes from before offset {from} to {}", batch.base_offset);
                let lost = (Consequence::Lost, Repair::Nothing);
                scanned.notes.add(self.log, place, Kind::MissingOffsets, lost, why);
                scanned.producers.lose_track(from, batch.base_offset);
            }
            if header.records_count == 0 && !header.has_producer_id() && !is_sparse {
                let place = Place::bytes(batch.position, batch.size)
                    .with_offsets(batch.base_offset, batch.last_offset.saturating_add(1));
                let why = "it has no records: an empty batch is in the place of what a recovery took out";
                scanned.notes.add(self.log, place, Kind::Emptied, (Consequence::Harmless, Repair::Nothing), why);
                scanned.producers.lose_track(batch.base_offset, batch.last_offset.saturating_add(1));
            }
            scanned.epochs.batch(self.log, header.partition_leader_epoch, batch, &mut scanned.notes);
            if header.has_producer_id() {
                let marker = match header.is_control() && has_marker(header, batch) {
                    true => checker.bytes(batch)?.and_then(|bytes| parse_marker(header, bytes)).map(|marker| marker.0),
                    false => None,
                };
                scanned.producers.batch(self.log, header, marker.as_ref(), is_sparse, &mut scanned.notes)?;
            }
        }
        self.due = batch.last_offset.saturating_add(1);
        if task.level == Level::Deep {
            self.records(batch, checker, is_sparse, scanned)?;
        }
        Ok(())
    }

    fn records(
        &self,
        batch: &BatchAt,
        checker: &mut Checker,
        is_sparse: bool,
        scanned: &mut Scanned,
    ) -> io::Result<()> {
        if batch.size > records::LARGEST {
            scanned.too_large += 1;
            return Ok(());
        }
        let large = (batch.size > LARGE).then(|| self.task.large.lock());
        let Some(bytes) = checker.bytes(batch)? else { return Ok(()) };
        let wants = Wants { all: !is_sparse, keys: self.task.is_compacted };
        let checked = match &batch.header {
            Some(header) => records::check(header, bytes, wants),
            None => records::check_legacy(bytes, wants).map(|count| scanned.totals.records += count - 1),
        };
        if large.is_some() {
            checker.forget();
        }
        drop(large);
        if let Err((kind, why)) = checked {
            let place = Place::bytes(batch.position, batch.size)
                .with_offsets(batch.base_offset, batch.last_offset.saturating_add(1));
            let consequence = if kind == Kind::BadRecords { Consequence::Lost } else { Consequence::Suspect };
            scanned.notes.add(self.log, place, kind, (consequence, Repair::Recover), why);
        }
        Ok(())
    }
}
