//! `doze compact` over log directories of Apache Kafka: one that a real node left behind, and message sets of versions 0 and 1.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use doze::record::{BatchBuilder, BatchOptions, Batches};
use serde_json::Value;

use crate::corpus::copy_tree;
use crate::kafka_dir::fixture;
use crate::run::{Run, arg, doze};

const MARK: &str = ".kafka_cleanshutdown";

/// The node's directory, as if its cleaner had never run.
fn node() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    copy_tree(&fixture("kafka-dir"), dir.path());
    fs::write(dir.path().join("cleaner-offset-checkpoint"), "0\n0\n").unwrap();
    fs::write(dir.path().join(".lock"), "").unwrap();
    dir
}

fn run(args: &[&str], dir: &Path, topics: &[&str]) -> Run {
    let mut all: Vec<std::ffi::OsString> = vec!["compact".into()];
    all.extend(args.iter().map(Into::into));
    all.push(arg(dir).into());
    all.extend(topics.iter().map(Into::into));
    doze(all)
}

/// The rows of a run that has to end well, by partition.
fn rows(args: &[&str], dir: &Path, topics: &[&str]) -> BTreeMap<String, Value> {
    let ran = run(&[&["--json"], args].concat(), dir, topics);
    assert_eq!(ran.code, 0, "{ran:?}");
    let name = |row: &Value| format!("{}-{}", row["topic"].as_str().unwrap(), row["partition"]);
    ran.objects_of("compact").into_iter().map(|row| (name(&row), row)).collect()
}

fn image(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(image(&path)),
            false => drop(all.insert(path.clone(), fs::read(&path).unwrap())),
        }
    }
    all
}

/// The records of a partition: offset, key and value.
fn records(folder: &Path) -> Vec<(i64, Value, Value)> {
    let run = doze(["dump-segment", "--json", "--records", folder.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{run:?}");
    let records = run.objects_of("record");
    records
        .iter()
        .filter(|row| row["control"].is_null())
        .map(|row| (row["offset"].as_i64().unwrap(), row["key"].clone(), row["value"].clone()))
        .collect()
}

/// The codec of each batch that has records, by its first offset.
fn codecs(folder: &Path) -> BTreeMap<i64, String> {
    let batches = doze(["dump-segment", "--json", folder.to_str().unwrap()]).objects_of("batch");
    let with_records = batches.iter().filter(|batch| batch["records"] != 0);
    with_records
        .map(|batch| (batch["base_offset"].as_i64().unwrap(), batch["codec"].as_str().unwrap().to_owned()))
        .collect()
}

/// The latest of each key that has a value.
fn latest(records: &[(i64, Value, Value)]) -> BTreeMap<String, (i64, Value)> {
    let mut latest = BTreeMap::new();
    for (offset, key, value) in records {
        latest.insert(key.to_string(), (*offset, value.clone()));
    }
    latest.retain(|_, (_, value)| !value.is_null());
    latest
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replace(from, to)).unwrap();
}

#[test]
fn a_nodes_directory_is_cleaned_by_its_own_configs_and_left_as_cleanly_stopped_as_it_was() {
    let dir = node();
    let before = image(dir.path());
    let compacted = dir.path().join("compacted-0");
    let (was, codecs_before) = (records(&compacted), codecs(&compacted));
    let dry = rows(&["--dry-run"], dir.path(), &[]);
    assert!(image(dir.path()) == before, "something was written");
    let names: Vec<&str> = dry.keys().map(String::as_str).collect();
    assert_eq!(names, ["__consumer_offsets-0", "__transaction_state-0", "compacted-0"], "those that are compacted");
    let real = rows(&[], dir.path(), &[]);
    let row = &real["compacted-0"];
    for field in ["bytes_before", "bytes_after", "records_removed", "log_start_after", "compacted"] {
        assert_eq!(dry["compacted-0"][field], row[field], "{field}");
    }
    assert!(row["records_removed"].as_u64().unwrap() > 0, "{row}");
    assert_eq!((&row["error"], &row["left_alone"], &row["rolled"]), (&Value::Null, &Value::Null, &false.into()));
    let is = records(&compacted);
    assert_eq!(latest(&is), latest(&was));
    assert!(is.iter().all(|record| was.contains(record)) && is.len() < was.len());
    let codecs_after = codecs(&compacted);
    assert!(codecs_after.values().collect::<std::collections::BTreeSet<_>>().len() > 3, "{codecs_after:?}");
    assert!(codecs_after.iter().all(|batch| codecs_before.get(batch.0) == Some(batch.1)), "each keeps its own");
    let checkpoint = fs::read_to_string(dir.path().join("cleaner-offset-checkpoint")).unwrap();
    assert_eq!(checkpoint, "0\n1\ncompacted 0 42\n");
    let after = image(dir.path());
    let changed = |(path, bytes): &(&PathBuf, &Vec<u8>)| after.get(*path) != Some(*bytes);
    for (path, _) in before.iter().filter(changed) {
        let path = path.strip_prefix(dir.path()).unwrap().to_str().unwrap();
        let may_change = path.starts_with("compacted-0/000000000000000000") || path == "cleaner-offset-checkpoint";
        assert!(may_change && !path.contains("42."), "{path} has changed");
    }
    assert_eq!(doze(["verify", dir.path().to_str().unwrap()]).code, 0);
}

#[test]
fn retention_goes_by_the_topics_configs_and_the_nodes() {
    let dir = node();
    // The records are from 2023, and Apache Kafka keeps them for a week.
    let real = rows(&["--retention"], dir.path(), &["append-time", "transactions"]);
    assert_eq!(real["append-time-0"]["log_start_after"], 0, "its records have the time of their appending");
    let start = real["transactions-0"]["log_start_after"].as_i64().unwrap();
    assert!(start > real["transactions-0"]["log_start_before"].as_i64().unwrap(), "{real:?}");
    let starts = fs::read_to_string(dir.path().join("log-start-offset-checkpoint")).unwrap();
    assert!(starts.lines().any(|line| line == format!("transactions 0 {start}")), "{starts}");
    assert!(dir.path().join(MARK).exists());
    assert_eq!(doze(["verify", dir.path().to_str().unwrap()]).code, 0);
    let dir = node();
    let kept = rows(&["--retention", "--override", "log.retention.hours=-1"], dir.path(), &["transactions"]);
    assert_eq!(kept["transactions-0"]["bytes_after"], kept["transactions-0"]["bytes_before"]);
    let own = ["--retention", "--config", "retention.ms=1", "--override", "log.retention.hours=-1"];
    let gone = rows(&own, dir.path(), &["transactions"]);
    let gone = gone["transactions-0"]["log_start_after"].as_i64().unwrap();
    assert!(gone > start, "a config of the command line comes first: {gone}");
}

#[test]
fn what_may_not_be_the_nodes_is_left_alone() {
    let reason = |dir: &Path| {
        let before = image(dir);
        let row = rows(&[], dir, &["compacted"]).remove("compacted-0").unwrap();
        assert!(image(dir) == before, "something has changed");
        assert_eq!(row["bytes_before"], 0);
        row["left_alone"].as_str().unwrap().to_owned()
    };
    let dir = node();
    fs::create_dir(dir.path().join(format!("compacted-0.{:032x}-future", 7))).unwrap();
    assert!(reason(dir.path()).contains("-future"));
    let dir = node();
    let metadata = dir.path().join("compacted-0/partition.metadata");
    replace(&metadata, "topic_id: j", "topic_id: k");
    assert!(reason(dir.path()).contains("of another topic"));
    let dir = node();
    replace(&dir.path().join("meta.properties"), "directory.id=k", "directory.id=j");
    assert!(reason(dir.path()).contains("in another log directory of the node"));
    let dir = node();
    replace(&dir.path().join("meta.properties"), "node.id=0", "node.id=7");
    assert!(reason(dir.path()).contains("no replica of it on this node"));
    let dir = node();
    fs::rename(dir.path().join("compacted-0"), dir.path().join("compacted-1")).unwrap();
    let row = rows(&[], dir.path(), &["compacted"]).remove("compacted-1").unwrap();
    assert!(row["left_alone"].as_str().unwrap().contains("no replica of it"), "{row}");
    let dir = node();
    append_metadata(dir.path(), &[config_record("compacted", "remote.storage.enable", "true")]);
    assert!(reason(dir.path()).contains("remote storage"));
    let dir = node();
    append_metadata(dir.path(), &[config_record("compacted", "delete.retention.ms", "soon")]);
    assert!(reason(dir.path()).contains("delete.retention.ms"));
    let dir = node();
    let id = doze(["inspect", "--json", dir.path().to_str().unwrap(), "compacted"]).objects_of("topic")[0]["topic_id"]
        .clone();
    let id: doze::protocol::Uuid = id.as_str().unwrap().parse().unwrap();
    append_metadata(dir.path(), &[[&[1, 9, 0][..], &id.0, &[0]].concat()]);
    let nothing = rows(&[], dir.path(), &[]);
    assert!(!nothing.contains_key("compacted-0"), "its configs went with the topic: {nothing:?}");
    let row = &rows(&["--config", "cleanup.policy=compact"], dir.path(), &["compacted"])["compacted-0"];
    assert!(row["left_alone"].as_str().unwrap().contains("has no such topic"), "{row}");
}

/// A config of a topic, as a record of the metadata log.
fn config_record(topic: &str, key: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[text.len() as u8 + 1], text.as_bytes()].concat();
    [&[1, 4, 0, 2][..], &text(topic), &text(key), &text(value), &[0]].concat()
}

/// Adds a batch to the metadata log.
fn append_metadata(dir: &Path, values: &[Vec<u8>]) {
    let log = dir.join("__cluster_metadata-0/00000000000000000000.log");
    let mut bytes = fs::read(&log).unwrap();
    let end = Batches::new(&bytes).last().unwrap().header().last_offset() + 1;
    let mut builder = BatchBuilder::new(BatchOptions { base_offset: end, ..BatchOptions::default() }).unwrap();
    values.iter().for_each(|value| builder.append(0, None, Some(value), &[]).unwrap());
    bytes.extend(builder.finish(None).unwrap());
    fs::write(&log, bytes).unwrap();
}

#[test]
fn records_of_the_metadata_log_count_once_their_transaction_has_ended() {
    let (begin, end, abort) = (vec![1, 23, 0, 0], vec![1, 24, 0, 0], vec![1, 25, 0, 0]);
    let config = |value| config_record("codecs", "cleanup.policy", value);
    for (records, is_compacted) in [
        (vec![config("compact")], true),
        (vec![begin.clone(), config("compact"), end.clone()], true),
        (vec![begin.clone(), config("compact"), abort.clone()], false),
        (vec![begin.clone(), config("compact")], false),
        (vec![begin.clone(), config("delete"), abort, begin, config("compact"), end], true),
    ] {
        let dir = node();
        append_metadata(dir.path(), &records);
        let said = rows(&["--dry-run"], dir.path(), &[]);
        assert_eq!(said.contains_key("codecs-0"), is_compacted, "{records:?}");
    }
}

/// The metadata as a snapshot and the records after it.
#[test]
fn a_snapshot_of_the_metadata_stands_for_the_log_before_it() {
    let dir = node();
    let folder = dir.path().join("__cluster_metadata-0");
    append_metadata(dir.path(), &[config_record("codecs", "cleanup.policy", "delete")]);
    let log = folder.join("00000000000000000000.log");
    let bytes = fs::read(&log).unwrap();
    let end = Batches::new(&bytes).last().unwrap().header().last_offset() + 1;
    append_metadata(dir.path(), &[config_record("codecs", "cleanup.policy", "compact")]);
    let later = fs::read(&log).unwrap()[bytes.len()..].to_vec();
    fs::remove_file(&log).unwrap();
    fs::write(folder.join(format!("{end:020}.log")), later).unwrap();
    let ran = run(&["--dry-run"], dir.path(), &[]);
    assert_eq!((ran.code, ran.stderr.contains("no snapshot")), (2, true), "{ran:?}");
    // The records of a snapshot are batches like those of the log.
    fs::write(folder.join(format!("{end:020}-0000000001.checkpoint")), bytes).unwrap();
    fs::write(folder.join(format!("{:020}-0000000001.checkpoint", end - 9)), "older").unwrap();
    let said = rows(&["--dry-run"], dir.path(), &[]);
    assert!(said.contains_key("codecs-0") && said.contains_key("compacted-0"), "{said:?}");
}

#[test]
fn the_metadata_log_may_be_elsewhere_or_stand_on_the_command_line() {
    for how in ["--metadata-log", "its folder", "--config"] {
        let (dir, other) = (node(), tempfile::tempdir().unwrap());
        let folder = other.path().join("__cluster_metadata-0");
        fs::rename(dir.path().join("__cluster_metadata-0"), &folder).unwrap();
        fs::copy(dir.path().join("meta.properties"), other.path().join("meta.properties")).unwrap();
        fs::copy(dir.path().join(MARK), other.path().join(MARK)).unwrap();
        let before = image(dir.path());
        for topics in [&[][..], &["compacted"]] {
            let ran = run(&[], dir.path(), topics);
            let says = "the metadata log is not there, so nothing says which topics are compacted";
            assert_eq!((ran.code, ran.stderr.contains(says)), (2, true), "{ran:?}");
        }
        assert!(image(dir.path()) == before);
        let (option, value) = match how {
            "--metadata-log" => (how, other.path().to_str().unwrap()),
            "--config" => (how, "cleanup.policy=compact"),
            _ => ("--metadata-log", folder.to_str().unwrap()),
        };
        let real = rows(&[option, value], dir.path(), &["compacted"]);
        assert!(real["compacted-0"]["records_removed"].as_u64().unwrap() > 0, "{how}: {real:?}");
        if how == "--metadata-log" {
            replace(&other.path().join("meta.properties"), "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg");
            let ran = run(&[option, value], dir.path(), &[]);
            assert_eq!((ran.code, ran.stderr.contains("of the cluster")), (2, true), "{ran:?}");
        }
    }
    let dir = node();
    let log = dir.path().join("__cluster_metadata-0/00000000000000000000.log");
    let mut bytes = fs::read(&log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&log, bytes).unwrap();
    let ran = run(&[], dir.path(), &[]);
    assert_eq!((ran.code, ran.stderr.contains("the metadata log cannot be read")), (2, true), "{ran:?}");
}

#[test]
fn what_cannot_be_compacted_is_refused_with_what_to_do() {
    let refused = |dir: &Path, args: &[&str], topics: &[&str], says: &str| {
        let before = image(dir);
        let ran = run(args, dir, topics);
        assert_eq!((ran.code, ran.stderr.contains(says)), (2, true), "{says}: {ran:?}");
        assert!(image(dir) == before, "{says}");
    };
    let dir = node();
    refused(dir.path(), &["--roll"], &[], "--roll is for doze's directories");
    refused(dir.path(), &[], &["compactad"], "there is no topic \"compactad\"");
    refused(dir.path(), &[], &["__cluster_metadata"], "is never touched");
    refused(dir.path(), &["--config", "cleanup.policy=compact"], &[], "--config is for the topics that are named");
    refused(dir.path(), &["--config", "cleanup.polizy=compact"], &["codecs"], "--config: ");
    refused(dir.path(), &["--override", "log.retention.huors=1"], &[], "--override: ");
    for name in ["replication-offset-checkpoint", "cleaner-offset-checkpoint", "log-start-offset-checkpoint"] {
        let dir = node();
        fs::write(dir.path().join(name), "1\nnonsense\n").unwrap();
        refused(dir.path(), &[], &[], &format!("{name} in"));
    }
    fs::remove_file(dir.path().join(MARK)).unwrap();
    refused(dir.path(), &[], &[], "start Apache Kafka on it once and stop it");
}

/// A damaged batch at the end of a log is for `doze recover`; the others are compacted, and the mark stays.
#[test]
fn one_partition_that_cannot_be_compacted_is_said_to_be_and_the_others_are() {
    let dir = node();
    let log = dir.path().join("__transaction_state-0/00000000000000000000.log");
    let bytes = fs::read(&log).unwrap();
    fs::write(&log, &bytes[..bytes.len() - 9]).unwrap();
    let ran = run(&["--json"], dir.path(), &[]);
    assert_eq!((ran.code, ran.stderr.contains("one partition could not be compacted")), (2, true), "{ran:?}");
    for row in ran.objects_of("compact") {
        let error = row["error"].as_str().unwrap_or_default();
        assert_eq!(error.contains("doze recover"), row["topic"] == "__transaction_state", "{row}");
    }
    assert!(dir.path().join(MARK).exists());
    assert_eq!(fs::metadata(&log).unwrap().len(), bytes.len() as u64 - 9, "it is left as it is");
}

#[test]
fn message_sets_of_versions_0_and_1_are_read_and_never_written() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("legacy-0");
    copy_tree(&fixture("old-formats/legacy-0"), &folder);
    let log = folder.join("00000000000000000000.log");
    let (bytes, was) = (fs::read(&log).unwrap(), records(&folder));
    let end = was.last().unwrap().0 + 1;
    // Another segment is the active one.
    fs::write(folder.join(format!("{end:020}.log")), "").unwrap();
    for (name, content) in [
        ("meta.properties", "version=1\nnode.id=0\n".to_owned()),
        (MARK, "{}".to_owned()),
        ("replication-offset-checkpoint", format!("0\n1\nlegacy 0 {end}\n")),
    ] {
        fs::write(dir.path().join(name), content).unwrap();
    }
    let real = rows(&["--config", "cleanup.policy=compact"], dir.path(), &["legacy"]);
    let row = &real["legacy-0"];
    let is = records(&folder);
    let with_keys = |records: &[(i64, Value, Value)]| -> Vec<_> {
        records.iter().filter(|record| !record.1.is_null()).cloned().collect()
    };
    assert_eq!(latest(&with_keys(&is)), latest(&with_keys(&was)));
    assert!(is.iter().all(|record| was.contains(record)), "{is:?}");
    // Entry for entry they are those that were there.
    let entries = |bytes: &[u8]| {
        let (mut entries, mut at) = (Vec::new(), 0);
        while at < bytes.len() {
            let size = 12 + u32::from_be_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
            entries.push(bytes[at..at + size].to_vec());
            at += size;
        }
        entries
    };
    let (old, left) = (entries(&bytes), entries(&fs::read(&log).unwrap()));
    let is_old = |entry: &&Vec<u8>| entry[16] < 2;
    assert!(left.iter().filter(is_old).all(|entry| old.contains(entry)));
    println!("{} of {} entries are left: {row}", left.len(), old.len());
    let held = left.iter().filter(is_old).count() as u64;
    assert!(row["old_entries_held"].as_u64().unwrap() <= held, "{row}");
    assert_eq!(doze(["verify", dir.path().to_str().unwrap()]).code, 0);
}
