//! What a log does with files that a crash, a bad disk or somebody else left.

use super::support::*;
use crate::record::Batches;
use crate::storage::log::{Damage, Isolation};
use std::fs;

/// A world whose log has `count` batches of two records, and the log file's bytes.
fn crashed(count: usize) -> (World, Vec<u8>, Vec<(i64, i64)>) {
    let world = World::with(|config| config.index_interval_bytes = 300);
    let log = world.open(true);
    for i in 0..count {
        log.append(of_producer(7, 0, 2 * i as i32, 2), 0).unwrap();
    }
    let all = read_all(&log, usize::MAX);
    let bytes = fs::read(&world.files(".log")[0]).unwrap();
    (world, bytes, all)
}

#[test]
fn a_tail_torn_anywhere_is_cut() {
    let (world, bytes, all) = crashed(6);
    let size = bytes.len() / 6;
    let path = &world.files(".log")[0];
    for len in bytes.len() - size..bytes.len() {
        for fill in [None, Some(0), Some(0xff)] {
            let mut torn = bytes[..len].to_vec();
            if let Some(fill) = fill {
                torn.resize(bytes.len() + 100, fill);
                if torn[..bytes.len()] == bytes[..] {
                    continue;
                }
            }
            fs::write(path, &torn).unwrap();
            let log = world.open(false);
            assert_eq!(read_all(&log, 1000), all[..5], "{len} {fill:?}");
            assert_eq!(fs::read(path).unwrap(), bytes[..5 * size], "{len} {fill:?}");
            assert_eq!(log.damage(), []);
            assert_eq!(log.append(of_producer(7, 0, 10, 2), 0).unwrap().first_offset, 10);
            assert_eq!(fs::read(path).unwrap(), bytes);
        }
    }
}

#[test]
fn a_flipped_bit_before_the_tail_costs_no_more_than_its_batch() {
    let (world, bytes, all) = crashed(4);
    let size = bytes.len() / 4;
    let path = &world.files(".log")[0];
    let mut served = 0;
    for bit in 0..size * 8 {
        let mut flipped = bytes.clone();
        flipped[size + bit / 8] ^= 1 << (bit % 8);
        fs::write(path, &flipped).unwrap();
        let log = world.open(false);
        assert_eq!(fs::read(path).unwrap(), flipped, "nothing is cut, bit {bit}");
        assert_eq!(log.offsets().end, 8, "bit {bit}");
        if (12 * 8..16 * 8).contains(&bit) {
            assert_eq!(log.damage(), [], "the checksum does not cover the leader epoch");
            continue;
        }
        let damage = &log.damage()[0];
        let expected =
            Damage { segment: 0, position: size as u64, bytes: size as u64, offsets: (2, 4), served: damage.served };
        assert_eq!((log.damage().len(), damage), (1, &expected), "bit {bit}");
        let first = log.read(0, usize::MAX, true, Isolation::ReadUncommitted).unwrap();
        let first = bytes_of(&first.range.unwrap());
        let second = log.read(2, usize::MAX, true, Isolation::ReadUncommitted).unwrap();
        let second = bytes_of(&second.range.unwrap());
        if damage.served {
            served += 1;
            assert_eq!((first, second), (flipped.clone(), flipped[size..].to_vec()), "as it is, bit {bit}");
        } else {
            assert_eq!((first, second), (bytes[..size].to_vec(), bytes[2 * size..].to_vec()), "led past, bit {bit}");
        }
        let third = log.read(4, usize::MAX, true, Isolation::ReadUncommitted).unwrap();
        assert_eq!(Batches::new(&bytes_of(&third.range.unwrap())).count(), 2);
        assert_eq!(log.offset_for_timestamp(NOW).unwrap().unwrap().offset, 0);
        assert_eq!(log.append(of_producer(7, 0, 8, 2), 0).unwrap().first_offset, 8);
    }
    assert!(served > size * 4, "most bits are of the records: {served}");
    assert_eq!(all.len(), 4);
}

#[test]
fn a_flipped_bit_in_the_last_batch_is_a_torn_tail() {
    let (world, bytes, all) = crashed(3);
    let size = bytes.len() / 3;
    let path = &world.files(".log")[0];
    for at in 8..size {
        let mut flipped = bytes.clone();
        flipped[2 * size + at] ^= 0x10;
        fs::write(path, &flipped).unwrap();
        let log = world.open(false);
        let expected = if (12..16).contains(&at) { 3 } else { 2 };
        assert_eq!(read_all(&log, 1000), all[..expected], "byte {at}");
    }
}

#[test]
fn a_torn_tail_after_damage_is_cut_and_the_damage_kept() {
    let (world, mut bytes, _) = crashed(5);
    let size = bytes.len() / 5;
    let path = &world.files(".log")[0];
    bytes[size + 100] ^= 1;
    bytes[3 * size + 9] ^= 0x40;
    bytes.truncate(bytes.len() - 3);
    fs::write(path, &bytes).unwrap();
    let log = world.open(false);
    assert_eq!((log.damage().len(), log.offsets().end), (1, 6));
    assert_eq!(fs::read(path).unwrap().len(), 3 * size);
}

#[test]
fn indexes_are_made_anew_wherever_they_are_of_no_use() {
    let world = World::with(|config| {
        config.segment_bytes = 2000;
        config.index_interval_bytes = 200;
    });
    let log = world.open(true);
    for i in 0..100 {
        log.append(batch(2, NOW + i * 2), 0).unwrap();
    }
    let all = read_all(&log, usize::MAX);
    log.close().unwrap();
    assert!(world.files(".index").len() > 6);
    type Spoil = fn(&[u8]) -> Option<Vec<u8>>;
    let spoil: [Spoil; 6] = [
        |_| None,
        |_| Some(Vec::new()),
        |old| Some(old[..old.len().saturating_sub(3)].to_vec()),
        |old| Some(vec![0; old.len()]),
        |old| Some(vec![0xff; old.len()]),
        // As Apache Kafka leaves it when it dies: as long as it may become.
        |old| Some([old, &[0; 2400]].concat()),
    ];
    for (case, spoil) in spoil.iter().enumerate() {
        for clean in [true, false] {
            let spoilt = world.copy();
            let files: Vec<_> = [".index", ".timeindex"].iter().flat_map(|suffix| spoilt.files(suffix)).collect();
            for path in &files {
                match spoil(&fs::read(path).unwrap()) {
                    Some(new) => fs::write(path, new).unwrap(),
                    None => fs::remove_file(path).unwrap(),
                }
            }
            let log = spoilt.open(clean);
            for offset in (0..200).step_by(7) {
                let range = log.read(offset, 1, true, Isolation::ReadUncommitted).unwrap().range.unwrap();
                assert_eq!(bytes_of(&range)[..8], (offset / 2 * 2).to_be_bytes(), "case {case} {clean}");
                let found = log.offset_for_timestamp(NOW + offset).unwrap().unwrap();
                assert_eq!(found.offset, offset, "case {case} {clean}");
            }
            assert_eq!(read_all(&log, 500), all);
            log.append(batch(1, NOW + 200), 0).unwrap();
            log.close().unwrap();
            let last = files.iter().map(|path| path.with_extension("")).max();
            for path in files {
                let old = fs::read(world.dir().join(path.file_name().unwrap())).unwrap();
                let new = fs::read(&path).unwrap();
                // The last one's has another entry for where the log was closed. An empty offset index is right for a short
                // segment, so it is not made anew.
                let is_last = Some(path.with_extension("")) == last;
                let is_right = new == old || is_last || (case == 1 && new.is_empty());
                assert!(is_right, "{path:?} {case} {clean}");
            }
        }
    }
}

#[test]
fn an_index_with_garbage_in_the_middle_is_not_believed() {
    let world = World::with(|config| {
        config.segment_bytes = 300_000;
        config.index_interval_bytes = 0;
    });
    let log = world.open(true);
    while log.segment_count() == 1 {
        log.append(batch(1, NOW + log.offsets().end), 0).unwrap();
    }
    let all = read_all(&log, usize::MAX);
    log.close().unwrap();
    let path = &world.files(".index")[0];
    let good = fs::read(path).unwrap();
    assert!(good.len() > 3 * 4096);
    for shift in [1u32, 3, 150, 4000] {
        let mut bad = good.clone();
        for entry in bad[4096..8192].chunks_exact_mut(8) {
            let position = u32::from_be_bytes(entry[4..].try_into().unwrap()) + shift;
            entry[4..].copy_from_slice(&position.to_be_bytes());
        }
        fs::write(path, &bad).unwrap();
        let log = world.open(true);
        for offset in (0..log.offsets().end).step_by(11) {
            let range = log.read(offset, 1, true, Isolation::ReadUncommitted).unwrap().range.unwrap();
            assert_eq!(bytes_of(&range)[..8], offset.to_be_bytes(), "shift {shift}");
            assert_eq!(log.offset_for_timestamp(NOW + offset).unwrap().unwrap().offset, offset, "shift {shift}");
        }
        assert_eq!(read_all(&log, 5000), all, "shift {shift}");
    }
}

#[test]
fn strays_are_dealt_with_and_what_is_nobodys_stays() {
    let world = World::with(|config| config.segment_bytes = 1000);
    let log = world.open(true);
    for _ in 0..40 {
        log.append(batch(2, NOW), 0).unwrap();
    }
    let all = read_all(&log, usize::MAX);
    log.close().unwrap();
    let logs = world.files(".log");
    // A rewrite of the second and third segment that was finished: of the second one batch is left, of the third a few.
    let (second, third) = (fs::read(&logs[1]).unwrap(), fs::read(&logs[2]).unwrap());
    let left: Vec<_> = Batches::new(&second).take(1).chain(Batches::new(&third).skip(3)).collect();
    let keep: Vec<u8> = left.iter().flat_map(|batch| batch.bytes().iter().copied()).collect();
    let next = left[1].header().base_offset;
    fs::write(format!("{}.swap", logs[1].display()), &keep).unwrap();
    let dir = world.dir();
    for name in [
        "00000000000000000000.log.deleted",
        "00000000000000000000.snapshot.deleted",
        "99999999999999.log",
        "00000000000000000777.index",
        "leader-epoch-checkpoint.tmp",
        "notes.txt",
        "00000000000000000900.log.cleaned",
        "00000000000000000900.index.cleaned",
    ] {
        fs::write(dir.join(name), b"x").unwrap();
    }
    let log = world.open(true);
    for gone in [".deleted", ".tmp", ".cleaned", ".swap", "777.index"] {
        assert_eq!(world.files(gone), Vec::<std::path::PathBuf>::new(), "{gone}");
    }
    assert!(dir.join("notes.txt").exists() && dir.join("99999999999999.log").exists());
    assert!(!logs[2].exists(), "the third is part of the second now");
    assert_eq!(fs::read(&logs[1]).unwrap(), keep);
    // Whoever asks for what is gone gets what comes next.
    let result = log.read(next - 1, 1, true, Isolation::ReadUncommitted).unwrap();
    assert_eq!(bytes_of(&result.range.unwrap())[..8], next.to_be_bytes());
    assert_eq!(log.offsets().end, all.last().unwrap().1 + 1);
}

#[test]
fn segments_below_the_start_that_a_power_cut_brought_back_go_again() {
    let world = World::with(|config| config.segment_bytes = 1000);
    let log = world.open(true);
    for _ in 0..40 {
        log.append(batch(2, NOW), 0).unwrap();
    }
    let before = world.copy();
    log.advance_log_start(50).unwrap();
    let left = world.files(".log").len();
    // Any of them may come back, in any set.
    for mask in 1u32..8 {
        let cut = world.copy();
        for (i, path) in before.files(".log").iter().enumerate().take(3) {
            if mask & 1 << i != 0 {
                fs::copy(path, cut.dir().join(path.file_name().unwrap())).unwrap();
            }
        }
        let log = cut.open_from(false, 50);
        assert_eq!((cut.files(".log").len(), log.offsets().start, log.offsets().end), (left, 50, 80), "{mask}");
    }
}

#[test]
fn old_message_sets_are_kept_and_served_as_they_are() {
    for name in ["v0-none", "v0-gzip", "v1-none", "v1-gzip"] {
        let path = format!("{}/src/record/testdata/{name}.bin", env!("CARGO_MANIFEST_DIR"));
        let Ok(old) = fs::read(&path) else { panic!("{path}") };
        let world = World::new();
        fs::write(world.dir().join("00000000000000000000.log"), &old).unwrap();
        let log = world.open(false);
        assert_eq!((log.damage(), log.size_bytes()), (&[][..], old.len() as u64), "{name}");
        let end = log.offsets().end;
        assert!(end > 0);
        let range = log.read(0, usize::MAX, true, Isolation::ReadUncommitted).unwrap().range.unwrap();
        assert_eq!(bytes_of(&range), old, "{name}");
        assert_eq!(log.append(batch(1, NOW), 0).unwrap().first_offset, end, "{name}");
        let next = log.read(end, usize::MAX, true, Isolation::ReadUncommitted).unwrap().range.unwrap();
        assert_eq!(Batches::new(&bytes_of(&next)).count(), 1);
        let _ = log.offset_for_timestamp(0).unwrap();
        drop(log);
        let mut torn = fs::read(&world.files(".log")[0]).unwrap();
        torn.truncate(old.len() - 1);
        fs::write(&world.files(".log")[0], torn).unwrap();
        assert!(world.open(false).offsets().end <= end);
    }
}

#[test]
fn a_lost_checkpoint_of_leader_epochs_is_made_anew() {
    let world = World::with(|config| config.segment_bytes = 400);
    let log = world.open(true);
    for epoch in [0, 0, 1, 1, 5, 5] {
        log.append(batch(2, NOW), epoch).unwrap();
        log.append(batch(2, NOW), epoch).unwrap();
    }
    let told =
        |log: &crate::storage::log::PartitionLog| (0..7).map(|e| log.end_offset_for_epoch(e)).collect::<Vec<_>>();
    let before = told(&log);
    assert_eq!(before[0], Some((0, 8)));
    assert_eq!(before[5], Some((5, 24)));
    let _ = fs::remove_file(world.dir().join("leader-epoch-checkpoint"));
    let log = world.open(false);
    assert_eq!(log.end_offset_for_epoch(5), Some((5, 24)));
    log.close().unwrap();
    let log = world.open(true);
    assert_eq!(log.end_offset_for_epoch(5), Some((5, 24)));
}
