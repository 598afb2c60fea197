//! `doze inspect`.

use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use std::time::Duration;

use doze::coordinator::{
    Action, Change, Config, GroupCoordinator, Now, PendingOffset, PendingOffsetKey, ShareHeartbeatRequest,
    SharePartitionKey, StreamsHeartbeatRequest, Subtopology, TaskSet, TopicMetadata, Topology,
};
use doze::record::{BatchOptions, Codec};
use doze::storage::catalog::{CommittedOffset, Mutation};
use doze::sys::Env;
use serde_json::{Value, json};

use crate::make::{Data, Stopped, WRITTEN_MS, batch, batch_with, files};
use crate::run::{arg, command, doze};

/// `demo` with two partitions, the first with several segments of compressed batches, the second with an open transaction; a
/// group that has read some of it; and `other`.
fn filled() -> Data {
    let data = Data::new();
    data.topic("demo", 2, &[("segment.bytes", "2000"), ("retention.ms", "-1")]);
    let value = "the same words again and again, ".repeat(10);
    for _ in 0..30 {
        let options = BatchOptions { codec: Codec::Zstd { level: 3 }, ..BatchOptions::default() };
        data.append("demo", 0, batch_with(options, &[(Some("k"), Some(value.as_str())); 3]));
    }
    data.append("demo", 1, batch(&[(None, Some("1")); 4]));
    let options = BatchOptions {
        producer_id: 7,
        producer_epoch: 0,
        base_sequence: 0,
        transactional: true,
        ..BatchOptions::default()
    };
    data.append("demo", 1, batch_with(options, &[(None, Some("2"))]));
    data.topic("other", 1, &[]);
    let topic_id = data.store().topics().by_name("demo").unwrap().id;
    let committed = CommittedOffset {
        offset: 80,
        leader_epoch: 0,
        metadata: "mine".into(),
        commit_timestamp_ms: WRITTEN_MS,
        expire_timestamp_ms: None,
        topic_id,
    };
    let commit =
        Mutation::CommitOffset { group: "readers".into(), topic: "demo".into(), partition: 0, offset: committed };
    let delete = Mutation::RaiseLogStart { topic_id, partition: 1, offset: 1 };
    data.store().catalog().commit_blocking(vec![commit, delete]).unwrap();
    data
}

fn objects(stopped: &Stopped, args: &[&str]) -> Vec<Value> {
    let dir = stopped.dir();
    let run = doze([&["inspect", "--json", dir.to_str().unwrap()], args].concat());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    run.objects()
}

fn of<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["type"] == kind).collect()
}

/// What the coordinator stores of a group when this is asked.
fn stored(actions: Vec<Action>) -> Vec<Mutation> {
    let writes = actions.into_iter().filter_map(|action| match action {
        Action::Persist(write) => Some(write),
        Action::Reply { .. } => None,
    });
    let puts = writes.flat_map(|write| {
        let group = write.group.clone();
        write.changes.into_iter().filter_map(move |change| match change {
            Change::PutGroup(bytes) => Some(Mutation::PutGroup { group: group.clone(), value: bytes.to_vec() }),
            _ => None,
        })
    });
    puts.collect()
}

/// Share groups with what has become of their records, streams groups, and offsets that wait for their transaction.
#[test]
fn groups_of_the_newer_kinds_and_pending_offsets() {
    let data = filled();
    let topic_id = data.store().topics().by_name("demo").unwrap().id;
    let now = Now { monotonic: Duration::ZERO, wall_ms: WRITTEN_MS };
    let mut coordinator = GroupCoordinator::new(Config::default(), Env::real().random, now);
    coordinator.set_topics([TopicMetadata { name: "demo".into(), id: topic_id, partitions: 2 }].into_iter().collect());
    let share = ShareHeartbeatRequest {
        group_id: "sharers".into(),
        member_id: "one".into(),
        member_epoch: 0,
        rack_id: None,
        client_id: "client".into(),
        client_host: "/127.0.0.1".into(),
        topic_names: Some(vec!["demo".into()]),
    };
    let streams = StreamsHeartbeatRequest {
        group_id: "streams".into(),
        member_id: "two".into(),
        member_epoch: 0,
        endpoint_epoch: 0,
        instance_id: None,
        rack_id: None,
        rebalance_timeout_ms: 1000,
        client_id: "client".into(),
        client_host: "/127.0.0.1".into(),
        topology: Some(Topology {
            epoch: 0,
            subtopologies: vec![Subtopology {
                id: "0".into(),
                source_topics: vec!["demo".into()],
                ..Subtopology::default()
            }],
        }),
        active: Some(TaskSet::new()),
        standby: Some(TaskSet::new()),
        warmup: Some(TaskSet::new()),
        process_id: Some("process".into()),
        endpoint: None,
        client_tags: None,
        has_task_offsets: false,
        has_task_end_offsets: false,
        shutdown: false,
    };
    let mut mutations = stored(coordinator.share_heartbeat(now, 1, share));
    mutations.extend(stored(coordinator.streams_heartbeat(now, 2, streams)));
    assert_eq!(mutations.len(), 2, "{mutations:?}");
    // From 2 on; 3 and 4 are acknowledged, 6 was given back, 8 is archived.
    let stretch = |first: i64, last: i64, state: u8| {
        [&first.to_be_bytes()[..], &last.to_be_bytes(), &[state], &1i32.to_be_bytes()].concat()
    };
    let value =
        [&[1][..], &2i64.to_be_bytes(), &3i32.to_be_bytes(), &stretch(3, 4, 2), &stretch(6, 6, 0), &stretch(8, 8, 4)];
    mutations.push(Mutation::SetState {
        space: SharePartitionKey::SPACE,
        key: SharePartitionKey::new("sharers", topic_id, 0).to_bytes(),
        value: Some(value.concat()),
    });
    let key = PendingOffsetKey { producer_id: 7, group: "readers".into(), topic: "demo".into(), partition: 1 };
    let offset = doze::coordinator::CommittedOffset {
        offset: 3,
        leader_epoch: -1,
        metadata: String::new(),
        commit_timestamp_ms: WRITTEN_MS,
        expire_timestamp_ms: None,
    };
    let pending = PendingOffset { producer_epoch: 5, offset };
    let (space, key) = (PendingOffsetKey::SPACE, key.to_bytes());
    mutations.push(Mutation::SetState { space, key, value: Some(pending.to_bytes()) });
    data.store().catalog().commit_blocking(mutations).unwrap();

    let all = objects(&data.stop(), &[]);
    let groups = of(&all, "group");
    let fields =
        |group: &Value| ["group", "kind", "members", "pending_offsets", "lag"].map(|field| group[field].clone());
    assert_eq!(fields(groups[0]), [json!("readers"), json!("classic"), json!(0), json!(1), json!(10)]);
    // 90 records, of which 2 are before the start and 3 done with.
    assert_eq!(fields(groups[1]), [json!("sharers"), json!("share"), json!(1), json!(0), json!(85)]);
    assert_eq!(fields(groups[2]), [json!("streams"), json!("streams"), json!(1), json!(0), json!(null)]);
    assert!(groups.iter().all(|group| group["state"].is_string()), "{groups:?}");
    assert_eq!(
        of(&all, "share_partition"),
        [
            &json!({ "type": "share_partition", "group": "sharers", "topic": "demo", "partition": 0, "start_offset": 2, "done": 3,
                  "lag": 85 })
        ]
    );
    assert_eq!(
        of(&all, "pending_offset"),
        [
            &json!({ "type": "pending_offset", "group": "readers", "topic": "demo", "partition": 1, "offset": 3, "producer_id": 7,
                  "producer_epoch": 5 })
        ]
    );
}

/// What a broker's scrub leaves behind is shown as it stands there.
#[test]
fn what_the_scrub_has_found() {
    let stopped = filled().stop();
    let fields = ["scrub_started_ms", "scrub_finished_ms", "scrub_at", "scrub_damaged"];
    let of_directory = |all: &[Value]| fields.map(|field| of(all, "directory")[0][field].clone());
    assert_eq!(of_directory(&objects(&stopped, &[])), [json!(null), json!(null), json!(null), json!(0)]);

    let id = "AAAAAAAAAAAAAAAAAAAAAQ";
    let text = format!(
        "version: 0\nstarted: 2000\nfinished: 1000\nat: demo 0 9 80 12\ndamaged: {id} demo 0 0 61 70 3 6 checksum 1500\nmore: 2\n"
    );
    std::fs::write(stopped.dir().join("scrub-checkpoint"), text).unwrap();
    let all = objects(&stopped, &[]);
    let at = json!({ "topic": "demo", "partition": 0, "segment": 9, "position": 80, "offset": 12 });
    assert_eq!(of_directory(&all), [json!(2000), json!(1000), at, json!(3)]);
    assert_eq!(
        of(&all, "scrub_finding"),
        [
            &json!({ "type": "scrub_finding", "topic": "demo", "topic_id": id, "partition": 0, "segment": 0, "position": 61,
                  "bytes": 70, "first_offset": 3, "next_offset": 6, "kind": "checksum", "found_ms": 1500 })
        ]
    );
    let table = doze(["inspect", stopped.dir().to_str().unwrap()]);
    assert!(table.stdout.contains("one is under way at demo-0, offset 12, 3 damaged"), "{}", table.stdout);
    assert!(table.stdout.contains("Damage that the scrub found"), "{}", table.stdout);
}

#[test]
fn the_whole_directory_as_json() {
    let stopped = filled().stop();
    let all = objects(&stopped, &[]);
    let directory = of(&all, "directory")[0];
    for (field, value) in [
        ("origin", json!("doze")),
        ("format", json!(1)),
        ("catalog_state", json!("open")),
        ("stop", json!("clean")),
        ("unchecked", json!([])),
        ("held", json!(true)),
        ("topics", json!(2)),
        ("partitions", json!(3)),
        ("node_id", json!(null)),
    ] {
        assert_eq!(directory[field], value, "{field}");
    }
    assert_eq!(directory["cluster_id"].as_str().unwrap().len(), 22);
    let topics = of(&all, "topic");
    assert_eq!(
        (&topics[0]["topic"], &topics[0]["in_catalog"], &topics[0]["partitions"]),
        (&json!("demo"), &json!(true), &json!(2))
    );
    assert_eq!(topics[0]["configs"], json!({ "segment.bytes": "2000", "retention.ms": "-1" }));
    assert_eq!(topics[1]["offsets"], 0);

    let partitions = of(&all, "partition");
    let first = partitions[0];
    for (field, value) in [
        ("log_start_offset", json!(0)),
        ("log_end_offset", json!(90)),
        ("high_watermark", json!(90)),
        ("last_stable_offset", json!(90)),
        ("batches", json!(30)),
        ("records", json!(90)),
        ("counts_exact", json!(true)),
        ("first_timestamp_ms", json!(WRITTEN_MS)),
        ("last_timestamp_ms", json!(WRITTEN_MS + 2)),
        ("leader_epoch", json!(0)),
        ("trusted", json!(true)),
        ("flush_failed", json!(false)),
        ("tail_bytes", json!(0)),
        ("problems", json!([])),
        ("topic_id", topics[0]["topic_id"].clone()),
    ] {
        assert_eq!(first[field], value, "{field}");
    }
    assert_eq!(first["segments"], stopped.segments("demo", 0).len());
    assert_eq!((&first["codecs"][0]["codec"], &first["codecs"][0]["batches"]), (&json!("zstd"), &json!(30)));
    assert!(first["compression_ratio"].as_f64().unwrap() > 2.0, "{first}");
    let second = partitions[1];
    assert_eq!(
        (&second["log_start_offset"], &second["last_stable_offset"], &second["high_watermark"]),
        (&json!(1), &json!(4), &json!(5))
    );
    assert_eq!(
        of(&all, "open_transaction"),
        [&json!({ "type": "open_transaction", "topic": "demo", "partition": 1, "producer_id": 7, "producer_epoch": 0,
                  "first_offset": 4, "last_timestamp_ms": WRITTEN_MS })]
    );
    assert_eq!(
        of(&all, "group"),
        [
            &json!({ "type": "group", "group": "readers", "kind": "classic", "state": "Empty", "protocol_type": "", "members": 0,
                  "offsets": 1, "pending_offsets": 0, "lag": 10 })
        ]
    );
    assert_eq!(
        of(&all, "committed_offset"),
        [&json!({ "type": "committed_offset", "group": "readers", "topic": "demo", "partition": 0, "offset": 80,
                  "leader_epoch": 0, "metadata": "mine", "commit_timestamp_ms": WRITTEN_MS, "expire_timestamp_ms": null, "lag": 10 })]
    );
}

#[test]
fn a_topic_and_a_partition() {
    let stopped = filled().stop();
    let topic = objects(&stopped, &["demo"]);
    assert_eq!((of(&topic, "topic").len(), of(&topic, "partition").len(), of(&topic, "directory").len()), (1, 2, 0));
    let partition = objects(&stopped, &["demo-0"]);
    let segments = of(&partition, "segment");
    assert_eq!(segments.len(), stopped.segments("demo", 0).len());
    assert_eq!((&segments[0]["base_offset"], segments[0]["batches"].as_u64().unwrap() > 1), (&json!(0), true));
    assert_eq!(segments[0]["end_offset"], segments[1]["base_offset"]);
    assert_eq!(of(&partition, "leader_epoch").len(), 1);
    let second = objects(&stopped, &["demo-1"]);
    let producer = of(&second, "producer")[0];
    assert_eq!((&producer["producer_id"], &producer["transaction_first_offset"]), (&json!(7), &json!(4)));
    // The folder of a partition will do as well.
    let run = doze([arg("inspect".as_ref()), "--json".as_ref(), arg(&stopped.partition("demo", 1))]);
    assert_eq!(run.objects(), second);

    let text = doze(["inspect", stopped.dir().to_str().unwrap()]).stdout;
    for wanted in ["\nLast stop:  clean\n", "\nTopics\nTOPIC ", "\nGroups\nGROUP ", "\nOpen transactions\n"] {
        assert!(text.contains(wanted), "{wanted:?} is not in {text}");
    }
    let text = doze(["inspect", stopped.dir().to_str().unwrap(), "demo"]).stdout;
    assert!(text.contains("\nConfigs:  retention.ms=-1 segment.bytes=2000\n"), "{text}");
    let text = doze(["inspect", stopped.dir().to_str().unwrap(), "demo-1"]).stdout;
    assert!(text.contains("\nLast stable offset:   4\n"), "{text}");
}

/// Large enough that not every batch is looked at, until that is asked for.
#[test]
fn estimates_say_that_they_are() {
    let data = Data::new();
    data.topic("demo", 1, &[]);
    let value = "x".repeat(3000);
    for _ in 0..200 {
        data.append("demo", 0, batch(&[(None, Some(value.as_str())); 2]));
    }
    let stopped = data.stop();
    let about = of(&objects(&stopped, &["demo-0"]), "partition")[0].clone();
    assert_eq!((&about["counts_exact"], &about["log_end_offset"]), (&json!(false), &json!(400)));
    let estimate = about["records"].as_i64().unwrap();
    assert!((380..=420).contains(&estimate), "{estimate}");
    let exact = of(&objects(&stopped, &["--count", "demo-0"]), "partition")[0].clone();
    assert_eq!(
        (&exact["counts_exact"], &exact["records"], &exact["batches"]),
        (&json!(true), &json!(400), &json!(200))
    );
    let text = doze(["inspect", stopped.dir().to_str().unwrap(), "demo-0"]).stdout;
    assert!(text.contains("\nRecords:              ~"), "{text}");
}

#[test]
fn after_a_kill_and_with_what_it_leaves() {
    let data = filled();
    let log = data.log("demo", 0);
    let (dir, end) = (log.dir(), log.offsets().end);
    drop(log);
    let stopped = data.crash();
    let torn = stopped.segments("demo", 0).pop().unwrap();
    let mut bytes = std::fs::read(&torn).unwrap();
    bytes.extend([7; 33]);
    std::fs::write(&torn, bytes).unwrap();
    std::fs::write(dir.join("flush-failed"), "").unwrap();
    std::fs::write(dir.join("00000000000000000000.log.deleted"), "").unwrap();
    std::fs::create_dir(stopped.dir().join(format!("gone-0.{:032x}-delete", 5))).unwrap();
    std::fs::create_dir(stopped.dir().join(std::ffi::OsStr::from_bytes(b"\xff"))).unwrap();
    let all = objects(&stopped, &[]);
    assert_eq!(of(&all, "directory")[0]["stop"], "unclean");
    let first = of(&all, "partition")[0];
    for (field, value) in [
        ("log_end_offset", json!(end)),
        ("tail_bytes", json!(33)),
        ("trusted", json!(false)),
        ("flush_failed", json!(true)),
        ("leftover_files", json!(1)),
    ] {
        assert_eq!(first[field], value, "{field}");
    }
    assert_eq!(of(&all, "partition")[1]["open_transactions"], 1, "without a snapshot the log is gone by");
    assert_eq!(of(&all, "leftover")[0]["kind"], "deleted");
    assert_eq!(of(&all, "foreign"), [&json!({ "type": "foreign", "name": "\u{fffd}", "directory": true })]);
    let text = doze(["inspect", stopped.dir().to_str().unwrap()]).stdout;
    assert!(text.contains("a flush failed (1); bytes behind the last batch (1)"), "{text}");
}

/// Indexes only say where to look: Apache Kafka's have room at their end while it runs, and some say nothing true.
#[test]
fn indexes_are_not_believed() {
    let data = Data::new();
    data.topic("demo", 1, &[]);
    let value = "x".repeat(3000);
    for _ in 0..100 {
        data.append("demo", 0, batch(&[(None, Some(value.as_str())); 2]));
    }
    let stopped = data.stop();
    let partition = || {
        let mut found = of(&objects(&stopped, &["demo-0"]), "partition")[0].clone();
        for about_the_files in ["disk_bytes", "records", "batches", "counts_exact", "codecs"] {
            found.as_object_mut().unwrap().remove(about_the_files).unwrap();
        }
        found
    };
    let before = partition();
    assert_eq!(before["log_end_offset"], 200);
    let index = files(&stopped.partition("demo", 0), ".index")[0].clone();
    let good = std::fs::read(&index).unwrap();
    assert!(good.len() > 80);
    for bad in [
        [&good[..], &[0; 4096]].concat(),
        vec![0; 4096],
        vec![],
        vec![0xff; 800],
        [&good[..8], &[0, 0, 0, 9, 0, 0, 0, 9]].concat(),
    ] {
        std::fs::write(&index, bad).unwrap();
        assert_eq!(partition(), before);
    }
}

#[test]
fn it_writes_nothing() {
    let stopped = filled().crash();
    let look = || {
        let mut found = Vec::new();
        let mut folders = vec![stopped.dir()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                let metadata = entry.metadata().unwrap();
                found.push((entry.path(), metadata.len(), metadata.modified().unwrap()));
                if metadata.is_dir() {
                    folders.push(entry.path());
                }
            }
        }
        found.sort();
        found
    };
    let before = look();
    objects(&stopped, &[]);
    objects(&stopped, &["--count", "demo-1"]);
    let run = doze([arg("dump-segment".as_ref()), "--all-files".as_ref(), arg(&stopped.partition("demo", 0))]);
    assert_eq!(run.code, 0);
    assert_eq!(look(), before);
}

#[test]
fn how_it_ends() {
    let data = filled();
    let dir = data.store().data_dir().to_owned();
    let run = doze([arg("inspect".as_ref()), arg(&dir)]);
    assert_eq!((run.code, run.stdout.as_str()), (3, ""), "{}", run.stderr);
    assert!(run.stderr.contains("is in use by another process"), "{}", run.stderr);
    let stopped = data.stop();

    let run = doze(["inspect", dir.to_str().unwrap(), "nosuch"]);
    assert!(run.code == 2 && run.stderr.contains("there is no topic and no partition \"nosuch\""), "{}", run.stderr);
    assert_eq!(doze(["inspect", "--no-such-flag"]).code, 2);
    let empty = tempfile::tempdir().unwrap();
    std::fs::write(empty.path().join("notes.txt"), "").unwrap();
    for wrong in [empty.path().to_owned(), empty.path().join("missing"), empty.path().join("notes.txt")] {
        let run = doze([arg("inspect".as_ref()), arg(&wrong)]);
        assert_eq!((run.code, run.stdout.as_str()), (4, ""), "{}", run.stderr);
    }
    let catalog = dir.join("meta.db");
    let good = std::fs::read(&catalog).unwrap();
    std::fs::write(&catalog, &good[..good.len() / 2]).unwrap();
    let run = doze(["inspect", "--json", dir.to_str().unwrap()]);
    assert!(
        run.code == 1 && run.stderr.contains("is damaged") && run.stderr.contains("doze recover"),
        "{}",
        run.stderr
    );
    assert_eq!(run.objects_of("directory")[0]["catalog_state"], "damaged");
    assert_eq!(run.objects_of("partition").len(), 3, "the folders are shown without it");
    std::fs::remove_file(&catalog).unwrap();
    let run = doze(["inspect", "--json", dir.to_str().unwrap()]);
    assert_eq!((run.code, &run.objects_of("directory")[0]["catalog_state"]), (1, &json!("missing")));
    let elsewhere = dir.parent().unwrap().join("elsewhere.db");
    std::fs::write(&elsewhere, &good).unwrap();
    let run = doze(["inspect", "--meta-db", elsewhere.to_str().unwrap(), dir.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    drop(stopped);
}

/// What a newer doze wrote is not guessed at.
#[test]
fn newer_formats_are_refused() {
    let kafka = tempfile::tempdir().unwrap();
    std::fs::write(kafka.path().join("meta.properties"), "version=9\ncluster.id=x\n").unwrap();
    let run = doze([arg("inspect".as_ref()), arg(kafka.path())]);
    assert!(run.code == 4 && run.stderr.contains("newer format"), "{}", run.stderr);
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let stopped = filled().stop();
    let mut child = command(["inspect", "--json", stopped.dir().to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), vec![]));
}

/// A partition that may not be read is told of, and the others are shown.
#[test]
fn files_that_may_not_be_read() {
    use std::os::unix::fs::PermissionsExt;
    let stopped = filled().stop();
    let path = stopped.segments("demo", 0)[0].clone();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::File::open(&path).is_ok() {
        eprintln!("SKIPPED files that may not be read: this user may read everything");
        return;
    }
    let run = doze(["inspect", "--json", stopped.dir().to_str().unwrap()]);
    assert_eq!(run.code, 1);
    assert!(run.objects_of("partition")[0]["problems"][0].as_str().unwrap().contains("Permission denied"));
    assert_eq!(run.objects_of("partition").len(), 3);
}
