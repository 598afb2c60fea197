//! A directory that a real Apache Kafka 4.3.1 node left behind, and a log with message sets of the versions before 2, beside
//! what Apache Kafka's own tools say of them. `tests/fixtures/refresh` makes both anew.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::corpus::copy_tree;
use crate::run::doze;

pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// What kafka-dump-log says of each file: entries with the fields that dump-segment has.
fn expected(name: &str) -> BTreeMap<String, Vec<Map<String, Value>>> {
    let text = std::fs::read_to_string(fixture(&format!("{name}.jsonl"))).unwrap();
    let mut files: BTreeMap<String, Vec<Map<String, Value>>> = BTreeMap::new();
    for line in text.lines() {
        let mut row: Map<String, Value> = serde_json::from_str(line).unwrap();
        let Some(Value::String(file)) = row.remove("file") else { panic!("{line}") };
        files.entry(file).or_default().push(row);
    }
    files
}

/// Compares entry for entry, in every field that Apache Kafka tells. Answers how many of each type there were.
fn agrees(name: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for (file, theirs) in expected(name) {
        let run = doze(["dump-segment", "--json", "--records", fixture(name).join(&file).to_str().unwrap()]);
        assert_eq!(run.code, 0, "{file}: {}", run.stderr);
        let mut ours = run.objects();
        ours.retain(|row| !["file", "end", "snapshot"].contains(&row["type"].as_str().unwrap()));
        for (number, (theirs, ours)) in theirs.iter().zip(&ours).enumerate() {
            for (field, value) in theirs {
                let ours = match field.as_str() {
                    // They tell the names.
                    "headers" => {
                        ours["headers"].as_array().unwrap().iter().map(|header| header["name"].clone()).collect()
                    }
                    _ => ours[field].clone(),
                };
                assert_eq!(&ours, value, "{file}, entry {number}, {field}");
            }
            *counts.entry(ours["type"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        assert_eq!(ours.len(), theirs.len(), "{file}");
    }
    counts
}

#[test]
fn dump_segment_agrees_with_kafka_dump_log() {
    let counts = agrees("kafka-dir");
    for kind in ["batch", "record", "offset_index", "time_index", "aborted_transaction", "producer"] {
        assert!(counts.get(kind).is_some_and(|count| *count >= 5), "{kind}: {counts:?}");
    }
}

#[test]
fn dump_segment_reads_message_sets_of_versions_0_and_1() {
    assert_eq!(agrees("old-formats")["record"], 36);
    let log = fixture("old-formats/legacy-0");
    let batches = doze(["dump-segment", "--json", log.to_str().unwrap()]).objects_of("batch");
    let codecs: Vec<_> =
        batches.iter().map(|batch| (batch["magic"].as_i64().unwrap(), batch["codec"].as_str().unwrap())).collect();
    for wanted in [
        (0, "none"),
        (0, "gzip"),
        (0, "snappy"),
        (0, "lz4"),
        (1, "none"),
        (1, "gzip"),
        (1, "snappy"),
        (1, "lz4"),
        (2, "none"),
    ] {
        assert!(codecs.contains(&wanted), "{codecs:?}");
    }
    let wrapper = batches.iter().find(|batch| batch["codec"] == "gzip" && batch["magic"] == 1).unwrap();
    assert_eq!((&wrapper["base_offset"], &wrapper["records"]), (&20.into(), &4.into()), "wrappers are looked into");
}

#[test]
fn inspect_reads_apache_kafkas_directories() {
    let dir = fixture("kafka-dir");
    let run = doze(["inspect", "--json", dir.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let directory = &run.objects_of("directory")[0];
    assert_eq!(
        (&directory["origin"], &directory["cluster_id"], &directory["node_id"], &directory["stop"]),
        (&"kafka".into(), &"AAAAAAAAAAAAAAAAAAAAAQ".into(), &0.into(), &"clean".into())
    );
    let metadata = std::fs::read_to_string(dir.join("codecs-0/partition.metadata")).unwrap();
    let id = metadata.lines().find_map(|line| line.strip_prefix("topic_id: ")).unwrap();
    let topics = run.objects_of("topic");
    let codecs = topics.iter().find(|topic| topic["topic"] == "codecs").unwrap();
    assert_eq!((&codecs["topic_id"], &codecs["partitions"]), (&id.into(), &2.into()));
    let mut names: Vec<_> =
        codecs["codecs"].as_array().unwrap().iter().map(|codec| codec["codec"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["gzip", "lz4", "none", "snappy", "zstd"]);
    assert!(codecs["compression_ratio"].as_f64().unwrap() > 1.0);

    // As the checkpoints have it, and as the logs are.
    let partitions = run.objects_of("partition");
    let partition =
        |topic: &str, n: i64| partitions.iter().find(|p| p["topic"] == topic && p["partition"] == n).unwrap();
    let checkpoint = std::fs::read_to_string(dir.join("replication-offset-checkpoint")).unwrap();
    for line in checkpoint.lines().skip(2) {
        let words: Vec<&str> = line.split(' ').collect();
        let found = partition(words[0], words[1].parse().unwrap());
        assert_eq!(found["high_watermark"], words[2].parse::<i64>().unwrap(), "{line}");
    }
    let transactions = partition("transactions", 0);
    let open = run.objects_of("open_transaction");
    let open = open.iter().find(|open| open["topic"] == "transactions").unwrap();
    assert_eq!(transactions["last_stable_offset"], open["first_offset"]);
    assert!(transactions["aborted_transactions"].as_i64().unwrap() > 0);
    assert!(partition("compacted", 0)["cleaned_to_offset"].as_i64().unwrap() > 0);
}

/// The configs that were set when the directory was made, and the ids of the topics' folders.
#[test]
fn inspect_reads_topics_and_configs_from_the_metadata_log() {
    let dir = fixture("kafka-dir");
    let run = doze(["inspect", "--json", dir.to_str().unwrap()]);
    let topics = run.objects_of("topic");
    let topic = |name: &str| topics.iter().find(|topic| topic["topic"] == name).unwrap();
    let compacted = &topic("compacted")["configs"];
    assert_eq!(compacted["cleanup.policy"], "compact", "{compacted}");
    assert_eq!(topic("append-time")["configs"]["message.timestamp.type"], "LogAppendTime");
    assert_eq!(topic("__consumer_offsets")["configs"]["cleanup.policy"], "compact", "{topics:?}");
    assert_eq!(topic("__cluster_metadata")["configs"], Value::Null, "nothing says what it has");
    let shown = doze(["inspect", dir.to_str().unwrap(), "compacted"]);
    assert!(shown.stdout.contains("cleanup.policy=compact"), "{}", shown.stdout);
}

/// Every byte of the metadata log's beginning and many after it: what can be shown is, and the rest is said to be missing.
#[test]
fn a_damaged_metadata_log_is_a_problem_and_nothing_more() {
    let copy = tempfile::tempdir().unwrap();
    copy_tree(&fixture("kafka-dir"), copy.path());
    let log = copy.path().join("__cluster_metadata-0/00000000000000000000.log");
    let whole = std::fs::read(&log).unwrap();
    let dir = copy.path().to_str().unwrap();
    for at in (0..whole.len()).step_by(whole.len() / 12) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x41;
        std::fs::write(&log, &damaged).unwrap();
        let run = doze(["inspect", "--json", dir]);
        assert_eq!(run.code, 1, "byte {at}: {}", run.stderr);
        let problems = run.objects_of("problem");
        assert!(
            problems.iter().any(|p| p["message"].as_str().unwrap().contains("the configs of topics")),
            "{problems:?}"
        );
        let topics = run.objects_of("topic");
        assert_eq!(topics.iter().find(|topic| topic["topic"] == "compacted").unwrap()["configs"], Value::Null);
        let verified = doze(["verify", "--json", dir]);
        assert!((0..=1).contains(&verified.code), "byte {at}: {}", verified.stderr);
        let unchecked = verified.objects_of("unchecked");
        assert!(
            unchecked.iter().any(|row| row["what"].as_str().unwrap().contains("whether topics are compacted")),
            "byte {at}: {unchecked:?}"
        );
    }
    std::fs::remove_dir_all(copy.path().join("__cluster_metadata-0")).unwrap();
    let run = doze(["inspect", "--json", dir]);
    assert_eq!((run.code, run.objects_of("problem").len()), (0, 0), "another directory of the node may have it");
    assert!(run.objects_of("topic").iter().all(|topic| topic["configs"] == Value::Null));
}
