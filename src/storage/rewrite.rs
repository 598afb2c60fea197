//! Writing a file's bytes over themselves.
//!
//! After an fsync that failed, Linux takes the pages that it could not write for clean: reads see them, and no later fsync
//! writes them, though it succeeds. While the process lives it knows better than to try. A process that starts after it was
//! killed finds the pages in the cache as if nothing were wrong, and would acknowledge on the strength of an fsync that
//! does nothing. What has been written again is dirty again, and an fsync means what it says.

use std::io::{self, IoSlice};

use crate::sys::File;

const PIECE: usize = 256 * 1024;

/// Reads the first `len` bytes of `file` and writes each where it was. May be interrupted at any point: nothing changes.
pub(in crate::storage) fn rewrite(file: &dyn File, len: u64) -> io::Result<()> {
    let mut piece = vec![0; PIECE.min(usize::try_from(len).unwrap_or(PIECE))];
    let mut position = 0;
    while position < len {
        let n = piece.len().min(usize::try_from(len - position).unwrap_or(PIECE));
        file.read_exact_at(&mut piece[..n], position)?;
        file.write_all_at(&[IoSlice::new(&piece[..n])], position)?;
        position += n as u64;
    }
    Ok(())
}
