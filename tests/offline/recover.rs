//! `doze recover`: over the corpus of damaged directories, and as its users run it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use doze::coordinator::transactions::{Metadata, State};
use doze::storage::catalog::{ConfigMap, Mutation, ResourceType};
use doze::storage::log::{Isolation, LogConfig};
use doze::storage::offline::DataDir;
use doze::storage::recover::{self, Options, Plan};
use doze::storage::store::{LogConfigOf, Store, StoreConfig};
use doze::storage::verify::{self, Finding, Kind, Level, Report};
use doze::sys::Env;

use crate::corpus::{self, Pristine, batches, change, copy_tree, flip};
use crate::make::{Data, batch, once_free, open_to_write};
use crate::run::{arg, command, doze};

/// Every batch that is served, by partition: its first offset, that after its last, and its bytes.
type Served = BTreeMap<String, Vec<(i64, i64, Vec<u8>)>>;

fn log_config() -> LogConfigOf {
    Arc::new(|configs: &ConfigMap| LogConfig {
        segment_bytes: configs.get("segment.bytes").map_or(1 << 20, |value| value.parse().unwrap()),
        index_interval_bytes: configs.get("index.interval.bytes").map_or(100, |value| value.parse().unwrap()),
        retention_ms: -1,
        ..LogConfig::default()
    })
}

/// Reads everything as a broker would. Partitions that cannot be opened are left out.
fn served(dir: &Path) -> Served {
    let config = StoreConfig { data_dir: dir.into(), meta_db: None, log_config: log_config() };
    let store = once_free(|| Store::open(Env::real(), config.clone()));
    let mut all = Served::new();
    for topic in store.topics().iter() {
        for partition in 0..topic.partitions {
            let Ok(log) = store.partition(topic.id, partition) else { continue };
            let offsets = log.offsets();
            let (mut next, mut batches) = (offsets.start, Vec::new());
            while next < offsets.end {
                let read = log.read(next, 1 << 20, true, Isolation::ReadUncommitted).unwrap();
                let bytes = read.range.expect("there is more").read().unwrap();
                for batch in doze::record::Batches::new(&bytes) {
                    batch.verify_crc().unwrap();
                    let header = batch.header();
                    // What stands for offsets that are lost.
                    if header.records_count > 0 {
                        batches.push((header.base_offset, header.last_offset() + 1, batch.bytes().to_vec()));
                    }
                    next = header.last_offset() + 1;
                }
            }
            all.insert(format!("{}-{partition}", topic.name), batches);
        }
    }
    store.close().unwrap();
    all
}

fn plan(dir: &DataDir) -> (Plan, Report) {
    let options = verify::Options { level: Level::Default, jobs: 1, wanted: None };
    let report = verify::verify(dir, &options, &verify::Progress::new());
    (recover::plan(dir, &report, &mut |_| {}).unwrap(), report)
}

/// Recovers until there is nothing to do. Then nothing is found any more but what was said to be left.
fn recovered(path: &Path, context: &str) {
    for round in 0..5 {
        let dir = open_to_write(path);
        let (plan, report) = plan(&dir);
        if plan.steps.is_empty() {
            let is_left = |finding: &Finding| plan.left.iter().any(|left| left.finding == *finding);
            let is_unsaid = |finding: &&Finding| finding.is_damage() && !is_left(finding);
            let unsaid: Vec<&Finding> = report.findings.iter().filter(is_unsaid).collect();
            assert!(unsaid.is_empty(), "{context}: {unsaid:#?}");
            let gone = report.findings.iter().find(|finding| finding.kind == Kind::MissingOffsets);
            assert!(gone.is_none(), "{context}: {gone:?}");
            return;
        }
        assert!(round < 4, "{context}: there is always more to do: {:#?}", plan.steps);
        let options = Options { accept_loss: true, label: format!("r{round}"), log_config: log_config() };
        recover::apply(&dir, &plan, &options, &mut |_| {}).unwrap_or_else(|error| panic!("{context}: {error}"));
    }
}

/// What was good before is good after, but for what the damage hit.
fn over(pristine: &Pristine, cases: Vec<corpus::Case>) {
    let whole = {
        let copy = pristine.copy();
        recovered(&copy.path(), "whole");
        served(&copy.path())
    };
    for case in &cases {
        let copy = pristine.copy();
        (case.damage)(&copy.path());
        recovered(&copy.path(), &case.name);
        let left = served(&copy.path());
        let hit = case.expected.offsets;
        for (partition, batches) in &whole {
            let own = case.expected.partition == Some(partition.as_str());
            let gone = matches!(
                case.expected.kind,
                Kind::MissingPartition | Kind::EmptyPartition | Kind::TopicId | Kind::TornTail
            );
            if own && gone && hit.is_none() && case.expected.kind != Kind::TornTail {
                continue;
            }
            let left = left.get(partition).unwrap_or_else(|| panic!("{}: {partition} is not served", case.name));
            for (at, batch) in batches.iter().enumerate() {
                let was_hit = own && hit.is_some_and(|(from, to)| batch.0 < to && from < batch.1);
                // Of a tail that is torn the last batch may be gone.
                let torn = own && case.expected.kind == Kind::TornTail && at + 1 == batches.len();
                assert!(
                    was_hit || torn || left.contains(batch),
                    "{}: the batch at {} of {partition} is lost",
                    case.name,
                    batch.0
                );
            }
        }
    }
}

#[test]
fn of_each_damage_in_the_corpus_no_good_batch_is_lost_and_a_second_run_finds_nothing_to_do() {
    let pristine = Pristine::clean();
    let cases = corpus::cases(&pristine);
    assert!(cases.len() > 60, "{}", cases.len());
    over(&pristine, cases);
}

#[test]
fn nor_after_a_kill() {
    let pristine = Pristine::killed();
    over(&pristine, corpus::killed_cases(&pristine));
}

fn snapshot_of(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(snapshot_of(&path))
        } else {
            drop(all.insert(path.clone(), fs::read(path).unwrap()))
        }
    }
    all
}

/// A copy with a flipped bit in the body of a batch in the middle of `plain-0`, and that batch.
fn damaged(pristine: &Pristine) -> (corpus::Copy, corpus::At) {
    let copy = pristine.copy();
    let batch = batches(&copy.path(), "plain-0").swap_remove(6);
    flip(&batch.file, batch.position + 90);
    (copy, batch)
}

#[test]
fn a_dry_run_and_a_run_without_a_terminal_change_nothing() {
    let (copy, batch) = damaged(&Pristine::clean());
    let before = snapshot_of(&copy.path());
    let run = doze(["recover".as_ref(), "--dry-run".as_ref(), "--json".as_ref(), arg(&copy.path())]);
    assert_eq!(run.code, 1, "{run:?}");
    let steps = run.objects_of("step");
    assert_eq!(steps.len(), 1, "{run:?}");
    let step = &steps[0];
    let file = format!("plain-0/{}", batch.file.file_name().unwrap().to_str().unwrap());
    assert_eq!(step["round"], 1);
    assert_eq!((&step["topic"], &step["partition"]), (&"plain".into(), &0.into()));
    assert_eq!((&step["action"], &step["file"]), (&"take-out".into(), &file.into()));
    assert_eq!((&step["position"], &step["bytes"]), (&batch.position.into(), &batch.size.into()));
    assert_eq!(step["offsets"], serde_json::json!([batch.offsets.0, batch.offsets.1]));
    assert_eq!((&step["loses"], &step["done"]), (&true.into(), &serde_json::Value::Null));
    assert!(step["detail"].is_string());
    let summary = &run.objects_of("recover-summary")[0];
    assert_eq!((&summary["dry_run"], &summary["origin"]), (&true.into(), &"doze".into()));
    assert_eq!(
        (&summary["planned"], &summary["done"], &summary["needs_accept_loss"]),
        (&1.into(), &0.into(), &1.into())
    );
    assert_eq!((&summary["left"], &summary["stopped_clean"]), (&0.into(), &serde_json::Value::Null));

    let run = doze(["recover".as_ref(), arg(&copy.path())]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("nothing was changed: there is no terminal to ask on; --yes"), "{}", run.stderr);
    assert!(run.stdout.contains("take-out"), "{}", run.stdout);
    let named = format!("offsets {}..{} of plain-0 would be lost", batch.offsets.0, batch.offsets.1 - 1);
    assert!(run.stdout.contains(&named), "{named}: {}", run.stdout);
    assert!(snapshot_of(&copy.path()) == before, "a byte was changed");
}

#[test]
fn what_loses_records_needs_to_be_accepted_and_is_kept() {
    let (copy, batch) = damaged(&Pristine::clean());
    let bytes =
        fs::read(&batch.file).unwrap()[batch.position as usize..(batch.position + batch.size) as usize].to_vec();
    let before = snapshot_of(&copy.path());
    let run = doze(["recover".as_ref(), "--yes".as_ref(), arg(&copy.path())]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("1 step loses records and was not taken; --accept-loss takes it"), "{}", run.stderr);
    assert!(snapshot_of(&copy.path()) == before, "a byte was changed");

    let run =
        doze(["recover", "--yes", "--accept-loss", "--json"].map(AsRef::as_ref).into_iter().chain([arg(&copy.path())]));
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.objects_of("step").iter().all(|step| step["done"] == true), "{run:?}");
    let kept = &run.objects_of("kept")[0];
    let folder = PathBuf::from(kept["path"].as_str().unwrap());
    assert!(folder.starts_with(copy.path()) && kept["pieces"].as_u64() >= Some(1), "{kept}");
    let manifest = fs::read_to_string(folder.join("manifest.jsonl")).unwrap();
    let line = manifest.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let line = line.into_iter().find(|line| line["why"] == "take-out").unwrap();
    assert_eq!(line["offsets"], serde_json::json!([batch.offsets.0, batch.offsets.1]));
    assert_eq!((&line["position"], &line["bytes"]), (&batch.position.into(), &batch.size.into()));
    assert!(fs::read(folder.join(line["kept"].as_str().unwrap())).unwrap() == bytes);
    let summary = &run.objects_of("recover-summary")[0];
    assert_eq!(
        (&summary["done_with_loss"], &summary["stopped_clean"], &summary["left"]),
        (&1.into(), &true.into(), &0.into())
    );

    let again = doze(["recover".as_ref(), "--yes".as_ref(), arg(&copy.path())]);
    assert_eq!(again.code, 0, "{again:?}");
    assert!(again.stdout.contains("there is nothing to do"), "{}", again.stdout);
    let verified = doze(["verify".as_ref(), arg(&copy.path())]);
    assert_eq!(verified.code, 0, "{verified:?}");
    let offsets = format!("{}-{} of plain-0", batch.offsets.0, batch.offsets.1 - 1);
    let said = format!("1 empty batch is in the place of what a recovery took out ({offsets} for one)");
    assert!(verified.stdout.contains(&said), "{}", verified.stdout);
    let verified = doze(["verify".as_ref(), "--json".as_ref(), arg(&copy.path())]);
    let finding = &verified.objects_of("finding")[0];
    assert_eq!((&finding["kind"], &finding["consequence"]), (&"emptied".into(), &"harmless".into()));
    assert_eq!((&finding["first_offset"], &finding["next_offset"]), (&batch.offsets.0.into(), &batch.offsets.1.into()));
    let left = served(&copy.path());
    assert!(!left["plain-0"].iter().any(|other| other.0 == batch.offsets.0));
    assert!(left["plain-0"].iter().any(|other| other.0 == batch.offsets.1), "the one after it is at its offset");
}

#[test]
fn a_copy_is_repaired_and_the_original_stays_as_it_is() {
    let (copy, batch) = damaged(&Pristine::killed());
    let before = snapshot_of(&copy.path());
    let to = copy.path().with_file_name("repaired");
    let args = |to: &Path| {
        let mut args: Vec<std::ffi::OsString> = ["recover", "--yes", "--accept-loss", "--to"].map(Into::into).into();
        args.extend([to.into(), copy.path().into()]);
        args
    };
    let run = doze(args(&to));
    assert_eq!(run.code, 0, "{run:?}");
    assert!(snapshot_of(&copy.path()) == before, "the original has changed");
    assert!(!served(&to)["plain-0"].iter().any(|other| other.0 == batch.offsets.0));
    let run = doze(args(&to));
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("is not empty; a copy goes into a new or an empty directory"), "{}", run.stderr);
}

#[test]
fn a_catalog_is_made_anew_and_what_it_lacks_is_said() {
    let copy = Pristine::clean().copy();
    fs::remove_file(copy.path().join("meta.db")).unwrap();
    let run = doze(["recover", "--yes", "--json"].map(AsRef::as_ref).into_iter().chain([arg(&copy.path())]));
    assert_eq!(run.code, 0, "{run:?}");
    let rebuilt = &run.objects_of("rebuilt-catalog")[0];
    let names: Vec<&str> =
        rebuilt["topics"].as_array().unwrap().iter().map(|topic| topic["topic"].as_str().unwrap()).collect();
    assert_eq!(names, ["empty", "keys", "one", "plain", "txn"]);
    assert!(rebuilt["topics"][0]["id"].is_string() && rebuilt["topics"][0]["partitions"] == 1);
    assert!(rebuilt["next_producer_id"].as_i64() > Some(51));
    assert_eq!(rebuilt["left_out"], serde_json::json!([]));
    assert!(rebuilt["not_rebuilt"].as_str().unwrap().contains("committed offsets"));
    assert!(rebuilt["open_transactions"].is_array());
    assert_eq!(served(&copy.path())["plain-0"].len(), 40);
}

#[test]
fn what_can_be_read_of_a_damaged_catalog_is_taken_over_and_said() {
    let copy = Pristine::clean().copy();
    let path = copy.path().join("meta.db");
    // How large its pages are, as its header says.
    change(&path, |bytes| bytes[13] ^= 1);
    let dry = doze(["recover".as_ref(), "--dry-run".as_ref(), arg(&copy.path())]);
    assert!(dry.stdout.contains("and all that it has"), "{dry:?}");
    let run =
        doze(["recover", "--yes", "--accept-loss", "--json"].map(AsRef::as_ref).into_iter().chain([arg(&copy.path())]));
    assert_eq!(run.code, 0, "{run:?}");
    let rebuilt = &run.objects_of("rebuilt-catalog")[0];
    assert!(rebuilt["not_rebuilt"].is_null() && rebuilt["not_taken_over"] == serde_json::json!([]), "{rebuilt}");
    let configs = rebuilt["taken_over"].as_array().unwrap().iter().find(|taken| taken["what"] == "configs of topics");
    assert!(configs.unwrap()["entries"].as_u64() >= Some(3), "{rebuilt}");
    let dir = DataDir::open(&Env::real(), &copy.path(), None).unwrap();
    let configs = dir.catalog().unwrap().configs();
    assert_eq!(configs.get(ResourceType::Topic, "keys").unwrap()["cleanup.policy"], "compact");
}

/// The catalog ends a transaction that it has, and nobody one that it has not.
#[test]
fn a_transaction_that_hangs_is_named_with_the_command_that_ends_it() {
    for is_known in [true, false] {
        let data = Data::new();
        data.topic("txn", 1, &[]);
        data.append("txn", 0, batch(&[(None, Some("before"))]));
        let options = doze::record::BatchOptions {
            producer_id: 7,
            producer_epoch: 0,
            base_sequence: 0,
            transactional: true,
            ..Default::default()
        };
        data.append("txn", 0, crate::make::batch_with(options, &[(None, Some("open"))]));
        if is_known {
            let mut metadata = Metadata::new(7, 60_000, 0);
            (metadata.epoch, metadata.state) = (0, State::Ongoing);
            metadata.places.insert(("txn".into(), 0));
            let put = Mutation::PutTransactionalId { id: "one".into(), value: metadata.to_bytes().to_vec() };
            data.store().catalog().commit_blocking(vec![put]).unwrap();
        }
        let stopped = data.stop();
        let run = doze(["recover".as_ref(), "--yes".as_ref(), "--json".as_ref(), arg(&stopped.dir())]);
        let hanging = run.objects_of("hanging-transaction");
        assert_eq!((run.code, hanging.len()), (0, usize::from(!is_known)), "{run:?}");
        assert_eq!(run.objects_of("recover-summary")[0]["hanging_transactions"], hanging.len());
        if let Some(hanging) = hanging.first() {
            assert_eq!((&hanging["topic"], &hanging["partition"]), (&"txn".into(), &0.into()));
            assert_eq!((&hanging["producer_id"], &hanging["first_offset"]), (&7.into(), &1.into()));
            let command = hanging["command"].as_str().unwrap();
            assert!(command.ends_with(" abort --topic txn --partition 0 --start-offset 1"), "{command}");
        }
    }
}

#[test]
fn what_cannot_be_repaired_is_left_and_said() {
    let copy = Pristine::clean().copy();
    copy_tree(&copy.path().join("plain-0"), &copy.path().join("stranger-0"));
    let run = doze(["recover", "--yes", "--json"].map(AsRef::as_ref).into_iter().chain([arg(&copy.path())]));
    assert_eq!(run.code, 1, "{run:?}");
    let left = &run.objects_of("left")[0];
    assert_eq!((&left["kind"], &left["consequence"]), (&"unknown-partition".into(), &"unserved".into()));
    assert_eq!((&left["topic"], &left["history"]), (&"stranger".into(), &false.into()));
    assert!(run.stderr.contains("1 findings are left as they are"), "{}", run.stderr);
}

#[test]
fn directories_in_use_of_others_and_of_nobody_are_refused() {
    let data = Data::new();
    data.topic("demo", 1, &[]);
    data.append("demo", 0, batch(&[(None, Some("v"))]));
    let dir = data.store().data_dir().to_owned();
    let run = doze(["recover".as_ref(), "--yes".as_ref(), arg(&dir)]);
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.stderr.contains("is in use by another process; stop the broker first"), "{}", run.stderr);
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(doze(["recover".as_ref(), "--yes".as_ref(), arg(empty.path())]).code, 4);
    let nowhere = empty.path().join("nowhere");
    assert_eq!(doze(["recover".as_ref(), "--dry-run".as_ref(), arg(&nowhere)]).code, 4);
    assert_eq!(doze(["recover", "--dry-run", "--yes", "."]).code, 2);
}

#[test]
fn a_closed_pipe_is_no_error() {
    let (copy, _) = damaged(&Pristine::clean());
    let mut child = command(["recover".as_ref(), "--dry-run".as_ref(), "--json".as_ref(), arg(&copy.path())])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(0));
}

/// A log directory as Apache Kafka leaves it: doze's files are Kafka's, so that only what is around them differs.
fn kafka(clean: bool) -> (tempfile::TempDir, PathBuf) {
    let made = Pristine::clean();
    let dir = tempfile::tempdir().unwrap();
    let kafka = dir.path().join("kafka-logs");
    fs::create_dir(&kafka).unwrap();
    for partition in ["plain-0", "txn-0"] {
        copy_tree(&made.path().join(partition), &kafka.join(partition));
    }
    fs::write(kafka.join("meta.properties"), "version=1\ncluster.id=abc\nnode.id=1\n").unwrap();
    fs::write(kafka.join("recovery-point-offset-checkpoint"), "0\n0\n").unwrap();
    if clean {
        fs::write(kafka.join(".kafka_cleanshutdown"), "{\"version\":0,\"brokerEpoch\":7}").unwrap();
    }
    (dir, kafka)
}

#[test]
fn kafkas_directories_are_repaired_in_place_and_its_mark_is_not_forged() {
    for clean in [true, false] {
        let (_dir, kafka) = kafka(clean);
        let all = batches(&kafka, "plain-0");
        let hit = all[6].clone();
        flip(&hit.file, hit.position + 90);
        let index = crate::make::files(&kafka.join("txn-0"), ".index").remove(0);
        change(&index, |bytes| bytes.truncate(bytes.len() - 3));
        let run =
            doze(["recover", "--yes", "--accept-loss", "--json"].map(AsRef::as_ref).into_iter().chain([arg(&kafka)]));
        assert_eq!(run.code, 0, "{run:?}");
        let names: Vec<String> =
            fs::read_dir(&kafka).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert!(!names.iter().any(|name| name.starts_with("recovered-") || name == "clean-shutdown"), "{names:?}");
        let kept = PathBuf::from(run.objects_of("kept")[0]["path"].as_str().unwrap());
        assert_eq!(kept.parent(), kafka.parent(), "Kafka does not start where there are folders that it does not know");
        let mark = fs::read_to_string(kafka.join(".kafka_cleanshutdown")).ok();
        assert_eq!(mark.as_deref(), clean.then_some("{\"version\":0,\"brokerEpoch\":7}"));
        let (empty, left): (Vec<corpus::At>, _) = batches(&kafka, "plain-0").into_iter().partition(|at| at.size == 61);
        let expected: Vec<i64> = all.iter().map(|at| at.offsets.0).filter(|base| *base != hit.offsets.0).collect();
        assert_eq!(left.iter().map(|at| at.offsets.0).collect::<Vec<_>>(), expected);
        assert_eq!(empty.iter().map(|at| at.offsets).collect::<Vec<_>>(), [hit.offsets], "one stands for what is lost");
        let again = doze(["recover".as_ref(), "--yes".as_ref(), arg(&kafka)]);
        assert!(again.stdout.contains("there is nothing to do"), "{again:?}");
    }
}
