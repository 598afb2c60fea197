//! The directory, its topics, its groups and its transactional ids.

use doze::storage::offline::{Held, Origin, Stop};
use doze::storage::scrub::Checkpoint;

use super::json;
use super::model::{Scope, TopicView, View};
use super::show::{self, facts, or_dash, section, time};
use crate::exit::Failure;
use crate::format;
use crate::output::{Output, Rows, number, text};

pub fn print(out: &mut Output, view: &View<'_>) -> Result<(), Failure> {
    if out.is_json() {
        return json::print(out, view, &Scope::All);
    }
    facts(out, &directory(view))?;
    section(out, "Topics", &topics(view))?;
    section(out, "Groups", &groups(view))?;
    section(out, "Committed offsets", &show::committed_offsets(&view.groups))?;
    section(out, "Share partitions", &show::share_partitions(&view.groups))?;
    section(out, "Transactional ids", &transactional_ids(view))?;
    section(out, "Open transactions", &open_transactions(view))?;
    section(out, "Damage that the scrub found", &scrub_findings(view))?;
    section(out, "Not looked at", &others(view))?;
    show::problems(out, view)
}

fn directory(view: &View<'_>) -> Vec<(&'static str, String)> {
    let dir = view.dir;
    let mut facts = vec![("Directory", format::path(dir.path()))];
    facts.push((
        "Written by",
        match dir.origin() {
            Origin::Doze => "doze".to_owned(),
            Origin::Kafka => format!("Apache Kafka, node {}", or_dash(dir.kafka().node_id)),
        },
    ));
    facts.push(("Cluster id", or_dash(json::cluster_id(dir))));
    facts.push((
        "Last stop",
        match dir.stop() {
            Stop::Clean { unchecked } if unchecked.is_empty() => "clean".to_owned(),
            Stop::Clean { unchecked } => {
                let mut unchecked: Vec<&str> = unchecked.iter().map(String::as_str).collect();
                unchecked.sort_unstable();
                format!("clean, but nothing is known of {}", unchecked.join(", "))
            }
            Stop::Unclean => "unclean: the next start checks the last segment of each partition".to_owned(),
            Stop::Nonsense => "unclean: the mark of a clean stop makes no sense".to_owned(),
        },
    ));
    if dir.origin() == Origin::Doze {
        let state = match json::catalog_state(dir) {
            ("open", _) => format!("format {}", or_dash(dir.catalog().and_then(|catalog| catalog.format().ok()))),
            (state, None) => state.to_owned(),
            (state, Some(reason)) => format!("{state}: {reason}"),
        };
        facts.push(("Catalog", format!("{}, {state}", format::path(dir.catalog_path()))));
    }
    if let Held::Unknown { reason } = dir.held() {
        facts.push(("Lock", format!("cannot be held ({reason}): whether a broker has the directory is not known")));
    }
    if let Some(scrub) = &view.scrub {
        facts.push(("Scrub", scrubbed(scrub)));
    }
    let partitions: usize = view.topics.iter().map(|topic| topic.partitions.len()).sum();
    let segments: usize = view.topics.iter().map(TopicView::segments).sum();
    let log_bytes: u64 = view.topics.iter().map(TopicView::log_bytes).sum();
    let disk_bytes: u64 = view.topics.iter().map(TopicView::disk_bytes).sum();
    let (topics, segments) =
        (format::count(view.topics.len(), "topic", "topics"), format::count(segments, "segment", "segments"));
    facts.push(("Partitions", format!("{partitions} of {topics}, with {segments}")));
    facts.push(("Logs", format!("{} ({} with indexes)", format::bytes(log_bytes), format::bytes(disk_bytes))));
    facts
}

fn scrubbed(scrub: &Checkpoint) -> String {
    let mut said = match scrub.finished_ms {
        None => "no pass has come to its end".to_owned(),
        Some(ms) => format!("last pass finished {}", format::timestamp(ms)),
    };
    if let Some(at) = &scrub.at {
        said += &format!(", one is under way at {}-{}, offset {}", at.topic, at.partition, at.offset);
    }
    match scrub.findings.len() as u64 + scrub.more {
        0 => {}
        damaged => said += &format!(", {damaged} damaged"),
    }
    said
}

/// What the background check of sealed segments knows to be damaged.
fn scrub_findings(view: &View<'_>) -> Rows {
    let mut rows = Rows::new(&[
        text("partition"),
        number("first offset"),
        number("next offset"),
        number("segment"),
        number("position"),
        number("bytes"),
        text("kind"),
        text("found"),
    ]);
    for finding in view.scrub.iter().flat_map(|scrub| &scrub.findings) {
        let damage = &finding.damage;
        rows.push(vec![
            format!("{}-{}", finding.topic, finding.partition),
            damage.offsets.0.to_string(),
            damage.offsets.1.to_string(),
            damage.segment.to_string(),
            damage.position.to_string(),
            damage.bytes.to_string(),
            finding.kind.name().to_owned(),
            format::timestamp(finding.found_ms),
        ]);
    }
    rows
}

fn topics(view: &View<'_>) -> Rows {
    let mut rows = Rows::new(&[
        text("topic"),
        text("id"),
        number("partitions"),
        number("segments"),
        number("size"),
        number("offsets"),
        number("records"),
        text("codecs"),
        text("last record"),
        text("notes"),
    ]);
    for topic in &view.topics {
        let content = topic.content();
        rows.push(vec![
            topic.name.clone(),
            or_dash(topic.id),
            topic.declared.to_string(),
            topic.segments().to_string(),
            format::bytes(topic.log_bytes()),
            topic.offsets().to_string(),
            show::records(&content),
            show::codecs(&content),
            time(topic.last_timestamp()),
            notes(topic),
        ]);
    }
    rows
}

/// What is out of the ordinary about a topic.
fn notes(topic: &TopicView) -> String {
    let mut notes = Vec::new();
    if topic.in_catalog == Some(false) {
        notes.push("not in the catalog".to_owned());
    }
    if !topic.missing.is_empty() {
        notes.push(format::count(topic.missing.len(), "partition has no folder", "partitions have no folder"));
    }
    let count = |what: fn(&doze::storage::inspect::PartitionSummary) -> bool| {
        topic.partitions.iter().filter(|partition| what(partition)).count()
    };
    for (found, what) in [
        (count(|partition| partition.flush_failed), "a flush failed"),
        (count(|partition| partition.tail_bytes() > 0), "bytes behind the last batch"),
        (count(|partition| partition.cleaner_error.is_some()), "cleaning failed"),
        (count(|partition| !partition.problems.is_empty()), "not readable"),
    ] {
        if found > 0 {
            notes.push(format!("{what} ({found})"));
        }
    }
    notes.join("; ")
}

fn groups(view: &View<'_>) -> Rows {
    let mut rows =
        Rows::new(&[text("group"), text("kind"), text("state"), number("members"), number("offsets"), number("lag")]);
    for group in &view.groups {
        rows.push(vec![
            group.id.clone(),
            group.kind.unwrap_or("unreadable").to_owned(),
            or_dash(group.state),
            or_dash(group.members),
            group.offsets.len().to_string(),
            or_dash(group.lag()),
        ]);
    }
    rows
}

fn transactional_ids(view: &View<'_>) -> Rows {
    let mut rows = Rows::new(&[
        text("transactional id"),
        text("state"),
        number("producer"),
        number("epoch"),
        text("partitions"),
        text("last change"),
    ]);
    for transaction in &view.transactions {
        let metadata = &transaction.metadata;
        let places: Vec<String> = metadata.places.iter().map(|(topic, n)| format!("{topic}-{n}")).collect();
        rows.push(vec![
            transaction.id.clone(),
            metadata.state.name().to_owned(),
            metadata.producer_id.to_string(),
            metadata.epoch.to_string(),
            places.join(", "),
            format::timestamp(metadata.update_ms),
        ]);
    }
    rows
}

/// Those of all partitions.
pub fn open_transactions(view: &View<'_>) -> Rows {
    let mut rows = Rows::new(&[
        text("partition"),
        number("producer"),
        number("epoch"),
        number("first offset"),
        text("last record"),
    ]);
    for partition in view.topics.iter().flat_map(|topic| &topic.partitions) {
        for open in &partition.open_transactions {
            rows.push(vec![
                format!("{}-{}", partition.topic, partition.partition),
                open.producer_id.to_string(),
                open.producer_epoch.to_string(),
                open.first_offset.to_string(),
                time(Some(open.last_timestamp).filter(|ms| *ms >= 0)),
            ]);
        }
    }
    rows
}

/// What is in the directory besides.
fn others(view: &View<'_>) -> Rows {
    let mut rows = Rows::new(&[text("name"), text("what it is")]);
    for leftover in view.dir.leftovers() {
        let name = leftover.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        rows.push(vec![name, format!("a partition that is {}", json::leftover_name(leftover.kind))]);
    }
    for entry in view.dir.foreign() {
        let what = if entry.is_dir { "a folder that is no partition's" } else { "a file that is nobody's" };
        rows.push(vec![entry.name.to_string_lossy().into_owned(), what.to_owned()]);
    }
    rows
}
