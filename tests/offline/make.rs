//! Data directories to run the commands over, made through the engine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use doze::protocol::Uuid;
use doze::record::{BatchBuilder, BatchOptions, CheckedBatch};
use doze::storage::catalog::ConfigMap;
use doze::storage::log::{LogConfig, PartitionLog};
use doze::storage::offline::DataDir;
use doze::storage::store::{Store, StoreConfig};
use doze::sys::Env;
use tempfile::TempDir;

/// When the records of [`batch`] were written, ms since the Unix epoch.
pub const WRITTEN_MS: i64 = 1_700_000_000_000;

/// A data directory that this process has open.
pub struct Data {
    dir: TempDir,
    store: Store,
}

/// A data directory that nobody has open.
pub struct Stopped {
    dir: TempDir,
}

/// What a topic's configs mean here: segments may be far smaller than a broker allows.
fn log_config(configs: &ConfigMap) -> LogConfig {
    let number = |key: &str, default: u32| configs.get(key).map_or(default, |value| value.parse().unwrap());
    LogConfig {
        segment_bytes: number("segment.bytes", 1 << 20),
        index_interval_bytes: number("index.interval.bytes", 100),
        compact: configs.get("cleanup.policy").is_some_and(|policy| policy.contains("compact")),
        segment_ms: i64::MAX,
        retention_ms: -1,
        ..LogConfig::default()
    }
}

impl Data {
    pub fn new() -> Data {
        Data::open(tempfile::tempdir().unwrap())
    }

    fn open(dir: TempDir) -> Data {
        let config = StoreConfig { data_dir: dir.path().join("data"), meta_db: None, log_config: Arc::new(log_config) };
        let store = Store::open(Env::real(), config).unwrap();
        Data { dir, store }
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Makes a topic. Of its configs `segment.bytes`, `index.interval.bytes` and `cleanup.policy` have an effect.
    pub fn topic(&self, name: &str, partitions: i32, configs: &[(&str, &str)]) -> Uuid {
        let id = Uuid::random(&*Env::real().random);
        let configs = configs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        self.store.create_topic(name, id, partitions, configs).unwrap();
        id
    }

    pub fn log(&self, topic: &str, partition: i32) -> Arc<PartitionLog> {
        let id = self.store.topics().by_name(topic).unwrap().id;
        self.store.partition(id, partition).unwrap()
    }

    /// Appends a batch; answers its first offset.
    pub fn append(&self, topic: &str, partition: i32, batch: Bytes) -> i64 {
        let batch = CheckedBatch::of_own(batch).unwrap();
        self.log(topic, partition).append(batch, 0).unwrap().first_offset
    }

    /// A clean stop.
    pub fn stop(self) -> Stopped {
        let Data { dir, store } = self;
        store.close().unwrap();
        drop(store);
        drop(open_to_write(&dir.path().join("data")));
        Stopped { dir }
    }

    /// A kill: everything that was written is there, and nothing was closed.
    pub fn crash(self) -> Stopped {
        for (_, log) in self.store.open_partitions() {
            let (done, synced) = mpsc::channel();
            log.sync(Box::new(move |result| done.send(result).unwrap()));
            synced.recv().unwrap().unwrap();
        }
        Stopped { dir: self.dir }
    }
}

/// Opens a directory that nobody has open. A child that another test starts holds, until it is another program, all that this
/// process has open: a lock that was just given back may still be held for a moment.
pub fn once_free<T, E: std::fmt::Display>(open: impl Fn() -> Result<T, E>) -> T {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match open() {
            Ok(opened) => return opened,
            Err(error) if error.to_string().contains("is in use by another process") && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(5));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Opens a stopped directory as recover does.
pub fn open_to_write(path: &Path) -> DataDir {
    once_free(|| DataDir::open_to_write(&Env::real(), path, None))
}

impl Stopped {
    /// The data directory.
    pub fn dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// The folder of a partition.
    pub fn partition(&self, topic: &str, partition: i32) -> PathBuf {
        self.dir().join(format!("{topic}-{partition}"))
    }

    /// The log files of a partition, oldest first.
    pub fn segments(&self, topic: &str, partition: i32) -> Vec<PathBuf> {
        files(&self.partition(topic, partition), ".log")
    }

    pub fn start(self) -> Data {
        Data::open(self.dir)
    }
}

/// The files of a folder whose names end like this, sorted.
pub fn files(dir: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(suffix));
    files.sort();
    files
}

/// A batch of these keys and values, without a producer, a codec or headers.
pub fn batch(records: &[(Option<&str>, Option<&str>)]) -> Bytes {
    batch_with(BatchOptions::default(), records)
}

/// A batch of these keys and values. The first record was written at [`WRITTEN_MS`], each further one a millisecond later.
pub fn batch_with(options: BatchOptions, records: &[(Option<&str>, Option<&str>)]) -> Bytes {
    let mut builder = BatchBuilder::new(options).unwrap();
    for (n, (key, value)) in records.iter().enumerate() {
        let (key, value) = (key.map(str::as_bytes), value.map(str::as_bytes));
        builder.append(WRITTEN_MS + n as i64, key, value, &[]).unwrap();
    }
    builder.finish(None).unwrap()
}
