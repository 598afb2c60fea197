//! Groups of the consumer protocol (KIP-848) over the wire: members that share a topic, a broker that is killed under
//! them, commits with epochs, subscriptions by expression, configs, and groups that change protocol while they have members.

use std::time::{Duration, Instant};

use bytes::Bytes;
use doze::protocol::ErrorCode::{self, *};
use doze::protocol::Uuid;
use doze::protocol::messages::consumer_group_describe::{ConsumerGroupDescribeRequest, DescribedGroup};
use doze::protocol::messages::consumer_group_heartbeat::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, RequestTopicPartitions,
};
use doze::protocol::messages::create_partitions::{CreatePartitionsRequest, CreatePartitionsTopic};
use doze::protocol::messages::delete_groups::DeleteGroupsRequest;
use doze::protocol::messages::describe_groups::DescribeGroupsRequest;
use doze::protocol::messages::heartbeat::HeartbeatRequest;
use doze::protocol::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use doze::protocol::messages::join_group::{JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse};
use doze::protocol::messages::list_groups::ListGroupsRequest;
use doze::protocol::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use doze::protocol::messages::offset_fetch::{OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use doze::protocol::messages::sync_group::SyncGroupRequest;

use crate::asks::*;
use crate::harness::{Broker, Client, PATIENCE};

/// Targets are made at once, so that nobody has to wait for the next one.
const AT_ONCE: &[&str] = &["--override", "group.consumer.assignment.interval.ms=0"];

fn joining(member: &str) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        group_id: "g".into(),
        member_id: member.into(),
        rebalance_timeout_ms: 60_000,
        subscribed_topic_names: Some(vec!["t".into()]),
        topic_partitions: Some(vec![]),
        ..Default::default()
    }
}

fn beating(member: &str, epoch: i32) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        member_epoch: epoch,
        rebalance_timeout_ms: -1,
        subscribed_topic_names: Option::None,
        topic_partitions: Option::None,
        ..joining(member)
    }
}

fn owning(member: &str, epoch: i32, topic: Uuid, partitions: &[i32]) -> ConsumerGroupHeartbeatRequest {
    let owned = RequestTopicPartitions { topic_id: topic, partitions: partitions.to_vec() };
    ConsumerGroupHeartbeatRequest { topic_partitions: Some(vec![owned]), ..beating(member, epoch) }
}

#[track_caller]
fn beat(client: &mut Client, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse {
    let response = client.call(1, &request);
    assert_eq!((response.error_code, response.error_message.as_deref()), (0, Option::None));
    response
}

#[track_caller]
fn refused(client: &mut Client, request: ConsumerGroupHeartbeatRequest, error: ErrorCode) {
    let response = client.call(1, &request);
    assert_code(response.error_code, error);
    assert!(response.error_message.is_some_and(|message| !message.is_empty()));
}

/// How many partitions a member is told of, all topics together; `None` if of nothing new.
fn told(response: &ConsumerGroupHeartbeatResponse) -> Option<Vec<i32>> {
    let topics = &response.assignment.as_ref()?.topic_partitions;
    Some(topics.iter().flat_map(|topic| topic.partitions.clone()).collect())
}

fn describe(client: &mut Client) -> DescribedGroup {
    let request = ConsumerGroupDescribeRequest { group_ids: vec!["g".into()], ..Default::default() };
    client.call(1, &request).groups.remove(0)
}

fn commit(client: &mut Client, member: &str, epoch: i32, offset: i64) -> i16 {
    let partition = OffsetCommitRequestPartition { committed_offset: offset, ..Default::default() };
    let topic = OffsetCommitRequestTopic { name: "t".into(), partitions: vec![partition], ..Default::default() };
    let request = OffsetCommitRequest {
        group_id: "g".into(),
        member_id: member.into(),
        generation_id_or_member_epoch: epoch,
        topics: vec![topic],
        ..Default::default()
    };
    client.call(9, &request).topics[0].partitions[0].error_code
}

fn committed(client: &mut Client, member: Option<&str>, epoch: i32) -> Result<i64, i16> {
    let topic = OffsetFetchRequestTopics { name: "t".into(), partition_indexes: vec![0], ..Default::default() };
    let group = OffsetFetchRequestGroup {
        group_id: "g".into(),
        member_id: member.map(str::to_owned),
        member_epoch: epoch,
        topics: Some(vec![topic]),
    };
    let request = OffsetFetchRequest { groups: vec![group], ..Default::default() };
    let answer = client.call(9, &request).groups.remove(0);
    if answer.error_code != 0 { Err(answer.error_code) } else { Ok(answer.topics[0].partitions[0].committed_offset) }
}

/// `a` and `b` share the four partitions of `t`, both in epoch 3.
fn share(client: &mut Client) -> Uuid {
    let topic = create_topic(client, "t", 4);
    let response = beat(client, joining("a"));
    assert_eq!((response.member_epoch, told(&response)), (2, Some(vec![0, 1, 2, 3])));
    assert_eq!(told(&beat(client, joining("b"))), Some(vec![]));
    assert_eq!(told(&beat(client, owning("a", 2, topic, &[0, 1, 2, 3]))), Some(vec![0, 1]));
    assert_eq!(beat(client, owning("a", 2, topic, &[0, 1])).member_epoch, 3);
    assert_eq!(told(&beat(client, beating("b", 3))), Some(vec![2, 3]));
    topic
}

#[test]
fn a_killed_broker_comes_back_and_heartbeats_go_on() {
    let broker = Broker::start_with(AT_ONCE);
    let mut client = broker.connect();
    share(&mut client);
    assert_eq!(commit(&mut client, "a", 3, 42), 0);
    let before = describe(&mut client);
    assert_eq!((before.group_state.as_str(), before.group_epoch, before.assignment_epoch), ("Stable", 3, 3));
    assert!(
        before.members.iter().all(|member| member.assignment == member.target_assignment && member.member_type == 1)
    );
    let broker = broker.kill().start();
    let mut client = broker.connect();
    assert_eq!(describe(&mut client), before);
    for member in ["a", "b"] {
        let response = beat(&mut client, beating(member, 3));
        assert_eq!((response.member_epoch, told(&response)), (3, Option::None), "nothing has happened to {member}");
    }
    assert_eq!(committed(&mut client, Some("a"), 3), Ok(42));
    // Partitions that come later are shared out as well.
    let topic = CreatePartitionsTopic { name: "t".into(), count: 6, assignments: Option::None };
    let grown =
        client.call(3, &CreatePartitionsRequest { topics: vec![topic], timeout_ms: 1000, validate_only: false });
    assert_code(grown.results[0].error_code, ErrorCode::None);
    let response = beat(&mut client, beating("a", 3));
    assert_eq!((response.member_epoch, told(&response).map(|all| all.len())), (4, Some(3)));
    // And so are those of a member that leaves.
    assert_eq!(beat(&mut client, beating("b", -1)).member_epoch, -1);
    let response = beat(&mut client, beating("a", 4));
    assert_eq!((response.member_epoch, told(&response).map(|all| all.len())), (5, Some(6)));
    assert_eq!(beat(&mut client, beating("a", -1)).member_epoch, -1);
    assert_eq!(describe(&mut client).group_state, "Empty");
    let broker = broker.kill().start();
    let mut client = broker.connect();
    assert_eq!(describe(&mut client).group_state, "Empty", "who has left has left");
    let deleted = client.call(2, &DeleteGroupsRequest { groups_names: vec!["g".into()] });
    assert_code(deleted.results[0].error_code, ErrorCode::None);
    assert_code(describe(&mut client).error_code, GroupIdNotFound);
    let broker = broker.kill().start();
    assert_code(describe(&mut broker.connect()).error_code, GroupIdNotFound);
}

#[test]
fn epochs_are_checked_wherever_they_come() {
    let broker = Broker::start_with(AT_ONCE);
    let mut client = broker.connect();
    share(&mut client);
    refused(&mut client, beating("a", 9), FencedMemberEpoch);
    refused(&mut client, beating("stranger", 3), UnknownMemberId);
    refused(&mut client, joining(""), InvalidRequest);
    refused(
        &mut client,
        ConsumerGroupHeartbeatRequest { server_assignor: Some("sticky".into()), ..joining("c") },
        UnsupportedAssignor,
    );
    refused(
        &mut client,
        ConsumerGroupHeartbeatRequest { subscribed_topic_regex: Some("(".into()), ..joining("c") },
        InvalidRegularExpression,
    );
    assert_eq!(commit(&mut client, "a", 2, 7), 0, "it has had the partition since then");
    assert_code(commit(&mut client, "b", 2, 7), StaleMemberEpoch);
    assert_code(commit(&mut client, "a", 4, 7), StaleMemberEpoch);
    assert_code(commit(&mut client, "stranger", 3, 7), UnknownMemberId);
    assert_eq!(committed(&mut client, Some("a"), 3), Ok(7));
    assert_eq!(committed(&mut client, Option::None, -1), Ok(7));
    assert_eq!(committed(&mut client, Some("a"), 2), Err(StaleMemberEpoch.code()));
    assert_eq!(committed(&mut client, Some("stranger"), 3), Err(UnknownMemberId.code()));
}

#[test]
fn members_of_version_0_are_given_ids_and_static_ones_keep_their_place() {
    let broker = Broker::start_with(AT_ONCE);
    let mut client = broker.connect();
    create_topic(&mut client, "t", 2);
    let of = |request| ConsumerGroupHeartbeatRequest { instance_id: Some("i".into()), ..request };
    let response = client.call(0, &of(joining("")));
    assert_code(response.error_code, ErrorCode::None);
    let id = response.member_id.clone().unwrap();
    assert_eq!((id.len(), told(&response)), (22, Some(vec![0, 1])));
    refused(&mut client, of(joining("other")), UnreleasedInstanceId);
    assert_eq!(beat(&mut client, of(beating(&id, -2))).member_epoch, -2);
    let broker = broker.kill().start();
    let mut client = broker.connect();
    let response = beat(&mut client, of(joining("other")));
    assert_eq!((response.member_epoch, told(&response)), (2, Some(vec![0, 1])));
    refused(&mut client, of(beating(&id, 2)), FencedInstanceId);
}

#[test]
fn expressions_follow_the_topics() {
    let broker = Broker::start_with(AT_ONCE);
    let mut client = broker.connect();
    create_topic(&mut client, "t-1", 1);
    create_topic(&mut client, "other", 1);
    let request = ConsumerGroupHeartbeatRequest {
        subscribed_topic_names: Option::None,
        subscribed_topic_regex: Some("t-[0-9]+".into()),
        ..joining("a")
    };
    assert_eq!(told(&beat(&mut client, request)).unwrap().len(), 1);
    create_topic(&mut client, "t-22", 3);
    let response = beat(&mut client, beating("a", 2));
    assert_eq!((response.member_epoch, told(&response).unwrap().len()), (3, 4));
    delete_topic(&mut client, "t-1");
    let response =
        beat(&mut client, ConsumerGroupHeartbeatRequest { topic_partitions: Some(vec![]), ..beating("a", 3) });
    assert_eq!((response.member_epoch, told(&response).unwrap().len()), (4, 3));
    assert_eq!(describe(&mut client).members[0].subscribed_topic_regex.as_deref(), Some("t-[0-9]+"));
}

#[test]
fn groups_are_shown_by_what_they_are_and_have_settings_of_their_own() {
    let broker = Broker::start_with(AT_ONCE);
    let mut client = broker.connect();
    share(&mut client);
    let list = |client: &mut Client, types: &[&str], states: &[&str]| {
        let request = ListGroupsRequest {
            types_filter: types.iter().map(|name| (*name).into()).collect(),
            states_filter: states.iter().map(|name| (*name).into()).collect(),
        };
        let groups = client.call(5, &request).groups;
        groups.into_iter().map(|group| (group.group_type, group.group_state, group.protocol_type)).collect::<Vec<_>>()
    };
    let shown = vec![("consumer".to_owned(), "Stable".to_owned(), "consumer".to_owned())];
    assert_eq!(list(&mut client, &["Consumer"], &["stable"]), shown);
    assert_eq!(list(&mut client, &["classic"], &[]), []);
    let described = client.call(6, &DescribeGroupsRequest { groups: vec!["g".into()], ..Default::default() });
    assert_code(described.groups[0].error_code, GroupIdNotFound);
    assert_eq!(described.groups[0].error_message.as_deref(), Some("Group g is not a classic group."));
    assert_eq!(beat(&mut client, beating("a", 3)).heartbeat_interval_ms, 5_000);
    let config = AlterableConfig {
        name: "consumer.heartbeat.interval.ms".into(),
        config_operation: 0,
        value: Some("7000".into()),
    };
    let resource = AlterConfigsResource { resource_type: 32, resource_name: "g".into(), configs: vec![config] };
    let altered = client.call(1, &IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false });
    assert_code(altered.responses[0].error_code, ErrorCode::None);
    assert_eq!(beat(&mut client, beating("a", 3)).heartbeat_interval_ms, 7_000);
    let broker = broker.kill().start();
    assert_eq!(beat(&mut broker.connect(), beating("a", 3)).heartbeat_interval_ms, 7_000);
}

#[test]
fn where_the_protocol_is_left_out_it_is_refused() {
    let broker = Broker::start_with(&["--override", "group.coordinator.rebalance.protocols=classic"]);
    let mut client = broker.connect();
    assert_code(client.call(1, &joining("a")).error_code, UnsupportedVersion);
    assert_code(describe(&mut client).error_code, UnsupportedVersion);
}

/// A subscription to `t` of version 1, of somebody who has nothing yet.
const SUBSCRIPTION: &[u8] = b"\0\x01\0\0\0\x01\0\x01t\xff\xff\xff\xff\0\0\0\0";

/// An assignment of the partitions 0 and 1 of `t`.
const ASSIGNMENT: &[u8] = b"\0\x01\0\0\0\x01\0\x01t\0\0\0\x02\0\0\0\0\0\0\0\x01\xff\xff\xff\xff";

fn join_classic(client: &mut Client, member: &str) -> JoinGroupResponse {
    let protocol = JoinGroupRequestProtocol { name: "range".into(), metadata: Bytes::from_static(SUBSCRIPTION) };
    let request = JoinGroupRequest {
        group_id: "g".into(),
        member_id: member.into(),
        session_timeout_ms: 30_000,
        rebalance_timeout_ms: 30_000,
        protocol_type: "consumer".into(),
        protocols: vec![protocol],
        ..Default::default()
    };
    let response = client.call(9, &request);
    if response.error_code == MemberIdRequired.code() {
        return client.call(9, &JoinGroupRequest { member_id: response.member_id, ..request });
    }
    response
}

fn sync_classic(client: &mut Client, joined: &JoinGroupResponse) -> Bytes {
    use doze::protocol::messages::sync_group::SyncGroupRequestAssignment;
    let assignment =
        SyncGroupRequestAssignment { member_id: joined.member_id.clone(), assignment: Bytes::from_static(ASSIGNMENT) };
    let response = client.call(
        5,
        &SyncGroupRequest {
            group_id: "g".into(),
            generation_id: joined.generation_id,
            member_id: joined.member_id.clone(),
            protocol_type: Some("consumer".into()),
            protocol_name: Some("range".into()),
            assignments: if joined.members.is_empty() { vec![] } else { vec![assignment] },
            ..Default::default()
        },
    );
    assert_code(response.error_code, ErrorCode::None);
    response.assignment
}

fn heartbeat_classic(client: &mut Client, joined: &JoinGroupResponse) -> i16 {
    let request = HeartbeatRequest {
        group_id: "g".into(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        ..Default::default()
    };
    client.call(4, &request).error_code
}

#[test]
fn a_group_changes_protocol_and_back_while_it_has_members() {
    let broker = Broker::start_with(AT_ONCE);
    let mut client = broker.connect();
    create_topic(&mut client, "t", 2);
    let joined = join_classic(&mut client, "");
    assert_eq!(sync_classic(&mut client, &joined), ASSIGNMENT);
    // Somebody of the new protocol comes, and gets its half when the old member has given it up.
    assert_eq!(told(&beat(&mut client, joining("a"))), Some(vec![]));
    assert_eq!(describe(&mut client).members.iter().map(|member| member.member_type).sum::<i8>(), 1);
    let broker = broker.kill().start();
    let mut client = broker.connect();
    assert_code(heartbeat_classic(&mut client, &joined), RebalanceInProgress);
    let rejoined = join_classic(&mut client, &joined.member_id);
    let half = sync_classic(&mut client, &rejoined);
    assert_eq!((rejoined.generation_id, half.len()), (2, ASSIGNMENT.len() - 4));
    assert_eq!(heartbeat_classic(&mut client, &rejoined), 0);
    assert_eq!(told(&beat(&mut client, beating("a", 2))), Some(vec![1]));
    // It goes again, and the group is a classic one with a round to make.
    assert_eq!(beat(&mut client, beating("a", -1)).member_epoch, -1);
    assert_code(describe(&mut client).error_code, GroupIdNotFound);
    let broker = broker.kill().start();
    let mut client = broker.connect();
    let end = Instant::now() + PATIENCE;
    while heartbeat_classic(&mut client, &rejoined) != RebalanceInProgress.code() {
        assert!(Instant::now() < end, "nobody is told that there is more to have");
        std::thread::sleep(Duration::from_millis(50));
    }
    let rejoined = join_classic(&mut client, &joined.member_id);
    assert_eq!(sync_classic(&mut client, &rejoined), ASSIGNMENT);
}
