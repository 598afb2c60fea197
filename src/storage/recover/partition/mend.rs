//! Taking the steps for one partition.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::{PartitionWork, span_of_moves};
use crate::storage::log::repair::{self, Choices, Stretch, StretchKind, Surveyed};
use crate::storage::log::{LeaderEpochs, LogConfig, PartitionLog, read_leader_epochs, write_partition_metadata};
use crate::storage::names::{self, FileKind};
use crate::storage::offline::Origin;
use crate::storage::recover::RecoverError;
use crate::storage::store::DirError;
use crate::sys::{Env, FileSystem};

/// What became of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::storage::recover) struct Mended {
    /// The next start may take the files as they are.
    pub flushed: bool,
}

/// Takes the steps for a partition. Where losses are not accepted, what loses is left as it is.
pub(in crate::storage::recover) fn mend(
    env: &Env,
    origin: Origin,
    work: &PartitionWork,
    config: &LogConfig,
    log_start: i64,
    accept_loss: bool,
) -> Result<Mended, RecoverError> {
    let fs = &*env.fs;
    let dir: Arc<Path> = work.path.as_path().into();
    let sync = || fs.sync_dir(&dir).map_err(DirError::of("flush", &dir));
    if let Some(id) = work.make {
        if !accept_loss {
            return Ok(Mended { flushed: true });
        }
        match fs.create_dir(&dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(DirError::of("create", &dir)(error).into());
            }
            _ => {}
        }
        write_partition_metadata(fs, &dir, id).map_err(DirError::of("write the metadata of", &dir))?;
        sync()?;
        let parent = dir.parent().unwrap_or(Path::new("."));
        fs.sync_dir(parent).map_err(DirError::of("flush", parent))?;
        return Ok(Mended { flushed: true });
    }
    if work.finish_rewrite {
        repair::finish_rewrite(fs, &dir)?;
        return Ok(Mended { flushed: work.trusted });
    }
    let interval = config.index_interval_bytes;
    let mut whole = true;
    for file in &work.surveyed {
        whole &= !work.is_left_out(file, accept_loss);
    }
    for name in &work.remove {
        remove(fs, &dir.join(name))?;
    }
    for file in work.surveyed.iter().filter(|file| file.surplus.is_some_and(|same| same || accept_loss)) {
        for kind in [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TxnIndex, FileKind::Log] {
            remove(fs, &dir.join(names::segment_file(file.base, kind)))?;
        }
    }
    if !work.remove.is_empty() || work.surveyed.iter().any(|file| file.surplus.is_some()) {
        sync()?;
    }
    let mut txn_indexes = work.txn_indexes.clone();
    let mut indexes = work.indexes.clone();
    restage(env, work, &dir, interval, accept_loss, &mut txn_indexes, &mut indexes)?;
    for base in &indexes {
        if fs.exists(&dir.join(names::segment_file(*base, FileKind::Log))).map_err(DirError::of("look at", &dir))? {
            repair::rebuild_index(fs, &dir, *base, interval)?;
        }
    }
    if !txn_indexes.is_empty() || work.epochs {
        let replay = repair::replay_all(fs, &dir)?;
        for base in &txn_indexes {
            let aborted = replay.aborted.get(base).map_or(&[][..], Vec::as_slice);
            repair::rebuild_txn_index(fs, &dir, *base, aborted)?;
        }
        if work.epochs {
            repair::rebuild_epochs(fs, &dir, &replay.epochs)?;
        }
    }
    if let Some(id) = work.metadata {
        write_partition_metadata(fs, &dir, id).map_err(DirError::of("write the metadata of", &dir))?;
    }
    sync()?;
    // What is left at the end of a log that a start would take as it is, the engine would cut.
    let keeps_tail = work.trusted && !whole;
    if work.reopen || (!work.remove.is_empty() && !keeps_tail) {
        reopen(env, origin, work, &dir, config, log_start, whole)?;
    }
    Ok(Mended { flushed: work.trusted || work.reopen })
}

fn remove(fs: &dyn FileSystem, path: &Path) -> Result<(), DirError> {
    match fs.remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(DirError::of("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Writes anew the segments that need it, and cuts the tail.
fn restage(
    env: &Env,
    work: &PartitionWork,
    dir: &Arc<Path>,
    interval: u32,
    accept_loss: bool,
    txn_indexes: &mut BTreeSet<i64>,
    indexes: &mut BTreeSet<i64>,
) -> Result<(), RecoverError> {
    let fs = &*env.fs;
    let epochs = read_leader_epochs(fs, dir).map_err(DirError::of("read the leader epochs of", dir))?;
    let epochs = LeaderEpochs::new(epochs.unwrap_or_default());
    let span = span_of_moves(&work.surveyed);
    let mut groups: Vec<Vec<&Surveyed>> = Vec::new();
    if !span.is_empty() {
        groups.push(span.clone());
    }
    for file in work.surveyed.iter().filter(|file| file.surplus.is_none()) {
        if span.iter().any(|moved| moved.base == file.base) {
            continue;
        }
        // What leaves a gap is written anew as well, with a batch for the offsets.
        let is_cut = |stretch: &Stretch| stretch.kind == StretchKind::Tail && stretch.offsets.1 <= file.end;
        let in_the_middle = file
            .stretches
            .iter()
            .any(|stretch| !is_cut(stretch) && (stretch.mend.is_some() || work.goes(file, stretch, accept_loss)));
        let tail = file.stretches.last().filter(|stretch| stretch.kind == StretchKind::Tail);
        if in_the_middle {
            groups.push(vec![file]);
        } else if let Some(tail) = tail.filter(|tail| work.goes(file, tail, accept_loss)) {
            let path = dir.join(names::segment_file(file.base, FileKind::Log));
            repair::cut(fs, &path, tail.position)?;
            indexes.insert(file.base);
        }
    }
    for group in groups {
        let mut aborted = Vec::new();
        for file in &group {
            let known = match file.is_misnamed() || txn_indexes.contains(&file.base) {
                true => None,
                false => repair::aborted_of(fs, dir, file.base)?,
            };
            if known.is_none() {
                txn_indexes.insert(file.belongs);
            }
            aborted.push(known.unwrap_or_default());
            indexes.remove(&file.base);
        }
        let what = Choices {
            goes: &|file, stretch| work.goes(file, stretch, accept_loss),
            fills: &|file, stretch| work.fills(file, stretch),
            markers: &work.markers,
        };
        repair::restage(&env.fs, dir, &group, &aborted, interval, &epochs, what)?;
    }
    Ok(())
}

/// Has the engine open the log, which checks it, and close it, which flushes it and writes what lets a start trust it.
fn reopen(
    env: &Env,
    origin: Origin,
    work: &PartitionWork,
    dir: &Arc<Path>,
    config: &LogConfig,
    log_start: i64,
    whole: bool,
) -> Result<(), RecoverError> {
    let path = dir.to_path_buf();
    // Where a log starts is Apache Kafka's own affair.
    let log_start = if origin == Origin::Kafka { 0 } else { log_start };
    // Not taken at its word, it writes a new snapshot for one that was removed.
    let clean = work.trusted && work.remove.is_empty();
    let log = PartitionLog::open(env.clone(), path.clone(), config.clone(), clean, log_start)
        .map_err(|source| RecoverError::Open { dir: path.clone(), source })?;
    let found = log.offsets().end;
    log.close().map_err(|source| RecoverError::Close { dir: path.clone(), source })?;
    let mut ends = work.surveyed.iter().filter(|file| file.surplus.is_none()).filter_map(|file| {
        let filled = file.stretches.iter().filter(|stretch| work.fills(file, stretch)).map(|stretch| stretch.offsets.1);
        filled.max().or((file.good > 0).then_some(file.end)).map(|end| end.max(file.end))
    });
    match ends.next_back() {
        Some(expected) if whole && expected != found && found > log_start => {
            Err(RecoverError::Unexpected { dir: path, found, expected })
        }
        _ => Ok(()),
    }
}
