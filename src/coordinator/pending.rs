//! Offsets that belong to transactions which have not ended. Nobody sees what they say before their transaction is
//! committed; that they are there makes the offsets of their partitions unstable.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::offsets::{CommittedOffset, GroupOffsets};
use super::stored::{BadBytes, Reader, Writer};

/// Where a pending offset is stored.
///
/// | bytes | what |
/// |---|---|
/// | 1 | format version, 1 |
/// | 8 | producer id |
/// | 4, n | group: length, id in UTF-8 |
/// | 4, n | topic: length, name in UTF-8 |
/// | 4 | partition |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingOffsetKey {
    pub producer_id: i64,
    pub group: Arc<str>,
    pub topic: Arc<str>,
    pub partition: i32,
}

const VERSION: u8 = 1;

impl PendingOffsetKey {
    /// The space of the catalog's state in which pending offsets are stored, under these keys.
    pub const SPACE: &str = "pending-offsets";

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.u8(VERSION);
        writer.i64(self.producer_id);
        writer.string(&self.group);
        writer.string(&self.topic);
        writer.i32(self.partition);
        writer.finish().into()
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadBytes> {
        let mut reader = Reader::new(bytes);
        reader.version(VERSION)?;
        let key = PendingOffsetKey {
            producer_id: reader.i64("the producer id")?,
            group: reader.string("the group")?.into(),
            topic: reader.string("the topic")?.into(),
            partition: reader.i32("the partition")?,
        };
        reader.end()?;
        Ok(key)
    }
}

/// What is stored of a pending offset.
///
/// | bytes | what |
/// |---|---|
/// | 1 | format version, 1 |
/// | 4 | producer epoch |
/// | n | the stored form of the offset, see [`CommittedOffset`] |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingOffset {
    pub producer_epoch: i16,
    pub offset: CommittedOffset,
}

impl PendingOffset {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.u8(VERSION);
        writer.i32(self.producer_epoch.into());
        let mut bytes: Vec<u8> = writer.finish().into();
        bytes.extend_from_slice(&self.offset.to_bytes());
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadBytes> {
        let mut reader = Reader::new(bytes);
        reader.version(VERSION)?;
        let epoch = reader.i32("the producer epoch")?;
        let producer_epoch = i16::try_from(epoch)
            .map_err(|_| BadBytes::Contradiction { what: format!("the producer epoch is {epoch}, which is none") })?;
        Ok(PendingOffset { producer_epoch, offset: CommittedOffset::from_bytes(&bytes[5..])? })
    }
}

/// What is durable of pending offsets. A producer or group without any takes no room.
#[derive(Debug, Default)]
pub(super) struct PendingOffsets {
    groups: BTreeMap<Arc<str>, BTreeMap<i64, GroupOffsets>>,
    groups_of: BTreeMap<i64, BTreeSet<Arc<str>>>,
}

impl PendingOffsets {
    pub fn put(&mut self, group: &Arc<str>, producer: i64, topic: Arc<str>, partition: i32, offset: CommittedOffset) {
        let producers = self.groups.entry(group.clone()).or_default();
        producers.entry(producer).or_default().entry(topic).or_default().insert(partition, offset);
        self.groups_of.entry(producer).or_default().insert(group.clone());
    }

    /// Forgets what all producers have pending for one partition.
    pub fn remove(&mut self, group: &str, topic: &str, partition: i32) {
        for producer in self.producers(group, topic, partition) {
            self.remove_of(group, producer, topic, partition);
        }
    }

    /// Forgets what a producer has pending for one partition.
    pub fn remove_of(&mut self, group: &str, producer: i64, topic: &str, partition: i32) {
        let producers = self.groups.get_mut(group);
        let Some(offsets) = producers.and_then(|producers| producers.get_mut(&producer)) else { return };
        if let Some(partitions) = offsets.get_mut(topic) {
            partitions.remove(&partition);
            if partitions.is_empty() {
                offsets.remove(topic);
            }
        }
        if offsets.is_empty() {
            self.remove_producer(group, producer);
        }
    }

    fn remove_producer(&mut self, group: &str, producer: i64) {
        if let Some(producers) = self.groups.get_mut(group) {
            producers.remove(&producer);
            if producers.is_empty() {
                self.groups.remove(group);
            }
        }
        if let Some(groups) = self.groups_of.get_mut(&producer) {
            groups.remove(group);
            if groups.is_empty() {
                self.groups_of.remove(&producer);
            }
        }
    }

    pub fn remove_group(&mut self, group: &str) {
        let producers: Vec<i64> =
            self.groups.get(group).into_iter().flat_map(|producers| producers.keys()).copied().collect();
        producers.into_iter().for_each(|producer| self.remove_producer(group, producer));
    }

    /// What a producer has pending in a group.
    pub fn of_producer(&self, group: &str, producer: i64) -> Option<&GroupOffsets> {
        self.groups.get(group)?.get(&producer)
    }

    /// The groups that a producer has something pending in.
    pub fn groups_of(&self, producer: i64) -> impl Iterator<Item = &Arc<str>> {
        self.groups_of.get(&producer).into_iter().flatten()
    }

    /// The producers that have something pending for a partition.
    pub fn producers(&self, group: &str, topic: &str, partition: i32) -> Vec<i64> {
        let producers = self.groups.get(group).into_iter().flatten();
        let has = |offsets: &GroupOffsets| offsets.get(topic).is_some_and(|p| p.contains_key(&partition));
        producers.filter(|(_, offsets)| has(offsets)).map(|(producer, _)| *producer).collect()
    }

    /// The latest timestamp of what is pending for a partition, in milliseconds since the Unix epoch.
    pub fn latest_ms(&self, group: &str, topic: &str, partition: i32) -> Option<i64> {
        let producers = self.groups.get(group)?.values();
        producers.filter_map(|offsets| Some(offsets.get(topic)?.get(&partition)?.commit_timestamp_ms)).max()
    }

    pub fn has(&self, group: &str, topic: &str, partition: i32) -> bool {
        // Most groups have nothing pending.
        self.has_group(group) && !self.producers(group, topic, partition).is_empty()
    }

    pub fn has_group(&self, group: &str) -> bool {
        self.groups.contains_key(group)
    }

    /// The groups with something pending.
    pub fn groups(&self) -> impl Iterator<Item = &Arc<str>> {
        self.groups.keys()
    }

    /// Topic and partition of everything that is pending in a group; one may come more than once.
    pub fn partitions(&self, group: &str) -> impl Iterator<Item = (&Arc<str>, i32)> {
        let producers = self.groups.get(group).into_iter().flatten();
        producers.flat_map(|(_, offsets)| offsets).flat_map(|(topic, p)| p.keys().map(move |p| (topic, *p)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_comes_back_and_damage_is_named() {
        let key = PendingOffsetKey { producer_id: 7, group: "gruppe-ä".into(), topic: "t".into(), partition: 3 };
        let bytes = key.to_bytes();
        assert_eq!(PendingOffsetKey::from_bytes(&bytes), Ok(key));
        for cut in 0..bytes.len() {
            assert!(matches!(PendingOffsetKey::from_bytes(&bytes[..cut]), Err(BadBytes::Short { .. })), "cut at {cut}");
        }
        let offset = CommittedOffset {
            offset: 42,
            leader_epoch: -1,
            metadata: "m".into(),
            commit_timestamp_ms: 5,
            expire_timestamp_ms: None,
        };
        let pending = PendingOffset { producer_epoch: 7, offset };
        let bytes = pending.to_bytes();
        assert_eq!(PendingOffset::from_bytes(&bytes), Ok(pending));
        for cut in 0..bytes.len() {
            assert!(matches!(PendingOffset::from_bytes(&bytes[..cut]), Err(BadBytes::Short { .. })), "cut at {cut}");
        }
    }
}
