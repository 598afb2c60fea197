//! Single rules: when a log is cleaned, and what becomes of batches, segments and readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::model::*;
use crate::record::{BatchBuilder, BatchOptions, Batches, CheckedBatch, Codec, Compression};
use crate::storage::cleaner::pass::Pass;
use crate::storage::cleaner::plan::Plan;
use crate::storage::cleaner::{Checkpoint, CleanerSettings, Work};
use crate::storage::log::tests::support::{NOW, World, batch_of, bytes_of};
use crate::storage::log::{EndMarker, Isolation, PartitionLog, RewriteError};

fn world() -> World {
    World::with(config)
}

/// A batch of one record.
fn record(key: &str, value: Option<&str>, timestamp: i64) -> CheckedBatch {
    let mut builder = BatchBuilder::new(BatchOptions::default()).unwrap();
    builder.append(timestamp, Some(key.as_bytes()), value.map(str::as_bytes), &[]).unwrap();
    CheckedBatch::of_own(builder.finish(None).unwrap()).unwrap()
}

fn put(log: &PartitionLog, key: &str, value: Option<&str>) -> i64 {
    log.append(record(key, value, log.env().clock.now_ms()), 0).unwrap().first_offset
}

/// Seals the active segment.
fn seal(world: &World, log: &PartitionLog) {
    let mut config = world.config.clone();
    config.segment_ms = 0;
    log.update_config(config);
    world.clock.0.fetch_add(1, Ordering::SeqCst);
    assert!(log.roll_if_due().unwrap());
    log.update_config(world.config.clone());
}

fn left(log: &PartitionLog) -> Vec<(i64, String)> {
    let seen = read_all(log, "what is left");
    seen.into_iter().map(|(offset, record)| (offset, String::from_utf8(record.key.unwrap()).unwrap())).collect()
}

fn batches(log: &PartitionLog) -> Vec<crate::record::BatchHeader> {
    let (mut headers, mut next) = (Vec::new(), 0);
    while let Some(range) = log.read(next, 1 << 20, true, Isolation::ReadUncommitted).unwrap().range {
        let bytes = bytes_of(&range);
        headers.extend(Batches::new(&bytes).map(|batch| *batch.header()));
        next = headers.last().unwrap().last_offset() + 1;
    }
    headers
}

fn plan(log: &PartitionLog) -> Option<Plan> {
    let checkpoint = Checkpoint::read(&*log.env().fs, &log.dir()).unwrap();
    Plan::of(log, &checkpoint, log.env().clock.now_ms()).unwrap()
}

#[test]
fn a_log_is_cleaned_once_enough_of_it_is_dirty_or_it_has_waited_long_enough() {
    let mut world = world();
    world.config.min_cleanable_dirty_ratio = 0.5;
    world.config.min_compaction_lag_ms = 1_000;
    world.config.max_compaction_lag_ms = 60_000;
    let log = world.open(true);
    (0..40).for_each(|i| {
        put(&log, &format!("key-{i}"), Some(&"v".repeat(100)));
    });
    assert!(plan(&log).is_none(), "all of it is too young");
    world.clock.0.fetch_add(1_100, Ordering::SeqCst);
    let all = plan(&log).unwrap();
    assert!(all.ratio > 0.99 && all.segments.len() as u64 + 1 == log.segment_count() as u64, "{all:?}");
    clean(&log, &CleanerSettings::default());
    assert!(plan(&log).is_none());
    let cleaned = cleaned_to(&log);
    assert_eq!(cleaned, all.end());
    (0..10).for_each(|i| {
        put(&log, &format!("key-{i}"), Some(&"v".repeat(100)));
    });
    seal(&world, &log);
    world.clock.0.fetch_add(2_000, Ordering::SeqCst);
    assert!(plan(&log).is_none(), "a third of it is dirty");
    world.clock.0.fetch_add(60_000, Ordering::SeqCst);
    assert!(plan(&log).is_some_and(|plan| plan.dirty_from == cleaned && plan.ratio < 0.5), "but it has waited long");
    let mut config = world.config.clone();
    (config.max_compaction_lag_ms, config.min_cleanable_dirty_ratio) = (i64::MAX, 0.2);
    log.update_config(config.clone());
    assert!(plan(&log).is_some_and(|plan| plan.ratio > 0.2), "or less will do");
    config.compact = false;
    log.update_config(config);
    assert!(plan(&log).is_none(), "a topic that does not ask for it");
}

#[test]
fn neighbours_become_one_segment_and_keep_the_age_of_the_last() {
    let world = world();
    let log = world.open(true);
    for round in 0..6 {
        (0..3).for_each(|i| {
            put(&log, &format!("key-{i}"), Some(&format!("{round}")));
        });
        seal(&world, &log);
    }
    assert_eq!(log.segment_count(), 7);
    let paths = world.files(".log");
    let old = |days: u64| std::time::SystemTime::now() - std::time::Duration::from_secs(days * 86_400);
    for (i, path) in paths.iter().enumerate() {
        std::fs::File::options().append(true).open(path).unwrap().set_modified(old(10 - i as u64)).unwrap();
    }
    let age = std::fs::metadata(&paths[5]).unwrap().modified().unwrap();
    clean(&log, &CleanerSettings::default());
    assert_eq!(log.segment_count(), 2);
    let keys = [15, 16, 17].map(|offset| (offset, format!("key-{}", offset - 15)));
    assert_eq!(left(&log), keys);
    let merged = std::fs::metadata(&world.files(".log")[0]).unwrap().modified().unwrap();
    assert!(age.duration_since(merged).unwrap().as_millis() < 2, "a rewrite does not make it younger");
    assert_eq!(log.offsets().start, 0);
    let first = log.read(0, 1, true, Isolation::ReadUncommitted).unwrap().range.unwrap();
    assert_eq!(bytes_of(&first)[..8], 15i64.to_be_bytes(), "in a gap the next is found");
    for clean in [true, false] {
        if clean {
            log.close().unwrap();
        }
        assert_eq!(left(&world.open(clean)), keys);
    }
}

#[test]
fn a_segment_that_is_left_with_nothing_goes_unless_it_is_the_first() {
    let mut world = world();
    world.config.segment_bytes = 400;
    let log = world.open(true);
    // Each round is a segment of its own, too large to become one with another.
    for round in 0..5 {
        log.append(batch_of(BatchOptions::default(), 3, NOW + round, 90), 0).unwrap();
    }
    seal(&world, &log);
    assert_eq!(log.segment_count(), 6);
    clean(&log, &CleanerSettings::default());
    assert_eq!(log.segment_count(), 3, "the first, the last of the cleaned ones and the active");
    let sizes: Vec<u64> = world.files(".log").iter().map(|path| std::fs::metadata(path).unwrap().len()).collect();
    assert!(sizes[0] == 0 && sizes[1] > 300 && sizes[2] == 0, "{sizes:?}");
    assert_eq!((log.offsets().start, log.offsets().end), (0, 15));
    let log = world.open(false);
    assert_eq!(read_all(&log, "after a restart").len(), 3);
    assert_eq!(log.offsets().end, 15);
}

#[test]
fn a_batch_that_cannot_be_read_is_kept_as_it_is_and_its_keys_supersede_nothing() {
    let world = world();
    let log = world.open(true);
    put(&log, "a", Some("first"));
    put(&log, "b", Some("second"));
    let bad = put(&log, "b", Some("damaged"));
    put(&log, "a", Some("third"));
    seal(&world, &log);
    log.close().unwrap();
    let path = &world.files(".log")[0];
    let mut bytes = std::fs::read(path).unwrap();
    let at = bytes.windows(7).position(|window| window == b"damaged").unwrap();
    bytes[at] ^= 1;
    std::fs::write(path, &bytes).unwrap();
    let log = world.open(true);
    let mut pass = Pass::new(log.clone(), plan(&log).unwrap(), CleanerSettings::default().memory()).unwrap();
    let cleaned = loop {
        // One byte at a time: a pass may stop anywhere.
        if let (_, Some(cleaned)) = pass.step(1).unwrap() {
            break cleaned;
        }
    };
    assert_eq!(cleaned.unreadable.len(), 1);
    assert_eq!((cleaned.unreadable[0].base_offset, cleaned.unreadable[0].last_offset), (bad, bad));
    assert!(cleaned.unreadable[0].reason.contains("checksum"), "{:?}", cleaned.unreadable);
    let now = std::fs::read(path).unwrap();
    let headers: Vec<i64> = Batches::without_crc(&now).map(|batch| batch.header().base_offset).collect();
    assert_eq!(headers, [1, 2, 3], "only the first is gone");
    assert!(now.windows(7).any(|window| window[1..] == b"damaged"[1..]));
}

#[test]
fn tombstones_and_markers_have_their_time_and_then_go() {
    let world = world();
    let log = world.open(true);
    put(&log, "a", Some("gone soon"));
    let tombstone = put(&log, "a", None);
    let end_transaction = |sequence, committed| {
        let options = BatchOptions {
            producer_id: 9,
            producer_epoch: 0,
            base_sequence: sequence,
            transactional: true,
            ..BatchOptions::default()
        };
        log.append(batch_of(options, 2, NOW, 10), 0).unwrap();
        let (producer_id, producer_epoch, coordinator_epoch, transaction_version) = (9, 0, 1, 1);
        let marker = EndMarker { producer_id, producer_epoch, committed, coordinator_epoch, transaction_version };
        log.append_end_txn_marker(marker, 0).unwrap().first_offset
    };
    let aborted = end_transaction(0, false);
    let committed = end_transaction(2, true);
    let emptied = end_transaction(4, false);
    put(&log, "z", Some("stays"));
    let round = |n: i64| {
        put(&log, "z", Some(&format!("{n}")));
        seal(&world, &log);
        clean(&log, &CleanerSettings::default());
        batches(&log)
    };
    let first = round(1);
    let horizon = |headers: &[crate::record::BatchHeader], offset| {
        headers.iter().find(|header| header.base_offset == offset).map(|header| header.delete_horizon_ms())
    };
    let set = horizon(&first, tombstone).unwrap().expect("a tombstone is given its time when it is first cleaned");
    assert_eq!(set, log.env().clock.now_ms() + RETENTION_MS);
    assert_eq!(horizon(&first, aborted), Some(None), "its records went with this pass; it goes later");
    let second = round(2);
    assert_eq!(horizon(&second, tombstone).unwrap(), Some(set), "the time stays");
    assert!(horizon(&second, aborted).unwrap().is_some());
    assert_eq!(horizon(&second, committed), Some(None), "its records are there");
    let last = second.iter().find(|header| header.last_offset() + 1 == emptied).unwrap();
    assert_eq!((last.records_count, last.last_offset_delta), (0, 1), "the last batch of its producer");
    world.clock.0.fetch_add(RETENTION_MS - 10, Ordering::SeqCst);
    assert!(plan(&log).is_none(), "nothing is dirty, and no time is over");
    world.clock.0.fetch_add(20, Ordering::SeqCst);
    assert!(plan(&log).is_some(), "its time is over, though nothing new has come");
    clean(&log, &CleanerSettings::default());
    let third = batches(&log);
    assert_eq!(horizon(&third, tombstone), None);
    assert_eq!(read_all(&log, "at the end").len(), 3, "two that were committed, and the latest of z");
    assert_eq!(horizon(&third, aborted), None);
    assert_eq!(horizon(&third, emptied), Some(None), "the emptied batch is still there, so its marker is");
    assert_eq!(horizon(&third, committed), Some(None));
    assert!(plan(&log).is_none());
}

#[test]
fn what_is_written_anew_is_in_the_topics_codec_and_what_is_not_stays_as_it_was() {
    let mut world = world();
    world.config.compaction_codec = Some(Codec::Zstd { level: 1 });
    let log = world.open(true);
    let batch = |keys: &[&str], codec| {
        let mut builder = BatchBuilder::new(BatchOptions { codec, ..BatchOptions::default() }).unwrap();
        for key in keys {
            let headers: [(&[u8], Option<&[u8]>); 3] = [(b"h", Some(b"1")), (b"h", None), (b"a", Some(b"2"))];
            builder.append(NOW - 5, Some(key.as_bytes()), Some(&[7; 50]), &headers).unwrap();
        }
        CheckedBatch::of_own(builder.finish(None).unwrap()).unwrap()
    };
    log.append(batch(&["a", "b"], Codec::Gzip { level: 1 }), 0).unwrap();
    log.append(batch(&["c", "d"], Codec::Gzip { level: 1 }), 0).unwrap();
    log.append(batch(&["a", "e", "a"], Codec::Lz4), 0).unwrap();
    put(&log, "z", Some("z"));
    seal(&world, &log);
    let before = read_all(&log, "before");
    clean(&log, &CleanerSettings::default());
    let headers = batches(&log);
    let codecs: Vec<Compression> = headers.iter().map(|header| header.compression().unwrap()).collect();
    assert_eq!(codecs, [Compression::Zstd, Compression::Gzip, Compression::Zstd, Compression::None]);
    assert_eq!((headers[0].base_offset, headers[0].last_offset()), (0, 1), "the span stays");
    let after = read_all(&log, "after");
    assert_eq!(after.iter().map(|(offset, _)| *offset).collect::<Vec<_>>(), [1, 2, 3, 5, 6, 7]);
    for (offset, record) in after {
        assert_eq!(before[offset as usize], (offset, record));
    }
}

#[test]
fn readers_never_miss_a_segment_while_it_is_replaced() {
    let world = World { threads: true, ..world() };
    let log = world.open(true);
    let (stop, reads) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let (log, stop, reads) = (log.clone(), stop.clone(), reads.clone());
            std::thread::spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    for (offset, record) in read_all(&log, "while it is cleaned") {
                        assert_eq!(record.value, Some(format!("value of {offset}").into_bytes()));
                    }
                    if log.offsets().end > 0 {
                        let found = log.offset_for_timestamp(NOW).unwrap().unwrap();
                        assert!(found.timestamp >= NOW);
                        log.max_timestamp().unwrap().unwrap();
                    }
                    reads.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    let mut passes = 0;
    for round in 0..40 {
        for i in 0..60 {
            let offset = log.offsets().end;
            let timestamp = NOW + round;
            let appended =
                log.append(record(&format!("key-{}", i % 13), Some(&format!("value of {offset}")), timestamp), 0);
            assert_eq!(appended.unwrap().first_offset, offset);
        }
        passes += clean(&log, &CleanerSettings::default()).len();
    }
    let before = reads.load(Ordering::SeqCst);
    stop.store(true, Ordering::SeqCst);
    for reader in readers {
        reader.join().unwrap();
    }
    assert!(passes > 20 && before > 20, "{passes} passes, {before} reads");
}

#[test]
fn what_is_deleted_under_a_pass_is_no_failure() {
    let world = World::with(|c| {
        config(c);
        c.delete = true;
    });
    let log = world.open(true);
    (0..60).for_each(|i| {
        put(&log, &format!("key-{}", i % 50), Some(&"v".repeat(100)));
    });
    let mut gone = 0;
    for steps in 0..60 {
        let Some(plan) = plan(&log) else { break };
        let mut pass = Pass::new(log.clone(), plan, CleanerSettings::default().memory()).unwrap();
        let mut result = Ok((0, None));
        for _ in 0..steps {
            result = pass.step(300);
        }
        if matches!(result, Ok((_, Some(_)))) {
            break;
        }
        // Retention takes the first segment away.
        let next = log.rewritable().unwrap().segments[0].1;
        log.advance_log_start(next).unwrap();
        let end = loop {
            match pass.step(300) {
                Ok((_, None)) => {}
                other => break other,
            }
        };
        match end {
            Err(RewriteError::Gone) => gone += 1,
            Ok((_, Some(_))) => {}
            other => panic!("{other:?}"),
        }
        log.give_up_rewrite();
        assert!(world.files(".cleaned").is_empty() && world.files(".swap").is_empty());
        (0..20).for_each(|i| {
            put(&log, &format!("key-{}", i % 50), Some(&"v".repeat(100)));
        });
    }
    assert!(gone > 3, "{gone}");
    let start = log.offsets().start;
    assert_eq!(read_all(&world.open_from(false, start), "after a restart"), read_all(&log, "at the end"));
}

#[test]
fn a_pass_that_is_dropped_half_way_leaves_the_log_as_it_was() {
    let world = world();
    let log = world.open(true);
    (0..60).for_each(|i| {
        put(&log, &format!("key-{}", i % 5), Some(&"v".repeat(100)));
    });
    let before = left(&log);
    let mut pass = Pass::new(log.clone(), plan(&log).unwrap(), CleanerSettings::default().memory()).unwrap();
    for _ in 0..70 {
        assert!(pass.step(1).unwrap().1.is_none());
    }
    drop(pass);
    assert_eq!(left(&world.open(false)).last(), before.last());
    assert!(Work::default().is_idle());
}
