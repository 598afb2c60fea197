//! Groups of the streams protocol (KIP-1071) over the wire: an application whose topics the broker makes, members that share
//! its tasks, a broker that is killed under them, commits with epochs, configs, and what is refused.

use doze::protocol::ErrorCode::{self, *};
use doze::protocol::messages::create_topics::CreateTopicsRequest;
use doze::protocol::messages::delete_groups::DeleteGroupsRequest;
use doze::protocol::messages::describe_configs::{DescribeConfigsRequest, DescribeConfigsResource};
use doze::protocol::messages::describe_groups::DescribeGroupsRequest;
use doze::protocol::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use doze::protocol::messages::list_groups::ListGroupsRequest;
use doze::protocol::messages::metadata::{MetadataRequest, MetadataRequestTopic};
use doze::protocol::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use doze::protocol::messages::offset_fetch::{OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use doze::protocol::messages::streams_group_describe::{DescribedGroup, StreamsGroupDescribeRequest};
use doze::protocol::messages::streams_group_heartbeat::{
    CopartitionGroup, KeyValue, RequestEndpoint, RequestTaskIds, ResponseTaskIds, StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse, Subtopology, TopicInfo, Topology,
};
use doze::protocol::messages::update_features::{FeatureUpdateKey, UpdateFeaturesRequest};

use crate::asks::*;
use crate::harness::{Broker, Client};

/// Targets are made at once, so that nobody has to wait for the first or the next one.
const AT_ONCE: &[&str] = &[
    "--override",
    "group.streams.initial.rebalance.delay.ms=0",
    "--override",
    "group.streams.assignment.interval.ms=0",
];

/// A broker whose coordinator somebody has looked up.
fn start() -> Broker {
    let broker = Broker::start_with(AT_ONCE);
    look_up(&mut broker.connect(), GROUP);
    broker
}

const MISSING_SOURCE: i8 = 1;
const MISSING_INTERNAL: i8 = 3;

fn internal(name: &str, configs: &[(&str, &str)]) -> TopicInfo {
    let config = |(key, value): &(&str, &str)| KeyValue { key: (*key).into(), value: (*value).into() };
    TopicInfo { name: name.into(), topic_configs: configs.iter().map(config).collect(), ..Default::default() }
}

/// Words of `t` go through a repartition topic and are counted.
fn counting() -> Topology {
    let words = Subtopology {
        subtopology_id: "0".into(),
        source_topics: vec!["t".into()],
        repartition_sink_topics: vec!["app-repartition".into()],
        ..Default::default()
    };
    let counts = Subtopology {
        subtopology_id: "1".into(),
        repartition_source_topics: vec![internal("app-repartition", &[("cleanup.policy", "delete")])],
        state_changelog_topics: vec![internal("app-changelog", &[("cleanup.policy", "compact")])],
        ..Default::default()
    };
    Topology { epoch: 0, subtopologies: vec![words, counts] }
}

fn joining(member: &str) -> StreamsGroupHeartbeatRequest {
    StreamsGroupHeartbeatRequest {
        group_id: "app".into(),
        member_id: member.into(),
        endpoint_information_epoch: -1,
        rebalance_timeout_ms: 60_000,
        topology: Some(counting()),
        active_tasks: Some(vec![]),
        standby_tasks: Some(vec![]),
        warmup_tasks: Some(vec![]),
        process_id: Some(format!("process of {member}")),
        client_tags: Some(vec![]),
        ..Default::default()
    }
}

fn beating(member: &str, epoch: i32) -> StreamsGroupHeartbeatRequest {
    StreamsGroupHeartbeatRequest {
        group_id: "app".into(),
        member_id: member.into(),
        member_epoch: epoch,
        endpoint_information_epoch: -1,
        ..Default::default()
    }
}

fn having(member: &str, epoch: i32, tasks: &[(&str, &[i32])]) -> StreamsGroupHeartbeatRequest {
    let ids = |(id, partitions): &(&str, &[i32])| RequestTaskIds {
        subtopology_id: (*id).into(),
        partitions: partitions.to_vec(),
    };
    StreamsGroupHeartbeatRequest {
        active_tasks: Some(tasks.iter().map(ids).collect()),
        standby_tasks: Some(vec![]),
        warmup_tasks: Some(vec![]),
        ..beating(member, epoch)
    }
}

#[track_caller]
fn beat(client: &mut Client, request: StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse {
    let response = client.call(0, &request);
    assert_eq!((response.error_code, response.error_message.as_deref()), (0, Option::None));
    response
}

#[track_caller]
fn refused(client: &mut Client, request: StreamsGroupHeartbeatRequest, error: ErrorCode) -> String {
    let response = client.call(0, &request);
    assert_code(response.error_code, error);
    response.error_message.expect("it says why")
}

/// The active tasks that a member is told of; `None` if of nothing new.
fn told(response: &StreamsGroupHeartbeatResponse) -> Option<Vec<(&str, Vec<i32>)>> {
    assert_eq!(response.active_tasks.is_some(), response.standby_tasks.is_some());
    assert_eq!(response.active_tasks.is_some(), response.warmup_tasks.is_some());
    let ids = |ids: &ResponseTaskIds| ids.partitions.clone();
    Some(response.active_tasks.as_ref()?.iter().map(|task| (task.subtopology_id.as_str(), ids(task))).collect())
}

fn statuses(response: &StreamsGroupHeartbeatResponse) -> Vec<(i8, &str)> {
    response.status.iter().flatten().map(|status| (status.status_code, status.status_detail.as_str())).collect()
}

fn describe(client: &mut Client) -> DescribedGroup {
    let request = StreamsGroupDescribeRequest { group_ids: vec!["app".into()], ..Default::default() };
    client.call(0, &request).groups.remove(0)
}

/// How many partitions a topic has; 0 if there is none.
fn partitions(client: &mut Client, topic: &str) -> usize {
    let topics = Some(vec![MetadataRequestTopic { name: Some(topic.into()), ..Default::default() }]);
    client.call(12, &MetadataRequest { topics, ..Default::default() }).topics[0].partitions.len()
}

fn config(client: &mut Client, kind: i8, name: &str, key: &str) -> Option<String> {
    let resource = DescribeConfigsResource {
        resource_type: kind,
        resource_name: name.into(),
        configuration_keys: Some(vec![key.into()]),
    };
    let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
    client.call(4, &request).results[0].configs[0].value.clone()
}

fn commit(client: &mut Client, member: &str, epoch: i32, offset: i64) -> i16 {
    let partition = OffsetCommitRequestPartition { committed_offset: offset, ..Default::default() };
    let topic = OffsetCommitRequestTopic { name: "t".into(), partitions: vec![partition], ..Default::default() };
    let request = OffsetCommitRequest {
        group_id: "app".into(),
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
        group_id: "app".into(),
        member_id: member.map(str::to_owned),
        member_epoch: epoch,
        topics: Some(vec![topic]),
    };
    let answer = client.call(9, &OffsetFetchRequest { groups: vec![group], ..Default::default() }).groups.remove(0);
    if answer.error_code != 0 { Err(answer.error_code) } else { Ok(answer.topics[0].partitions[0].committed_offset) }
}

/// `a` and `b` have two of the four tasks each, both in epoch 4.
fn share(client: &mut Client) {
    create_topic(client, "t", 2);
    beat(client, joining("a"));
    let response = beat(client, beating("a", 2));
    assert_eq!(told(&response), Some(vec![("0", vec![0, 1]), ("1", vec![0, 1])]));
    assert_eq!(told(&beat(client, joining("b"))), Some(vec![]));
    assert_eq!(told(&beat(client, beating("a", 3))), Some(vec![("0", vec![0]), ("1", vec![0])]));
    assert_eq!(beat(client, having("a", 3, &[("0", &[0]), ("1", &[0])])).member_epoch, 4);
    assert_eq!(told(&beat(client, beating("b", 4))), Some(vec![("0", vec![1]), ("1", vec![1])]));
}

#[test]
fn the_topics_of_an_application_are_made_as_it_wants_them() {
    let broker = start();
    let mut client = broker.connect();
    let response = beat(&mut client, joining("a"));
    assert_eq!(statuses(&response), [(MISSING_SOURCE, "Source topics t are missing.")]);
    assert_eq!((told(&response), describe(&mut client).group_state.as_str()), (Some(vec![]), "NotReady"));
    create_topic(&mut client, "t", 3);
    let response = beat(&mut client, beating("a", response.member_epoch));
    let detail = "Internal topics are missing: app-changelog, app-repartition";
    assert_eq!(statuses(&response), [(MISSING_INTERNAL, detail)]);
    for (topic, policy) in [("app-changelog", "compact"), ("app-repartition", "delete")] {
        assert_eq!(partitions(&mut client, topic), 3, "{topic} is there when the heartbeat is answered");
        assert_eq!(config(&mut client, 2, topic, "cleanup.policy").as_deref(), Some(policy));
    }
    let response = beat(&mut client, beating("a", response.member_epoch));
    assert_eq!(told(&response), Some(vec![("0", vec![0, 1, 2]), ("1", vec![0, 1, 2])]));
    assert_eq!(statuses(&response), []);
    let group = describe(&mut client);
    assert_eq!(group.group_state, "Stable");
    let subtopologies = group.topology.unwrap().subtopologies.unwrap();
    assert_eq!(subtopologies[0].repartition_sink_topics, ["app-repartition"]);
    let changelog = &subtopologies[1].state_changelog_topics[0];
    assert_eq!((changelog.name.as_str(), changelog.partitions), ("app-changelog", 3));
    assert_eq!(changelog.topic_configs[0].value, "compact");
}

#[test]
fn what_cannot_be_made_is_said_and_tried_again() {
    let broker = start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    let mut topology = counting();
    topology.subtopologies[1].state_changelog_topics = vec![internal("app-changelog", &[("no.such.config", "1")])];
    topology.subtopologies[1].repartition_source_topics[0].replication_factor = 3;
    let response = beat(&mut client, StreamsGroupHeartbeatRequest { topology: Some(topology), ..joining("a") });
    let [(MISSING_INTERNAL, detail)] = statuses(&response)[..] else { panic!("{response:?}") };
    assert!(detail.starts_with("Internal topics are missing: app-changelog, app-repartition; Creation failed: "));
    assert!(detail.contains("app-changelog (Unknown topic config name: no.such.config)"), "{detail}");
    assert!(detail.contains("app-repartition (Unable to replicate"), "{detail}");
    // Somebody else makes them.
    for name in ["app-changelog", "app-repartition"] {
        client.call(7, &CreateTopicsRequest { topics: vec![topic(name, 1)], ..Default::default() });
    }
    assert_eq!(statuses(&beat(&mut client, beating("a", response.member_epoch))), []);
}

#[test]
fn a_killed_broker_comes_back_and_heartbeats_go_on() {
    let broker = start();
    let mut client = broker.connect();
    share(&mut client);
    assert_eq!(commit(&mut client, "a", 4, 42), 0);
    let before = describe(&mut client);
    assert_eq!((before.group_state.as_str(), before.group_epoch, before.assignment_epoch), ("Stable", 4, 4));
    assert!(before.members.iter().all(|member| member.assignment == member.target_assignment));
    let broker = broker.kill().start();
    let mut client = broker.connect();
    assert_eq!(describe(&mut client), before);
    for member in ["a", "b"] {
        let response = beat(&mut client, beating(member, 4));
        assert_eq!((response.member_epoch, told(&response)), (4, Option::None), "nothing has happened to {member}");
    }
    // A client whose last answer was lost with the broker says what it has, and is told what it is to have.
    let response = beat(&mut client, having("b", 4, &[]));
    assert_eq!(told(&response), Some(vec![("0", vec![1]), ("1", vec![1])]));
    assert_eq!(committed(&mut client, Some("a"), 4), Ok(42));
    // The tasks of a member that leaves go to those who are left.
    assert_eq!(beat(&mut client, beating("b", -1)).member_epoch, -1);
    let response = beat(&mut client, beating("a", 4));
    assert_eq!((response.member_epoch, told(&response)), (5, Some(vec![("0", vec![0, 1]), ("1", vec![0, 1])])));
    assert_eq!(beat(&mut client, beating("a", -1)).member_epoch, -1);
    let broker = broker.kill().start();
    let mut client = broker.connect();
    assert_eq!(describe(&mut client).group_state, "Empty", "who has left has left");
    let deleted = client.call(2, &DeleteGroupsRequest { groups_names: vec!["app".into()] });
    assert_code(deleted.results[0].error_code, ErrorCode::None);
    let broker = broker.kill().start();
    assert_code(describe(&mut broker.connect()).error_code, GroupIdNotFound);
}

#[test]
fn epochs_are_checked_wherever_they_come() {
    let broker = start();
    let mut client = broker.connect();
    share(&mut client);
    refused(&mut client, beating("a", 9), FencedMemberEpoch);
    refused(&mut client, beating("stranger", 4), UnknownMemberId);
    assert_eq!(commit(&mut client, "a", 3, 7), 0, "it has had the task since before then");
    assert_code(commit(&mut client, "b", 3, 7), StaleMemberEpoch);
    assert_code(commit(&mut client, "a", 5, 7), StaleMemberEpoch);
    assert_code(commit(&mut client, "stranger", 4, 7), UnknownMemberId);
    assert_eq!(committed(&mut client, Some("a"), 4), Ok(7));
    assert_eq!(committed(&mut client, Option::None, -1), Ok(7));
    assert_eq!(committed(&mut client, Some("a"), 3), Err(StaleMemberEpoch.code()));
    let deleted = client.call(2, &DeleteGroupsRequest { groups_names: vec!["app".into()] });
    assert_code(deleted.results[0].error_code, NonEmptyGroup);
}

#[test]
fn what_there_is_not_and_what_makes_no_sense_is_refused() {
    let broker = start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    let request = StreamsGroupHeartbeatRequest { instance_id: Some("i".into()), ..joining("a") };
    assert_eq!(refused(&mut client, request, InvalidRequest), "Static membership is not yet supported.");
    let request = StreamsGroupHeartbeatRequest { topology: Option::None, ..joining("a") };
    refused(&mut client, request, InvalidRequest);
    let mut with = |change: fn(&mut Subtopology), error| {
        let mut topology = counting();
        change(&mut topology.subtopologies[1]);
        refused(&mut client, StreamsGroupHeartbeatRequest { topology: Some(topology), ..joining("a") }, error)
    };
    let why = with(|one| one.source_topics.push("__consumer_offsets".into()), StreamsInvalidTopology);
    let prohibited = "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is prohibited.";
    assert_eq!(why, prohibited);
    let why = with(|one| one.source_topics.push("b x".into()), StreamsInvalidTopology);
    assert_eq!(why, "Topic names b x are not valid topic names.");
    with(|one| one.source_topic_regex.push("t.*".into()), InvalidRequest);
    with(|one| one.state_changelog_topics[0].partitions = 3, StreamsInvalidTopology);
    with(
        |one| one.copartition_groups.push(CopartitionGroup { source_topics: vec![-1], ..Default::default() }),
        StreamsInvalidTopology,
    );
    with(
        |one| {
            let group = CopartitionGroup { repartition_source_topics: vec![1], ..Default::default() };
            one.copartition_groups.push(group);
        },
        StreamsInvalidTopology,
    );
    assert_code(describe(&mut client).error_code, GroupIdNotFound);
}

#[test]
fn members_hear_of_each_others_endpoints() {
    let broker = start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    beat(&mut client, joining("a"));
    let endpoint = Some(RequestEndpoint { host: "localhost".into(), port: 65_535 });
    let response = beat(&mut client, StreamsGroupHeartbeatRequest { user_endpoint: endpoint, ..joining("a") });
    let served = response.partitions_by_user_endpoint.unwrap();
    assert_eq!((served[0].user_endpoint.host.as_str(), served[0].user_endpoint.port), ("localhost", 65_535));
    let topics: Vec<&str> = served[0].active_partitions.iter().map(|topic| topic.topic.as_str()).collect();
    assert_eq!(topics, ["t", "app-repartition"]);
    let epoch = response.endpoint_information_epoch;
    let request =
        StreamsGroupHeartbeatRequest { endpoint_information_epoch: epoch, ..beating("a", response.member_epoch) };
    assert_eq!(beat(&mut client, request).partitions_by_user_endpoint, Option::None);
}

#[test]
fn groups_are_shown_by_what_they_are_and_have_settings_of_their_own() {
    let broker = start();
    let mut client = broker.connect();
    share(&mut client);
    let list = |client: &mut Client, types: &[&str]| {
        let types_filter = types.iter().map(|name| (*name).into()).collect();
        let groups = client.call(5, &ListGroupsRequest { types_filter, ..Default::default() }).groups;
        groups.into_iter().map(|group| (group.group_type, group.group_state, group.protocol_type)).collect::<Vec<_>>()
    };
    let shown = vec![("streams".to_owned(), "Stable".to_owned(), "streams".to_owned())];
    assert_eq!(list(&mut client, &["Streams"]), shown);
    assert_eq!(list(&mut client, &["consumer"]), []);
    let described = client.call(6, &DescribeGroupsRequest { groups: vec!["app".into()], ..Default::default() });
    assert_eq!(described.groups[0].error_message.as_deref(), Some("Group app is not a classic group."));
    let set = |client: &mut Client, key: &str, value: &str| {
        let config = AlterableConfig { name: key.into(), config_operation: 0, value: Some(value.into()) };
        let resource = AlterConfigsResource { resource_type: 32, resource_name: "app".into(), configs: vec![config] };
        let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false };
        client.call(1, &request).responses[0].error_code
    };
    assert_eq!(beat(&mut client, beating("a", 4)).heartbeat_interval_ms, 5_000);
    assert_eq!(set(&mut client, "streams.heartbeat.interval.ms", "7000"), 0);
    assert_eq!(set(&mut client, "streams.num.standby.replicas", "1"), 0);
    assert_code(set(&mut client, "streams.num.standby.replicas", "3"), InvalidConfig);
    let broker = broker.kill().start();
    let mut client = broker.connect();
    let response = beat(&mut client, beating("a", 4));
    assert_eq!((response.heartbeat_interval_ms, response.member_epoch), (7_000, 5), "there is another assignment");
    assert_eq!(response.standby_tasks.unwrap()[0].partitions, [1]);
}

#[test]
fn where_the_protocol_is_left_out_it_is_refused() {
    let broker = Broker::start_with(&["--override", "group.coordinator.rebalance.protocols=classic,consumer"]);
    let mut client = broker.connect();
    assert_code(client.call(0, &joining("a")).error_code, UnsupportedVersion);
    assert_code(describe(&mut client).error_code, UnsupportedVersion);
    let broker = start();
    let mut client = broker.connect();
    let lower = |upgrade_type| FeatureUpdateKey {
        feature: "streams.version".into(),
        max_version_level: 0,
        upgrade_type,
        ..Default::default()
    };
    let request = UpdateFeaturesRequest { feature_updates: vec![lower(2)], ..Default::default() };
    assert_code(client.call(1, &request).error_code, ErrorCode::None);
    assert_code(client.call(0, &joining("a")).error_code, UnsupportedVersion);
}
