//! The batches of a log file, past any damage.

use std::io;
use std::sync::Arc;

use super::damage::{Damage, DamageKind};
use super::page::only_zeros;
use super::records::{Records, RecordsError};
use super::{Entry, Range};
use crate::record::{
    BatchError, BatchHeader, Compression, HEADER_LEN, MAGIC_V2, NO_SEQUENCE, TimestampType, legacy, peek,
};
use crate::storage::log::{BatchAt, Walker};
use crate::sys::File;

/// The most bytes of a batch that are held in memory although its checksum is wrong, and the most that a record may inflate
/// to where its batch is smaller.
pub const LARGEST_HELD: usize = 16 << 20;

/// A version 2 batch, or an entry of a message set of version 0 or 1: a message, or a wrapper around many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchEntry {
    pub position: u64,
    /// All of it, in bytes.
    pub size: u64,
    /// 0, 1 or 2.
    pub magic: i8,
    /// Of a wrapper that cannot be inflated that of its last message.
    pub base_offset: i64,
    pub last_offset: i64,
    /// `None` for a wrapper that cannot be inflated.
    pub records: Option<u32>,
    pub compression: Compression,
    pub timestamp_type: TimestampType,
    /// Milliseconds since the Unix epoch; -1 for none.
    pub max_timestamp: i64,
    /// As it stands there: an unsigned number of 32 bits, CRC-32C in version 2 and CRC-32 before.
    pub crc: u32,
    /// What the bytes give. The same as `crc` unless the batch is damaged.
    pub computed_crc: u32,
    /// The header, of version 2.
    pub header: Option<BatchHeader>,
}

impl BatchEntry {
    /// Whether the checksum is that of the bytes.
    pub fn is_valid(&self) -> bool {
        self.crc == self.computed_crc
    }

    pub fn is_control(&self) -> bool {
        self.header.is_some_and(|header| header.is_control())
    }

    /// The sequence of the last record, -1 for none.
    pub fn last_sequence(&self) -> i32 {
        self.header.map_or(NO_SEQUENCE, |header| header.last_sequence())
    }
}

/// What is read of a log at once, and so about how much of it is a stretch, in bytes. Its own tests have small logs.
pub const STRETCH: u64 = if cfg!(test) { 256 } else { 512 * 1024 };

/// A place in a file between two entries, with what is known there of those before. Reading on from an equal place gives equal
/// entries, whoever reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    position: u64,
    /// The lowest offset that the next batch can have.
    due: Option<i64>,
    /// Whether the batch before was a message set of an old version, or there was none.
    maybe_old: bool,
    /// Whether message sets of the old versions are looked for behind damage.
    looks_for_old: bool,
}

#[derive(Debug)]
pub(super) struct LogDump {
    file: Arc<dyn File>,
    walker: Walker,
    /// The offset that the segment starts at.
    base: Option<i64>,
    /// The lowest offset that the next batch can have.
    due: Option<i64>,
    range: Range,
    /// Where the stretch ends: no batch behind it is read.
    until: u64,
    /// The batch that was told last, and whether its checksum is right.
    current: Option<(BatchAt, bool)>,
    /// To be told next.
    waiting: Option<Entry>,
    /// Whether message sets of the old versions may be here.
    maybe_old: bool,
}

impl LogDump {
    pub fn new(file: Arc<dyn File>, size: u64, base: Option<i64>, range: Range) -> LogDump {
        let walker = Walker::new(file.clone(), 0, size, STRETCH as usize);
        LogDump { file, walker, base, due: base, range, until: size, current: None, waiting: None, maybe_old: true }
    }

    /// Where it stands; `None` at the end. Not asked for between the damage and the header of a batch whose checksum is wrong.
    pub fn place(&self) -> Option<Place> {
        let place = Place {
            position: self.walker.position(),
            due: self.due,
            maybe_old: self.maybe_old,
            looks_for_old: self.walker.looks_for_old(),
        };
        (place.position < self.walker.end()).then_some(place)
    }

    /// Goes to `place` and on from there, up to the first entry at `until` or behind it; where that is not known the first behind
    /// `place`.
    pub fn go_to(&mut self, place: &Place, until: Option<&Place>) {
        self.walker.skip_to(place.position);
        self.walker.look_for_old(place.looks_for_old);
        self.due = place.due;
        self.maybe_old = place.maybe_old;
        self.until = until.map_or(place.position + 1, |until| until.position);
        self.current = None;
        self.waiting = None;
    }

    /// Goes to `place` and on from there up to the end of a stretch. Answers where that will be if the headers say so and hold
    /// what they promise.
    pub fn go_to_stretch(&mut self, place: &Place) -> Option<Place> {
        self.go_to(place, None);
        // Where it cannot be read is told when the entries are asked for.
        let last = self.walker.survey().ok()??;
        let until = Place {
            position: last.end(),
            due: Some(last.last_offset.saturating_add(1)),
            maybe_old: last.header.is_none(),
            looks_for_old: self.walker.looks_for_old(),
        };
        self.go_to(place, Some(&until));
        Some(until)
    }

    pub fn next(&mut self) -> io::Result<Option<Entry>> {
        self.current = None;
        loop {
            if let Some(entry) = self.waiting.take() {
                if let Entry::Batch(batch) = &entry
                    && let Some(at) = self.reread(batch.position)?
                {
                    self.current = Some((at, batch.is_valid()));
                }
                return Ok(Some(entry));
            }
            let position = self.walker.position();
            if position >= self.until.min(self.walker.end()) {
                return Ok(None);
            }
            let Some(at) = self.walker.next()? else { return self.skip_damage(position, None).map(Some) };
            let is_wanted = self.is_wanted(&at);
            if !is_wanted {
                self.due = Some(at.last_offset.saturating_add(1));
                self.maybe_old = at.header.is_none();
                continue;
            }
            let Some((crc, computed_crc)) = self.walker.checksums(&at)? else { return Ok(Some(self.gone(&at))) };
            if crc != computed_crc && !self.frame_holds(&at)? {
                return self
                    .skip_damage(position, Some(DamageKind::Crc { stored: crc, computed: computed_crc }))
                    .map(Some);
            }
            self.walker.skip_to(at.end());
            let batch = self.describe(&at, crc, computed_crc)?;
            self.maybe_old = at.header.is_none();
            let due = self.due.replace(at.last_offset.saturating_add(1));
            let wrong = if crc != computed_crc {
                Some(DamageKind::Crc { stored: crc, computed: computed_crc })
            } else {
                due.filter(|due| batch.base_offset < *due).map(|due| DamageKind::Offsets { due })
            };
            let Some(kind) = wrong else {
                self.current = Some((at, true));
                return Ok(Some(Entry::Batch(batch)));
            };
            self.waiting = Some(Entry::Batch(batch));
            let offsets = (Some(batch.base_offset), Some(batch.last_offset.saturating_add(1)));
            return Ok(Some(Entry::Damage(Damage { position, bytes: at.size, offsets, kind })));
        }
    }

    /// The file has become shorter since it was opened.
    fn gone(&mut self, at: &BatchAt) -> Entry {
        let bytes = self.walker.end() - at.position;
        self.walker.skip_to(self.walker.end());
        let kind = DamageKind::Torn { needed: at.size, left: 0 };
        Entry::Damage(Damage { position: at.position, bytes, offsets: (Some(at.base_offset), None), kind })
    }

    /// The batch at `position`, which was there before; the walker goes on behind it as it would have.
    fn reread(&mut self, position: u64) -> io::Result<Option<BatchAt>> {
        let go_on_at = self.walker.position();
        self.walker.skip_to(position);
        let at = self.walker.next()?;
        self.walker.skip_to(go_on_at);
        Ok(at)
    }

    fn is_wanted(&self, at: &BatchAt) -> bool {
        let Range { offsets, times } = &self.range;
        let base_timestamp = match &at.header {
            Some(header) if !header.has_delete_horizon() => header.base_timestamp,
            Some(_) => i64::MIN,
            None => at.max_timestamp,
        };
        // The first offset of a wrapper is not known, and not above its last.
        at.last_offset >= *offsets.start()
            && (at.base_offset <= *offsets.end()
                || at.header.is_none() && self.due.is_none_or(|due| due <= *offsets.end()))
            && at.max_timestamp >= *times.start()
            && base_timestamp <= *times.end()
    }

    /// Whether the length of a batch with a wrong checksum can be believed: it ends where the file does, or where another
    /// batch starts that is good.
    fn frame_holds(&mut self, at: &BatchAt) -> io::Result<bool> {
        if at.end() == self.walker.end() {
            return Ok(true);
        }
        self.walker.skip_to(at.end());
        let Some(next) = self.walker.next()? else { return Ok(false) };
        self.walker.verify(&next)
    }

    /// Passes over what is no batch, up to the next that is whole or the end.
    fn skip_damage(&mut self, position: u64, kind: Option<DamageKind>) -> io::Result<Entry> {
        let end = self.walker.end();
        let due = self.due.unwrap_or(0);
        let most = self.base.map_or(i64::MAX, |base| base.saturating_add(i64::from(i32::MAX)));
        self.walker.skip_to(position);
        let mut found = self.walker.find_next(due..=most.max(due))?.then(|| self.walker.position());
        if self.maybe_old
            && let Some(old) = self.find_old(position, found.unwrap_or(end), due)?
        {
            found = Some(old);
        }
        let until = found.unwrap_or(end);
        let kind = if only_zeros(&*self.file, position, until)? {
            DamageKind::Zeros
        } else if let Some(kind) = kind {
            kind
        } else {
            self.why(position, found.is_none())?
        };
        let next = match found {
            Some(at) => self.reread(at)?,
            None => None,
        };
        let next_offset = match next {
            Some(next) => Some(self.describe(&next, 0, 0)?.base_offset),
            None => None,
        };
        self.walker.skip_to(until);
        let offsets = (self.due, next_offset);
        Ok(Entry::Damage(Damage { position, bytes: until - position, offsets, kind }))
    }

    /// The next message of version 0 or 1 behind `position` and before `end` that is whole.
    fn find_old(&mut self, position: u64, end: u64, due: i64) -> io::Result<Option<u64>> {
        for at in position + 1..end {
            self.walker.skip_to(at);
            if let Some(batch) = self.walker.next()?
                && batch.header.is_none()
                && batch.last_offset >= due
                && self.walker.verify(&batch)?
            {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Why no batch starts at `position`. `last`: none follows it.
    fn why(&mut self, position: u64, last: bool) -> io::Result<DamageKind> {
        let left = self.walker.end() - position;
        let bytes = self.walker.slice(position, position + left.min(HEADER_LEN as u64))?.unwrap_or_default();
        let torn = |needed: u64| DamageKind::Torn { needed, left };
        Ok(match peek(bytes) {
            Ok(frame) if frame.size as u64 > left && last => torn(frame.size as u64),
            Ok(frame) if frame.magic == MAGIC_V2 => match BatchHeader::parse(bytes) {
                Err(error) => DamageKind::Header(error),
                Ok(header) => DamageKind::Header(BatchError::Incomplete {
                    claimed: header.size_in_bytes() as u64,
                    have: usize::try_from(left).unwrap_or(usize::MAX),
                }),
            },
            Ok(frame) => DamageKind::Header(BatchError::Incomplete {
                claimed: frame.size as u64,
                have: usize::try_from(left).unwrap_or(usize::MAX),
            }),
            Err(BatchError::ShortHeader { .. }) => torn(HEADER_LEN as u64),
            Err(error) => DamageKind::Header(error),
        })
    }

    fn describe(&mut self, at: &BatchAt, crc: u32, computed_crc: u32) -> io::Result<BatchEntry> {
        let mut batch = BatchEntry {
            position: at.position,
            size: at.size,
            magic: MAGIC_V2,
            base_offset: at.base_offset,
            last_offset: at.last_offset,
            records: None,
            compression: Compression::None,
            timestamp_type: TimestampType::CreateTime,
            max_timestamp: at.max_timestamp,
            crc,
            computed_crc,
            header: at.header,
        };
        if let Some(header) = &at.header {
            batch.records = u32::try_from(header.records_count).ok();
            batch.compression = header.compression().unwrap_or(Compression::None);
            batch.timestamp_type = header.timestamp_type();
            return Ok(batch);
        }
        batch.magic = 1;
        if let Ok(bytes) = self.held(at, crc == computed_crc)?
            && let Ok(entry) = legacy::Entry::parse(bytes)
        {
            batch.magic = entry.magic;
            batch.compression = entry.compression;
            batch.timestamp_type = entry.timestamp_type;
            let mut records = Records::of_message(bytes, LARGEST_HELD.max(bytes.len()));
            let mut count = 0;
            batch.records = loop {
                match records.next() {
                    Ok(Some(record)) if count == 0 => batch.base_offset = record.offset,
                    Ok(Some(_)) => {}
                    Ok(None) => break Some(count),
                    Err(_) => break None,
                }
                count += 1;
            };
        }
        Ok(batch)
    }

    /// The bytes of a batch, if they may be held.
    fn held(&mut self, at: &BatchAt, valid: bool) -> io::Result<Result<&[u8], RecordsError>> {
        if !valid && at.size > LARGEST_HELD as u64 {
            return Ok(Err(RecordsError::NotHeld { size: at.size }));
        }
        Ok(self.walker.slice(at.position, at.end())?.ok_or(RecordsError::Gone))
    }

    pub fn records(&mut self) -> io::Result<Records<'_>> {
        let Some((at, valid)) = self.current else { return Ok(Records::none()) };
        let bytes = match self.held(&at, valid)? {
            Ok(bytes) => bytes,
            Err(error) => return Ok(Records::failed(error)),
        };
        let limit = LARGEST_HELD.max(bytes.len());
        Ok(match &at.header {
            Some(header) => Records::of_batch(header, &bytes[HEADER_LEN..], limit),
            None => Records::of_message(bytes, limit),
        })
    }
}
