//! Partitions: opened lazily, trusted or checked, flushed, closed.

use std::time::Duration;

use super::*;
use crate::storage::catalog::CatalogError;

#[test]
fn a_partition_is_opened_once_at_its_first_use_whoever_asks() {
    let world = World::new();
    let store = world.open();
    let demo = create(&store, "demo", 4);
    assert!(store.open_partitions().is_empty() && store.open_partition(demo.id, 2).is_none());
    let logs: Vec<_> = std::thread::scope(|scope| {
        let open = || scope.spawn(|| store.partition(demo.id, 2).unwrap());
        let threads: Vec<_> = (0..8).map(|_| open()).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(logs.iter().all(|log| Arc::ptr_eq(log, &logs[0])));
    assert_eq!(store.open_partitions().len(), 1);
    for wrong in [-1, 4] {
        assert!(matches!(store.partition(demo.id, wrong), Err(PartitionError::Unknown)));
    }
    assert!(matches!(store.partition(id(), 0), Err(PartitionError::Unknown)));
}

#[test]
fn a_partition_that_cannot_be_opened_fails_alone_and_is_tried_again() {
    let world = World::new();
    let store = world.open();
    let demo = create(&store, "demo", 3);
    let (away, place) = (world.dir.path().join("away"), world.data_dir().join("demo-1"));
    std::fs::rename(&place, &away).unwrap();
    for _ in 0..2 {
        store.partition(demo.id, 1).unwrap_err();
    }
    store.partition(demo.id, 0).unwrap().append(batch("fine"), 0).unwrap();
    std::fs::rename(&away, &place).unwrap();
    store.partition(demo.id, 1).unwrap().append(batch("fine again"), 0).unwrap();
    // A directory of another topic is not taken for this one's.
    std::fs::write(world.data_dir().join("demo-2/partition.metadata"), format!("version: 0\ntopic_id: {}\n", id()))
        .unwrap();
    assert!(matches!(store.partition(demo.id, 2), Err(PartitionError::OtherTopic { .. })));
    std::fs::remove_file(world.data_dir().join("demo-2/partition.metadata")).unwrap();
    store.partition(demo.id, 2).unwrap();
    let metadata = std::fs::read_to_string(world.data_dir().join("demo-2/partition.metadata")).unwrap();
    assert!(metadata.contains(&demo.id.to_string()), "it is made anew where it is lost");
}

#[test]
fn records_survive_a_kill_and_a_clean_stop() {
    let mut world = World::new();
    let mut store = world.open();
    let demo = create(&store, "demo", 2);
    let mut expected = Vec::new();
    for life in 0..4 {
        let log = store.partition(demo.id, 1).unwrap();
        assert_eq!(values(&log, 0), expected);
        let value = format!("life {life}");
        log.append(batch(&value), 0).unwrap();
        expected.push(value);
        if life % 2 == 0 {
            sync(&log);
            drop(log);
            world = world.killed(store);
            store = world.open();
            assert!(!store.started_clean());
        } else {
            store.close().unwrap();
            assert!(matches!(store.partition(demo.id, 0), Err(PartitionError::Closed)));
            assert!(matches!(store.create_topic("x", id(), 1, ConfigMap::new()), Err(CreateTopicError::Closed)));
            assert!(matches!(store.delete_topic("demo"), Err(ChangeTopicError::Closed)));
            drop(log);
            drop(store);
            store = world.open();
            assert!(store.started_clean());
        }
    }
}

#[test]
fn what_no_life_since_a_crash_has_checked_is_not_vouched_for() {
    let world = World::new();
    let store = world.open();
    let demo = create(&store, "demo", 3);
    for partition in 0..2 {
        store.partition(demo.id, partition).unwrap().append(batch("in the page cache"), 0).unwrap();
    }
    let trusted =
        |store: &Store| -> Vec<bool> { (0..3).map(|n| store.trust.lock().includes(&format!("demo-{n}"))).collect() };
    let mut world = world.killed(store);
    // Partition 0 is used in this life, the others are not.
    let store = world.open();
    assert_eq!(trusted(&store), [false, false, false]);
    store.partition(demo.id, 0).unwrap();
    let later = create(&store, "later", 1);
    store.close().unwrap();
    drop(store);
    // Clean stops that follow do not change that, as long as nobody uses the other two.
    for _ in 0..2 {
        let store = world.open();
        assert!(store.started_clean());
        assert_eq!(trusted(&store), [true, false, false]);
        assert!(store.trust.lock().includes("later-0"), "it was made since");
        store.partition(later.id, 0).unwrap();
        store.close().unwrap();
    }
    let store = world.open();
    store.partition(demo.id, 1).unwrap();
    store.partition(demo.id, 2).unwrap();
    store.close().unwrap();
    drop(store);
    let store = world.open();
    assert_eq!(trusted(&store), [true, true, true]);
    world = world.killed(store);
    assert_eq!(trusted(&world.open()), [false, false, false]);
}

#[test]
fn deleted_records_stay_deleted() {
    let world = World::new();
    let store = world.open();
    let demo = create(&store, "demo", 1);
    let log = store.partition(demo.id, 0).unwrap();
    for n in 0..5 {
        log.append(batch(&n.to_string()), 0).unwrap();
    }
    assert_eq!(store.delete_records(demo.id, 0, 3).unwrap(), 3);
    assert_eq!(store.delete_records(demo.id, 0, 1).unwrap(), 3);
    for wrong in [-1, 6] {
        let refused = store.delete_records(demo.id, 0, wrong);
        assert!(matches!(refused, Err(DeleteRecordsError::OutOfRange { start: 3, end: 5, .. })), "{refused:?}");
    }
    assert!(matches!(store.delete_records(demo.id, 1, 0), Err(DeleteRecordsError::Partition(PartitionError::Unknown))));
    world.fs.with(|f| f.full = true);
    let refused = store.delete_records(demo.id, 0, 4);
    assert!(matches!(refused, Err(DeleteRecordsError::Catalog(CatalogError::Io { .. }))), "{refused:?}");
    assert_eq!(log.offsets().start, 3);
    world.fs.with(|f| f.full = false);
    let world = world.killed(store);
    let store = world.open();
    let log = store.partition(demo.id, 0).unwrap();
    assert_eq!((log.offsets().start, log.offsets().end), (3, 5));
    assert_eq!(store.delete_records(demo.id, 0, 5).unwrap(), 5);
}

#[test]
fn the_timer_flushes_what_was_appended_and_touches_nothing_else() {
    let world = World::new();
    let store = world.open();
    let demo = create(&store, "demo", 20);
    let logs: Vec<_> = (0..10).map(|n| store.partition(demo.id, n).unwrap()).collect();
    logs.iter().for_each(sync);
    while store.flush_dirty(Duration::ZERO) > 0 {}
    let before = world.fs.with(|f| f.operations);
    assert_eq!(store.flush_dirty(Duration::ZERO), 0);
    assert_eq!(world.fs.with(|f| f.operations), before);
    logs[3].append(batch("x"), 0).unwrap();
    logs[7].append(batch("y"), 0).unwrap();
    assert_eq!(store.flush_dirty(Duration::from_secs(3600)), 0, "not yet due");
    std::thread::sleep(Duration::from_millis(2));
    assert_eq!(store.flush_dirty(Duration::ZERO), 2);
    let started = std::time::Instant::now();
    while logs.iter().any(|log| log.unflushed().is_some()) {
        assert!(started.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(store.open_partitions().len(), 10);
}
