//! What is no entry, or is one that cannot be right.

use std::fmt;

use crate::record::BatchError;

/// A stretch of a file that does not hold what it should.
#[derive(Clone, Debug, PartialEq)]
pub struct Damage {
    /// Where it starts, in bytes.
    pub position: u64,
    /// How many bytes of the file it takes.
    pub bytes: u64,
    /// The offsets that are or were in it, where that can be told: the first, and the first after it. Of a log only.
    pub offsets: (Option<i64>, Option<i64>),
    pub kind: DamageKind,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum DamageKind {
    /// The file ends inside an entry.
    Torn { needed: u64, left: u64 },
    /// Zeros where a batch has to be: space that was reserved, or never reached the disk.
    Zeros,
    /// No batch starts here, whatever does.
    Header(BatchError),
    /// The checksum is not that of the bytes.
    Crc { stored: u32, computed: u32 },
    /// The offsets of a batch do not follow those before it; `due` is the lowest that would.
    Offsets { due: i64 },
    /// The records of a batch with the right checksum cannot be read, or not all. Told by whoever reads them.
    Records { reason: String },
    /// The entries of an index do not rise.
    Order,
    /// A version that is not known.
    Version { found: i64 },
    /// The count in front says otherwise than the length of the file.
    Count { claimed: u64, found: u64 },
    /// A line of text that is not as it has to be.
    Text { line: usize },
}

impl DamageKind {
    /// One word, which stays the same from release to release.
    pub fn name(&self) -> &'static str {
        match self {
            DamageKind::Torn { .. } => "torn",
            DamageKind::Zeros => "zeros",
            DamageKind::Header(_) => "header",
            DamageKind::Crc { .. } => "crc",
            DamageKind::Offsets { .. } => "offsets",
            DamageKind::Records { .. } => "records",
            DamageKind::Order => "order",
            DamageKind::Version { .. } => "version",
            DamageKind::Count { .. } => "count",
            DamageKind::Text { .. } => "text",
        }
    }
}

impl fmt::Display for DamageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DamageKind::Torn { needed, left } => {
                write!(f, "the file ends inside an entry of {needed} bytes, of which {left} are there")
            }
            DamageKind::Zeros => f.write_str("only zeros: reserved and not yet written, or lost"),
            DamageKind::Header(error) => write!(f, "no batch starts here: {error}"),
            DamageKind::Crc { stored, computed } => {
                write!(f, "the checksum is {stored:08x}, and that of the bytes {computed:08x}")
            }
            DamageKind::Offsets { due } => {
                write!(f, "its offsets do not follow those before it: {due} is the lowest that would")
            }
            DamageKind::Records { reason } => write!(f, "its records cannot all be read: {reason}"),
            DamageKind::Order => f.write_str("it does not lie above the entry before it"),
            DamageKind::Version { found } => write!(f, "its version is {found}, which this doze does not know"),
            DamageKind::Count { claimed, found } => {
                write!(f, "it says it has {claimed} entries, and {found} are there")
            }
            DamageKind::Text { line } => write!(f, "line {line} is not as it has to be"),
        }
    }
}
