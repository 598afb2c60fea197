//! The log of one partition, in Apache Kafka's files.
//!
//! # What it promises
//!
//! - An append is whole or leaves nothing. Offsets, producers and indexes change only once its bytes are in the file. Where
//!   a write failed and what it left could not be cut off, the log goes offline until it is opened anew.
//! - [`PartitionLog::sync`] answers once all that was appended before is on the medium: the active segment's file and, the
//!   first time, its name. A flush that fails is never tried again: the log is offline until it is opened anew, since the
//!   kernel may have dropped the pages. Reads go on.
//! - A segment is flushed, with its indexes, a producer snapshot and all their names, before the file of the next one is
//!   made. So only the last segment of a log can have lost anything, and only it is looked at after an unclean stop.
//! - After an unclean stop nothing that is read back counts as flushed until it was flushed once.
//! - The high watermark is the end of the log. The last stable offset is the start of the earliest open transaction, or the
//!   end.
//! - Indexes and snapshots can go at any time; they are made anew from the log.
//!
//! # Locks
//!
//! Taken in this order, each for as short as it says; none is held while a callback runs.
//!
//! 0. `rewrites`: held by whoever replaces or removes segments (the cleaner, retention, a close), over their files' renames.
//! 1. `writer`: one append, roll, close at a time. Held over the write, and over the flushes of a roll.
//! 2. `flush.gate`: one flush at a time. Held over it. A roll takes it too, so that the active segment does not change under
//!    a flush, and no second flush can succeed and hide the failure of a first.
//! 3. `view`: what readers see. Never held over I/O, so neither an append nor a flush holds up a reader.
//! 4. `flush.state`, and the small locks inside segments (an index may be read under its own), hints and watchers.

mod append;
mod batches;
mod check;
mod config;
mod epochs;
mod error;
mod files;
mod index;
mod indexes;
mod open;
mod producers;
mod read;
mod remove;
pub(in crate::storage) mod repair;
mod replay;
mod retention;
mod rewrite;
mod roll;
mod scan;
mod segment;
mod snapshot;
mod sync;
#[cfg(test)]
pub(in crate::storage) mod tests;
mod timestamps;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

pub use append::Appended;
pub use batches::{BatchInRange, batches_in};
pub use check::Damage;
pub use config::LogConfig;
pub use error::{AppendError, CloseError, FileError, Offline, OpenError, ReadError, SyncError, TruncateError};
pub use files::{read_partition_metadata, write_partition_metadata};
pub use index::AbortedTransaction;
pub use producers::{EndMarker, InTransaction, ProducerInfo, Standing};
pub use read::{Isolation, ReadResult};
pub use sync::Unflushed;
pub use timestamps::TimestampedOffset;
pub use watch::{Waker, WatchGuard, Watchers};

pub(in crate::storage) use check::Checker;
pub(in crate::storage) use epochs::LeaderEpochs;
pub(in crate::storage) use files::read_leader_epochs;
pub(in crate::storage) use index::{Entry as IndexEntry, OffsetEntry, TXN_INDEX_VERSION, TimeEntry};
pub(in crate::storage) use producers::LastOfProducer;
pub(in crate::storage) use replay::{has_marker, look_at_producers, parse_marker};
pub(in crate::storage) use rewrite::{NewSegment, Rewritable, RewriteError, last_offset};
pub(in crate::storage) use scan::{BatchAt, LONG_WALK, Walker};
pub(in crate::storage) use segment::Segment;
pub(in crate::storage) use snapshot::{
    ENTRY as SNAPSHOT_ENTRY, HEADER as SNAPSHOT_HEADER, SnapshotEntry, VERSION as SNAPSHOT_VERSION,
    scan as scan_snapshot,
};

use crate::storage::Done;
use crate::sys::Env;
use append::Writer;
use read::Hints;
use sync::Flush;

/// The log of one partition. Shared between threads; see the module for its promises and its locks.
#[derive(Debug)]
pub struct PartitionLog {
    env: Env,
    topic: String,
    partition: i32,
    dir: Arc<Path>,
    writer: Mutex<Writer>,
    flush: Flush,
    view: RwLock<View>,
    hints: Mutex<Hints>,
    watchers: Arc<Watchers>,
    damage: Vec<Damage>,
    rewrites: Mutex<rewrite::Rewrites>,
}

/// What readers see.
#[derive(Debug)]
struct View {
    /// By base offset; the last is the active one.
    segments: Vec<Arc<Segment>>,
    start: i64,
    end: i64,
    /// Bytes of the active segment that belong to the offsets below `end`.
    end_position: u64,
    last_stable: StableOffset,
    epochs: LeaderEpochs,
    closed: bool,
    /// How often segments were replaced. A read during which this changed may have seen some of the old and some of the new.
    rewrites: u64,
}

/// The last stable offset, and the segment's base offset and position where it is, if that is known.
#[derive(Clone, Copy, Debug)]
struct StableOffset {
    offset: i64,
    place: Option<(i64, u64)>,
}

impl View {
    fn active(&self) -> &Arc<Segment> {
        self.segments.last().expect("a log always has an active segment")
    }

    /// The segment that `offset` is in, or would be.
    fn segment_of(&self, offset: i64) -> Option<&Arc<Segment>> {
        let above = self.segments.partition_point(|segment| segment.base <= offset);
        self.segments.get(above.saturating_sub(1))
    }

    fn segment_after(&self, base: i64) -> Option<&Arc<Segment>> {
        self.segments.get(self.segments.partition_point(|segment| segment.base <= base))
    }
}

/// The offsets that bound a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogOffsets {
    /// The first that may be read.
    pub start: i64,
    /// That of the next record.
    pub end: i64,
    /// `end`: with one replica every record is replicated.
    pub high_watermark: i64,
    /// Below it every transaction has ended. At least `start`.
    pub last_stable: i64,
}

impl PartitionLog {
    pub fn topic(&self) -> &str {
        &self.topic
    }

    pub fn partition(&self) -> i32 {
        self.partition
    }

    /// The directory it was opened in.
    pub fn dir(&self) -> PathBuf {
        self.dir.to_path_buf()
    }

    pub fn offsets(&self) -> LogOffsets {
        let view = self.view.read();
        LogOffsets {
            start: view.start,
            end: view.end,
            high_watermark: view.end,
            last_stable: view.last_stable.offset.max(view.start),
        }
    }

    /// Has `look` come to something while no segment is replaced: one that was may have been looked at in the files of that
    /// which has taken its place.
    fn steadily<T>(&self, mut look: impl FnMut() -> T) -> T {
        loop {
            let before = self.view.read().rewrites;
            let seen = look();
            if self.view.read().rewrites == before {
                return seen;
            }
        }
    }

    /// Bytes of all segments' log files.
    pub fn size_bytes(&self) -> u64 {
        self.view.read().segments.iter().map(|segment| segment.size()).sum()
    }

    /// Bytes of the segments that have nothing from `offset` on; never the active one.
    pub fn size_below(&self, offset: i64) -> u64 {
        let view = self.view.read();
        view.segments.windows(2).take_while(|pair| pair[1].base <= offset).map(|pair| pair[0].size()).sum()
    }

    /// How many segments there are, at least 1.
    pub fn segment_count(&self) -> usize {
        self.view.read().segments.len()
    }

    /// The base offsets of all segments, rising; the last is the active one's.
    pub(in crate::storage) fn segment_bases(&self) -> Vec<i64> {
        self.view.read().segments.iter().map(|segment| segment.base).collect()
    }

    /// What of the log was found damaged when it was opened, and was kept.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Why it takes no writes until it is opened anew, if it does not.
    pub fn is_offline(&self) -> Option<Offline> {
        self.flush.offline()
    }

    /// Whether it was closed or deleted.
    pub fn is_closed(&self) -> bool {
        self.view.read().closed
    }

    /// Has `waker` called after each append, and when the log is closed, until the guard is dropped.
    pub fn watch(&self, waker: Waker) -> WatchGuard {
        self.watchers.add(waker)
    }

    /// From the next append on, the settings are these.
    pub fn update_config(&self, config: LogConfig) {
        self.flush.flush_ms.store(config.flush_ms, std::sync::atomic::Ordering::Relaxed);
        self.writer.lock().config = config;
    }

    /// The producers that are known, by id.
    pub fn producers(&self) -> Vec<ProducerInfo> {
        self.writer.lock().producers.describe()
    }

    /// Whether the producer has a transaction open here.
    pub fn has_open_transaction(&self, producer_id: i64) -> bool {
        self.writer.lock().producers.has_open_transaction(producer_id)
    }

    /// How a producer that says it has this epoch stands here.
    pub fn standing(&self, producer_id: i64, epoch: i16) -> Standing {
        self.writer.lock().producers.standing(producer_id, epoch)
    }

    /// The latest leader epoch that wrote here.
    pub fn latest_epoch(&self) -> Option<i32> {
        self.view.read().epochs.latest()
    }

    /// The leader epoch that wrote `offset`, or would have.
    pub fn epoch_of_offset(&self, offset: i64) -> Option<i32> {
        self.view.read().epochs.of_offset(offset)
    }

    /// Where leader epoch `epoch` ended: the latest epoch with records that is not above it, and the offset after its last
    /// record. `None` where nothing is known of it.
    pub fn end_offset_for_epoch(&self, epoch: i32) -> Option<(i32, i64)> {
        let view = self.view.read();
        view.epochs.end_offset(epoch, view.end)
    }

    /// Forgets producers that have no transaction open and wrote nothing for as long as the settings say.
    pub fn expire_producers(&self) {
        let now_ms = self.env.clock.now_ms();
        let mut writer = self.writer.lock();
        let expiration_ms = writer.config.producer_id_expiration_ms;
        writer.producers.expire(now_ms, expiration_ms);
    }

    /// To be called now and then (every few minutes will do): gives back what only readers needed.
    pub fn housekeep(&self) {
        self.hints.lock().release();
        let segments = self.view.read().segments.clone();
        segments.iter().for_each(|segment| segment.forget_pages());
    }
}
