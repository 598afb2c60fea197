//! Client quotas: described, altered and enforced as Apache Kafka 4.3.1 does.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use doze::protocol::ErrorCode;
use doze::protocol::messages::alter_client_quotas::{
    AlterClientQuotasRequest, OpData, RequestEntityData, RequestEntryData,
};
use doze::protocol::messages::create_partitions::{CreatePartitionsRequest, CreatePartitionsTopic};
use doze::protocol::messages::create_topics::{CreatableTopic, CreateTopicsRequest, CreateTopicsResponse};
use doze::protocol::messages::delete_topics::DeleteTopicsRequest;
use doze::protocol::messages::describe_client_quotas::{
    ComponentData, DescribeClientQuotasRequest, DescribeClientQuotasResponse,
};
use doze::protocol::messages::fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic};
use doze::protocol::messages::list_groups::ListGroupsRequest;
use doze::protocol::messages::metadata::MetadataRequest;
use doze::protocol::messages::produce::{PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData};
use doze::protocol::wire::Records;

use super::data;
use super::harness::{Broker, Client};

type Parts<'a> = &'a [(&'a str, Option<&'a str>)];

fn entry(parts: Parts<'_>, quotas: &[(&str, Option<f64>)]) -> RequestEntryData {
    let part = |(kind, name): &(&str, Option<&str>)| RequestEntityData {
        entity_type: (*kind).into(),
        entity_name: name.map(str::to_owned),
    };
    let op = |(key, value): &(&str, Option<f64>)| OpData {
        key: (*key).into(),
        value: value.unwrap_or_default(),
        remove: value.is_none(),
    };
    RequestEntryData { entity: parts.iter().map(part).collect(), ops: quotas.iter().map(op).collect() }
}

/// What was refused, by code and message.
fn alter(client: &mut Client, entries: Vec<RequestEntryData>, validate_only: bool) -> Vec<(ErrorCode, String)> {
    let response = client.call(1, &AlterClientQuotasRequest { entries, validate_only });
    let failed = response.entries.into_iter().filter(|entry| entry.error_code != 0);
    failed.map(|e| (ErrorCode::from_code(e.error_code).unwrap(), e.error_message.unwrap())).collect()
}

fn set(client: &mut Client, parts: Parts<'_>, key: &str, value: Option<f64>) {
    assert_eq!(alter(client, vec![entry(parts, &[(key, value)])], false), []);
}

fn describe(
    client: &mut Client,
    components: &[(&str, i8, Option<&str>)],
    strict: bool,
) -> DescribeClientQuotasResponse {
    let component = |(kind, match_type, name): &(&str, i8, Option<&str>)| ComponentData {
        entity_type: (*kind).into(),
        match_type: *match_type,
        r#match: name.map(str::to_owned),
    };
    let components = components.iter().map(component).collect();
    client.call(1, &DescribeClientQuotasRequest { components, strict })
}

/// The entities as `user=a client-id=*`, each with its quotas.
fn shown(response: &DescribeClientQuotasResponse) -> BTreeSet<String> {
    assert_eq!(response.error_code, 0, "{response:?}");
    let mut all = BTreeSet::new();
    for entry in response.entries.as_ref().unwrap() {
        let name = |part: &doze::protocol::messages::describe_client_quotas::EntityData| {
            format!("{}={}", part.entity_type, part.entity_name.as_deref().unwrap_or("*"))
        };
        let mut words: Vec<String> = entry.entity.iter().map(name).collect();
        words.sort();
        words.extend(entry.values.iter().map(|value| format!("{}:{}", value.key, value.value)));
        all.insert(words.join(" "));
    }
    all
}

const RATE: &str = "producer_byte_rate";

#[test]
fn quotas_are_stored_and_found_by_filters() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let entities: [(Parts<'_>, f64); 9] = [
        (&[("user", Some("u1"))], 1.0),
        (&[("user", None)], 2.0),
        (&[("client-id", Some("c1"))], 3.0),
        (&[("client-id", None)], 4e9),
        (&[("user", Some("u1")), ("client-id", Some("c1"))], 5.0),
        (&[("client-id", None), ("user", Some("u1"))], 6.0),
        (&[("user", None), ("client-id", Some("c1"))], 7.0),
        (&[("user", None), ("client-id", None)], 8.0),
        (&[("user", Some("ü 1"))], 9.0),
    ];
    let entries = entities.iter().map(|(parts, value)| entry(parts, &[(RATE, Some(*value))])).collect();
    assert_eq!(alter(&mut client, entries, false), []);
    set(&mut client, &[("ip", Some("10.0.0.1"))], "connection_creation_rate", Some(5.0));
    // Looked at only.
    assert_eq!(alter(&mut client, vec![entry(&[("user", Some("v"))], &[(RATE, Some(1.0))])], true), []);
    let broker = broker.kill().start();
    let mut client = broker.connect();
    assert_eq!(shown(&describe(&mut client, &[], false)).len(), 10);
    assert!(shown(&describe(&mut client, &[], true)).is_empty());
    let mut found = |components: &[(&str, i8, Option<&str>)], strict| {
        let found = shown(&describe(&mut client, components, strict));
        let rates = found.iter().map(|line| line.rsplit(':').next().unwrap().to_owned());
        let mut rates: Vec<String> = rates.collect();
        rates.sort();
        rates.join(" ")
    };
    let (exact, default, any) = (0, 1, 2);
    assert_eq!(found(&[("user", exact, Some("u1"))], false), "1 5 6");
    assert_eq!(found(&[("user", exact, Some("u1"))], true), "1");
    assert_eq!(found(&[("user", default, None)], false), "2 7 8");
    assert_eq!(found(&[("user", default, None)], true), "2");
    assert_eq!(found(&[("user", any, None)], false), "1 2 5 6 7 8 9");
    assert_eq!(found(&[("user", any, None)], true), "1 2 9");
    assert_eq!(found(&[("client-id", any, None)], false), "3 4000000000 5 6 7 8");
    assert_eq!(found(&[("client-id", any, None), ("user", any, None)], true), "5 6 7 8");
    assert_eq!(found(&[("client-id", exact, Some("c1")), ("user", default, None)], false), "7");
    assert_eq!(found(&[("ip", any, None)], false), "5");
    assert_eq!(found(&[("ip", default, None)], false), "");
    assert_eq!(found(&[("user", exact, Some(""))], false), "");
    // Taken back, all but one.
    let entries = entities[1..].iter().map(|(parts, _)| entry(parts, &[(RATE, None), ("nope", None)])).collect();
    assert_eq!(alter(&mut client, entries, false), []);
    set(&mut client, &[("ip", Some("10.0.0.1"))], "connection_creation_rate", None);
    let broker = broker.stop().start();
    let left = shown(&describe(&mut broker.connect(), &[], false));
    assert_eq!(left.into_iter().collect::<Vec<_>>(), ["user=u1 producer_byte_rate:1"]);
}

#[test]
fn filters_are_refused_in_kafkas_words() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let mut refused = |components: &[(&str, i8, Option<&str>)]| {
        let response = describe(&mut client, components, false);
        assert_eq!(response.entries, None);
        (ErrorCode::from_code(response.error_code).unwrap(), response.error_message.unwrap())
    };
    let invalid = |message: &str| (ErrorCode::InvalidRequest, message.to_owned());
    assert_eq!(refused(&[("x", 2, None)]), (ErrorCode::UnsupportedVersion, "Unsupported entity type x".into()));
    for (components, message) in [
        (&[("", 2, None)][..], "Invalid empty entity type."),
        (&[("user", 2, None), ("user", 1, None)], "Entity type user cannot appear more than once in the filter."),
        (&[("user", 3, None)], "Unknown match type 3"),
        (&[("user", -1, None)], "Unknown match type -1"),
        (&[("user", 0, None)], "Request specified MATCH_TYPE_EXACT, but set match string to null."),
        (&[("user", 1, Some("u"))], "Request specified MATCH_TYPE_DEFAULT, but also specified a match string."),
        (&[("user", 2, Some("u"))], "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string."),
        (
            &[("ip", 2, None), ("user", 2, None)],
            "Invalid entity filter component combination. IP filter component should not be used with user or clientId \
             filter component.",
        ),
    ] {
        assert_eq!(refused(components), invalid(message));
    }
}

#[test]
fn alterations_are_refused_by_entity() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let user: Parts<'_> = &[("user", Some("a"))];
    let invalid = |message: &str| vec![(ErrorCode::InvalidRequest, message.to_owned())];
    let duplicate = invalid("Ignoring duplicate entity ClientQuotaEntity(entries={user=a})");
    let one = |quota| entry(user, &[(quota, Some(1.0))]);
    // One is refused, the other is set.
    let entries = vec![
        entry(user, &[(RATE, Some(1.0)), ("nope", Some(1.0))]),
        entry(&[("user", Some("b"))], &[(RATE, Some(2.0))]),
    ];
    assert_eq!(alter(&mut client, entries, false), invalid("Invalid configuration key nope"));
    assert_eq!(alter(&mut client, vec![one(RATE), one("consumer_byte_rate")], false), duplicate);
    assert_eq!(alter(&mut client, vec![entry(user, &[(RATE, Some(1.0)), (RATE, Some(2.0))])], false), duplicate);
    let ip = entry(&[("ip", Some("not an ip"))], &[("connection_creation_rate", Some(1.0))]);
    assert_eq!(alter(&mut client, vec![ip], false), invalid("not an ip is not a valid IP or resolvable host."));
    for host in ["1.2.3.4", "::1", "localhost"] {
        let ip = entry(&[("ip", Some(host))], &[("connection_creation_rate", Some(1.0))]);
        assert_eq!(alter(&mut client, vec![ip], true), []);
    }
    assert_eq!(alter(&mut client, vec![entry(&[], &[])], true), invalid("Invalid empty client quota entity"));
    let left = shown(&describe(&mut client, &[], false));
    assert_eq!(left.into_iter().collect::<Vec<_>>(), ["user=b producer_byte_rate:2"]);
}

fn create(client: &mut Client, version: i16, topics: &[(&str, i32)]) -> CreateTopicsResponse {
    let topic = |(name, num_partitions): &(&str, i32)| CreatableTopic {
        name: (*name).into(),
        num_partitions: *num_partitions,
        replication_factor: 1,
        ..Default::default()
    };
    let topics = topics.iter().map(topic).collect();
    client.call(version, &CreateTopicsRequest { topics, timeout_ms: 10_000, validate_only: false })
}

/// The header of a batch that is wrong; it counts as much as one that is right.
fn produce(client: &mut Client, bytes: usize) -> i32 {
    client.send(
        9,
        &ProduceRequest {
            acks: 1,
            timeout_ms: 1000,
            topic_data: vec![TopicProduceData {
                name: "t".into(),
                partition_data: vec![PartitionProduceData {
                    index: 0,
                    records: Some(Records::Bytes(vec![7; bytes].into())),
                }],
                ..Default::default()
            }],
            ..Default::default()
        },
    )
}

fn produced(client: &mut Client, id: i32) -> ProduceResponse {
    client.receive::<ProduceRequest>(9, id)
}

#[test]
fn a_producer_beyond_its_rate_is_held_back() {
    let broker = Broker::start();
    let (mut admin, mut client) = (broker.connect(), broker.connect());
    create(&mut admin, 7, &[("t", 1)]);
    let id = produce(&mut client, 100_000);
    assert_eq!(produced(&mut client, id).throttle_time_ms, 0, "no quota, no throttle");
    // 10 seconds of 10,000 bytes each are free.
    set(&mut admin, &[("client-id", Some("test"))], RATE, Some(10_000.0));
    let id = produce(&mut client, 90_000);
    assert_eq!(produced(&mut client, id).throttle_time_ms, 0);
    let id = produce(&mut client, 20_000);
    let response = produced(&mut client, id);
    // 110,000 of 100,000 bytes are a second too much, and a little for the headers.
    assert!((900..1_200).contains(&response.throttle_time_ms), "{response:?}");
    // The answer came at once; what comes next has to wait.
    let began = Instant::now();
    client.call(0, &ListGroupsRequest::default());
    assert!(began.elapsed() >= Duration::from_millis(800), "{:?}", began.elapsed());
    // Other clients do not.
    let began = Instant::now();
    admin.call(0, &ListGroupsRequest::default());
    assert!(began.elapsed() < Duration::from_millis(800), "{:?}", began.elapsed());
    // It is in force after a restart, also without a close.
    let broker = broker.kill().start();
    let mut client = broker.connect();
    let id = produce(&mut client, 110_000);
    assert!(produced(&mut client, id).throttle_time_ms > 500);
    // Until it is taken back.
    set(&mut broker.connect(), &[("client-id", Some("test"))], RATE, None);
    let mut client = broker.connect();
    let id = produce(&mut client, 500_000);
    assert_eq!(produced(&mut client, id).throttle_time_ms, 0);
}

/// Without an answer there is nothing to tell it; it is held back all the same. Nor is one that waits for its flush read on.
#[test]
fn a_producer_that_wants_no_answer_is_held_back_too() {
    for acks in [0, -1] {
        let broker = Broker::start();
        let (mut admin, mut client) = (broker.connect(), broker.connect());
        let topic = data::create_topic(&mut admin, "u", 1, &[]);
        set(&mut admin, &[("client-id", Some("test"))], RATE, Some(10_000.0));
        let value = vec![b'x'; 60_000];
        let records = data::batch(&[&value]);
        let began = Instant::now();
        for _ in 0..2 {
            client.send(13, &data::produce_request(&topic, 0, acks, &records));
        }
        if acks != 0 {
            for _ in 0..2 {
                client.receive_raw().unwrap();
            }
        }
        client.call(0, &ListGroupsRequest::default());
        assert!(began.elapsed() >= Duration::from_millis(1_500), "acks {acks}: {:?}", began.elapsed());
        assert_eq!(data::end_offset(&mut admin, &topic), 2);
    }
}

fn fetch(client: &mut Client) -> FetchResponse {
    let partition = FetchPartition { partition: 0, partition_max_bytes: 1000, ..Default::default() };
    let topics = vec![FetchTopic { topic: "t".into(), partitions: vec![partition], ..Default::default() }];
    client.call(11, &FetchRequest { max_bytes: 100_000, session_epoch: -1, topics, ..Default::default() })
}

#[test]
fn a_consumer_beyond_its_rate_gets_nothing_and_is_held_back() {
    let broker = Broker::start();
    let (mut admin, mut client) = (broker.connect(), broker.connect());
    create(&mut admin, 7, &[("t", 1)]);
    let response = fetch(&mut client);
    assert_eq!((response.throttle_time_ms, response.responses.len()), (0, 1));
    // An answer without records has 67 bytes with Apache Kafka, of which 60 are free.
    set(&mut admin, &[("user", Some("ANONYMOUS"))], "consumer_byte_rate", Some(6.0));
    let response = fetch(&mut client);
    assert_eq!((response.throttle_time_ms, response.responses.len(), response.error_code), (1_167, 0, 0));
    let began = Instant::now();
    let response = fetch(&mut client);
    assert!(began.elapsed() >= Duration::from_millis(1_000), "{:?}", began.elapsed());
    // What was not sent does not count.
    assert!((1..=1_167).contains(&response.throttle_time_ms), "{response:?}");
    set(&mut admin, &[("user", Some("ANONYMOUS"))], "consumer_byte_rate", Some(600.0));
    let response = fetch(&mut client);
    assert_eq!((response.throttle_time_ms, response.responses.len()), (0, 1));
}

#[test]
fn requests_that_take_too_much_time_are_held_back() {
    let broker = Broker::start();
    let (mut admin, mut client) = (broker.connect(), broker.connect());
    assert_eq!(client.call(8, &MetadataRequest::default()).throttle_time_ms, 0);
    set(&mut admin, &[("client-id", None)], "request_percentage", Some(0.000_001));
    // One sample's length is the most.
    assert_eq!(client.call(8, &MetadataRequest::default()).throttle_time_ms, 1_000);
    let began = Instant::now();
    assert_eq!(client.call(0, &ListGroupsRequest::default()).error_code, 0);
    assert!(began.elapsed() >= Duration::from_millis(900), "{:?}", began.elapsed());
    set(&mut broker.connect(), &[("client-id", None)], "request_percentage", Some(1e9));
    assert_eq!(broker.connect().call(8, &MetadataRequest::default()).throttle_time_ms, 0);
}

#[test]
fn topic_changes_beyond_the_rate_are_refused_or_held_back() {
    let broker = Broker::start();
    let mut client = broker.connect();
    set(&mut client, &[("client-id", Some("test"))], "controller_mutation_rate", Some(1.0));
    // 11 tokens; they may be overdrawn once.
    let response = create(&mut client, 7, &[("m1", 8), ("m2", 8), ("m3", 1), ("bad", -5)]);
    let results: Vec<_> =
        response.topics.iter().map(|topic| (topic.name.as_str(), topic.error_code, &topic.error_message)).collect();
    let exceeded = ErrorCode::ThrottlingQuotaExceeded.code();
    assert_eq!(results[..3], [("m1", 0, &None), ("m2", 0, &None), ("m3", exceeded, &None)]);
    assert_eq!(results[3].1, ErrorCode::InvalidPartitions.code());
    assert!((4_500..=5_000).contains(&response.throttle_time_ms), "{}", response.throttle_time_ms);
    // Another connection of the same client is not held back, but has no tokens either. Older clients are not refused.
    let mut client = broker.connect();
    let grow = || CreatePartitionsTopic { name: "m1".into(), count: 9, assignments: None };
    let request = CreatePartitionsRequest { topics: vec![grow()], timeout_ms: 10_000, validate_only: false };
    let response = client.call(3, &request);
    assert_eq!((response.results[0].error_code, &response.results[0].error_message), (exceeded, &None));
    assert!(response.throttle_time_ms > 3_000);
    let mut client = broker.connect();
    let response = client.call(2, &request);
    assert_eq!(response.results[0].error_code, 0);
    assert!(response.throttle_time_ms > 4_000);
    let mut client = broker.connect();
    let delete = DeleteTopicsRequest { topic_names: vec!["m1".into()], timeout_ms: 10_000, ..Default::default() };
    assert_eq!(client.call(5, &delete).responses[0].error_code, exceeded);
    let mut client = broker.connect();
    assert_eq!(client.call(4, &delete).responses[0].error_code, 0);
    let mut client = broker.connect();
    set(&mut client, &[("client-id", Some("test"))], "controller_mutation_rate", None);
    let response = create(&mut client, 7, &[("m5", 100)]);
    assert_eq!((response.throttle_time_ms, response.topics[0].error_code), (0, 0));
}

#[test]
fn no_more_connections_are_taken_in_than_the_broker_may() {
    // Two connections in each of the ten seconds that a rate is taken over.
    let broker = Broker::start_with(&["--override", "max.connection.creation.rate=2"]);
    let answered = || assert_eq!(broker.connect().call(0, &ListGroupsRequest::default()).error_code, 0);
    let began = Instant::now();
    (0..20).for_each(|_| answered());
    let free = began.elapsed();
    (0..3).for_each(|_| answered());
    let held = began.elapsed() - free;
    // Each of these waited for about as long as the one before it was too early.
    assert!(held >= Duration::from_millis(900), "{held:?} after {free:?}");
}

#[test]
fn connections_beyond_the_rate_are_closed_after_a_while() {
    let broker = Broker::start();
    let mut admin = broker.connect();
    set(&mut admin, &[("ip", Some("127.0.0.1"))], "connection_creation_rate", Some(1.0));
    for i in 0..10 {
        assert_eq!(broker.connect().call(0, &ListGroupsRequest::default()).error_code, 0, "connection {i}");
    }
    let began = Instant::now();
    let mut client = broker.connect();
    client.send(0, &ListGroupsRequest::default());
    assert_eq!(client.receive_raw(), None);
    assert!(began.elapsed() >= Duration::from_millis(500), "{:?}", began.elapsed());
    set(&mut admin, &[("ip", Some("127.0.0.1"))], "connection_creation_rate", None);
    assert_eq!(broker.connect().call(0, &ListGroupsRequest::default()).error_code, 0);
}
