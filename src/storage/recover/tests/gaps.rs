//! Offsets that are lost: an empty batch stands for them, whatever was around them.

use super::*;
use crate::record::{BatchHeader, TimestampType};
use crate::storage::names::{FileKind, segment_file};

/// The headers of the batches that stand for what is lost, of `demo` 0.
fn emptied(fs: &SimFileSystem) -> Vec<BatchHeader> {
    let image = fs.image();
    let logs = image
        .iter()
        .filter(|(path, _)| path.starts_with("data/demo-0") && path.extension().is_some_and(|end| end == "log"));
    let batches = logs.flat_map(|(_, bytes)| {
        let bytes = bytes.clone().unwrap();
        Batches::new(&bytes).map(|batch| *batch.header()).collect::<Vec<_>>()
    });
    batches.filter(|header| header.records_count == 0).collect()
}

fn spans(fs: &SimFileSystem) -> Vec<(i64, i64)> {
    emptied(fs).iter().map(|header| (header.base_offset, header.last_offset() + 1)).collect()
}

fn remove(fs: &SimFileSystem, path: &Path) {
    fs.remove_file(path).unwrap();
    fs.sync_dir(path.parent().unwrap()).unwrap();
}

#[test]
fn an_empty_batch_has_just_the_offsets_that_are_lost() {
    let scene = Scene::new(true);
    let log = scene.logs("demo-0")[1].clone();
    let batches = batches_of(&bytes_of(&scene.fs, &log));
    let sim = scene.copy();
    for at in [2, 3, 5] {
        assert!(sim.fs.flip_bit(&log, batches[at].0 as u64 + 80, 3));
    }
    let before = Batches::new(&bytes_of(&scene.fs, &log)).nth(1).map(|batch| *batch.header()).unwrap();
    recover(&sim.env(), true).unwrap();
    assert_nothing_left(&sim.env(), "three batches");
    assert_eq!(spans(&sim.fs), [(batches[2].2, batches[4].2), (batches[5].2, batches[6].2)]);
    let header = emptied(&sim.fs)[0];
    assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (-1, -1, -1));
    assert_eq!((header.max_timestamp, header.partition_leader_epoch), (before.max_timestamp, 0));
    assert_eq!((header.timestamp_type(), header.is_control()), (TimestampType::CreateTime, false));
    served(&sim.env());
}

#[test]
fn a_gap_that_is_there_already_is_filled_if_that_is_accepted() {
    let scene = Scene::new(true);
    let log = scene.logs("demo-0")[1].clone();
    let bytes = bytes_of(&scene.fs, &log);
    let (start, end, base) = batches_of(&bytes)[2];
    let next = batches_of(&bytes)[3].2;
    let sim = scene.copy();
    put(&sim.fs, &log, &[&bytes[..start], &bytes[end..]].concat());
    let (plan, _) = recover(&sim.env(), false).unwrap();
    let step = plan.steps.iter().find(|step| step.action == Action::FillGap).unwrap();
    assert_eq!((step.loses, step.offsets), (true, Some((base, next))));
    assert_eq!(spans(&sim.fs), [], "it was not accepted");
    recover(&sim.env(), true).unwrap();
    assert_nothing_left(&sim.env(), "a gap");
    assert_eq!(spans(&sim.fs), [(base, next)]);
    let image = sim.fs.image();
    let manifest = image.iter().rfind(|(path, _)| path.ends_with("manifest.jsonl")).unwrap().1.clone().unwrap();
    let said = format!("\"offsets\":[{base},{next}]");
    assert!(String::from_utf8(manifest).unwrap().contains(&said), "the manifest names {said}");
}

#[test]
fn log_files_that_are_gone_leave_no_gap() {
    for clean in [true, false] {
        let scene = Scene::new(clean);
        let logs = scene.logs("demo-0");
        let base = |at: usize| batches_of(&bytes_of(&scene.fs, &logs[at]))[0].2;
        let end = scene.whole[&("demo".to_owned(), 0)].last().unwrap().0;
        let last = logs.len() - 1;
        let first_two = |fs: &SimFileSystem| logs[..2].iter().for_each(|log| remove(fs, log));
        let check = |context: &str, damage: &dyn Fn(&SimFileSystem), spans_then: &[(i64, i64)]| {
            let sim = scene.copy();
            damage(&sim.fs);
            recover(&sim.env(), true).unwrap_or_else(|error| panic!("{context}: {error}"));
            assert_nothing_left(&sim.env(), context);
            assert_eq!(spans(&sim.fs), spans_then, "{context}");
            served(&sim.env())[&("demo".to_owned(), 0)].clone()
        };
        let whole = &scene.whole[&("demo".to_owned(), 0)];
        let without = |from: i64, to: i64| -> Vec<_> {
            whole.iter().filter(|(base, _)| !(from..to).contains(base)).cloned().collect()
        };
        let left = check("one in the middle", &|fs| remove(fs, &logs[2]), &[(base(2), base(3))]);
        assert!(left == without(base(2), base(3)));
        let left =
            check("two in the middle", &|fs| logs[2..4].iter().for_each(|log| remove(fs, log)), &[(base(2), base(4))]);
        assert!(left == without(base(2), base(4)));
        // The catalog says from now on that the log starts where it does.
        let left = check("the first", &first_two, &[]);
        assert!(left == without(0, base(2)));
        // Its snapshot says how far the log went.
        let lost: &[(i64, i64)] = if clean { &[(base(last), end + 1)] } else { &[] };
        let left = check("the last", &|fs| put(fs, &logs[last], b""), lost);
        assert!(left == without(base(last), i64::MAX));
    }
}

/// Only segments whose names are that far from each other have such a gap between them.
#[test]
fn a_gap_that_no_segment_can_have_is_filled_with_more_and_one_that_cannot_be_is_left() {
    let scene = Scene::new(true);
    let logs = scene.logs("demo-0");
    let bytes = bytes_of(&scene.fs, &logs[2]);
    for (distance, filled) in [(1i64 << 32, true), (1 << 40, false)] {
        let sim = scene.copy();
        logs[2..].iter().for_each(|log| sim.fs.remove_file(log).unwrap());
        scene.files("demo-0", ".snapshot").iter().for_each(|snapshot| sim.fs.remove_file(snapshot).unwrap());
        let far = logs[2].with_file_name(segment_file(distance, FileKind::Log));
        // The offsets are in no checksum.
        let mut moved = bytes.clone();
        for (start, _, base) in batches_of(&bytes) {
            moved[start..start + 8].copy_from_slice(&(base + distance - batches_of(&bytes)[0].2).to_be_bytes());
        }
        put(&sim.fs, &far, &moved);
        let from = batches_of(&bytes)[0].2;
        recover(&sim.env(), true).unwrap();
        let spans = spans(&sim.fs);
        assert_eq!(!spans.is_empty(), filled, "{spans:?}");
        if filled {
            assert_nothing_left(&sim.env(), "far");
            assert_eq!((spans[0].0, spans.last().unwrap().1), (from, distance));
            assert!(spans.len() > 1 && spans.windows(2).all(|pair| pair[0].1 == pair[1].0), "{spans:?}");
            served(&sim.env());
        }
    }
}
