//! Appending, reading, rolling, restarting.

use super::support::*;
use crate::record::{BatchOptions, Codec};
use crate::storage::log::{AppendError, Isolation, LogOffsets, ReadError, TimestampedOffset};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

fn plain(start: i64, end: i64) -> LogOffsets {
    LogOffsets { start, end, high_watermark: end, last_stable: end }
}

#[test]
fn what_is_appended_is_read_back_byte_for_byte() {
    let world = World::new();
    let log = world.open(true);
    assert_eq!(log.offsets(), plain(0, 0));
    let mut expected = Vec::new();
    for i in 0..5i64 {
        let batch = batch(3, NOW + i);
        let mut header = batch.header;
        header.base_offset = i * 3;
        header.partition_leader_epoch = 0;
        expected.extend_from_slice(&header.encode());
        expected.extend_from_slice(&batch.records);
        let appended = log.append(batch, 0).unwrap();
        assert_eq!((appended.first_offset, appended.last_offset, appended.duplicate), (i * 3, i * 3 + 2, false));
        assert_eq!(appended.log_append_time_ms, -1);
    }
    assert_eq!(log.offsets(), plain(0, 15));
    let result = log.read(0, usize::MAX, true, Isolation::ReadUncommitted).unwrap();
    assert_eq!(bytes_of(&result.range.unwrap()), expected);
    let result = log.read(7, usize::MAX, true, Isolation::ReadUncommitted).unwrap();
    assert_eq!(bytes_of(&result.range.unwrap()), expected[expected.len() / 5 * 2..]);
    assert_eq!(log.size_bytes(), expected.len() as u64);
    let beyond = log.read(16, 100, true, Isolation::ReadUncommitted).unwrap_err();
    assert!(matches!(beyond, ReadError::OutOfRange { offset: 16, start: 0, end: 15 }), "{beyond}");
    let reads = world.faults.count(Op::Read) + world.faults.count(Op::Open);
    assert!(log.read(15, 100, true, Isolation::ReadUncommitted).unwrap().range.is_none());
    assert_eq!(world.faults.count(Op::Read) + world.faults.count(Op::Open), reads, "the end is no matter of the disk");
}

#[test]
fn a_read_ends_with_a_batch_and_never_in_one() {
    let world = World::with(|config| config.index_interval_bytes = 300);
    let log = world.open(true);
    for i in 0..100 {
        log.append(batch(1 + i % 7, NOW), 0).unwrap();
    }
    let one = log.append(batch_of(BatchOptions::default(), 1, NOW, 5000), 0).unwrap().first_offset;
    log.append(batch(1, NOW), 0).unwrap();
    let all = read_all(&log, usize::MAX);
    assert_eq!(all.len(), 102);
    for step in [1, 100, 333, 1000, 5000, 20000] {
        assert_eq!(read_all(&log, step), all, "step {step}");
    }
    assert!(log.read(one, 5000, false, Isolation::ReadUncommitted).unwrap().range.is_none(), "not even one fits");
    assert!(log.read(one, 5000, true, Isolation::ReadUncommitted).unwrap().range.unwrap().len > 5000);
    assert!(log.read(0, 0, false, Isolation::ReadUncommitted).unwrap().range.is_none());
}

#[test]
fn one_who_reads_on_needs_no_index() {
    let world = World::with(|config| config.index_interval_bytes = 300);
    let log = world.open(true);
    for _ in 0..200 {
        log.append(batch(1, NOW), 0).unwrap();
    }
    let first = log.read(0, usize::MAX, true, Isolation::ReadUncommitted).unwrap();
    assert!(first.range.is_some());
    for i in 0..20 {
        log.append(batch(1, NOW), 0).unwrap();
        let reads = world.faults.count(Op::Read);
        let next = log.read(200 + i, usize::MAX, true, Isolation::ReadUncommitted).unwrap().range.unwrap();
        assert_eq!(world.faults.count(Op::Read), reads, "the position is known");
        assert_eq!(bytes_of(&next)[..8], (200 + i).to_be_bytes());
    }
}

#[test]
fn a_clean_restart_reads_little_and_goes_on() {
    let mut world = World::with(|config| config.index_interval_bytes = 300);
    let log = world.open(true);
    for i in 0..500 {
        log.append(batch(2, NOW + i), 4).unwrap();
    }
    log.append(of_producer(9, 0, 0, 2), 4).unwrap();
    log.close().unwrap();
    assert!(matches!(log.append(batch(1, NOW), 4).unwrap_err(), AppendError::Closed));
    assert!(matches!(log.read(0, 1, true, Isolation::ReadUncommitted).unwrap_err(), ReadError::Closed));
    world.faults = Arc::default();
    let log = world.open(true);
    assert!(world.faults.count(Op::Read) < 20, "{} reads", world.faults.count(Op::Read));
    assert_eq!(log.offsets(), plain(0, 1002));
    assert_eq!(log.latest_epoch(), Some(4));
    assert_eq!(read_all(&log, 700).len(), 501);
    assert!(log.append(of_producer(9, 0, 0, 2), 4).unwrap().duplicate);
    assert_eq!(log.append(of_producer(9, 0, 2, 1), 4).unwrap().first_offset, 1002);
    log.close().unwrap();
    let syncs = world.faults.count(Op::Sync);
    world.open(true).close().unwrap();
    assert_eq!(world.faults.count(Op::Sync), syncs, "nothing to do for a log that nothing was done to");
}

#[test]
fn segments_roll_by_size_and_are_read_across() {
    let world = World::with(|config| {
        config.segment_bytes = 1000;
        config.index_interval_bytes = 200;
    });
    let log = world.open(true);
    for i in 0..60 {
        log.append(batch(1 + i % 3, NOW + i as i64), 0).unwrap();
    }
    let (all, end) = (read_all(&log, usize::MAX), log.offsets().end);
    assert_eq!(all.len(), 60);
    assert!(log.segment_count() > 5);
    assert!(world.files(".log").iter().all(|path| std::fs::metadata(path).unwrap().len() <= 1000));
    assert!(world.files(".snapshot").len() <= 3, "{:?}", world.files(".snapshot"));
    for offset in 0..end {
        let range = log.read(offset, 1, true, Isolation::ReadUncommitted).unwrap().range.unwrap();
        let base = i64::from_be_bytes(bytes_of(&range)[..8].try_into().unwrap());
        assert!(all.iter().any(|(first, last)| *first == base && (base..=*last).contains(&offset)), "{offset}");
    }
    for clean in [true, false] {
        let log = world.copy();
        let log = log.open(clean);
        assert_eq!(read_all(&log, 500), all);
    }
}

#[test]
fn segments_roll_by_time_of_records_and_by_a_full_index_and_by_offset() {
    let world = World::with(|config| config.segment_ms = 1000);
    let log = world.open(true);
    log.append(batch(1, NOW), 0).unwrap();
    world.clock.0.fetch_add(100_000, Ordering::SeqCst);
    log.append(batch(1, NOW + 1000), 0).unwrap();
    assert_eq!(log.segment_count(), 1, "the clock does not count where records have timestamps");
    log.append(batch(1, NOW + 1001), 0).unwrap();
    assert_eq!(log.segment_count(), 2);
    log.close().unwrap();
    let log = world.open(true);
    log.append(batch(1, NOW + 2002), 0).unwrap();
    assert_eq!(log.segment_count(), 3, "the first record's time is known after a restart");

    let world = World::with(|config| {
        config.segment_index_bytes = 40;
        config.index_interval_bytes = 0;
    });
    let log = world.open(true);
    for i in 0..100 {
        log.append(batch(1, NOW + i), 0).unwrap();
    }
    assert!(log.segment_count() > 20);
    log.close().unwrap();
    for suffix in [".index", ".timeindex"] {
        assert!(world.files(suffix).iter().all(|path| std::fs::metadata(path).unwrap().len() <= 40), "{suffix}");
    }

    let world = World::new();
    let log = world.open(true);
    for _ in 0..3 {
        let mut wide = batch(1, NOW);
        wide.header.last_offset_delta = 2_000_000_000;
        log.append(wide, 0).unwrap();
    }
    assert_eq!(log.segment_count(), 3, "relative offsets have 31 bits");
}

#[test]
fn jitter_makes_segments_shorter_never_longer() {
    let world = World::with(|config| {
        config.segment_ms = 1000;
        config.segment_jitter_ms = 1000;
    });
    let log = world.open(true);
    let mut lengths = Vec::new();
    let mut count = 0;
    for i in 0..20_000 {
        log.append(batch(1, NOW + i), 0).unwrap();
        count += 1;
        if log.segment_count() > lengths.len() + 1 {
            lengths.push(count);
            count = 0;
        }
    }
    assert!(lengths.iter().all(|length| *length <= 1001), "{lengths:?}");
    assert!(lengths.iter().any(|length| *length != lengths[0]), "{lengths:?}");
}

#[test]
fn offsets_are_found_by_time() {
    let world = World::with(|config| {
        config.segment_bytes = 2000;
        config.index_interval_bytes = 100;
    });
    let log = world.open(true);
    assert_eq!(log.max_timestamp().unwrap(), None);
    let mut times = Vec::new();
    for i in 0..50i64 {
        // Not in order, and a few at once.
        let start = NOW + (i * 37) % 50 * 10;
        let codec = if i % 2 == 0 { Codec::None } else { Codec::Gzip { level: 6 } };
        log.append(batch_of(BatchOptions { codec, ..BatchOptions::default() }, 3, start, 30), 2).unwrap();
        times.extend([start, start + 1, start + 2]);
    }
    for log in [log, world.open(false)] {
        for ask in (NOW - 5..NOW + 510).step_by(3) {
            let first = times.iter().position(|time| *time >= ask);
            let expected =
                first.map(|at| TimestampedOffset { offset: at as i64, timestamp: times[at], leader_epoch: Some(2) });
            assert_eq!(log.offset_for_timestamp(ask).unwrap(), expected, "{}", ask - NOW);
        }
        let latest = log.max_timestamp().unwrap().unwrap();
        let expected = times.iter().max().unwrap();
        assert_eq!((latest.timestamp, times[latest.offset as usize]), (*expected, *expected));
    }
}

/// While batches come, each later than the one before, there is always a latest record.
#[test]
fn the_latest_record_is_there_while_the_next_is_appended() {
    let log = World::new().open(true);
    log.append(batch(1, NOW), 0).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looked: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut looks = 0;
                    while !is_over.load(Ordering::SeqCst) {
                        log.max_timestamp().unwrap().expect("there is a record");
                        looks += 1;
                    }
                    looks
                })
            })
            .collect();
        for i in 1..5000 {
            log.append(batch(1, NOW + i), 0).unwrap();
        }
        is_over.store(true, Ordering::SeqCst);
        let looks: usize = looked.into_iter().map(|looks| looks.join().unwrap()).sum();
        assert!(looks > 100, "{looks}");
    });
}

#[test]
fn the_start_moves_and_takes_whole_segments_with_it() {
    let world = World::with(|config| config.segment_bytes = 1000);
    let log = world.open(true);
    for _ in 0..60 {
        log.append(batch(2, NOW), 0).unwrap();
    }
    let held = log.read(0, usize::MAX, true, Isolation::ReadUncommitted).unwrap().range.unwrap();
    let (before, segments) = (bytes_of(&held), log.segment_count());
    log.advance_log_start(61).unwrap();
    assert_eq!(log.offsets(), plain(61, 120));
    assert!(log.segment_count() < segments);
    assert_eq!(world.files(".log").len(), log.segment_count());
    assert_eq!(world.files(".index").len(), log.segment_count() - 1, "the active one's is written later");
    assert_eq!(bytes_of(&held), before, "who reads reads on");
    assert!(matches!(log.read(60, 1, true, Isolation::ReadUncommitted), Err(ReadError::OutOfRange { .. })));
    assert_eq!(read_all(&log, 500)[0].0, 60, "the batch that has the start is whole");
    log.advance_log_start(5).unwrap();
    assert_eq!(log.offsets().start, 61, "it never goes back");
    log.advance_log_start(121).unwrap_err();
    log.advance_log_start(120).unwrap();
    assert_eq!((log.segment_count(), log.offsets()), (1, plain(120, 120)));
    log.close().unwrap();
    for clean in [true, false] {
        let log = world.open_from(clean, 120);
        assert_eq!(log.offsets(), plain(120, 120));
        log.close().unwrap();
    }
    let log = world.open_from(true, 500);
    assert_eq!(log.offsets(), plain(500, 500), "a log that ends before its start is empty");
    assert_eq!(log.append(batch(1, NOW), 0).unwrap().first_offset, 500);
}

#[test]
fn retention_counts_time_and_bytes() {
    let world = World::with(|config| {
        config.segment_bytes = 1000;
        config.retention_ms = 500;
        config.retention_bytes = -1;
    });
    let log = world.open(true);
    for i in 0..60 {
        log.append(batch(2, NOW + i * 10), 0).unwrap();
    }
    assert_eq!(log.retention_start(NOW + 100).unwrap(), None);
    let to = log.retention_start(NOW + 700).unwrap().unwrap();
    assert!((2..=44).contains(&to), "what is older than NOW + 200, and its segment with it: {to}");
    assert!(log.retention_start(NOW + 100_000).unwrap().unwrap() < 120, "never the active one");
    let mut config = world.config.clone();
    (config.retention_ms, config.retention_bytes) = (-1, 3000);
    log.update_config(config);
    let to = log.retention_start(NOW).unwrap().unwrap();
    log.advance_log_start(to).unwrap();
    assert!((3000..4000).contains(&log.size_bytes()), "{}", log.size_bytes());
}

#[test]
fn a_deleted_partition_is_gone_and_says_so() {
    let world = World::new();
    let log = world.open(true);
    log.append(batch(2, NOW), 0).unwrap();
    let held = log.read(0, usize::MAX, true, Isolation::ReadUncommitted).unwrap().range.unwrap();
    let before = bytes_of(&held);
    log.delete().unwrap();
    assert_eq!(std::fs::read_dir(world.data.path()).unwrap().count(), 0);
    assert_eq!(bytes_of(&held), before);
    assert!(matches!(log.append(batch(1, NOW), 0).unwrap_err(), AppendError::Closed));
    assert!(log.advance_log_start(1).is_err() && log.close().is_err() && world.sync(&log).is_err());
}

#[test]
fn watchers_hear_of_appends_until_they_go() {
    let world = World::new();
    let log = world.open(true);
    let heard = Arc::new(AtomicUsize::new(0));
    let count = heard.clone();
    let guard = log.watch(Arc::new(move || {
        count.fetch_add(1, Ordering::SeqCst);
    }));
    log.append(batch(1, NOW), 0).unwrap();
    log.append(batch(1, NOW), 0).unwrap();
    assert_eq!(heard.load(Ordering::SeqCst), 2);
    drop(guard);
    log.append(batch(1, NOW), 0).unwrap();
    assert_eq!(heard.load(Ordering::SeqCst), 2);
}

#[test]
fn a_batch_that_no_segment_has_room_for_is_refused() {
    let world = World::with(|config| config.segment_bytes = 1000);
    let log = world.open(true);
    let refused = log.append(batch_of(BatchOptions::default(), 1, NOW, 1000), 0).unwrap_err();
    assert!(matches!(refused, AppendError::TooLarge { limit: 1000, .. }), "{refused}");
    assert_eq!(log.offsets(), plain(0, 0));
}

#[test]
fn preallocated_files_are_cut_to_what_was_used() {
    let world = World::with(|config| {
        config.segment_bytes = 1000;
        config.preallocate = true;
    });
    let log = world.open(true);
    for _ in 0..20 {
        log.append(batch(2, NOW), 0).unwrap();
    }
    let all = read_all(&log, 400);
    let last = world.files(".log").pop().unwrap();
    assert_eq!(std::fs::metadata(&last).unwrap().len(), 1000);
    let copy = world.copy();
    assert_eq!(read_all(&copy.open(false), 400), all, "after an unclean stop the rest is zeros");
    log.close().unwrap();
    assert!(std::fs::metadata(&last).unwrap().len() < 1000);
    assert_eq!(read_all(&world.open(true), 400), all);
}
