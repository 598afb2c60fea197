//! The scrub: sealed segments are read again, slowly, and every batch in them is checked, so that what has rotted on the
//! disk is found before somebody needs it.
//!
//! A pass goes over all partitions in the order of their names, open or not, and then rests until the next is due. Each
//! sealed segment is read from one end to the other, its batches' frames, offsets and checksums are checked
//! (`crate::storage::log`, `check`). What is found is read a second time before it is believed.
//!
//! # What it promises
//!
//! - It reads at most as many bytes a second as it is told. A partition counts as a few kilobytes even where there is nothing to
//!   read. Between passes it does nothing at all.
//! - It opens no partition, changes no log and holds up no read: a batch that is found damaged is handed to readers as it is, as
//!   Apache Kafka does it. The active segment, which the next start would check, is left alone.
//! - What is read is first dropped from the page cache, where the system can do that, so that it comes from the disk, and dropped
//!   again afterwards, so that it takes no room there.
//! - What it has found is said in the log once, is there to be looked at ([`Scrubber::checkpoint`], and [`Checkpoint::read`]
//!   for those who look at the directory from outside), and is forgotten when a later pass finds it no more.
//! - How far it has come is remembered over a restart, to within half a minute.
//!
//! A leader epoch and what follows the last batch of an index are not covered by any checksum, and not checked.
//!
//! [`Scrubber::step`] is to be called again and again by one caller, who is told when to come back.

mod checkpoint;
mod partition;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

pub use checkpoint::{Checkpoint, Position};

use crate::protocol::Uuid;
use crate::storage::catalog::Topic;
use crate::storage::log::Damage;
use crate::storage::store::Store;
use checkpoint::MOST_FINDINGS;
use partition::{Look, PartitionLook};

/// What a partition costs that has nothing to read: its directory is listed. In bytes.
const LISTING: u64 = 16 * 1024;
/// A step reads no more than this, and no less than a batch, in bytes.
const LARGEST_STEP: u64 = 1 << 20;
const SMALLEST_STEP: u64 = 64 << 10;
/// How often the checkpoint is written while a pass is under way.
const CHECKPOINT: Duration = Duration::from_secs(30);
/// How often readers who are handed a damaged batch are spoken of, for each.
const READ_NOTICE: Duration = Duration::from_secs(60);

/// How the scrub is to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrubSettings {
    /// The most bytes that are read in a second. 0: there is no scrub.
    pub bytes_per_second: u64,
    /// From the start of one pass to that of the next, at least.
    pub interval: Duration,
}

impl Default for ScrubSettings {
    /// A week, and so little that nobody notices: a terabyte takes three days.
    fn default() -> Self {
        ScrubSettings { bytes_per_second: 4 << 20, interval: Duration::from_secs(7 * 24 * 60 * 60) }
    }
}

/// What is wrong with a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A batch whose frame holds and whose checksum is not that of its bytes.
    Checksum,
    /// Bytes that are no batch, or one that cannot be where it is.
    Frame,
    /// Bytes that the disk does not give back.
    Unreadable,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Checksum, Kind::Frame, Kind::Unreadable];

    /// As it stands in the file and in what is printed.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Checksum => "checksum",
            Kind::Frame => "frame",
            Kind::Unreadable => "unreadable",
        }
    }

    fn named(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// For people: the end of a sentence.
    fn says(self) -> &'static str {
        match self {
            Kind::Checksum => "the checksum of a batch is not that of its bytes",
            Kind::Frame => "there is no batch where one has to be",
            Kind::Unreadable => "the disk does not give the bytes back",
        }
    }
}

/// A damaged stretch of a sealed segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub topic_id: Uuid,
    pub topic: String,
    pub partition: i32,
    /// Where. `served` is whether [`Kind::Checksum`] is what is wrong.
    pub damage: Damage,
    pub kind: Kind,
    /// When it was found first, ms since the Unix epoch.
    pub found_ms: i64,
}

impl Finding {
    fn is_of(&self, topic_id: Uuid, partition: i32) -> bool {
        self.topic_id == topic_id && self.partition == partition
    }

    fn is_same(&self, other: &Finding) -> bool {
        self.is_of(other.topic_id, other.partition) && self.damage == other.damage && self.kind == other.kind
    }
}

/// Scrubs the logs of a data directory. Shared between threads; steps follow each other.
#[derive(Debug)]
pub struct Scrubber {
    store: Arc<Store>,
    state: Mutex<State>,
    /// Whether anything is known to be damaged, for readers, who should not have to wait for a step.
    has_findings: AtomicBool,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct State {
    /// Read from its file when it is first needed.
    loaded: bool,
    look: Option<PartitionLook>,
    /// On the steady clock, when the checkpoint was last written.
    written_at: Option<Duration>,
    said_unwritable: bool,
    stopped: bool,
}

/// What others may see while a step is under way.
#[derive(Debug, Default)]
struct Known {
    checkpoint: Checkpoint,
    /// On the steady clock, for each of the findings, when it was last said that somebody has read it.
    read_said: Vec<(Damage, Duration)>,
}

impl Scrubber {
    pub fn new(store: Arc<Store>) -> Self {
        let state = State { loaded: false, look: None, written_at: None, said_unwritable: false, stopped: false };
        Scrubber { store, state: Mutex::new(state), has_findings: AtomicBool::new(false), known: Mutex::default() }
    }

    /// How far it is and what it has found, as it is now.
    pub fn checkpoint(&self) -> Checkpoint {
        self.known.lock().checkpoint.clone()
    }

    /// Goes on with the pass that is under way, or starts one if it is due. Answers for how long to rest before the next call.
    /// Waits for the disk.
    pub fn step(&self, settings: &ScrubSettings) -> Duration {
        let mut state = self.state.lock();
        if state.stopped {
            return settings.interval;
        }
        if !state.loaded {
            self.load(&mut state);
        }
        let clock = &self.store.env().clock;
        let (started, now_ms) = (clock.monotonic(), clock.now_ms());
        if state.look.is_none() && !self.begin(&mut state, settings, now_ms) {
            return self.until_due(settings, now_ms);
        }
        let budget = (settings.bytes_per_second / 4).clamp(SMALLEST_STEP, LARGEST_STEP);
        let mut bytes = 0;
        while bytes < budget {
            let Some(look) = &mut state.look else { break };
            let read = look.go_on(&self.store, budget - bytes);
            bytes += read.max(1);
            let is_over = look.is_over();
            self.take_in(look);
            if is_over {
                bytes += LISTING;
                let after = state.look.take().expect("it was just there");
                match self.next_partition(&after.topic.name, after.partition) {
                    Some((topic, partition)) => state.look = Some(PartitionLook::new(topic, partition)),
                    None => self.finish(&mut state, clock.now_ms()),
                }
            }
        }
        self.remember(&mut state, started);
        if state.look.is_none() {
            return self.until_due(settings, now_ms);
        }
        let allowed = Duration::try_from_secs_f64(bytes as f64 / settings.bytes_per_second.max(1) as f64);
        allowed.unwrap_or_default().saturating_sub(clock.monotonic().saturating_sub(started))
    }

    /// Ends it, before the data directory is closed: what a later process goes on from is written.
    pub fn stop(&self) {
        let mut state = self.state.lock();
        state.stopped = true;
        if state.loaded && state.look.is_some() {
            state.written_at = None;
            self.remember(&mut state, self.store.env().clock.monotonic());
        }
    }

    /// Says in the log, now and then, that somebody is handed bytes that are known to be damaged: those of `range` (from, to)
    /// in the file of the segment with base offset `segment`. Costs nothing where nothing is known to be damaged.
    pub fn was_read(&self, topic_id: Uuid, partition: i32, segment: i64, range: (u64, u64)) {
        if !self.has_findings.load(Ordering::Acquire) {
            return;
        }
        let now = self.store.env().clock.monotonic();
        let mut known = self.known.lock();
        let Known { checkpoint, read_said } = &mut *known;
        read_said.retain(|(_, at)| now.saturating_sub(*at) < READ_NOTICE);
        for Finding { topic, damage, kind, .. } in
            checkpoint.findings.iter().filter(|finding| finding.is_of(topic_id, partition))
        {
            let touches = damage.position < range.1 && range.0 < damage.position + damage.bytes;
            if damage.segment != segment || !touches || read_said.iter().any(|(said, _)| said == damage) {
                continue;
            }
            read_said.push((damage.clone(), now));
            let (from, until) = damage.offsets;
            tracing::warn!(
                topic,
                partition,
                from,
                until,
                "a reader was handed damaged records as they are, for its own check to refuse: {}; it can go on from offset \
                 {until}",
                kind.says()
            );
        }
    }

    fn load(&self, state: &mut State) {
        state.loaded = true;
        let checkpoint = match Checkpoint::read(&*self.store.env().fs, self.store.data_dir()) {
            Ok(checkpoint) => checkpoint,
            Err(error) => {
                tracing::warn!(%error, "the scrub's checkpoint cannot be read; it begins anew");
                Checkpoint::default()
            }
        };
        let known = checkpoint.findings.len() as u64 + checkpoint.more;
        if known > 0 {
            tracing::warn!(
                known,
                "sealed segments are known to be damaged, as an earlier log said and {} does; stop doze and run 'doze verify', \
                 which names them, and 'doze recover'",
                crate::storage::names::SCRUB_CHECKPOINT
            );
        }
        self.publish(|mine| *mine = checkpoint);
    }

    fn publish(&self, change: impl FnOnce(&mut Checkpoint)) {
        let mut known = self.known.lock();
        change(&mut known.checkpoint);
        self.has_findings.store(!known.checkpoint.findings.is_empty(), Ordering::Release);
    }

    /// Starts a pass, or takes up the one that an earlier process has begun. Answers whether there is one.
    fn begin(&self, state: &mut State, settings: &ScrubSettings, now_ms: i64) -> bool {
        let Checkpoint { at, .. } = self.checkpoint();
        if let Some(at) = at {
            let topics = self.store.topics();
            state.look = match topics.by_name(&at.topic).filter(|topic| at.partition < topic.partitions) {
                Some(topic) => Some(PartitionLook::resumed(topic.clone(), &at)),
                None => self.next_partition(&at.topic, at.partition).map(|(topic, n)| PartitionLook::new(topic, n)),
            };
            if state.look.is_none() {
                self.finish(state, now_ms);
            }
            return state.look.is_some();
        }
        if !self.until_due(settings, now_ms).is_zero() {
            return false;
        }
        let topics = self.store.topics();
        // What is known of topics that are gone is of no use.
        self.publish(|checkpoint| {
            checkpoint.findings.retain(|finding| topics.by_id(finding.topic_id).is_some());
            checkpoint.more = 0;
            checkpoint.started_ms = Some(now_ms);
        });
        state.look = self.next_partition("", -1).map(|(topic, partition)| PartitionLook::new(topic, partition));
        match state.look {
            Some(_) => tracing::debug!("the scrub begins a pass"),
            None => self.finish(state, now_ms),
        }
        state.look.is_some()
    }

    fn until_due(&self, settings: &ScrubSettings, now_ms: i64) -> Duration {
        let interval = i64::try_from(settings.interval.as_millis()).unwrap_or(i64::MAX);
        let started = self.known.lock().checkpoint.started_ms;
        // A clock that was set back does not put it off for longer than the interval.
        let left = started.map_or(0, |at| at.saturating_add(interval).saturating_sub(now_ms).clamp(0, interval));
        Duration::from_millis(left.unsigned_abs())
    }

    fn finish(&self, state: &mut State, now_ms: i64) {
        state.look = None;
        state.written_at = None;
        self.publish(|checkpoint| (checkpoint.at, checkpoint.finished_ms) = (None, Some(now_ms)));
        let known = self.known.lock();
        let damaged = known.checkpoint.findings.len() as u64 + known.checkpoint.more;
        tracing::debug!(damaged, "the scrub has been over all sealed segments");
    }

    /// The partition after this one, in the order of a pass.
    fn next_partition(&self, name: &str, partition: i32) -> Option<(Arc<Topic>, i32)> {
        let topics = self.store.topics();
        let mut after = topics
            .iter()
            .filter(|topic| &*topic.name > name || (&*topic.name == name && partition + 1 < topic.partitions));
        let topic = after.next()?;
        Some((topic.clone(), if &*topic.name == name { partition + 1 } else { 0 }))
    }

    /// Takes in what a look at a partition has come to since the last time.
    fn take_in(&self, look: &mut PartitionLook) {
        let (topic_id, partition, at) = (look.topic.id, look.partition, look.position());
        let news = look.news();
        let env = self.store.env();
        let mut said = Vec::new();
        self.publish(|checkpoint| {
            checkpoint.at = Some(at);
            for Look { segments, damage } in news {
                let (mut old, mut others): (Vec<Finding>, Vec<Finding>) =
                    std::mem::take(&mut checkpoint.findings).into_iter().partition(|finding| {
                        finding.is_of(topic_id, partition) && segments.contains(&finding.damage.segment)
                    });
                for (damage, kind) in damage {
                    let (topic, found_ms) = (look.topic.name.to_string(), env.clock.now_ms());
                    let mut finding = Finding { topic_id, topic, partition, damage, kind, found_ms };
                    match old.iter().position(|known| known.is_same(&finding)) {
                        Some(known) => finding = old.swap_remove(known),
                        None => said.push(finding.clone()),
                    }
                    if others.len() < MOST_FINDINGS { others.push(finding) } else { checkpoint.more += 1 }
                }
                others.sort_by(|a, b| {
                    let key = |f: &Finding| (f.topic.clone(), f.partition, f.damage.segment, f.damage.position);
                    key(a).cmp(&key(b))
                });
                checkpoint.findings = others;
            }
        });
        for Finding { topic, damage, kind, .. } in said {
            let Damage { segment, position, bytes, offsets: (from, until), .. } = damage;
            let file = crate::storage::names::segment_file(segment, crate::storage::names::FileKind::Log);
            let path = self.store.partition_dir(&topic, partition).join(file);
            tracing::error!(
                topic,
                partition,
                from,
                until,
                file = %path.display(),
                position,
                bytes,
                "records are damaged on the disk: {}. What is before and after them can be read. Look at the disk; stop doze and \
                 run 'doze verify', which lists all that is damaged, and 'doze recover', which plans what can be done",
                kind.says()
            );
        }
    }

    /// Writes the checkpoint if it is time.
    fn remember(&self, state: &mut State, now: Duration) {
        if state.written_at.is_some_and(|at| now.saturating_sub(at) < CHECKPOINT) {
            return;
        }
        state.written_at = Some(now);
        match self.checkpoint().write(&*self.store.env().fs, self.store.data_dir()) {
            Ok(()) => state.said_unwritable = false,
            Err(error) if !state.said_unwritable => {
                state.said_unwritable = true;
                tracing::warn!(%error, "the scrub's checkpoint cannot be written; a restart would have it begin anew");
            }
            Err(_) => {}
        }
    }
}
