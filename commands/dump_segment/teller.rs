//! Tells of a file, stretch by stretch.

use std::io::Write;

use doze::storage::dump::{BatchEntry, Damage, DamageKind, Dump, Entry, Range};

use super::ordered::{Lines, Order, Stop};
use super::payload::Sink;
use super::{Counts, DumpSegmentArgs, json, text};

/// What is to be shown of a file, and how. Threads share it.
#[derive(Debug)]
pub struct Teller<'a> {
    pub args: &'a DumpSegmentArgs,
    pub range: &'a Range,
    /// How many entries may be shown of the file.
    pub left: u64,
    pub is_json: bool,
}

impl Teller<'_> {
    /// Tells of one stretch after the other, as long as there are any.
    pub fn tell<W: Write>(&self, order: &Order<W>, mut dump: Dump) {
        while let Some(stretch) = order.take(&mut dump) {
            let mut lines = Lines::new(order, stretch);
            // How many are left is known when the turn has come.
            let before = self.args.limit.and_then(|_| lines.wait()).unwrap_or_default();
            let mut counts = Counts::default();
            let mut told = self.stretch(&mut dump, &mut lines, &before, &mut counts);
            if lines.wait().is_none() {
                let Some(before) = lines.go_back(&mut dump) else { return };
                counts = Counts::default();
                told = self.stretch(&mut dump, &mut lines, &before, &mut counts);
            }
            lines.end(told, &counts, dump.place());
        }
    }

    fn stretch(&self, dump: &mut Dump, out: &mut impl Sink, before: &Counts, counts: &mut Counts) -> Result<(), Stop> {
        let before = self.args.shown(before);
        while let Some(entry) = dump.next() {
            let entry = entry.map_err(Stop::Unreadable)?;
            if let Entry::Damage(_) = entry {
                counts.damage += 1;
                self.entry(out, &entry)?;
                continue;
            }
            if before + self.args.shown(counts) >= self.left {
                return Err(Stop::Limit);
            }
            self.entry(out, &entry)?;
            match &entry {
                Entry::Batch(batch) => {
                    counts.batches += 1;
                    if self.args.records && (batch.is_valid() || self.args.damaged) {
                        self.records(dump, batch, out, before, counts)?;
                    }
                }
                _ => counts.entries += 1,
            }
        }
        Ok(())
    }

    /// Shows the records of the batch that was shown last.
    fn records(
        &self,
        dump: &mut Dump,
        batch: &BatchEntry,
        out: &mut impl Sink,
        before: u64,
        counts: &mut Counts,
    ) -> Result<(), Stop> {
        let mut records = dump.records().map_err(Stop::Unreadable)?;
        let mut due = batch.base_offset;
        loop {
            match records.next() {
                Ok(Some(record)) => {
                    due = record.offset.saturating_add(1);
                    if !self.range.has(record.offset, record.timestamp) {
                        continue;
                    }
                    if before + self.args.shown(counts) >= self.left {
                        return Err(Stop::Limit);
                    }
                    counts.records += 1;
                    let shown = match self.is_json {
                        true => json::record(out, &record, self.args.key, self.args.value),
                        false => text::record(out, &record, self.args.key, self.args.value),
                    };
                    shown.map_err(Stop::Stdout)?;
                }
                Ok(None) => return Ok(()),
                Err(error) => {
                    counts.damage += 1;
                    let damage = Damage {
                        position: batch.position,
                        bytes: batch.size,
                        offsets: (Some(due), Some(batch.last_offset.saturating_add(1))),
                        kind: DamageKind::Records { reason: error.to_string() },
                    };
                    return self.entry(out, &Entry::Damage(damage));
                }
            }
        }
    }

    fn entry(&self, out: &mut impl Sink, entry: &Entry) -> Result<(), Stop> {
        let line = out.text().map_err(Stop::Stdout)?;
        let told = if self.is_json { json::entry(line, entry) } else { text::entry(line, entry) };
        told.map_err(Stop::Stdout)
    }
}
