//! Random histories of a group whose clients speak either protocol: they join, reconcile, leave, die, come back under the
//! other protocol; writes fail or take their time, topics come, grow and go, the broker restarts. Whatever happens, what
//! the coordinator promises holds.
//!
//! `DOZE_SEED=n` runs the history of one seed alone.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::consumer::{beating, entering, topic_id};
use super::migration::{assigned, assigning, classic};
use super::*;
use crate::protocol::Uuid;

const STEPS: usize = 500;
const HISTORIES: u64 = 60;

type Places = BTreeSet<(Uuid, i32)>;

#[derive(Clone, Debug, PartialEq)]
enum Phase {
    Out,
    /// Waits for the answer to a request.
    Waiting(Token),
    /// A classic member that has joined and is going to sync.
    Joined,
    In,
}

#[derive(Debug)]
struct Client {
    instance: Option<String>,
    speaks_classic: bool,
    phase: Phase,
    id: String,
    epoch: i32,
    /// What it reads from. It never gives this up without saying so, but when it starts over.
    owned: Places,
    /// What it has been told to read from and does not yet.
    told: Option<Places>,
    /// Its last request failed, so that it says everything again.
    full: bool,
    topics: Vec<String>,
    /// For a leader of the classic group: the ids of its members.
    leads: Vec<String>,
    /// How many partitions there were when it last said who is to have them.
    divided: i32,
}

/// How often what happened in all histories together.
#[derive(Debug, Default)]
struct Seen {
    answers: usize,
    classic_answers: usize,
    upgrades: usize,
    downgrades: usize,
    moved: usize,
    restarts: usize,
    settled: usize,
    settled_mixed: usize,
    refused: BTreeSet<String>,
}

struct History {
    seed: u64,
    random: SeededRandom,
    calm: usize,
    h: Harness,
    clients: Vec<Client>,
    ended: OutOfOrder,
    /// Partitions of `t`, `u` and `v`; none for a topic that is not there.
    topics: [i32; 3],
    next_id: usize,
    kind: Option<GroupType>,
    epoch: i32,
    digest: DefaultHasher,
}

const NAMES: [&str; 3] = ["t", "u", "v"];

impl History {
    fn new(seed: u64) -> Self {
        let random = SeededRandom::new(seed);
        let mut consumer = Config::default().consumer;
        consumer.assignment_interval_ms = [0, 1_000][random.below(2)];
        let mut h = Harness::with(Config { consumer, ..Config::default() });
        h.prompt = false;
        // Some histories have members of one protocol only.
        let mixed = random.below(4) > 0;
        let clients = (0..5usize)
            .map(|number| Client {
                instance: (number < 2).then(|| format!("instance {number}")),
                speaks_classic: mixed && random.below(2) == 0,
                phase: Phase::Out,
                id: String::new(),
                epoch: 0,
                owned: Places::new(),
                told: None,
                full: true,
                topics: vec!["t".into()],
                leads: vec![],
                divided: 0,
            })
            .collect();
        let calm = [12, 80][random.below(2)];
        let mut history = History {
            seed,
            random,
            calm,
            h,
            clients,
            ended: OutOfOrder::default(),
            topics: [6, 0, 2],
            next_id: 0,
            kind: None,
            epoch: 0,
            digest: DefaultHasher::new(),
        };
        history.tell_topics();
        history
    }

    fn tell_topics(&mut self) {
        let topics: Vec<(&str, i32)> = NAMES.into_iter().zip(self.topics).filter(|(_, count)| *count > 0).collect();
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
                82..96 => self.h.advance([100, 600, 1_100, 3_000, 9_000][self.random.below(5)]),
                96 => {
                    // Partitions never get fewer unless the topic goes.
                    let topic = self.random.below(3);
                    self.topics[topic] = if self.random.below(3) == 0 { 0 } else { self.topics[topic] + 1 };
                    self.topics[topic] %= 12;
                    self.tell_topics();
                }
                97 => self.h.advance([0, 0, 0, 50_000][self.random.below(4)]),
                98 => self.delete_group(),
                _ => self.restart(seen),
            }
            self.read_answers(seen);
        }
        self.settle(seen);
        self.digest.finish()
    }

    fn step(&mut self, number: usize) {
        let choice = self.random.below(self.calm);
        let client = &mut self.clients[number];
        match (&client.phase, choice) {
            // Dies, and comes back as something else, perhaps.
            (Phase::In | Phase::Waiting(_) | Phase::Joined, 0) => {
                client.start_over();
                client.id.clear();
                if self.random.below(2) == 0 {
                    client.speaks_classic = !client.speaks_classic && self.random.below(3) > 0;
                }
            }
            (Phase::Waiting(_), _) => {}
            (Phase::Out, _) => self.join(number),
            (Phase::Joined, _) => self.sync(number),
            (Phase::In, 1) => self.leave(number),
            (Phase::In, 2) if !client.speaks_classic => {
                client.topics = NAMES.iter().filter(|_| self.random.below(2) == 0).map(|name| (*name).into()).collect();
                client.full = true;
            }
            (Phase::In, _) if client.speaks_classic => self.classic_heartbeat(number),
            (Phase::In, _) if client.told.is_some() && choice.is_multiple_of(2) => {
                client.owned = client.told.take().expect("it has just been looked at");
            }
            (Phase::In, _) => self.heartbeat(number),
        }
    }

    fn join(&mut self, number: usize) {
        let client = &mut self.clients[number];
        client.start_over();
        let token = if client.speaks_classic {
            let request = JoinRequest {
                group_instance_id: client.instance.clone(),
                member_id_required: true,
                ..classic(&client.id, &[])
            };
            self.h.join(request)
        } else {
            if client.id.is_empty() {
                self.next_id += 1;
                client.id = format!("m{}", self.next_id);
            }
            client.full = false;
            let request = ConsumerHeartbeatRequest {
                instance_id: client.instance.clone(),
                topic_names: Some(client.topics.clone()),
                rebalance_timeout_ms: 20_000,
                ..entering(&client.id)
            };
            self.h.beat(request)
        };
        self.clients[number].phase = Phase::Waiting(token);
    }

    fn heartbeat(&mut self, number: usize) {
        let client = &mut self.clients[number];
        let full = std::mem::take(&mut client.full);
        let mut owned: BTreeMap<Uuid, Vec<i32>> = BTreeMap::new();
        for (topic, partition) in &client.owned {
            owned.entry(*topic).or_default().push(*partition);
        }
        let says = full || self.random.below(3) > 0;
        let request = ConsumerHeartbeatRequest {
            instance_id: client.instance.clone(),
            owned: says.then(|| owned.into_iter().collect()),
            topic_names: full.then(|| client.topics.clone()),
            rebalance_timeout_ms: if full { 20_000 } else { -1 },
            ..beating(&client.id, client.epoch)
        };
        let token = self.h.beat(request);
        self.clients[number].phase = Phase::Waiting(token);
    }

    fn sync(&mut self, number: usize) {
        let count = self.topics[0];
        let client = &mut self.clients[number];
        client.divided = count;
        let places = client.leads.len().max(1);
        let share = |place: usize| (0..count).filter(|p| *p as usize % places == place).collect::<Vec<_>>();
        let assignments =
            client.leads.iter().enumerate().map(|(place, id)| (id.clone(), assigning(&share(place)))).collect();
        let request = SyncRequest {
            group_id: "g".into(),
            generation_id: client.epoch,
            member_id: client.id.clone(),
            group_instance_id: client.instance.clone(),
            protocol_type: Some("consumer".into()),
            protocol_name: Some("range".into()),
            assignments,
        };
        let token = self.h.sync_with(request);
        self.clients[number].phase = Phase::Waiting(token);
    }

    fn classic_heartbeat(&mut self, number: usize) {
        let client = &mut self.clients[number];
        // It falls to the leader to see that there are other partitions now.
        if !client.leads.is_empty() && client.divided != self.topics[0] {
            return client.start_over();
        }
        let request = HeartbeatRequest {
            group_id: "g".into(),
            generation_id: client.epoch,
            member_id: client.id.clone(),
            group_instance_id: client.instance.clone(),
        };
        match self.h.coordinator.heartbeat(self.h.now(), &request) {
            Ok(()) => {}
            // It gives everything up before it joins again.
            Err(Error::RebalanceInProgress) => self.clients[number].start_over(),
            Err(_) => {
                self.clients[number].start_over();
                self.clients[number].id.clear();
            }
        }
    }

    fn leave(&mut self, number: usize) {
        let client = &mut self.clients[number];
        client.start_over();
        let (id, instance) = (client.id.clone(), client.instance.clone());
        if client.speaks_classic {
            self.h.leave(&[(&id, instance.as_deref())]);
        } else {
            let epoch = if instance.is_some() && self.random.below(2) == 0 { -2 } else { -1 };
            self.h.beat(ConsumerHeartbeatRequest { instance_id: instance, ..beating(&id, epoch) });
        }
        self.clients[number].id.clear();
    }

    fn delete_group(&mut self) {
        let token = self.h.token();
        let actions = self.h.coordinator.delete_group(self.h.now(), token, "g");
        self.h.take(actions);
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
        // The harness makes ids from the time, and none may come twice.
        self.h.now_ms += 1;
        self.h.restart(config);
        self.tell_topics();
        for client in &mut self.clients {
            if matches!(client.phase, Phase::Waiting(_)) {
                match client.speaks_classic || client.epoch == 0 {
                    true => client.start_over(),
                    false => client.ask_again(),
                }
            }
        }
        (self.kind, self.epoch) = (None, 0);
    }

    fn read_answers(&mut self, seen: &mut Seen) {
        for (token, reply) in std::mem::take(&mut self.h.replies) {
            format!("{token} {reply:?}").hash(&mut self.digest);
            let client = self.clients.iter().position(|client| client.phase == Phase::Waiting(token));
            // Nobody waits for what a client asked before it died.
            if let Some(client) = client {
                self.read_answer(client, reply, seen);
            }
        }
        self.check(seen);
    }

    fn read_answer(&mut self, number: usize, reply: Reply, seen: &mut Seen) {
        let seed = self.seed;
        let client = &mut self.clients[number];
        match reply {
            Reply::ConsumerHeartbeat(Ok(answer)) => {
                seen.answers += 1;
                assert_eq!(answer.member_id, client.id, "seed {seed}");
                assert!(answer.member_epoch > 0, "seed {seed}: a member's epoch");
                assert!(
                    answer.member_epoch >= client.epoch,
                    "seed {seed}: {} told after {}",
                    answer.member_epoch,
                    client.epoch
                );
                client.epoch = answer.member_epoch;
                if let Some(assignment) = answer.assignment {
                    let all = assignment.into_iter();
                    let told: Places = all.flat_map(|(id, all)| all.into_iter().map(move |p| (id, p))).collect();
                    seen.moved += usize::from(!told.is_subset(&client.owned));
                    client.told = Some(told);
                }
                client.phase = Phase::In;
            }
            Reply::ConsumerHeartbeat(Err(refused)) => {
                seen.refused.insert(format!("{:?}", refused.error));
                let joining = client.epoch == 0;
                match refused.error {
                    Error::NotCoordinator | Error::CoordinatorNotAvailable if !joining => {
                        client.ask_again();
                    }
                    Error::FencedInstanceId | Error::UnreleasedInstanceId => {
                        client.start_over();
                        client.id.clear();
                    }
                    _ => client.start_over(),
                }
            }
            Reply::Join(Ok(joined)) => {
                client.id = joined.member_id;
                client.epoch = joined.generation_id;
                client.leads = match joined.skip_assignment {
                    true => vec![],
                    false => joined.members.into_iter().map(|member| member.member_id).collect(),
                };
                client.phase = Phase::Joined;
            }
            Reply::Join(Err(refused)) => {
                seen.refused.insert(format!("{:?}", refused.error));
                client.start_over();
                match refused.error {
                    Error::MemberIdRequired => client.id = refused.member_id,
                    Error::UnknownMemberId | Error::FencedInstanceId => client.id.clear(),
                    _ => {}
                }
            }
            Reply::Sync(Ok(synced)) => {
                seen.classic_answers += 1;
                let partitions = assigned(&synced.assignment);
                client.owned = partitions.into_iter().map(|partition| (topic_id("t"), partition)).collect();
                client.phase = Phase::In;
            }
            Reply::Sync(Err(error)) => {
                seen.refused.insert(format!("{error:?}"));
                client.start_over();
                if matches!(error, Error::UnknownMemberId | Error::FencedInstanceId) {
                    client.id.clear();
                }
            }
            other => panic!("seed {seed}: {other:?} is an answer to nothing that was asked"),
        }
    }

    /// What holds at any time.
    fn check(&mut self, seen: &mut Seen) {
        let seed = self.seed;
        self.h.coordinator.check();
        let mut owners: BTreeMap<(Uuid, i32), &str> = BTreeMap::new();
        for client in self.clients.iter().filter(|client| self.h.coordinator.has_member("g", &client.id)) {
            for place in &client.owned {
                let other = owners.insert(*place, &client.id);
                assert_eq!(other, None, "seed {seed}: {place:?} belongs to {} as well", client.id);
            }
        }
        let kind = self.h.coordinator.group_type("g");
        let described = self.h.coordinator.describe_consumer("g").ok();
        match (self.kind, kind) {
            (Some(GroupType::Classic), Some(GroupType::Consumer)) => seen.upgrades += 1,
            (Some(GroupType::Consumer), Some(GroupType::Classic)) => seen.downgrades += 1,
            _ => {}
        }
        if self.kind != kind {
            (self.kind, self.epoch) = (kind, 0);
        }
        if let Some(described) = described {
            assert!(described.epoch >= self.epoch, "seed {seed}: epoch {} after {}", described.epoch, self.epoch);
            self.epoch = if described.members.is_empty() { 0 } else { described.epoch };
        }
    }

    /// Everything that is under way ends and nothing else happens: everybody gets what it is to have.
    fn settle(&mut self, seen: &mut Seen) {
        let seed = self.seed;
        self.calm = usize::MAX;
        for _ in 0..150 {
            self.ended.finish(&mut self.h);
            self.read_answers(seen);
            for number in 0..self.clients.len() {
                if let Some(told) = self.clients[number].told.take() {
                    self.clients[number].owned = told;
                }
                match self.clients[number].phase {
                    Phase::Waiting(_) => {}
                    Phase::Out => self.join(number),
                    Phase::Joined => self.sync(number),
                    Phase::In if self.clients[number].speaks_classic => self.classic_heartbeat(number),
                    Phase::In => {
                        self.clients[number].full = true;
                        self.heartbeat(number);
                    }
                }
                self.read_answers(seen);
            }
            self.h.advance(1_100);
        }
        for client in &self.clients {
            assert_ne!(client.phase, Phase::Out, "seed {seed}: {client:?} never gets in");
        }
        let mut wanted = Places::new();
        for (name, count) in NAMES.into_iter().zip(self.topics) {
            let subscribed = |client: &Client| match client.speaks_classic {
                true => name == "t",
                false => client.topics.iter().any(|topic| topic == name),
            };
            if self.clients.iter().any(subscribed) {
                wanted.extend((0..count).map(|partition| (topic_id(name), partition)));
            }
        }
        let owned: Places = self.clients.iter().flat_map(|client| client.owned.iter().copied()).collect();
        assert_eq!(owned, wanted, "seed {seed}: all of it belongs to somebody; {:?}", self.clients);
        let classic = self.clients.iter().filter(|client| client.speaks_classic).count();
        if classic < self.clients.len() {
            assert_eq!(self.h.consumer_state(), "Stable", "seed {seed}");
            seen.settled += 1;
            seen.settled_mixed += usize::from(classic > 0);
        } else {
            assert_eq!(self.h.state(), "Stable", "seed {seed}");
        }
    }
}

impl Client {
    /// The answer to its last request is lost. What it has been told before may not be its any more: it has said since that it
    /// does not read from that yet, so that others may have been given it.
    fn ask_again(&mut self) {
        (self.phase, self.full) = (Phase::In, true);
        self.told = None;
    }

    /// Without partitions and outside of the group.
    fn start_over(&mut self) {
        self.phase = Phase::Out;
        self.owned.clear();
        self.told = None;
        self.epoch = 0;
        self.leads.clear();
    }
}

#[test]
fn whatever_happens_partitions_have_one_owner_and_get_one() {
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
    assert!(seen.answers > 5_000 && seen.classic_answers > 100, "{seen:?}");
    assert!(seen.upgrades > 8 && seen.downgrades > 8, "{seen:?}");
    assert!(seen.moved > 150 && seen.restarts > 40, "{seen:?}");
    assert!(seen.settled > 30 && seen.settled_mixed > 10, "{seen:?}");
    for error in ["UnknownMemberId", "UnreleasedInstanceId", "NotCoordinator", "RebalanceInProgress"] {
        assert!(seen.refused.contains(error), "{error} {seen:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_history() {
    for seed in 0..5 {
        let run = || History::new(seed).run(&mut Seen::default());
        assert_eq!(run(), run(), "seed {seed}");
    }
}
