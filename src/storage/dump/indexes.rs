//! The entries of a segment's three indexes.

use std::io;
use std::sync::Arc;

use super::Entry;
use super::damage::{Damage, DamageKind};
use super::page::Pages;
use crate::storage::log::{AbortedTransaction, IndexEntry, OffsetEntry, TimeEntry};
use crate::storage::names::FileKind;
use crate::sys::File;

#[derive(Debug)]
pub(super) struct IndexDump {
    pages: Pages,
    kind: FileKind,
    base: Option<i64>,
    entry: usize,
    /// Of the entry before.
    before: Option<(i64, i64)>,
    /// To be told before the entry that it is about.
    waiting: Option<Entry>,
    done: bool,
}

impl IndexDump {
    /// `kind` is one of the three.
    pub fn new(file: Arc<dyn File>, size: u64, kind: FileKind, base: Option<i64>) -> IndexDump {
        let entry = match kind {
            FileKind::TimeIndex => TimeEntry::SIZE,
            FileKind::TxnIndex => AbortedTransaction::SIZE,
            _ => OffsetEntry::SIZE,
        };
        let pages = Pages::new(file, 0, size, entry);
        IndexDump { pages, kind, base, entry, before: None, waiting: None, done: false }
    }

    pub fn next(&mut self) -> io::Result<Option<Entry>> {
        if let Some(entry) = self.waiting.take() {
            return Ok(Some(entry));
        }
        if self.done {
            return Ok(None);
        }
        let position = self.pages.position();
        let (kind, base) = (self.kind, self.base.unwrap_or(0));
        let Some(bytes) = self.pages.next()? else {
            self.done = true;
            let left = self.pages.left();
            let kind = DamageKind::Torn { needed: self.entry as u64, left };
            let torn = Damage { position, bytes: left, offsets: (None, None), kind };
            return Ok((left > 0).then_some(Entry::Damage(torn)));
        };
        let is_zero = bytes.iter().all(|byte| *byte == 0);
        let (entry, keys) = decode(kind, position, base, bytes);
        if is_zero && kind != FileKind::TxnIndex && (position > 0 || self.pages.left() > 0) {
            let rest = position..self.pages.position() + self.pages.left();
            if self.pages.only_zeros_from(position)? {
                self.done = true;
                return Ok(Some(Entry::Unused { position, bytes: rest.end - rest.start }));
            }
        }
        let rises = self.before.is_none_or(|before| match kind {
            FileKind::OffsetIndex => keys.0 > before.0 && keys.1 > before.1,
            FileKind::TimeIndex => keys.0 > before.0 && keys.1 >= before.1,
            _ => keys.0 > before.0,
        });
        self.before = Some(keys);
        let wrong = match &entry {
            Entry::Aborted { version, .. } if *version != 0 => Some(DamageKind::Version { found: i64::from(*version) }),
            _ if !rises => Some(DamageKind::Order),
            _ => None,
        };
        let Some(wrong) = wrong else { return Ok(Some(entry)) };
        let damage = Damage { position, bytes: self.entry as u64, offsets: (None, None), kind: wrong };
        self.waiting = Some(entry);
        Ok(Some(Entry::Damage(damage)))
    }
}

/// An entry, and what of it has to rise.
fn decode(kind: FileKind, position: u64, base: i64, bytes: &[u8]) -> (Entry, (i64, i64)) {
    match kind {
        FileKind::TimeIndex => {
            let TimeEntry { timestamp, relative } = TimeEntry::decode(bytes);
            let offset = base.saturating_add(i64::from(relative));
            (Entry::Time { position, timestamp, offset }, (timestamp, offset))
        }
        FileKind::TxnIndex => {
            let transaction = AbortedTransaction::decode(bytes);
            let version = i16::from_be_bytes([bytes[0], bytes[1]]);
            (Entry::Aborted { position, version, transaction }, (transaction.last_offset, 0))
        }
        _ => {
            let OffsetEntry { relative, position: log_position } = OffsetEntry::decode(bytes);
            let offset = base.saturating_add(i64::from(relative));
            (Entry::Offset { position, offset, log_position }, (offset, i64::from(log_position)))
        }
    }
}
