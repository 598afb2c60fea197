//! A look at every batch of a partition: what is good, what is not, and what can be put right.
//!
//! A batch is good if its checksum is that of its bytes and its offsets come after those of the batch before and before
//! those of the next segment. Base offset, length and magic stand before the range of the checksum, so a batch in which one
//! of these is damaged can be put right:
//!
//! - length and magic, where the checksum holds for the bytes up to the next good batch;
//! - the base offset, where the batch has just as many offsets as are missing between its neighbours.
//!
//! A file whose batches all belong elsewhere (it was renamed, or swapped with another) belongs where its first batch does.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::record::{BatchHeader, HEADER_LEN, MAGIC_V2};
use crate::storage::log::epochs::LeaderEpochs;
use crate::storage::log::error::FileError;
use crate::storage::log::scan::{BatchAt, LONG_WALK, Walker};
use crate::storage::names::{self, FileKind, PartitionFile, Stage};
use crate::sys::{File, FileSystem, OpenMode};

use super::old_sets;

/// The bytes of a header that stand before the range of its checksum and can be put right: base offset, length, leader
/// epoch, magic.
pub(in crate::storage) const FRAME: usize = 17;
/// How many batches are looked at to tell where a file belongs.
const WITNESSES: usize = 4;

/// What a stretch of a log file that is no good batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::storage) enum StretchKind {
    /// Behind the last good batch of the last segment.
    Tail,
    /// Anything else that is no good batch.
    Damaged,
    /// A batch that is in the file once more, before. Nothing is lost with it.
    Repeated,
    /// A batch of which the frame is damaged and can be put right.
    Mendable,
    /// No bytes at all: offsets that are in no batch. The look at a log's bytes does not tell these, whoever knows what should
    /// be there adds them.
    Missing,
}

/// How a batch is put right.
#[derive(Clone, Copy, Debug)]
pub(in crate::storage) struct Mend {
    /// What its first bytes become.
    pub frame: [u8; FRAME],
    /// The batch as it is then, at the position where it is now.
    pub batch: BatchAt,
    /// Which fields change: "base offset", "length", "magic".
    pub fields: &'static str,
}

/// A stretch of a log file that is no good batch.
#[derive(Clone, Debug)]
pub(in crate::storage) struct Stretch {
    pub position: u64,
    pub bytes: u64,
    /// The offsets that are or were in it: from, and the first after it.
    pub offsets: (i64, i64),
    pub kind: StretchKind,
    pub mend: Option<Mend>,
}

impl Stretch {
    pub fn end(&self) -> u64 {
        self.position + self.bytes
    }
}

/// A log file and what is in it.
#[derive(Clone, Debug)]
pub(in crate::storage) struct Surveyed {
    /// The offset in its name.
    pub base: i64,
    /// Where its batches belong; other than `base` where the file has another's name.
    pub belongs: i64,
    pub len: u64,
    /// By position.
    pub stretches: Vec<Stretch>,
    /// The offset after its last good batch, `belongs` if there is none.
    pub end: i64,
    /// How many batches are good.
    pub good: u64,
    /// Where the batches of the next file belong; `None` for the last file.
    pub next: Option<i64>,
    /// The file is one too many: what belongs there is in another file. `Some(true)`: that one has the same bytes.
    pub surplus: Option<bool>,
}

impl Surveyed {
    pub fn is_misnamed(&self) -> bool {
        self.base != self.belongs
    }
}

/// Looks at every batch of the log files in `dir`. Answers them in the order in which they belong. `progress` is told the
/// bytes that were read. Nothing is written.
pub(in crate::storage) fn survey(
    fs: &dyn FileSystem,
    dir: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<Surveyed>, FileError> {
    let mut bases = Vec::new();
    for entry in fs.list(dir).map_err(FileError::of("list", dir))? {
        if let PartitionFile::Segment { base, kind: FileKind::Log, stage: Stage::Live } =
            names::parse_partition_file(&entry.name)
        {
            bases.push(base);
        }
    }
    bases.sort_unstable();
    let mut files = Vec::new();
    for (at, base) in bases.iter().enumerate() {
        let path = dir.join(names::segment_file(*base, FileKind::Log));
        let limit = bases.get(at + 1).copied().unwrap_or_else(|| farthest(*base));
        let look = || {
            let file = fs.open(&path, OpenMode::Read)?;
            let len = file.len()?;
            Ok((belongs(&file, len, *base, limit)?, len))
        };
        let (belongs, len) = look().map_err(FileError::of("read", &path))?;
        files.push(Surveyed {
            base: *base,
            belongs,
            len,
            stretches: Vec::new(),
            end: belongs,
            good: 0,
            next: None,
            surplus: None,
        });
    }
    // Where two belong to the same place, the one with the right name is the one that counts.
    files.sort_by_key(|file| (file.belongs, file.is_misnamed(), file.base));
    for at in 1..files.len() {
        let Some(first) = files[..at].iter().rev().find(|file| file.surplus.is_none()) else { continue };
        if first.belongs == files[at].belongs {
            let same = same_bytes(fs, dir, first, &files[at])?;
            files[at].surplus = Some(same);
        }
    }
    let counts: Vec<usize> = (0..files.len()).filter(|at| files[*at].surplus.is_none()).collect();
    for (nth, at) in counts.iter().enumerate() {
        let limit = counts.get(nth + 1).map(|next| files[*next].belongs);
        let file = &mut files[*at];
        file.next = limit;
        let path = dir.join(names::segment_file(file.base, FileKind::Log));
        let opened = fs.open(&path, OpenMode::Read).map_err(FileError::of("open", &path))?;
        let mut scan = Scan::new(opened, file, limit);
        scan.run(progress).map_err(FileError::of("read", &path))?;
        let Scan { stretches, end, good, .. } = scan;
        (file.stretches, file.end, file.good) = (stretches, end, good);
    }
    Ok(files)
}

/// Has the good batches from `position` on, `bytes` of them, get another leader epoch where theirs is the one that is wrong: it goes
/// against those of its neighbours in the file, or it has a neighbour that `epochs` (of the checkpoint) agrees with. Answers
/// whether there were some.
pub(in crate::storage) fn mend_epochs(
    fs: &dyn FileSystem,
    dir: &Path,
    file: &mut Surveyed,
    position: u64,
    bytes: u64,
    epochs: &LeaderEpochs,
) -> Result<bool, FileError> {
    let path = dir.join(names::segment_file(file.base, FileKind::Log));
    let opened = fs.open(&path, OpenMode::Read).map_err(FileError::of("open", &path))?;
    let mut walker = Walker::new(opened, 0, file.len, LONG_WALK);
    let (mut before, mut mends) = (None, Vec::new());
    let mut next = walker.next().map_err(FileError::of("read", &path))?;
    while let Some(batch) = next {
        next = walker.next().map_err(FileError::of("read", &path))?;
        let epoch_of = |batch: &BatchAt| batch.header.map(|header| header.partition_leader_epoch);
        let (Some(mut header), after) = (batch.header, next.as_ref().and_then(epoch_of)) else { continue };
        let epoch = header.partition_leader_epoch;
        let is_asked_for = (position..position.saturating_add(bytes)).contains(&batch.position);
        let is_known = file.stretches.iter().any(|stretch| (stretch.position..stretch.end()).contains(&batch.position));
        let said = epochs.of_offset(batch.base_offset);
        let right = right_epoch(epoch, before, after, said);
        if let Some(right) = right.filter(|_| is_asked_for && !is_known) {
            header.partition_leader_epoch = right;
            let frame = header.encode()[..FRAME].try_into().expect("a header is longer");
            mends.push(Mend { frame, batch: BatchAt { header: Some(header), ..batch }, fields: "leader epoch" });
        }
        before = Some(right.unwrap_or(epoch));
    }
    let changed = !mends.is_empty();
    file.stretches.extend(mends.into_iter().map(|mend| Stretch {
        position: mend.batch.position,
        bytes: mend.batch.size,
        offsets: (mend.batch.base_offset, mend.batch.last_offset + 1),
        kind: StretchKind::Mendable,
        mend: Some(mend),
    }));
    file.stretches.sort_by_key(|stretch| stretch.position);
    Ok(changed)
}

/// The leader epoch that a batch should have instead of `epoch`, between batches of `before` and `after`, where the checkpoint has
/// `said`. `None` if its own may be right.
fn right_epoch(epoch: i32, before: Option<i32>, after: Option<i32>, said: Option<i32>) -> Option<i32> {
    let fits = |epoch: i32| before.is_none_or(|before| before <= epoch) && after.is_none_or(|after| epoch <= after);
    let said = said.filter(|said| *said != epoch && fits(*said));
    match (before, after) {
        (Some(before), Some(after)) if before <= after && !fits(epoch) => said.or(Some(before)),
        (Some(_), Some(_)) => None,
        // At the end of a file there is one neighbour, who has to agree with the checkpoint.
        (Some(other), None) | (None, Some(other)) => said.filter(|said| *said == other),
        (None, None) => None,
    }
}

/// The last offset that a segment can have, and one more.
fn farthest(base: i64) -> i64 {
    base.saturating_add(i64::from(i32::MAX)).saturating_add(1)
}

/// Where the batches of a file belong that has the name of `base`, when the next file has that of `limit`. That is where its
/// first batch belongs, unless that one is alone with its offset.
fn belongs(file: &Arc<dyn File>, len: u64, base: i64, limit: i64) -> io::Result<i64> {
    let witnesses = first_good(file, len)?;
    let Some(first) = witnesses.first() else { return Ok(base) };
    let is_at_home = |batch: &BatchAt| (base..limit).contains(&batch.base_offset);
    // Of the versions before 2 the first offset is not known; such a file stays where it is.
    let Some(header) = first.header.filter(|_| !is_at_home(first)) else { return Ok(base) };
    let goes_on = witnesses.get(1).is_some_and(|second| second.base_offset == first.last_offset + 1);
    let fits_the_gap = witnesses.len() == 1 && i64::from(header.last_offset_delta) + 1 == limit - base;
    let is_rising = witnesses.windows(2).all(|pair| pair[1].base_offset > pair[0].last_offset);
    let all_away = is_rising && !fits_the_gap && !witnesses[1..].iter().any(is_at_home);
    Ok(if goes_on || all_away { first.base_offset } else { base })
}

/// The first batches of a file whose checksums hold.
fn first_good(file: &Arc<dyn File>, len: u64) -> io::Result<Vec<BatchAt>> {
    let mut walker = Walker::new(file.clone(), 0, len, LONG_WALK);
    let mut good = Vec::new();
    while good.len() < WITNESSES {
        let at = walker.position();
        let batch = match walker.next()? {
            Some(batch) if walker.verify(&batch)? => batch,
            _ => {
                walker.skip_to(at);
                if at >= len || !walker.find_next(0..=i64::MAX)? {
                    break;
                }
                let Some(batch) = walker.next()? else { break };
                batch
            }
        };
        walker.skip_to(batch.end());
        good.push(batch);
    }
    Ok(good)
}

fn same_bytes(fs: &dyn FileSystem, dir: &Path, one: &Surveyed, other: &Surveyed) -> Result<bool, FileError> {
    if one.len != other.len {
        return Ok(false);
    }
    let open = |base| {
        let path = dir.join(names::segment_file(base, FileKind::Log));
        fs.open(&path, OpenMode::Read).map_err(FileError::of("open", &path))
    };
    let (one_file, other_file) = (open(one.base)?, open(other.base)?);
    let (mut left, mut right) = (vec![0; LONG_WALK], vec![0; LONG_WALK]);
    let mut at = 0;
    while at < one.len {
        let n = LONG_WALK.min(usize::try_from(one.len - at).unwrap_or(LONG_WALK));
        one_file.read_exact_at(&mut left[..n], at).map_err(FileError::of("read", dir))?;
        other_file.read_exact_at(&mut right[..n], at).map_err(FileError::of("read", dir))?;
        if left[..n] != right[..n] {
            return Ok(false);
        }
        at += n as u64;
    }
    Ok(true)
}

/// The walk over one file.
struct Scan {
    file: Arc<dyn File>,
    walker: Walker,
    len: u64,
    belongs: i64,
    /// The offset of the next file's first batch.
    limit: Option<i64>,
    /// The first offset that the next batch may have.
    due: i64,
    /// The offset after the last good batch.
    end: i64,
    /// The next good batch, if there is one, once it was looked for: until it is reached.
    ahead: Option<Option<BatchAt>>,
    stretches: Vec<Stretch>,
    good: u64,
}

impl Scan {
    fn new(file: Arc<dyn File>, of: &Surveyed, limit: Option<i64>) -> Scan {
        Scan {
            walker: Walker::new(file.clone(), 0, of.len, LONG_WALK),
            file,
            len: of.len,
            belongs: of.belongs,
            limit,
            due: of.belongs,
            end: of.belongs,
            ahead: None,
            stretches: Vec::new(),
            good: 0,
        }
    }

    fn run(&mut self, progress: &mut dyn FnMut(u64)) -> io::Result<()> {
        let mut told = 0;
        loop {
            let at = self.walker.position();
            progress(at - told);
            told = at;
            if at >= self.len {
                return Ok(());
            }
            let here = self.walker.next()?;
            if let Some(batch) = here
                && self.is_good(&batch)?
                && !self.is_misplaced(&batch)?
            {
                self.take(&batch);
                continue;
            }
            self.step_over(at, here)?;
        }
    }

    fn take(&mut self, batch: &BatchAt) {
        self.good += 1;
        self.due = batch.last_offset + 1;
        self.end = self.due;
        self.ahead = None;
        self.walker.skip_to(batch.end());
    }

    fn last_possible(&self) -> i64 {
        self.limit.unwrap_or_else(|| farthest(self.belongs)) - 1
    }

    /// Whether the batch follows what came before it and its checksum is that of its bytes.
    fn is_good(&mut self, batch: &BatchAt) -> io::Result<bool> {
        let possible = self.due..=self.last_possible();
        Ok(possible.contains(&batch.base_offset)
            && possible.contains(&batch.last_offset)
            && self.walker.verify(batch)?)
    }

    /// Whether a batch that is good for itself leaves a gap which the one after it belongs into.
    fn is_misplaced(&mut self, batch: &BatchAt) -> io::Result<bool> {
        if batch.header.is_none() || batch.base_offset == self.due {
            return Ok(false);
        }
        self.walker.skip_to(batch.end());
        let Some(next) = self.walker.next()? else { return Ok(false) };
        Ok((self.due..=batch.last_offset).contains(&next.base_offset) && self.walker.verify(&next)?)
    }

    /// What is at `at` is not good. Notes one stretch, or a batch that can be put right, and goes on behind it.
    fn step_over(&mut self, at: u64, here: Option<BatchAt>) -> io::Result<()> {
        let next = match self.ahead.take() {
            Some(next) => next,
            None => self.next_good(at, here)?,
        };
        self.ahead = Some(next);
        let end = next.map_or(self.len, |next| next.position);
        let until = next.map(|next| next.base_offset).or(self.limit);
        if let Some(mend) = self.mend(at, here, end, until)? {
            let batch = mend.batch;
            self.note(Stretch {
                position: at,
                bytes: batch.size,
                offsets: (batch.base_offset, batch.last_offset + 1),
                kind: StretchKind::Mendable,
                mend: Some(mend),
            });
            self.take(&batch);
            return Ok(());
        }
        // Where the frame holds it is one batch; what comes after it is looked at for itself.
        let frame = here.filter(|here| here.end() < end);
        let stop = frame.map_or(end, |frame| frame.end());
        let kind = match here {
            _ if next.is_none() && frame.is_none() && self.limit.is_none() => StretchKind::Tail,
            Some(batch) if batch.base_offset < self.due && self.is_repeated(&batch)? => StretchKind::Repeated,
            _ => StretchKind::Damaged,
        };
        let (from, to) = match frame {
            Some(frame) if frame.base_offset >= self.due && until.is_none_or(|until| frame.last_offset < until) => {
                (frame.base_offset, frame.last_offset + 1)
            }
            _ if kind == StretchKind::Repeated => (self.due, self.due),
            _ => (self.due, until.unwrap_or(self.due)),
        };
        if frame.is_some() && kind == StretchKind::Damaged {
            self.due = self.due.max(to.min(until.unwrap_or(to)));
        }
        self.note(Stretch { position: at, bytes: stop - at, offsets: (from, to), kind, mend: None });
        self.walker.skip_to(stop);
        Ok(())
    }

    /// Takes a stretch in. Of a tail there is one: what lies before it without a good batch in between is part of it.
    fn note(&mut self, mut stretch: Stretch) {
        if stretch.kind == StretchKind::Tail {
            while let Some(before) = self.stretches.last()
                && before.end() == stretch.position
                && before.kind != StretchKind::Mendable
            {
                stretch.position = before.position;
                stretch.bytes += before.bytes;
                stretch.offsets.0 = stretch.offsets.0.min(before.offsets.0);
                self.stretches.pop();
            }
        }
        self.stretches.push(stretch);
    }

    /// The next good batch behind what is at `at`.
    fn next_good(&mut self, at: u64, here: Option<BatchAt>) -> io::Result<Option<BatchAt>> {
        if let Some(bad) = here.filter(|bad| bad.end() < self.len) {
            self.walker.skip_to(bad.end());
            if let Some(good) = self.walker.next()?
                && self.is_good(&good)?
            {
                return Ok(Some(good));
            }
        }
        self.walker.skip_to(at);
        let possible = self.due..=self.last_possible();
        if self.walker.find_next(possible)? {
            return self.walker.next();
        }
        match here.is_some_and(|here| here.header.is_none()) || self.good_are_old()? {
            true => old_sets::find_next(&self.file, at + 1, self.len, self.due..=self.last_possible()),
            false => Ok(None),
        }
    }

    /// Whether the file starts with a message set of a version before 2.
    fn good_are_old(&mut self) -> io::Result<bool> {
        let mut walker = Walker::new(self.file.clone(), 0, self.len, HEADER_LEN);
        Ok(walker.next()?.is_some_and(|first| first.header.is_none()))
    }

    /// How the batch at `at` can be put right, which ends at `end` or where its own length says, when the next one has
    /// offset `until`.
    fn mend(&mut self, at: u64, here: Option<BatchAt>, end: u64, until: Option<i64>) -> io::Result<Option<Mend>> {
        let by_frame = here.map(|here| here.size).filter(|size| at + size <= end);
        for size in by_frame.into_iter().chain([end - at]) {
            let mut head = [0; HEADER_LEN];
            let fits = usize::try_from(size).is_ok_and(|size| (HEADER_LEN..i32::MAX as usize).contains(&size));
            if !fits {
                continue;
            }
            self.file.read_exact_at(&mut head, at)?;
            let was = head;
            head[8..12].copy_from_slice(&(size as i32 - 12).to_be_bytes());
            head[16] = MAGIC_V2 as u8;
            let stored = i64::from_be_bytes(head[..8].try_into().expect("eight bytes"));
            let delta = i64::from(i32::from_be_bytes(head[23..27].try_into().expect("four bytes")));
            let is_possible = |base: i64| {
                let last = base.saturating_add(delta);
                base >= self.due && last <= self.last_possible() && until.is_none_or(|until| last < until)
            };
            let fills_the_gap = until.is_some_and(|until| until - self.due == delta + 1);
            let base = if fills_the_gap { self.due } else { stored };
            if delta < 0 || !is_possible(base) {
                continue;
            }
            head[..8].copy_from_slice(&base.to_be_bytes());
            let Ok(header) = BatchHeader::parse(&head) else { continue };
            let batch = BatchAt {
                position: at,
                size,
                base_offset: base,
                last_offset: header.last_offset(),
                max_timestamp: header.max_timestamp,
                header: Some(header),
            };
            if head[..FRAME] == was[..FRAME] || !self.walker.verify(&batch)? {
                continue;
            }
            let fields = match (head[..8] != was[..8], head[8..12] != was[8..12], head[16] != was[16]) {
                (true, false, false) => "base offset",
                (false, true, false) => "length",
                (false, false, true) => "magic",
                _ => "frame",
            };
            let frame = head[..FRAME].try_into().expect("so many bytes");
            return Ok(Some(Mend { frame, batch, fields }));
        }
        Ok(None)
    }

    /// Whether a good batch before this one has the same bytes, but for what a broker sets.
    fn is_repeated(&mut self, batch: &BatchAt) -> io::Result<bool> {
        let Some(header) = batch.header else { return Ok(false) };
        if !self.walker.verify(batch)? {
            return Ok(false);
        }
        let mut walker = Walker::new(self.file.clone(), 0, batch.position, LONG_WALK);
        while walker.position() < batch.position {
            match walker.next()? {
                Some(before) => {
                    if before.base_offset == batch.base_offset && before.header.is_some_and(|h| h.crc == header.crc) {
                        return walker.verify(&before);
                    }
                }
                None if walker.find_next(0..=i64::MAX)? => {}
                None => break,
            }
        }
        Ok(false)
    }
}
