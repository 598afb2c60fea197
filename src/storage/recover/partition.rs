//! The steps for one partition; [`mend`] takes them.

mod look;
mod mend;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::error::RecoverError;
use super::plan::{Action, Left, Step, leave, relative};
use super::quarantine::Piece;
use crate::protocol::Uuid;
use crate::storage::log::EndMarker;
use crate::storage::log::repair::{self, Stretch, StretchKind, Surveyed};
use crate::storage::names::{self, FileKind, PartitionFile, Stage};
use crate::storage::offline::{DataDir, Origin, PartitionFolder};
use crate::storage::store::DirError;
use crate::storage::verify::{Consequence, Finding, Kind};
use crate::sys::DirEntry;
pub(super) use mend::mend;

/// What is to be done to one partition.
#[derive(Debug)]
pub(super) struct PartitionWork {
    pub topic: String,
    pub partition: i32,
    pub path: PathBuf,
    pub steps: Vec<Step>,
    /// What goes into quarantine, apart from what goes with the stretches.
    pub pieces: Vec<Piece>,
    /// All log files, where they were looked at.
    surveyed: Vec<Surveyed>,
    /// The logs' stretches that are a torn tail although they are not at the end of the last file.
    torn: BTreeSet<(i64, u64)>,
    finish_rewrite: bool,
    /// Base offsets of segments whose indexes are made anew.
    indexes: BTreeSet<i64>,
    txn_indexes: BTreeSet<i64>,
    epochs: bool,
    metadata: Option<Uuid>,
    /// Names of files that go.
    remove: BTreeSet<String>,
    /// The folder is not there and is made.
    make: Option<Uuid>,
    /// The engine opens the log, checks it and closes it.
    reopen: bool,
    /// The next start would take the files as they are.
    trusted: bool,
    flush_failed: bool,
    /// How far the log went that ends before, as something beside it says.
    reached: Option<i64>,
    /// End markers of transactions that rotted and are written again, by their offsets.
    markers: BTreeMap<i64, EndMarker>,
    /// Where the log starts, if the catalog has it start before.
    start: Option<(Uuid, i64)>,
}

impl PartitionWork {
    fn new(topic: &str, partition: i32, path: PathBuf, trusted: bool) -> Self {
        PartitionWork {
            topic: topic.to_owned(),
            partition,
            path,
            steps: Vec::new(),
            pieces: Vec::new(),
            surveyed: Vec::new(),
            torn: BTreeSet::new(),
            finish_rewrite: false,
            indexes: BTreeSet::new(),
            txn_indexes: BTreeSet::new(),
            epochs: false,
            metadata: None,
            remove: BTreeSet::new(),
            make: None,
            reopen: false,
            trusted,
            flush_failed: false,
            reached: None,
            markers: BTreeMap::new(),
            start: None,
        }
    }

    /// The name of its folder.
    pub fn name(&self) -> String {
        names::partition_dir(&self.topic, self.partition)
    }

    fn step(&mut self, dir: &DataDir, action: Action, file: &str, detail: impl Into<String>) -> &mut Step {
        let file = relative(dir, &self.path.join(file));
        self.steps.push(Step {
            topic: Some(self.topic.clone()),
            partition: Some(self.partition),
            action,
            file,
            position: None,
            bytes: None,
            offsets: None,
            loses: false,
            detail: detail.into(),
        });
        self.steps.last_mut().expect("it was just put there")
    }

    fn keep_file(&mut self, dir: &DataDir, name: &str, why: Action) {
        let file = relative(dir, &self.path.join(name));
        if !self.pieces.iter().any(|piece| piece.file == file && piece.bytes.is_none()) {
            self.pieces.push(Piece { file, position: 0, bytes: None, offsets: None, why: why.name() });
        }
    }

    /// Where its log starts, if that is to be said to the catalog.
    pub fn raises_start(&self, accept_loss: bool) -> Option<(Uuid, i64)> {
        self.start.filter(|_| accept_loss)
    }

    /// Whether records go with a stretch.
    fn loses(&self, file: &Surveyed, stretch: &Stretch) -> bool {
        match stretch.kind {
            StretchKind::Tail => self.trusted || self.reached.is_some(),
            StretchKind::Missing => true,
            StretchKind::Damaged if self.is_marker(stretch) => false,
            StretchKind::Damaged => !self.torn.contains(&(file.base, stretch.position)),
            StretchKind::Repeated | StretchKind::Mendable => false,
        }
    }

    /// Whether a stretch is an end marker and nothing else, that is written again.
    fn is_marker(&self, stretch: &Stretch) -> bool {
        stretch.offsets.1 - stretch.offsets.0 == 1 && self.markers.contains_key(&stretch.offsets.0)
    }

    /// Whether something is written in the place of a stretch that goes.
    fn fills(&self, file: &Surveyed, stretch: &Stretch) -> bool {
        self.loses(file, stretch) || self.is_marker(stretch)
    }

    /// What of it is done when losses are accepted or not.
    fn goes(&self, file: &Surveyed, stretch: &Stretch, accept_loss: bool) -> bool {
        stretch.mend.is_none() && (accept_loss || !self.loses(file, stretch))
    }

    fn is_left_out(&self, file: &Surveyed, accept_loss: bool) -> bool {
        !accept_loss && (file.surplus == Some(false) || file.stretches.iter().any(|s| self.loses(file, s)))
    }
}

/// Looks closer at a partition that has findings, or has to be checked. `None` if nothing is to be done.
pub(super) fn plan(
    dir: &DataDir,
    folder: &PartitionFolder,
    findings: &[&Finding],
    catalog_is_lost: bool,
    left: &mut Vec<Left>,
    progress: &mut dyn FnMut(u64),
) -> Result<Option<PartitionWork>, RecoverError> {
    let fs = &*dir.env().fs;
    if dir.origin() == Origin::Kafka && folder.topic == names::KAFKA_METADATA_TOPIC {
        // Taking something out of it would make another cluster of it.
        findings.iter().for_each(|finding| leave(left, finding));
        return Ok(None);
    }
    let entries = fs.list(&folder.path).map_err(DirError::of("list", &folder.path))?;
    let mut work =
        PartitionWork::new(&folder.topic, folder.partition, folder.path.clone(), dir.is_trusted(&folder.name()));
    if findings.iter().any(|finding| finding.kind == Kind::Unreadable) {
        // What could not be looked at is not touched.
        findings.iter().for_each(|finding| leave(left, finding));
        return Ok(None);
    }
    let mut look = false;
    for finding in findings {
        look |= plan_finding(dir, folder, &mut work, finding, catalog_is_lost, left)?;
    }
    if look && entries.iter().any(is_staged) {
        work.finish_rewrite = true;
        for entry in entries.iter().filter(|entry| is_staged(entry)) {
            work.keep_file(dir, &entry.name.to_string_lossy(), Action::FinishRewrite);
        }
        // What it replaces.
        for entry in &entries {
            if let PartitionFile::Segment { kind: FileKind::Log, stage: Stage::Live, .. } =
                names::parse_partition_file(&entry.name)
            {
                work.keep_file(dir, &entry.name.to_string_lossy(), Action::FinishRewrite);
            }
        }
        work.step(
            dir,
            Action::FinishRewrite,
            "",
            "a rewrite of segments was interrupted; it is finished or cleared away, and the log is looked at again",
        );
        return Ok(Some(work));
    }
    let has_log = entries.iter().any(is_log);
    if look && has_log {
        work.surveyed = repair::survey(fs, &folder.path, progress)?;
        look::add_missing(&mut work, findings, left);
        look::mend_epochs(dir, &mut work, findings, left)?;
        if work.surveyed.iter().any(|file| file.stretches.iter().any(|s| s.kind == StretchKind::Damaged)) {
            work.markers = repair::lost_markers(fs, &folder.path, &work.surveyed, &|file| look::trust(&work, file))?;
        }
        plan_logs(dir, &mut work);
        // A segment that is written anew gets new indexes; of one that stays damaged they would be found wrong again.
        let damaged = |file: &&Surveyed| file.is_misnamed() || file.surplus.is_some() || !file.stretches.is_empty();
        let bases: BTreeSet<i64> = work.surveyed.iter().filter(damaged).map(|file| file.base).collect();
        work.indexes.retain(|base| !bases.contains(base));
        work.steps.retain(|step| {
            step.action != Action::RebuildIndex || !base_in(&step.file).is_some_and(|b| bases.contains(&b))
        });
    }
    if work.flush_failed || (dir.origin() == Origin::Doze && !work.trusted && has_log) {
        work.reopen = true;
        if !work.flush_failed {
            work.step(
                dir,
                Action::Check,
                "",
                "the last stop was not a clean one: the last segment is checked batch by batch, and flushed",
            );
        }
        keep_what_a_start_removes(dir, &mut work, &entries);
    }
    // What is kept of a start that finds the log shorter, or of one that opens it.
    Ok((!work.steps.is_empty()).then_some(work))
}

/// A partition that the catalog has, without a folder.
pub(super) fn plan_missing(
    dir: &DataDir,
    topic: &str,
    partition: i32,
    findings: &[&Finding],
    left: &mut Vec<Left>,
) -> Option<PartitionWork> {
    let id = dir.catalog().and_then(|catalog| catalog.topics().by_name(topic).map(|topic| topic.id));
    let mut work = PartitionWork::new(topic, partition, dir.path().join(names::partition_dir(topic, partition)), true);
    for finding in findings {
        match (finding.kind, id) {
            (Kind::MissingPartition, Some(id)) if dir.origin() == Origin::Doze => {
                work.make = Some(id);
                work.step(
                    dir,
                    Action::MakePartition,
                    "",
                    "the folder is gone with all its records; an empty one is made",
                )
                .loses = true;
            }
            _ => leave(left, finding),
        }
    }
    (!work.steps.is_empty()).then_some(work)
}

fn is_log(entry: &DirEntry) -> bool {
    matches!(
        names::parse_partition_file(&entry.name),
        PartitionFile::Segment { kind: FileKind::Log, stage: Stage::Live, .. }
    )
}

fn is_staged(entry: &DirEntry) -> bool {
    matches!(
        names::parse_partition_file(&entry.name),
        PartitionFile::Segment { stage: Stage::Cleaned | Stage::Swap, .. }
    )
}

/// A start removes these; with the recovery they go before, and are kept.
fn keep_what_a_start_removes(dir: &DataDir, work: &mut PartitionWork, entries: &[DirEntry]) {
    for entry in entries {
        let goes = matches!(
            names::parse_partition_file(&entry.name),
            PartitionFile::Segment { stage: Stage::Cleaned | Stage::Swap | Stage::Deleted, .. }
                | PartitionFile::Temporary
        );
        if goes {
            work.keep_file(dir, &entry.name.to_string_lossy(), Action::Check);
        }
    }
}

/// The segment that a finding is about, by the name of its file.
fn base_of(finding: &Finding) -> Option<(i64, FileKind, Stage)> {
    match names::parse_partition_file(finding.file.file_name()?) {
        PartitionFile::Segment { base, kind, stage } => Some((base, kind, stage)),
        _ => None,
    }
}

fn base_in(file: &Path) -> Option<i64> {
    match names::parse_partition_file(file.file_name()?) {
        PartitionFile::Segment { base, .. } => Some(base),
        _ => None,
    }
}

/// Takes a finding into the plan. Answers whether the log has to be looked at.
fn plan_finding(
    dir: &DataDir,
    folder: &PartitionFolder,
    work: &mut PartitionWork,
    finding: &Finding,
    catalog_is_lost: bool,
    left: &mut Vec<Left>,
) -> Result<bool, RecoverError> {
    let name = finding.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match finding.kind {
        Kind::BadFrame
        | Kind::Zeros
        | Kind::BadChecksum
        | Kind::BadOffset
        | Kind::BadEpoch
        | Kind::TornTail
        | Kind::MissingOffsets
        | Kind::Overlap
        | Kind::WrongFile => return Ok(true),
        Kind::LogStart if finding.consequence == Consequence::Lost => match (topic_id(dir, folder)?, finding.offsets) {
            (Some(id), Some((_, start))) if dir.origin() == Origin::Doze && dir.catalog().is_some() => {
                work.start = Some((id, start));
                let detail = format!("the segments before are gone: the catalog says that the log starts at {start}");
                let step = work.step(dir, Action::RaiseLogStart, "", detail);
                (step.loses, step.offsets) = (true, finding.offsets);
            }
            // A catalog that is made anew goes by the segments.
            _ if catalog_is_lost => {}
            _ => leave(left, finding),
        },
        Kind::TornIndex | Kind::BadIndex | Kind::StaleIndex
            if !matches!(base_of(finding), Some((_, FileKind::TxnIndex, _))) =>
        {
            if let Some((base, ..)) = base_of(finding)
                && work.indexes.insert(base)
            {
                for kind in [FileKind::OffsetIndex, FileKind::TimeIndex] {
                    work.keep_file(dir, &names::segment_file(base, kind), Action::RebuildIndex);
                }
                work.step(dir, Action::RebuildIndex, &name, format!("made anew from the log: {}", finding.detail));
            }
        }
        Kind::BadTxnIndex | Kind::TornIndex | Kind::BadIndex | Kind::StaleIndex => {
            if let Some((base, ..)) = base_of(finding)
                && work.txn_indexes.insert(base)
            {
                let file = names::segment_file(base, FileKind::TxnIndex);
                work.keep_file(dir, &file, Action::RebuildTxnIndex);
                work.step(dir, Action::RebuildTxnIndex, &file, format!("made anew from the log: {}", finding.detail));
            }
        }
        Kind::BadSnapshot | Kind::WrongSnapshot => {
            if matches!(base_of(finding), Some((_, FileKind::Snapshot, Stage::Live)))
                && work.remove.insert(name.clone())
            {
                work.keep_file(dir, &name, Action::RemoveSnapshot);
                work.step(dir, Action::RemoveSnapshot, &name, finding.detail.clone());
            }
        }
        Kind::EpochCheckpoint => {
            if !work.epochs {
                work.epochs = true;
                work.keep_file(dir, names::LEADER_EPOCH_CHECKPOINT, Action::RebuildEpochs);
                let detail = format!("made anew from the log: {}", finding.detail);
                work.step(dir, Action::RebuildEpochs, names::LEADER_EPOCH_CHECKPOINT, detail);
            }
        }
        Kind::PartitionMetadata => match topic_id(dir, folder)? {
            Some(id) if work.metadata.is_none() => {
                work.metadata = Some(id);
                work.keep_file(dir, names::PARTITION_METADATA, Action::WriteMetadata);
                let detail = format!("the topic's id, {id}, is written again");
                work.step(dir, Action::WriteMetadata, names::PARTITION_METADATA, detail);
            }
            Some(_) => {}
            // A rebuilt catalog gives it one.
            None if catalog_is_lost => {}
            None => leave(left, finding),
        },
        Kind::Orphan => {
            if base_of(finding).is_some() && work.remove.insert(name.clone()) {
                work.keep_file(dir, &name, Action::RemoveFile);
                work.step(dir, Action::RemoveFile, &name, finding.detail.clone());
            }
        }
        Kind::Checkpoint => {
            if name == names::CLEANER_CHECKPOINT && work.remove.insert(name.clone()) {
                work.keep_file(dir, &name, Action::RemoveFile);
                work.step(dir, Action::RemoveFile, &name, "the cleaner makes it anew".to_owned());
            } else if name != names::CLEANER_CHECKPOINT {
                leave(left, finding);
            }
        }
        Kind::FlushFailed => {
            work.flush_failed = true;
            work.step(
                dir,
                Action::ClearFlushFailed,
                names::FLUSH_FAILED,
                "a flush failed: the last segment is checked, written over itself and flushed",
            );
        }
        Kind::TopicId if !catalog_is_lost => {
            let (found, expected) = (dir.topic_id(folder)?, topic_id(dir, folder)?);
            match (found, expected) {
                (Some(found), Some(id)) if is_a_slip(&found.to_string(), &id.to_string()) => {
                    work.metadata = Some(id);
                    work.keep_file(dir, names::PARTITION_METADATA, Action::WriteMetadata);
                    let detail = format!("the topic's id is {id}; {found} has one character that is wrong");
                    work.step(dir, Action::WriteMetadata, names::PARTITION_METADATA, detail);
                }
                _ => leave(left, finding),
            }
        }
        // The catalog that is made anew knows it.
        Kind::UnknownPartition if catalog_is_lost => {}
        _ => leave(left, finding),
    }
    Ok(false)
}

/// Whether one id is the other with one character damaged, and not another's.
fn is_a_slip(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().zip(other.bytes()).filter(|(a, b)| a != b).count() == 1
}

/// The id of a partition's topic: as the catalog has it, or the folders of its other partitions.
fn topic_id(dir: &DataDir, folder: &PartitionFolder) -> Result<Option<Uuid>, RecoverError> {
    if let Some(topic) = dir.catalog().and_then(|catalog| catalog.topics().by_name(&folder.topic).cloned()) {
        return Ok(Some(topic.id));
    }
    for other in dir.partitions().iter().filter(|other| other.topic == folder.topic) {
        if let Some(id) = dir.topic_id(other)? {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// The steps for the log files, from what was seen in them.
fn plan_logs(dir: &DataDir, work: &mut PartitionWork) {
    let surveyed = std::mem::take(&mut work.surveyed);
    let counts: Vec<&Surveyed> = surveyed.iter().filter(|file| file.surplus.is_none()).collect();
    if let [.., before, last] = counts[..]
        && !work.trusted
        && last.len == 0
    {
        // Nothing says whether the segment before it was still written to.
        let at_end = before.stretches.iter().filter(|stretch| stretch.end() == before.len);
        work.torn = at_end.map(|stretch| (before.base, stretch.position)).collect();
    }
    for file in &surveyed {
        let name = names::segment_file(file.base, FileKind::Log);
        if let Some(same) = file.surplus {
            work.keep_file(dir, &name, Action::RemoveSurplus);
            let belongs = names::segment_file(file.belongs, FileKind::Log);
            let detail = match same {
                true => format!("it has the bytes of {belongs}, which stays"),
                false => format!("its batches belong into {belongs}, which stays and has others"),
            };
            let step = work.step(dir, Action::RemoveSurplus, &name, detail);
            (step.loses, step.bytes) = (!same, Some(file.len));
            continue;
        }
        if file.is_misnamed() {
            work.keep_file(dir, &name, Action::MoveSegment);
            let to = names::segment_file(file.belongs, FileKind::Log);
            let step = work.step(dir, Action::MoveSegment, &name, format!("its batches belong into {to}"));
            step.offsets = Some((file.belongs, file.end));
        }
        for stretch in &file.stretches {
            plan_stretch(dir, work, file, stretch, &name);
        }
    }
    // A file that is overwritten in a move of others.
    for file in span_of_moves(&surveyed) {
        work.keep_file(dir, &names::segment_file(file.base, FileKind::Log), Action::MoveSegment);
    }
    work.surveyed = surveyed;
}

fn plan_stretch(dir: &DataDir, work: &mut PartitionWork, file: &Surveyed, stretch: &Stretch, name: &str) {
    let loses = work.loses(file, stretch);
    let (from, to) = stretch.offsets;
    let offsets = match to.saturating_sub(from) {
        ..=0 => "no offsets that are known".to_owned(),
        1 => format!("offset {from}"),
        _ => format!("offsets {from} to {}", to - 1),
    };
    let (action, detail) = match stretch.kind {
        StretchKind::Tail if work.trusted => {
            (Action::CutTail, "no good batch is behind it, though the last stop was a clean one".to_owned())
        }
        StretchKind::Tail if loses => {
            (Action::CutTail, format!("no good batch is behind it, and the log went further: {offsets}"))
        }
        StretchKind::Missing => (Action::FillGap, format!("nothing is left of {offsets}; an empty batch says so")),
        StretchKind::Tail => (Action::CutTail, "the log was being written when its broker ended".to_owned()),
        StretchKind::Damaged if work.is_marker(stretch) => {
            let marker = &work.markers[&from];
            let (how, proof) = match marker.committed {
                true => ("committed", "its header says whose it is, and no index has it aborted"),
                false => ("aborted", "the index of aborted transactions has it"),
            };
            let detail = format!(
                "the end of a transaction of producer {}, {how}, is written again: {proof}",
                marker.producer_id
            );
            (Action::RestoreMarker, detail)
        }
        StretchKind::Damaged => (Action::TakeOut, format!("no good batch: {offsets}")),
        StretchKind::Repeated => (Action::TakeOutRepeated, "the same batch is in the log once more".to_owned()),
        StretchKind::Mendable => {
            let fields = stretch.mend.as_ref().map_or("frame", |mend| mend.fields);
            (Action::MendBatch, format!("its {fields} is put right: {offsets}"))
        }
    };
    let path = relative(dir, &work.path.join(name));
    work.pieces.push(Piece {
        file: path,
        position: stretch.position,
        bytes: Some(stretch.bytes),
        offsets: (to > from).then_some(stretch.offsets),
        why: action.name(),
    });
    let step = work.step(dir, action, name, detail);
    (step.position, step.bytes, step.loses) = (Some(stretch.position), Some(stretch.bytes), loses);
    step.offsets = (to > from).then_some(stretch.offsets);
}

/// The files that are written anew together because some of them have each other's names: neighbours in the order in which they
/// belong.
fn span_of_moves(surveyed: &[Surveyed]) -> Vec<&Surveyed> {
    let counts: Vec<&Surveyed> = surveyed.iter().filter(|file| file.surplus.is_none()).collect();
    let moved: Vec<&&Surveyed> = counts.iter().filter(|file| file.is_misnamed()).collect();
    let from = moved.iter().map(|file| file.base.min(file.belongs)).min();
    let to = moved.iter().map(|file| file.base.max(file.belongs)).max();
    match (from, to) {
        (Some(from), Some(to)) => {
            counts.into_iter().filter(|file| (from..=to).contains(&file.belongs) || file.is_misnamed()).collect()
        }
        _ => Vec::new(),
    }
}
