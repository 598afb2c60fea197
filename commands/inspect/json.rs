//! What is shown, as JSON objects. docs/offline.md describes each.

use doze::record::Compression;
use doze::storage::catalog::ConfigMap;
use doze::storage::inspect::{Content, PartitionSummary, SegmentSummary};
use doze::storage::names::LeftoverDir;
use doze::storage::offline::{CatalogState, DataDir, Held, Origin, Stop};
use doze::storage::scrub::Finding;
use serde_json::{Value, json};

use super::groups::{GroupView, OffsetView, PendingView, ShareView};
use super::model::{Scope, TopicView, View};
use super::transactions::TransactionView;
use crate::exit::Failure;
use crate::output::{Object, Output, object};

/// Prints everything that was asked for.
pub fn print(out: &mut Output, view: &View<'_>, scope: &Scope) -> Result<(), Failure> {
    if *scope == Scope::All {
        out.object(&directory(view))?;
    }
    for topic in &view.topics {
        out.object(&self::topic(topic))?;
        for summary in &topic.partitions {
            out.object(&partition(summary))?;
            if matches!(scope, Scope::Partition(..)) {
                details(out, summary)?;
            } else {
                open_transactions(out, summary)?;
            }
        }
    }
    for group in &view.groups {
        if *scope == Scope::All {
            out.object(&self::group(group))?;
        }
        for offset in &group.offsets {
            out.object(&committed_offset(group, offset))?;
        }
        for pending in &group.pending {
            out.object(&pending_offset(group, pending))?;
        }
        for share in &group.shares {
            out.object(&share_partition(group, share))?;
        }
    }
    for transaction in &view.transactions {
        out.object(&transactional_id(transaction))?;
    }
    for finding in view.scrub.iter().flat_map(|scrub| &scrub.findings) {
        out.object(&scrub_finding(finding))?;
    }
    if *scope == Scope::All {
        for leftover in view.dir.leftovers() {
            let name = leftover.path.file_name().unwrap_or_default().to_string_lossy();
            out.object(&object! { "type": "leftover", "name": name, "kind": leftover_name(leftover.kind) })?;
        }
        for entry in view.dir.foreign() {
            let name = entry.name.to_string_lossy();
            out.object(&object! { "type": "foreign", "name": name, "directory": entry.is_dir })?;
        }
    }
    for message in &view.unreadable {
        out.object(&object! { "type": "problem", "message": message })?;
    }
    Ok(())
}

pub fn leftover_name(kind: LeftoverDir) -> &'static str {
    match kind {
        LeftoverDir::Deleted => "deleted",
        LeftoverDir::Future => "future",
        LeftoverDir::Stray => "stray",
    }
}

/// A word for what there is of the catalog, and why it cannot be read.
pub fn catalog_state(dir: &DataDir) -> (&'static str, Option<&str>) {
    match dir.catalog_state() {
        CatalogState::Open(_) => ("open", None),
        CatalogState::Missing => ("missing", None),
        CatalogState::Damaged { reason } => ("damaged", Some(reason)),
        CatalogState::Unreadable { reason } => ("unreadable", Some(reason)),
        CatalogState::None => ("none", None),
    }
}

/// The cluster's id, whoever keeps it.
pub fn cluster_id(dir: &DataDir) -> Option<&str> {
    match dir.origin() {
        Origin::Doze => dir.catalog().map(|catalog| catalog.cluster_id()),
        Origin::Kafka => dir.kafka().cluster_id.as_deref(),
    }
}

fn directory(view: &View<'_>) -> Object {
    let dir = view.dir;
    let scrub = view.scrub.as_ref();
    let (state, reason) = catalog_state(dir);
    let (stop, unchecked) = match dir.stop() {
        Stop::Clean { unchecked } => {
            let mut unchecked: Vec<&String> = unchecked.iter().collect();
            unchecked.sort();
            ("clean", unchecked)
        }
        Stop::Unclean => ("unclean", Vec::new()),
        Stop::Nonsense => ("unclean", Vec::new()),
    };
    object! {
        "type": "directory",
        "path": dir.path().to_string_lossy(),
        "origin": dir.origin().name(),
        "cluster_id": cluster_id(dir),
        "node_id": dir.kafka().node_id,
        "format": dir.catalog().and_then(|catalog| catalog.format().ok()),
        "catalog": (dir.origin() == Origin::Doze).then(|| dir.catalog_path().to_string_lossy()),
        "catalog_state": state,
        "catalog_problem": reason,
        "stop": stop,
        "unchecked": unchecked,
        "held": *dir.held() == Held::Yes,
        "topics": view.topics.len(),
        "partitions": view.topics.iter().map(|topic| topic.partitions.len()).sum::<usize>(),
        "segments": view.topics.iter().map(TopicView::segments).sum::<usize>(),
        "log_bytes": view.topics.iter().map(TopicView::log_bytes).sum::<u64>(),
        "disk_bytes": view.topics.iter().map(TopicView::disk_bytes).sum::<u64>(),
        "scrub_started_ms": scrub.and_then(|scrub| scrub.started_ms),
        "scrub_finished_ms": scrub.and_then(|scrub| scrub.finished_ms),
        "scrub_at": scrub.and_then(|scrub| scrub.at.as_ref()).map(|at| json!({
            "topic": at.topic,
            "partition": at.partition,
            "segment": at.segment,
            "position": at.position,
            "offset": at.offset,
        })),
        "scrub_damaged": scrub.map(|scrub| scrub.findings.len() as u64 + scrub.more),
    }
}

fn scrub_finding(finding: &Finding) -> Object {
    let damage = &finding.damage;
    object! {
        "type": "scrub_finding",
        "topic": finding.topic,
        "topic_id": finding.topic_id.to_string(),
        "partition": finding.partition,
        "segment": damage.segment,
        "position": damage.position,
        "bytes": damage.bytes,
        "first_offset": damage.offsets.0,
        "next_offset": damage.offsets.1,
        "kind": finding.kind.name(),
        "found_ms": finding.found_ms,
    }
}

fn configs(configs: &ConfigMap) -> Value {
    configs
        .iter()
        .map(|(key, value)| (key.clone(), Value::from(value.as_str())))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// The fields that say what batches hold.
fn with_content(mut object: Object, content: &Content) -> Object {
    let codecs: Vec<Value> = content
        .codecs
        .iter()
        .map(|(id, codec)| {
            let ratio =
                (codec.measured_stored > 0).then(|| codec.measured_inflated as f64 / codec.measured_stored as f64);
            json!({
                "codec": Compression::from_id(*id).map(Compression::name),
                "batches": codec.batches,
                "bytes": codec.bytes,
                "ratio": ratio,
            })
        })
        .collect();
    object.0.extend([
        ("batches", json!(content.batches_about())),
        ("records", json!(content.records_about())),
        ("counts_exact", json!(content.exact())),
        ("codecs", json!(codecs)),
        ("compression_ratio", json!(content.ratio())),
    ]);
    object
}

fn topic(topic: &TopicView) -> Object {
    let object = object! {
        "type": "topic",
        "topic": topic.name,
        "topic_id": topic.id.map(|id| id.to_string()),
        "in_catalog": topic.in_catalog,
        "partitions": topic.declared,
        "partitions_missing": topic.missing,
        "segments": topic.segments(),
        "log_bytes": topic.log_bytes(),
        "disk_bytes": topic.disk_bytes(),
        "offsets": topic.offsets(),
        "first_timestamp_ms": topic.first_timestamp(),
        "last_timestamp_ms": topic.last_timestamp(),
        "configs": topic.configs.as_deref().map(configs),
    };
    with_content(object, &topic.content())
}

fn partition(summary: &PartitionSummary) -> Object {
    let content = summary.content();
    let object = object! {
        "type": "partition",
        "topic": summary.topic,
        "partition": summary.partition,
        "topic_id": summary.topic_id.map(|id| id.to_string()),
        "log_start_offset": summary.log_start,
        "log_end_offset": summary.log_end,
        "high_watermark": summary.high_watermark,
        "last_stable_offset": summary.last_stable,
        "segments": summary.segments.len(),
        "log_bytes": summary.log_bytes(),
        "disk_bytes": summary.disk_bytes,
        "tail_bytes": summary.tail_bytes(),
        "first_timestamp_ms": summary.first_timestamp(),
        "last_timestamp_ms": summary.last_timestamp(),
        "producers": summary.producers.len(),
        "open_transactions": summary.open_transactions.len(),
        "aborted_transactions": summary.aborted_transactions(),
        "leader_epoch": summary.leader_epochs.last().map(|(epoch, _)| epoch),
        "cleaned_to_offset": summary.cleaned_to,
        "cleaner_error": summary.cleaner_error,
        "trusted": summary.trusted,
        "flush_failed": summary.flush_failed,
        "leftover_files": summary.leftover_files,
        "problems": summary.problems,
    };
    with_content(object, &content)
}

fn segment(summary: &PartitionSummary, segment: &SegmentSummary) -> Object {
    let object = object! {
        "type": "segment",
        "topic": summary.topic,
        "partition": summary.partition,
        "base_offset": segment.base_offset,
        "end_offset": segment.end_offset,
        "log_bytes": segment.bytes,
        "index_bytes": segment.index_bytes,
        "tail_bytes": segment.tail_bytes,
        "first_timestamp_ms": segment.first_timestamp,
        "last_timestamp_ms": segment.last_timestamp,
        "modified_ms": segment.modified_ms,
        "aborted_transactions": segment.aborted_transactions,
    };
    with_content(object, &segment.content)
}

fn open_transactions(out: &mut Output, summary: &PartitionSummary) -> Result<(), Failure> {
    for open in &summary.open_transactions {
        out.object(&object! {
            "type": "open_transaction",
            "topic": summary.topic,
            "partition": summary.partition,
            "producer_id": open.producer_id,
            "producer_epoch": open.producer_epoch,
            "first_offset": open.first_offset,
            "last_timestamp_ms": known(open.last_timestamp),
        })?;
    }
    Ok(())
}

/// A number that stands for none where it is negative.
fn known(number: impl Into<i64>) -> Option<i64> {
    Some(number.into()).filter(|number| *number >= 0)
}

fn details(out: &mut Output, summary: &PartitionSummary) -> Result<(), Failure> {
    for found in &summary.segments {
        out.object(&segment(summary, found))?;
    }
    for producer in &summary.producers {
        out.object(&object! {
            "type": "producer",
            "topic": summary.topic,
            "partition": summary.partition,
            "producer_id": producer.producer_id,
            "producer_epoch": producer.epoch,
            "last_sequence": known(producer.last_sequence),
            "last_timestamp_ms": known(producer.last_timestamp),
            "coordinator_epoch": known(producer.coordinator_epoch),
            "transaction_first_offset": producer.transaction_start,
        })?;
    }
    open_transactions(out, summary)?;
    for (epoch, start) in &summary.leader_epochs {
        out.object(&object! {
            "type": "leader_epoch",
            "topic": summary.topic,
            "partition": summary.partition,
            "epoch": epoch,
            "start_offset": start,
        })?;
    }
    Ok(())
}

fn group(group: &GroupView) -> Object {
    object! {
        "type": "group",
        "group": group.id,
        "kind": group.kind,
        "state": group.state,
        "protocol_type": group.protocol_type,
        "members": group.members,
        "offsets": group.offsets.len(),
        "pending_offsets": group.pending.len(),
        "lag": group.lag(),
    }
}

fn pending_offset(group: &GroupView, pending: &PendingView) -> Object {
    object! {
        "type": "pending_offset",
        "group": group.id,
        "topic": pending.topic,
        "partition": pending.partition,
        "offset": pending.offset,
        "producer_id": pending.producer_id,
        "producer_epoch": pending.producer_epoch,
    }
}

fn committed_offset(group: &GroupView, offset: &OffsetView) -> Object {
    let committed = &offset.committed;
    object! {
        "type": "committed_offset",
        "group": group.id,
        "topic": offset.topic,
        "partition": offset.partition,
        "offset": committed.offset,
        "leader_epoch": known(committed.leader_epoch),
        "metadata": committed.metadata,
        "commit_timestamp_ms": committed.commit_timestamp_ms,
        "expire_timestamp_ms": committed.expire_timestamp_ms,
        "lag": offset.lag,
    }
}

fn share_partition(group: &GroupView, share: &ShareView) -> Object {
    object! {
        "type": "share_partition",
        "group": group.id,
        "topic": share.topic,
        "partition": share.partition,
        "start_offset": share.start_offset,
        "done": share.done,
        "lag": share.lag,
    }
}

fn transactional_id(transaction: &TransactionView) -> Object {
    let metadata = &transaction.metadata;
    let places: Vec<Value> =
        metadata.places.iter().map(|(topic, n)| json!({ "topic": &**topic, "partition": n })).collect();
    object! {
        "type": "transactional_id",
        "transactional_id": transaction.id,
        "state": metadata.state.name(),
        "producer_id": known(metadata.producer_id),
        "producer_epoch": known(metadata.epoch),
        "timeout_ms": metadata.timeout_ms,
        "partitions": places,
        "start_timestamp_ms": known(metadata.start_ms),
        "update_timestamp_ms": known(metadata.update_ms),
    }
}
