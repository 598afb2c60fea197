//! The batches of what was read.

use super::scan::Walker;
use crate::sys::FileRange;

/// How much is read at once for headers, in bytes.
const STEP: usize = 16 * 1024;

/// A batch in a [`FileRange`] of whole batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchInRange {
    /// Its place in the range, in bytes from the start of that, and its size.
    pub position: u64,
    pub size: u64,
    pub first_offset: i64,
    pub last_offset: i64,
    /// Of the producer of a transaction's records; `None` for control batches and what is outside transactions.
    pub in_transaction_of: Option<i64>,
}

/// The batches of `range` as their headers tell, in order, up to the first that starts at an offset of `to` or later. Ends
/// early where the file does not have whole batches any more. Touches the disk.
pub fn batches_in(range: &FileRange, to: i64) -> std::io::Result<Vec<BatchInRange>> {
    let mut walker = Walker::new(range.file.clone(), range.position, range.position + range.len as u64, STEP);
    let mut batches: Vec<BatchInRange> = Vec::new();
    while let Some(batch) = walker.next()? {
        // Of a message set of the old formats only the last offset is known without inflating it.
        let first_offset = match &batch.header {
            Some(header) => header.base_offset,
            None => batches.last().map_or(0, |before| before.last_offset + 1),
        };
        if first_offset >= to && !batches.is_empty() {
            break;
        }
        let header = batch.header.filter(|header| header.is_transactional() && !header.is_control());
        batches.push(BatchInRange {
            position: batch.position - range.position,
            size: batch.size,
            first_offset,
            last_offset: batch.last_offset,
            in_transaction_of: header.map(|header| header.producer_id),
        });
    }
    Ok(batches)
}
