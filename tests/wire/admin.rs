//! What administrators ask over the wire: topics, configs, loggers, the node and its directory.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use doze::protocol::ErrorCode::{self, *};
use doze::protocol::messages::alter_configs::{
    AlterConfigsRequest, AlterConfigsResource as ReplaceResource, AlterableConfig as ReplaceConfig,
};
use doze::protocol::messages::create_partitions::{
    CreatePartitionsAssignment, CreatePartitionsRequest, CreatePartitionsTopic,
};
use doze::protocol::messages::create_topics::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig, CreatableTopicResult, CreateTopicsRequest,
};
use doze::protocol::messages::delete_topics::{DeletableTopicResult, DeleteTopicState, DeleteTopicsRequest};
use doze::protocol::messages::describe_cluster::DescribeClusterRequest;
use doze::protocol::messages::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResourceResult, DescribeConfigsResult,
};
use doze::protocol::messages::describe_log_dirs::{DescribableLogDirTopic, DescribeLogDirsRequest};
use doze::protocol::messages::describe_topic_partitions::{
    DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, RequestCursor, TopicRequest,
};
use doze::protocol::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use doze::protocol::messages::list_config_resources::ListConfigResourcesRequest;
use doze::protocol::messages::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse};
use doze::protocol::{Request, Uuid};

use crate::asks::*;
use crate::harness::{Broker, Client, PATIENCE};

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const LOGGER: i8 = 8;
const METRICS: i8 = 16;
const GROUP: i8 = 32;

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

fn create(client: &mut Client, version: i16, topics: Vec<CreatableTopic>, dry: bool) -> Vec<CreatableTopicResult> {
    client.call(version, &CreateTopicsRequest { topics, validate_only: dry, ..Default::default() }).topics
}

/// What a topic that is not made is answered with.
fn not_created(client: &mut Client, topic: CreatableTopic) -> (ErrorCode, String) {
    let result = create(client, 7, vec![topic], false).remove(0);
    assert_eq!((result.num_partitions, result.replication_factor, result.topic_id), (-1, -1, Uuid::ZERO));
    (ErrorCode::from_code(result.error_code).unwrap(), result.error_message.unwrap())
}

fn with_config(topic: CreatableTopic, name: &str, value: Option<&str>) -> CreatableTopic {
    let config = CreatableTopicConfig { name: name.into(), value: value.map(str::to_owned) };
    CreatableTopic { configs: vec![config], ..topic }
}

fn assigned(name: &str, partitions: &[(i32, &[i32])]) -> CreatableTopic {
    let assignment =
        |(index, ids): &(i32, &[i32])| CreatableReplicaAssignment { partition_index: *index, broker_ids: ids.to_vec() };
    CreatableTopic {
        name: name.into(),
        num_partitions: -1,
        replication_factor: -1,
        assignments: partitions.iter().map(assignment).collect(),
        ..Default::default()
    }
}

fn names(topics: &MetadataResponse) -> Vec<String> {
    topics.topics.iter().map(|topic| topic.name.clone().unwrap()).collect()
}

fn all_topics(client: &mut Client) -> MetadataResponse {
    client.call(12, &MetadataRequest { topics: Option::None, ..Default::default() })
}

/// What Apache Kafka 4.3.1 answered to the same requests.
#[test]
fn topics_that_are_not_made_are_refused_in_kafkas_words() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "a", 1);
    create_topic(&mut client, "k.l", 1);
    let plain = |name: &str| topic(name, 1);
    let replicas = |n| CreatableTopic { replication_factor: n, ..topic("b", 1) };
    let both = |partitions, replicas| CreatableTopic {
        num_partitions: partitions,
        replication_factor: replicas,
        ..assigned("b", &[(0, &[1])])
    };
    let bad_name = "Topic name is invalid: 'b x' contains one or more characters other than ASCII alphanumerics, '.', \
                    '_' and '-'";
    for (topic, code, message) in [
        (plain("a"), TopicAlreadyExists, "Topic 'a' already exists."),
        (topic("b", 0), InvalidPartitions, "Number of partitions was set to an invalid non-positive value."),
        (topic("b", -2), InvalidPartitions, "Number of partitions was set to an invalid non-positive value."),
        (
            replicas(0),
            InvalidReplicationFactor,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (
            replicas(-2),
            InvalidReplicationFactor,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (
            replicas(2),
            InvalidReplicationFactor,
            "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be reached because \
             only 1 broker(s) are registered.",
        ),
        (plain("b x"), InvalidTopicException, bad_name),
        (plain(""), InvalidTopicException, "Topic name is invalid: the empty string is not allowed"),
        (plain("."), InvalidTopicException, "Topic name is invalid: '.' is not allowed"),
        (plain("k_l"), InvalidTopicException, "Topic 'k_l' collides with existing topic: k.l"),
        (topic("b", 20_000), PolicyViolation, "Excessively large number of partitions per request."),
        (
            both(2, -1),
            InvalidRequest,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
        (
            both(-1, 1),
            InvalidRequest,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        ),
        (
            assigned("b", &[(0, &[5])]),
            InvalidReplicaAssignment,
            "The manual partition assignment includes broker 5, but no such broker is registered.",
        ),
        (
            assigned("b", &[(1, &[1])]),
            InvalidReplicaAssignment,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            assigned("b", &[(0, &[1, 1])]),
            InvalidReplicaAssignment,
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (
            assigned("b", &[(0, &[])]),
            InvalidReplicaAssignment,
            "The manual partition assignment includes an empty replica list.",
        ),
        (with_config(plain("b"), "bogus", Some("1")), InvalidConfig, "Unknown topic config name: bogus"),
        (
            with_config(plain("b"), "retention.ms", Some("abc")),
            InvalidConfig,
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        (
            with_config(plain("b"), "retention.ms", Option::None),
            InvalidConfig,
            "Null value not supported for topic configs: retention.ms",
        ),
        (
            with_config(plain("b"), "segment.bytes", Some("5")),
            InvalidConfig,
            "Invalid value 5 for configuration segment.bytes: Value must be at least 1048576",
        ),
    ] {
        assert_eq!(not_created(&mut client, topic), (code, message.to_owned()));
    }
    assert_eq!(not_created(&mut client, plain(&"x".repeat(250))).0, InvalidTopicException);
    assert_eq!(names(&all_topics(&mut client)), ["a", "k.l"], "and nothing was made");
}

#[test]
fn topics_are_made_at_every_version() {
    let broker = Broker::start_with(&["--default-partitions", "3"]);
    let mut client = broker.connect();
    for version in versions::<CreateTopicsRequest>() {
        let name = format!("t{version}");
        let made = with_config(topic(&name, 2), "retention.ms", Some("1234"));
        // As often as it is asked whether it could be made, it is not there.
        let dry = create(&mut client, version, vec![made.clone()], true).remove(0);
        assert_eq!((dry.error_code, &dry.error_message), (0, &Option::None), "v{version}");
        let result = create(&mut client, version, vec![made], false).remove(0);
        assert_eq!((result.name.as_str(), result.error_code), (name.as_str(), 0), "v{version}");
        if version >= 5 {
            assert_eq!((result.num_partitions, result.replication_factor), (2, 1));
            let configs = result.configs.unwrap();
            let own = configs.iter().find(|config| config.name == "retention.ms").unwrap();
            assert_eq!((own.value.as_deref(), own.config_source), (Some("1234"), 1));
            let default = configs.iter().find(|config| config.name == "cleanup.policy").unwrap();
            assert_eq!((default.value.as_deref(), default.config_source), (Some("delete"), 5));
            assert!(configs.len() > 30, "{}", configs.len());
        }
        assert_eq!(result.topic_id.is_zero(), version < 7);
    }
    // The last of two values counts; -1 is the default.
    let mut twice = with_config(topic("twice", -1), "retention.ms", Some("1"));
    twice.replication_factor = -1;
    twice.configs.push(CreatableTopicConfig { name: "retention.ms".into(), value: Some("2".into()) });
    let result = create(&mut client, 7, vec![twice], false).remove(0);
    assert_eq!(result.num_partitions, 3);
    assert_eq!(value_of(&mut client, TOPIC, "twice", "retention.ms"), "2");
    let result = create(&mut client, 7, vec![assigned("assigned", &[(1, &[1]), (0, &[1])])], false).remove(0);
    assert_eq!((result.error_code, result.num_partitions), (0, 2));
    // A name that is asked for twice is answered once, and its neighbours are made.
    let results = create(&mut client, 7, vec![topic("d", 1), topic("other", 1), topic("d", 1)], false);
    let answers: BTreeSet<(&str, i16)> = results.iter().map(|r| (r.name.as_str(), r.error_code)).collect();
    assert_eq!(answers, [("d", InvalidRequest.code()), ("other", 0)].into());
    assert_eq!(results.len(), 2);
    let refused = results.iter().find(|result| result.name == "d").unwrap();
    assert_eq!(refused.error_message.as_deref(), Some("Duplicate topic name."));
    // What is answered is durable.
    let before = all_topics(&mut client);
    let broker = broker.kill().start();
    assert_eq!(all_topics(&mut broker.connect()).topics, before.topics);
}

fn add_partitions(
    client: &mut Client,
    version: i16,
    request: CreatePartitionsTopic,
    dry: bool,
) -> (i16, Option<String>) {
    let request = CreatePartitionsRequest { topics: vec![request], timeout_ms: 1000, validate_only: dry };
    let mut response = client.call(version, &request);
    let result = response.results.remove(0);
    (result.error_code, result.error_message)
}

#[test]
fn topics_get_more_partitions() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "a", 1);
    let count = |name: &str, count: i32| CreatePartitionsTopic { name: name.into(), count, assignments: Option::None };
    let assigned = |n: i32, ids: &[i32]| CreatePartitionsTopic {
        assignments: Some(ids.iter().map(|id| CreatePartitionsAssignment { broker_ids: vec![*id] }).collect()),
        ..count("a", n)
    };
    for (request, code, message) in [
        (count("a", 1), InvalidPartitions, Some("Topic already has 1 partition(s).")),
        (
            count("a", 0),
            InvalidPartitions,
            Some("The topic a currently has 1 partition(s); 0 would not be an increase."),
        ),
        (
            count("a", -1),
            InvalidPartitions,
            Some("The topic a currently has 1 partition(s); -1 would not be an increase."),
        ),
        (count("nope", 2), UnknownTopicOrPartition, Option::None),
        (
            assigned(3, &[1]),
            InvalidReplicaAssignment,
            Some("Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified."),
        ),
        (
            assigned(2, &[7]),
            InvalidReplicaAssignment,
            Some("The manual partition assignment includes broker 7, but no such broker is registered."),
        ),
    ] {
        assert_eq!(add_partitions(&mut client, 3, request, false), (code.code(), message.map(str::to_owned)));
    }
    for version in versions::<CreatePartitionsRequest>() {
        let n = i32::from(version) + 2;
        assert_eq!(add_partitions(&mut client, version, count("a", n), true), (0, Option::None));
        assert_eq!(all_topics(&mut client).topics[0].partitions.len() as i32, n - 1, "only asked");
        assert_eq!(add_partitions(&mut client, version, count("a", n), false), (0, Option::None));
        assert_eq!(all_topics(&mut client).topics[0].partitions.len() as i32, n);
        assert_eq!(produce(&mut client, "a", n - 1, b"x"), Ok(0), "it can be used at once");
    }
    assert_eq!(add_partitions(&mut client, 3, assigned(6, &[1]), false), (0, Option::None));
    let broker = broker.kill().start();
    let mut client = broker.connect();
    assert_eq!(all_topics(&mut client).topics[0].partitions.len(), 6);
    assert_eq!(end_offset(&mut client, "a", 4), Ok(1));
}

fn delete(client: &mut Client, states: &[(Option<&str>, Uuid)]) -> Vec<DeletableTopicResult> {
    let state = |(name, topic_id): &(Option<&str>, Uuid)| DeleteTopicState {
        name: name.map(str::to_owned),
        topic_id: *topic_id,
    };
    let request = DeleteTopicsRequest { topics: states.iter().map(state).collect(), ..Default::default() };
    client.call(6, &request).responses
}

/// What is in the data directory of topics, or was.
fn partition_dirs(broker: &Broker) -> Vec<String> {
    let entries = std::fs::read_dir(broker.data_dir()).unwrap().map(|entry| entry.unwrap());
    let dirs = entries.filter(|entry| entry.file_type().unwrap().is_dir());
    dirs.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

/// Files that are deleted and still held open, and so take their space. Only Linux tells.
#[cfg(target_os = "linux")]
fn held_open(broker: &Broker) -> Vec<String> {
    let held = std::fs::read_dir(format!("/proc/{}/fd", broker.pid())).unwrap();
    let held = held.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
    held.map(|path| path.display().to_string()).filter(|path| path.ends_with(" (deleted)")).collect()
}

#[cfg(not(target_os = "linux"))]
fn held_open(broker: &Broker) -> Vec<String> {
    assert!(broker.pid() > 0);
    vec![]
}

#[test]
fn topics_are_deleted_by_name_and_by_id_and_nothing_is_left() {
    let broker = Broker::start();
    let mut client = broker.connect();
    for version in versions::<DeleteTopicsRequest>() {
        create_topic(&mut client, "t", 3);
        produce(&mut client, "t", 2, b"x").unwrap();
        let mut request = DeleteTopicsRequest { timeout_ms: 1000, ..Default::default() };
        match version {
            6 => request.topics = vec![DeleteTopicState { name: Some("t".into()), ..Default::default() }],
            _ => request.topic_names = vec!["t".into()],
        }
        let response = client.call(version, &request);
        let result = &response.responses[0];
        assert_eq!((result.name.as_deref(), result.error_code), (Some("t"), 0), "v{version}");
        assert_eq!(partition_dirs(&broker), [""; 0], "v{version}");
    }
    // What was being flushed at that moment is let go of a little later.
    let end = Instant::now() + PATIENCE;
    while !held_open(&broker).is_empty() {
        assert!(Instant::now() < end, "still held open: {:?}", held_open(&broker));
        std::thread::sleep(Duration::from_millis(10));
    }
    let id = create_topic(&mut client, "by-id", 1);
    let result = delete(&mut client, &[(Option::None, id)]).remove(0);
    assert_eq!((result.name.as_deref(), result.topic_id, result.error_code), (Some("by-id"), id, 0));
    assert_eq!(partition_dirs(&broker), [""; 0]);

    create_topic(&mut client, "a", 1);
    let strange = Uuid([7; 16]);
    for (states, code, message) in [
        (vec![(Some("nope"), Uuid::ZERO)], UnknownTopicOrPartition, "This server does not host this topic-partition."),
        (vec![(Option::None, strange)], UnknownTopicId, "This server does not host this topic ID."),
        (vec![(Some("a"), strange)], InvalidRequest, "You may not specify both topic name and topic id."),
        (vec![(Some("a"), Uuid::ZERO), (Some("a"), Uuid::ZERO)], InvalidRequest, "Duplicate topic name."),
        (vec![(Option::None, Uuid::ZERO)], InvalidRequest, "Neither topic name nor id were specified."),
    ] {
        let results = delete(&mut client, &states);
        assert_eq!(results.len(), 1);
        assert_eq!((results[0].error_code, results[0].error_message.as_deref()), (code.code(), Some(message)));
    }
    assert_eq!(names(&all_topics(&mut client)), ["a"]);
}

#[test]
fn a_topic_that_is_made_again_at_once_is_another_one() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let mut ids = BTreeSet::new();
    for _ in 0..5 {
        assert!(ids.insert(create_topic_with(&mut client, "t", 1, &[("retention.ms", "5000")])));
        assert_eq!(produce(&mut client, "t", 0, b"x"), Ok(0), "nothing old is in it");
        assert_eq!(produce(&mut client, "t", 0, b"x"), Ok(1));
        delete_topic(&mut client, "t");
        assert_eq!(produce(&mut client, "t", 0, b"x"), Err(UnknownTopicOrPartition));
    }
    let id = create_topic(&mut client, "t", 1);
    assert_eq!(value_of(&mut client, TOPIC, "t", "retention.ms"), "-1", "nor are its configs");
    let broker = broker.kill().start();
    let mut client = broker.connect();
    assert_eq!(all_topics(&mut client).topics[0].topic_id, id);
    assert_eq!(end_offset(&mut client, "t", 0), Ok(0));
    assert_eq!(partition_dirs(&broker), ["t-0"]);
}

#[test]
fn topics_cannot_be_deleted_where_that_is_switched_off() {
    let broker = Broker::start_with(&["--override", "delete.topic.enable=false"]);
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    let result = delete(&mut client, &[(Some("t"), Uuid::ZERO)]).remove(0);
    assert_code(result.error_code, TopicDeletionDisabled);
    assert_eq!(result.error_message.as_deref(), Some("Topic deletion is disabled."));
    assert_eq!(names(&all_topics(&mut client)), ["t"]);
}

fn describe_configs(client: &mut Client, kind: i8, name: &str, keys: Option<&[&str]>) -> DescribeConfigsResult {
    let resource = DescribeConfigsResource {
        resource_type: kind,
        resource_name: name.into(),
        configuration_keys: keys.map(|keys| keys.iter().map(|key| (*key).into()).collect()),
    };
    let request =
        DescribeConfigsRequest { resources: vec![resource], include_synonyms: true, include_documentation: true };
    client.call(4, &request).results.remove(0)
}

#[track_caller]
fn config_of(client: &mut Client, kind: i8, name: &str, key: &str) -> DescribeConfigsResourceResult {
    let mut result = describe_configs(client, kind, name, Some(&[key]));
    assert_eq!((result.error_code, result.configs.len()), (0, 1), "{:?}", result.error_message);
    result.configs.remove(0)
}

#[track_caller]
fn value_of(client: &mut Client, kind: i8, name: &str, key: &str) -> String {
    config_of(client, kind, name, key).value.unwrap()
}

fn not_described(client: &mut Client, kind: i8, name: &str) -> (ErrorCode, String) {
    let result = describe_configs(client, kind, name, Option::None);
    assert_eq!(result.configs, []);
    (ErrorCode::from_code(result.error_code).unwrap(), result.error_message.unwrap())
}

type Changes<'a> = &'a [(&'a str, i8, Option<&'a str>)];

/// IncrementalAlterConfigs of one resource.
fn change(client: &mut Client, kind: i8, name: &str, changes: Changes<'_>, dry: bool) -> (ErrorCode, Option<String>) {
    let config = |(name, operation, value): &(&str, i8, Option<&str>)| AlterableConfig {
        name: (*name).into(),
        config_operation: *operation,
        value: value.map(str::to_owned),
    };
    let resource = AlterConfigsResource {
        resource_type: kind,
        resource_name: name.into(),
        configs: changes.iter().map(config).collect(),
    };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: dry };
    let mut response = client.call(1, &request);
    let result = response.responses.remove(0);
    assert_eq!((result.resource_type, result.resource_name.as_str()), (kind, name));
    (ErrorCode::from_code(result.error_code).unwrap(), result.error_message)
}

#[track_caller]
fn set(client: &mut Client, kind: i8, name: &str, key: &str, value: &str) {
    assert_eq!(change(client, kind, name, &[(key, SET, Some(value))], false), (None, Option::None));
}

/// AlterConfigs of one resource.
fn replace(client: &mut Client, version: i16, kind: i8, name: &str, configs: &[(&str, &str)]) -> ErrorCode {
    let config = |(name, value): &(&str, &str)| ReplaceConfig { name: (*name).into(), value: Some((*value).into()) };
    let resource = ReplaceResource {
        resource_type: kind,
        resource_name: name.into(),
        configs: configs.iter().map(config).collect(),
    };
    let request = AlterConfigsRequest { resources: vec![resource], validate_only: false };
    ErrorCode::from_code(client.call(version, &request).responses[0].error_code).unwrap()
}

#[test]
fn configs_are_described_with_where_they_are_from() {
    let broker = Broker::start_with(&["--override", "message.max.bytes=2000000"]);
    let mut client = broker.connect();
    create_topic_with(&mut client, "t", 1, &[("max.message.bytes", "3000000")]);
    let sources = |config: &DescribeConfigsResourceResult| -> Vec<(String, String, i8)> {
        let synonym = |s: &doze::protocol::messages::describe_configs::DescribeConfigsSynonym| {
            (s.name.clone(), s.value.clone().unwrap(), s.source)
        };
        config.synonyms.iter().map(synonym).collect()
    };
    let config = config_of(&mut client, TOPIC, "t", "max.message.bytes");
    // 1 topic, 2 this broker, 3 all brokers, 4 at the start, 5 default.
    assert_eq!((config.value.as_deref(), config.config_source), (Some("3000000"), 1));
    let line = |name: &str, value: &str, source: i8| (name.to_owned(), value.to_owned(), source);
    let expected = [
        line("max.message.bytes", "3000000", 1),
        line("message.max.bytes", "2000000", 4),
        line("message.max.bytes", "1048588", 5),
    ];
    assert_eq!(sources(&config), expected);
    assert_eq!(config.config_type, 3, "an int");
    assert!(config.documentation.unwrap().contains("largest batch"));
    assert!(!config.read_only && !config.is_sensitive);

    set(&mut client, BROKER, "", "message.max.bytes", "2500000");
    set(&mut client, BROKER, "1", "message.max.bytes", "2600000");
    let config = config_of(&mut client, BROKER, "1", "message.max.bytes");
    let expected = [
        line("message.max.bytes", "2600000", 2),
        line("message.max.bytes", "2500000", 3),
        line("message.max.bytes", "2000000", 4),
        line("message.max.bytes", "1048588", 5),
    ];
    assert_eq!(
        (config.value.as_deref(), config.config_source, sources(&config)),
        (Some("2600000"), 2, expected.into())
    );
    let config = config_of(&mut client, BROKER, "1", "node.id");
    assert!(config.read_only);
    // Of the default for all brokers only what was set there.
    let cluster = describe_configs(&mut client, BROKER, "", Option::None);
    let set_there: Vec<&str> = cluster.configs.iter().map(|config| config.name.as_str()).collect();
    assert_eq!(set_there, ["message.max.bytes", "min.insync.replicas"]);
    // All keys, none twice, sorted by name.
    let all = describe_configs(&mut client, BROKER, "1", Option::None).configs;
    assert!(all.len() > 250 && all.is_sorted_by(|a, b| a.name < b.name), "{}", all.len());
    assert_eq!(describe_configs(&mut client, TOPIC, "t", Some(&["retention.ms", "zzz"])).configs.len(), 1);

    // Versions below 3 say nothing of types, and synonyms only where they are asked for.
    for version in versions::<DescribeConfigsRequest>() {
        let resource = DescribeConfigsResource {
            resource_type: TOPIC,
            resource_name: "t".into(),
            configuration_keys: Option::None,
        };
        let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
        let response = client.call(version, &request);
        let config = response.results[0].configs.iter().find(|config| config.name == "max.message.bytes").unwrap();
        assert_eq!(config.value.as_deref(), Some("3000000"), "v{version}");
        assert_eq!((config.synonyms.len(), config.config_type), (0, if version >= 3 { 3 } else { 0 }));
    }

    for (kind, name, code, message) in [
        (TOPIC, "nope", UnknownTopicOrPartition, ""),
        (TOPIC, "", InvalidTopicException, "Topic name is invalid: the empty string is not allowed"),
        (BROKER, "7", InvalidRequest, "Unexpected broker id, expected 1 or empty string, but received 7"),
        (BROKER, "x", InvalidRequest, "Broker id must be an integer, but it is: x"),
        (GROUP, "", InvalidRequest, "Group name must not be empty"),
        (METRICS, "", InvalidRequest, "Client metrics subscription name must not be empty"),
    ] {
        assert_eq!(not_described(&mut client, kind, name), (code, message.to_owned()));
    }
    assert_eq!(not_described(&mut client, 3, "1").0, InvalidRequest);
}

#[test]
fn changed_configs_are_in_force_at_once_and_stay() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    create_topic(&mut client, "u", 1);
    let large = vec![7; 5000];
    produce(&mut client, "t", 0, &large).unwrap();
    set(&mut client, TOPIC, "t", "max.message.bytes", "1000");
    assert_eq!(produce(&mut client, "t", 0, &large), Err(MessageTooLarge));
    produce(&mut client, "u", 0, &large).unwrap();
    // For every topic that says nothing itself.
    set(&mut client, BROKER, "", "message.max.bytes", "2000");
    assert_eq!(produce(&mut client, "u", 0, &large), Err(MessageTooLarge));
    set(&mut client, BROKER, "1", "message.max.bytes", "6000");
    produce(&mut client, "u", 0, &large).unwrap();
    let check = |broker: &Broker| {
        let mut client = broker.connect();
        assert_eq!(produce(&mut client, "t", 0, &large), Err(MessageTooLarge));
        produce(&mut client, "u", 0, &large).unwrap();
        assert_eq!(value_of(&mut client, BROKER, "1", "message.max.bytes"), "6000");
        let config = config_of(&mut client, BROKER, "", "message.max.bytes");
        assert_eq!((config.value.as_deref(), config.config_source), (Some("2000"), 3));
    };
    let broker = broker.kill().start();
    check(&broker);
    let broker = broker.stop().start();
    check(&broker);
    let mut client = broker.connect();
    let back = |client: &mut Client, kind, name, key| {
        assert_eq!(change(client, kind, name, &[(key, DELETE, Option::None)], false), (None, Option::None));
    };
    back(&mut client, BROKER, "1", "message.max.bytes");
    assert_eq!(produce(&mut client, "u", 0, &large), Err(MessageTooLarge));
    back(&mut client, BROKER, "", "message.max.bytes");
    produce(&mut client, "u", 0, &large).unwrap();
    back(&mut client, TOPIC, "t", "max.message.bytes");
    produce(&mut client, "t", 0, &large).unwrap();
}

#[test]
fn configs_are_changed_one_by_one_or_all_together() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create_topic_with(&mut client, "t", 1, &[("retention.ms", "1000")]);
    // Lists are added to and taken from.
    let policy = |client: &mut Client| value_of(client, TOPIC, "t", "cleanup.policy");
    change(&mut client, TOPIC, "t", &[("cleanup.policy", APPEND, Some("compact"))], false);
    assert_eq!(policy(&mut client), "delete,compact");
    change(&mut client, TOPIC, "t", &[("cleanup.policy", SUBTRACT, Some("delete"))], false);
    assert_eq!(policy(&mut client), "compact");
    // Only looked at.
    assert_eq!(change(&mut client, TOPIC, "t", &[("retention.ms", SET, Some("7"))], true), (None, Option::None));
    assert_eq!(value_of(&mut client, TOPIC, "t", "retention.ms"), "1000");
    // All or none.
    let (code, message) =
        change(&mut client, TOPIC, "t", &[("retention.ms", SET, Some("7")), ("segment.bytes", SET, Some("x"))], false);
    assert_eq!(code, InvalidConfig);
    assert_eq!(message.unwrap(), "Invalid value x for configuration segment.bytes: Not a number of type INT");
    assert_eq!(value_of(&mut client, TOPIC, "t", "retention.ms"), "1000");
    for (kind, name, changes, code, message) in [
        (TOPIC, "nope", ("retention.ms", SET, Some("5")), UnknownTopicOrPartition, "The topic 'nope' does not exist."),
        (TOPIC, "", ("retention.ms", SET, Some("5")), InvalidRequest, "Default topic resources are not allowed."),
        (
            BROKER,
            "9",
            ("log.cleaner.threads", SET, Some("2")),
            InvalidRequest,
            "Unexpected broker id, expected 1, but received 9",
        ),
        (
            BROKER,
            "1",
            ("node.id", SET, Some("2")),
            InvalidRequest,
            "Cannot update these configs dynamically: [node.id]",
        ),
        (
            TOPIC,
            "t",
            ("retention.ms", SET, Option::None),
            InvalidRequest,
            "Null value not supported for : retention.ms",
        ),
    ] {
        assert_eq!(change(&mut client, kind, name, &[changes], false), (code, Some(message.to_owned())));
    }
    for version in versions::<AlterConfigsRequest>() {
        set(&mut client, TOPIC, "t", "retention.ms", "1000");
        // What is not named goes back to its default.
        assert_eq!(replace(&mut client, version, TOPIC, "t", &[("segment.bytes", "2000000")]), None);
        assert_eq!(value_of(&mut client, TOPIC, "t", "segment.bytes"), "2000000");
        assert_eq!(value_of(&mut client, TOPIC, "t", "retention.ms"), "-1");
    }
    assert_eq!(replace(&mut client, 2, TOPIC, "nope", &[]), UnknownTopicOrPartition);
}

#[test]
fn groups_and_subscriptions_have_configs_too() {
    let broker = Broker::start();
    let mut client = broker.connect();
    set(&mut client, GROUP, "g", "consumer.session.timeout.ms", "50000");
    set(&mut client, METRICS, "m", "interval.ms", "1000");
    let refused = change(&mut client, GROUP, "g", &[("consumer.session.timeout.ms", SET, Some("1"))], false);
    assert_eq!(refused.0, InvalidConfig);
    let refused = change(&mut client, METRICS, "m", &[("interval.ms", SET, Some("1"))], false);
    assert_eq!(refused.0, InvalidRequest);
    let broker = broker.kill().start();
    let mut client = broker.connect();
    let config = config_of(&mut client, GROUP, "g", "consumer.session.timeout.ms");
    assert_eq!((config.value.as_deref(), config.config_source), (Some("50000"), 8));
    let config = config_of(&mut client, METRICS, "m", "interval.ms");
    assert_eq!((config.value.as_deref(), config.config_source), (Some("1000"), 7));
    // Of a group that nobody configured, the broker's.
    assert_eq!(value_of(&mut client, GROUP, "other", "consumer.session.timeout.ms"), "45000");

    create_topic(&mut client, "t", 1);
    let list = |client: &mut Client, version: i16, types: &[i8]| -> Result<Vec<(i8, String)>, ErrorCode> {
        let response = client.call(version, &ListConfigResourcesRequest { resource_types: types.to_vec() });
        match response.error_code {
            0 => Ok(response.config_resources.into_iter().map(|r| (r.resource_type, r.resource_name)).collect()),
            code => Err(ErrorCode::from_code(code).unwrap()),
        }
    };
    let line = |kind: i8, name: &str| (kind, name.to_owned());
    assert_eq!(list(&mut client, 0, &[]), Ok(vec![line(METRICS, "m")]));
    let everything: BTreeSet<_> = list(&mut client, 1, &[]).unwrap().into_iter().collect();
    let expected = [line(TOPIC, "t"), line(BROKER, "1"), line(LOGGER, "1"), line(METRICS, "m"), line(GROUP, "g")];
    assert_eq!(everything, expected.into());
    assert_eq!(list(&mut client, 1, &[TOPIC, TOPIC]), Ok(vec![line(TOPIC, "t")]));
    assert_eq!(list(&mut client, 1, &[5]), Err(UnsupportedVersion));
}

/// What Apache Kafka 4.3.1 answered, with doze's loggers and node.
#[test]
fn loggers_have_levels_that_can_be_changed() {
    let broker = Broker::start_with(&["--log-level", "warn"]);
    let mut client = broker.connect();
    let levels = |client: &mut Client| -> Vec<(String, String)> {
        let described = describe_configs(client, LOGGER, "1", Option::None);
        assert_code(described.error_code, None);
        assert!(described.configs.iter().all(|c| c.config_source == 6 && !c.read_only && !c.is_sensitive));
        described.configs.into_iter().map(|config| (config.name, config.value.unwrap())).collect()
    };
    let line = |name: &str, level: &str| (name.to_owned(), level.to_owned());
    let all = ["doze::broker", "doze::net", "doze::serve", "doze::storage", "root"];
    assert_eq!(levels(&mut client), all.map(|name| line(name, "WARN")));
    assert_eq!(describe_configs(&mut client, LOGGER, "1", Some(&["root", "nope"])).configs.len(), 1);

    // A topic that a client makes by asking is worth a line at INFO, not at WARN.
    let ask = |client: &mut Client, name: &str| metadata_of(client, 12, &[name], true);
    ask(&mut client, "quiet");
    set(&mut client, LOGGER, "1", "doze::broker", "INFO");
    ask(&mut client, "loud");
    let said = broker.expect_to_say("created a topic");
    assert!(said.contains("loud"), "{said}");
    assert_eq!(levels(&mut client)[0], line("doze::broker", "INFO"));
    assert_eq!(levels(&mut client)[4], line("root", "WARN"));
    assert_eq!(
        change(&mut client, LOGGER, "1", &[("doze::broker", DELETE, Option::None)], false),
        (None, Option::None)
    );
    ask(&mut client, "quiet-again");
    set(&mut client, LOGGER, "1", "root", "DEBUG");
    assert_eq!(levels(&mut client)[0], line("doze::broker", "DEBUG"), "it follows the root again");
    ask(&mut client, "loud-again");
    let said = broker.expect_to_say("created a topic");
    assert!(said.contains("loud-again"), "{said}");
    assert_eq!(change(&mut client, LOGGER, "1", &[("root", SET, Some("FATAL"))], true), (None, Option::None));
    assert_eq!(levels(&mut client)[4], line("root", "DEBUG"), "only asked");

    let unsupported = |level: &str| {
        format!(
            "Cannot set the log level of root to {level} as it is not a supported log level. Valid log levels are DEBUG, \
             ERROR, FATAL, INFO, TRACE, WARN"
        )
    };
    for (node, change_of, code, message) in [
        ("1", ("nope", SET, Some("DEBUG")), InvalidConfig, "Logger nope does not exist!".to_owned()),
        ("1", ("nope", DELETE, Option::None), InvalidConfig, "Logger nope does not exist!".to_owned()),
        ("1", ("root", SET, Some("BAD")), InvalidConfig, unsupported("BAD")),
        ("1", ("root", SET, Some("debug")), InvalidConfig, unsupported("debug")),
        ("1", ("root", SET, Some("OFF")), InvalidConfig, unsupported("OFF")),
        ("1", ("root", SET, Option::None), InvalidRequest, "Null value not supported for : root".to_owned()),
        (
            "1",
            ("root", DELETE, Option::None),
            InvalidRequest,
            "Removing the log level of the root logger is not allowed".to_owned(),
        ),
        (
            "1",
            ("root", APPEND, Some("INFO")),
            InvalidRequest,
            "APPEND operation is not allowed for the BROKER_LOGGER resource".to_owned(),
        ),
        (
            "1",
            ("root", SUBTRACT, Some("INFO")),
            InvalidRequest,
            "SUBTRACT operation is not allowed for the BROKER_LOGGER resource".to_owned(),
        ),
        ("7", ("root", SET, Some("INFO")), InvalidRequest, "Unexpected node id. Expected 1, but received 7".to_owned()),
        ("x", ("root", SET, Some("INFO")), InvalidRequest, "Node id must be an integer, but it is: x".to_owned()),
    ] {
        assert_eq!(change(&mut client, LOGGER, node, &[change_of], false), (code, Some(message)));
    }
    let twice: Changes<'_> = &[("root", SET, Some("INFO")), ("root", SET, Some("INFO"))];
    assert_eq!(change(&mut client, LOGGER, "1", twice, false).1.unwrap(), "Error due to duplicate config keys");
    // One that cannot be leaves the others as they are.
    let both: Changes<'_> = &[("root", SET, Some("INFO")), ("nope", SET, Some("INFO"))];
    assert_eq!(change(&mut client, LOGGER, "1", both, false).0, InvalidConfig);
    assert_eq!(levels(&mut client)[4], line("root", "DEBUG"));
    assert_eq!(replace(&mut client, 2, LOGGER, "1", &[("root", "INFO")]), InvalidRequest);
    for (node, message) in [
        ("7", "Unexpected broker id, expected 1 but received 7"),
        ("", "Broker id must not be empty"),
        ("x", "Broker id must be an integer, but it is: x"),
    ] {
        assert_eq!(not_described(&mut client, LOGGER, node), (InvalidRequest, message.to_owned()));
    }
    // Levels are of this run.
    let broker = broker.stop().start();
    assert_eq!(levels(&mut broker.connect())[4], line("root", "WARN"));
}

#[test]
fn the_directory_is_described() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 2);
    produce(&mut client, "t", 1, &[1; 1000]).unwrap();
    let sizes = |client: &mut Client, version: i16, topics: Option<Vec<DescribableLogDirTopic>>| {
        let response = client.call(version, &DescribeLogDirsRequest { topics });
        assert_code(response.error_code, None);
        assert_eq!(response.results.len(), 1);
        let result = response.results[0].clone();
        assert_code(result.error_code, None);
        assert_eq!(result.log_dir, std::fs::canonicalize(broker.data_dir()).unwrap().to_str().unwrap());
        assert_eq!(result.total_bytes > 0 && result.usable_bytes <= result.total_bytes, version >= 4);
        let sizes = result.topics.iter().flat_map(|topic| {
            topic.partitions.iter().map(|p| (format!("{}-{}", topic.name, p.partition_index), p.partition_size > 1000))
        });
        sizes.collect::<Vec<_>>()
    };
    let line = |name: &str, large: bool| (name.to_owned(), large);
    for version in versions::<DescribeLogDirsRequest>() {
        assert_eq!(sizes(&mut client, version, Option::None), [line("t-0", false), line("t-1", true)], "v{version}");
    }
    let asked = |topic: &str| DescribableLogDirTopic { topic: topic.into(), partitions: vec![1, 9] };
    assert_eq!(sizes(&mut client, 5, Some(vec![asked("t"), asked("nope")])), [line("t-1", true)]);
    assert_eq!(sizes(&mut client, 5, Some(vec![])), []);
}

#[test]
fn the_cluster_is_described() {
    let broker = Broker::start_with(&["--override", "broker.rack=r1"]);
    let mut client = broker.connect();
    let id = all_topics(&mut client).cluster_id.unwrap();
    assert_eq!(id.len(), 22);
    for version in versions::<DescribeClusterRequest>() {
        let request = DescribeClusterRequest { include_cluster_authorized_operations: true, ..Default::default() };
        let response = client.call(version, &request);
        assert_eq!((response.error_code, &response.cluster_id, response.controller_id), (0, &id, 1), "v{version}");
        let node = &response.brokers[0];
        assert_eq!((node.broker_id, node.host.as_str(), node.rack.as_deref()), (1, "127.0.0.1", Some("r1")));
        assert_eq!(node.port, i32::from(broker.address.port()));
        assert_eq!(response.cluster_authorized_operations, 0x1fa0);
        let response = client.call(version, &DescribeClusterRequest::default());
        assert_eq!(response.cluster_authorized_operations, i32::MIN);
    }
    for (endpoint_type, code, message) in [
        (
            2,
            MismatchedEndpointType,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        ),
        (7, UnsupportedEndpointType, "Unsupported endpoint type 7"),
    ] {
        let response = client.call(1, &DescribeClusterRequest { endpoint_type, ..Default::default() });
        assert_eq!((response.error_code, response.error_message.as_deref()), (code.code(), Some(message)));
        assert_eq!((response.brokers.len(), response.cluster_id.as_str(), response.controller_id), (0, "", -1));
    }
    let broker = broker.kill().start();
    assert_eq!(all_topics(&mut broker.connect()).cluster_id.unwrap(), id, "an id is for good");
}

fn pages(client: &mut Client, topics: &[&str], limit: i32) -> Vec<Vec<String>> {
    let mut cursor = Option::None;
    let mut pages = vec![];
    loop {
        let response = describe_partitions(client, topics, limit, cursor);
        let page = response.topics.iter().flat_map(|topic| {
            let name = topic.name.clone().unwrap();
            let partitions: Vec<i32> = topic.partitions.iter().map(|p| p.partition_index).collect();
            partitions.into_iter().map(move |partition| format!("{name}-{partition}"))
        });
        pages.push(page.collect());
        let Some(next) = response.next_cursor else { return pages };
        cursor = Some((next.topic_name, next.partition_index));
        assert!(pages.len() < 100, "it never ends");
    }
}

fn describe_partitions(
    client: &mut Client,
    topics: &[&str],
    limit: i32,
    cursor: Option<(String, i32)>,
) -> DescribeTopicPartitionsResponse {
    let request = DescribeTopicPartitionsRequest {
        topics: topics.iter().map(|name| TopicRequest { name: (*name).into() }).collect(),
        response_partition_limit: limit,
        cursor: cursor.map(|(topic_name, partition_index)| RequestCursor { topic_name, partition_index }),
    };
    client.call(0, &request)
}

#[test]
fn partitions_are_described_page_by_page() {
    let broker = Broker::start_with(&["--override", "max.request.partition.size.limit=4"]);
    let mut client = broker.connect();
    for (name, count) in [("c", 2), ("a", 3), ("b", 1)] {
        create_topic(&mut client, name, count);
    }
    assert_eq!(pages(&mut client, &[], 2), [vec!["a-0", "a-1"], vec!["a-2", "b-0"], vec!["c-0", "c-1"]]);
    assert_eq!(pages(&mut client, &[], 2000), [vec!["a-0", "a-1", "a-2", "b-0"], vec!["c-0", "c-1"]]);
    assert_eq!(pages(&mut client, &["c", "a", "c"], 3), [vec!["a-0", "a-1", "a-2"], vec!["c-0", "c-1"]]);
    assert_eq!(pages(&mut client, &["b"], 0), [vec!["b-0"]], "at least one");
    let response = describe_partitions(&mut client, &["b"], 10, Option::None);
    let topic = &response.topics[0];
    assert_eq!(
        (topic.topic_authorized_operations, topic.is_internal, topic.topic_id.is_zero()),
        (0x0df8, false, false)
    );
    let partition = &topic.partitions[0];
    assert_eq!((partition.leader_id, partition.leader_epoch), (1, 0));
    assert_eq!((&partition.replica_nodes, &partition.isr_nodes), (&vec![1], &vec![1]));
    let codes = |response: DescribeTopicPartitionsResponse| -> Vec<(String, i16)> {
        response.topics.into_iter().map(|topic| (topic.name.unwrap(), topic.error_code)).collect()
    };
    let found = codes(describe_partitions(&mut client, &["nope", "b", "b x"], 10, Option::None));
    let line = |name: &str, code: ErrorCode| (name.to_owned(), code.code());
    let expected = [line("b", None), line("b x", InvalidTopicException), line("nope", UnknownTopicOrPartition)];
    assert_eq!(found, expected);
    // A place to go on that cannot be one, and one that is gone.
    let cursor = |name: &str, partition: i32| Some((name.to_owned(), partition));
    let found = codes(describe_partitions(&mut client, &["a", "c"], 10, cursor("b", 0)));
    assert_eq!(found, [line("a", InvalidRequest), line("c", InvalidRequest)]);
    let found = codes(describe_partitions(&mut client, &["a"], 10, cursor("a", -1)));
    assert_eq!(found, [line("a", InvalidRequest)]);
    delete_topic(&mut client, "b");
    assert_eq!(codes(describe_partitions(&mut client, &[], 10, cursor("b", 0))), [line("c", None)]);
}

fn metadata_of(client: &mut Client, version: i16, names: &[&str], create: bool) -> MetadataResponse {
    let topic = |name: &&str| MetadataRequestTopic { name: Some((*name).into()), ..Default::default() };
    let request = MetadataRequest {
        topics: Some(names.iter().map(topic).collect()),
        allow_auto_topic_creation: create,
        ..Default::default()
    };
    client.call(version, &request)
}

#[test]
fn metadata_at_every_version() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "b", 2);
    let id = create_topic(&mut client, "a", 1);
    create_topic(&mut client, "__consumer_offsets", 1);
    for version in versions::<MetadataRequest>() {
        let all = match version {
            0 => metadata_of(&mut client, 0, &[], false),
            _ => client.call(version, &MetadataRequest { topics: Option::None, ..Default::default() }),
        };
        assert_eq!(
            all.topics.iter().map(|t| t.name.as_deref().unwrap()).collect::<BTreeSet<_>>(),
            ["__consumer_offsets", "a", "b"].into()
        );
        let node = &all.brokers[0];
        assert_eq!((node.node_id, node.host.as_str(), node.port), (1, "127.0.0.1", i32::from(broker.address.port())));
        assert_eq!(all.controller_id, if version >= 1 { 1 } else { -1 });
        assert_eq!(all.cluster_id.is_some(), version >= 2);
        let b = all.topics.iter().find(|topic| topic.name.as_deref() == Some("b")).unwrap();
        assert_eq!((b.error_code, b.partitions.len(), b.topic_id.is_zero()), (0, 2, version < 10));
        let partition = &b.partitions[1];
        assert_eq!((partition.error_code, partition.partition_index, partition.leader_id), (0, 1, 1));
        assert_eq!((&partition.replica_nodes, &partition.isr_nodes), (&vec![1], &vec![1]));
        assert_eq!(partition.leader_epoch, if version >= 7 { 0 } else { -1 });
        let internal = all.topics.iter().find(|topic| topic.is_internal).map(|topic| topic.name.as_deref().unwrap());
        assert_eq!(internal, (version >= 1).then_some("__consumer_offsets"));
        if version >= 1 {
            assert_eq!(metadata_of(&mut client, version, &[], false).topics, [], "v{version}: none is none");
        }
        let some = metadata_of(&mut client, version, &["a", "nope x", "a"], true);
        let codes: Vec<_> = some.topics.iter().map(|t| (t.name.as_deref().unwrap(), t.error_code)).collect();
        assert_eq!(codes, [("a", 0), ("nope x", InvalidTopicException.code())], "v{version}");
        if version >= 8 {
            let request = MetadataRequest {
                topics: Option::None,
                include_cluster_authorized_operations: version <= 10,
                include_topic_authorized_operations: true,
                ..Default::default()
            };
            let response = client.call(version, &request);
            assert_eq!(response.topics[0].topic_authorized_operations, 0x0df8);
            assert_eq!(response.cluster_authorized_operations, if version <= 10 { 0x1fa0 } else { i32::MIN });
            assert_eq!(all.topics[0].topic_authorized_operations, i32::MIN);
        }
    }
    // By id, from v12 on.
    let by_id = |client: &mut Client, version: i16, ids: &[(Option<&str>, Uuid)]| {
        let topic = |(name, topic_id): &(Option<&str>, Uuid)| MetadataRequestTopic {
            name: name.map(str::to_owned),
            topic_id: *topic_id,
        };
        client.call(version, &MetadataRequest { topics: Some(ids.iter().map(topic).collect()), ..Default::default() })
    };
    for version in 12..=newest::<MetadataRequest>() {
        let response = by_id(&mut client, version, &[(Option::None, id), (Option::None, Uuid([9; 16]))]);
        let found: Vec<_> = response.topics.iter().map(|t| (t.name.as_deref(), t.topic_id, t.error_code)).collect();
        assert_eq!(found, [(Some("a"), id, 0), (Option::None, Uuid([9; 16]), UnknownTopicId.code())]);
        // Names beside ids are not looked at.
        let response = by_id(&mut client, version, &[(Some("b"), Uuid::ZERO), (Option::None, id)]);
        assert_eq!(response.topics.iter().map(|t| t.name.as_deref().unwrap()).collect::<Vec<_>>(), ["a"]);
        let response = by_id(&mut client, version, &[(Option::None, Uuid::ZERO)]);
        assert_eq!((response.topics[0].error_code, response.brokers.len()), (InvalidRequest.code(), 0));
    }
    for version in 10..12 {
        let response = by_id(&mut client, version, &[(Some("a"), id)]);
        assert_eq!((response.topics[0].error_code, response.brokers.len()), (InvalidRequest.code(), 0));
    }
}

#[test]
fn topics_are_made_by_asking_for_them_where_that_is_allowed() {
    let broker = Broker::start_with(&["--default-partitions", "2"]);
    let mut client = broker.connect();
    for version in versions::<MetadataRequest>() {
        let name = format!("t{version}");
        if version >= 4 {
            let response = metadata_of(&mut client, version, &[&name], false);
            assert_code(response.topics[0].error_code, UnknownTopicOrPartition);
        }
        // Complete at once: its partitions are there, and can be produced to.
        let response = metadata_of(&mut client, version, &[&name], true);
        assert_eq!((response.topics[0].error_code, response.topics[0].partitions.len()), (0, 2), "v{version}");
        assert_eq!(produce(&mut client, &name, 1, b"x"), Ok(0));
    }
    // A name that collides cannot be made.
    assert_code(metadata_of(&mut client, 12, &["x.y"], true).topics[0].error_code, None);
    assert_code(metadata_of(&mut client, 12, &["x_y"], true).topics[0].error_code, InvalidTopicException);

    let broker = broker.stop().start_with(&["--auto-create-topics", "false"]);
    let mut client = broker.connect();
    assert_code(metadata_of(&mut client, 12, &["new"], true).topics[0].error_code, UnknownTopicOrPartition);
    assert_code(metadata_of(&mut client, 0, &["new"], true).topics[0].error_code, UnknownTopicOrPartition);
    assert_eq!(produce(&mut client, "new", 0, b"x"), Err(UnknownTopicOrPartition));
}

#[test]
fn every_version_of_the_rest_is_answered() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create_topic(&mut client, "t", 1);
    for version in versions::<IncrementalAlterConfigsRequest>() {
        let config = AlterableConfig { name: "retention.ms".into(), config_operation: SET, value: Some("5".into()) };
        let resource = AlterConfigsResource { resource_type: TOPIC, resource_name: "t".into(), configs: vec![config] };
        let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false };
        assert_code(client.call(version, &request).responses[0].error_code, None);
    }
    assert_eq!(DescribeTopicPartitionsRequest::API.versions(), 0..=0);
}
