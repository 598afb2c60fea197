//! Cuts the byte stream of a connection into frames, with memory that follows what has arrived and not what a length
//! claims.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use tokio::net::TcpStream;

/// Why a connection's input cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error("a frame of {0} bytes; socket.request.max.bytes allows {1}")]
    TooLarge(i64, usize),
    #[error("a frame of {0} bytes is too short for a request")]
    TooSmall(i64),
    #[error("the connection ended in the middle of a request")]
    Cut,
    #[error("reading from the connection: {0}")]
    Io(#[from] io::Error),
}

/// Reads frames from one socket. Every method may be cancelled and called again.
#[derive(Debug)]
pub struct FrameReader {
    buffer: BytesMut,
    /// The length of the frame that is being read, once its four bytes are in.
    expected: Option<usize>,
    max_frame: usize,
    received: u64,
}

/// A header without a client id, the shortest there is.
const MIN_FRAME: usize = 8;
/// Room for small requests, of which one read often takes several.
const SMALL: usize = 16 * 1024;
/// The most memory that a length alone reserves; beyond it the buffer doubles as bytes arrive. Pages that nothing was
/// written to cost nothing.
const TRUSTED: usize = 1024 * 1024;

impl FrameReader {
    /// `max_frame` is the largest frame that is read, in bytes without the length.
    pub fn new(max_frame: usize) -> Self {
        FrameReader { buffer: BytesMut::new(), expected: None, max_frame, received: 0 }
    }

    /// How many bytes have come in all.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Whether part of a frame is waiting for the rest.
    pub fn mid_frame(&self) -> bool {
        self.expected.is_some() || !self.buffer.is_empty()
    }

    /// Gives memory back that a quiet connection does not need.
    pub fn release(&mut self) {
        if !self.mid_frame() {
            self.buffer = BytesMut::new();
        }
    }

    /// A frame that is already here whole, without its length.
    fn buffered(&mut self) -> Result<Option<Bytes>, FrameError> {
        if self.expected.is_none() && self.buffer.len() >= 4 {
            let length = self.buffer.get_i32();
            let fits = usize::try_from(length).ok().filter(|n| *n <= self.max_frame);
            match fits {
                None if length < 0 => return Err(FrameError::TooSmall(length.into())),
                None => return Err(FrameError::TooLarge(length.into(), self.max_frame)),
                Some(n) if n < MIN_FRAME => return Err(FrameError::TooSmall(length.into())),
                Some(n) => self.expected = Some(n),
            }
        }
        match self.expected {
            Some(n) if self.buffer.len() >= n => {
                self.expected = None;
                Ok(Some(self.buffer.split_to(n).freeze()))
            }
            _ => Ok(None),
        }
    }

    /// The next frame, without its length. `None` when the client has closed the connection between two frames.
    pub async fn next(&mut self, socket: &TcpStream) -> Result<Option<Bytes>, FrameError> {
        loop {
            if let Some(frame) = self.buffered()? {
                return Ok(Some(frame));
            }
            socket.readable().await?;
            let missing = self.expected.map_or(SMALL, |n| (n - self.buffer.len()).min(TRUSTED.max(self.buffer.len())));
            self.buffer.reserve(missing.max(1));
            match socket.try_read_buf(&mut self.buffer) {
                Ok(0) if self.mid_frame() => return Err(FrameError::Cut),
                Ok(0) => return Ok(None),
                Ok(n) => self.received += n as u64,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (client, listener.accept().await.unwrap().0)
    }

    #[tokio::test]
    async fn frames_come_out_as_they_went_in_however_they_are_cut() {
        let (mut client, server) = pair().await;
        let frames: Vec<Vec<u8>> = [8, 9, 5000, 70_000, 3_000_000, 8].map(|n| (0..n).map(|i| i as u8).collect()).into();
        let sent = frames.clone();
        let writer = tokio::spawn(async move {
            for (i, frame) in sent.iter().enumerate() {
                let whole = [&(frame.len() as u32).to_be_bytes()[..], frame].concat();
                for piece in whole.chunks(if i % 2 == 0 { 4096 } else { 3 }.max(frame.len() / 100)) {
                    client.write_all(piece).await.unwrap();
                }
            }
        });
        let mut reader = FrameReader::new(4_000_000);
        for frame in &frames {
            assert_eq!(reader.next(&server).await.unwrap().unwrap(), frame[..]);
        }
        writer.await.unwrap();
        assert!(reader.next(&server).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_large_length_reserves_little_until_its_bytes_arrive() {
        let (mut client, server) = pair().await;
        client.write_all(&100_000_000u32.to_be_bytes()).await.unwrap();
        client.write_all(b"some").await.unwrap();
        let mut reader = FrameReader::new(100_000_000);
        let wait = std::time::Duration::from_millis(50);
        assert!(tokio::time::timeout(wait, reader.next(&server)).await.is_err());
        assert!(reader.buffer.capacity() <= 2 * TRUSTED, "{}", reader.buffer.capacity());
        drop(client);
        assert!(matches!(reader.next(&server).await, Err(FrameError::Cut)));
    }

    #[tokio::test]
    async fn lengths_that_cannot_be_end_the_connection() {
        for length in [-1, i32::MIN, 0, 7, 101, i32::MAX] {
            let (mut client, server) = pair().await;
            client.write_all(&i32::to_be_bytes(length)).await.unwrap();
            let error = FrameReader::new(100).next(&server).await.unwrap_err();
            assert!(matches!(error, FrameError::TooSmall(_) | FrameError::TooLarge(..)), "{length}: {error}");
        }
    }
}
