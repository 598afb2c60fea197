//! Requests and answers between a client and the broker.

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use doze::broker::{ClientConnection, Reply};
use doze::protocol::wire::Chunk;
use doze::protocol::{Request, frame};
use doze::sys::sim::Prng;

use crate::world::World;

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

    async fn exchange<R: Request>(&self, version: i16, request: &R) -> Option<Bytes> {
        let world = &self.world;
        let broker = world.broker.borrow().clone().expect("clients live while there is a broker");
        let connect = || {
            let address = "127.0.0.1:9092".parse().unwrap();
            broker.connected(address, address)
        };
        let client = self.client.borrow_mut().get_or_insert_with(connect).clone();
        self.correlation.set(self.correlation.get() + 1);
        let chunks = frame::encode_request(version, self.correlation.get(), Some(&self.name), request);
        let bytes = bytes_of(&chunks).expect("a request is in memory");
        let _in_flight = InFlight::new(world);
        let pending = broker.receive(&client, bytes.slice(4..)).await?;
        match pending.reply.await {
            Reply::Frame(chunks) => bytes_of(&chunks),
            Reply::Nothing | Reply::Close => None,
        }
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
