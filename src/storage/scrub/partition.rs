//! The look at the sealed segments of one partition.
//!
//! The files are looked at, and of an open log which of them are sealed; nothing of the log is held. So a segment may be
//! removed or replaced while it is read: what seems damaged is looked at once more, with the partition's files listed anew, and
//! only what both looks agree on is true.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Kind, Position};
use crate::storage::catalog::Topic;
use crate::storage::log::{Checker, Damage, LONG_WALK};
use crate::storage::names::{self, FileKind, PartitionFile, Stage};
use crate::storage::store::Store;
use crate::sys::{File, FileSystem, OpenMode};

/// What was found in segments that have been looked at to their ends.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// Their base offsets; with the last of a partition, those that are no longer there as well.
    pub segments: Segments,
    pub damage: Vec<(Damage, Kind)>,
}

/// Which segments a look speaks of.
#[derive(Clone, Debug)]
pub(super) enum Segments {
    One(i64),
    AllBut(Vec<i64>),
}

impl Default for Segments {
    fn default() -> Self {
        Segments::AllBut(Vec::new())
    }
}

impl Segments {
    pub fn contains(&self, base: &i64) -> bool {
        match self {
            Segments::One(one) => one == base,
            Segments::AllBut(not) => !not.contains(base),
        }
    }
}

/// A segment to look at: its base offset, and that of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Target {
    base: i64,
    next: i64,
}

/// A segment that is being read.
#[derive(Debug)]
struct Reading {
    target: Target,
    /// It goes on from where an earlier process was.
    resumed: bool,
    file: Arc<dyn File>,
    check: Checker,
}

/// A partition whose segments are being looked at. Not for use by several threads at once.
#[derive(Debug)]
pub(super) struct PartitionLook {
    pub topic: Arc<Topic>,
    pub partition: i32,
    /// `None` until they were listed.
    targets: Option<VecDeque<Target>>,
    /// The bases of all segments that were listed, if they could be.
    listed: Option<Vec<i64>>,
    reading: Option<Reading>,
    /// What the first look at the segment that is being read has found.
    suspected: Option<(i64, Vec<(Damage, Kind)>)>,
    /// Where an earlier process has come to.
    resume: Option<Position>,
    at: Position,
    news: Vec<Look>,
    over: bool,
}

impl PartitionLook {
    pub fn new(topic: Arc<Topic>, partition: i32) -> Self {
        let at = Position { topic: topic.name.to_string(), partition, segment: 0, position: 0, offset: 0 };
        PartitionLook {
            topic,
            partition,
            targets: None,
            listed: None,
            reading: None,
            suspected: None,
            resume: None,
            at,
            news: Vec::new(),
            over: false,
        }
    }

    pub fn resumed(topic: Arc<Topic>, at: &Position) -> Self {
        PartitionLook { resume: Some(at.clone()), at: at.clone(), ..PartitionLook::new(topic, at.partition) }
    }

    pub fn is_over(&self) -> bool {
        self.over
    }

    pub fn position(&self) -> Position {
        self.at.clone()
    }

    /// What has been found since this was last asked.
    pub fn news(&mut self) -> Vec<Look> {
        std::mem::take(&mut self.news)
    }

    /// Reads on, about `budget` bytes or to the end of a segment. Answers how many were read.
    pub fn go_on(&mut self, store: &Store, budget: u64) -> u64 {
        let dir = store.partition_dir(&self.topic.name, self.partition);
        let fs = &*store.env().fs;
        if self.reading.is_none() && !self.start_reading(store, fs, &dir) {
            return 0;
        }
        let Some(mut reading) = self.reading.take() else { return 0 };
        let from = reading.check.size();
        // What the page cache has would not say what the disk has.
        reading.file.drop_cached(from, budget);
        let end = from.saturating_add(budget);
        let outcome = loop {
            match reading.check.next_good() {
                Ok(Some(_)) if reading.check.size() >= end => break None,
                Ok(Some(_)) => {}
                Ok(None) => break Some(None),
                Err(error) => break Some(Some(error)),
            }
        };
        let to = reading.check.size();
        reading.file.drop_cached(from, to.saturating_sub(from));
        self.at.segment = reading.target.base;
        (self.at.position, self.at.offset) = (to, reading.check.end());
        match outcome {
            None => self.reading = Some(reading),
            Some(error) => {
                let damage = damage_of(&mut reading, error.as_ref());
                self.segment_over(&reading, damage, error.as_ref());
            }
        }
        to.saturating_sub(from)
    }

    /// Opens the next segment that there is. Answers whether there is one; if not, all have been looked at.
    fn start_reading(&mut self, store: &Store, fs: &dyn FileSystem, dir: &Path) -> bool {
        if self.targets.is_none() {
            self.list(store, fs, dir);
        }
        while let Some(target) = self.targets.as_mut().and_then(VecDeque::pop_front) {
            let path = path_of(dir, target);
            let opened = fs.open(&path, OpenMode::Read).and_then(|file| Ok((file.len()?, file)));
            let (len, file) = match opened {
                Ok(opened) => opened,
                // Retention or the cleaner was faster.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    tracing::warn!(file = %path.display(), %error, "the scrub cannot look at a segment; the next pass tries again");
                    continue;
                }
            };
            let mut check = Checker::new(file.clone(), target.base, target.next.saturating_sub(1), len, LONG_WALK);
            let resume = self.resume.take().filter(|at| at.segment == target.base && (1..=len).contains(&at.position));
            if let Some(at) = &resume {
                check.go_on_from(at.position, at.offset);
            }
            self.reading = Some(Reading { target, resumed: resume.is_some(), file, check });
            return true;
        }
        // What was known of segments that are gone is forgotten.
        if let Some(listed) = self.listed.take() {
            self.news.push(Look { segments: Segments::AllBut(listed), damage: Vec::new() });
        }
        self.over = true;
        false
    }

    fn list(&mut self, store: &Store, fs: &dyn FileSystem, dir: &Path) {
        let mut targets = match sealed(store, self.topic.id, self.partition, fs, dir) {
            Ok(targets) => {
                self.listed = Some(targets.iter().map(|target| target.base).collect());
                targets
            }
            Err(error) => {
                // The topic may just have been deleted.
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::warn!(dir = %dir.display(), %error, "the scrub cannot look at a partition; the next pass tries again");
                }
                VecDeque::new()
            }
        };
        if let Some(at) = &self.resume {
            targets.retain(|target| target.base >= at.segment);
        }
        self.targets = Some(targets);
    }

    /// A segment was read to its end, or to where it cannot be read any more.
    fn segment_over(&mut self, reading: &Reading, damage: Vec<(Damage, Kind)>, error: Option<&io::Error>) {
        let target = reading.target;
        let suspected = self.suspected.take().filter(|(base, _)| *base == target.base).map(|(_, damage)| damage);
        let confirmed = match suspected {
            None if damage.is_empty() => damage,
            None => {
                // Once more from the start of this segment, with whatever is in the directory by then.
                let resume = Position { segment: target.base, position: 0, offset: target.base, ..self.at.clone() };
                (self.resume, self.targets) = (Some(resume), None);
                // Where an earlier process was, no batch may start any more: that says nothing.
                self.suspected = (!reading.resumed).then_some((target.base, damage));
                return;
            }
            Some(before) => {
                let (same, other): (Vec<_>, Vec<_>) = before.into_iter().partition(|known| damage.contains(known));
                for (Damage { position, bytes, offsets: (from, until), .. }, _) in other {
                    let (topic, partition) = (&*self.topic.name, self.partition);
                    tracing::warn!(
                        topic,
                        partition,
                        from,
                        until,
                        position,
                        bytes,
                        "bytes that were read as damaged were good, or gone, when they were read again: if this comes up again, \
                         look at the disk, the memory and what is between them"
                    );
                }
                same
            }
        };
        if let Some(error) = error {
            let (topic, partition, segment) = (&*self.topic.name, self.partition, target.base);
            tracing::warn!(topic, partition, segment, %error, "the scrub cannot read on in a segment");
        }
        self.news.push(Look { segments: Segments::One(target.base), damage: confirmed });
    }
}

fn path_of(dir: &Path, target: Target) -> PathBuf {
    dir.join(names::segment_file(target.base, FileKind::Log))
}

/// What is wrong with a segment that was read as far as it can be.
fn damage_of(reading: &mut Reading, error: Option<&io::Error>) -> Vec<(Damage, Kind)> {
    let kind = |damage: &Damage| if damage.served { Kind::Checksum } else { Kind::Frame };
    let mut damage: Vec<(Damage, Kind)> = reading
        .check
        .take_damage()
        .into_iter()
        .map(|damage| {
            let kind = kind(&damage);
            (damage, kind)
        })
        .collect();
    let (position, len) = (reading.check.size(), reading.check.len());
    if error.is_some() || position < len {
        let rest = Damage {
            segment: reading.target.base,
            position,
            bytes: len.saturating_sub(position),
            offsets: (reading.check.end(), reading.target.next),
            served: false,
        };
        damage.push((rest, if error.is_some() { Kind::Unreadable } else { Kind::Frame }));
    }
    damage
}

/// The segments of a partition that nobody writes to any more.
fn sealed(
    store: &Store,
    topic_id: crate::protocol::Uuid,
    partition: i32,
    fs: &dyn FileSystem,
    dir: &Path,
) -> io::Result<VecDeque<Target>> {
    let mut bases = match store.open_partition(topic_id, partition) {
        Some(log) => log.segment_bases(),
        None => closed_segments(fs, dir)?,
    };
    bases.sort_unstable();
    Ok(bases.windows(2).map(|pair| Target { base: pair[0], next: pair[1] }).collect())
}

/// The base offsets of the segments of a log that is not open, up to that of the active one.
fn closed_segments(fs: &dyn FileSystem, dir: &Path) -> io::Result<Vec<i64>> {
    let mut bases = Vec::new();
    for entry in fs.list(dir)? {
        if let PartitionFile::Segment { base, kind: FileKind::Log, stage: Stage::Live } =
            names::parse_partition_file(&entry.name)
        {
            bases.push(base);
        }
    }
    bases.sort_unstable();
    // After a kill the one before an empty one may be the active one, with a torn tail.
    if let [.., _, last] = bases[..]
        && fs.metadata(&dir.join(names::segment_file(last, FileKind::Log)))?.len == 0
    {
        bases.pop();
    }
    Ok(bases)
}
