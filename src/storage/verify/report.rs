//! What a look at a directory came to.

use std::fmt;
use std::path::PathBuf;

use super::finding::{Consequence, Finding};
use crate::protocol::Uuid;
use crate::storage::offline::{Origin, Stop};

/// How closely to look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Names, sizes, the first and the last batches of each segment by their headers, the ends of indexes, the catalog.
    Quick,
    /// Every byte of every batch against its checksum, and every entry of every index against the log.
    #[default]
    Default,
    /// Every record through its codec as well.
    Deep,
}

impl Level {
    /// `quick`, `default` or `deep`, as JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Level::Quick => "quick",
            Level::Default => "default",
            Level::Deep => "deep",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub partitions: u64,
    pub segments: u64,
    /// Bytes of log files that were read, or at level quick were there.
    pub bytes: u64,
    /// Whole batches that were come over; at level quick only some are.
    pub batches: u64,
    /// Records, as the batches' headers count them; 1 for each entry of a version before 2.
    pub records: u64,
}

impl Totals {
    pub(super) fn add(&mut self, other: &Totals) {
        self.partitions += other.partitions;
        self.segments += other.segments;
        self.bytes += other.bytes;
        self.batches += other.batches;
        self.records += other.records;
    }
}

/// One partition that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionReport {
    pub topic: String,
    pub partition: i32,
    /// From `partition.metadata`.
    pub topic_id: Option<Uuid>,
    /// The first offset that counts.
    pub log_start: i64,
    /// The offset after the last that is whole.
    pub end: i64,
    pub totals: Totals,
    /// Where its findings are in [`Report::findings`].
    pub findings: std::ops::Range<usize>,
    /// Findings beyond those that are kept.
    pub more_findings: u64,
}

/// Something that was not looked at, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unchecked {
    pub topic: Option<String>,
    pub partition: Option<i32>,
    pub file: Option<PathBuf>,
    /// For a person, in a sentence without a full stop.
    pub what: String,
}

/// What a look at a directory came to.
#[derive(Clone, Debug)]
pub struct Report {
    pub dir: PathBuf,
    pub origin: Origin,
    /// It is the folder of one partition with nothing around it.
    pub is_lone: bool,
    pub level: Level,
    pub stop: Stop,
    /// Those about the directory first, then by topic, partition and place in the log.
    pub findings: Vec<Finding>,
    /// By topic and partition.
    pub partitions: Vec<PartitionReport>,
    pub unchecked: Vec<Unchecked>,
    pub totals: Totals,
    /// It was stopped before the end: what is not among `partitions` was not looked at.
    pub cancelled: bool,
}

impl Report {
    /// Whether there is any damage.
    pub fn is_damaged(&self) -> bool {
        self.findings.iter().any(Finding::is_damage) || self.partitions.iter().any(|part| part.more_findings > 0)
    }

    /// The findings that mean this.
    pub fn of(&self, consequence: Consequence) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.consequence == consequence)
    }
}
