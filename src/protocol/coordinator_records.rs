//! The records in which Apache Kafka's coordinators keep what they know, in `__consumer_offsets` and `__transaction_state`.
//!
//! A key is two bytes that say what the record is about, and the names of that; a value is two bytes of version, and a message
//! of that version. Names, types and versions are those of Apache Kafka 4.3.1.

use bytes::{BufMut, Bytes, BytesMut};

use super::message::message;
use super::uuid::Uuid;
use super::wire::{Version, Wire, Writer};

/// What a record is about. The numbers are Kafka's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i16)]
pub enum About {
    OffsetCommit = 1,
    Group = 2,
    ConsumerGroup = 3,
    ConsumerMember = 5,
    ConsumerTarget = 6,
    ConsumerTargetOfMember = 7,
    ConsumerAssignment = 8,
    ShareMember = 10,
    ShareGroup = 11,
    ShareTarget = 12,
    ShareTargetOfMember = 13,
    ShareAssignment = 14,
    SharePartitions = 15,
    StreamsGroup = 17,
    StreamsMember = 19,
    StreamsTarget = 20,
    StreamsTargetOfMember = 21,
    StreamsAssignment = 22,
    StreamsTopology = 23,
}

impl About {
    /// The key of a record about what has these names, and this partition. `None`: a name is longer than a key can say.
    pub fn key(self, names: &[&str], partition: Option<i32>) -> Option<Bytes> {
        key(self as i16, names, partition)
    }
}

/// The key of a record in `__transaction_state`.
pub fn transactional_id_key(id: &str) -> Option<Bytes> {
    key(0, &[id], None)
}

fn key(about: i16, names: &[&str], partition: Option<i32>) -> Option<Bytes> {
    let mut bytes = BytesMut::with_capacity(6 + names.iter().map(|name| name.len() + 2).sum::<usize>());
    bytes.put_i16(about);
    for name in names {
        bytes.put_i16(i16::try_from(name.len()).ok()?);
        bytes.put_slice(name.as_bytes());
    }
    if let Some(partition) = partition {
        bytes.put_i32(partition);
    }
    Some(bytes.freeze())
}

/// A value of a version that has compact lengths and tagged fields.
pub fn flexible(number: i16, message: &impl Wire) -> Option<Bytes> {
    value(Version { number, flexible: true }, message)
}

/// A value of a version from before there were any.
pub fn fixed(number: i16, message: &impl Wire) -> Option<Bytes> {
    value(Version { number, flexible: false }, message)
}

fn value(version: Version, message: &impl Wire) -> Option<Bytes> {
    let mut writer = Writer::new();
    version.number.write(&mut writer, version);
    message.write(&mut writer, version);
    writer.into_bytes().ok()
}

message! {
    /// Version 1 where the client has said how long to keep the offset, otherwise 4.
    OffsetCommitValue {
        offset: i64;
        leader_epoch: i32, in 3.., default -1;
        metadata: String;
        commit_timestamp: i64;
        expire_timestamp: i64, in 1..=1, default -1;
        topic_id: Uuid, in 4.., tag 0;
    }

    /// Version 3.
    GroupMetadataValue {
        protocol_type: String;
        generation: i32;
        protocol: Option<String>, null ..;
        leader: Option<String>, null ..;
        current_state_timestamp: i64, in 2.., default -1;
        members: Vec<GroupMember>;
    }

    GroupMember {
        member_id: String;
        group_instance_id: Option<String>, in 3.., null 3..;
        client_id: String;
        client_host: String;
        rebalance_timeout: i32, in 1.., default -1;
        session_timeout: i32;
        subscription: bytes::Bytes;
        assignment: bytes::Bytes;
    }

    ConsumerGroupMetadataValue {
        epoch: i32;
        metadata_hash: i64, tag 0;
    }

    ConsumerGroupMemberMetadataValue {
        instance_id: Option<String>, null ..;
        rack_id: Option<String>, null ..;
        client_id: String;
        client_host: String;
        subscribed_topic_names: Vec<String>;
        subscribed_topic_regex: Option<String>, null ..;
        rebalance_timeout_ms: i32, default -1;
        server_assignor: Option<String>, null ..;
        classic_member_metadata: Option<ClassicMemberMetadata>, tag 0, null ..;
    }

    ClassicMemberMetadata {
        session_timeout_ms: i32;
        supported_protocols: Vec<ClassicProtocol>;
    }

    ClassicProtocol {
        name: String;
        metadata: bytes::Bytes;
    }

    /// Of consumer, share and streams groups alike.
    TargetAssignmentMetadataValue {
        assignment_epoch: i32;
        assignment_timestamp: i64, tag 0;
    }

    /// Of consumer and share groups alike.
    TargetAssignmentMemberValue {
        topic_partitions: Vec<TopicPartitions>;
    }

    TopicPartitions {
        topic_id: Uuid;
        partitions: Vec<i32>;
    }

    ConsumerGroupCurrentMemberAssignmentValue {
        member_epoch: i32;
        previous_member_epoch: i32;
        state: i8;
        assigned_partitions: Vec<OwnedPartitions>;
        partitions_pending_revocation: Vec<OwnedPartitions>;
    }

    OwnedPartitions {
        topic_id: Uuid;
        partitions: Vec<i32>;
        assignment_epochs: Option<Vec<i32>>, tag 0, null ..;
    }

    ShareGroupMetadataValue {
        epoch: i32;
        metadata_hash: i64;
    }

    ShareGroupMemberMetadataValue {
        rack_id: Option<String>, null ..;
        client_id: String;
        client_host: String;
        subscribed_topic_names: Vec<String>;
    }

    ShareGroupCurrentMemberAssignmentValue {
        member_epoch: i32;
        previous_member_epoch: i32;
        state: i8;
        assigned_partitions: Vec<TopicPartitions>;
    }

    ShareGroupStatePartitionMetadataValue {
        initializing_topics: Vec<TopicPartitionsInfo>;
        initialized_topics: Vec<TopicPartitionsInfo>;
        deleting_topics: Vec<TopicPartitionsInfo>;
    }

    TopicPartitionsInfo {
        topic_id: Uuid;
        topic_name: String;
        partitions: Vec<i32>;
    }

    StreamsGroupMetadataValue {
        epoch: i32;
        metadata_hash: i64;
        validated_topology_epoch: i32, tag 0, default -1;
        last_assignment_configs: Option<Vec<KeyValue>>, tag 1, null ..;
    }

    KeyValue {
        key: String;
        value: String;
    }

    StreamsGroupMemberMetadataValue {
        instance_id: Option<String>, null ..;
        rack_id: Option<String>, null ..;
        client_id: String;
        client_host: String;
        rebalance_timeout_ms: i32, default -1;
        topology_epoch: i32;
        process_id: String;
        user_endpoint: Option<Endpoint>, null ..;
        client_tags: Vec<KeyValue>;
    }

    Endpoint {
        host: String;
        port: u16;
    }

    StreamsGroupTargetAssignmentMemberValue {
        active_tasks: Vec<TaskIds>;
        standby_tasks: Vec<TaskIds>;
        warmup_tasks: Vec<TaskIds>;
    }

    TaskIds {
        subtopology_id: String;
        partitions: Vec<i32>;
        assignment_epochs: Option<Vec<i32>>, tag 0, null ..;
    }

    StreamsGroupCurrentMemberAssignmentValue {
        member_epoch: i32;
        previous_member_epoch: i32;
        state: i8;
        active_tasks: Vec<TaskIds>;
        standby_tasks: Vec<TaskIds>;
        warmup_tasks: Vec<TaskIds>;
        active_tasks_pending_revocation: Vec<TaskIds>;
        standby_tasks_pending_revocation: Vec<TaskIds>;
        warmup_tasks_pending_revocation: Vec<TaskIds>;
    }

    StreamsGroupTopologyValue {
        epoch: i32;
        subtopologies: Vec<Subtopology>;
    }

    Subtopology {
        subtopology_id: String;
        source_topics: Vec<String>;
        source_topic_regex: Vec<String>;
        state_changelog_topics: Vec<TopicInfo>;
        repartition_sink_topics: Vec<String>;
        repartition_source_topics: Vec<TopicInfo>;
        copartition_groups: Vec<CopartitionGroup>;
    }

    TopicInfo {
        name: String;
        partitions: i32;
        replication_factor: i16;
        topic_configs: Vec<KeyValue>;
    }

    CopartitionGroup {
        source_topics: Vec<i16>;
        source_topic_regex: Vec<i16>;
        repartition_source_topics: Vec<i16>;
    }

    /// Version 1.
    TransactionLogValue {
        producer_id: i64;
        previous_producer_id: i64, in 1.., tag 0, default -1;
        next_producer_id: i64, in 1.., tag 1, default -1;
        producer_epoch: i16;
        next_producer_epoch: i16, in 1.., tag 3, default -1;
        transaction_timeout_ms: i32;
        transaction_status: i8;
        transaction_partitions: Option<Vec<TransactionPartitions>>, null ..;
        transaction_last_update_timestamp_ms: i64;
        transaction_start_timestamp_ms: i64;
        client_transaction_version: i16, in 1.., tag 2;
    }

    TransactionPartitions {
        topic: String;
        partition_ids: Vec<i32>;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes are those that Kafka's own classes write for the same fields.
    #[track_caller]
    fn check(value: Option<Bytes>, expected: &str) {
        assert_eq!(hex(&value.unwrap()), expected);
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn pair() -> Vec<KeyValue> {
        vec![KeyValue { key: "k".into(), value: "v".into() }]
    }

    const ID: Uuid = Uuid([7; 16]);

    #[test]
    fn keys_are_as_kafka_writes_them() {
        check(About::OffsetCommit.key(&["g", "t"], Some(3)), "000100016700017400000003");
        check(About::ConsumerMember.key(&["g", "m"], None), "000500016700016d");
        check(transactional_id_key("x"), "0000000178");
        assert_eq!(transactional_id_key(&"x".repeat(40_000)), None);
    }

    #[test]
    fn offsets_and_transactions_are_as_kafka_writes_them() {
        let offset = OffsetCommitValue {
            offset: 5,
            leader_epoch: 2,
            metadata: "n".into(),
            commit_timestamp: 1000,
            expire_timestamp: 2000,
            topic_id: ID,
        };
        check(flexible(4, &offset), OFFSET);
        check(fixed(1, &offset), OFFSET_THAT_EXPIRES);
        let transaction = TransactionLogValue {
            producer_id: 5,
            previous_producer_id: 4,
            producer_epoch: 2,
            transaction_timeout_ms: 7,
            transaction_status: 1,
            transaction_partitions: Some(vec![TransactionPartitions { topic: "t".into(), partition_ids: vec![0, 1] }]),
            transaction_last_update_timestamp_ms: 1000,
            transaction_start_timestamp_ms: 900,
            client_transaction_version: 2,
            ..Default::default()
        };
        check(flexible(1, &transaction), TRANSACTION);
    }

    #[test]
    fn classic_and_consumer_groups_are_as_kafka_writes_them() {
        let member = GroupMember {
            member_id: "m".into(),
            group_instance_id: Some("i".into()),
            client_id: "c".into(),
            client_host: "/h".into(),
            rebalance_timeout: 7,
            session_timeout: 8,
            subscription: Bytes::from("s"),
            assignment: Bytes::from("a"),
        };
        let group = GroupMetadataValue {
            protocol_type: "consumer".into(),
            generation: 4,
            protocol: Some("range".into()),
            leader: Some("m".into()),
            current_state_timestamp: 1000,
            members: vec![member],
        };
        check(fixed(3, &group), CLASSIC);
        check(fixed(3, &GroupMetadataValue::default()), EMPTY);
        check(flexible(0, &ConsumerGroupMetadataValue { epoch: 3, metadata_hash: 9 }), CONSUMER);
        let protocol = ClassicProtocol { name: "range".into(), metadata: Bytes::from("s") };
        let classic = ClassicMemberMetadata { session_timeout_ms: 8, supported_protocols: vec![protocol] };
        let member = ConsumerGroupMemberMetadataValue {
            instance_id: Some("i".into()),
            client_id: "c".into(),
            client_host: "/h".into(),
            subscribed_topic_names: vec!["t".into(), "u".into()],
            subscribed_topic_regex: Some("t.*".into()),
            rebalance_timeout_ms: 7,
            classic_member_metadata: Some(classic),
            ..Default::default()
        };
        check(flexible(0, &member), CONSUMER_MEMBER);
        let owned = OwnedPartitions { topic_id: ID, partitions: vec![0, 1], assignment_epochs: Some(vec![2, 3]) };
        let assignment = ConsumerGroupCurrentMemberAssignmentValue {
            member_epoch: 3,
            previous_member_epoch: 2,
            state: 1,
            assigned_partitions: vec![owned],
            ..Default::default()
        };
        check(flexible(0, &assignment), CONSUMER_ASSIGNMENT);
        check(flexible(0, &TargetAssignmentMetadataValue { assignment_epoch: 3, ..Default::default() }), TARGET);
        let target = TargetAssignmentMemberValue {
            topic_partitions: vec![TopicPartitions { topic_id: ID, partitions: vec![0, 1] }],
        };
        check(flexible(0, &target), TARGET_OF_MEMBER);
    }

    #[test]
    fn share_and_streams_groups_are_as_kafka_writes_them() {
        let topic = TopicPartitionsInfo { topic_id: ID, topic_name: "t".into(), partitions: vec![0] };
        let partitions =
            ShareGroupStatePartitionMetadataValue { initialized_topics: vec![topic], ..Default::default() };
        check(flexible(0, &partitions), SHARE_PARTITIONS);
        let group = StreamsGroupMetadataValue {
            epoch: 3,
            metadata_hash: 9,
            validated_topology_epoch: 2,
            last_assignment_configs: Some(pair()),
        };
        check(flexible(0, &group), STREAMS);
        let member = StreamsGroupMemberMetadataValue {
            rack_id: Some("r".into()),
            client_id: "c".into(),
            client_host: "/h".into(),
            rebalance_timeout_ms: 7,
            topology_epoch: 1,
            process_id: "p".into(),
            user_endpoint: Some(Endpoint { host: "h".into(), port: 9 }),
            client_tags: pair(),
            ..Default::default()
        };
        check(flexible(0, &member), STREAMS_MEMBER);
        let tasks = |partition, epoch: Option<i32>| TaskIds {
            subtopology_id: "0".into(),
            partitions: vec![partition],
            assignment_epochs: epoch.map(|epoch| vec![epoch]),
        };
        let assignment = StreamsGroupCurrentMemberAssignmentValue {
            member_epoch: 3,
            previous_member_epoch: 2,
            state: 1,
            active_tasks: vec![tasks(1, Some(3))],
            standby_tasks: vec![tasks(2, None)],
            ..Default::default()
        };
        check(flexible(0, &assignment), STREAMS_ASSIGNMENT);
        let changelog = TopicInfo { name: "c".into(), partitions: 0, replication_factor: 1, topic_configs: pair() };
        let subtopology = Subtopology {
            subtopology_id: "0".into(),
            source_topics: vec!["t".into()],
            state_changelog_topics: vec![changelog],
            repartition_sink_topics: vec!["s".into()],
            copartition_groups: vec![CopartitionGroup { source_topics: vec![0], ..Default::default() }],
            ..Default::default()
        };
        check(flexible(0, &StreamsGroupTopologyValue { epoch: 1, subtopologies: vec![subtopology] }), STREAMS_TOPOLOGY);
    }

    const OFFSET: &str = "0004000000000000000500000002026e00000000000003e801001007070707070707070707070707070707";
    const OFFSET_THAT_EXPIRES: &str = "0001000000000000000500016e00000000000003e800000000000007d0";
    const CLASSIC: &str = "00030008636f6e73756d657200000004000572616e676500016d00000000000003e80000000100016d00016900016300\
        022f68000000070000000800000001730000000161";
    const EMPTY: &str = "0003000000000000ffffffffffffffffffffffff00000000";
    const CONSUMER: &str = "0000000000030100080000000000000009";
    const CONSUMER_MEMBER: &str =
        "00000269000263032f68030274027504742e2a00000007000100100100000008020672616e676502730000";
    const CONSUMER_ASSIGNMENT: &str = "000000000003000000020102070707070707070707070707070707070300000000000000010100090300000002000000\
        030100";
    const TARGET: &str = "00000000000300";
    const TARGET_OF_MEMBER: &str = "000002070707070707070707070707070707070300000000000000010000";
    const SHARE_PARTITIONS: &str = "000001020707070707070707070707070707070702740200000000000100";
    const STREAMS: &str = "000000000003000000000000000902000400000002010602026b027600";
    const STREAMS_MEMBER: &str = "00000002720263032f680000000700000001027001026800090002026b02760000";
    const STREAMS_ASSIGNMENT: &str =
        "0000000000030000000201020230020000000101000502000000030202300200000002000101010100";
    const STREAMS_TOPOLOGY: &str =
        "0000000000010202300202740102026300000000000102026b0276000002027301020200000101000000";
    const TRANSACTION: &str = "00010000000000000005000200000007010202740300000000000000010000000000000003e800000000000003840200\
        08000000000000000402020002";
}
