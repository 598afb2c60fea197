//! What a segment says of producers and transactions: epochs and sequence numbers that go on, markers, and the index of aborted
//! transactions. Segments are gone over each by itself, on many threads; [`SegmentProducers`] keeps what has to be compared
//! with the segments before, which [`super::state`] does in the order of the log.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;

use super::finding::{Consequence, Kind, Repair};
use super::indexes::Entries;
use super::notes::{Notes, Place};
use crate::record::{BatchHeader, NO_SEQUENCE};
use crate::storage::log::{AbortedTransaction, EndMarker};

/// The most last stable offsets that are kept to be looked at with the segments before.
const MOST_STABLE: usize = 1000;

/// Whether a producer has a transaction open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Open {
    /// As it was before the segment, or before damage.
    Before,
    No,
    Since(i64),
}

/// The first marker of a producer in a segment that ends a transaction of before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub offset: i64,
    pub aborted: bool,
    /// Where the transaction starts, if it was not open before the segment.
    pub maybe_start: Option<i64>,
    /// What the index says of it.
    pub entry: Option<AbortedTransaction>,
}

/// The place in a producer's sequence that one of its batches or markers takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub epoch: i16,
    /// Of a batch with sequences: the first and the last.
    pub sequences: Option<(i32, i32)>,
    pub offset: i64,
    pub last_offset: i64,
    pub timestamp: i64,
    pub is_marker: bool,
    /// It need not follow what was before: batches may have been compacted away, or damaged.
    pub is_free: bool,
}

/// What is known of a producer after some of its batches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub epoch: i16,
    /// The last sequence and offset of its last batch, [`NO_SEQUENCE`] and -1 where it has written none in this epoch. `None`
    /// where that is not known: only a marker was seen.
    pub last: Option<(i32, i64)>,
    pub last_timestamp: i64,
}

impl Known {
    pub fn after(before: Option<Known>, step: &Step) -> Known {
        let last = match (before, step.is_marker) {
            (_, false) => Some((step.sequences.map_or(NO_SEQUENCE, |sequences| sequences.1), step.last_offset)),
            (None, true) => None,
            (Some(before), true) if before.epoch == step.epoch => before.last,
            (Some(_), true) => Some((NO_SEQUENCE, -1)),
        };
        Known { epoch: step.epoch, last, last_timestamp: step.timestamp }
    }

    /// With what was known before a segment.
    pub fn with(self, before: Option<Known>) -> Known {
        let last = match (self.last, before) {
            (None, Some(before)) if before.epoch == self.epoch => before.last,
            (None, Some(_)) => Some((NO_SEQUENCE, -1)),
            (last, _) => last,
        };
        Known { last, ..self }
    }

    /// What is wrong with `step` coming next, if anything.
    pub fn refuses(&self, step: &Step) -> Option<(Kind, String)> {
        if step.epoch < self.epoch {
            return Some((Kind::ProducerEpoch, format!("its epoch goes back from {} to {}", self.epoch, step.epoch)));
        }
        let (first, _) = step.sequences.filter(|_| !step.is_marker)?;
        // One that was idle for so long may have been forgotten, and then any sequence will do.
        let idle = step.timestamp.saturating_sub(self.last_timestamp) >= 24 * 60 * 60 * 1000;
        if step.is_free || idle {
            return None;
        }
        let last = if step.epoch == self.epoch { self.last?.0 } else { NO_SEQUENCE };
        let due = if last == i32::MAX { 0 } else { last + 1 };
        // A new epoch starts at 0.
        (first != due).then(|| {
            (Kind::ProducerSequence, format!("it goes on with sequence {first}, and {due} was due after {last}"))
        })
    }
}

/// What a segment says of one producer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub first: Step,
    pub known: Known,
    pub open: Open,
    /// Where the open transaction starts, if it was not open before.
    pub maybe_start: Option<i64>,
    pub ends: Option<Ends>,
    /// Damage has been come over since its last batch.
    pub uncertain: bool,
}

/// What a segment says of producers and transactions.
#[derive(Debug)]
pub(super) struct SegmentProducers {
    pub seen: HashMap<i64, Seen>,
    /// Where transactions start that started in this segment and are open.
    open: BTreeSet<i64>,
    /// Last stable offsets that the index names and that were to be starts of transactions of before: with their markers.
    pub stable: Vec<(i64, i64)>,
    /// Where transactions start, if they were not open before the segment.
    pub maybe_starts: HashSet<i64>,
    /// Damage was come over.
    pub uncertain: bool,
    /// The offsets that are missing or damaged: from, and the first after them. What the index has of them stands.
    lost: Vec<(i64, i64)>,
    /// Nothing is before the segment.
    is_start: bool,
    aborted: Entries<AbortedTransaction>,
    repair: Repair,
    /// The index has to have every transaction that was aborted.
    strict: bool,
}

impl SegmentProducers {
    /// `repair`: who puts the index right. `strict`: nothing of the segment was compacted. `is_start`: nothing is before it.
    pub fn new(aborted: Entries<AbortedTransaction>, repair: Repair, strict: bool, is_start: bool) -> SegmentProducers {
        SegmentProducers {
            seen: HashMap::new(),
            open: BTreeSet::new(),
            stable: Vec::new(),
            maybe_starts: HashSet::new(),
            uncertain: false,
            lost: Vec::new(),
            is_start,
            aborted,
            repair,
            strict,
        }
    }

    /// Batches with offsets from `from` up to `to` are missing or damaged.
    pub fn lose_track(&mut self, from: i64, to: i64) {
        match self.lost.last_mut().filter(|last| last.1 >= from) {
            Some(last) => last.1 = last.1.max(to),
            None => self.lost.push((from, to)),
        }
        self.uncertain = true;
        self.open.clear();
        for seen in self.seen.values_mut() {
            seen.uncertain = true;
            (seen.open, seen.maybe_start) = (Open::Before, None);
        }
    }

    /// A batch of a producer. `marker`: what a control batch says.
    pub fn batch(
        &mut self,
        log: &str,
        header: &BatchHeader,
        marker: Option<&EndMarker>,
        is_sparse: bool,
        notes: &mut Notes,
    ) -> io::Result<()> {
        if header.is_control() && marker.is_none() {
            // Nothing is left of its transaction, or it is no marker.
            return Ok(());
        }
        let id = header.producer_id;
        let before = self.seen.get(&id).copied();
        let has_sequences = header.base_sequence != NO_SEQUENCE;
        let step = Step {
            epoch: header.producer_epoch,
            sequences: has_sequences.then(|| (header.base_sequence, header.last_sequence())),
            offset: header.base_offset,
            last_offset: header.last_offset(),
            timestamp: header.max_timestamp,
            is_marker: marker.is_some(),
            is_free: is_sparse || before.map_or(self.uncertain, |before| before.uncertain),
        };
        let place = Place::offsets(header.base_offset, header.last_offset().saturating_add(1));
        let suspect = (Consequence::Suspect, Repair::Nothing);
        if let Some(before) = before
            && let Some((kind, why)) = before.known.refuses(&step)
        {
            notes.add(log, place, kind, suspect, format!("producer {id}: {why}"));
        }
        let unseen = if self.is_start && !self.uncertain { Open::No } else { Open::Before };
        let mut open = before.map_or(unseen, |before| before.open);
        let mut maybe_start = before.and_then(|before| before.maybe_start);
        let mut ends = before.and_then(|before| before.ends);
        match marker {
            Some(marker) => {
                let ended = self.marker(id, header.base_offset, marker, (open, maybe_start), notes)?;
                ends = ends.or(ended);
                if let Open::Since(start) = open {
                    self.open.remove(&start);
                }
                (open, maybe_start) = (Open::No, None);
            }
            None if header.is_transactional() => match open {
                Open::No => {
                    open = Open::Since(header.base_offset);
                    self.open.insert(header.base_offset);
                }
                Open::Before if maybe_start.is_none() => {
                    maybe_start = Some(header.base_offset);
                    self.maybe_starts.insert(header.base_offset);
                }
                _ => {}
            },
            None => {
                if let Open::Since(start) = open {
                    let why = format!("producer {id}: this batch is in no transaction, and one is open since {start}");
                    notes.add(log, place, Kind::Transaction, suspect, why);
                }
            }
        }
        let known = Known::after(before.map(|before| before.known), &step);
        let first = before.map_or(step, |before| before.first);
        self.seen.insert(id, Seen { first, known, open, maybe_start, ends, uncertain: false });
        Ok(())
    }

    /// A marker. Answers what it ends of before this segment, as far as that is not known here.
    fn marker(
        &mut self,
        id: i64,
        offset: i64,
        marker: &EndMarker,
        (open, maybe_start): (Open, Option<i64>),
        notes: &mut Notes,
    ) -> io::Result<Option<Ends>> {
        let aborted = !marker.committed;
        let mut entry = None;
        while let Some(next) = self.aborted.peek()? {
            if next.last_offset > offset {
                break;
            }
            if next.last_offset == offset {
                entry = Some(next);
            } else {
                self.without_marker(&next, notes);
            }
            self.aborted.skip();
        }
        let Some(found) = entry else {
            if let Open::Since(start) = open
                && aborted
                && self.strict
            {
                let why = format!("the transaction of producer {id} that was aborted at {offset} is not in it");
                self.bad_index(Place::offsets(start, offset.saturating_add(1)), &why, notes);
            }
            // It has records here, whatever it has before.
            if let (Open::Before, Some(start), true, true) = (open, maybe_start, aborted, self.strict) {
                let why = format!("the transaction of producer {id} that was aborted at {offset} is not in it");
                self.bad_index(Place::offsets(start, offset.saturating_add(1)), &why, notes);
                return Ok(None);
            }
            let is_unknown = open == Open::Before;
            return Ok(is_unknown.then_some(Ends { offset, aborted, maybe_start, entry: None }));
        };
        let first_open = self.open.iter().copied().find(|start| Open::Since(*start) != open);
        let stable = first_open.unwrap_or(offset.saturating_add(1));
        if found.producer_id != id || !aborted {
            let what = if aborted { "another producer's marker" } else { "a commit" };
            self.bad_entry(&found, &format!("at its last offset is {what}"), notes);
        } else if let Open::Since(start) = open
            && found.first_offset != start
            && (self.strict || found.first_offset > start)
        {
            self.bad_entry(&found, &format!("the transaction starts at {start}"), notes);
        } else if open == Open::No && self.strict {
            self.bad_entry(&found, "its producer has no transaction open there", notes);
        } else if found.last_stable_offset > stable {
            self.bad_entry(&found, &format!("the last stable offset is {stable}"), notes);
        } else if found.last_stable_offset < stable && self.stable.len() < MOST_STABLE {
            let before = self.stable.last().is_none_or(|last| last.0 != found.last_stable_offset);
            if before {
                self.stable.push((found.last_stable_offset, offset));
            }
        }
        Ok((open == Open::Before).then_some(Ends { offset, aborted, maybe_start, entry: Some(found) }))
    }

    /// An entry whose marker was not come over.
    fn without_marker(&self, entry: &AbortedTransaction, notes: &mut Notes) {
        let is_lost = self.lost.iter().any(|(from, to)| (*from..*to).contains(&entry.last_offset));
        if self.strict && !is_lost {
            self.bad_entry(entry, "no abort marker is at its last offset", notes);
        }
    }

    fn bad_entry(&self, entry: &AbortedTransaction, why: &str, notes: &mut Notes) {
        let place = self.aborted.place().with_offsets(entry.first_offset, entry.last_offset.saturating_add(1));
        let why = format!(
            "the entry of producer {}, {} to {}: {why}",
            entry.producer_id, entry.first_offset, entry.last_offset
        );
        self.bad_index(place, &why, notes);
    }

    fn bad_index(&self, place: Place, why: &str, notes: &mut Notes) {
        notes.add(&self.aborted.name, place, Kind::BadTxnIndex, (Consequence::Rebuild, self.repair), why);
    }

    /// The segment ends.
    pub fn finish(&mut self, notes: &mut Notes) -> io::Result<()> {
        while let Some(next) = self.aborted.peek()? {
            self.without_marker(&next, notes);
            self.aborted.skip();
        }
        Ok(())
    }

    /// Takes all of it out.
    pub fn split_off(&mut self) -> SegmentProducers {
        let nothing = Entries::new("", None, 0);
        let empty = SegmentProducers::new(nothing, self.repair, self.strict, self.is_start);
        std::mem::replace(self, empty)
    }

    pub fn index_name(&self) -> &str {
        &self.aborted.name
    }

    pub fn is_strict(&self) -> bool {
        self.strict
    }

    pub fn repair(&self) -> Repair {
        self.repair
    }
}
