//! Transactions in both versions of the protocol: what becomes visible when, who is fenced, and what survives.

use std::time::{Duration, Instant};

use doze::protocol::ErrorCode;
use doze::protocol::messages::add_partitions_to_txn::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction,
};
use doze::protocol::messages::describe_producers::{DescribeProducersRequest, TopicRequest};
use doze::protocol::messages::end_txn::EndTxnRequest;
use doze::protocol::messages::init_producer_id::InitProducerIdRequest;
use doze::protocol::messages::list_transactions::ListTransactionsRequest;
use doze::protocol::messages::write_txn_markers::{WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest};

use crate::asks::{GROUP, look_up};
use crate::data::*;
use crate::harness::{Broker, Client, PATIENCE};

use crate::producer::Protocol::{First, Second};
use crate::producer::*;

#[test]
fn records_are_seen_when_their_transaction_is_committed() {
    for protocol in [First, Second] {
        let broker = Broker::start();
        let mut client = broker.connect();
        let topic = create_topic(&mut client, "t", 2, &[]);
        let mut producer = Producer::new(&broker, protocol);
        producer.produce(&topic, 0, "a");
        producer.produce(&topic, 0, "b");
        assert_eq!(committed(&mut client, &topic, 0), [""; 0], "{protocol:?}");
        produce_ok(&mut client, &topic, &batch(&[b"outside"]));
        assert_eq!(committed(&mut client, &topic, 0), [""; 0], "it is above the last stable offset");
        producer.end(true);
        expect_committed(&mut client, &topic, 0, &["a", "b", "outside"]);
        producer.produce(&topic, 0, "c");
        producer.end(false);
        producer.produce(&topic, 0, "d");
        producer.end(true);
        expect_committed(&mut client, &topic, 0, &["a", "b", "outside", "d"]);
        let state = expect_state(&mut client, "CompleteCommit");
        assert_eq!((state.producer_id, state.producer_epoch), (producer.id, producer.epoch));
        assert!(state.topics.is_empty());
    }
}

#[test]
fn a_transaction_is_whole_over_partitions_and_offsets() {
    for protocol in [First, Second] {
        let broker = Broker::start();
        let mut client = broker.connect();
        let topic = create_topic(&mut client, "t", 2, &[]);
        let mut producer = Producer::new(&broker, protocol);
        for (offset, commit) in [(5, true), (9, false)] {
            // Each partition has its own sequence, and in the second version each transaction.
            let sequence = producer.sequence;
            producer.produce(&topic, 0, &format!("zero {offset}"));
            producer.sequence = sequence;
            producer.produce(&topic, 1, &format!("one {offset}"));
            producer.commit_offset(&topic, offset);
            assert_eq!(stable_offset(&mut client, &topic), Err(ErrorCode::UnstableOffsetCommit), "{protocol:?}");
            let state = describe(&mut client, "tx");
            assert_eq!(state.transaction_state, "Ongoing");
            let topics: Vec<_> = state.topics.iter().map(|t| (t.topic.as_str(), t.partitions.len())).collect();
            assert_eq!(topics, [("__consumer_offsets", 1), ("t", 2)]);
            producer.end(commit);
        }
        expect_committed(&mut client, &topic, 0, &["zero 5"]);
        expect_committed(&mut client, &topic, 1, &["one 5"]);
        expect_offset(&mut client, &topic, 5);
    }
}

#[test]
fn a_second_producer_aborts_the_transaction_of_the_first_and_fences_it() {
    for protocol in [First, Second] {
        let broker = Broker::start();
        let mut client = broker.connect();
        let topic = create_topic(&mut client, "t", 1, &[]);
        let mut first = Producer::new(&broker, protocol);
        first.produce(&topic, 0, "lost");
        let answer = client.call(5, &init_request(60_000));
        assert_eq!(error(answer.error_code), ErrorCode::ConcurrentTransactions, "the first one is aborted before");
        let mut second = Producer::new(&broker, protocol);
        assert_eq!((second.id, second.epoch), (first.id, first.epoch + 2));
        assert_eq!(first.try_produce(&topic, 0, "late"), ErrorCode::InvalidProducerEpoch, "{protocol:?}");
        assert_eq!(error(first.try_end(true).error_code), ErrorCode::ProducerFenced);
        assert_eq!(first.add(&topic, 0), ErrorCode::ProducerFenced);
        second.produce(&topic, 0, "kept");
        second.end(true);
        expect_committed(&mut client, &topic, 0, &["kept"]);
    }
}

#[test]
fn older_clients_are_told_of_an_invalid_epoch() {
    let broker = Broker::start();
    let mut first = Producer::new(&broker, First);
    Producer::new(&broker, First);
    let request = EndTxnRequest {
        transactional_id: "tx".into(),
        producer_id: first.id,
        producer_epoch: first.epoch,
        committed: true,
    };
    for (version, expected) in [(1, ErrorCode::InvalidProducerEpoch), (2, ErrorCode::ProducerFenced)] {
        assert_eq!(error(first.client.call(version, &request).error_code), expected, "v{version}");
    }
    let again = InitProducerIdRequest { producer_id: first.id + 1, producer_epoch: 0, ..init_request(60_000) };
    for (version, expected) in [(3, ErrorCode::InvalidProducerEpoch), (4, ErrorCode::ProducerFenced)] {
        assert_eq!(error(first.client.call(version, &again).error_code), expected, "v{version}");
    }
    let half = InitProducerIdRequest { producer_id: first.id, ..init_request(60_000) };
    assert_eq!(error(first.client.call(3, &half).error_code), ErrorCode::InvalidRequest);
}

#[test]
fn a_partition_that_was_not_added_is_refused_by_version() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 2, &[]);
    let mut producer = Producer::new(&broker, First);
    let first = producer.batch(0, "x");
    for (version, expected) in [
        (3, ErrorCode::InvalidTxnState),
        (10, ErrorCode::InvalidTxnState),
        (11, ErrorCode::TransactionAbortable),
        (12, ErrorCode::None),
    ] {
        let answer = producer.produce_at(version, &topic, 0, &first);
        assert_eq!(error(answer.error_code), expected, "v{version}");
    }
    // What is in the log of an open transaction goes with it, in whatever version.
    let second = producer.batch(1, "y");
    assert_eq!(error(producer.produce_at(11, &topic, 0, &second).error_code), ErrorCode::None);
    let unnamed = produce_request(&topic, 0, ALL, &producer.batch(2, "z"));
    let answer = producer.client.call(12, &unnamed);
    let code = answer.responses[0].partition_responses[0].error_code;
    assert_eq!(error(code), ErrorCode::TransactionalIdAuthorizationFailed);
    // In the second version a producer that is not known in a partition starts at 0.
    let late = producer.batch(1, "late");
    let answer = producer.produce_at(13, &topic, 1, &late);
    assert_eq!(error(answer.error_code), ErrorCode::OutOfOrderSequenceNumber);
    producer.id += 77;
    let other = producer.batch(0, "other");
    let answer = producer.produce_at(13, &topic, 0, &other);
    assert_eq!(error(answer.error_code), ErrorCode::InvalidProducerIdMapping);
}

#[test]
fn without_verification_older_clients_are_believed() {
    let broker = Broker::start_with(&["--override", "transaction.partition.verification.enable=false"]);
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[]);
    let mut producer = Producer::new(&broker, First);
    let first = producer.batch(0, "x");
    assert_eq!(error(producer.produce_at(11, &topic, 0, &first).error_code), ErrorCode::None);
    assert_eq!(describe(&mut client, "tx").transaction_state, "Empty");
}

#[test]
fn offsets_are_checked_by_version() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[]);
    let mut producer = Producer::new(&broker, First);
    for (version, expected) in
        [(0, ErrorCode::InvalidTxnState), (3, ErrorCode::InvalidTxnState), (4, ErrorCode::TransactionAbortable)]
    {
        assert_eq!(producer.try_commit_offset(version, &topic, 1), expected, "v{version}");
    }
    assert_eq!(producer.add_offsets(), ErrorCode::None);
    for version in 0..=5 {
        assert_eq!(producer.try_commit_offset(version, &topic, version.into()), ErrorCode::None, "v{version}");
    }
    let unknown = Topic { name: "nowhere".into(), id: topic.id };
    assert_eq!(producer.try_commit_offset(5, &unknown, 1), ErrorCode::UnknownTopicOrPartition);
    producer.epoch += 1;
    for version in [0, 5] {
        assert_eq!(producer.try_commit_offset(version, &topic, 1), ErrorCode::InvalidProducerEpoch, "v{version}");
    }
    producer.epoch -= 1;
    producer.end(true);
    expect_offset(&mut client, &topic, 5);
}

#[test]
fn a_transaction_that_takes_too_long_is_aborted() {
    let interval = "transaction.abort.timed.out.transaction.cleanup.interval.ms=20";
    for protocol in [First, Second] {
        let broker = Broker::start_with(&["--override", interval]);
        let mut client = broker.connect();
        look_up(&mut client, GROUP);
        let topic = create_topic(&mut client, "t", 1, &[]);
        let mut slow = Producer::with_timeout(&broker, protocol, 500);
        slow.produce(&topic, 0, "slow");
        slow.commit_offset(&topic, 7);
        let state = expect_state(&mut client, "CompleteAbort");
        assert_eq!((state.producer_id, state.producer_epoch), (slow.id, slow.epoch + 1));
        assert_eq!(slow.try_produce(&topic, 0, "late"), ErrorCode::InvalidProducerEpoch, "{protocol:?}");
        let refused = if protocol == First { ErrorCode::ProducerFenced } else { ErrorCode::InvalidTxnState };
        assert_eq!(error(slow.try_end(true).error_code), refused);
        expect_committed(&mut client, &topic, 0, &[]);
        expect_offset(&mut client, &topic, -1);
        let mut next = Producer::with_timeout(&broker, protocol, 60_000);
        assert_eq!((next.id, next.epoch), (slow.id, slow.epoch + 2));
        next.produce(&topic, 0, "next");
        next.end(true);
        expect_committed(&mut client, &topic, 0, &["next"]);
        // An answer to its own late end is an abort that was carried out, for a client of the second version.
        let too_long = init_request(900_001);
        assert_eq!(error(client.call(5, &too_long).error_code), ErrorCode::InvalidTransactionTimeout);
    }
}

#[test]
fn an_answered_commit_survives_a_kill_with_all_of_its_markers_and_offsets() {
    for protocol in [First, Second] {
        let mut broker = Broker::start();
        let mut client = broker.connect();
        let topic = create_topic(&mut client, "t", 1, &[]);
        let (mut expected, mut producer) = (vec![], Producer::new(&broker, protocol));
        for round in 0..4 {
            let value = format!("round {round}");
            producer.produce(&topic, 0, &value);
            producer.commit_offset(&topic, round);
            // No time for the markers.
            producer.end(true);
            broker = broker.kill().start();
            client = broker.connect();
            expected.push(value);
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            expect_committed(&mut client, &topic, 0, &expected);
            expect_offset(&mut client, &topic, round);
            expect_state(&mut client, "CompleteCommit");
            producer.client = broker.connect();
        }
    }
}

#[test]
fn an_open_transaction_goes_on_after_a_restart() {
    for protocol in [First, Second] {
        let broker = Broker::start();
        let topic = create_topic(&mut broker.connect(), "t", 1, &[]);
        let mut producer = Producer::new(&broker, protocol);
        producer.produce(&topic, 0, "a");
        producer.commit_offset(&topic, 3);
        let broker = broker.kill().start();
        let mut client = broker.connect();
        assert_eq!(stable_offset(&mut client, &topic), Err(ErrorCode::UnstableOffsetCommit), "{protocol:?}");
        assert_eq!(committed(&mut client, &topic, 0), [""; 0]);
        producer.client = broker.connect();
        producer.produce(&topic, 0, "b");
        producer.end(true);
        expect_committed(&mut client, &topic, 0, &["a", "b"]);
        expect_offset(&mut client, &topic, 3);
        let broker = broker.stop().start();
        let mut client = broker.connect();
        expect_committed(&mut client, &topic, 0, &["a", "b"]);
    }
}

#[test]
fn brokers_add_and_verify_many_transactions_at_once() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 2, &[]);
    let mut producer = Producer::new(&broker, First);
    let transaction = |verify_only, partitions: &[i32]| AddPartitionsToTxnTransaction {
        transactional_id: "tx".into(),
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        verify_only,
        topics: vec![AddPartitionsToTxnTopic { name: "t".into(), partitions: partitions.to_vec() }],
    };
    let unknown = AddPartitionsToTxnTransaction { transactional_id: "nobody".into(), ..transaction(true, &[0]) };
    let requests = [
        (vec![transaction(false, &[0]), unknown], vec![vec![(0, "NONE")], vec![(0, "INVALID_PRODUCER_ID_MAPPING")]]),
        (vec![transaction(true, &[0, 1])], vec![vec![(0, "NONE"), (1, "TRANSACTION_ABORTABLE")]]),
        (
            vec![transaction(false, &[1, 2])],
            vec![vec![(1, "OPERATION_NOT_ATTEMPTED"), (2, "UNKNOWN_TOPIC_OR_PARTITION")]],
        ),
    ];
    for (transactions, expected) in requests {
        let answer = client.call(4, &AddPartitionsToTxnRequest { transactions, ..Default::default() });
        let codes: Vec<Vec<(i32, &str)>> = answer
            .results_by_transaction
            .iter()
            .map(|result| {
                let partitions = result.topic_results.iter().flat_map(|topic| &topic.results_by_partition);
                partitions.map(|p| (p.partition_index, error(p.partition_error_code).name())).collect()
            })
            .collect();
        assert_eq!(codes, expected);
    }
    producer.produce(&topic, 0, "x");
}

#[test]
fn markers_end_a_transaction_past_its_coordinator() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[]);
    let mut producer = Producer::new(&broker, Second);
    producer.produce(&topic, 0, "hangs");
    let describe = |client: &mut Client| {
        let topics = vec![TopicRequest { name: "t".into(), partition_indexes: vec![0, 5] }];
        client.call(0, &DescribeProducersRequest { topics }).topics.remove(0).partitions
    };
    let partitions = describe(&mut client);
    let known = &partitions[0].active_producers[0];
    assert_eq!((known.producer_id, known.producer_epoch), (producer.id, producer.epoch.into()));
    assert_eq!((known.last_sequence, known.current_txn_start_offset, known.coordinator_epoch), (0, 0, -1));
    assert_eq!(error(partitions[1].error_code), ErrorCode::UnknownTopicOrPartition);
    let marker = |epoch, transaction_version| WriteTxnMarkersRequest {
        markers: vec![WritableTxnMarker {
            producer_id: producer.id,
            producer_epoch: epoch,
            transaction_result: false,
            topics: vec![WritableTxnMarkerTopic { name: "t".into(), partition_indexes: vec![0, 5] }],
            coordinator_epoch: 0,
            transaction_version,
        }],
    };
    let write = |client: &mut Client, request: &WriteTxnMarkersRequest| {
        let answer = client.call(2, request);
        let partitions = &answer.markers[0].topics[0].partitions;
        assert_eq!(error(partitions[1].error_code), ErrorCode::UnknownTopicOrPartition);
        error(partitions[0].error_code)
    };
    assert_eq!(write(&mut client, &marker(producer.epoch, 2)), ErrorCode::InvalidProducerEpoch);
    assert_eq!(write(&mut client, &marker(producer.epoch, 1)), ErrorCode::None);
    let partitions = describe(&mut client);
    let known = &partitions[0].active_producers[0];
    assert_eq!((known.current_txn_start_offset, known.coordinator_epoch), (-1, 0));
    assert_eq!(committed(&mut client, &topic, 0), [""; 0]);
    produce_ok(&mut client, &topic, &batch(&[b"free"]));
    expect_committed(&mut client, &topic, 0, &["free"]);
}

#[test]
fn transactional_ids_are_listed_and_forgotten() {
    let overrides =
        ["transactional.id.expiration.ms=300", "transaction.remove.expired.transaction.cleanup.interval.ms=50"];
    let broker = Broker::start_with(&["--override", overrides[0], "--override", overrides[1]]);
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[]);
    let mut producer = Producer::new(&broker, Second);
    producer.produce(&topic, 0, "x");
    let list = |client: &mut Client, request: ListTransactionsRequest| {
        let answer = client.call(2, &request);
        let states = answer.transaction_states.iter();
        let states = states.map(|s| format!("{} {}", s.transactional_id, s.transaction_state)).collect::<Vec<_>>();
        (error(answer.error_code), answer.unknown_state_filters, states)
    };
    let ongoing = || (ErrorCode::None, vec![], vec!["tx Ongoing".to_owned()]);
    let nothing = || (ErrorCode::None, vec![], vec![]);
    assert_eq!(list(&mut client, ListTransactionsRequest::default()), ongoing());
    let by_state = |state: &str| ListTransactionsRequest { state_filters: vec![state.into()], ..Default::default() };
    assert_eq!(list(&mut client, by_state("Ongoing")), ongoing());
    assert_eq!(list(&mut client, by_state("Dead")), nothing());
    assert_eq!(list(&mut client, by_state("Odd")), (ErrorCode::None, vec!["Odd".to_owned()], vec![]));
    let by_pattern =
        |p: &str| ListTransactionsRequest { transactional_id_pattern: Some(p.into()), ..Default::default() };
    assert_eq!(list(&mut client, by_pattern("t.")), ongoing());
    assert_eq!(list(&mut client, by_pattern("t")), nothing());
    assert_eq!(list(&mut client, by_pattern("(")).0, ErrorCode::InvalidRegularExpression);
    let old = ListTransactionsRequest { duration_filter: 100_000, ..Default::default() };
    assert_eq!(list(&mut client, old), nothing());
    producer.end(true);
    let end = Instant::now() + PATIENCE;
    while error(describe(&mut client, "tx").error_code) != ErrorCode::TransactionalIdNotFound {
        assert!(Instant::now() < end, "it is never forgotten");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(error(producer.try_end(true).error_code), ErrorCode::InvalidProducerIdMapping);
    assert_eq!(producer.try_produce(&topic, 0, "y"), ErrorCode::InvalidProducerIdMapping);
    let fresh = Producer::new(&broker, Second);
    assert_eq!((fresh.id, fresh.epoch), (producer.id + 1, 0));
}

#[test]
fn producers_are_forgotten_when_they_write_nothing() {
    let overrides = ["producer.id.expiration.ms=200", "producer.id.expiration.check.interval.ms=50"];
    let broker = Broker::start_with(&["--override", overrides[0], "--override", overrides[1]]);
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[]);
    let mut producer = Producer::new(&broker, Second);
    let idle = new_producer(&mut client);
    produce_ok(&mut client, &topic, &sequenced(idle, 0, 1));
    producer.produce(&topic, 0, "x");
    let known = |client: &mut Client| {
        let topics = vec![TopicRequest { name: "t".into(), partition_indexes: vec![0] }];
        let answer = client.call(0, &DescribeProducersRequest { topics });
        answer.topics[0].partitions[0].active_producers.iter().map(|p| p.producer_id).collect::<Vec<_>>()
    };
    let expect_known = |client: &mut Client, expected: &[i64]| {
        let end = Instant::now() + PATIENCE;
        while known(client) != expected {
            assert!(Instant::now() < end, "{:?} instead of {expected:?}", known(client));
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    expect_known(&mut client, &[producer.id]);
    producer.end(true);
    expect_known(&mut client, &[]);
    producer.produce(&topic, 0, "y");
}
