//! Control records: the markers that end a transaction.
//!
//! | the key | bytes | |
//! |---|---:|---|
//! | version | 2 | 0 |
//! | type | 2 | 0 abort, 1 commit; others are Kafka's own controllers' |
//!
//! | the value of an abort or commit | bytes | |
//! |---|---:|---|
//! | version | 2 | 0 |
//! | coordinator epoch | 4 | of the transaction coordinator that wrote it |
//!
//! A later version may have more behind these fields; that is passed over.

use bytes::Bytes;
use thiserror::Error;

use super::builder::{BatchBuilder, BatchOptions, BuildError};
use super::codec::Codec;
use super::record::Record;

const ABORT: i16 = 0;
const COMMIT: i16 = 1;

/// The end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndTxnMarker {
    pub committed: bool,
    pub coordinator_epoch: i32,
}

/// What a control record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlRecord {
    EndTxn(EndTxnMarker),
    /// A type that means nothing to a partition's log: 2 leader change, 3 and 4 snapshot header and footer, 5 and 6 of the
    /// controllers' quorum, or one that is not known.
    Other {
        kind: i16,
    },
}

/// A control record that does not hold what it should.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ControlError {
    #[error("the key of the control record at offset {offset} has {len} bytes, at least 4 were expected")]
    Key { offset: i64, len: usize },
    #[error("the value of the control record at offset {offset} has {len} bytes, at least 6 were expected")]
    Value { offset: i64, len: usize },
    #[error("the control record at offset {offset} has the version {version}")]
    Version { offset: i64, version: i16 },
}

impl ControlRecord {
    /// The name of its type, as Apache Kafka has it; `UNKNOWN` for one that this version of it does not have.
    pub fn name(&self) -> &'static str {
        match self {
            ControlRecord::EndTxn(EndTxnMarker { committed: false, .. }) => "ABORT",
            ControlRecord::EndTxn(EndTxnMarker { committed: true, .. }) => "COMMIT",
            ControlRecord::Other { kind: 2 } => "LEADER_CHANGE",
            ControlRecord::Other { kind: 3 } => "SNAPSHOT_HEADER",
            ControlRecord::Other { kind: 4 } => "SNAPSHOT_FOOTER",
            ControlRecord::Other { kind: 5 } => "KRAFT_VERSION",
            ControlRecord::Other { kind: 6 } => "KRAFT_VOTERS",
            ControlRecord::Other { .. } => "UNKNOWN",
        }
    }

    /// Reads a record of a control batch.
    pub fn parse(record: &Record<'_>) -> Result<ControlRecord, ControlError> {
        let offset = record.offset();
        let key = record.key().unwrap_or_default();
        let &[v0, v1, k0, k1] = key.first_chunk().ok_or(ControlError::Key { offset, len: key.len() })?;
        check_version(i16::from_be_bytes([v0, v1]), offset)?;
        let kind = i16::from_be_bytes([k0, k1]);
        if kind != ABORT && kind != COMMIT {
            return Ok(ControlRecord::Other { kind });
        }
        let value = record.value().unwrap_or_default();
        let &[v0, v1, e0, e1, e2, e3] = value.first_chunk().ok_or(ControlError::Value { offset, len: value.len() })?;
        check_version(i16::from_be_bytes([v0, v1]), offset)?;
        Ok(ControlRecord::EndTxn(EndTxnMarker {
            committed: kind == COMMIT,
            coordinator_epoch: i32::from_be_bytes([e0, e1, e2, e3]),
        }))
    }
}

impl EndTxnMarker {
    /// The key of the marker's record.
    pub fn key(&self) -> [u8; 4] {
        let [k0, k1] = if self.committed { COMMIT } else { ABORT }.to_be_bytes();
        [0, 0, k0, k1]
    }

    /// The value of the marker's record.
    pub fn value(&self) -> [u8; 6] {
        let [e0, e1, e2, e3] = self.coordinator_epoch.to_be_bytes();
        [0, 0, e0, e1, e2, e3]
    }

    /// A whole control batch with the marker, at `base_offset`, as a transaction coordinator appends it.
    pub fn batch(
        &self,
        base_offset: i64,
        timestamp_ms: i64,
        producer_id: i64,
        producer_epoch: i16,
    ) -> Result<Bytes, BuildError> {
        let mut builder = BatchBuilder::new(BatchOptions {
            codec: Codec::None,
            base_offset,
            producer_id,
            producer_epoch,
            transactional: true,
            control: true,
            ..BatchOptions::default()
        })?;
        builder.append(timestamp_ms, Some(&self.key()), Some(&self.value()), &[])?;
        builder.finish(None)
    }
}

/// Versions only ever add; a negative one cannot be.
fn check_version(version: i16, offset: i64) -> Result<(), ControlError> {
    if version < 0 { Err(ControlError::Version { offset, version }) } else { Ok(()) }
}
