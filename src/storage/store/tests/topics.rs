//! Topics: made, grown, deleted, made again.

use super::*;
use crate::storage::catalog::ResourceType;

#[test]
fn a_topic_is_whole_when_its_making_is_answered() {
    let world = World::new();
    let store = world.open();
    let configs = ConfigMap::from([("retention.ms".to_owned(), "5".to_owned())]);
    let demo = store.create_topic("demo", id(), 3, configs).unwrap();
    create(&store, "another", 1);
    let again = store.create_topic("demo", id(), 1, ConfigMap::new());
    assert!(matches!(again, Err(CreateTopicError::Exists)));
    let again = store.create_topic("new", demo.id, 1, ConfigMap::new());
    assert!(matches!(again, Err(CreateTopicError::Exists)), "the id is taken");
    let world = world.killed(store);
    let store = world.open();
    assert_eq!(world.names(), ["another-0", "demo-0", "demo-1", "demo-2"]);
    let names: Vec<_> = store.topics().iter().map(|topic| topic.name.to_string()).collect();
    assert_eq!(names, ["another", "demo"]);
    assert_eq!(store.topics().by_name("demo"), Some(&demo));
    assert_eq!(store.catalog().configs().get(ResourceType::Topic, "demo").unwrap()["retention.ms"], "5");
    let metadata = std::fs::read_to_string(world.data_dir().join("demo-2/partition.metadata")).unwrap();
    assert_eq!(metadata.trim_end(), format!("version: 0\ntopic_id: {}", demo.id));
}

#[test]
fn names_and_counts_that_cannot_be_are_refused() {
    let world = World::new();
    let store = world.open();
    let long = "n".repeat(250);
    for name in ["", ".", "..", "a/b", "a b", "größe", "../up", &long] {
        let refused = store.create_topic(name, id(), 1, ConfigMap::new());
        assert!(matches!(refused, Err(CreateTopicError::InvalidName)), "{name}");
    }
    assert!(matches!(store.create_topic("t", id(), 0, ConfigMap::new()), Err(CreateTopicError::InvalidPartitions)));
    let longest = create(&store, &long[..249], 1);
    store.delete_topic(&longest.name).unwrap();
    assert!(world.names().is_empty());
}

#[test]
fn topics_of_one_request_stand_and_fall_alone_and_share_their_flushes() {
    let world = World::new();
    let store = world.open();
    let before = world.fs.with(|f| {
        f.trace.clear();
        f.syncs
    });
    let new = |name: &str, partitions| NewTopic { name: name.into(), id: id(), partitions, configs: ConfigMap::new() };
    let answers = store.create_topics(vec![new("a", 500), new("bad name", 1), new("b", 500), new("b", 1)]);
    assert!(answers[0].is_ok() && answers[2].is_ok());
    assert!(matches!(answers[1], Err(CreateTopicError::InvalidName)));
    assert!(matches!(answers[3], Err(CreateTopicError::Exists)));
    let data_dir = format!("sync_dir {}", world.data_dir().display());
    let (dir_syncs, syncs) = world.fs.with(|f| {
        let dir_syncs = f.trace.iter().filter(|step| **step == data_dir).count();
        (dir_syncs, f.syncs - before)
    });
    assert_eq!(dir_syncs, 1, "one flush of the data directory for all partitions");
    assert_eq!(syncs, 1000 + 1, "one for each partition.metadata, one for the catalog");
    let before = world.fs.with(|f| f.syncs);
    let answers = store.delete_topics(&["a", "nothing", "b", "b"]);
    assert!(answers[0].is_ok() && answers[2].is_ok());
    assert!(matches!(answers[1], Err(ChangeTopicError::UnknownTopic)));
    assert!(matches!(answers[3], Err(ChangeTopicError::UnknownTopic)));
    assert!(store.topics().is_empty() && world.names().is_empty());
    store.catalog().commit_blocking(vec![]).unwrap();
    assert!(world.fs.with(|f| f.syncs) - before <= 2);
}

#[test]
fn a_topic_grows() {
    let world = World::new();
    let store = world.open();
    let demo = create(&store, "demo", 1);
    store.partition(demo.id, 0).unwrap().append(batch("kept"), 0).unwrap();
    assert!(matches!(store.partition(demo.id, 1), Err(PartitionError::Unknown)));
    let grown = store.add_partitions("demo", 3).unwrap();
    assert_eq!((grown.id, grown.partitions), (demo.id, 3));
    store.partition(demo.id, 2).unwrap();
    for partitions in [3, 1] {
        assert!(matches!(store.add_partitions("demo", partitions), Err(CreateTopicError::InvalidPartitions)));
    }
    assert!(matches!(store.add_partitions("nothing", 3), Err(CreateTopicError::UnknownTopic)));
    let world = world.killed(store);
    let store = world.open();
    assert_eq!(store.topics().by_name("demo").unwrap().partitions, 3);
    assert_eq!(values(&store.partition(demo.id, 0).unwrap(), 0), ["kept"]);
}

#[test]
fn a_deleted_topic_is_gone_and_its_name_can_be_used_at_once() {
    let world = World::new();
    let store = world.open();
    let old = create(&store, "demo", 3);
    let log = store.partition(old.id, 1).unwrap();
    log.append(batch("old"), 0).unwrap();
    assert_eq!(*store.delete_topic("demo").unwrap(), *old);
    assert!(world.names().is_empty());
    assert!(matches!(store.partition(old.id, 1), Err(PartitionError::Unknown)));
    assert!(log.append(batch("late"), 0).is_err(), "whoever still has the log can do nothing with it");
    let new = create(&store, "demo", 2);
    assert_ne!(new.id, old.id);
    assert!(values(&store.partition(new.id, 1).unwrap(), 0).is_empty());
    assert!(matches!(store.partition(old.id, 0), Err(PartitionError::Unknown)));
    assert!(matches!(store.delete_topic("nothing"), Err(ChangeTopicError::UnknownTopic)));
    let world = world.killed(store);
    let store = world.open();
    assert_eq!(world.names(), ["demo-0", "demo-1"]);
    assert!(store.catalog().deletions().unwrap().is_empty());
    store.partition(new.id, 0).unwrap();
}

#[test]
fn names_that_differ_in_case_collide_only_where_the_file_system_says_so() {
    let world = World::new();
    let store = world.open();
    let demo = create(&store, "demo", 2);
    world.fs.with(|f| f.fold_case = true);
    let refused = store.create_topic("Demo", id(), 3, ConfigMap::new());
    assert!(matches!(&refused, Err(CreateTopicError::CaseCollision { existing }) if existing == "demo"), "{refused:?}");
    let new = |name: &str| NewTopic { name: name.into(), id: id(), partitions: 2, configs: ConfigMap::new() };
    let pair = store.create_topics(vec![new("twin"), new("TWIN")]);
    // Each may have been first with one of its partitions, so that both may be refused; never both made.
    assert!(pair.iter().filter(|answer| answer.is_ok()).count() <= 1);
    assert!(pair.iter().flatten().count() + 1 == store.topics().len());
    world.fs.with(|f| f.fold_case = false);
    create(&store, "Demo", 1);
    store.partition(demo.id, 0).unwrap();
    store.partition(demo.id, 1).unwrap();
}

#[test]
fn open_logs_follow_the_configs_of_their_topic() {
    let world = World::new();
    let store = world.open();
    let configs = ConfigMap::from([("segment.bytes".to_owned(), "1000".to_owned())]);
    let small = store.create_topic("small", id(), 1, configs).unwrap();
    let large = create(&store, "large", 1);
    let value = "v".repeat(2000);
    let append = |id| store.partition(id, 0).unwrap().append(batch(&value), 0).is_ok();
    assert!(!append(small.id) && append(large.id));
    store.alter_topic_configs("small", vec![("segment.bytes".into(), Some("5000".into()))]).unwrap();
    store.alter_topic_configs("large", vec![("segment.bytes".into(), Some("1000".into()))]).unwrap();
    assert!(append(small.id) && !append(large.id));
    store.alter_topic_configs("large", vec![("segment.bytes".into(), None)]).unwrap();
    assert!(append(large.id));
    let unknown = store.alter_topic_configs("nothing", vec![]);
    assert!(matches!(unknown, Err(ChangeTopicError::UnknownTopic)));
}
