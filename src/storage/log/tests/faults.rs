//! Group commit, and a disk that fails.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use super::support::*;
use crate::storage::log::{AppendError, Isolation, PartitionLog, SyncError};

type Answers = Arc<Mutex<Vec<(usize, Result<(), SyncError>)>>>;

fn ask(log: &Arc<PartitionLog>, answers: &Answers, id: usize) {
    let answers = answers.clone();
    log.sync(Box::new(move |result| answers.lock().push((id, result))));
}

#[test]
fn one_flush_answers_all_that_came_before_it() {
    let world = World::new();
    let log = world.open(true);
    let answers: Answers = Arc::default();
    for i in 0..50 {
        log.append(batch(1, NOW), 0).unwrap();
        ask(&log, &answers, i);
    }
    assert!(answers.lock().is_empty());
    assert_eq!((world.workers.run_all(), world.faults.count(Op::Sync), world.faults.count(Op::SyncDir)), (1, 1, 1));
    assert_eq!(answers.lock().len(), 50);
    ask(&log, &answers, 50);
    assert_eq!(answers.lock().len(), 51, "all is flushed: at once");
    log.append(batch(1, NOW), 0).unwrap();
    ask(&log, &answers, 51);
    world.workers.run_all();
    assert_eq!((world.faults.count(Op::Sync), world.faults.count(Op::SyncDir)), (2, 1), "the name is flushed once");
    assert!(answers.lock().iter().all(|(_, result)| result.is_ok()));
    assert_eq!(answers.lock().iter().map(|(id, _)| *id).collect::<Vec<_>>(), (0..52).collect::<Vec<_>>());
}

#[test]
fn who_comes_during_a_flush_waits_for_the_next() {
    let world = World::new();
    let log = world.open(true);
    let answers: Answers = Arc::default();
    log.append(batch(1, NOW), 0).unwrap();
    let (other, late) = (log.clone(), answers.clone());
    // Called by the flush that covers the first append, so after it and before it is over.
    log.sync(Box::new(move |result| {
        result.unwrap();
        other.append(batch(1, NOW), 0).unwrap();
        ask(&other, &late, 1);
        assert!(late.lock().is_empty());
    }));
    assert!(world.workers.run_one());
    assert_eq!((world.faults.count(Op::Sync), answers.lock().len()), (1, 0));
    assert!(world.workers.run_one());
    assert_eq!((world.faults.count(Op::Sync), answers.lock().len()), (2, 1));
}

#[test]
fn nothing_read_back_after_a_crash_counts_as_flushed() {
    let world = World::new();
    let log = world.open(true);
    log.append(of_producer(7, 0, 0, 1), 0).unwrap();
    world.sync(&log).unwrap();
    let log = world.open(false);
    assert!(log.unflushed().is_some());
    let syncs = (world.faults.count(Op::Sync), world.faults.count(Op::SyncDir));
    assert!(log.append(of_producer(7, 0, 0, 1), 0).unwrap().duplicate);
    world.sync(&log).unwrap();
    assert_eq!((world.faults.count(Op::Sync), world.faults.count(Op::SyncDir)), (syncs.0 + 1, syncs.1 + 1));
    world.sync(&log).unwrap();
    assert_eq!(world.faults.count(Op::Sync), syncs.0 + 1);
    assert_eq!(log.unflushed(), None);
}

#[test]
fn a_failed_flush_is_not_tried_again_and_reads_go_on() {
    for op in [Op::Sync, Op::SyncDir] {
        let world = World::new();
        let log = world.open(true);
        let answers: Answers = Arc::default();
        for i in 0..3 {
            log.append(batch(1, NOW), 0).unwrap();
            ask(&log, &answers, i);
        }
        world.faults.fail(op, 1);
        world.workers.run_all();
        assert_eq!(world.faults.injected.load(Ordering::SeqCst), 1);
        assert!(answers.lock().iter().all(|(_, result)| matches!(result, Err(SyncError::Failed(_)))), "{answers:?}");
        assert_eq!(answers.lock().len(), 3);
        let syncs = world.faults.count(Op::Sync);
        assert!(matches!(world.sync(&log), Err(SyncError::Poisoned(_))));
        assert!(matches!(log.append(batch(1, NOW), 0), Err(AppendError::Offline(_))));
        assert!(log.is_offline().unwrap().reason.contains("injected"));
        assert_eq!(read_all(&log, 1000).len(), 3);
        assert!(log.close().is_err(), "this was no clean stop");
        assert_eq!(world.faults.count(Op::Sync), syncs, "no flush was tried");
        let log = world.open(false);
        assert_eq!(log.append(batch(1, NOW), 0).unwrap().first_offset, 3, "a new start goes on with what is there");
        world.sync(&log).unwrap();
    }
}

#[test]
fn a_full_disk_refuses_writes_and_lets_reads_go_on() {
    let world = World::new();
    let log = world.open(true);
    log.append(of_producer(7, 0, 0, 3), 0).unwrap();
    let before = (log.offsets(), log.producers(), log.size_bytes());
    world.faults.full.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        let refused = log.append(of_producer(7, 0, 3, 3), 0).unwrap_err();
        assert!(matches!(refused, AppendError::File(_)), "{refused}");
        assert_eq!((log.offsets(), log.producers(), log.size_bytes()), before);
        assert_eq!(std::fs::metadata(&world.files(".log")[0]).unwrap().len(), before.2, "what was written is cut off");
        assert_eq!(read_all(&log, 1000).len(), 1);
    }
    world.faults.full.store(false, Ordering::SeqCst);
    assert_eq!(log.append(of_producer(7, 0, 3, 3), 0).unwrap().first_offset, 3);
    world.sync(&log).unwrap();
    assert_eq!(read_all(&log, 1000).len(), 2);
}

#[test]
fn a_write_that_can_not_be_cut_back_takes_the_log_offline() {
    let world = World::new();
    let log = world.open(true);
    log.append(batch(2, NOW), 0).unwrap();
    world.faults.fail(Op::Write, 1);
    world.faults.fail(Op::SetLen, 1);
    let error = log.append(batch(2, NOW), 0).unwrap_err();
    assert!(matches!(error, AppendError::Offline(_)) && error.to_string().contains("end is unknown"), "{error}");
    assert!(matches!(log.append(batch(2, NOW), 0), Err(AppendError::Offline(_))));
    assert_eq!(read_all(&log, 1000), [(0, 1)]);
    let log = world.open(false);
    assert_eq!(log.append(batch(2, NOW), 0).unwrap().first_offset, 2);
}

#[test]
fn any_operation_of_a_roll_may_fail() {
    let plain = [Op::Open, Op::Write, Op::Sync, Op::SyncDir, Op::Rename, Op::Remove].map(|op| (op, false));
    for (op, preallocate) in plain.into_iter().chain([(Op::SetLen, true)]) {
        for nth in 1..40 {
            let world = World::with(|config| {
                config.segment_bytes = 1000;
                config.index_interval_bytes = 100;
                config.preallocate = preallocate;
            });
            let log = world.open(true);
            for i in 0..9 {
                log.append(of_producer(7, 0, i, 1), 0).unwrap();
            }
            world.faults.fail(op, nth);
            let mut appended = 9;
            let mut sequence = 9;
            for _ in 0..20 {
                if let Ok(done) = log.append(of_producer(7, 0, sequence, 1), 0) {
                    assert_eq!(done.first_offset, appended, "{op:?} {nth}");
                    appended += 1;
                    sequence += 1;
                }
            }
            world.faults.forgive();
            assert_eq!(log.offsets().end, appended, "{op:?} {nth}");
            assert_eq!(read_all(&log, 300).len() as i64, appended, "{op:?} {nth}");
            if world.faults.injected.load(Ordering::SeqCst) == 0 {
                assert!(nth > 1 || op == Op::Rename, "{op:?}: a roll has at least one");
                break;
            }
            if log.is_offline().is_none() {
                assert_eq!(appended, 9 + 19, "{op:?} {nth}: one append was refused, if any")
            }
            let producers = log.producers();
            for clean in [log.close().is_ok(), false] {
                let log = world.open(clean);
                assert_eq!((log.offsets().end, log.producers()), (appended, producers.clone()), "{op:?} {nth}");
                assert_eq!(read_all(&log, 300).len() as i64, appended, "{op:?} {nth}");
            }
        }
    }
}

#[test]
fn a_segment_is_flushed_with_its_name_before_the_next_is_made() {
    let world = World::with(|config| config.segment_bytes = 500);
    let log = world.open(true);
    while log.segment_count() < 2 {
        assert_eq!(world.faults.count(Op::Sync), 0);
        log.append(batch(1, NOW), 0).unwrap();
    }
    assert!(world.faults.count(Op::Sync) >= 3 && world.faults.count(Op::SyncDir) == 1);
    world.sync(&log).unwrap();
    assert_eq!(world.faults.count(Op::SyncDir), 2, "the new one's name");
    // A flush that fails while rolling refuses the append and leaves the log as it was.
    world.faults.fail(Op::Sync, 1);
    let end = log.offsets().end;
    let error = loop {
        match log.append(batch(1, NOW), 0) {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(error, AppendError::Offline(_)), "{error}");
    assert_eq!((log.segment_count(), read_all(&log, 200).len() as i64), (2, log.offsets().end));
    assert!(log.offsets().end > end);
}

#[test]
fn the_timer_flushes_what_has_waited_and_flush_messages_says_when() {
    let world = World::with(|config| {
        config.flush_ms = 300;
        config.flush_messages = 3;
    });
    let log = world.open(true);
    let long = std::time::Duration::from_secs(3600);
    assert!(!log.append(batch(2, NOW), 0).unwrap().flush_due);
    assert!(!log.flush_if_due(long));
    world.clock.0.fetch_add(299, Ordering::SeqCst);
    assert!(!log.flush_if_due(long));
    assert!(log.append(batch(1, NOW), 0).unwrap().flush_due);
    world.clock.0.fetch_add(1, Ordering::SeqCst);
    assert_eq!(log.unflushed().unwrap().records, 3);
    assert!(log.flush_if_due(long));
    world.workers.run_all();
    assert_eq!((log.unflushed(), log.flush_if_due(long), world.faults.count(Op::Sync)), (None, false, 1));
    assert!(!log.append(batch(1, NOW), 0).unwrap().flush_due);
    world.clock.0.fetch_add(50, Ordering::SeqCst);
    assert!(log.flush_if_due(std::time::Duration::from_millis(50)), "the broker's own interval is shorter");
}

#[test]
fn a_failing_read_is_an_error_and_harms_nothing() {
    let world = World::with(|config| config.segment_bytes = 1000);
    let log = world.open(true);
    for _ in 0..40 {
        log.append(batch(1, NOW), 0).unwrap();
    }
    for nth in 1..4 {
        world.faults.fail(Op::Open, nth);
        world.faults.fail(Op::Read, nth);
        let _ = log.read(1, 100, true, Isolation::ReadUncommitted);
        let _ = log.offset_for_timestamp(NOW);
    }
    while world.faults.injected.load(Ordering::SeqCst) < 6 {
        let _ = log.read(5, 100, true, Isolation::ReadUncommitted);
        let _ = log.offset_for_timestamp(NOW + 5);
        log.housekeep();
    }
    assert_eq!(read_all(&log, 300).len(), 40);
}

#[test]
fn a_segment_that_could_not_be_made_leaves_nothing_to_be_found() {
    let world = World::with(|config| {
        config.segment_ms = 1000;
        config.preallocate = true;
        config.segment_bytes = 100_000;
    });
    let log = world.open(true);
    log.append(batch(1, NOW), 0).unwrap();
    world.sync(&log).unwrap();
    // The first cuts the segment that is to be sealed, the second makes the file of the next as long as it may become.
    world.faults.fail(Op::SetLen, 2);
    let refused = log.append(batch(1, NOW + 5000), 0).unwrap_err();
    assert!(matches!(refused, AppendError::File(_)), "{refused}");
    assert_eq!(world.files(".log").len(), 1);
    let dirs = world.faults.count(Op::SyncDir);
    // This one is no reason to roll, so the log goes on where it was.
    assert_eq!(log.append(batch(3, NOW), 0).unwrap().first_offset, 1);
    world.sync(&log).unwrap();
    assert_eq!(world.faults.count(Op::SyncDir), dirs + 1, "the name must not come back after a power cut");
    std::fs::write(world.dir().join("00000000000000000001.log"), b"").unwrap();
    let log = world.open(false);
    assert_eq!(log.offsets().end, 4, "if it does, it does no harm");
}

#[test]
fn many_at_once_get_their_own_offsets_and_share_flushes() {
    let mut world = World::with(|config| config.segment_bytes = 10_000);
    world.threads = true;
    let log = world.open(true);
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (log, acknowledged) = (&log, &acknowledged);
            scope.spawn(move || {
                for i in 0..150 {
                    let appended = log.append(of_producer(thread, 0, i, 1), 0).unwrap();
                    let (told, wait) = std::sync::mpsc::channel();
                    log.sync(Box::new(move |result| told.send(result).unwrap()));
                    wait.recv().unwrap().unwrap();
                    acknowledged.lock().push(appended.first_offset);
                }
            });
        }
        scope.spawn(|| {
            let mut next = 0;
            while next < 600 {
                let result = log.read(next, 3000, true, Isolation::ReadCommitted).unwrap();
                if let Some(range) = result.range {
                    let bytes = bytes_of(&range);
                    for batch in crate::record::Batches::new(&bytes) {
                        assert_eq!(batch.header().base_offset, next);
                        next += 1;
                    }
                }
            }
        });
    });
    let mut offsets = acknowledged.lock().clone();
    offsets.sort_unstable();
    assert_eq!(offsets, (0..600).collect::<Vec<_>>());
    assert!(log.segment_count() > 3);
    log.close().unwrap();
    assert_eq!(read_all(&world.open(true), 5000).len(), 600);
}
