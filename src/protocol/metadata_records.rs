//! The records of Apache Kafka's metadata log that say which topics there are, where their partitions lie and what configs they
//! have. They are only read: doze keeps no such log.
//!
//! The value of a record:
//!
//! | field | type |
//! |---|---|
//! | frame version, 1 | varint |
//! | key of the kind of record | varint |
//! | version of the kind | varint |
//! | the record, in a flexible version | |
//!
//! Source: KIP-631, KIP-858 for directories, KIP-868 for transactions, and Apache Kafka 4.3.1's declarations of the records.

use bytes::Bytes;

use super::message::message;
use super::uuid::Uuid;
use super::wire::{DecodeError, Reader, Version, Wire};

message! {
    TopicRecord {
        name: String;
        topic_id: Uuid;
    }

    PartitionRecord {
        partition_id: i32, default -1;
        topic_id: Uuid;
        replicas: Vec<i32>;
        isr: Vec<i32>;
        removing_replicas: Vec<i32>;
        adding_replicas: Vec<i32>;
        leader: i32, default -1;
        leader_epoch: i32, default -1;
        partition_epoch: i32, default -1;
        directories: Vec<Uuid>, in 1..;
    }

    PartitionChangeRecord {
        partition_id: i32, default -1;
        topic_id: Uuid;
        replicas: Option<Vec<i32>>, tag 2, null 0.., default None;
        directories: Option<Vec<Uuid>>, in 1.., tag 8, null 1.., default None;
    }

    ConfigRecord {
        resource_type: i8;
        resource_name: String;
        name: String;
        value: Option<String>, null 0..;
    }

    RemoveTopicRecord {
        topic_id: Uuid;
    }
}

/// A record of the metadata log.
#[derive(Clone, Debug, PartialEq)]
pub enum MetadataRecord {
    Topic(TopicRecord),
    Partition(PartitionRecord),
    PartitionChange(PartitionChangeRecord),
    Config(ConfigRecord),
    RemoveTopic(RemoveTopicRecord),
    /// What follows only counts once its transaction has ended.
    BeginTransaction,
    EndTransaction,
    /// What was begun does not count.
    AbortTransaction,
    /// Of a kind that says nothing of topics and configs.
    Other {
        key: u32,
    },
}

/// Why the value of a record cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataRecordError {
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error("its frame has version {0}, and 1 is the only one that is known")]
    Frame(u32),
    #[error("a record of kind {key} has version {version}, and {newest} is the newest that is known")]
    Version { key: u32, version: u32, newest: u32 },
}

impl MetadataRecord {
    /// Reads the value of a record.
    pub fn decode(value: &[u8]) -> Result<MetadataRecord, MetadataRecordError> {
        let mut reader = Reader::new(Bytes::copy_from_slice(value));
        let frame = reader.uvarint()?;
        if frame != 1 {
            return Err(MetadataRecordError::Frame(frame));
        }
        let (key, version) = (reader.uvarint()?, reader.uvarint()?);
        match key {
            2 => read(reader, key, version, 0).map(MetadataRecord::Topic),
            3 => read(reader, key, version, 2).map(MetadataRecord::Partition),
            4 => read(reader, key, version, 0).map(MetadataRecord::Config),
            5 => read(reader, key, version, 2).map(MetadataRecord::PartitionChange),
            9 => read(reader, key, version, 0).map(MetadataRecord::RemoveTopic),
            23 => Ok(MetadataRecord::BeginTransaction),
            24 => Ok(MetadataRecord::EndTransaction),
            25 => Ok(MetadataRecord::AbortTransaction),
            key => Ok(MetadataRecord::Other { key }),
        }
    }
}

fn read<T: Wire>(mut reader: Reader, key: u32, version: u32, newest: u32) -> Result<T, MetadataRecordError> {
    let number = i16::try_from(version).ok().filter(|_| version <= newest);
    let Some(number) = number else { return Err(MetadataRecordError::Version { key, version, newest }) };
    let record = T::read(&mut reader, Version { number, flexible: true })?;
    reader.finish()?;
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_and_what_is_none_is_refused() {
        // Topic "ab" with an id of sevens.
        let topic = [&[1, 2, 0, 3, b'a', b'b'][..], &[7; 16], &[0]].concat();
        let read = MetadataRecord::decode(&topic).unwrap();
        assert_eq!(read, MetadataRecord::Topic(TopicRecord { name: "ab".into(), topic_id: Uuid([7; 16]) }));
        for len in 0..topic.len() {
            assert!(MetadataRecord::decode(&topic[..len]).is_err(), "{len}");
        }
        assert_eq!(
            MetadataRecord::decode(&[&topic[..], &[0]].concat()),
            Err(MetadataRecordError::Decode(DecodeError::TrailingBytes(1)))
        );
        assert_eq!(
            MetadataRecord::decode(&[1, 2, 1, 1]),
            Err(MetadataRecordError::Version { key: 2, version: 1, newest: 0 })
        );
        assert_eq!(MetadataRecord::decode(&[2, 2, 0]), Err(MetadataRecordError::Frame(2)));
        assert_eq!(MetadataRecord::decode(&[1, 12, 0, 99]), Ok(MetadataRecord::Other { key: 12 }));
        // A config of topic "t" that was deleted.
        let config = MetadataRecord::decode(&[1, 4, 0, 2, 2, b't', 2, b'k', 0, 0]).unwrap();
        assert!(matches!(config, MetadataRecord::Config(ConfigRecord { resource_type: 2, value: None, .. })));
        // A change of the directories alone: tag 8, 18 bytes.
        let change = [&[1, 5, 1, 0, 0, 0, 3][..], &[7; 16], &[1, 8, 17, 2], &[9; 16]].concat();
        let MetadataRecord::PartitionChange(change) = MetadataRecord::decode(&change).unwrap() else { panic!() };
        assert_eq!((change.partition_id, change.replicas, change.directories), (3, None, Some(vec![Uuid([9; 16])])));
    }
}
