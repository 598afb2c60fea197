//! Reading a file of entries of one size, a page at a time.

use std::io;
use std::sync::Arc;

use crate::sys::File;

/// How many bytes are read at once, about.
const PAGE: usize = 64 * 1024;

/// The entries of a file, one after the other.
#[derive(Debug)]
pub(super) struct Pages {
    file: Arc<dyn File>,
    /// Bytes of the file that are looked at.
    end: u64,
    position: u64,
    entry: usize,
    page: Vec<u8>,
    page_at: u64,
}

impl Pages {
    /// Entries of `entry` bytes from `position` to `end`.
    pub fn new(file: Arc<dyn File>, position: u64, end: u64, entry: usize) -> Pages {
        Pages { file, end, position, entry, page: Vec::new(), page_at: position }
    }

    /// Where the next entry starts.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The bytes from the next entry to the end.
    pub fn left(&self) -> u64 {
        self.end.saturating_sub(self.position)
    }

    /// The next entry. `None` where there is none that is whole.
    pub fn next(&mut self) -> io::Result<Option<&[u8]>> {
        if self.left() < self.entry as u64 {
            return Ok(None);
        }
        let at = self.position;
        if at < self.page_at || at + self.entry as u64 > self.page_at + self.page.len() as u64 {
            let want = (PAGE - PAGE % self.entry).min(usize::try_from(self.left()).unwrap_or(usize::MAX));
            self.page.resize(want, 0);
            self.page_at = at;
            self.file.read_exact_at(&mut self.page, at)?;
        }
        self.position += self.entry as u64;
        let start = (at - self.page_at) as usize;
        Ok(Some(&self.page[start..start + self.entry]))
    }

    /// Whether there is nothing but zeros from `position` to the end of the file.
    pub fn only_zeros_from(&self, position: u64) -> io::Result<bool> {
        only_zeros(&*self.file, position, self.end)
    }
}

/// Whether there is nothing but zeros between two positions of a file.
pub(super) fn only_zeros(file: &dyn File, mut position: u64, end: u64) -> io::Result<bool> {
    let mut page = vec![0; PAGE];
    while position < end {
        let want = page.len().min(usize::try_from(end - position).unwrap_or(usize::MAX));
        let read = file.read_at(&mut page[..want], position)?;
        if page[..read].iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        if read == 0 {
            break;
        }
        position += read as u64;
    }
    Ok(true)
}
