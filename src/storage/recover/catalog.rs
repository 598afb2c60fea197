//! A catalog made anew from the folders of the partitions.
//!
//! What decides:
//!
//! - A folder with a partition's name and files in it is a partition; its topic has as many partitions as the largest number
//!   says. Folders that are missing in between are made at the first use, empty.
//! - A topic has the id that most of its folders have in `partition.metadata`; where that is a tie, the one of the lowest
//!   partition. A folder with another id is left alone and named: it was moved there. Folders without an id get the topic's;
//!   if none has one, a new one is made.
//! - A topic that has nothing but `partition.metadata` in its folders is taken in as well: one that was never used looks like
//!   that. (So does one whose creation was cut off before it was answered; it comes to be there, empty.)
//! - Folders whose names end in `-delete` are no partitions, and are removed by the next start. A topic that the old catalog, if
//!   that much of it can be read, says is deleted is not taken in, so its folders are not brought back to life. Where the old
//!   catalog is lost, a folder that a deletion had not got to cannot be told from one that counts, and comes back.
//! - A log starts where its first segment does. Records below an offset that DeleteRecords had set, in a segment that was still
//!   there, come back.
//! - Of a catalog that is damaged all is taken over that can still be read and agrees with the folders ([`super::takeover`]): the
//!   folders decide which topics there are. With it a topic has as many partitions as the old catalog says, if that is more.
//! - The counter of producer ids starts above every id that is in a log or a snapshot, and a block higher.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use super::error::RecoverError;
use super::takeover::take_over;
use crate::protocol::Uuid;
use crate::storage::catalog::salvage::{Salvaged, salvage};
use crate::storage::catalog::{Catalog, Mutation, PRODUCER_ID_BLOCK, Topic};
use crate::storage::log::{repair, write_partition_metadata};
use crate::storage::names::{self, FileKind, PartitionFile, Stage};
use crate::storage::offline::{DataDir, PartitionFolder};
use crate::storage::store::DirError;

/// What the folders of the partitions do not tell, and a catalog that is gone had.
pub const NOT_REBUILT: &str = "configs of topics and of the broker, committed offsets, consumer and share groups, transactional \
     ids, SCRAM credentials, quotas, ACLs, client-metrics subscriptions, feature levels, the cluster id, and offsets up to which \
     records were deleted within a segment";

/// What a rebuilt catalog has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rebuilt {
    /// Name, id and how many partitions.
    pub topics: Vec<(String, Uuid, i32)>,
    /// The first producer id that is handed out.
    pub next_producer_id: i64,
    /// Folders that were left out, and why.
    pub left_out: Vec<(String, String)>,
    /// What was taken over of the old catalog, and how much of each.
    pub taken_over: Vec<(&'static str, u64)>,
    /// What of it can be read and was not taken over, and why.
    pub not_taken_over: Vec<String>,
    /// What it has not, for a person; `None` where everything was taken over.
    pub missing: Option<String>,
    /// Transactions that are open and that nobody will end: topic, partition, producer id, first offset.
    pub open_transactions: Vec<(String, i32, i64, i64)>,
}

/// Makes the catalog of `dir` anew, in one step: until it is whole the old one is there, or none. What was there has to be kept
/// before.
pub(super) fn rebuild(dir: &DataDir) -> Result<Rebuilt, RecoverError> {
    let (env, fs) = (dir.env(), &*dir.env().fs);
    let salvaged = salvage_of(dir)?;
    let mut deleted = deleted_topics(dir);
    deleted.extend(salvaged.iter().flat_map(|salvaged| salvaged.deletions.iter().map(|topic| topic.id)));
    let known_topic =
        |name: &str| salvaged.iter().flat_map(|salvaged| &salvaged.topics).find(|topic| &*topic.name == name);
    let mut rebuilt = Rebuilt::default();
    let mut mutations = Vec::new();
    let mut largest = -1;
    let mut by_topic: BTreeMap<&str, Vec<&PartitionFolder>> = BTreeMap::new();
    for folder in dir.partitions() {
        by_topic.entry(&folder.topic).or_default().push(folder);
    }
    for (name, folders) in by_topic {
        let mut ids = Vec::new();
        for folder in &folders {
            ids.push(dir.topic_id(folder)?);
        }
        let known: Vec<Uuid> = ids.iter().flatten().copied().collect();
        let count = |id: &Uuid| known.iter().filter(|other| *other == id).count();
        // Of several the first, since the folders are sorted.
        let most = known.iter().rev().max_by_key(|id| count(id)).copied();
        let known = known_topic(name);
        let id = most.or(known.map(|topic| topic.id)).unwrap_or_else(|| Uuid::random(&*env.random));
        if deleted.contains(&id) {
            let why = "the topic is deleted; the next start removes it if its old catalog is put back, else it stays";
            rebuilt.left_out.extend(folders.iter().map(|folder| (folder.name(), why.to_owned())));
            continue;
        }
        let mut partitions = 0;
        for (folder, own) in folders.iter().zip(ids) {
            match own {
                Some(own) if own != id => {
                    let why = format!("it is of the topic with id {own}, and the others of {name} have {id}");
                    rebuilt.left_out.push((folder.name(), why));
                    continue;
                }
                Some(_) => {}
                None => {
                    write_partition_metadata(fs, &folder.path, id)
                        .map_err(DirError::of("write the metadata of", &folder.path))?;
                    fs.sync_dir(&folder.path).map_err(DirError::of("flush", &folder.path))?;
                }
            }
            partitions = partitions.max(folder.partition.saturating_add(1));
            let path: Arc<std::path::Path> = folder.path.as_path().into();
            if let Some(start) = first_segment(dir, folder)? {
                let replay = repair::replay_all(fs, &path)?;
                largest = largest.max(replay.largest_producer_id);
                let open = replay.open.into_iter();
                rebuilt
                    .open_transactions
                    .extend(open.map(|(producer, start)| (name.to_owned(), folder.partition, producer, start)));
                if start > 0 {
                    let raise = Mutation::RaiseLogStart { topic_id: id, partition: folder.partition, offset: start };
                    mutations.push(raise);
                }
            }
        }
        if let Some(known) = known.filter(|known| partitions > 0 && known.id == id) {
            partitions = partitions.max(known.partitions);
        }
        if partitions > 0 {
            make_missing(dir, name, id, partitions, &folders)?;
            mutations.push(Mutation::PutTopic(Topic { name: name.into(), id, partitions }));
            rebuilt.topics.push((name.to_owned(), id, partitions));
        }
    }
    let block = PRODUCER_ID_BLOCK;
    rebuilt.next_producer_id =
        if largest < 0 { block } else { (largest / block).saturating_add(2).saturating_mul(block) };
    mutations.push(Mutation::RaiseNextProducerId { to: rebuilt.next_producer_id });
    rebuilt.missing = missing(salvaged.as_ref());
    let cluster_id = salvaged.as_ref().and_then(|salvaged| salvaged.cluster_id.clone());
    if let Some(salvaged) = salvaged {
        rebuilt.next_producer_id = rebuilt.next_producer_id.max(salvaged.next_producer_id.unwrap_or(0));
        let taken = take_over(salvaged, &rebuilt.topics);
        mutations.extend(taken.mutations);
        rebuilt.taken_over = taken.taken.into_iter().collect();
        rebuilt.not_taken_over = taken.refused;
    }
    let path = dir.catalog_path();
    let temporary = unfinished(path);
    let cluster_id = cluster_id.unwrap_or_else(|| Uuid::random(&*env.random).to_string());
    let catalog = Catalog::create_for(env, &temporary, &cluster_id)?;
    catalog.commit_blocking(mutations)?;
    catalog.close()?;
    fs.rename(&temporary, path).map_err(DirError::of("rename", &temporary))?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(std::path::Path::new("."));
    fs.sync_dir(parent).map_err(DirError::of("flush", parent))?;
    Ok(rebuilt)
}

/// What can be read of the catalog that is there; `None` if there is none.
pub(super) fn salvage_of(dir: &DataDir) -> Result<Option<Salvaged>, DirError> {
    match salvage(dir.env(), dir.catalog_path()) {
        Ok(salvaged) => Ok(Some(salvaged)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(DirError::of("read", dir.catalog_path())(error)),
    }
}

/// What a catalog that is made anew lacks.
pub(super) fn missing(salvaged: Option<&Salvaged>) -> Option<String> {
    match salvaged {
        None => Some(NOT_REBUILT.to_owned()),
        Some(salvaged) if salvaged.is_lost => Some(NOT_REBUILT.to_owned()),
        Some(salvaged) if salvaged.damaged.is_empty() => None,
        Some(salvaged) => Some(format!("what stood in the damaged pages of: {}", salvaged.damaged.join(", "))),
    }
}

/// Where the catalog is made: `meta.db.recovered`. One that a power cut has left is overwritten.
fn unfinished(path: &std::path::Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".recovered");
    name.into()
}

/// The topics that are deleted, if the old catalog can be read that far.
fn deleted_topics(dir: &DataDir) -> HashSet<Uuid> {
    let deletions = dir.catalog().and_then(|catalog| catalog.deletions().ok());
    deletions.into_iter().flatten().map(|topic| topic.id).collect()
}

/// The base offset of the first segment of a partition.
fn first_segment(dir: &DataDir, folder: &PartitionFolder) -> Result<Option<i64>, DirError> {
    let entries = dir.env().fs.list(&folder.path).map_err(DirError::of("list", &folder.path))?;
    let bases = entries.iter().filter_map(|entry| match names::parse_partition_file(&entry.name) {
        PartitionFile::Segment { base, kind: FileKind::Log, stage: Stage::Live } => Some(base),
        _ => None,
    });
    Ok(bases.min())
}

/// Makes the folders of partitions between others that are not there.
fn make_missing(
    dir: &DataDir,
    name: &str,
    id: Uuid,
    partitions: i32,
    folders: &[&PartitionFolder],
) -> Result<(), DirError> {
    let fs = &*dir.env().fs;
    let mut made = false;
    for partition in 0..partitions {
        if folders.iter().any(|folder| folder.partition == partition) {
            continue;
        }
        let path = dir.path().join(names::partition_dir(name, partition));
        fs.create_dir(&path).map_err(DirError::of("create", &path))?;
        write_partition_metadata(fs, &path, id).map_err(DirError::of("write the metadata of", &path))?;
        fs.sync_dir(&path).map_err(DirError::of("flush", &path))?;
        made = true;
    }
    if made { fs.sync_dir(dir.path()).map_err(DirError::of("flush", dir.path())) } else { Ok(()) }
}
