//! End markers of transactions that rot: written again where there is proof of what they said, and no guess otherwise.

use super::*;
use crate::record::control::{ControlRecord, EndTxnMarker};

/// An end marker in a log file.
struct At {
    log: PathBuf,
    start: usize,
    end: usize,
    offset: i64,
    committed: bool,
    /// In the last log file.
    is_last: bool,
}

fn marker_in(batch: &crate::record::Batch<'_>) -> Option<EndTxnMarker> {
    let mut records = batch.records().ok()?;
    match ControlRecord::parse(&records.next_record().ok()??).ok()? {
        ControlRecord::EndTxn(marker) if batch.header().is_control() => Some(marker),
        _ => None,
    }
}

fn markers(scene: &Scene) -> Vec<At> {
    let logs = scene.logs("demo-0");
    let mut all = Vec::new();
    for log in &logs {
        let bytes = bytes_of(&scene.fs, log);
        for ((start, end, offset), batch) in batches_of(&bytes).into_iter().zip(Batches::new(&bytes)) {
            if let Some(marker) = marker_in(&batch).filter(|_| batch.header().is_control()) {
                let (committed, is_last) = (marker.committed, Some(log) == logs.last());
                all.push(At { log: log.clone(), start, end, offset, committed, is_last });
            }
        }
    }
    all
}

/// What a reader of committed records is told: the last stable offset, and each marker with whom it is of and what it says.
fn told(env: &Env) -> (i64, Vec<(i64, i64, bool)>) {
    let store = Store::open(env.clone(), store_config()).unwrap();
    let log = store.partition(store.topics().by_name("demo").unwrap().id, 0).unwrap();
    let ends = read_log(&log).into_iter().filter_map(|(offset, bytes)| {
        let batch = Batches::new(&bytes).next().unwrap();
        let header = *batch.header();
        marker_in(&batch).filter(|_| header.is_control()).map(|marker| (offset, header.producer_id, marker.committed))
    });
    let told = (log.offsets().last_stable, ends.collect());
    store.close().unwrap();
    told
}

#[test]
fn a_marker_that_rotted_is_written_again_where_it_is_known_what_it_said() {
    let (mut restored, mut lost) = (0, 0);
    for clean in [true, false] {
        let scene = Scene::new(clean);
        let before = told(&scene.copy().env());
        let txn_indexes = |fs: &SimFileSystem| {
            scene.files("demo-0", ".txnindex").iter().map(|path| bytes_of(fs, path)).collect::<Vec<_>>()
        };
        for at in markers(&scene) {
            for (what, is_zeros) in [("a flip in its checksum", false), ("zeros", true)] {
                let context = format!("{what} of {} in {}, stopped {clean}", at.offset, at.log.display());
                let sim = scene.copy();
                let mut bytes = bytes_of(&sim.fs, &at.log);
                match is_zeros {
                    true => bytes[at.start..at.end].fill(0),
                    false => bytes[at.start + 18] ^= 1,
                }
                put(&sim.fs, &at.log, &bytes);
                // At the end of a log nothing tells what is torn.
                if at.is_last && at.end == bytes.len() {
                    continue;
                }
                let is_whole = clean || !at.is_last;
                let is_known = if at.committed { is_whole && !is_zeros } else { is_whole };
                let (plan, _) = recover(&sim.env(), false).unwrap_or_else(|error| panic!("{context}: {error}"));
                let step = plan.steps.iter().find(|step| step.offsets == Some((at.offset, at.offset + 1))).unwrap();
                assert_eq!((step.action == Action::RestoreMarker, step.loses), (is_known, !is_known), "{context}");
                if is_known {
                    restored += 1;
                    assert_nothing_left(&sim.env(), &context);
                    assert_eq!(txn_indexes(&sim.fs), txn_indexes(&scene.fs), "{context}");
                    assert_eq!(told(&sim.env()), before, "{context}");
                } else {
                    lost += 1;
                    recover(&sim.env(), true).unwrap();
                    assert_nothing_left(&sim.env(), &context);
                    let (_, ends) = told(&sim.env());
                    let expected: Vec<_> = before.1.iter().filter(|end| end.0 != at.offset).copied().collect();
                    assert_eq!(ends, expected, "{context}: nothing is made up");
                }
            }
        }
    }
    assert!(restored > 6 && lost > 1, "{restored} {lost}");
}

/// A hole over a marker and what is around it: the marker of an abort is named by the index, so it is back, the rest is lost.
#[test]
fn an_abort_in_a_larger_hole_is_back() {
    let scene = Scene::new(true);
    let at = markers(&scene).into_iter().find(|at| !at.committed && !at.is_last).unwrap();
    let sim = scene.copy();
    let mut bytes = bytes_of(&sim.fs, &at.log);
    let batches = batches_of(&bytes);
    let nth = batches.iter().position(|batch| batch.0 == at.start).unwrap();
    let before = batches[nth - 1];
    let (to, until) = batches.get(nth + 1).map_or((at.end, at.offset + 1), |next| (next.1, next.2));
    bytes[before.0..to].fill(0);
    put(&sim.fs, &at.log, &bytes);
    recover(&sim.env(), true).unwrap();
    assert_nothing_left(&sim.env(), "a hole");
    let (_, ends) = told(&sim.env());
    assert_eq!(ends, told(&scene.copy().env()).1, "{} to {until}", before.2);
}
