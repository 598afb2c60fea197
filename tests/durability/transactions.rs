//! Transactions on a simulated disk: the power is cut after each file operation of a broker that runs some, and whatever
//! a producer was told about their ends has to hold. What it was not told is whole or absent: in both partitions and in the
//! group's offset, or in none.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::broker::{Life, new_disk};
use bytes::Bytes;
use doze::protocol::messages::add_offsets_to_txn::AddOffsetsToTxnRequest;
use doze::protocol::messages::add_partitions_to_txn::{AddPartitionsToTxnRequest, AddPartitionsToTxnTopic};
use doze::protocol::messages::create_topics::{CreatableTopic, CreateTopicsRequest};
use doze::protocol::messages::end_txn::EndTxnRequest;
use doze::protocol::messages::fetch::{FetchPartition, FetchRequest, FetchTopic};
use doze::protocol::messages::init_producer_id::InitProducerIdRequest;
use doze::protocol::messages::offset_fetch::{OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use doze::protocol::messages::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use doze::protocol::messages::txn_offset_commit::{
    TxnOffsetCommitRequest, TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use doze::protocol::wire::Records;
use doze::record::{BatchBuilder, BatchOptions, Batches};
use doze::sys::sim::{Cut, Effect, Fault, OpKind, Operation, Prng, START_MS, SimFileSystem, SyncFailure};

/// Which of the two versions of the protocol the producer speaks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Protocol {
    First,
    Second,
}

/// What a producer knows of the end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// It has sent records and has not asked for an end.
    Open,
    /// It has asked to commit, or to abort, and was not answered.
    Asked(bool),
    Answered(bool),
}

/// By the number of the transaction.
type Story = BTreeMap<i64, End>;

fn init_request() -> InitProducerIdRequest {
    InitProducerIdRequest { transactional_id: Some("tx".into()), transaction_timeout_ms: 60_000, ..Default::default() }
}

/// A topic is made, and a producer has a few transactions. Whatever fails ends it. Answers whether it came to its end.
fn tell(life: &Life, protocol: Protocol, story: &mut Story) -> Option<()> {
    let topic = CreatableTopic { name: "t".into(), num_partitions: 2, replication_factor: 1, ..Default::default() };
    let made = life.call(7, &CreateTopicsRequest { topics: vec![topic], ..Default::default() })?;
    ok(made.topics[0].error_code)?;
    let answer = life.call_until_free(5, &init_request(), |answer| answer.error_code)?;
    ok(answer.error_code)?;
    let (producer_id, mut epoch, mut sequence) = (answer.producer_id, answer.producer_epoch, 0);
    for (number, committed) in [(0, true), (1, false), (2, true), (3, true)] {
        story.insert(number, End::Open);
        if protocol == Protocol::First {
            let add = AddPartitionsToTxnRequest {
                v3_and_below_transactional_id: "tx".into(),
                v3_and_below_producer_id: producer_id,
                v3_and_below_producer_epoch: epoch,
                v3_and_below_topics: vec![AddPartitionsToTxnTopic { name: "t".into(), partitions: vec![0, 1] }],
                ..Default::default()
            };
            let code = |answer: &doze::protocol::messages::add_partitions_to_txn::AddPartitionsToTxnResponse| {
                answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            };
            ok(code(&life.call_until_free(3, &add, code)?))?;
            let add = AddOffsetsToTxnRequest {
                transactional_id: "tx".into(),
                producer_id,
                producer_epoch: epoch,
                group_id: "g".into(),
            };
            ok(life.call_until_free(4, &add, |answer| answer.error_code)?.error_code)?;
        }
        let options = BatchOptions {
            producer_id,
            producer_epoch: epoch,
            base_sequence: sequence,
            transactional: true,
            ..BatchOptions::default()
        };
        let mut builder = BatchBuilder::new(options).unwrap();
        builder.append(START_MS, None, Some(&number.to_be_bytes()), &[]).unwrap();
        let batch: Bytes = builder.finish(None).unwrap();
        let partition = |index| PartitionProduceData { index, records: Some(Records::Bytes(batch.clone())) };
        let produce = ProduceRequest {
            transactional_id: Some("tx".into()),
            acks: -1,
            timeout_ms: 30_000,
            topic_data: vec![TopicProduceData {
                name: "t".into(),
                partition_data: vec![partition(0), partition(1)],
                ..Default::default()
            }],
        };
        let version = if protocol == Protocol::First { 11 } else { 12 };
        let code = |answer: &doze::protocol::messages::produce::ProduceResponse| {
            let partitions = &answer.responses[0].partition_responses;
            partitions.iter().map(|partition| partition.error_code).max().unwrap()
        };
        ok(code(&life.call_until_free(version, &produce, code)?))?;
        let commit = TxnOffsetCommitRequest {
            transactional_id: "tx".into(),
            group_id: "g".into(),
            producer_id,
            producer_epoch: epoch,
            topics: vec![TxnOffsetCommitRequestTopic {
                name: "t".into(),
                partitions: vec![TxnOffsetCommitRequestPartition { committed_offset: number, ..Default::default() }],
            }],
            ..Default::default()
        };
        let answer = life.call(if protocol == Protocol::First { 4 } else { 5 }, &commit)?;
        ok(answer.topics[0].partitions[0].error_code)?;
        story.insert(number, End::Asked(committed));
        let end = EndTxnRequest { transactional_id: "tx".into(), producer_id, producer_epoch: epoch, committed };
        let answer = life.call(if protocol == Protocol::First { 4 } else { 5 }, &end)?;
        ok(answer.error_code)?;
        story.insert(number, End::Answered(committed));
        match protocol {
            Protocol::First => sequence += 1,
            Protocol::Second => (epoch, sequence) = (answer.producer_epoch, 0),
        }
    }
    Some(())
}

fn ok(code: i16) -> Option<()> {
    (code == 0).then_some(())
}

/// The numbers of the committed transactions in a partition, as a reader of committed records gets them once nothing is
/// open any more.
fn committed(life: &Life, partition: i32) -> Vec<i64> {
    let request = FetchRequest {
        max_wait_ms: 0,
        isolation_level: 1,
        topics: vec![FetchTopic {
            topic: "t".into(),
            partitions: vec![FetchPartition { partition, partition_max_bytes: i32::MAX, ..Default::default() }],
            ..Default::default()
        }],
        ..Default::default()
    };
    let answer = life.call(12, &request).expect("a fetch is answered");
    let data = &answer.responses[0].partitions[0];
    assert_eq!(data.error_code, 0);
    assert_eq!(data.last_stable_offset, data.high_watermark, "partition {partition} has a transaction that never ends");
    let Some(Records::Bytes(bytes)) = &data.records else { return vec![] };
    let aborted: Vec<i64> = data.aborted_transactions.iter().flatten().map(|aborted| aborted.first_offset).collect();
    let mut numbers = vec![];
    for batch in Batches::new(bytes) {
        // Each transaction has one batch in the partition.
        if !batch.header().is_control() && !aborted.contains(&batch.header().base_offset) {
            let mut records = batch.records().unwrap();
            let record = records.next_record().unwrap().unwrap();
            numbers.push(i64::from_be_bytes(record.value().unwrap().try_into().unwrap()));
        }
    }
    numbers
}

fn committed_offset(life: &Life) -> i64 {
    life.look_up().expect("a look-up is answered");
    let request = OffsetFetchRequest {
        groups: vec![OffsetFetchRequestGroup {
            group_id: "g".into(),
            topics: Some(vec![OffsetFetchRequestTopics {
                name: "t".into(),
                partition_indexes: vec![0],
                ..Default::default()
            }]),
            ..Default::default()
        }],
        require_stable: true,
        ..Default::default()
    };
    let answer = life.call(9, &request).expect("an offset fetch is answered");
    let partition = &answer.groups[0].topics[0].partitions[0];
    assert_eq!(partition.error_code, 0, "no transaction is open, so the offset is stable");
    partition.committed_offset
}

/// After a cut: the broker starts, another producer takes the transactional id, and the story has to have ended as it was
/// told. Answers how many transactions are committed.
fn check(seed: u64, fs: SimFileSystem, story: &Story) -> usize {
    let life = Life::start(seed, fs).expect("it starts after the cut");
    let answer = life.call_until_free(5, &init_request(), |answer| answer.error_code).expect("it is answered");
    assert_eq!(answer.error_code, 0);
    life.settle();
    if story.is_empty() {
        return 0;
    }
    let (numbers, others) = (committed(&life, 0), committed(&life, 1));
    assert_eq!(numbers, others, "a transaction is in one partition and not in the other; {story:?}");
    for (number, end) in story {
        let there = numbers.contains(number);
        match end {
            End::Open | End::Asked(false) | End::Answered(false) => {
                assert!(!there, "{number} was never to be committed; {story:?}");
            }
            End::Answered(true) => assert!(there, "LOST the commit of {number}; {story:?}"),
            End::Asked(true) => {}
        }
    }
    assert_eq!(committed_offset(&life), numbers.iter().max().copied().unwrap_or(-1), "{numbers:?}; {story:?}");
    numbers.len()
}

fn seed() -> u64 {
    std::env::var("DOZE_SEED").map_or(1, |seed| seed.parse().expect("DOZE_SEED is a number"))
}

/// The operations that change something, of a broker that nothing happens to.
fn operations(seed: u64, protocol: Protocol) -> Vec<Operation> {
    let fs = new_disk(seed);
    let mut story = Story::new();
    let life = Life::start(seed, fs.clone()).unwrap();
    tell(&life, protocol, &mut story).expect("nothing fails");
    life.settle();
    assert_eq!(story.len(), 4);
    drop(life);
    let operations: Vec<_> = fs.log().into_iter().filter(|operation| operation.kind.changes()).collect();
    assert!(operations.len() > 40, "only {} operations", operations.len());
    operations
}

/// Tells the story on a disk to which something happens, and checks it on what `after` leaves of the disk.
fn run(
    what: &str,
    seed: u64,
    protocol: Protocol,
    fs: &SimFileSystem,
    after: impl FnOnce(&mut Prng) -> SimFileSystem,
) -> usize {
    let mut story = Story::new();
    if let Some(life) = Life::start(seed, fs.clone()) {
        let _ = tell(&life, protocol, &mut story);
        life.settle();
    }
    let mut prng = Prng::stream(seed, what);
    let after = after(&mut prng);
    let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(prng.next_u64(), after, &story)));
    run.unwrap_or_else(|panic| {
        eprintln!("seed {seed}, {protocol:?}, {what}");
        std::panic::resume_unwind(panic)
    })
}

#[test]
fn the_power_is_cut_after_each_file_operation_of_transactions() {
    let (seed, started) = (seed(), Instant::now());
    let (mut cuts, mut kept) = (0, 0);
    for protocol in [Protocol::First, Protocol::Second] {
        for operation in operations(seed, protocol) {
            for cut in [Cut::NOTHING_KEPT, Cut::ANY] {
                let fs = new_disk(seed);
                fs.stop_after(operation.number);
                let what = format!("{cut:?} after {operation}");
                kept += run(&what, seed, protocol, &fs, |prng| fs.power_cut(cut, prng));
                cuts += 1;
            }
        }
    }
    println!("{cuts} power cuts, {kept} transactions committed ({:.1} s)", started.elapsed().as_secs_f32());
    assert!(cuts > 150 && kept > 100, "{cuts} cuts, {kept} kept");
}

#[test]
fn each_file_operation_of_transactions_fails_once() {
    let (seed, started) = (seed(), Instant::now());
    let (mut faults, mut kept) = (0, 0);
    for protocol in [Protocol::First, Protocol::Second] {
        for operation in operations(seed, protocol) {
            let effect = match operation.kind {
                OpKind::Sync => Effect::Sync(SyncFailure::ALL[faults % SyncFailure::ALL.len()]),
                _ => Effect::Error(std::io::ErrorKind::StorageFull),
            };
            let fs = new_disk(seed);
            fs.inject(Fault::at(operation.number, effect));
            let what = format!("{effect:?} at {operation}");
            kept += run(&what, seed, protocol, &fs, |_| fs.kill());
            assert_eq!(fs.total_injected(), 1, "{what}");
            faults += 1;
        }
    }
    println!("{faults} faults, {kept} transactions committed ({:.1} s)", started.elapsed().as_secs_f32());
    assert!(faults > 80 && kept > 80, "{faults} faults, {kept} kept");
}
