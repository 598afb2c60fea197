//! Writes a response to a socket: bytes from memory, record bytes straight from their file.

use std::io;
use std::time::Duration;

use rustix::net::SendFlags;
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::protocol::wire::Chunk;
use crate::sys;

/// Writes all of `chunks`, waiting for the socket where it is full, but no longer than `patience` for it to take anything
/// at all. After an error the connection is of no use: part of a response may have been sent.
pub async fn write_chunks(socket: &TcpStream, chunks: &[Chunk], patience: Duration) -> io::Result<()> {
    for (i, chunk) in chunks.iter().enumerate() {
        let last = i + 1 == chunks.len();
        let mut sent = 0;
        while sent < chunk.len() {
            let some = socket.async_io(Interest::WRITABLE, || send_some(socket, chunk, sent, last));
            sent += tokio::time::timeout(patience, some).await.map_err(|_| io::ErrorKind::TimedOut)??;
        }
    }
    Ok(())
}

fn send_some(socket: &TcpStream, chunk: &Chunk, sent: usize, last: bool) -> io::Result<usize> {
    match chunk {
        Chunk::Bytes(bytes) => Ok(rustix::net::send(socket, &bytes[sent..], flags(last))?),
        Chunk::File(range) => match sys::send_file(socket, range, sent)? {
            // The file got shorter than the fetch was told: there is nothing honest left to send.
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            n => Ok(n),
        },
    }
}

/// Tells the kernel when more of the same response follows, so that it sends full packets.
fn flags(last: bool) -> SendFlags {
    let flags = SendFlags::NOSIGNAL;
    #[cfg(target_os = "linux")]
    let flags = if last { flags } else { flags | SendFlags::MORE };
    let _ = last;
    flags
}
