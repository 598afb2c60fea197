//! The table of APIs: their keys, the versions that Apache Kafka 4.3.1 has of each, and the messages they carry.

use std::ops::RangeInclusive;

use super::messages::*;
use super::wire::{Version, Wire};

/// A request that a client can send, tied to its API and its answer.
pub trait Request: Wire + Default + std::fmt::Debug {
    const API: ApiKey;
    type Response: Wire + Clone + Default + std::fmt::Debug;
}

macro_rules! apis {
    ($($api:ident = $key:literal, $lo:literal..=$hi:literal, flexible $flexible:tt, $module:ident $request:ident $response:ident;)*) => {
        /// An API that a broker names to clients.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(i16)]
        pub enum ApiKey {
            $($api = $key,)*
        }

        impl ApiKey {
            pub const ALL: &'static [ApiKey] = &[$(ApiKey::$api,)*];

            /// The API of a key on the wire. `None` for one that clients have no use for.
            pub fn from_key(key: i16) -> Option<Self> {
                match key {
                    $($key => Some(ApiKey::$api),)*
                    _ => None,
                }
            }

            /// Kafka's name of it, such as `CreateTopics`.
            pub fn name(self) -> &'static str {
                match self {
                    $(ApiKey::$api => stringify!($api),)*
                }
            }

            /// The versions that a broker of Apache Kafka 4.3.1 names to clients.
            pub fn versions(self) -> RangeInclusive<i16> {
                match self {
                    $(ApiKey::$api => $lo..=$hi,)*
                }
            }

            /// The first version with compact lengths and tagged fields. `None` if it has none.
            fn first_flexible(self) -> Option<i16> {
                match self {
                    $(ApiKey::$api => apis!(@flexible $flexible),)*
                }
            }
        }

        $(
            impl Request for $module::$request {
                const API: ApiKey = ApiKey::$api;
                type Response = $module::$response;
            }
        )*

        /// Calls `$check!(Api Request Response)` for every API.
        #[cfg(test)]
        macro_rules! for_each_api {
            ($check:ident) => {
                $($check!($api, $module::$request, $module::$response);)*
            };
        }
        #[cfg(test)]
        pub(super) use for_each_api;
    };
    (@flexible never) => { None };
    (@flexible $first:literal) => { Some($first) };
}

apis! {
    Produce = 0, 0..=13, flexible 9, produce ProduceRequest ProduceResponse;
    Fetch = 1, 4..=18, flexible 12, fetch FetchRequest FetchResponse;
    ListOffsets = 2, 1..=11, flexible 6, list_offsets ListOffsetsRequest ListOffsetsResponse;
    Metadata = 3, 0..=13, flexible 9, metadata MetadataRequest MetadataResponse;
    OffsetCommit = 8, 2..=10, flexible 8, offset_commit OffsetCommitRequest OffsetCommitResponse;
    OffsetFetch = 9, 1..=10, flexible 6, offset_fetch OffsetFetchRequest OffsetFetchResponse;
    FindCoordinator = 10, 0..=6, flexible 3, find_coordinator FindCoordinatorRequest FindCoordinatorResponse;
    JoinGroup = 11, 0..=9, flexible 6, join_group JoinGroupRequest JoinGroupResponse;
    Heartbeat = 12, 0..=4, flexible 4, heartbeat HeartbeatRequest HeartbeatResponse;
    LeaveGroup = 13, 0..=5, flexible 4, leave_group LeaveGroupRequest LeaveGroupResponse;
    SyncGroup = 14, 0..=5, flexible 4, sync_group SyncGroupRequest SyncGroupResponse;
    DescribeGroups = 15, 0..=6, flexible 5, describe_groups DescribeGroupsRequest DescribeGroupsResponse;
    ListGroups = 16, 0..=5, flexible 3, list_groups ListGroupsRequest ListGroupsResponse;
    SaslHandshake = 17, 0..=1, flexible never, sasl_handshake SaslHandshakeRequest SaslHandshakeResponse;
    ApiVersions = 18, 0..=4, flexible 3, api_versions ApiVersionsRequest ApiVersionsResponse;
    CreateTopics = 19, 2..=7, flexible 5, create_topics CreateTopicsRequest CreateTopicsResponse;
    DeleteTopics = 20, 1..=6, flexible 4, delete_topics DeleteTopicsRequest DeleteTopicsResponse;
    DeleteRecords = 21, 0..=2, flexible 2, delete_records DeleteRecordsRequest DeleteRecordsResponse;
    InitProducerId = 22, 0..=5, flexible 2, init_producer_id InitProducerIdRequest InitProducerIdResponse;
    OffsetForLeaderEpoch = 23, 2..=4, flexible 4, offset_for_leader_epoch OffsetForLeaderEpochRequest OffsetForLeaderEpochResponse;
    AddPartitionsToTxn = 24, 0..=5, flexible 3, add_partitions_to_txn AddPartitionsToTxnRequest AddPartitionsToTxnResponse;
    AddOffsetsToTxn = 25, 0..=4, flexible 3, add_offsets_to_txn AddOffsetsToTxnRequest AddOffsetsToTxnResponse;
    EndTxn = 26, 0..=5, flexible 3, end_txn EndTxnRequest EndTxnResponse;
    WriteTxnMarkers = 27, 1..=2, flexible 1, write_txn_markers WriteTxnMarkersRequest WriteTxnMarkersResponse;
    TxnOffsetCommit = 28, 0..=5, flexible 3, txn_offset_commit TxnOffsetCommitRequest TxnOffsetCommitResponse;
    DescribeAcls = 29, 1..=3, flexible 2, describe_acls DescribeAclsRequest DescribeAclsResponse;
    CreateAcls = 30, 1..=3, flexible 2, create_acls CreateAclsRequest CreateAclsResponse;
    DeleteAcls = 31, 1..=3, flexible 2, delete_acls DeleteAclsRequest DeleteAclsResponse;
    DescribeConfigs = 32, 1..=4, flexible 4, describe_configs DescribeConfigsRequest DescribeConfigsResponse;
    AlterConfigs = 33, 0..=2, flexible 2, alter_configs AlterConfigsRequest AlterConfigsResponse;
    AlterReplicaLogDirs = 34, 1..=2, flexible 2, alter_replica_log_dirs AlterReplicaLogDirsRequest AlterReplicaLogDirsResponse;
    DescribeLogDirs = 35, 1..=5, flexible 2, describe_log_dirs DescribeLogDirsRequest DescribeLogDirsResponse;
    SaslAuthenticate = 36, 0..=2, flexible 2, sasl_authenticate SaslAuthenticateRequest SaslAuthenticateResponse;
    CreatePartitions = 37, 0..=3, flexible 2, create_partitions CreatePartitionsRequest CreatePartitionsResponse;
    CreateDelegationToken = 38, 1..=3, flexible 2, create_delegation_token CreateDelegationTokenRequest CreateDelegationTokenResponse;
    RenewDelegationToken = 39, 1..=2, flexible 2, renew_delegation_token RenewDelegationTokenRequest RenewDelegationTokenResponse;
    ExpireDelegationToken = 40, 1..=2, flexible 2, expire_delegation_token ExpireDelegationTokenRequest ExpireDelegationTokenResponse;
    DescribeDelegationToken = 41, 1..=3, flexible 2, describe_delegation_token DescribeDelegationTokenRequest DescribeDelegationTokenResponse;
    DeleteGroups = 42, 0..=2, flexible 2, delete_groups DeleteGroupsRequest DeleteGroupsResponse;
    ElectLeaders = 43, 0..=2, flexible 2, elect_leaders ElectLeadersRequest ElectLeadersResponse;
    IncrementalAlterConfigs = 44, 0..=1, flexible 1, incremental_alter_configs IncrementalAlterConfigsRequest IncrementalAlterConfigsResponse;
    AlterPartitionReassignments = 45, 0..=1, flexible 0, alter_partition_reassignments AlterPartitionReassignmentsRequest AlterPartitionReassignmentsResponse;
    ListPartitionReassignments = 46, 0..=0, flexible 0, list_partition_reassignments ListPartitionReassignmentsRequest ListPartitionReassignmentsResponse;
    OffsetDelete = 47, 0..=0, flexible never, offset_delete OffsetDeleteRequest OffsetDeleteResponse;
    DescribeClientQuotas = 48, 0..=1, flexible 1, describe_client_quotas DescribeClientQuotasRequest DescribeClientQuotasResponse;
    AlterClientQuotas = 49, 0..=1, flexible 1, alter_client_quotas AlterClientQuotasRequest AlterClientQuotasResponse;
    DescribeUserScramCredentials = 50, 0..=0, flexible 0, describe_user_scram_credentials DescribeUserScramCredentialsRequest DescribeUserScramCredentialsResponse;
    AlterUserScramCredentials = 51, 0..=0, flexible 0, alter_user_scram_credentials AlterUserScramCredentialsRequest AlterUserScramCredentialsResponse;
    DescribeQuorum = 55, 0..=2, flexible 0, describe_quorum DescribeQuorumRequest DescribeQuorumResponse;
    UpdateFeatures = 57, 0..=2, flexible 0, update_features UpdateFeaturesRequest UpdateFeaturesResponse;
    DescribeCluster = 60, 0..=2, flexible 0, describe_cluster DescribeClusterRequest DescribeClusterResponse;
    DescribeProducers = 61, 0..=0, flexible 0, describe_producers DescribeProducersRequest DescribeProducersResponse;
    UnregisterBroker = 64, 0..=0, flexible 0, unregister_broker UnregisterBrokerRequest UnregisterBrokerResponse;
    DescribeTransactions = 65, 0..=0, flexible 0, describe_transactions DescribeTransactionsRequest DescribeTransactionsResponse;
    ListTransactions = 66, 0..=2, flexible 0, list_transactions ListTransactionsRequest ListTransactionsResponse;
    ConsumerGroupHeartbeat = 68, 0..=1, flexible 0, consumer_group_heartbeat ConsumerGroupHeartbeatRequest ConsumerGroupHeartbeatResponse;
    ConsumerGroupDescribe = 69, 0..=1, flexible 0, consumer_group_describe ConsumerGroupDescribeRequest ConsumerGroupDescribeResponse;
    GetTelemetrySubscriptions = 71, 0..=0, flexible 0, get_telemetry_subscriptions GetTelemetrySubscriptionsRequest GetTelemetrySubscriptionsResponse;
    PushTelemetry = 72, 0..=0, flexible 0, push_telemetry PushTelemetryRequest PushTelemetryResponse;
    ListConfigResources = 74, 0..=1, flexible 0, list_config_resources ListConfigResourcesRequest ListConfigResourcesResponse;
    DescribeTopicPartitions = 75, 0..=0, flexible 0, describe_topic_partitions DescribeTopicPartitionsRequest DescribeTopicPartitionsResponse;
    ShareGroupHeartbeat = 76, 1..=1, flexible 0, share_group_heartbeat ShareGroupHeartbeatRequest ShareGroupHeartbeatResponse;
    ShareGroupDescribe = 77, 1..=1, flexible 0, share_group_describe ShareGroupDescribeRequest ShareGroupDescribeResponse;
    ShareFetch = 78, 1..=2, flexible 0, share_fetch ShareFetchRequest ShareFetchResponse;
    ShareAcknowledge = 79, 1..=2, flexible 0, share_acknowledge ShareAcknowledgeRequest ShareAcknowledgeResponse;
    AddRaftVoter = 80, 0..=1, flexible 0, add_raft_voter AddRaftVoterRequest AddRaftVoterResponse;
    RemoveRaftVoter = 81, 0..=0, flexible 0, remove_raft_voter RemoveRaftVoterRequest RemoveRaftVoterResponse;
    InitializeShareGroupState = 83, 0..=0, flexible 0, initialize_share_group_state InitializeShareGroupStateRequest InitializeShareGroupStateResponse;
    ReadShareGroupState = 84, 0..=0, flexible 0, read_share_group_state ReadShareGroupStateRequest ReadShareGroupStateResponse;
    WriteShareGroupState = 85, 0..=1, flexible 0, write_share_group_state WriteShareGroupStateRequest WriteShareGroupStateResponse;
    DeleteShareGroupState = 86, 0..=0, flexible 0, delete_share_group_state DeleteShareGroupStateRequest DeleteShareGroupStateResponse;
    ReadShareGroupStateSummary = 87, 0..=1, flexible 0, read_share_group_state_summary ReadShareGroupStateSummaryRequest ReadShareGroupStateSummaryResponse;
    StreamsGroupHeartbeat = 88, 0..=0, flexible 0, streams_group_heartbeat StreamsGroupHeartbeatRequest StreamsGroupHeartbeatResponse;
    StreamsGroupDescribe = 89, 0..=0, flexible 0, streams_group_describe StreamsGroupDescribeRequest StreamsGroupDescribeResponse;
    DescribeShareGroupOffsets = 90, 0..=1, flexible 0, describe_share_group_offsets DescribeShareGroupOffsetsRequest DescribeShareGroupOffsetsResponse;
    AlterShareGroupOffsets = 91, 0..=0, flexible 0, alter_share_group_offsets AlterShareGroupOffsetsRequest AlterShareGroupOffsetsResponse;
    DeleteShareGroupOffsets = 92, 0..=0, flexible 0, delete_share_group_offsets DeleteShareGroupOffsetsRequest DeleteShareGroupOffsetsResponse;
}

impl ApiKey {
    /// The key on the wire.
    pub fn key(self) -> i16 {
        self as i16
    }

    /// The versions that Apache Kafka 4.3.1 names when `unstable.api.versions.enable` is on: those that are still being
    /// worked on too.
    pub fn unstable_versions(self) -> RangeInclusive<i16> {
        match self {
            ApiKey::InitProducerId => *self.versions().start()..=6,
            _ => self.versions(),
        }
    }

    /// How version `number` of its messages is written.
    pub fn version(self, number: i16) -> Version {
        Version { number, flexible: self.first_flexible().is_some_and(|first| number >= first) }
    }
}
