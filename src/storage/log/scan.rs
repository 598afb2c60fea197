//! Walking over the batches of a segment file by their headers.
//!
//! The walk believes nothing: each length is checked against what the file has left, and where there is no header the
//! walker stops and says so ([`Walker::find_next`] then looks for the next batch that is whole). Version 2 batches and the
//! message sets of versions 0 and 1 have these in common, all numbers big-endian:
//!
//! | at | bytes | field |
//! |---:|------:|-------|
//! |  0 | 8 | offset: v2 that of the first record, v0 and v1 that of the last |
//! |  8 | 4 | length: the bytes after this field |
//! | 12 | 4 | v2 the leader epoch, v0 and v1 the CRC-32 of all after it |
//! | 16 | 1 | magic |
//! | 18 | 8 | v1 the timestamp |

use std::io;
use std::sync::Arc;

use crate::record::{BatchHeader, Frame, HEADER_LEN, MAGIC_V2, NO_TIMESTAMP, peek};
use crate::sys::File;

const MAGIC_AT: usize = 16;
/// Where the range of a version 2 batch's CRC starts.
const CRC_FROM: u64 = 21;
/// The same for the versions before.
const OLD_CRC_FROM: u64 = 16;

/// The fewest bytes of a batch of a version before 2.
const LEAST_OLD: usize = 26;

/// What a walk reads at once when it goes through a file from one end to the other, in bytes.
pub(in crate::storage) const LONG_WALK: usize = 256 * 1024;

/// A batch in a file, as its header tells.
#[derive(Clone, Copy, Debug)]
pub(in crate::storage) struct BatchAt {
    pub position: u64,
    /// Its bytes, at least 26.
    pub size: u64,
    /// The first offset; with the versions before 2 the last, since a compressed one does not tell the first.
    pub base_offset: i64,
    pub last_offset: i64,
    pub max_timestamp: i64,
    /// The header, of a version 2 batch.
    pub header: Option<BatchHeader>,
}

impl BatchAt {
    pub fn end(&self) -> u64 {
        self.position + self.size
    }

    /// What the header at the start of `bytes` tells, for a batch at `position` in a file where batches end at `end` at the
    /// latest. `None` if no batch can be there.
    fn parse(bytes: &[u8], position: u64, end: u64) -> Option<BatchAt> {
        let Frame { magic, size } = peek(bytes).ok()?;
        let size = size as u64;
        if position + size > end {
            return None;
        }
        if magic == MAGIC_V2 {
            let header = BatchHeader::parse(bytes).ok()?;
            return Some(BatchAt {
                position,
                size,
                base_offset: header.base_offset,
                last_offset: header.last_offset(),
                max_timestamp: header.max_timestamp,
                header: Some(header),
            });
        }
        let offset = i64::from_be_bytes(field(bytes, 0)?);
        let max_timestamp = if magic == 1 { i64::from_be_bytes(field(bytes, 18)?) } else { NO_TIMESTAMP };
        (offset >= 0).then_some(BatchAt {
            position,
            size,
            base_offset: offset,
            last_offset: offset,
            max_timestamp,
            header: None,
        })
    }
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Walks over a file. Holds one buffer of the size it was given.
#[derive(Debug)]
pub(in crate::storage) struct Walker {
    file: Arc<dyn File>,
    position: u64,
    end: u64,
    /// How much is read at once.
    step: usize,
    /// The first `filled` are bytes of the file, from `buffer_at` on.
    buffer: Vec<u8>,
    filled: usize,
    buffer_at: u64,
    /// Whether batches of the versions before 2 are looked for as well: one was come over, or may be there.
    is_old: bool,
    /// The size of the batch before: where batches are larger than a step, reading a step for a header is a waste.
    before: u64,
}

impl Walker {
    /// Walks from `position`, where a batch has to start, to `end`.
    pub fn new(file: Arc<dyn File>, position: u64, end: u64, step: usize) -> Self {
        Walker {
            file,
            position,
            end,
            step: step.max(HEADER_LEN),
            buffer: Vec::new(),
            filled: 0,
            buffer_at: 0,
            is_old: false,
            before: 0,
        }
    }

    /// Where the next batch has to start.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Where the walk ends.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Goes on from `position`, where a batch has to start.
    pub fn skip_to(&mut self, position: u64) {
        self.position = position;
    }

    /// Has [`Walker::find_next`] look for batches of the versions before 2 from the start on, or only once one was come over.
    pub fn look_for_old(&mut self, from_the_start: bool) {
        self.is_old = from_the_start;
    }

    /// Whether [`Walker::find_next`] looks for batches of the versions before 2.
    pub fn looks_for_old(&self) -> bool {
        self.is_old
    }

    /// Gives back the buffer's memory.
    pub fn forget(&mut self) {
        self.buffer = Vec::new();
        self.filled = 0;
    }

    /// Steps over the next batch, and by their headers over those after it that a step from here holds whole. Its bytes stay in
    /// the buffer for whoever skips back to read them. The last of the batches; `None` if not even one starts here.
    pub fn survey(&mut self) -> io::Result<Option<BatchAt>> {
        let (start, step) = (self.position, self.step);
        let held_to = start + self.window(start, step, step)?.len() as u64;
        let mut last = None;
        while self.position + HEADER_LEN as u64 <= held_to {
            let position = self.position;
            match self.next()? {
                Some(batch) if last.is_none() || batch.end() <= held_to => last = Some(batch),
                _ => {
                    self.position = position;
                    break;
                }
            }
        }
        Ok(last)
    }

    /// Steps over the next batch. `None` at the end, and where there is no whole batch: [`Walker::position`] tells which.
    pub fn next(&mut self) -> io::Result<Option<BatchAt>> {
        if self.position >= self.end {
            return Ok(None);
        }
        let step = if self.before > self.step as u64 { HEADER_LEN } else { self.step };
        let (position, end) = (self.position, self.end);
        let bytes = self.window(position, HEADER_LEN, step)?;
        let Some(batch) = BatchAt::parse(bytes, position, end) else { return Ok(None) };
        self.position = batch.end();
        self.before = batch.size;
        self.is_old |= batch.header.is_none();
        Ok(Some(batch))
    }

    /// The file's bytes from `at`, at least `need` of them unless the end comes first; `step` are read if some have to be.
    fn window(&mut self, at: u64, need: usize, step: usize) -> io::Result<&[u8]> {
        let need = need.min(usize::try_from(self.end.saturating_sub(at)).unwrap_or(usize::MAX));
        let buffered_to = self.buffer_at + self.filled as u64;
        if at < self.buffer_at || at + need as u64 > buffered_to {
            let want = step.max(need).min(usize::try_from(self.end - at).unwrap_or(usize::MAX));
            if self.buffer.len() < want {
                self.buffer.resize(want, 0);
            }
            self.buffer_at = at;
            self.filled = 0;
            // The file may be shorter than it was said to be: then there is just less in the window.
            while self.filled < need {
                match self.file.read_at(&mut self.buffer[self.filled..want], at + self.filled as u64)? {
                    0 => break,
                    n => self.filled += n,
                }
            }
        }
        Ok(&self.buffer[(at - self.buffer_at) as usize..self.filled])
    }

    /// The bytes between two positions; `None` if the file has become shorter. Holds all of them at once.
    pub fn slice(&mut self, start: u64, end: u64) -> io::Result<Option<&[u8]>> {
        let Ok(size) = usize::try_from(end - start) else { return Ok(None) };
        let step = self.step;
        Ok(self.window(start, size, step)?.get(..size))
    }

    /// Whether the batch's checksum is that of its bytes. Reads it a step at a time where it is larger than a step.
    pub fn verify(&mut self, batch: &BatchAt) -> io::Result<bool> {
        Ok(self.checksums(batch)?.is_some_and(|(stored, computed)| stored == computed))
    }

    /// The checksum that stands in the batch, and that of its bytes. `None` if the file has become shorter.
    pub fn checksums(&mut self, batch: &BatchAt) -> io::Result<Option<(u32, u32)>> {
        let stored_at = if batch.header.is_some() { CRC_FROM - 4 } else { OLD_CRC_FROM - 4 };
        let mut at = batch.position + stored_at + 4;
        let size = usize::try_from(batch.size).unwrap_or(usize::MAX).min(self.step);
        let head = self.window(batch.position, size, self.step)?;
        let Some(stored) = field(head, stored_at as usize).map(u32::from_be_bytes) else { return Ok(None) };
        let mut new = 0;
        let mut old = flate2::Crc::new();
        while at < batch.end() {
            let left = usize::try_from(batch.end() - at).unwrap_or(usize::MAX);
            let bytes = self.window(at, left.min(self.step), self.step)?;
            let bytes = &bytes[..bytes.len().min(left)];
            if bytes.is_empty() {
                return Ok(None);
            }
            if batch.header.is_some() {
                new = crc32c::crc32c_append(new, bytes)
            } else {
                old.update(bytes)
            }
            at += bytes.len() as u64;
        }
        Ok(Some((stored, if batch.header.is_some() { new } else { old.sum() })))
    }

    /// Looks behind the walker's position for the next batch that is whole, checksum and all, with a base offset in `offsets`,
    /// and moves the walker there. One of a version before 2 is only looked for where there are any. `false`, and the walker has not moved, if there is none up to the end.
    pub fn find_next(&mut self, offsets: std::ops::RangeInclusive<i64>) -> io::Result<bool> {
        let (stuck_at, end, is_old) = (self.position, self.end, self.is_old);
        let least = if is_old { LEAST_OLD } else { HEADER_LEN };
        let mut at = stuck_at + 1;
        while at + least as u64 <= end {
            let bytes = self.window(at, HEADER_LEN, self.step)?;
            if bytes.len() < least {
                break;
            }
            let starts = bytes.len() - least + 1;
            let magics = &bytes[MAGIC_AT..MAGIC_AT + starts];
            let is_magic = |byte: u8| byte as i8 == MAGIC_V2 || (is_old && byte < MAGIC_V2 as u8);
            let Some(found) = magics.iter().position(|byte| is_magic(*byte)) else {
                at += starts as u64;
                continue;
            };
            let header = BatchAt::parse(&bytes[found..], at + found as u64, end);
            at += found as u64;
            if let Some(batch) = header
                && offsets.contains(&batch.base_offset)
                && self.verify(&batch)?
            {
                self.position = at;
                return Ok(true);
            }
            at += 1;
        }
        self.position = stuck_at;
        Ok(false)
    }
}
