//! What the sweep has found, one by one.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use doze::sys::FileSystem;
use doze::sys::sim::{Cut, Effect, Fault, OpKind, Prng, START_MS, SimClock, SimFileSystem, SyncFailure};

use crate::life::Life;
use crate::model::{Before, LogModel, Model};

fn disk() -> SimFileSystem {
    SimFileSystem::new(Arc::new(SimClock::new(START_MS)))
}

fn cut(fs: &SimFileSystem) -> SimFileSystem {
    fs.power_cut(Cut::NOTHING_KEPT, &mut Prng::new(1))
}

/// An fsync fails and leaves its pages marked clean; the next process finds them in the cache.
fn fail_a_flush(path: &str, commits_before: i64) {
    let (fs, mut model) = (disk(), Model::default());
    let mut life = Life::start(1, fs.clone(), &mut model, Before::AllKept).unwrap();
    life.create_topic("a", 2, &[]);
    for offset in 0..commits_before {
        life.commit(&[("g", "a", 0, offset), ("h", "a", 1, offset)]);
    }
    fs.inject(Fault::on(&[OpKind::Sync], Effect::Sync(SyncFailure::MarkedClean)).path(path));
    life.produce_idempotent("a", 0, 20);
    // In a table that nothing is written to afterwards.
    life.alter_topic("a", "retention.ms", "1000");
    assert_eq!(fs.total_injected(), 1, "{path}");
    drop(life);
    let fs = fs.kill();
    let mut life = Life::start(2, fs.clone(), &mut model, Before::AllKept).unwrap();
    life.retry_unanswered("a", 0);
    life.commit(&[("i", "a", 1, 3)]);
    drop(life);
    Life::start(3, cut(&fs), &mut model, Before::AnyLost).unwrap();
}

#[test]
fn records_that_a_failed_flush_left_in_the_cache_are_not_acknowledged_after_a_kill() {
    fail_a_flush("data/*.log", 1);
}

#[test]
fn a_catalog_does_not_build_on_pages_that_a_failed_flush_left_in_the_cache() {
    for commits_before in 0..8 {
        fail_a_flush("data/meta.db*", commits_before);
    }
}

/// The first half of the last page of a commit, which has all of it that counts, is in the file.
#[test]
fn a_commit_that_was_refused_half_written_does_not_come_back() {
    let mut refused = 0;
    for skip in 0..6 {
        let (fs, mut model) = (disk(), Model::default());
        let mut life = Life::start(1, fs.clone(), &mut model, Before::AllKept).unwrap();
        life.create_topic("a", 1, &[]);
        let effect = Effect::ShortWrite { bytes: 2048, error: ErrorKind::StorageFull };
        fs.inject(Fault::on(&[OpKind::Write], effect).path("data/meta.db*").skip(skip));
        life.commit(&[("g", "a", 0, 2)]);
        refused += u64::from(fs.total_injected() > 0);
        drop(life);
        for fs in [fs.fork(), fs.fork().power_cut(Cut::ANY, &mut Prng::new(skip))] {
            Life::start(2, fs, &mut model.clone(), Before::AnyLost).unwrap();
        }
    }
    assert!(refused >= 4, "{refused}");
}

/// The process ends between the rename that gives the catalog its name and the flush of that name; the next one finds the
/// catalog, and never had a reason to flush the data directory.
#[test]
fn a_catalog_whose_name_was_not_flushed_by_its_maker_does_not_go_with_what_was_committed_since() {
    let (whole, mut model) = (disk(), Model::default());
    drop(Life::start(1, whole.clone(), &mut model, Before::AllKept).unwrap());
    let rename = whole.log().into_iter().find(|operation| operation.kind == OpKind::Rename).unwrap().number;
    let (fs, mut model) = (disk(), Model::default());
    fs.stop_after(rename);
    assert!(Life::start(1, fs.clone(), &mut model, Before::AllKept).is_err());
    let fs = fs.kill();
    drop(Life::start(2, fs.clone(), &mut model, Before::AllKept).unwrap());
    assert!(model.cluster_id.is_some());
    Life::start(3, cut(&fs), &mut model, Before::AnyLost).expect("with the same cluster id");
}

/// Whoever made the data directory has not flushed its name: a user, or a process that ended just then.
#[test]
fn a_data_directory_that_was_there_does_not_go_with_what_was_acknowledged() {
    let (fs, mut model) = (disk(), Model::default());
    fs.create_dir(Path::new("/data")).unwrap();
    let mut life = Life::start(1, fs.clone(), &mut model, Before::AllKept).unwrap();
    life.create_topic("a", 1, &[]);
    life.produce("a", 0, 2);
    drop(life);
    Life::start(2, cut(&fs), &mut model, Before::AnyLost).unwrap();
}

/// A stop writes indexes, a snapshot and the mark, for which a full disk has no room. All of that can be made anew; what was
/// acknowledged is flushed, and that is what a stop is for.
#[test]
fn a_stop_on_a_full_disk_is_one_that_has_flushed_everything() {
    let mut unmarked = 0;
    for bytes in [0, 1, 100, 4096, 8192, 1 << 20] {
        let (fs, mut model) = (disk(), Model::default());
        let mut life = Life::start(1, fs.clone(), &mut model, Before::AllKept).unwrap();
        life.create_topic("a", 2, &[]);
        life.produce_idempotent("a", 0, 20);
        // Not flushed yet when it is told to stop.
        life.append("a", 1, 5);
        fs.set_capacity(Some(fs.used_bytes() + bytes));
        if let Err(error) = life.store.close() {
            assert!(error.is_flushed(), "{bytes} bytes left: {error}");
            unmarked += 1;
        }
        life.model.logs.values_mut().for_each(LogModel::flushed);
        drop(life);
        let fs = cut(&fs);
        let mut life = Life::start(2, fs.clone(), &mut model, Before::AnyLost).unwrap();
        life.retry_answered("a", 0);
        fs.set_capacity(None);
        life.produce("a", 1, 1);
        life.look_at_logs();
    }
    assert!((1..6).contains(&unmarked), "{unmarked}");
}
