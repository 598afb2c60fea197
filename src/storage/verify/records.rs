//! Level deep: the records of a batch through its codec, against the header.

use super::finding::Kind;
use crate::record::{Batch, BatchHeader, TimestampType, control, legacy};

/// The largest batch whose records are looked at, in bytes. All of it is held.
pub(super) const LARGEST: u64 = 16 << 20;
/// The largest record that is held, in bytes: control records, and messages of the versions before 2.
const LARGEST_RECORD: usize = 16 << 20;

/// What is asked of the records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wants {
    /// Nothing was compacted away: the records fill the offsets, and one of them has the maximum timestamp.
    pub all: bool,
    /// The log is compacted, so each record needs a key.
    pub keys: bool,
}

/// What is wrong with the records of the version 2 batch in `bytes`, if anything.
pub(super) fn check(header: &BatchHeader, bytes: &[u8], wants: Wants) -> Result<(), (Kind, String)> {
    let unreadable = |error: &dyn std::fmt::Display| (Kind::BadRecords, error.to_string());
    let wrong = |what: String| Err((Kind::BadRecordFields, what));
    let batch = Batch::parse(bytes).map_err(|e| unreadable(&e))?;
    if header.is_control() && header.records_count > 0 {
        let mut records = batch.records().map_err(|e| unreadable(&e))?.with_record_limit(LARGEST_RECORD);
        while let Some(record) = records.next_record().map_err(|e| unreadable(&e))? {
            control::ControlRecord::parse(&record).map_err(|e| unreadable(&e))?;
        }
        return Ok(());
    }
    let mut records = batch.records().map_err(|e| unreadable(&e))?;
    let (mut last_delta, mut latest) = (-1, i64::MIN);
    while let Some(info) = records.skip_record().map_err(|e| unreadable(&e))? {
        let offset = header.base_offset.wrapping_add(i64::from(info.offset_delta));
        if info.offset_delta <= last_delta || info.offset_delta > header.last_offset_delta {
            let most = header.last_offset_delta;
            return wrong(format!(
                "a record has offset delta {} after {last_delta}, and the last is {most}",
                info.offset_delta
            ));
        }
        if wants.all && info.offset_delta != last_delta + 1 {
            return wrong(format!("the records go from offset delta {last_delta} to {}", info.offset_delta));
        }
        if wants.keys && !info.has_key() {
            return Err((
                Kind::MissingKey,
                format!("the record at offset {offset} has no key, and the log is compacted"),
            ));
        }
        last_delta = info.offset_delta;
        latest = latest.max(header.base_timestamp.wrapping_add(info.timestamp_delta));
    }
    if wants.all && header.records_count > 0 && last_delta != header.last_offset_delta {
        return wrong(format!(
            "the last record has offset delta {last_delta}, and the header says {}",
            header.last_offset_delta
        ));
    }
    if header.records_count > 0 && header.timestamp_type() == TimestampType::CreateTime {
        let most = header.max_timestamp;
        if latest > most || (wants.all && latest != most) {
            return wrong(format!("the latest record has timestamp {latest}, and the header says {most}"));
        }
    }
    Ok(())
}

/// What is wrong with the entry of a version before 2 in `bytes`, if anything. Answers how many messages it has.
pub(super) fn check_legacy(bytes: &[u8], wants: Wants) -> Result<u64, (Kind, String)> {
    let unreadable = |error: legacy::LegacyError| (Kind::BadRecords, error.to_string());
    let entry = legacy::Entry::parse(bytes).map_err(unreadable)?;
    let (mut count, mut last) = (0, -1);
    for message in entry.messages(LARGEST_RECORD).map_err(unreadable)? {
        let message = message.map_err(unreadable)?;
        if message.offset <= last || message.offset > entry.offset {
            let what =
                format!("a message has offset {} after {last}, and the last is {}", message.offset, entry.offset);
            return Err((Kind::BadRecordFields, what));
        }
        if wants.keys && message.key.is_none() {
            let what = format!("the message at offset {} has no key, and the log is compacted", message.offset);
            return Err((Kind::MissingKey, what));
        }
        last = message.offset;
        count += 1;
    }
    if last != entry.offset {
        return Err((
            Kind::BadRecordFields,
            format!("the last message has offset {last}, and the wrapper {}", entry.offset),
        ));
    }
    Ok(count)
}
