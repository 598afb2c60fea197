//! Requests and answers between a client and the broker.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::pending;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use doze::broker::{Broker, ClientConnection, Pending, Reply};
use doze::protocol::wire::Chunk;
use doze::protocol::{Request, frame};
use doze::sys::sim::Prng;

use crate::world::{Canary, World};

/// No answer takes longer, if nothing is wrong with the disk.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client's side of the wire, in one life of the broker.
pub struct Connection {
    pub world: Rc<World>,
    pub name: String,
    client: RefCell<Option<Arc<ClientConnection>>>,
    prng: RefCell<Prng>,
    /// Milliseconds between two requests, at most.
    think_ms: u64,
    /// Whether answers get lost on the way and requests are counted.
    is_client: bool,
    correlation: Cell<i32>,
}

impl Connection {
    pub fn new(world: &Rc<World>, name: &str, life: u64, think_ms: u64) -> Self {
        let prng = Prng::stream(world.seed ^ life.rotate_left(17), name);
        Connection {
            world: world.clone(),
            name: name.to_owned(),
            client: RefCell::default(),
            prng: RefCell::new(prng),
            think_ms,
            is_client: true,
            correlation: Cell::new(0),
        }
    }

    /// One that always gets its answers.
    pub fn of_auditor(world: &Rc<World>, life: u64) -> Self {
        Connection { is_client: false, ..Connection::new(world, "audit", life, 1) }
    }

    pub fn is_client(&self) -> bool {
        self.is_client
    }

    pub fn draw<T>(&self, draw: impl FnOnce(&mut Prng) -> T) -> T {
        draw(&mut self.prng.borrow_mut())
    }

    pub fn note(&self, what: impl std::fmt::Display) {
        self.world.note(&self.name, what);
    }

    /// What a client does between two requests.
    pub async fn think(&self) {
        let ms = self.draw(|prng| prng.below(self.think_ms) + 1);
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    async fn delay(&self) {
        match self.draw(|prng| prng.below(4)) {
            0 if self.is_client => tokio::time::sleep(Duration::from_millis(1)).await,
            _ => tokio::task::yield_now().await,
        }
    }

    /// Sends a request and waits for the answer. `None`: the connection broke, and nobody knows what came of the request;
    /// but whatever it was to do is done or never will be.
    pub async fn call<R: Request>(&self, version: i16, request: &R) -> Option<R::Response> {
        let world = &self.world;
        if self.is_client {
            world.admitted().await;
        }
        self.delay().await;
        if self.is_client && !world.accepting.get() {
            return pending().await;
        }
        world.count(&format!("request {}", R::API.name()));
        let Ok(answer) = tokio::time::timeout(PATIENCE, self.exchange(version, request)).await else {
            if !world.is_troubled() {
                world.violate(format!("{}: {} is never answered", self.name, R::API.name()));
            }
            return pending().await;
        };
        // What a process says that has ended is heard by nobody.
        if world.fs().has_stopped() {
            return pending().await;
        }
        self.delay().await;
        if self.is_client && self.draw(|prng| prng.chance(1, 40)) {
            world.count("an answer got lost");
            self.hang_up();
            return None;
        }
        let Some(answer) = answer else {
            self.hang_up();
            return None;
        };
        match frame::decode_response::<R>(version, answer.slice(4..)) {
            Ok((_, response)) => Some(response),
            Err(error) => {
                world.violate(format!("{}: the answer of {} cannot be read: {error}", self.name, R::API.name()));
                None
            }
        }
    }

    /// The connection breaks; the next request opens another.
    pub fn hang_up(&self) {
        if let (Some(client), Some(broker)) = (self.client.take(), &*self.world.broker.borrow()) {
            broker.disconnected(&client);
        }
    }

    /// The connection to the broker, opened if it was not.
    fn client(&self) -> (Arc<Broker>, Arc<ClientConnection>) {
        let broker = self.world.broker.borrow().clone().expect("clients live while there is a broker");
        let address = "127.0.0.1:9092".parse().unwrap();
        let client = self.client.borrow_mut().get_or_insert_with(|| broker.connected(address, address)).clone();
        (broker, client)
    }

    /// A request as it goes over the wire, and its number.
    fn framed<R: Request>(&self, version: i16, request: &R) -> (i32, Bytes) {
        self.correlation.set(self.correlation.get() + 1);
        let number = self.correlation.get();
        let chunks = frame::encode_request(version, number, Some(&self.name), request);
        (number, bytes_of(&chunks).expect("a request is in memory").slice(4..))
    }

    async fn exchange<R: Request>(&self, version: i16, request: &R) -> Option<Bytes> {
        let (broker, client) = self.client();
        let (_, bytes) = self.framed(version, request);
        let _in_flight = InFlight::new(&self.world);
        let pending = broker.receive(&client, bytes).await?;
        match pending.reply.await {
            Reply::Frame(chunks) => bytes_of(&chunks),
            Reply::Nothing | Reply::Close => None,
        }
    }

    /// Sends requests one after the other without waiting for the answers, which come in the same order. Where the connection
    /// breaks, the rest have none, and nobody knows what came of them, or will come in this process.
    pub async fn pipeline<R: Request>(&self, version: i16, requests: &[R]) -> Vec<Option<R::Response>> {
        let world = &self.world;
        for _ in requests {
            world.admitted().await;
        }
        self.delay().await;
        if !world.accepting.get() {
            return pending().await;
        }
        let mut answers = Vec::new();
        let in_order = async {
            let (broker, client) = self.client();
            let _in_flight = InFlight::new(world);
            let mut waiting = VecDeque::new();
            let mut unsent = requests.iter();
            while answers.len() < requests.len() {
                // As the server does it: whatever is answered first is written first, and meanwhile more is read.
                tokio::select! {
                    biased;
                    reply = async {
                        let (_, pending): &mut (i32, Pending) = waiting.front_mut().expect("guarded below");
                        (&mut pending.reply).await
                    }, if !waiting.is_empty() => {
                        let (number, _) = waiting.pop_front().expect("it has just answered");
                        let Reply::Frame(chunks) = reply else { return };
                        let Some(answer) = bytes_of(&chunks) else { return };
                        if self.draw(|prng| prng.chance(1, 40)) {
                            world.count("an answer got lost");
                            return;
                        }
                        match frame::decode_response::<R>(version, answer.slice(4..)) {
                            Ok((of, response)) if of == number => answers.push(Some(response)),
                            Ok((of, _)) => return world.violate(format!("{}: answer {of} comes before {number}", self.name)),
                            Err(error) => return world.violate(format!("{}: an answer cannot be read: {error}", self.name)),
                        }
                    }
                    () = self.delay(), if unsent.len() > 0 => {
                        let (number, bytes) = self.framed(version, unsent.next().expect("there is one more"));
                        world.count(&format!("request {}", R::API.name()));
                        let Some(pending) = broker.receive(&client, bytes).await else { return };
                        if !waiting.is_empty() {
                            world.count("requests sent before the one before was answered");
                        }
                        waiting.push_back((number, pending));
                    }
                }
            }
        };
        if tokio::time::timeout(PATIENCE, in_order).await.is_err() {
            if !world.is_troubled() {
                world.violate(format!("{}: {} is never answered", self.name, R::API.name()));
            }
            return pending().await;
        }
        // What a process says that has ended is heard by nobody.
        if world.fs().has_stopped() {
            return pending().await;
        }
        if answers.len() < requests.len() {
            self.hang_up();
            answers.resize_with(requests.len(), || None);
        }
        if world.canary == Canary::AnswersSwapped {
            answers.reverse();
        }
        answers
    }
}

/// `None` where the file cannot be read: the connection ends then.
fn bytes_of(chunks: &[Chunk]) -> Option<Bytes> {
    let mut all = Vec::new();
    for chunk in chunks {
        match chunk {
            Chunk::Bytes(bytes) => all.extend_from_slice(bytes),
            Chunk::File(range) => all.extend(range.read().ok()?),
        }
    }
    Some(all.into())
}

/// A request that is under way.
struct InFlight<'a>(&'a World);

impl<'a> InFlight<'a> {
    fn new(world: &'a World) -> Self {
        world.in_flight.set(world.in_flight.get() + 1);
        InFlight(world)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.set(self.0.in_flight.get() - 1);
    }
}
