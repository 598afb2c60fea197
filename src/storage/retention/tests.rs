//! Retention over a data directory whose clock is set by hand.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};

use super::*;
use crate::record::{BatchBuilder, BatchOptions, CheckedBatch};
use crate::storage::catalog::fault_fs::{FaultFs, faulty_env};
use crate::storage::catalog::{ConfigMap, Topic};
use crate::storage::log::LogConfig;
use crate::storage::store::StoreConfig;
use crate::sys::{Clock, Env, OsRandom};

#[derive(Debug)]
struct SetClock(AtomicI64);

impl Clock for SetClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.now_ms() as u64)
    }
}

/// A data directory, the settings of its broker, and one life of a process over it.
struct World {
    dir: tempfile::TempDir,
    clock: Arc<SetClock>,
    fs: FaultFs,
    store: Arc<Store>,
    retention: Retention,
    broker: Arc<Mutex<LogConfig>>,
}

fn now() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    now.as_millis() as i64
}

fn open(dir: PathBuf, broker: &Arc<Mutex<LogConfig>>, clock: &Arc<SetClock>) -> (FaultFs, Arc<Store>) {
    let (env, fs) = faulty_env();
    let broker = broker.clone();
    let log_config = Arc::new(move |configs: &ConfigMap| {
        let of_broker = broker.lock().clone();
        let long = |name: &str, or: i64| configs.get(name).map_or(or, |value| value.parse().unwrap());
        LogConfig {
            segment_bytes: long("segment.bytes", of_broker.segment_bytes.into()) as u32,
            segment_ms: long("segment.ms", of_broker.segment_ms),
            retention_ms: long("retention.ms", of_broker.retention_ms),
            retention_bytes: long("retention.bytes", of_broker.retention_bytes),
            delete: configs.get("cleanup.policy").is_none_or(|policy| policy.contains("delete")),
            ..of_broker
        }
    });
    let env = Env { clock: clock.clone(), ..env };
    let store = Store::open(env, StoreConfig { data_dir: dir, meta_db: None, log_config }).unwrap();
    (fs, Arc::new(store))
}

impl World {
    fn new(retention_ms: i64, retention_bytes: i64) -> World {
        let config = LogConfig { segment_bytes: 1000, retention_ms, retention_bytes, ..LogConfig::default() };
        let (dir, broker) = (tempfile::tempdir().unwrap(), Arc::new(Mutex::new(config)));
        let clock = Arc::new(SetClock(AtomicI64::new(now())));
        let (fs, store) = open(dir.path().join("data"), &broker, &clock);
        World { retention: Retention::new(store.clone()), dir, clock, fs, store, broker }
    }

    /// The next life, after a stop.
    fn restarted(self) -> World {
        self.store.close().unwrap();
        let World { dir, clock, broker, .. } = self;
        let (fs, store) = open(dir.path().join("data"), &broker, &clock);
        World { retention: Retention::new(store.clone()), dir, clock, fs, store, broker }
    }

    fn create(&self, name: &str, configs: &[(&str, &str)]) -> Arc<Topic> {
        let configs = configs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        self.store.create_topic(name, Uuid::random(&OsRandom), 1, configs).unwrap()
    }

    fn log(&self, topic: &Topic) -> Arc<PartitionLog> {
        self.store.partition(topic.id, 0).unwrap()
    }

    fn set(&self, topic: &Topic, key: &str, value: Option<&str>) {
        let change = (key.to_owned(), value.map(str::to_owned));
        self.store.alter_topic_configs(&topic.name, vec![change]).unwrap();
    }

    fn pass(&self, ms: i64) {
        self.clock.0.fetch_add(ms, Ordering::SeqCst);
    }

    fn sweep(&self) -> usize {
        self.retention.sweep(|_, _| true)
    }

    fn now(&self) -> i64 {
        self.clock.now_ms()
    }
}

fn batch(timestamp: i64) -> CheckedBatch {
    let mut builder = BatchBuilder::new(BatchOptions::default()).unwrap();
    builder.append(timestamp, Some(b"key"), Some(&[7; 100]), &[]).unwrap();
    CheckedBatch::of_own(builder.finish(None).unwrap()).unwrap()
}

fn fill(log: &PartitionLog, count: usize, timestamp: i64) {
    for _ in 0..count {
        log.append(batch(timestamp), 0).unwrap();
    }
}

#[test]
fn a_topics_own_limits_go_before_the_brokers_in_both_directions() {
    let world = World::new(-1, 3000);
    let [plain, keeps, trimmed] = [
        world.create("plain", &[]),
        world.create("keeps", &[("retention.bytes", "-1")]),
        world.create("trimmed", &[("retention.bytes", "1000"), ("segment.bytes", "500")]),
    ];
    for topic in [&plain, &keeps, &trimmed] {
        fill(&world.log(topic), 60, world.now());
    }
    assert_eq!(world.sweep(), 2);
    let size = |topic| world.log(topic).size_bytes();
    assert!((3000..4000).contains(&size(&plain)), "{}", size(&plain));
    assert!((1000..1500).contains(&size(&trimmed)), "{}", size(&trimmed));
    assert_eq!(world.log(&keeps).offsets().start, 0);
    assert_eq!(world.sweep(), 0, "once is enough");

    world.set(&keeps, "retention.bytes", Some("2000"));
    world.set(&plain, "retention.bytes", Some("-1"));
    fill(&world.log(&plain), 60, world.now());
    assert_eq!(world.sweep(), 1, "a change counts at once");
    assert!((2000..3000).contains(&size(&keeps)));
    let starts = [&plain, &keeps, &trimmed].map(|topic| world.log(topic).offsets().start);
    assert!(starts.iter().all(|start| *start > 0), "{starts:?}");

    let world = world.restarted();
    assert_eq!([&plain, &keeps, &trimmed].map(|topic| world.log(topic).offsets().start), starts);
    assert_eq!(world.sweep(), 0, "after a restart the settings are the same");
    world.set(&keeps, "retention.bytes", None);
    world.broker.lock().retention_bytes = 1000;
    world.store.refresh_log_configs(None);
    assert_eq!(world.sweep(), 1, "the broker's own settings count at once as well, for topics without their own");
    assert!(world.log(&keeps).size_bytes() < 2000);
}

#[test]
fn age_is_that_of_the_latest_record_and_one_from_the_future_holds_nothing_for_ever() {
    let world = World::new(10_000, -1);
    let [old, future, compacted] = [
        world.create("old", &[]),
        world.create("future", &[]),
        world.create("compacted", &[("cleanup.policy", "compact")]),
    ];
    let log = world.log(&old);
    fill(&log, 20, world.now());
    fill(&log, 20, world.now() + 5_000);
    fill(&world.log(&future), 20, world.now() + 365 * 24 * 3_600_000);
    fill(&world.log(&compacted), 20, world.now() - 100_000);
    assert_eq!(world.sweep(), 0);
    world.pass(10_100);
    assert_eq!(
        world.sweep(),
        2,
        "the clock of a producer that was a year ahead is not believed: its file's age counts"
    );
    assert!((1..=20).contains(&log.offsets().start), "{:?}", log.offsets());
    world.pass(5_000);
    assert_eq!(world.sweep(), 1);
    for topic in [&old, &future] {
        let log = world.log(topic);
        assert!(log.offsets().start > 0);
        assert_eq!(log.segment_count(), 1, "the active segment is never deleted");
    }
    assert_eq!(world.log(&compacted).offsets().start, 0, "a topic that is only compacted loses nothing by age");
}

#[test]
fn a_quiet_active_segment_is_sealed_in_time_and_then_goes() {
    for restart in [false, true] {
        let world = World::new(10_000, -1);
        let topic = world.create("quiet", &[("segment.ms", "60000")]);
        // An import of old data: its age is not the segment's.
        fill(&world.log(&topic), 3, world.now() - 1_000_000);
        assert_eq!((world.sweep(), world.log(&topic).segment_count()), (0, 1));
        world.pass(30_000);
        assert_eq!((world.sweep(), world.log(&topic).segment_count()), (0, 1));
        let world = if restart { world.restarted() } else { world };
        world.pass(31_000);
        assert_eq!(world.sweep(), 1, "restart: {restart}");
        let log = world.store.open_partition(topic.id, 0).expect("what is due is opened");
        assert_eq!((log.segment_count(), log.offsets().start, log.offsets().end), (1, 3, 3));
        world.pass(1_000_000);
        assert_eq!((world.sweep(), log.segment_count()), (0, 1), "an empty segment is not sealed");
        let world = world.restarted();
        assert_eq!(world.log(&topic).append(batch(world.now()), 0).unwrap().first_offset, 3);
    }
}

#[test]
fn partitions_that_nobody_uses_are_looked_at_once_and_opened_only_when_something_is_due() {
    let world = World::new(-1, -1);
    let topics: Vec<_> = (0..50).map(|i| world.create(&format!("idle-{i}"), &[])).collect();
    let limited: Vec<_> =
        (0..50).map(|i| world.create(&format!("limited-{i}"), &[("retention.ms", "100000")])).collect();
    topics.iter().chain(&limited).for_each(|topic| fill(&world.log(topic), 20, world.now()));
    let world = world.restarted();
    let looks = |world: &World| world.fs.with(|faults| std::mem::take(&mut faults.looks));
    let operations = |world: &World| world.fs.with(|faults| faults.operations);
    let before = (looks(&world), operations(&world)).1;
    world.sweep();
    assert!((50..=400).contains(&looks(&world)), "each that has limits was looked at");
    for _ in 0..90 {
        world.pass(1_000);
        world.sweep();
    }
    assert_eq!((looks(&world), operations(&world)), (0, before), "and then no more");
    assert_eq!(world.store.open_partitions().len(), 0);
    world.pass(120_000);
    assert_eq!(world.sweep(), 50);
    assert_eq!(world.store.open_partitions().len(), 50, "those without limits stay closed");

    world.set(&topics[7], "retention.bytes", Some("500"));
    assert_eq!(world.sweep(), 1, "a change counts at once, also for one that was not open");
    assert!(world.log(&topics[7]).offsets().start > 0);
}

#[test]
fn what_cannot_be_made_durable_or_removed_is_tried_again_and_holds_up_nobody() {
    let world = World::new(-1, 1000);
    let [bad, good] = [world.create("bad", &[]), world.create("good", &[])];
    fill(&world.log(&bad), 30, world.now());
    world.fs.with(|faults| faults.full = true);
    assert_eq!(world.sweep(), 0);
    assert_eq!(world.log(&bad).offsets().start, 0, "nothing goes before the new start is durable");
    assert!(world.log(&bad).is_offline().is_none());
    world.fs.with(|faults| faults.full = false);
    fill(&world.log(&good), 30, world.now());
    assert_eq!(world.sweep(), 1, "what has failed is left alone for a moment, and nothing else is");
    assert!(world.log(&good).offsets().start > 0);
    world.pass(1_500);
    assert_eq!(world.sweep(), 1);
    assert!(world.log(&bad).offsets().start > 0);
    let starts = [&bad, &good].map(|topic| world.log(topic).offsets().start);
    let world = world.restarted();
    assert_eq!([&bad, &good].map(|topic| world.log(topic).offsets().start), starts);
}
