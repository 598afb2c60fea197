//! `doze compact`, as its users run it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::make::{Data, Stopped, WRITTEN_MS, batch};
use crate::run::{arg, doze};

/// `keys` is compacted and `plain` is not; each has 40 records of 5 keys, in several segments.
fn data() -> Data {
    let data = Data::new();
    data.topic("keys", 1, &[("segment.bytes", "1048576"), ("cleanup.policy", "compact")]);
    data.topic("plain", 1, &[("segment.bytes", "1048576")]);
    data.topic("unused", 1, &[("cleanup.policy", "compact")]);
    for topic in ["keys", "plain"] {
        for n in 0..40 {
            let (key, value) = (format!("key {}", n % 5), format!("value {n}"));
            data.append(topic, 0, batch(&[(Some(&key), Some(&value))]));
            if n % 10 == 9 {
                data.log(topic, 0).seal().unwrap();
            }
        }
        data.append(topic, 0, batch(&[(Some("key 0"), Some("the last"))]));
    }
    data
}

fn stopped() -> Stopped {
    data().stop()
}

fn run(args: &[&str], dir: &Path, topics: &[&str]) -> crate::run::Run {
    let mut all: Vec<std::ffi::OsString> = vec!["compact".into()];
    all.extend(args.iter().map(Into::into));
    all.push(arg(dir).into());
    all.extend(topics.iter().map(Into::into));
    doze(all)
}

fn image(dir: &Path) -> BTreeMap<std::path::PathBuf, (Vec<u8>, std::time::SystemTime)> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(image(&path));
        } else {
            let modified = fs::metadata(&path).unwrap().modified().unwrap();
            all.insert(path.clone(), (fs::read(&path).unwrap(), modified));
        }
    }
    all
}

/// Keys and values of a topic.
fn records(data: &Data, topic: &str) -> Vec<(String, String)> {
    let log = data.log(topic, 0);
    let offsets = log.offsets();
    let mut all = Vec::new();
    let mut next = offsets.start;
    while next < offsets.end {
        let read = log.read(next, 1 << 20, true, doze::storage::log::Isolation::ReadUncommitted).unwrap();
        let bytes = read.range.unwrap().read().unwrap();
        for batch in doze::record::Batches::new(&bytes) {
            next = batch.header().last_offset() + 1;
            let mut records = batch.records().unwrap();
            while let Some(record) = records.next_record().unwrap() {
                let text = |bytes: Option<&[u8]>| String::from_utf8(bytes.unwrap().to_vec()).unwrap();
                all.push((text(record.key()), text(record.value())));
            }
        }
    }
    all
}

#[test]
fn a_dry_run_says_what_a_run_then_does_and_writes_nothing() {
    for roll in [false, true] {
        let stopped = stopped();
        let args = |more: &[&'static str]| {
            let mut args = vec!["--json"];
            args.extend(more);
            if roll {
                args.push("--roll");
            }
            args
        };
        let before = image(&stopped.dir());
        let dry = run(&args(&["--dry-run"]), &stopped.dir(), &[]);
        assert_eq!(dry.code, 0, "{dry:?}");
        assert!(image(&stopped.dir()) == before, "something was written");
        let real = run(&args(&[]), &stopped.dir(), &[]);
        assert_eq!(real.code, 0, "{real:?}");
        let (dry, real) = (dry.objects_of("compact"), real.objects_of("compact"));
        assert_eq!((dry.len(), real.len()), (1, 1), "only what is compacted, and was ever used: {real:?}");
        for field in
            ["topic", "partition", "compacted", "bytes_before", "bytes_after", "records_removed", "log_start_after"]
        {
            assert_eq!(dry[0][field], real[0][field], "{field}, roll {roll}");
        }
        let removed = if roll { 36 } else { 35 };
        assert_eq!(real[0]["records_removed"], removed);
        assert_eq!(
            (&real[0]["topic"], &real[0]["rolled"], &real[0]["dry_run"]),
            (&"keys".into(), &roll.into(), &false.into())
        );
        assert!(real[0]["bytes_after"].as_u64() < real[0]["bytes_before"].as_u64());
        assert_eq!((&dry[0]["segments_before"], &real[0]["segments_before"]), (&Value::Null, &5.into()));
        assert_eq!((&real[0]["at_least"], &real[0]["error"]), (&false.into(), &Value::Null));
        assert!(stopped.dir().join("clean-shutdown").exists(), "it is left as cleanly stopped as it was");
        let data = stopped.start();
        assert!(data.store().started_clean());
        let kept = records(&data, "keys");
        assert_eq!(kept.len(), 41 - removed);
        assert!(kept.contains(&("key 0".into(), "the last".into())));
        assert!(kept.contains(&("key 4".into(), "value 39".into())));
        assert_eq!(records(&data, "plain").len(), 41);
    }
}

#[test]
fn the_catalog_gives_back_what_it_does_not_use() {
    let data = data();
    for n in 0..300 {
        data.topic(&format!("for-a-while-{n}"), 1, &[("cleanup.policy", "delete")]);
    }
    for n in 0..300 {
        data.store().delete_topic(&format!("for-a-while-{n}")).unwrap();
    }
    let stopped = data.stop();
    let ran = run(&["--json"], &stopped.dir(), &["keys"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let catalog = &ran.objects_of("compact-catalog")[0];
    assert!(catalog["bytes_after"].as_u64().unwrap() < catalog["bytes_before"].as_u64().unwrap(), "{catalog}");
    let size = fs::metadata(stopped.dir().join("meta.db")).unwrap().len();
    assert_eq!(catalog["bytes_after"], size);
    let summary = &ran.objects_of("compact-summary")[0];
    assert_eq!(
        (&summary["partitions"], &summary["failed"], &summary["records_removed"]),
        (&1.into(), &0.into(), &35.into())
    );
    assert_eq!(stopped.start().store().topics().len(), 3);
}

#[test]
fn retention_applies_when_it_is_asked_for() {
    let stopped = stopped();
    // The records are from 2023.
    let ran = run(&["--json", "--retention", "--override", "log.retention.hours=24"], &stopped.dir(), &["plain"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let row = &ran.objects_of("compact")[0];
    assert_eq!((&row["log_start_before"], &row["log_start_after"]), (&0.into(), &40.into()), "{row}");
    assert_eq!((&row["compacted"], &row["segments_after"]), (&false.into(), &1.into()));
    let data = stopped.start();
    assert_eq!(records(&data, "plain").len(), 1);
    assert_eq!(records(&data, "keys").len(), 41, "it was not asked for");
    const { assert!(WRITTEN_MS < 1_800_000_000_000) };
}

#[test]
fn what_cannot_be_compacted_is_refused_with_what_to_do() {
    let crashed = data().crash();
    let before = image(&crashed.dir());
    let ran = run(&[], &crashed.dir(), &[]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(
        ran.stderr.contains("was not stopped cleanly; start doze on it once and stop it, or run 'doze recover"),
        "{ran:?}"
    );
    assert!(image(&crashed.dir()) == before);

    let stopped = stopped();
    let ran = run(&[], &stopped.dir(), &["kays"]);
    assert_eq!((ran.code, ran.stderr.contains("there is no topic \"kays\"")), (2, true), "{ran:?}");
    assert_eq!(run(&["--override", "log.retention.huors=1"], &stopped.dir(), &[]).code, 2);

    for option in ["--config=cleanup.policy=compact", "--metadata-log=/nowhere"] {
        let ran = run(&[option], &stopped.dir(), &["keys"]);
        assert_eq!((ran.code, ran.stderr.contains("are for log directories of Apache Kafka")), (2, true), "{ran:?}");
    }

    fs::write(stopped.dir().join("meta.db"), b"nonsense").unwrap();
    let ran = run(&[], &stopped.dir(), &[]);
    assert_eq!((ran.code, ran.stderr.contains("doze recover")), (2, true), "{ran:?}");

    let data = data();
    let ran = run(&[], data.store().data_dir(), &[]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert_eq!(run(&[], Path::new("/nowhere"), &[]).code, 4);
}
