//! A pass each of whose file operations fails, or is the last before the process dies or the power is cut.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::model::*;
use crate::storage::cleaner::{CleanerSettings, clean_now};
use crate::storage::log::{LogConfig, PartitionLog};
use crate::sys::FileSystem;
use crate::sys::sim::{Cut, Effect, Fault, OpKind, Prng, SimEnv, SimFileSystem, SyncFailure};

const DIR: &str = "/demo-3";

fn log_config() -> LogConfig {
    let mut log_config = LogConfig::default();
    config(&mut log_config);
    log_config
}

fn open_with(sim: &SimEnv, clean: bool, config: LogConfig) -> Arc<PartitionLog> {
    PartitionLog::open(sim.env(), Path::new(DIR).into(), config, clean, 0).unwrap()
}

fn open(sim: &SimEnv, clean: bool) -> Arc<PartitionLog> {
    open_with(sim, clean, log_config())
}

/// A disk with a log that was cleaned twice and has more to be cleaned, with tombstones and markers whose time is over. All
/// that was appended is older than now.
struct Scene {
    fs: SimFileSystem,
    now_ms: i64,
    model: Model,
}

fn scene(seed: u64) -> Scene {
    let (_, sim) = SimEnv::new(seed);
    sim.fs.create_dir(Path::new(DIR)).unwrap();
    sim.fs.sync_dir(Path::new("/")).unwrap();
    let (mut dice, mut model) = (Dice(seed), Model::default());
    let log = open(&sim, true);
    let mut work = |model: &mut Model, rounds| {
        for _ in 0..rounds {
            let now_ms = sim.env().clock.now_ms();
            if dice.one_in(3) { model.end_transaction(&log, &mut dice) } else { model.append(&log, &mut dice, now_ms) }
        }
    };
    for _ in 0..2 {
        work(&mut model, 40);
        clean(&log, &CleanerSettings::default());
        model.check(&log, cleaned_to(&log), sim.env().clock.now_ms(), "the scene");
        sim.clock.advance(Duration::from_millis(RETENTION_MS as u64));
    }
    work(&mut model, 40);
    log.close().unwrap();
    sim.clock.advance(Duration::from_millis(1));
    Scene { fs: sim.fs.clone(), now_ms: sim.env().clock.now_ms(), model }
}

impl Scene {
    /// A world of its own around a copy of the disk.
    fn copy(&self) -> SimEnv {
        around(&self.fs, self.now_ms)
    }
}

fn around(fs: &SimFileSystem, now_ms: i64) -> SimEnv {
    let (_, sim) = SimEnv::around(7, fs.fork());
    sim.clock.set_wall_ms(now_ms);
    sim
}

/// Cleans with an index so small that a group of segments becomes several, or with the usual one.
fn configs() -> [LogConfig; 2] {
    let usual = log_config();
    [usual.clone(), LogConfig { segment_bytes: 5000, segment_index_bytes: 40, ..usual }]
}

/// The log is cleaned, and everything is as the model has it, now and after a restart.
fn clean_and_check(sim: &SimEnv, log: &Arc<PartitionLog>, scene: &mut Scene, context: &str) {
    clean(log, &CleanerSettings::default());
    scene.model.check(log, cleaned_to(log), scene.now_ms, context);
    scene.model.check_committed(log, context);
    scene.model.check_duplicates(log, context);
    log.close().unwrap();
    let log = open(sim, true);
    scene.model.check(&log, cleaned_to(&log), scene.now_ms, context);
    scene.model.check_committed(&log, context);
    check_ages(sim, scene.now_ms, context);
    let left: Vec<_> = sim.fs.image().into_keys().filter(|path| is_staged(path)).collect();
    assert_eq!(left, [""; 0].map(std::path::PathBuf::from), "{context}");
}

/// No sealed segment is younger than what was appended to it.
fn check_ages(sim: &SimEnv, now_ms: i64, context: &str) {
    let mut logs: Vec<_> =
        sim.fs.image().into_keys().filter(|path| path.extension().is_some_and(|suffix| suffix == "log")).collect();
    logs.sort();
    logs.pop();
    for path in logs {
        let age = sim.fs.metadata(&path).unwrap().modified_ms;
        assert!(age < now_ms, "{context}: {} is as if it had been written just now", path.display());
    }
}

fn is_staged(path: &Path) -> bool {
    path.extension().is_some_and(|suffix| suffix == "cleaned" || suffix == "swap")
}

/// How many operations a pass takes, counted from when the log is open.
fn operations(scene: &Scene, config: &LogConfig) -> (u64, u64) {
    let sim = scene.copy();
    let log = open_with(&sim, true, config.clone());
    let from = sim.fs.operations();
    let renames = sim.fs.count(OpKind::Rename);
    assert!(!clean(&log, &CleanerSettings::default()).is_empty());
    assert!(sim.fs.count(OpKind::Rename) > renames + 10, "there is something to swap");
    (from, sim.fs.operations())
}

#[test]
fn any_operation_may_fail_and_the_log_is_read_on_without_a_restart() {
    let (mut injected, mut failed, mut offline) = (0, 0, 0);
    for (seed, config) in [3, 4].into_iter().zip(configs()) {
        let mut scene = scene(seed);
        let (from, to) = operations(&scene, &config);
        for number in from..to {
            for effect in [
                Effect::Error(ErrorKind::StorageFull),
                Effect::ShortWrite { bytes: 9, error: ErrorKind::StorageFull },
                Effect::Sync(SyncFailure::Dropped),
            ] {
                let context = format!("seed {seed}, operation {number}, {effect:?}");
                let sim = scene.copy();
                let log = open_with(&sim, true, config.clone());
                assert_eq!(sim.fs.operations(), from, "{context}: a run is like another");
                sim.fs.inject(Fault::at(number, effect));
                let result = clean_now(&log, &CleanerSettings::default());
                if sim.fs.total_injected() == 0 {
                    continue;
                }
                injected += 1;
                failed += u64::from(result.is_err());
                sim.fs.clear_faults();
                scene.model.check_seen(&log, &context);
                scene.model.check_committed(&log, &context);
                // A kill at this moment, and the next start.
                let killed = around(&sim.fs, scene.now_ms);
                let next = open(&killed, false);
                scene.model.check_seen(&next, &context);
                if injected % 4 == 0 {
                    clean_and_check(&killed, &next, &mut scene, &context);
                }
                if log.is_offline().is_some() {
                    // A directory that could not be flushed: reads go on, and the next start takes writes again.
                    offline += 1;
                    continue;
                }
                clean_and_check(&sim, &log, &mut scene, &context);
            }
        }
    }
    assert!(injected > 200 && failed > 150 && offline > 10, "{injected} faults, {failed} failures, {offline} offline");
}

#[test]
fn the_power_may_be_cut_after_any_operation() {
    let mut cuts = 0;
    for (seed, config) in [5, 6].into_iter().zip(configs()) {
        let mut scene = scene(seed);
        let (from, to) = operations(&scene, &config);
        let mut prng = Prng::new(seed);
        for number in from - 1..to {
            let sim = scene.copy();
            let log = open_with(&sim, true, config.clone());
            sim.fs.stop_after(number);
            let _ = clean_now(&log, &CleanerSettings::default());
            assert!(sim.fs.has_stopped() || number == to - 1);
            let Some(last) = sim.fs.log().pop() else { continue };
            if number > from && !last.kind.changes() {
                continue;
            }
            let kinds: Vec<Cut> = Cut::all().collect();
            // What a cut leaves of the names is what the swap has to be right about: more of those.
            let is_of_names =
                matches!(last.kind, OpKind::Rename | OpKind::RemoveFile | OpKind::SyncDir | OpKind::Create);
            let any = if is_of_names { 12 } else { 1 };
            let simple = [Cut::NOTHING_KEPT, *prng.pick(&kinds)];
            for (turn, cut) in simple.into_iter().chain(std::iter::repeat_n(Cut::ANY, any)).enumerate() {
                let context = format!("seed {seed}, after operation {last}, {cut:?}");
                let fs = sim.fs.fork().power_cut(cut, &mut prng);
                let (_, after) = SimEnv::around(7, fs);
                after.clock.set_wall_ms(scene.now_ms);
                let log = open(&after, false);
                scene.model.check_seen(&log, &context);
                scene.model.check_committed(&log, &context);
                if turn == 2 {
                    clean_and_check(&after, &log, &mut scene, &context);
                }
                cuts += 1;
            }
        }
    }
    assert!(cuts > 500, "{cuts}");
}

#[test]
fn the_power_may_be_cut_while_a_start_finishes_a_swap() {
    let (mut cuts, mut starts) = (0, 0);
    for (seed, config) in [8, 9].into_iter().zip(configs()) {
        let scene = scene(seed);
        let (from, to) = operations(&scene, &config);
        let mut prng = Prng::new(seed);
        for number in from..to {
            let sim = scene.copy();
            let log = open_with(&sim, true, config.clone());
            sim.fs.stop_after(number);
            let _ = clean_now(&log, &CleanerSettings::default());
            if !sim.fs.log().last().is_some_and(|last| matches!(last.kind, OpKind::Rename | OpKind::SyncDir)) {
                continue;
            }
            starts += 1;
            let cut = sim.fs.fork().power_cut(Cut::ANY, &mut prng);
            let probe = around(&cut, scene.now_ms);
            let from = probe.fs.operations();
            open(&probe, false);
            for number in from..probe.fs.operations() {
                let start = around(&cut, scene.now_ms);
                start.fs.stop_after(number);
                let _ = PartitionLog::open(start.env(), Path::new(DIR).into(), log_config(), false, 0);
                if !start.fs.log().last().is_some_and(|last| last.kind.changes()) {
                    continue;
                }
                let context = format!("seed {seed}, operation {number} of a start");
                let (_, next) = SimEnv::around(7, start.fs.fork().power_cut(Cut::ANY, &mut prng));
                next.clock.set_wall_ms(scene.now_ms);
                let log = open(&next, false);
                scene.model.check_seen(&log, &context);
                scene.model.check_committed(&log, &context);
                cuts += 1;
            }
        }
    }
    assert!(starts > 30 && cuts > 100, "{starts} starts, {cuts} cuts");
}
