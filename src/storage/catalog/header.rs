//! The first look at a catalog's file. redb checks much of this with assertions, whose failures would be shown to the user as
//! a crash; what commonly happens to files is told here, in words.
//!
//! ```text
//!  0  "redb" 1a 0a a9 0d 0a
//!  9  flags                         u8
//! 12  bytes of a page                u32, little-endian like those that follow
//! 16  header pages of a region       u32
//! 20  most data pages of a region    u32
//! 24  regions of that size           u32
//! 28  data pages of the last region  u32, 0 if there is none but those
//! ```
//! The file is one page, then the regions.

use std::io;

use crate::sys::File;

const MAGIC: [u8; 9] = *b"redb\x1a\x0a\xa9\x0d\x0a";
const PAGE: u32 = 4096;
/// The fields above, and both commit slots after them.
const LEN: usize = 320;

/// What a file looks like from its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Catalog,
    /// It does not begin as a catalog does.
    Other,
    /// It does, and cannot be one.
    Damaged(String),
}

/// In the flags: the file was open for writing when its process ended.
const OPEN: u8 = 2;

/// The part of a file's `len` bytes that is whole pages. A cut while the file grows can leave it with any length, and redb
/// can only open whole pages; what is behind the last of them was never committed.
pub(super) fn whole_pages(len: u64) -> u64 {
    len - len % u64::from(PAGE)
}

/// Whether the catalog in `file` was closed by whoever had it open last.
pub(super) fn was_closed(file: &dyn File) -> io::Result<bool> {
    let mut flags = [0];
    file.read_exact_at(&mut flags, MAGIC.len() as u64)?;
    Ok(flags[0] & OPEN == 0)
}

pub(super) fn look(file: &dyn File) -> io::Result<Look> {
    let len = file.len()?;
    let mut header = [0; LEN];
    let there = usize::try_from(len).unwrap_or(LEN).min(LEN);
    file.read_exact_at(&mut header[..there], 0)?;
    if there < MAGIC.len() || header[..MAGIC.len()] != MAGIC {
        return Ok(Look::Other);
    }
    if there < LEN {
        return Ok(Look::Damaged(format!("it ends after {len} bytes, within its header")));
    }
    let field = |at: usize| {
        let bytes = header[at..at + 4].try_into().expect("four bytes");
        u64::from(u32::from_le_bytes(bytes))
    };
    let (page, header_pages, most_pages, regions, last_pages) = (field(12), field(16), field(20), field(24), field(28));
    if page != u64::from(PAGE) {
        return Ok(Look::Damaged(format!("its header says that it has pages of {page} bytes, and they have {PAGE}")));
    }
    let last = if last_pages > 0 { header_pages + last_pages } else { 0 };
    let pages = u128::from(1 + last) + u128::from(regions) * u128::from(header_pages + most_pages);
    if u128::from(len) < pages * u128::from(page) {
        return Ok(Look::Damaged(format!("it has {len} bytes, and its header says {}", pages * u128::from(page))));
    }
    if regions == 0 && last_pages == 0 || most_pages == 0 || last_pages > most_pages {
        return Ok(Look::Damaged("the sizes in its header contradict each other".into()));
    }
    Ok(Look::Catalog)
}
