//! Topics, and the files of deleted ones that may still be there.

use std::sync::Arc;

use redb::{ReadTransaction, ReadableTable};

use super::Catalog;
use super::codec::{Decoder, Encoder, Malformed};
use super::error::{CatalogError, Failure};
use super::image::{Topic, Topics};
use super::tables::{DELETIONS, TOPICS};
use crate::protocol::Uuid;

pub(super) fn encode(topic: &Topic) -> Vec<u8> {
    Encoder::new(0).id(topic.id).i32(topic.partitions).finish()
}

pub(super) fn decode(name: &str, bytes: &[u8]) -> Result<Topic, Malformed> {
    let mut value = Decoder::new("a topic", bytes, 0)?;
    let topic = Topic { name: name.into(), id: value.id()?, partitions: value.i32()? };
    value.finish()?;
    Ok(topic)
}

pub(super) fn encode_deletion(topic: &Topic) -> Vec<u8> {
    Encoder::new(0).string(&topic.name).i32(topic.partitions).finish()
}

pub(super) fn decode_deletion(id: Uuid, bytes: &[u8]) -> Result<Topic, Malformed> {
    let mut value = Decoder::new("a deleted topic", bytes, 0)?;
    let topic = Topic { name: value.string()?.into(), id, partitions: value.i32()? };
    value.finish()?;
    Ok(topic)
}

pub(super) fn load(transaction: &ReadTransaction) -> Result<Topics, Failure> {
    let mut topics = Topics::default();
    for entry in transaction.open_table(TOPICS)?.iter()? {
        let (name, value) = entry?;
        topics.insert(decode(name.value(), value.value())?);
    }
    Ok(topics)
}

impl Catalog {
    /// All topics, sorted by name, as of the last durable commit. Costs a reference count.
    pub fn topics(&self) -> Arc<Topics> {
        self.shared.image.read().topics.clone()
    }

    /// Deleted topics whose files may still be there.
    pub fn deletions(&self) -> Result<Vec<Topic>, CatalogError> {
        self.read(|transaction| {
            let mut deletions = Vec::new();
            for entry in transaction.open_table(DELETIONS)?.iter()? {
                let (id, value) = entry?;
                deletions.push(decode_deletion(Uuid(id.value()), value.value())?);
            }
            Ok(deletions)
        })
    }
}
