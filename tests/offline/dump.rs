//! `doze dump-segment`.

use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::Stdio;

use doze::record::{BatchBuilder, BatchOptions, Codec};
use doze::storage::dump::{Dump, Entry, Range};
use doze::storage::log::EndMarker;
use doze::sys::Env;
use doze::sys::sim::Prng;
use serde_json::{Value, json};

use crate::make::{Data, Stopped, WRITTEN_MS, batch, batch_with, files};
use crate::run::{arg, command, doze};

/// A topic `demo` with a batch of each codec, three records each, in one segment.
fn demo() -> Stopped {
    let data = Data::new();
    data.topic("demo", 1, &[]);
    for codec in [Codec::None, Codec::Gzip { level: 6 }, Codec::Snappy, Codec::Lz4, Codec::Zstd { level: 3 }] {
        let options = BatchOptions { codec, ..BatchOptions::default() };
        data.append(
            "demo",
            0,
            batch_with(options, &[(Some("a"), Some("1")), (None, Some("{\"n\": 2}")), (Some("c"), None)]),
        );
    }
    data.stop()
}

fn log(stopped: &Stopped) -> PathBuf {
    stopped.segments("demo", 0)[0].clone()
}

fn fields<'a>(object: &'a Value, names: &[&str]) -> Vec<&'a Value> {
    names.iter().map(|name| &object[*name]).collect()
}

#[test]
fn batches_and_records_as_json() {
    let stopped = demo();
    let path = log(&stopped);
    let run = doze([arg("dump-segment".as_ref()), "--json".as_ref(), "--records".as_ref(), arg(&path)]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let objects = run.objects();
    assert_eq!(
        objects[0],
        json!({ "type": "file", "path": path, "kind": "log", "stage": "live", "base_offset": 0,
                "size": std::fs::metadata(&path).unwrap().len() })
    );
    let batches = run.objects_of("batch");
    let codecs: Vec<&Value> = batches.iter().map(|batch| &batch["codec"]).collect();
    assert_eq!(codecs, ["none", "gzip", "snappy", "lz4", "zstd"]);
    let mut first = batches[0].clone();
    for checked_elsewhere in ["crc", "size"] {
        assert!(first.as_object_mut().unwrap().remove(checked_elsewhere).unwrap().is_u64());
    }
    assert_eq!(
        first,
        json!({ "type": "batch", "position": 0, "magic": 2, "base_offset": 0, "last_offset": 2, "records": 3, "codec": "none",
                "timestamp_type": "CreateTime", "base_timestamp_ms": WRITTEN_MS, "max_timestamp_ms": WRITTEN_MS + 2,
                "leader_epoch": 0, "producer_id": null, "producer_epoch": null, "base_sequence": null, "last_sequence": null,
                "transactional": false, "control": false, "delete_horizon_ms": null, "valid": true })
    );
    let records = run.objects_of("record");
    assert_eq!(records.len(), 15);
    assert_eq!(
        records[14],
        json!({ "type": "record", "offset": 14, "timestamp_ms": WRITTEN_MS + 2, "sequence": null, "key_length": 1,
                "value_length": null, "control": null, "headers": [], "key": "c", "value": null })
    );
    let end = json!({ "type": "end", "batches": 5, "records": 15, "entries": 0, "damage": 0, "complete": true });
    assert_eq!(objects.last(), Some(&end));
}

#[test]
fn keys_and_values_in_every_form() {
    let stopped = demo();
    let path = log(&stopped);
    let second = |options: &[&str]| {
        let run = doze(
            [
                &[
                    "dump-segment",
                    "--json",
                    "--records",
                    "--from-offset",
                    "1",
                    "--to-offset",
                    "1",
                    path.to_str().unwrap(),
                ],
                options,
            ]
            .concat(),
        );
        run.objects_of("record")[0].clone()
    };
    for (form, shown) in [
        ("text", json!("{\"n\": 2}")),
        ("json", json!({ "n": 2 })),
        ("hex", json!("7b226e223a20327d")),
        ("base64", json!("eyJuIjogMn0=")),
    ] {
        assert_eq!(second(&["--value", form])["value"], shown, "{form}");
    }
    for form in ["length", "none"] {
        let record = second(&["--value", form]);
        assert_eq!((record.get("value"), &record["value_length"]), (None, &json!(8)), "{form}");
    }
    assert_eq!(second(&["--key", "hex"])["key"], Value::Null);
    let text = doze([
        "dump-segment",
        "--records",
        "--key",
        "length",
        "--value",
        "none",
        "--limit",
        "1",
        path.to_str().unwrap(),
    ]);
    assert!(text.stdout.contains("\n  offset=0 time=2023-11-14T22:13:20.000Z key=1 bytes\n"), "{}", text.stdout);
}

#[test]
fn ranges_and_limits() {
    let stopped = demo();
    let path = log(&stopped);
    let offsets = |options: &[&str]| {
        let run = doze([&["dump-segment", "--json", "--records", path.to_str().unwrap()], options].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.objects_of("record").iter().map(|record| record["offset"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(offsets(&["--from-offset", "5", "--to-offset", "7"]), [5, 6, 7]);
    assert_eq!(offsets(&["--from-time", "2023-11-14T22:13:20.002Z"]), [2, 5, 8, 11, 14]);
    assert_eq!(offsets(&["--to-time", "1700000000000", "--limit", "2"]), [0, 3]);
    assert_eq!(offsets(&["--from-time", "2024-01-01"]), [0; 0]);
    let run = doze(["dump-segment", "--json", "--limit", "2", path.to_str().unwrap()]);
    assert_eq!(run.objects_of("batch").len(), 2);
    assert_eq!(run.objects_of("end")[0]["complete"], false);
}

#[test]
fn transactions_headers_and_snapshots() {
    let data = Data::new();
    data.topic("demo", 1, &[]);
    for (sequence, committed) in [(0, true), (1, false)] {
        let options = BatchOptions {
            producer_id: 7,
            producer_epoch: 0,
            base_sequence: sequence,
            transactional: true,
            ..BatchOptions::default()
        };
        let mut builder = BatchBuilder::new(options).unwrap();
        let headers: [(&[u8], Option<&[u8]>); 3] = [(b"h", Some(b"1")), (b"h", None), (b"\xff", Some(b"\xff"))];
        builder.append(WRITTEN_MS, Some(b"\xff"), Some(b"v"), &headers).unwrap();
        data.append("demo", 0, builder.finish(None).unwrap());
        let marker =
            EndMarker { producer_id: 7, producer_epoch: 0, committed, coordinator_epoch: 3, transaction_version: 0 };
        data.log("demo", 0).append_end_txn_marker(marker, 0).unwrap();
    }
    let stopped = data.stop();
    let folder = stopped.partition("demo", 0);
    let run = doze(["dump-segment", "--json", "--records", "--all-files", folder.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let kinds: Vec<String> =
        run.objects_of("file").iter().map(|file| file["kind"].as_str().unwrap().to_owned()).collect();
    for kind in ["log", "index", "timeindex", "txnindex", "snapshot", "leader-epoch-checkpoint", "partition.metadata"] {
        assert!(kinds.iter().any(|found| found == kind), "{kind} is not among {kinds:?}");
    }
    let records = run.objects_of("record");
    assert_eq!(
        records[0]["headers"],
        json!([{ "name": "h", "value_length": 1, "value": "1" }, { "name": "h", "value_length": null, "value": null },
               { "name": "\u{fffd}", "value_length": 1, "value": null, "value_base64": "/w==" }])
    );
    assert_eq!(fields(&records[0], &["sequence", "key", "key_base64"]), [&json!(0), &Value::Null, &json!("/w==")]);
    let markers: Vec<_> = records.iter().map(|record| fields(record, &["control", "coordinator_epoch"])).collect();
    assert_eq!(markers[1], [&json!("COMMIT"), &json!(3)]);
    assert_eq!(markers[3], [&json!("ABORT"), &json!(3)]);
    let batches = run.objects_of("batch");
    assert_eq!(
        fields(&batches[0], &["producer_id", "base_sequence", "transactional"]),
        [&json!(7), &json!(0), &json!(true)]
    );
    assert_eq!(batches[1]["control"], true);
    let aborted = &run.objects_of("aborted_transaction")[0];
    assert_eq!(fields(aborted, &["producer_id", "first_offset", "last_offset", "last_stable_offset"]), [7, 2, 3, 4]);
    let snapshot = &run.objects_of("snapshot")[0];
    assert_eq!(fields(snapshot, &["version", "valid"]), [&json!(1), &json!(true)]);
    // Two batches of one producer are remembered, which only doze notes.
    assert_eq!(fields(snapshot, &["format", "entries"]), [&json!("doze"), &json!(2)]);
    assert_eq!(run.objects_of("producer")[1]["last_sequence"], 1);
    assert_eq!(fields(&run.objects_of("leader_epoch")[0], &["epoch", "start_offset"]), [0, 0]);
    let text = doze(["dump-segment", "--records", folder.to_str().unwrap()]);
    for wanted in [
        "\n  offset=0 time=2023-11-14T22:13:20.000Z sequence=0 headers=[\"h\"=\"1\", \"h\"=null, \"\\xff\"=\"\\xff\"] key=\"\\xff\" value=\"v\"\n",
        " control=ABORT coordinator_epoch=3\n",
        "\n# 4 batches, 4 records\n",
    ] {
        assert!(text.stdout.contains(wanted), "{wanted:?} is not in {}", text.stdout);
    }
}

#[test]
fn it_goes_on_after_damage_and_ends_with_1() {
    let stopped = demo();
    let path = log(&stopped);
    let mut bytes = std::fs::read(&path).unwrap();
    let batches = doze(["dump-segment", "--json", path.to_str().unwrap()]).objects_of("batch");
    let place = |n: usize| batches[n]["position"].as_u64().unwrap() as usize;
    bytes[place(1) + 61] ^= 1;
    bytes[place(3) + 8..place(3) + 12].copy_from_slice(&u32::MAX.to_be_bytes());
    bytes.extend([1, 2, 3]);
    // A suffix, and a place outside of any data directory.
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("00000000000000000000.log.deleted");
    std::fs::write(&copy, bytes).unwrap();
    let run = doze(["dump-segment", "--json", "--records", copy.to_str().unwrap()]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.starts_with("doze: damage was found in 3 places"), "{}", run.stderr);
    let found = run.objects_of("damage");
    let shown: Vec<_> = found
        .iter()
        .map(|damage| fields(damage, &["kind", "position", "bytes", "first_offset", "next_offset"]))
        .collect();
    assert_eq!(shown[0], [&json!("crc"), &json!(place(1)), &json!(place(2) - place(1)), &json!(3), &json!(6)]);
    assert_eq!(shown[1], [&json!("header"), &json!(place(3)), &json!(place(4) - place(3)), &json!(9), &json!(12)]);
    assert_eq!(shown[2][0], "torn");
    assert_eq!(shown[2][2], 3);
    let offsets: Vec<i64> = run.objects_of("record").iter().map(|record| record["offset"].as_i64().unwrap()).collect();
    assert_eq!(
        offsets,
        [0, 1, 2, 6, 7, 8, 12, 13, 14],
        "records of a batch with a wrong checksum are not shown unasked"
    );
    assert_eq!(run.objects_of("file")[0]["stage"], "deleted");
    assert_eq!(run.objects_of("end")[0]["damage"], 3);
    let text = doze(["dump-segment", copy.to_str().unwrap()]);
    assert!(text.stdout.contains("\nDAMAGE position="), "{}", text.stdout);
}

/// A log of some megabytes, in batches of all sizes up to some that are more than a thread reads at once.
fn large_log(random: &mut Prng) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut offset = 0;
    while bytes.len() < 4 << 20 {
        let codec = [Codec::None, Codec::Lz4, Codec::None][random.below(3) as usize];
        let records = if random.below(30) == 0 { 8000 } else { 1 + random.below(300) as i64 };
        let options = BatchOptions { base_offset: offset, codec, ..BatchOptions::default() };
        let mut builder = BatchBuilder::new(options).unwrap();
        for at in 0..records {
            let value = format!("{}-\"{}\"", offset + at, "v".repeat(random.below(200) as usize));
            builder.append(WRITTEN_MS + offset + at, Some(b"key"), Some(value.as_bytes()), &[]).unwrap();
        }
        bytes.extend_from_slice(&builder.finish(None).unwrap());
        // Gaps, as the cleaner leaves them.
        offset += records + random.below(2) as i64;
    }
    bytes
}

/// What threads guess from headers is wrong where there is damage, and nobody may notice.
#[test]
fn any_number_of_jobs_prints_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("00000000000000000000.log");
    for seed in 0..6 {
        println!("seed {seed}");
        let mut random = Prng::new(seed);
        let mut bytes = large_log(&mut random);
        let len = bytes.len() as u64;
        let starts: Vec<usize> = {
            std::fs::write(&path, &bytes).unwrap();
            let batches = doze(["dump-segment", "--json", path.to_str().unwrap()]).objects_of("batch");
            batches.iter().map(|batch| batch["position"].as_u64().unwrap() as usize).collect()
        };
        for _ in 0..4 * seed {
            let start = starts[random.below(starts.len() as u64) as usize];
            match random.below(5) {
                // A length that leads to where another batch starts, as if those between had never been.
                0 => {
                    let later = starts[random.below(starts.len() as u64) as usize];
                    if later > start {
                        bytes[start + 8..start + 12].copy_from_slice(&((later - start - 12) as u32).to_be_bytes());
                    }
                }
                // One that leads to no batch.
                1 => bytes[start + 9 + random.below(3) as usize] ^= 1 << random.below(8),
                2 => bytes[start + 16] ^= 1 << random.below(8),
                3 => {
                    let from = random.below(len) as usize;
                    let to = (from + random.below(1 << 18) as usize).min(bytes.len());
                    bytes[from..to].fill(0);
                }
                _ => bytes[random.below(len) as usize] ^= 1 << random.below(8),
            }
        }
        std::fs::write(&path, &bytes).unwrap();
        let file = path.to_str().unwrap();
        let read = Dump::open(&*Env::real().fs, &path, Range::default()).unwrap().map(Result::unwrap);
        let read: Vec<_> = read
            .filter_map(|entry| match entry {
                Entry::Batch(batch) => Some(("batch", batch.position, batch.size)),
                Entry::Damage(damage) => Some(("damage", damage.position, damage.bytes)),
                _ => None,
            })
            .collect();
        let number = |object: &Value, name: &str| object[name].as_u64().unwrap();
        let shown = doze(["dump-segment", "--json", "--jobs", "3", file]).objects();
        let shown = shown.iter().filter_map(|object| match object["type"].as_str().unwrap() {
            "batch" => Some(("batch", number(object, "position"), number(object, "size"))),
            "damage" => Some(("damage", number(object, "position"), number(object, "bytes"))),
            _ => None,
        });
        assert_eq!(shown.collect::<Vec<_>>(), read, "seed {seed}: one reader who goes straight through finds another");
        for more in [&[][..], &["--json"], &["--limit", "5000"], &["--from-offset", "3000", "--damaged"]] {
            let run = |jobs| doze([&["dump-segment", "--records", "--jobs", jobs, file][..], more].concat());
            let alone = run("1");
            assert_eq!(alone.code == 1, alone.stdout.contains("DAMAGE") || alone.stdout.contains("\"damage\",\"po"));
            for jobs in ["2", "7"] {
                let shared = run(jobs);
                assert!(shared.stdout == alone.stdout, "seed {seed}, {jobs} jobs, {more:?}");
                assert_eq!((shared.code, shared.stderr), (alone.code, alone.stderr.clone()));
            }
        }
    }
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let data = Data::new();
    data.topic("demo", 1, &[]);
    let value = "x".repeat(1000);
    for _ in 0..50 {
        data.append("demo", 0, batch(&[(None, Some(value.as_str())); 20]));
    }
    let stopped = data.stop();
    let mut child = command(["dump-segment", "--records", log(&stopped).to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("# "));
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), vec![]));
}

#[test]
fn what_it_cannot_read_is_told_and_does_not_stop_it() {
    let stopped = demo();
    let path = log(&stopped);
    let missing = stopped.dir().join("demo-0/00000000000000000099.log");
    let run = doze([arg("dump-segment".as_ref()), arg(&missing), "--json".as_ref(), arg(&path)]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.starts_with("doze: cannot open ") && run.stderr.contains("No such file"), "{}", run.stderr);
    assert_eq!(run.objects_of("batch").len(), 5, "the other file is shown");

    let foreign = stopped.dir().join("notes.txt");
    std::fs::write(&foreign, "hello").unwrap();
    let run = doze([arg("dump-segment".as_ref()), arg(&foreign)]);
    assert!(run.code == 2 && run.stderr.contains("is no file of a partition"), "{}", run.stderr);
    let run = doze([arg("dump-segment".as_ref()), arg(&stopped.dir())]);
    assert!(run.code == 4 && run.stderr.contains("is not the folder of a partition"), "{}", run.stderr);
    for wrong in [
        &["dump-segment"][..],
        &["dump-segment", "--value", "xml", "x.log"],
        &["dump-segment", "--from-time", "soon", "x.log"],
        &["dump-segment", "--damaged", "x.log"],
    ] {
        assert_eq!(doze(wrong).code, 2, "{wrong:?}");
    }
}

#[test]
fn a_folder_whose_name_is_no_utf_8() {
    let stopped = demo();
    let odd = stopped.dir().join(std::ffi::OsStr::from_bytes(b"d\xffmo-0"));
    std::fs::rename(stopped.partition("demo", 0), &odd).unwrap();
    let run = doze([arg("dump-segment".as_ref()), "--json".as_ref(), arg(&odd)]);
    assert_eq!((run.code, run.objects_of("batch").len()), (0, 5), "{}", run.stderr);
    assert!(run.objects_of("file")[0]["path"].as_str().unwrap().contains("d\u{fffd}mo-0"));
}

#[test]
fn not_while_a_broker_has_the_directory() {
    let data = Data::new();
    data.topic("demo", 1, &[]);
    data.append("demo", 0, batch(&[(None, Some("1"))]));
    let path = files(&data.store().data_dir().join("demo-0"), ".log")[0].clone();
    let run = doze([arg("dump-segment".as_ref()), arg(&path)]);
    assert_eq!((run.code, run.stdout.as_str()), (3, ""));
    assert!(
        run.stderr.contains("is in use by another process; stop the broker first, or copy the file"),
        "{}",
        run.stderr
    );
    drop(data);
}
