//! The operations on a simulated disk, numbered and counted.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::path::PathBuf;

/// What an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OpKind {
    /// A file was opened as it is.
    Open,
    /// A file was opened that was made or emptied, or would have been had it not been there.
    Create,
    Read,
    Write,
    /// A length was asked for, of an open file or of a path.
    Metadata,
    SetLen,
    SetModified,
    Sync,
    CreateDir,
    List,
    Rename,
    RemoveFile,
    RemoveDir,
    SyncDir,
    Lock,
}

impl OpKind {
    /// Whether such an operation changes what is on the disk, or what a power cut leaves.
    pub fn changes(self) -> bool {
        !matches!(self, OpKind::Open | OpKind::Read | OpKind::Metadata | OpKind::List)
    }
}

/// One operation, as it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// They are numbered from 0, across restarts.
    pub number: u64,
    pub kind: OpKind,
    pub path: PathBuf,
    /// Of a rename, the new path.
    pub to: Option<PathBuf>,
    /// Of a read or a write, where in the file; of `SetLen`, the length. Bytes. Of `SetModified`, the time, ms since the Unix epoch.
    pub position: Option<u64>,
    /// Of a read or a write, how many bytes were asked for.
    pub len: Option<usize>,
    /// A fault hit it.
    pub injected: bool,
    pub error: Option<String>,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {}", self.number, self.kind, self.path.display())?;
        if let Some(to) = &self.to {
            write!(f, " -> {}", to.display())?;
        }
        if let Some(position) = self.position {
            write!(f, " at {position}")?;
        }
        if let Some(len) = self.len {
            write!(f, " {len} bytes")?;
        }
        if self.injected {
            f.write_str(" FAULT")?;
        }
        match &self.error {
            Some(error) => write!(f, ": {error}"),
            None => Ok(()),
        }
    }
}

/// How many operations the log holds; older ones are forgotten.
const LOG: usize = 100_000;

#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub next: u64,
    pub counts: BTreeMap<OpKind, u64>,
    log: VecDeque<Operation>,
}

impl History {
    pub fn push(&mut self, operation: Operation) {
        *self.counts.entry(operation.kind).or_default() += 1;
        if self.log.len() == LOG {
            self.log.pop_front();
        }
        self.log.push_back(operation);
    }

    pub fn log(&self) -> Vec<Operation> {
        self.log.iter().cloned().collect()
    }
}
