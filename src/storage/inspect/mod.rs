//! What there is in a partition's folder, found with few and small reads, and without writing.
//!
//! [`PartitionSummary::read`] looks at the folder of a partition in a [`DataDir`] that no broker has open: where its log
//! starts and ends, what its segments hold, who wrote to it and which transactions are open. Of each segment it reads the
//! indexes' last entries and the first and last batches, so that it costs about the same whatever the size of the log; it
//! verifies nothing. Numbers of batches and records, codecs and how well they compress are then found in samples, and marked
//! as estimates ([`Content::exact`]), unless [`Depth::Count`] has every batch header read.
//!
//! What cannot be read or makes no sense is left out of the summary and named in [`PartitionSummary::problems`].

mod content;
mod partition;
mod segment;

pub use content::{CodecUse, Content};
pub use partition::{Depth, OpenTransactionAt, PartitionSummary};
pub use segment::SegmentSummary;
