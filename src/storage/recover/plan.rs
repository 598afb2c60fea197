//! What is to be done to a directory, step by step. Made from what a verification found and a closer look at the logs that
//! have damage; nothing is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use super::catalog;
use super::error::RecoverError;
use super::partition::{self, PartitionWork};
use super::quarantine::Piece;
use crate::storage::names;
use crate::storage::offline::{CatalogState, DataDir, Origin, PartitionFolder, Stop};
use crate::storage::verify::{Consequence, Finding, Kind, Repair, Report};

macro_rules! actions {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// What a step does. The names are what JSON and the manifest have: they stay as they are.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Action {
            $($(#[$doc])* $variant,)*
        }

        impl Action {
            pub const ALL: &[Action] = &[$(Action::$variant,)*];

            pub fn name(self) -> &'static str {
                match self {
                    $(Action::$variant => $text,)*
                }
            }
        }
    };
}

actions! {
    /// Cuts what is behind the last good batch off a log.
    CutTail = "cut-tail",
    /// Takes what is no good batch out of a log; what comes after it stays, at its offsets.
    TakeOut = "take-out",
    /// Writes the end marker of a transaction again where one rotted, as there is proof of what it said.
    RestoreMarker = "restore-marker",
    /// Writes an empty batch for offsets that are in no batch.
    FillGap = "fill-gap",
    /// Takes a batch out that is in the log once more.
    TakeOutRepeated = "take-out-repeated",
    /// Puts the frame of a batch right: its length, magic byte, base offset or leader epoch.
    MendBatch = "mend-batch",
    /// Gives a log file the name that its batches belong under.
    MoveSegment = "move-segment",
    /// Removes a log file whose batches are in another one.
    RemoveSurplus = "remove-surplus",
    /// Finishes or clears away a rewrite of segments that was interrupted.
    FinishRewrite = "finish-rewrite",
    /// Makes the offset index and the time index of a segment anew.
    RebuildIndex = "rebuild-index",
    /// Makes the index of aborted transactions of a segment anew.
    RebuildTxnIndex = "rebuild-txn-index",
    /// Removes a producer snapshot; the log and earlier snapshots tell the producers.
    RemoveSnapshot = "remove-snapshot",
    /// Makes the leader epochs anew from the batches.
    RebuildEpochs = "rebuild-epochs",
    /// Writes the topic's id into the partition's folder.
    WriteMetadata = "write-metadata",
    /// Removes a file that belongs to no segment, or makes no sense and is made anew in time.
    RemoveFile = "remove-file",
    /// Writes the last segment over itself, checks and flushes it, after a flush that failed.
    ClearFlushFailed = "clear-flush-failed",
    /// Makes the folder of a partition that is gone, with an empty log.
    MakePartition = "make-partition",
    /// Has the catalog say that a log starts where its first segment does.
    RaiseLogStart = "raise-log-start",
    /// Makes the catalog anew from the folders of the partitions.
    RebuildCatalog = "rebuild-catalog",
    /// Checks and flushes the log after an unclean stop, writes its indexes and a producer snapshot.
    Check = "check",
    /// Leaves the mark of a clean stop.
    CleanMark = "clean-mark",
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One step of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub topic: Option<String>,
    pub partition: Option<i32>,
    pub action: Action,
    /// The file or folder, from the data directory.
    pub file: PathBuf,
    /// Where in the file, in bytes.
    pub position: Option<u64>,
    /// How many bytes of the file are removed or put right.
    pub bytes: Option<u64>,
    /// The offsets that are or were in them: from, and the first after.
    pub offsets: Option<(i64, i64)>,
    /// Records that may have been acknowledged go with it: it is only done if that is accepted.
    pub loses: bool,
    /// For a person, in a sentence without a full stop.
    pub detail: String,
}

/// Something that no recovery puts right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    pub finding: Finding,
    /// Nothing of it can come back, and nothing is in the way: another run would say the same.
    pub is_history: bool,
}

/// What is to be done. Holds for as long as the directory it was made of is held.
#[derive(Debug)]
pub struct Plan {
    /// In the order in which they are done.
    pub steps: Vec<Step>,
    pub left: Vec<Left>,
    pub(super) partitions: Vec<PartitionWork>,
    /// The catalog is made anew.
    pub(super) rebuild_catalog: bool,
    /// A mark of a clean stop is to be there at the end.
    pub(super) leave_mark: bool,
    /// Folders that a start would check and that were not checked here.
    pub(super) unchecked: Vec<String>,
    /// Of the catalog and the directory itself.
    pub(super) pieces: Vec<Piece>,
}

impl Plan {
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The steps with which records go.
    pub fn losing(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| step.loses)
    }
}

/// Makes the plan for a directory of which `report` has what was found. `progress` is told bytes that were read.
pub fn plan(dir: &DataDir, report: &Report, progress: &mut dyn FnMut(u64)) -> Result<Plan, RecoverError> {
    let mut plan = Plan {
        steps: Vec::new(),
        left: Vec::new(),
        partitions: Vec::new(),
        rebuild_catalog: false,
        leave_mark: false,
        unchecked: Vec::new(),
        pieces: Vec::new(),
    };
    let mut by_partition: BTreeMap<(&str, i32), Vec<&Finding>> = BTreeMap::new();
    for finding in &report.findings {
        match (&finding.topic, finding.partition) {
            (Some(topic), Some(partition)) => by_partition.entry((topic, partition)).or_default().push(finding),
            _ => plan_directory(dir, &mut plan, finding),
        }
    }
    let catalog_is_lost = matches!(dir.catalog_state(), CatalogState::Missing | CatalogState::Damaged { .. });
    if dir.origin() == Origin::Doze && catalog_is_lost && !dir.partitions().is_empty() {
        plan.rebuild_catalog = true;
    }
    let folders: BTreeMap<(&str, i32), &PartitionFolder> =
        dir.partitions().iter().map(|folder| ((folder.topic.as_str(), folder.partition), folder)).collect();
    let mut asked: BTreeSet<(&str, i32)> = by_partition.keys().copied().collect();
    if dir.origin() == Origin::Doze {
        asked.extend(folders.keys().filter(|key| !dir.is_trusted(&names::partition_dir(key.0, key.1))));
    }
    for key in asked {
        if dir.only().is_some_and(|only| only != key) {
            continue;
        }
        let findings = by_partition.remove(&key).unwrap_or_default();
        let work = match folders.get(&key) {
            Some(folder) => partition::plan(dir, folder, &findings, plan.rebuild_catalog, &mut plan.left, progress)?,
            None => partition::plan_missing(dir, key.0, key.1, &findings, &mut plan.left),
        };
        if let Some(work) = work {
            plan.steps.extend(work.steps.iter().cloned());
            plan.partitions.push(work);
        } else if findings.iter().any(|finding| finding.kind == Kind::Unreadable)
            && !dir.is_trusted(&names::partition_dir(key.0, key.1))
        {
            plan.unchecked.push(names::partition_dir(key.0, key.1));
        }
    }
    if plan.rebuild_catalog {
        plan_catalog(dir, &mut plan)?;
    }
    let stopped_clean = matches!(dir.stop(), Stop::Clean { unchecked } if unchecked.is_empty());
    // One partition alone says nothing of the others.
    let all = dir.only().is_none() && dir.origin() == Origin::Doze;
    if all && (!stopped_clean || !plan.steps.is_empty()) {
        plan.leave_mark = true;
        let unchecked = match dir.stop() {
            Stop::Clean { unchecked } => unchecked.len(),
            Stop::Unclean | Stop::Nonsense => usize::MAX,
        };
        if !stopped_clean && plan.unchecked.len() < unchecked {
            plan.steps.push(Step {
                topic: None,
                partition: None,
                action: Action::CleanMark,
                file: names::CLEAN_SHUTDOWN.into(),
                position: None,
                bytes: None,
                offsets: None,
                loses: false,
                detail: "when everything is checked and on the medium, the mark of a clean stop is left".into(),
            });
        }
    }
    Ok(plan)
}

/// What is found of the directory as a whole, or of a topic.
fn plan_directory(dir: &DataDir, plan: &mut Plan, finding: &Finding) {
    match finding.kind {
        Kind::CatalogMissing | Kind::CatalogDamaged if dir.origin() == Origin::Doze => plan.rebuild_catalog = true,
        // It is made anew with the others.
        Kind::CleanMark => {}
        _ => leave(&mut plan.left, finding),
    }
}

/// Takes note of what is not put right, where it is worth a note.
pub(super) fn leave(left: &mut Vec<Left>, finding: &Finding) {
    if finding.consequence == Consequence::Harmless || matches!(finding.repair, Repair::Start | Repair::Nothing) {
        if finding.consequence == Consequence::Lost {
            left.push(Left { finding: finding.clone(), is_history: true });
        }
        return;
    }
    let is_history = matches!(finding.kind, Kind::MissingOffsets | Kind::EmptyPartition);
    left.push(Left { finding: finding.clone(), is_history });
}

fn plan_catalog(dir: &DataDir, plan: &mut Plan) -> Result<(), RecoverError> {
    let salvaged = catalog::salvage_of(dir)?;
    let path = dir.catalog_path();
    let file = path.strip_prefix(dir.path()).unwrap_or(path).to_owned();
    let exists = dir.env().fs.exists(path).unwrap_or(false);
    let bytes = if exists { dir.env().fs.metadata(path).ok().map(|metadata| metadata.len) } else { None };
    let why = match dir.catalog_state() {
        CatalogState::Missing => "it is missing".to_owned(),
        CatalogState::Damaged { reason } | CatalogState::Unreadable { reason } => reason.clone(),
        CatalogState::Open(_) | CatalogState::None => "its pages are damaged".to_owned(),
    };
    if exists {
        plan.pieces.push(Piece {
            file: file.clone(),
            position: 0,
            bytes: None,
            offsets: None,
            why: Action::RebuildCatalog.name(),
        });
    }
    plan.steps.push(Step {
        topic: None,
        partition: None,
        action: Action::RebuildCatalog,
        file,
        position: None,
        bytes,
        offsets: None,
        loses: exists,
        detail: match catalog::missing(salvaged.as_ref()) {
            Some(missing) => {
                format!("the catalog is made anew from the folders of the partitions and what can be read of it: {why}; missing will be: {missing}")
            }
            None => format!("the catalog is made anew from the folders of the partitions and all that it has: {why}"),
        },
    });
    Ok(())
}

/// A path as it is named in steps and findings.
pub(super) fn relative(dir: &DataDir, path: &Path) -> PathBuf {
    path.strip_prefix(dir.path()).unwrap_or(path).to_owned()
}
