//! Random histories of a streams group: its clients join, reconcile, leave, die and come back; topics come, grow and go,
//! internal ones are made or are not; writes fail or take their time, the broker restarts. Whatever happens, what the
//! coordinator promises holds.
//!
//! `DOZE_SEED=n` runs the history of one seed alone.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::streams::{at_once, counting, running, starting};
use super::*;

const STEPS: usize = 300;
const HISTORIES: u64 = 30;

type Task = (Arc<str>, i32);

#[derive(Clone, Debug, PartialEq)]
enum Phase {
    Out,
    /// Waits for the answer to a request.
    Waiting(Token),
    In,
}

#[derive(Debug)]
struct Client {
    process: String,
    phase: Phase,
    id: String,
    epoch: i32,
    endpoint_epoch: i32,
    /// What it works on. It never gives this up without saying so, but when it starts over.
    owned: Tasks,
    /// What it has been told to work on and does not yet.
    told: Option<Tasks>,
    /// What it has said last that it has; nothing after a failure.
    said: Option<Tasks>,
}

impl Client {
    /// The answer to its last request is lost. What it has been told before may not be its any more: it has said since that it
    /// does not work on that yet, so that others may have been given it.
    fn ask_again(&mut self) {
        (self.phase, self.said) = (Phase::In, None);
        self.told = None;
    }

    /// Without tasks and outside of the group.
    fn start_over(&mut self) {
        self.phase = Phase::Out;
        self.owned = Tasks::default();
        self.told = None;
        self.said = None;
        self.epoch = 0;
        self.endpoint_epoch = -1;
    }
}

/// How often what happened in all histories together.
#[derive(Debug, Default)]
struct Seen {
    answers: usize,
    moved: usize,
    restarts: usize,
    topics_made: usize,
    settled: usize,
    settled_standbys: usize,
    statuses: BTreeSet<String>,
    refused: BTreeSet<String>,
}

struct History {
    seed: u64,
    random: SeededRandom,
    calm: usize,
    standbys: i32,
    h: Harness,
    clients: Vec<Client>,
    ended: OutOfOrder,
    /// How many partitions each topic has.
    topics: BTreeMap<String, i32>,
    next_id: usize,
    epoch: i32,
    digest: DefaultHasher,
}

fn each(tasks: &TaskSet) -> impl Iterator<Item = Task> {
    tasks.iter().flat_map(|(id, partitions)| partitions.iter().map(|partition| (id.clone(), *partition)))
}

impl History {
    fn new(seed: u64) -> Self {
        let random = SeededRandom::new(seed);
        let mut config = at_once();
        config.streams.assignment_interval_ms = [0, 1_000][random.below(2)];
        config.streams.initial_rebalance_delay_ms = [0, 3_000][random.below(2)];
        config.streams.num_standby_replicas = random.below(3) as i32;
        let standbys = config.streams.num_standby_replicas;
        let mut h = Harness::with(config);
        h.prompt = false;
        let processes = 1 + random.below(4);
        let clients = (0..5usize)
            .map(|number| Client {
                process: format!("process {}", number % processes),
                phase: Phase::Out,
                id: String::new(),
                epoch: 0,
                endpoint_epoch: -1,
                owned: Tasks::default(),
                told: None,
                said: None,
            })
            .collect();
        let calm = [12, 80][random.below(2)];
        let mut history = History {
            seed,
            random,
            calm,
            standbys,
            h,
            clients,
            ended: OutOfOrder::default(),
            topics: BTreeMap::from([("t".to_owned(), 3)]),
            next_id: 0,
            epoch: 0,
            digest: DefaultHasher::new(),
        };
        history.tell_topics();
        history
    }

    fn tell_topics(&mut self) {
        let topics: Vec<(&str, i32)> = self.topics.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        self.h.set_topics(&topics);
    }

    fn run(mut self, seen: &mut Seen) -> u64 {
        for _ in 0..STEPS {
            match self.random.below(100) {
                0..65 => {
                    let client = self.random.below(self.clients.len());
                    self.step(client);
                }
                65..82 => self.ended.step(&mut self.h, &self.random),
                82..95 => self.h.advance([100, 600, 1_100, 3_000, 9_000][self.random.below(5)]),
                95 => self.change_topics(),
                96 => self.h.advance([0, 0, 0, 50_000][self.random.below(4)]),
                97 => {
                    let token = self.h.token();
                    let actions = self.h.coordinator.delete_group(self.h.now(), token, "g");
                    self.h.take(actions);
                }
                _ => self.restart(seen),
            }
            self.read_answers(seen);
        }
        self.settle(seen);
        self.digest.finish()
    }

    /// The source grows, or goes and comes again; or somebody removes the internal topics, so that they are made anew.
    fn change_topics(&mut self) {
        match self.random.below(4) {
            0 => *self.topics.entry("t".into()).or_default() += 1,
            1 => drop(self.topics.remove("t")),
            2 => drop(self.topics.insert("t".into(), 1 + self.random.below(5) as i32)),
            _ => self.topics.retain(|name, _| name == "t"),
        }
        self.tell_topics();
    }

    fn step(&mut self, number: usize) {
        let choice = self.random.below(self.calm);
        let client = &mut self.clients[number];
        match (&client.phase, choice) {
            // Dies, and comes back.
            (Phase::In | Phase::Waiting(_), 0) => {
                client.start_over();
                client.id.clear();
            }
            (Phase::Waiting(_), _) => {}
            (Phase::Out, _) => self.join(number),
            (Phase::In, 1) => {
                client.start_over();
                let id = std::mem::take(&mut client.id);
                self.h.stream(running(&id, -1));
            }
            (Phase::In, _) if client.told.is_some() && choice.is_multiple_of(2) => {
                client.owned = client.told.take().expect("it has just been looked at");
            }
            (Phase::In, _) => self.heartbeat(number),
        }
    }

    fn join(&mut self, number: usize) {
        let client = &mut self.clients[number];
        client.start_over();
        if client.id.is_empty() {
            self.next_id += 1;
            client.id = format!("m{}", self.next_id);
        }
        let request = StreamsHeartbeatRequest {
            process_id: Some(client.process.clone()),
            rebalance_timeout_ms: 20_000,
            endpoint: Some(Endpoint { host: "localhost".into(), port: number as u16 }),
            ..starting(&client.id, counting())
        };
        client.said = Some(Tasks::default());
        let token = self.h.stream(request);
        self.clients[number].phase = Phase::Waiting(token);
    }

    fn heartbeat(&mut self, number: usize) {
        let client = &mut self.clients[number];
        let says = client.said.as_ref() != Some(&client.owned);
        let request = StreamsHeartbeatRequest {
            active: says.then(|| client.owned.active.clone()),
            standby: says.then(|| client.owned.standby.clone()),
            warmup: says.then(TaskSet::new),
            endpoint_epoch: client.endpoint_epoch,
            ..running(&client.id, client.epoch)
        };
        client.said = Some(client.owned.clone());
        let token = self.h.stream(request);
        self.clients[number].phase = Phase::Waiting(token);
    }

    /// The broker dies and comes back. What was asked is never answered.
    fn restart(&mut self, seen: &mut Seen) {
        if self.random.below(2) > 0 {
            return;
        }
        self.read_answers(seen);
        seen.restarts += 1;
        self.ended = OutOfOrder::default();
        let config = self.h.coordinator.config.clone();
        self.h.restart(config);
        self.tell_topics();
        for client in self.clients.iter_mut().filter(|client| matches!(client.phase, Phase::Waiting(_))) {
            match client.epoch {
                0 => client.start_over(),
                _ => client.ask_again(),
            }
        }
        self.epoch = 0;
    }

    fn read_answers(&mut self, seen: &mut Seen) {
        for (token, reply) in std::mem::take(&mut self.h.replies) {
            format!("{token} {reply:?}").hash(&mut self.digest);
            let client = self.clients.iter().position(|client| client.phase == Phase::Waiting(token));
            // Nobody waits for what a client asked before it died.
            if let (Some(client), Reply::StreamsHeartbeat(answer)) = (client, reply) {
                self.read_answer(client, answer.map(|answer| *answer), seen);
            }
        }
        self.check();
    }

    fn read_answer(&mut self, number: usize, answer: Result<StreamsHeartbeat, ConsumerRefused>, seen: &mut Seen) {
        let seed = self.seed;
        let client = &mut self.clients[number];
        match answer {
            Ok(answer) => {
                seen.answers += 1;
                assert_eq!(answer.member_id, client.id, "seed {seed}");
                assert!(answer.member_epoch > 0, "seed {seed}: a member's epoch");
                assert!(answer.member_epoch >= client.epoch, "seed {seed}: {answer:?} told {client:?}");
                client.epoch = answer.member_epoch;
                if let Some(served) = &answer.endpoints {
                    assert_ne!(client.endpoint_epoch, answer.endpoint_epoch, "seed {seed}: {served:?} is no news");
                }
                client.endpoint_epoch = answer.endpoint_epoch;
                if let Some(tasks) = answer.tasks {
                    seen.moved +=
                        usize::from(each(&tasks.active).any(|task| !each(&client.owned.active).any(|t| t == task)));
                    client.told = Some(tasks);
                }
                client.phase = Phase::In;
                seen.statuses.extend(answer.statuses.iter().map(|(status, _)| format!("{status:?}")));
                // Mostly, the broker makes what is missing.
                if !answer.missing.is_empty() && self.random.below(4) > 0 {
                    seen.topics_made += answer.missing.len();
                    for topic in answer.missing {
                        // It may have been made since.
                        self.topics.entry(topic.name).or_insert(topic.partitions);
                    }
                    self.tell_topics();
                }
            }
            Err(refused) => {
                seen.refused.insert(format!("{:?}", refused.error));
                match refused.error {
                    Error::NotCoordinator | Error::CoordinatorNotAvailable if client.epoch != 0 => {
                        client.ask_again();
                    }
                    _ => client.start_over(),
                }
            }
        }
    }

    /// What holds at any time.
    fn check(&mut self) {
        let seed = self.seed;
        self.h.coordinator.check();
        let mut active: BTreeMap<Task, &str> = BTreeMap::new();
        let mut open: BTreeMap<(Task, &str), &str> = BTreeMap::new();
        for client in self.clients.iter().filter(|client| self.h.coordinator.has_member("g", &client.id)) {
            for task in each(&client.owned.active) {
                let other = active.insert(task.clone(), &client.id);
                assert_eq!(other, None, "seed {seed}: {task:?} is active with {} as well", client.id);
            }
            for task in each(&client.owned.active).chain(each(&client.owned.standby)) {
                let other = open.insert((task.clone(), &client.process), &client.id);
                assert_eq!(other, None, "seed {seed}: {task:?} is open with {} as well", client.id);
            }
        }
        if let Ok(described) = self.h.coordinator.describe_streams("g") {
            assert!(described.epoch >= self.epoch, "seed {seed}: epoch {} after {}", described.epoch, self.epoch);
            self.epoch = if described.members.is_empty() { 0 } else { described.epoch };
        } else {
            self.epoch = 0;
        }
    }

    /// Everything that is under way ends and nothing else happens: everybody gets what it is to have.
    fn settle(&mut self, seen: &mut Seen) {
        let seed = self.seed;
        self.calm = usize::MAX;
        self.ended.finish(&mut self.h);
        self.read_answers(seen);
        self.topics = BTreeMap::from([("t".to_owned(), 4)]);
        self.tell_topics();
        for _ in 0..60 {
            self.ended.finish(&mut self.h);
            self.read_answers(seen);
            for number in 0..self.clients.len() {
                if let Some(told) = self.clients[number].told.take() {
                    self.clients[number].owned = told;
                }
                match self.clients[number].phase {
                    Phase::Waiting(_) => {}
                    Phase::Out => self.join(number),
                    Phase::In => self.heartbeat(number),
                }
                self.read_answers(seen);
            }
            self.h.advance(1_100);
        }
        for client in &self.clients {
            assert_eq!(client.phase, Phase::In, "seed {seed}: {client:?} never gets in");
        }
        let all = ["0", "1"].into_iter().flat_map(|id| (0..4).map(move |n| (Arc::<str>::from(id), n)));
        let active: BTreeSet<Task> = self.clients.iter().flat_map(|client| each(&client.owned.active)).collect();
        assert_eq!(active, all.collect(), "seed {seed}: every task is somewhere; {:?}", self.clients);
        let processes = self.clients.iter().map(|client| &client.process).collect::<BTreeSet<_>>().len();
        let standbys: usize = self.clients.iter().map(|client| each(&client.owned.standby).count()).sum();
        let wanted = (self.standbys as usize).min(processes - 1) * 4;
        assert_eq!(standbys, wanted, "seed {seed}: copies of the state; {:?}", self.clients);
        assert_eq!(self.h.streams_state(), "Stable", "seed {seed}");
        seen.settled += 1;
        seen.settled_standbys += usize::from(standbys > 0);
    }
}

#[test]
fn whatever_happens_tasks_are_active_once_and_end_up_somewhere() {
    let mut seen = Seen::default();
    if let Ok(seed) = std::env::var("DOZE_SEED") {
        History::new(seed.parse().unwrap()).run(&mut seen);
        return;
    }
    let first = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    println!("seeds from {first} on");
    for seed in (0..HISTORIES).map(|n| first.wrapping_add(n)) {
        History::new(seed).run(&mut seen);
    }
    println!("{seen:?}");
    assert!(seen.answers > 3_000 && seen.moved > 120 && seen.restarts > 25, "{seen:?}");
    assert!(seen.topics_made > 60 && seen.settled_standbys > 4, "{seen:?}");
    for error in ["UnknownMemberId", "NotCoordinator"] {
        assert!(seen.refused.contains(error), "{error} {seen:?}");
    }
    for status in ["MissingSourceTopics", "MissingInternalTopics", "IncorrectlyPartitionedTopics", "AssignmentDelayed"]
    {
        assert!(seen.statuses.contains(status), "{status} {seen:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_history() {
    for seed in 0..5 {
        let run = || History::new(seed).run(&mut Seen::default());
        assert_eq!(run(), run(), "seed {seed}");
    }
}
