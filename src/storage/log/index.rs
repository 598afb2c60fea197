//! The three indexes of a segment. None of them is the truth: each can be made anew from the log.
//!
//! All numbers are big-endian; relative offsets count from the segment's base offset.
//!
//! `.index`, 8 bytes an entry, offsets and positions rise:
//!
//! | at | bytes | field |
//! |---:|------:|-------|
//! | 0 | 4 | relative offset: the last of the batch at the position |
//! | 4 | 4 | position of the batch in the log, bytes |
//!
//! `.timeindex`, 12 bytes an entry, timestamps rise and offsets do not fall:
//!
//! | at | bytes | field |
//! |---:|------:|-------|
//! | 0 | 8 | the largest timestamp in the segment up to here, ms since the Unix epoch |
//! | 8 | 4 | relative offset: the last of the batch that has it |
//!
//! `.txnindex`, 34 bytes an entry, last offsets rise; there is no file while nothing was aborted:
//!
//! | at | bytes | field |
//! |---:|------:|-------|
//! |  0 | 2 | version, 0 |
//! |  2 | 8 | producer id |
//! | 10 | 8 | first offset of the aborted transaction |
//! | 18 | 8 | last offset: that of its abort marker |
//! | 26 | 8 | the last stable offset once it was aborted |
//!
//! New entries are kept in memory and written many at once: after a crash the active segment's indexes are made anew anyway.

use std::io::{self, IoSlice};
use std::path::Path;

use crate::sys::{File, FileSystem, OpenMode};

/// An entry of fixed size with a key that does not fall from one to the next.
pub(in crate::storage) trait Entry: Copy + std::fmt::Debug {
    /// Bytes of it in a file.
    const SIZE: usize;
    fn key(&self) -> i64;
    fn encode(&self, out: &mut Vec<u8>);
    /// `bytes` are [`Entry::SIZE`].
    fn decode(bytes: &[u8]) -> Self;
}

/// An entry of `.index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::storage) struct OffsetEntry {
    pub relative: u32,
    pub position: u32,
}

/// An entry of `.timeindex`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::storage) struct TimeEntry {
    pub timestamp: i64,
    pub relative: u32,
}

/// A transaction that was aborted, as `.txnindex` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbortedTransaction {
    pub producer_id: i64,
    pub first_offset: i64,
    /// The offset of its abort marker.
    pub last_offset: i64,
    /// The last stable offset once it was aborted.
    pub last_stable_offset: i64,
}

impl Entry for OffsetEntry {
    const SIZE: usize = 8;

    fn key(&self) -> i64 {
        i64::from(self.relative)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.relative.to_be_bytes());
        out.extend_from_slice(&self.position.to_be_bytes());
    }

    fn decode(bytes: &[u8]) -> Self {
        OffsetEntry { relative: u32::from_be_bytes(field(bytes, 0)), position: u32::from_be_bytes(field(bytes, 4)) }
    }
}

impl Entry for TimeEntry {
    const SIZE: usize = 12;

    fn key(&self) -> i64 {
        self.timestamp
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        out.extend_from_slice(&self.relative.to_be_bytes());
    }

    fn decode(bytes: &[u8]) -> Self {
        TimeEntry { timestamp: i64::from_be_bytes(field(bytes, 0)), relative: u32::from_be_bytes(field(bytes, 8)) }
    }
}

impl Entry for AbortedTransaction {
    const SIZE: usize = 34;

    fn key(&self) -> i64 {
        self.last_offset
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&TXN_INDEX_VERSION.to_be_bytes());
        for value in [self.producer_id, self.first_offset, self.last_offset, self.last_stable_offset] {
            out.extend_from_slice(&value.to_be_bytes());
        }
    }

    fn decode(bytes: &[u8]) -> Self {
        let value = |at| i64::from_be_bytes(field(bytes, at));
        AbortedTransaction {
            producer_id: value(2),
            first_offset: value(10),
            last_offset: value(18),
            last_stable_offset: value(26),
        }
    }
}

/// The version that the entries of `.txnindex` have.
pub(in crate::storage) const TXN_INDEX_VERSION: u16 = 0;

impl AbortedTransaction {
    /// The version in the bytes of an entry.
    pub(in crate::storage) fn version(bytes: &[u8]) -> u16 {
        u16::from_be_bytes(field(bytes, 0))
    }
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("the slice has the array's length")
}

/// How many entries are read from a file at once.
const PAGE: usize = 512;
/// How many entries wait in memory before they are written.
const PENDING: usize = 512;

/// The entries of one index: those that are in its file, then those that are in memory.
#[derive(Debug)]
pub(super) struct Index<E> {
    /// How many of the file's entries count.
    on_file: usize,
    pending: Vec<E>,
    last: Option<E>,
    /// The page that was last looked into, for readers that go on from there: the number of its first entry, and entries.
    page: Option<(usize, Box<[E]>)>,
}

impl<E> Default for Index<E> {
    fn default() -> Self {
        Index { on_file: 0, pending: Vec::new(), last: None, page: None }
    }
}

impl<E: Entry> Index<E> {
    /// The index in the file at `path`; an empty one if there is none. `None` if the file cannot be one: its length is no
    /// whole number of entries, or it ends in zeros (it was longer than used when its writer died).
    pub fn load(fs: &dyn FileSystem, path: &Path) -> io::Result<Option<Self>> {
        let file = match fs.open(path, OpenMode::Read) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Some(Index::default())),
            Err(e) => return Err(e),
        };
        let len = file.len()?;
        let Ok(on_file) = usize::try_from(len / E::SIZE as u64) else { return Ok(None) };
        if len % E::SIZE as u64 != 0 {
            return Ok(None);
        }
        let mut index = Index { on_file, ..Index::default() };
        if on_file > 0 {
            let first = read_entries::<E>(&*file, 0, 1)?[0];
            let last = read_entries::<E>(&*file, on_file - 1, 1)?[0];
            if last.key() < first.key() || (on_file > 1 && last.key() == first.key()) {
                return Ok(None);
            }
            index.last = Some(last);
        }
        Ok(Some(index))
    }

    pub fn len(&self) -> usize {
        self.on_file + self.pending.len()
    }

    pub fn last(&self) -> Option<E> {
        self.last
    }

    pub fn push(&mut self, entry: E) {
        self.pending.push(entry);
        self.last = Some(entry);
    }

    /// Whether enough wait to be worth a write.
    pub fn is_due(&self) -> bool {
        self.pending.len() >= PENDING
    }

    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Gives back the memory that only readers need.
    pub fn forget_page(&mut self) {
        self.page = None;
    }

    /// Writes what waits, and cuts the file to what counts; makes the file if there is none. On an error what waits goes on
    /// waiting.
    pub fn write_pending(&mut self, fs: &dyn FileSystem, path: &Path) -> io::Result<()> {
        let file = fs.open(path, OpenMode::CreateOrOpen)?;
        let end = (self.on_file * E::SIZE) as u64;
        if file.len()? > end {
            file.set_len(end)?;
        }
        if self.pending.is_empty() {
            return Ok(());
        }
        let bytes = self.encoded_pending();
        file.write_all_at(&[IoSlice::new(&bytes)], end)?;
        self.on_file += self.pending.len();
        self.pending = Vec::new();
        Ok(())
    }

    /// What waits, as it is to stand in the file.
    pub fn encoded_pending(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.pending.len() * E::SIZE);
        self.pending.iter().for_each(|entry| entry.encode(&mut bytes));
        bytes
    }

    /// What waits is in the file now: somebody else has written it.
    pub fn settle(&mut self) {
        self.on_file += self.pending.len();
        self.pending = Vec::new();
    }

    /// The last entry whose key is `key` or less.
    pub fn floor(&mut self, fs: &dyn FileSystem, path: &Path, key: i64) -> io::Result<Option<E>> {
        self.floor_by(fs, path, |entry| entry.key() <= key)
    }

    /// The last entry that is `below`, which holds for the entries up to some point and for none after it.
    pub fn floor_by(&mut self, fs: &dyn FileSystem, path: &Path, below: impl Fn(&E) -> bool) -> io::Result<Option<E>> {
        if let Some(at) = self.pending.partition_point(&below).checked_sub(1) {
            return Ok(Some(self.pending[at]));
        }
        if self.on_file == 0 {
            return Ok(None);
        }
        let page = self.page_for(fs, path, &below)?;
        Ok(page.partition_point(below).checked_sub(1).map(|at| page[at]))
    }

    /// The entries from the first whose key is `key` or more, as long as `more` wants them.
    pub fn each_from(
        &mut self,
        fs: &dyn FileSystem,
        path: &Path,
        key: i64,
        mut more: impl FnMut(&E) -> bool,
    ) -> io::Result<()> {
        if self.on_file > 0 {
            // The page of the entries just below the key; those that are wanted start in it, or with the next.
            self.page_for(fs, path, |entry| entry.key() < key)?;
            while let Some((first, page)) = &self.page {
                if page.iter().filter(|entry| entry.key() >= key).any(|entry| !more(entry)) {
                    return Ok(());
                }
                let next = first + page.len();
                if next >= self.on_file {
                    break;
                }
                self.page = Some((next, self.read_page(&*fs.open(path, OpenMode::Read)?, next)?));
            }
        }
        let _ = self.pending.iter().filter(|entry| entry.key() >= key).all(more);
        Ok(())
    }

    /// The page that has the last entry of the file that is `below`; the first page if there is none.
    fn page_for(&mut self, fs: &dyn FileSystem, path: &Path, below: impl Fn(&E) -> bool) -> io::Result<&[E]> {
        let fits = |first: usize, page: &[E]| {
            let starts_below = first == 0 || page.first().is_some_and(&below);
            let ends_above = first + page.len() == self.on_file || page.last().is_some_and(|entry| !below(entry));
            starts_below && ends_above
        };
        if !self.page.as_ref().is_some_and(|(first, page)| fits(*first, page)) {
            let file = fs.open(path, OpenMode::Read)?;
            // The first entry of page `low` is below (or `low` is 0), that of page `high` is not.
            let (mut low, mut high) = (0, self.on_file.div_ceil(PAGE));
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if below(&read_entries::<E>(&*file, middle * PAGE, 1)?[0]) { low = middle } else { high = middle }
            }
            self.page = Some((low * PAGE, self.read_page(&*file, low * PAGE)?));
        }
        Ok(self.page.as_ref().map_or(&[], |(_, page)| page))
    }

    fn read_page(&self, file: &dyn File, first: usize) -> io::Result<Box<[E]>> {
        read_entries(file, first, PAGE.min(self.on_file - first)).map(Vec::into_boxed_slice)
    }
}

fn read_entries<E: Entry>(file: &dyn File, first: usize, count: usize) -> io::Result<Vec<E>> {
    let mut bytes = vec![0; count * E::SIZE];
    file.read_exact_at(&mut bytes, (first * E::SIZE) as u64)?;
    Ok(bytes.chunks_exact(E::SIZE).map(E::decode).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::OsFileSystem;

    #[test]
    fn every_key_is_found_in_the_file_and_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("i");
        let entry = |i: u32| OffsetEntry { relative: 10 + i * 3, position: i * 7 };
        for (on_file, pending) in [(0, 0), (0, 3), (1, 0), (511, 0), (512, 2), (513, 0), (2000, 100)] {
            let _ = OsFileSystem.remove_file(&path);
            let mut index = Index::default();
            (0..on_file).for_each(|i| index.push(entry(i)));
            index.write_pending(&OsFileSystem, &path).unwrap();
            let mut index = Index::load(&OsFileSystem, &path).unwrap().unwrap();
            assert_eq!(index.len(), on_file as usize);
            (on_file..on_file + pending).for_each(|i| index.push(entry(i)));
            let all: Vec<OffsetEntry> = (0..on_file + pending).map(entry).collect();
            for key in (0..10 + (on_file + pending) as i64 * 3 + 5).rev().step_by(5) {
                let expected = all.iter().rfind(|e| e.key() <= key).copied();
                assert_eq!(index.floor(&OsFileSystem, &path, key).unwrap(), expected, "{on_file} {pending} {key}");
                let mut from = Vec::new();
                index
                    .each_from(&OsFileSystem, &path, key, |e| {
                        from.push(*e);
                        from.len() < 700
                    })
                    .unwrap();
                let expected: Vec<_> = all.iter().filter(|e| e.key() >= key).take(700).copied().collect();
                assert_eq!(from, expected, "{on_file} {pending} {key}");
            }
        }
    }

    #[test]
    fn a_file_that_cannot_be_an_index_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("i");
        std::fs::write(&path, [0; 15]).unwrap();
        assert!(Index::<OffsetEntry>::load(&OsFileSystem, &path).unwrap().is_none(), "torn");
        std::fs::write(&path, [[1; 8], [0; 8]].concat()).unwrap();
        assert!(Index::<OffsetEntry>::load(&OsFileSystem, &path).unwrap().is_none(), "not cut to what was used");
        std::fs::write(&path, [0; 24]).unwrap();
        assert!(Index::<TimeEntry>::load(&OsFileSystem, &path).unwrap().is_none(), "zeros alone");
    }
}
