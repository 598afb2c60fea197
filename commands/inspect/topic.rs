//! One topic, with its partitions and those who read it.

use super::json;
use super::model::{Scope, TopicView, View};
use super::overview::open_transactions;
use super::show::{self, facts, or_dash, section, time};
use crate::exit::Failure;
use crate::format;
use crate::output::{Output, Rows, number, text};

pub fn print(out: &mut Output, view: &View<'_>) -> Result<(), Failure> {
    if out.is_json() {
        return json::print(out, view, &Scope::Topic(String::new()));
    }
    for topic in &view.topics {
        facts(out, &of_topic(topic))?;
        section(out, "Partitions", &partitions(topic))?;
    }
    section(out, "Open transactions", &open_transactions(view))?;
    section(out, "Committed offsets", &show::committed_offsets(&view.groups))?;
    section(out, "Share partitions", &show::share_partitions(&view.groups))?;
    show::problems(out, view)
}

pub fn of_topic(topic: &TopicView) -> Vec<(&'static str, String)> {
    let mut facts = vec![("Topic", topic.name.clone()), ("Topic id", or_dash(topic.id))];
    if topic.in_catalog == Some(false) {
        facts.push(("Catalog", "does not have it: doze serve would leave its folders alone".to_owned()));
    }
    match &topic.configs {
        None => {}
        Some(configs) if configs.is_empty() => facts.push(("Configs", "none of its own".to_owned())),
        Some(configs) => {
            let configs: Vec<String> = configs.iter().map(|(key, value)| format!("{key}={value}")).collect();
            facts.push(("Configs", configs.join(" ")));
        }
    }
    if !topic.missing.is_empty() {
        let missing: Vec<String> = topic.missing.iter().map(i32::to_string).collect();
        facts.push(("No folder", format!("for partition {}", missing.join(", "))));
    }
    facts
}

fn partitions(topic: &TopicView) -> Rows {
    let mut rows = Rows::new(&[
        number("partition"),
        number("start"),
        number("high watermark"),
        number("last stable"),
        number("segments"),
        number("size"),
        number("batches"),
        number("records"),
        text("codecs"),
        text("first record"),
        text("last record"),
        number("producers"),
        number("cleaned to"),
        text("notes"),
    ]);
    for partition in &topic.partitions {
        let content = partition.content();
        let mut notes = Vec::new();
        if partition.flush_failed {
            notes.push("a flush failed".to_owned());
        }
        if !partition.trusted {
            notes.push("checked at the next start".to_owned());
        }
        if partition.tail_bytes() > 0 {
            notes.push(format!("{} bytes behind the last batch", partition.tail_bytes()));
        }
        if let Some(error) = &partition.cleaner_error {
            notes.push(format!("cleaning failed: {error}"));
        }
        if partition.leftover_files > 0 {
            notes.push(format::count(
                partition.leftover_files,
                "file on its way in or out",
                "files on their way in or out",
            ));
        }
        rows.push(vec![
            partition.partition.to_string(),
            partition.log_start.to_string(),
            partition.high_watermark.to_string(),
            partition.last_stable.to_string(),
            partition.segments.len().to_string(),
            format::bytes(partition.log_bytes()),
            show::batches(&content),
            show::records(&content),
            show::codecs(&content),
            time(partition.first_timestamp()),
            time(partition.last_timestamp()),
            partition.producers.len().to_string(),
            or_dash(partition.cleaned_to),
            notes.join("; "),
        ]);
    }
    rows
}
