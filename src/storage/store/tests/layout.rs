//! Data directories of every kind: fresh, used, in use, someone else's, without their catalog.

use super::*;
use crate::storage::catalog::{Catalog, OpenCatalogError};

fn write(path: PathBuf, content: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

#[test]
fn an_empty_directory_just_works_and_keeps_its_cluster_id() {
    let world = World::new();
    let store = world.open();
    assert!(!store.started_clean());
    assert!(store.topics().is_empty());
    let cluster_id = store.catalog().cluster_id().to_owned();
    store.close().unwrap();
    store.close().unwrap();
    drop(store);
    let store = world.open();
    assert!(store.started_clean());
    assert_eq!(store.catalog().cluster_id(), cluster_id);
    let world = world.killed(store);
    assert!(!world.open().started_clean(), "the mark is good for one start");
}

#[test]
fn one_process_at_a_time() {
    let world = World::new();
    let store = world.open();
    let error = world.try_open().unwrap_err();
    assert!(matches!(&error, OpenStoreError::InUse { path } if *path == world.data_dir()), "{error}");
    lock_data_dir(&world.env, &world.data_dir()).unwrap_err();
    store.close().unwrap();
    world.open();
}

#[test]
fn other_directories_are_refused_and_not_touched() {
    let world = World::new();
    write(world.data_dir().join("thesis.tex"), b"...");
    let error = world.try_open().unwrap_err();
    assert!(matches!(&error, OpenStoreError::NotADataDirectory { example, .. } if example == "thesis.tex"), "{error}");
    assert_eq!(std::fs::read_dir(world.data_dir()).unwrap().count(), 1);

    let world = World::new();
    write(world.data_dir().join("meta.properties"), b"version=1\n");
    write(world.data_dir().join("demo-0/00000000000000000000.log"), b"");
    let error = world.try_open().unwrap_err();
    assert!(matches!(error, OpenStoreError::KafkaLogDirectory { .. }), "{error}");
    assert_eq!(std::fs::read_dir(world.data_dir()).unwrap().count(), 2);

    let world = World::new();
    write(world.data_dir(), b"a file");
    let error = world.try_open().unwrap_err();
    assert!(matches!(error, OpenStoreError::NotADataDirectory { .. }), "{error}");

    let world = World::new();
    write(world.data_dir().join(".DS_Store"), b"x");
    std::fs::create_dir(world.data_dir().join("lost+found")).unwrap();
    world.open();
}

#[test]
fn a_lost_catalog_is_not_replaced_by_an_empty_one() {
    let world = World::new();
    let store = world.open();
    create(&store, "demo", 2);
    store.close().unwrap();
    std::fs::remove_file(world.data_dir().join("meta.db")).unwrap();
    let error = world.try_open().unwrap_err();
    assert!(matches!(error, OpenStoreError::CatalogMissing { partitions: 2, .. }), "{error}");
    assert_eq!(world.names(), ["demo-0", "demo-1"]);
    assert!(!world.data_dir().join("meta.db").exists());
}

#[test]
fn a_damaged_a_newer_and_a_foreign_catalog_are_told_apart() {
    let world = World::new();
    world.open().close().unwrap();
    let path = world.data_dir().join("meta.db");
    let sound = std::fs::read(&path).unwrap();

    let mut damaged = sound.clone();
    damaged[64..320].fill(0x55);
    std::fs::write(&path, damaged).unwrap();
    let error = world.try_open().unwrap_err();
    assert!(matches!(error, OpenStoreError::Catalog(OpenCatalogError::Damaged { .. })), "{error}");

    std::fs::write(&path, b"no database").unwrap();
    let error = world.try_open().unwrap_err();
    assert!(matches!(error, OpenStoreError::Catalog(OpenCatalogError::NotACatalog { .. })), "{error}");

    std::fs::write(&path, sound).unwrap();
    Catalog::open(&world.env, &path).unwrap().set_format_for_test(9);
    let error = world.try_open().unwrap_err();
    assert!(
        matches!(error, OpenStoreError::Catalog(OpenCatalogError::NewerFormat { found: 9, known: 1, .. })),
        "{error}"
    );
}

#[test]
fn the_catalog_beside_the_data_directory_is_used_until_it_is_moved_in() {
    let world = World::new();
    let store = world.open();
    let topic = create(&store, "demo", 1);
    store.close().unwrap();
    drop(store);
    let (inside, beside) = (world.data_dir().join("meta.db"), world.dir.path().join("meta.db"));
    std::fs::rename(&inside, &beside).unwrap();
    let store = world.open();
    assert!(store.started_clean());
    assert_eq!(store.topics().by_name("demo"), Some(&topic));
    assert!(!inside.exists());
    store.close().unwrap();
    drop(store);
    // Another data directory next to it is a fresh start.
    let other = StoreConfig { data_dir: world.dir.path().join("other"), ..world.config() };
    assert!(Store::open(world.env.clone(), other).unwrap().topics().is_empty());
    std::fs::rename(&beside, &inside).unwrap();
    assert_eq!(world.open().topics().len(), 1);
}

#[test]
fn the_catalog_can_be_anywhere_and_is_locked_there() {
    let world = World::new();
    let meta_db = world.dir.path().join("fast/disk/state.db");
    let config = StoreConfig { meta_db: Some(meta_db.clone()), ..world.config() };
    let store = Store::open(world.env.clone(), config.clone()).unwrap();
    create(&store, "demo", 1);
    assert!(meta_db.exists() && !world.data_dir().join("meta.db").exists());
    let thief = StoreConfig { data_dir: world.dir.path().join("thief"), ..config.clone() };
    let error = Store::open(world.env.clone(), thief).unwrap_err();
    assert!(matches!(&error, OpenStoreError::InUse { path } if *path == meta_db), "{error}");
    store.close().unwrap();
    // Forgetting where it is does not start anew.
    let error = world.try_open().unwrap_err();
    assert!(matches!(error, OpenStoreError::CatalogMissing { .. }), "{error}");
    assert_eq!(Store::open(world.env.clone(), config).unwrap().topics().len(), 1);
}

#[test]
fn leftovers_are_removed_and_data_that_nobody_asked_to_delete_is_not() {
    let world = World::new();
    let store = world.open();
    create(&store, "demo", 1);
    store.close().unwrap();
    drop(store);
    let data = world.data_dir();
    write(data.join("half-0/partition.metadata"), b"version: 0\n");
    write(data.join("half-1/partition.metadata.tmp"), b"ver");
    std::fs::create_dir(data.join("half-2")).unwrap();
    write(data.join("gone-0.0123456789abcdef0123456789abcdef-delete/00000000000000000000.log"), b"x");
    write(data.join("lost-0/partition.metadata"), b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw\n");
    write(data.join("lost-0/00000000000000000000.log"), b"records");
    write(data.join("demo-1/00000000000000000000.log"), b"records");
    write(data.join("notes/readme.txt"), b"");
    let store = world.open();
    assert_eq!(store.unknown_directories(), [data.join("demo-1"), data.join("lost-0")]);
    assert_eq!(world.names(), ["demo-0", "demo-1", "lost-0", "notes"]);
    // They are in the way of topics of that name, and stay there.
    for taken in [store.create_topic("lost", id(), 2, ConfigMap::new()), store.add_partitions("demo", 3)] {
        assert!(matches!(taken, Err(CreateTopicError::DirectoryInUse { .. })), "{taken:?}");
    }
    assert_eq!(world.names(), ["demo-0", "demo-1", "lost-0", "notes"]);
    assert_eq!(store.topics().len(), 1);
}

#[test]
fn opening_looks_at_no_partition() {
    let world = World::new();
    let store = world.open();
    // Opening counts 5,000 as fast as these (in 20 ms, with a debug build); making them is what takes a test's time.
    create(&store, "demo", 300);
    let mut store = Some(store);
    for clean in [true, false] {
        let store = store.take();
        if clean {
            store.as_ref().unwrap().close().unwrap();
        }
        drop(store);
        let before = world.fs.with(|f| (f.looks, f.operations));
        let store = world.open();
        let after = world.fs.with(|f| (f.looks, f.operations));
        assert_eq!(store.started_clean(), clean);
        assert!(after.0 - before.0 < 15, "{before:?} {after:?}: listings, files opened, metadata");
        assert!(after.1 - before.1 < 40, "{before:?} {after:?}: operations that change something");
    }
}
