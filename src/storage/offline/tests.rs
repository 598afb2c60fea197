use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use super::checkpoints::parse;
use super::*;
use crate::storage::catalog::ConfigMap;
use crate::storage::log::LogConfig;
use crate::storage::names::LeftoverDir;
use crate::storage::store::{Store, StoreConfig};
use crate::sys::OsRandom;

fn store(dir: &Path) -> Store {
    let config =
        StoreConfig { data_dir: dir.to_owned(), meta_db: None, log_config: Arc::new(|_| LogConfig::default()) };
    Store::open(Env::real(), config).unwrap()
}

/// A directory of doze's with one topic, stopped cleanly.
fn made() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let topic = store.create_topic("demo", Uuid::random(&OsRandom), 2, ConfigMap::new()).unwrap();
    store.partition(topic.id, 0).unwrap();
    store.close().unwrap();
    dir
}

fn open(dir: &Path) -> Result<DataDir, OpenDirError> {
    DataDir::open(&Env::real(), dir, None)
}

fn tree(dir: &Path) -> Vec<(PathBuf, u64, std::time::SystemTime)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::metadata(&path).unwrap();
        if metadata.is_dir() {
            all.extend(tree(&path));
        }
        all.push((path, metadata.len(), metadata.modified().unwrap()));
    }
    all.sort();
    all
}

#[test]
fn a_directory_of_dozes_is_told_and_left_as_it_is() {
    let dir = made();
    let id = format!("{:032x}", 7);
    fs::create_dir(dir.path().join(format!("gone-0.{id}-delete"))).unwrap();
    fs::create_dir(dir.path().join(OsStr::from_bytes(b"t\xff-0"))).unwrap();
    fs::write(dir.path().join("notes.txt"), "x").unwrap();
    let before = tree(dir.path());
    let opened = open(dir.path()).unwrap();
    assert_eq!((opened.origin(), opened.held()), (Origin::Doze, &Held::Yes));
    assert_eq!(opened.stop(), &Stop::Clean { unchecked: HashSet::new() });
    assert!(opened.is_trusted("demo-0"));
    let names: Vec<String> = opened.partitions().iter().map(PartitionFolder::name).collect();
    assert_eq!(names, ["demo-0", "demo-1"]);
    let topics = opened.catalog().unwrap().topics();
    let known = topics.by_name("demo").unwrap().id;
    assert_eq!(opened.topic_id(&opened.partitions()[1]).unwrap(), Some(known));
    assert_eq!(opened.leftovers()[0].kind, LeftoverDir::Deleted);
    let foreign: Vec<&[u8]> = opened.foreign().iter().map(|entry| entry.name.as_bytes()).collect();
    assert_eq!(foreign, [b"notes.txt".as_slice(), b"t\xff-0"]);
    let second = open(dir.path()).expect("many may look at once");
    drop((opened, second));
    assert_eq!(tree(dir.path()), before);
    store(dir.path()).close().expect("nothing holds it any more");
}

#[test]
fn one_that_is_in_use_or_no_data_directory_is_an_error() {
    let dir = made();
    let running = store(dir.path());
    assert!(matches!(open(dir.path()), Err(OpenDirError::InUse { .. })));
    running.close().unwrap();
    let writing = DataDir::open_to_write(&Env::real(), dir.path(), None).unwrap();
    assert!(matches!(open(dir.path()), Err(OpenDirError::InUse { .. })));
    drop(writing);
    let looking = open(dir.path()).unwrap();
    let refused = DataDir::open_to_write(&Env::real(), dir.path(), None);
    assert!(matches!(refused, Err(OpenDirError::InUse { .. })));
    drop(looking);
    let other = tempfile::tempdir().unwrap();
    for file in [None, Some("notes.txt")] {
        if let Some(name) = file {
            fs::write(other.path().join(name), "x").unwrap();
        }
        let error = open(other.path()).unwrap_err();
        assert!(matches!(error, OpenDirError::NotADataDirectory { .. }), "{error}");
    }
    for path in [other.path().join("notes.txt"), other.path().join("nothing")] {
        assert!(matches!(open(&path), Err(OpenDirError::NotADataDirectory { .. })));
    }
}

#[test]
fn a_lost_or_damaged_catalog_is_a_state() {
    let dir = made();
    let catalog = dir.path().join("meta.db");
    let whole = fs::read(&catalog).unwrap();
    fs::write(&catalog, &whole[..100]).unwrap();
    assert!(matches!(open(dir.path()).unwrap().catalog_state(), CatalogState::Damaged { .. }));
    fs::remove_file(&catalog).unwrap();
    fs::remove_file(dir.path().join("clean-shutdown")).unwrap();
    let opened = open(dir.path()).unwrap();
    assert!(matches!(opened.catalog_state(), CatalogState::Missing));
    assert_eq!((opened.stop(), opened.partitions().len()), (&Stop::Unclean, 2));
    let elsewhere = tempfile::tempdir().unwrap();
    let place = elsewhere.path().join("catalog");
    fs::write(&place, &whole).unwrap();
    let opened = DataDir::open(&Env::real(), dir.path(), Some(&place)).unwrap();
    assert!(opened.catalog().is_some() && opened.catalog_path() == place);
}

#[test]
fn the_folder_of_one_partition_will_do() {
    let dir = made();
    let opened = open(&dir.path().join("demo-1")).unwrap();
    assert_eq!((opened.only(), opened.path()), (Some(("demo", 1)), dir.path()));
    drop(opened);
    let running = store(dir.path());
    assert!(matches!(open(&dir.path().join("demo-1")), Err(OpenDirError::InUse { .. })));
    running.close().unwrap();
}

#[test]
fn a_log_directory_of_apache_kafka_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    write("meta.properties", "#\n#Mon\ncluster.id=abc\nversion=1\nnode.id=3\n");
    write("log-start-offset-checkpoint", "0\n1\ndemo 0 17\n");
    write("cleaner-offset-checkpoint", "0\n2\ndemo 0 17\n");
    fs::create_dir(dir.path().join("demo-0")).unwrap();
    fs::create_dir(dir.path().join(format!("demo-1.{:032x}-stray", 1))).unwrap();
    let opened = open(dir.path()).unwrap();
    assert_eq!((opened.origin(), opened.stop(), opened.held()), (Origin::Kafka, &Stop::Unclean, &Held::NoLockFile));
    assert_eq!((opened.kafka().node_id, opened.kafka().log_starts.get("demo", 0)), (Some(3), Some(17)));
    assert!(matches!(opened.kafka().cleaner_offsets, Checkpoint::Nonsense { .. }));
    assert_eq!(opened.leftovers()[0].kind, LeftoverDir::Stray);
    write(".kafka_cleanshutdown", "{\"version\":0}");
    assert!(open(dir.path()).unwrap().is_trusted("demo-0"));
    write("meta.properties", "version=2\n");
    assert!(matches!(open(dir.path()), Err(OpenDirError::NewerFormat { .. })));
}

#[test]
fn checkpoints_are_read_only_whole() {
    assert_eq!(parse("0\n1\na-b 3 9\n").unwrap()[&("a-b".to_owned(), 3)], 9);
    // As Apache Kafka makes them, before there is anything to say.
    assert_eq!(parse(""), Ok(Default::default()));
    for nonsense in ["1\n0\n", "0\n", "0\n2\na 0 0\n", "0\n1\na 0\n", "0\n1\na x 1\n", "0\n1\na 0 1 2\n"] {
        assert!(parse(nonsense).is_err(), "{nonsense:?}");
    }
}
