//! What is known of producers as the segments of a log are put together in order, and producer snapshots against it.

use std::collections::HashMap;
use std::io;

use super::finding::{Consequence, Kind, Repair};
use super::notes::{Notes, Place};
use super::producers::{Ends, Known, Open, SegmentProducers};
use crate::storage::log::{SnapshotEntry, scan_snapshot};
use crate::sys::File;

#[derive(Clone, Copy, Debug)]
struct Running {
    known: Known,
    open: Option<i64>,
}

/// The producers up to some offset, as far as the log tells.
#[derive(Debug)]
pub(super) struct State {
    running: HashMap<i64, Running>,
    /// The first offset of the log: what was before it is not known.
    log_start: i64,
    /// There was damage: what is open and what came last is not certain.
    uncertain: bool,
}

impl State {
    pub fn new(log_start: i64) -> State {
        State { running: HashMap::new(), log_start, uncertain: false }
    }

    pub fn lose_track(&mut self) {
        self.uncertain = true;
        self.running.clear();
    }

    /// Goes on with what the next segment says. `log`: its file.
    pub fn go_on(&mut self, log: &str, mut segment: SegmentProducers, is_first: bool, notes: &mut Notes) {
        let mut seen: Vec<_> = std::mem::take(&mut segment.seen).into_iter().collect();
        seen.sort_unstable_by_key(|(_, seen)| seen.first.offset);
        let certain = !self.uncertain && !is_first;
        for (stable, marker) in segment.stable.iter().filter(|_| certain && segment.is_strict()) {
            let is_start = segment.maybe_starts.contains(stable)
                || self.running.values().any(|running| running.open == Some(*stable));
            // What began before the log's start may still be open.
            if !is_start && *stable >= self.log_start {
                let why =
                    format!("it says the last stable offset is {stable} after {marker}, where no transaction starts");
                let place = Place::offsets(*stable, marker.saturating_add(1));
                let meaning = (Consequence::Rebuild, segment.repair());
                notes.add(segment.index_name(), place, Kind::BadTxnIndex, meaning, why);
            }
        }
        for (id, seen) in &seen {
            let before = self.running.get(id).copied();
            if let Some(before) = before
                && let Some((kind, why)) = before.known.refuses(&seen.first)
            {
                let place = Place::offsets(seen.first.offset, seen.first.last_offset.saturating_add(1));
                let suspect = (Consequence::Suspect, Repair::Nothing);
                notes.add(log, place, kind, suspect, format!("producer {id}: {why}"));
            }
            if let Some(ends) = seen.ends.filter(|_| segment.is_strict()) {
                let open = before.and_then(|before| before.open).or(ends.maybe_start);
                self.check_end(*id, open, ends, certain, &segment, notes);
            }
        }
        if segment.uncertain {
            self.lose_track();
        }
        for (id, seen) in seen.into_iter().filter(|(_, seen)| !seen.uncertain) {
            let running = self.running.get(&id).copied();
            let before = running.and_then(|before| before.open);
            let open = match seen.open {
                Open::Since(start) => Some(start),
                Open::No => None,
                // A transaction that goes on.
                Open::Before => before.or(seen.maybe_start),
            };
            let known = seen.known.with(running.map(|running| running.known));
            self.running.insert(id, Running { known, open });
        }
    }

    /// A marker that ends what was open before its segment, against the index. `certain`: the transaction is known to start where
    /// it is open from; it has records there in any case.
    fn check_end(
        &self,
        id: i64,
        open: Option<i64>,
        ends: Ends,
        certain: bool,
        segment: &SegmentProducers,
        notes: &mut Notes,
    ) {
        if !ends.aborted {
            return;
        }
        let why = match (open, ends.entry) {
            (Some(start), None) => {
                format!("the transaction of producer {id} that was aborted at {} is not in it", ends.offset.max(start))
            }
            (Some(start), Some(entry)) if certain && entry.first_offset != start => {
                format!("the transaction of producer {id} that was aborted at {} starts at {start}", ends.offset)
            }
            _ => return,
        };
        let place = Place::offsets(open.unwrap_or(ends.offset), ends.offset.saturating_add(1));
        notes.add(segment.index_name(), place, Kind::BadTxnIndex, (Consequence::Rebuild, segment.repair()), why);
    }

    /// Looks at the snapshot `name`, of the producers before `offset`. `is_here`: the log was gone over up to just that offset.
    pub fn check_snapshot(
        &self,
        file: &dyn File,
        name: &str,
        offset: i64,
        is_here: bool,
        repair: Repair,
        notes: &mut Notes,
    ) -> io::Result<()> {
        let mut wrong: Option<String> = None;
        let mut last: Option<SnapshotEntry> = None;
        let checked = scan_snapshot(file, |entry| {
            if let Some(done) = last.filter(|last| last.producer_id != entry.producer_id) {
                wrong = wrong.take().or_else(|| self.contradiction(&done, offset, is_here));
            }
            last = Some(entry);
        })?;
        let place = Place::FILE.with_offsets(offset, offset);
        if let Err(flaw) = checked {
            notes.add(name, place, Kind::BadSnapshot, (Consequence::Rebuild, repair), flaw.to_string());
            return Ok(());
        }
        wrong = wrong.or_else(|| last.and_then(|last| self.contradiction(&last, offset, is_here)));
        if let Some(why) = wrong {
            notes.add(name, place, Kind::WrongSnapshot, (Consequence::Rebuild, Repair::Recover), why);
        }
        Ok(())
    }

    fn contradiction(&self, entry: &SnapshotEntry, offset: i64, is_here: bool) -> Option<String> {
        let id = entry.producer_id;
        let start = entry.transaction_start.unwrap_or(-1);
        if entry.batch.last_offset >= offset || start >= offset {
            return Some(format!(
                "it says offset {} of producer {id}, and is of before {offset}",
                entry.batch.last_offset.max(start)
            ));
        }
        if !is_here || self.uncertain {
            return None;
        }
        let running = self.running.get(&id)?;
        if running.known.epoch != entry.epoch {
            return Some(format!("it has epoch {} of producer {id}, and the log {}", entry.epoch, running.known.epoch));
        }
        if let Some((sequence, written)) = running.known.last
            && (entry.batch.last_sequence, entry.batch.last_offset) != (sequence, written)
        {
            return Some(format!(
                "the last batch of producer {id} ends with {written}, and it says {}",
                entry.batch.last_offset
            ));
        }
        match running.open {
            Some(open) if start != open && (start < 0 || open > self.log_start) => {
                Some(format!("a transaction of producer {id} is open since {open}, and it says {start}"))
            }
            None if start >= self.log_start => {
                Some(format!("it has a transaction of producer {id} open since {start}, which has ended"))
            }
            _ => None,
        }
    }
}
