//! `doze verify` as it is run: what it prints, and how it ends.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::corpus::{Pristine, batches, copy_tree, flip};
use crate::make::{Data, batch};
use crate::run::{arg, command, doze};

/// The fields of an object, sorted.
fn fields(object: &Value) -> Vec<&str> {
    let mut fields: Vec<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    fields
}

#[test]
fn a_sound_directory_ends_with_0() {
    let pristine = Pristine::clean();
    let dir = pristine.path();
    let run = doze(["verify".as_ref(), arg(&dir)]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{}", run.stdout);
    assert!(run.stdout.contains("Result: no damage.") && run.stdout.contains("stopped cleanly"), "{}", run.stdout);
    assert!(run.stdout.contains("Not checked: the records inside of batches"), "{}", run.stdout);
    let deep = doze(["verify".as_ref(), arg(&dir), "--deep".as_ref(), "--jobs".as_ref(), "3".as_ref()]);
    assert!(deep.code == 0 && !deep.stdout.contains("Not checked"), "{}", deep.stdout);
    let quick = doze(["verify".as_ref(), arg(&dir), "--quick".as_ref()]);
    assert!(quick.code == 0 && quick.stdout.contains("Not checked: checksums"), "{}", quick.stdout);
}

#[test]
fn damage_ends_with_1_and_names_partition_offsets_and_command() {
    let copy = Pristine::clean().copy();
    let all = batches(&copy.path(), "plain-0");
    let bad = &all[3];
    flip(&bad.file, bad.position + 70);
    let dir = copy.path();
    let run = doze(["verify".as_ref(), arg(&dir)]);
    assert_eq!(run.code, 1, "{}", run.stdout);
    let offsets = format!("{}-{}", bad.offsets.0, bad.offsets.1 - 1);
    let line = run.stdout.lines().find(|line| line.starts_with("plain-0")).unwrap();
    assert!(line.contains(&offsets) && line.contains("LOST") && line.contains("bad-checksum"), "{line}");
    assert!(run.stdout.contains("Result: records are lost (plain-0)."), "{}", run.stdout);
    let command = format!("doze recover --dry-run {}", dir.display());
    assert!(run.stdout.trim_end().ends_with(&command), "{}", run.stdout);
    assert_eq!(run.stderr, "doze: records are lost (plain-0)\n");
    // Of another topic nothing is lost.
    let other = doze(["verify".as_ref(), arg(&dir), "--topic".as_ref(), "txn".as_ref()]);
    assert_eq!(other.code, 0, "{}", other.stdout);
    let unknown = doze(["verify".as_ref(), arg(&dir), "--topic".as_ref(), "nothing".as_ref()]);
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);
    let folder = doze(["verify".as_ref(), arg(&dir.join("plain-0"))]);
    assert_eq!(folder.code, 1);
    let folder = doze(["verify".as_ref(), arg(&dir.join("txn-0"))]);
    assert_eq!(folder.code, 0, "{}", folder.stdout);
}

#[test]
fn json_has_the_fields_that_are_documented() {
    let copy = Pristine::clean().copy();
    let all = batches(&copy.path(), "plain-0");
    let bad = &all[3];
    flip(&bad.file, bad.position + 70);
    fs::write(copy.path().join("notes"), "").unwrap();
    let dir = copy.path();
    let run = doze(["verify".as_ref(), arg(&dir), "--json".as_ref(), "--topic".as_ref(), "plain".as_ref()]);
    assert_eq!(run.code, 1);
    let findings = run.objects_of("finding");
    let lost: Vec<&Value> = findings.iter().filter(|finding| finding["consequence"] == "lost").collect();
    let mut expected = json!({
        "type": "finding", "topic": "plain", "partition": 0, "file": "plain-0/00000000000000000000.log",
        "position": bad.position, "bytes": bad.size, "first_offset": bad.offsets.0, "next_offset": bad.offsets.1,
        "kind": "bad-checksum", "consequence": "lost", "repair": "recover",
    });
    expected["detail"] = lost[0]["detail"].clone();
    assert_eq!(lost, [&expected]);
    let foreign = findings.iter().find(|finding| finding["kind"] == "foreign").unwrap();
    assert_eq!((&foreign["topic"], &foreign["position"]), (&Value::Null, &Value::Null));
    assert_eq!((&foreign["file"], &foreign["consequence"]), (&json!("notes"), &json!("harmless")));
    let partitions = run.objects_of("partition");
    assert_eq!(
        fields(&partitions[0]),
        [
            "batches",
            "bytes",
            "damaged",
            "findings",
            "log_end_offset",
            "log_start_offset",
            "partition",
            "records",
            "segments",
            "topic",
            "topic_id",
            "type"
        ]
    );
    assert_eq!((&partitions[0]["log_end_offset"], &partitions[0]["damaged"]), (&json!(120), &json!(true)));
    assert_eq!((partitions.len(), &partitions[0]["batches"]), (1, &json!(39)));
    let unchecked = run.objects_of("unchecked");
    assert_eq!(fields(&unchecked[0]), ["file", "partition", "topic", "type", "what"]);
    let summary = run.objects().pop().unwrap();
    assert_eq!(
        fields(&summary),
        [
            "batches",
            "bytes",
            "cancelled",
            "clean_stop",
            "command",
            "damaged",
            "dir",
            "findings",
            "level",
            "origin",
            "partitions",
            "records",
            "segments",
            "type"
        ]
    );
    assert_eq!(
        (&summary["origin"], &summary["level"], &summary["clean_stop"]),
        (&json!("doze"), &json!("default"), &json!(true))
    );
    assert_eq!((&summary["damaged"], &summary["command"]), (&json!(true), &json!("doze recover --dry-run")));
    assert_eq!((&summary["findings"]["lost"], &summary["findings"]["harmless"]), (&json!(1), &json!(1)));
}

#[test]
fn what_cannot_be_looked_at_ends_with_2_3_or_4() {
    let data = Data::new();
    data.topic("demo", 1, &[]);
    data.append("demo", 0, batch(&[(None, Some("x"))]));
    let dir = data.store().data_dir().to_owned();
    let run = doze(["verify".as_ref(), arg(&dir)]);
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert!(run.stderr.contains("in use"), "{}", run.stderr);
    drop(data.stop());
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(doze(["verify".as_ref(), arg(empty.path())]).code, 4);
    assert_eq!(doze(["verify".as_ref(), arg(&empty.path().join("nothing"))]).code, 4);
    fs::write(empty.path().join("meta.properties"), "version=9\n").unwrap();
    let newer = doze(["verify".as_ref(), arg(empty.path())]);
    assert!(newer.code == 4 && newer.stderr.contains("newer"), "{}", newer.stderr);
    assert_eq!(doze(["verify", "--quick", "--deep"]).code, 2);
}

#[test]
fn a_folder_copied_out_of_its_directory_will_do() {
    let pristine = Pristine::clean();
    let alone = tempfile::tempdir().unwrap();
    copy_tree(&pristine.path().join("plain-0"), &alone.path().join("plain-0"));
    let run = doze(["verify".as_ref(), arg(&alone.path().join("plain-0"))]);
    assert_eq!(run.code, 0, "{}", run.stdout);
    assert!(run.stdout.contains("by itself"), "{}", run.stdout);
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let copy = Pristine::clean().copy();
    for n in 0..3000 {
        fs::write(copy.path().join(format!("a foreign file with a name that is long enough {n}")), "").unwrap();
    }
    let mut child =
        command(["verify".as_ref(), arg(&copy.path())]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(0), ""));
}
