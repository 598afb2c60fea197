//! Writing a file's bytes over themselves.
//!
//! After an fsync that failed, Linux takes the pages that it could not write for clean: reads see them, and no later fsync
//! writes them, though it succeeds. While the process lives it knows better than to try. A process that starts after it was
//! killed finds the pages in the cache as if nothing were wrong, and would acknowledge on the strength of an fsync that
//! does nothing. What has been written again is dirty again, and an fsync means what it says.

use std::io::{self, IoSlice};

use crate::sys::File;

const PIECE: usize = 256 * 1024;
/// No file system has smaller blocks.
const BLOCK: usize = 512;

/// Reads the first `len` bytes of `file` and writes each where it was. May be interrupted at any point: nothing changes.
///
/// Blocks that were never written are left out: a sparse file would grow by them, for which there may be no room. Only those
/// are that read as zeros as well; what an fsync failed to write may be in the cache, and a hole on the medium.
pub(in crate::storage) fn rewrite(file: &dyn File, len: u64) -> io::Result<()> {
    let mut piece = vec![0; PIECE.min(usize::try_from(len).unwrap_or(PIECE))];
    let mut position = 0;
    while position < len {
        let n = piece.len().min(usize::try_from(len - position).unwrap_or(PIECE));
        file.read_exact_at(&mut piece[..n], position)?;
        let is_empty = |at: usize, block: &[u8]| {
            // In this order for the sake of speed: most blocks are told by their first byte.
            block[0] == 0
                && file.is_hole(position + at as u64, block.len() as u64)
                && block.iter().all(|byte| *byte == 0)
        };
        // From the first block on that is to be written, to the first after it that is not.
        let mut from = None;
        for at in (0..n).step_by(BLOCK) {
            let block = &piece[at..n.min(at + BLOCK)];
            match (is_empty(at, block), from) {
                (true, Some(first)) => {
                    file.write_all_at(&[IoSlice::new(&piece[first..at])], position + first as u64)?;
                    from = None;
                }
                (false, None) => from = Some(at),
                _ => {}
            }
        }
        if let Some(first) = from {
            file.write_all_at(&[IoSlice::new(&piece[first..n])], position + first as u64)?;
        }
        position += n as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{FileSystem, OpenMode, OsFileSystem};

    #[test]
    fn a_sparse_file_reads_as_before_and_takes_no_more_room() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sparse");
        let file = OsFileSystem.open(&path, OpenMode::CreateNew).unwrap();
        file.set_len(3 << 20).unwrap();
        for at in [0, 4096, 12_288, (1 << 20) - 4096, 1 << 20, (3 << 20) - 100] {
            file.write_all_at(&[IoSlice::new(&[7; 100])], at).unwrap();
        }
        let room = || std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(&path).unwrap());
        let before = (std::fs::read(&path).unwrap(), room());
        rewrite(&*file, 3 << 20).unwrap();
        assert!(std::fs::read(&path).unwrap() == before.0);
        assert!(room() <= before.1, "{} blocks became {}", before.1, room());
    }
}
