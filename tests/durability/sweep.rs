//! The sweep. See the crate.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use doze::sys::sim::{Cut, Effect, Fault, OpKind, Operation, Prng, START_MS, SimClock, SimFileSystem, SyncFailure};

use crate::life::Life;
use crate::model::{Before, Model};

/// How a life ends where nothing fails.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Stop,
    Kill,
    Cut(Cut),
}

/// What a process does in its life, once it has started.
struct Chapter {
    name: &'static str,
    work: fn(&mut Life<'_>),
    end: End,
    /// How many ways the power is cut in after each operation.
    cuts: usize,
}

const CHAPTERS: &[Chapter] = &[
    Chapter {
        name: "a first start",
        work: |life| {
            life.create_topic("a", 2, &[("segment.bytes", "700")]);
            life.create_topic("b", 1, &[]);
            life.produce("a", 0, 2);
            life.produce_idempotent("b", 0, 3);
            life.retry_answered("b", 0);
            life.commit(&[("g", "a", 0, 1), ("g", "b", 0, 2), ("h", "b", 0, 3)]);
        },
        end: End::Stop,
        cuts: 3,
    },
    Chapter {
        name: "segments roll and records are deleted",
        work: |life| {
            for _ in 0..4 {
                life.produce_idempotent("a", 0, 3);
                life.append("a", 1, 2);
            }
            life.append("a", 0, 3);
            life.sync(&[("a", 0), ("a", 1)]);
            life.delete_records("a", 0, 7);
            life.append("b", 0, 1);
            life.alter_topic("a", "retention.ms", "1000000000");
            life.retry_answered("a", 0);
        },
        end: End::Kill,
        cuts: 3,
    },
    Chapter {
        name: "after a kill",
        work: |life| {
            life.retry_answered("a", 0);
            life.retry_unanswered("b", 0);
            life.produce("b", 0, 1);
            life.delete_topic("b");
            life.create_topic("b", 1, &[]);
            life.produce_idempotent("b", 0, 2);
            life.add_partitions("a", 3);
            life.produce("a", 2, 1);
            life.commit(&[("g", "a", 0, 9), ("g", "b", 0, 1)]);
            life.append("a", 0, 2);
            life.append("a", 1, 2);
        },
        end: End::Cut(Cut::ANY),
        cuts: 3,
    },
    Chapter {
        name: "after a power cut",
        work: |life| {
            life.retry_answered("a", 0);
            life.produce_idempotent("a", 0, 2);
            life.produce_idempotent("b", 0, 2);
            life.delete_records("b", 0, 1);
            life.append("a", 1, 4);
            life.append("a", 1, 4);
            life.commit(&[("h", "a", 1, 3)]);
        },
        end: End::Stop,
        cuts: 3,
    },
    Chapter {
        name: "a topic is compacted, and another kept short",
        work: |life| {
            let compacted = [("cleanup.policy", "compact"), ("segment.bytes", "400")];
            life.create_topic("c", 1, &compacted);
            life.create_topic("d", 1, &[("segment.bytes", "300"), ("retention.bytes", "700")]);
            life.produce_idempotent("c", 0, 3);
            life.transaction("c", 0, false);
            life.produce_idempotent("c", 0, 2);
            life.tombstone("c", 0, 1);
            life.transaction("c", 0, true);
            life.produce_idempotent("c", 0, 1);
            (0..5).for_each(|_| life.append("d", 0, 2));
            life.sync(&[("d", 0)]);
            life.clean();
            life.sweep();
            life.retry_answered("c", 0);
        },
        end: End::Kill,
        cuts: 2,
    },
    Chapter {
        name: "and again, after a kill",
        work: |life| {
            life.retry_answered("c", 0);
            life.tombstone("c", 0, 2);
            life.produce_idempotent("c", 0, 2);
            life.produce("c", 0, 3);
            life.append("c", 0, 1);
            life.delete_records("d", 0, 6);
            life.append("d", 0, 2);
            life.alter_topic("d", "retention.ms", "1000");
            life.clean();
            life.sweep();
            life.retry_answered("c", 0);
        },
        end: End::Stop,
        cuts: 2,
    },
];

/// The disk and what was acknowledged, at the start of a life.
#[derive(Clone)]
struct Scene {
    fs: SimFileSystem,
    model: Model,
    before: Before,
}

impl Scene {
    fn copy(&self) -> Scene {
        Scene { fs: self.fs.fork(), ..self.clone() }
    }

    fn power_cut(&mut self, cut: Cut, prng: &mut Prng) {
        self.fs = self.fs.power_cut(cut, prng);
        self.before = Before::AnyLost;
    }
}

/// Lives a chapter. Answers what it leaves, and whether it came to its end.
fn run(chapter: &Chapter, seed: u64, scene: Scene) -> (Scene, bool) {
    let Scene { fs, mut model, before } = scene;
    let mut whole = false;
    match Life::start(seed, fs.clone(), &mut model, before) {
        Ok(mut life) => {
            (chapter.work)(&mut life);
            if !life.sim.fs.has_stopped() {
                life.look_at_logs();
                whole = chapter.end != End::Stop || life.stop();
            }
        }
        Err(error) => assert!(fs.total_injected() > 0 || fs.has_stopped(), "the start: {error}"),
    }
    (Scene { fs, model, before: Before::AllKept }, whole)
}

/// The scenes at the start of each chapter, and the operations in it.
fn play(seed: u64) -> Vec<(Scene, Vec<Operation>)> {
    let fs = SimFileSystem::new(Arc::new(SimClock::new(START_MS)));
    let mut scene = Scene { fs, model: Model::default(), before: Before::AllKept };
    let mut scenes = Vec::new();
    let mut prng = Prng::stream(seed, "play");
    for chapter in CHAPTERS {
        let start = scene.copy();
        let from = scene.fs.operations();
        let (mut after, whole) = run(chapter, seed, scene);
        assert!(whole, "{}", chapter.name);
        let operations = after.fs.log().into_iter().filter(|operation| operation.number >= from).collect();
        scenes.push((start, operations));
        match chapter.end {
            End::Stop | End::Kill => after.fs = after.fs.kill(),
            End::Cut(cut) => after.power_cut(cut, &mut prng),
        }
        scene = after;
    }
    scenes
}

/// After a crash, which was the first: starts again and looks; producers send again what they have no answer for, and are answered; then the
/// power is cut, and none of that may be gone. Answers how much was acknowledged.
fn aftermath(seed: u64, mut scene: Scene) -> u64 {
    let mut prng = Prng::stream(seed, "aftermath");
    let before = scene.before;
    // From here on nothing fails.
    scene.fs = scene.fs.fork();
    let mut life = Life::start(seed, scene.fs.clone(), &mut scene.model, before).expect("it starts");
    for (topic, partition) in [("a", 0), ("b", 0), ("c", 0)] {
        life.retry_answered(topic, partition);
        life.retry_unanswered(topic, partition);
    }
    life.produce("a", 1, 1);
    if life.model.topic("c").is_some() {
        life.clean();
        life.retry_answered("c", 0);
    }
    life.commit(&[("g", "a", 0, 100)]);
    drop(life);
    let cut = if prng.chance(1, 2) { Cut::NOTHING_KEPT } else { Cut::ANY };
    scene.power_cut(cut, &mut prng);
    let acknowledged = scene.model.acknowledged;
    Life::start(seed, scene.fs, &mut scene.model, Before::AnyLost).expect("it starts after the second cut");
    acknowledged
}

/// What came of many runs.
#[derive(Default)]
struct Report {
    cuts: u64,
    faults: u64,
    runs: u64,
    acknowledged: u64,
    failures: Vec<String>,
}

impl Report {
    /// Runs one case; a panic in it is a failure. `what` has to tell how to play it again.
    fn case(&mut self, what: &str, fs: &SimFileSystem, case: impl FnOnce(&mut Report)) {
        // For the one who plays it again: a part of what is said of the cases that are to run.
        if std::env::var("DOZE_CASE").is_ok_and(|only| !what.contains(&only)) {
            return;
        }
        self.runs += 1;
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| case(self))) {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("?");
            if std::env::var_os("DOZE_CASE").is_some() {
                eprintln!("{what}: {text}");
                fs.log().iter().for_each(|operation| eprintln!("    {operation}"));
            }
            self.failures.push(format!("{what}: {text}"));
        }
    }

    fn finish(self, what: &str, started: Instant) {
        println!(
            "{what}, in {} runs: {} power cuts, {} faults injected, {} changes acknowledged, \
             {} losses ({:.1} s)",
            self.runs,
            self.cuts,
            self.faults,
            self.acknowledged,
            self.failures.len(),
            started.elapsed().as_secs_f32()
        );
        assert!(
            self.failures.is_empty(),
            "{} failures; DOZE_SEED and DOZE_CASE='<part of a line>' play one again:\n{}",
            self.failures.len(),
            self.failures.join("\n")
        );
        assert!(std::env::var_os("DOZE_CASE").is_some() || (self.cuts > 0 && self.acknowledged > 0));
    }
}

/// `DOZE_SEED`, or 1.
fn seed() -> u64 {
    std::env::var("DOZE_SEED").map_or(1, |seed| seed.parse().expect("DOZE_SEED is a number"))
}

#[test]
fn the_power_is_cut_after_each_file_operation() {
    let (seed, started) = (seed(), Instant::now());
    let mut report = Report::default();
    let mut swept = 0;
    for (chapter, (scene, operations)) in CHAPTERS.iter().zip(&play(seed)) {
        swept += operations.len();
        // One that changes nothing leaves what the one before it left.
        for operation in operations.iter().filter(|operation| operation.kind.changes()) {
            for (n, cut) in [Cut::NOTHING_KEPT, Cut::ANY, Cut::ANY].into_iter().take(chapter.cuts).enumerate() {
                let what = format!("seed {seed}, '{}', cut {n} {cut:?} after {operation}", chapter.name);
                let scene = scene.copy();
                scene.fs.stop_after(operation.number);
                report.case(&what, &scene.fs.clone(), |report| {
                    let mut after = run(chapter, seed, scene).0;
                    let mut prng = Prng::stream(seed.wrapping_add(operation.number), &format!("cut {n}"));
                    after.power_cut(cut, &mut prng);
                    report.cuts += 2;
                    report.acknowledged += aftermath(prng.next_u64(), after);
                });
            }
        }
    }
    report.finish(&format!("{swept} file operations swept"), started);
}

#[test]
fn each_file_operation_fails_once() {
    let (seed, started) = (seed(), Instant::now());
    let mut report = Report::default();
    let mut swept = 0;
    for (chapter, (scene, operations)) in CHAPTERS.iter().zip(&play(seed)) {
        swept += operations.len();
        for operation in operations {
            for effect in effects(operation) {
                // What changes nothing can go wrong in no way that only a cut shows.
                for end in [End::Kill, End::Cut(Cut::ANY)].into_iter().take(1 + usize::from(operation.kind.changes())) {
                    let what = format!("seed {seed}, '{}', {effect:?} then {end:?} at {operation}", chapter.name);
                    let scene = scene.copy();
                    scene.fs.inject(Fault::at(operation.number, effect));
                    report.case(&what, &scene.fs.clone(), |report| {
                        let mut after = run(chapter, seed, scene).0;
                        assert_eq!(after.fs.total_injected(), 1, "the fault was injected");
                        report.faults += 1;
                        if matches!(effect, Effect::Sync(SyncFailure::Dropped | SyncFailure::MarkedClean)) {
                            after.before = Before::AnyLost;
                        }
                        let mut prng = Prng::stream(seed.wrapping_add(operation.number), "fault");
                        match end {
                            End::Cut(cut) => after.power_cut(cut, &mut prng),
                            _ => after.fs = after.fs.kill(),
                        }
                        report.cuts += 1 + u64::from(end != End::Kill);
                        report.acknowledged += aftermath(prng.next_u64(), after);
                    });
                }
            }
        }
    }
    assert!(std::env::var_os("DOZE_CASE").is_some() || report.faults >= swept as u64);
    report.finish(&format!("{swept} file operations swept"), started);
}

fn effects(operation: &Operation) -> Vec<Effect> {
    let error = std::io::ErrorKind::Other;
    match operation.kind {
        OpKind::Sync => SyncFailure::ALL.map(Effect::Sync).to_vec(),
        OpKind::Write => {
            let bytes = operation.len.unwrap_or(0) as u64 / 2;
            vec![Effect::Error(error), Effect::ShortWrite { bytes, error: std::io::ErrorKind::StorageFull }]
        }
        _ => vec![Effect::Error(error)],
    }
}

/// On a disk with ever more space left: what does not fit is refused, all else goes on, a start works, and so does
/// everything once there is space.
#[test]
fn a_full_disk_refuses_writes_until_there_is_space() {
    let (seed, started) = (seed(), Instant::now());
    let mut report = Report::default();
    let (scenes, mut fitted) = (play(seed), false);
    for (chapter, (scene, _)) in CHAPTERS.iter().zip(&scenes).skip(1) {
        for pages in 0..40 {
            let what = format!("seed {seed}, '{}', {pages} pages left", chapter.name);
            let scene = scene.copy();
            let fs = scene.fs.clone();
            report.case(&what, &fs.clone(), |report| {
                fs.set_capacity(Some(fs.used_bytes() + pages * 4096));
                let Scene { fs, mut model, before } = scene;
                let mut life = Life::start(seed, fs.clone(), &mut model, before).expect("it starts on a full disk");
                (chapter.work)(&mut life);
                life.look_at_logs();
                report.faults += fs.total_injected();
                fitted |= fs.total_injected() == 0;
                fs.set_capacity(None);
                for (topic, partition) in [("a", 0), ("a", 1)] {
                    let before = life.model.acknowledged;
                    life.produce(topic, partition, 1);
                    life.commit(&[("g", topic, partition, 50)]);
                    assert_eq!(life.model.acknowledged, before + 2, "there is space, and nothing has to be restarted");
                }
                life.look_at_logs();
                drop(life);
                let mut after = Scene { fs: fs.clone(), model, before: Before::AllKept };
                let mut prng = Prng::stream(seed.wrapping_add(pages), "full");
                after.power_cut(Cut::ANY, &mut prng);
                report.cuts += 2;
                report.acknowledged += aftermath(prng.next_u64(), after);
            });
        }
    }
    let faults = report.faults;
    report.finish("a disk filled up to each of its last pages", started);
    assert!(std::env::var_os("DOZE_CASE").is_some() || (faults > 50 && fitted), "{faults} faults");
}

/// The sweep is able to fail: on a disk that says that it flushed and did not, each kind of flush by itself is missed.
#[test]
fn a_flush_left_out_is_found_out() {
    let seed = seed();
    let scenes = play(seed);
    for (kind, path) in [
        (OpKind::Sync, "data/*.log"),
        (OpKind::Sync, "data/meta.db*"),
        (OpKind::SyncDir, "data"),
        (OpKind::SyncDir, "data/*"),
    ] {
        let mut lost = 0;
        let mut cases = 0;
        for (chapter, (scene, operations)) in CHAPTERS.iter().zip(&scenes) {
            for operation in operations.iter().filter(|operation| operation.kind.changes()).step_by(4) {
                let scene = scene.copy();
                scene.fs.inject(Fault::on(&[kind], Effect::Ignored).path(path).forever());
                scene.fs.stop_after(operation.number);
                cases += 1;
                let found = catch_unwind(AssertUnwindSafe(|| {
                    let mut after = run(chapter, seed, scene).0;
                    after.power_cut(Cut::NOTHING_KEPT, &mut Prng::new(seed));
                    aftermath(seed, after);
                }));
                lost += usize::from(found.is_err());
            }
        }
        println!("without {kind:?} of {path}: {lost} of {cases} cuts lost something");
        assert!(lost > 0, "{kind:?} of {path}");
    }
}

/// A broker that answers before its flush is found out too.
#[test]
fn an_acknowledgement_before_the_flush_is_found_out() {
    let seed = seed();
    let (mut lost, mut cases) = (0, 0);
    for (chapter, (scene, operations)) in CHAPTERS.iter().zip(&play(seed)) {
        for operation in operations.iter().filter(|operation| operation.kind == OpKind::Write).step_by(4) {
            let mut scene = scene.copy();
            scene.model.acknowledges_early = true;
            scene.fs.stop_after(operation.number);
            cases += 1;
            let found = catch_unwind(AssertUnwindSafe(|| {
                let mut after = run(chapter, seed, scene).0;
                after.power_cut(Cut::NOTHING_KEPT, &mut Prng::new(seed));
                aftermath(seed, after);
            }));
            lost += usize::from(found.is_err());
        }
    }
    println!("with early answers: {lost} of {cases} cuts lost something");
    assert!(lost > 0);
}

#[test]
fn one_seed_is_one_history() {
    let log = |seed| play(seed).into_iter().flat_map(|(_, operations)| operations).collect::<Vec<_>>();
    let (one, two) = (log(3), log(3));
    for (one, two) in one.iter().zip(&two) {
        assert_eq!(one.to_string(), two.to_string());
    }
    assert_eq!(one.len(), two.len());
}
