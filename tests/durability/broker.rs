//! A broker over a simulated disk, in one process and without sockets.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use doze::broker::config::BrokerConfig;
use doze::broker::{Broker, ClientConnection, Reply, Settings};
use doze::protocol::messages::find_coordinator::FindCoordinatorRequest;
use doze::protocol::wire::Chunk;
use doze::protocol::{ErrorCode, Request, frame};
use doze::sys::sim::{Cut, Prng, SimEnv, SimFileSystem};

/// A broker over a disk, in one process.
pub struct Life {
    sim: SimEnv,
    runtime: tokio::runtime::Runtime,
    broker: Arc<Broker>,
    client: Arc<ClientConnection>,
}

fn settings() -> Settings {
    let configs = [
        ("log.dirs", "/data"),
        ("offsets.topic.num.partitions", "1"),
        ("group.consumer.assignment.interval.ms", "0"),
        ("group.share.assignment.interval.ms", "0"),
        ("group.streams.assignment.interval.ms", "0"),
        ("group.streams.initial.rebalance.delay.ms", "0"),
    ];
    let configs = configs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    Settings::new(BrokerConfig::at_start(configs).unwrap(), None, None).unwrap()
}

impl Life {
    pub fn start(seed: u64, fs: SimFileSystem) -> Option<Life> {
        let (_, mut sim) = SimEnv::new(seed);
        sim.fs = fs;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let broker = {
            let _inside = runtime.enter();
            Broker::open(sim.env(), settings())
        };
        let broker = match broker {
            Ok(broker) => broker,
            Err(error) => {
                assert!(sim.fs.has_stopped() || sim.fs.total_injected() > 0, "{error}");
                return None;
            }
        };
        let address = "127.0.0.1:9092".parse().unwrap();
        let client = broker.connected(address, address);
        Some(Life { sim, runtime, broker, client })
    }

    /// The disk has failed, or is gone.
    fn is_troubled(&self) -> bool {
        self.sim.fs.has_stopped() || self.sim.fs.total_injected() > 0
    }

    /// Runs the future with the work that others have to do meanwhile. `None` if it does not end: the disk is gone.
    fn drive<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        self.runtime.block_on(async {
            tokio::pin!(future);
            let mut idle = 0;
            while idle < 50 {
                tokio::select! {
                    biased;
                    result = &mut future => return Some(result),
                    () = tokio::task::yield_now() => {}
                }
                idle = if self.sim.workers.run_until_idle() > 0 { 0 } else { idle + 1 };
            }
            assert!(self.is_troubled(), "it hangs");
            None
        })
    }

    /// Lets everything that is under way end.
    pub fn settle(&self) {
        let idle = self.drive(async {
            for _ in 0..40 {
                tokio::task::yield_now().await;
            }
        });
        assert!(idle.is_some() || self.is_troubled());
    }

    /// Sends a request and waits for the answer. `None` if there is none.
    pub fn call<R: Request>(&self, version: i16, request: &R) -> Option<R::Response> {
        let bytes = bytes_of(&frame::encode_request(version, 1, Some("test"), request));
        let answer = self.drive(async {
            let pending = self.broker.receive(&self.client, bytes.slice(4..)).await?;
            match pending.reply.await {
                Reply::Frame(chunks) => Some(bytes_of(&chunks)),
                Reply::Nothing | Reply::Close => None,
            }
        });
        let answer = answer.flatten()?;
        Some(frame::decode_response::<R>(version, answer.slice(4..)).unwrap().1)
    }

    /// Looks up the coordinator of groups, as clients do before they ask anything of it.
    pub fn look_up(&self) -> Option<()> {
        let request = FindCoordinatorRequest { coordinator_keys: vec!["g".into()], ..Default::default() };
        self.call(6, &request).map(drop)
    }

    /// Sends a request. Answers whether the connection is closed for it.
    pub fn closes_connection<R: Request>(&self, version: i16, request: &R) -> bool {
        let bytes = bytes_of(&frame::encode_request(version, 1, Some("test"), request));
        let closed = self.drive(async {
            match self.broker.receive(&self.client, bytes.slice(4..)).await {
                Some(pending) => matches!(pending.reply.await, Reply::Close),
                None => true,
            }
        });
        closed.expect("it is decided")
    }

    /// Makes the call until nothing else of the transactional id is under way.
    pub fn call_until_free<R: Request>(
        &self,
        version: i16,
        request: &R,
        code: impl Fn(&R::Response) -> i16,
    ) -> Option<R::Response> {
        for _ in 0..50 {
            let answer = self.call(version, request)?;
            if ErrorCode::from_code(code(&answer)) != Some(ErrorCode::ConcurrentTransactions) {
                return Some(answer);
            }
            self.settle();
        }
        assert!(self.is_troubled(), "{request:?} is never let in");
        None
    }
}

fn bytes_of(chunks: &[Chunk]) -> Bytes {
    let bytes = |chunk: &Chunk| match chunk {
        Chunk::Bytes(bytes) => bytes.to_vec(),
        Chunk::File(range) => range.read().unwrap_or_default(),
    };
    chunks.iter().flat_map(bytes).collect::<Vec<u8>>().into()
}

pub fn new_disk(seed: u64) -> SimFileSystem {
    SimEnv::new(seed).1.fs
}

/// Tells a story to a broker once for each file operation that it takes, with the power cut after that, and has what is left
/// on the disk checked against what was known by then. Answers how many cuts there were, and all that the checks have
/// counted. `DOZE_SEED` is the seed, which is printed when a check fails.
pub fn cut_after_each_operation<S: Default>(
    tell: fn(&Life, &mut S) -> Option<()>,
    check: fn(u64, SimFileSystem, &S) -> usize,
) -> (usize, usize) {
    let seed: u64 = std::env::var("DOZE_SEED").map_or(1, |seed| seed.parse().expect("DOZE_SEED is a number"));
    let fs = new_disk(seed);
    let life = Life::start(seed, fs.clone()).unwrap();
    tell(&life, &mut S::default()).expect("nothing fails");
    life.settle();
    drop(life);
    let operations: Vec<_> = fs.log().into_iter().filter(|operation| operation.kind.changes()).collect();
    let (mut cuts, mut counted) = (0, 0);
    for operation in &operations {
        for (n, cut) in [Cut::NOTHING_KEPT, Cut::ANY].into_iter().enumerate() {
            let fs = new_disk(seed);
            fs.stop_after(operation.number);
            let mut story = S::default();
            if let Some(life) = Life::start(seed, fs.clone()) {
                let _ = tell(&life, &mut story);
                life.settle();
            }
            let mut prng = Prng::stream(seed.wrapping_add(operation.number), &format!("cut {n}"));
            let after = fs.power_cut(cut, &mut prng);
            let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(prng.next_u64(), after, &story)));
            counted += run.unwrap_or_else(|panic| {
                eprintln!("seed {seed}, cut {n} after {operation}");
                std::panic::resume_unwind(panic)
            });
            cuts += 1;
        }
    }
    (cuts, counted)
}
