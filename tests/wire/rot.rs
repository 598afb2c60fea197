//! What rots on the disk, under the executable: the scrub finds it and says so, readers are handed it as it is.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use doze::record::Batches;
use doze::storage::scrub::{Checkpoint, Kind};
use doze::sys::OsFileSystem;

use crate::data::*;
use crate::harness::{Broker, PATIENCE};

/// Flips a bit of a file.
fn rot(path: &Path, position: u64) {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, position).unwrap();
    file.write_all_at(&[byte[0] ^ 4], position).unwrap();
}

#[test]
fn a_rotten_batch_is_found_said_kept_and_handed_out_as_it_is() {
    let broker = Broker::start_with(&["--scrub-interval", "1s"]);
    let mut client = broker.connect();
    let topic = create_topic(&mut client, "t", 2, &[("internal.segment.bytes", "1000")]);
    for n in 0..20 {
        for partition in 0..2 {
            let batch = batch(&[format!("{n} ").repeat(50).as_bytes()]);
            assert_eq!(produce_at(&mut client, 13, &topic, partition, ALL, &batch).error_code, 0);
        }
    }
    let good = fetch_all(&mut client, &topic, 1, 0);
    // The second batch of the first segment.
    let path = broker.data_dir().join("t-1/00000000000000000000.log");
    let first = Batches::new(&good).next().unwrap().header().size_in_bytes() as u64;
    rot(&path, first + 100);
    let said = broker.expect_to_say("records are damaged on the disk");
    for part in
        ["topic=\"t\"", "partition=1", "from=1", "until=2", &format!("position={first}"), "doze verify", "doze recover"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(said.contains("t-1/00000000000000000000.log"), "{said}");
    // All of it is still handed out, byte for byte as it is now; the reader's own check refuses the one batch.
    let there = fetch_all(&mut client, &topic, 1, 0);
    let different = good.iter().zip(&there).filter(|(a, b)| a != b).count();
    assert_eq!((there.len(), different), (good.len(), 1));
    let bad: Vec<i64> = Batches::without_crc(&there)
        .filter(|batch| batch.verify_crc().is_err())
        .map(|batch| batch.header().base_offset)
        .collect();
    assert_eq!(bad, [1]);
    let said = broker.expect_to_say("a reader was handed damaged records");
    assert!(said.contains("partition=1") && said.contains("go on from offset 2"), "{said}");
    // Whoever asks is told how things are, and it goes on.
    broker.ask_for_state();
    let said = broker.expect_to_say("state: logs");
    assert!(said.contains("topics=1 partitions=2 open=2"), "{said}");
    let said = broker.expect_to_say("state: scrub");
    assert!(said.contains("damaged=1"), "{said}");
    // Once it was said.
    std::thread::sleep(Duration::from_millis(2500));
    let said = broker.said();
    assert!(!said.contains("records are damaged"), "{said}");
    let kept = |dir: &Path| Checkpoint::read(&OsFileSystem, dir).unwrap();
    let end = Instant::now() + PATIENCE;
    while kept(&broker.data_dir()).findings.is_empty() {
        assert!(Instant::now() < end, "the finding is never written down");
        std::thread::sleep(Duration::from_millis(50));
    }
    let stopped = broker.stop();
    let [finding] = &kept(&stopped.data_dir()).findings[..] else { panic!() };
    assert_eq!((finding.topic.as_str(), finding.partition, finding.kind), ("t", 1, Kind::Checksum));
    assert_eq!((finding.damage.position, finding.damage.offsets), (first, (1, 2)));
    // The next process knows.
    let broker = stopped.start();
    broker.expect_to_say("sealed segments are known to be damaged");
    assert_eq!(fetch_all(&mut broker.connect(), &topic, 1, 0), there);
}

#[test]
fn the_scrub_can_be_turned_off() {
    let broker = Broker::start_with(&["--scrub-interval", "1s", "--scrub-rate", "0"]);
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1, &[]);
    std::thread::sleep(Duration::from_millis(1500));
    assert!(!broker.data_dir().join("scrub-checkpoint").exists());
}
