//! What the state of a share partition is stored under. Numbers are big-endian.

use std::sync::Arc;

use crate::coordinator::stored::{BadBytes, Reader, Writer};
use crate::protocol::Uuid;

const VERSION: u8 = 1;

/// What a share partition is stored under.
///
/// | bytes | what |
/// |---|---|
/// | 1 | format version, 1 |
/// | 4, n | group: length, id in UTF-8 |
/// | 16 | topic id |
/// | 4 | partition |
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SharePartitionKey {
    pub group: Arc<str>,
    pub topic: Uuid,
    pub partition: i32,
}

impl SharePartitionKey {
    pub fn new(group: impl Into<Arc<str>>, topic: Uuid, partition: i32) -> Self {
        SharePartitionKey { group: group.into(), topic, partition }
    }

    /// The space of the catalog's state in which share partitions are stored, under these keys.
    pub const SPACE: &str = "share-partition";

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.u8(VERSION);
        writer.string(&self.group);
        writer.raw(&self.topic.0);
        writer.i32(self.partition);
        writer.finish().into()
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadBytes> {
        let mut reader = Reader::new(bytes);
        reader.version(VERSION)?;
        let key = SharePartitionKey {
            group: reader.string("the group")?.into(),
            topic: Uuid(reader.array("the topic id")?),
            partition: reader.i32("the partition")?,
        };
        reader.end()?;
        Ok(key)
    }
}
