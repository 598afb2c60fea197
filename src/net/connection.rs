//! One client connection: requests in, answers out, both in order.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::Shutdown;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Instant;

use super::frame_reader::{FrameError, FrameReader};
use super::write::write_chunks;
use crate::broker::{Broker, ClientConnection, Pending, Reply};

/// The most requests of one connection that wait for their answers at the same time.
const MAX_PENDING: usize = 256;
/// A connection that is quiet for so long gives its buffer back.
const QUIET: Duration = Duration::from_secs(1);

/// How long a client that is still sending has to take its answers and close, once the broker has said that it stops.
const HANG_UP: Duration = Duration::from_secs(3);

/// What ends a connection that the client did not end.
#[derive(Debug, thiserror::Error)]
enum ConnectionError {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("writing to the connection: {0}")]
    Write(#[source] std::io::Error),
}

/// What a connection is bounded by.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// `socket.request.max.bytes`.
    pub max_request_bytes: usize,
    /// `connections.max.idle.ms`.
    pub max_idle: Duration,
}

/// Serves `socket` until the client leaves, breaks the protocol or is idle for too long, or until `stopping` turns true
/// and every request that was already read has been answered.
pub async fn serve(
    broker: Arc<Broker>,
    client: Arc<ClientConnection>,
    socket: TcpStream,
    limits: Limits,
    stopping: watch::Receiver<bool>,
) {
    let ended = run(&broker, &client, &socket, limits, stopping).await;
    broker.disconnected(&client);
    if let Err(error) = ended {
        match error {
            ConnectionError::Frame(FrameError::TooLarge(..) | FrameError::TooSmall(_)) => {
                tracing::warn!(client = %client.peer, "closing the connection: {error}");
            }
            _ => tracing::debug!(client = %client.peer, "the connection broke: {error}"),
        }
    }
}

async fn run(
    broker: &Arc<Broker>,
    client: &Arc<ClientConnection>,
    socket: &TcpStream,
    limits: Limits,
    mut stopping: watch::Receiver<bool>,
) -> Result<(), ConnectionError> {
    let mut reader = FrameReader::new(limits.max_request_bytes);
    let mut pending: VecDeque<Pending> = VecDeque::new();
    let mut last_used = Instant::now();
    let mut quiet_checked = false;
    let mut received = 0;
    // A client that has closed its sending half still gets the answers to what it sent.
    let mut ended = false;
    loop {
        let stop = ended || *stopping.borrow();
        if stop && pending.is_empty() {
            if !ended {
                hang_up(socket).await;
            }
            return Ok(());
        }
        // Held back because it used more than its quota (KIP-219).
        let held_until = client.held_until().filter(|_| !stop);
        let may_read = !stop
            && held_until.is_none()
            && pending.len() < MAX_PENDING
            && pending.back().is_none_or(|last| !last.serial);
        let idle = if quiet_checked { limits.max_idle } else { QUIET.min(limits.max_idle) };
        tokio::select! {
            biased;
            reply = async { (&mut pending.front_mut().expect("guarded below").reply).await }, if !pending.is_empty() => {
                pending.pop_front();
                match reply {
                    Reply::Frame(chunks) => write_chunks(socket, &chunks, limits.max_idle).await.map_err(ConnectionError::Write)?,
                    Reply::Nothing => {}
                    Reply::Close => return Ok(()),
                }
                last_used = Instant::now();
            }
            frame = reader.next(socket), if may_read => {
                let Some(frame) = frame? else {
                    ended = true;
                    continue;
                };
                quiet_checked = false;
                last_used = Instant::now();
                match broker.receive(client, frame).await {
                    Some(next) => pending.push_back(next),
                    None => return Ok(()),
                }
            }
            _ = stopping.changed(), if !stop => {}
            () = tokio::time::sleep_until(held_until.unwrap_or(last_used)), if held_until.is_some() => {
                last_used = Instant::now();
            }
            () = tokio::time::sleep_until(last_used + idle), if held_until.is_none() && pending.is_empty() => {
                if received != reader.received() {
                    // A large request over a slow line.
                    received = reader.received();
                    last_used = Instant::now();
                    continue;
                }
                if quiet_checked || limits.max_idle <= QUIET {
                    tracing::debug!(client = %client.peer, "closing the connection: idle for {:?}", limits.max_idle);
                    return Ok(());
                }
                quiet_checked = true;
                reader.release();
            }
        }
    }
}

/// Ends a connection whose client may still be sending. Closed with bytes that nobody has read, the kernel would reset it,
/// and drop what is on its way to the client: answers to requests that were served.
async fn hang_up(socket: &TcpStream) {
    if rustix::net::shutdown(socket, Shutdown::Write).is_err() {
        return;
    }
    let end = Instant::now() + HANG_UP;
    let mut unread = vec![0; 16 * 1024];
    let mut waits = false;
    loop {
        match socket.try_read(&mut unread) {
            Ok(0) => return,
            Ok(_) => waits = true,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && waits => {
                if tokio::time::timeout_at(end, socket.readable()).await.is_err() {
                    return;
                }
            }
            // Nothing was unread, so that the kernel sends what it has, and then the end.
            Err(_) => return,
        }
        if Instant::now() >= end {
            return;
        }
    }
}
