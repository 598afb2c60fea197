//! Histories, one by one and by the thousand.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use doze::sys::sim::Prng;
use parking_lot::Mutex;

use crate::clients;
use crate::history::Counts;
use crate::life;
use crate::plan::{LifePlan, Plan};
use crate::world::{Canary, World};

/// What came of a seed.
pub struct Outcome {
    pub violation: Option<String>,
    pub events: Vec<String>,
    pub digest: u64,
    pub counts: Counts,
}

thread_local! {
    /// What panicked on this thread, in a task or a job whose caller takes no notice.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Has panics noted, and printed no more often than they are found; and what the broker logs printed, if that is wanted.
fn note_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if std::env::var_os("DOZE_TELL").is_some() {
            let filter = tracing_subscriber::EnvFilter::from_default_env();
            let log = tracing_subscriber::fmt().with_writer(std::io::stderr).without_time().with_env_filter(filter);
            log.init();
        }
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let is_ours = std::thread::current().name().is_some_and(|name| name.starts_with("seeds"));
            if !is_ours {
                return before(info);
            }
            PANIC.with_borrow_mut(|panic| _ = panic.get_or_insert_with(|| info.to_string()));
        }));
    });
}

/// Runs the history of a seed.
pub fn history(seed: u64, canary: Canary) -> Outcome {
    note_panics();
    PANIC.take();
    let world = Rc::new(World::new(seed, canary));
    let plan = Plan::of(seed);
    let drawn = clients::draw(&mut Prng::stream(seed, "clients"));
    let clients: life::Clients = drawn.into_iter().map(|client| Rc::new(tokio::sync::Mutex::new(client))).collect();
    let run = catch_unwind(AssertUnwindSafe(|| {
        for (number, plan_of_life) in (0..).zip(&plan.lives) {
            life::live(&world, number, plan_of_life, plan.think_ms, &clients, false);
            if world.violation().is_some() || PANIC.with_borrow(Option::is_some) {
                return;
            }
        }
        life::live(&world, plan.lives.len() as u64, &LifePlan::last(), 1, &clients, true);
    }));
    if let Some(panic) = PANIC.take() {
        world.violate(format!("a panic: {panic}"));
    } else if run.is_err() {
        world.violate("a panic");
    }
    for operation in world.fs().log() {
        let mut history = world.history.borrow_mut();
        history.mix(&operation.number.to_be_bytes());
        history.mix(operation.path.as_os_str().as_encoded_bytes());
        history.mix(&[operation.kind as u8]);
        history.mix(&operation.position.unwrap_or(0).to_be_bytes());
        history.counts.add(&format!("operation {:?}", operation.kind), 1);
        if operation.kind == doze::sys::sim::OpKind::Rename
            && operation.path.extension().is_some_and(|suffix| suffix == "swap")
        {
            history.counts.add("files of segments swapped in by the cleaner", 1);
        }
    }
    let history = world.history.borrow();
    Outcome {
        violation: world.violation(),
        events: history.events().to_vec(),
        digest: history.digest(),
        counts: history.counts.clone(),
    }
}

/// Runs these seeds on all processors, until `stop` says so of an outcome. Answers the counts, and how many seeds ran.
pub fn seeds(first: u64, count: u64, canary: Canary, found: &(impl Fn(u64, &Outcome) -> bool + Sync)) -> (Counts, u64) {
    let (next, ran) = (AtomicU64::new(first), AtomicU64::new(0));
    let counts = Mutex::new(Counts::default());
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let watchdog = Watchdog::start();
    std::thread::scope(|scope| {
        for n in 0..threads {
            let (watchdog, next, ran, counts) = (&watchdog, &next, &ran, &counts);
            let work = move || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        return;
                    }
                    watchdog.set(n, Some(seed));
                    let outcome = history(seed, canary);
                    watchdog.set(n, None);
                    ran.fetch_add(1, Ordering::Relaxed);
                    counts.lock().merge(&outcome.counts);
                    if found(seed, &outcome) {
                        next.store(first + count, Ordering::Relaxed);
                        return;
                    }
                }
            };
            std::thread::Builder::new().name(format!("seeds-{n}")).spawn_scoped(scope, work).unwrap();
        }
    });
    (counts.into_inner(), ran.into_inner())
}

/// Ends the process when a history takes for ever: something in it waits without letting time pass.
struct Watchdog(Arc<Mutex<BTreeMap<usize, (u64, Instant)>>>);

/// Of real time; even a busy machine is through with a history in a second or two.
const LONGEST: Duration = Duration::from_secs(180);

impl Watchdog {
    fn start() -> Watchdog {
        let running: Arc<Mutex<BTreeMap<usize, (u64, Instant)>>> = Arc::default();
        let seen = Arc::downgrade(&running);
        std::thread::spawn(move || {
            while let Some(running) = seen.upgrade() {
                if let Some((seed, _)) = running.lock().values().find(|(_, since)| since.elapsed() > LONGEST) {
                    eprintln!("seed {seed} never ends; DOZE_TELL=1 DOZE_SEED={seed} DOZE_SEEDS=1 shows where it is");
                    std::process::exit(101);
                }
                drop(running);
                std::thread::sleep(Duration::from_secs(1));
            }
        });
        Watchdog(running)
    }

    fn set(&self, thread: usize, seed: Option<u64>) {
        match seed {
            Some(seed) => drop(self.0.lock().insert(thread, (seed, Instant::now()))),
            None => drop(self.0.lock().remove(&thread)),
        }
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// What has to have happened in a thousand histories, or they prove less than they seem to.
const WANTED: &[&str] = &[
    "fault: error",
    "fault: short write",
    "fault: failed flush, pages dropped",
    "fault: failed flush, pages marked clean",
    "fault: failed flush, pages written",
    "fault: full disk",
    "fault at Create",
    "fault at Open",
    "fault at Read",
    "fault at Write",
    "fault at Sync",
    "fault at SyncDir",
    "fault at Rename",
    "fault at RemoveFile",
    "fault at SetLen",
    "fault at Metadata",
    "full disks that were freed",
    "wall clocks set forward",
    "wall clocks set back",
    "power cut: ",
    "power cuts between two operations of the disk",
    "kills",
    "clean stops",
    "starts that failed",
    "an answer got lost",
    "batches acknowledged at acks=1",
    "batches acknowledged at acks=-1",
    "batches sent again by idempotent producers",
    "duplicates acknowledged",
    "requests sent before the one before was answered",
    "batches refused behind one that failed",
    "transactions committed",
    "transactions aborted",
    "transactions left open by their producer",
    "ends of transactions refused",
    "offsets committed",
    "generations of classic groups joined",
    "assignments of consumer groups",
    "share: records handed out",
    "share: records handed out again",
    "share: records handed out for the last time",
    "share: acknowledgements, accept",
    "share: acknowledgements, release",
    "share: acknowledgements, reject",
    "share: acknowledgements, gap",
    "share: acknowledgements, renew",
    "share: acknowledgements refused",
    "share: locks that ran out",
    "share: sessions ended",
    "share: epochs of sessions refused",
    "share: start offsets shown",
    "share: starts moved",
    "share: partitions drained at the end",
    "streams: assignments of tasks that changed",
    "streams: members that died and came back",
    "streams: offsets committed",
    "streams: groups that have calmed down",
    "members fenced that were told so",
    "changes of topics acknowledged",
    "records deleted by DeleteRecords",
    "files of segments swapped in by the cleaner",
];

/// `DOZE_SEEDS` histories, a thousand unless it is said, from seed `DOZE_SEED` on.
#[test]
fn a_thousand_seeds_keep_every_promise() {
    let started = Instant::now();
    let (first, count) = (number("DOZE_SEED").unwrap_or(1), number("DOZE_SEEDS").unwrap_or(1000));
    let failures = Mutex::new(Vec::new());
    let (counts, ran) = seeds(first, count, Canary::None, &|seed, outcome| {
        let Some(violation) = &outcome.violation else { return false };
        let from = outcome.events.len().saturating_sub(150);
        let events = outcome.events[from..].join("\n");
        let replay = format!("DOZE_SEED={seed} DOZE_SEEDS=1 cargo test --test simulation a_thousand -- --nocapture");
        let said = format!("seed {seed}: {violation}\nto play it again: {replay}");
        eprintln!("{events}\n{said}");
        let mut failures = failures.lock();
        failures.push(said);
        // A few are enough, and more than one tells more.
        failures.len() >= 5
    });
    println!("{ran} seeds from {first} on, in {:.1} s:", started.elapsed().as_secs_f32());
    counts.print();
    let failures = failures.into_inner();
    assert!(failures.is_empty(), "{} histories broke a promise:\n{}", failures.len(), failures.join("\n"));
    if count >= 1000 {
        let missing: Vec<_> = WANTED.iter().filter(|what| counts.sum(what) == 0).collect();
        assert!(missing.is_empty(), "none of these has happened: {missing:?}");
    }
}

#[test]
fn one_seed_is_one_history() {
    let first = number("DOZE_SEED").unwrap_or(1);
    for seed in first..first + 12 {
        let (one, two) = (history(seed, Canary::None), history(seed, Canary::None));
        for (n, (one, two)) in one.events.iter().zip(&two.events).enumerate() {
            assert_eq!(one, two, "seed {seed}, event {n}");
        }
        assert_eq!((one.events.len(), one.digest), (two.events.len(), two.digest), "seed {seed}");
    }
}
