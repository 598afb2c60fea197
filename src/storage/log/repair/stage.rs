//! Writing segments anew without what is no good in them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::gap;
use super::survey::{FRAME, Stretch, StretchKind, Surveyed};
use crate::record::BatchHeader;
use crate::storage::log::epochs::LeaderEpochs;
use crate::storage::log::error::FileError;
use crate::storage::log::index::AbortedTransaction;
use crate::storage::log::open::remove_segment;
use crate::storage::log::producers::EndMarker;
use crate::storage::log::rewrite::{self, NewSegment};
use crate::storage::log::scan::{BatchAt, LONG_WALK, Walker};
use crate::storage::names::{self, FileKind};
use crate::storage::replace::replace_by;
use crate::sys::{FileSystem, OpenMode};

/// How much of a new segment is held in memory before it is written, in bytes.
const BUFFER: usize = 256 * 1024;

/// Writes the segments of `files` anew, with their indexes, and puts them in the place of what is there. `files` are
/// neighbours, in the order in which they belong. Stretches that `goes` says yes to are left out, those that can be put
/// right are, the others stay as they are. `fills` says whether the offsets of one that is left out are lost; then an empty
/// batch takes its place, or an end marker. `aborted`: the aborted transactions of each file, by its place. `epochs`:
/// those of the checkpoint.
///
/// A power cut leaves the old files or the new ones, and maybe staged files, which any start clears away or finishes.
/// When it has returned everything is on the medium.
pub(in crate::storage) fn restage(
    fs: &Arc<dyn FileSystem>,
    dir: &Arc<Path>,
    files: &[&Surveyed],
    aborted: &[Vec<AbortedTransaction>],
    interval: u32,
    epochs: &LeaderEpochs,
    what: Choices<'_>,
) -> Result<(), FileError> {
    let sync = || fs.sync_dir(dir).map_err(FileError::of("flush", dir));
    let mut bases = Vec::new();
    for (file, aborted) in files.iter().zip(aborted) {
        let path = dir.join(names::segment_file(file.base, FileKind::Log));
        let modified_ms = fs.metadata(&path).map_err(FileError::of("look at", &path))?.modified_ms;
        let new = NewSegment::create(fs, dir, file.belongs, interval, BUFFER)?;
        let mut writing = Writing {
            fs,
            dir,
            interval,
            epochs,
            markers: what.markers,
            modified_ms,
            full: Vec::new(),
            new,
            due: file.belongs,
            before: None,
            gap: None,
        };
        writing.write(&path, file, what)?;
        let mut new = writing.full;
        new.push(writing.new);
        for entry in aborted {
            let at = new.partition_point(|new| new.base() <= entry.last_offset);
            new[at.saturating_sub(1)].push_aborted(*entry);
        }
        for new in new {
            bases.push(new.base());
            new.finish(modified_ms)?;
        }
    }
    rewrite::publish::<FileError>(&**fs, dir, &bases, &sync)?;
    rewrite::recover(&**fs, dir)?;
    // A file that had the name of another place, past all that belongs to these.
    for file in files.iter().filter(|file| !bases.contains(&file.base)) {
        remove_segment(&**fs, dir, file.base)?;
    }
    sync()
}

/// Finishes or clears away a rewrite of segments that was interrupted, as a start does.
pub(in crate::storage) fn finish_rewrite(fs: &dyn FileSystem, dir: &Path) -> Result<(), FileError> {
    rewrite::recover(fs, dir)?;
    fs.sync_dir(dir).map_err(FileError::of("flush", dir))
}

/// What becomes of the stretches of a file.
#[derive(Clone, Copy)]
pub(in crate::storage) struct Choices<'a> {
    /// It is left out.
    pub goes: &'a dyn Fn(&Surveyed, &Stretch) -> bool,
    /// Its offsets are lost with it: an empty batch takes its place.
    pub fills: &'a dyn Fn(&Surveyed, &Stretch) -> bool,
    /// End markers of transactions that are written there, by their offsets.
    pub markers: &'a BTreeMap<i64, EndMarker>,
}

/// A file that is being written anew.
struct Writing<'a> {
    fs: &'a Arc<dyn FileSystem>,
    dir: &'a Arc<Path>,
    interval: u32,
    epochs: &'a LeaderEpochs,
    markers: &'a BTreeMap<i64, EndMarker>,
    modified_ms: i64,
    /// The segment that is being written, and those before it: a gap may reach farther than one segment can.
    new: NewSegment,
    full: Vec<NewSegment>,
    /// The offset after all that was written.
    due: i64,
    /// The last batch that was written.
    before: Option<BatchHeader>,
    /// Something was left out since, whose offsets are lost; up to where, as far as that is known.
    gap: Option<i64>,
}

impl Writing<'_> {
    fn write(&mut self, path: &Path, file: &Surveyed, what: Choices<'_>) -> Result<(), FileError> {
        let opened = self.fs.open(path, OpenMode::Read).map_err(FileError::of("open", path))?;
        let mut walker = Walker::new(opened, 0, file.len, LONG_WALK);
        let mut stretches = file.stretches.iter().peekable();
        loop {
            let at = walker.position();
            if let Some(stretch) = stretches.next_if(|stretch| stretch.position == at) {
                if let Some(mend) = &stretch.mend {
                    let mut bytes = slice(&mut walker, path, at, stretch.end())?.to_vec();
                    bytes[..FRAME].copy_from_slice(&mend.frame);
                    self.append(&mend.batch, &bytes)?;
                } else if !(what.goes)(file, stretch) {
                    self.fill(stretch.offsets.0, None)?;
                    let mut from = at;
                    while from < stretch.end() {
                        let to = stretch.end().min(from + LONG_WALK as u64);
                        let bytes = slice(&mut walker, path, from, to)?;
                        self.new.append_hole(bytes)?;
                        from = to;
                    }
                    self.due = self.due.max(stretch.offsets.1);
                } else if (what.fills)(file, stretch) {
                    // Of what is damaged the offsets may be damaged too, so the gap goes up to what is there behind it.
                    let to = if stretch.kind == StretchKind::Tail { None } else { file.next };
                    let to = to.unwrap_or(stretch.offsets.1);
                    self.gap = Some(self.gap.map_or(to, |before| before.max(to)));
                }
                walker.skip_to(stretch.end());
                continue;
            }
            if at >= file.len {
                return self.fill(self.gap.unwrap_or(self.due), None);
            }
            let changed = || std::io::Error::other("it has changed since it was looked at");
            let batch = walker.next().and_then(|batch| batch.ok_or_else(changed));
            let batch = batch.map_err(FileError::of("read", path))?;
            self.append(&batch, slice(&mut walker, path, batch.position, batch.end())?)?;
        }
    }

    fn append(&mut self, batch: &BatchAt, bytes: &[u8]) -> Result<(), FileError> {
        match &batch.header {
            Some(header) => self.fill(batch.base_offset, Some(header))?,
            // Of the versions before 2 the first offset is not known.
            None => self.gap = None,
        }
        self.new.append(batch, bytes)?;
        (self.due, self.before) = (batch.last_offset.saturating_add(1), batch.header);
        Ok(())
    }

    /// Writes empty batches for the offsets before `to` if something was left out there.
    fn fill(&mut self, to: i64, after: Option<&BatchHeader>) -> Result<(), FileError> {
        if self.gap.take().is_none() || !gap::fits(self.due, to) {
            return Ok(());
        }
        while self.due < to {
            let marker = self.markers.range(self.due..to).next();
            if let Some((offset, marker)) = marker.filter(|marker| *marker.0 == self.due)
                && let Some((batch, bytes)) = gap::marker(*offset, marker, self.before.as_ref(), self.modified_ms)
            {
                self.new.append(&batch, &bytes)?;
                self.due += 1;
                continue;
            }
            let next = self.markers.range(self.due + 1..to).next();
            let span = (self.due, next.map_or(to, |next| *next.0));
            let (base, before) = (self.new.base(), self.before.as_ref());
            let Some((batch, bytes)) = gap::batch(base, span, before, after, self.epochs, self.modified_ms) else {
                // It is beyond what that segment can have.
                let next = NewSegment::create(self.fs, self.dir, self.due, self.interval, BUFFER)?;
                self.full.push(std::mem::replace(&mut self.new, next));
                continue;
            };
            self.new.append(&batch, &bytes)?;
            self.due = batch.last_offset.saturating_add(1);
        }
        Ok(())
    }
}

fn slice<'a>(walker: &'a mut Walker, path: &Path, from: u64, to: u64) -> Result<&'a [u8], FileError> {
    let short = || FileError::of("read", path)(std::io::ErrorKind::UnexpectedEof.into());
    match walker.slice(from, to) {
        Ok(slice) => slice.ok_or_else(short),
        Err(error) => Err(FileError::of("read", path)(error)),
    }
}

/// Cuts a file to `len` bytes, durably.
pub(in crate::storage) fn cut(fs: &dyn FileSystem, path: &Path, len: u64) -> Result<(), FileError> {
    let cut = || {
        let file = fs.open(path, OpenMode::ReadWrite)?;
        file.set_len(len)?;
        file.sync()
    };
    cut().map_err(FileError::of("cut", path))
}

/// Gives the file of a segment this content, in one step that is durable once the directory is flushed.
pub(super) fn replace(
    fs: &dyn FileSystem,
    dir: &Path,
    base: i64,
    kind: FileKind,
    content: &[u8],
) -> Result<(), FileError> {
    let staged = dir.join(names::staged_file(base, kind, names::Stage::Cleaned));
    let path = dir.join(names::segment_file(base, kind));
    replace_by(fs, &staged, &path, content).map_err(FileError::of("write", &path))
}
