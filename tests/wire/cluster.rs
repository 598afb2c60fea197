//! The admin APIs about the cluster: answered as Apache Kafka 4.3.1 answered them as a single node without security.

use doze::protocol::messages::add_raft_voter::{AddRaftVoterRequest, Listener};
use doze::protocol::messages::alter_partition_reassignments::{
    AlterPartitionReassignmentsRequest, ReassignablePartition, ReassignableTopic,
};
use doze::protocol::messages::alter_replica_log_dirs::{
    AlterReplicaLogDir, AlterReplicaLogDirTopic, AlterReplicaLogDirsRequest,
};
use doze::protocol::messages::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use doze::protocol::messages::create_acls::{AclCreation, CreateAclsRequest};
use doze::protocol::messages::create_delegation_token::CreateDelegationTokenRequest;
use doze::protocol::messages::create_topics::{CreatableTopic, CreateTopicsRequest};
use doze::protocol::messages::delete_acls::{DeleteAclsFilter, DeleteAclsRequest};
use doze::protocol::messages::describe_acls::DescribeAclsRequest;
use doze::protocol::messages::describe_delegation_token::DescribeDelegationTokenRequest;
use doze::protocol::messages::describe_quorum::{DescribeQuorumRequest, RequestPartitionData, RequestTopicData};
use doze::protocol::messages::elect_leaders::{ElectLeadersRequest, ElectLeadersResponse, TopicPartitions};
use doze::protocol::messages::expire_delegation_token::ExpireDelegationTokenRequest;
use doze::protocol::messages::list_partition_reassignments::{
    ListPartitionReassignmentsRequest, ListPartitionReassignmentsTopics,
};
use doze::protocol::messages::remove_raft_voter::RemoveRaftVoterRequest;
use doze::protocol::messages::renew_delegation_token::RenewDelegationTokenRequest;
use doze::protocol::messages::sasl_authenticate::SaslAuthenticateRequest;
use doze::protocol::messages::sasl_handshake::SaslHandshakeRequest;
use doze::protocol::messages::unregister_broker::UnregisterBrokerRequest;
use doze::protocol::messages::update_features::{FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse};
use doze::protocol::{ErrorCode, Uuid};

use super::harness::{Broker, Client};

const NODE_ZERO: &[&str] = &["--override", "node.id=0"];

fn code(code: i16) -> ErrorCode {
    ErrorCode::from_code(code).unwrap()
}

/// A broker with id 0 and a topic `t` of two partitions.
fn broker_with_topic() -> (Broker, Client) {
    let broker = Broker::start_with(NODE_ZERO);
    let mut client = broker.connect();
    let topic = CreatableTopic { name: "t".into(), num_partitions: 2, replication_factor: 1, ..Default::default() };
    let created =
        client.call(7, &CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, validate_only: false });
    assert_eq!(created.topics[0].error_code, 0, "{created:?}");
    (broker, client)
}

type Election = (String, i32, ErrorCode, String);

fn elections(response: ElectLeadersResponse) -> Vec<Election> {
    let mut all = vec![];
    for topic in response.replica_election_results {
        for p in topic.partition_result {
            all.push((topic.topic.clone(), p.partition_id, code(p.error_code), p.error_message.unwrap()));
        }
    }
    all
}

#[test]
fn elections_are_not_needed() {
    let (_broker, mut client) = broker_with_topic();
    let asked = || {
        let of =
            |topic: &str, partitions: &[i32]| TopicPartitions { topic: topic.into(), partitions: partitions.into() };
        Some(vec![of("t", &[1, 0, 5, -1, 0]), of("nope", &[0])])
    };
    let needless = "Leader election not needed for topic partition.";
    let expected: Vec<Election> = [
        ("t", 1, ErrorCode::ElectionNotNeeded, needless),
        ("t", 0, ErrorCode::ElectionNotNeeded, needless),
        ("t", 5, ErrorCode::UnknownTopicOrPartition, "No such partition as t-5"),
        ("t", -1, ErrorCode::UnknownTopicOrPartition, "No such partition as t--1"),
        ("t", 0, ErrorCode::ElectionNotNeeded, needless),
        ("nope", 0, ErrorCode::UnknownTopicOrPartition, "No such topic as nope"),
    ]
    .map(|(topic, partition, code, message)| (topic.into(), partition, code, message.into()))
    .into();
    for (version, election_type) in [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1)] {
        let request = ElectLeadersRequest { election_type, topic_partitions: asked(), timeout_ms: 10_000 };
        let response = client.call(version, &request);
        assert_eq!(response.error_code, 0);
        assert_eq!(elections(response), expected, "version {version}, type {election_type}");
    }
    let request = ElectLeadersRequest { election_type: 2, topic_partitions: asked(), timeout_ms: 10_000 };
    let response = client.call(2, &request);
    assert_eq!(code(response.error_code), ErrorCode::InvalidRequest);
    let refused = elections(response);
    assert_eq!(refused.len(), 6);
    assert!(
        refused.iter().all(|e| e.2 == ErrorCode::InvalidRequest && e.3 == "Unknown election type 2"),
        "{refused:?}"
    );
    // All of them: none needs an election, so none is named.
    let request = ElectLeadersRequest { election_type: 0, topic_partitions: None, timeout_ms: 10_000 };
    let response = client.call(2, &request);
    assert_eq!(response.replica_election_results.len(), 1);
    assert_eq!(response.replica_election_results[0].topic, "t");
    assert!(response.replica_election_results[0].partition_result.is_empty());
}

#[test]
fn partitions_are_reassigned_to_this_node_and_to_no_other() {
    let (_broker, mut client) = broker_with_topic();
    let mut reassign = |version, topic: &str, partition_index, replicas: Option<Vec<i32>>| {
        let partitions = vec![ReassignablePartition { partition_index, replicas }];
        let topics = vec![ReassignableTopic { name: topic.into(), partitions }];
        let request = AlterPartitionReassignmentsRequest { topics, ..Default::default() };
        let mut response = client.call(version, &request);
        assert_eq!((response.error_code, response.error_message), (0, None));
        assert!(response.allow_replication_factor_change);
        let partition = response.responses.remove(0).partitions.remove(0);
        assert_eq!(partition.partition_index, partition_index);
        (code(partition.error_code), partition.error_message)
    };
    let invalid = |why: &str| {
        (ErrorCode::InvalidReplicaAssignment, Some(format!("The manual partition assignment includes {why}")))
    };
    let unknown = |message: &str| (ErrorCode::UnknownTopicOrPartition, Some(message.to_owned()));
    for version in 0..=1 {
        assert_eq!(reassign(version, "t", 0, Some(vec![0])), (ErrorCode::None, None));
        assert_eq!(reassign(version, "t", 1, None), (ErrorCode::NoReassignmentInProgress, None));
        assert_eq!(reassign(version, "t", 0, Some(vec![])), invalid("an empty replica list."));
        for other in [vec![1], vec![0, 1]] {
            let why = "broker 1, but no such broker is registered.";
            assert_eq!(reassign(version, "t", 0, Some(other)), invalid(why));
        }
        assert_eq!(reassign(version, "t", 0, Some(vec![0, 0])), invalid("the broker 0 more than once."));
        let why = "broker -1, but no such broker is registered.";
        assert_eq!(reassign(version, "t", 0, Some(vec![-1, 0])), invalid(why));
        for replicas in [None, Some(vec![0])] {
            assert_eq!(reassign(version, "t", 7, replicas.clone()), unknown("Unable to find partition t:7."));
            assert_eq!(reassign(version, "nope", 0, replicas), unknown("Unable to find a topic named nope."));
        }
    }
    let one = ListPartitionReassignmentsTopics { name: "t".into(), partition_indexes: vec![0, 9] };
    for topics in [None, Some(vec![]), Some(vec![one])] {
        let listed = client.call(0, &ListPartitionReassignmentsRequest { timeout_ms: 1000, topics });
        assert_eq!((listed.error_code, listed.error_message), (0, None));
        assert!(listed.topics.is_empty());
    }
}

#[test]
fn replicas_move_to_the_one_directory_there_is() {
    let (broker, mut client) = broker_with_topic();
    let dir = broker.data_dir().display().to_string();
    let move_to = |path: &str| AlterReplicaLogDir {
        path: path.into(),
        topics: vec![
            AlterReplicaLogDirTopic { name: "t".into(), partitions: vec![0, 9] },
            AlterReplicaLogDirTopic { name: "nope".into(), partitions: vec![0] },
        ],
    };
    let mut moved = |version, dirs: Vec<AlterReplicaLogDir>| {
        let mut all = vec![];
        for topic in client.call(version, &AlterReplicaLogDirsRequest { dirs }).results {
            for partition in topic.partitions {
                all.push((topic.topic_name.clone(), partition.partition_index, code(partition.error_code)));
            }
        }
        all.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
        all
    };
    let of =
        |nope, zero, nine| vec![("nope".to_owned(), 0, nope), ("t".to_owned(), 0, zero), ("t".to_owned(), 9, nine)];
    let (unknown, none, elsewhere) = (ErrorCode::UnknownTopicOrPartition, ErrorCode::None, ErrorCode::LogDirNotFound);
    for version in 1..=2 {
        assert_eq!(moved(version, vec![move_to(&dir)]), of(unknown, none, unknown));
        for other in ["/nope", "", "relative", &format!("{dir}/")] {
            assert_eq!(moved(version, vec![move_to(other)]), of(elsewhere, elsewhere, elsewhere), "{other}");
        }
    }
    // The last directory counts, and each partition is named once.
    assert_eq!(moved(2, vec![move_to(&dir), move_to("/nope")]), of(elsewhere, elsewhere, elsewhere));
    assert!(moved(2, vec![]).is_empty());
}

#[test]
fn this_node_is_the_quorum() {
    let (broker, mut client) = broker_with_topic();
    let asked = |topic: &str, partitions: &[i32]| {
        let partition = |partition_index: &i32| RequestPartitionData { partition_index: *partition_index };
        RequestTopicData { topic_name: topic.into(), partitions: partitions.iter().map(partition).collect() }
    };
    for version in 0..=2 {
        let topics = vec![asked("__cluster_metadata", &[0])];
        let response = client.call(version, &DescribeQuorumRequest { topics });
        let partition = &response.topics[0].partitions[0];
        assert_eq!((response.error_code, partition.error_code, partition.leader_id), (0, 0, 0));
        assert!(partition.high_watermark > 0 && partition.leader_epoch > 0);
        assert!(partition.observers.is_empty());
        let [voter] = &partition.current_voters[..] else { panic!("{partition:?}") };
        assert_eq!((voter.replica_id, voter.log_end_offset), (0, partition.high_watermark));
        assert_eq!(voter.last_fetch_timestamp > 0, version >= 1);
        if version >= 2 {
            assert_eq!(response.nodes[0].node_id, 0);
            assert_eq!(response.nodes[0].listeners[0].port, broker.address.port());
        }
        // Nothing else is in the quorum; beside something else not even the metadata is.
        for topics in [
            vec![asked("t", &[0])],
            vec![asked("__cluster_metadata", &[1])],
            vec![asked("__cluster_metadata", &[0, 1])],
            vec![asked("t", &[0]), asked("__cluster_metadata", &[0])],
        ] {
            let response = client.call(version, &DescribeQuorumRequest { topics });
            let partitions: Vec<_> = response.topics.iter().flat_map(|topic| &topic.partitions).collect();
            assert!(partitions.iter().all(|p| code(p.error_code) == ErrorCode::UnknownTopicOrPartition));
            assert!(response.nodes.is_empty());
        }
    }
}

#[test]
fn the_quorum_does_not_change() {
    let (broker, mut client) = broker_with_topic();
    let response = client.call(0, &UnregisterBrokerRequest { broker_id: 5 });
    assert_eq!(code(response.error_code), ErrorCode::BrokerIdNotRegistered);
    assert_eq!(response.error_message.unwrap(), "Broker ID 5 is not currently registered");
    let response = client.call(0, &UnregisterBrokerRequest { broker_id: 0 });
    assert_eq!(code(response.error_code), ErrorCode::InvalidRequest);
    let mut add = |cluster: Option<&str>, voter_id, directory: [u8; 16]| {
        let listener = Listener { name: "CONTROLLER".into(), host: "localhost".into(), port: 9 };
        let request = AddRaftVoterRequest {
            cluster_id: cluster.map(str::to_owned),
            timeout_ms: 1000,
            voter_id,
            voter_directory_id: Uuid(directory),
            listeners: vec![listener],
            ..Default::default()
        };
        let remove = RemoveRaftVoterRequest {
            cluster_id: cluster.map(str::to_owned),
            voter_id,
            voter_directory_id: Uuid(directory),
        };
        let removed = client.call(0, &remove);
        [0, 1].map(|version| {
            let added = client.call(version, &request);
            assert!(added.error_message.is_some());
            (code(added.error_code), code(removed.error_code))
        })
    };
    assert_eq!(add(None, 0, [1; 16]), [(ErrorCode::DuplicateVoter, ErrorCode::VoterNotFound); 2]);
    assert_eq!(add(Some("x"), 0, [1; 16]), [(ErrorCode::InconsistentClusterId, ErrorCode::InconsistentClusterId); 2]);
    for (voter, directory) in [(-1, [1; 16]), (5, [0; 16])] {
        assert_eq!(add(None, voter, directory), [(ErrorCode::InvalidRequest, ErrorCode::InvalidRequest); 2]);
    }
    // Kafka waits for it until the request times out.
    assert_eq!(add(None, 5, [1; 16]), [(ErrorCode::InvalidRequest, ErrorCode::VoterNotFound); 2]);
    drop(broker);
}

fn api_versions(client: &mut Client) -> ApiVersionsResponse {
    let request = ApiVersionsRequest { client_software_name: "test".into(), client_software_version: "1".into() };
    client.call(4, &request)
}

fn finalized(client: &mut Client, name: &str) -> i16 {
    let response = api_versions(client);
    response.finalized_features.iter().find(|feature| feature.name == name).map_or(0, |f| f.max_version_level)
}

fn update(
    client: &mut Client,
    version: i16,
    updates: &[(&str, i16, i8)],
    validate_only: bool,
) -> UpdateFeaturesResponse {
    let key = |(feature, level, upgrade_type): &(&str, i16, i8)| FeatureUpdateKey {
        feature: (*feature).into(),
        max_version_level: *level,
        allow_downgrade: *upgrade_type != UPGRADE,
        upgrade_type: *upgrade_type,
    };
    let feature_updates = updates.iter().map(key).collect();
    client.call(version, &UpdateFeaturesRequest { timeout_ms: 10_000, feature_updates, validate_only })
}

const UPGRADE: i8 = 1;
const SAFE: i8 = 2;
const UNSAFE: i8 = 3;
const ELR: &str = "eligible.leader.replicas.version";

#[test]
fn feature_levels_change_and_stay_changed() {
    let broker = Broker::start_with(NODE_ZERO);
    let mut client = broker.connect();
    assert_eq!((finalized(&mut client, ELR), finalized(&mut client, "kraft.version")), (1, 0));
    let epoch = api_versions(&mut client).finalized_features_epoch;
    // Only looked at.
    for version in 1..=2 {
        assert_eq!(update(&mut client, version, &[(ELR, 0, SAFE)], true).error_code, 0);
    }
    assert_eq!(finalized(&mut client, ELR), 1);
    assert_eq!(api_versions(&mut client).finalized_features_epoch, epoch);
    // All or none.
    let refused = update(&mut client, 1, &[(ELR, 0, SAFE), ("nope", 1, UPGRADE)], false);
    assert_eq!(code(refused.error_code), ErrorCode::InvalidUpdateVersion);
    assert_eq!(
        refused.error_message.unwrap(),
        "The update failed for all features since the following feature had an error: Invalid update version 1 for feature \
         nope. Local controller 0 does not support this feature."
    );
    assert!(refused.results.is_empty());
    assert_eq!(finalized(&mut client, ELR), 1);
    // Up to v1 each feature is named, with the message NONE.
    let updated = update(&mut client, 1, &[(ELR, 0, SAFE), ("kraft.version", 1, UPGRADE)], false);
    assert_eq!((updated.error_code, updated.error_message), (0, None));
    let results: Vec<_> = updated.results.iter().map(|r| (r.feature.as_str(), r.error_code)).collect();
    assert_eq!(results, [(ELR, 0), ("kraft.version", 0)]);
    assert_eq!(updated.results[0].error_message.as_deref(), Some("NONE"));
    assert_eq!((finalized(&mut client, ELR), finalized(&mut client, "kraft.version")), (0, 1));
    let later = api_versions(&mut client).finalized_features_epoch;
    assert!(later > epoch);
    // After a crash as well.
    let broker = broker.kill().start();
    let mut client = broker.connect();
    assert_eq!((finalized(&mut client, ELR), finalized(&mut client, "kraft.version")), (0, 1));
    assert_eq!(api_versions(&mut client).finalized_features_epoch, later);
    // v0 lowers nothing, whatever its flag says.
    let refused = update(&mut client, 0, &[("kraft.version", 0, SAFE)], false);
    assert!(refused.error_message.unwrap().ends_with(
        "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
    ));
    for kind in [SAFE, UNSAFE] {
        let refused = update(&mut client, 2, &[("kraft.version", 0, kind)], false);
        assert!(refused.error_message.unwrap().ends_with("Can't downgrade the version of this feature."));
        assert_eq!(update(&mut client, 2, &[("metadata.version", 29, kind)], false).error_code, 95);
    }
    assert_eq!(update(&mut client, 0, &[(ELR, 1, UPGRADE)], false).error_code, 0);
    let broker = broker.stop().start();
    assert_eq!(finalized(&mut broker.connect(), ELR), 1);
}

#[test]
fn transactions_go_back_to_their_first_protocol() {
    let broker = Broker::start_with(NODE_ZERO);
    let mut client = broker.connect();
    let name = "transaction.version";
    assert_eq!(finalized(&mut client, name), 2);
    assert_eq!(update(&mut client, 2, &[(name, 1, UPGRADE)], false).error_code, 95);
    assert_eq!(update(&mut client, 2, &[(name, 1, SAFE)], false).error_code, 0);
    assert_eq!(finalized(&mut client, name), 1);
    assert_eq!(update(&mut client, 2, &[(name, 0, UNSAFE)], false).error_code, 0);
    // A level of 0 is not shown.
    let response = api_versions(&mut client);
    assert!(response.finalized_features.iter().all(|feature| feature.name != name), "{response:?}");
    assert!(response.supported_features.iter().any(|feature| feature.name == name));
    let broker = broker.kill().start();
    let mut client = broker.connect();
    assert_eq!(finalized(&mut client, name), 0);
    let refused = update(&mut client, 2, &[(name, 2, SAFE)], false);
    assert!(refused.error_message.unwrap().ends_with("Can't downgrade to a newer version."));
    assert_eq!(update(&mut client, 2, &[(name, 2, UPGRADE)], false).error_code, 0);
    assert_eq!(finalized(&mut client, name), 2);
}

#[test]
fn there_is_no_authorizer() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let acl = |operation| AclCreation {
        resource_type: 2,
        resource_name: "t".into(),
        resource_pattern_type: 3,
        principal: "User:a".into(),
        host: "*".into(),
        operation,
        permission_type: 3,
    };
    let any = |operation| DeleteAclsFilter {
        resource_type_filter: 2,
        resource_name_filter: None,
        pattern_type_filter: 1,
        principal_filter: None,
        host_filter: None,
        operation,
        permission_type: 1,
    };
    let describe = |resource_type_filter| DescribeAclsRequest {
        resource_type_filter,
        resource_name_filter: None,
        pattern_type_filter: 1,
        principal_filter: None,
        host_filter: None,
        operation: 1,
        permission_type: 1,
    };
    let disabled = ErrorCode::SecurityDisabled.code();
    for version in 1..=3 {
        let described = client.call(version, &describe(1));
        assert_eq!(described.error_code, disabled);
        assert_eq!(described.error_message.as_deref(), Some("No Authorizer is configured on the broker"));
        let created = client.call(version, &CreateAclsRequest { creations: vec![acl(3), acl(4)] });
        assert!(created.results.len() == 2 && created.results.iter().all(|result| result.error_code == disabled));
        let deleted = client.call(version, &DeleteAclsRequest { filters: vec![any(1), any(1)] });
        assert!(deleted.filter_results.len() == 2);
        let message = Some("No Authorizer is configured.");
        assert!(
            deleted.filter_results.iter().all(|r| r.error_code == disabled && r.error_message.as_deref() == message)
        );
        // What is of the unknown kind closes the connection.
        let mut client = broker.connect();
        client.send(version, &describe(0));
        assert_eq!(client.receive_raw(), None);
        let mut client = broker.connect();
        client.send(version, &CreateAclsRequest { creations: vec![acl(3), acl(0)] });
        assert_eq!(client.receive_raw(), None);
        let mut client = broker.connect();
        client.send(version, &DeleteAclsRequest { filters: vec![any(0)] });
        assert_eq!(client.receive_raw(), None);
    }
}

#[test]
fn there_is_nothing_to_authenticate() {
    let broker = Broker::start();
    let mut client = broker.connect();
    for version in 0..=1 {
        let response = client.call(version, &SaslHandshakeRequest { mechanism: "PLAIN".into() });
        assert_eq!(code(response.error_code), ErrorCode::IllegalSaslState);
        assert!(response.mechanisms.is_empty());
    }
    for version in 0..=2 {
        let response = client.call(version, &SaslAuthenticateRequest { auth_bytes: b"\0a\0b"[..].into() });
        assert_eq!(code(response.error_code), ErrorCode::IllegalSaslState);
        let message = "SaslAuthenticate request received after successful authentication";
        assert_eq!(response.error_message.as_deref(), Some(message));
    }
    // The connection is still good.
    let refused = ErrorCode::DelegationTokenRequestNotAllowed.code();
    for version in 1..=3 {
        let request = CreateDelegationTokenRequest {
            owner_principal_type: Some("User".into()),
            owner_principal_name: Some("b".into()),
            ..Default::default()
        };
        let created = client.call(version, &request);
        let owner = if version >= 3 { "b" } else { "ANONYMOUS" };
        assert_eq!((created.error_code, created.principal_name.as_str()), (refused, owner));
        assert_eq!((created.issue_timestamp_ms, created.expiry_timestamp_ms, created.max_timestamp_ms), (-1, -1, -1));
        let described = client.call(version, &DescribeDelegationTokenRequest { owners: None });
        assert_eq!((described.error_code, described.tokens.len()), (refused, 0));
    }
    for version in 1..=2 {
        let renew = RenewDelegationTokenRequest { hmac: b"a"[..].into(), renew_period_ms: 1 };
        let renewed = client.call(version, &renew);
        assert_eq!((renewed.error_code, renewed.expiry_timestamp_ms), (refused, -1));
        let expire = ExpireDelegationTokenRequest { hmac: b"a"[..].into(), expiry_time_period_ms: 1 };
        let expired = client.call(version, &expire);
        assert_eq!((expired.error_code, expired.expiry_timestamp_ms), (refused, -1));
    }
}
