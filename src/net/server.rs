//! The listener: accepts connections within their limits, and drains them on shutdown.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::connection::{self, Limits};
use super::quota::Quota;
use crate::broker::{Broker, ClientConnection};

/// Why the broker cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("the port of {address} is taken: another program, perhaps another doze, listens on it")]
    AddressInUse { address: SocketAddr },
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
}

/// How long a shutdown waits for requests that are being answered.
const DRAIN: Duration = Duration::from_secs(10);
/// What an accept that failed, for want of file descriptors most likely, is followed by.
const ACCEPT_BACK_OFF: Duration = Duration::from_millis(100);

/// A broker that listens.
#[derive(Debug)]
pub struct Listening {
    local_addr: SocketAddr,
    broker: Arc<Broker>,
    stop: watch::Sender<bool>,
    accepting: tokio::task::JoinHandle<JoinSet<()>>,
}

/// Takes the port. Call it when everything behind it works: from here on, clients are answered.
pub fn listen(broker: Arc<Broker>, address: SocketAddr) -> Result<Listening, ListenError> {
    let error = |source: io::Error| match source.kind() {
        io::ErrorKind::AddrInUse => ListenError::AddressInUse { address },
        _ => ListenError::Listen { address, source },
    };
    let listener = open(address).map_err(error)?;
    let local_addr = listener.local_addr().map_err(error)?;
    broker.listening_on(local_addr.port());
    let (stop, stopping) = watch::channel(false);
    let accepting = tokio::spawn(accept(broker.clone(), listener, stopping));
    Ok(Listening { local_addr, broker, stop, accepting })
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A port that a stopped broker left in TIME_WAIT can be taken again at once.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(1024)
}

impl Listening {
    /// The address with the port that was picked.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Accepts no more, answers what was read, and ends the connections. The broker itself stays open.
    pub async fn drain(self) {
        self.stop.send_replace(true);
        self.broker.stop_waiting();
        let Ok(mut connections) = self.accepting.await else { return };
        let drained = tokio::time::timeout(DRAIN, async { while connections.join_next().await.is_some() {} }).await;
        if drained.is_err() {
            tracing::warn!("{} connections did not end within {DRAIN:?} and were cut", connections.len());
            connections.shutdown().await;
        }
    }
}

async fn accept(broker: Arc<Broker>, listener: TcpListener, mut stopping: watch::Receiver<bool>) -> JoinSet<()> {
    let mut connections = JoinSet::new();
    let quota = Quota::default();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, peer)) => {
                    let settings = broker.network_settings(peer.ip());
                    let Some(counted) =
                        quota.admit(peer.ip(), settings.max_connections, settings.max_connections_per_ip)
                    else {
                        tracing::warn!(client = %peer, "refusing a connection: max.connections or max.connections.per.ip");
                        continue;
                    };
                    if let Some(delay) = broker.connecting(peer.ip()) {
                        // It stays without an answer for as long as it came too soon, which slows the client down.
                        tracing::debug!(client = %peer, "refusing a connection after {delay:?}: connection_creation_rate");
                        connections.spawn(async move {
                            tokio::time::sleep(delay).await;
                            drop((socket, counted));
                        });
                        continue;
                    }
                    let limits =
                        Limits { max_request_bytes: settings.max_request_bytes, max_idle: settings.max_idle };
                    let pause = broker.pause_after_connection();
                    let (broker, until) = (broker.clone(), stopping.clone());
                    connections.spawn(async move {
                        if let Some(client) = greet(&broker, &socket, peer) {
                            connection::serve(broker, client, socket, limits, until).await;
                        }
                        drop(counted);
                    });
                    if !pause.is_zero() {
                        tracing::debug!("taking in no connection for {pause:?}: max.connection.creation.rate");
                        tokio::select! {
                            () = tokio::time::sleep(pause) => {}
                            _ = stopping.changed() => return connections,
                        }
                    }
                }
                Err(error) => {
                    tracing::warn!("cannot accept a connection: {error}");
                    tokio::time::sleep(ACCEPT_BACK_OFF).await;
                }
            },
            Some(_) = connections.join_next() => {}
            _ = stopping.changed() => return connections,
        }
    }
}

/// What the broker needs to know of the client. `None` if it has left already.
fn greet(broker: &Broker, socket: &TcpStream, peer: SocketAddr) -> Option<Arc<ClientConnection>> {
    // Answers are written whole, so nothing is gained by holding small packets back.
    socket.set_nodelay(true).ok()?;
    Some(broker.connected(peer, socket.local_addr().ok()?))
}
