//! The handlers: one file an API, with its versions and the KIPs behind them on top. What is in [`ALL`] is what
//! ApiVersions advertises.

mod acls;
mod add_offsets_to_txn;
mod add_partitions_to_txn;
mod alter_client_quotas;
mod alter_configs;
mod alter_partition_reassignments;
mod alter_replica_log_dirs;
mod alter_share_group_offsets;
mod alter_user_scram_credentials;
pub(super) mod api_versions;
mod config_changes;
mod consumer_group_describe;
mod consumer_group_heartbeat;
mod create_partitions;
mod create_topics;
mod delegation_tokens;
mod delete_groups;
mod delete_records;
mod delete_share_group_offsets;
mod delete_topics;
mod describe_client_quotas;
mod describe_cluster;
mod describe_configs;
mod describe_groups;
mod describe_log_dirs;
mod describe_producers;
mod describe_quorum;
mod describe_share_group_offsets;
mod describe_topic_partitions;
mod describe_transactions;
mod describe_user_scram_credentials;
mod elect_leaders;
mod end_txn;
mod fetch;
mod find_coordinator;
mod heartbeat;
mod incremental_alter_configs;
mod init_producer_id;
mod join_group;
mod leave_group;
mod list_config_resources;
mod list_groups;
mod list_offsets;
mod list_partition_reassignments;
mod list_transactions;
mod metadata;
mod offset_commit;
mod offset_delete;
mod offset_fetch;
mod offset_for_leader_epoch;
mod produce;
mod quorum_changes;
mod sasl;
mod share_acknowledge;
mod share_fetch;
mod share_group_describe;
mod share_group_heartbeat;
mod share_group_state;
mod streams_group_describe;
mod streams_group_heartbeat;
mod sync_group;
mod txn_offset_commit;
mod update_features;
mod write_txn_markers;

use super::dispatch::Handler;

/// Every API that is served.
pub(super) static ALL: &[Handler] = &[
    acls::CREATE,
    acls::DELETE,
    acls::DESCRIBE,
    add_offsets_to_txn::HANDLER,
    add_partitions_to_txn::HANDLER,
    alter_client_quotas::HANDLER,
    alter_configs::HANDLER,
    alter_partition_reassignments::HANDLER,
    alter_replica_log_dirs::HANDLER,
    alter_share_group_offsets::HANDLER,
    alter_user_scram_credentials::HANDLER,
    api_versions::HANDLER,
    consumer_group_describe::HANDLER,
    consumer_group_heartbeat::HANDLER,
    create_partitions::HANDLER,
    create_topics::HANDLER,
    delegation_tokens::CREATE,
    delegation_tokens::DESCRIBE,
    delegation_tokens::EXPIRE,
    delegation_tokens::RENEW,
    delete_groups::HANDLER,
    delete_records::HANDLER,
    delete_share_group_offsets::HANDLER,
    delete_topics::HANDLER,
    describe_client_quotas::HANDLER,
    describe_cluster::HANDLER,
    describe_configs::HANDLER,
    describe_groups::HANDLER,
    describe_log_dirs::HANDLER,
    describe_producers::HANDLER,
    describe_quorum::HANDLER,
    describe_share_group_offsets::HANDLER,
    describe_topic_partitions::HANDLER,
    describe_transactions::HANDLER,
    describe_user_scram_credentials::HANDLER,
    elect_leaders::HANDLER,
    end_txn::HANDLER,
    fetch::HANDLER,
    find_coordinator::HANDLER,
    heartbeat::HANDLER,
    incremental_alter_configs::HANDLER,
    init_producer_id::HANDLER,
    join_group::HANDLER,
    leave_group::HANDLER,
    list_config_resources::HANDLER,
    list_groups::HANDLER,
    list_offsets::HANDLER,
    list_partition_reassignments::HANDLER,
    list_transactions::HANDLER,
    metadata::HANDLER,
    offset_commit::HANDLER,
    offset_delete::HANDLER,
    offset_fetch::HANDLER,
    offset_for_leader_epoch::HANDLER,
    produce::HANDLER,
    quorum_changes::ADD_VOTER,
    quorum_changes::REMOVE_VOTER,
    quorum_changes::UNREGISTER,
    sasl::AUTHENTICATE,
    sasl::HANDSHAKE,
    share_acknowledge::HANDLER,
    share_fetch::HANDLER,
    share_group_describe::HANDLER,
    share_group_heartbeat::HANDLER,
    share_group_state::DELETE,
    share_group_state::INITIALIZE,
    share_group_state::READ,
    share_group_state::SUMMARIZE,
    share_group_state::WRITE,
    streams_group_describe::HANDLER,
    streams_group_heartbeat::HANDLER,
    sync_group::HANDLER,
    txn_offset_commit::HANDLER,
    update_features::HANDLER,
    write_txn_markers::HANDLER,
];
