//! The record batch, version 2: everything doze knows of the bytes that producers send and consumers get.
//!
//! [`BatchHeader`] is the 61 bytes in front, [`Batch`] a whole batch in memory, [`Batches`] the batches in a slice,
//! [`RecordReader`] the records of one through whatever codec, [`BatchBuilder`] makes one, [`Validator`] checks what a
//! producer sent, [`control`] has the markers that end transactions, and [`legacy`] reads the message sets of the formats
//! before version 2.
//!
//! What is promised throughout: no batch is ever held inflated, at most a codec's window and one record; every length
//! is checked against what is there before memory is reserved; no bytes make anything panic.

mod batch;
mod builder;
mod codec;
pub mod control;
mod header;
pub mod legacy;
mod reader;
#[allow(clippy::module_inception)]
mod record;
#[cfg(test)]
mod tests;
mod validate;
mod varint;

pub use batch::{Batch, Batches, Frame, Stop, peek};
pub use builder::{BatchBuilder, BatchOptions, BuildError};
pub use codec::{Codec, CodecError};
pub use header::{
    BatchError, BatchHeader, Compression, HEADER_LEN, LOG_OVERHEAD, MAGIC_V2, NO_PRODUCER_ID, NO_SEQUENCE,
    NO_TIMESTAMP, TimestampType,
};
pub use reader::{RecordError, RecordReader};
pub use record::{Headers, Record, RecordFlaw, RecordHeader, RecordInfo};
pub use validate::{CheckedBatch, InvalidBatch, InvalidKind, RecordFault, Rules, Step, Validator};
