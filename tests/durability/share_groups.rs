//! Share groups on a simulated disk: a member gets records, accepts some, rejects some and gives some back, and each file
//! operation of the broker fails, or the power is cut after it. What was accepted or rejected and answered is never handed
//! out again; everything else is; and the delivery counts are those that were stored. What was written to the state of share
//! partitions as brokers do it, and answered, is there too.

use std::collections::BTreeMap;

use bytes::Bytes;
use doze::protocol::Uuid;
use doze::protocol::messages::create_topics::{CreatableTopic, CreateTopicsRequest};
use doze::protocol::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use doze::protocol::messages::initialize_share_group_state::{
    InitializeShareGroupStateRequest, InitializeStateData, PartitionData as Initialize,
};
use doze::protocol::messages::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use doze::protocol::messages::read_share_group_state_summary::{
    PartitionData as Summarize, ReadShareGroupStateSummaryRequest, ReadStateSummaryData,
};
use doze::protocol::messages::share_fetch::{
    AcknowledgementBatch, FetchPartition, FetchTopic, ShareFetchRequest, ShareFetchResponse,
};
use doze::protocol::messages::share_group_heartbeat::ShareGroupHeartbeatRequest;
use doze::protocol::messages::write_share_group_state::{
    PartitionData as Write, StateBatch, WriteShareGroupStateRequest, WriteStateData,
};
use doze::protocol::wire::Records;
use doze::record::{BatchBuilder, BatchOptions};
use doze::sys::sim::{Cut, Effect, Fault, OpKind, Operation, Prng, SimFileSystem, SyncFailure};

use crate::broker::{Life, new_disk};

const RECORDS: i64 = 12;

/// What a member has been told of a record, or has said of it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// Nothing that is durable, but for this many deliveries.
    Open { deliveries: i16 },
    /// It was said that it is done with, or given back, and nobody answered.
    Unknown,
    /// It is done with, and that was answered.
    Done,
}

#[derive(Debug, Default)]
struct Story {
    topic: Uuid,
    fates: BTreeMap<i64, Fate>,
    /// Where the partition starts for a group that there is not, as it was answered and as it was last asked for.
    stranger: (i64, i64),
}

fn heartbeat(member: &str, epoch: i32) -> ShareGroupHeartbeatRequest {
    ShareGroupHeartbeatRequest {
        group_id: "g".into(),
        member_id: member.into(),
        member_epoch: epoch,
        subscribed_topic_names: (epoch == 0).then(|| vec!["t".into()]),
        ..Default::default()
    }
}

/// Joins, and waits for the partition: it is initialized with the first heartbeat and assigned with the second.
fn join(life: &Life, member: &str) -> Option<()> {
    let mut epoch = 0;
    for _ in 0..2 {
        let answer = life.call(1, &heartbeat(member, epoch))?;
        if answer.error_code != 0 {
            return None;
        }
        epoch = answer.member_epoch;
    }
    Some(())
}

/// Fetches all that there is, and says something of what was fetched before.
fn fetch(life: &Life, member: &str, epoch: i32, topic: Uuid, said: &[(i64, i64, i8)]) -> Option<ShareFetchResponse> {
    let batch = |(first, last, kind): &(i64, i64, i8)| AcknowledgementBatch {
        first_offset: *first,
        last_offset: *last,
        acknowledge_types: vec![*kind],
    };
    let acknowledgement_batches = said.iter().map(batch).collect();
    let partitions = vec![FetchPartition { partition_index: 0, acknowledgement_batches }];
    let request = ShareFetchRequest {
        group_id: Some("g".into()),
        member_id: Some(member.into()),
        share_session_epoch: epoch,
        max_bytes: 1 << 20,
        max_records: 1000,
        batch_size: 1000,
        topics: vec![FetchTopic { topic_id: topic, partitions }],
        ..Default::default()
    };
    life.call(1, &request).filter(|answer| answer.error_code == 0)
}

fn produce(life: &Life, acks: i16) -> Option<()> {
    let mut batch = BatchBuilder::new(BatchOptions::default()).unwrap();
    for _ in 0..RECORDS {
        batch.append(1_700_000_000_000, None, Some(b"value"), &[]).unwrap();
    }
    let records: Bytes = batch.finish(None).unwrap();
    let data = PartitionProduceData { index: 0, records: Some(Records::Bytes(records)) };
    let topic = TopicProduceData { name: "t".into(), partition_data: vec![data], ..Default::default() };
    let request = ProduceRequest { acks, timeout_ms: 1000, topic_data: vec![topic], ..Default::default() };
    let answer = life.call(12, &request)?;
    (answer.responses[0].partition_responses[0].error_code == 0).then_some(())
}

/// Says where the partition starts for a group that there is not.
fn initialize_stranger(life: &Life, topic_id: Uuid, start_offset: i64) -> Option<()> {
    let partitions = vec![Initialize { partition: 0, state_epoch: 0, start_offset }];
    let topics = vec![InitializeStateData { topic_id, partitions }];
    let answer = life.call(0, &InitializeShareGroupStateRequest { group_id: "stranger".into(), topics })?;
    (answer.results[0].partitions[0].error_code == 0).then_some(())
}

/// Says that a record is done with, past the member that has it.
fn write_state(life: &Life, topic_id: Uuid, offset: i64) -> Option<()> {
    let batch = StateBatch { first_offset: offset, last_offset: offset, delivery_state: 2, delivery_count: 5 };
    let partition = Write { start_offset: -1, state_batches: vec![batch], state_epoch: -1, ..Default::default() };
    let topics = vec![WriteStateData { topic_id, partitions: vec![partition] }];
    let answer = life.call(1, &WriteShareGroupStateRequest { group_id: "g".into(), topics })?;
    (answer.results[0].partitions[0].error_code == 0).then_some(())
}

fn stranger_starts_at(life: &Life, topic_id: Uuid) -> i64 {
    let topics = vec![ReadStateSummaryData { topic_id, partitions: vec![Summarize::default()] }];
    let request = ReadShareGroupStateSummaryRequest { group_id: "stranger".into(), topics };
    let answer = life.call(1, &request).expect("somebody else may look");
    assert_eq!(answer.results[0].partitions[0].error_code, 0);
    answer.results[0].partitions[0].start_offset
}

impl Story {
    fn initialize_stranger(&mut self, life: &Life, start: i64) -> Option<()> {
        self.stranger.1 = start;
        initialize_stranger(life, self.topic, start)?;
        self.stranger.0 = start;
        Some(())
    }

    /// The member fetches, after it has said something of records. What it is told, it knows.
    fn fetch(&mut self, life: &Life, epoch: i32, said: &[(i64, i64, i8)]) -> Option<Vec<(i64, i64, i16)>> {
        for (first, last, _) in said {
            self.fates.extend((*first..=*last).map(|offset| (offset, Fate::Unknown)));
        }
        let answer = fetch(life, "a", epoch, self.topic, said)?;
        let partition = answer.responses.first().and_then(|topic| topic.partitions.first());
        if partition.is_some_and(|data| data.error_code != 0 || data.acknowledge_error_code != 0) {
            return None;
        }
        // What was said is answered with the partition.
        if !said.is_empty() {
            partition?;
        }
        for (first, last, kind) in said {
            for offset in *first..=*last {
                // Each of them was delivered once so far, or twice if it was given back before.
                let fate = if *kind == 2 { Fate::Open { deliveries: 1 } } else { Fate::Done };
                self.fates.insert(offset, fate);
            }
        }
        let acquired = partition.map(|data| data.acquired_records.as_slice()).unwrap_or_default();
        Some(acquired.iter().map(|got| (got.first_offset, got.last_offset, got.delivery_count)).collect())
    }
}

/// Answers whether it came to its end.
fn tell(life: &Life, story: &mut Story) -> Option<()> {
    let topic = CreatableTopic { name: "t".into(), num_partitions: 1, replication_factor: 1, ..Default::default() };
    let made = life.call(7, &CreateTopicsRequest { topics: vec![topic], ..Default::default() })?;
    let earliest = AlterableConfig {
        name: "share.auto.offset.reset".into(),
        value: Some("earliest".into()),
        ..Default::default()
    };
    let group = AlterConfigsResource { resource_type: 32, resource_name: "g".into(), configs: vec![earliest] };
    let altered = life.call(1, &IncrementalAlterConfigsRequest { resources: vec![group], ..Default::default() })?;
    if altered.responses[0].error_code != 0 {
        return None;
    }
    produce(life, -1)?;
    story.topic = made.topics[0].topic_id;
    story.stranger = (-1, -1);
    story.fates = (0..RECORDS).map(|offset| (offset, Fate::Open { deliveries: 0 })).collect();
    join(life, "a")?;
    assert_eq!(story.fetch(life, 0, &[])?, [(0, 11, 1)]);
    // 0 to 3 are accepted, 4 and 5 given back, 6 is rejected.
    assert_eq!(story.fetch(life, 1, &[(0, 3, 1), (4, 5, 2), (6, 6, 3)])?, []);
    assert_eq!(story.fetch(life, 2, &[])?, [(4, 5, 2)]);
    story.fetch(life, 3, &[(4, 4, 1)])?;
    story.fetch(life, 4, &[(8, 9, 1)])?;
    story.initialize_stranger(life, 3)?;
    story.initialize_stranger(life, 8)?;
    // The member has 10, and goes on to acknowledge 11.
    story.fates.insert(10, Fate::Unknown);
    write_state(life, story.topic, 10)?;
    story.fates.insert(10, Fate::Done);
    story.fetch(life, 5, &[(11, 11, 1)])?;
    Some(())
}

/// Somebody else comes after whatever has happened, and gets what there is. Answers how many records were looked at.
fn check(seed: u64, fs: SimFileSystem, story: &Story) -> usize {
    let life = Life::start(seed, fs).expect("it starts");
    if story.fates.is_empty() {
        return 0;
    }
    join(&life, "z").expect("somebody else may join");
    let answer = fetch(&life, "z", 0, story.topic, &[]).expect("somebody else may fetch");
    let partition = &answer.responses[0].partitions[0];
    assert_eq!((partition.error_code, &partition.error_message), (0, &None), "{story:?}");
    let mut delivered = BTreeMap::new();
    for got in &partition.acquired_records {
        delivered.extend((got.first_offset..=got.last_offset).map(|offset| (offset, got.delivery_count)));
    }
    for (offset, fate) in &story.fates {
        let deliveries = delivered.get(offset);
        match fate {
            Fate::Done => assert_eq!(deliveries, None, "{offset} comes again; {story:?}"),
            Fate::Open { deliveries: before } => {
                assert_eq!(deliveries, Some(&(before + 1)), "{offset} is lost or miscounted; {story:?}");
            }
            Fate::Unknown => {}
        }
    }
    let (answered, asked) = story.stranger;
    let start = stranger_starts_at(&life, story.topic);
    assert!(start == answered || start == asked, "it starts at {start}; {story:?}");
    story.fates.len()
}

/// Runs the story over a disk on which something is to happen, and checks what is left.
fn run(
    seed: u64,
    what: &str,
    prepare: impl Fn(&SimFileSystem),
    after: impl Fn(&SimFileSystem) -> SimFileSystem,
) -> usize {
    let fs = new_disk(seed);
    prepare(&fs);
    let mut story = Story::default();
    if let Some(life) = Life::start(seed, fs.clone()) {
        let _ = tell(&life, &mut story);
        life.settle();
    }
    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(seed ^ 1, after(&fs), &story)));
    checked.unwrap_or_else(|panic| {
        eprintln!("seed {seed}, {what}");
        std::panic::resume_unwind(panic)
    })
}

#[test]
fn each_file_operation_of_a_share_group_fails_and_the_power_is_cut_after_it() {
    let seed: u64 = std::env::var("DOZE_SEED").map_or(1, |seed| seed.parse().expect("DOZE_SEED is a number"));
    let fs = new_disk(seed);
    let life = Life::start(seed, fs.clone()).unwrap();
    tell(&life, &mut Story::default()).expect("nothing fails");
    life.settle();
    drop(life);
    let operations: Vec<_> = fs.log().into_iter().filter(|operation| operation.kind.changes()).collect();
    let (mut cuts, mut faults, mut looked_at) = (0, 0, 0);
    for operation in &operations {
        for (n, cut) in [Cut::NOTHING_KEPT, Cut::ANY].into_iter().enumerate() {
            let prng = Prng::stream(seed.wrapping_add(operation.number), &format!("cut {n}"));
            let what = format!("cut {n} after {operation}");
            let power_cut = |fs: &SimFileSystem| fs.power_cut(cut, &mut prng.clone());
            looked_at += run(seed, &what, |fs| fs.stop_after(operation.number), power_cut);
            cuts += 1;
        }
        let effects = match operation.kind {
            OpKind::Sync => [SyncFailure::Dropped, SyncFailure::Written].map(Effect::Sync).to_vec(),
            _ => vec![Effect::Error(std::io::ErrorKind::Other)],
        };
        for effect in effects {
            let again = |fs: &SimFileSystem| {
                assert_eq!(fs.total_injected(), 1, "the fault was injected");
                fs.kill()
            };
            let inject = |fs: &SimFileSystem| fs.inject(Fault::at(operation.number, effect));
            looked_at += run(seed, &format!("{effect:?} at {operation}"), inject, again);
            faults += 1;
        }
    }
    println!("{cuts} power cuts, {faults} faults, {looked_at} records looked at");
    assert!(cuts > 60 && faults > 30 && looked_at > 500, "{cuts} cuts, {faults} faults, {looked_at} records");
}

/// Else a power cut could take the records and leave it said that they are done with, of others that come to stand in their place.
#[test]
fn records_are_flushed_before_what_became_of_them() {
    let fs = new_disk(7);
    let life = Life::start(7, fs.clone()).unwrap();
    let mut story = Story::default();
    tell(&life, &mut story).unwrap();
    for acks in [1, -1] {
        produce(&life, acks).unwrap();
        let first = story.fetch(&life, 6 + i32::from(acks < 0) * 2, &[]).unwrap()[0].0;
        let from = fs.operations();
        story.fetch(&life, 7 + i32::from(acks < 0) * 2, &[(first, first, 1)]).unwrap();
        let operations: Vec<_> = fs.log().into_iter().filter(|operation| operation.number >= from).collect();
        let of = |kind, path: &str| {
            let found = |operation: &Operation| operation.kind == kind && operation.path.starts_with(path);
            operations.iter().position(found)
        };
        let flushed = of(OpKind::Sync, "data/t-0");
        let noted = operations.iter().position(|operation| {
            operation.kind == OpKind::Write && operation.path.to_string_lossy().starts_with("data/meta.db")
        });
        assert!(noted.is_some(), "acks={acks}");
        match acks {
            1 => assert!(flushed.is_some() && flushed < noted, "flushed at {flushed:?}, noted at {noted:?}"),
            _ => assert_eq!(flushed, None, "they were flushed before"),
        }
    }
}
