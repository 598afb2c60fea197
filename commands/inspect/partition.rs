//! One partition, with its segments, its producers and those who read it.

use doze::storage::inspect::PartitionSummary;

use super::json;
use super::model::{Scope, View};
use super::overview::open_transactions;
use super::show::{self, facts, or_dash, section, time};
use super::topic;
use crate::exit::Failure;
use crate::format;
use crate::output::{Output, Rows, number, text};

pub fn print(out: &mut Output, view: &View<'_>) -> Result<(), Failure> {
    if out.is_json() {
        return json::print(out, view, &Scope::Partition(String::new(), 0));
    }
    for topic in &view.topics {
        facts(out, &topic::of_topic(topic))?;
        for partition in &topic.partitions {
            facts(out, &of_partition(partition))?;
            section(out, "Segments", &segments(partition))?;
            section(out, "Producers", &producers(partition))?;
            section(out, "Open transactions", &open_transactions(view))?;
            section(out, "Leader epochs", &leader_epochs(partition))?;
        }
    }
    section(out, "Committed offsets", &show::committed_offsets(&view.groups))?;
    section(out, "Share partitions", &show::share_partitions(&view.groups))?;
    show::problems(out, view)
}

fn of_partition(partition: &PartitionSummary) -> Vec<(&'static str, String)> {
    let content = partition.content();
    let mut facts = vec![
        ("Partition", partition.partition.to_string()),
        ("Log start offset", partition.log_start.to_string()),
        ("High watermark", partition.high_watermark.to_string()),
        ("Last stable offset", partition.last_stable.to_string()),
        (
            "Log",
            format!(
                "{} in {}",
                format::bytes(partition.log_bytes()),
                format::count(partition.segments.len(), "segment", "segments")
            ),
        ),
        ("On disk", format::bytes(partition.disk_bytes)),
        ("Batches", show::batches(&content)),
        ("Records", show::records(&content)),
        ("Codecs", show::codecs(&content)),
        ("First record", time(partition.first_timestamp())),
        ("Last record", time(partition.last_timestamp())),
        ("Aborted transactions", partition.aborted_transactions().to_string()),
        ("Cleaned to offset", or_dash(partition.cleaned_to)),
    ];
    if let Some(error) = &partition.cleaner_error {
        facts.push(("Cleaner", format!("failed the last time: {error}")));
    }
    facts.push((
        "Next start",
        match (partition.flush_failed, partition.trusted) {
            (true, _) => "checks the last segment and writes it anew: a flush of it failed".to_owned(),
            (false, true) => "takes the files as they are".to_owned(),
            (false, false) => "checks the last segment".to_owned(),
        },
    ));
    if partition.tail_bytes() > 0 {
        facts.push(("Behind the last batch", format!("{} bytes that make none", partition.tail_bytes())));
    }
    if partition.leftover_files > 0 {
        facts.push(("Other files", format!("{} on their way in or out", partition.leftover_files)));
    }
    facts
}

fn segments(partition: &PartitionSummary) -> Rows {
    let mut rows = Rows::new(&[
        number("base offset"),
        number("end offset"),
        number("size"),
        number("index size"),
        number("batches"),
        number("records"),
        text("codecs"),
        text("first record"),
        text("last record"),
        number("aborted"),
    ]);
    for segment in &partition.segments {
        rows.push(vec![
            segment.base_offset.to_string(),
            segment.end_offset.to_string(),
            format::bytes(segment.bytes),
            format::bytes(segment.index_bytes),
            show::batches(&segment.content),
            show::records(&segment.content),
            show::codecs(&segment.content),
            time(segment.first_timestamp),
            time(segment.last_timestamp),
            segment.aborted_transactions.to_string(),
        ]);
    }
    rows
}

fn producers(partition: &PartitionSummary) -> Rows {
    let mut rows = Rows::new(&[
        number("producer"),
        number("epoch"),
        number("last sequence"),
        text("last record or marker"),
        number("coordinator epoch"),
        number("open since offset"),
    ]);
    for producer in &partition.producers {
        let known = |n: i64| or_dash(Some(n).filter(|n| *n >= 0));
        rows.push(vec![
            producer.producer_id.to_string(),
            producer.epoch.to_string(),
            known(producer.last_sequence.into()),
            time(Some(producer.last_timestamp).filter(|ms| *ms >= 0)),
            known(producer.coordinator_epoch.into()),
            or_dash(producer.transaction_start),
        ]);
    }
    rows
}

fn leader_epochs(partition: &PartitionSummary) -> Rows {
    let mut rows = Rows::new(&[number("epoch"), number("start offset")]);
    for (epoch, start) in &partition.leader_epochs {
        rows.push(vec![epoch.to_string(), start.to_string()]);
    }
    rows
}
