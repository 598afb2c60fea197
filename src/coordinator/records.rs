//! Groups, offsets and transactional ids as the records that Apache Kafka's coordinators would keep of them, made from what is
//! stored. doze keeps them otherwise; these are for those who read Kafka's topics.
//!
//! What has no place in doze, or is made of random numbers there, differs: the hash of the topics of a group is doze's own, and
//! the time of an assignment is not kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::group::{CLASSIC, Group};
use super::offsets::CommittedOffset;
use super::stored::BadBytes;
use super::topics::Partitions;
use super::transactions::{Metadata, State, Version};
use crate::protocol::Uuid;
use crate::protocol::coordinator_records::{
    About, OffsetCommitValue, TopicPartitions, TransactionLogValue, TransactionPartitions, fixed, flexible,
    transactional_id_key,
};

/// The records of one group, by key. Those that do not go into a record, for a name that is too long, are left out.
#[derive(Debug, Default)]
pub struct GroupRecords {
    pub records: BTreeMap<Bytes, Bytes>,
}

impl GroupRecords {
    pub(super) fn add(&mut self, about: About, names: &[&str], value: Option<Bytes>) {
        if let (Some(key), Some(value)) = (about.key(names, None), value) {
            self.records.insert(key, value);
        }
    }

    /// Of a group that is stored as `bytes`. `name` knows the topics.
    pub fn of(id: &Arc<str>, bytes: &[u8], name: &dyn Fn(Uuid) -> Option<Arc<str>>) -> Result<Self, BadBytes> {
        let mut records = GroupRecords::default();
        match Group::from_bytes(id.clone(), bytes)? {
            Group::Classic(group) => group.add_records(&mut records),
            Group::Consumer(group) => group.add_records(&mut records),
            Group::Share(group) => group.add_records(&mut records, name),
            Group::Streams(group) => group.add_records(&mut records),
        }
        Ok(records)
    }

    /// What Kafka writes first of a classic group: that there is one. `None` for any other group.
    pub fn first_of(id: &Arc<str>, bytes: &[u8]) -> Option<(Bytes, Bytes)> {
        let is_classic = bytes.get(1) == Some(&CLASSIC);
        is_classic.then(|| super::classic::ClassicGroup::first_record(id))?
    }
}

/// Partitions by topic, as records have them.
pub(super) fn listed(partitions: &Partitions) -> Vec<TopicPartitions> {
    let listed = |(topic_id, partitions): (&Uuid, &BTreeSet<i32>)| TopicPartitions {
        topic_id: *topic_id,
        partitions: partitions.iter().copied().collect(),
    };
    partitions.iter().map(listed).collect()
}

/// The key of an offset. `None`: a name is too long for one.
pub fn offset_key(group: &str, topic: &str, partition: i32) -> Option<Bytes> {
    About::OffsetCommit.key(&[group, topic], Some(partition))
}

/// What a group has committed, as a value.
pub fn offset_value(offset: &CommittedOffset, topic_id: Uuid) -> Option<Bytes> {
    let value = OffsetCommitValue {
        offset: offset.offset,
        leader_epoch: offset.leader_epoch,
        metadata: offset.metadata.clone(),
        commit_timestamp: offset.commit_timestamp_ms,
        expire_timestamp: offset.expire_timestamp_ms.unwrap_or(-1),
        topic_id,
    };
    if offset.expire_timestamp_ms.is_some() { fixed(1, &value) } else { flexible(4, &value) }
}

/// The key of a transactional id. `None`: it is too long for one.
pub fn transaction_key(id: &str) -> Option<Bytes> {
    transactional_id_key(id)
}

/// A transactional id that is stored as `bytes`, as a value.
pub fn transaction_value(bytes: &[u8]) -> Result<Option<Bytes>, BadBytes> {
    let stored = Metadata::from_bytes(bytes)?;
    let mut places: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for (topic, partition) in &stored.places {
        places.entry(topic).or_default().push(*partition);
    }
    let places = places.into_iter();
    let value = TransactionLogValue {
        producer_id: stored.producer_id,
        previous_producer_id: stored.previous_producer_id,
        next_producer_id: stored.next_producer_id,
        producer_epoch: stored.epoch,
        next_producer_epoch: -1,
        transaction_timeout_ms: stored.timeout_ms,
        transaction_status: stored.state as i8,
        transaction_partitions: (stored.state != State::Empty).then(|| {
            places
                .map(|(topic, partition_ids)| TransactionPartitions { topic: topic.to_owned(), partition_ids })
                .collect()
        }),
        transaction_last_update_timestamp_ms: stored.update_ms,
        transaction_start_timestamp_ms: stored.start_ms,
        client_transaction_version: match stored.version {
            Version::V1 => 0,
            Version::V2 => 2,
        },
    };
    Ok(flexible(1, &value))
}
