//! Every operation on a file fails in turn, or is the last before a kill, while something is under way.

use super::*;
use crate::storage::catalog::CatalogError;

/// Opens what is left in a life without faults, and checks that the topics that are there are whole, and that nothing else
/// is there. Answers the store.
fn opened_whole(world: &World, what: &str) -> Store {
    let store = world.try_open().unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(store.unknown_directories().is_empty(), "{what}: {:?}", store.unknown_directories());
    let mut expected = Vec::new();
    for topic in store.topics().iter() {
        for partition in 0..topic.partitions {
            store.partition(topic.id, partition).unwrap_or_else(|error| panic!("{what}: {error}"));
            expected.push(format!("{}-{partition}", topic.name));
        }
    }
    expected.sort();
    assert_eq!(world.names(), expected, "{what}");
    assert!(store.catalog().deletions().unwrap().is_empty(), "{what}");
    store
}

/// Runs `act` over a store with the topic "demo" of two partitions, each with a record, once for each operation that it
/// does, with that operation failing (or it and all after it). `check` sees what `act` answered, and the store of the next
/// life. Answers how many faults there were.
fn sweep<T>(kill: bool, act: impl Fn(&Store) -> T, mut check: impl FnMut(&str, &T, &Store)) -> usize {
    for at in 0.. {
        let world = World::new();
        let store = world.open();
        let demo = create(&store, "demo", 2);
        for partition in 0..2 {
            let log = store.partition(demo.id, partition).unwrap();
            log.append(batch("acknowledged"), 0).unwrap();
            sync(&log);
        }
        world.fs.with(|f| {
            let at = Some(f.operations + at);
            f.trace.clear();
            if kill { f.kill_at = at } else { f.fail_at = at }
        });
        let answer = act(&store);
        let (hit, step) = world.fs.with(|f| (f.injected > 0, f.trace.get(at).cloned().unwrap_or_default()));
        let what = format!("operation {at}, '{step}', kill: {kill}");
        let world = world.killed(store);
        check(&what, &answer, &opened_whole(&world, &what));
        if !hit {
            return at;
        }
    }
    unreachable!("the loop ends once nothing fails")
}

fn is_poisoned(error: &CreateTopicError) -> bool {
    matches!(error, CreateTopicError::Catalog(CatalogError::Poisoned { .. }))
}

#[test]
fn making_a_topic_is_all_or_nothing() {
    for kill in [false, true] {
        let act = |store: &Store| store.create_topic("new", id(), 3, ConfigMap::new());
        let faults = sweep(kill, act, |what, answer, store| {
            let there = store.topics().by_name("new").is_some();
            match answer {
                Ok(_) => assert!(there, "{what}"),
                Err(error) if is_poisoned(error) => {}
                Err(_) => assert!(!there, "{what}"),
            }
            let demo = store.topics().by_name("demo").unwrap().clone();
            assert_eq!(values(&store.partition(demo.id, 0).unwrap(), 0), ["acknowledged"], "{what}");
        });
        assert!(faults > 20, "{faults}");
    }
}

#[test]
fn a_topic_that_could_not_be_made_leaves_nothing_and_can_be_made_later() {
    let mut refused = 0;
    for at in 0.. {
        let world = World::new();
        let store = world.open();
        world.fs.with(|f| f.fail_at = Some(f.operations + at));
        let first = store.create_topic("new", id(), 2, ConfigMap::new());
        let hit = world.fs.with(|f| f.injected > 0);
        if let Err(error) = &first {
            refused += 1;
            if !is_poisoned(error) {
                assert!(world.names().is_empty(), "operation {at}: {:?}", world.names());
                create(&store, "new", 2);
            }
        }
        if !hit {
            break;
        }
    }
    assert!(refused > 10, "{refused}");
}

/// A catalog whose fsync has failed may turn out to name the topic with the id that it was to have first.
#[test]
fn a_topic_that_is_asked_for_again_after_a_failure_is_whole_in_the_next_life() {
    for kill in [false, true] {
        let act = |store: &Store| [(); 2].map(|()| store.create_topic("new", id(), 3, ConfigMap::new()));
        let mut was_poisoned = 0;
        sweep(kill, act, |what, answers, store| {
            was_poisoned += usize::from(answers.iter().flat_map(|answer| answer.as_ref().err()).any(is_poisoned));
            let there = store.topics().by_name("new").is_some();
            assert!(there || answers.iter().all(Result::is_err), "{what}");
        });
        assert!(kill || was_poisoned > 0);
    }
}

#[test]
fn growing_a_topic_is_all_or_nothing() {
    for kill in [false, true] {
        let act = |store: &Store| store.add_partitions("demo", 4);
        let faults = sweep(kill, act, |what, answer, store| {
            let partitions = store.topics().by_name("demo").unwrap().partitions;
            match answer {
                Ok(_) => assert_eq!(partitions, 4, "{what}"),
                Err(error) if is_poisoned(error) => {}
                Err(_) => assert_eq!(partitions, 2, "{what}"),
            }
        });
        assert!(faults > 12, "{faults}");
    }
}

#[test]
fn deleting_a_topic_is_all_or_nothing_and_is_finished_by_the_next_start() {
    for kill in [false, true] {
        let act = |store: &Store| store.delete_topic("demo").map(|_| ());
        let faults = sweep(kill, act, |what, answer, store| {
            let demo = store.topics().by_name("demo").cloned();
            match answer {
                Ok(()) => assert!(demo.is_none(), "{what}"),
                Err(ChangeTopicError::Catalog(CatalogError::Poisoned { .. })) => {}
                Err(_) => {
                    let log = store.partition(demo.unwrap().id, 1).unwrap();
                    assert_eq!(values(&log, 0), ["acknowledged"], "{what}");
                }
            }
        });
        assert!(faults > 12, "{faults}");
    }
}

#[test]
fn a_deletion_whose_files_were_left_does_not_stand_in_the_way_of_the_name() {
    let world = World::new();
    let store = world.open();
    let demo = create(&store, "demo", 2);
    store.partition(demo.id, 0).unwrap().append(batch("old"), 0).unwrap();
    store.close().unwrap();
    drop(store);
    let store = world.open();
    store
        .catalog()
        .commit_blocking(vec![crate::storage::catalog::Mutation::DeleteTopic { name: "demo".into() }])
        .unwrap();
    assert_eq!(world.names(), ["demo-0", "demo-1"], "as if the files could not be renamed");
    let new = create(&store, "demo", 2);
    assert!(values(&store.partition(new.id, 0).unwrap(), 0).is_empty());
}

#[test]
fn a_stop_is_called_clean_only_if_all_of_it_was() {
    for kill in [false, true] {
        let act = |store: &Store| {
            let mut appended = true;
            for (_, log) in store.open_partitions() {
                appended &= log.append(batch("not flushed"), 0).is_ok();
            }
            (appended, store.close())
        };
        let mut unclean = std::cell::Cell::new(0);
        let faults = sweep(kill, act, |what, (appended, answer), store| {
            if store.started_clean() {
                // What fails after the mark took its name may leave it there, and it is true then.
                let only_the_mark = matches!(answer, Err(error) if error.logs.is_empty() && error.catalog.is_none());
                assert!(answer.is_ok() || only_the_mark, "{what}: {answer:?}");
            } else {
                unclean.set(unclean.get() + 1);
                assert!(answer.is_err(), "{what}");
            }
            if let Err(error) = answer {
                assert!(error.to_string().starts_with("the stop was not a clean one: "), "{error}");
            }
            let demo = store.topics().by_name("demo").unwrap().clone();
            for partition in 0..2 {
                let values = values(&store.partition(demo.id, partition).unwrap(), 0);
                assert_eq!(values[0], "acknowledged", "{what}");
                assert!(answer.is_err() || !appended || values.len() == 2, "{what}");
            }
        });
        assert!(faults > 15 && *unclean.get_mut() > 8, "{faults} {unclean:?}");
    }
}

#[test]
fn a_start_may_be_interrupted_anywhere() {
    for clean in [true, false] {
        for kill in [true, false] {
            let mut interrupted = 0;
            for at in 0.. {
                let world = World::new();
                let store = world.open();
                let demo = create(&store, "demo", 1);
                let gone = create(&store, "gone", 2);
                store.partition(demo.id, 0).unwrap().append(batch("kept"), 0).unwrap();
                store.partition(gone.id, 0).unwrap().append(batch("x"), 0).unwrap();
                let delete = crate::storage::catalog::Mutation::DeleteTopic { name: "gone".into() };
                store.catalog().commit_blocking(vec![delete]).unwrap();
                if clean {
                    store.close().unwrap();
                }
                let world = world.killed(store);
                std::fs::create_dir(world.data_dir().join("half-0")).unwrap();
                world.fs.with(|f| if kill { f.kill_at = Some(at) } else { f.fail_at = Some(at) });
                let store = world.try_open();
                let hit = world.fs.with(|f| f.injected > 0);
                let what = format!("operation {at}, clean: {clean}, kill: {kill}");
                if let Ok(store) = &store
                    && !kill
                {
                    // The fault may be met by the opening of the log, which is then tried again.
                    let log = store.partition(demo.id, 0).or_else(|_| store.partition(demo.id, 0)).unwrap();
                    assert_eq!(values(&log, 0), ["kept"], "{what}");
                }
                let world = world.killed(store.ok());
                let store = opened_whole(&world, &what);
                assert_eq!(store.topics().len(), 1, "{what}");
                assert_eq!(values(&store.partition(demo.id, 0).unwrap(), 0), ["kept"], "{what}");
                if !hit {
                    break;
                }
                interrupted += 1;
            }
            assert!(interrupted > 8, "{interrupted}");
        }
    }
}

#[test]
fn a_first_start_may_be_interrupted_anywhere() {
    for at in 0.. {
        let world = World::new();
        world.fs.with(|f| f.kill_at = Some(at));
        let store = world.try_open();
        let finished = store.is_ok();
        let world = world.killed(store.ok());
        create(&opened_whole(&world, &format!("operation {at}")), "demo", 1);
        if finished {
            assert!(at > 8, "{at}");
            break;
        }
    }
}
