use super::*;

const T0: &[(&str, i32)] = &[("t", 0)];

#[test]
fn the_first_version_keeps_its_epoch() {
    let mut h = Harness::new();
    let p = h.init();
    assert_eq!(h.end(p, true, Version::V1), Err(Error::InvalidTxnState), "nothing is open");
    for committed in [true, false] {
        h.add(p, T0, Version::V1).unwrap();
        assert_eq!(h.end(p, committed, Version::V1), Ok(None));
        let markers = h.written.pop().unwrap();
        assert_eq!((markers.producer, markers.committed, markers.version), (p, committed, Version::V1));
        assert_eq!(h.end(p, committed, Version::V1), Ok(None), "sent again");
        assert_eq!(h.end(p, !committed, Version::V1), Err(Error::InvalidTxnState));
        assert_eq!(h.written, vec![]);
    }
}

#[test]
fn the_second_version_has_an_epoch_for_each_transaction() {
    let mut h = Harness::new();
    let p = h.init();
    h.add(p, T0, Version::V2).unwrap();
    let next = epoch(p, 1);
    assert_eq!(h.end(p, true, Version::V2), Ok(Some(next)));
    let markers = h.written.pop().unwrap();
    assert_eq!((markers.producer, markers.version), (next, Version::V2));
    assert_eq!(h.end(p, true, Version::V2), Ok(Some(next)), "sent again");
    assert_eq!(h.end(p, false, Version::V2), Err(Error::InvalidTxnState), "sent again, but otherwise");
    assert_eq!(h.end(next, true, Version::V2), Err(Error::InvalidTxnState), "nothing is open");
    assert_eq!(h.add(p, T0, Version::V2), Err(Error::ProducerFenced));
    assert_eq!(h.end(next, false, Version::V2), Ok(Some(epoch(p, 2))), "an abort of nothing gives an epoch");
    assert_eq!(h.end(next, false, Version::V2), Ok(Some(epoch(p, 2))), "sent again");
    assert_eq!(h.state(), State::CompleteAbort);
    assert_eq!(h.written, vec![]);
    let third = h.init();
    assert_eq!(h.end(epoch(p, 2), false, Version::V2), Err(Error::ProducerFenced));
    assert_eq!(h.end(third, true, Version::V2), Err(Error::InvalidTxnState));
    assert_eq!(h.end(third, false, Version::V2), Ok(Some(epoch(third, third.epoch + 1))));
}

#[test]
fn the_last_epoch_ends_with_a_new_producer_id() {
    let mut h = Harness::new();
    let first = h.init();
    h.start_over("x", |metadata| metadata.epoch = i16::MAX - 1);
    let last = epoch(first, i16::MAX - 1);
    h.add(last, T0, Version::V2).unwrap();
    let fresh = Producer { id: 1002, epoch: 0 };
    h.prompt = false;
    let token = h.start_end(last, true, Version::V2);
    h.end_job(0, Ok(()));
    h.end_job(0, Ok(()));
    assert_eq!(h.answer(token), Some(Reply::End(Ok(Some(fresh)))));
    assert_eq!(h.add(fresh, T0, Version::V2), Err(Error::ConcurrentTransactions), "not while markers are written");
    h.prompt = true;
    h.end_job(0, Ok(()));
    assert_eq!(h.written.pop().unwrap().producer, epoch(first, i16::MAX));
    assert_eq!(h.end(last, true, Version::V2), Ok(Some(fresh)), "sent again");
    h.add(fresh, T0, Version::V2).unwrap();
    assert_eq!(h.end(last, true, Version::V2), Err(Error::InvalidProducerIdMapping), "that is long over");
    assert_eq!(h.end(fresh, true, Version::V2), Ok(Some(epoch(fresh, 1))));
}

#[test]
fn an_end_is_answered_when_it_is_decided_and_others_wait_for_the_markers() {
    for version in [Version::V1, Version::V2] {
        let mut h = Harness::new();
        let p = h.init();
        h.add(p, T0, version).unwrap();
        h.prompt = false;
        let token = h.start_end(p, true, version);
        assert_eq!(h.answer(token), None);
        assert_eq!(h.end(p, true, version), Err(Error::ConcurrentTransactions));
        h.end_job(0, Ok(()));
        assert!(matches!(h.answer(token), Some(Reply::End(Ok(_)))));
        assert_eq!(h.state(), State::PrepareCommit);
        let next = h.coordinator.describe("x").unwrap().producer();
        assert_eq!(h.add(next, T0, version), Err(Error::ConcurrentTransactions));
        assert_eq!(h.coordinator.verify("x", next, &places(T0)), Err(Error::ConcurrentTransactions));
        h.end_job(0, Ok(()));
        assert_eq!(h.init_with(init()), Err(Error::ConcurrentTransactions));
        h.end_job(0, Ok(()));
        assert_eq!(h.state(), State::CompleteCommit);
    }
}

#[test]
fn markers_are_written_until_they_are_there() {
    let mut h = Harness::new();
    let p = h.init();
    h.add(p, T0, Version::V2).unwrap();
    h.prompt = false;
    h.start_end(p, true, Version::V2);
    h.end_job(0, Ok(()));
    for wait in [100, 200, 400] {
        h.end_job(0, Err(Failed));
        h.advance(wait - 1);
        assert!(h.jobs.is_empty());
        h.advance(1);
        assert_eq!(h.jobs.len(), 1, "after {wait} ms");
    }
    h.end_job(0, Ok(()));
    // The markers are there, and the disk refuses what says so.
    h.end_job(0, Err(Failed));
    h.advance(100);
    h.prompt = true;
    h.end_job(0, Ok(()));
    assert_eq!(h.written.len(), 2);
    assert_eq!(h.state(), State::CompleteCommit);
}

#[test]
fn a_restart_completes_what_was_decided() {
    for version in [Version::V1, Version::V2] {
        let mut h = Harness::new();
        let p = h.init();
        h.add(p, &[("t", 0), (OFFSETS_TOPIC, 3)], version).unwrap();
        h.prompt = false;
        h.start_end(p, true, version);
        h.end_job(0, Ok(()));
        h.prompt = true;
        h.restart();
        assert_eq!(h.state(), State::CompleteCommit);
        let markers = h.written.pop().unwrap();
        assert!(markers.committed);
        assert_eq!(markers.places, places(&[("t", 0), (OFFSETS_TOPIC, 3)]).into_iter().collect::<Vec<_>>());
        h.restart();
        assert_eq!(h.written, vec![], "it is over");
    }
}

#[test]
fn partitions_are_verified() {
    let mut h = Harness::new();
    let p = h.init();
    let wanted = places(&[("t", 0), ("t", 1)]);
    let verify = |h: &Harness, p| h.coordinator.verify("x", p, &wanted);
    assert_eq!(verify(&h, p), Ok(vec![Err(Error::TransactionAbortable); 2]));
    h.prompt = false;
    let token = h.start_add(p, T0, Version::V1);
    assert_eq!(verify(&h, p), Ok(vec![Err(Error::TransactionAbortable); 2]), "not before it is durable");
    h.end_job(0, Ok(()));
    assert_eq!(h.answer(token), Some(Reply::Add(Ok(()))));
    assert_eq!(verify(&h, p), Ok(vec![Ok(()), Err(Error::TransactionAbortable)]));
    assert_eq!(verify(&h, epoch(p, 1)), Err(Error::ProducerFenced));
    assert_eq!(verify(&h, Producer { id: 5, epoch: 0 }), Err(Error::InvalidProducerIdMapping));
    assert_eq!(h.coordinator.verify("y", p, &wanted), Err(Error::InvalidProducerIdMapping));
    assert!(h.coordinator.is_open("x", p, &places(T0)) && !h.coordinator.is_open("x", p, &wanted));
    let token = h.start_add(p, T0, Version::V1);
    assert_eq!(h.answer(token), Some(Reply::Add(Ok(()))), "what is there needs no write");
}
