use super::*;

#[test]
fn a_new_id_gets_a_producer_and_a_second_producer_fences_the_first() {
    let mut h = Harness::new();
    let first = h.init();
    assert_eq!(first, Producer { id: 1001, epoch: 0 });
    let second = h.init();
    assert_eq!(second, Producer { id: 1001, epoch: 1 });
    assert_eq!(h.add(first, &[("t", 0)], Version::V1), Err(Error::ProducerFenced));
    assert_eq!(h.end(first, true, Version::V1), Err(Error::ProducerFenced));
    assert_eq!(h.end(first, true, Version::V2), Err(Error::ProducerFenced));
    assert_eq!(h.add(second, &[("t", 0)], Version::V1), Ok(()));
    h.restart();
    assert_eq!(h.state(), State::Ongoing);
    assert_eq!(h.add(first, &[("t", 1)], Version::V1), Err(Error::ProducerFenced));
}

#[test]
fn what_makes_no_sense_is_refused_and_leaves_nothing() {
    let mut h = Harness::new();
    let refused = [
        (InitRequest { transactional_id: String::new(), ..init() }, Error::InvalidRequest),
        (InitRequest { timeout_ms: 0, ..init() }, Error::InvalidTransactionTimeout),
        (InitRequest { timeout_ms: 900_001, ..init() }, Error::InvalidTransactionTimeout),
        (InitRequest { two_phase_commit: true, ..init() }, Error::TwoPhaseCommitDisabled),
        (InitRequest { keep_prepared: true, ..init() }, Error::CannotKeepPrepared),
    ];
    for (request, error) in refused {
        assert_eq!(h.init_with(request), Err(error));
    }
    let nobody = Producer { id: 1, epoch: 0 };
    for version in [Version::V1, Version::V2] {
        assert_eq!(h.add(nobody, &[("t", 0)], version), Err(Error::InvalidProducerIdMapping));
        assert_eq!(h.end(nobody, true, version), Err(Error::InvalidProducerIdMapping));
    }
    assert_eq!(h.coordinator.describe("x"), Err(Error::TransactionalIdNotFound));
    assert_eq!(h.coordinator.describe(""), Err(Error::InvalidRequest));
    assert_eq!(h.coordinator.list(&Filter { duration_ms: -1, ..Filter::default() }, START_MS), vec![]);
    assert!(h.disk.is_empty());
}

#[test]
fn an_open_transaction_is_aborted_for_a_new_producer() {
    let mut h = Harness::new();
    let first = h.init();
    h.add(first, &[("t", 0), ("t", 1)], Version::V1).unwrap();
    h.prompt = false;
    let token = h.start_init(init());
    assert_eq!(h.answer(token), None, "the decision is not durable");
    h.end_job(0, Ok(()));
    assert_eq!(h.answer(token), Some(Reply::Init(Err(Error::ConcurrentTransactions))));
    assert_eq!(h.state(), State::PrepareAbort);
    assert_eq!(h.init_with(init()), Err(Error::ConcurrentTransactions));
    h.end_job(0, Ok(()));
    let markers = h.written.pop().unwrap();
    assert_eq!((markers.committed, markers.producer), (false, epoch(first, 1)), "the old epoch is fenced in the logs");
    assert_eq!(markers.places, places(&[("t", 0), ("t", 1)]).into_iter().collect::<Vec<_>>());
    h.end_job(0, Ok(()));
    assert_eq!(h.state(), State::CompleteAbort);
    h.prompt = true;
    assert_eq!(h.init(), epoch(first, 2));
}

#[test]
fn a_producer_goes_on_with_its_next_epoch() {
    let mut h = Harness::new();
    let first = h.init();
    let again = |expected| InitRequest { expected: Some(expected), ..init() };
    assert_eq!(h.init_with(again(first)), Ok(epoch(first, 1)));
    assert_eq!(h.init_with(again(first)), Ok(epoch(first, 1)), "it did not get the answer");
    assert_eq!(h.init_with(again(epoch(first, 1))), Ok(epoch(first, 2)));
    assert_eq!(h.init_with(again(first)), Err(Error::ProducerFenced));
    assert_eq!(h.init(), epoch(first, 3));
    assert_eq!(h.init_with(again(epoch(first, 2))), Err(Error::ProducerFenced), "somebody else has come since");
    assert_eq!(h.init_with(again(Producer { id: 77, epoch: 3 })), Err(Error::ProducerFenced));
    let unknown = InitRequest { transactional_id: "y".into(), ..again(Producer { id: 77, epoch: 3 }) };
    assert_eq!(h.init_with(unknown), Ok(Producer { id: 1002, epoch: 0 }), "of an id that nobody knows anybody may be");
}

#[test]
fn when_the_epochs_are_used_up_there_is_a_new_producer_id() {
    let mut h = Harness::new();
    let first = h.init();
    h.start_over("x", |metadata| metadata.epoch = i16::MAX - 1);
    let last = epoch(first, i16::MAX - 1);
    let again = InitRequest { expected: Some(last), ..init() };
    let fresh = Producer { id: 1002, epoch: 0 };
    assert_eq!(h.init_with(again.clone()), Ok(fresh));
    assert_eq!(h.init_with(again), Ok(fresh), "it did not get the answer");
    h.start_over("x", |metadata| metadata.epoch = i16::MAX - 1);
    let other = InitRequest { expected: Some(epoch(fresh, 3)), ..init() };
    assert_eq!(h.init_with(other), Err(Error::EpochsExhausted));
    assert_eq!(h.init(), Producer { id: 1003, epoch: 0 });
}

#[test]
fn a_change_that_cannot_be_stored_is_none() {
    let mut h = Harness::new();
    h.prompt = false;
    let token = h.start_init(init());
    h.end_job(0, Err(Failed));
    assert_eq!(h.answer(token), Some(Reply::Init(Err(Error::NotCoordinator))), "there was no producer id");
    let token = h.start_init(init());
    h.end_job(0, Ok(()));
    assert_eq!(h.init_with(init()), Err(Error::ConcurrentTransactions));
    h.end_job(0, Err(Failed));
    assert_eq!(h.answer(token), Some(Reply::Init(Err(Error::NotCoordinator))));
    assert_eq!(h.coordinator.describe("x"), Err(Error::TransactionalIdNotFound));
    h.prompt = true;
    let first = h.init();
    h.add(first, &[("t", 0)], Version::V1).unwrap();
    h.prompt = false;
    let token = h.start_init(init());
    h.end_job(0, Err(Failed));
    assert_eq!(h.answer(token), Some(Reply::Init(Err(Error::NotCoordinator))));
    h.prompt = true;
    assert_eq!(h.end(first, true, Version::V1), Ok(None), "nobody was fenced");
}
