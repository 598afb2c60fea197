//! The pages of a redb file (format 3), read without redb, which takes a file as a whole or not at all.
//!
//! A page is believed if its checksum (XXH3, 128 bits) is the one that stands in the page that leads to it; that of the root
//! stands in a commit slot of the header, which has one of its own. So what is handed out is what was written, and what is
//! below a page that is damaged is not there. Every length and position is checked against what there is all the same.
//!
//! ```text
//! header   64 bytes (see [`super::super::header`]), then two commit slots of 128 bytes
//! slot     0  version, 3
//!          1  whether there is a root: u8
//!          8  root: page u64, checksum u128
//!        104  number of the transaction: u64
//!        112  checksum of what is before it: u128
//! page     where it is: index in the region (20 bits), region (20 bits), and from bit 59 on the power of two that it has of 4 KiB
//! branch   0  2;  2  number of keys n: u16;  8  checksums of n+1 children: u128;  then their pages: u64;  then the ends of the
//!             keys: u32 (if keys have no fixed length);  then the keys
//! leaf     0  1;  2  number of pairs n: u16;  4  the ends of the keys, then of the values: u32 (those without a fixed length);
//!             then the keys, then the values
//! ```
//! All numbers are little-endian.

use std::io;
use std::sync::Arc;

use twox_hash::xxhash3_128::Hasher;

use crate::sys::File;

const PAGE: u64 = 4096;
const HEADER_LEN: usize = 320;
const SLOTS: [usize; 2] = [64, 192];
const SLOT_LEN: usize = 128;
/// More levels than a tree of any size has.
const DEEPEST: usize = 40;
const LEAF: u8 = 1;
const BRANCH: u8 = 2;

/// Where a tree starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Root {
    page: u64,
    checksum: u128,
}

/// How the pairs of a table are laid out: the lengths of keys and of values, where they are fixed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Widths {
    pub key: Option<usize>,
    pub value: Option<usize>,
}

/// Something in `bytes` at `at`; `None` if they end before.
fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_le_bytes(array(bytes, at)?) as usize)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(array(bytes, at)?))
}

impl Root {
    pub fn read(bytes: &[u8], at: usize) -> Option<Root> {
        Some(Root { page: u64_at(bytes, at)?, checksum: u128::from_le_bytes(array(bytes, at + 8)?) })
    }
}

/// A redb file. Holds one page of each level at a time.
#[derive(Debug)]
pub(super) struct Pages {
    file: Arc<dyn File>,
    len: u64,
    header_pages: u64,
    region_pages: u64,
    /// The roots in the commit slots that are whole, the latest first.
    pub roots: Vec<Root>,
}

impl Pages {
    /// Reads the header.
    pub fn open(file: Arc<dyn File>) -> io::Result<Pages> {
        let len = file.len()?;
        let mut header = [0; HEADER_LEN];
        let there = usize::try_from(len).unwrap_or(HEADER_LEN).min(HEADER_LEN);
        file.read_exact_at(&mut header[..there], 0)?;
        let field = |at| u32_at(&header, at).unwrap_or(0) as u64;
        let slots = SLOTS.iter().filter_map(|at| {
            let slot = &header[*at..*at + SLOT_LEN];
            let stored = u128::from_le_bytes(array(slot, SLOT_LEN - 16)?);
            let is_whole = Hasher::oneshot(&slot[..SLOT_LEN - 16]) == stored;
            (is_whole && slot[0] == 3 && slot[1] != 0).then_some((u64_at(slot, 104)?, Root::read(slot, 8)?))
        });
        let mut slots: Vec<(u64, Root)> = slots.collect();
        slots.sort_by_key(|(transaction, _)| std::cmp::Reverse(*transaction));
        Ok(Pages {
            file,
            len,
            header_pages: field(16),
            region_pages: field(20),
            roots: slots.into_iter().map(|(_, root)| root).collect(),
        })
    }

    /// The bytes of a page; `None` if it cannot be there.
    fn read(&self, page: u64) -> io::Result<Option<Vec<u8>>> {
        let order = page >> 59;
        let (index, region) = (page & (0xf_ffff >> order), (page >> 20) & 0xf_ffff);
        let size = PAGE << order;
        let region_len = (self.header_pages + self.region_pages) * PAGE;
        // All of these are far below what 64 bits hold: 20 bits of an index and of a region, 33 of pages in one.
        let start = u128::from(PAGE)
            + u128::from(region) * u128::from(region_len)
            + u128::from(self.header_pages * PAGE)
            + u128::from(index) * u128::from(size);
        if start + u128::from(size) > u128::from(self.len) {
            return Ok(None);
        }
        let (Ok(start), Ok(size)) = (u64::try_from(start), usize::try_from(size)) else { return Ok(None) };
        let mut bytes = vec![0; size];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(Some(bytes))
    }

    /// Hands every pair below `root` that can be read to `take`, in order. Answers how many pages could not be: they are damaged, or
    /// the disk does not give them back.
    pub fn each(&self, root: Root, widths: Widths, take: &mut dyn FnMut(&[u8], &[u8])) -> u64 {
        self.below(root, widths, DEEPEST, take)
    }

    fn below(&self, at: Root, widths: Widths, levels: usize, take: &mut dyn FnMut(&[u8], &[u8])) -> u64 {
        let bytes = self.read(at.page).unwrap_or_default();
        let Some(bytes) = bytes.filter(|_| levels > 0) else { return 1 };
        if let Some(children) = branch(&bytes, widths, at.checksum) {
            return children.into_iter().map(|child| self.below(child, widths, levels - 1, take)).sum();
        }
        let Some(pairs) = leaf(&bytes, widths, at.checksum) else { return 1 };
        pairs.iter().for_each(|(key, value)| take(key, value));
        0
    }
}

/// The first `end` bytes, if they have this checksum.
fn checked(bytes: &[u8], end: usize, checksum: u128) -> Option<()> {
    (Hasher::oneshot(bytes.get(..end)?) == checksum).then_some(())
}

/// The children of a branch page; `None` if it is none, or damaged.
fn branch(bytes: &[u8], widths: Widths, checksum: u128) -> Option<Vec<Root>> {
    if *bytes.first()? != BRANCH {
        return None;
    }
    let keys = usize::from(u16::from_le_bytes(array(bytes, 2)?));
    let children = keys + 1;
    let after_pages = 8 + 24 * children;
    let end = match widths.key {
        Some(width) => after_pages + width * keys,
        None => u32_at(bytes, after_pages + 4 * keys.checked_sub(1)?)?,
    };
    checked(bytes, end, checksum)?;
    let child = |n: usize| {
        let checksum = u128::from_le_bytes(array(bytes, 8 + 16 * n)?);
        Some(Root { page: u64_at(bytes, 8 + 16 * children + 8 * n)?, checksum })
    };
    (0..children).map(child).collect()
}

/// The pairs of a leaf page; `None` if it is none, or damaged.
fn leaf(bytes: &[u8], widths: Widths, checksum: u128) -> Option<Vec<(&[u8], &[u8])>> {
    if *bytes.first()? != LEAF {
        return None;
    }
    let pairs = usize::from(u16::from_le_bytes(array(bytes, 2)?));
    let key_ends = 4;
    let value_ends = key_ends + if widths.key.is_none() { 4 * pairs } else { 0 };
    let start = value_ends + if widths.value.is_none() { 4 * pairs } else { 0 };
    let key_end = |n: usize| match widths.key {
        Some(width) => Some(start + width * (n + 1)),
        None => u32_at(bytes, key_ends + 4 * n),
    };
    let last = pairs.checked_sub(1)?;
    let values = key_end(last)?;
    let value_end = |n: usize| match widths.value {
        Some(width) => Some(values + width * (n + 1)),
        None => u32_at(bytes, value_ends + 4 * n),
    };
    checked(bytes, value_end(last)?, checksum)?;
    let (mut key_at, mut value_at) = (start, values);
    let mut all = Vec::with_capacity(pairs);
    for n in 0..pairs {
        let (key_to, value_to) = (key_end(n)?, value_end(n)?);
        all.push((bytes.get(key_at..key_to)?, bytes.get(value_at..value_to)?));
        (key_at, value_at) = (key_to, value_to);
    }
    Some(all)
}
