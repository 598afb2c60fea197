//! Entries as JSON objects. docs/offline.md describes each.

use std::io;
use std::path::Path;

use doze::record::control::ControlRecord;
use doze::storage::dump::{BatchEntry, Damage, Entry, FileType, ProducerEntry, RecordEntry, SnapshotHeader};
use doze::storage::names::Stage;

use super::Counts;
use super::payload::{self, Payload, Sink};
use crate::output::{Object, object};

pub fn file(path: &Path, file_type: FileType, size: u64) -> Object {
    let stage = match file_type {
        FileType::Segment { stage: Stage::Deleted, .. } => "deleted",
        FileType::Segment { stage: Stage::Cleaned, .. } => "cleaned",
        FileType::Segment { stage: Stage::Swap, .. } => "swap",
        _ => "live",
    };
    object! {
        "type": "file",
        "path": path.to_string_lossy(),
        "kind": file_type.name(),
        "stage": stage,
        "base_offset": file_type.base(),
        "size": size,
    }
}

pub fn end(counts: &Counts, is_cut: bool) -> Object {
    object! {
        "type": "end",
        "batches": counts.batches,
        "records": counts.records,
        "entries": counts.entries,
        "damage": counts.damage,
        "complete": !is_cut,
    }
}

/// Writes an entry on a line.
pub fn entry(line: &mut Vec<u8>, entry: &Entry) -> io::Result<()> {
    serde_json::to_writer(&mut *line, &object(entry))?;
    line.push(b'\n');
    Ok(())
}

fn object(entry: &Entry) -> Object {
    match entry {
        Entry::Batch(batch) => self::batch(batch),
        Entry::Offset { position, offset, log_position } => object! {
            "type": "offset_index",
            "position": position,
            "offset": offset,
            "log_position": log_position,
        },
        Entry::Time { position, timestamp, offset } => object! {
            "type": "time_index",
            "position": position,
            "timestamp_ms": timestamp,
            "offset": offset,
        },
        Entry::Aborted { position, version, transaction } => object! {
            "type": "aborted_transaction",
            "position": position,
            "version": version,
            "producer_id": transaction.producer_id,
            "first_offset": transaction.first_offset,
            "last_offset": transaction.last_offset,
            "last_stable_offset": transaction.last_stable_offset,
        },
        Entry::Snapshot(snapshot) => self::snapshot(snapshot),
        Entry::Producer(producer) => self::producer(producer),
        Entry::LeaderEpoch { epoch, start } => object! {
            "type": "leader_epoch",
            "epoch": epoch,
            "start_offset": start,
        },
        Entry::Metadata { topic_id } => object! {
            "type": "partition_metadata",
            "topic_id": topic_id.to_string(),
        },
        Entry::Unused { position, bytes } => object! {
            "type": "unused",
            "position": position,
            "bytes": bytes,
        },
        Entry::Damage(damage) => self::damage(damage),
    }
}

/// A number that stands for none where it is negative.
fn known(number: impl Into<i64>) -> Option<i64> {
    Some(number.into()).filter(|number| *number >= 0)
}

fn batch(batch: &BatchEntry) -> Object {
    let header = batch.header.as_ref();
    let producer = header.filter(|header| header.has_producer_id());
    object! {
        "type": "batch",
        "position": batch.position,
        "size": batch.size,
        "magic": batch.magic,
        "base_offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "records": batch.records,
        "codec": batch.compression.name(),
        "timestamp_type": (batch.magic > 0).then(|| batch.timestamp_type.name()),
        "base_timestamp_ms": header.filter(|header| !header.has_delete_horizon()).and_then(|h| known(h.base_timestamp)),
        "max_timestamp_ms": known(batch.max_timestamp),
        "leader_epoch": header.and_then(|header| known(header.partition_leader_epoch)),
        "producer_id": producer.map(|header| header.producer_id),
        "producer_epoch": producer.map(|header| header.producer_epoch),
        "base_sequence": header.and_then(|header| known(header.base_sequence)),
        "last_sequence": header.and_then(|header| known(header.last_sequence())),
        "transactional": header.is_some_and(|header| header.is_transactional()),
        "control": batch.is_control(),
        "delete_horizon_ms": header.and_then(|header| header.delete_horizon_ms()),
        "crc": batch.crc,
        "valid": batch.is_valid(),
    }
}

fn snapshot(snapshot: &SnapshotHeader) -> Object {
    object! {
        "type": "snapshot",
        "format": snapshot.format.name(),
        "version": snapshot.version,
        "entries": snapshot.entries,
        "crc": snapshot.crc,
        "valid": snapshot.crc == snapshot.computed_crc,
    }
}

fn producer(producer: &ProducerEntry) -> Object {
    object! {
        "type": "producer",
        "position": producer.position,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.epoch,
        "last_sequence": known(producer.last_sequence),
        "last_offset": known(producer.last_offset),
        "offset_delta": producer.offset_delta,
        "timestamp_ms": known(producer.timestamp),
        "coordinator_epoch": known(producer.coordinator_epoch),
        "transaction_first_offset": producer.transaction_start,
    }
}

fn damage(damage: &Damage) -> Object {
    object! {
        "type": "damage",
        "position": damage.position,
        "bytes": damage.bytes,
        "first_offset": damage.offsets.0,
        "next_offset": damage.offsets.1,
        "kind": damage.kind.name(),
        "message": damage.kind.to_string(),
    }
}

/// Writes a record on a line. By hand, since there may be millions.
pub fn record(out: &mut impl Sink, record: &RecordEntry<'_>, key: Payload, value: Payload) -> io::Result<()> {
    let line = out.text()?;
    line.extend_from_slice(b"{\"type\":\"record\"");
    number(line, "offset", Some(record.offset));
    number(line, "timestamp_ms", known(record.timestamp));
    number(line, "sequence", known(record.sequence));
    number(line, "key_length", length(record.key));
    number(line, "value_length", length(record.value));
    match &record.control {
        None => line.extend_from_slice(b",\"control\":null"),
        Some(Ok(control)) => {
            line.extend_from_slice(format!(",\"control\":\"{}\"", control.name()).as_bytes());
            if let ControlRecord::EndTxn(marker) = control {
                number(line, "coordinator_epoch", Some(marker.coordinator_epoch.into()));
            }
        }
        Some(Err(error)) => {
            line.extend_from_slice(b",\"control\":\"UNREADABLE\",\"control_error\":");
            serde_json::to_writer(&mut *line, &error.to_string())?;
        }
    }
    out.text()?.extend_from_slice(b",\"headers\":[");
    for (at, header) in record.headers.clone().enumerate() {
        let line = out.text()?;
        line.extend_from_slice(if at > 0 { b",{\"name\":" } else { b"{\"name\":" });
        serde_json::to_writer(&mut *line, &String::from_utf8_lossy(header.name))?;
        number(line, "value_length", length(header.value));
        payload::as_fields(out, "value", header.value, value)?;
        out.text()?.push(b'}');
    }
    out.text()?.push(b']');
    payload::as_fields(out, "key", record.key, key)?;
    payload::as_fields(out, "value", record.value, value)?;
    out.text()?.extend_from_slice(b"}\n");
    Ok(())
}

fn number(line: &mut Vec<u8>, name: &str, number: Option<i64>) {
    payload::name(line, name);
    match number {
        Some(number) => payload::number(line, number),
        None => line.extend_from_slice(b"null"),
    }
}

fn length(bytes: Option<&[u8]>) -> Option<i64> {
    bytes.map(|bytes| bytes.len() as i64)
}
