//! File to socket without a copy through user space.

use std::io;
use std::os::fd::AsFd;

use super::file::FileRange;

/// Sends bytes of `range`, from `skip` bytes into it, to a non-blocking socket. Answers how many the socket took, 0 only
/// when the file ends before the range does; `WouldBlock` when the socket takes none now.
pub fn send_file(socket: impl AsFd, range: &FileRange, skip: usize) -> io::Result<usize> {
    let left = range.len - skip;
    let position = range.position + skip as u64;
    #[cfg(target_os = "linux")]
    if let Some(file) = range.file.fd() {
        let mut offset = position;
        return Ok(rustix::fs::sendfile(socket, file, Some(&mut offset), left)?);
    }
    // macOS, where `sendfile` reports a partial send as an error, and files that have no descriptor.
    let mut chunk = [0; 64 * 1024];
    let wanted = left.min(chunk.len());
    let read = range.file.read_at(&mut chunk[..wanted], position)?;
    Ok(rustix::io::write(socket, &chunk[..read])?)
}
