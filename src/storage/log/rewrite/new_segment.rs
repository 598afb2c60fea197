//! A segment that is being written to take the place of others.

use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::storage::log::error::FileError;
use crate::storage::log::index::{AbortedTransaction, Index};
use crate::storage::log::indexes::Indexes;
use crate::storage::log::scan::BatchAt;
use crate::storage::log::segment::Segment;
use crate::storage::names::{self, FileKind, Stage};
use crate::sys::{File, FileSystem, OpenMode};

/// A segment in files that do not count yet. Not for use by several threads at once.
#[derive(Debug)]
pub(in crate::storage) struct NewSegment {
    fs: Arc<dyn FileSystem>,
    dir: Arc<Path>,
    base: i64,
    interval: u32,
    /// How many bytes are written at once.
    buffer: usize,
    path: PathBuf,
    file: Arc<dyn File>,
    indexes: Indexes,
    /// Bytes in the file.
    written: u64,
    /// Bytes that come after them.
    waiting: Vec<u8>,
    last_offset: Option<i64>,
}

impl NewSegment {
    pub(in crate::storage::log) fn create(
        fs: &Arc<dyn FileSystem>,
        dir: &Arc<Path>,
        base: i64,
        interval: u32,
        buffer: usize,
    ) -> Result<NewSegment, FileError> {
        let path = dir.join(names::staged_file(base, FileKind::Log, Stage::Cleaned));
        let file = fs.open(&path, OpenMode::CreateOrTruncate).map_err(FileError::of("create", &path))?;
        let mut indexes = Indexes::new(base);
        indexes.loaded = true;
        indexes.aborted = Some(Index::default());
        Ok(NewSegment {
            fs: fs.clone(),
            dir: dir.clone(),
            base,
            interval,
            buffer,
            path,
            file,
            indexes,
            written: 0,
            waiting: Vec::new(),
            last_offset: None,
        })
    }

    pub fn base(&self) -> i64 {
        self.base
    }

    /// Bytes of its log.
    pub fn size(&self) -> u64 {
        self.written + self.waiting.len() as u64
    }

    /// The last offset of its last batch.
    pub fn last_offset(&self) -> Option<i64> {
        self.last_offset
    }

    /// Whether an index has no room for another entry, or the batch's offset is too far from the base.
    pub fn is_full_for(&self, batch: &BatchAt, index_bytes: u32) -> bool {
        self.indexes.is_full(index_bytes) || batch.last_offset - self.base > i64::from(i32::MAX)
    }

    /// Adds a batch that `batch` describes; where it stands in another file does not matter.
    pub fn append(&mut self, batch: &BatchAt, bytes: &[u8]) -> Result<(), FileError> {
        let at = BatchAt { position: self.size(), size: bytes.len() as u64, ..*batch };
        self.indexes.take(self.base, &at, self.interval);
        self.last_offset = Some(batch.last_offset);
        self.append_bytes(bytes)
    }

    /// Adds a stretch of bytes that are no batch.
    pub fn append_hole(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        let start = self.size();
        self.indexes.mark_hole(start, start + bytes.len() as u64);
        self.append_bytes(bytes)
    }

    fn append_bytes(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= self.buffer { self.write() } else { Ok(()) }
    }

    /// Adds a transaction to the index of the aborted ones. Their markers rise.
    pub fn push_aborted(&mut self, aborted: AbortedTransaction) {
        self.indexes.aborted.get_or_insert_default().push(aborted);
    }

    fn write(&mut self) -> Result<(), FileError> {
        let wrote = self.file.write_all_at(&[IoSlice::new(&self.waiting)], self.written);
        wrote.map_err(FileError::of("write", &self.path))?;
        self.written += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }

    /// Brings all its files onto the medium. Their names, and that they count, are another matter.
    pub(in crate::storage::log) fn finish(mut self, modified_ms: i64) -> Result<Arc<Segment>, FileError> {
        self.write()?;
        self.waiting = Vec::new();
        self.indexes.take_time(self.base);
        match self.file.set_modified(modified_ms) {
            Err(error) if error.kind() != std::io::ErrorKind::Unsupported => {
                return Err(FileError::of("set the age of", &self.path)(error));
            }
            _ => {}
        }
        self.file.sync().map_err(FileError::of("flush", &self.path))?;
        let path = |kind| self.dir.join(names::staged_file(self.base, kind, Stage::Cleaned));
        let (fs, indexes) = (&*self.fs, &self.indexes);
        for (kind, bytes) in [
            (FileKind::OffsetIndex, Some(indexes.offsets.encoded_pending())),
            (FileKind::TimeIndex, Some(indexes.times.encoded_pending())),
            (
                FileKind::TxnIndex,
                indexes.aborted.as_ref().filter(|aborted| aborted.has_pending()).map(Index::encoded_pending),
            ),
        ] {
            let (Some(bytes), path) = (bytes, path(kind)) else { continue };
            let write = || {
                let file = fs.open(&path, OpenMode::CreateOrTruncate)?;
                file.write_all_at(&[IoSlice::new(&bytes)], 0)?;
                file.sync()
            };
            write().map_err(FileError::of("write", &path))?;
        }
        let segment =
            Segment::rewritten(self.dir, self.base, self.written, self.interval, self.file, self.indexes, modified_ms);
        Ok(Arc::new(segment))
    }
}
