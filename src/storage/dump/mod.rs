//! What stands in a file of a partition, entry by entry, past any damage.
//!
//! [`Dump::open`] tells from its name what a file is and answers its entries in their order, each decoded as far as it can
//! be. It believes nothing that it has not checked and ends at no error in the bytes: what is no entry is one of its entries
//! too, [`Entry::Damage`], with where it lies and how many bytes of it were passed over. The records of the batch that came
//! last are read with [`Dump::records`], or not at all.
//!
//! | name | what it is | entries |
//! |---|---|---|
//! | `<20 digits>.log`, `*.checkpoint` | batches, and message sets of versions 0 and 1 | [`Entry::Batch`] |
//! | `<20 digits>.index` | offset to position | [`Entry::Offset`] |
//! | `<20 digits>.timeindex` | timestamp to offset | [`Entry::Time`] |
//! | `<20 digits>.txnindex` | aborted transactions | [`Entry::Aborted`] |
//! | `<20 digits>.snapshot` | producers, doze's or Apache Kafka's | [`Entry::Snapshot`], then [`Entry::Producer`] |
//! | `leader-epoch-checkpoint` | leader epochs | [`Entry::LeaderEpoch`] |
//! | `partition.metadata` | the topic's id | [`Entry::Metadata`] |
//!
//! A name may have one of the suffixes `.deleted`, `.cleaned` and `.swap`, and the file may lie anywhere: only the last part
//! of its name counts, and without its 20 digits nothing is lost but the base that the entries of an index count from.
//!
//! Memory: a page of the file, and for records their batch, at most [`LARGEST_HELD`] bytes of it unless its checksum vouches
//! for it, and what its codec needs. Never writes. A [`Dump`] is for one thread; several with a dump each share a log by
//! stretches ([`Dump::go_to_stretch`]).

mod damage;
mod indexes;
mod log;
mod page;
mod records;
mod snapshot;
#[cfg(test)]
mod tests;
mod text;

use std::ffi::OsStr;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

pub use damage::{Damage, DamageKind};
pub use log::{BatchEntry, LARGEST_HELD, Place, STRETCH};
pub use records::{Control, DumpHeaders, RecordEntry, Records, RecordsError};
pub use snapshot::{ProducerEntry, SnapshotFormat, SnapshotHeader};

use crate::protocol::Uuid;
use crate::storage::log::AbortedTransaction;
use crate::storage::names::{self, FileKind, PartitionFile, Stage};
use crate::sys::{FileSystem, OpenMode};
use indexes::IndexDump;
use log::LogDump;
use snapshot::SnapshotDump;
use text::TextDump;

/// What a file is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileType {
    /// A file of a segment, or the log of a snapshot of Apache Kafka's controllers (`.checkpoint`).
    Segment { kind: FileKind, stage: Stage, base: Option<i64> },
    /// `leader-epoch-checkpoint`
    LeaderEpochs,
    /// `partition.metadata`
    Metadata,
}

impl FileType {
    /// What the file at `path` is. `None`: nothing that can be decoded.
    pub fn of(path: &Path) -> Option<FileType> {
        let name = path.file_name()?;
        match names::parse_partition_file(name) {
            PartitionFile::Segment { base, kind, stage } => {
                return Some(FileType::Segment { kind, stage, base: Some(base) });
            }
            PartitionFile::LeaderEpochs => return Some(FileType::LeaderEpochs),
            PartitionFile::Metadata => return Some(FileType::Metadata),
            _ => {}
        }
        let stages = [Stage::Live, Stage::Deleted, Stage::Cleaned, Stage::Swap];
        let staged = |stage: Stage| {
            let bare = name.as_encoded_bytes().strip_suffix(stage.suffix().as_bytes())?;
            let ends = |suffix: &str| bare.ends_with(suffix.as_bytes());
            let kind = FileKind::ALL.into_iter().find(|kind| ends(kind.suffix()));
            kind.or(ends(CHECKPOINT).then_some(FileKind::Log)).map(|kind| (kind, stage))
        };
        let (kind, stage) = stages.into_iter().find_map(staged)?;
        Some(FileType::Segment { kind, stage, base: None })
    }

    /// `log`, `index`, `timeindex`, `txnindex`, `snapshot`, `leader-epoch-checkpoint` or `partition.metadata`.
    pub fn name(self) -> &'static str {
        match self {
            FileType::Segment { kind, .. } => kind.suffix().trim_start_matches('.'),
            FileType::LeaderEpochs => names::LEADER_EPOCH_CHECKPOINT,
            FileType::Metadata => names::PARTITION_METADATA,
        }
    }

    /// The offset that the segment starts at, if the name has it.
    pub fn base(self) -> Option<i64> {
        match self {
            FileType::Segment { base, .. } => base,
            _ => None,
        }
    }
}

/// A snapshot of the metadata of Apache Kafka's controllers: batches, as in a log.
const CHECKPOINT: &str = ".checkpoint";

/// Which entries are wanted. Damage is always told of, but in batches that are passed over only as far as it breaks the
/// frame: their checksums are not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    pub offsets: RangeInclusive<i64>,
    /// Milliseconds since the Unix epoch. A batch is in it if its maximum timestamp is not below its start, and its base
    /// timestamp not above its end.
    pub times: RangeInclusive<i64>,
}

impl Default for Range {
    /// Everything.
    fn default() -> Self {
        Range { offsets: i64::MIN..=i64::MAX, times: i64::MIN..=i64::MAX }
    }
}

impl Range {
    /// Whether a record is in it.
    pub fn has(&self, offset: i64, timestamp: i64) -> bool {
        self.offsets.contains(&offset) && self.times.contains(&timestamp)
    }
}

/// An entry of a file. Positions and sizes are bytes, times milliseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    Batch(BatchEntry),
    /// Of an `.index`. `offset` is absolute where the name has the base, else relative to it.
    Offset {
        position: u64,
        offset: i64,
        log_position: u32,
    },
    /// Of a `.timeindex`. `offset` as in [`Entry::Offset`].
    Time {
        position: u64,
        timestamp: i64,
        offset: i64,
    },
    /// Of a `.txnindex`.
    Aborted {
        position: u64,
        version: i16,
        transaction: AbortedTransaction,
    },
    /// What stands in front of a `.snapshot`.
    Snapshot(SnapshotHeader),
    /// Of a `.snapshot`.
    Producer(ProducerEntry),
    /// Of a `leader-epoch-checkpoint`: `epoch` wrote from `start` on.
    LeaderEpoch {
        epoch: i32,
        start: i64,
    },
    /// Of a `partition.metadata`.
    Metadata {
        topic_id: Uuid,
    },
    /// Zeros at the end of an index: room that Apache Kafka took in advance and gives back at a clean stop.
    Unused {
        position: u64,
        bytes: u64,
    },
    Damage(Damage),
}

/// Why a file cannot be read, or cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    #[error("{} is no file of a partition: the names that can be decoded end in .log, .index, .timeindex, .txnindex, .snapshot or .checkpoint, or are leader-epoch-checkpoint or partition.metadata", path.display())]
    UnknownName { path: PathBuf },
    #[error("cannot {doing} {}", path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
}

impl DumpError {
    fn of(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DumpError {
        let path = path.to_owned();
        move |source| DumpError::Io { doing, path, source }
    }
}

/// The entries of a file. See the module.
#[derive(Debug)]
pub struct Dump {
    path: PathBuf,
    file_type: FileType,
    size: u64,
    content: Content,
    range: Range,
    /// There was an error, or of a file that is no log the last entry.
    ended: bool,
}

#[derive(Debug)]
enum Content {
    Log(Box<LogDump>),
    Index(IndexDump),
    Snapshot(SnapshotDump),
    Text(TextDump),
}

impl Dump {
    /// Opens the file at `path`. Looks at its size once: what is appended later is not seen.
    pub fn open(fs: &dyn FileSystem, path: &Path, range: Range) -> Result<Dump, DumpError> {
        let file_type = FileType::of(path).ok_or_else(|| DumpError::UnknownName { path: path.to_owned() })?;
        let io = DumpError::of("open", path);
        if fs.metadata(path).is_ok_and(|metadata| metadata.is_dir) {
            return Err(io(io::ErrorKind::IsADirectory.into()));
        }
        let file = fs.open(path, OpenMode::Read).map_err(io)?;
        let size = file.len().map_err(DumpError::of("read", path))?;
        let content = match file_type {
            FileType::Segment { kind: FileKind::Log, base, .. } => {
                Content::Log(Box::new(LogDump::new(file, size, base, range.clone())))
            }
            FileType::Segment { kind: FileKind::Snapshot, .. } => Content::Snapshot(SnapshotDump::new(file, size)),
            FileType::Segment { kind, base, .. } => Content::Index(IndexDump::new(file, size, kind, base)),
            FileType::LeaderEpochs | FileType::Metadata => Content::Text(TextDump::new(file, size, file_type)),
        };
        Ok(Dump { path: path.to_owned(), file_type, size, content, range, ended: false })
    }

    pub fn file_type(&self) -> FileType {
        self.file_type
    }

    /// The bytes of the file.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The records of the batch that came last. They may be read more than once, until the next entry is asked for. Those of
    /// every offset and time are among them, whatever the range.
    pub fn records(&mut self) -> Result<Records<'_>, DumpError> {
        let Dump { path, content, .. } = self;
        let Content::Log(log) = content else { return Ok(Records::none()) };
        log.records().map_err(DumpError::of("read", path))
    }

    /// Where it stands, between two entries. `None` at the end, and after an error.
    pub fn place(&self) -> Option<Place> {
        match &self.content {
            _ if self.ended => None,
            Content::Log(log) => log.place(),
            _ => Some(Place::default()),
        }
    }

    /// Goes to `place`, and on from there for a stretch: as many entries as lie in about half a megabyte of a log, or all of
    /// another file. Answers the place where that ends if it can be told in advance; then it holds as long as each batch of the
    /// stretch is what its header says, and [`Dump::place`] tells once the entries were read. So threads with a dump each can share
    /// a log.
    pub fn go_to_stretch(&mut self, place: &Place) -> Option<Place> {
        match &mut self.content {
            Content::Log(log) => log.go_to_stretch(place),
            _ => None,
        }
    }

    /// Goes to `place`, and on from there up to `until`, which is as [`Dump::go_to_stretch`] answered it: if damage reaches beyond
    /// it up to the first entry behind that.
    pub fn go_to(&mut self, place: &Place, until: Option<&Place>) {
        if let Content::Log(log) = &mut self.content {
            log.go_to(place, until);
        }
    }

    fn wanted(&mut self) -> io::Result<Option<Entry>> {
        loop {
            let entry = match &mut self.content {
                Content::Log(log) => return log.next(),
                Content::Index(index) => index.next()?,
                Content::Snapshot(snapshot) => snapshot.next()?,
                Content::Text(text) => text.next()?,
            };
            let Some(entry) = entry else { return Ok(None) };
            let Range { offsets, times } = &self.range;
            let wanted = match &entry {
                Entry::Offset { offset, .. } => offsets.contains(offset),
                Entry::Time { offset, timestamp, .. } => offsets.contains(offset) && times.contains(timestamp),
                Entry::Aborted { transaction, .. } => {
                    transaction.first_offset <= *offsets.end() && transaction.last_offset >= *offsets.start()
                }
                _ => true,
            };
            if wanted {
                return Ok(Some(entry));
            }
        }
    }
}

impl Iterator for Dump {
    type Item = Result<Entry, DumpError>;

    /// The next entry, of the stretch if one was gone to. After an error, which is one of the file system and not of the bytes,
    /// there is none.
    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.wanted().map_err(DumpError::of("read", &self.path));
        self.ended = match &next {
            Ok(entry) => entry.is_none() && !matches!(self.content, Content::Log(_)),
            Err(_) => true,
        };
        next.transpose()
    }
}

/// The files of a partition's folder that can be decoded, in the order of their offsets and those of a segment as
/// [`FileKind::ALL`] has them; then those of the partition. Names that are nobody's are left out.
pub fn partition_files(fs: &dyn FileSystem, dir: &Path) -> Result<Vec<(PathBuf, FileType)>, DumpError> {
    let mut files: Vec<(PathBuf, FileType)> = Vec::new();
    for entry in fs.list(dir).map_err(DumpError::of("list", dir))? {
        let path = dir.join(&entry.name);
        if !entry.is_dir
            && let Some(file_type) = FileType::of(Path::new(OsStr::new(&entry.name)))
        {
            files.push((path, file_type));
        }
    }
    files.sort_by_key(|(path, file_type)| {
        let place = match *file_type {
            FileType::Segment { base, kind, stage, .. } => (base.unwrap_or(i64::MAX - 1), kind as u8, stage as u8),
            FileType::LeaderEpochs => (i64::MAX, 0, 0),
            FileType::Metadata => (i64::MAX, 1, 0),
        };
        (place, path.clone())
    });
    Ok(files)
}
