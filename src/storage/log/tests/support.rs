//! What the tests of the log share: a file system that fails on demand, a clock that is set, workers that are run by hand.

use std::collections::{HashMap, VecDeque};
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::record::{BatchBuilder, BatchOptions, Batches, CheckedBatch};
use crate::storage::log::{Isolation, LogConfig, PartitionLog, SyncError};
use crate::sys::{
    Clock, DirEntry, Env, File, FileRange, FileSystem, Job, LockGuard, Metadata, OpenMode, OsFileSystem, OsRandom,
    ThreadWorkers, Workers,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    Open,
    Read,
    Write,
    SetLen,
    Sync,
    SyncDir,
    Rename,
    Remove,
}

/// Fails the operations that it is told to fail, and counts all.
#[derive(Debug, Default)]
pub struct Faults {
    counts: Mutex<HashMap<Op, usize>>,
    /// The operations of a kind, counted from now, that fail.
    planned: Mutex<Vec<(Op, usize)>>,
    /// While set, a write stores half of its bytes and fails.
    pub full: AtomicBool,
    pub injected: AtomicUsize,
}

impl Faults {
    pub fn count(&self, op: Op) -> usize {
        self.counts.lock().get(&op).copied().unwrap_or(0)
    }

    /// Fails the `nth` operation of the kind from now on, the first being 1.
    pub fn fail(&self, op: Op, nth: usize) {
        self.planned.lock().push((op, nth));
    }

    /// Fails nothing that was planned and has not come yet.
    pub fn forgive(&self) {
        self.planned.lock().clear();
    }

    fn hit(&self, op: Op) -> io::Result<()> {
        *self.counts.lock().entry(op).or_default() += 1;
        let mut planned = self.planned.lock();
        let mut fails = false;
        planned.retain_mut(|plan| {
            if plan.0 != op {
                return true;
            }
            plan.1 -= 1;
            fails |= plan.1 == 0;
            plan.1 > 0
        });
        if fails {
            self.injected.fetch_add(1, Ordering::SeqCst);
            return Err(io::Error::other(format!("injected into {op:?}")));
        }
        Ok(())
    }
}

#[derive(Debug)]
struct FaultyFs(Arc<Faults>);

#[derive(Debug)]
struct FaultyFile(Arc<dyn File>, Arc<Faults>);

impl File for FaultyFile {
    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<usize> {
        self.1.hit(Op::Read)?;
        self.0.read_at(buf, position)
    }

    fn write_all_at(&self, bufs: &[IoSlice<'_>], position: u64) -> io::Result<()> {
        let full = self.1.full.load(Ordering::SeqCst);
        if self.1.hit(Op::Write).is_err() || full {
            let all: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
            self.0.write_all_at(&[IoSlice::new(&all[..all.len() / 2])], position)?;
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.write_all_at(bufs, position)
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.1.hit(Op::SetLen)?;
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.1.hit(Op::Sync)
    }

    fn set_modified(&self, modified_ms: i64) -> io::Result<()> {
        self.0.set_modified(modified_ms)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.0.fd()
    }
}

impl FileSystem for FaultyFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        self.0.hit(Op::Open)?;
        Ok(Arc::new(FaultyFile(OsFileSystem.open(path, mode)?, self.0.clone())))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        OsFileSystem.create_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        OsFileSystem.list(path)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        OsFileSystem.metadata(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.hit(Op::Rename)?;
        OsFileSystem.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.0.hit(Op::Remove)?;
        OsFileSystem.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        OsFileSystem.remove_dir(path)
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        self.0.hit(Op::SyncDir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        OsFileSystem.lock(path)
    }
}

#[derive(Debug)]
pub struct SetClock(pub AtomicI64);

impl Clock for SetClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.now_ms() as u64)
    }
}

/// Keeps jobs until the test runs them.
#[derive(Default)]
pub struct HandWorkers(Mutex<VecDeque<Job>>);

impl std::fmt::Debug for HandWorkers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HandWorkers")
    }
}

impl Workers for HandWorkers {
    fn spawn(&self, job: Job) {
        self.0.lock().push_back(job);
    }
}

impl HandWorkers {
    pub fn run_one(&self) -> bool {
        let job = self.0.lock().pop_front();
        job.map(|job| job()).is_some()
    }

    pub fn run_all(&self) -> usize {
        (0..).take_while(|_| self.run_one()).count()
    }
}

/// A directory with one partition in it, and the world around it.
pub struct World {
    pub data: tempfile::TempDir,
    pub faults: Arc<Faults>,
    pub clock: Arc<SetClock>,
    pub workers: Arc<HandWorkers>,
    pub config: LogConfig,
    /// Whether jobs run on threads of their own, instead of by hand.
    pub threads: bool,
}

pub const NOW: i64 = 1_700_000_000_000;

impl World {
    pub fn new() -> World {
        let world = World {
            data: tempfile::tempdir().unwrap(),
            faults: Arc::default(),
            clock: Arc::new(SetClock(AtomicI64::new(NOW))),
            workers: Arc::default(),
            config: LogConfig::default(),
            threads: false,
        };
        std::fs::create_dir(world.dir()).unwrap();
        world
    }

    pub fn with(change: impl FnOnce(&mut LogConfig)) -> World {
        let mut world = World::new();
        change(&mut world.config);
        world
    }

    pub fn dir(&self) -> PathBuf {
        self.data.path().join("demo-3")
    }

    pub fn env(&self) -> Env {
        Env {
            fs: Arc::new(FaultyFs(self.faults.clone())),
            clock: self.clock.clone(),
            random: Arc::new(OsRandom),
            workers: if self.threads { Arc::new(ThreadWorkers::new(4)) } else { self.workers.clone() },
        }
    }

    pub fn open(&self, clean: bool) -> Arc<PartitionLog> {
        self.open_from(clean, 0)
    }

    pub fn open_from(&self, clean: bool, log_start: i64) -> Arc<PartitionLog> {
        PartitionLog::open(self.env(), self.dir(), self.config.clone(), clean, log_start).unwrap()
    }

    /// A copy of it, files and settings; what was made of it is not.
    pub fn copy(&self) -> World {
        let copy = World { config: self.config.clone(), ..World::new() };
        for entry in std::fs::read_dir(self.dir()).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), copy.dir().join(entry.file_name())).unwrap();
        }
        copy
    }

    pub fn files(&self, suffix: &str) -> Vec<PathBuf> {
        let all = std::fs::read_dir(self.dir()).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<PathBuf> = all.filter(|path| path.to_str().unwrap().ends_with(suffix)).collect();
        files.sort();
        files
    }

    pub fn sync(&self, log: &Arc<PartitionLog>) -> Result<(), SyncError> {
        let answer = Arc::new(Mutex::new(None));
        let put = answer.clone();
        log.sync(Box::new(move |result| *put.lock() = Some(result)));
        self.workers.run_all();
        let taken = answer.lock().take();
        taken.expect("the callback has been called once the workers are idle")
    }
}

/// A batch of `count` records whose timestamps go up by one from `timestamp`.
pub fn batch(count: usize, timestamp: i64) -> CheckedBatch {
    batch_of(BatchOptions::default(), count, timestamp, 40)
}

pub fn batch_of(options: BatchOptions, count: usize, timestamp: i64, value: usize) -> CheckedBatch {
    let mut builder = BatchBuilder::new(options).unwrap();
    for i in 0..count {
        let value: Vec<u8> = (0..value).map(|j| (i * 31 + j * 7 + timestamp as usize) as u8).collect();
        builder.append(timestamp + i as i64, Some(&i.to_be_bytes()), Some(&value), &[]).unwrap();
    }
    CheckedBatch::of_own(builder.finish(None).unwrap()).unwrap()
}

/// A batch of an idempotent producer.
pub fn of_producer(producer_id: i64, epoch: i16, sequence: i32, count: usize) -> CheckedBatch {
    batch_of(
        BatchOptions { producer_id, producer_epoch: epoch, base_sequence: sequence, ..BatchOptions::default() },
        count,
        NOW,
        20,
    )
}

pub fn bytes_of(range: &FileRange) -> Vec<u8> {
    range.read().unwrap()
}

/// Reads the whole log, `step` bytes at a time, and checks that offsets go on without a gap. Answers (base, last) of each
/// batch.
pub fn read_all(log: &PartitionLog, step: usize) -> Vec<(i64, i64)> {
    let offsets = log.offsets();
    let mut next = offsets.start;
    let mut batches = Vec::new();
    while next < offsets.end {
        let result = log.read(next, step, true, Isolation::ReadUncommitted).unwrap();
        let bytes = bytes_of(&result.range.expect("there is something before the end"));
        let mut iter = Batches::new(&bytes);
        let before = next;
        for batch in iter.by_ref() {
            let header = batch.header();
            assert!(header.base_offset <= next && next <= header.last_offset(), "{next} is in {header:?}");
            batches.push((header.base_offset, header.last_offset()));
            next = header.last_offset() + 1;
        }
        assert_eq!(iter.stop().why, None, "only whole batches are read");
        assert!(next > before);
    }
    batches
}
