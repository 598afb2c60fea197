use std::path::PathBuf;
use std::sync::mpsc;

use tempfile::TempDir;

use super::fault_fs::{FaultFs, faulty_env};
use super::*;
use crate::sys::OsRandom;

struct Place {
    dir: TempDir,
    env: Env,
    fs: FaultFs,
}

impl Place {
    fn new() -> Self {
        let (env, fs) = faulty_env();
        Place { dir: tempfile::tempdir().unwrap(), env, fs }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("meta.db")
    }

    fn create(&self) -> Catalog {
        Catalog::create(&self.env, &self.path()).unwrap()
    }

    /// Ends this life as a kill does, with what has reached the files, and begins another over them.
    fn killed(self, catalog: Catalog) -> (Self, Catalog) {
        self.fs.kill();
        drop(catalog);
        let (env, fs) = faulty_env();
        let place = Place { dir: self.dir, env, fs };
        let catalog = Catalog::open(&place.env, &place.path()).unwrap();
        (place, catalog)
    }
}

fn topic(name: &str, partitions: i32) -> Topic {
    Topic { name: name.into(), id: Uuid::random(&OsRandom), partitions }
}

fn offset(n: i64, topic_id: Uuid) -> CommittedOffset {
    CommittedOffset {
        offset: n,
        leader_epoch: 0,
        metadata: String::new(),
        commit_timestamp_ms: 1_700_000_000_000 + n,
        expire_timestamp_ms: None,
        topic_id,
    }
}

fn commit_offset(group: &str, topic: &str, partition: i32, offset: CommittedOffset) -> Mutation {
    Mutation::CommitOffset { group: group.into(), topic: topic.into(), partition, offset }
}

fn set_config(resource_type: ResourceType, name: &str, key: &str, value: Option<&str>) -> Mutation {
    Mutation::SetConfig { resource_type, name: name.into(), key: key.into(), value: value.map(Into::into) }
}

#[test]
fn everything_is_there_after_a_kill() {
    let place = Place::new();
    let catalog = place.create();
    let cluster_id = catalog.cluster_id().to_owned();
    assert_eq!(cluster_id.len(), 22);
    assert!(!cluster_id.starts_with('-'));
    let (demo, other) = (topic("demo", 3), topic("other", 1));
    let expiring = CommittedOffset {
        metadata: "größe".into(),
        expire_timestamp_ms: Some(99),
        leader_epoch: -1,
        ..offset(5, demo.id)
    };
    catalog
        .commit_blocking(vec![
            Mutation::PutTopic(other.clone()),
            Mutation::PutTopic(demo.clone()),
            set_config(ResourceType::Topic, "demo", "retention.ms", Some("1000")),
            set_config(ResourceType::Broker, "", "log.retention.ms", Some("7")),
            set_config(ResourceType::Group, "g", "consumer.session.timeout.ms", Some("45000")),
            commit_offset("g", "demo", 2, expiring.clone()),
            commit_offset("g", "demo", 0, offset(7, demo.id)),
            commit_offset("g\0", "demo", 0, offset(1, demo.id)),
            commit_offset("f", "demo", 0, offset(2, demo.id)),
            Mutation::PutGroup { group: "g".into(), value: vec![1, 2] },
            Mutation::RaiseLogStart { topic_id: demo.id, partition: 2, offset: 42 },
            Mutation::PutTransactionalId { id: "tx".into(), value: vec![3] },
            Mutation::SetState { space: "scram", key: b"alice".to_vec(), value: Some(vec![4]) },
            Mutation::SetState { space: "scrap", key: vec![], value: Some(vec![5]) },
        ])
        .unwrap();
    let (place, catalog) = place.killed(catalog);
    assert_eq!(catalog.cluster_id(), cluster_id);
    let names: Vec<_> = catalog.topics().iter().map(|t| t.name.to_string()).collect();
    assert_eq!(names, ["demo", "other"]);
    assert_eq!(**catalog.topics().by_id(demo.id).unwrap(), demo);
    assert_eq!(**catalog.topics().by_name("other").unwrap(), other);
    let configs = catalog.configs();
    assert_eq!(configs.get(ResourceType::Topic, "demo").unwrap()["retention.ms"], "1000");
    assert_eq!(configs.get(ResourceType::Broker, "").unwrap()["log.retention.ms"], "7");
    assert_eq!(configs.iter(ResourceType::Group).map(|(name, _)| name).collect::<Vec<_>>(), ["g"]);
    assert!(configs.get(ResourceType::Topic, "other").is_none());
    let offsets = catalog.offsets("g").unwrap();
    assert_eq!(offsets, [("demo".into(), 0, offset(7, demo.id)), ("demo".into(), 2, expiring)]);
    assert_eq!(catalog.offset("f", "demo", 0).unwrap(), Some(offset(2, demo.id)));
    assert_eq!(catalog.offset("f", "demo", 1).unwrap(), None);
    assert_eq!(catalog.groups_with_offsets().unwrap(), ["f", "g", "g\0"]);
    assert_eq!(catalog.group("g").unwrap(), Some(vec![1, 2]));
    assert_eq!(catalog.groups().unwrap(), [("g".into(), vec![1, 2])]);
    assert_eq!(catalog.log_start(demo.id, 2).unwrap(), 42);
    assert_eq!(catalog.log_start(demo.id, 0).unwrap(), 0);
    assert_eq!(catalog.transactional_id("tx").unwrap(), Some(vec![3]));
    assert_eq!(catalog.transactional_ids().unwrap(), [("tx".into(), vec![3])]);
    assert_eq!(catalog.state("scram", b"alice").unwrap(), Some(vec![4]));
    assert_eq!(catalog.states("scram").unwrap(), [(b"alice".to_vec(), vec![4])]);

    catalog
        .commit_blocking(vec![
            Mutation::PutTopic(Topic { partitions: 5, ..demo.clone() }),
            set_config(ResourceType::Topic, "demo", "retention.ms", None),
            Mutation::DeleteOffset { group: "f".into(), topic: "demo".into(), partition: 0 },
            Mutation::DeleteGroup { group: "g".into() },
            Mutation::DeleteTransactionalId { id: "tx".into() },
            Mutation::SetState { space: "scram", key: b"alice".to_vec(), value: None },
            Mutation::ClearConfigs { resource_type: ResourceType::Broker, name: String::new() },
        ])
        .unwrap();
    let (_place, catalog) = place.killed(catalog);
    assert_eq!(catalog.topics().by_id(demo.id).unwrap().partitions, 5);
    assert!(catalog.configs().get(ResourceType::Topic, "demo").is_none());
    assert!(catalog.configs().get(ResourceType::Broker, "").is_none());
    assert_eq!(catalog.groups_with_offsets().unwrap(), ["g\0"]);
    assert_eq!(catalog.group("g").unwrap(), None);
    assert_eq!(catalog.transactional_id("tx").unwrap(), None);
    assert_eq!(catalog.state("scram", b"alice").unwrap(), None);
}

#[test]
fn a_deleted_topic_takes_what_belongs_to_it_along_and_nothing_else() {
    let place = Place::new();
    let catalog = place.create();
    let (gone, stays) = (topic("gone", 2), topic("gone.not", 2));
    let later = Uuid::random(&OsRandom);
    catalog
        .commit_blocking(vec![
            Mutation::PutTopic(gone.clone()),
            Mutation::PutTopic(stays.clone()),
            set_config(ResourceType::Topic, "gone", "retention.ms", Some("1")),
            set_config(ResourceType::Topic, "gone.not", "retention.ms", Some("2")),
            set_config(ResourceType::Group, "gone", "x", Some("3")),
            Mutation::RaiseLogStart { topic_id: gone.id, partition: 1, offset: 5 },
            Mutation::RaiseLogStart { topic_id: stays.id, partition: 1, offset: 6 },
            commit_offset("a", "gone", 0, offset(1, gone.id)),
            commit_offset("a", "gone", 1, offset(1, Uuid::ZERO)),
            commit_offset("a", "gone.not", 0, offset(1, stays.id)),
            commit_offset("b", "gone", 1, offset(1, gone.id)),
            commit_offset("b", "gone", 2, offset(1, later)),
        ])
        .unwrap();
    catalog.commit_blocking(vec![Mutation::DeleteTopic { name: "gone".into() }]).unwrap();
    let (_place, catalog) = place.killed(catalog);
    assert!(catalog.topics().by_name("gone").is_none() && catalog.topics().by_id(gone.id).is_none());
    assert_eq!(catalog.deletions().unwrap(), std::slice::from_ref(&gone));
    assert!(catalog.configs().get(ResourceType::Topic, "gone").is_none());
    assert!(catalog.configs().get(ResourceType::Topic, "gone.not").is_some());
    assert!(catalog.configs().get(ResourceType::Group, "gone").is_some());
    assert_eq!(catalog.log_start(gone.id, 1).unwrap(), 0);
    assert_eq!(catalog.log_start(stays.id, 1).unwrap(), 6);
    assert_eq!(catalog.offsets("a").unwrap(), [("gone.not".into(), 0, offset(1, stays.id))]);
    // Kafka 4.3 keeps an offset that was committed for another topic of that name.
    assert_eq!(catalog.offsets("b").unwrap(), [("gone".into(), 2, offset(1, later))]);
    catalog.commit_blocking(vec![Mutation::ForgetDeletion { topic_id: gone.id }]).unwrap();
    assert!(catalog.deletions().unwrap().is_empty());
}

#[test]
fn a_thousand_commits_in_flight_share_a_few_syncs_and_are_answered_in_order() {
    let place = Place::new();
    let catalog = place.create();
    let before = catalog.shared.engine.syncs();
    let (sender, answers) = mpsc::channel();
    for n in 0..1000 {
        let sender = sender.clone();
        catalog.commit(
            vec![commit_offset("g", "demo", n as i32 % 7, offset(n, Uuid::ZERO))],
            Box::new(move |result| sender.send((n, result.is_ok())).unwrap()),
        );
    }
    drop(sender);
    let answers: Vec<_> = answers.iter().collect();
    assert_eq!(answers, (0..1000).map(|n| (n, true)).collect::<Vec<_>>());
    let syncs = catalog.shared.engine.syncs() - before;
    assert!(syncs < 100, "{syncs} fsyncs for 1000 commits");
    let (_place, catalog) = place.killed(catalog);
    // The last of each partition stands.
    assert_eq!(catalog.offset("g", "demo", 5).unwrap().unwrap().offset, 999);
    assert_eq!(catalog.offset("g", "demo", 6).unwrap().unwrap().offset, 993);
}

#[test]
fn blocking_commits_of_many_threads_all_end() {
    let place = Place::new();
    let catalog = place.create();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let catalog = &catalog;
            scope.spawn(move || {
                for n in 0..20 {
                    let done: crate::storage::Done<_> = Box::new(|_| {});
                    catalog.commit(vec![commit_offset("g", "async", thread, offset(n, Uuid::ZERO))], done);
                    catalog.commit_blocking(vec![commit_offset("g", "t", thread, offset(n, Uuid::ZERO))]).unwrap();
                    assert_eq!(catalog.offset("g", "async", thread).unwrap().unwrap().offset, n);
                }
            });
        }
    });
    catalog.close().unwrap();
    assert!(matches!(catalog.commit_blocking(vec![]), Err(CatalogError::Closed { .. })));
    let catalog = Catalog::open(&place.env, &place.path()).unwrap();
    assert_eq!(catalog.offsets("g").unwrap().len(), 16);
}

#[test]
fn any_single_operation_may_fail_and_what_was_answered_is_true() {
    let mut injected = 0;
    let mut outcomes = [0; 3];
    for at in 0.. {
        let place = Place::new();
        let catalog = place.create();
        catalog.commit_blocking(vec![Mutation::PutTopic(topic("first", 1))]).unwrap();
        place.fs.with(|f| f.fail_at = Some(f.operations + at));
        // Enough that the file has to grow, and that redb writes before the commit.
        let big: Vec<Mutation> = (0..40)
            .map(|n| Mutation::PutGroup { group: format!("g{n}").into(), value: vec![n; 50_000] })
            .chain([Mutation::PutTopic(topic("second", 1))])
            .collect();
        let second = catalog.commit_blocking(big);
        let shown = catalog.topics().by_name("second").is_some();
        assert_eq!(shown, second.is_ok(), "operation {at}");
        assert_eq!(catalog.group("g39").unwrap().is_some(), second.is_ok(), "operation {at}: {second:?}");
        let hit = place.fs.with(|f| {
            f.fail_at = None;
            f.injected
        });
        injected += hit;
        let third = catalog.commit_blocking(vec![Mutation::PutTopic(topic("third", 1))]);
        assert_eq!(third.is_err(), matches!(second, Err(CatalogError::Poisoned { .. })), "operation {at}: {third:?}");
        outcomes[match &second {
            Ok(()) => 0,
            Err(CatalogError::Io { .. }) => 1,
            Err(CatalogError::Poisoned { .. }) => 2,
            Err(other) => panic!("operation {at}: {other}"),
        }] += 1;
        let (place, catalog) = place.killed(catalog);
        let topics = catalog.topics();
        assert!(topics.by_name("first").is_some(), "operation {at}");
        assert_eq!(topics.by_name("third").is_some(), third.is_ok(), "operation {at}");
        if !matches!(second, Err(CatalogError::Poisoned { .. })) {
            assert_eq!(topics.by_name("second").is_some(), second.is_ok(), "operation {at}");
            assert_eq!(catalog.group("g39").unwrap().is_some(), second.is_ok(), "operation {at}");
        }
        drop(catalog);
        drop(place);
        if hit == 0 {
            break;
        }
    }
    assert!(injected > 50, "{injected} faults were injected");
    assert!(outcomes.iter().all(|n| *n > 0), "committed, refused, poisoned: {outcomes:?}");
}

#[test]
fn a_full_disk_refuses_changes_until_there_is_space_and_reads_go_on() {
    let place = Place::new();
    let catalog = place.create();
    catalog.commit_blocking(vec![commit_offset("g", "demo", 0, offset(1, Uuid::ZERO))]).unwrap();
    place.fs.with(|f| f.full = true);
    for n in 2..6 {
        let error = catalog.commit_blocking(vec![commit_offset("g", "demo", 0, offset(n, Uuid::ZERO))]).unwrap_err();
        let CatalogError::Io { source, .. } = error else { panic!("{error}") };
        assert_eq!(source.kind(), io::ErrorKind::StorageFull);
        assert_eq!(catalog.offset("g", "demo", 0).unwrap().unwrap().offset, 1);
    }
    place.fs.with(|f| f.full = false);
    catalog.commit_blocking(vec![commit_offset("g", "demo", 0, offset(6, Uuid::ZERO))]).unwrap();
    assert_eq!(catalog.offset("g", "demo", 0).unwrap().unwrap().offset, 6);
    let (_place, catalog) = place.killed(catalog);
    assert_eq!(catalog.offset("g", "demo", 0).unwrap().unwrap().offset, 6);
}

#[test]
fn after_a_failed_fsync_changes_are_refused_for_good_and_reads_show_what_was_durable() {
    let place = Place::new();
    let catalog = place.create();
    catalog.commit_blocking(vec![commit_offset("g", "demo", 0, offset(1, Uuid::ZERO))]).unwrap();
    place.fs.with(|f| f.fail_syncs = true);
    let error = catalog.commit_blocking(vec![commit_offset("g", "demo", 0, offset(2, Uuid::ZERO))]).unwrap_err();
    assert!(error.to_string().contains("poisoned by an earlier I/O error"), "{error}");
    place.fs.with(|f| f.fail_syncs = false);
    let operations = place.fs.with(|f| f.operations);
    for n in 3..6 {
        let refused = catalog.commit_blocking(vec![commit_offset("g", "demo", 0, offset(n, Uuid::ZERO))]);
        assert!(matches!(refused, Err(CatalogError::Poisoned { .. })));
        assert_eq!(catalog.offset("g", "demo", 0).unwrap().unwrap().offset, 1);
    }
    assert!(matches!(catalog.close(), Err(CatalogError::Poisoned { .. })));
    assert_eq!(place.fs.with(|f| f.operations), operations, "the file is not touched any more");
    let catalog = Catalog::open(&place.env, &place.path()).unwrap();
    let offset = catalog.offset("g", "demo", 0).unwrap().unwrap().offset;
    assert!((1..=2).contains(&offset), "{offset}: the one whose fsync failed may be there, none after it");
    catalog.commit_blocking(vec![]).unwrap();
}

#[test]
fn making_a_catalog_may_be_interrupted_anywhere() {
    let mut interrupted = 0;
    for at in 0.. {
        let place = Place::new();
        place.fs.with(|f| f.kill_at = Some(at));
        let made = Catalog::create(&place.env, &place.path());
        let finished = made.is_ok();
        drop(made);
        let (env, _fs) = faulty_env();
        if place.path().exists() {
            Catalog::open(&env, &place.path()).unwrap();
        } else {
            assert!(!finished);
            Catalog::create(&env, &place.path()).unwrap();
        }
        if finished {
            break;
        }
        interrupted += 1;
    }
    assert!(interrupted > 8, "{interrupted}");
}

#[test]
fn producer_ids_are_never_handed_out_twice() {
    let mut place = Place::new();
    let mut catalog = place.create();
    let mut last = -1;
    for life in 0..3 {
        let (sender, ids) = mpsc::channel();
        let before = catalog.shared.engine.syncs();
        for _ in 0..2500 {
            let sender = sender.clone();
            catalog.producer_id(Box::new(move |id| sender.send(id.unwrap()).unwrap()));
        }
        drop(sender);
        let ids: Vec<i64> = ids.iter().collect();
        assert_eq!(ids.len(), 2500);
        assert_eq!(ids[0], life * 3000);
        assert!(ids[0] > last && ids.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(catalog.shared.engine.syncs() - before, 3, "one for each block of {PRODUCER_ID_BLOCK}");
        last = ids[2499];
        (place, catalog) = place.killed(catalog);
    }
    place.fs.with(|f| f.full = true);
    let (sender, answer) = mpsc::channel();
    catalog.producer_id(Box::new(move |id| sender.send(id).unwrap()));
    assert!(answer.recv().unwrap().is_err());
    place.fs.with(|f| f.full = false);
    let (sender, answer) = mpsc::channel();
    catalog.producer_id(Box::new(move |id| sender.send(id).unwrap()));
    assert_eq!(answer.recv().unwrap().unwrap(), 9000);
}

#[test]
fn a_newer_format_and_other_files_are_told_apart() {
    let place = Place::new();
    let catalog = place.create();
    catalog.set_format_for_test(FORMAT + 1);
    drop(catalog);
    let error = Catalog::open(&place.env, &place.path()).unwrap_err();
    assert!(matches!(error, OpenCatalogError::NewerFormat { found: 2, known: 1, .. }), "{error}");
    for content in [&b""[..], b"re", b"a text file", &[0; 100_000]] {
        std::fs::write(place.path(), content).unwrap();
        let error = Catalog::open(&place.env, &place.path()).unwrap_err();
        assert!(matches!(error, OpenCatalogError::NotACatalog { .. }), "{error}");
    }
}

#[test]
fn damage_is_an_error_and_never_a_panic() {
    let place = Place::new();
    let catalog = place.create();
    let batch = (0..50).map(|n| Mutation::PutTopic(topic(&format!("topic-{n}"), 1))).collect();
    catalog.commit_blocking(batch).unwrap();
    place.fs.kill();
    drop(catalog);
    let sound = std::fs::read(place.path()).unwrap();
    let (env, _fs) = faulty_env();
    let mut refused = 0;
    // All over the header, and then in the pages that hold something.
    let spots = (9..320).step_by(4).chain((4096..sound.len()).step_by(997).filter(|at| sound[*at] != 0));
    for (n, at) in spots.enumerate() {
        let mut bytes = sound.clone();
        bytes[at] ^= if n % 2 == 0 { 0xff } else { 0x01 };
        std::fs::write(place.path(), &bytes).unwrap();
        match Catalog::open(&env, &place.path()) {
            Ok(catalog) => drop(catalog.topics()),
            Err(OpenCatalogError::Damaged { .. } | OpenCatalogError::Io { .. }) => refused += 1,
            Err(other) => panic!("byte {at}: {other}"),
        }
    }
    // What was damaged may also be a page of the last commit only, which is then rolled back, or one of no use.
    assert!(refused > 3, "{refused}");
    for len in [9, 100, 320, 4096, sound.len() / 2, sound.len() - 1] {
        std::fs::write(place.path(), &sound[..len]).unwrap();
        let error = Catalog::open(&env, &place.path()).unwrap_err();
        assert!(matches!(error, OpenCatalogError::Damaged { .. }), "cut to {len}: {error}");
    }
}

#[test]
fn reading_only_leaves_the_file_as_it_is_and_refuses_changes() {
    let place = Place::new();
    let catalog = place.create();
    catalog.commit_blocking(vec![Mutation::PutTopic(topic("demo", 1))]).unwrap();
    place.fs.kill();
    drop(catalog);
    let before = std::fs::read(place.path()).unwrap();
    let (env, _fs) = faulty_env();
    let mut catalog = Catalog::open_read_only(&env, &place.path()).unwrap();
    assert_eq!(catalog.topics().len(), 1);
    assert!(catalog.check().unwrap().is_ok());
    catalog.commit_blocking(vec![Mutation::PutTopic(topic("more", 1))]).unwrap_err();
    assert_eq!(catalog.topics().len(), 1);
    assert!(catalog.deletions().unwrap().is_empty());
    drop(catalog);
    assert!(std::fs::read(place.path()).unwrap() == before);
}

#[test]
fn compacting_gives_space_back_and_keeps_the_rest() {
    let place = Place::new();
    let mut catalog = place.create();
    for n in 0..20 {
        let value = vec![n; 200_000];
        catalog.commit_blocking(vec![Mutation::PutGroup { group: format!("g{n}").into(), value }]).unwrap();
    }
    for n in 0..19 {
        catalog.commit_blocking(vec![Mutation::DeleteGroup { group: format!("g{n}").into() }]).unwrap();
    }
    assert!(catalog.clone().check().is_none(), "not while it is in use");
    assert!(catalog.check().unwrap().unwrap());
    let before = std::fs::metadata(place.path()).unwrap().len();
    assert!(catalog.compact().unwrap().unwrap());
    let after = std::fs::metadata(place.path()).unwrap().len();
    assert!(after < before / 2, "{before} to {after}");
    let (_place, catalog) = place.killed(catalog);
    assert_eq!(catalog.groups().unwrap(), [("g19".into(), vec![19; 200_000])]);
}

#[test]
fn a_commit_whose_space_could_not_be_given_back_is_a_commit_all_the_same() {
    let mut cuts_that_failed = 0;
    for at in 0.. {
        let place = Place::new();
        let catalog = place.create();
        let put = (0..20).map(|n| Mutation::PutGroup { group: format!("g{n}").into(), value: vec![n; 300_000] });
        catalog.commit_blocking(put.collect()).unwrap();
        let delete = (0..20).map(|n| Mutation::DeleteGroup { group: format!("g{n}").into() });
        catalog.commit_blocking(delete.collect()).unwrap();
        place.fs.with(|f| {
            f.fail_at = Some(f.operations + at);
            f.trace.clear();
        });
        // These find the pages free, and the end of the file with nothing in it.
        let mut results = Vec::new();
        for n in 0..4 {
            results.push(catalog.commit_blocking(vec![commit_offset("g", "demo", n, offset(1, Uuid::ZERO))]));
        }
        let (hit, step) = place.fs.with(|f| (f.injected > 0, f.trace.get(at).cloned().unwrap_or_default()));
        let (_place, catalog) = place.killed(catalog);
        for (n, result) in results.iter().enumerate() {
            let there = catalog.offset("g", "demo", n as i32).unwrap().is_some();
            if !matches!(result, Err(CatalogError::Poisoned { .. })) {
                assert_eq!(there, result.is_ok(), "operation {at}, '{step}', commit {n}: {result:?}");
            }
        }
        if step.starts_with("set_len") && results.iter().all(Result::is_ok) {
            cuts_that_failed += 1;
        }
        if !hit {
            break;
        }
    }
    assert!(cuts_that_failed > 0, "no cut of the file was made to fail");
}

#[test]
fn readers_see_only_what_was_committed_while_commits_fail_around_them() {
    use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
    let place = Place::new();
    let catalog = place.create();
    let (committed, attempted, stop) = (AtomicI64::new(0), AtomicI64::new(0), AtomicBool::new(false));
    let reads = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut reads = 0;
                    while !stop.load(Ordering::SeqCst) {
                        let least = committed.load(Ordering::SeqCst);
                        let read = catalog.offset("g", "demo", 0).unwrap().map_or(0, |offset| offset.offset);
                        let most = attempted.load(Ordering::SeqCst);
                        assert!((least..=most).contains(&read) && read % 3 != 0 || read == 0, "{least} {read} {most}");
                        reads += 1;
                    }
                    reads
                })
            })
            .collect();
        for n in 1..150 {
            let fails = n % 3 == 0;
            place.fs.with(|f| f.full = fails);
            attempted.store(n, Ordering::SeqCst);
            let result = catalog.commit_blocking(vec![commit_offset("g", "demo", 0, offset(n, Uuid::ZERO))]);
            assert_eq!(result.is_err(), fails, "{n}: {result:?}");
            if !fails {
                committed.store(n, Ordering::SeqCst);
            }
        }
        stop.store(true, Ordering::SeqCst);
        readers.into_iter().map(|reader| reader.join().unwrap()).sum::<usize>()
    });
    assert!(reads > 100, "{reads}");
}
