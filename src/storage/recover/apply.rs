//! Taking the steps of a plan.

use super::catalog::{self, Rebuilt};
use super::error::RecoverError;
use super::partition;
use super::plan::Plan;
use super::quarantine::{self, Kept, Piece};
use crate::storage::catalog::{Catalog, CatalogError, ConfigMap, Mutation, ResourceType};
use crate::storage::log::LogConfig;
use crate::storage::names;
use crate::storage::offline::{CatalogState, DataDir, Origin, Stop, kafka_mark};
use crate::storage::store::{DirError, LogConfigOf, leave_mark, take_mark};

/// How a plan is to be carried out.
#[derive(Clone)]
pub struct Options {
    /// Steps that lose records are taken as well.
    pub accept_loss: bool,
    /// What tells this recovery's quarantine folder from others: a time.
    pub label: String,
    /// What a topic's configs mean to its logs.
    pub log_config: LogConfigOf,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("accept_loss", &self.accept_loss)
            .field("label", &self.label)
            .finish_non_exhaustive()
    }
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Where what was removed is kept, if anything was.
    pub kept: Option<Kept>,
    /// Steps that were left out since they lose records: their places in [`Plan::steps`].
    pub left_out: Vec<usize>,
    /// What a rebuilt catalog has.
    pub rebuilt: Option<Rebuilt>,
    /// The mark of a clean stop is there.
    pub marked_clean: bool,
    /// Folders of partitions that the mark, if there is one, does not vouch for.
    pub unchecked: Vec<String>,
}

/// Takes the steps of `plan`, which was made of `dir` as it is. `progress` is told what is being worked on.
///
/// Whatever ends it in between, another recovery goes on from there; the directory counts as stopped uncleanly then.
pub fn apply(
    dir: &DataDir,
    plan: &Plan,
    options: &Options,
    progress: &mut dyn FnMut(&str),
) -> Result<Applied, RecoverError> {
    let mut applied = Applied::default();
    if plan.is_empty() {
        return Ok(applied);
    }
    let accept = options.accept_loss;
    let done = |at: &usize| accept || !plan.steps[*at].loses;
    applied.left_out = (0..plan.steps.len()).filter(|at| !done(at)).collect();
    if applied.left_out.len() == plan.steps.len() {
        return Ok(applied);
    }
    progress("keeping what is removed");
    applied.kept = quarantine::keep(dir, &options.label, &pieces(plan, accept))?;
    let (env, fs) = (dir.env(), &*dir.env().fs);
    let had_kafka_mark = take_mark_away(dir)?;
    for work in &plan.partitions {
        let name = names::partition_dir(&work.topic, work.partition);
        progress(&name);
        let configs = dir.catalog().map(|catalog| catalog.configs());
        let own = configs.as_ref().and_then(|configs| configs.get(ResourceType::Topic, &work.topic).cloned());
        let config: LogConfig = (options.log_config)(own.as_deref().unwrap_or(&ConfigMap::new()));
        let mended = partition::mend(env, dir.origin(), work, &config, log_start(dir, work, accept)?, accept)?;
        if !mended.flushed {
            applied.unchecked.push(name);
        }
    }
    let starts = plan.partitions.iter().filter_map(|work| Some((work.partition, work.raises_start(accept)?)));
    let starts: Vec<Mutation> =
        starts.map(|(partition, (topic_id, offset))| Mutation::RaiseLogStart { topic_id, partition, offset }).collect();
    let rebuild = plan.rebuild_catalog && (accept || !plan.pieces_of_catalog());
    if rebuild {
        progress(names::CATALOG);
        applied.rebuilt = Some(catalog::rebuild(dir)?);
    } else if let CatalogState::Open(_) = dir.catalog_state()
        && (!starts.is_empty() || (plan.leave_mark && !matches!(dir.stop(), Stop::Clean { .. })))
    {
        // What an unclean stop has left of it is written over itself, and flushed.
        let catalog = Catalog::open(env, dir.catalog_path())?;
        if !starts.is_empty() {
            catalog.commit_blocking(starts)?;
        }
        catalog.close()?;
    }
    let catalog_is_sound = !plan.rebuild_catalog || rebuild;
    if plan.leave_mark && catalog_is_sound {
        let mut unchecked = applied.unchecked.clone();
        unchecked.extend(plan.unchecked.iter().cloned());
        if let Stop::Clean { unchecked: before } = dir.stop() {
            // Those that have no log any more need no checking.
            let seen = |name: &String| plan.partitions.iter().any(|work| *name == work.name());
            let exists = |name: &String| dir.partitions().iter().any(|folder| folder.name() == *name);
            let rest = before.iter().filter(|name| !seen(name) && exists(name) && !unchecked.contains(name));
            let rest: Vec<String> = rest.cloned().collect();
            unchecked.extend(rest);
        }
        unchecked.sort();
        leave_mark(fs, dir.path(), &unchecked)?;
        (applied.marked_clean, applied.unchecked) = (true, unchecked);
    }
    match had_kafka_mark {
        true if applied.unchecked.is_empty() => {
            kafka_mark::put_back(fs, dir.path())?;
            applied.marked_clean = true;
        }
        true => kafka_mark::discard(fs, dir.path())?,
        false => {}
    }
    Ok(applied)
}

impl Plan {
    /// Whether a catalog that is there is replaced: what it has is lost.
    fn pieces_of_catalog(&self) -> bool {
        !self.pieces.is_empty()
    }
}

/// What is removed, of the steps that are taken.
fn pieces(plan: &Plan, accept_loss: bool) -> Vec<Piece> {
    let mut pieces = Vec::new();
    if accept_loss {
        pieces.extend(plan.pieces.iter().cloned());
    }
    for work in &plan.partitions {
        let refused: Vec<_> = work.steps.iter().filter(|step| step.loses && !accept_loss).collect();
        let is_refused = |piece: &Piece| {
            refused.iter().any(|step| {
                step.file == piece.file
                    && step.action.name() == piece.why
                    && (piece.bytes.is_none() || step.position == Some(piece.position))
            })
        };
        pieces.extend(work.pieces.iter().filter(|piece| !is_refused(piece)).cloned());
    }
    pieces
}

/// The first offset that counts of a partition, as the catalog has it.
fn log_start(dir: &DataDir, work: &partition::PartitionWork, accept_loss: bool) -> Result<i64, CatalogError> {
    if let Some((_, start)) = work.raises_start(accept_loss) {
        return Ok(start);
    }
    let Some(catalog) = dir.catalog() else { return Ok(0) };
    match catalog.topics().by_name(&work.topic) {
        Some(topic) => catalog.log_start(topic.id, work.partition),
        None => Ok(0),
    }
}

/// Takes the mark of a clean stop away, durably, so that whatever interrupts what follows leaves a directory that is checked.
/// Answers whether there was one of Apache Kafka's.
fn take_mark_away(dir: &DataDir) -> Result<bool, DirError> {
    let (fs, path) = (&*dir.env().fs, dir.path());
    if dir.origin() == Origin::Doze {
        take_mark(fs, path)?;
        return Ok(false);
    }
    kafka_mark::put_aside(fs, path)
}
