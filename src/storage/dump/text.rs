//! The small text files of a partition. [`crate::storage::log`] says in `files` what stands in them.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use super::damage::{Damage, DamageKind};
use super::{Entry, FileType};
use crate::sys::File;

/// More than such a file ever has, in bytes. What is behind is not looked at.
const LARGEST: u64 = 1 << 20;

#[derive(Debug)]
pub(super) struct TextDump {
    file: Arc<dyn File>,
    size: u64,
    file_type: FileType,
    entries: Option<VecDeque<Entry>>,
}

impl TextDump {
    pub fn new(file: Arc<dyn File>, size: u64, file_type: FileType) -> TextDump {
        TextDump { file, size, file_type, entries: None }
    }

    pub fn next(&mut self) -> io::Result<Option<Entry>> {
        if self.entries.is_none() {
            let mut bytes = vec![0; self.size.min(LARGEST) as usize];
            self.file.read_exact_at(&mut bytes, 0)?;
            let text = String::from_utf8_lossy(&bytes);
            let mut entries = match self.file_type {
                FileType::Metadata => metadata(&text),
                _ => leader_epochs(&text),
            };
            if self.size > LARGEST {
                entries.push_back(damage(LARGEST, self.size - LARGEST, text.lines().count() + 1));
            }
            self.entries = Some(entries);
        }
        Ok(self.entries.as_mut().and_then(VecDeque::pop_front))
    }
}

fn damage(position: u64, bytes: u64, line: usize) -> Entry {
    Entry::Damage(Damage { position, bytes, offsets: (None, None), kind: DamageKind::Text { line } })
}

/// The lines of a text that have something on them: number from 1, position and text.
fn lines(text: &str) -> impl Iterator<Item = (usize, u64, &str)> {
    let mut position = 0;
    let lines = text.split_inclusive('\n').enumerate().map(move |(at, line)| {
        let start = position;
        position += line.len() as u64;
        (at + 1, start, line.trim())
    });
    lines.filter(|(_, _, line)| !line.is_empty())
}

fn metadata(text: &str) -> VecDeque<Entry> {
    let mut entries = VecDeque::new();
    for (line, position, text) in lines(text) {
        let field = |name: &str| Some(text.strip_prefix(name)?.strip_prefix(':')?.trim());
        match (field("version"), field("topic_id").and_then(|id| id.parse().ok())) {
            (Some("0"), _) => {}
            (_, Some(topic_id)) => entries.push_back(Entry::Metadata { topic_id }),
            _ => entries.push_back(damage(position, text.len() as u64, line)),
        }
    }
    if entries.is_empty() {
        entries.push_back(damage(0, text.len() as u64, 1));
    }
    entries
}

fn leader_epochs(text: &str) -> VecDeque<Entry> {
    let mut entries = VecDeque::new();
    let mut count = None;
    let mut found = 0;
    let mut before: Option<(i32, i64)> = None;
    for (line, position, text) in lines(text) {
        let wrong = || damage(position, text.len() as u64, line);
        match line {
            1 if text == "0" => {}
            1 => entries.push_back(wrong()),
            2 => {
                count = text.parse::<u64>().ok();
                if count.is_none() {
                    entries.push_back(wrong());
                }
            }
            _ => {
                let pair = text
                    .split_once(' ')
                    .and_then(|(epoch, start)| Some((epoch.parse::<i32>().ok()?, start.trim().parse::<i64>().ok()?)));
                let Some((epoch, start)) = pair else {
                    entries.push_back(wrong());
                    continue;
                };
                found += 1;
                if before.is_some_and(|before| epoch <= before.0 || start < before.1) {
                    entries.push_back(wrong());
                }
                before = Some((epoch, start));
                entries.push_back(Entry::LeaderEpoch { epoch, start });
            }
        }
    }
    if count != Some(found) {
        let kind = DamageKind::Count { claimed: count.unwrap_or(0), found };
        let bytes = text.len() as u64;
        entries.push_back(Entry::Damage(Damage { position: 0, bytes, offsets: (None, None), kind }));
    }
    entries
}
