//! Power cuts: a file system in memory that knows what of it is on the medium, and a workload whose power is cut before any
//! one of its operations.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::Mutex;

use super::support::*;
use crate::record::{BatchOptions, Batches, CheckedBatch};
use crate::storage::log::{EndMarker, Isolation, LogConfig, PartitionLog};
use crate::sys::{DirEntry, Env, File, FileSystem, LockGuard, Metadata, OpenMode, OsRandom};

/// A file: what is in the page cache, and what is on the medium.
#[derive(Debug, Default)]
struct Node {
    cached: Vec<u8>,
    durable: Vec<u8>,
}

type Names = BTreeMap<PathBuf, Arc<Mutex<Node>>>;

/// A file at one moment.
struct FileThen {
    path: PathBuf,
    durable_name: bool,
    live_name: bool,
    cached: Vec<u8>,
    durable: Vec<u8>,
}

/// What the medium and the page cache have at one moment, and what was acknowledged by then.
struct Moment {
    files: Vec<FileThen>,
    acknowledged: i64,
    start: i64,
}

#[derive(Default)]
struct Disk {
    live: Names,
    durable: Names,
    /// Whether the power may be cut.
    recording: bool,
    /// One before each operation.
    moments: Vec<Moment>,
}

/// Shared by the file system and the workload.
#[derive(Clone)]
struct MemFs {
    disk: Arc<Mutex<Disk>>,
    acknowledged: Arc<AtomicI64>,
    start: Arc<AtomicI64>,
}

impl std::fmt::Debug for MemFs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MemFs")
    }
}

#[derive(Debug)]
struct MemFile(Arc<Mutex<Node>>, MemFs);

impl MemFs {
    fn new() -> MemFs {
        MemFs { disk: Arc::default(), acknowledged: Arc::default(), start: Arc::default() }
    }

    /// Called before each operation that changes anything: takes note of the moment, for a power cut just then.
    fn about_to_change(&self) {
        let mut disk = self.disk.lock();
        if !disk.recording {
            return;
        }
        let mut files = Vec::new();
        let mut paths: Vec<&PathBuf> = disk.live.keys().chain(disk.durable.keys()).collect();
        paths.sort();
        paths.dedup();
        for path in paths {
            let node = disk.live.get(path).or(disk.durable.get(path)).unwrap().lock();
            files.push(FileThen {
                path: path.clone(),
                durable_name: disk.durable.contains_key(path),
                live_name: disk.live.contains_key(path),
                cached: node.cached.clone(),
                durable: node.durable.clone(),
            });
        }
        let (acknowledged, start) = (self.acknowledged.load(Ordering::SeqCst), self.start.load(Ordering::SeqCst));
        disk.moments.push(Moment { files, acknowledged, start });
    }
}

impl File for MemFile {
    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<usize> {
        let node = self.0.lock();
        let from = node.cached.get(position as usize..).unwrap_or_default();
        let n = from.len().min(buf.len());
        buf[..n].copy_from_slice(&from[..n]);
        Ok(n)
    }

    fn write_all_at(&self, bufs: &[IoSlice<'_>], position: u64) -> io::Result<()> {
        self.1.about_to_change();
        let mut node = self.0.lock();
        let bytes: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
        let end = position as usize + bytes.len();
        if node.cached.len() < end {
            node.cached.resize(end, 0);
        }
        node.cached[position as usize..end].copy_from_slice(&bytes);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().cached.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.1.about_to_change();
        self.0.lock().cached.resize(len as usize, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.1.about_to_change();
        let mut node = self.0.lock();
        node.durable = node.cached.clone();
        Ok(())
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl FileSystem for MemFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        if !matches!(mode, OpenMode::Read | OpenMode::ReadWrite) {
            self.about_to_change();
        }
        let mut disk = self.disk.lock();
        let there = disk.live.get(path).cloned();
        let node = match (there, mode) {
            (None, OpenMode::Read | OpenMode::ReadWrite) => return Err(io::ErrorKind::NotFound.into()),
            (Some(_), OpenMode::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(node), mode) => {
                if mode == OpenMode::CreateOrTruncate {
                    node.lock().cached.clear();
                }
                node
            }
            (None, _) => disk.live.entry(path.to_path_buf()).or_default().clone(),
        };
        Ok(Arc::new(MemFile(node, self.clone())))
    }

    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let disk = self.disk.lock();
        let inside = disk.live.keys().filter(|file| file.parent() == Some(path));
        Ok(inside.map(|file| DirEntry { name: file.file_name().unwrap().to_owned(), is_dir: false }).collect())
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let disk = self.disk.lock();
        let node = disk.live.get(path).ok_or(io::ErrorKind::NotFound)?;
        let len = node.lock().cached.len() as u64;
        Ok(Metadata { len, is_dir: false, modified_ms: NOW })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.about_to_change();
        let mut disk = self.disk.lock();
        let node = disk.live.remove(from).ok_or(io::ErrorKind::NotFound)?;
        disk.live.insert(to.to_path_buf(), node);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        if !self.disk.lock().live.contains_key(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.about_to_change();
        self.disk.lock().live.remove(path);
        Ok(())
    }

    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        self.about_to_change();
        let mut disk = self.disk.lock();
        disk.durable = disk.live.clone();
        Ok(())
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn LockGuard>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Random numbers that a seed decides.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}

/// What a power cut may leave of a moment.
fn cut(moment: &Moment, how: u64, dice: &mut Dice) -> MemFs {
    let fs = MemFs::new();
    for FileThen { path, durable_name, live_name, cached, durable } in &moment.files {
        let there = match how {
            0 => *durable_name,
            1 => *live_name,
            // Each change of a name that was not flushed has reached the medium or not.
            _ => {
                if dice.below(2) == 0 {
                    *durable_name
                } else {
                    *live_name
                }
            }
        };
        let mut content = durable.clone();
        if how > 0 {
            // Of what was not flushed, each 64 bytes are there, zeros or not there; the length is the old, the new or between.
            let len = match dice.below(3) {
                0 => durable.len(),
                1 => cached.len(),
                _ => {
                    durable.len().min(cached.len())
                        + dice.below((durable.len().abs_diff(cached.len()) + 1) as u64) as usize
                }
            };
            content.resize(len, 0);
            for (i, page) in content.chunks_mut(64).enumerate() {
                let from = &cached[(i * 64).min(cached.len())..];
                let n = from.len().min(page.len());
                if dice.below(2) == 0 {
                    page[..n].copy_from_slice(&from[..n]);
                }
            }
        }
        if there {
            let node = Node { cached: content.clone(), durable: content };
            fs.disk.lock().live.insert(path.clone(), Arc::new(Mutex::new(node)));
        }
    }
    let names = fs.disk.lock().live.clone();
    fs.disk.lock().durable = names;
    fs
}

/// What the workload appended: enough to tell what any prefix of it comes to.
struct Appended {
    base: i64,
    last: i64,
    bytes: Vec<u8>,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    Plain,
    /// Of a producer: its id and the sequence.
    Idempotent(i64, i32),
    /// Records of a transaction of this producer.
    InTransaction(i64),
    /// The end of one.
    End(i64, bool),
}

struct Run {
    fs: MemFs,
    workers: Arc<HandWorkers>,
    config: LogConfig,
    log: Arc<PartitionLog>,
    appended: Vec<Appended>,
}

fn open(fs: &MemFs, workers: &Arc<HandWorkers>, config: &LogConfig, clean: bool, start: i64) -> Arc<PartitionLog> {
    let env = Env {
        fs: Arc::new(fs.clone()),
        clock: Arc::new(SetClock(AtomicI64::new(NOW))),
        random: Arc::new(OsRandom),
        workers: workers.clone(),
    };
    PartitionLog::open(env, "/data/demo-0".into(), config.clone(), clean, start).unwrap()
}

impl Run {
    fn new() -> Run {
        let fs = MemFs::new();
        fs.disk.lock().recording = true;
        let workers = Arc::<HandWorkers>::default();
        let config = LogConfig { segment_bytes: 900, index_interval_bytes: 200, ..LogConfig::default() };
        let log = open(&fs, &workers, &config, true, 0);
        Run { fs, workers, config, log, appended: Vec::new() }
    }

    fn append(&mut self, batch: CheckedBatch, what: What) {
        let mut header = batch.header;
        let records = batch.records.clone();
        let done = self.log.append(batch, 0).unwrap();
        (header.base_offset, header.partition_leader_epoch) = (done.first_offset, 0);
        let bytes = [&header.encode()[..], &records].concat();
        self.appended.push(Appended { base: done.first_offset, last: done.last_offset, bytes, what });
    }

    /// Asks for a flush and lets it run: what it covers is acknowledged once it is over.
    fn sync(&self) {
        let (end, acknowledged) = (self.log.offsets().end, self.fs.acknowledged.clone());
        self.log.sync(Box::new(move |result| {
            result.unwrap();
            acknowledged.fetch_max(end, Ordering::SeqCst);
        }));
        self.workers.run_all();
    }

    /// Does things until there were `operations` changes of files.
    fn work(&mut self, operations: usize, dice: &mut Dice) {
        let mut sequences = [0i32; 2];
        let mut transactions = [0i32; 2];
        let mut open_transactions = [false; 2];
        while self.fs.disk.lock().moments.len() < operations {
            let (count, which) = (1 + dice.below(3) as i32, dice.below(2) as usize);
            match dice.below(12) {
                0..=2 => self.append(batch(count as usize, NOW), What::Plain),
                3..=4 => {
                    let (id, sequence) = (which as i64, sequences[which]);
                    self.append(of_producer(id, 0, sequence, count as usize), What::Idempotent(id, sequence));
                    sequences[which] += count;
                }
                5..=6 => {
                    let id = 10 + which as i64;
                    let options = BatchOptions {
                        producer_id: id,
                        producer_epoch: 0,
                        base_sequence: transactions[which],
                        transactional: true,
                        ..BatchOptions::default()
                    };
                    self.append(batch_of(options, count as usize, NOW, 20), What::InTransaction(id));
                    transactions[which] += count;
                    open_transactions[which] = true;
                }
                7 if open_transactions[which] => {
                    let (producer_id, committed) = (10 + which as i64, dice.below(2) == 0);
                    let marker = EndMarker {
                        producer_id,
                        producer_epoch: 0,
                        committed,
                        coordinator_epoch: 0,
                        transaction_version: 1,
                    };
                    let done = self.log.append_end_txn_marker(marker, 0).unwrap();
                    let read = self.log.read(done.first_offset, usize::MAX, true, Isolation::ReadUncommitted).unwrap();
                    let bytes = bytes_of(&read.range.unwrap());
                    let what = What::End(producer_id, committed);
                    self.appended.push(Appended { base: done.first_offset, last: done.last_offset, bytes, what });
                    open_transactions[which] = false;
                }
                8..=9 => self.sync(),
                10 if dice.below(4) == 0 => {
                    let to = self.log.offsets().start + dice.below(8) as i64;
                    let to = to.min(self.fs.acknowledged.load(Ordering::SeqCst));
                    // The caller has it durable first.
                    self.fs.start.fetch_max(to, Ordering::SeqCst);
                    self.log.advance_log_start(to).unwrap();
                }
                11 if dice.below(6) == 0 => {
                    self.log.close().unwrap();
                    self.fs
                        .acknowledged
                        .fetch_max(self.appended.last().map_or(0, |last| last.last + 1), Ordering::SeqCst);
                    let start = self.fs.start.load(Ordering::SeqCst);
                    self.log = open(&self.fs, &self.workers, &self.config, true, start);
                }
                _ => {}
            }
        }
    }

    /// Opens what a power cut left, and checks that it is a prefix of what was appended with all that was acknowledged.
    fn check(&self, moment: &Moment, how: u64, dice: &mut Dice, context: &str) {
        let fs = cut(moment, how, dice);
        let log = open(&fs, &self.workers, &self.config, false, moment.start);
        let offsets = log.offsets();
        assert!(offsets.end >= moment.acknowledged, "{context}: {offsets:?}, acknowledged {}", moment.acknowledged);
        // Pages that reached the medium behind ones that did not: damage, but only of what was not acknowledged.
        let damage: Vec<(i64, i64)> = log.damage().iter().map(|damage| damage.offsets).collect();
        assert!(damage.iter().all(|(from, _)| *from >= moment.acknowledged), "{context}: {damage:?}");
        assert!(how > 0 || damage.is_empty(), "{context}: {damage:?}");
        let is_whole = |batch: &&Appended| !damage.iter().any(|(from, to)| (*from..*to).contains(&batch.base));
        let there: Vec<&Appended> =
            self.appended.iter().take_while(|batch| batch.last < offsets.end).filter(is_whole).collect();
        assert_eq!(there.last().map_or(0, |last| last.last + 1), offsets.end, "{context}: the end of a batch");
        for batch in there.iter().filter(|batch| batch.last >= offsets.start) {
            let at = batch.base.max(offsets.start);
            let read = log.read(at, 1, true, Isolation::ReadUncommitted).unwrap();
            assert_eq!(bytes_of(&read.range.unwrap()), batch.bytes, "{context}: at {at}");
        }
        // Transactions: what is open, and who was told to have been aborted.
        let mut open_at: BTreeMap<i64, i64> = BTreeMap::new();
        let mut aborted = Vec::new();
        let mut last_sequence: BTreeMap<i64, (i64, i32, usize)> = BTreeMap::new();
        for batch in &there {
            match batch.what {
                What::Plain => {}
                What::Idempotent(id, sequence) => {
                    last_sequence.insert(id, (batch.base, sequence, (batch.last - batch.base + 1) as usize));
                }
                What::InTransaction(id) => {
                    open_at.entry(id).or_insert(batch.base);
                }
                What::End(id, committed) => {
                    let first = open_at.remove(&id);
                    if let Some(first) = first.filter(|_| !committed && batch.base >= offsets.start) {
                        aborted.push((id, first, batch.base));
                    }
                }
            }
        }
        let stable = open_at.values().min().copied().unwrap_or(offsets.end).max(offsets.start);
        assert_eq!(offsets.last_stable, stable, "{context}");
        let mut told = Vec::new();
        let mut next = offsets.start;
        while next < stable && damage.is_empty() {
            let read = log.read(next, 400, true, Isolation::ReadCommitted).unwrap();
            told.extend(read.aborted.iter().map(|entry| (entry.producer_id, entry.first_offset, entry.last_offset)));
            let bytes = bytes_of(&read.range.unwrap());
            next = Batches::new(&bytes).last().unwrap().header().last_offset() + 1;
        }
        for transaction in aborted.iter().filter(|transaction| transaction.2 < stable && damage.is_empty()) {
            assert!(told.contains(transaction), "{context}: {transaction:?} is not in {told:?}");
        }
        for (id, (base, sequence, count)) in last_sequence {
            let again = log.append(of_producer(id, 0, sequence, count), 0).unwrap();
            assert!(again.duplicate && again.first_offset == base, "{context}: producer {id}, {again:?}");
        }
        let end = log.append(batch(1, NOW), 0).unwrap().first_offset;
        assert_eq!(end, offsets.end, "{context}");
    }
}

#[test]
fn a_power_cut_at_any_operation_leaves_all_that_was_acknowledged() {
    let mut cuts = 0;
    for seed in 0..3u64 {
        let mut run = Run::new();
        run.work(300, &mut Dice(seed));
        let moments = std::mem::take(&mut run.fs.disk.lock().moments);
        assert!(moments.last().unwrap().acknowledged > 30 && moments.last().unwrap().start > 0, "seed {seed}");
        for (at, moment) in moments.iter().enumerate() {
            for how in 0..4 {
                let context = format!("seed {seed}, before operation {at}, way {how}");
                run.check(moment, how, &mut Dice(seed * 1_000_003 + at as u64 * 7 + how), &context);
                cuts += 1;
            }
        }
    }
    assert!(cuts >= 3 * 300 * 4, "{cuts}");
}
