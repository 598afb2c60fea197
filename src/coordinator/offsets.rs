//! Committed offsets: what is durable of them, for groups of every kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::stored::{BadBytes, Reader, Writer};

/// What a group has committed for one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    pub offset: i64,
    /// -1 when the client did not know it.
    pub leader_epoch: i32,
    pub metadata: String,
    /// Milliseconds since the Unix epoch.
    pub commit_timestamp_ms: i64,
    /// Milliseconds since the Unix epoch, when the client itself said how long to keep the offset.
    pub expire_timestamp_ms: Option<i64>,
}

/// | bytes | what |
/// |---|---|
/// | 1 | format version, 1 |
/// | 8 | offset |
/// | 4 | leader epoch, or -1 |
/// | 8 | commit timestamp, milliseconds since the Unix epoch |
/// | 1, 8 | 0, or 1 and the expire timestamp |
/// | 4, n | length of the metadata, metadata in UTF-8 |
const VERSION: u8 = 1;

impl CommittedOffset {
    /// The stored form.
    pub fn to_bytes(&self) -> Bytes {
        let mut writer = Writer::default();
        writer.u8(VERSION);
        writer.i64(self.offset);
        writer.i32(self.leader_epoch);
        writer.i64(self.commit_timestamp_ms);
        writer.option(self.expire_timestamp_ms, Writer::i64);
        writer.string(&self.metadata);
        writer.finish()
    }

    /// Reads the stored form.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadBytes> {
        let mut reader = Reader::new(bytes);
        reader.version(VERSION)?;
        let offset = CommittedOffset {
            offset: reader.i64("the offset")?,
            leader_epoch: reader.i32("the leader epoch")?,
            commit_timestamp_ms: reader.i64("the commit timestamp")?,
            expire_timestamp_ms: reader.option("the expire timestamp", Reader::i64)?,
            metadata: reader.string("the metadata")?,
        };
        reader.end()?;
        Ok(offset)
    }
}

pub(super) type GroupOffsets = BTreeMap<Arc<str>, BTreeMap<i32, CommittedOffset>>;

/// The durable offsets of every group. A group without any takes no room.
#[derive(Debug, Default)]
pub(super) struct Offsets {
    groups: BTreeMap<Arc<str>, GroupOffsets>,
}

impl Offsets {
    pub fn group(&self, group: &str) -> Option<&GroupOffsets> {
        self.groups.get(group)
    }

    pub fn get(&self, group: &str, topic: &str, partition: i32) -> Option<&CommittedOffset> {
        self.groups.get(group)?.get(topic)?.get(&partition)
    }

    pub fn put(&mut self, group: &Arc<str>, topic: Arc<str>, partition: i32, offset: CommittedOffset) {
        self.groups.entry(group.clone()).or_default().entry(topic).or_default().insert(partition, offset);
    }

    pub fn remove(&mut self, group: &str, topic: &str, partition: i32) {
        let Some(topics) = self.groups.get_mut(group) else { return };
        if let Some(partitions) = topics.get_mut(topic) {
            partitions.remove(&partition);
            if partitions.is_empty() {
                topics.remove(topic);
            }
        }
        if topics.is_empty() {
            self.groups.remove(group);
        }
    }

    pub fn remove_group(&mut self, group: &str) {
        self.groups.remove(group);
    }

    /// Topic and partition of everything that the group has committed.
    pub fn partitions(&self, group: &str) -> impl Iterator<Item = (&Arc<str>, i32)> {
        self.groups
            .get(group)
            .into_iter()
            .flatten()
            .flat_map(|(topic, partitions)| partitions.keys().map(move |partition| (topic, *partition)))
    }

    /// The groups that have committed something.
    pub fn groups(&self) -> impl Iterator<Item = &Arc<str>> {
        self.groups.keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_form_comes_back_and_damage_is_named() {
        let offset = CommittedOffset {
            offset: 42,
            leader_epoch: 7,
            metadata: "möglich".into(),
            commit_timestamp_ms: 1_700_000_000_000,
            expire_timestamp_ms: Some(5),
        };
        let bytes = offset.to_bytes();
        assert_eq!(CommittedOffset::from_bytes(&bytes), Ok(offset.clone()));
        let plain = CommittedOffset { expire_timestamp_ms: None, metadata: String::new(), ..offset };
        assert_eq!(CommittedOffset::from_bytes(&plain.to_bytes()), Ok(plain));
        for cut in 0..bytes.len() {
            assert!(matches!(CommittedOffset::from_bytes(&bytes[..cut]), Err(BadBytes::Short { .. })), "cut at {cut}");
        }
        let mut longer = bytes.to_vec();
        longer.push(0);
        assert_eq!(CommittedOffset::from_bytes(&longer), Err(BadBytes::LeftOver { position: bytes.len(), left: 1 }));
        longer[0] = 2;
        assert_eq!(
            CommittedOffset::from_bytes(&longer),
            Err(BadBytes::Version { position: 0, found: 2, expected: VERSION })
        );
    }
}
