//! What a seed has in store for each life of the broker.

use std::io::ErrorKind;

use doze::sys::sim::{Cut, Effect, Fault, OpKind, Prng, SyncFailure};

/// How a life ends, unless the disk ends it before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    Stop,
    Kill,
    Cut(Cut),
}

/// The wall clock is set while the broker runs.
#[derive(Clone, Copy, Debug)]
pub struct ClockChange {
    /// After this many requests.
    pub after: u32,
    /// How many milliseconds it is wrong from then on.
    pub wrong_ms: i64,
}

/// A disk that fills up.
#[derive(Clone, Copy, Debug)]
pub struct FullDisk {
    /// After this many requests.
    pub after: u32,
    pub pages_left: u64,
    /// After this many more there is room again.
    pub for_requests: u32,
}

#[derive(Clone, Debug)]
pub struct LifePlan {
    /// How many requests the clients make.
    pub requests: u32,
    pub end: End,
    /// The process ends after this many operations on the disk, whatever it is at.
    pub stop_after: Option<u64>,
    pub faults: Vec<Fault>,
    pub full: Option<FullDisk>,
    /// In order.
    pub clock_changes: Vec<ClockChange>,
    /// `--fsync-interval`, in milliseconds.
    pub fsync_interval_ms: Option<u64>,
    /// Milliseconds that pass before the next one starts.
    pub pause_ms: u64,
}

impl LifePlan {
    /// A life in which nothing fails, and no client makes a request.
    pub fn last() -> LifePlan {
        LifePlan {
            requests: 0,
            end: End::Stop,
            stop_after: None,
            faults: Vec::new(),
            full: None,
            clock_changes: Vec::new(),
            fsync_interval_ms: None,
            pause_ms: 0,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub lives: Vec<LifePlan>,
    /// The most milliseconds that a client thinks between two requests.
    pub think_ms: u64,
}

impl Plan {
    pub fn of(seed: u64) -> Plan {
        let mut prng = Prng::stream(seed, "plan");
        let think_ms = *prng.pick(&[5, 40, 300]);
        let lives = (0..prng.between(1, 3)).map(|n| life(&mut prng, n == 0)).collect();
        Plan { lives, think_ms }
    }
}

fn life(prng: &mut Prng, is_first: bool) -> LifePlan {
    let requests = prng.between(15, 55) as u32;
    let end = match prng.below(10) {
        0..2 => End::Stop,
        2..5 => End::Kill,
        5..7 => End::Cut(Cut::NOTHING_KEPT),
        7..9 => End::Cut(Cut::ANY),
        _ => End::Cut(*prng.pick(&Cut::all().collect::<Vec<_>>())),
    };
    let mut plan = LifePlan {
        requests,
        end,
        stop_after: None,
        faults: Vec::new(),
        full: None,
        clock_changes: clock_changes(prng, requests),
        fsync_interval_ms: *prng.pick(&[None, Some(20), Some(500)]),
        pause_ms: *prng.pick(&[0, 10, 2000]),
    };
    match prng.below(10) {
        0..4 => {}
        4..6 => plan.stop_after = Some(prng.between(if is_first { 60 } else { 1 }, 700)),
        6..9 => plan.faults = (0..prng.between(1, 3)).map(|_| fault(prng)).collect(),
        _ => {
            plan.full = Some(FullDisk {
                after: prng.below(u64::from(requests) / 2) as u32,
                pages_left: prng.below(8),
                for_requests: prng.between(5, 20) as u32,
            });
        }
    }
    plan
}

/// Never so far that a batch that waits to be sent again comes from more than an hour ahead, which is refused.
fn clock_changes(prng: &mut Prng, requests: u32) -> Vec<ClockChange> {
    const MINUTES_25: i64 = 25 * 60 * 1000;
    let count = if prng.chance(1, 4) { prng.between(1, 3) } else { 0 };
    let mut changes: Vec<ClockChange> = (0..count)
        .map(|_| ClockChange {
            after: prng.below(requests.into()) as u32,
            wrong_ms: *prng.pick(&[-MINUTES_25, -60_000, -3000, -200, 0, 200, 3000, 60_000, MINUTES_25]),
        })
        .collect();
    changes.sort_by_key(|change| change.after);
    changes
}

fn fault(prng: &mut Prng) -> Fault {
    let error = *prng.pick(&[ErrorKind::Other, ErrorKind::StorageFull]);
    let (kind, effect) = match prng.below(12) {
        0..2 => (OpKind::Write, Effect::Error(error)),
        2..4 => (OpKind::Write, Effect::ShortWrite { bytes: prng.below(5000), error }),
        4..8 => (OpKind::Sync, Effect::Sync(*prng.pick(&SyncFailure::ALL))),
        8 => (OpKind::SyncDir, Effect::Error(error)),
        9 => (OpKind::Rename, Effect::Error(error)),
        10 => (OpKind::Read, Effect::Error(error)),
        _ => {
            let kinds = [
                OpKind::Create,
                OpKind::Open,
                OpKind::SetLen,
                OpKind::RemoveFile,
                OpKind::CreateDir,
                OpKind::List,
                OpKind::Metadata,
                OpKind::SetModified,
                OpKind::RemoveDir,
            ];
            (*prng.pick(&kinds), Effect::Error(error))
        }
    };
    let path = *prng.pick(&["*", "*", "*.log", "data/meta.db*"]);
    let path = if matches!(kind, OpKind::Write | OpKind::Sync) { path } else { "*" };
    // Some come often, and some a few times in a life.
    let is_rare =
        matches!(kind, OpKind::SetLen | OpKind::RemoveDir | OpKind::CreateDir | OpKind::List | OpKind::RemoveFile);
    Fault::on(&[kind], effect).path(path).skip(prng.below(if is_rare { 4 } else { 30 }))
}
