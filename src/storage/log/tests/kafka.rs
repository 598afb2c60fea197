//! Apache Kafka's own reader on what doze wrote, and doze on what Apache Kafka wrote.

use std::process::Command;

use super::support::*;
use crate::record::{BatchOptions, Codec};
use crate::storage::log::EndMarker;

/// Runs `kafka-dump-log` on a file. Answers what it printed.
fn dump(libs: &str, arguments: &[&str]) -> String {
    let output = Command::new("java")
        .args(["-cp", &format!("{libs}/*"), "org.apache.kafka.tools.DumpLogSegments"])
        .args(arguments)
        .output()
        .expect("java is there");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    text
}

#[test]
#[ignore = "needs java, and Apache Kafka's jars in the directory that DOZE_KAFKA_LIBS names"]
fn kafka_dump_log_reads_every_file_without_complaint() {
    let libs = std::env::var("DOZE_KAFKA_LIBS").expect("DOZE_KAFKA_LIBS names a directory");
    let world = World::with(|config| {
        config.segment_bytes = 40_000;
        config.index_interval_bytes = 1000;
    });
    let log = world.open(true);
    let mut sequence = 0;
    for i in 0..300i64 {
        let codec = [Codec::None, Codec::Gzip { level: 6 }, Codec::Lz4, Codec::Zstd { level: 3 }, Codec::Snappy];
        let options = BatchOptions { codec: codec[i as usize % codec.len()], ..BatchOptions::default() };
        // Times go up and down.
        log.append(batch_of(options, 1 + i as usize % 5, NOW + (i * 37) % 100 * 20, 300), 0).unwrap();
        let options = BatchOptions {
            producer_id: 5,
            producer_epoch: 1,
            base_sequence: sequence,
            transactional: true,
            ..BatchOptions::default()
        };
        log.append(batch_of(options, 2, NOW + i * 3, 50), 0).unwrap();
        sequence += 2;
        if i % 7 == 0 {
            let marker = EndMarker {
                producer_id: 5,
                producer_epoch: 1,
                committed: i % 2 == 0,
                coordinator_epoch: 3,
                transaction_version: 1,
            };
            log.append_end_txn_marker(marker, 0).unwrap();
        }
    }
    log.close().unwrap();
    assert!(log.segment_count() > 3);
    let mut seen = 0;
    for suffix in [".log", ".index", ".timeindex", ".txnindex", ".snapshot"] {
        let files = world.files(suffix);
        assert!(files.len() > 1, "{suffix}");
        let files: Vec<&str> = files.iter().map(|path| path.to_str().unwrap()).collect();
        let mut runs = vec![dump(&libs, &["--files", &files.join(","), "--deep-iteration"])];
        if suffix.ends_with("index") && suffix != ".txnindex" {
            let checked = dump(&libs, &["--files", &files.join(","), "--index-sanity-check"]);
            assert_eq!(checked.matches("passed sanity check").count(), files.len(), "{checked}");
            runs.push(dump(&libs, &["--files", &files.join(","), "--verify-index-only"]));
        }
        for text in runs {
            let lower = text.to_lowercase();
            for complaint in [
                "mismatch",
                "not found",
                "out of order",
                "corrupt",
                "exception",
                "error",
                "isvalid: false",
                "bytes of data",
            ] {
                assert!(!lower.contains(complaint), "{complaint}: {text}");
            }
            seen += text.lines().count();
        }
    }
    assert!(seen > 1000, "{seen} lines");
}

/// The directory is one of a partition that Apache Kafka wrote with several segments and was then killed.
#[test]
#[ignore = "needs a partition's directory of Apache Kafka's, which DOZE_KAFKA_PARTITION names"]
fn what_apache_kafka_left_opens_and_its_indexes_are_made_as_it_makes_them() {
    let partition = std::env::var("DOZE_KAFKA_PARTITION").expect("DOZE_KAFKA_PARTITION names a directory");
    let world = World::new();
    for entry in std::fs::read_dir(&partition).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), world.dir().join(entry.file_name())).unwrap();
    }
    let copy = world.copy();
    let log = copy.open(false);
    assert_eq!((log.damage(), world.files(".log").len()), (&[][..], log.segment_count()));
    let all = read_all(&log, 100_000);
    println!("{} batches, {:?}, {:?}", all.len(), log.offsets(), log.producers());

    // Without the indexes and snapshots of the sealed segments: they come out as Apache Kafka made them.
    let bare = world.copy();
    let sealed = bare.files(".log").len() - 1;
    let mut kept = Vec::new();
    for suffix in [".index", ".timeindex", ".snapshot"] {
        for path in bare.files(suffix) {
            kept.push((path.file_name().unwrap().to_owned(), std::fs::read(&path).unwrap()));
            std::fs::remove_file(path).unwrap();
        }
    }
    let again = bare.open(false);
    assert_eq!((again.offsets(), again.producers()), (log.offsets(), log.producers()));
    assert_eq!(read_all(&again, 100_000), all);
    let _ = again.offset_for_timestamp(i64::MAX).unwrap();
    let mut same = 0;
    for (name, old) in kept {
        let Ok(new) = std::fs::read(bare.dir().join(&name)) else { continue };
        // The last one's are as long as they may become.
        if new == old {
            same += 1;
        } else {
            assert!(old.len() > 1 << 20, "{name:?}");
        }
    }
    assert_eq!(same, 2 * sealed);
    again.close().unwrap();
    assert_eq!(read_all(&bare.open(true), 100_000), all);
}
