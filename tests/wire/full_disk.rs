//! A file system that is really full, under the executable.
//!
//! A small one is mounted for it, which takes root; where that cannot be done the test is left out, loudly.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bytes::Bytes;
use doze::protocol::ErrorCode::{self, KafkaStorageError, NotCoordinator, UnknownTopicOrPartition};
use doze::protocol::messages::add_partitions_to_txn::{AddPartitionsToTxnRequest, AddPartitionsToTxnTopic};
use doze::protocol::messages::create_topics::{CreatableTopic, CreateTopicsRequest};
use doze::protocol::messages::end_txn::EndTxnRequest;
use doze::protocol::messages::init_producer_id::InitProducerIdRequest;
use doze::protocol::messages::metadata::{MetadataRequest, MetadataRequestTopic};

use crate::data::*;
use crate::groups::{commit_request, fetched, heartbeat, lone_member};
use crate::harness::{Broker, Client, request_bytes, skipped};

/// A mounted file system, until it is dropped.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Tmpfs,
    Ext4,
}

fn run(command: &mut Command) -> Result<(), String> {
    match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(format!("{:?}: {error}", command.get_program())),
    }
}

/// Mounts a file system of `megabytes` at `at`, whose image, if it has one, is put beside it.
fn mount(kind: Kind, megabytes: u32, at: &Path) -> Result<Mounted, String> {
    std::fs::create_dir_all(at).unwrap();
    match kind {
        Kind::Tmpfs => {
            let size = format!("size={megabytes}m");
            run(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "doze-full-disk"]).arg(at))?;
        }
        Kind::Ext4 => {
            let image = at.with_extension("image");
            File::create(&image).unwrap().set_len(u64::from(megabytes) << 20).unwrap();
            // Without a reserve that only root may use, since this is root.
            run(Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0"]).arg(&image))?;
            run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(at))?;
        }
    }
    Ok(Mounted(at.to_owned()))
}

/// Takes all the room that there is, to the last byte, and is the file that has it.
fn fill_up(dir: &Path) -> PathBuf {
    let path = dir.join(".ballast");
    let mut file = File::create(&path).unwrap();
    for size in [1 << 16, 1 << 12, 1 << 8, 1] {
        let bytes = vec![b'x'; size];
        loop {
            match file.write(&bytes) {
                Ok(n) if n > 0 => {}
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::StorageFull => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
    path
}

/// Asks again and again until it is refused: what the catalog keeps finds room in its file for a while. Answers how often it was not.
fn until_refused(what: &str, code: ErrorCode, mut ask: impl FnMut(usize) -> ErrorCode) -> usize {
    for n in 0..5000 {
        match ask(n) {
            ErrorCode::None => {}
            refused => {
                assert_eq!(refused, code, "{what}");
                return n;
            }
        }
    }
    panic!("{what} is never refused");
}

fn large(n: usize) -> Bytes {
    let value = format!("{n:9} ").repeat(50_000);
    batch(&[value.as_bytes()])
}

fn create(client: &mut Client, name: &str) -> ErrorCode {
    let topic = CreatableTopic { name: name.into(), num_partitions: 3, replication_factor: 1, ..Default::default() };
    error(client.call(7, &CreateTopicsRequest { topics: vec![topic], ..Default::default() }).topics[0].error_code)
}

fn ask_for(client: &mut Client, name: &str) -> ErrorCode {
    let topic = MetadataRequestTopic { name: Some(name.into()), ..Default::default() };
    let request = MetadataRequest { topics: Some(vec![topic]), allow_auto_topic_creation: true, ..Default::default() };
    error(client.call(9, &request).topics[0].error_code)
}

fn init(client: &mut Client, id: &str) -> (ErrorCode, i64, i16) {
    let request = InitProducerIdRequest {
        transactional_id: Some(id.into()),
        transaction_timeout_ms: 60_000,
        ..Default::default()
    };
    let answer = client.call(4, &request);
    (error(answer.error_code), answer.producer_id, answer.producer_epoch)
}

fn add(client: &mut Client, id: &str, producer: (i64, i16), partition: i32) -> ErrorCode {
    let request = AddPartitionsToTxnRequest {
        v3_and_below_transactional_id: id.into(),
        v3_and_below_producer_id: producer.0,
        v3_and_below_producer_epoch: producer.1,
        v3_and_below_topics: vec![AddPartitionsToTxnTopic { name: "many".into(), partitions: vec![partition] }],
        ..Default::default()
    };
    error(client.call(3, &request).results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)
}

fn end(client: &mut Client, id: &str, producer: (i64, i16)) -> ErrorCode {
    let request = EndTxnRequest {
        transactional_id: id.into(),
        producer_id: producer.0,
        producer_epoch: producer.1,
        committed: true,
    };
    error(client.call(3, &request).error_code)
}

fn commit(client: &mut Client, topic: &Topic, group: &str, offset: i64) -> ErrorCode {
    let mut request = commit_request(group, &topic.name, topic.id, offset);
    // As much as a commit may have, so that the room in the catalog's file is soon used up.
    request.topics[0].partitions[0].committed_metadata = Some("m".repeat(4000));
    error(client.call(8, &request).topics[0].partitions[0].error_code)
}

fn closes_on_acks_0(broker: &Broker, topic: &Topic) -> bool {
    let mut client = broker.connect();
    client.send_raw(&request_bytes(9, 1, &produce_request(topic, 0, 0, &large(0))));
    client.receive_raw().is_none()
}

/// Everything acknowledged is there, byte for byte, and nothing else.
fn check(client: &mut Client, topic: &Topic, acknowledged: &[Bytes]) {
    let there = fetch_all(client, topic, 0, 0);
    let expected: Vec<u8> =
        acknowledged.iter().enumerate().flat_map(|(offset, batch)| stored(batch, offset as i64)).collect();
    assert_eq!(there.len(), expected.len(), "{} batches were acknowledged", acknowledged.len());
    assert!(there == expected);
    assert_eq!(end_offset(client, topic), acknowledged.len() as i64, "a refused write left an offset behind");
}

fn a_full_disk(kind: Kind) {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mounted = match mount(kind, 16, &data) {
        Ok(mounted) => mounted,
        Err(why) => {
            skipped(&format!("a full {kind:?} under the executable: it cannot be mounted here: {why}"));
            return;
        }
    };
    let broker = Broker::start_in(dir, &["--segment-bytes", "2000000"]);
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 1, &[]);
    let many = create_topic(&mut client, "many", 200, &[]);
    let member = lone_member(&mut client, "members", None);
    let (code, id, epoch) = init(&mut client, "tx");
    assert_eq!(code, ErrorCode::None);
    assert_eq!(add(&mut client, "tx", (id, epoch), 0), ErrorCode::None);
    let mut acknowledged: Vec<Bytes> = vec![];
    // Records, until there is no room for another; then none for anything.
    until_refused("Produce, acks=all", KafkaStorageError, |n| {
        let records = large(n);
        let answer = produce(&mut client, &topic, &records);
        if answer.error_code == 0 {
            assert_eq!(answer.base_offset, n as i64);
            acknowledged.push(records);
        }
        error(answer.error_code)
    });
    assert!(acknowledged.len() > 10, "{kind:?}: {}", acknowledged.len());
    let ballast = fill_up(&data);
    let is_member = |client: &mut Client, what: &str| {
        let beat = heartbeat(client, "members", member.generation_id, &member.member_id, None);
        assert_eq!(beat, ErrorCode::None, "{kind:?}: {what}");
    };
    is_member(&mut client, "full");
    let refused = |client: &mut Client, what: &str| {
        for acks in [ALL, 1] {
            let answer = produce_at(client, 13, &topic, 0, acks, &large(0));
            assert_eq!((error(answer.error_code), answer.base_offset), (KafkaStorageError, -1), "{what}, acks={acks}");
        }
        assert_eq!(create(client, "new"), KafkaStorageError, "{what}: CreateTopics");
        assert_eq!(ask_for(client, "asked-for"), UnknownTopicOrPartition, "{what}: Metadata");
    };
    refused(&mut client, "full");
    assert!(closes_on_acks_0(&broker, &topic), "{kind:?}: acks=0");
    let commits =
        until_refused("OffsetCommit", NotCoordinator, |n| commit(&mut client, &many, &format!("g-{n}"), n as i64));
    let inits = until_refused("InitProducerId", NotCoordinator, |n| init(&mut client, &format!("tx-{n}")).0);
    let adds =
        until_refused("AddPartitionsToTxn", NotCoordinator, |n| add(&mut client, "tx", (id, epoch), 1 + n as i32));
    assert_eq!(end(&mut client, "tx", (id, epoch)), NotCoordinator, "EndTxn");
    println!("{kind:?}: {} records, then {commits} commits, {inits} ids and {adds} partitions", acknowledged.len());
    // Reads go on, and members stay members.
    check(&mut client, &topic, &acknowledged);
    is_member(&mut client, "still full");

    // It starts on the full disk, after a kill and after a stop, and serves what there is.
    let mut broker = broker.kill().start();
    for stop in ["a kill", "a stop"] {
        let mut client = broker.connect();
        check(&mut client, &topic, &acknowledged);
        is_member(&mut client, stop);
        refused(&mut client, stop);
        if stop == "a kill" {
            broker = broker.stop().start();
        }
    }

    // There is room again, and all goes on without a restart.
    std::fs::remove_file(ballast).unwrap();
    let mut client = broker.connect();
    let small = batch(&[b"there is room again"]);
    assert_eq!(produce_ok(&mut client, &topic, &small), acknowledged.len() as i64);
    acknowledged.push(small);
    for (group, offset) in [("g-0", 70), ("late", 71)] {
        assert_eq!(commit(&mut client, &many, group, offset), ErrorCode::None);
    }
    assert_eq!(create(&mut client, "new"), ErrorCode::None);
    assert_eq!(ask_for(&mut client, "asked-for"), ErrorCode::None);
    assert_eq!(add(&mut client, "tx", (id, epoch), 199), ErrorCode::None);
    assert_eq!(end(&mut client, "tx", (id, epoch)), ErrorCode::None);
    let stopped = broker.kill();
    let broker = stopped.start();
    let mut client = broker.connect();
    check(&mut client, &topic, &acknowledged);
    for n in 1..commits {
        assert_eq!(fetched(&mut client, &format!("g-{n}"), "many"), n as i64, "{kind:?}");
    }
    assert_eq!((fetched(&mut client, "g-0", "many"), fetched(&mut client, "late", "many")), (70, 71));
    let stopped = broker.stop();
    drop(mounted);
    drop(stopped);
}

#[test]
fn a_full_tmpfs_refuses_writes_and_is_no_reason_to_stop_reading() {
    a_full_disk(Kind::Tmpfs);
}

#[test]
fn a_full_ext4_refuses_writes_and_is_no_reason_to_stop_reading() {
    a_full_disk(Kind::Ext4);
}
