//! Recovery over damaged directories: what was good stays, what goes is in quarantine, and a power cut at any moment leaves a
//! directory that another recovery mends.

mod catalogs;
mod cuts;
mod damages;
mod flips;
mod gaps;
mod markers;

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use crate::protocol::Uuid;
use crate::record::{BatchBuilder, BatchOptions, Batches, CheckedBatch};
use crate::storage::catalog::ConfigMap;
use crate::storage::log::{EndMarker, Isolation, LogConfig, PartitionLog};
use crate::storage::offline::DataDir;
use crate::storage::store::{LogConfigOf, Store, StoreConfig};
use crate::storage::verify::{self, Report};
use crate::sys::sim::{SimEnv, SimFileSystem};
use crate::sys::{Env, FileSystem, OpenMode};

pub const DATA: &str = "/data";
pub const NOW: i64 = crate::sys::sim::START_MS;

/// Every batch of every partition that is read, by topic and partition: base offset and bytes.
pub type Batchwise = BTreeMap<(String, i32), Vec<(i64, Vec<u8>)>>;

/// A disk with a data directory on it, and what was in that when it was whole.
pub struct Scene {
    pub fs: SimFileSystem,
    pub whole: Batchwise,
}

pub fn log_config() -> LogConfigOf {
    Arc::new(|configs: &ConfigMap| LogConfig {
        segment_bytes: configs.get("segment.bytes").map_or(1500, |value| value.parse().unwrap()),
        index_interval_bytes: 200,
        retention_ms: -1,
        producer_id_expiration_ms: i64::MAX,
        ..LogConfig::default()
    })
}

pub fn store_config() -> StoreConfig {
    StoreConfig { data_dir: DATA.into(), meta_db: None, log_config: log_config() }
}

pub fn options(label: &str, accept_loss: bool) -> Options {
    Options { accept_loss, label: label.to_owned(), log_config: log_config() }
}

pub fn batch(options: BatchOptions, count: usize, seed: i64) -> CheckedBatch {
    let mut builder = BatchBuilder::new(options).unwrap();
    for i in 0..count {
        let value: Vec<u8> = (0..60).map(|j| (i * 31 + j * 7 + seed as usize * 13) as u8).collect();
        builder.append(NOW + seed, Some(&i.to_be_bytes()), Some(&value), &[]).unwrap();
    }
    CheckedBatch::of_own(builder.finish(None).unwrap()).unwrap()
}

pub fn idempotent(producer_id: i64, sequence: i32, transactional: bool) -> BatchOptions {
    BatchOptions { producer_id, producer_epoch: 0, base_sequence: sequence, transactional, ..BatchOptions::default() }
}

/// Fills a log: plain batches, an idempotent producer, transactions that commit and abort.
fn fill(log: &PartitionLog, rounds: i64) {
    let mut sequences = [0; 2];
    for round in 0..rounds {
        log.append(batch(BatchOptions::default(), 1 + (round % 3) as usize, round), 0).unwrap();
        log.append(batch(idempotent(5, sequences[0], false), 1, round), 0).unwrap();
        sequences[0] += 1;
        log.append(batch(idempotent(6, sequences[1], true), 2, round), 0).unwrap();
        sequences[1] += 2;
        if round % 4 == 3 {
            let marker = EndMarker {
                producer_id: 6,
                producer_epoch: 0,
                committed: round % 8 == 3,
                coordinator_epoch: 1,
                transaction_version: 1,
            };
            log.append_end_txn_marker(marker, 0).unwrap();
        }
    }
}

impl Scene {
    /// `clean`: it was stopped as it should be.
    pub fn new(clean: bool) -> Scene {
        Scene::of(clean, &[("demo", 2, 16), ("other", 1, 4)])
    }

    /// One partition of a few segments, not stopped cleanly.
    pub fn small() -> Scene {
        Scene::of(false, &[("demo", 1, 14)])
    }

    fn of(clean: bool, topics: &[(&str, i32, i64)]) -> Scene {
        let (_, sim) = SimEnv::around(1, SimEnv::new(1).1.fs);
        let store = Store::open(sim.env(), store_config()).unwrap();
        let random = sim.env().random;
        for &(topic, partitions, rounds) in topics {
            let id = Uuid::random(&*random);
            store.create_topic(topic, id, partitions, ConfigMap::new()).unwrap();
            for partition in 0..partitions {
                fill(&store.partition(id, partition).unwrap(), rounds);
            }
        }
        let whole = read_all(&store);
        assert!(whole[&("demo".to_owned(), 0)].len() > 30);
        let fs = match clean {
            true => {
                store.close().unwrap();
                sim.fs.clone()
            }
            false => {
                for (_, log) in store.open_partitions() {
                    log.sync(Box::new(|result| result.unwrap()));
                }
                sim.fs.kill()
            }
        };
        Scene { fs, whole }
    }

    /// A world around a copy of the disk.
    pub fn copy(&self) -> SimEnv {
        SimEnv::around(7, self.fs.fork()).1
    }

    /// The log files of a partition, the first one first.
    pub fn logs(&self, folder: &str) -> Vec<PathBuf> {
        self.files(folder, ".log")
    }

    pub fn files(&self, folder: &str, suffix: &str) -> Vec<PathBuf> {
        let under = PathBuf::from(DATA).join(folder);
        let under = under.strip_prefix("/").unwrap();
        let image = self.fs.image();
        let all = image.keys().filter(|path| path.starts_with(under) && path.to_string_lossy().ends_with(suffix));
        all.map(|path| Path::new("/").join(path)).collect()
    }
}

/// What is in a file.
pub fn bytes_of(fs: &SimFileSystem, path: &Path) -> Vec<u8> {
    let file = fs.open(path, OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// Gives a file this content, durably.
pub fn put(fs: &SimFileSystem, path: &Path, bytes: &[u8]) {
    let file = fs.open(path, OpenMode::CreateOrTruncate).unwrap();
    file.write_all_at(&[IoSlice::new(bytes)], 0).unwrap();
    file.sync().unwrap();
    fs.sync_dir(path.parent().unwrap()).unwrap();
}

/// Where each batch of a log file starts and ends, with its base offset.
pub fn batches_of(bytes: &[u8]) -> Vec<(usize, usize, i64)> {
    let mut at = 0;
    Batches::new(bytes)
        .map(|batch| {
            let (start, size) = (at, batch.header().size_in_bytes());
            at += size;
            (start, at, batch.header().base_offset)
        })
        .collect()
}

/// Reads every batch of every partition.
pub fn read_all(store: &Store) -> Batchwise {
    let mut all = Batchwise::new();
    for topic in store.topics().iter() {
        for partition in 0..topic.partitions {
            let log = store.partition(topic.id, partition).unwrap_or_else(|error| panic!("{topic:?}: {error}"));
            assert_eq!(log.damage(), [], "{} {partition}", topic.name);
            all.insert((topic.name.to_string(), partition), read_log(&log));
        }
    }
    all
}

pub fn read_log(log: &PartitionLog) -> Vec<(i64, Vec<u8>)> {
    let offsets = log.offsets();
    let (mut next, mut batches) = (offsets.start, Vec::new());
    while next < offsets.end {
        let read = log.read(next, 100_000, true, Isolation::ReadUncommitted).unwrap();
        let bytes = read.range.expect("there is something before the end").read().unwrap();
        let before = next;
        for batch in Batches::new(&bytes) {
            batch.verify_crc().unwrap();
            let header = batch.header();
            assert_eq!(header.base_offset, next, "no offset is left out");
            // What stands for offsets that are lost.
            if header.records_count > 0 {
                batches.push((header.base_offset, batch.bytes().to_vec()));
            }
            next = header.last_offset() + 1;
        }
        assert!(next > before, "{before} is read on");
    }
    batches
}

pub fn open(env: &Env) -> DataDir {
    DataDir::open_to_write(env, Path::new(DATA), None).unwrap_or_else(|error| panic!("{error}"))
}

pub fn look(dir: &DataDir) -> Report {
    let options = verify::Options { level: verify::Level::Default, jobs: 1, wanted: None };
    verify::verify(dir, &options, &verify::Progress::new())
}

/// Recovers until there is nothing to do, as the command does. Answers what was done first.
pub fn recover(env: &Env, accept_loss: bool) -> Result<(Plan, Applied), RecoverError> {
    let mut first = None;
    for round in 0..4 {
        let dir = open(env);
        let report = look(&dir);
        let plan = plan(&dir, &report, &mut |_| {})?;
        let actionable = plan.steps.iter().any(|step| accept_loss || !step.loses);
        if !actionable {
            let nothing = (plan, Applied::default());
            return Ok(first.unwrap_or(nothing));
        }
        assert!(round < 3, "there is always more to do: {:#?}\n{:#?}", plan.steps, report.findings);
        let applied = apply(&dir, &plan, &options(&format!("r{round}"), accept_loss), &mut |_| {})?;
        first.get_or_insert((plan, applied));
    }
    unreachable!("the loop ends before")
}

/// A second run has nothing to do, and a look at the directory finds no damage.
pub fn assert_nothing_left(env: &Env, context: &str) {
    let dir = open(env);
    let report = look(&dir);
    let plan = plan(&dir, &report, &mut |_| {}).unwrap();
    assert_eq!(plan.steps, [], "{context}");
    let damage: Vec<&verify::Finding> = report.findings.iter().filter(|finding| finding.is_damage()).collect();
    assert!(damage.is_empty(), "{context}: {damage:#?}");
}

/// A broker's store opens it, and every batch is read.
pub fn served(env: &Env) -> Batchwise {
    let store = Store::open(env.clone(), store_config()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(store.unknown_directories(), [""; 0].map(PathBuf::from));
    let all = read_all(&store);
    store.close().unwrap();
    all
}
