//! What a look came to, for people and for programs.

use std::path::Path;

use doze::storage::offline::{Origin, Stop};
use doze::storage::verify::{Consequence, Finding, Kind, PartitionReport, Repair, Report, Unchecked};
use serde_json::{Value, json};

use crate::exit::Failure;
use crate::format;
use crate::output::{Output, Rows, text};

/// The most partitions that are named one by one in a sentence.
const NAMED: usize = 5;

pub fn print(out: &mut Output, report: &Report, asked_for: &Path) -> Result<(), Failure> {
    if out.is_json() { objects(out, report) } else { for_people(out, report, asked_for) }
}

fn objects(out: &mut Output, report: &Report) -> Result<(), Failure> {
    for finding in &report.findings {
        out.object(&finding_object(finding))?;
    }
    for partition in &report.partitions {
        out.object(&partition_object(report, partition))?;
    }
    for unchecked in &report.unchecked {
        out.object(&unchecked_object(unchecked))?;
    }
    out.object(&summary_object(report))
}

fn finding_object(finding: &Finding) -> Value {
    json!({
        "type": "finding",
        "topic": finding.topic,
        "partition": finding.partition,
        "file": finding.file.to_string_lossy(),
        "position": finding.position,
        "bytes": finding.bytes,
        "first_offset": finding.offsets.map(|offsets| offsets.0),
        "next_offset": finding.offsets.map(|offsets| offsets.1),
        "kind": finding.kind.name(),
        "consequence": finding.consequence.name(),
        "repair": finding.repair.name(),
        "detail": finding.detail,
    })
}

fn partition_object(report: &Report, partition: &PartitionReport) -> Value {
    let findings = &report.findings[partition.findings.clone()];
    json!({
        "type": "partition",
        "topic": partition.topic,
        "partition": partition.partition,
        "topic_id": partition.topic_id.map(|id| id.to_string()),
        "log_start_offset": partition.log_start,
        "log_end_offset": partition.end,
        "segments": partition.totals.segments,
        "bytes": partition.totals.bytes,
        "batches": partition.totals.batches,
        "records": partition.totals.records,
        "findings": findings.len() as u64 + partition.more_findings,
        "damaged": findings.iter().any(Finding::is_damage) || partition.more_findings > 0,
    })
}

fn unchecked_object(unchecked: &Unchecked) -> Value {
    json!({
        "type": "unchecked",
        "topic": unchecked.topic,
        "partition": unchecked.partition,
        "file": unchecked.file.as_ref().map(|file| file.to_string_lossy()),
        "what": unchecked.what,
    })
}

fn summary_object(report: &Report) -> Value {
    let counts: serde_json::Map<String, Value> = Consequence::ALL
        .iter()
        .map(|consequence| (consequence.name().to_owned(), report.of(*consequence).count().into()))
        .collect();
    json!({
        "type": "summary",
        "dir": report.dir.to_string_lossy(),
        "origin": report.origin.name(),
        "level": report.level.name(),
        "clean_stop": matches!(report.stop, Stop::Clean { .. }),
        "partitions": report.totals.partitions,
        "segments": report.totals.segments,
        "bytes": report.totals.bytes,
        "batches": report.totals.batches,
        "records": report.totals.records,
        "findings": counts,
        "damaged": report.is_damaged(),
        "cancelled": report.cancelled,
        "command": advice(report).map(|advice| advice.1),
    })
}

/// What a consequence is called in a table.
fn verdict_of(finding: &Finding) -> String {
    let what = match finding.consequence {
        Consequence::Lost => "LOST",
        Consequence::TornTail => "torn tail",
        Consequence::Rebuild => "to be rebuilt",
        Consequence::Unserved => "not served",
        Consequence::Suspect => "suspect",
        Consequence::Unknown => "not readable",
        Consequence::Harmless => "harmless",
    };
    what.to_owned()
}

fn offsets(finding: &Finding) -> String {
    match finding.offsets {
        Some((from, to)) if to > from + 1 => format!("{from}-{}", to - 1),
        Some((from, to)) if to > from => from.to_string(),
        Some((from, _)) if finding.consequence == Consequence::TornTail => format!("from {from}"),
        _ => String::new(),
    }
}

fn place(finding: &Finding) -> String {
    let file = format::path(&finding.file);
    match (finding.position, finding.bytes) {
        (Some(position), Some(bytes)) if bytes > 0 => format!("{file} at {position}, {bytes} bytes"),
        (Some(position), _) => format!("{file} at {position}"),
        _ => file,
    }
}

fn who(finding: &Finding) -> String {
    match (&finding.topic, finding.partition) {
        (Some(topic), Some(partition)) => format!("{topic}-{partition}"),
        (Some(topic), None) => topic.clone(),
        _ => String::new(),
    }
}

fn for_people(out: &mut Output, report: &Report, asked_for: &Path) -> Result<(), Failure> {
    let mut rows = Rows::new(&[
        text("partition"),
        text("offsets"),
        text("verdict"),
        text("where"),
        text("what"),
        text("put right by"),
    ]);
    for finding in report.findings.iter().filter(|finding| finding.is_damage()) {
        let repair = match finding.repair {
            Repair::Start => "the next start",
            Repair::Recover => "doze recover",
            Repair::Person => "you",
            Repair::Nothing => "nobody",
        };
        rows.push(vec![
            who(finding),
            offsets(finding),
            verdict_of(finding),
            place(finding),
            format!("{}: {}", finding.kind, finding.detail),
            repair.to_owned(),
        ]);
    }
    if !rows.is_empty() {
        out.rows(&rows)?;
        out.line("")?;
    }
    let more: u64 = report.partitions.iter().map(|partition| partition.more_findings).sum();
    if more > 0 {
        out.line(&format!("There is more damage of the same kinds: {more} findings are not shown."))?;
    }
    let whose = match report.origin {
        Origin::Doze => "doze's",
        Origin::Kafka => "Apache Kafka's",
    };
    let stop = match (&report.stop, report.origin) {
        (Stop::Clean { unchecked }, _) if unchecked.is_empty() => "stopped cleanly".to_owned(),
        (Stop::Clean { unchecked }, _) => {
            format!("stopped cleanly, {} of it not", format::count(unchecked.len(), "partition", "partitions"))
        }
        (_, Origin::Doze) => "not stopped cleanly: the next start checks the last segment of each log".to_owned(),
        (_, Origin::Kafka) => {
            "not stopped cleanly: Apache Kafka's next start checks what it had not flushed".to_owned()
        }
    };
    if report.is_lone {
        out.line(&format!("{} is the folder of a partition by itself.", format::path(asked_for)))?;
    } else {
        out.line(&format!("{} is {whose}, {stop}.", format::path(&report.dir)))?;
    }
    let is_emptied = |finding: &&Finding| finding.kind == Kind::Emptied;
    let (emptied, others): (Vec<&Finding>, Vec<&Finding>) = report.of(Consequence::Harmless).partition(is_emptied);
    if let Some(first) = emptied.first() {
        let count = format::count(emptied.len(), "empty batch is", "empty batches are");
        let example = format!("{} of {}", offsets(first), who(first));
        let where_to = "the manifest of the recovery has what was there";
        let what = format!("{count} in the place of what a recovery took out ({example} for one)");
        out.line(&format!("Besides, {}; {where_to}, --json has all.", format::printable(&what)))?;
    }
    if let Some(first) = others.first() {
        let example = format::path(&first.file);
        let what = match others.len() {
            1 => format!("{example} is left over or foreign, and does no harm"),
            count => format!(
                "{count} files or folders are left over or foreign, and do no harm ({example} for one; --json has all)"
            ),
        };
        out.line(&format!("Besides, {what}."))?;
    }
    let totals = &report.totals;
    out.line(&format!(
        "Looked at {}, {}, {}; {}, {} (level {}).",
        format::count(totals.partitions, "partition", "partitions"),
        format::count(totals.segments, "segment", "segments"),
        format::bytes(totals.bytes),
        format::count(totals.batches, "batch", "batches"),
        format::count(totals.records, "record", "records"),
        report.level
    ))?;
    for unchecked in &report.unchecked {
        let who = match (&unchecked.topic, unchecked.partition) {
            (Some(topic), Some(partition)) => format!("{topic}-{partition}: "),
            _ => String::new(),
        };
        out.line(&format!("Not checked: {}{}.", format::printable(&who), format::printable(&unchecked.what)))?;
    }
    out.line(&format!("Result: {}.", verdict(report)))?;
    if let Some((why, command)) = advice(report) {
        out.line(&format!("{why}: {command} {}", format::path(asked_for)))?;
    } else if report.is_damaged() && report.findings.iter().any(|finding| finding.repair == Repair::Start) {
        out.line("The next start puts this right by itself.")?;
    }
    Ok(())
}

/// The partitions that have a finding with this consequence, in a few words.
fn named(report: &Report, consequence: Consequence) -> String {
    let mut names: Vec<String> = report.of(consequence).map(who).collect();
    names.dedup();
    names.retain(|name| !name.is_empty());
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let names = names.join(", ");
    match (names.is_empty(), more) {
        (true, _) => String::new(),
        (false, 0) => format!(" ({names})"),
        (false, _) => format!(" ({names} and {more} more)"),
    }
}

/// The whole in one sentence, without a full stop.
pub fn verdict(report: &Report) -> String {
    let sayings = [
        (Consequence::Lost, "records are lost"),
        (Consequence::Unserved, "data is not served"),
        (Consequence::Suspect, "data contradicts itself"),
        (Consequence::Unknown, "something could not be read"),
        (Consequence::TornTail, "a torn tail, which the next start cuts"),
        (Consequence::Rebuild, "something has to be made anew from the log"),
    ];
    let mut parts: Vec<String> = sayings
        .iter()
        .filter(|(consequence, _)| report.of(*consequence).next().is_some())
        .map(|(consequence, saying)| format!("{saying}{}", format::printable(&named(report, *consequence))))
        .collect();
    if parts.is_empty() {
        parts.push(if report.cancelled { "no damage up to where it was stopped" } else { "no damage" }.to_owned());
    } else if report.cancelled {
        parts.push("and it was stopped before the end".to_owned());
    }
    parts.join("; ")
}

/// The command that would help, and what it would do.
fn advice(report: &Report) -> Option<(&'static str, &'static str)> {
    let needs = |repair| report.findings.iter().any(|finding| finding.is_damage() && finding.repair == repair);
    needs(Repair::Recover).then_some(("To see what can be repaired", "doze recover --dry-run"))
}
