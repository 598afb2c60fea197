//! The offsets that groups have committed. They stay on the disk and are read from there.

use super::Catalog;
use super::codec::{Decoder, Encoder, Malformed};
use super::error::CatalogError;
use super::tables::{OFFSETS, groups_with_offsets};
use crate::protocol::Uuid;

/// How far a group has come in a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    pub offset: i64,
    /// Of the last record consumed; -1 when the client did not say.
    pub leader_epoch: i32,
    /// The client's own.
    pub metadata: String,
    /// In milliseconds since the Unix epoch.
    pub commit_timestamp_ms: i64,
    /// When it expires by itself, where the client asked for that (OffsetCommit up to version 4).
    pub expire_timestamp_ms: Option<i64>,
    /// Of the topic it was committed for; zero when not known.
    pub topic_id: Uuid,
}

impl CommittedOffset {
    pub(super) fn encode(&self) -> Vec<u8> {
        Encoder::new(0)
            .i64(self.offset)
            .i32(self.leader_epoch)
            .string(&self.metadata)
            .i64(self.commit_timestamp_ms)
            .option_i64(self.expire_timestamp_ms)
            .id(self.topic_id)
            .finish()
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut value = Decoder::new("a committed offset", bytes, 0)?;
        let offset = CommittedOffset {
            offset: value.i64()?,
            leader_epoch: value.i32()?,
            metadata: value.string()?.to_owned(),
            commit_timestamp_ms: value.i64()?,
            expire_timestamp_ms: value.option_i64()?,
            topic_id: value.id()?,
        };
        value.finish()?;
        Ok(offset)
    }
}

impl Catalog {
    /// What `group` has committed for one partition.
    pub fn offset(&self, group: &str, topic: &str, partition: i32) -> Result<Option<CommittedOffset>, CatalogError> {
        self.read(|transaction| {
            let value = transaction.open_table(OFFSETS)?.get((group, topic, partition))?;
            Ok(value.map(|value| CommittedOffset::decode(value.value())).transpose()?)
        })
    }

    /// All that `group` has committed, sorted by topic and partition.
    pub fn offsets(&self, group: &str) -> Result<Vec<(String, i32, CommittedOffset)>, CatalogError> {
        let after = format!("{group}\0");
        self.read(|transaction| {
            let mut offsets = Vec::new();
            let range = (group, "", i32::MIN)..(after.as_str(), "", i32::MIN);
            for entry in transaction.open_table(OFFSETS)?.range(range)? {
                let (key, value) = entry?;
                let (_, topic, partition) = key.value();
                offsets.push((topic.to_owned(), partition, CommittedOffset::decode(value.value())?));
            }
            Ok(offsets)
        })
    }

    /// The groups that have committed an offset, sorted. Costs one look into the file a group.
    pub fn groups_with_offsets(&self) -> Result<Vec<String>, CatalogError> {
        self.read(|transaction| Ok(groups_with_offsets(&transaction.open_table(OFFSETS)?)?))
    }
}
