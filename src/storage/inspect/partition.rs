//! One partition, from its folder and what the directory says of it.

use std::io;

use super::content::Content;
use super::segment::SegmentSummary;
use crate::protocol::Uuid;
use crate::storage::cleaner;
use crate::storage::log::{FileError, ProducerInfo, look_at_producers, read_leader_epochs};
use crate::storage::names::{self, FileKind, PartitionFile, Stage};
use crate::storage::offline::{DataDir, Origin, PartitionFolder};
use crate::storage::store::DirError;

/// How much of a log is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The ends of each segment.
    Ends,
    /// The header of every batch.
    Count,
}

/// A transaction that no marker ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenTransactionAt {
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub first_offset: i64,
    /// Of the producer's latest batch, milliseconds since the Unix epoch.
    pub last_timestamp: i64,
}

/// What is known of a partition. Offsets are as the next start would find them, if what it finds is whole.
#[derive(Clone, Debug)]
pub struct PartitionSummary {
    pub topic: String,
    pub partition: i32,
    /// As `partition.metadata` has it.
    pub topic_id: Option<Uuid>,
    pub log_start: i64,
    /// The offset of the next record.
    pub log_end: i64,
    /// doze's is always the end. Apache Kafka's is as its checkpoint has it, which it writes every few seconds; the end where
    /// it has none.
    pub high_watermark: i64,
    /// The first offset of the earliest open transaction, or the high watermark.
    pub last_stable: i64,
    /// By base offset.
    pub segments: Vec<SegmentSummary>,
    /// Of all files in the folder.
    pub disk_bytes: u64,
    pub producers: Vec<ProducerInfo>,
    pub open_transactions: Vec<OpenTransactionAt>,
    /// Epoch and start offset.
    pub leader_epochs: Vec<(i32, i64)>,
    /// Everything below it has gone through the cleaner. `None` if nothing did.
    pub cleaned_to: Option<i64>,
    /// Why cleaning failed the last time, if it did.
    pub cleaner_error: Option<String>,
    /// Whether the next start takes the files as they are.
    pub trusted: bool,
    /// A flush of the active segment failed: the next start writes it anew.
    pub flush_failed: bool,
    /// Files on their way in or out: `.cleaned`, `.swap`, `.deleted`, `.tmp`.
    pub leftover_files: u64,
    /// What could not be read or makes no sense.
    pub problems: Vec<String>,
}

impl PartitionSummary {
    /// Looks at a partition of `dir`. Fails where the folder cannot be listed.
    pub fn read(dir: &DataDir, folder: &PartitionFolder, depth: Depth) -> Result<PartitionSummary, DirError> {
        let fs = &*dir.env().fs;
        let (topic, partition) = (folder.topic.as_str(), folder.partition);
        let mut summary = PartitionSummary {
            topic: topic.to_owned(),
            partition,
            topic_id: None,
            log_start: 0,
            log_end: 0,
            high_watermark: 0,
            last_stable: 0,
            segments: Vec::new(),
            disk_bytes: 0,
            producers: Vec::new(),
            open_transactions: Vec::new(),
            leader_epochs: Vec::new(),
            cleaned_to: None,
            cleaner_error: None,
            trusted: dir.is_trusted(&folder.name()),
            flush_failed: false,
            leftover_files: 0,
            problems: Vec::new(),
        };
        let (mut logs, mut snapshots) = (Vec::new(), Vec::new());
        for entry in fs.list(&folder.path).map_err(DirError::of("list", &folder.path))? {
            if let Ok(metadata) = fs.metadata(&folder.path.join(&entry.name))
                && !metadata.is_dir
            {
                summary.disk_bytes += metadata.len;
            }
            match names::parse_partition_file(&entry.name) {
                PartitionFile::Segment { base, kind: FileKind::Log, stage: Stage::Live } => logs.push(base),
                PartitionFile::Segment { base, kind: FileKind::Snapshot, stage: Stage::Live } => snapshots.push(base),
                PartitionFile::Segment { stage, .. } if stage != Stage::Live => summary.leftover_files += 1,
                PartitionFile::Temporary => summary.leftover_files += 1,
                PartitionFile::Other if entry.name == names::FLUSH_FAILED => summary.flush_failed = true,
                _ => {}
            }
        }
        logs.sort_unstable();
        for base in logs {
            match SegmentSummary::read(fs, &folder.path, base, depth) {
                Ok(segment) => summary.segments.push(segment),
                Err(error) => summary.problem(&names::segment_file(base, FileKind::Log), &error),
            }
        }
        summary.topic_id = dir.topic_id(folder).unwrap_or_else(|error| {
            summary.problems.push(format!("{error}: {}", error.source));
            None
        });
        summary.find_offsets(dir);
        summary.find_producers(dir, folder, &snapshots);
        summary.find_cleaned(dir, folder);
        match read_leader_epochs(fs, &folder.path) {
            Ok(epochs) => summary.leader_epochs = epochs.unwrap_or_default(),
            Err(error) => summary.problem(names::LEADER_EPOCH_CHECKPOINT, &error),
        }
        Ok(summary)
    }

    fn problem(&mut self, what: &str, error: &io::Error) {
        self.problems.push(format!("{what}: {error}"));
    }

    fn find_offsets(&mut self, dir: &DataDir) {
        let first = self.segments.first().map(|segment| segment.base_offset);
        let set = match dir.origin() {
            Origin::Doze => self.start_in_catalog(dir),
            Origin::Kafka => dir.kafka().log_starts.get(&self.topic, self.partition),
        };
        self.log_start = set.unwrap_or(0).max(first.unwrap_or(0));
        self.log_end = self.segments.last().map_or(self.log_start, |segment| segment.end_offset.max(self.log_start));
        let high_watermark = match dir.origin() {
            Origin::Doze => None,
            Origin::Kafka => dir.kafka().high_watermarks.get(&self.topic, self.partition),
        };
        self.high_watermark = high_watermark.unwrap_or(self.log_end).clamp(self.log_start, self.log_end);
        self.last_stable = self.high_watermark;
    }

    fn start_in_catalog(&mut self, dir: &DataDir) -> Option<i64> {
        let catalog = dir.catalog()?;
        let id = catalog.topics().by_name(&self.topic).map(|topic| topic.id).or(self.topic_id)?;
        match catalog.log_start(id, self.partition) {
            Ok(start) => Some(start),
            Err(error) => {
                self.problems.push(format!("its log start offset: {error}"));
                None
            }
        }
    }

    fn find_producers(&mut self, dir: &DataDir, folder: &PartitionFolder, snapshots: &[i64]) {
        let segments: Vec<(i64, u64)> =
            self.segments.iter().map(|segment| (segment.base_offset, segment.bytes)).collect();
        match look_at_producers(&*dir.env().fs, &folder.path, &segments, snapshots, self.log_end) {
            Ok(producers) => self.producers = producers,
            Err(error) => self.problems.push(of_file_error(&error)),
        }
        let open = self.producers.iter().filter_map(|producer| {
            Some(OpenTransactionAt {
                producer_id: producer.producer_id,
                producer_epoch: producer.epoch,
                first_offset: producer.transaction_start?,
                last_timestamp: producer.last_timestamp,
            })
        });
        self.open_transactions = open.collect();
        self.open_transactions.sort_by_key(|open| open.first_offset);
        if let Some(first) = self.open_transactions.first() {
            self.last_stable = self.last_stable.min(first.first_offset.max(self.log_start));
        }
    }

    fn find_cleaned(&mut self, dir: &DataDir, folder: &PartitionFolder) {
        if dir.origin() == Origin::Kafka {
            self.cleaned_to = dir.kafka().cleaner_offsets.get(&self.topic, self.partition);
            return;
        }
        match cleaner::Checkpoint::read(&*dir.env().fs, &folder.path) {
            Ok(checkpoint) => {
                self.cleaned_to = (checkpoint.cleaned > 0).then_some(checkpoint.cleaned);
                self.cleaner_error = checkpoint.error;
            }
            Err(error) => self.problem(names::CLEANER_CHECKPOINT, &error),
        }
    }

    /// Bytes of its logs.
    pub fn log_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// What its batches hold.
    pub fn content(&self) -> Content {
        let mut content = Content::default();
        self.segments.iter().for_each(|segment| content.merge(&segment.content));
        content
    }

    /// The base timestamp of its first batch, milliseconds since the Unix epoch.
    pub fn first_timestamp(&self) -> Option<i64> {
        self.segments.iter().find_map(|segment| segment.first_timestamp)
    }

    /// The largest timestamp of its records, milliseconds since the Unix epoch.
    pub fn last_timestamp(&self) -> Option<i64> {
        self.segments.iter().filter_map(|segment| segment.last_timestamp).max()
    }

    /// How many of its transactions the indexes say were aborted.
    pub fn aborted_transactions(&self) -> u64 {
        self.segments.iter().map(|segment| segment.aborted_transactions).sum()
    }

    /// Bytes behind the last batch that make none.
    pub fn tail_bytes(&self) -> u64 {
        self.segments.last().map_or(0, |segment| segment.tail_bytes)
    }
}

fn of_file_error(error: &FileError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
