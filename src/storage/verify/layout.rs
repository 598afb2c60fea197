//! What a partition's folder has, as a start would find it: rewrites finished or thrown away, what is below the log's start
//! left out.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use super::finding::{Consequence, Kind, Repair};
use super::notes::{Notes, Place};
use crate::storage::names::{self, FileKind, PartitionFile, Stage};
use crate::sys::{File, FileSystem, OpenMode};

/// A file that is there.
#[derive(Clone, Debug)]
pub(super) struct FoundFile {
    pub name: String,
    pub len: u64,
}

/// The files of a segment.
#[derive(Clone, Debug)]
pub(super) struct SegmentFiles {
    pub base: i64,
    pub log: FoundFile,
    pub offsets: Option<FoundFile>,
    pub times: Option<FoundFile>,
    pub aborted: Option<FoundFile>,
}

/// What a partition's folder has.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// By base offset.
    pub segments: Vec<SegmentFiles>,
    /// By offset.
    pub snapshots: Vec<(i64, FoundFile)>,
    pub has_metadata: bool,
    pub has_epochs: bool,
    pub has_cleaner_checkpoint: bool,
    pub flush_failed: bool,
    /// Indexes that have entries and no log: base offset and file.
    pub orphans: Vec<(i64, FoundFile)>,
}

type Files = BTreeMap<(i64, FileKind), FoundFile>;

/// Apache Kafka's own files in a partition's folder that say nothing of its records.
fn is_kafkas(name: &str) -> bool {
    name.ends_with(".checkpoint") || name == "quorum-state" || name == "remote_log_snapshot"
}

impl Layout {
    /// Lists the folder at `dir`. What is odd about its names goes into `notes`.
    pub fn read(fs: &dyn FileSystem, dir: &Path, notes: &mut Notes) -> io::Result<Layout> {
        let mut layout = Layout::default();
        let (mut live, mut staged): (Files, Vec<(i64, FileKind, Stage, FoundFile)>) = Default::default();
        let mut entries = fs.list(dir)?;
        entries.sort();
        for entry in entries {
            let foreign = |notes: &mut Notes, what: &str| {
                notes.add(&entry.name, Place::FILE, Kind::Foreign, (Consequence::Harmless, Repair::Person), what);
            };
            let parsed = names::parse_partition_file(&entry.name);
            if entry.is_dir {
                match parsed {
                    PartitionFile::Other => foreign(notes, "this folder is nobody's and is left alone"),
                    _ => notes.add(
                        &entry.name,
                        Place::FILE,
                        Kind::Unreadable,
                        (Consequence::Unknown, Repair::Person),
                        "a folder has the name of one of the partition's files",
                    ),
                }
                continue;
            }
            let name = entry.name.to_string_lossy().into_owned();
            match parsed {
                PartitionFile::Metadata => layout.has_metadata = true,
                PartitionFile::LeaderEpochs => layout.has_epochs = true,
                PartitionFile::CleanerCheckpoint => layout.has_cleaner_checkpoint = true,
                PartitionFile::Temporary => {
                    leftover(notes, &name, "a small file that was not finished; the next start removes it");
                }
                PartitionFile::Other if name == names::FLUSH_FAILED => layout.flush_failed = true,
                PartitionFile::Other if is_kafkas(&name) => {}
                PartitionFile::Other => foreign(notes, "this file is nobody's and is left alone"),
                PartitionFile::Segment { base, kind, stage } => {
                    let len = match fs.metadata(&dir.join(&entry.name)) {
                        Ok(metadata) => metadata.len,
                        Err(error) => {
                            notes.unreadable(&entry.name, &error);
                            continue;
                        }
                    };
                    let file = FoundFile { name, len };
                    match stage {
                        Stage::Live => drop(live.insert((base, kind), file)),
                        Stage::Deleted => leftover(notes, &file.name, "it was to be removed; the next start does it"),
                        _ => staged.push((base, kind, stage, file)),
                    }
                }
            }
        }
        finish_rewrite(fs, dir, &mut live, staged, notes);
        layout.sort_in(live, notes);
        Ok(layout)
    }

    fn sort_in(&mut self, mut live: Files, notes: &mut Notes) {
        let bases: Vec<i64> = live.keys().filter(|key| key.1 == FileKind::Log).map(|key| key.0).collect();
        for base in bases {
            let mut take = |kind| live.remove(&(base, kind));
            let log = take(FileKind::Log).expect("its base was taken from it");
            let (offsets, times, aborted) =
                (take(FileKind::OffsetIndex), take(FileKind::TimeIndex), take(FileKind::TxnIndex));
            self.segments.push(SegmentFiles { base, log, offsets, times, aborted });
        }
        for ((base, kind), file) in live {
            if kind == FileKind::Snapshot {
                self.snapshots.push((base, file));
                continue;
            }
            let harmless = (Consequence::Harmless, Repair::Start);
            notes.add(
                &file.name,
                Place::FILE,
                Kind::Orphan,
                harmless,
                "its log is not there; the next start removes it",
            );
            if kind == FileKind::OffsetIndex && file.len > 0 {
                self.orphans.push((base, file));
            }
        }
    }

    /// Leaves out the segments that are all below the log's start: the next start removes them.
    pub fn drop_below(&mut self, log_start: i64, notes: &mut Notes) {
        let below = self.segments.windows(2).take_while(|pair| pair[1].base <= log_start).count();
        for segment in self.segments.drain(..below) {
            leftover(notes, &segment.log.name, "all of it is below the log's start; it is removed with the next start");
        }
    }
}

fn leftover(notes: &mut Notes, name: &str, what: &str) {
    notes.add(name, Place::FILE, Kind::Leftover, (Consequence::Harmless, Repair::Start), what);
}

/// Does with the names what a start does with the files of a rewrite: those of `.swap` logs that are whole take the place of
/// their originals, all others go. (`crate::storage::log`, `rewrite`.)
fn finish_rewrite(
    fs: &dyn FileSystem,
    dir: &Path,
    live: &mut Files,
    staged: Vec<(i64, FileKind, Stage, FoundFile)>,
    notes: &mut Notes,
) {
    let is_log = |stage| move |file: &&(i64, FileKind, Stage, FoundFile)| file.1 == FileKind::Log && file.2 == stage;
    let first_cleaned = staged.iter().filter(is_log(Stage::Cleaned)).map(|file| file.0).min().unwrap_or(i64::MAX);
    let swaps: Vec<(i64, FoundFile)> = staged
        .iter()
        .filter(is_log(Stage::Swap))
        .filter(|file| file.0 < first_cleaned)
        .map(|file| (file.0, file.3.clone()))
        .collect();
    for (_, _, _, file) in &staged {
        leftover(
            notes,
            &file.name,
            "a rewrite of segments was interrupted; the next start finishes it or throws it away",
        );
    }
    let Some(first) = swaps.iter().map(|swap| swap.0).min() else { return };
    let covered = swaps.iter().map(|(base, file)| last_offset(fs, dir, file).unwrap_or(*base)).max().unwrap_or(first);
    live.retain(|(base, kind), _| *kind == FileKind::Snapshot || !(first..=covered).contains(base));
    for (base, file) in swaps {
        live.insert((base, FileKind::Log), file);
    }
    for (base, kind, stage, file) in staged {
        if stage == Stage::Swap && kind != FileKind::Log && live.contains_key(&(base, FileKind::Log)) {
            live.entry((base, kind)).or_insert(file);
        }
    }
}

fn last_offset(fs: &dyn FileSystem, dir: &Path, file: &FoundFile) -> Option<i64> {
    crate::storage::log::last_offset(fs, &dir.join(&file.name)).ok().flatten()
}

/// Opens a file of a partition to read it.
pub(super) fn open(fs: &dyn FileSystem, dir: &Path, name: &str) -> io::Result<std::sync::Arc<dyn File>> {
    fs.open(&dir.join(name), OpenMode::Read)
}
