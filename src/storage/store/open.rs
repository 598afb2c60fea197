//! Opening a data directory: recognise it, lock it, open the catalog, clear away what a crash has left.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};

use parking_lot::{Mutex, RwLock};

use super::dirs::{Dirs, Leftover};
use super::error::{DirError, OpenStoreError};
use super::mark::{self, Trust};
use super::{Store, StoreConfig};
use crate::storage::catalog::{self, Catalog, Mutation, Topic};
use crate::storage::names::{self, PartitionDir};
use crate::sys::{DirEntry, Env, LockGuard};

/// Where the catalog is, or is to be.
#[derive(Debug)]
pub(in crate::storage) struct CatalogPlace {
    pub path: PathBuf,
    pub exists: bool,
    /// It is outside the data directory, whose lock says nothing of it.
    pub outside: bool,
}

/// Takes the lock of a data directory, for as long as the guard lives.
pub fn lock_data_dir(env: &Env, data_dir: &Path) -> Result<Box<dyn LockGuard>, OpenStoreError> {
    lock(env, data_dir.join(names::LOCK), data_dir)
}

fn lock(env: &Env, path: PathBuf, what: &Path) -> Result<Box<dyn LockGuard>, OpenStoreError> {
    env.fs.lock(&path).map_err(|e| match e.kind() {
        io::ErrorKind::WouldBlock => OpenStoreError::InUse { path: what.to_owned() },
        _ => DirError::of("lock", &path)(e).into(),
    })
}

/// Whether something is there, or that it cannot be told.
fn exists(env: &Env, path: &Path) -> Result<bool, DirError> {
    env.fs.exists(path).map_err(DirError::of("look at", path))
}

impl Store {
    /// Opens the data directory, making it if there is none.
    pub fn open(env: Env, config: StoreConfig) -> Result<Store, OpenStoreError> {
        let data_dir = &config.data_dir;
        make_data_dir(&env, data_dir)?;
        let dirs = Dirs { env: env.clone(), data_dir: data_dir.as_path().into() };
        let list = || env.fs.list(data_dir).map_err(DirError::of("list", data_dir));
        let inside = data_dir.join(names::CATALOG);
        // A directory that is not doze's is told before so much as a lock file is put into it.
        if config.meta_db.is_some() || !exists(&env, &inside)? {
            let entries = list()?;
            let place = find_catalog(&env, data_dir, config.meta_db.as_deref(), &entries)?;
            if !place.exists {
                recognise(data_dir, &place.path, &entries)?;
                make_names_durable(&env, data_dir)?;
            }
        }
        let mut locks = vec![lock_data_dir(&env, data_dir)?];
        let entries = list()?;
        let place = find_catalog(&env, data_dir, config.meta_db.as_deref(), &entries)?;
        if place.outside {
            if let Some(parent) = place.path.parent() {
                env.fs.create_dir_all(parent).map_err(DirError::of("create", parent))?;
                if !place.exists {
                    make_names_durable(&env, parent)?;
                }
            }
            locks.push(lock(&env, catalog::lock_file(&place.path), &place.path)?);
        }
        let catalog =
            if place.exists { Catalog::open(&env, &place.path)? } else { Catalog::create(&env, &place.path)? };
        // From here on the files may be written to.
        let trust = mark::take(&*env.fs, data_dir)?;
        let started_clean = matches!(trust, Trust::AllBut(_));
        let unknown = tidy(&dirs, &catalog, &entries)?;
        Ok(Store {
            dirs,
            log_config: config.log_config,
            catalog,
            started_clean,
            unknown,
            trust: Mutex::new(trust),
            slots: RwLock::new(BTreeMap::new()),
            admin: Mutex::new(()),
            closed: AtomicBool::new(false),
            config_changes: AtomicU64::new(0),
            locks: Mutex::new(locks),
        })
    }
}

fn make_data_dir(env: &Env, data_dir: &Path) -> Result<(), OpenStoreError> {
    match env.fs.metadata(data_dir) {
        Ok(metadata) if metadata.is_dir => Ok(()),
        Ok(_) => Err(OpenStoreError::NotADataDirectory { path: data_dir.to_owned(), example: "no directory".into() }),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            Ok(env.fs.create_dir_all(data_dir).map_err(DirError::of("create", data_dir))?)
        }
        Err(e) => Err(DirError::of("look at", data_dir)(e).into()),
    }
}

/// Whether a flush was refused for what a directory is, and not because it failed.
fn is_not_ours(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, ReadOnlyFilesystem, Unsupported};
    matches!(error.kind(), InvalidInput | PermissionDenied | ReadOnlyFilesystem | Unsupported)
}

/// Flushes the directories above `dir`. It may have been made by a process that ended before it did that, or by somebody
/// who never does, and then a power cut would take it with all that is in it. Where there is a catalog already, whoever
/// made it has been here.
fn make_names_durable(env: &Env, dir: &Path) -> Result<(), OpenStoreError> {
    for above in dir.ancestors().skip(1) {
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        match env.fs.sync_dir(above) {
            Ok(()) => {}
            // Somebody else's, so that whoever may write there has made what is below it; or nobody writes there, or it cannot
            // be flushed, as on the read-only image that a small machine starts from.
            Err(e) if is_not_ours(&e) => break,
            Err(e) => return Err(DirError::of("flush", above)(e).into()),
        }
    }
    Ok(())
}

/// `meta_db`: where it was said to be.
pub(in crate::storage) fn find_catalog(
    env: &Env,
    data_dir: &Path,
    meta_db: Option<&Path>,
    entries: &[DirEntry],
) -> Result<CatalogPlace, DirError> {
    if let Some(path) = meta_db {
        return Ok(CatalogPlace { path: path.to_owned(), exists: exists(env, path)?, outside: true });
    }
    let inside = data_dir.join(names::CATALOG);
    if exists(env, &inside)? {
        return Ok(CatalogPlace { path: inside, exists: true, outside: false });
    }
    // Where it used to be. A directory that was never used is a fresh start, whatever lies beside it.
    if let Some(parent) = data_dir.parent()
        && entries.iter().any(|entry| is_live_partition(entry) || entry.name == names::CLEAN_SHUTDOWN)
    {
        let beside = parent.join(names::CATALOG);
        if exists(env, &beside)? && catalog::looks_like_catalog(env, &beside).map_err(DirError::of("read", &beside))? {
            tracing::info!(
                catalog = %beside.display(),
                "using the catalog beside the data directory; move it in, to {}, while doze is stopped",
                inside.display()
            );
            return Ok(CatalogPlace { path: beside, exists: true, outside: true });
        }
    }
    Ok(CatalogPlace { path: inside, exists: false, outside: false })
}

/// Whether a directory without a catalog may become a data directory.
fn recognise(data_dir: &Path, catalog: &Path, entries: &[DirEntry]) -> Result<(), OpenStoreError> {
    let path = || data_dir.to_owned();
    if entries.iter().any(|entry| entry.name == names::KAFKA_META_PROPERTIES) {
        return Err(OpenStoreError::KafkaLogDirectory { path: path() });
    }
    let name = |entry: &DirEntry| entry.name.to_string_lossy().into_owned();
    let partitions: Vec<&DirEntry> = entries.iter().filter(|entry| is_live_partition(entry)).collect();
    if let Some(example) = partitions.first() {
        let (partitions, example) = (partitions.len(), name(example));
        return Err(OpenStoreError::CatalogMissing { path: path(), catalog: catalog.to_owned(), partitions, example });
    }
    match entries.iter().find(|entry| !is_harmless(entry)) {
        Some(foreign) => Err(OpenStoreError::NotADataDirectory { path: path(), example: name(foreign) }),
        None => Ok(()),
    }
}

fn is_live_partition(entry: &DirEntry) -> bool {
    entry.is_dir && matches!(names::parse_partition_dir(&entry.name), Some(PartitionDir::Live { .. }))
}

/// What a data directory that never was used may hold: doze's own beginnings, and what systems leave in directories.
fn is_harmless(entry: &DirEntry) -> bool {
    let Some(name) = entry.name.to_str() else { return false };
    let own = [names::LOCK, names::CATALOG, names::CLEAN_SHUTDOWN, names::SCRUB_CHECKPOINT]
        .iter()
        .any(|own| name.starts_with(own));
    own || name == "lost+found" || (name.starts_with('.') && !entry.is_dir)
}

/// Removes what interrupted operations have left; answers the directories that are nobody's.
fn tidy(dirs: &Dirs, catalog: &Catalog, entries: &[DirEntry]) -> Result<Vec<PathBuf>, OpenStoreError> {
    let topics = catalog.topics();
    let deletions = catalog.deletions().map_err(|e| DirError::of("read", catalog.path())(io::Error::other(e)))?;
    let deleted: HashSet<_> = deletions.iter().map(|topic: &Topic| topic.id).collect();
    mark::tidy(&*dirs.env.fs, &dirs.data_dir, entries);
    let mut unfinished = HashSet::new();
    let mut unknown = Vec::new();
    for entry in entries.iter().filter(|entry| entry.is_dir) {
        let path = dirs.data_dir.join(&entry.name);
        match names::parse_partition_dir(&entry.name) {
            None => {}
            Some(PartitionDir::Deleted) => {
                if let Err(error) = dirs.remove_deleted(&path) {
                    tracing::warn!(%error, source = %error.source, "a deleted partition is still there");
                }
            }
            Some(PartitionDir::Live { topic, partition }) => {
                if topics.by_name(&topic).is_some_and(|topic| partition < topic.partitions) {
                    continue;
                }
                match dirs.examine(&path, |id| deleted.contains(&id))? {
                    Leftover::HalfMade => dirs.discard(&path),
                    Leftover::Deleted(id) => {
                        let removed = dirs.rename_deleted(&topic, partition);
                        if let Err(error) = removed.and_then(|to| dirs.remove_deleted(&to)) {
                            tracing::warn!(%error, source = %error.source, "a deleted partition is still there");
                            unfinished.insert(id);
                        }
                    }
                    Leftover::Unknown => {
                        tracing::warn!(dir = %path.display(), "this partition is not in the catalog; its data is left alone");
                        unknown.push(path);
                    }
                }
            }
        }
    }
    let finished = deleted.difference(&unfinished);
    let forget: Vec<Mutation> = finished.map(|id| Mutation::ForgetDeletion { topic_id: *id }).collect();
    if !forget.is_empty() {
        dirs.sync()?;
        if let Err(error) = catalog.commit_blocking(forget) {
            tracing::warn!(%error, "cannot note that deleted topics are gone; the next start will");
        }
    }
    unknown.sort();
    Ok(unknown)
}
