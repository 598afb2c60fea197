//! Producers and transactions, over restarts of both kinds.

use super::support::*;
use crate::record::BatchOptions;
use crate::storage::log::{AbortedTransaction, AppendError, EndMarker, Isolation, PartitionLog};
use crate::storage::names::{FileKind, segment_file};

fn in_transaction(producer_id: i64, sequence: i32, count: usize) -> crate::record::CheckedBatch {
    let options = BatchOptions {
        producer_id,
        producer_epoch: 0,
        base_sequence: sequence,
        transactional: true,
        ..BatchOptions::default()
    };
    batch_of(options, count, NOW, 20)
}

fn end(log: &PartitionLog, producer_id: i64, committed: bool) -> i64 {
    let marker = EndMarker { producer_id, producer_epoch: 0, committed, coordinator_epoch: 1, transaction_version: 1 };
    log.append_end_txn_marker(marker, 0).unwrap().first_offset
}

/// What a reader that wants only what was committed gets: the first and last offset of each record's batch and who was
/// aborted.
fn committed(log: &PartitionLog, offset: i64) -> (usize, Vec<AbortedTransaction>) {
    let result = log.read(offset, usize::MAX, true, Isolation::ReadCommitted).unwrap();
    (result.range.map_or(0, |range| range.len), result.aborted)
}

#[test]
fn a_batch_sent_twice_is_answered_with_where_it_is() {
    let world = World::new();
    let log = world.open(true);
    log.append(batch(5, NOW), 0).unwrap();
    for i in 0..6 {
        assert_eq!(log.append(of_producer(7, 2, i * 3, 3), 0).unwrap().first_offset, 5 + i64::from(i) * 3);
    }
    for i in 1..6 {
        let again = log.append(of_producer(7, 2, i * 3, 3), 0).unwrap();
        assert!(again.duplicate);
        assert_eq!((again.first_offset, again.last_offset), (5 + i64::from(i) * 3, 7 + i64::from(i) * 3));
        assert_eq!(again.log_append_time_ms, NOW + 2);
    }
    let old = log.append(of_producer(7, 2, 0, 3), 0).unwrap_err();
    assert!(matches!(old, AppendError::OutOfOrderSequence { first: 0, last: 17, .. }), "{old}");
    assert_eq!(log.offsets().end, 23, "none of it was stored");
    let told = &log.producers()[0];
    assert_eq!((told.producer_id, told.epoch, told.last_sequence, told.last_timestamp), (7, 2, 17, NOW + 2));
}

#[test]
fn producers_are_known_again_after_any_restart() {
    let world = World::with(|config| config.segment_bytes = 2000);
    let log = world.open(true);
    for round in 0..20 {
        for producer in 1..5 {
            log.append(of_producer(producer, 0, round * 2, 2), 0).unwrap();
        }
    }
    let before = log.producers();
    let unclean = world.copy();
    // Without any snapshot all of the log is read.
    let bare = world.copy();
    for path in bare.files(".snapshot") {
        std::fs::remove_file(path).unwrap();
    }
    // The latest is not whole.
    let torn = world.copy();
    let latest = torn.files(".snapshot").pop().unwrap();
    std::fs::write(&latest, [0, 1, 2, 3]).unwrap();
    log.close().unwrap();
    for (world, clean) in [(&world, true), (&unclean, false), (&bare, false), (&bare, true), (&torn, false)] {
        let copy = world.copy();
        let log = copy.open(clean);
        assert_eq!(log.producers(), before);
        for producer in 1..5 {
            assert!(log.append(of_producer(producer, 0, 38, 2), 0).unwrap().duplicate);
            assert!(log.append(of_producer(producer, 0, 41, 2), 0).is_err());
        }
        assert_eq!(log.append(of_producer(1, 0, 40, 1), 0).unwrap().first_offset, 160);
    }
}

#[test]
fn a_producer_that_is_silent_for_long_is_forgotten() {
    let world = World::with(|config| config.producer_id_expiration_ms = 1000);
    let log = world.open(true);
    log.append(of_producer(7, 0, 0, 1), 0).unwrap();
    log.append(in_transaction(8, 0, 1), 0).unwrap();
    world.clock.0.fetch_add(1001, std::sync::atomic::Ordering::SeqCst);
    log.expire_producers();
    assert_eq!(log.producers().iter().map(|told| told.producer_id).collect::<Vec<_>>(), [8], "its transaction is open");
    log.append(of_producer(7, 0, 55, 1), 0).expect("it may go on anywhere");
}

#[test]
fn the_last_stable_offset_waits_for_the_earliest_open_transaction() {
    let world = World::new();
    let log = world.open(true);
    log.append(batch(2, NOW), 0).unwrap();
    let first = in_transaction(1, 0, 3);
    let size = first.header.size_in_bytes();
    let plain = log.size_bytes() as usize;
    log.append(first, 0).unwrap();
    log.append(in_transaction(2, 0, 2), 0).unwrap();
    assert_eq!((log.offsets().last_stable, log.offsets().high_watermark), (2, 7));
    assert_eq!(committed(&log, 0), (plain, vec![]));
    assert_eq!(committed(&log, 2), (0, vec![]));
    assert!(log.has_open_transaction(1) && log.has_open_transaction(2) && !log.has_open_transaction(3));
    let outside = log.append(of_producer(1, 0, 3, 1), 0).unwrap_err();
    assert!(matches!(outside, AppendError::InvalidTransactionState { producer_id: 1 }), "{outside}");
    assert_eq!(end(&log, 1, true), 7);
    assert_eq!(log.offsets().last_stable, 5);
    assert_eq!(committed(&log, 0), (plain + size, vec![]));
    assert_eq!(end(&log, 2, false), 8);
    assert_eq!(log.offsets().last_stable, 9);
    let aborted = AbortedTransaction { producer_id: 2, first_offset: 5, last_offset: 8, last_stable_offset: 9 };
    assert_eq!(committed(&log, 0), (log.size_bytes() as usize, vec![aborted]));
    assert_eq!(committed(&log, 8).1, vec![aborted], "the marker itself is of the transaction");
    let uncommitted = log.read(0, usize::MAX, true, Isolation::ReadUncommitted).unwrap();
    assert!(uncommitted.aborted.is_empty());
    let fenced =
        EndMarker { producer_id: 2, producer_epoch: 0, committed: true, coordinator_epoch: 0, transaction_version: 1 };
    let refused = log.append_end_txn_marker(fenced, 0).unwrap_err();
    assert!(matches!(refused, AppendError::CoordinatorFenced { epoch: 0, current: 1, .. }), "{refused}");
    assert_eq!(log.offsets().end, 9);
}

#[test]
fn transactions_over_segments_survive_any_restart() {
    let world = World::with(|config| {
        config.segment_bytes = 600;
        config.index_interval_bytes = 100;
    });
    let log = world.open(true);
    let mut expected = Vec::new();
    let mut next = [0i32; 10];
    // Producer 0 has its transaction open over many segments; the others open and end theirs within.
    log.append(in_transaction(0, 0, 1), 0).unwrap();
    for round in 0..30i64 {
        let producer = 1 + round % 5;
        let first = log.append(in_transaction(producer, next[producer as usize], 2), 0).unwrap().first_offset;
        next[producer as usize] += 2;
        log.append(batch(1, NOW), 0).unwrap();
        let last = end(&log, producer, round % 3 == 0);
        if round % 3 != 0 {
            expected.push((producer, first, last));
        }
    }
    let check = |log: &PartitionLog| {
        assert_eq!(log.offsets().last_stable, 0);
        assert_eq!(committed(log, 0).0, 0);
        let ended = end(log, 0, false);
        assert_eq!(log.offsets().last_stable, ended + 1);
        // All of them are found by whoever reads on from anywhere, if they have anything from there on.
        for from in [0, 1, 17, 60, 100] {
            let mut found = Vec::new();
            let mut next = from;
            while next < log.offsets().end {
                let result = log.read(next, 300, true, Isolation::ReadCommitted).unwrap();
                let bytes = bytes_of(&result.range.unwrap());
                let headers: Vec<_> = crate::record::Batches::new(&bytes).map(|batch| *batch.header()).collect();
                next = headers.last().unwrap().last_offset() + 1;
                for header in headers.iter().filter(|header| header.is_transactional() && !header.is_control()) {
                    let is_aborted =
                        expected.iter().any(|(_, first, _)| *first == header.base_offset) || header.base_offset == 0;
                    let told = result.aborted.iter().any(|aborted| {
                        aborted.producer_id == header.producer_id
                            && (aborted.first_offset..=aborted.last_offset).contains(&header.base_offset)
                    });
                    assert_eq!(told, is_aborted, "{header:?} from {from}");
                }
                found.extend(
                    result
                        .aborted
                        .iter()
                        .map(|aborted| (aborted.producer_id, aborted.first_offset, aborted.last_offset)),
                );
            }
            for transaction in expected.iter().filter(|(_, first, _)| *first >= from) {
                assert!(found.contains(transaction), "{transaction:?} from {from}");
            }
        }
    };
    let (unclean, torn) = (world.copy(), world.copy());
    // An index of aborted transactions in the middle is torn, and none is at the end.
    let sealed = torn.files(".txnindex");
    let file = std::fs::OpenOptions::new().write(true).open(&sealed[sealed.len() / 2]).unwrap();
    file.set_len(20).unwrap();
    let clean = world.copy();
    clean.open(false).close().unwrap();
    check(&log);
    for (world, is_clean) in [(clean, true), (unclean, false), (torn, false)] {
        check(&world.open(is_clean));
    }
}

#[test]
fn an_open_transaction_is_found_at_its_place_after_a_restart() {
    let world = World::with(|config| config.index_interval_bytes = 100);
    let log = world.open(true);
    for _ in 0..20 {
        log.append(batch(2, NOW), 0).unwrap();
    }
    let stable = log.size_bytes() as usize;
    log.append(in_transaction(1, 0, 3), 0).unwrap();
    log.append(batch(2, NOW), 0).unwrap();
    log.close().unwrap();
    for clean in [true, false] {
        let copy = world.copy();
        let log = copy.open(clean);
        assert_eq!(log.offsets().last_stable, 40);
        assert_eq!(committed(&log, 0), (stable, vec![]));
        assert_eq!(log.producers()[0].transaction_start, Some(40));
    }
    assert!(world.dir().join(segment_file(45, FileKind::Snapshot)).exists());
}
