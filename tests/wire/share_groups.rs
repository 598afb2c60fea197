//! Share groups (KIP-932) over the wire: members that share the records of a partition, locks that run out, connections
//! that break, a broker that is killed under them, and what administrators see and change.

use std::time::{Duration, Instant};

use doze::protocol::ErrorCode::{self, *};
use doze::protocol::Uuid;
use doze::protocol::messages::alter_share_group_offsets::{
    AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsRequestPartition, AlterShareGroupOffsetsRequestTopic,
};
use doze::protocol::messages::delete_groups::DeleteGroupsRequest;
use doze::protocol::messages::delete_share_group_offsets::{
    DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsRequestTopic,
};
use doze::protocol::messages::describe_groups::DescribeGroupsRequest;
use doze::protocol::messages::describe_share_group_offsets::{
    DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsRequestGroup,
};
use doze::protocol::messages::find_coordinator::FindCoordinatorRequest;
use doze::protocol::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use doze::protocol::messages::list_groups::ListGroupsRequest;
use doze::protocol::messages::share_acknowledge::{
    self, AcknowledgePartition, AcknowledgeTopic, ShareAcknowledgeRequest,
};
use doze::protocol::messages::share_fetch::{
    AcknowledgementBatch, FetchPartition, FetchTopic, PartitionData, ShareFetchRequest,
};
use doze::protocol::messages::share_group_describe::ShareGroupDescribeRequest;
use doze::protocol::messages::share_group_heartbeat::ShareGroupHeartbeatRequest;
use doze::protocol::messages::update_features::{FeatureUpdateKey, UpdateFeaturesRequest};

use crate::asks::*;
use crate::harness::{Broker, Client, PATIENCE};

/// Targets are made at once, and locks may be short.
pub const QUICK: &[&str] = &[
    "--override",
    "group.share.assignment.interval.ms=0",
    "--override",
    "group.share.min.record.lock.duration.ms=1000",
];

pub const ACCEPT: i8 = 1;
pub const RELEASE: i8 = 2;
const REJECT: i8 = 3;

fn beating(member: &str, epoch: i32) -> ShareGroupHeartbeatRequest {
    ShareGroupHeartbeatRequest {
        group_id: "g".into(),
        member_id: member.into(),
        member_epoch: epoch,
        subscribed_topic_names: (epoch == 0).then(|| vec!["t".into()]),
        ..Default::default()
    }
}

/// Joins the group and gets its partitions. Answers the member's epoch.
#[track_caller]
fn join(client: &mut Client, member: &str) -> i32 {
    let first = client.call(1, &beating(member, 0));
    assert_eq!((first.error_code, &first.error_message), (0, &Option::None));
    let second = client.call(1, &beating(member, first.member_epoch));
    assert_eq!(second.error_code, 0);
    second.member_epoch
}

fn configure(client: &mut Client, name: &str, value: &str) {
    let config = AlterableConfig { name: name.into(), value: Some(value.into()), ..Default::default() };
    let group = AlterConfigsResource { resource_type: 32, resource_name: "g".into(), configs: vec![config] };
    let answer = client.call(1, &IncrementalAlterConfigsRequest { resources: vec![group], ..Default::default() });
    assert_eq!(answer.responses[0].error_code, 0, "{:?}", answer.responses[0].error_message);
}

/// A member of `g` that fetches from partition 0 of `t`.
pub struct Member {
    client: Client,
    id: &'static str,
    topic: Uuid,
    epoch: i32,
}

impl Member {
    pub fn new(broker: &Broker, id: &'static str, topic: Uuid) -> Self {
        let mut client = broker.connect();
        join(&mut client, id);
        Member { client, id, topic, epoch: 0 }
    }

    fn request(&mut self, wait_ms: i32, said: &[(i64, i64, i8)]) -> ShareFetchRequest {
        let batch = |(first, last, kind): &(i64, i64, i8)| AcknowledgementBatch {
            first_offset: *first,
            last_offset: *last,
            acknowledge_types: vec![*kind],
        };
        let partition =
            FetchPartition { partition_index: 0, acknowledgement_batches: said.iter().map(batch).collect() };
        let request = ShareFetchRequest {
            group_id: Some("g".into()),
            member_id: Some(self.id.into()),
            share_session_epoch: self.epoch,
            max_wait_ms: wait_ms,
            min_bytes: 1,
            max_bytes: 1 << 20,
            max_records: 100,
            batch_size: 100,
            topics: vec![FetchTopic { topic_id: self.topic, partitions: vec![partition] }],
            ..Default::default()
        };
        self.epoch += 1;
        request
    }

    /// What there is of the partition.
    #[track_caller]
    pub fn fetch(&mut self, wait_ms: i32, said: &[(i64, i64, i8)]) -> PartitionData {
        let request = self.request(wait_ms, said);
        let mut answer = self.client.call(2, &request);
        assert_eq!((answer.error_code, &answer.error_message), (0, &Option::None));
        if answer.responses.is_empty() { PartitionData::default() } else { answer.responses[0].partitions.remove(0) }
    }

    /// What it acquires: first and last offsets, and how often they were delivered.
    #[track_caller]
    pub fn acquire(&mut self, said: &[(i64, i64, i8)]) -> Vec<(i64, i64, i16)> {
        let data = self.fetch(0, said);
        assert_eq!((data.error_code, data.acknowledge_error_code), (0, 0), "{:?}", data.acknowledge_error_message);
        acquired(&data)
    }

    pub fn acknowledge(&mut self, first: i64, last: i64, kind: i8) -> i16 {
        let batch = share_acknowledge::AcknowledgementBatch {
            first_offset: first,
            last_offset: last,
            acknowledge_types: vec![kind],
        };
        let partition = AcknowledgePartition { partition_index: 0, acknowledgement_batches: vec![batch] };
        let request = ShareAcknowledgeRequest {
            group_id: Some("g".into()),
            member_id: Some(self.id.into()),
            share_session_epoch: self.epoch,
            topics: vec![AcknowledgeTopic { topic_id: self.topic, partitions: vec![partition] }],
            ..Default::default()
        };
        self.epoch += 1;
        let answer = self.client.call(2, &request);
        assert_eq!(answer.error_code, 0);
        answer.responses[0].partitions[0].error_code
    }
}

fn acquired(data: &PartitionData) -> Vec<(i64, i64, i16)> {
    data.acquired_records.iter().map(|got| (got.first_offset, got.last_offset, got.delivery_count)).collect()
}

/// A topic with `records` records in batches of one, of which the group wants to see all.
pub fn prepare(client: &mut Client, records: usize) -> Uuid {
    let topic = create_topic(client, "t", 1);
    configure(client, "share.auto.offset.reset", "earliest");
    for _ in 0..records {
        produce(client, "t", 0, b"value").unwrap();
    }
    topic
}

#[test]
fn each_record_goes_to_one_member_and_accepted_ones_outlive_a_kill() {
    let broker = Broker::start_with(QUICK);
    let topic = prepare(&mut broker.connect(), 10);
    let (mut a, mut b) = (Member::new(&broker, "a", topic), Member::new(&broker, "b", topic));
    let got = a.fetch(0, &[]);
    assert_eq!(acquired(&got), [(0, 9, 1)]);
    assert!(!got.records.is_empty());
    assert!(b.acquire(&[]).is_empty(), "all of them are a's");
    // Accepted, given back, rejected; 7 to 9 stay a's.
    for (first, last, kind) in [(0, 3, ACCEPT), (4, 5, RELEASE), (6, 6, REJECT)] {
        assert_eq!(a.acknowledge(first, last, kind), 0);
    }
    assert_eq!(b.acquire(&[]), [(4, 5, 2)]);
    let broker = broker.kill().start();
    let mut c = Member::new(&broker, "c", topic);
    // The deliveries that nobody has ended do not count: 4 and 5 were given back once, the others never.
    assert_eq!(c.acquire(&[]), [(4, 5, 2), (7, 9, 1)]);
    assert_eq!(c.acknowledge(4, 9, ACCEPT), InvalidRecordState.code(), "6 is not its");
    assert_eq!((c.acknowledge(4, 5, ACCEPT), c.acknowledge(7, 9, ACCEPT)), (0, 0));
    assert_eq!(produce(&mut broker.connect(), "t", 0, b"more").unwrap(), 10);
    assert_eq!(c.acquire(&[]), [(10, 10, 1)]);
}

#[test]
fn a_parked_fetch_wakes_for_new_records_and_for_those_that_are_given_back() {
    let broker = Broker::start_with(QUICK);
    let mut client = broker.connect();
    let topic = prepare(&mut client, 0);
    configure(&mut client, "share.record.lock.duration.ms", "1000");
    let (mut a, mut b) = (Member::new(&broker, "a", topic), Member::new(&broker, "b", topic));
    let parked = a.request(60_000, &[]);
    let id = a.client.send(2, &parked);
    std::thread::sleep(Duration::from_millis(50));
    produce(&mut client, "t", 0, b"value").unwrap();
    let got = a.client.receive::<ShareFetchRequest>(2, id);
    assert_eq!(acquired(&got.responses[0].partitions[0]), [(0, 0, 1)]);
    assert_eq!(got.acquisition_lock_timeout_ms, 1000);
    // The lock runs out.
    let started = Instant::now();
    assert_eq!(acquired(&b.fetch(60_000, &[])), [(0, 0, 2)]);
    assert!(started.elapsed() < PATIENCE);
    // b's connection breaks, and what it had is a's at once.
    configure(&mut client, "share.record.lock.duration.ms", "60000");
    assert!(a.acquire(&[]).is_empty());
    let parked = a.request(60_000, &[]);
    let id = a.client.send(2, &parked);
    drop(b);
    let got = a.client.receive::<ShareFetchRequest>(2, id);
    assert_eq!(acquired(&got.responses[0].partitions[0])[0].0, 0);
}

#[test]
fn requests_that_cannot_be_are_refused_with_kafkas_errors() {
    let broker = Broker::start_with(QUICK);
    let mut client = broker.connect();
    let topic = prepare(&mut client, 3);
    let mut a = Member::new(&broker, "a", topic);
    let mut refused = |change: &dyn Fn(&mut ShareFetchRequest), expected: ErrorCode| {
        let mut request = Member { client: broker.connect(), id: "a", topic, epoch: 0 }.request(0, &[]);
        change(&mut request);
        assert_code(client.call(2, &request).error_code, expected);
    };
    refused(&|request| request.group_id = Option::None, InvalidRequest);
    refused(&|request| request.member_id = Some(String::new()), InvalidRequest);
    refused(&|request| request.share_session_epoch = 1, ShareSessionNotFound);
    refused(&|request| request.share_session_epoch = -1, ShareSessionNotFound);
    refused(&|request| request.is_renew_ack = true, InvalidRequest);
    refused(&|request| request.share_acquire_mode = 7, InvalidRequest);
    assert_eq!(a.acquire(&[]), [(0, 2, 1)]);
    a.epoch += 1;
    let request = a.request(0, &[]);
    assert_code(a.client.call(2, &request).error_code, InvalidShareSessionEpoch);
    a.epoch = 1;
    let nonsense = a.fetch(0, &[(2, 1, ACCEPT)]);
    assert_code(nonsense.acknowledge_error_code, InvalidRequest);
    let past = a.fetch(0, &[(0, 3, ACCEPT)]);
    assert_code(past.acknowledge_error_code, InvalidRequest);
    a.topic = Uuid([9; 16]);
    let unknown = a.fetch(0, &[]);
    assert_code(unknown.error_code, UnknownTopicId);
    // A group that does not keep state of the partition: nobody has joined it.
    let mut stranger = Member { client: broker.connect(), id: "s", topic, epoch: 0 };
    let mut request = stranger.request(0, &[]);
    request.group_id = Some("nobody".into());
    let answer = stranger.client.call(2, &request);
    assert_code(answer.responses[0].partitions[0].error_code, UnknownServerError);
}

#[test]
fn administrators_see_share_groups_and_change_their_offsets() {
    let broker = Broker::start_with(QUICK);
    let mut client = broker.connect();
    let topic = prepare(&mut client, 8);
    let mut a = Member::new(&broker, "a", topic);
    a.acquire(&[]);
    assert_eq!(a.acknowledge(0, 2, ACCEPT), 0);
    assert_eq!(a.acknowledge(4, 4, REJECT), 0);
    let listed = client.call(5, &ListGroupsRequest { types_filter: vec!["Share".into()], ..Default::default() });
    let group = &listed.groups[0];
    let shown = (group.group_type.as_str(), group.protocol_type.as_str(), group.group_state.as_str());
    assert_eq!(shown, ("share", "share", "Stable"));
    let described = client.call(1, &ShareGroupDescribeRequest { group_ids: vec!["g".into()], ..Default::default() });
    let group = &described.groups[0];
    assert_eq!((group.group_state.as_str(), group.assignor_name.as_str()), ("Stable", "simple"));
    assert_eq!(group.members[0].assignment.topic_partitions[0].partitions, [0]);
    let classic = client.call(6, &DescribeGroupsRequest { groups: vec!["g".into()], ..Default::default() });
    assert_code(classic.groups[0].error_code, GroupIdNotFound);
    let offsets = |client: &mut Client| {
        let group = DescribeShareGroupOffsetsRequestGroup { group_id: "g".into(), topics: Option::None };
        let mut answer = client.call(1, &DescribeShareGroupOffsetsRequest { groups: vec![group] });
        let topics = answer.groups.remove(0).topics;
        topics.iter().map(|topic| (topic.partitions[0].start_offset, topic.partitions[0].lag)).collect::<Vec<_>>()
    };
    // 0 to 2 are done with, and so is 4.
    assert_eq!(offsets(&mut client), [(3, 4)]);
    let alter = |client: &mut Client, start_offset| {
        let partition = AlterShareGroupOffsetsRequestPartition { partition_index: 0, start_offset };
        let topic = AlterShareGroupOffsetsRequestTopic { topic_name: "t".into(), partitions: vec![partition] };
        client.call(0, &AlterShareGroupOffsetsRequest { group_id: "g".into(), topics: vec![topic] })
    };
    let delete = |client: &mut Client| {
        let topic = DeleteShareGroupOffsetsRequestTopic { topic_name: "t".into() };
        client.call(0, &DeleteShareGroupOffsetsRequest { group_id: "g".into(), topics: vec![topic] })
    };
    assert_code(alter(&mut client, 1).error_code, NonEmptyGroup);
    assert_code(delete(&mut client).error_code, NonEmptyGroup);
    let delete_group = DeleteGroupsRequest { groups_names: vec!["g".into()] };
    assert_code(client.call(2, &delete_group).results[0].error_code, NonEmptyGroup);
    assert_eq!(client.call(1, &beating("a", -1)).error_code, 0);
    assert_eq!(alter(&mut client, 1).responses[0].partitions[0].error_code, 0);
    assert_eq!(offsets(&mut client), [(1, 7)]);
    // The member that was there before has lost what it had.
    assert_code(a.acknowledge(5, 5, ACCEPT), UnknownTopicOrPartition);
    let mut b = Member::new(&broker, "b", topic);
    assert_eq!(b.acquire(&[]), [(1, 7, 1)]);
    assert_eq!(client.call(1, &beating("b", -1)).error_code, 0);
    assert_eq!(delete(&mut client).responses[0].error_code, 0);
    assert_eq!(offsets(&mut client), []);
    assert_eq!(client.call(2, &delete_group).results[0].error_code, 0);
    let find =
        |key: &str| FindCoordinatorRequest { key_type: 2, coordinator_keys: vec![key.into()], ..Default::default() };
    let found = client.call(6, &find(&format!("g:{topic}:0")));
    assert_eq!((found.coordinators[0].error_code, found.coordinators[0].port), (0, i32::from(broker.address.port())));
    assert_code(client.call(6, &find("g:0")).coordinators[0].error_code, InvalidRequest);
}

#[test]
fn what_is_altered_or_forgotten_of_one_topic_takes_nothing_that_is_held_of_another() {
    let broker = Broker::start_with(QUICK);
    let mut client = broker.connect();
    let topic = prepare(&mut client, 8);
    create_topic(&mut client, "u", 1);
    let mut a = Member::new(&broker, "a", topic);
    assert_eq!(a.acquire(&[]), [(0, 7, 1)]);
    // Its session goes on.
    assert_eq!(client.call(1, &beating("a", -1)).error_code, 0);
    let partition = AlterShareGroupOffsetsRequestPartition { partition_index: 0, start_offset: 0 };
    let altered = AlterShareGroupOffsetsRequestTopic { topic_name: "u".into(), partitions: vec![partition] };
    let answer = client.call(0, &AlterShareGroupOffsetsRequest { group_id: "g".into(), topics: vec![altered] });
    assert_eq!((answer.error_code, answer.responses[0].partitions[0].error_code), (0, 0));
    assert_eq!(a.acknowledge(0, 1, RELEASE), 0);
    let deleted = DeleteShareGroupOffsetsRequestTopic { topic_name: "u".into() };
    let answer = client.call(0, &DeleteShareGroupOffsetsRequest { group_id: "g".into(), topics: vec![deleted] });
    assert_eq!((answer.error_code, answer.responses[0].error_code), (0, 0));
    assert_eq!(a.acknowledge(2, 7, ACCEPT), 0);
    let mut b = Member::new(&broker, "b", topic);
    assert_eq!(b.acquire(&[]), [(0, 1, 2)]);
}

#[test]
fn without_the_feature_there_are_no_share_groups() {
    let broker = Broker::start_with(QUICK);
    let mut client = broker.connect();
    let update = FeatureUpdateKey {
        feature: "share.version".into(),
        max_version_level: 0,
        upgrade_type: 2,
        ..Default::default()
    };
    let answer = client.call(1, &UpdateFeaturesRequest { feature_updates: vec![update], ..Default::default() });
    assert_eq!((answer.error_code, &answer.error_message), (0, &Option::None));
    assert_code(client.call(1, &beating("a", 0)).error_code, UnsupportedVersion);
    let fetch = Member { client: broker.connect(), id: "a", topic: Uuid::ZERO, epoch: 0 }.request(0, &[]);
    assert_code(client.call(2, &fetch).error_code, UnsupportedVersion);
}
