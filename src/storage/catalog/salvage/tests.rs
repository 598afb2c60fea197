use std::collections::BTreeSet;
use std::io::IoSlice;

use super::*;
use crate::storage::catalog::{Catalog, Mutation};
use crate::sys::FileSystem;
use crate::sys::sim::{Prng, SimEnv};

const PATH: &str = "/meta.db";
const SEED: u64 = 20261130;

/// A catalog with something in every table, of some so much that their trees have several levels.
fn made(sim: &SimEnv) {
    let catalog = Catalog::create(&sim.env(), Path::new(PATH)).unwrap();
    let id = |n: u8| Uuid([n; 16]);
    let mut all = Vec::new();
    for n in 0..40u8 {
        let topic = Topic { name: format!("topic-{n}").into(), id: id(n + 1), partitions: 1 + i32::from(n) };
        all.push(Mutation::PutTopic(topic));
        for key in ["retention.ms", "cleanup.policy"] {
            let (name, key, value) = (format!("topic-{n}"), key.to_owned(), Some(format!("value-{n}")));
            all.push(Mutation::SetConfig { resource_type: ResourceType::Topic, name, key, value });
        }
        all.push(Mutation::RaiseLogStart { topic_id: id(n + 1), partition: 0, offset: i64::from(n) * 1000 + 1 });
        all.push(Mutation::PutTransactionalId { id: format!("transactional-{n}").into(), value: vec![n; 60] });
        all.push(Mutation::SetState { space: "scram", key: vec![n; 3], value: Some(vec![n; 70]) });
        all.push(Mutation::PutGroup { group: format!("group-{n}").into(), value: vec![n; 10 + 200 * usize::from(n)] });
        for partition in 0..30 {
            let offset = CommittedOffset {
                offset: i64::from(partition) << 20,
                leader_epoch: -1,
                metadata: "m".repeat(usize::from(n) * 9 % 300),
                commit_timestamp_ms: 5,
                expire_timestamp_ms: None,
                topic_id: id(n + 1),
            };
            let (group, topic) = (format!("group-{n}").into(), format!("topic-{n}").into());
            all.push(Mutation::CommitOffset { group, topic, partition, offset });
        }
    }
    all.push(Mutation::RaiseNextProducerId { to: 7000 });
    all.push(Mutation::DeleteTopic { name: "topic-39".into() });
    catalog.commit_blocking(all).unwrap();
    catalog.close().unwrap();
}

/// All that was read, an entry each.
fn entries(salvaged: &Salvaged) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    all.extend(salvaged.cluster_id.iter().map(|id| format!("cluster {id}")));
    all.extend(salvaged.next_producer_id.iter().map(|id| format!("producer {id}")));
    all.extend(salvaged.topics.iter().map(|entry| format!("topic {entry:?}")));
    all.extend(salvaged.deletions.iter().map(|entry| format!("deletion {entry:?}")));
    all.extend(salvaged.configs.iter().map(|entry| format!("config {entry:?}")));
    all.extend(salvaged.offsets.iter().map(|entry| format!("offset {entry:?}")));
    all.extend(salvaged.groups.iter().map(|entry| format!("group {entry:?}")));
    all.extend(salvaged.log_starts.iter().map(|entry| format!("start {entry:?}")));
    all.extend(salvaged.transactional_ids.iter().map(|entry| format!("transactional {entry:?}")));
    all.extend(salvaged.states.iter().map(|entry| format!("state {entry:?}")));
    all
}

#[test]
fn of_a_catalog_that_is_whole_everything_is_read() {
    let (_, sim) = SimEnv::new(1);
    made(&sim);
    let salvaged = salvage(&sim.env(), Path::new(PATH)).unwrap();
    assert_eq!((salvaged.damaged.len(), salvaged.is_lost), (0, false), "{:?}", salvaged.damaged);
    let catalog = Catalog::open_read_only(&sim.env(), Path::new(PATH)).unwrap();
    assert_eq!(salvaged.cluster_id.as_deref(), Some(catalog.cluster_id()));
    assert_eq!(salvaged.next_producer_id, Some(7000));
    let topics: Vec<Topic> = catalog.topics().iter().map(|topic| (**topic).clone()).collect();
    assert_eq!(salvaged.topics, topics);
    assert_eq!(salvaged.deletions, catalog.deletions().unwrap());
    assert_eq!(salvaged.deletions.len(), 1);
    assert_eq!(salvaged.configs.len(), 39 * 2);
    for (resource_type, name, key, value) in &salvaged.configs {
        assert_eq!(catalog.configs().get(*resource_type, name).unwrap()[key], *value);
    }
    assert_eq!(salvaged.offsets.len(), 39 * 30);
    for (group, topic, partition, offset) in &salvaged.offsets {
        assert_eq!(catalog.offset(group, topic, *partition).unwrap().as_ref(), Some(offset));
    }
    assert_eq!(salvaged.groups.len(), 40);
    for (topic_id, partition, start) in &salvaged.log_starts {
        assert_eq!(catalog.log_start(*topic_id, *partition).unwrap(), *start);
    }
    assert_eq!(salvaged.log_starts.len(), 39);
    assert_eq!(salvaged.transactional_ids, catalog.transactional_ids().unwrap());
    let scram: Vec<_> = salvaged.states.iter().map(|(_, key, value)| (key.clone(), value.clone())).collect();
    assert_eq!(scram, catalog.states("scram").unwrap());
}

/// Flips, zeros, noise and cuts: what is read is always what was written, and mostly nearly all of it.
#[test]
fn of_one_that_is_damaged_nothing_is_read_that_was_not_written() {
    let (_, sim) = SimEnv::new(2);
    made(&sim);
    let whole = entries(&salvage(&sim.env(), Path::new(PATH)).unwrap());
    let file = sim.fs.open(Path::new(PATH), OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    let mut prng = Prng::new(SEED);
    let (mut hurt, mut lost, mut left) = (0, 0, 0);
    for round in 0..400 {
        let mut damaged = bytes.clone();
        let at = prng.below(bytes.len() as u64) as usize;
        let to = (at + 1 + prng.below(9000) as usize).min(bytes.len());
        let what = prng.below(4);
        match what {
            0 => damaged[at] ^= 1 << prng.below(8),
            1 => damaged[at..to].fill(0),
            2 => damaged[at..to].iter_mut().for_each(|byte| *byte = prng.below(256) as u8),
            _ => damaged.truncate(at),
        }
        let path = Path::new("/damaged.db");
        let file = sim.fs.open(path, OpenMode::CreateOrTruncate).unwrap();
        file.write_all_at(&[IoSlice::new(&damaged)], 0).unwrap();
        let context = format!("seed {SEED}, round {round}: {what} at {at} to {to}");
        let salvaged = salvage(&sim.env(), path).unwrap_or_else(|error| panic!("{context}: {error}"));
        let read = entries(&salvaged);
        let made_up: Vec<&String> = read.difference(&whole).collect();
        assert!(made_up.is_empty(), "{context}: {made_up:?}");
        if read != whole {
            hurt += 1;
            assert!(salvaged.is_lost || !salvaged.damaged.is_empty(), "{context}: what is missing is not said");
        }
        lost += u32::from(read.is_empty());
        left += u64::from(read.len() * 2 > whole.len());
    }
    println!("of 400 catalogs {hurt} lost something, {lost} everything, and of {left} more than half is left");
    assert!(hurt > 60 && left > 200, "{hurt} {left}");
}
