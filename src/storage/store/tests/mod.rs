//! What the tests of the store share.

mod faults;
mod layout;
mod partitions;
mod topics;

use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::record::{BatchBuilder, BatchOptions, CheckedBatch};
use crate::storage::catalog::fault_fs::{FaultFs, faulty_env};
use crate::storage::log::{Isolation, PartitionLog};
use crate::sys::{Env, OsRandom};

/// A data directory, and one life of a process over it.
struct World {
    dir: TempDir,
    env: Env,
    fs: FaultFs,
}

impl World {
    fn new() -> Self {
        let (env, fs) = faulty_env();
        World { dir: tempfile::tempdir().unwrap(), env, fs }
    }

    fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn config(&self) -> StoreConfig {
        let log_config: LogConfigOf = Arc::new(|configs| LogConfig {
            segment_bytes: configs.get("segment.bytes").map_or(1 << 20, |value| value.parse().unwrap()),
            ..LogConfig::default()
        });
        StoreConfig { data_dir: self.data_dir(), meta_db: None, log_config }
    }

    fn try_open(&self) -> Result<Store, OpenStoreError> {
        Store::open(self.env.clone(), self.config())
    }

    fn open(&self) -> Store {
        self.try_open().unwrap()
    }

    /// Ends this life as a kill does, and begins another over the same files.
    fn killed(self, store: impl Into<Option<Store>>) -> Self {
        self.fs.kill();
        drop(store.into());
        let (env, fs) = faulty_env();
        World { env, fs, dir: self.dir }
    }

    /// The names in the data directory, but for doze's own files, sorted.
    fn names(&self) -> Vec<String> {
        let own = [".lock", "meta.db", "clean-shutdown"];
        let entries = std::fs::read_dir(self.data_dir()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| !own.contains(&name.as_str()));
        names.sort();
        names
    }
}

fn id() -> Uuid {
    Uuid::random(&OsRandom)
}

fn create(store: &Store, name: &str, partitions: i32) -> Arc<crate::storage::catalog::Topic> {
    store.create_topic(name, id(), partitions, ConfigMap::new()).unwrap()
}

fn batch(value: &str) -> CheckedBatch {
    let mut builder = BatchBuilder::new(BatchOptions::default()).unwrap();
    builder.append(1_700_000_000_000, None, Some(value.as_bytes()), &[]).unwrap();
    CheckedBatch::of_own(builder.finish(None).unwrap()).unwrap()
}

fn sync(log: &Arc<PartitionLog>) {
    let (sender, receiver) = std::sync::mpsc::channel();
    log.sync(Box::new(move |result| sender.send(result).unwrap()));
    receiver.recv().unwrap().unwrap();
}

/// The records from `offset` on, whose values are all that is looked at.
fn values(log: &PartitionLog, offset: i64) -> Vec<String> {
    let read = log.read(offset, 1 << 20, true, Isolation::ReadUncommitted).unwrap();
    let bytes = read.range.map_or(Vec::new(), |range| range.read().unwrap());
    let mut values = Vec::new();
    for batch in crate::record::Batches::new(&bytes) {
        let mut records = batch.records().unwrap();
        while let Some(record) = records.next_record().unwrap() {
            values.push(String::from_utf8(record.value().unwrap().to_vec()).unwrap());
        }
    }
    values
}
