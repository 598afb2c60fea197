//! Entries as lines for people: a word for what it is, then name=value. Records are indented under their batch, and texts
//! in them stand in quotes, so that nothing in them can be mistaken.

use std::io;
use std::path::Path;

use doze::record::NO_SEQUENCE;
use doze::record::control::ControlRecord;
use doze::storage::dump::{BatchEntry, Damage, Entry, FileType, ProducerEntry, RecordEntry, SnapshotFormat};

use super::Counts;
use super::payload::{self, Payload, Sink};
use crate::format;

pub fn file(path: &Path, file_type: FileType, size: u64) -> String {
    let base = file_type.base().map_or(String::new(), |base| format!(", base offset {base}"));
    format!("# {}: {}{base}, {}", format::path(path), file_type.name(), format::bytes(size))
}

pub fn end(counts: &Counts, is_cut: bool) -> String {
    let parts = [
        (counts.batches, "batch", "batches"),
        (counts.records, "record", "records"),
        (counts.entries, "entry", "entries"),
    ];
    let there = parts.into_iter().filter(|(count, ..)| *count > 0);
    let mut parts: Vec<String> = there.map(|(count, one, many)| format::count(count, one, many)).collect();
    if parts.is_empty() {
        parts.push("nothing".to_owned());
    }
    match counts.damage {
        0 => {}
        1 => parts.push("damage in one place".to_owned()),
        n => parts.push(format!("damage in {n} places")),
    }
    if is_cut {
        parts.push("and more than the limit let through".to_owned());
    }
    format!("# {}", parts.join(", "))
}

/// Writes an entry on a line.
pub fn entry(line: &mut Vec<u8>, entry: &Entry) -> io::Result<()> {
    line.extend_from_slice(self::line(entry).as_bytes());
    line.push(b'\n');
    Ok(())
}

fn line(entry: &Entry) -> String {
    match entry {
        Entry::Batch(batch) => self::batch(batch),
        Entry::Offset { offset, log_position, .. } => format!("index offset={offset} position={log_position}"),
        Entry::Time { timestamp, offset, .. } => format!("timeindex time={} offset={offset}", time(*timestamp)),
        Entry::Aborted { version, transaction, .. } => format!(
            "aborted version={version} producer={} offsets={}..{} last_stable_offset={}",
            transaction.producer_id, transaction.first_offset, transaction.last_offset, transaction.last_stable_offset
        ),
        Entry::Snapshot(snapshot) => format!(
            "snapshot format={} version={} entries={} crc={:08x}{}",
            match snapshot.format {
                SnapshotFormat::Kafka => "kafka (one entry a producer)",
                SnapshotFormat::Doze => "doze (an entry for each batch that is remembered)",
            },
            snapshot.version,
            snapshot.entries,
            snapshot.crc,
            invalid(snapshot.crc == snapshot.computed_crc),
        ),
        Entry::Producer(producer) => self::producer(producer),
        Entry::LeaderEpoch { epoch, start } => format!("leader-epoch epoch={epoch} start_offset={start}"),
        Entry::Metadata { topic_id } => format!("metadata topic_id={topic_id}"),
        Entry::Unused { position, bytes } => format!("unused position={position} bytes={bytes}: zeros up to the end"),
        Entry::Damage(damage) => self::damage(damage),
    }
}

fn time(ms: i64) -> String {
    if ms < 0 { "none".to_owned() } else { format::timestamp(ms) }
}

fn invalid(valid: bool) -> &'static str {
    if valid { "" } else { " INVALID" }
}

fn batch(batch: &BatchEntry) -> String {
    let mut line = format!(
        "batch offsets={}..{} position={} size={}",
        batch.base_offset, batch.last_offset, batch.position, batch.size
    );
    let mut add = |text: String| line += &text;
    add(batch.records.map_or(" records=?".to_owned(), |records| format!(" records={records}")));
    add(format!(" codec={} magic={}", batch.compression, batch.magic));
    if batch.magic > 0 {
        add(format!(" {}={}", batch.timestamp_type.name(), time(batch.max_timestamp)));
    }
    if let Some(header) = &batch.header {
        add(format!(" leader_epoch={}", header.partition_leader_epoch));
        if header.has_producer_id() {
            add(format!(" producer={} epoch={}", header.producer_id, header.producer_epoch));
            if header.base_sequence != NO_SEQUENCE {
                add(format!(" sequences={}..{}", header.base_sequence, header.last_sequence()));
            }
        }
        if let Some(horizon) = header.delete_horizon_ms() {
            add(format!(" delete_horizon={}", time(horizon)));
        }
        if header.is_transactional() {
            add(" transactional".to_owned());
        }
        if header.is_control() {
            add(" control".to_owned());
        }
    }
    add(format!(" crc={:08x}{}", batch.crc, invalid(batch.is_valid())));
    line
}

fn producer(producer: &ProducerEntry) -> String {
    let mut line = format!(
        "producer id={} epoch={} last_sequence={} last_offset={} offset_delta={} time={} coordinator_epoch={}",
        producer.producer_id,
        producer.epoch,
        producer.last_sequence,
        producer.last_offset,
        producer.offset_delta,
        time(producer.timestamp),
        producer.coordinator_epoch,
    );
    if let Some(start) = producer.transaction_start {
        line += &format!(" transaction_first_offset={start}");
    }
    line
}

fn damage(damage: &Damage) -> String {
    let offsets = match damage.offsets {
        (None, None) => String::new(),
        (from, to) => {
            let text = |offset: Option<i64>| offset.map_or("?".to_owned(), |offset| offset.to_string());
            // The offset after the last, so that an empty range can be told.
            format!(" offsets={}..<{}", text(from), text(to))
        }
    };
    format!(
        "DAMAGE position={} bytes={}{offsets} kind={}: {}",
        damage.position,
        damage.bytes,
        damage.kind.name(),
        damage.kind
    )
}

/// Writes a record on a line. By hand, since there may be millions.
pub fn record(out: &mut impl Sink, record: &RecordEntry<'_>, key: Payload, value: Payload) -> io::Result<()> {
    let line = out.text()?;
    number(line, "  offset=", record.offset);
    line.extend_from_slice(b" time=");
    match record.timestamp {
        ms if ms < 0 => line.extend_from_slice(b"none"),
        ms => format::append_timestamp(line, ms),
    }
    if record.sequence != NO_SEQUENCE {
        number(line, " sequence=", record.sequence.into());
    }
    match &record.control {
        None => {}
        Some(Ok(control)) => {
            line.extend_from_slice(format!(" control={}", control.name()).as_bytes());
            if let ControlRecord::EndTxn(marker) = control {
                number(line, " coordinator_epoch=", marker.coordinator_epoch.into());
            }
        }
        Some(Err(error)) => line.extend_from_slice(format!(" control=UNREADABLE ({error})").as_bytes()),
    }
    let mut headers = record.headers.clone().peekable();
    if headers.peek().is_some() {
        line.extend_from_slice(b" headers=[");
        for (at, header) in headers.enumerate() {
            if at > 0 {
                out.text()?.extend_from_slice(b", ");
            }
            payload::quoted(out, header.name)?;
            field(out, "", header.value, value)?;
        }
        out.text()?.push(b']');
    }
    // A marker's bytes say nothing more.
    if !matches!(record.control, Some(Ok(ControlRecord::EndTxn(_)))) {
        field(out, " key", record.key, key)?;
        field(out, " value", record.value, value)?;
    }
    out.text()?.push(b'\n');
    Ok(())
}

fn number(line: &mut Vec<u8>, name: &str, number: i64) {
    line.extend_from_slice(name.as_bytes());
    payload::number(line, number);
}

fn field(out: &mut impl Sink, name: &str, bytes: Option<&[u8]>, payload: Payload) -> io::Result<()> {
    if payload == Payload::None {
        return Ok(());
    }
    let line = out.text()?;
    line.extend_from_slice(name.as_bytes());
    line.push(b'=');
    match bytes {
        Some(bytes) => payload::as_text(out, bytes, payload),
        None => {
            line.extend_from_slice(b"null");
            Ok(())
        }
    }
}
