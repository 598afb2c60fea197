//! The stored form of a transactional id.
//!
//! | bytes | what |
//! |---|---|
//! | 1 | format version, 1 |
//! | 8, 8, 8 | producer id, the one before, the next one; -1 for none |
//! | 4, 4 | epoch, last epoch; -1 for none |
//! | 4 | timeout, milliseconds |
//! | 1 | state, by Kafka's number |
//! | 1 | version of the protocol: 1 or 2 |
//! | 8, 8 | start of the transaction (-1 for none) and latest change, milliseconds since the Unix epoch |
//! | 4 | how many topics |
//! | 4, n | each topic: length, name in UTF-8 |
//! | 4, 4 each | how many partitions of it, each |

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use super::api::{Place, Version};
use super::metadata::{Metadata, State};
use crate::coordinator::stored::{BadBytes, Reader, Writer};

const VERSION: u8 = 1;

impl Metadata {
    pub fn to_bytes(&self) -> Bytes {
        let mut writer = Writer::default();
        writer.u8(VERSION);
        writer.i64(self.producer_id);
        writer.i64(self.previous_producer_id);
        writer.i64(self.next_producer_id);
        writer.i32(self.epoch.into());
        writer.i32(self.last_epoch.into());
        writer.i32(self.timeout_ms);
        writer.u8(self.state as u8);
        writer.u8(match self.version {
            Version::V1 => 1,
            Version::V2 => 2,
        });
        writer.i64(self.start_ms);
        writer.i64(self.update_ms);
        let places: Vec<&Place> = self.places.iter().collect();
        let topics: Vec<&[&Place]> = places.chunk_by(|a, b| a.0 == b.0).collect();
        writer.length(topics.len());
        for topic in topics {
            writer.string(&topic[0].0);
            writer.length(topic.len());
            for (_, partition) in topic {
                writer.i32(*partition);
            }
        }
        writer.finish()
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadBytes> {
        let mut reader = Reader::new(bytes);
        reader.version(VERSION)?;
        let producer_id = reader.i64("the producer id")?;
        let previous_producer_id = reader.i64("the previous producer id")?;
        let next_producer_id = reader.i64("the next producer id")?;
        let epoch = read_epoch(&mut reader, "the epoch")?;
        let last_epoch = read_epoch(&mut reader, "the last epoch")?;
        let timeout_ms = reader.i32("the timeout")?;
        let state = reader.u8("the state")?;
        let state = State::from_number(state).ok_or_else(|| reader.unknown("the state", state))?;
        let version = match reader.u8("the version of the protocol")? {
            1 => Version::V1,
            2 => Version::V2,
            other => return Err(reader.unknown("the version of the protocol", other)),
        };
        let start_ms = reader.i64("the start")?;
        let update_ms = reader.i64("the time of the latest change")?;
        let mut places = BTreeSet::new();
        for _ in 0..reader.length("the number of topics")? {
            let topic: Arc<str> = reader.string("a topic")?.into();
            for _ in 0..reader.length("the number of partitions")? {
                places.insert((topic.clone(), reader.i32("a partition")?));
            }
        }
        reader.end()?;
        Ok(Metadata {
            producer_id,
            previous_producer_id,
            next_producer_id,
            epoch,
            last_epoch,
            timeout_ms,
            state,
            places,
            start_ms,
            update_ms,
            version,
        })
    }
}

fn read_epoch(reader: &mut Reader, what: &'static str) -> Result<i16, BadBytes> {
    let number = reader.i32(what)?;
    i16::try_from(number).map_err(|_| BadBytes::Contradiction { what: format!("{what} is {number}, which is none") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_form_comes_back_and_damage_is_named() {
        let places = [("a", 0), ("a", 7), ("b", 1)];
        let metadata = Metadata {
            producer_id: 9,
            previous_producer_id: 8,
            next_producer_id: 10,
            epoch: 32_766,
            last_epoch: -1,
            timeout_ms: 60_000,
            state: State::PrepareCommit,
            places: places.into_iter().map(|(topic, partition)| (topic.into(), partition)).collect(),
            start_ms: 1_700_000_000_000,
            update_ms: 1_700_000_000_001,
            version: Version::V2,
        };
        let bytes = metadata.to_bytes();
        assert_eq!(Metadata::from_bytes(&bytes), Ok(metadata.clone()));
        let empty = Metadata { places: BTreeSet::new(), state: State::Empty, version: Version::V1, ..metadata };
        assert_eq!(Metadata::from_bytes(&empty.to_bytes()), Ok(empty));
        for cut in 0..bytes.len() {
            assert!(matches!(Metadata::from_bytes(&bytes[..cut]), Err(BadBytes::Short { .. })), "cut at {cut}");
        }
        let mut longer = bytes.to_vec();
        longer.push(0);
        assert_eq!(Metadata::from_bytes(&longer), Err(BadBytes::LeftOver { position: bytes.len(), left: 1 }));
        let state = 1 + 3 * 8 + 3 * 4;
        longer[state] = 6;
        assert!(matches!(Metadata::from_bytes(&longer), Err(BadBytes::Value { found: 6, .. })));
    }
}
