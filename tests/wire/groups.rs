//! Classic groups over the wire: members, rebalances, static members, offsets, and what a restart keeps of them.

use std::time::{Duration, Instant};

use bytes::Bytes;
use doze::protocol::ErrorCode::{self, *};
use doze::protocol::messages::delete_groups::DeleteGroupsRequest;
use doze::protocol::messages::describe_groups::{DescribeGroupsRequest, DescribedGroup};
use doze::protocol::messages::find_coordinator::FindCoordinatorRequest;
use doze::protocol::messages::heartbeat::HeartbeatRequest;
use doze::protocol::messages::join_group::{JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse};
use doze::protocol::messages::leave_group::{LeaveGroupRequest, MemberIdentity};
use doze::protocol::messages::list_groups::ListGroupsRequest;
use doze::protocol::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use doze::protocol::messages::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use doze::protocol::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use doze::protocol::messages::sync_group::{SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse};
use doze::protocol::{Request, Uuid};

use crate::asks::*;
use crate::harness::{Broker, Client};

/// What a consumer of these topics sends along when it joins: version 0, the topics, no user data.
fn subscription(topics: &[&str]) -> Bytes {
    let mut bytes = vec![0, 0];
    bytes.extend((topics.len() as i32).to_be_bytes());
    for topic in topics {
        bytes.extend((topic.len() as i16).to_be_bytes());
        bytes.extend(topic.bytes());
    }
    bytes.extend((-1i32).to_be_bytes());
    bytes.into()
}

fn join_request(group: &str, member: &str, instance: Option<&str>) -> JoinGroupRequest {
    let protocol = JoinGroupRequestProtocol { name: "range".into(), metadata: subscription(&["t"]) };
    JoinGroupRequest {
        group_id: group.into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        member_id: member.into(),
        group_instance_id: instance.map(str::to_owned),
        protocol_type: "consumer".into(),
        protocols: vec![protocol],
        ..Default::default()
    }
}

/// Joins as a new member: where that is the rule, the first answer only gives out the id.
#[track_caller]
fn join(client: &mut Client, version: i16, request: JoinGroupRequest) -> JoinGroupResponse {
    let first = client.call(version, &request);
    if version < 4 || request.group_instance_id.is_some() {
        assert_code(first.error_code, None);
        return first;
    }
    assert_code(first.error_code, MemberIdRequired);
    let joined = client.call(version, &JoinGroupRequest { member_id: first.member_id.clone(), ..request });
    assert_code(joined.error_code, None);
    assert_eq!(joined.member_id, first.member_id);
    joined
}

fn sync_request(group: &str, joined: &JoinGroupResponse, assignments: &[(&str, &'static [u8])]) -> SyncGroupRequest {
    let assignment = |(member, bytes): &(&str, &'static [u8])| SyncGroupRequestAssignment {
        member_id: (*member).into(),
        assignment: Bytes::from_static(bytes),
    };
    SyncGroupRequest {
        group_id: group.into(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        protocol_type: Some("consumer".into()),
        protocol_name: Some("range".into()),
        assignments: assignments.iter().map(assignment).collect(),
        ..Default::default()
    }
}

/// A group of one, joined and synced at the newest versions.
#[track_caller]
pub fn lone_member(client: &mut Client, group: &str, instance: Option<&str>) -> JoinGroupResponse {
    let joined = join(client, 9, join_request(group, "", instance));
    let synced = client.call(5, &sync_request(group, &joined, &[(&joined.member_id, b"all")]));
    assert_code(synced.error_code, None);
    joined
}

pub fn heartbeat(client: &mut Client, group: &str, generation: i32, member: &str, instance: Option<&str>) -> ErrorCode {
    let version = if instance.is_some() { 4 } else { 0 };
    let request = HeartbeatRequest {
        group_id: group.into(),
        generation_id: generation,
        member_id: member.into(),
        group_instance_id: instance.map(str::to_owned),
    };
    ErrorCode::from_code(client.call(version, &request).error_code).unwrap()
}

fn leave(client: &mut Client, version: i16, group: &str, member: &str, instance: Option<&str>) -> Vec<i16> {
    let mut request = LeaveGroupRequest { group_id: group.into(), ..Default::default() };
    if version <= 2 {
        request.member_id = member.into();
    } else {
        request.members = vec![MemberIdentity {
            member_id: member.into(),
            group_instance_id: instance.map(str::to_owned),
            reason: Some("the test is over".into()),
        }];
    }
    let response = client.call(version, &request);
    let of_members = response.members.iter().map(|member| member.error_code);
    std::iter::once(response.error_code).chain(of_members).collect()
}

fn describe(client: &mut Client, version: i16, group: &str) -> DescribedGroup {
    let request = DescribeGroupsRequest { groups: vec![group.into()], include_authorized_operations: version >= 3 };
    client.call(version, &request).groups.remove(0)
}

pub fn commit_request(group: &str, topic: &str, id: Uuid, offset: i64) -> OffsetCommitRequest {
    let partition = OffsetCommitRequestPartition {
        partition_index: 0,
        committed_offset: offset,
        committed_leader_epoch: 0,
        committed_metadata: Some(format!("m{offset}")),
    };
    let topic = OffsetCommitRequestTopic { name: topic.into(), topic_id: id, partitions: vec![partition] };
    OffsetCommitRequest { group_id: group.into(), topics: vec![topic], ..Default::default() }
}

#[track_caller]
fn commit(client: &mut Client, group: &str, topic: &str, offset: i64) {
    let response = client.call(9, &commit_request(group, topic, Uuid::ZERO, offset));
    assert_code(response.topics[0].partitions[0].error_code, None);
}

/// Offset, metadata and error of partition 0, asked for at any version.
fn committed(client: &mut Client, version: i16, group: &str, topic: &str, id: Uuid) -> (i64, String, i16) {
    if version < 8 {
        let topics = vec![OffsetFetchRequestTopic { name: topic.into(), partition_indexes: vec![0] }];
        let request = OffsetFetchRequest { group_id: group.into(), topics: Some(topics), ..Default::default() };
        let response = client.call(version, &request);
        let found = &response.topics[0].partitions[0];
        assert_eq!(response.topics[0].name, topic);
        return (found.committed_offset, found.metadata.clone().unwrap(), found.error_code);
    }
    let topics = vec![OffsetFetchRequestTopics { name: topic.into(), topic_id: id, partition_indexes: vec![0] }];
    let asked = OffsetFetchRequestGroup { group_id: group.into(), topics: Some(topics), ..Default::default() };
    let response = client.call(version, &OffsetFetchRequest { groups: vec![asked], ..Default::default() });
    assert_eq!((response.groups[0].group_id.as_str(), response.groups[0].error_code), (group, 0));
    let found = &response.groups[0].topics[0];
    if version < 10 {
        assert_eq!(found.name, topic);
    } else {
        assert_eq!(found.topic_id, id);
    }
    let found = &found.partitions[0];
    (found.committed_offset, found.metadata.clone().unwrap(), found.error_code)
}

pub fn fetched(client: &mut Client, group: &str, topic: &str) -> i64 {
    committed(client, 9, group, topic, Uuid::ZERO).0
}

#[test]
fn a_group_lives_at_the_oldest_and_the_newest_versions() {
    let broker = Broker::start();
    let [mut a, mut b] = [broker.connect(), broker.connect()];
    let pairs = oldest_and_newest::<JoinGroupRequest>()
        .into_iter()
        .zip(oldest_and_newest::<SyncGroupRequest>())
        .zip(oldest_and_newest::<LeaveGroupRequest>());
    for ((v, sync_v), leave_v) in pairs {
        let group = &*format!("g{v}");
        let first = join(&mut a, v, join_request(group, "", Option::None));
        assert_eq!((first.generation_id, &first.leader, first.members.len()), (1, &first.member_id, 1));
        assert_eq!(first.members[0].metadata, subscription(&["t"]));
        assert_eq!(first.protocol_name.as_deref(), Some("range"));
        assert!(first.member_id.starts_with("test-"), "{}", first.member_id);
        let synced = a.call(sync_v, &sync_request(group, &first, &[(&first.member_id, b"everything")]));
        assert_eq!((synced.error_code, &synced.assignment[..]), (0, &b"everything"[..]));
        assert_eq!(heartbeat(&mut a, group, 1, &first.member_id, Option::None), None);
        assert_eq!(heartbeat(&mut a, group, 2, &first.member_id, Option::None), IllegalGeneration);
        assert_eq!(heartbeat(&mut a, group, 1, "stranger", Option::None), UnknownMemberId);

        // A second member: the first one hears of it with its heartbeat, joins again and hands out the parts.
        let mut request = join_request(group, "", Option::None);
        if v >= 4 {
            let told = b.call(v, &request);
            assert_code(told.error_code, MemberIdRequired);
            assert_eq!(
                heartbeat(&mut a, group, 1, &first.member_id, Option::None),
                None,
                "an id alone changes nothing"
            );
            request.member_id = told.member_id;
        }
        let parked = b.send(v, &request);
        while heartbeat(&mut a, group, 1, &first.member_id, Option::None) != RebalanceInProgress {
            std::thread::sleep(Duration::from_millis(2));
        }
        let again = a.call(v, &join_request(group, &first.member_id, Option::None));
        let second = b.receive::<JoinGroupRequest>(v, parked);
        assert_eq!((again.error_code, again.generation_id, again.members.len()), (0, 2, 2));
        assert_eq!((second.error_code, second.generation_id, second.members.len()), (0, 2, 0));
        assert_eq!((&again.leader, &second.leader), (&first.member_id, &first.member_id));

        let parked = b.send(sync_v, &sync_request(group, &second, &[]));
        let parts: [(&str, &[u8]); 2] = [(&first.member_id, b"left"), (&second.member_id, b"right")];
        let synced = a.call(sync_v, &sync_request(group, &again, &parts));
        assert_eq!((synced.error_code, &synced.assignment[..]), (0, &b"left"[..]));
        let synced: SyncGroupResponse = b.receive::<SyncGroupRequest>(sync_v, parked);
        assert_eq!((synced.error_code, &synced.assignment[..]), (0, &b"right"[..]));
        if sync_v >= 5 {
            assert_eq!(
                (synced.protocol_type.as_deref(), synced.protocol_name.as_deref()),
                (Some("consumer"), Some("range"))
            );
        }

        // One leaves, the other one has the next generation for itself.
        let expected: &[i16] = if leave_v <= 2 { &[0] } else { &[0, 0] };
        assert_eq!(leave(&mut b, leave_v, group, &second.member_id, Option::None), expected);
        assert_eq!(heartbeat(&mut a, group, 2, &first.member_id, Option::None), RebalanceInProgress);
        let alone = a.call(v, &join_request(group, &first.member_id, Option::None));
        assert_eq!((alone.error_code, alone.generation_id, alone.members.len()), (0, 3, 1));
        let synced = a.call(sync_v, &sync_request(group, &alone, &[(&first.member_id, b"everything")]));
        assert_code(synced.error_code, None);
        assert_eq!(leave(&mut a, leave_v, group, &first.member_id, Option::None), expected);
        assert_eq!(describe(&mut a, 5, group).group_state, "Empty");
    }
}

#[test]
fn leaving_at_every_version() {
    let broker = Broker::start();
    let mut client = broker.connect();
    for version in versions::<LeaveGroupRequest>() {
        let group = format!("g{version}");
        let member = lone_member(&mut client, &group, Option::None).member_id;
        let unknown = UnknownMemberId.code();
        // Up to v2 the error is the answer's, later each member's.
        let (wrong, right) = if version <= 2 { (vec![unknown], vec![0]) } else { (vec![0, unknown], vec![0, 0]) };
        assert_eq!(leave(&mut client, version, &group, "stranger", Option::None), wrong, "v{version}");
        assert_eq!(leave(&mut client, version, &group, &member, Option::None), right, "v{version}");
        assert_eq!(heartbeat(&mut client, &group, 1, &member, Option::None), UnknownMemberId);
        assert_eq!(leave(&mut client, version, "nobody's", &member, Option::None), wrong, "v{version}");
    }
    // Many at one time, some of them static.
    let a = lone_member(&mut client, "many", Some("a")).member_id;
    let response = client.call(
        5,
        &LeaveGroupRequest {
            group_id: "many".into(),
            members: vec![
                MemberIdentity { member_id: "x".into(), ..Default::default() },
                MemberIdentity { member_id: "wrong".into(), group_instance_id: Some("a".into()), reason: Option::None },
                MemberIdentity { member_id: String::new(), group_instance_id: Some("a".into()), reason: Option::None },
                MemberIdentity { member_id: a, group_instance_id: Some("a".into()), reason: Option::None },
            ],
            ..Default::default()
        },
    );
    let codes: Vec<i16> = response.members.iter().map(|member| member.error_code).collect();
    assert_eq!(codes, [UnknownMemberId.code(), FencedInstanceId.code(), 0, UnknownMemberId.code()]);
    assert_eq!(response.members[1].group_instance_id.as_deref(), Some("a"));
}

#[test]
fn static_members_come_back_without_a_rebalance_and_fence_their_predecessors() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let old = lone_member(&mut client, "g", Some("i"));
    assert!(old.member_id.starts_with("i-"), "{}", old.member_id);
    // It starts anew and does not know its id: the generation stays, its assignment too.
    let new = join(&mut client, 9, join_request("g", "", Some("i")));
    assert_eq!(new.generation_id, old.generation_id);
    assert_ne!(new.member_id, old.member_id);
    assert!(new.skip_assignment);
    let mut sync = sync_request("g", &new, &[]);
    sync.group_instance_id = Some("i".into());
    let synced = client.call(5, &sync);
    assert_eq!((synced.error_code, &synced.assignment[..]), (0, &b"all"[..]));

    assert_eq!(heartbeat(&mut client, "g", 1, &old.member_id, Some("i")), FencedInstanceId);
    assert_eq!(heartbeat(&mut client, "g", 1, &new.member_id, Some("i")), None);
    let fenced = client.call(9, &join_request("g", &old.member_id, Some("i")));
    assert_code(fenced.error_code, FencedInstanceId);
    sync.member_id.clone_from(&old.member_id);
    assert_code(client.call(5, &sync).error_code, FencedInstanceId);
    create_topic(&mut client, "t", 1);
    let mut commit = commit_request("g", "t", Uuid::ZERO, 5);
    commit.member_id = old.member_id.clone();
    commit.group_instance_id = Some("i".into());
    commit.generation_id_or_member_epoch = 1;
    assert_code(client.call(9, &commit).topics[0].partitions[0].error_code, FencedInstanceId);

    let described = describe(&mut client, 5, "g");
    assert_eq!(described.members.len(), 1);
    assert_eq!(described.members[0].group_instance_id.as_deref(), Some("i"));
    assert_eq!(described.members[0].member_id, new.member_id);
    // The administrator's way to take it out.
    assert_eq!(leave(&mut client, 5, "g", "", Some("i")), [0, 0]);
    assert_eq!(describe(&mut client, 5, "g").group_state, "Empty");
}

#[test]
fn what_a_join_is_refused_for() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let mut refused = |change: fn(&mut JoinGroupRequest)| {
        let mut request = join_request("g", "", Option::None);
        change(&mut request);
        ErrorCode::from_code(client.call(9, &request).error_code).unwrap()
    };
    assert_eq!(refused(|r| r.group_id = String::new()), InvalidGroupId);
    assert_eq!(refused(|r| r.session_timeout_ms = 5_999), InvalidSessionTimeout);
    assert_eq!(refused(|r| r.session_timeout_ms = 1_800_001), InvalidSessionTimeout);
    assert_eq!(refused(|r| r.member_id = "stranger".into()), UnknownMemberId);
    assert_eq!(refused(|r| r.protocols.clear()), InconsistentGroupProtocol);
    assert_eq!(refused(|r| r.protocol_type.clear()), InconsistentGroupProtocol);
    lone_member(&mut client, "g", Option::None);
    let mut other = join_request("g", "", Option::None);
    other.protocol_type = "connect".into();
    assert_code(client.call(9, &other).error_code, InconsistentGroupProtocol);
}

#[test]
fn offsets_at_every_version() {
    let broker = Broker::start();
    let mut client = broker.connect();
    look_up(&mut client, GROUP);
    let id = create_topic(&mut client, "t", 1);
    for version in versions::<OffsetCommitRequest>() {
        let group = format!("c{version}");
        let offset = 100 + i64::from(version);
        let response = client.call(version, &commit_request(&group, "t", id, offset));
        let topic = &response.topics[0];
        assert_eq!((topic.partitions[0].error_code, topic.partitions[0].partition_index), (0, 0), "v{version}");
        assert_eq!(committed(&mut client, 9, &group, "t", id), (offset, format!("m{offset}"), 0), "v{version}");
    }
    commit(&mut client, "g", "t", 7);
    for version in versions::<OffsetFetchRequest>() {
        assert_eq!(committed(&mut client, version, "g", "t", id), (7, "m7".into(), 0), "v{version}");
        assert_eq!(committed(&mut client, version, "nobody's", "t", id), (-1, String::new(), 0), "v{version}");
    }
    // All of a group's partitions: null topics.
    for version in 2..=7 {
        let request = OffsetFetchRequest { group_id: "g".into(), topics: Option::None, ..Default::default() };
        let response = client.call(version, &request);
        assert_eq!((response.topics.len(), response.topics[0].partitions[0].committed_offset), (1, 7), "v{version}");
    }
    for version in 8..=10 {
        let groups = ["g", "c2", "nobody's"].map(|group| OffsetFetchRequestGroup {
            group_id: group.into(),
            topics: Option::None,
            ..Default::default()
        });
        let response = client.call(version, &OffsetFetchRequest { groups: groups.into(), ..Default::default() });
        let offsets: Vec<Vec<i64>> = response
            .groups
            .iter()
            .map(|g| g.topics.iter().flat_map(|t| t.partitions.iter().map(|p| p.committed_offset)).collect())
            .collect();
        assert_eq!(offsets, [vec![7], vec![102], vec![]], "v{version}");
        if version == 10 {
            assert_eq!(response.groups[0].topics[0].topic_id, id);
        }
    }
}

#[test]
fn commits_are_refused_for_what_is_not_there_and_by_whom_is_not_in() {
    let broker = Broker::start_with(&["--override", "offset.metadata.max.bytes=10"]);
    let mut client = broker.connect();
    let id = create_topic(&mut client, "t", 1);
    let mut code = |version: i16, request: &OffsetCommitRequest| {
        ErrorCode::from_code(client.call(version, request).topics[0].partitions[0].error_code).unwrap()
    };
    assert_eq!(code(9, &commit_request("g", "nope", Uuid::ZERO, 1)), UnknownTopicOrPartition);
    assert_eq!(code(10, &commit_request("g", "", Uuid([9; 16]), 1)), UnknownTopicId);
    let mut request = commit_request("g", "t", id, 1);
    request.topics[0].partitions[0].partition_index = 1;
    assert_eq!(code(9, &request), UnknownTopicOrPartition);
    let mut request = commit_request("g", "t", id, 1);
    request.topics[0].partitions[0].committed_metadata = Some("x".repeat(11));
    assert_eq!(code(9, &request), OffsetMetadataTooLarge);
    request.topics[0].partitions[0].committed_metadata = Option::None;
    assert_eq!(code(9, &request), None, "null metadata is empty");
    // A group of which nobody is a member takes no generation.
    let mut request = commit_request("other", "t", id, 1);
    request.generation_id_or_member_epoch = 3;
    request.member_id = "stranger".into();
    assert_eq!(code(8, &request), IllegalGeneration);

    let member = lone_member(&mut client, "g", Option::None);
    let mut code = |generation: i32, member: &str| {
        let mut request = commit_request("g", "t", id, 2);
        request.generation_id_or_member_epoch = generation;
        request.member_id = member.into();
        ErrorCode::from_code(client.call(9, &request).topics[0].partitions[0].error_code).unwrap()
    };
    assert_eq!(code(1, "stranger"), UnknownMemberId);
    assert_eq!(code(2, &member.member_id), IllegalGeneration);
    assert_eq!(code(-1, ""), UnknownMemberId, "the group's offsets are its members'");
    assert_eq!(code(1, &member.member_id), None);
}

#[test]
fn offsets_and_members_survive_a_kill_and_a_clean_restart() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let id = create_topic(&mut client, "t", 1);
    let member = lone_member(&mut client, "g", Option::None).member_id;
    let static_member = lone_member(&mut client, "s", Some("i")).member_id;
    for offset in 1..=20 {
        commit(&mut client, "alone", "t", offset);
    }
    let check = |broker: &Broker, offset: i64| {
        let mut client = broker.connect();
        assert_eq!(committed(&mut client, 10, "alone", "t", id), (offset, format!("m{offset}"), 0));
        // Who was in is in: a heartbeat is answered as if nothing had happened.
        assert_eq!(heartbeat(&mut client, "g", 1, &member, Option::None), None);
        assert_eq!(heartbeat(&mut client, "s", 1, &static_member, Some("i")), None);
        let described = describe(&mut client, 5, "g");
        assert_eq!((described.group_state.as_str(), &described.members[0].member_id), ("Stable", &member));
        assert_eq!(&described.members[0].member_assignment[..], b"all");
        assert_eq!(described.members[0].client_id, "test");
        commit(&mut client, "alone", "t", offset + 1);
    };
    let broker = broker.kill().start();
    check(&broker, 20);
    let broker = broker.stop().start();
    check(&broker, 21);
    let broker = broker.kill().start();
    check(&broker, 22);
    let mut client = broker.connect();
    assert_eq!(leave(&mut client, 5, "g", &member, Option::None), [0, 0]);
    assert_eq!(describe(&mut client, 5, "g").group_state, "Empty");
}

#[test]
fn a_silent_member_is_out_after_its_session() {
    let broker = Broker::start_with(&["--override", "group.min.session.timeout.ms=1"]);
    let mut client = broker.connect();
    let mut request = join_request("g", "", Option::None);
    request.session_timeout_ms = 300;
    let joined = join(&mut client, 9, request.clone());
    let synced = client.call(5, &sync_request("g", &joined, &[(&joined.member_id, b"all")]));
    assert_code(synced.error_code, None);
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(600) {
        assert_eq!(heartbeat(&mut client, "g", 1, &joined.member_id, Option::None), None, "heartbeats keep it in");
        std::thread::sleep(Duration::from_millis(50));
    }
    let end = Instant::now() + Duration::from_secs(10);
    while describe(&mut client, 5, "g").group_state != "Empty" {
        assert!(Instant::now() < end, "it is never out");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(heartbeat(&mut client, "g", 1, &joined.member_id, Option::None), UnknownMemberId);
    // A restart starts the sessions anew, and they end too.
    let joined = join(&mut client, 9, request);
    assert_eq!(joined.generation_id, 3, "the group going empty was a generation as well");
    client.call(5, &sync_request("g", &joined, &[(&joined.member_id, b"all")]));
    let broker = broker.kill().start();
    let mut client = broker.connect();
    let end = Instant::now() + Duration::from_secs(10);
    while describe(&mut client, 5, "g").group_state != "Empty" {
        assert!(Instant::now() < end, "it is never out");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn delete_offsets(client: &mut Client, group: &str, topics: &[(&str, i32)]) -> (i16, Vec<i16>) {
    let topic = |(name, index): &(&str, i32)| OffsetDeleteRequestTopic {
        name: (*name).into(),
        partitions: vec![OffsetDeleteRequestPartition { partition_index: *index }],
    };
    let response =
        client.call(0, &OffsetDeleteRequest { group_id: group.into(), topics: topics.iter().map(topic).collect() });
    let codes = response.topics.iter().map(|topic| topic.partitions[0].error_code).collect();
    (response.error_code, codes)
}

#[test]
fn offsets_can_be_deleted_where_nobody_subscribes() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    create_topic(&mut client, "u", 1);
    assert_eq!(delete_offsets(&mut client, "nobody's", &[("t", 0)]), (GroupIdNotFound.code(), vec![]));
    commit(&mut client, "g", "t", 1);
    commit(&mut client, "g", "u", 1);
    lone_member(&mut client, "g", Option::None);
    let missing = UnknownTopicOrPartition.code();
    let answer = delete_offsets(&mut client, "g", &[("t", 0), ("u", 0), ("u", 5), ("nope", 0)]);
    assert_eq!(answer, (0, vec![GroupSubscribedToTopic.code(), 0, missing, missing]));
    assert_eq!((fetched(&mut client, "g", "t"), fetched(&mut client, "g", "u")), (1, -1));
    let broker = broker.kill().start();
    let mut client = broker.connect();
    assert_eq!((fetched(&mut client, "g", "t"), fetched(&mut client, "g", "u")), (1, -1), "and stay away");
}

#[test]
fn groups_can_be_deleted_when_they_are_empty() {
    let broker = Broker::start();
    let mut client = broker.connect();
    look_up(&mut client, GROUP);
    create_topic(&mut client, "t", 1);
    for version in versions::<DeleteGroupsRequest>() {
        let (full, empty) = (format!("full{version}"), format!("empty{version}"));
        let member = lone_member(&mut client, &full, Option::None).member_id;
        commit(&mut client, &empty, "t", 3);
        let request = DeleteGroupsRequest { groups_names: vec![full.clone(), empty.clone(), "nobody's".into()] };
        let response = client.call(version, &request);
        let codes: Vec<i16> = response.results.iter().map(|result| result.error_code).collect();
        assert_eq!(codes, [NonEmptyGroup.code(), 0, GroupIdNotFound.code()], "v{version}");
        assert_eq!(fetched(&mut client, &empty, "t"), -1);
        assert_eq!(leave(&mut client, 5, &full, &member, Option::None), [0, 0]);
        let response = client.call(version, &DeleteGroupsRequest { groups_names: vec![full] });
        assert_code(response.results[0].error_code, None);
    }
    let broker = broker.kill().start();
    let mut client = broker.connect();
    assert_eq!(client.call(5, &ListGroupsRequest::default()).groups, []);
    assert_eq!(fetched(&mut client, "empty0", "t"), -1);
}

#[test]
fn groups_are_described() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let member = lone_member(&mut client, "g", Some("i"));
    for version in versions::<DescribeGroupsRequest>() {
        let group = describe(&mut client, version, "g");
        assert_eq!((group.error_code, group.group_state.as_str()), (0, "Stable"), "v{version}");
        assert_eq!((group.protocol_type.as_str(), group.protocol_data.as_str()), ("consumer", "range"));
        let described = &group.members[0];
        assert_eq!((&described.member_id, described.client_id.as_str()), (&member.member_id, "test"));
        assert_eq!(described.client_host, "/127.0.0.1");
        assert_eq!(described.member_metadata, subscription(&["t"]));
        assert_eq!(&described.member_assignment[..], b"all");
        assert_eq!(described.group_instance_id.as_deref(), (version >= 4).then_some("i"));
        assert_eq!(group.authorized_operations, if version >= 3 { 0x0d48 } else { i32::MIN });

        let missing = describe(&mut client, version, "nobody's");
        assert_eq!(missing.group_state, "Dead");
        if version < 6 {
            assert_code(missing.error_code, None);
        } else {
            assert_code(missing.error_code, GroupIdNotFound);
            assert_eq!(missing.error_message.as_deref(), Some("Group nobody's not found."));
        }
    }
}

#[test]
fn groups_are_listed_by_state_and_type() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    lone_member(&mut client, "stable", Option::None);
    commit(&mut client, "empty", "t", 1);
    let list = |client: &mut Client, version: i16, states: &[&str], types: &[&str]| -> Vec<(String, String, String)> {
        let request = ListGroupsRequest {
            states_filter: states.iter().map(|s| (*s).into()).collect(),
            types_filter: types.iter().map(|s| (*s).into()).collect(),
        };
        let response = client.call(version, &request);
        assert_code(response.error_code, None);
        let mut groups: Vec<_> =
            response.groups.into_iter().map(|g| (g.group_id, g.group_state, g.group_type)).collect();
        groups.sort();
        groups
    };
    let names = |groups: Vec<(String, String, String)>| groups.into_iter().map(|g| g.0).collect::<Vec<_>>();
    for version in versions::<ListGroupsRequest>() {
        assert_eq!(names(list(&mut client, version, &[], &[])), ["empty", "stable"], "v{version}");
    }
    let all = list(&mut client, 5, &[], &[]);
    assert_eq!(all[0], ("empty".into(), "Empty".into(), "classic".into()));
    assert_eq!(all[1], ("stable".into(), "Stable".into(), "classic".into()));
    assert_eq!(names(list(&mut client, 4, &["Stable"], &[])), ["stable"]);
    assert_eq!(names(list(&mut client, 4, &["sTaBlE", "Empty"], &[])), ["empty", "stable"]);
    assert_eq!(names(list(&mut client, 4, &["Dead"], &[])), [""; 0]);
    assert_eq!(names(list(&mut client, 5, &["Empty"], &["Classic"])), ["empty"]);
    assert_eq!(names(list(&mut client, 5, &[], &["consumer"])), [""; 0]);
}

#[test]
fn a_topic_that_is_deleted_takes_its_offsets_along() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    create_topic(&mut client, "u", 1);
    commit(&mut client, "g", "t", 5);
    commit(&mut client, "g", "u", 6);
    delete_topic(&mut client, "t");
    let id = create_topic(&mut client, "t", 1);
    assert_eq!(fetched(&mut client, "g", "t"), -1);
    assert_eq!(committed(&mut client, 10, "g", "t", id).0, -1);
    assert_eq!(fetched(&mut client, "g", "u"), 6);
    let broker = broker.kill().start();
    let mut client = broker.connect();
    assert_eq!((fetched(&mut client, "g", "t"), fetched(&mut client, "g", "u")), (-1, 6));
}

#[test]
fn a_stop_does_not_wait_for_members_that_never_come() {
    let broker = Broker::start();
    let [mut a, mut b] = [broker.connect(), broker.connect()];
    let mut request = join_request("g", "", Option::None);
    request.rebalance_timeout_ms = 600_000;
    request.session_timeout_ms = 600_000;
    let joined = join(&mut a, 3, request.clone());
    a.call(3, &sync_request("g", &joined, &[(&joined.member_id, b"all")]));
    // Waits for the first member, which never joins again.
    let parked = b.send(3, &request);
    while heartbeat(&mut a, "g", 1, &joined.member_id, Option::None) != RebalanceInProgress {
        std::thread::sleep(Duration::from_millis(2));
    }
    let start = Instant::now();
    let stopped = broker.stop();
    assert!(start.elapsed() < Duration::from_secs(5), "it took {:?}", start.elapsed());
    let answer = b.receive::<JoinGroupRequest>(3, parked);
    assert_code(answer.error_code, NotCoordinator);
    assert!(b.receive_raw().is_none(), "and the connection is closed");
    // The group is as it was before: its member is in.
    let broker = stopped.start();
    assert_eq!(heartbeat(&mut broker.connect(), "g", 1, &joined.member_id, Option::None), None);
}

#[test]
fn the_coordinator_is_found_at_every_version() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let port = i32::from(broker.address.port());
    for version in versions::<FindCoordinatorRequest>() {
        for key_type in 0..=i8::from(version >= 1) {
            let mut request = FindCoordinatorRequest { key_type, ..Default::default() };
            if version < 4 {
                request.key = "g".into();
            } else {
                request.coordinator_keys = vec!["g".into(), "h".into()];
            }
            let response = client.call(version, &request);
            if version < 4 {
                assert_code(response.error_code, None);
                assert_eq!((response.node_id, response.host.as_str(), response.port), (1, "127.0.0.1", port));
            } else {
                let keys: Vec<_> = response.coordinators.iter().map(|c| (c.key.as_str(), c.error_code)).collect();
                assert_eq!(keys, [("g", 0), ("h", 0)]);
                let found = &response.coordinators[1];
                assert_eq!((found.node_id, found.host.as_str(), found.port), (1, "127.0.0.1", port));
            }
        }
        if version >= 1 {
            let request = FindCoordinatorRequest { key: "g".into(), key_type: 9, coordinator_keys: vec!["g".into()] };
            let response = client.call(version, &request);
            let code = if version < 4 { response.error_code } else { response.coordinators[0].error_code };
            assert_code(code, InvalidRequest);
        }
    }
}

/// Every API of groups is asked at every version somewhere above, but for these.
#[test]
fn heartbeats_and_syncs_at_every_version() {
    let broker = Broker::start();
    let mut client = broker.connect();
    for version in versions::<JoinGroupRequest>() {
        let group = format!("g{version}");
        let joined = join(&mut client, version, join_request(&group, "", Option::None));
        let sync_version = version.min(newest::<SyncGroupRequest>());
        let sync = sync_request(&group, &joined, &[(&joined.member_id, b"all")]);
        let synced = client.call(sync_version, &sync);
        assert_eq!((synced.error_code, &synced.assignment[..]), (0, &b"all"[..]), "v{version}");
        let request = HeartbeatRequest {
            group_id: group.clone(),
            generation_id: 1,
            member_id: joined.member_id,
            ..Default::default()
        };
        let heartbeat_version = version.min(newest::<HeartbeatRequest>());
        assert_code(client.call(heartbeat_version, &request).error_code, None);
    }
    assert_eq!(JoinGroupRequest::API.versions(), 0..=9);
}
