//! Random histories: several producers that know nothing of each other use one transactional id, writes fail, the power is
//! cut, and what a transaction has become stays what it was.

use std::collections::BTreeMap;

use super::*;
use crate::coordinator::tests::SeededRandom;

/// What a client believes.
#[derive(Clone, Debug, Default)]
struct Client {
    producer: Option<Producer>,
    added: BTreeSet<Place>,
    waiting: Option<(Token, Asked)>,
}

#[derive(Clone, Debug)]
enum Asked {
    Init,
    Add(BTreeSet<Place>),
    End { committed: bool },
}

struct World {
    h: Harness,
    random: SeededRandom,
    version: Version,
    clients: Vec<Client>,
    /// Every producer that was handed out, once.
    handed_out: BTreeSet<(i64, i16)>,
    /// What an answered commit or abort has to have written, by the epoch of the transaction.
    promised: Vec<(Producer, bool, BTreeSet<Place>)>,
    answers: BTreeMap<&'static str, u32>,
    cuts: u32,
}

impl World {
    fn new(seed: u64) -> Self {
        let random = SeededRandom::new(seed);
        let version = if random.below(2) == 0 { Version::V1 } else { Version::V2 };
        let config = Config { version, abort_interval_ms: 50, ..Config::default() };
        let mut h = Harness::with(config);
        h.prompt = false;
        let clients = vec![Client::default(); 2];
        World {
            h,
            random,
            version,
            clients,
            handed_out: BTreeSet::new(),
            promised: vec![],
            answers: BTreeMap::new(),
            cuts: 0,
        }
    }

    fn step(&mut self) {
        match self.random.below(20) {
            0..=7 => self.ask(),
            8..=17 => self.end_a_job(),
            18 => self.h.advance(self.random.below(100) as u64 * 100),
            _ if self.random.below(5) == 0 => self.cut_power(),
            _ => {}
        }
        self.hear();
        self.check();
    }

    fn ask(&mut self) {
        let c = self.random.below(self.clients.len());
        let client = self.clients[c].clone();
        if client.waiting.is_some() {
            return;
        }
        let asked = match (client.producer, self.random.below(24)) {
            (None, _) | (_, 0) => {
                let expected = client.producer.filter(|_| self.random.below(2) == 0);
                (self.h.start_init(InitRequest { expected, timeout_ms: 20_000, ..init() }), Asked::Init)
            }
            (Some(producer), 1..=14) => {
                let partition = self.random.below(4) as i32;
                let token = self.h.start_add(producer, &[("t", partition)], self.version);
                (token, Asked::Add(places(&[("t", partition)])))
            }
            (Some(producer), n) => {
                let committed = n > 17;
                (self.h.start_end(producer, committed, self.version), Asked::End { committed })
            }
        };
        self.clients[c].waiting = Some(asked);
    }

    fn end_a_job(&mut self) {
        if !self.h.jobs.is_empty() {
            let outcome = if self.random.below(10) == 0 { Err(Failed) } else { Ok(()) };
            self.h.end_job(self.random.below(self.h.jobs.len()), outcome);
        }
    }

    /// What was being written may be there or not; nobody gets an answer.
    fn cut_power(&mut self) {
        self.cuts += 1;
        for job in std::mem::take(&mut self.h.jobs) {
            match job {
                Action::Persist(write) if self.random.below(2) == 0 => self.h.store(&write),
                Action::WriteMarkers(markers) if self.random.below(2) == 0 => self.h.written.push(markers),
                _ => {}
            }
        }
        self.h.restart();
        for client in &mut self.clients {
            // A client whose request was lost does not know what it has; it starts over.
            if client.waiting.take().is_some() {
                *client = Client::default();
            }
        }
    }

    fn hear(&mut self) {
        for c in 0..self.clients.len() {
            let Some((token, asked)) = self.clients[c].waiting.clone() else { continue };
            let Some(reply) = self.h.answer(token) else { continue };
            let client = &mut self.clients[c];
            client.waiting = None;
            let name = match (reply, asked) {
                (Reply::Init(Ok(producer)), Asked::Init) => {
                    assert!(self.handed_out.insert((producer.id, producer.epoch)), "{producer:?} is handed out twice");
                    (client.producer, client.added) = (Some(producer), BTreeSet::new());
                    "init"
                }
                (Reply::Add(Ok(())), Asked::Add(places)) => {
                    client.added.extend(places);
                    "add"
                }
                (Reply::End(Ok(next)), Asked::End { committed }) => {
                    let producer = client.producer.expect("it has one");
                    let added = std::mem::take(&mut client.added);
                    if let Some(next) = next {
                        assert!(self.handed_out.insert((next.id, next.epoch)), "{next:?} is handed out twice");
                        client.producer = Some(next);
                    }
                    if !added.is_empty() {
                        self.promised.push((producer, committed, added));
                    }
                    if committed { "commit" } else { "abort" }
                }
                (Reply::Init(Err(error)) | Reply::Add(Err(error)) | Reply::End(Err(error)), _) => {
                    if matches!(error, Error::ProducerFenced | Error::InvalidProducerIdMapping) {
                        *client = Client::default();
                        "fenced"
                    } else if error == Error::ConcurrentTransactions {
                        "concurrent"
                    } else {
                        "refused"
                    }
                }
                (reply, asked) => panic!("{reply:?} is no answer to {asked:?}"),
            };
            *self.answers.entry(name).or_default() += 1;
        }
    }

    /// The markers of one epoch of the second version are those of one transaction: they never contradict each other.
    fn check(&self) {
        if self.version == Version::V2 {
            let mut ends: BTreeMap<(i64, i16), (bool, &Vec<Place>)> = BTreeMap::new();
            for markers in &self.h.written {
                let key = (markers.producer.id, markers.producer.epoch);
                let end = (markers.committed, &markers.places);
                assert_eq!(*ends.entry(key).or_insert(end), end, "two ends of {key:?}");
            }
        }
    }

    /// Lets everything that is under way end well.
    fn settle(&mut self) {
        while !self.h.jobs.is_empty() {
            self.h.end_job(0, Ok(()));
            self.hear();
        }
        self.h.advance(60_000);
        while !self.h.jobs.is_empty() {
            self.h.end_job(0, Ok(()));
        }
        self.h.advance(60_000);
        self.hear();
        if let Ok(metadata) = self.h.coordinator.describe("x") {
            assert!(!metadata.state.is_prepared() && metadata.state != State::Ongoing, "{metadata:?}");
        }
        assert!(self.clients.iter().all(|client| client.waiting.is_none()), "an answer is owed");
    }

    fn check_promises(&self) {
        for (producer, committed, added) in &self.promised {
            let marked = self.h.written.iter().filter(|markers| {
                let epoch = producer.epoch + if self.version == Version::V2 { 1 } else { 0 };
                markers.producer.id == producer.id && markers.producer.epoch == epoch
            });
            let mut kept = marked.filter(|markers| {
                markers.committed == *committed && added.iter().all(|place| markers.places.contains(place))
            });
            assert!(kept.next().is_some(), "{producer:?} was told that {added:?} ended with commit {committed}");
        }
    }
}

#[test]
fn random_histories_keep_every_promise() {
    let base = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x7a31);
    let (mut answers, mut cuts, mut promised) = (BTreeMap::<&str, u32>::new(), 0, 0);
    for seed in base..base + 60 {
        let run = std::panic::catch_unwind(|| {
            let mut world = World::new(seed);
            for _ in 0..1500 {
                world.step();
            }
            world.settle();
            world.check();
            world.check_promises();
            (world.answers, world.cuts, world.promised.len())
        });
        let (counted, cut, kept) = run.unwrap_or_else(|panic| {
            eprintln!("SEED={seed}");
            std::panic::resume_unwind(panic)
        });
        counted.into_iter().for_each(|(name, n)| *answers.entry(name).or_default() += n);
        (cuts, promised) = (cuts + cut, promised + kept);
    }
    for name in ["init", "add", "commit", "abort", "fenced", "concurrent", "refused"] {
        assert!(answers.get(name).is_some_and(|n| *n > 300), "too few {name}: {answers:?}");
    }
    assert!(cuts > 300 && promised > 500, "{cuts} cuts, {promised} promises");
}
