//! Where findings are collected.

use std::path::{Path, PathBuf};

use super::finding::{Consequence, Finding, Kind, Repair};

/// The most findings that are kept of one segment, or of a partition as a whole. What is beyond is counted.
const MOST: usize = 1000;

/// Collects the findings about one partition.
#[derive(Debug)]
pub(super) struct Notes {
    topic: String,
    partition: i32,
    folder: String,
    pub findings: Vec<Finding>,
    pub more: u64,
}

/// Where something is in a file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    pub position: Option<u64>,
    pub bytes: Option<u64>,
    pub offsets: Option<(i64, i64)>,
}

impl Place {
    /// The file as a whole.
    pub const FILE: Place = Place { position: None, bytes: None, offsets: None };

    pub fn bytes(position: u64, bytes: u64) -> Place {
        Place { position: Some(position), bytes: Some(bytes), offsets: None }
    }

    pub fn offsets(from: i64, to: i64) -> Place {
        Place { offsets: Some((from, to.max(from))), ..Place::FILE }
    }

    pub fn with_offsets(self, from: i64, to: i64) -> Place {
        Place { offsets: Some((from, to.max(from))), ..self }
    }
}

impl Notes {
    pub fn new(topic: &str, partition: i32, folder: &str) -> Notes {
        Notes { topic: topic.into(), partition, folder: folder.into(), findings: Vec::new(), more: 0 }
    }

    /// Notes about the same partition.
    pub fn fresh(&self) -> Notes {
        Notes::new(&self.topic, self.partition, &self.folder)
    }

    /// `file`: a name in the partition's folder; empty for the folder itself.
    pub fn add(
        &mut self,
        file: impl AsRef<Path>,
        place: Place,
        kind: Kind,
        meaning: (Consequence, Repair),
        detail: impl Into<String>,
    ) {
        let file = file.as_ref();
        let path = match file.as_os_str().is_empty() {
            true => PathBuf::from(&self.folder),
            false => Path::new(&self.folder).join(file),
        };
        self.push(Finding {
            topic: Some(self.topic.clone()),
            partition: Some(self.partition),
            file: path,
            position: place.position,
            bytes: place.bytes,
            offsets: place.offsets,
            kind,
            consequence: meaning.0,
            repair: meaning.1,
            detail: detail.into(),
        });
    }

    fn push(&mut self, finding: Finding) {
        if self.findings.len() < MOST {
            self.findings.push(finding);
        } else if finding.is_damage() {
            self.more += 1;
        }
    }

    /// Takes over what others have collected.
    pub fn take(&mut self, other: Notes) {
        self.more += other.more;
        other.findings.into_iter().for_each(|finding| self.push(finding));
    }

    /// A file or folder could not be read.
    pub fn unreadable(&mut self, file: impl AsRef<Path>, error: &std::io::Error) {
        let meaning = (Consequence::Unknown, Repair::Person);
        self.add(file, Place::FILE, Kind::Unreadable, meaning, format!("it cannot be read: {error}"));
    }
}
