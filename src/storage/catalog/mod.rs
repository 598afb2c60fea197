//! The catalog, `meta.db`: everything durable that is not a record. Topics and their ids, configs, committed offsets,
//! groups, transactional ids, log start offsets, the producer-id counter, the cluster id.
//!
//! [`tables`] says what stands in the file. All changes go through [`Catalog::commit`], which promises:
//! - A change that was answered with `Ok` is on the medium; one that was answered with an error is not there, now or
//!   after a restart. (If its fsync is what failed, it may turn out to be there after the restart.)
//! - Changes are made in the order of the calls, a batch all or none, and everything that is queued when a write starts
//!   shares one transaction and one fsync.
//! - On a full disk changes are refused and reads go on; changes work again when there is space. After a failed fsync
//!   changes are refused for good ([`CatalogError::Poisoned`]), and reads go on.
//!
//! Reads never see a change before it is durable. Topics and configs are answered from memory; the rest stays on the disk,
//! behind a cache of 2 MiB, so that memory does not grow with the number of groups.

mod backend;
mod codec;
mod configs;
mod engine;
mod error;
#[cfg(test)]
pub(in crate::storage) mod fault_fs;
mod groups;
mod header;
mod image;
mod log_starts;
mod mutation;
mod offsets;
mod producer_ids;
pub(in crate::storage) mod salvage;
mod state;
pub mod tables;
#[cfg(test)]
mod tests;
mod topics;
mod transactional_ids;
mod writer;

use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use redb::ReadTransaction;

pub use codec::{Decoder, Encoder, Malformed};
pub use error::{CatalogError, OpenCatalogError};
pub use image::{ConfigMap, Configs, ResourceType, Topic, Topics};
pub use mutation::Mutation;
pub use offsets::CommittedOffset;
pub use producer_ids::BLOCK as PRODUCER_ID_BLOCK;
pub use state::KeyValue;

use crate::protocol::Uuid;
use crate::storage::rewrite::rewrite;
use crate::sys::{Env, File, OpenMode, Workers};
use engine::Engine;
use error::Failure;
use header::Look;
use producer_ids::ProducerIds;
use tables::{FORMAT, META, META_CLUSTER_ID, META_FORMAT};

/// An open catalog. Cheap to clone; shared between threads.
#[derive(Clone)]
pub struct Catalog {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Engine,
    workers: Arc<dyn Workers>,
    cluster_id: String,
    image: RwLock<Image>,
    queue: writer::Queue,
    producer_ids: ProducerIds,
}

struct Image {
    topics: Arc<Topics>,
    configs: Arc<Configs>,
}

impl std::fmt::Debug for Catalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalog").field("engine", &self.shared.engine).finish()
    }
}

/// Whether the file at `path` begins as a catalog does.
pub fn looks_like_catalog(env: &Env, path: &Path) -> io::Result<bool> {
    Ok(header::look(&*env.fs.open(path, OpenMode::Read)?)? != Look::Other)
}

/// The name that a catalog has while it is made: `meta.db.new`.
fn unfinished(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".new");
    name.into()
}

/// The file that is locked for a catalog that is not under the lock of its data directory: `meta.db.lock`.
pub fn lock_file(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".lock");
    name.into()
}

fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> OpenCatalogError {
    let path = path.to_owned();
    move |source| OpenCatalogError::Io { doing, path, source }
}

impl Catalog {
    /// Makes a catalog, with a new cluster id. `path` has it, whole and durable, only when this succeeds.
    pub fn create(env: &Env, path: &Path) -> Result<Self, OpenCatalogError> {
        Self::create_for(env, path, &Uuid::random(&*env.random).to_string())
    }

    /// As [`Catalog::create`], for a cluster that has an id.
    pub(in crate::storage) fn create_for(env: &Env, path: &Path, cluster_id: &str) -> Result<Self, OpenCatalogError> {
        let temporary = unfinished(path);
        let file = env.fs.open(&temporary, OpenMode::CreateOrTruncate).map_err(io_error("create", &temporary))?;
        // Nobody believes the file under this name, so one flush, when it is whole, does for all that redb asks for.
        let unflushed = Arc::new(Unflushed(file.clone()));
        let engine = Engine::open(path.to_owned(), unflushed).map_err(|e| e.into_open_error(temporary.clone()))?;
        let written = engine.write(|tables| {
            tables.meta.insert(META_FORMAT, FORMAT.to_be_bytes().as_slice())?;
            tables.meta.insert(META_CLUSTER_ID, cluster_id.as_bytes())?;
            Ok(())
        });
        let written = written.and_then(|()| engine.close());
        written.map_err(|e| io_error("write", &temporary)(io::Error::other(e)))?;
        file.sync().map_err(io_error("flush", &temporary))?;
        env.fs.rename(&temporary, path).map_err(io_error("rename to its own name", &temporary))?;
        sync_name(env, path)?;
        Self::load(env, Engine::open(path.to_owned(), file).map_err(|e| e.into_open_error(path.to_owned()))?)
    }

    /// Opens a catalog that is there.
    pub fn open(env: &Env, path: &Path) -> Result<Self, OpenCatalogError> {
        let file = Self::open_file(env, path, OpenMode::ReadWrite)?;
        // Whoever made it may have ended before this.
        sync_name(env, path)?;
        if !header::was_closed(&*file).map_err(io_error("read", path))? {
            // What is seen may be what an fsync failed to write; from here on it is on the medium or not believed.
            let rewritten = file.len().and_then(|len| {
                file.set_len(header::whole_pages(len))?;
                rewrite(&*file, header::whole_pages(len))?;
                file.sync()
            });
            rewritten.map_err(io_error("flush", path))?;
        }
        Self::load(env, Engine::open(path.to_owned(), file).map_err(|e| e.into_open_error(path.to_owned()))?)
    }

    /// Opens a catalog without ever writing to its file, for the tools that only look. Changes are refused.
    pub fn open_read_only(env: &Env, path: &Path) -> Result<Self, OpenCatalogError> {
        let file = Self::open_file(env, path, OpenMode::Read)?;
        Self::load(env, Engine::open_view(path.to_owned(), file).map_err(|e| e.into_open_error(path.to_owned()))?)
    }

    fn open_file(env: &Env, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>, OpenCatalogError> {
        let file = env.fs.open(path, mode).map_err(io_error("open", path))?;
        match header::look(&*file).map_err(io_error("read", path))? {
            Look::Catalog => Ok(file),
            Look::Other => Err(OpenCatalogError::NotACatalog { path: path.to_owned() }),
            Look::Damaged(reason) => Err(OpenCatalogError::Damaged { path: path.to_owned(), reason }),
        }
    }

    fn load(env: &Env, engine: Engine) -> Result<Self, OpenCatalogError> {
        let path = || engine.path().to_owned();
        let to_open_error = |error| match error {
            CatalogError::Io { path, source } => {
                OpenCatalogError::Io { doing: "read", path, source: io::Error::new(source.kind(), source) }
            }
            CatalogError::Damaged { path, reason } => OpenCatalogError::Damaged { path, reason },
            other => OpenCatalogError::Io { doing: "read", path: path(), source: io::Error::other(other) },
        };
        // The format first: of a newer one nothing else may be as expected.
        let format = engine.read(read_format).map_err(to_open_error)?;
        if format > FORMAT {
            return Err(OpenCatalogError::NewerFormat { path: path(), found: format, known: FORMAT });
        }
        let (cluster_id, next_producer_id, image) = engine.read(read_image).map_err(to_open_error)?;
        Ok(Catalog {
            shared: Arc::new(Shared {
                engine,
                workers: env.workers.clone(),
                cluster_id,
                image: RwLock::new(image),
                queue: writer::Queue::default(),
                producer_ids: ProducerIds::new(next_producer_id),
            }),
        })
    }

    fn read<T>(&self, f: impl Fn(&ReadTransaction) -> Result<T, Failure>) -> Result<T, CatalogError> {
        self.shared.engine.read(f)
    }

    /// The id that clients see as the cluster's: 22 characters, made once.
    pub fn cluster_id(&self) -> &str {
        &self.shared.cluster_id
    }

    /// The layout of the file, at most [`tables::FORMAT`].
    pub fn format(&self) -> Result<u32, CatalogError> {
        self.read(read_format)
    }

    pub fn path(&self) -> &Path {
        self.shared.engine.path()
    }

    /// Whether changes are taken at all: after an fsync that failed none are, until it is opened anew.
    pub fn takes_changes(&self) -> Result<(), CatalogError> {
        self.shared.engine.poison().map_or(Ok(()), Err)
    }

    /// Looks at every page of the file. `Ok(false)` means that something was inconsistent and could be put right.
    /// On a catalog opened with [`Catalog::open_read_only`] the file is not touched. `None` while clones are in use.
    pub fn check(&mut self) -> Option<Result<bool, CatalogError>> {
        let shared = Arc::get_mut(&mut self.shared)?;
        Some(shared.engine.exclusive(|database| Ok(database.check_integrity()?)))
    }

    /// Reads every entry of every table that this module lays out itself, whatever has not been read yet.
    pub fn read_all(&self) -> Result<(), CatalogError> {
        self.read(tables::read_all)?;
        self.deletions().map(|_| ())
    }

    /// Gives back the space in the file that nothing uses. Answers whether there was some. `None` while clones are in use.
    pub fn compact(&mut self) -> Option<Result<bool, CatalogError>> {
        let shared = Arc::get_mut(&mut self.shared)?;
        Some(shared.engine.exclusive(|database| Ok(database.compact()?)))
    }
}

/// A file whose flushes are left to its owner.
#[derive(Debug)]
struct Unflushed(Arc<dyn File>);

impl File for Unflushed {
    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<usize> {
        self.0.read_at(buf, position)
    }

    fn write_all_at(&self, bufs: &[IoSlice<'_>], position: u64) -> io::Result<()> {
        self.0.write_all_at(bufs, position)
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.0.fd()
    }
}

/// Makes the catalog's name durable.
fn sync_name(env: &Env, path: &Path) -> Result<(), OpenCatalogError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    env.fs.sync_dir(parent).map_err(io_error("flush the directory", parent))
}

fn read_format(transaction: &ReadTransaction) -> Result<u32, Failure> {
    let meta = transaction.open_table(META)?;
    let format = meta.get(META_FORMAT)?.ok_or_else(|| Failure::Damage("it has no format number".into()))?;
    let bytes = format.value().try_into().map_err(|_| Malformed::Short { what: "the format number" })?;
    Ok(u32::from_be_bytes(bytes))
}

fn read_image(transaction: &ReadTransaction) -> Result<(String, i64, Image), Failure> {
    let meta = transaction.open_table(META)?;
    let cluster_id = meta.get(META_CLUSTER_ID)?.ok_or_else(|| Failure::Damage("it has no cluster id".into()))?;
    let cluster_id = String::from_utf8_lossy(cluster_id.value()).into_owned();
    let image = Image { topics: Arc::new(topics::load(transaction)?), configs: Arc::new(configs::load(transaction)?) };
    Ok((cluster_id, producer_ids::next(&meta)?, image))
}

#[cfg(test)]
impl Catalog {
    /// Has the file say that it has another format.
    pub(in crate::storage) fn set_format_for_test(&self, format: u32) {
        let bytes = format.to_be_bytes();
        let set =
            self.shared.engine.write(|tables| Ok(tables.meta.insert(META_FORMAT, bytes.as_slice()).map(|_| ())?));
        set.unwrap();
    }
}
