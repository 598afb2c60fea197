//! One segment: a log file and its indexes.
//!
//! The file of the active segment is held open; that of a sealed one only while somebody reads it: whoever asks for it
//! shares the descriptor of those who have it already. Bytes of the file below [`Segment::size`] never change, and what a
//! reader was given stays readable after the segment was removed.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::error::FileError;
use super::index::{AbortedTransaction, Index, OffsetEntry, TimeEntry};
use super::indexes::Indexes;
use super::scan::{BatchAt, LONG_WALK, Walker};
use crate::storage::names::{self, FileKind};
use crate::sys::{File, FileSystem, OpenMode};

/// What a walk reads at once when it looks for one batch near an index entry, in bytes.
const SHORT_WALK: usize = 4096 + 128;
/// Where an index says nothing of so many bytes at a segment's end, it may be older than the log.
const UNINDEXED: u64 = 1 << 20;

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// A segment. Shared between threads.
#[derive(Debug)]
pub(in crate::storage) struct Segment {
    /// Tells it from any other segment that this process ever had, also from one of the same name.
    pub id: u64,
    pub base: i64,
    dir: Arc<Path>,
    /// `index.interval.bytes` as it was when the segment was made or opened.
    interval: u32,
    /// Bytes of the log file that readers may see.
    size: AtomicU64,
    file: Mutex<Handle>,
    indexes: Mutex<Indexes>,
    /// When its file says that it last changed, where that is known, ms since the Unix epoch.
    age_ms: Option<i64>,
}

#[derive(Debug, Default)]
struct Handle {
    /// The active segment's.
    held: Option<Arc<dyn File>>,
    /// Somebody else's, as long as they have it.
    lent: Option<Weak<dyn File>>,
}

impl Segment {
    /// A segment whose log file has `size` bytes and is opened when it is needed.
    pub fn sealed(dir: Arc<Path>, base: i64, size: u64, interval: u32) -> Self {
        Segment {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            base,
            dir,
            interval,
            size: AtomicU64::new(size),
            file: Mutex::default(),
            indexes: Mutex::new(Indexes::new(base)),
            age_ms: None,
        }
    }

    /// A segment that takes the place of others. Until [`Segment::settle`] it is read through `file` and from memory.
    pub(super) fn rewritten(
        dir: Arc<Path>,
        base: i64,
        size: u64,
        interval: u32,
        file: Arc<dyn File>,
        indexes: Indexes,
        age_ms: i64,
    ) -> Self {
        Segment {
            file: Mutex::new(Handle { held: Some(file), lent: None }),
            indexes: Mutex::new(indexes),
            age_ms: Some(age_ms),
            ..Segment::sealed(dir, base, size, interval)
        }
    }

    /// The files have their names now.
    pub(super) fn settle(&self) {
        {
            let mut indexes = self.indexes.lock();
            indexes.offsets.settle();
            indexes.times.settle();
            indexes.aborted.iter_mut().for_each(Index::settle);
        }
        self.let_go();
    }

    /// Its files are about to be another's: nothing of them is written from here on.
    pub(super) fn retire(&self) {
        self.indexes.lock().retired = true;
    }

    /// When its file last changed, ms since the Unix epoch.
    pub fn modified_ms(&self, fs: &dyn FileSystem) -> Result<i64, FileError> {
        if let Some(age) = self.age_ms {
            return Ok(age);
        }
        let path = self.path(FileKind::Log);
        Ok(fs.metadata(&path).map_err(FileError::of("look at", &path))?.modified_ms)
    }

    /// A segment that is written to. Its indexes are empty, whatever files there are.
    pub fn active(dir: Arc<Path>, base: i64, file: Arc<dyn File>, interval: u32) -> Self {
        let segment = Segment::sealed(dir, base, 0, interval);
        segment.file.lock().held = Some(file);
        let mut indexes = segment.indexes.lock();
        indexes.loaded = true;
        indexes.aborted = Some(Index::default());
        drop(indexes);
        segment
    }

    pub fn path(&self, kind: FileKind) -> PathBuf {
        self.dir.join(names::segment_file(self.base, kind))
    }

    pub fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    /// Lets readers see the file up to `size`.
    pub fn publish(&self, size: u64) {
        self.size.store(size, Ordering::Release);
    }

    /// The log file.
    pub fn file(&self, fs: &dyn FileSystem) -> Result<Arc<dyn File>, FileError> {
        let mut handle = self.file.lock();
        if let Some(file) = &handle.held {
            return Ok(file.clone());
        }
        if let Some(file) = handle.lent.as_ref().and_then(Weak::upgrade) {
            return Ok(file);
        }
        let path = self.path(FileKind::Log);
        let file = fs.open(&path, OpenMode::Read).map_err(FileError::of("open", &path))?;
        handle.lent = Some(Arc::downgrade(&file));
        Ok(file)
    }

    /// Holds the file no longer than readers do.
    pub fn let_go(&self) {
        let mut handle = self.file.lock();
        if let Some(file) = handle.held.take() {
            handle.lent = Some(Arc::downgrade(&file));
        }
        drop(handle);
        self.forget_pages();
    }

    /// Gives back the memory that only readers need.
    pub fn forget_pages(&self) {
        let mut indexes = self.indexes.lock();
        indexes.offsets.forget_page();
        indexes.times.forget_page();
        indexes.aborted.iter_mut().for_each(Index::forget_page);
    }

    fn read_error(&self) -> impl FnOnce(io::Error) -> FileError {
        let path = self.path(FileKind::Log);
        move |source| FileError { action: "read".into(), path, source }
    }

    /// Takes a batch into the indexes that readers may see once [`Segment::publish`] says so.
    pub fn index_batch(&self, batch: &BatchAt) {
        self.indexes.lock().take(self.base, batch, self.interval);
    }

    /// Takes an aborted transaction into the index, unless it has it.
    pub fn index_aborted(&self, fs: &dyn FileSystem, aborted: AbortedTransaction) -> Result<(), FileError> {
        let mut indexes = self.indexes.lock();
        let index = self.aborted_index(&mut indexes, fs)?;
        if index.last().is_none_or(|last| last.last_offset < aborted.last_offset) {
            index.push(aborted);
        }
        Ok(())
    }

    /// Takes an aborted transaction into the active segment's index, which is always loaded.
    pub fn push_aborted(&self, aborted: AbortedTransaction) {
        self.indexes.lock().aborted.get_or_insert_default().push(aborted);
    }

    /// Forgets the index of aborted transactions: it is made anew.
    pub fn reset_aborted(&self) {
        self.indexes.lock().aborted = Some(Index::default());
    }

    /// Takes a stretch that is no batch, or must not be taken for one.
    pub fn mark_hole(&self, start: u64, end: u64) {
        self.indexes.lock().mark_hole(start, end);
    }

    /// Whether an index has no room for another entry.
    pub fn is_index_full(&self, index_bytes: u32) -> bool {
        self.indexes.lock().is_full(index_bytes)
    }

    /// Writes the index entries that wait, if there are enough of them or `all` are wanted. An error loses nothing.
    pub fn write_indexes(&self, fs: &dyn FileSystem, all: bool) -> Result<(), FileError> {
        let mut indexes = self.indexes.lock();
        if all || indexes.offsets.is_due() {
            let path = self.path(FileKind::OffsetIndex);
            indexes.offsets.write_pending(fs, &path).map_err(FileError::of("write", &path))?;
        }
        if all || indexes.times.is_due() {
            let path = self.path(FileKind::TimeIndex);
            indexes.times.write_pending(fs, &path).map_err(FileError::of("write", &path))?;
        }
        if let Some(aborted) = indexes.aborted.as_mut().filter(|aborted| aborted.has_pending()) {
            let path = self.path(FileKind::TxnIndex);
            aborted.write_pending(fs, &path).map_err(FileError::of("write", &path))?;
        }
        Ok(())
    }

    /// Adds the largest timestamp to the time index and writes all indexes: what a segment needs before it is sealed or its
    /// log closed.
    pub fn finish_indexes(&self, fs: &dyn FileSystem) -> Result<(), FileError> {
        self.indexes.lock().take_time(self.base);
        self.write_indexes(fs, true)
    }

    /// Brings the index files onto the medium.
    pub fn sync_indexes(&self, fs: &dyn FileSystem) -> Result<(), FileError> {
        let mut kinds = vec![FileKind::OffsetIndex, FileKind::TimeIndex];
        if self.indexes.lock().aborted.as_ref().is_some_and(|aborted| aborted.len() > 0) {
            kinds.push(FileKind::TxnIndex);
        }
        for kind in kinds {
            let path = self.path(kind);
            let sync = || fs.open(&path, OpenMode::ReadWrite)?.sync();
            sync().map_err(FileError::of("flush", &path))?;
        }
        Ok(())
    }

    /// The first batch whose last offset is `offset` or more; `None` if all are below.
    pub fn locate(&self, fs: &dyn FileSystem, offset: i64) -> Result<Option<BatchAt>, FileError> {
        let floor = self.floor(fs, offset)?;
        let mut walker = self.indexed_walk(fs, floor, self.size(), 0, offset)?;
        while let Some(batch) = self.step(&mut walker)? {
            if batch.last_offset >= offset {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    /// A walk to `end` from a position that an index gave. If no batch starts there whose offset is `at_most` or less, the
    /// index cannot be believed: then the walk is from `instead`, and the index of a sealed segment is made anew.
    pub fn indexed_walk(
        &self,
        fs: &dyn FileSystem,
        position: u64,
        end: u64,
        instead: u64,
        at_most: i64,
    ) -> Result<Walker, FileError> {
        let mut walker = self.short_walk(fs, position, end)?;
        if position <= instead {
            return Ok(walker);
        }
        let batch = walker.next().map_err(self.read_error())?;
        let is_there = position >= end
            || batch.is_some_and(|batch| {
                // A message set of a version before 2 tells only its last offset.
                (self.base..=at_most).contains(&batch.base_offset) || batch.header.is_none()
            });
        if is_there {
            walker.skip_to(position);
            return Ok(walker);
        }
        let is_sealed = self.file.lock().held.is_none();
        if is_sealed {
            let fresh = self.rebuilt_indexes(fs)?;
            self.indexes.lock().adopt(fresh);
        }
        walker.skip_to(instead);
        Ok(walker)
    }

    /// The first batch from `start` on (where a batch has to start) that is wanted.
    pub fn walk_to(
        &self,
        fs: &dyn FileSystem,
        start: u64,
        mut wanted: impl FnMut(&BatchAt) -> bool,
    ) -> Result<Option<BatchAt>, FileError> {
        let mut walker = self.short_walk(fs, start, self.size())?;
        while let Some(batch) = self.step(&mut walker)? {
            if wanted(&batch) {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    /// A walk over the batches from `start` (where one has to start) to `end` that is not expected to go far.
    pub fn short_walk(&self, fs: &dyn FileSystem, start: u64, end: u64) -> Result<Walker, FileError> {
        Ok(Walker::new(self.file(fs)?, start, end, SHORT_WALK))
    }

    /// All the bytes of a batch that a walk came over.
    pub fn read_batch(&self, fs: &dyn FileSystem, batch: &BatchAt) -> Result<Vec<u8>, FileError> {
        // The walk saw to it that the file has so many.
        let mut bytes = vec![0; usize::try_from(batch.size).expect("a batch has less than 2 GiB")];
        self.file(fs)?.read_exact_at(&mut bytes, batch.position).map_err(self.read_error())?;
        Ok(bytes)
    }

    /// The walker's next batch, past what is no batch or must not be taken for one.
    pub fn step(&self, walker: &mut Walker) -> Result<Option<BatchAt>, FileError> {
        loop {
            let at = walker.position();
            if let Some(end) = self.hole_at(at) {
                walker.skip_to(end);
                continue;
            }
            if let Some(batch) = walker.next().map_err(self.read_error())? {
                return Ok(Some(batch));
            }
            if at >= walker.end() || !walker.find_next(self.base..=i64::MAX).map_err(self.read_error())? {
                return Ok(None);
            }
            self.mark_hole(at, walker.position());
        }
    }

    /// The bytes of `range`, from the walker's buffer where it has them.
    pub fn slice<'a>(&self, walker: &'a mut Walker, range: Range<u64>) -> Result<&'a [u8], FileError> {
        let slice = walker.slice(range.start, range.end).map_err(self.read_error())?;
        slice.ok_or_else(|| self.read_error()(io::ErrorKind::UnexpectedEof.into()))
    }

    fn hole_at(&self, position: u64) -> Option<u64> {
        let indexes = self.indexes.lock();
        indexes.holes.iter().find(|(start, end)| (*start..*end).contains(&position)).map(|(_, end)| *end)
    }

    /// `position`, or where the hole ends that is there.
    pub fn past_holes(&self, mut position: u64) -> u64 {
        while let Some(end) = self.hole_at(position) {
            position = end;
        }
        position
    }

    /// Where the first hole from `position` on starts, `end` if none does before it.
    pub fn next_hole(&self, position: u64, end: u64) -> u64 {
        let indexes = self.indexes.lock();
        let next = indexes.holes.iter().map(|(start, _)| *start).find(|start| *start >= position);
        next.map_or(end, |start| start.min(end))
    }

    /// Where to start to look for `offset`: a batch starts there, and none before it has the offset.
    pub fn floor(&self, fs: &dyn FileSystem, offset: i64) -> Result<u64, FileError> {
        let mut indexes = self.loaded(fs)?;
        let path = self.path(FileKind::OffsetIndex);
        let found = indexes.offsets.floor(fs, &path, offset.saturating_sub(self.base));
        let found = found.map_err(FileError::of("read", &path))?;
        // An entry that points past what readers may see is of a batch that is being published just now.
        Ok(found.map_or(0, |entry| u64::from(entry.position)).min(self.size()))
    }

    /// The last batch start at or before `position` that the index knows, if it is behind `after`.
    pub fn indexed_position(&self, fs: &dyn FileSystem, after: u64, position: u64) -> Result<Option<u64>, FileError> {
        let mut indexes = self.loaded(fs)?;
        let path = self.path(FileKind::OffsetIndex);
        let found = indexes.offsets.floor_by(fs, &path, |entry| u64::from(entry.position) <= position);
        let found = found.map_err(FileError::of("read", &path))?.map(|entry| u64::from(entry.position));
        Ok(found.filter(|found| *found > after))
    }

    /// A position from where on every batch is that may have a timestamp of `timestamp` or more.
    pub fn floor_of_timestamp(&self, fs: &dyn FileSystem, timestamp: i64) -> Result<u64, FileError> {
        let entry = {
            let mut indexes = self.loaded(fs)?;
            let path = self.path(FileKind::TimeIndex);
            // Up to the entry's offset all timestamps are at most its own; those that are looked for come after it.
            let found = indexes.times.floor(fs, &path, timestamp.saturating_sub(1));
            found.map_err(FileError::of("read", &path))?
        };
        entry.map_or(Ok(0), |entry| self.floor(fs, self.base + i64::from(entry.relative)))
    }

    /// The largest timestamp, -1 if there is none, and the last offset of the first batch that has it.
    pub fn latest(&self, fs: &dyn FileSystem) -> Result<(i64, i64), FileError> {
        Ok(self.loaded(fs)?.latest)
    }

    /// Adds the aborted transactions that have anything in `fetched` (from, to). Answers whether those of later segments can
    /// not: all that was open below `to` had ended here.
    pub fn aborted(
        &self,
        fs: &dyn FileSystem,
        fetched: (i64, i64),
        into: &mut Vec<AbortedTransaction>,
    ) -> Result<bool, FileError> {
        let mut indexes = self.indexes.lock();
        let path = self.path(FileKind::TxnIndex);
        let mut complete = false;
        let each = |entry: &AbortedTransaction| {
            if entry.first_offset < fetched.1 {
                into.push(*entry);
            }
            complete = entry.last_stable_offset >= fetched.1;
            !complete
        };
        let index = self.aborted_index(&mut indexes, fs)?;
        index.each_from(fs, &path, fetched.0, each).map_err(FileError::of("read", &path))?;
        Ok(complete)
    }

    fn aborted_index<'a>(
        &self,
        indexes: &'a mut Indexes,
        fs: &dyn FileSystem,
    ) -> Result<&'a mut Index<AbortedTransaction>, FileError> {
        if indexes.aborted.is_none() {
            let path = self.path(FileKind::TxnIndex);
            // One that is damaged was made anew when the log was opened.
            let loaded = Index::load(fs, &path).map_err(FileError::of("read", &path))?;
            indexes.aborted = Some(loaded.unwrap_or_default());
        }
        Ok(indexes.aborted.as_mut().expect("it was just put there"))
    }

    /// The indexes, once their files are known to be of use; made anew where they are not.
    fn loaded(&self, fs: &dyn FileSystem) -> Result<parking_lot::MutexGuard<'_, Indexes>, FileError> {
        let mut indexes = self.indexes.lock();
        if !indexes.loaded {
            drop(indexes);
            // Without the lock, since the log may have to be read. Two that load at once come to the same.
            let fresh = self.load_indexes(fs)?;
            indexes = self.indexes.lock();
            if !indexes.loaded {
                indexes.adopt(fresh);
            }
        }
        Ok(indexes)
    }

    fn load_indexes(&self, fs: &dyn FileSystem) -> Result<Indexes, FileError> {
        if let Some(indexes) = self.trusted_indexes(fs)? {
            return Ok(indexes);
        }
        self.rebuilt_indexes(fs)
    }

    /// The indexes made anew from the log; written if they can be.
    fn rebuilt_indexes(&self, fs: &dyn FileSystem) -> Result<Indexes, FileError> {
        let mut indexes = Indexes::new(self.base);
        let mut walker = Walker::new(self.file(fs)?, 0, self.size(), LONG_WALK);
        while let Some(batch) = self.step(&mut walker)? {
            indexes.take(self.base, &batch, self.interval);
        }
        indexes.take_time(self.base);
        let this = self.indexes.lock();
        if this.retired {
            return Ok(indexes);
        }
        tracing::info!(log = %self.path(FileKind::Log).display(), "made the indexes of a sealed segment anew");
        // They serve from memory if they cannot be written now.
        let path = self.path(FileKind::OffsetIndex);
        let offsets = indexes.offsets.write_pending(fs, &path).map_err(FileError::of("write", &path));
        let path = self.path(FileKind::TimeIndex);
        let times = indexes.times.write_pending(fs, &path).map_err(FileError::of("write", &path));
        if let Err(error) = offsets.and(times) {
            tracing::warn!(%error, "the indexes of a sealed segment stay in memory");
        }
        Ok(indexes)
    }

    /// The indexes as their files have them. `None` if they cannot be those of this log.
    fn trusted_indexes(&self, fs: &dyn FileSystem) -> Result<Option<Indexes>, FileError> {
        let (path, time_path) = (self.path(FileKind::OffsetIndex), self.path(FileKind::TimeIndex));
        let offsets = Index::<OffsetEntry>::load(fs, &path).map_err(FileError::of("read", &path))?;
        let times = Index::<TimeEntry>::load(fs, &time_path).map_err(FileError::of("read", &time_path))?;
        let (Some(offsets), Some(times), size) = (offsets, times, self.size()) else { return Ok(None) };
        let mut indexes = Indexes::new(self.base);
        if let Some(last) = offsets.last() {
            let position = u64::from(last.position);
            let mut walker = Walker::new(self.file(fs)?, position, size, SHORT_WALK);
            let batch = walker.next().map_err(self.read_error())?;
            let last_offset = self.base + i64::from(last.relative);
            // An entry of Apache Kafka's may be of several batches that were appended at once: then it is the last's.
            if !batch.is_some_and(|batch| batch.base_offset <= last_offset && batch.last_offset <= last_offset) {
                return Ok(None);
            }
        }
        let last_position = offsets.last().map_or(0, |last| u64::from(last.position));
        if size.saturating_sub(last_position) > UNINDEXED && self.is_unindexed(fs, last_position)? {
            return Ok(None);
        }
        match times.last() {
            Some(last) => indexes.latest = (last.timestamp, self.base + i64::from(last.relative)),
            // A sealed segment has an entry, unless its batches have no timestamps.
            None if size > 0 => return Ok(None),
            None => {}
        }
        indexes.offsets = offsets;
        indexes.times = times;
        Ok(Some(indexes))
    }

    /// Whether the index files would be taken as they are. Where they would not, they are made anew when they are first needed.
    pub fn trusts_indexes(&self, fs: &dyn FileSystem) -> Result<bool, FileError> {
        Ok(self.trusted_indexes(fs)?.is_some())
    }

    /// Whether more than one batch follows the one at `position`: then it is not for its size alone that the index ends.
    fn is_unindexed(&self, fs: &dyn FileSystem, position: u64) -> Result<bool, FileError> {
        let mut walker = Walker::new(self.file(fs)?, position, self.size(), SHORT_WALK);
        let mut left = UNINDEXED;
        let mut batches = 0;
        while let Some(batch) = self.step(&mut walker)? {
            batches += 1;
            left = left.saturating_sub(batch.size);
            if left == 0 {
                break;
            }
        }
        Ok(batches > 2)
    }

    /// Trusts the index files of the active segment after a clean stop, if they can be trusted. Answers where to go on from:
    /// every batch before that position is in them.
    pub fn resume_indexes(&self, fs: &dyn FileSystem) -> Result<u64, FileError> {
        let trusted = self.trusted_indexes(fs)?;
        let mut indexes = self.indexes.lock();
        indexes.aborted = None;
        self.aborted_index(&mut indexes, fs)?;
        let Some(trusted) = trusted else { return Ok(0) };
        // The batch at the position has its entry already; it is walked over again.
        let position = trusted.offsets.last().map_or(0, |last| u64::from(last.position));
        indexes.adopt(trusted);
        Ok(position)
    }
}
