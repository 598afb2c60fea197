//! One damage after the other.

use super::*;

/// What the log of `demo` 0 should have after damage that cost the batches that start at these offsets.
fn without(scene: &Scene, lost: &[i64]) -> Batchwise {
    let mut whole = scene.whole.clone();
    whole.get_mut(&("demo".to_owned(), 0)).unwrap().retain(|(base, _)| !lost.contains(base));
    whole
}

/// Damages a log, recovers and checks that just these batches are gone, and that what was removed is in quarantine.
fn check(scene: &Scene, context: &str, damage: impl FnOnce(&SimFileSystem), accept_loss: bool, lost: &[i64]) -> Plan {
    let sim = scene.copy();
    damage(&sim.fs);
    let before = sim.fs.image();
    let (plan, applied) = recover(&sim.env(), accept_loss).unwrap_or_else(|error| panic!("{context}: {error}"));
    assert!(!plan.is_empty(), "{context}: nothing was found");
    assert_kept(&sim.fs, &before, context);
    assert_eq!(applied.left_out, [0; 0], "{context}");
    assert_nothing_left(&sim.env(), context);
    assert!(served(&sim.env()) == without(scene, lost), "{context}: other batches than were to be expected");
    plan
}

/// Every byte that a log had before and has no more is in a quarantine folder whose manifest is there.
pub fn assert_kept(fs: &SimFileSystem, before: &BTreeMap<PathBuf, Option<Vec<u8>>>, context: &str) {
    let after = fs.image();
    // By file: position and bytes.
    let mut kept: BTreeMap<String, Vec<(usize, Vec<u8>)>> = BTreeMap::new();
    for (path, manifest) in after.iter().filter(|(path, _)| path.ends_with("manifest.jsonl")) {
        for line in std::str::from_utf8(manifest.as_ref().unwrap()).unwrap().lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let content = after[&path.with_file_name(line["kept"].as_str().unwrap())].as_ref().unwrap();
            assert_eq!(line["bytes"], content.len(), "{context}: {line}");
            assert_eq!(line["crc32c"], format!("{:08x}", crc32c::crc32c(content)), "{context}: {line}");
            let position = usize::try_from(line["position"].as_u64().unwrap()).unwrap();
            kept.entry(line["file"].as_str().unwrap().to_owned()).or_default().push((position, content.clone()));
        }
    }
    for (path, bytes) in before {
        let (Some(bytes), true) = (bytes, path.extension().is_some_and(|end| end == "log")) else { continue };
        let now = after.get(path).and_then(Option::as_ref);
        if now == Some(bytes) {
            continue;
        }
        let name = path.strip_prefix("data").unwrap().to_string_lossy().into_owned();
        let pieces = kept.get(&name).unwrap_or_else(|| panic!("{context}: nothing of {name} is kept"));
        if pieces.iter().any(|(_, content)| content == bytes) {
            continue;
        }
        // Piece by piece: what is kept and what is left make up what was there.
        let mut is_kept = vec![false; bytes.len()];
        for (position, content) in pieces {
            let range = *position..position + content.len();
            if bytes.get(range.clone()) == Some(content) {
                is_kept[range].fill(true);
            }
        }
        let gone = is_kept.iter().filter(|kept| **kept).count();
        assert!(gone > 0, "{context}: {name} has changed and nothing of it is kept");
        assert!(now.map_or(0, Vec::len) + gone >= bytes.len(), "{context}: bytes of {name} are nowhere");
    }
}

fn flip(fs: &SimFileSystem, path: &Path, position: usize) {
    assert!(fs.flip_bit(path, position as u64, 3), "{} {position}", path.display());
}

#[test]
fn whole_directories_are_left_as_they_are() {
    let scene = Scene::new(true);
    let sim = scene.copy();
    let before = sim.fs.image();
    let (plan, _) = recover(&sim.env(), true).unwrap();
    assert_eq!(plan.steps, []);
    assert_eq!(sim.fs.image(), before);
}

#[test]
fn an_unclean_stop_is_made_a_clean_one() {
    let scene = Scene::new(false);
    let plan = check(&scene, "unclean", |_| {}, false, &[]);
    assert!(plan.steps.iter().any(|step| step.action == Action::CleanMark));
    assert!(plan.steps.iter().all(|step| !step.loses));
}

#[test]
fn each_class_of_damage_to_a_batch_costs_no_other_one() {
    for clean in [true, false] {
        let scene = Scene::new(clean);
        let logs = scene.logs("demo-0");
        assert!(logs.len() > 3);
        for (place, log) in [("first", &logs[0]), ("sealed", &logs[1]), ("last", logs.last().unwrap())] {
            let batches = batches_of(&bytes_of(&scene.fs, log));
            assert!(batches.len() > 2, "{place} has {} batches", batches.len());
            let (start, end, base) = batches[1];
            // What a flip in these bytes costs. Base offset, length and magic can be put right.
            for (what, at, lost) in [
                ("base offset", start + 7, &[][..]),
                ("base offset, high", start + 1, &[]),
                ("length", start + 11, &[]),
                ("length, high", start + 9, &[]),
                ("magic", start + 16, &[]),
                ("checksum", start + 18, &[base]),
                ("attributes", start + 22, &[base]),
                ("last offset delta", start + 26, &[base]),
                ("base timestamp", start + 30, &[base]),
                ("producer id", start + 48, &[base]),
                ("record count", start + 60, &[base]),
                ("body", start + 75, &[base]),
                ("last byte", end - 1, &[base]),
            ] {
                let context = format!("{what} in the {place} segment, stopped {clean}");
                let plan = check(&scene, &context, |fs| flip(fs, log, at), true, lost);
                let action = if lost.is_empty() { Action::MendBatch } else { Action::TakeOut };
                let step = plan.steps.iter().find(|step| step.action == action);
                let step = step.unwrap_or_else(|| panic!("{context}: {:#?}", plan.steps));
                assert_eq!((step.loses, step.position), (!lost.is_empty(), Some(start as u64)), "{context}");
                if let [lost] = lost {
                    assert_eq!(step.offsets.unwrap().0, *lost, "{context}");
                }
            }
        }
    }
}

#[test]
fn what_loses_records_is_only_done_if_that_is_accepted() {
    let scene = Scene::new(true);
    let log = scene.logs("demo-0")[1].clone();
    let (start, _, base) = batches_of(&bytes_of(&scene.fs, &log))[1];
    let sim = scene.copy();
    flip(&sim.fs, &log, start + 80);
    let before = sim.fs.image();
    let (plan, applied) = recover(&sim.env(), false).unwrap();
    assert_eq!(plan.losing().count(), 1);
    assert_eq!(plan.losing().next().unwrap().offsets.unwrap().0, base);
    assert_eq!(applied, Applied::default(), "nothing else is to be done");
    assert_eq!(sim.fs.image(), before);
    check(&scene, "accepted", |fs| flip(fs, &log, start + 80), true, &[base]);
}

#[test]
fn a_torn_tail_is_cut_without_a_loss_after_an_unclean_stop_only() {
    for clean in [true, false] {
        let scene = Scene::new(clean);
        let log = scene.logs("demo-0").last().unwrap().clone();
        let bytes = bytes_of(&scene.fs, &log);
        let (start, _, base) = *batches_of(&bytes).last().unwrap();
        for (what, torn) in [
            ("cut", bytes[..start + 70].to_vec()),
            ("zeros", [&bytes[..start], &[0; 500][..]].concat()),
            ("half zeros", [&bytes[..start + 65], &[0; 500][..]].concat()),
            ("few bytes", bytes[..start + 5].to_vec()),
        ] {
            let context = format!("{what}, stopped {clean}");
            let plan = check(&scene, &context, |fs| put(fs, &log, &torn), clean, &[base]);
            let step = plan.steps.iter().find(|step| step.action == Action::CutTail);
            let step = step.unwrap_or_else(|| panic!("{context}: {:#?}", plan.steps));
            assert_eq!((step.loses, step.position), (clean, Some(start as u64)), "{context}");
        }
    }
}

#[test]
fn files_that_were_swapped_renamed_or_doubled_lose_nothing() {
    let scene = Scene::new(true);
    let logs = scene.logs("demo-0");
    let (one, two, three) = (logs[0].clone(), logs[1].clone(), logs[2].clone());
    let swap = |a: &Path, b: &Path, fs: &SimFileSystem| {
        let (left, right) = (bytes_of(fs, a), bytes_of(fs, b));
        put(fs, a, &right);
        put(fs, b, &left);
    };
    check(&scene, "neighbours", |fs| swap(&one, &two, fs), false, &[]);
    check(&scene, "with one between", |fs| swap(&one, &three, fs), false, &[]);
    check(&scene, "last with first", |fs| swap(&one, logs.last().unwrap(), fs), false, &[]);
    let to =
        |base: i64| two.with_file_name(crate::storage::names::segment_file(base, crate::storage::names::FileKind::Log));
    let rename = |from: &Path, to: &Path, fs: &SimFileSystem| {
        fs.rename(from, to).unwrap();
        fs.sync_dir(to.parent().unwrap()).unwrap();
    };
    check(&scene, "renamed up", |fs| rename(&two, &to(4000), fs), false, &[]);
    check(&scene, "doubled", |fs| put(fs, &to(4000), &bytes_of(fs, &two)), false, &[]);
    check(&scene, "doubled in between", |fs| put(fs, &to(3), &bytes_of(fs, &one)), false, &[]);
    let batches = batches_of(&bytes_of(&scene.fs, &two));
    let (start, end, _) = batches[1];
    let twice = |fs: &SimFileSystem| {
        let bytes = bytes_of(fs, &two);
        put(fs, &two, &[&bytes[..end], &bytes[start..]].concat());
    };
    let plan = check(&scene, "a batch twice", twice, false, &[]);
    assert!(plan.steps.iter().any(|step| step.action == Action::TakeOutRepeated), "{:#?}", plan.steps);
}

#[test]
fn what_can_be_made_anew_is() {
    let scene = Scene::new(true);
    let (mut looked_at, mut repaired) = (0, 0);
    for suffix in [".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint", "partition.metadata"] {
        for path in scene.files("demo-0", suffix) {
            let bytes = bytes_of(&scene.fs, &path);
            if bytes.is_empty() {
                continue;
            }
            looked_at += 1;
            let context = |what| format!("{what} of {}", path.display());
            let damages: [(&str, Vec<u8>); 4] = [
                (
                    "a flip",
                    bytes.iter().enumerate().map(|(at, b)| if at == bytes.len() / 2 { b ^ 16 } else { *b }).collect(),
                ),
                ("a cut", bytes[..bytes.len() - 1].to_vec()),
                ("zeros", vec![0; bytes.len()]),
                ("garbage", bytes.iter().map(|b| b ^ 0x5a).collect()),
            ];
            for (what, damaged) in damages {
                let sim = scene.copy();
                put(&sim.fs, &path, &damaged);
                let dir = open(&sim.env());
                let found = look(&dir).findings.iter().any(|finding| finding.is_damage());
                drop(dir);
                // A number that was flipped may be another that can be as well: then there is nothing to be found.
                if found {
                    repaired += 1;
                    check(&scene, &context(what), |fs| put(fs, &path, &damaged), false, &[]);
                }
            }
        }
    }
    assert!(looked_at > 8 && repaired > 3 * looked_at, "{looked_at} {repaired}");
}

#[test]
fn a_flush_that_failed_is_made_up_for() {
    for clean in [true, false] {
        let scene = Scene::new(clean);
        let mark = |fs: &SimFileSystem| put(fs, &PathBuf::from(DATA).join("demo-0/flush-failed"), b"");
        let plan = check(&scene, "flush-failed", mark, false, &[]);
        assert!(plan.steps.iter().any(|step| step.action == Action::ClearFlushFailed), "{:#?}", plan.steps);
    }
}

/// Where a producer goes on after the repair is where it was.
#[test]
fn producers_go_on_where_they_were() {
    let scene = Scene::new(true);
    let logs = scene.logs("demo-0");
    let batches = batches_of(&bytes_of(&scene.fs, &logs[1]));
    let sim = scene.copy();
    flip(&sim.fs, &logs[1], batches[1].0 + 80);
    for snapshot in scene.files("demo-0", ".snapshot") {
        put(&sim.fs, &snapshot, b"nonsense");
    }
    recover(&sim.env(), true).unwrap();
    let store = Store::open(sim.env(), store_config()).unwrap();
    let id = store.topics().by_name("demo").unwrap().id;
    let log = store.partition(id, 0).unwrap();
    let producers = log.producers();
    assert_eq!(producers.iter().map(|p| (p.producer_id, p.last_sequence)).collect::<Vec<_>>(), [(5, 15), (6, 31)]);
    let next = log.append(batch(idempotent(5, 16, false), 1, 99), 0).unwrap();
    let again = log.append(batch(idempotent(5, 16, false), 1, 99), 0).unwrap();
    assert_eq!(next.first_offset, again.first_offset, "the second is known as the first");
    log.append(batch(idempotent(5, 18, false), 1, 99), 0).unwrap_err();
}
