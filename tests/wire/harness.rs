//! Runs the executable on a free port over a temporary directory, and talks to it over TCP with doze's own protocol layer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use bytes::Bytes;
use doze::protocol::Request;
use doze::protocol::frame;
use doze::protocol::wire::Chunk;
use tempfile::TempDir;

/// Longer than anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A running broker. Killed when it is dropped.
pub struct Broker {
    child: Child,
    pub address: SocketAddr,
    dir: TempDir,
    args: Vec<String>,
    stderr: Receiver<String>,
}

impl Broker {
    /// Starts one on an empty directory.
    pub fn start() -> Self {
        Broker::start_with(&[])
    }

    /// Starts one on an empty directory, with more arguments.
    pub fn start_with(args: &[&str]) -> Self {
        Broker::start_in(tempfile::tempdir().unwrap(), args)
    }

    /// Starts one over a directory whose `data` folder it serves.
    pub fn start_in(dir: TempDir, args: &[&str]) -> Self {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let (child, address, stderr) = launch(dir.path(), &args);
        Broker { child, address, dir, args, stderr }
    }

    pub fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// SIGKILL, and nothing after it.
    pub fn kill(mut self) -> Stopped {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.into_stopped()
    }

    /// SIGTERM, and waits for the end, which has to be a clean one.
    pub fn stop(mut self) -> Stopped {
        signal(&self.child, "TERM");
        let status = wait(&mut self.child);
        assert!(status.success(), "{status}; it said: {}", self.said());
        self.into_stopped()
    }

    fn into_stopped(mut self) -> Stopped {
        let dir = std::mem::replace(&mut self.dir, tempfile::tempdir().unwrap());
        Stopped { dir, args: self.args.clone() }
    }

    /// Everything that it has written to stderr since the last call.
    pub fn said(&self) -> String {
        self.stderr.try_iter().collect()
    }

    /// Waits for a line on stderr that contains `text`.
    pub fn expect_to_say(&self, text: &str) -> String {
        let end = Instant::now() + PATIENCE;
        let mut all = String::new();
        loop {
            match self.stderr.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => all += &line,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("it never said {text:?}, but:\n{all}")
                }
            }
        }
    }

    /// SIGUSR1: it writes its state to stderr.
    pub fn ask_for_state(&self) {
        signal(&self.child, "USR1");
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn connect(&self) -> Client {
        Client::connect(self.address)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A data directory without a broker.
pub struct Stopped {
    dir: TempDir,
    args: Vec<String>,
}

impl Stopped {
    pub fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Starts a broker over it again, with the arguments it had.
    pub fn start(self) -> Broker {
        let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
        Broker::start_in(self.dir, &args)
    }

    /// Starts a broker over it again, with other arguments.
    pub fn start_with(self, args: &[&str]) -> Broker {
        Broker::start_in(self.dir, args)
    }
}

/// The executable with `doze serve` and what every test wants.
pub fn serve(dir: &Path, args: &[String]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_doze"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(dir.join("data")).args(args);
    command.env_clear().envs(std::env::vars().filter(|(name, _)| !name.starts_with("DOZE_")));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn launch(dir: &Path, args: &[String]) -> (Child, SocketAddr, Receiver<String>) {
    let mut child = serve(dir, args).spawn().unwrap();
    let stderr = lines(child.stderr.take().unwrap());
    let ready = lines(child.stdout.take().unwrap()).recv_timeout(PATIENCE).unwrap_or_default();
    let address = ready.split_whitespace().find_map(|word| word.parse().ok()).unwrap_or_else(|| {
        let _ = child.kill();
        panic!("it is not ready, but said {ready:?} and:\n{}", stderr.iter().collect::<String>())
    });
    (child, address, stderr)
}

/// Reads lines on a thread of their own, so that no pipe fills up.
fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = String::new();
        while from.read_line(&mut line).is_ok_and(|n| n > 0) {
            if sender.send(std::mem::take(&mut line)).is_err() {
                // Nobody listens any more; the pipe still has to be emptied.
                let _ = std::io::copy(&mut from, &mut std::io::sink());
            }
        }
    });
    receiver
}

/// Says that a test, or a part of one, is left out. Past the capture of what tests print: nobody looks at what a test that passed has printed.
pub fn skipped(what: &str) {
    let _ = writeln!(std::io::stderr(), "\nSKIPPED {what}");
}

pub fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status().unwrap();
    assert!(status.success());
}

pub fn wait(child: &mut Child) -> ExitStatus {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(Instant::now() < end, "the broker does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A client connection.
pub struct Client {
    socket: TcpStream,
    next_correlation_id: i32,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        Client { socket, next_correlation_id: 1 }
    }

    /// Sends a request and waits for its answer.
    pub fn call<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        let id = self.send(version, request);
        self.receive::<R>(version, id)
    }

    /// Sends a request. Answers its correlation id, for [`receive`](Self::receive).
    pub fn send<R: Request>(&mut self, version: i16, request: &R) -> i32 {
        let id = self.next_correlation_id;
        self.next_correlation_id += 1;
        self.send_raw(&request_bytes(version, id, request));
        id
    }

    /// Waits for the answer to the request with this correlation id, which has to be the next one.
    pub fn receive<R: Request>(&mut self, version: i16, id: i32) -> R::Response {
        let frame = self.receive_raw().unwrap_or_else(|| panic!("{} got the connection closed", R::API.name()));
        let (answered, response) = frame::decode_response::<R>(version, frame).unwrap();
        assert_eq!(answered, id, "answers come in the order of the requests");
        response
    }

    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).unwrap();
    }

    /// The next frame, without its length. `None` when the broker has closed the connection.
    pub fn receive_raw(&mut self) -> Option<Bytes> {
        let mut length = [0; 4];
        match self.socket.read_exact(&mut length) {
            Ok(()) => {}
            Err(e)
                if e.kind() == std::io::ErrorKind::UnexpectedEof || e.kind() == std::io::ErrorKind::ConnectionReset =>
            {
                return None;
            }
            Err(e) => panic!("{e}"),
        }
        let mut frame = vec![0; i32::from_be_bytes(length) as usize];
        self.socket.read_exact(&mut frame).unwrap();
        Some(frame.into())
    }

    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }
}

/// A request as a whole frame.
pub fn request_bytes<R: Request>(version: i16, correlation_id: i32, request: &R) -> Vec<u8> {
    let chunks = frame::encode_request(version, correlation_id, Some("test"), request);
    let bytes = |chunk: &Chunk| match chunk {
        Chunk::Bytes(bytes) => bytes.to_vec(),
        Chunk::File(range) => range.read().unwrap(),
    };
    chunks.iter().flat_map(bytes).collect()
}
