//! One partition: its folder, then its segments put together in the order of the log.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use super::epochs::Beyond;
use super::finding::{Consequence, Kind, Repair};
use super::layout::{Layout, open};
use super::notes::{Notes, Place};
use super::progress::Progress;
use super::report::{Level, PartitionReport, Totals, Unchecked};
use super::segment::{Scanned, Task};
use super::small_files;
use super::state::State;
use crate::protocol::Uuid;
use crate::storage::log::LeaderEpochs;
use crate::storage::names;
use crate::storage::offline::{Origin, PartitionFolder};
use crate::sys::Env;

/// What the directory knows of a partition.
#[derive(Debug)]
pub(super) struct Facts {
    pub folder: PartitionFolder,
    pub origin: Origin,
    /// Nothing around the folder says whose it is.
    pub is_lone: bool,
    pub level: Level,
    /// The next start takes the files as they are.
    pub is_trusted: bool,
    /// The id that the catalog has, if it can be read and has the topic.
    pub known_id: Option<Uuid>,
    /// The catalog can be read.
    pub has_catalog: bool,
    /// From the catalog, or Apache Kafka's checkpoint. `None`: it starts with its first segment.
    pub log_start: Option<i64>,
    /// `preallocate` is on: the last segment's file may be longer than used.
    pub is_preallocated: bool,
    /// `cleanup.policy` has `compact`, as far as that is known.
    pub is_compacted: bool,
    /// Up to where Apache Kafka's cleaner was.
    pub kafka_cleaned: Option<i64>,
    /// Offsets that Apache Kafka noted as reached: of the high watermark and of what was flushed.
    pub reached: Option<i64>,
}

/// A partition whose segments are being gone over.
#[derive(Debug)]
pub(super) struct Partition {
    facts: Facts,
    env: Env,
    dir: Arc<Path>,
    layout: Layout,
    pub tasks: Vec<Task>,
    /// The next start looks at the last segment batch by batch.
    is_checked_at_start: bool,
    log_start: i64,
    topic_id: Option<Uuid>,
    epochs: Option<Arc<LeaderEpochs>>,
    merging: Mutex<Merging>,
}

/// What has been put together so far.
#[derive(Debug)]
struct Merging {
    notes: Notes,
    waiting: Vec<Option<Scanned>>,
    next: usize,
    state: State,
    totals: Totals,
    last_epoch: i32,
    last: Option<Scanned>,
    too_large: u64,
    failed: bool,
}

impl Partition {
    /// Looks at the partition's folder and says what is to be gone over.
    pub fn look(facts: Facts, env: &Env, progress: &Arc<Progress>, large: &Arc<Mutex<()>>) -> Partition {
        let folder = &facts.folder;
        let mut notes = Notes::new(&folder.topic, folder.partition, &folder.name());
        let fs = &*env.fs;
        let dir: Arc<Path> = folder.path.as_path().into();
        let mut layout = Layout::read(fs, &dir, &mut notes).unwrap_or_else(|error| {
            notes.unreadable("", &error);
            Layout::default()
        });
        if layout.flush_failed {
            notes.add(
                names::FLUSH_FAILED,
                Place::FILE,
                Kind::FlushFailed,
                (Consequence::Suspect, Repair::Start),
                "a flush failed: what the last segment holds may not be on the disk; the next start writes it over itself",
            );
        }
        let topic_id = small_files::metadata(&facts, fs, &layout, &mut notes);
        let first_base = layout.segments.first().map(|segment| segment.base);
        let log_start = match facts.origin {
            Origin::Doze => facts.log_start.unwrap_or(if facts.has_catalog { 0 } else { first_base.unwrap_or(0) }),
            Origin::Kafka => facts.log_start.unwrap_or(0).max(first_base.unwrap_or(0)),
        };
        layout.drop_below(log_start, &mut notes);
        let is_checked_at_start = !facts.is_trusted || layout.flush_failed;
        if is_checked_at_start
            && facts.origin == Origin::Doze
            && layout.segments.len() > 1
            && layout.segments.last().is_some_and(|last| last.log.len == 0)
        {
            // The start takes it away, since nothing says whether the segment before it was still written to.
            layout.segments.pop();
        }
        let cleaned = small_files::cleaned(&facts, fs, &layout, &dir, &mut notes);
        let last_base = layout.segments.last().map_or(0, |last| last.base);
        let sparse_below = match cleaned {
            // A pass may have been interrupted before it was noted.
            cleaned if facts.is_compacted && is_checked_at_start => cleaned.max(last_base),
            cleaned => cleaned,
        };
        let epochs = small_files::epochs(&facts, fs, &layout, &dir, &mut notes).map(Arc::new);
        let bases: Vec<i64> = layout.segments.iter().map(|segment| segment.base).collect();
        let task = |(at, files): (usize, &super::layout::SegmentFiles)| Task {
            env: env.clone(),
            dir: dir.clone(),
            files: files.clone(),
            next_base: bases.get(at + 1).copied(),
            is_checked_at_start: is_checked_at_start && at + 1 == bases.len(),
            is_kafka: facts.origin == Origin::Kafka || facts.is_lone,
            level: facts.level,
            is_compacted: facts.is_compacted,
            sparse_below,
            log_start,
            epochs: epochs.clone(),
            progress: progress.clone(),
            large: large.clone(),
        };
        let tasks: Vec<Task> = layout.segments.iter().enumerate().map(task).collect();
        let merging = Merging {
            waiting: tasks.iter().map(|_| None).collect(),
            next: 0,
            state: State::new(log_start.max(first_base.unwrap_or(0))),
            totals: Totals { partitions: 1, ..Totals::default() },
            last_epoch: -1,
            last: None,
            too_large: 0,
            failed: false,
            notes,
        };
        let partition = Partition {
            env: env.clone(),
            dir,
            layout,
            tasks,
            is_checked_at_start,
            log_start,
            topic_id,
            epochs,
            merging: Mutex::new(merging),
            facts,
        };
        partition.check_start();
        partition
    }

    /// Bytes of its log files.
    pub fn bytes(&self) -> u64 {
        self.tasks.iter().map(|task| task.files.log.len).sum()
    }

    fn check_start(&self) {
        let mut merging = self.merging.lock();
        let notes = &mut merging.notes;
        let Some(first) = self.tasks.first() else {
            let lost = (Consequence::Lost, Repair::Start);
            if self.layout.has_metadata && self.layout.snapshots.is_empty() && self.log_start == 0 {
                // Made, and never used.
                return;
            }
            let why = format!("there is no log in it; the next start begins an empty one at offset {}", self.log_start);
            return notes.add("", Place::FILE, Kind::EmptyPartition, lost, why);
        };
        let base = first.files.base;
        if self.facts.origin == Origin::Doze && base > self.log_start.max(first.sparse_below.min(base)) {
            let place = Place::offsets(self.log_start, base);
            let why = format!("the log starts at offset {}, and its first segment at {base}", self.log_start);
            notes.add(&first.files.log.name, place, Kind::LogStart, (Consequence::Lost, Repair::Recover), why);
        }
    }

    /// Goes over one of its segments. Answers the report once all were gone over.
    pub fn run(&self, at: usize) -> Option<(PartitionReport, Vec<super::Finding>, Vec<Unchecked>)> {
        let notes = self.merging.lock().notes.fresh();
        let scanned = self.tasks[at].run(notes);
        let mut merging = self.merging.lock();
        merging.waiting[at] = Some(scanned);
        if self.tasks[at].progress.is_cancelled() {
            return None;
        }
        loop {
            let next = merging.next;
            let Some(scanned) = merging.waiting.get_mut(next).and_then(Option::take) else { break };
            self.merge(&mut merging, scanned);
            merging.next += 1;
        }
        (merging.next == self.tasks.len()).then(|| self.finish(&mut merging))
    }

    /// What was found of one that was not gone over to its end.
    pub fn abandon(&self) -> Vec<super::Finding> {
        let mut merging = self.merging.lock();
        for scanned in std::mem::take(&mut merging.waiting).into_iter().flatten() {
            merging.notes.take(scanned.notes);
        }
        std::mem::take(&mut merging.notes.findings)
    }

    /// The report of one without segments.
    pub fn finish_empty(&self) -> (PartitionReport, Vec<super::Finding>, Vec<Unchecked>) {
        self.finish(&mut self.merging.lock())
    }

    /// Takes in the next segment.
    fn merge(&self, merging: &mut Merging, mut scanned: Scanned) {
        let task = &self.tasks[merging.next];
        let log = &task.files.log.name;
        merging.notes.take(std::mem::replace(&mut scanned.notes, merging.notes.fresh()));
        let totals = &mut merging.totals;
        totals.segments += 1;
        totals.bytes += scanned.totals.bytes;
        totals.batches += scanned.totals.batches;
        totals.records += scanned.totals.records;
        merging.too_large += scanned.too_large;
        merging.failed |= scanned.failed;
        if task.level != Level::Quick {
            self.check_snapshots(merging, task.files.base);
            if let Some((epoch, offset)) = scanned.epochs.first
                && epoch < merging.last_epoch
                && self.epochs.is_none()
            {
                let why = format!("its leader epoch goes back from {} to {epoch}", merging.last_epoch);
                let place = Place::offsets(offset, offset.saturating_add(1));
                merging.notes.add(log, place, Kind::BadEpoch, (Consequence::Suspect, Repair::Recover), why);
            }
            merging.last_epoch = merging.last_epoch.max(scanned.epochs.last);
            if let Some(beyond) = scanned.epochs.beyond {
                self.check_beyond(merging, log, beyond, task.is_checked_at_start);
            }
            let producers = scanned.producers.split_off();
            merging.state.go_on(log, producers, merging.next == 0 && task.files.base > 0, &mut merging.notes);
        }
        merging.last = Some(scanned);
    }

    /// Batches of epochs that the checkpoint does not have.
    fn check_beyond(&self, merging: &mut Merging, log: &str, beyond: Beyond, is_checked_at_start: bool) {
        if is_checked_at_start {
            // The start takes them from the log.
            return;
        }
        let place = Place::offsets(beyond.from, beyond.to);
        if beyond.batches == 1 {
            let why = format!("its leader epoch is {}, which the checkpoint does not have", beyond.epoch);
            let place = Place { position: Some(beyond.position), bytes: Some(beyond.bytes), ..place };
            merging.notes.add(log, place, Kind::BadEpoch, (Consequence::Suspect, Repair::Recover), why);
        } else {
            let why = format!("the log has epoch {} from offset {} on, and it has not", beyond.epoch, beyond.from);
            let meaning = (Consequence::Rebuild, Repair::Recover);
            merging.notes.add(names::LEADER_EPOCH_CHECKPOINT, place, Kind::EpochCheckpoint, meaning, why);
        }
    }

    /// Looks at the snapshots of before `here`, up to where the log was gone over, that were not looked at yet.
    fn check_snapshots(&self, merging: &mut Merging, here: i64) {
        for (offset, file) in self.layout.snapshots.iter().filter(|(offset, _)| *offset == here) {
            self.check_snapshot(merging, *offset, &file.name, true);
        }
    }

    fn check_snapshot(&self, merging: &mut Merging, offset: i64, name: &str, is_here: bool) {
        // The newest of use is read by the start, which passes over it if it is not whole.
        let is_newest = self.layout.snapshots.last().is_some_and(|last| last.0 == offset);
        let repair = if is_newest { Repair::Start } else { Repair::Recover };
        let Merging { state, notes, .. } = merging;
        let checked = open(&*self.env.fs, &self.dir, name)
            .and_then(|file| state.check_snapshot(&*file, name, offset, is_here, repair, notes));
        if let Err(error) = checked {
            merging.notes.unreadable(name, &error);
        }
    }

    fn finish(&self, merging: &mut Merging) -> (PartitionReport, Vec<super::Finding>, Vec<Unchecked>) {
        let end = merging.last.as_ref().map_or(self.log_start, |last| last.end);
        if self.facts.level != Level::Quick && !merging.failed {
            let bases: Vec<i64> = self.tasks.iter().map(|task| task.files.base).collect();
            for (offset, file) in &self.layout.snapshots {
                if !bases.contains(offset) {
                    self.check_snapshot(merging, *offset, &file.name, *offset == end);
                } else if *offset == end && bases.last() == Some(offset) {
                    continue;
                }
            }
        }
        if !merging.failed {
            self.check_end(merging, end);
        }
        let folder = &self.facts.folder;
        let report = PartitionReport {
            topic: folder.topic.clone(),
            partition: folder.partition,
            topic_id: self.topic_id,
            log_start: self.log_start,
            end: end.max(self.log_start),
            totals: merging.totals,
            findings: 0..0,
            more_findings: merging.notes.more,
        };
        let mut unchecked = Vec::new();
        if merging.too_large > 0 {
            let most = super::records::LARGEST >> 20;
            unchecked.push(Unchecked {
                topic: Some(folder.topic.clone()),
                partition: Some(folder.partition),
                file: None,
                what: format!("the records of {} batches of more than {most} MiB", merging.too_large),
            });
        }
        let findings = std::mem::take(&mut merging.notes.findings);
        (report, findings, unchecked)
    }

    /// Where the log ends, against all that says how far it went.
    fn check_end(&self, merging: &mut Merging, end: i64) {
        let Some(task) = self.tasks.last() else { return };
        let tail = merging.last.as_ref().and_then(|last| last.tail.clone());
        let (reached, said_by) = self.reached(end);
        let log = &task.files.log.name;
        match tail {
            Some(tail) => {
                let place = Place::bytes(tail.position, tail.bytes).with_offsets(end, reached.max(end));
                let is_torn = self.is_checked_at_start && reached <= end;
                let is_preallocated = task.is_kafka || self.facts.is_preallocated;
                let preallocated = tail.kind == Kind::Zeros && is_preallocated && self.is_checked_at_start;
                if is_torn && !preallocated {
                    let what = match self.facts.origin {
                        Origin::Doze => "the next start cuts it off",
                        Origin::Kafka => "the next start of Apache Kafka cuts it off",
                    };
                    let why = format!("the last {} bytes are no whole batch ({}); {what}", tail.bytes, tail.why);
                    let torn = (Consequence::TornTail, Repair::Start);
                    merging.notes.add(log, place, Kind::TornTail, torn, why);
                } else if !preallocated {
                    let lost = (Consequence::Lost, Repair::Recover);
                    let why = match reached > end {
                        true => format!("{}; {said_by} says that the log went up to offset {reached}", tail.why),
                        false => format!("{}; the stop was a clean one, so it was whole", tail.why),
                    };
                    merging.notes.add(log, place, tail.kind, lost, why);
                }
            }
            None if reached > end => {
                let why = format!("the log ends before offset {end}, and {said_by} says that it went up to {reached}");
                let lost = (Consequence::Lost, Repair::Nothing);
                merging.notes.add(log, Place::offsets(end, reached), Kind::MissingOffsets, lost, why);
            }
            None => {}
        }
        if self.log_start > end && self.facts.origin == Origin::Doze {
            let why = format!(
                "the log starts at offset {}, and ends before {end}: the next start takes all of it away",
                self.log_start
            );
            let place = Place::offsets(end, self.log_start);
            merging.notes.add("", place, Kind::LogStart, (Consequence::Suspect, Repair::Start), why);
        }
    }

    /// The furthest offset that anything but the log says that the log has reached, and what says so.
    fn reached(&self, end: i64) -> (i64, String) {
        let mut reached = (end, String::new());
        let mut say = |offset: i64, by: &dyn Fn() -> String| {
            if offset > reached.0 {
                reached = (offset, by());
            }
        };
        for (offset, file) in &self.layout.snapshots {
            say(*offset, &|| format!("the producer snapshot {}", file.name));
        }
        if let Some(last) = self.epochs.as_ref().and_then(|epochs| epochs.entries().last().copied()) {
            say(last.1, &|| format!("the {}", names::LEADER_EPOCH_CHECKPOINT));
        }
        for (base, file) in &self.layout.orphans {
            say(base.saturating_add(1), &|| format!("the index {} without its log", file.name));
        }
        if let Some(offset) = self.facts.reached {
            say(offset, &|| "a checkpoint file of Apache Kafka's".to_owned());
        }
        reached
    }
}
