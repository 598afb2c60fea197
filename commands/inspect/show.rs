//! Numbers and facts in the form that the tables have them.

use doze::record::Compression;
use doze::storage::inspect::Content;

use super::groups::GroupView;
use super::model::View;
use crate::exit::Failure;
use crate::format;
use crate::output::{Output, Rows, number, text};

/// `~` in front of what is an estimate.
pub fn about(exact: bool, count: u64) -> String {
    if exact { count.to_string() } else { format!("~{count}") }
}

pub fn records(content: &Content) -> String {
    content.records_about().map_or("?".to_owned(), |records| about(content.exact(), records))
}

pub fn batches(content: &Content) -> String {
    about(content.exact(), content.batches_about())
}

/// The codecs, the one with the most bytes first, and how well they compress: `zstd, none 4.1x`.
pub fn codecs(content: &Content) -> String {
    let mut codecs: Vec<_> = content.codecs.iter().collect();
    codecs.sort_by_key(|(_, codec)| std::cmp::Reverse(codec.bytes));
    let name = |id: &u8| Compression::from_id(*id).map_or("?", Compression::name);
    let mut all = codecs.iter().map(|(id, _)| name(id)).collect::<Vec<_>>().join(", ");
    if content.old_entries > 0 {
        all += if all.is_empty() { "old format" } else { ", old format" };
    }
    match content.ratio() {
        Some(ratio) => format!("{all} {ratio:.1}x"),
        None => all,
    }
}

pub fn time(ms: Option<i64>) -> String {
    ms.map_or("-".to_owned(), format::timestamp)
}

pub fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
}

/// Facts, each on a line with its name in front.
pub fn facts(out: &mut Output, facts: &[(&str, String)]) -> Result<(), Failure> {
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 1;
    for (name, value) in facts {
        out.line(&format!("{:<width$} {}", format!("{name}:"), format::printable(value)))?;
    }
    Ok(())
}

/// Rows under a title; nothing where there are none.
pub fn section(out: &mut Output, title: &str, rows: &Rows) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(());
    }
    out.line("")?;
    out.line(title)?;
    out.rows(rows)
}

/// What the groups have committed.
pub fn committed_offsets(groups: &[GroupView]) -> Rows {
    let mut rows = Rows::new(&[
        text("group"),
        text("topic"),
        number("partition"),
        number("offset"),
        number("lag"),
        text("committed"),
        text("metadata"),
    ]);
    for group in groups {
        for offset in &group.offsets {
            rows.push(vec![
                group.id.clone(),
                offset.topic.clone(),
                offset.partition.to_string(),
                offset.committed.offset.to_string(),
                or_dash(offset.lag),
                format::timestamp(offset.committed.commit_timestamp_ms),
                offset.committed.metadata.clone(),
            ]);
        }
    }
    rows
}

/// How far share groups are.
pub fn share_partitions(groups: &[GroupView]) -> Rows {
    let mut rows = Rows::new(&[
        text("group"),
        text("topic"),
        number("partition"),
        number("start offset"),
        number("done after it"),
        number("lag"),
    ]);
    for group in groups {
        for share in &group.shares {
            rows.push(vec![
                group.id.clone(),
                share.topic.clone(),
                share.partition.to_string(),
                share.start_offset.to_string(),
                share.done.to_string(),
                or_dash(share.lag),
            ]);
        }
    }
    rows
}

/// What could not be read.
pub fn problems(out: &mut Output, view: &View<'_>) -> Result<(), Failure> {
    let of_partitions = view.topics.iter().flat_map(|topic| &topic.partitions).flat_map(|partition| {
        partition.problems.iter().map(move |problem| format!("{}-{}: {problem}", partition.topic, partition.partition))
    });
    let all: Vec<String> = view.unreadable.iter().cloned().chain(of_partitions).collect();
    if all.is_empty() {
        return Ok(());
    }
    out.line("")?;
    out.line("Could not be read")?;
    all.iter().try_for_each(|problem| out.line(&format!("  {}", format::printable(problem))))
}
