//! Several logs of a data directory: which is cleaned when, what an error does, and what is seen of it.

use std::sync::Arc;
use std::time::Duration;

use crate::protocol::Uuid;
use crate::record::{BatchBuilder, BatchOptions, CheckedBatch};
use crate::storage::catalog::ConfigMap;
use crate::storage::cleaner::{Checkpoint, Cleaner, CleanerSettings, Work};
use crate::storage::log::{LogConfig, PartitionLog};
use crate::storage::retention::Retention;
use crate::storage::store::{Store, StoreConfig};
use crate::sys::Random;
use crate::sys::sim::{Effect, Fault, OpKind, SimEnv};

struct World {
    sim: SimEnv,
    store: Arc<Store>,
    cleaner: Cleaner,
    work: Work,
    settings: CleanerSettings,
}

impl World {
    fn new(change: impl Fn(&mut LogConfig) + Send + Sync + 'static) -> World {
        let (_, sim) = SimEnv::new(1);
        let (env, sim) = SimEnv::around(1, sim.fs);
        let log_config = Arc::new(move |_: &ConfigMap| {
            let mut config = LogConfig {
                segment_bytes: 2000,
                compact: true,
                delete: false,
                min_cleanable_dirty_ratio: 0.0,
                ..LogConfig::default()
            };
            change(&mut config);
            config
        });
        let store = Store::open(env, StoreConfig { data_dir: "/data".into(), meta_db: None, log_config }).unwrap();
        let store = Arc::new(store);
        let cleaner = Cleaner::new(store.clone());
        World { sim, store, cleaner, work: Work::default(), settings: CleanerSettings::default() }
    }

    fn create(&self, name: &str) -> Arc<PartitionLog> {
        let mut id = [0; 16];
        self.sim.random.fill(&mut id);
        let topic = self.store.create_topic(name, Uuid(id), 1, ConfigMap::new()).unwrap();
        self.store.partition(topic.id, 0).unwrap()
    }

    fn step(&mut self) -> Duration {
        self.cleaner.step(&mut self.work, &self.settings)
    }

    /// Until there is nothing to do now.
    fn clean(&mut self) {
        for _ in 0..1000 {
            if self.step() == self.settings.rest && self.work.is_idle() {
                return;
            }
        }
        panic!("there is always something to clean");
    }
}

fn fill(world: &World, log: &PartitionLog) {
    for i in 0..60 {
        let mut builder = BatchBuilder::new(BatchOptions::default()).unwrap();
        let now_ms = world.sim.env().clock.now_ms();
        builder.append(now_ms, Some(&[i % 7]), Some(&[i; 100]), &[]).unwrap();
        log.append(CheckedBatch::of_own(builder.finish(None).unwrap()).unwrap(), 0).unwrap();
    }
}

fn checkpoint(log: &PartitionLog) -> Checkpoint {
    Checkpoint::read(&*log.env().fs, &log.dir()).unwrap()
}

#[test]
fn an_error_on_one_partition_is_seen_tried_again_later_and_holds_up_no_other() {
    let mut world = World::new(|_| {});
    let [bad, good] = [world.create("bad"), world.create("good")];
    fill(&world, &bad);
    fill(&world, &good);
    let full = Effect::Error(std::io::ErrorKind::StorageFull);
    world.sim.fs.inject(Fault::on(&[OpKind::Create], full).path("*bad-0/*.cleaned").forever());
    let size = bad.size_bytes();
    world.clean();
    assert!(checkpoint(&good).cleaned > 0 && good.size_bytes() < size / 2, "the other one is cleaned");
    let states = world.cleaner.states();
    assert_eq!(states.iter().map(|state| state.topic.as_str()).collect::<Vec<_>>(), ["bad", "good"]);
    assert!(states[1].checkpoint.error.is_none() && states[1].last.is_some() && states[1].retry_in.is_none());
    let said = states[0].checkpoint.error.clone().unwrap();
    assert!(said.contains("bad-0") && said.contains("cleaned"), "{said}");
    assert_eq!((states[0].checkpoint.failures, states[0].checkpoint.cleaned), (1, 0));
    assert_eq!(states[0].retry_in, Some(Duration::from_secs(1)));
    assert_eq!(checkpoint(&bad), states[0].checkpoint, "those who look at the files see the same");
    assert_eq!(bad.size_bytes(), size);

    for failures in 2..6 {
        world.sim.clock.advance(Duration::from_secs(1 << failures));
        world.clean();
        assert_eq!(checkpoint(&bad).failures, failures, "tried again, later and later");
    }
    world.sim.fs.clear_faults();
    world.clean();
    assert_eq!(bad.size_bytes(), size, "it is left alone for now");
    world.sim.clock.advance(Duration::from_secs(300));
    world.clean();
    assert!(checkpoint(&bad).cleaned > 0 && bad.size_bytes() < size / 2);
    assert_eq!((checkpoint(&bad).failures, checkpoint(&bad).error), (0, None));
}

#[test]
fn a_pass_takes_no_more_than_it_may_and_rests_while_producers_write() {
    let mut world = World::new(|_| {});
    let log = world.create("busy");
    fill(&world, &log);
    world.settings.bytes_per_second = 1000.0;
    let rest = world.step();
    assert!(rest >= Duration::from_secs(10), "some 16,000 bytes were read: {rest:?}");
    assert!(world.work.is_idle(), "a log as small as this is one step");
    assert_eq!(world.step(), world.settings.rest);
    world.settings.bytes_per_second = f64::MAX;
    fill(&world, &log);
    assert_eq!(world.step(), Duration::ZERO, "with nobody there is no reason to wait");
}

#[test]
fn a_log_that_is_compacted_and_deleted_from_is_cleaned_first() {
    let mut world = World::new(|config| {
        config.delete = true;
        config.retention_bytes = 1500;
    });
    let log = world.create("both");
    fill(&world, &log);
    let retention = Retention::new(world.store.clone());
    let topic_id = world.store.open_partitions()[0].0;
    assert_eq!(retention.sweep(|id, log| !world.cleaner.is_due(id, log)), 0, "not before it was cleaned");
    assert!(world.cleaner.is_due(topic_id, &log));
    world.clean();
    assert!(!world.cleaner.is_due(topic_id, &log));
    assert_eq!(log.offsets().start, 0);
    retention.sweep(|id, log| !world.cleaner.is_due(id, log));
    assert!(log.size_bytes() < 2 * 2000);
    // An error that lasts does not keep old segments for ever.
    fill(&world, &log);
    let full = Effect::Error(std::io::ErrorKind::StorageFull);
    world.sim.fs.inject(Fault::on(&[OpKind::Create], full).path("*.cleaned").forever());
    world.clean();
    assert!(!world.cleaner.is_due(topic_id, &log), "it is left alone");
    assert_eq!(retention.sweep(|id, log| !world.cleaner.is_due(id, log)), 1);
}

#[test]
fn a_partition_that_is_deleted_in_a_pass_is_forgotten_without_a_word() {
    let mut world = World::new(|_| {});
    let log = world.create("gone");
    fill(&world, &log);
    let topic_id = world.store.open_partitions()[0].0;
    // As many bytes as the first segment has: the pass is under way.
    world.work.pass = world.cleaner.start_most_dirty(&world.settings);
    assert!(!world.work.is_idle());
    assert!(world.cleaner.states()[0].is_running);
    world.store.delete_topic("gone").unwrap();
    world.clean();
    assert!(world.cleaner.states().is_empty());
    assert!(world.store.open_partition(topic_id, 0).is_none());
    assert!(world.cleaner.logs.lock().is_empty());
}
