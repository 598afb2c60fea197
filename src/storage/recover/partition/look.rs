//! A closer look at a log that has damage: what the look at its bytes does not tell.

use std::path::Path;

use super::{PartitionWork, base_of};
use crate::storage::log::repair::{self, Stretch, StretchKind, Surveyed, Trust};
use crate::storage::log::{LeaderEpochs, read_leader_epochs};
use crate::storage::names::{self, FileKind};
use crate::storage::offline::DataDir;
use crate::storage::recover::RecoverError;
use crate::storage::recover::plan::{Action, Left, leave};
use crate::storage::store::DirError;
use crate::storage::verify::{Consequence, Finding, Kind};

/// Adds the offsets that are in no batch to what the look at the logs has found, and those that a log has reached that ends before.
pub(super) fn add_missing(work: &mut PartitionWork, findings: &[&Finding], left: &mut Vec<Left>) {
    let is_moved = work.surveyed.iter().any(|file| file.is_misnamed() || file.surplus.is_some());
    for finding in findings.iter().filter(|finding| finding.consequence == Consequence::Lost) {
        let (Some((base, FileKind::Log, _)), Some((from, to))) = (base_of(finding), finding.offsets) else { continue };
        let Some(file) = work.surveyed.iter_mut().find(|file| file.base == base && file.surplus.is_none()) else {
            continue;
        };
        if let Some(tail) = file.stretches.last_mut().filter(|stretch| stretch.kind == StretchKind::Tail) {
            if to > file.end && repair::gap_fits(file.end, to) {
                tail.offsets = (file.end, to);
                work.reached = Some(to);
            }
            continue;
        }
        if finding.kind != Kind::MissingOffsets {
            continue;
        }
        let position = finding.position.unwrap_or(file.len);
        let is_known = file.stretches.iter().any(|stretch| (stretch.position..=stretch.end()).contains(&position));
        let to = file.next.map_or(to, |next| to.min(next));
        if is_moved || is_known {
            // It is looked at again once that is put right.
        } else if repair::gap_fits(from, to) {
            file.stretches.push(Stretch {
                position,
                bytes: 0,
                offsets: (from, to),
                kind: StretchKind::Missing,
                mend: None,
            });
            file.stretches.sort_by_key(|stretch| stretch.position);
        } else {
            leave(left, finding);
        }
    }
}

/// What of a segment's index of aborted transactions can be believed.
pub(super) fn trust(work: &PartitionWork, file: &Surveyed) -> Trust {
    let is_open =
        |base: i64| work.surveyed.iter().any(|last| last.base == base && last.len == 0 && last.next.is_none());
    match file.next {
        _ if file.is_misnamed() || work.txn_indexes.contains(&file.base) => Trust::Nothing,
        _ if work.trusted => Trust::Whole,
        // The last one's is only whole after a clean stop, and before an empty one nothing says which was the last.
        None => Trust::Entries,
        Some(next) if is_open(next) => Trust::Nothing,
        Some(_) => Trust::Whole,
    }
}

/// Batches whose leader epoch is wrong get the right one. Where it is not they that are wrong, the checkpoint is, and is made anew.
pub(super) fn mend_epochs(
    dir: &DataDir,
    work: &mut PartitionWork,
    findings: &[&Finding],
    left: &mut Vec<Left>,
) -> Result<(), RecoverError> {
    let fs = &*dir.env().fs;
    let of_epochs: Vec<&&Finding> = findings.iter().filter(|finding| finding.kind == Kind::BadEpoch).collect();
    if of_epochs.is_empty() {
        return Ok(());
    }
    let entries = read_leader_epochs(fs, &work.path).map_err(DirError::of("read the leader epochs of", &work.path))?;
    let epochs = LeaderEpochs::new(entries.clone().unwrap_or_default());
    let mut unmended = Vec::new();
    for finding in of_epochs {
        let base = base_of(finding).map(|(base, ..)| base);
        let file = work.surveyed.iter_mut().find(|file| Some(file.base) == base && file.surplus.is_none());
        let mended = match (file, finding.position, finding.bytes) {
            (Some(file), Some(position), Some(bytes)) if !file.is_misnamed() => {
                repair::mend_epochs(fs, &work.path, file, position, bytes, &epochs)?
            }
            _ => false,
        };
        if !mended {
            unmended.push(*finding);
        }
    }
    if unmended.is_empty() || work.epochs {
        return Ok(());
    }
    let folder: std::sync::Arc<Path> = work.path.as_path().into();
    if entries.as_ref() == Some(&repair::replay_all(fs, &folder)?.epochs) {
        // It says what the log does already.
        unmended.iter().for_each(|finding| leave(left, finding));
        return Ok(());
    }
    work.epochs = true;
    work.keep_file(dir, names::LEADER_EPOCH_CHECKPOINT, Action::RebuildEpochs);
    let detail = format!("made anew from the log: {}", unmended[0].detail);
    work.step(dir, Action::RebuildEpochs, names::LEADER_EPOCH_CHECKPOINT, detail);
    Ok(())
}
