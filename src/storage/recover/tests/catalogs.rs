//! Catalogs that are lost or damaged, and what decides which topics a new one has.

use super::*;
use crate::storage::catalog::{Catalog, CommittedOffset, Mutation, PRODUCER_ID_BLOCK, ResourceType, Topic};

fn catalog() -> PathBuf {
    Path::new(DATA).join("meta.db")
}

fn rebuilt(sim: &SimEnv) -> (Plan, Applied) {
    let done = recover(&sim.env(), true).unwrap_or_else(|error| panic!("{error}"));
    assert_nothing_left(&sim.env(), "a rebuilt catalog");
    done
}

#[test]
fn a_lost_catalog_is_made_anew_from_the_folders() {
    for clean in [true, false] {
        let scene = Scene::new(clean);
        for damage in ["lost", "zeros", "garbage", "cut"] {
            let sim = scene.copy();
            let ids: BTreeMap<String, Uuid> = {
                let catalog = Catalog::open_read_only(&sim.env(), &catalog()).unwrap();
                catalog.topics().iter().map(|topic| (topic.name.to_string(), topic.id)).collect()
            };
            let bytes = bytes_of(&sim.fs, &catalog());
            match damage {
                "lost" => {
                    sim.fs.remove_file(&catalog()).unwrap();
                    sim.fs.sync_dir(Path::new(DATA)).unwrap();
                }
                "zeros" => put(&sim.fs, &catalog(), &vec![0; bytes.len()]),
                "garbage" => put(&sim.fs, &catalog(), &bytes.iter().map(|b| b ^ 0x35).collect::<Vec<_>>()),
                _ => put(&sim.fs, &catalog(), &bytes[..bytes.len() / 2]),
            }
            let (plan, applied) = rebuilt(&sim);
            let step = plan.steps.iter().find(|step| step.action == Action::RebuildCatalog).unwrap();
            assert_eq!(step.loses, damage != "lost", "{damage}: what was not there cannot be lost");
            let catalog_of = applied.rebuilt.unwrap();
            let topics: BTreeMap<String, Uuid> =
                catalog_of.topics.iter().map(|(name, id, _)| (name.clone(), *id)).collect();
            assert_eq!(topics, ids, "{damage}");
            assert!(catalog_of.next_producer_id > 6 && catalog_of.next_producer_id % PRODUCER_ID_BLOCK == 0);
            assert!(served(&sim.env()) == scene.whole, "{damage}");
        }
    }
}

#[test]
fn folders_decide_what_a_topic_is() {
    let scene = Scene::new(true);
    let sim = scene.copy();
    let data = Path::new(DATA);
    let other = {
        let catalog = Catalog::open_read_only(&sim.env(), &catalog()).unwrap();
        catalog.topics().by_name("other").unwrap().id
    };
    sim.fs.remove_file(&catalog()).unwrap();
    // A deleted partition, a topic that was never used, one of another topic's id, one without an id.
    let make = |name: &str| {
        sim.fs.create_dir(&data.join(name)).unwrap();
        data.join(name)
    };
    let gone = make(&crate::storage::names::deleted_dir("gone", 0, 7));
    put(&sim.fs, &gone.join("00000000000000000000.log"), b"");
    let id = Uuid([9; 16]);
    for n in 0..2 {
        let unused = make(&format!("unused-{n}"));
        crate::storage::log::write_partition_metadata(&sim.fs, &unused, id).unwrap();
    }
    let stranger = make("demo-3");
    crate::storage::log::write_partition_metadata(&sim.fs, &stranger, other).unwrap();
    put(&sim.fs, &stranger.join("00000000000000000000.log"), b"");
    let nameless = make("other-2");
    put(&sim.fs, &nameless.join("00000000000000000000.log"), b"");
    sim.fs.sync_dir(data).unwrap();
    let (_, applied) = recover(&sim.env(), true).unwrap();
    let catalog_of = applied.rebuilt.unwrap();
    let topics: Vec<(&str, i32)> =
        catalog_of.topics.iter().map(|(name, _, partitions)| (name.as_str(), *partitions)).collect();
    assert_eq!(topics, [("demo", 2), ("other", 3), ("unused", 2)]);
    assert_eq!(catalog_of.topics[2].1, id);
    assert_eq!(catalog_of.left_out.iter().map(|(folder, _)| folder.as_str()).collect::<Vec<_>>(), ["demo-3"]);
    let store = Store::open(sim.env(), store_config()).unwrap();
    assert_eq!(store.unknown_directories(), [stranger]);
    assert!(store.partition(other, 1).is_ok(), "the folder that was missing in between is there");
    assert!(store.partition(other, 2).is_ok());
}

#[test]
fn logs_start_where_their_segments_do_and_open_transactions_are_named() {
    let scene = Scene::new(true);
    let sim = scene.copy();
    let logs = scene.logs("demo-0");
    for log in &logs[..2] {
        sim.fs.remove_file(log).unwrap();
    }
    sim.fs.sync_dir(logs[0].parent().unwrap()).unwrap();
    sim.fs.remove_file(&catalog()).unwrap();
    sim.fs.sync_dir(Path::new(DATA)).unwrap();
    // A transaction that nobody ends.
    let (_, applied) = rebuilt(&sim);
    let first = batches_of(&bytes_of(&scene.fs, &logs[2]))[0].2;
    let store = Store::open(sim.env(), store_config()).unwrap();
    let id = store.topics().by_name("demo").unwrap().id;
    assert_eq!(store.partition(id, 0).unwrap().offsets().start, first);
    assert_eq!(applied.rebuilt.unwrap().open_transactions, [], "each was ended");
    let log = store.partition(id, 1).unwrap();
    let begun = log.append(batch(idempotent(6, 32, true), 1, 1), 0).unwrap().first_offset;
    store.close().unwrap();
    sim.fs.remove_file(&catalog()).unwrap();
    sim.fs.sync_dir(Path::new(DATA)).unwrap();
    let (_, applied) = rebuilt(&sim);
    assert_eq!(applied.rebuilt.unwrap().open_transactions, [("demo".to_owned(), 1, 6, begun)]);
}

#[test]
fn a_partition_whose_folder_is_gone_is_made_empty_if_that_is_accepted() {
    let scene = Scene::new(true);
    let sim = scene.copy();
    sim.fs.remove_dir_all(&Path::new(DATA).join("other-0")).unwrap();
    sim.fs.sync_dir(Path::new(DATA)).unwrap();
    let (plan, applied) = recover(&sim.env(), false).unwrap();
    assert_eq!(
        plan.steps.iter().map(|step| (step.action, step.loses)).collect::<Vec<_>>(),
        [(Action::MakePartition, true)]
    );
    assert_eq!(applied, Applied::default());
    recover(&sim.env(), true).unwrap();
    assert_nothing_left(&sim.env(), "made");
    assert_eq!(served(&sim.env())[&("other".to_owned(), 0)], []);
}

#[test]
fn a_copy_is_repaired_and_the_original_left_alone() {
    let scene = Scene::new(false);
    let sim = scene.copy();
    let log = scene.logs("demo-0")[0].clone();
    let (start, _, base) = batches_of(&bytes_of(&sim.fs, &log))[1];
    assert!(sim.fs.flip_bit(&log, start as u64 + 80, 1));
    let before = sim.fs.image();
    let dir = DataDir::open(&sim.env(), Path::new(DATA), None).unwrap();
    copy(&dir, Path::new("/copy"), &mut |_| {}).unwrap();
    let refused = copy(&dir, Path::new("/copy"), &mut |_| {}).unwrap_err();
    assert!(matches!(refused, RecoverError::NotEmpty { .. }), "{refused}");
    let inside = copy(&dir, &Path::new(DATA).join("copy"), &mut |_| {}).unwrap_err();
    assert!(matches!(inside, RecoverError::Inside { .. }), "{inside}");
    drop(dir);
    let dir = DataDir::open_to_write(&sim.env(), Path::new("/copy"), None).unwrap();
    let plan = plan(&dir, &look(&dir), &mut |_| {}).unwrap();
    apply(&dir, &plan, &options("copy", true), &mut |_| {}).unwrap();
    drop(dir);
    let after = sim.fs.image();
    for (path, bytes) in &before {
        assert!(after.get(path) == Some(bytes), "{} has changed", path.display());
    }
    let config = StoreConfig { data_dir: "/copy".into(), ..store_config() };
    let read = read_all(&Store::open(sim.env(), config).unwrap());
    let mut left = scene.whole.clone();
    left.get_mut(&("demo".to_owned(), 0)).unwrap().retain(|(offset, _)| *offset != base);
    assert!(read == left);
}

/// Everything that the catalog has besides topics is there again, and what does not fit the folders is not.
#[test]
fn what_can_be_read_of_a_damaged_catalog_is_taken_over() {
    let scene = Scene::new(true);
    let sim = scene.copy();
    let config = |name: &str| Mutation::SetConfig {
        resource_type: ResourceType::Topic,
        name: name.into(),
        key: "cleanup.policy".into(),
        value: Some("compact".into()),
    };
    let offset = |topic_id| CommittedOffset {
        offset: 3,
        leader_epoch: 0,
        metadata: "m".into(),
        commit_timestamp_ms: NOW,
        expire_timestamp_ms: None,
        topic_id,
    };
    let catalog = Catalog::open(&sim.env(), &catalog()).unwrap();
    let id = catalog.topics().by_name("demo").unwrap().id;
    let commit = |topic: &str, topic_id| Mutation::CommitOffset {
        group: "readers".into(),
        topic: topic.into(),
        partition: 1,
        offset: offset(topic_id),
    };
    let broker = Mutation::SetConfig {
        resource_type: ResourceType::Broker,
        name: String::new(),
        key: "log.retention.ms".into(),
        value: Some("5000".into()),
    };
    let gone = Topic { name: "gone".into(), id: Uuid([4; 16]), partitions: 2 };
    let internal = Topic { name: "__consumer_offsets".into(), id: Uuid([5; 16]), partitions: 50 };
    catalog
        .commit_blocking(vec![
            Mutation::PutTopic(gone),
            Mutation::PutTopic(internal.clone()),
            config("demo"),
            config("gone"),
            broker,
            commit("demo", id),
            commit("other", Uuid([9; 16])),
            Mutation::PutGroup { group: "readers".into(), value: vec![1, 2, 3] },
            Mutation::PutTransactionalId { id: "one".into(), value: vec![4, 5] },
            Mutation::SetState { space: "scram", key: vec![6], value: Some(vec![7]) },
            Mutation::RaiseLogStart { topic_id: id, partition: 0, offset: 5 },
            Mutation::RaiseNextProducerId { to: 123_000 },
        ])
        .unwrap();
    let cluster_id = catalog.cluster_id().to_owned();
    catalog.close().unwrap();
    // The size of a page in the header makes it one that redb refuses; every page is whole.
    let bytes = bytes_of(&sim.fs, &self::catalog());
    let mut damaged = bytes.clone();
    damaged[13] ^= 1;
    put(&sim.fs, &self::catalog(), &damaged);
    let (_, applied) = recover(&sim.env(), true).unwrap();
    let rebuilt = applied.rebuilt.unwrap();
    let taken: BTreeMap<&str, u64> = rebuilt.taken_over.iter().copied().collect();
    assert_eq!(taken["configs of topics"], 1);
    assert_eq!(taken["committed offsets"], 1);
    assert_eq!((taken["groups"], taken["transactional ids"], taken["SCRAM credentials"]), (1, 1, 1));
    assert_eq!(taken["internal topics"], 1);
    assert_eq!(rebuilt.not_taken_over.len(), 3, "{:?}", rebuilt.not_taken_over);
    assert_eq!(rebuilt.missing, None);
    let catalog = Catalog::open_read_only(&sim.env(), &self::catalog()).unwrap();
    assert_eq!(catalog.cluster_id(), cluster_id);
    assert_eq!(catalog.configs().get(ResourceType::Topic, "demo").unwrap()["cleanup.policy"], "compact");
    assert!(catalog.configs().get(ResourceType::Topic, "gone").is_none());
    assert!(catalog.topics().by_name("gone").is_none());
    assert_eq!(catalog.topics().by_name("__consumer_offsets").unwrap().id, internal.id);
    assert_eq!(catalog.configs().get(ResourceType::Broker, "").unwrap()["log.retention.ms"], "5000");
    assert_eq!(catalog.offset("readers", "demo", 1).unwrap(), Some(offset(id)));
    assert_eq!(catalog.offset("readers", "other", 1).unwrap(), None);
    assert_eq!(catalog.groups().unwrap(), [("readers".to_owned(), vec![1, 2, 3])]);
    assert_eq!(catalog.transactional_ids().unwrap(), [("one".to_owned(), vec![4, 5])]);
    assert_eq!(catalog.states("scram").unwrap(), [(vec![6], vec![7])]);
    assert_eq!(catalog.log_start(id, 0).unwrap(), 5);
    assert!(rebuilt.next_producer_id >= 123_000);
    drop(catalog);
    assert_nothing_left(&sim.env(), "taken over");
    // The damaged one is kept.
    let image = sim.fs.image();
    let kept = image.iter().find(|(path, _)| path.ends_with("meta.db") && path.starts_with("data/recovered-r0"));
    assert!(kept.unwrap().1.as_ref() == Some(&damaged));
}

/// Whatever is flipped in the catalog: nobody panics, and what it has afterwards it had before.
#[test]
fn flips_in_the_catalog_cost_no_topic_and_make_nothing_up() {
    const SEED: u64 = 77;
    let mut prng = crate::sys::sim::Prng::new(SEED);
    let scene = Scene::new(true);
    // Most of the file is room that nothing uses.
    let bytes = bytes_of(&scene.fs, &catalog());
    let used: Vec<u64> = (0..bytes.len() as u64).filter(|at| bytes[*at as usize] != 0).collect();
    let mut rebuilt = 0;
    for round in 0..60 {
        let (at, bit) = (used[prng.below(used.len() as u64) as usize], prng.below(8) as u8);
        let context = format!("seed {SEED}, round {round}: bit {bit} of byte {at}");
        let sim = scene.copy();
        assert!(sim.fs.flip_bit(&catalog(), at, bit));
        let (_, applied) = recover(&sim.env(), true).unwrap_or_else(|error| panic!("{context}: {error}"));
        rebuilt += u64::from(applied.rebuilt.is_some());
        assert_nothing_left(&sim.env(), &context);
        assert!(served(&sim.env()) == scene.whole, "{context}");
    }
    println!("{rebuilt} of 60 catalogs were made anew");
    assert!(rebuilt > 5);
}
