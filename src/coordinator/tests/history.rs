//! Random histories: clients join, sync, commit, leave, die and come back, writes fail or take their time, topics and groups are deleted, the broker restarts. Whatever happens, what the coordinator promises holds.
//!
//! `DOZE_SEED=n` runs the history of one seed alone.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::*;

const STEPS: usize = 600;
const HISTORIES: u64 = 160;

#[derive(Clone, Debug, PartialEq)]
enum Phase {
    Out,
    Joining(Token),
    Joined,
    Syncing(Token),
    In,
}

#[derive(Debug)]
struct Client {
    instance: Option<String>,
    protocols: Vec<Protocol>,
    phase: Phase,
    member_id: String,
    generation: i32,
    /// For a leader: what it is going to assign.
    assignments: Vec<(String, Bytes)>,
}

/// What a request that is not answered yet was about.
#[derive(Clone, Debug)]
enum Asked {
    Join { client: usize },
    Sync { client: usize, generation: i32, name: String },
    Leave,
    Commit { partition: i32, value: i64 },
    Delete { partitions: Vec<i32>, at: i64 },
    Fetch,
}

/// How often what happened in all histories together; a run in which something never happened proves nothing about it.
#[derive(Debug, Default)]
struct Seen {
    generations: usize,
    assignments: usize,
    replaced: usize,
    commits: usize,
    failed_commits: usize,
    failed_assignments: usize,
    deleted_groups: usize,
    restarts: usize,
    refused: BTreeSet<String>,
}

struct History {
    seed: u64,
    random: SeededRandom,
    /// Of so many things that a client may do, one is to die, one to leave, and so on; the rest is its work.
    calm: usize,
    h: Harness,
    clients: Vec<Client>,
    /// Writes that have ended, and what the coordinator has not been told of yet.
    ended: Vec<(WriteId, Result<(), WriteFailed>)>,
    asked: BTreeMap<Token, Asked>,
    /// Everything that is committed or removed has a number of its own, later ones higher. A committed offset is its number.
    clock: i64,
    /// By partition: the latest commit or removal that has been acknowledged.
    acknowledged: HashMap<i32, i64>,
    /// By partition: the latest removal that has been asked for.
    removing: HashMap<i32, i64>,
    failed: BTreeSet<i64>,
    /// The highest generation somebody was told of since the last restart, and the highest that is known to be durable.
    told: i32,
    durable: i32,
    /// Who was told to lead a generation, since the last restart.
    leaders: HashMap<i32, String>,
    digest: DefaultHasher,
}

impl History {
    fn new(seed: u64) -> Self {
        let random = SeededRandom::new(seed);
        let config = Config {
            initial_rebalance_delay_ms: [0, 3_000][random.below(2)],
            max_size: [3, 100][random.below(2)],
            new_member_join_timeout_ms: 40_000,
            ..Config::default()
        };
        let mut h = Harness::with(config);
        h.prompt = false;
        // In some histories two clients claim the same instance.
        let instances = [4, 6][random.below(2)];
        let clients = (0..6usize)
            .map(|number| Client {
                instance: number.is_multiple_of(2).then(|| format!("instance {}", number % instances)),
                protocols: vec![protocol("range"), protocol("sticky")],
                phase: Phase::Out,
                member_id: String::new(),
                generation: -1,
                assignments: vec![],
            })
            .collect();
        History {
            seed,
            calm: [10, 60][random.below(2)],
            random,
            h,
            clients,
            ended: Vec::new(),
            asked: BTreeMap::new(),
            clock: 0,
            acknowledged: HashMap::new(),
            removing: HashMap::new(),
            failed: BTreeSet::new(),
            told: 0,
            durable: 0,
            leaders: HashMap::new(),
            digest: DefaultHasher::new(),
        }
    }

    fn run(mut self, seen: &mut Seen) -> u64 {
        for _ in 0..STEPS {
            match self.random.below(100) {
                0..60 => {
                    let client = self.random.below(self.clients.len());
                    self.client_step(client);
                }
                60..75 => self.write_step(),
                75..80 => self.fetch(),
                80..98 => {
                    let slow = if self.calm > 10 { 4 } else { 6 };
                    let ms = [50, 500, 500, 2_000, 2_000, 9_000][self.random.below(slow)];
                    self.h.advance(ms);
                }
                98 => {
                    // Sometimes when everybody has fallen silent, and the group is empty.
                    self.h.advance([0, 60_000][self.random.below(2)]);
                    self.read_answers(seen);
                    self.administer();
                }
                _ => self.restart(seen),
            }
            self.read_answers(seen);
        }
        self.settle(seen);
        self.digest.finish()
    }

    fn client_step(&mut self, number: usize) {
        let choice = self.random.below(self.calm);
        let client = &self.clients[number];
        match (client.phase.clone(), choice) {
            (Phase::Out, _) => self.join(number),
            // Gives up waiting and asks again, or dies, with or without a memory.
            (Phase::Joining(_), 0) => self.join(number),
            (Phase::Joining(_) | Phase::Syncing(_), 1) => self.clients[number].phase = Phase::Out,
            (Phase::Joining(_) | Phase::Syncing(_), _) => {}
            (Phase::Joined, 0) | (Phase::In, 0) => {
                self.clients[number].phase = Phase::Out;
                self.clients[number].member_id.clear();
            }
            (Phase::Joined, _) => self.sync(number),
            (Phase::In, 1) => self.join(number),
            (Phase::In, 2) => {
                let metadata: Bytes = subscription(&[["t", "u"][self.random.below(2)]]).into();
                self.clients[number].protocols[0].metadata = metadata;
                self.join(number);
            }
            (Phase::In, 3) => {
                let (id, instance) = (client.member_id.clone(), client.instance.clone());
                let token = self.h.leave(&[(&id, instance.as_deref())]);
                self.asked.insert(token, Asked::Leave);
                self.clients[number].phase = Phase::Out;
                self.clients[number].member_id.clear();
            }
            // A static member starts anew and is back before anybody misses it.
            (Phase::In, 4..8) if client.instance.is_some() => {
                self.clients[number].member_id.clear();
                self.join(number);
            }
            (Phase::In, _) if choice.is_multiple_of(2) => self.commit(number),
            (Phase::In, _) => self.heartbeat(number),
        }
    }

    fn join(&mut self, number: usize) {
        let client = &self.clients[number];
        let request = JoinRequest {
            member_id: client.member_id.clone(),
            group_instance_id: client.instance.clone(),
            protocols: client.protocols.clone(),
            member_id_required: !number.is_multiple_of(3),
            can_skip_assignment: number.is_multiple_of(4),
            rebalance_timeout_ms: 20_000,
            ..joining()
        };
        let token = self.h.join(request);
        self.asked.insert(token, Asked::Join { client: number });
        self.clients[number].phase = Phase::Joining(token);
    }

    fn sync(&mut self, number: usize) {
        let client = &self.clients[number];
        let request = SyncRequest {
            group_id: "g".into(),
            generation_id: client.generation,
            member_id: client.member_id.clone(),
            group_instance_id: client.instance.clone(),
            protocol_type: Some("consumer".into()),
            protocol_name: None,
            assignments: client.assignments.clone(),
        };
        let name = client.instance.clone().unwrap_or_else(|| client.member_id.clone());
        let asked = Asked::Sync { client: number, generation: client.generation, name };
        let token = self.h.sync_with(request);
        self.asked.insert(token, asked);
        self.clients[number].phase = Phase::Syncing(token);
    }

    fn heartbeat(&mut self, number: usize) {
        let client = &self.clients[number];
        let request = HeartbeatRequest {
            group_id: "g".into(),
            generation_id: client.generation,
            member_id: client.member_id.clone(),
            group_instance_id: client.instance.clone(),
        };
        if let Err(error) = self.h.coordinator.heartbeat(self.h.now(), &request) {
            self.refused(number, error);
        }
    }

    fn commit(&mut self, number: usize) {
        let client = &self.clients[number];
        self.clock += 1;
        let partition = self.random.below(3) as i32;
        let request = CommitRequest {
            member_id: client.member_id.clone(),
            group_instance_id: client.instance.clone(),
            generation_id: client.generation,
            ..committing(partition, self.clock)
        };
        let asked = Asked::Commit { partition, value: self.clock };
        let token = self.h.commit(request);
        self.asked.insert(token, asked);
    }

    fn fetch(&mut self) {
        let require_stable = self.random.below(2) == 0;
        let topics = Some(vec![("t".to_owned(), vec![0, 1, 2])]);
        let token = self.h.token();
        self.asked.insert(token, Asked::Fetch);
        let request = FetchOffsetsRequest { group_id: "g".into(), topics, require_stable };
        let actions = self.h.coordinator.fetch_offsets(token, request);
        self.h.take(actions);
    }

    fn administer(&mut self) {
        self.clock += 1;
        let at = self.clock;
        let partitions = match self.random.below(3) {
            0 => vec![self.random.below(3) as i32],
            _ => vec![0, 1, 2],
        };
        for partition in &partitions {
            self.removing.insert(*partition, at);
        }
        let token = self.h.token();
        let now = self.h.now();
        let actions = if partitions.len() == 1 {
            let topics = vec![("t".to_owned(), partitions.clone())];
            self.asked.insert(token, Asked::Delete { partitions, at });
            self.h.coordinator.delete_offsets(now, token, DeleteOffsetsRequest { group_id: "g".into(), topics })
        } else if self.random.below(2) == 0 {
            self.asked.insert(token, Asked::Delete { partitions, at });
            self.h.coordinator.delete_group(now, token, "g")
        } else {
            self.h.coordinator.topic_deleted(now, "t")
        };
        self.h.take(actions);
    }

    /// A write reaches the disk or fails; a completion is told.
    fn write_step(&mut self) {
        for _ in 0..self.random.below(self.h.writes.len() + 1) {
            let write = self.h.writes.pop_front().expect("there are that many");
            let outcome = if self.random.below(8) == 0 { Err(WriteFailed) } else { Ok(()) };
            if outcome.is_ok() {
                self.h.disk.apply(&write);
            }
            self.ended.push((write.id, outcome));
        }
        for _ in 0..self.random.below(self.ended.len() + 1) {
            let (id, outcome) = self.ended.swap_remove(self.random.below(self.ended.len()));
            let actions = self.h.coordinator.persisted(self.h.now(), id, outcome);
            self.h.take(actions);
        }
    }

    /// The broker dies and comes back. What was asked is never answered, and clients ask again.
    fn restart(&mut self, seen: &mut Seen) {
        if self.random.below(3) > 0 {
            return;
        }
        self.read_answers(seen);
        seen.restarts += 1;
        self.ended.clear();
        self.asked.clear();
        let config = self.h.coordinator.config.clone();
        self.h.restart(config);
        self.told = self.durable;
        self.leaders.clear();
        for client in &mut self.clients {
            if matches!(client.phase, Phase::Joining(_) | Phase::Syncing(_)) {
                client.phase = Phase::Out;
            }
        }
    }

    fn read_answers(&mut self, seen: &mut Seen) {
        for (token, reply) in std::mem::take(&mut self.h.replies) {
            format!("{token} {reply:?}").hash(&mut self.digest);
            let asked = self.asked.remove(&token).expect("only what was asked is answered");
            self.read_answer(token, asked, reply, seen);
        }
        if self.h.coordinator.describe("g").is_none() {
            // Whoever comes next starts from nothing.
            (self.told, self.durable) = (0, 0);
            self.leaders.clear();
        }
        self.h.coordinator.check();
    }

    fn read_answer(&mut self, token: Token, asked: Asked, reply: Reply, seen: &mut Seen) {
        let seed = self.seed;
        match (asked, reply) {
            (Asked::Join { client }, Reply::Join(Ok(joined))) => self.has_joined(token, client, joined, seen),
            (Asked::Join { client }, Reply::Join(Err(refused))) => {
                seen.refused.insert(format!("{:?}", refused.error));
                if self.clients[client].phase == Phase::Joining(token) {
                    if refused.error == Error::MemberIdRequired {
                        self.clients[client].member_id = refused.member_id;
                        self.clients[client].phase = Phase::Out;
                    } else {
                        self.refused(client, refused.error);
                    }
                }
            }
            (Asked::Sync { client, generation, name }, Reply::Sync(Ok(synced))) => {
                seen.assignments += 1;
                assert_eq!(
                    synced.assignment,
                    format!("{generation} {name}"),
                    "seed {seed}: somebody else's assignment"
                );
                self.durable = self.durable.max(generation);
                if self.clients[client].phase == Phase::Syncing(token) {
                    self.clients[client].phase = Phase::In;
                }
            }
            (Asked::Sync { client, .. }, Reply::Sync(Err(error))) => {
                seen.refused.insert(format!("{error:?}"));
                seen.failed_assignments += usize::from(error == Error::NotCoordinator);
                if self.clients[client].phase == Phase::Syncing(token) {
                    self.refused(client, error);
                }
            }
            (Asked::Commit { partition, value }, Reply::Commit(Ok(_))) => {
                seen.commits += 1;
                let latest = self.acknowledged.entry(partition).or_default();
                *latest = value.max(*latest);
            }
            (Asked::Commit { value, .. }, Reply::Commit(Err(error))) => {
                seen.failed_commits += usize::from(error == Error::NotCoordinator);
                self.failed.insert(value);
            }
            (Asked::Delete { partitions, at }, Reply::DeleteGroup(Ok(()))) => {
                seen.deleted_groups += 1;
                self.has_removed(partitions, at);
            }
            (Asked::Delete { partitions, at }, Reply::DeleteOffsets(Ok(outcomes))) => {
                if outcomes[0].1[0].1.is_ok() {
                    self.has_removed(partitions, at);
                }
            }
            (Asked::Delete { .. }, Reply::DeleteGroup(Err(_)) | Reply::DeleteOffsets(Err(_))) => {}
            (Asked::Leave, Reply::Leave(_)) => {}
            (Asked::Fetch, Reply::FetchOffsets(fetched)) => {
                for (partition, stored) in &fetched[0].1 {
                    self.check_fetched(*partition, stored.as_ref().unwrap().as_ref().map(|stored| stored.offset));
                }
            }
            (asked, reply) => panic!("seed {seed}: {asked:?} is answered with {reply:?}"),
        }
    }

    fn has_joined(&mut self, token: Token, client: usize, joined: Joined, seen: &mut Seen) {
        let seed = self.seed;
        assert!(
            joined.generation_id >= self.told,
            "seed {seed}: generation {} after {}",
            joined.generation_id,
            self.told
        );
        let new = joined.generation_id > self.told;
        seen.generations += usize::from(new);
        self.told = joined.generation_id;
        let leads = !joined.members.is_empty() && !joined.skip_assignment;
        if leads {
            assert_eq!(joined.leader, joined.member_id, "seed {seed}: only the leader is told the members");
            let ids: BTreeSet<&str> = joined.members.iter().map(|member| member.member_id.as_str()).collect();
            assert!(ids.len() == joined.members.len() && ids.contains(joined.member_id.as_str()), "seed {seed}");
            let leader = self.leaders.entry(joined.generation_id).or_insert_with(|| joined.member_id.clone());
            assert_eq!(*leader, joined.member_id, "seed {seed}: two lead generation {}", joined.generation_id);
        }
        let client = &mut self.clients[client];
        if client.phase != Phase::Joining(token) {
            return;
        }
        let quietly = !new && self.h.coordinator.describe("g").is_some_and(|group| group.state == "Stable");
        seen.replaced += usize::from(quietly && client.instance.is_some() && client.member_id != joined.member_id);
        let assign = |member: &JoinedMember| {
            let name = member.group_instance_id.as_ref().unwrap_or(&member.member_id);
            (member.member_id.clone(), Bytes::from(format!("{} {name}", joined.generation_id)))
        };
        client.assignments = if leads { joined.members.iter().map(assign).collect() } else { vec![] };
        client.member_id = joined.member_id;
        client.generation = joined.generation_id;
        client.phase = Phase::Joined;
    }

    fn has_removed(&mut self, partitions: Vec<i32>, at: i64) {
        for partition in partitions {
            let latest = self.acknowledged.entry(partition).or_default();
            *latest = at.max(*latest);
        }
    }

    /// What is read is what was acknowledged last, or something that was asked for later and has not failed.
    fn check_fetched(&self, partition: i32, value: Option<i64>) {
        let acknowledged = self.acknowledged.get(&partition).copied().unwrap_or(0);
        let removing = self.removing.get(&partition).copied().unwrap_or(0);
        let seed = self.seed;
        match value {
            Some(value) => {
                assert!(value >= acknowledged, "seed {seed}: {value} is read after {acknowledged} was acknowledged");
                assert!(!self.failed.contains(&value), "seed {seed}: {value} is read and was refused");
            }
            None => assert!(removing >= acknowledged, "seed {seed}: nothing is read, {acknowledged} was acknowledged"),
        }
    }

    fn refused(&mut self, client: usize, error: Error) {
        let client = &mut self.clients[client];
        client.phase = Phase::Out;
        if matches!(error, Error::UnknownMemberId | Error::FencedInstanceId) {
            client.member_id.clear();
        }
    }

    /// Everything that is under way ends, and everybody falls silent: every request has an answer and nothing is left over.
    fn settle(&mut self, seen: &mut Seen) {
        for _ in 0..100 {
            self.h.advance(60_000);
            while let Some(write) = self.h.writes.pop_front() {
                self.h.disk.apply(&write);
                self.ended.push((write.id, Ok(())));
            }
            while let Some((id, outcome)) = self.ended.pop() {
                let actions = self.h.coordinator.persisted(self.h.now(), id, outcome);
                self.h.take(actions);
            }
            self.read_answers(seen);
        }
        let seed = self.seed;
        assert!(self.asked.is_empty(), "seed {seed}: never answered: {:?}", self.asked);
        self.fetch();
        self.read_answers(seen);
        assert_eq!(self.h.coordinator.timers.len(), 1, "seed {seed}: only the clean-up is due");
        assert!(!self.h.coordinator.writes.busy("g"), "seed {seed}");
        // Memory says what the disk says.
        let offsets: Vec<i64> =
            self.h.coordinator.offsets.partitions("g").map(|(_, partition)| partition.into()).collect();
        let on_disk: Vec<i64> = self.h.disk.offsets.keys().map(|(_, _, partition)| (*partition).into()).collect();
        assert_eq!(offsets, on_disk, "seed {seed}");
        assert!(matches!(self.h.state(), "Empty" | "none"), "seed {seed}: {}", self.h.state());
    }
}

#[test]
fn whatever_happens_the_promises_hold() {
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
    assert!(seen.generations > 500, "{seen:?}");
    assert!(seen.assignments > 500, "{seen:?}");
    assert!(seen.replaced > 10, "{seen:?}");
    assert!(seen.commits > 200, "{seen:?}");
    assert!(seen.failed_commits > 20, "{seen:?}");
    assert!(seen.failed_assignments > 20, "{seen:?}");
    assert!(seen.deleted_groups > 10, "{seen:?}");
    assert!(seen.restarts > 50, "{seen:?}");
    for error in ["FencedInstanceId", "UnknownMemberId", "RebalanceInProgress", "GroupMaxSizeReached", "NotCoordinator"]
    {
        assert!(seen.refused.contains(error), "{seen:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_history() {
    for seed in 0..5 {
        let run = || History::new(seed).run(&mut Seen::default());
        assert_eq!(run(), run(), "seed {seed}");
    }
}
