//! Whatever happens to a file, a dump goes on: it shows what is whole, tells of every byte that is not, and ends.

use std::path::PathBuf;

use bytes::Bytes;

use super::*;
use crate::record::{BatchBuilder, BatchOptions, Codec, HEADER_LEN};
use crate::sys::OsFileSystem;
use crate::sys::sim::Prng;

struct Dir(tempfile::TempDir);

impl Dir {
    fn new() -> Dir {
        Dir(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn dump(&self, name: &str, bytes: &[u8]) -> Vec<Entry> {
        dump(&self.file(name, bytes), Range::default())
    }
}

fn dump(path: &Path, range: Range) -> Vec<Entry> {
    let open = || Dump::open(&OsFileSystem, path, range.clone()).unwrap();
    let entries: Vec<Entry> = open().map(Result::unwrap).collect();
    // Whoever reads it stretch by stretch reads the same.
    let (mut by_stretches, mut next) = (Vec::new(), open().place());
    while let Some(place) = next {
        let mut dump = open();
        let until = dump.go_to_stretch(&place);
        let stretch: Vec<Entry> = dump.by_ref().map(Result::unwrap).collect();
        let is_whole = damage(&stretch).is_empty();
        next = dump.place();
        assert!(!is_whole || until.is_none() || next.is_none() || next == until, "{until:?} was told, {next:?} it is");
        assert!(next != Some(place), "it does not go on at {place:?}");
        by_stretches.extend(stretch);
    }
    assert_eq!(by_stretches, entries);
    entries
}

fn batch(base_offset: i64, records: usize, codec: Codec) -> Bytes {
    let mut builder = BatchBuilder::new(BatchOptions { base_offset, codec, ..BatchOptions::default() }).unwrap();
    for n in 0..records {
        builder.append(1000 + base_offset + n as i64, Some(b"key"), Some(&[n as u8; 40]), &[]).unwrap();
    }
    builder.finish(None).unwrap()
}

/// Ten batches of three records, and where each starts.
fn log() -> (Vec<u8>, Vec<u64>) {
    let codecs = [Codec::None, Codec::Lz4, Codec::Snappy];
    let (mut bytes, mut starts) = (Vec::new(), Vec::new());
    for n in 0..10 {
        starts.push(bytes.len() as u64);
        bytes.extend_from_slice(&batch(n * 3, 3, codecs[n as usize % codecs.len()]));
    }
    (bytes, starts)
}

fn name(base: i64) -> String {
    names::segment_file(base, FileKind::Log)
}

/// The batches with the right checksum, by base offset.
fn good(entries: &[Entry]) -> Vec<i64> {
    let valid = entries.iter().filter_map(|entry| match entry {
        Entry::Batch(batch) if batch.is_valid() => Some(batch.base_offset),
        _ => None,
    });
    valid.collect()
}

fn damage(entries: &[Entry]) -> Vec<&Damage> {
    let damage = entries.iter().filter_map(|entry| match entry {
        Entry::Damage(damage) => Some(damage),
        _ => None,
    });
    damage.collect()
}

/// Batches and damage follow each other without a gap, from the first byte to the last. The damage of a batch that is shown
/// has its bytes.
fn assert_all_is_told(entries: &[Entry], size: u64, what: &str) {
    let mut at = 0;
    for entry in entries {
        let (position, end) = match entry {
            Entry::Batch(batch) => (batch.position, batch.position + batch.size),
            Entry::Damage(damage) => (damage.position, damage.position + damage.bytes),
            _ => continue,
        };
        assert!(position <= at && end >= at, "{what}: {position} to {end} after {at}");
        at = end;
    }
    assert_eq!(at, size, "{what}");
}

#[test]
fn a_good_log_is_shown_as_it_is() {
    let dir = Dir::new();
    let (bytes, starts) = log();
    let path = dir.file(&name(0), &bytes);
    let entries = dump(&path, Range::default());
    let places: Vec<u64> =
        entries.iter().map(|entry| if let Entry::Batch(b) = entry { b.position } else { 9 }).collect();
    assert_eq!(places, starts);
    let mut dump = Dump::open(&OsFileSystem, &path, Range::default()).unwrap();
    let mut offsets = Vec::new();
    while let Some(entry) = dump.next() {
        assert!(matches!(entry.unwrap(), Entry::Batch(BatchEntry { records: Some(3), .. })));
        let mut records = dump.records().unwrap();
        while let Some(record) = records.next().unwrap() {
            assert_eq!(
                (record.timestamp, record.key, record.value.unwrap().len()),
                (1000 + record.offset, Some(&b"key"[..]), 40)
            );
            offsets.push(record.offset);
        }
    }
    assert_eq!(offsets, (0..30).collect::<Vec<i64>>());
}

#[test]
fn ranges_of_offsets_and_times() {
    let dir = Dir::new();
    let path = dir.file(&name(0), &log().0);
    let shown = |range| good(&dump(&path, range));
    assert_eq!(shown(Range { offsets: 5..=9, ..Range::default() }), [3, 6, 9]);
    assert_eq!(shown(Range { times: 1005..=1009, ..Range::default() }), [3, 6, 9]);
    assert_eq!(shown(Range { offsets: 29..=i64::MAX, ..Range::default() }), [27]);
    assert_eq!(shown(Range { times: 1030..=i64::MAX, ..Range::default() }), [0; 0]);
}

#[test]
fn each_kind_of_damage_is_named_and_what_follows_is_shown() {
    let dir = Dir::new();
    let (bytes, starts) = log();
    let place = |n: usize| starts[n] as usize;
    let others = |missing: &[i64]| (0..10).map(|n| n * 3).filter(|base| !missing.contains(base)).collect::<Vec<i64>>();
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = bytes.clone();
        change(&mut bytes);
        dir.dump(&name(0), &bytes)
    };

    let flipped = changed(&|bytes| bytes[place(4) + HEADER_LEN + 9] ^= 1);
    assert_eq!(good(&flipped), others(&[12]));
    let found = damage(&flipped);
    assert!(
        matches!(found[..], [Damage { kind: DamageKind::Crc { .. }, offsets: (Some(12), Some(15)), .. }]),
        "{found:?}"
    );
    assert!(
        flipped.iter().any(|entry| matches!(entry, Entry::Batch(batch) if !batch.is_valid())),
        "its header is shown"
    );

    // The length is not covered by the checksum, and cannot be believed.
    for length in [0i32, 60, 1 << 30, -1] {
        let bent = changed(&|bytes| bytes[place(4) + 8..place(4) + 12].copy_from_slice(&length.to_be_bytes()));
        assert_eq!(good(&bent), others(&[12]), "length {length}");
        let found = damage(&bent);
        assert_eq!(
            (found.len(), found[0].position, found[0].bytes),
            (1, starts[4], starts[5] - starts[4]),
            "length {length}"
        );
        assert_eq!(found[0].offsets, (Some(12), Some(15)));
    }

    let zeros = changed(&|bytes| bytes[place(2)..place(5)].fill(0));
    assert_eq!(good(&zeros), others(&[6, 9, 12]));
    assert!(matches!(damage(&zeros)[..], [Damage { kind: DamageKind::Zeros, offsets: (Some(6), Some(15)), .. }]));

    let torn = changed(&|bytes| bytes.truncate(place(9) + 70));
    assert_eq!(good(&torn), others(&[27]));
    assert!(
        matches!(damage(&torn)[..], [Damage { kind: DamageKind::Torn { left: 70, .. }, bytes: 70, .. }]),
        "{torn:?}"
    );

    let twice = changed(&|bytes| {
        let again = bytes[place(3)..place(4)].to_vec();
        let at = place(5);
        bytes.splice(at..at, again);
    });
    assert_eq!(good(&twice).len(), 11);
    let found = damage(&twice);
    // It comes too early, and what follows it does not.
    assert!(matches!(found[..], [Damage { kind: DamageKind::Offsets { due: 15 }, .. }]), "{found:?}");

    let junk = changed(&|bytes| {
        let at = place(5);
        bytes.splice(at..at, [7; 100]);
    });
    assert_eq!(good(&junk), others(&[]));
    assert_eq!((damage(&junk)[0].bytes, damage(&junk)[0].kind.name()), (100, "header"));

    assert_eq!(good(&dir.dump("copy.log.deleted", &bytes)), others(&[]), "whatever its name is");
    assert!(matches!(damage(&dir.dump(&name(5), &bytes))[..], [Damage { kind: DamageKind::Offsets { due: 5 }, .. }]));
    assert_eq!(dir.dump(&name(0), &[]), []);
}

#[test]
fn thousands_of_random_changes() {
    let dir = Dir::new();
    let (bytes, starts) = log();
    let seed = std::env::var("DOZE_SEED").map_or(1, |seed| seed.parse().unwrap());
    let mut random = Prng::new(seed);
    for round in 0..1000 {
        let what = format!("DOZE_SEED={seed}, round {round}");
        let mut bent = bytes.clone();
        let (from, len) = (random.below(bent.len() as u64) as usize, 1 + random.below(40) as usize);
        let until = (from + len).min(bent.len());
        for byte in &mut bent[from..until] {
            *byte = random.below(256) as u8;
        }
        if random.below(4) == 0 {
            bent.truncate(random.below(bent.len() as u64 + 1) as usize);
        }
        let entries = dir.dump(&name(0), &bent);
        assert_all_is_told(&entries, bent.len() as u64, &what);
        // What was not touched is shown.
        for (n, start) in starts.iter().enumerate() {
            let end = starts.get(n + 1).map_or(bytes.len(), |next| *next as usize);
            let start = *start as usize;
            if bent.get(start..end) == Some(&bytes[start..end]) {
                assert!(good(&entries).contains(&(n as i64 * 3)), "{what}: batch {n} is whole");
            }
        }
        let mut dump = Dump::open(&OsFileSystem, &dir.file(&name(0), &bent), Range::default()).unwrap();
        while let Some(entry) = dump.next() {
            entry.unwrap();
            let mut records = dump.records().unwrap();
            while let Ok(Some(_)) = records.next() {}
        }
    }
}

#[test]
fn indexes_with_room_at_their_end_and_with_damage() {
    let dir = Dir::new();
    let index: Vec<u8> = [[10u32, 100], [20, 200]].into_iter().flatten().flat_map(u32::to_be_bytes).collect();
    let offset = |position, offset, log_position| Entry::Offset { position, offset, log_position };
    let file = |rest: &[u8]| [&index, rest].concat();
    let shown = |rest: &[u8]| dir.dump("00000000000000001000.index", &file(rest));
    assert_eq!(shown(&[]), [offset(0, 1010, 100), offset(8, 1020, 200)]);
    assert_eq!(shown(&[0; 800])[2..], [Entry::Unused { position: 16, bytes: 800 }]);
    assert!(matches!(
        shown(&[1, 2, 3])[2..],
        [Entry::Damage(Damage { position: 16, bytes: 3, kind: DamageKind::Torn { .. }, .. })]
    ));
    let falls = shown(&[0, 0, 0, 15, 0, 0, 1, 0]);
    assert!(matches!(
        falls[2..],
        [Entry::Damage(Damage { kind: DamageKind::Order, .. }), Entry::Offset { offset: 1015, .. }]
    ));

    let times: Vec<u8> = [5i64.to_be_bytes().to_vec(), 7u32.to_be_bytes().to_vec()].concat();
    assert_eq!(dir.dump("x.timeindex", &times), [Entry::Time { position: 0, timestamp: 5, offset: 7 }], "relative");
    let all_unused = dir.dump("00000000000000000000.timeindex", &[0; 120]);
    assert_eq!(all_unused, [Entry::Unused { position: 0, bytes: 120 }]);

    let mut aborted = vec![0, 1];
    [1i64, 2, 3, 4].iter().for_each(|n| aborted.extend(n.to_be_bytes()));
    let entries = dir.dump("00000000000000000000.txnindex", &aborted);
    assert!(matches!(
        entries[..],
        [Entry::Damage(Damage { kind: DamageKind::Version { found: 1 }, .. }), Entry::Aborted { .. }]
    ));
}

#[test]
fn text_files() {
    let dir = Dir::new();
    let epochs = dir.dump("leader-epoch-checkpoint", b"0\n2\n0 0\n3 17\n");
    assert_eq!(epochs, [Entry::LeaderEpoch { epoch: 0, start: 0 }, Entry::LeaderEpoch { epoch: 3, start: 17 }]);
    let bent = dir.dump("leader-epoch-checkpoint", b"0\n3\n0 0\nx\n");
    assert_eq!(damage(&bent).iter().map(|damage| damage.kind.name()).collect::<Vec<_>>(), ["text", "count"]);
    let id = Uuid([7; 16]);
    let metadata = dir.dump("partition.metadata", format!("version: 0\ntopic_id: {id}\n").as_bytes());
    assert_eq!(metadata, [Entry::Metadata { topic_id: id }]);
    assert_eq!(damage(&dir.dump("partition.metadata", b"\xff")).len(), 1);
    assert!(matches!(
        Dump::open(&OsFileSystem, &dir.file("notes.txt", b""), Range::default()),
        Err(DumpError::UnknownName { .. })
    ));
}
