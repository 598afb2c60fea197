//! Compacting an Apache Kafka directory, on a disk that fails and loses its power, with what Apache Kafka's start does after it.

mod start;

use std::collections::BTreeMap;
use std::io::{ErrorKind, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::storage::cleaner::tests::model::{Dice, Model, RETENTION_MS, config};
use crate::storage::offline::{DataDir, PartitionFolder, Stop};
use crate::sys::sim::{Cut, Effect, Fault, OpKind, Prng, SimEnv, SimFileSystem, SyncFailure};
use crate::sys::{FileSystem, OpenMode};
use start::kafka_start;

const DATA: &str = "/kafka";
const FOLDER: &str = "/kafka/demo-3";
const MARK: &str = "{\"version\":0,\"brokerEpoch\":16}";

fn put(fs: &SimFileSystem, path: &Path, content: &[u8]) {
    let file = fs.open(path, OpenMode::CreateOrTruncate).unwrap();
    file.write_all_at(&[IoSlice::new(content)], 0).unwrap();
    file.sync().unwrap();
}

fn content(fs: &SimFileSystem, path: &Path) -> Vec<u8> {
    let file = fs.open(path, OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn log_config() -> LogConfig {
    let mut log_config = LogConfig::default();
    config(&mut log_config);
    LogConfig { compaction_codec: None, ..log_config }
}

/// A node's directory with a compacted partition that was never cleaned, stopped cleanly, and the model of the partition.
struct Scene {
    fs: SimFileSystem,
    now_ms: i64,
    model: Model,
    bases: Vec<i64>,
}

fn scene(seed: u64, rounds: u64) -> Scene {
    let (_, sim) = SimEnv::new(seed);
    for dir in [DATA, FOLDER] {
        sim.fs.create_dir(Path::new(dir)).unwrap();
    }
    let (mut dice, mut model) = (Dice(seed), Model::default());
    let log = PartitionLog::open(sim.env(), FOLDER.into(), log_config(), true, 0).unwrap();
    for _ in 0..rounds {
        let now_ms = sim.env().clock.now_ms();
        if dice.one_in(3) { model.end_transaction(&log, &mut dice) } else { model.append(&log, &mut dice, now_ms) }
    }
    log.close().unwrap();
    let (end, bases) = (log.offsets().end, log.segment_bases());
    for (name, content) in [
        ("meta.properties", "version=1\nnode.id=0\ncluster.id=x\n".to_owned()),
        (".kafka_cleanshutdown", MARK.to_owned()),
        (".lock", String::new()),
        ("recovery-point-offset-checkpoint", format!("0\n2\ndemo 3 {end}\nother 0 7\n")),
        ("replication-offset-checkpoint", format!("0\n2\ndemo 3 {end}\nother 0 7\n")),
        ("log-start-offset-checkpoint", "0\n1\nother 0 3\n".to_owned()),
        ("cleaner-offset-checkpoint", "0\n1\nother 0 5\n".to_owned()),
    ] {
        put(&sim.fs, &Path::new(DATA).join(name), content.as_bytes());
    }
    for dir in ["/", DATA, FOLDER] {
        sim.fs.sync_dir(Path::new(dir)).unwrap();
    }
    sim.clock.advance(Duration::from_millis(1));
    Scene { fs: sim.fs.clone(), now_ms: sim.env().clock.now_ms(), model, bases }
}

fn around(fs: SimFileSystem, now_ms: i64) -> SimEnv {
    let (_, sim) = SimEnv::around(7, fs);
    sim.clock.set_wall_ms(now_ms);
    sim
}

fn folder() -> PartitionFolder {
    PartitionFolder { path: FOLDER.into(), topic: "demo".into(), partition: 3 }
}

/// What the command does. Answers whether the mark is back.
fn compact_with(env: &Env, config: &LogConfig, request: &Request) -> Result<(Compacted, bool), String> {
    let dir = DataDir::open_to_write(env, Path::new(DATA), None).map_err(|error| error.to_string())?;
    assert!(matches!(dir.stop(), Stop::Clean { .. }), "{:?}", dir.stop());
    let mut compaction = KafkaCompaction::start(&dir).map_err(|error| error.to_string())?;
    let done = compaction.compact(&folder(), config, request);
    let is_marked = compaction.finish().map_err(|error| error.to_string())?;
    assert!(!is_marked || done.as_ref().map_or_else(is_refusal, |_| true), "it vouches for what has failed: {done:?}");
    Ok((done.map_err(|error| error.to_string())?.unwrap(), is_marked))
}

/// Whether it is an error from before anything was changed.
fn is_refusal(error: &CompactError) -> bool {
    match error {
        CompactError::NoHighWatermark | CompactError::Repair(_) | CompactError::Damaged => true,
        CompactError::File(error) => error.action == "list",
        _ => false,
    }
}

fn compact_in(env: &Env) -> Result<(Compacted, bool), String> {
    compact_with(env, &log_config(), &Request::default())
}

fn checkpoint(fs: &SimFileSystem, name: &str) -> BTreeMap<String, i64> {
    let text = String::from_utf8(content(fs, &Path::new(DATA).join(name))).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[0], lines[1].parse()), ("0", Ok(lines.len() - 2)), "{text}");
    let entry = |line: &&str| {
        let (of, offset) = line.rsplit_once(' ').unwrap();
        (of.to_owned(), offset.parse().unwrap())
    };
    lines[2..].iter().map(entry).collect()
}

fn is_marked(fs: &dyn FileSystem) -> bool {
    fs.exists(&Path::new(DATA).join(".kafka_cleanshutdown")).unwrap()
}

/// Apache Kafka starts: nothing that a consumer may rely on is gone, and producers go on.
fn start_and_check(sim: &SimEnv, scene: &Scene, context: &str) -> Arc<PartitionLog> {
    let clean = is_marked(&sim.fs);
    kafka_start(&sim.fs, Path::new(FOLDER));
    let log = PartitionLog::open(sim.env(), FOLDER.into(), log_config(), clean, 0)
        .unwrap_or_else(|error| panic!("{context}: {error}"));
    scene.model.check_seen(&log, context);
    scene.model.check_committed(&log, context);
    scene.model.check_duplicates(&log, context);
    log
}

/// It stops again, and another compaction cleans all there is.
fn stop_and_compact(sim: &SimEnv, log: &PartitionLog, scene: &mut Scene, context: &str) {
    log.close().unwrap();
    put(&sim.fs, &Path::new(DATA).join(".kafka_cleanshutdown"), MARK.as_bytes());
    let done = compact_in(&sim.env()).unwrap_or_else(|error| panic!("{context}: {error}"));
    assert!(done.1, "{context}");
    let log = start_and_check(sim, scene, context);
    let cleaned = checkpoint(&sim.fs, "cleaner-offset-checkpoint")["demo 3"];
    scene.model.check(&log, cleaned, scene.now_ms, context);
    let left: Vec<PathBuf> = sim.fs.image().into_keys().filter(|path| is_staged(path)).collect();
    assert_eq!(left, [""; 0].map(PathBuf::from), "{context}");
}

fn is_staged(path: &Path) -> bool {
    path.extension().is_some_and(|suffix| suffix == "cleaned" || suffix == "swap")
}

/// With an index so small that a group of segments becomes several, or with the usual one.
fn configs() -> [LogConfig; 2] {
    let usual = log_config();
    [usual.clone(), LogConfig { segment_bytes: 9000, segment_index_bytes: 40, ..usual }]
}

#[test]
fn it_cleans_what_there_is_and_leaves_the_mark_and_other_partitions_as_they_were() {
    let mut scene = scene(1, 60);
    let sim = around(scene.fs.fork(), scene.now_ms);
    let estimated = {
        let dir = DataDir::open(&sim.env(), Path::new(DATA), None).unwrap();
        let before = sim.fs.image();
        let estimated = estimate_kafka(&dir, &folder(), &log_config(), &Request::default()).unwrap().unwrap();
        assert!(sim.fs.image() == before, "something was written");
        estimated
    };
    let (done, is_back) = compact_in(&sim.env()).unwrap();
    assert_eq!((done.records_cleaned, done.bytes), (estimated.records_cleaned, estimated.bytes));
    assert!(done.records_cleaned > 50 && done.bytes.1 < done.bytes.0, "{done:?}");
    assert!(is_back && is_marked(&sim.fs));
    assert_eq!(content(&sim.fs, Path::new("/kafka/.kafka_cleanshutdown")), MARK.as_bytes());
    let cleaned = checkpoint(&sim.fs, "cleaner-offset-checkpoint");
    assert_eq!(cleaned["other 0"], 5);
    let active = scene.bases[scene.bases.len() - 1];
    assert!(cleaned["demo 3"] > active / 2 && cleaned["demo 3"] <= active, "{cleaned:?}");
    let log = start_and_check(&sim, &scene, "whole");
    scene.model.check(&log, cleaned["demo 3"], scene.now_ms, "whole");
    log.close().unwrap();

    // Nothing is dirty now, and no time has passed.
    put(&sim.fs, &Path::new(DATA).join(".kafka_cleanshutdown"), MARK.as_bytes());
    let before = sim.fs.image();
    assert_eq!(compact_in(&sim.env()).unwrap().0.records_cleaned, 0);
    assert!(sim.fs.image() == before, "there was nothing to do");
    // The headers alone tell that tombstones are due.
    sim.clock.advance(Duration::from_millis(RETENTION_MS as u64));
    assert!(compact_in(&sim.env()).unwrap().0.records_cleaned > 0);
    scene.now_ms += RETENTION_MS;
    let log = start_and_check(&sim, &scene, "a second time");
    scene.model.check(&log, cleaned["demo 3"], scene.now_ms, "a second time");
}

#[test]
fn nothing_at_or_after_the_high_watermark_is_cleaned_or_removed() {
    let mut scene = scene(2, 120);
    let (low, high) = (scene.bases[2], scene.bases[4] + 1);
    assert!(scene.bases.len() > 7, "{:?}", scene.bases);
    for (high_watermark, most) in [(high, scene.bases[4]), (low, low), (0, 0)] {
        let sim = around(scene.fs.fork(), scene.now_ms);
        let text = format!("0\n1\ndemo 3 {high_watermark}\n");
        put(&sim.fs, &Path::new(DATA).join("replication-offset-checkpoint"), text.as_bytes());
        compact_in(&sim.env()).unwrap();
        let cleaned = checkpoint(&sim.fs, "cleaner-offset-checkpoint").get("demo 3").copied().unwrap_or(0);
        assert!(cleaned <= most, "{cleaned}, {most}");
        let log = start_and_check(&sim, &scene, "high watermark");
        scene.model.check(&log, cleaned, scene.now_ms, "high watermark");
        drop(log);

        let sim = around(scene.fs.fork(), scene.now_ms + 1000);
        put(&sim.fs, &Path::new(DATA).join("replication-offset-checkpoint"), text.as_bytes());
        let config = LogConfig { delete: true, compact: false, retention_ms: 0, ..log_config() };
        let request = Request { retention: true, ..Request::default() };
        let dir = DataDir::open(&sim.env(), Path::new(DATA), None).unwrap();
        let said = estimate_kafka(&dir, &folder(), &config, &request).unwrap().unwrap();
        drop(dir);
        let (done, _) = compact_with(&sim.env(), &config, &request).unwrap();
        assert_eq!((said.log_start, said.bytes), (done.log_start, done.bytes));
        assert_eq!(done.log_start, (0, most));
        let starts = checkpoint(&sim.fs, "log-start-offset-checkpoint");
        assert_eq!((starts.get("demo 3").copied().unwrap_or(0), starts["other 0"]), (most, 3));
    }
    let sim = around(scene.fs.fork(), scene.now_ms);
    put(&sim.fs, &Path::new(DATA).join("replication-offset-checkpoint"), b"0\n1\nother 0 7\n");
    let before = sim.fs.image();
    let refused = compact_in(&sim.env()).unwrap_err();
    assert!(refused.contains("high watermark is not known"), "{refused}");
    assert!(sim.fs.image() == before && is_marked(&sim.fs));
}

#[test]
fn a_log_that_a_start_would_have_to_repair_is_refused_and_not_touched() {
    let scene = scene(3, 30);
    let last = Path::new(FOLDER).join(format!("{:020}.log", scene.bases.last().unwrap()));
    let first = Path::new(FOLDER).join(format!("{:020}.log", 0));
    let swap = Path::new(FOLDER).join(format!("{:020}.log.swap", 0));
    let torn = [content(&scene.fs, &last), vec![0; 50]].concat();
    for (path, bytes) in [(&last, torn), (&swap, content(&scene.fs, &first))] {
        let sim = around(scene.fs.fork(), scene.now_ms);
        put(&sim.fs, path, &bytes);
        let before = sim.fs.image();
        let refused = compact_in(&sim.env()).unwrap_err();
        assert!(refused.contains("doze recover"), "{refused}");
        assert!(sim.fs.image() == before, "{}", path.display());
    }
}

#[test]
fn the_power_may_be_cut_after_any_operation_before_apache_kafka_starts() {
    let (mut cuts, mut marked, mut partly) = (0, 0, 0);
    for (seed, config) in [5, 6].into_iter().zip(configs()) {
        let mut scene = scene(seed, 45);
        let run = |sim: &SimEnv| compact_with(&sim.env(), &config, &Request::default());
        let sim = around(scene.fs.fork(), scene.now_ms);
        let from = sim.fs.operations();
        run(&sim).unwrap();
        let to = sim.fs.operations();
        let mut prng = Prng::new(seed);
        let kinds: Vec<Cut> = Cut::all().collect();
        for number in from - 1..to {
            let sim = around(scene.fs.fork(), scene.now_ms);
            sim.fs.stop_after(number);
            let _ = run(&sim);
            let Some(last) = sim.fs.log().pop() else { continue };
            if number > from && !last.kind.changes() {
                continue;
            }
            let is_of_names =
                matches!(last.kind, OpKind::Rename | OpKind::RemoveFile | OpKind::SyncDir | OpKind::Create);
            let any = if is_of_names { 8 } else { 1 };
            let simple = [Cut::NOTHING_KEPT, *prng.pick(&kinds)];
            for (turn, cut) in simple.into_iter().chain(std::iter::repeat_n(Cut::ANY, any)).enumerate() {
                let context = format!("seed {seed}, after operation {last}, {cut:?}");
                let after = around(sim.fs.fork().power_cut(cut, &mut prng), scene.now_ms);
                marked += u64::from(is_marked(&after.fs));
                partly += u64::from(after.fs.image().keys().any(|path| is_staged(path)));
                let log = start_and_check(&after, &scene, &context);
                if turn == 2 {
                    stop_and_compact(&after, &log, &mut scene, &context);
                }
                cuts += 1;
            }
        }
    }
    println!("{cuts} cuts, {marked} with the mark, {partly} with staged files");
    assert!(cuts > 500 && partly > 200 && (10..cuts / 2).contains(&marked), "{cuts} {partly} {marked}");
}

#[test]
fn any_operation_may_fail_and_the_mark_never_vouches_for_it() {
    let (mut injected, mut failed, mut unmarked) = (0, 0, 0);
    let mut scene = scene(8, 45);
    let sim = around(scene.fs.fork(), scene.now_ms);
    let from = sim.fs.operations();
    compact_in(&sim.env()).unwrap();
    for number in from..sim.fs.operations() {
        for effect in [
            Effect::Error(ErrorKind::StorageFull),
            Effect::ShortWrite { bytes: 9, error: ErrorKind::StorageFull },
            Effect::Sync(SyncFailure::Dropped),
        ] {
            let context = format!("operation {number}, {effect:?}");
            let sim = around(scene.fs.fork(), scene.now_ms);
            sim.fs.inject(Fault::at(number, effect));
            let result = compact_in(&sim.env());
            if sim.fs.total_injected() == 0 {
                continue;
            }
            injected += 1;
            failed += u64::from(result.is_err());
            sim.fs.clear_faults();
            unmarked += u64::from(!is_marked(&sim.fs));
            // The power goes as well: what was not flushed is gone, and the mark must not hide that.
            let after = around(sim.fs.fork().power_cut(Cut::NOTHING_KEPT, &mut Prng::new(number)), scene.now_ms);
            let log = start_and_check(&after, &scene, &context);
            if injected % 5 == 0 {
                stop_and_compact(&after, &log, &mut scene, &context);
            }
        }
    }
    println!("{injected} faults, {failed} runs failed, {unmarked} without the mark");
    assert!(injected > 200 && failed > 150 && unmarked > 100, "{injected} {failed} {unmarked}");
}
