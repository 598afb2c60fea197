//! What is flushed before an answer: the order of writes, flushes and acknowledgements, as the file system sees it.

use std::path::Path;

use doze::protocol::ErrorCode;
use doze::record::BatchOptions;
use doze::sys::sim::{OpKind, Operation, SimFileSystem};

use crate::broker::{Life, new_disk};
use crate::requests::*;

const CATALOG: &str = "data/meta.db";
const LOG: &str = "data/t-0/00000000000000000000.log";

/// Does something, and answers the operations that came before its answer.
fn before_the_answer(fs: &SimFileSystem, what: &str, ask: impl FnOnce() -> Option<ErrorCode>) -> Vec<Operation> {
    let from = fs.operations();
    assert_eq!(ask(), Some(ErrorCode::None), "{what}");
    since(fs, from)
}

fn since(fs: &SimFileSystem, from: u64) -> Vec<Operation> {
    fs.log().into_iter().filter(|operation| operation.number >= from).collect()
}

/// A file goes by the name that it was opened by, and the catalog was made under another.
fn is(operation: &Operation, kind: OpKind, path: &str) -> bool {
    let has_name = match path {
        CATALOG => operation.path.to_string_lossy().starts_with(CATALOG),
        _ => operation.path == Path::new(path),
    };
    operation.kind == kind && has_name
}

/// Where the last such operation is.
fn last(operations: &[Operation], kind: OpKind, path: &str) -> Option<usize> {
    operations.iter().rposition(|operation| is(operation, kind, path))
}

/// The file was written, and flushed after its last write.
fn check_flushed(operations: &[Operation], path: &str, what: &str) {
    let (written, flushed) = (last(operations, OpKind::Write, path), last(operations, OpKind::Sync, path));
    assert!(written.is_some() && written < flushed, "{what}: {path} written at {written:?}, flushed at {flushed:?}");
}

fn new_life() -> (SimFileSystem, Life) {
    let fs = new_disk(3);
    let life = Life::start(3, fs.clone()).unwrap();
    assert_eq!(create_topic(&life, "t", 2), Some(ErrorCode::None));
    (fs, life)
}

fn sequenced(life: &Life, acks: i16, producer: Producer, sequence: i32) -> Option<(ErrorCode, i64)> {
    let options = BatchOptions {
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        base_sequence: sequence,
        ..BatchOptions::default()
    };
    let answer = life.call(9, &produce_request("t", 0, acks, batch(options, "x")))?;
    let partition = &answer.responses[0].partition_responses[0];
    Some((ErrorCode::from_code(partition.error_code).unwrap(), partition.base_offset))
}

#[test]
fn each_acknowledged_produce_has_a_flush_of_its_log_behind_it() {
    let (fs, life) = new_life();
    let syncs = |fs: &SimFileSystem| fs.log().iter().filter(|operation| is(operation, OpKind::Sync, LOG)).count();
    let before = syncs(&fs);
    for n in 0..50 {
        let operations = before_the_answer(&fs, "acks=all", || produce(&life, "t", 0, -1).map(|(code, _)| code));
        check_flushed(&operations, LOG, &format!("produce {n}"));
        // The first one has the segment's name flushed as well.
        assert_eq!(operations.iter().any(|operation| is(operation, OpKind::SyncDir, "data/t-0")), n == 0, "{n}");
    }
    println!("50 acknowledged with acks=all, one after the other: {} flushes", syncs(&fs) - before);
    assert!(syncs(&fs) - before >= 50);
    // With acks=1 nothing is flushed, so the test can tell.
    let operations = before_the_answer(&fs, "acks=1", || produce(&life, "t", 0, 1).map(|(code, _)| code));
    assert!(last(&operations, OpKind::Write, LOG).is_some() && last(&operations, OpKind::Sync, LOG).is_none());
}

#[test]
fn a_duplicate_is_acknowledged_after_a_flush_that_covers_the_first() {
    let (fs, life) = new_life();
    let (code, producer) = init_producer(&life, "p").unwrap();
    assert_eq!(code, ErrorCode::None);
    assert_eq!(sequenced(&life, 1, producer, 0), Some((ErrorCode::None, 0)));
    let again = |life: &Life| {
        let (code, offset) = sequenced(life, -1, producer, 0)?;
        assert_eq!(offset, 0);
        Some(code)
    };
    let operations = before_the_answer(&fs, "a duplicate of what acks=1 has left", || again(&life));
    assert!(last(&operations, OpKind::Sync, LOG).is_some() && last(&operations, OpKind::Write, LOG).is_none());
    // It is flushed now: nothing has to be done for another.
    let operations = before_the_answer(&fs, "a duplicate of what is flushed", || again(&life));
    assert_eq!(last(&operations, OpKind::Sync, LOG), None);
    // The next process has flushed nothing, whatever this one did.
    drop(life);
    let fs = fs.kill();
    let life = Life::start(4, fs.clone()).unwrap();
    let operations = before_the_answer(&fs, "a duplicate after a kill", || again(&life));
    assert!(last(&operations, OpKind::Sync, LOG).is_some() && last(&operations, OpKind::SyncDir, "data/t-0").is_some());
}

/// Else a power cut could take records and leave it said that they were read, of others that come to stand at their offsets.
#[test]
fn what_a_group_has_read_is_flushed_before_how_far_it_has_come() {
    let (fs, life) = new_life();
    let (_, tx) = init_producer(&life, "tx").unwrap();
    assert_eq!(add_offsets(&life, "tx", tx, "h"), Some(ErrorCode::None));
    let offset_commit = |offset| commit_offset(&life, "g", offset);
    let in_a_transaction = |offset| commit_offset_in(&life, "tx", tx, "h", offset);
    type Ask<'a> = (&'a str, &'a dyn Fn(i64) -> Option<ErrorCode>);
    let asks: [Ask<'_>; 2] = [("OffsetCommit", &offset_commit), ("TxnOffsetCommit", &in_a_transaction)];
    for (api, ask) in asks {
        let (code, offset) = produce(&life, "t", 0, 1).unwrap();
        assert_eq!(code, ErrorCode::None);
        let operations = before_the_answer(&fs, api, || ask(offset + 1));
        let flushed = last(&operations, OpKind::Sync, LOG);
        let noted = operations.iter().position(|operation| is(operation, OpKind::Write, CATALOG));
        assert!(flushed.is_some() && flushed < noted, "{api}: flushed at {flushed:?}, noted at {noted:?}");
        // What is not read is not waited for.
        assert_eq!(produce(&life, "t", 0, 1).unwrap().0, ErrorCode::None);
        let operations = before_the_answer(&fs, api, || ask(offset + 1));
        assert_eq!(last(&operations, OpKind::Sync, LOG), None, "{api}");
    }
}

#[test]
fn what_the_catalog_keeps_is_flushed_before_it_is_answered() {
    let (fs, life) = new_life();
    let (_, tx) = init_producer(&life, "tx").unwrap();
    assert_eq!(create_topic(&life, "u", 1), Some(ErrorCode::None));
    type Ask<'a> = (&'a str, Box<dyn Fn() -> Option<ErrorCode> + 'a>);
    let asks: Vec<Ask<'_>> = vec![
        ("OffsetCommit", Box::new(|| commit_offset(&life, "g", 1))),
        ("OffsetDelete", Box::new(|| delete_offset(&life, "g"))),
        ("CreateTopics", Box::new(|| create_topic(&life, "new", 2))),
        ("Metadata that creates a topic", Box::new(|| ask_for_topic(&life, "asked-for"))),
        ("CreatePartitions", Box::new(|| create_partitions(&life, "u", 3))),
        ("DeleteTopics", Box::new(|| delete_topic(&life, "u"))),
        ("AlterConfigs", Box::new(|| alter_configs(&life, "t"))),
        ("IncrementalAlterConfigs of a topic", Box::new(|| alter_topic_incrementally(&life, "t"))),
        ("IncrementalAlterConfigs of the broker", Box::new(|| alter_broker_incrementally(&life))),
        ("AlterClientQuotas", Box::new(|| alter_quotas(&life))),
        ("AlterUserScramCredentials", Box::new(|| alter_credentials(&life))),
        ("UpdateFeatures", Box::new(|| update_features(&life))),
        ("InitProducerId", Box::new(|| init_producer(&life, "tx-2").map(|init| init.0))),
        ("AddPartitionsToTxn", Box::new(|| add_partition(&life, "tx", tx, 0))),
        ("AddOffsetsToTxn", Box::new(|| add_offsets(&life, "tx", tx, "h"))),
        ("TxnOffsetCommit", Box::new(|| commit_offset_in(&life, "tx", tx, "h", 3))),
        ("EndTxn", Box::new(|| end(&life, "tx", tx, true))),
    ];
    for (api, ask) in &asks {
        let operations = before_the_answer(&fs, api, ask);
        check_flushed(&operations, CATALOG, api);
    }
    assert_eq!(produce(&life, "t", 1, -1), Some((ErrorCode::None, 0)));
    let operations = before_the_answer(&fs, "DeleteRecords", || delete_records(&life, "t", 1, 1));
    check_flushed(&operations, CATALOG, "DeleteRecords");
    assert_eq!(commit_offset(&life, "g", 1), Some(ErrorCode::None));
    let operations = before_the_answer(&fs, "DeleteGroups", || delete_group(&life, "g"));
    check_flushed(&operations, CATALOG, "DeleteGroups");
}

#[test]
fn a_topic_is_whole_before_it_has_a_name_and_nameless_before_it_goes() {
    let (fs, life) = new_life();
    let operations = before_the_answer(&fs, "CreateTopics", || create_topic(&life, "new", 2));
    let named = operations.iter().position(|operation| is(operation, OpKind::Write, CATALOG)).unwrap();
    for dir in ["data/new-0", "data/new-1", "data"] {
        let flushed = last(&operations, OpKind::SyncDir, dir);
        assert!(flushed.is_some_and(|flushed| flushed < named), "{dir} is flushed at {flushed:?}, named at {named}");
    }
    let from = fs.operations();
    assert_eq!(delete_topic(&life, "new"), Some(ErrorCode::None));
    life.settle();
    let operations = since(&fs, from);
    let forgotten = operations.iter().position(|operation| is(operation, OpKind::Sync, CATALOG)).unwrap();
    let gone = operations.iter().position(|operation| {
        matches!(operation.kind, OpKind::Rename | OpKind::RemoveFile | OpKind::RemoveDir)
            && operation.path.starts_with("data/new-0")
    });
    assert!(gone.is_some_and(|gone| forgotten < gone), "forgotten at {forgotten}, gone from {gone:?}");
}

#[test]
fn the_markers_of_a_transaction_are_flushed_before_it_is_over() {
    let (fs, life) = new_life();
    for committed in [true, false] {
        let (_, tx) = init_producer(&life, "tx").unwrap();
        assert_eq!(add_partition(&life, "tx", tx, 0), Some(ErrorCode::None));
        let options = BatchOptions {
            producer_id: tx.id,
            producer_epoch: tx.epoch,
            base_sequence: 0,
            transactional: true,
            ..BatchOptions::default()
        };
        let mut request = produce_request("t", 0, -1, batch(options, "x"));
        request.transactional_id = Some("tx".into());
        assert_eq!(life.call(9, &request).unwrap().responses[0].partition_responses[0].error_code, 0);
        let from = fs.operations();
        assert_eq!(end(&life, "tx", tx, committed), Some(ErrorCode::None));
        life.settle();
        let operations = since(&fs, from);
        let decided = operations.iter().position(|operation| is(operation, OpKind::Sync, CATALOG)).unwrap();
        let marker = last(&operations, OpKind::Write, LOG).unwrap();
        let flushed = last(&operations, OpKind::Sync, LOG).unwrap();
        let over = last(&operations, OpKind::Write, CATALOG).unwrap();
        assert!(decided < marker && marker < flushed && flushed < over, "{decided} {marker} {flushed} {over}");
        check_flushed(&operations, CATALOG, "the end of it");
    }
}
