//! Every name that doze gives to a file or a directory, formed and parsed here and nowhere else. They are Apache Kafka's.
//!
//! ```text
//! DATA/
//!   meta.db                                   the catalog
//!   clean-shutdown                            there while the last stop was a clean one
//!   .lock                                     held by the process that has the directory
//!   scrub-checkpoint                          how far the scrub is, and what it has found damaged
//!   <topic>-<n>/                              one partition
//!     partition.metadata                      the topic's id
//!     leader-epoch-checkpoint                 where each leader epoch starts
//!     cleaner-checkpoint                      up to where it was cleaned
//!     <20 digits>.log                         a segment: batches, the first with this offset or a later one
//!     <20 digits>.index                       offset to position
//!     <20 digits>.timeindex                   timestamp to offset
//!     <20 digits>.txnindex                    aborted transactions
//!     <20 digits>.snapshot                    the producers as they were before this offset
//!   <topic>-<n>.<32 hex digits>-delete/       a partition on its way out; nothing in it counts any more
//!   recovered-<time>/                         what a recovery has removed (crate::storage::recover)
//! ```
//!
//! A file of a segment may carry one more suffix, which says what is to become of it when it is found at a start:
//!
//! | suffix | what it is | what the start does |
//! |---|---|---|
//! | `.cleaned` | a rewrite that was not finished | removes it (`crate::storage::log`, `rewrite`) |
//! | `.swap` | a finished rewrite that had not yet taken the place of its originals | puts it in its place, unless a log of the same rewrite is `.cleaned` |
//! | `.deleted` | to be removed | removes it |
//! | `.tmp` | a small file that had not yet taken its name | removes it |

use std::ffi::OsStr;

/// The catalog, in the data directory.
pub const CATALOG: &str = "meta.db";
/// Says that the last stop was clean, in the data directory.
pub const CLEAN_SHUTDOWN: &str = "clean-shutdown";
/// What Apache Kafka calls [`CLEAN_SHUTDOWN`].
pub const KAFKA_CLEAN_SHUTDOWN: &str = ".kafka_cleanshutdown";
/// Says in Apache Kafka's log directories whose they are.
pub const KAFKA_META_PROPERTIES: &str = "meta.properties";
/// Locked by the process that has the data directory (Apache Kafka locks the same name).
pub const LOCK: &str = ".lock";
/// How far the scrub is and what it has found, in the data directory.
pub const SCRUB_CHECKPOINT: &str = "scrub-checkpoint";
/// The topic's id, in a partition's directory.
pub const PARTITION_METADATA: &str = "partition.metadata";
/// In a partition's directory, empty: a flush failed, so the active segment may be other on the medium than it looks.
pub const FLUSH_FAILED: &str = "flush-failed";
/// The leader epochs, in a partition's directory.
pub const LEADER_EPOCH_CHECKPOINT: &str = "leader-epoch-checkpoint";
/// Up to where the log was cleaned, in a partition's directory.
pub const CLEANER_CHECKPOINT: &str = "cleaner-checkpoint";
/// The end of a small file's name until it is whole.
pub const TEMPORARY: &str = ".tmp";

/// What a quarantine folder has, in the folder.
pub const QUARANTINE_MANIFEST: &str = "manifest.jsonl";
const QUARANTINE: &str = "recovered-";

/// Apache Kafka's own state in a log directory; see [`crate::storage::offline`] for what stands in those that are read.
pub const KAFKA_RECOVERY_POINTS: &str = "recovery-point-offset-checkpoint";
pub const KAFKA_LOG_STARTS: &str = "log-start-offset-checkpoint";
pub const KAFKA_HIGH_WATERMARKS: &str = "replication-offset-checkpoint";
pub const KAFKA_CLEANER_OFFSETS: &str = "cleaner-offset-checkpoint";
/// The topic in which an Apache Kafka node keeps its cluster's metadata.
pub const KAFKA_METADATA_TOPIC: &str = "__cluster_metadata";

const METADATA_SNAPSHOT: &str = ".checkpoint";

/// The longest name of a directory or a file on the usual file systems, in bytes.
const LONGEST_NAME: usize = 255;
const DELETED_DIR: &str = "-delete";

/// What a file of a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileKind {
    Log,
    OffsetIndex,
    TimeIndex,
    TxnIndex,
    Snapshot,
}

impl FileKind {
    /// Every kind, the log first.
    pub const ALL: [FileKind; 5] =
        [FileKind::Log, FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TxnIndex, FileKind::Snapshot];

    /// The end of its name, with the dot.
    pub fn suffix(self) -> &'static str {
        match self {
            FileKind::Log => ".log",
            FileKind::OffsetIndex => ".index",
            FileKind::TimeIndex => ".timeindex",
            FileKind::TxnIndex => ".txnindex",
            FileKind::Snapshot => ".snapshot",
        }
    }
}

/// How far a file of a segment is on its way in or out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It counts.
    Live,
    /// A rewrite that was not finished.
    Cleaned,
    /// A finished rewrite that has not taken the place of its originals.
    Swap,
    /// To be removed.
    Deleted,
}

impl Stage {
    /// The end of the name, with the dot; nothing for a file that counts.
    pub fn suffix(self) -> &'static str {
        match self {
            Stage::Live => "",
            Stage::Cleaned => ".cleaned",
            Stage::Swap => ".swap",
            Stage::Deleted => ".deleted",
        }
    }
}

/// A name in a partition's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionFile {
    /// A file of the segment, or the producer snapshot, that starts at offset `base`.
    Segment {
        base: i64,
        kind: FileKind,
        stage: Stage,
    },
    Metadata,
    LeaderEpochs,
    CleanerCheckpoint,
    /// A small file that had not taken its name yet.
    Temporary,
    /// Nobody's; left alone.
    Other,
}

/// The name of a file that counts, of the segment that starts at offset `base` (not negative).
pub fn segment_file(base: i64, kind: FileKind) -> String {
    staged_file(base, kind, Stage::Live)
}

/// The name of a segment's file at `stage`.
pub fn staged_file(base: i64, kind: FileKind, stage: Stage) -> String {
    format!("{base:020}{}{}", kind.suffix(), stage.suffix())
}

/// What a name in a partition's directory means.
pub fn parse_partition_file(name: &OsStr) -> PartitionFile {
    let Some(name) = name.to_str() else { return PartitionFile::Other };
    match name {
        PARTITION_METADATA => return PartitionFile::Metadata,
        LEADER_EPOCH_CHECKPOINT => return PartitionFile::LeaderEpochs,
        CLEANER_CHECKPOINT => return PartitionFile::CleanerCheckpoint,
        _ if name.ends_with(TEMPORARY) => return PartitionFile::Temporary,
        _ => {}
    }
    let Some((digits, rest)) = name.split_at_checked(20) else { return PartitionFile::Other };
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return PartitionFile::Other;
    }
    // Twenty digits hold more than an i64 does.
    let Ok(base) = digits.parse::<i64>() else { return PartitionFile::Other };
    for kind in FileKind::ALL {
        let Some(staged) = rest.strip_prefix(kind.suffix()) else { continue };
        for stage in [Stage::Live, Stage::Cleaned, Stage::Swap, Stage::Deleted] {
            if staged == stage.suffix() {
                return PartitionFile::Segment { base, kind, stage };
            }
        }
    }
    PartitionFile::Other
}

/// The name of a snapshot of Apache Kafka's metadata log: the offset after the last that is in it, and the epoch of that.
pub fn metadata_snapshot(end: i64, epoch: i32) -> String {
    format!("{end:020}-{epoch:010}{METADATA_SNAPSHOT}")
}

/// The end offset and the epoch of a snapshot's name; `None` for any other name.
pub fn parse_metadata_snapshot(name: &OsStr) -> Option<(i64, i32)> {
    let name = name.to_str()?;
    let (end, epoch) = name.strip_suffix(METADATA_SNAPSHOT)?.split_once('-')?;
    let parsed = (end.parse().ok()?, epoch.parse().ok()?);
    (metadata_snapshot(parsed.0, parsed.1) == name).then_some(parsed)
}

/// A name in the data directory that is a partition's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionDir {
    /// A partition.
    Live { topic: String, partition: i32 },
    /// A partition on its way out: to be removed at a start.
    Deleted,
}

/// The directory of a partition.
pub fn partition_dir(topic: &str, partition: i32) -> String {
    format!("{topic}-{partition}")
}

/// The name that a partition's directory takes when it is deleted. `unique` keeps it apart from every other; a topic name
/// that leaves no room for it is shortened, since nobody looks for the topic in it.
pub fn deleted_dir(topic: &str, partition: i32, unique: u128) -> String {
    let end = format!(".{unique:032x}{DELETED_DIR}");
    let mut start = partition_dir(topic, partition);
    // Topic names are ASCII, so that every byte is the end of a character.
    start.truncate(LONGEST_NAME - end.len());
    start + &end
}

/// The folder in which a recovery keeps what it removes. `label` tells it from others: a time.
pub fn quarantine_dir(label: &str) -> String {
    format!("{QUARANTINE}{label}")
}

/// Whether a directory's name is that of a quarantine folder.
pub fn is_quarantine_dir(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(QUARANTINE)) && parse_partition_dir(name).is_none()
}

/// What a directory is that was a partition, or is to become one, and does not count now. Apache Kafka has all three kinds,
/// doze only the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftoverDir {
    /// `-delete`: on its way out.
    Deleted,
    /// `-future`: being moved here from another log directory.
    Future,
    /// `-stray`: not in the metadata when its broker started.
    Stray,
}

/// What a directory's name says of it, if it ends as such a name does: `<topic>-<n>.<32 hex digits>-delete`.
pub fn parse_leftover_dir(name: &OsStr) -> Option<LeftoverDir> {
    let (before, end) = name.to_str()?.rsplit_once('-')?;
    let (partition, unique) = before.rsplit_once('.')?;
    let is_unique = unique.len() == 32 && unique.bytes().all(|b| b.is_ascii_hexdigit());
    if !is_unique || partition.is_empty() {
        return None;
    }
    match end {
        "delete" => Some(LeftoverDir::Deleted),
        "future" => Some(LeftoverDir::Future),
        "stray" => Some(LeftoverDir::Stray),
        _ => None,
    }
}

/// What a directory in the data directory is; `None` for one that is no partition's.
pub fn parse_partition_dir(name: &OsStr) -> Option<PartitionDir> {
    let name = name.to_str()?;
    if let Some(rest) = name.strip_suffix(DELETED_DIR)
        && let Some((before, unique)) = rest.rsplit_once('.')
        && unique.len() == 32
        && unique.bytes().all(|b| b.is_ascii_hexdigit())
        && !before.is_empty()
    {
        return Some(PartitionDir::Deleted);
    }
    let (topic, digits) = name.rsplit_once('-')?;
    let partition: i32 = digits.parse().ok()?;
    // "demo-01" and "demo-+1" are not names that are ever formed.
    let formed = !topic.is_empty() && partition >= 0 && partition_dir(topic, partition) == name;
    formed.then(|| PartitionDir::Live { topic: topic.to_string(), partition })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_parsed_as_they_are_formed() {
        for kind in FileKind::ALL {
            for stage in [Stage::Live, Stage::Cleaned, Stage::Swap, Stage::Deleted] {
                for base in [0, 7, i64::MAX] {
                    let name = staged_file(base, kind, stage);
                    let parsed = parse_partition_file(OsStr::new(&name));
                    assert_eq!(parsed, PartitionFile::Segment { base, kind, stage }, "{name}");
                }
            }
        }
        assert_eq!(segment_file(42, FileKind::TimeIndex), "00000000000000000042.timeindex");
        assert_eq!(parse_partition_file(OsStr::new("partition.metadata")), PartitionFile::Metadata);
        assert_eq!(parse_partition_file(OsStr::new("leader-epoch-checkpoint")), PartitionFile::LeaderEpochs);
        assert_eq!(parse_partition_file(OsStr::new("cleaner-checkpoint")), PartitionFile::CleanerCheckpoint);
        assert_eq!(parse_partition_file(OsStr::new("leader-epoch-checkpoint.tmp")), PartitionFile::Temporary);
        for other in [
            "",
            "0.log",
            "00000000000000000042.logs",
            "99999999999999999999.log",
            "notes.txt",
            "+0000000000000000042.log",
        ] {
            assert_eq!(parse_partition_file(OsStr::new(other)), PartitionFile::Other, "{other}");
        }
    }

    #[test]
    fn directories_are_parsed_as_they_are_formed() {
        let live = |topic: &str, partition| Some(PartitionDir::Live { topic: topic.into(), partition });
        assert_eq!(parse_partition_dir(OsStr::new("demo-0")), live("demo", 0));
        assert_eq!(parse_partition_dir(OsStr::new("a-b.c_d-12")), live("a-b.c_d", 12));
        for other in ["demo", "-1", "demo-01", "demo-x", "demo--1", "demo-+1", "demo-99999999999"] {
            let parsed = parse_partition_dir(OsStr::new(other));
            assert!(parsed.is_none() || parsed == live("demo-", 1), "{other}: {parsed:?}");
        }
        assert_eq!(parse_partition_dir(OsStr::new(&deleted_dir("demo", 3, 0xabc))), Some(PartitionDir::Deleted));
        for (end, what) in
            [("delete", LeftoverDir::Deleted), ("future", LeftoverDir::Future), ("stray", LeftoverDir::Stray)]
        {
            let name = format!("demo-3.{:032x}-{end}", 7);
            assert_eq!(parse_leftover_dir(OsStr::new(&name)), Some(what));
        }
        assert_eq!(parse_leftover_dir(OsStr::new("demo-3.abc-delete")), None);
        assert_eq!(parse_metadata_snapshot(OsStr::new(&metadata_snapshot(70, 3))), Some((70, 3)));
        for other in ["bootstrap.checkpoint", "00000000000000000070-0000000003.checkpoint.part", "70-3.checkpoint"] {
            assert_eq!(parse_metadata_snapshot(OsStr::new(other)), None);
        }
        let longest = deleted_dir(&"t".repeat(249), 1000, u128::MAX);
        assert_eq!(longest.len(), LONGEST_NAME);
        assert_eq!(parse_partition_dir(OsStr::new(&longest)), Some(PartitionDir::Deleted));
    }
}
