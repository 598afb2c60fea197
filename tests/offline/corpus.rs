//! A corpus of damaged directories: what each damage is, made on a copy of one directory, and what has to be found.
//!
//! [`Pristine`] is that directory. It has three partitions of several segments each:
//!
//! | partition | what is in it |
//! |---|---|
//! | `plain-0` | batches of three records, of every codec, half of them of an idempotent producer, in two leader epochs |
//! | `txn-0` | transactions of two producers that interleave, every third aborted |
//! | `keys-0` | `cleanup.policy=compact`, never cleaned |
//!
//! A [`Case`] damages a copy. Its places are looked up in the files, so that it holds whatever the engine lays out.

use std::fs;
use std::path::{Path, PathBuf};

use doze::record::{BatchHeader, BatchOptions, Batches, Codec, HEADER_LEN};
use doze::storage::log::EndMarker;
use doze::storage::verify::{Consequence, Kind};
use tempfile::TempDir;

use crate::make::{Data, WRITTEN_MS, batch_with, files};

/// The directory that cases damage copies of.
pub struct Pristine {
    dir: TempDir,
}

/// A copy of it.
pub struct Copy {
    dir: TempDir,
}

impl Copy {
    pub fn path(&self) -> PathBuf {
        self.dir.path().join("data")
    }
}

/// A batch, where it is.
#[derive(Clone, Debug)]
pub struct At {
    pub file: PathBuf,
    pub position: u64,
    pub size: u64,
    /// The first offset, and that after the last.
    pub offsets: (i64, i64),
}

impl Pristine {
    /// One that was stopped cleanly.
    pub fn clean() -> Pristine {
        let data = made();
        Pristine { dir: moved(data.stop()) }
    }

    /// One whose broker was killed.
    pub fn killed() -> Pristine {
        Pristine { dir: moved(made().crash()) }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub fn copy(&self) -> Copy {
        let dir = tempfile::tempdir().unwrap();
        copy_tree(&self.path(), &dir.path().join("data"));
        Copy { dir }
    }
}

fn moved(stopped: crate::make::Stopped) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    copy_tree(&stopped.dir(), &dir.path().join("data"));
    dir
}

/// Copies a folder and all that is in it.
pub fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_tree(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

fn made() -> Data {
    let data = Data::new();
    let small = [("segment.bytes", "2500"), ("index.interval.bytes", "300")];
    data.topic("plain", 1, &small);
    data.topic("txn", 1, &small);
    data.topic("keys", 1, &[small[0], small[1], ("cleanup.policy", "compact")]);
    let codecs = [Codec::None, Codec::Gzip { level: 6 }, Codec::Snappy, Codec::Lz4, Codec::Zstd { level: 3 }];
    let append = |topic: &str, n: i64, epoch: i32, options: BatchOptions| {
        let value = |i: i64| format!("value {n} {i} {}", "x".repeat(20 + (n as usize * 7) % 60));
        let keys: Vec<String> = (0..3).map(|i| format!("key {}", (n + i) % 10)).collect();
        let values: Vec<String> = (0..3).map(value).collect();
        let records: Vec<(Option<&str>, Option<&str>)> =
            keys.iter().zip(&values).map(|(key, value)| (Some(key.as_str()), Some(value.as_str()))).collect();
        let mut builder = doze::record::BatchBuilder::new(options).unwrap();
        for (i, (key, value)) in records.iter().enumerate() {
            let (key, value) = (key.map(str::as_bytes), value.map(str::as_bytes));
            builder.append(WRITTEN_MS + n * 10 + i as i64, key, value, &[]).unwrap();
        }
        let batch = doze::record::CheckedBatch::of_own(builder.finish(None).unwrap()).unwrap();
        data.log(topic, 0).append(batch, epoch).unwrap();
    };
    for n in 0..40i64 {
        let codec = codecs[n as usize % codecs.len()];
        let producer_id = if n % 2 == 0 { 41 } else { -1 };
        let base_sequence = if n % 2 == 0 { (n / 2 * 3) as i32 } else { -1 };
        let producer_epoch = if n % 2 == 0 { 0 } else { -1 };
        let options = BatchOptions { codec, producer_id, producer_epoch, base_sequence, ..BatchOptions::default() };
        append("plain", n, if n < 18 { 0 } else { 3 }, options);
        append("keys", n, 0, BatchOptions::default());
    }
    let mut sequences = [0; 2];
    for n in 0..45i64 {
        let producer = (n % 2) as usize;
        let options = BatchOptions {
            producer_id: 50 + n % 2,
            producer_epoch: 1,
            base_sequence: sequences[producer],
            transactional: true,
            ..BatchOptions::default()
        };
        append("txn", n, 0, options);
        sequences[producer] += 3;
        if n % 4 >= 2 {
            let marker = EndMarker {
                producer_id: 50 + n % 2,
                producer_epoch: 1,
                committed: (n / 4) % 3 != 0,
                coordinator_epoch: 0,
                transaction_version: 1,
            };
            data.log("txn", 0).append_end_txn_marker(marker, 0).unwrap();
        }
    }
    // One that has never had a record, and one of a single batch.
    data.topic("empty", 1, &[]);
    data.topic("one", 1, &[]);
    data.append("one", 0, batch_with(BatchOptions::default(), &[(None, Some("alone"))]));
    data
}

/// The batches of a partition of a directory, in order.
pub fn batches(dir: &Path, partition: &str) -> Vec<At> {
    let mut all = Vec::new();
    for file in files(&dir.join(partition), ".log") {
        let bytes = fs::read(&file).unwrap();
        let mut position = 0;
        for batch in Batches::new(&bytes) {
            let size = batch.bytes().len() as u64;
            let offsets = (batch.header().base_offset, batch.header().last_offset() + 1);
            all.push(At { file: file.clone(), position, size, offsets });
            position += size;
        }
        assert_eq!(position as usize, bytes.len(), "{}", file.display());
    }
    all
}

/// What has to be found.
#[derive(Clone, Debug)]
pub struct Expected {
    pub partition: Option<&'static str>,
    pub kind: Kind,
    pub consequence: Consequence,
    /// The offsets that are named, where it is about offsets.
    pub offsets: Option<(i64, i64)>,
}

/// A change of a file's bytes.
type Change = Box<dyn Fn(&mut Vec<u8>)>;

/// A damage.
pub struct Case {
    pub name: String,
    /// Damages the directory at the path.
    pub damage: Box<dyn Fn(&Path)>,
    /// One of the findings has to be this.
    pub expected: Expected,
}

/// Flips a bit of a file: the lowest of the byte at `position`.
pub fn flip(file: &Path, position: u64) {
    change(file, |bytes| bytes[position as usize] ^= 1);
}

pub fn change(file: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).unwrap();
    change(&mut bytes);
    fs::write(file, bytes).unwrap();
}

/// The cases of damage to a directory that was stopped cleanly.
pub fn cases(pristine: &Pristine) -> Vec<Case> {
    let dir = pristine.path();
    let mut cases = Vec::new();
    log_cases(&dir, &mut cases);
    file_cases(&dir, &mut cases);
    index_cases(&dir, &mut cases);
    small_file_cases(&dir, &mut cases);
    directory_cases(&mut cases);
    cases
}

fn relative(dir: &Path, file: &Path) -> PathBuf {
    file.strip_prefix(dir).unwrap().to_owned()
}

fn case(
    name: impl Into<String>,
    expected: (Option<&'static str>, Kind, Consequence, Option<(i64, i64)>),
    damage: impl Fn(&Path) + 'static,
) -> Case {
    let (partition, kind, consequence, offsets) = expected;
    Case { name: name.into(), damage: Box::new(damage), expected: Expected { partition, kind, consequence, offsets } }
}

/// Each class of bit positions of a batch: the first of a segment, one in the middle, the last of a sealed segment, and the
/// last of all.
fn log_cases(dir: &Path, cases: &mut Vec<Case>) {
    use Consequence::{Lost, Suspect};
    let all = batches(dir, "plain-0");
    let is_last_of_file = |at: usize| all.get(at + 1).is_none_or(|next| next.file != all[at].file);
    let is_first_of_file = |at: usize| at == 0 || all[at - 1].file != all[at].file;
    let middle = (5..).find(|at| !is_last_of_file(*at) && !is_first_of_file(*at)).unwrap();
    let first = (5..).find(|at| is_first_of_file(*at) && !is_last_of_file(*at)).unwrap();
    let sealed_last = (5..).find(|at| is_last_of_file(*at)).unwrap();
    let last = all.len() - 1;
    for (place, at) in [("middle", middle), ("first", first), ("sealed last", sealed_last), ("last", last)] {
        let batch = all[at].clone();
        let file = relative(dir, &batch.file);
        let offsets = Some(batch.offsets);
        let mut add = |what: &str, byte: u64, kind: Kind, consequence: Consequence, offsets| {
            let (file, position) = (file.clone(), batch.position + byte);
            let expected = (Some("plain-0"), kind, consequence, offsets);
            cases.push(case(format!("{what}, {place}"), expected, move |dir| flip(&dir.join(&file), position)));
        };
        add("offset, far", 1, Kind::BadOffset, Lost, offsets);
        add("length, huge", 8, Kind::BadFrame, Lost, offsets);
        add("leader epoch", 15, Kind::BadEpoch, Suspect, offsets);
        add("magic, unknown", 16, Kind::BadFrame, Lost, offsets);
        add("checksum", 17, Kind::BadChecksum, Lost, offsets);
        add("attributes", 21, Kind::BadChecksum, Lost, offsets);
        add("timestamp", 34, Kind::BadChecksum, Lost, offsets);
        add("producer id", 50, Kind::BadChecksum, Lost, offsets);
        add("record body", batch.size - 3, Kind::BadChecksum, Lost, offsets);
    }
    let batch = all[middle].clone();
    let (file, position, size) = (relative(dir, &batch.file), batch.position as usize, batch.size as usize);
    let (offsets, lost) = (Some(batch.offsets), Consequence::Lost);
    let f = file.clone();
    cases.push(case("a hole of zeros over a batch", (Some("plain-0"), Kind::Zeros, lost, offsets), move |dir| {
        change(&dir.join(&f), |bytes| bytes[position..position + size].fill(0));
    }));
    let f = file.clone();
    cases.push(case("a batch taken out", (Some("plain-0"), Kind::MissingOffsets, lost, offsets), move |dir| {
        change(&dir.join(&f), |bytes| drop(bytes.drain(position..position + size)));
    }));
    let next = all[middle + 1].clone();
    let both = Some((batch.offsets.0, next.offsets.1));
    if next.file == batch.file {
        let (f, end) = (file.clone(), (next.position + next.size) as usize);
        cases.push(case("two batches damaged", (Some("plain-0"), Kind::BadChecksum, lost, both), move |dir| {
            change(&dir.join(&f), |bytes| {
                bytes[position + 70] ^= 1;
                bytes[end - 3] ^= 1;
            });
        }));
    }
    let f = file.clone();
    cases.push(case("a batch twice", (Some("plain-0"), Kind::BadOffset, Consequence::Lost, None), move |dir| {
        change(&dir.join(&f), |bytes| {
            let again = bytes[position..position + size].to_vec();
            bytes.splice(position..position, again);
        });
    }));
}

/// Whole log files.
fn file_cases(dir: &Path, cases: &mut Vec<Case>) {
    use Consequence::{Lost, Suspect};
    let all = batches(dir, "plain-0");
    let logs = files(&dir.join("plain-0"), ".log");
    let of = |file: &Path| -> (i64, i64) {
        let of_file: Vec<&At> = all.iter().filter(|at| at.file == file).collect();
        (of_file[0].offsets.0, of_file[of_file.len() - 1].offsets.1)
    };
    let second = relative(dir, &logs[1]);
    let (name, place) = (Some("plain-0"), of(&logs[1]));
    let f = second.clone();
    cases.push(case("a log file missing", (name, Kind::MissingOffsets, Lost, Some(place)), move |dir| {
        fs::remove_file(dir.join(&f)).unwrap();
    }));
    let f = relative(dir, &logs[0]);
    let start = of(&logs[0]);
    cases.push(case("the first log file missing", (name, Kind::LogStart, Lost, Some(start)), move |dir| {
        fs::remove_file(dir.join(&f)).unwrap();
    }));
    let f = relative(dir, &logs[logs.len() - 1]);
    let end = of(&logs[logs.len() - 1]);
    cases.push(case("the last log file missing", (name, Kind::MissingOffsets, Lost, Some(end)), move |dir| {
        fs::remove_file(dir.join(&f)).unwrap();
    }));
    let f = second.clone();
    cases.push(case("a log file of no bytes", (name, Kind::MissingOffsets, Lost, Some(place)), move |dir| {
        fs::write(dir.join(&f), b"").unwrap();
    }));
    let (f, g) = (second.clone(), relative(dir, &logs[2]));
    cases.push(case("two log files swapped", (name, Kind::WrongFile, Lost, Some(place)), move |dir| {
        let (a, b) = (fs::read(dir.join(&f)).unwrap(), fs::read(dir.join(&g)).unwrap());
        fs::write(dir.join(&f), b).unwrap();
        fs::write(dir.join(&g), a).unwrap();
    }));
    let in_second: Vec<At> = all.iter().filter(|at| at.file == logs[1]).cloned().collect();
    let cut = in_second[in_second.len() / 2].clone();
    for (what, more, kind) in [("in a batch", 30, Kind::BadFrame), ("between batches", 0, Kind::MissingOffsets)] {
        let (f, len, lost) = (second.clone(), cut.position + more, (cut.offsets.0, place.1));
        cases.push(case(format!("a sealed log cut {what}"), (name, kind, Lost, Some(lost)), move |dir| {
            change(&dir.join(&f), |bytes| bytes.truncate(len as usize));
        }));
    }
    let last = all[all.len() - 1].clone();
    let f = relative(dir, &last.file);
    cases.push(case("the last log cut", (name, Kind::BadFrame, Lost, Some(last.offsets)), move |dir| {
        change(&dir.join(&f), |bytes| bytes.truncate(bytes.len() - 5));
    }));
    let f = second.clone();
    cases.push(case("bytes behind a sealed log", (name, Kind::BadFrame, Lost, None), move |dir| {
        change(&dir.join(&f), |bytes| bytes.extend([0xab; 300]));
    }));
    let (f, middle) = (second.clone(), in_second[in_second.len() / 2].offsets.0);
    let overlap = (Some("plain-0"), Kind::Overlap, Suspect, Some((middle, place.1)));
    cases.push(case("a copy of a log under another name", overlap, move |dir| {
        let copy = dir.join(&f).with_file_name(format!("{middle:020}.log"));
        fs::copy(dir.join(&f), copy).unwrap();
    }));
    cases.push(case("a foreign file", (name, Kind::Foreign, Consequence::Harmless, None), |dir| {
        fs::write(dir.join("plain-0/notes.txt"), "hello").unwrap();
    }));
}

fn index_cases(dir: &Path, cases: &mut Vec<Case>) {
    use Consequence::Rebuild;
    for (suffix, size, offset_at) in [(".index", 8u64, 3u64), (".timeindex", 12, 11)] {
        let with_two = |path: &&PathBuf| fs::metadata(path).unwrap().len() >= 2 * size;
        let all = files(&dir.join("plain-0"), suffix);
        let sealed = relative(dir, all[..all.len() - 1].iter().find(with_two).unwrap());
        let mut add = |what: &str, kind: Kind, damage: Change| {
            let f = sealed.clone();
            let expected = (Some("plain-0"), kind, Rebuild, None);
            cases.push(case(format!("{suffix}: {what}"), expected, move |dir| change(&dir.join(&f), &damage)));
        };
        add("an offset", Kind::BadIndex, Box::new(move |bytes| bytes[offset_at as usize] ^= 4));
        add("the other number", Kind::BadIndex, Box::new(|bytes| bytes[7] ^= 1));
        add("a high bit", Kind::BadIndex, Box::new(move |bytes| bytes[1] ^= 1));
        add("torn", Kind::TornIndex, Box::new(move |bytes| bytes.truncate(bytes.len() - 3)));
        add(
            "entries swapped",
            Kind::BadIndex,
            Box::new(move |bytes| bytes[..2 * size as usize].rotate_left(size as usize)),
        );
        add("zeros at the end", Kind::BadIndex, Box::new(move |bytes| bytes.extend(vec![0; 2 * size as usize])));
        let f = sealed.clone();
        let expected = (Some("plain-0"), Kind::StaleIndex, Rebuild, None);
        cases.push(case(format!("{suffix}: missing"), expected, move |dir| fs::remove_file(dir.join(&f)).unwrap()));
    }
    let txn = relative(dir, &files(&dir.join("txn-0"), ".txnindex")[0]);
    let mut add = |what: &str, kind: Kind, damage: Change| {
        let f = txn.clone();
        let expected = (Some("txn-0"), kind, Rebuild, None);
        cases.push(case(format!(".txnindex: {what}"), expected, move |dir| change(&dir.join(&f), &damage)));
    };
    add("version", Kind::BadTxnIndex, Box::new(|bytes| bytes[1] ^= 1));
    add("producer", Kind::BadTxnIndex, Box::new(|bytes| bytes[9] ^= 1));
    add("first offset", Kind::BadTxnIndex, Box::new(|bytes| bytes[17] ^= 1));
    add("marker", Kind::BadTxnIndex, Box::new(|bytes| bytes[25] ^= 1));
    add("last stable offset", Kind::BadTxnIndex, Box::new(|bytes| bytes[33] ^= 1));
    add("torn", Kind::TornIndex, Box::new(|bytes| bytes.truncate(bytes.len() - 1)));
    let f = txn.clone();
    cases.push(case(".txnindex: missing", (Some("txn-0"), Kind::BadTxnIndex, Rebuild, None), move |dir| {
        fs::remove_file(dir.join(&f)).unwrap();
    }));
    let snapshots = files(&dir.join("txn-0"), ".snapshot");
    for (what, at) in [("newest", snapshots.len() - 1), ("older", snapshots.len() - 2)] {
        let f = relative(dir, &snapshots[at]);
        cases.push(case(
            format!("a snapshot, {what}"),
            (Some("txn-0"), Kind::BadSnapshot, Rebuild, None),
            move |dir| {
                flip(&dir.join(&f), 20);
            },
        ));
    }
    let (new, old) = (relative(dir, &snapshots[snapshots.len() - 1]), relative(dir, &snapshots[snapshots.len() - 2]));
    cases.push(case("an old snapshot for a new", (Some("txn-0"), Kind::WrongSnapshot, Rebuild, None), move |dir| {
        fs::copy(dir.join(&old), dir.join(&new)).unwrap();
    }));
    let (new, old) = (relative(dir, &snapshots[snapshots.len() - 1]), relative(dir, &snapshots[snapshots.len() - 2]));
    cases.push(case("a new snapshot for an old", (Some("txn-0"), Kind::WrongSnapshot, Rebuild, None), move |dir| {
        fs::copy(dir.join(&new), dir.join(&old)).unwrap();
    }));
}

fn small_file_cases(_dir: &Path, cases: &mut Vec<Case>) {
    use Consequence::{Harmless, Lost, Rebuild, Suspect, Unserved};
    let name = Some("plain-0");
    let mut write = |what: &str, file: &'static str, text: &'static [u8], kind: Kind, meaning: Consequence| {
        cases.push(case(what, (name, kind, meaning, None), move |dir| {
            fs::write(dir.join("plain-0").join(file), text).unwrap();
        }));
    };
    write("epochs: nonsense", "leader-epoch-checkpoint", b"0\n7\n", Kind::EpochCheckpoint, Rebuild);
    write("epochs: an old one", "leader-epoch-checkpoint", b"0\n1\n0 0\n", Kind::EpochCheckpoint, Rebuild);
    write("epochs: of later", "leader-epoch-checkpoint", b"0\n3\n0 0\n3 54\n4 900\n", Kind::MissingOffsets, Lost);
    write("metadata: nonsense", "partition.metadata", b"version: 0\n", Kind::PartitionMetadata, Rebuild);
    write(
        "metadata: another id",
        "partition.metadata",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAQQ\n",
        Kind::TopicId,
        Unserved,
    );
    write("cleaner: nonsense", "cleaner-checkpoint", b"version: 9\n", Kind::Checkpoint, Rebuild);
    write("a failed flush", "flush-failed", b"", Kind::FlushFailed, Suspect);
    write("a rewrite that was interrupted", "00000000000000000000.log.cleaned", b"xyz", Kind::Leftover, Harmless);
    write("a small file half written", "partition.metadata.tmp", b"", Kind::Leftover, Harmless);
    write("an index without a log", "00000000000000000001.timeindex", b"", Kind::Orphan, Harmless);
    for (what, file, kind) in [
        ("epochs: missing", "leader-epoch-checkpoint", Kind::EpochCheckpoint),
        ("metadata: missing", "partition.metadata", Kind::PartitionMetadata),
    ] {
        cases.push(case(what, (name, kind, Rebuild, None), move |dir| {
            fs::remove_file(dir.join("plain-0").join(file)).unwrap();
        }));
    }
}

fn directory_cases(cases: &mut Vec<Case>) {
    use Consequence::{Harmless, Lost, Rebuild, Unserved};
    cases.push(case("the catalog missing", (None, Kind::CatalogMissing, Unserved, None), |dir| {
        fs::remove_file(dir.join("meta.db")).unwrap();
    }));
    cases.push(case("the catalog cut", (None, Kind::CatalogDamaged, Unserved, None), |dir| {
        change(&dir.join("meta.db"), |bytes| bytes.truncate(5000));
    }));
    cases.push(case("the catalog's magic", (None, Kind::CatalogDamaged, Unserved, None), |dir| {
        flip(&dir.join("meta.db"), 0);
    }));
    cases.push(case("a partition's folder missing", (Some("plain-0"), Kind::MissingPartition, Lost, None), |dir| {
        fs::remove_dir_all(dir.join("plain-0")).unwrap();
    }));
    cases.push(case("an unknown partition", (Some("other-0"), Kind::UnknownPartition, Unserved, None), |dir| {
        copy_tree(&dir.join("plain-0"), &dir.join("other-0"));
    }));
    cases.push(case("a partition too many", (Some("plain-1"), Kind::UnknownPartition, Unserved, None), |dir| {
        copy_tree(&dir.join("plain-0"), &dir.join("plain-1"));
    }));
    cases.push(case("a partition's folder emptied", (Some("plain-0"), Kind::EmptyPartition, Lost, None), |dir| {
        for suffix in [".log", ".index", ".timeindex"] {
            files(&dir.join("plain-0"), suffix).iter().for_each(|file| fs::remove_file(file).unwrap());
        }
    }));
    cases.push(case("a deleted partition", (None, Kind::Leftover, Harmless, None), |dir| {
        fs::create_dir(dir.join(format!("gone-0.{:032x}-delete", 5))).unwrap();
    }));
    cases.push(case("a foreign folder", (None, Kind::Foreign, Harmless, None), |dir| {
        fs::create_dir(dir.join("lost+found")).unwrap();
    }));
    cases.push(case("the mark: nonsense", (None, Kind::CleanMark, Rebuild, None), |dir| {
        fs::write(dir.join("clean-shutdown"), "version: 0\nunchecked: 3\n").unwrap();
    }));
}

/// The cases of damage to a directory whose broker was killed.
pub fn killed_cases(pristine: &Pristine) -> Vec<Case> {
    use Consequence::{Lost, TornTail};
    let dir = pristine.path();
    let all = batches(&dir, "plain-0");
    let last = all[all.len() - 1].clone();
    let file = relative(&dir, &last.file);
    let torn = (Some("plain-0"), Kind::TornTail, TornTail, None);
    let mut cases = Vec::new();
    for (what, cut) in [("one byte", 1), ("a header", last.size - 30), ("all but one byte", last.size - 1)] {
        let f = file.clone();
        cases.push(case(format!("a torn tail: without {what}"), torn, move |dir| {
            change(&dir.join(&f), |bytes| bytes.truncate(bytes.len() - cut as usize));
        }));
    }
    let f = file.clone();
    cases.push(case("a torn tail: zeros", torn, move |dir| {
        change(&dir.join(&f), |bytes| bytes.extend([0; 4096]));
    }));
    let (f, position) = (file.clone(), last.position + 80);
    cases.push(case("a torn tail: a bit of the last batch", torn, move |dir| flip(&dir.join(&f), position)));
    let before = all[all.len() - 2].clone();
    assert_eq!(before.file, last.file);
    let (f, position) = (file, before.position + 80);
    let lost = (Some("plain-0"), Kind::BadChecksum, Lost, Some(before.offsets));
    cases.push(case("a bit before the last batch", lost, move |dir| flip(&dir.join(&f), position)));
    cases
}

/// The cases that only level deep finds: batches whose checksum is that of their bytes, and whose records are not what they should be.
pub fn deep_cases(pristine: &Pristine) -> Vec<Case> {
    use Consequence::{Lost, Suspect};
    let dir = pristine.path();
    let all = batches(&dir, "plain-0");
    // By codec, as they were made in turn: none, gzip, snappy, lz4, zstd.
    let mut cases = Vec::new();
    for (codec, at) in ["none", "gzip", "snappy", "lz4", "zstd"].into_iter().zip(5..) {
        let (batch, file) = (all[at].clone(), relative(&dir, &all[at].file));
        let mut add = |what: &str, kind: Kind, consequence: Consequence, damage: fn(&mut BatchHeader, &mut [u8])| {
            let expected = (Some("plain-0"), kind, consequence, Some(batch.offsets));
            let (f, start, end) = (file.clone(), batch.position as usize, (batch.position + batch.size) as usize);
            cases.push(case(format!("{what}, {codec}"), expected, move |dir| {
                change(&dir.join(&f), |bytes| with_right_checksum(&mut bytes[start..end], damage));
            }));
        };
        add("a record less in the header", Kind::BadRecords, Lost, |header, _| header.records_count -= 1);
        add("a later maximum timestamp", Kind::BadRecordFields, Suspect, |header, _| header.max_timestamp += 7);
        add("records that are nonsense", Kind::BadRecords, Lost, |_, records| records.fill(0xee));
    }
    cases
}

/// Changes a batch, and makes its checksum anew.
fn with_right_checksum(batch: &mut [u8], change: fn(&mut BatchHeader, &mut [u8])) {
    let (fixed, records) = batch.split_first_chunk_mut::<HEADER_LEN>().unwrap();
    let mut header = BatchHeader::read(fixed);
    change(&mut header, records);
    header.crc = header.compute_crc(records);
    *fixed = header.encode();
}
