//! What is written for offsets that are lost: empty batches, and end markers that there is proof of.
//!
//! A log from which a batch was taken out would have a gap, which nobody can tell from one that nobody knows of. So an empty
//! batch takes the place of what is gone: one of version 2 without records and without a producer, with just those offsets.
//! It is what Apache Kafka's cleaner leaves of a batch whose offsets have to be remembered; consumers of every kind pass over it.

use bytes::Bytes;

use crate::record::control::EndTxnMarker;
use crate::record::{BatchHeader, HEADER_LEN, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP};
use crate::storage::log::epochs::LeaderEpochs;
use crate::storage::log::producers::EndMarker;
use crate::storage::log::scan::BatchAt;

/// The most offsets that one batch can have.
const MOST_OF_A_BATCH: i64 = i32::MAX as i64 + 1;
/// The most that are filled: nothing but a damaged name of a file says that more are missing.
const LARGEST: i64 = 8 * MOST_OF_A_BATCH;

/// Whether so large a gap is filled.
pub(in crate::storage) fn fits(from: i64, to: i64) -> bool {
    to > from && to.saturating_sub(from) <= LARGEST
}

/// A control batch with an end marker of a transaction, as it was at `offset`.
pub(super) fn marker(
    offset: i64,
    marker: &EndMarker,
    before: Option<&BatchHeader>,
    modified_ms: i64,
) -> Option<(BatchAt, Bytes)> {
    let EndMarker { producer_id, producer_epoch, committed, coordinator_epoch, .. } = *marker;
    let time = before.map_or(modified_ms, |before| before.max_timestamp);
    let bytes = EndTxnMarker { committed, coordinator_epoch }.batch(offset, time, producer_id, producer_epoch).ok()?;
    let mut header = BatchHeader::parse(&bytes).ok()?;
    header.partition_leader_epoch = before.map_or(0, |before| before.partition_leader_epoch);
    let bytes = [&header.encode()[..], &bytes[HEADER_LEN..]].concat();
    let batch = BatchAt {
        position: 0,
        size: bytes.len() as u64,
        base_offset: offset,
        last_offset: offset,
        max_timestamp: header.max_timestamp,
        header: Some(header),
    };
    Some((batch, bytes.into()))
}

/// The empty batch for the offsets from `from` on, before `to`, as far as one batch goes in a segment that starts at `base`.
/// `None` if none of them can be in that segment.
///
/// It has the latest timestamp of the batch before it in the file, so that times still rise. Before the first batch it
/// has none, and where there is no other at all the file's age, `modified_ms`: a segment without any timestamp has no
/// time index. Its leader epoch is the one that wrote its offset, where `epochs` tell, if the batches around it allow for
/// that.
pub(super) fn batch(
    base: i64,
    (from, to): (i64, i64),
    before: Option<&BatchHeader>,
    after: Option<&BatchHeader>,
    epochs: &LeaderEpochs,
    modified_ms: i64,
) -> Option<(BatchAt, [u8; HEADER_LEN])> {
    let last = to.checked_sub(1)?.min(base.saturating_add(i64::from(i32::MAX)));
    let last_offset_delta = i32::try_from(last.checked_sub(from)?).ok().filter(|delta| *delta >= 0)?;
    let (least, most) = (
        before.map_or(-1, |before| before.partition_leader_epoch),
        after.map_or(i32::MAX, |after| after.partition_leader_epoch),
    );
    let said = epochs.of_offset(from).filter(|epoch| (least..=most).contains(epoch));
    let near = before.or(after).map_or(-1, |near| near.partition_leader_epoch);
    let mut header = BatchHeader {
        base_offset: from,
        batch_length: 0,
        partition_leader_epoch: said.unwrap_or(near),
        crc: 0,
        attributes: 0,
        last_offset_delta,
        base_timestamp: NO_TIMESTAMP,
        max_timestamp: match (before, after) {
            (Some(before), _) => before.max_timestamp,
            (None, Some(_)) => NO_TIMESTAMP,
            (None, None) => modified_ms,
        },
        producer_id: NO_PRODUCER_ID,
        producer_epoch: -1,
        base_sequence: NO_SEQUENCE,
        records_count: 0,
    };
    if let Some(before) = before {
        header.set_timestamp_type(before.timestamp_type());
    }
    let header = header.without_records();
    let batch = BatchAt {
        position: 0,
        size: HEADER_LEN as u64,
        base_offset: from,
        last_offset: last,
        max_timestamp: header.max_timestamp,
        header: Some(header),
    };
    Some((batch, header.encode()))
}
