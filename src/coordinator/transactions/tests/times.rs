use super::*;

fn quick() -> Config {
    Config { abort_interval_ms: 10, expiry_interval_ms: 1_000, id_expiration_ms: 100_000, ..Config::default() }
}

#[test]
fn a_transaction_that_nobody_ends_is_aborted_and_its_producer_fenced() {
    for version in [Version::V1, Version::V2] {
        let mut h = Harness::with(Config { version, ..quick() });
        let p = h.init();
        h.add(p, &[("t", 0)], version).unwrap();
        h.advance(30_000);
        h.add(p, &[("t", 1)], version).unwrap();
        h.advance(30_000);
        assert_eq!(h.state(), State::Ongoing, "the time counts from the first partition, and is not over");
        h.advance(11);
        assert_eq!(h.state(), State::CompleteAbort);
        let markers = h.written.pop().unwrap();
        assert_eq!((markers.committed, markers.producer), (false, epoch(p, 1)));
        let refused = match version {
            Version::V1 => Error::ProducerFenced,
            // Its epoch is the one before the current, as if it sent an end again.
            Version::V2 => Error::InvalidTxnState,
        };
        assert_eq!(h.end(p, true, version), Err(refused));
        assert_eq!(h.add(p, &[("t", 0)], version), Err(Error::ProducerFenced));
        assert_eq!(h.init(), epoch(p, 2));
    }
}

#[test]
fn a_timeout_counts_on_over_a_restart() {
    let mut h = Harness::with(quick());
    let p = h.init();
    h.add(p, &[("t", 0)], Version::V2).unwrap();
    h.advance(59_000);
    h.restart();
    assert_eq!(h.state(), State::Ongoing);
    h.advance(1_020);
    assert_eq!(h.state(), State::CompleteAbort);
}

#[test]
fn transactions_in_two_phases_have_no_timeout() {
    let mut h = Harness::with(Config { two_phase_commit: true, ..quick() });
    let p = h.init_with(InitRequest { two_phase_commit: true, timeout_ms: 0, ..init() }).unwrap();
    h.add(p, &[("t", 0)], Version::V2).unwrap();
    h.advance(10_000_000);
    assert_eq!(h.state(), State::Ongoing);
}

#[test]
fn an_id_that_nobody_uses_is_forgotten() {
    let mut h = Harness::with(quick());
    let p = h.init();
    h.add(p, &[("t", 0)], Version::V2).unwrap();
    let other = InitRequest { transactional_id: "y".into(), ..init() };
    h.init_with(other).unwrap();
    h.advance(50_000);
    let next = h.end(p, true, Version::V2).unwrap().unwrap();
    h.advance(50_000);
    assert_eq!(h.coordinator.describe("y"), Err(Error::TransactionalIdNotFound));
    assert_eq!(h.state(), State::CompleteCommit);
    h.advance(51_000);
    assert!(h.disk.is_empty());
    assert_eq!(h.add(next, &[("t", 0)], Version::V2), Err(Error::InvalidProducerIdMapping));
    assert_eq!(h.init(), Producer { id: 1003, epoch: 0 });
}

#[test]
fn an_id_that_could_not_be_forgotten_is_still_there() {
    let mut h = Harness::with(quick());
    let p = h.init();
    h.prompt = false;
    h.advance(100_000);
    assert_eq!(h.end(p, false, Version::V2), Err(Error::ConcurrentTransactions));
    h.end_job(0, Err(Failed));
    h.prompt = true;
    assert_eq!(h.end(p, false, Version::V2), Ok(Some(epoch(p, 1))));
}

#[test]
fn lists_are_filtered() {
    let mut h = Harness::with(quick());
    let p = h.init();
    h.add(p, &[("t", 0)], Version::V2).unwrap();
    h.init_with(InitRequest { transactional_id: "other".into(), ..init() }).unwrap();
    h.advance(100);
    let all = || Filter { duration_ms: -1, ..Filter::default() };
    let ids = |filter: Filter| {
        let listed = h.coordinator.list(&filter, START_MS + 100);
        listed.into_iter().map(|listed| listed.transactional_id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(ids(all()), ["other", "x"]);
    assert_eq!(ids(Filter { states: Some(vec![State::Ongoing]), ..all() }), ["x"]);
    assert_eq!(ids(Filter { states: Some(vec![]), ..all() }), [""; 0]);
    assert_eq!(ids(Filter { producer_ids: vec![1002], ..all() }), ["other"]);
    assert_eq!(ids(Filter { pattern: Some(regex::Regex::new("^(?:o.*)$").unwrap()), ..all() }), ["other"]);
    assert_eq!(ids(Filter { states: Some(vec![State::Ongoing]), duration_ms: 99, ..Filter::default() }), ["x"]);
    assert_eq!(ids(Filter { states: Some(vec![State::Ongoing]), duration_ms: 100, ..Filter::default() }), [""; 0]);
}
