//! A coordinator with a model of a disk, of the producer ids and of the logs beside it.

mod ends;
mod history;
mod init;
mod times;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::coordinator::{Now, Token};

/// Milliseconds since the Unix epoch when a test starts.
pub const START_MS: i64 = 1_700_000_000_000;

pub struct Harness {
    pub coordinator: TransactionCoordinator,
    pub config: Config,
    pub now_ms: u64,
    pub disk: BTreeMap<String, Bytes>,
    /// What has been asked for and not been done, without the answers.
    pub jobs: VecDeque<Action>,
    /// Whether jobs are done at once.
    pub prompt: bool,
    /// Every marker that was written, in order.
    pub written: Vec<Markers>,
    pub next_producer_id: i64,
    next_token: Token,
    replies: BTreeMap<Token, Reply>,
    pub answered: BTreeSet<Token>,
}

impl Harness {
    pub fn new() -> Self {
        Self::with(Config::default())
    }

    pub fn with(config: Config) -> Self {
        let now = Now { monotonic: Duration::ZERO, wall_ms: START_MS };
        Harness {
            coordinator: TransactionCoordinator::new(config, now),
            config,
            now_ms: 0,
            disk: BTreeMap::new(),
            jobs: VecDeque::new(),
            prompt: true,
            written: Vec::new(),
            next_producer_id: 1000,
            next_token: 0,
            replies: BTreeMap::new(),
            answered: BTreeSet::new(),
        }
    }

    pub fn now(&self) -> Now {
        Now { monotonic: Duration::from_millis(self.now_ms), wall_ms: START_MS + self.now_ms as i64 }
    }

    pub fn token(&mut self) -> Token {
        self.next_token += 1;
        self.next_token
    }

    pub fn take(&mut self, actions: Actions) {
        for action in actions {
            match action {
                Action::Reply { token, reply } => {
                    assert!(self.answered.insert(token), "token {token} is answered twice");
                    self.replies.insert(token, reply);
                }
                job => {
                    let id = subject(&job);
                    assert!(self.jobs.iter().all(|other| subject(other) != id), "{id} has two jobs under way");
                    self.jobs.push_back(job);
                }
            }
        }
        while self.prompt && !self.jobs.is_empty() {
            self.end_job(0, Ok(()));
        }
    }

    /// Ends the job at `place`.
    pub fn end_job(&mut self, place: usize, outcome: Result<(), Failed>) {
        let job = self.jobs.remove(place).expect("a job is under way");
        let now = self.now();
        let actions = match job {
            Action::Persist(write) => {
                if outcome.is_ok() {
                    self.store(&write);
                }
                self.coordinator.persisted(now, &write.transactional_id, outcome)
            }
            Action::WriteMarkers(markers) => {
                let id = markers.transactional_id.clone();
                if outcome.is_ok() {
                    self.written.push(markers);
                }
                self.coordinator.markers_written(now, &id, outcome)
            }
            Action::NewProducerId { transactional_id } => {
                let fresh = outcome.map(|()| {
                    self.next_producer_id += 1;
                    self.next_producer_id
                });
                self.coordinator.producer_id(now, &transactional_id, fresh)
            }
            Action::Reply { .. } => unreachable!("answers are no jobs"),
        };
        self.take(actions);
    }

    pub fn store(&mut self, write: &Write) {
        match &write.value {
            Some(value) => self.disk.insert(write.transactional_id.to_string(), value.clone()),
            None => self.disk.remove(&*write.transactional_id),
        };
    }

    /// Puts metadata on the disk as if it had come about, and starts over it.
    pub fn start_over(&mut self, id: &str, change: impl FnOnce(&mut Metadata)) {
        let mut metadata = Metadata::from_bytes(&self.disk[id]).unwrap();
        change(&mut metadata);
        self.disk.insert(id.into(), metadata.to_bytes());
        self.restart();
    }

    /// A coordinator that knows what is on the disk and nothing else.
    pub fn restart(&mut self) {
        self.coordinator = TransactionCoordinator::new(self.config, self.now());
        self.jobs.clear();
        for (id, bytes) in self.disk.clone() {
            let actions = self.coordinator.restore(&id, &bytes).unwrap();
            self.take(actions);
        }
    }

    /// Lets time pass, deadline by deadline.
    pub fn advance(&mut self, ms: u64) {
        let end = self.now_ms + ms;
        while self.coordinator.next_deadline() <= Duration::from_millis(end) {
            self.now_ms = self.now_ms.max(self.coordinator.next_deadline().as_millis() as u64);
            let actions = self.coordinator.tick(self.now());
            self.take(actions);
        }
        self.now_ms = end;
    }

    pub fn answer(&mut self, token: Token) -> Option<Reply> {
        self.replies.remove(&token)
    }

    pub fn start_init(&mut self, request: InitRequest) -> Token {
        let token = self.token();
        let actions = self.coordinator.init_producer_id(self.now(), token, request);
        self.take(actions);
        token
    }

    pub fn init_with(&mut self, request: InitRequest) -> Result<Producer, Error> {
        let token = self.start_init(request);
        match self.answer(token) {
            Some(Reply::Init(result)) => result,
            other => panic!("not an answer to an init: {other:?}"),
        }
    }

    pub fn init(&mut self) -> Producer {
        self.init_with(init()).unwrap()
    }

    pub fn start_add(&mut self, producer: Producer, places: &[(&str, i32)], version: Version) -> Token {
        let token = self.token();
        let request = AddRequest { transactional_id: "x".into(), producer, places: self::places(places), version };
        let actions = self.coordinator.add(self.now(), token, &request);
        self.take(actions);
        token
    }

    pub fn add(&mut self, producer: Producer, places: &[(&str, i32)], version: Version) -> Result<(), Error> {
        let token = self.start_add(producer, places, version);
        match self.answer(token) {
            Some(Reply::Add(result)) => result,
            other => panic!("not an answer to an add: {other:?}"),
        }
    }

    pub fn start_end(&mut self, producer: Producer, committed: bool, version: Version) -> Token {
        let token = self.token();
        let request = EndRequest { transactional_id: "x".into(), producer, committed, version };
        let actions = self.coordinator.end(self.now(), token, &request);
        self.take(actions);
        token
    }

    pub fn end(&mut self, producer: Producer, committed: bool, version: Version) -> Result<Option<Producer>, Error> {
        let token = self.start_end(producer, committed, version);
        match self.answer(token) {
            Some(Reply::End(result)) => result,
            other => panic!("not an answer to an end: {other:?}"),
        }
    }

    pub fn state(&self) -> State {
        self.coordinator.describe("x").unwrap().state
    }
}

fn subject(action: &Action) -> String {
    match action {
        Action::Persist(write) => write.transactional_id.to_string(),
        Action::WriteMarkers(markers) => markers.transactional_id.to_string(),
        Action::NewProducerId { transactional_id } => transactional_id.to_string(),
        Action::Reply { .. } => unreachable!("answers are no jobs"),
    }
}

/// A producer with the transactional id `x` and a minute's time.
pub fn init() -> InitRequest {
    InitRequest {
        transactional_id: "x".into(),
        timeout_ms: 60_000,
        expected: None,
        two_phase_commit: false,
        keep_prepared: false,
    }
}

pub fn places(places: &[(&str, i32)]) -> BTreeSet<Place> {
    places.iter().map(|(topic, partition)| ((*topic).into(), *partition)).collect()
}

pub fn epoch(producer: Producer, epoch: i16) -> Producer {
    Producer { epoch, ..producer }
}
