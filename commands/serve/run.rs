//! From the start to the stop: the ready line, and the signals.

use std::future::Future;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use doze::broker::config::HostPort;
use tokio::signal::unix::{SignalKind, signal};

use super::layers::Resolved;
use super::logging::Format;
use super::server::{self, Server};
use crate::exit::Failure;

/// Runs the broker until SIGTERM or Ctrl-C.
pub fn run(resolved: Resolved) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("doze")
        .build()
        .map_err(|error| Failure::could_not_run(format!("cannot start threads: {error}")))?;
    runtime.block_on(async {
        let could_not = |error: io::Error| Failure::could_not_run(format!("cannot listen for signals: {error}"));
        // Before anything else: a stop that is asked for during the start is not lost, and does not cut it off.
        let mut terminate = signal(SignalKind::terminate()).map_err(could_not)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(could_not)?;
        let mut next_signal = async move || {
            tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "Ctrl-C",
            }
        };
        let mut user = signal(SignalKind::user_defined1()).map_err(could_not)?;
        let mut next_question = async move || {
            user.recv().await;
        };
        let address = resolve(&resolved.settings.listen).await?;
        let format = resolved.logging.format;
        let server = server::start(resolved.settings, address).await?;
        serve(server, &mut io::stdout(), format, &mut next_signal, &mut next_question).await
    })
}

/// Says that `server` is ready, has it tell its state whenever there is a question, waits for the first signal and stops it; a
/// second one does not wait for that.
async fn serve(
    server: impl Server,
    out: &mut impl Write,
    format: Format,
    next_signal: &mut impl AsyncFnMut() -> &'static str,
    next_question: &mut impl AsyncFnMut(),
) -> Result<(), Failure> {
    let line = ready_line(server.local_addr(), format);
    // Nobody has to read it.
    if let Err(error) = out.write_all(line.as_bytes()).and_then(|()| out.flush()) {
        tracing::debug!("cannot write the ready line to stdout: {error}");
    }
    let why = loop {
        tokio::select! {
            why = next_signal() => break why,
            () = next_question() => server.tell_state(),
        }
    };
    tracing::info!("{why}: stopping; once more stops at once");
    stop(server.stop(), next_signal()).await
}

async fn stop(
    stopping: impl Future<Output = Result<(), Failure>>,
    signal: impl Future<Output = &'static str>,
) -> Result<(), Failure> {
    tokio::select! {
        stopped = stopping => stopped,
        why = signal => Err(Failure::could_not_run(format!(
            "stopped at once by a second {why}; what was not flushed yet is checked at the next start"
        ))),
    }
}

/// One line for people and programs: the address is what stands after the last blank.
fn ready_line(address: SocketAddr, format: Format) -> String {
    match format {
        Format::Text => format!("doze is ready on {address}\n"),
        Format::Json => format!(
            "{}\n",
            serde_json::json!({"event": "ready", "address": address.to_string(), "port": address.port()})
        ),
    }
}

/// The address to bind to. No host is all of the machine's addresses; of a name's addresses, IPv4 comes first, as clients
/// on the same machine try that first too.
async fn resolve(listen: &HostPort) -> Result<SocketAddr, Failure> {
    if listen.host.is_empty() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), listen.port));
    }
    let refuse = |why: String| Failure::could_not_run(format!("cannot listen on {listen}: {why}"));
    let found = tokio::net::lookup_host((listen.host.as_str(), listen.port)).await;
    let addresses: Vec<SocketAddr> = found.map_err(|error| refuse(error.to_string()))?.collect();
    let first = addresses.iter().find(|address| address.is_ipv4()).or(addresses.first());
    first.copied().ok_or_else(|| refuse("the name has no address".into()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    struct Fake {
        stopped: Arc<AtomicBool>,
        /// Never ends its stop.
        stuck: bool,
        result: Result<(), Failure>,
    }

    impl Server for Fake {
        fn local_addr(&self) -> SocketAddr {
            "127.0.0.1:4711".parse().unwrap()
        }

        fn tell_state(&self) {}

        async fn stop(self) -> Result<(), Failure> {
            if self.stuck {
                std::future::pending::<()>().await;
            }
            self.stopped.store(true, Ordering::SeqCst);
            self.result
        }
    }

    /// Serves until `signals` signals have come; then no more come.
    async fn served(stuck: bool, result: Result<(), Failure>, signals: u32) -> (Result<(), Failure>, String, bool) {
        let stopped = Arc::new(AtomicBool::new(false));
        let server = Fake { stopped: stopped.clone(), stuck, result };
        let mut out = Vec::new();
        let mut left = signals;
        let mut next_signal = async move || {
            if left == 0 {
                std::future::pending::<()>().await;
            }
            left -= 1;
            "SIGTERM"
        };
        let ended = serve(server, &mut out, Format::Text, &mut next_signal, &mut std::future::pending).await;
        (ended, String::from_utf8(out).unwrap(), stopped.load(Ordering::SeqCst))
    }

    #[tokio::test]
    async fn a_signal_stops_it_and_a_second_one_does_not_wait() {
        let (ended, out, stopped) = served(false, Ok(()), 1).await;
        assert_eq!((ended, out.as_str(), stopped), (Ok(()), "doze is ready on 127.0.0.1:4711\n", true));

        let (ended, _, stopped) = served(true, Ok(()), 2).await;
        let failure = ended.unwrap_err();
        assert!(failure.message.starts_with("stopped at once by a second SIGTERM"), "{failure}");
        assert!(!stopped);

        let failed = Err(Failure::could_not_run("cannot flush"));
        assert_eq!(served(false, failed, 1).await.0.unwrap_err().message, "cannot flush");
    }

    #[test]
    fn the_ready_line() {
        let address = "[::1]:9092".parse().unwrap();
        assert_eq!(ready_line(address, Format::Text), "doze is ready on [::1]:9092\n");
        let json: serde_json::Value = serde_json::from_str(&ready_line(address, Format::Json)).unwrap();
        assert_eq!(json["address"], "[::1]:9092");
        assert_eq!(json["port"], 9092);
    }

    #[tokio::test]
    async fn where_to_listen() {
        for (text, address) in [(":9092", "0.0.0.0:9092"), ("127.0.0.1:0", "127.0.0.1:0"), ("[::1]:1", "[::1]:1")] {
            assert_eq!(resolve(&text.parse().unwrap()).await.unwrap().to_string(), address);
        }
        let failure = resolve(&"no.such.host.invalid:1".parse().unwrap()).await.unwrap_err();
        assert!(failure.message.starts_with("cannot listen on no.such.host.invalid:1: "), "{failure}");
    }
}
