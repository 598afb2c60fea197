//! One life of the broker: it starts, everything is looked at, clients use it, and it ends in some way.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use doze::broker::config::BrokerConfig;
use doze::broker::{Broker, Settings};
use doze::sys::Env;
use doze::sys::sim::{Effect, Fault, OpKind, Prng, SimRandom};
use tokio::task::LocalSet;

use crate::audit;
use crate::clients::streams_group::SESSION_MS;
use crate::clients::{self, Client};
use crate::log_model::Loss;
use crate::net::Connection;
use crate::outside::TimedWorkers;
use crate::plan::{End, LifePlan};
use crate::world::{Canary, World};

/// How long a life may be, in virtual time.
const LONGEST: Duration = Duration::from_secs(120);

/// A client and the place for it while it lives.
pub type Clients = Vec<Rc<tokio::sync::Mutex<Box<dyn Client>>>>;

fn settings(world: &World, fsync_interval_ms: Option<u64>) -> Settings {
    let standbys = (world.seed % 2).to_string();
    let session_ms = if world.canary == Canary::ShortSessions { 600 } else { SESSION_MS }.to_string();
    let configs = [
        ("log.dirs", "/data"),
        ("auto.create.topics.enable", "false"),
        ("offsets.topic.num.partitions", "1"),
        ("group.consumer.assignment.interval.ms", "0"),
        ("group.initial.rebalance.delay.ms", "0"),
        ("group.min.session.timeout.ms", "100"),
        ("group.share.assignment.interval.ms", "0"),
        ("group.share.min.heartbeat.interval.ms", "100"),
        ("group.share.min.session.timeout.ms", "100"),
        ("group.share.min.record.lock.duration.ms", "1000"),
        ("group.streams.assignment.interval.ms", "0"),
        ("group.streams.heartbeat.interval.ms", "500"),
        ("group.streams.initial.rebalance.delay.ms", "0"),
        ("group.streams.min.heartbeat.interval.ms", "100"),
        ("group.streams.min.session.timeout.ms", "100"),
        ("group.streams.num.standby.replicas", &standbys),
        ("group.streams.session.timeout.ms", &session_ms),
        ("log.cleaner.backoff.ms", "40"),
        ("log.cleaner.io.buffer.size", "16384"),
        ("transaction.abort.timed.out.transaction.cleanup.interval.ms", "200"),
    ];
    let configs = configs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let interval = fsync_interval_ms.map(Duration::from_millis);
    Settings::new(BrokerConfig::at_start(configs).unwrap(), None, interval).unwrap()
}

/// Lives life number `number`. `is_last`: everything is brought to rest and looked at.
pub fn live(world: &Rc<World>, number: u64, plan: &LifePlan, think_ms: u64, clients: &Clients, is_last: bool) {
    let seed = world.seed ^ number.rotate_left(40);
    let mut prng = Prng::stream(seed, "life");
    let fs = world.fs();
    world.set_fs(fs.clone());
    world.note("plan", format_args!("life {number}: {plan:?}"));
    if let Some(operations) = plan.stop_after {
        fs.stop_after(fs.operations() + operations);
    }
    // What was planned for the life before and did not come to pass.
    fs.clear_faults();
    plan.faults.iter().for_each(|fault| fs.inject(fault.clone()));
    put_in(world.canary, &fs);
    let effects_before = fs.injected_effects();
    let kinds_before = fs.injected();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let local = LocalSet::new();
    let stopped = local.block_on(&runtime, async {
        world.clock.start();
        let stopped = run(world, number, seed, plan, think_ms, clients, is_last).await;
        // From here on no time passes that the next life does not know of.
        world.clock.stop(Duration::from_millis(plan.pause_ms));
        stopped
    });
    // Whatever is still under way must not reach the disk.
    let cut = match plan.end {
        End::Cut(cut) => Some(cut),
        // A process that ends at an operation, and nothing is said of how: the power went.
        _ if fs.has_stopped() && prng.chance(1, 2) => Some(doze::sys::sim::Cut::ANY),
        _ => None,
    };
    let mut lost_pages = false;
    for (effect, n) in fs.injected_effects() {
        let n = n - effects_before.get(effect).copied().unwrap_or(0);
        lost_pages |= n > 0 && effect.starts_with("failed flush");
        world.history.borrow_mut().counts.add(&format!("fault: {effect}"), n);
    }
    for (kind, n) in fs.injected() {
        let n = n - kinds_before.get(&kind).copied().unwrap_or(0);
        lost_pages |= n > 0 && matches!(kind, OpKind::Sync | OpKind::SyncDir) && world.canary == Canary::None;
        world.history.borrow_mut().counts.add(&format!("fault at {kind:?}"), n);
    }
    let (next, loss) = match cut {
        Some(cut) => {
            if fs.has_stopped() {
                world.count("power cuts between two operations of the disk");
            }
            world.count(&format!("power cut: names {:?}, data {:?}", cut.names, cut.data));
            (fs.power_cut(cut, &mut prng), Loss::Unflushed)
        }
        None => {
            world.count(if stopped { "clean stops" } else { "kills" });
            let loss = if lost_pages { Loss::Unflushed } else { Loss::Nothing };
            (fs.kill(), if stopped { Loss::NothingAndFlushed } else { loss })
        }
    };
    world.note("end", format_args!("{cut:?}, {loss:?}"));
    world.broker.take();
    drop(local);
    drop(runtime);
    let now = world.now();
    world.model.borrow_mut().process_ended(loss, now);
    world.set_fs(next);
}

/// Answers whether it came to a clean stop.
async fn run(
    world: &Rc<World>,
    number: u64,
    seed: u64,
    plan: &LifePlan,
    think_ms: u64,
    clients: &Clients,
    is_last: bool,
) -> bool {
    let fs = world.fs();
    let env = Env {
        fs: Arc::new(fs.clone()),
        clock: world.clock.clone(),
        random: Arc::new(SimRandom::new(seed)),
        workers: Arc::new(TimedWorkers::new(seed)),
    };
    let broker = match Broker::open(env, settings(world, plan.fsync_interval_ms)) {
        Ok(broker) => broker,
        Err(error) => {
            if !world.is_troubled() {
                world.violate(format!("it does not start: {error}"));
            }
            world.count("starts that failed");
            world.note("start", format_args!("fails: {error}"));
            return false;
        }
    };
    *world.broker.borrow_mut() = Some(broker.clone());
    let auditor = Connection::of_auditor(world, number);
    let looked = async {
        audit::look(&auditor).await;
        if is_last {
            audit::settle(&auditor).await;
            audit::look(&auditor).await;
            audit::drain_share_group(&auditor).await;
            clients::streams_group::calm_down(&auditor).await;
            audit::look_at_topics(&auditor).await;
        } else {
            clients::make_stable_topics(&auditor).await;
        }
    };
    tokio::select! {
        biased;
        () = looked => {}
        () = until_stopped(world) => {}
    }
    if !is_last {
        world.budget.set(plan.requests);
        world.accepting.set(true);
        for client in clients {
            let (client, world) = (client.clone(), world.clone());
            tokio::task::spawn_local(async move {
                // Nobody else has it while its life lasts.
                let mut client = client.lock().await;
                let connection = Connection::new(&world, client.name(), number, think_ms);
                client.live(&connection).await;
            });
        }
        attend(world, plan).await;
    }
    let stops = plan.end == End::Stop && !fs.has_stopped() && world.violation().is_none();
    if !stops {
        return false;
    }
    stop(world, &broker).await
}

/// Returns when the process is no more, or the history is over.
async fn until_stopped(world: &World) {
    while !world.fs().has_stopped() && world.violation().is_none() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits for the end of the clients' work, and has the disk fill up meanwhile.
async fn attend(world: &World, plan: &LifePlan) {
    let fs = world.fs();
    let started = tokio::time::Instant::now();
    let (mut full, mut freed) = (false, false);
    let mut clock_changes = plan.clock_changes.iter().peekable();
    while world.budget.get() > 0 && !fs.has_stopped() && world.violation().is_none() && started.elapsed() < LONGEST {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let made = plan.requests - world.budget.get();
        while let Some(change) = clock_changes.next_if(|change| made >= change.after) {
            let by_ms = world.clock.set_wrong(change.wrong_ms);
            world.note("clock", format_args!("set by {by_ms} ms"));
            match by_ms {
                0 => {}
                1.. => world.count("wall clocks set forward"),
                _ => world.count("wall clocks set back"),
            }
        }
        if let Some(plan) = &plan.full {
            if !full && made >= plan.after {
                full = true;
                fs.set_capacity(Some(fs.used_bytes() + plan.pages_left * 4096));
                world.note("disk", format_args!("{} pages are left", plan.pages_left));
            }
            if full && !freed && made >= plan.after + plan.for_requests {
                freed = true;
                fs.set_capacity(None);
                world.count("full disks that were freed");
                world.note("disk", "there is room again");
            }
        }
    }
    fs.set_capacity(None);
    // What is under way goes on for a moment.
    tokio::time::sleep(Duration::from_millis(2)).await;
}

/// As the executable stops: nothing is taken in, waits end, what is under way ends, all is closed.
async fn stop(world: &World, broker: &Arc<Broker>) -> bool {
    world.accepting.set(false);
    broker.stop_waiting();
    let started = tokio::time::Instant::now();
    while world.in_flight.get() > 0 {
        if started.elapsed() > Duration::from_secs(40) {
            if !world.is_troubled() {
                world.violate("a request keeps the broker from stopping");
            }
            return false;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    match broker.close().await {
        Ok(()) => !world.fs().has_stopped(),
        Err(error) => {
            if !world.is_troubled() {
                world.violate(format!("it does not stop: {error}"));
            }
            world.note("stop", format_args!("fails: {error}"));
            false
        }
    }
}

/// The mistake that is to be found.
fn put_in(canary: Canary, fs: &doze::sys::sim::SimFileSystem) {
    let ignore = |kind, path: &str| fs.inject(Fault::on(&[kind], Effect::Ignored).path(path).forever());
    match canary {
        Canary::NoCatalogFlush => ignore(OpKind::Sync, "data/meta.db*"),
        Canary::NoFlush => ignore(OpKind::Sync, "data/*.log"),
        Canary::LostRename => ignore(OpKind::SyncDir, "data*"),
        // These are put in by the clients.
        _ => {}
    }
}
