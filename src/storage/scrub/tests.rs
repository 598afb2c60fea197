//! The scrub over a simulated disk: what has rotted is found where it is, nothing else is, and it costs what it may.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::PathBuf;

use super::*;
use crate::record::{BatchBuilder, BatchOptions, CheckedBatch};
use crate::storage::catalog::ConfigMap;
use crate::storage::log::{Isolation, LogConfig, PartitionLog};
use crate::storage::retention::Retention;
use crate::storage::store::StoreConfig;
use crate::sys::sim::{Effect, Fault, OpKind, START_MS, SimClock, SimEnv, SimFileSystem};

const INTERVAL: Duration = Duration::from_secs(3600);
const FAST: ScrubSettings = ScrubSettings { bytes_per_second: 1 << 30, interval: INTERVAL };

struct World {
    sim: SimEnv,
    store: Arc<Store>,
    scrubber: Scrubber,
}

fn open(fs: SimFileSystem) -> World {
    let (env, mut sim) = SimEnv::around(1, fs.clone());
    sim.fs = fs;
    let log_config = Arc::new(|configs: &ConfigMap| LogConfig {
        segment_bytes: 1000,
        retention_ms: configs.get("retention.ms").map_or(-1, |ms| ms.parse().unwrap()),
        ..LogConfig::default()
    });
    let config = StoreConfig { data_dir: PathBuf::from("/data"), meta_db: None, log_config };
    let store = Arc::new(Store::open(env, config).unwrap());
    World { sim, scrubber: Scrubber::new(store.clone()), store }
}

fn new_world() -> World {
    open(SimFileSystem::new(Arc::new(SimClock::new(START_MS))))
}

fn batch(value: &str, count: usize) -> CheckedBatch {
    let mut builder = BatchBuilder::new(BatchOptions::default()).unwrap();
    for _ in 0..count {
        builder.append(START_MS, Some(b"key"), Some(value.as_bytes()), &[]).unwrap();
    }
    CheckedBatch::of_own(builder.finish(None).unwrap()).unwrap()
}

impl World {
    /// A topic with one partition, and `batches` of two records each; about five fill a segment.
    fn topic(&self, name: &str, partitions: i32, batches: usize) -> Uuid {
        let id = Uuid::random(&*self.sim.random);
        self.store.create_topic(name, id, partitions, ConfigMap::new()).unwrap();
        for partition in 0..partitions {
            self.append(id, partition, batches);
        }
        id
    }

    fn append(&self, id: Uuid, partition: i32, batches: usize) {
        let log = self.log(id, partition);
        for n in 0..batches {
            log.append(batch(&format!("{n}-{}", "x".repeat(40)), 2), 0).unwrap();
        }
        log.sync(Box::new(|result| result.unwrap()));
    }

    fn log(&self, id: Uuid, partition: i32) -> Arc<PartitionLog> {
        self.store.partition(id, partition).unwrap()
    }

    fn segments(&self, id: Uuid, partition: i32) -> Vec<i64> {
        self.log(id, partition).segment_bases()
    }

    /// Where the batch with this offset is: its segment's file, the position in it, its size, its offsets from and up to.
    fn place(&self, id: Uuid, partition: i32, offset: i64) -> (PathBuf, i64, u64, u64, (i64, i64)) {
        let log = self.log(id, partition);
        let read = log.read(offset, 0, true, Isolation::ReadUncommitted).unwrap();
        let range = read.range.unwrap();
        let header = crate::record::BatchHeader::parse(&range.read().unwrap()).unwrap();
        let name = crate::storage::names::segment_file(read.segment, crate::storage::names::FileKind::Log);
        let path = log.dir().join(name);
        (path, read.segment, range.position, range.len as u64, (header.base_offset, header.last_offset() + 1))
    }

    /// Steps until the pass is over, with the clock going on as the scrub asks. Answers how long it took.
    fn pass(&self, settings: &ScrubSettings) -> Duration {
        let before = self.sim.env().clock.monotonic();
        let passes = self.scrubber.checkpoint().finished_ms;
        for _ in 0..100_000 {
            let rest = self.scrubber.step(settings);
            let checkpoint = self.scrubber.checkpoint();
            if checkpoint.at.is_none() && checkpoint.finished_ms != passes {
                return self.sim.env().clock.monotonic() - before;
            }
            self.sim.clock.advance(rest.max(Duration::from_millis(1)));
        }
        panic!("the pass does not end: {:?}", self.scrubber.checkpoint());
    }

    /// Waits until another pass is due and has it.
    fn next_pass(&self) {
        self.sim.clock.advance(INTERVAL);
        self.pass(&FAST);
    }

    fn findings(&self) -> Vec<(String, i32, (i64, i64), Kind)> {
        let findings = self.scrubber.checkpoint().findings;
        findings.into_iter().map(|f| (f.topic, f.partition, f.damage.offsets, f.kind)).collect()
    }

    fn reads(&self) -> u64 {
        self.sim.fs.count(OpKind::Read)
    }
}

#[test]
fn whatever_byte_of_a_sealed_batch_has_rotted_it_is_found_and_nothing_else() {
    let world = new_world();
    let (a, b) = (world.topic("a", 2, 12), world.topic("b", 1, 12));
    world.pass(&FAST);
    assert_eq!(world.findings(), []);
    let (path, segment, position, size, offsets) = world.place(a, 1, 6);
    assert!(segment == 0 && position > 0 && offsets == (6, 8), "{segment} {position} {offsets:?}");
    let good =
        world.log(b, 0).read(0, 1 << 20, true, Isolation::ReadUncommitted).unwrap().range.unwrap().read().unwrap();
    let mut found = 0;
    for byte in 0..size {
        assert!(world.sim.fs.flip_bit(&path, position + byte, (byte % 8) as u8));
        world.next_pass();
        let findings = world.scrubber.checkpoint().findings;
        // The checksum covers neither the leader epoch nor, in a way of its own, the fields before it.
        if (12..16).contains(&byte) {
            assert_eq!(findings, [], "byte {byte}");
        } else {
            let [Finding { topic_id, topic, partition, damage, kind, found_ms }] = &findings[..] else {
                panic!("byte {byte}: {findings:?}")
            };
            assert_eq!((*topic_id, topic.as_str(), *partition, damage.segment), (a, "a", 1, 0), "byte {byte}");
            assert_eq!((damage.position, damage.bytes, damage.offsets), (position, size, offsets), "byte {byte}");
            assert_eq!(damage.served, *kind == Kind::Checksum);
            assert!(*found_ms >= START_MS);
            found += 1;
        }
        // A reader is given what is there, and what is behind it.
        let read = world.log(a, 1).read(8, 1 << 20, true, Isolation::ReadUncommitted).unwrap();
        assert!(read.range.is_some_and(|range| range.position == position + size), "byte {byte}");
        world.sim.fs.flip_bit(&path, position + byte, (byte % 8) as u8);
    }
    assert!(found > 100, "{found}");
    world.next_pass();
    assert_eq!(world.findings(), [], "what is good again is forgotten");
    let read = world.log(b, 0).read(0, 1 << 20, true, Isolation::ReadUncommitted).unwrap();
    assert_eq!(read.range.unwrap().read().unwrap(), good);
}

#[test]
fn several_damaged_places_are_found_in_one_pass_and_kept_over_a_restart() {
    let world = new_world();
    let (a, c) = (world.topic("a", 1, 20), world.topic("c", 3, 20));
    let mut expected = BTreeSet::new();
    for (name, id, partition, offset) in [("a", a, 0, 2), ("a", a, 0, 12), ("c", c, 0, 0), ("c", c, 2, 20)] {
        let (path, _, position, size, offsets) = world.place(id, partition, offset);
        assert!(world.sim.fs.flip_bit(&path, position + size - 3, 2));
        expected.insert((name.to_owned(), partition, offsets));
    }
    // The last segment is the next start's to check.
    let (path, segment, position, size, _) = world.place(a, 0, 39);
    assert_eq!(segment, *world.segments(a, 0).last().unwrap());
    assert!(world.sim.fs.flip_bit(&path, position + size - 3, 2));
    let found = |world: &World| -> BTreeSet<_> {
        world.findings().into_iter().map(|(topic, partition, offsets, _)| (topic, partition, offsets)).collect()
    };
    world.pass(&FAST);
    assert_eq!(found(&world), expected);
    let first = world.scrubber.checkpoint();
    world.next_pass();
    assert_eq!(world.scrubber.checkpoint().findings, first.findings, "as they were found first");
    // From outside, and by the next process.
    let fs = world.sim.fs.kill();
    assert_eq!(Checkpoint::read(&fs, "/data".as_ref()).unwrap().findings, first.findings);
    let world = open(fs);
    assert!(world.scrubber.step(&FAST) > Duration::from_secs(3000), "no pass is due");
    assert_eq!(found(&world), expected);
    // What is deleted is damaged no more.
    world.store.delete_topic("a").unwrap();
    expected.retain(|(topic, ..)| topic != "a");
    world.next_pass();
    assert_eq!(found(&world), expected);
    assert_eq!(expected.len(), 2);
}

#[test]
fn a_segment_that_retention_removes_is_damaged_no_more() {
    let world = new_world();
    let a = world.topic("a", 1, 20);
    let (path, _, position, size, _) = world.place(a, 0, 2);
    assert!(world.sim.fs.flip_bit(&path, position + size - 1, 1));
    world.pass(&FAST);
    assert_eq!(world.findings().len(), 1);
    world.store.alter_topic_configs("a", vec![("retention.ms".into(), Some("1".into()))]).unwrap();
    world.sim.clock.advance(Duration::from_millis(10));
    assert_eq!(Retention::new(world.store.clone()).sweep(|_, _| true), 1);
    world.next_pass();
    assert_eq!(world.findings(), []);
}

#[test]
fn segments_that_go_while_they_are_read_are_no_damage() {
    let world = new_world();
    let a = world.topic("a", 1, 600);
    let slow = ScrubSettings { bytes_per_second: 1, interval: INTERVAL };
    // The first step lists the segments and reads some of them.
    world.scrubber.step(&slow);
    assert!(world.scrubber.checkpoint().at.is_some());
    let segments = world.segments(a, 0);
    let to = segments[segments.len() - 2];
    world.store.delete_records(a, 0, to).unwrap();
    world.pass(&FAST);
    assert_eq!(world.findings(), []);
}

#[test]
fn what_is_read_badly_once_is_no_damage() {
    let world = new_world();
    world.topic("a", 1, 20);
    for bit in [0, 500, 1200] {
        let fault = Fault::on(&[OpKind::Read], Effect::FlipBit { bit, for_good: false }).path("data/a-0/*.log");
        world.sim.fs.inject(fault);
        let before = world.sim.fs.total_injected();
        world.next_pass();
        assert_eq!(world.sim.fs.total_injected(), before + 1);
        assert_eq!(world.findings(), [], "bit {bit}");
    }
}

#[test]
fn what_the_disk_does_not_give_back_is_found_and_the_rest_goes_on() {
    let world = new_world();
    let (a, b) = (world.topic("a", 1, 20), world.topic("b", 1, 20));
    let segments = world.segments(a, 0);
    let (path, _, position, size, offsets) = world.place(b, 0, 4);
    assert!(world.sim.fs.flip_bit(&path, position + size - 1, 1));
    let bad = format!("data/a-0/{:020}.log", segments[1]);
    world.sim.fs.inject(Fault::on(&[OpKind::Read], Effect::Error(ErrorKind::Other)).path(bad).forever());
    world.pass(&FAST);
    let expected = [
        ("a".to_owned(), 0, (segments[1], segments[2]), Kind::Unreadable),
        ("b".to_owned(), 0, offsets, Kind::Checksum),
    ];
    assert_eq!(world.findings(), expected);
    world.sim.fs.clear_faults();
    world.next_pass();
    assert_eq!(world.findings(), expected[1..]);
}

#[test]
fn it_reads_no_more_in_a_second_than_it_may() {
    let world = new_world();
    let a = world.topic("a", 4, 400);
    let bytes: u64 = (0..4).map(|partition| world.log(a, partition).size_bytes()).sum();
    let rate = 64 << 10;
    let took = world.pass(&ScrubSettings { bytes_per_second: rate, interval: INTERVAL });
    let least = bytes as f64 / rate as f64;
    assert!(bytes > 200_000 && took.as_secs_f64() > 0.8 * least, "{bytes} bytes took {took:?}");
    // Nor has it to be waited for much longer than that.
    assert!(took.as_secs_f64() < 3.0 * least + 4.0 * LISTING as f64 / rate as f64, "{bytes} bytes took {took:?}");
}

#[test]
fn partitions_that_nobody_uses_stay_closed_and_nothing_is_done_between_passes() {
    let world = new_world();
    world.topic("a", 1, 20);
    world.topic("many", 300, 0);
    world.store.close().unwrap();
    let world = open(world.sim.fs.kill());
    let before = world.sim.fs.operations();
    world.pass(&FAST);
    assert!(world.store.open_partitions().is_empty());
    let operations = world.sim.fs.operations() - before;
    assert!(operations < 301 * 4 + 60, "{operations} operations");
    let before = world.sim.fs.operations();
    let rest = world.scrubber.step(&FAST);
    assert!(rest > INTERVAL / 2 && rest <= INTERVAL, "{rest:?}");
    assert_eq!(world.sim.fs.operations(), before, "between passes the disk is left alone");
}

#[test]
fn a_pass_goes_on_after_a_restart_where_it_was() {
    for is_killed in [false, true] {
        let world = new_world();
        let a = world.topic("a", 3, 200);
        let (path, _, position, size, offsets) = world.place(a, 0, 2);
        assert!(world.sim.fs.flip_bit(&path, position + size - 1, 1));
        let last = world.place(a, 2, 4);
        assert!(world.sim.fs.flip_bit(&last.0, last.2 + last.3 - 1, 1));
        let slow = ScrubSettings { bytes_per_second: 1 << 16, interval: INTERVAL };
        let mut started = None;
        loop {
            let rest = world.scrubber.step(&slow);
            let at = world.scrubber.checkpoint().at.expect("the pass is under way");
            started = started.or(world.scrubber.checkpoint().started_ms);
            if at.partition == 1 && at.segment > 100 {
                break;
            }
            world.sim.clock.advance(rest.max(CHECKPOINT));
        }
        if is_killed {
            // It was written before the last step.
            world.sim.clock.advance(CHECKPOINT);
            world.scrubber.step(&slow);
        } else {
            world.scrubber.stop();
            world.store.close().unwrap();
        }
        let world = open(world.sim.fs.kill());
        let before = world.sim.fs.operations();
        world.pass(&FAST);
        assert_eq!(world.scrubber.checkpoint().started_ms, started, "it is the same pass");
        let reads = world.sim.fs.log().into_iter().filter(|operation| operation.number >= before);
        let again = reads.filter(|o| o.kind == OpKind::Read && o.path.starts_with("data/a-0")).count();
        assert_eq!(again, 0, "what was read before is not read again; killed: {is_killed}");
        let expected = [("a".to_owned(), 0, offsets), ("a".to_owned(), 2, last.4)];
        let found: Vec<_> = world.findings().into_iter().map(|(topic, n, offsets, _)| (topic, n, offsets)).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn a_full_disk_does_not_hold_it_up() {
    let world = new_world();
    let a = world.topic("a", 1, 20);
    let (path, _, position, size, offsets) = world.place(a, 0, 2);
    assert!(world.sim.fs.flip_bit(&path, position + size - 1, 1));
    world.sim.fs.set_capacity(Some(0));
    world.pass(&FAST);
    assert!(world.sim.fs.total_injected() > 0, "the checkpoint could not be written");
    assert_eq!(world.findings(), [("a".to_owned(), 0, offsets, Kind::Checksum)]);
}

#[test]
fn a_torn_tail_before_an_empty_segment_is_left_to_the_next_opening() {
    let world = new_world();
    let a = world.topic("a", 1, 20);
    let segments = world.segments(a, 0);
    let (last, before) = (segments[segments.len() - 1], segments[segments.len() - 2]);
    let fs = world.sim.fs.kill();
    // As a kill may leave it in the middle of a roll.
    let path = |base: i64| PathBuf::from(format!("/data/a-0/{base:020}.log"));
    use crate::sys::{FileSystem, OpenMode};
    fs.open(&path(last), OpenMode::ReadWrite).unwrap().set_len(0).unwrap();
    let torn = fs.open(&path(before), OpenMode::ReadWrite).unwrap();
    torn.set_len(torn.len().unwrap() - 5).unwrap();
    let world = open(fs);
    world.pass(&FAST);
    assert_eq!(world.findings(), []);
    assert!(world.reads() > 0);
}

#[test]
fn readers_of_what_is_damaged_cost_nothing_and_are_told_of_now_and_then() {
    let world = new_world();
    let a = world.topic("a", 1, 20);
    let (path, segment, position, size, _) = world.place(a, 0, 2);
    world.scrubber.was_read(a, 0, segment, (position, position + size));
    assert!(world.scrubber.known.lock().read_said.is_empty());
    assert!(world.sim.fs.flip_bit(&path, position + size - 1, 1));
    world.pass(&FAST);
    let said = |world: &World| world.scrubber.known.lock().read_said.len();
    for (range, expected) in
        [((0, position), 0), ((position + size, u64::MAX), 0), ((0, position + 1), 1), ((0, u64::MAX), 1)]
    {
        world.scrubber.was_read(a, 0, segment, range);
        assert_eq!(said(&world), expected, "{range:?}");
    }
    world.scrubber.was_read(a, 0, segment + 1, (0, u64::MAX));
    world.scrubber.was_read(Uuid([1; 16]), 0, segment, (0, u64::MAX));
    assert_eq!(said(&world), 1);
}
