//! Members of a streams group (KIP-1071): an application of two subtopologies, whose repartition and changelog topics the
//! broker makes. Members join, work on the tasks that they are told, commit, fall silent, die and come back, and leave.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use doze::protocol::ErrorCode;
use doze::protocol::messages::find_coordinator::FindCoordinatorRequest;
use doze::protocol::messages::streams_group_heartbeat::{
    KeyValue, RequestTaskIds, ResponseTaskIds, StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse,
    Subtopology, TopicInfo, Topology,
};

use super::consumer_group::commit;
use super::standing::{Standing, now_ms};
use super::{Client, Work, error, is_of_the_moment};
use crate::model::{Task, TopicState};
use crate::net::Connection;
use crate::register::WriteId;
use crate::world::World;

const GROUP: &str = "streams";
/// What the application reads.
pub const SOURCE: &str = "keep";
const REPARTITION: &str = "streams-repartition";
const CHANGELOG: &str = "streams-changelog";
/// Partitions of the application's own topics, and tasks of the subtopology that reads them.
const TASKS: i32 = 3;
/// How long a member may be silent.
pub const SESSION_MS: u64 = 2500;

/// `StreamsStatus` on the wire.
const MISSING_SOURCE_TOPICS: i8 = 1;
const MISSING_INTERNAL_TOPICS: i8 = 3;

pub struct Member {
    name: String,
    /// Rises when the process is another.
    incarnation: u32,
    standing: Standing,
    active: BTreeSet<Task>,
    standby: BTreeSet<Task>,
}

fn topology() -> Topology {
    let infinite = KeyValue { key: "retention.ms".into(), value: "-1".into() };
    let repartition =
        TopicInfo { name: REPARTITION.into(), partitions: TASKS, topic_configs: vec![infinite], ..Default::default() };
    let reads = Subtopology {
        subtopology_id: "0".into(),
        source_topics: vec![SOURCE.into()],
        repartition_sink_topics: vec![REPARTITION.into()],
        ..Default::default()
    };
    let counts = Subtopology {
        subtopology_id: "1".into(),
        repartition_source_topics: vec![repartition],
        state_changelog_topics: vec![TopicInfo { name: CHANGELOG.into(), ..Default::default() }],
        ..Default::default()
    };
    Topology { epoch: 0, subtopologies: vec![reads, counts] }
}

/// The topics that the broker makes for the application, as they are to be.
fn internal_topics() -> [(&'static str, TopicState); 2] {
    let retention = BTreeMap::from([("retention.ms".to_owned(), "-1".to_owned())]);
    [
        (REPARTITION, TopicState { partitions: TASKS, configs: retention }),
        (CHANGELOG, TopicState { partitions: TASKS, configs: BTreeMap::new() }),
    ]
}

impl Member {
    pub fn new(n: u64) -> Self {
        Member::named(&format!("streams-{n}"))
    }

    fn named(name: &str) -> Self {
        Member {
            name: name.to_owned(),
            incarnation: 0,
            standing: Standing::default(),
            active: BTreeSet::new(),
            standby: BTreeSet::new(),
        }
    }

    async fn step(&mut self, connection: &Connection) {
        if !self.standing.is_in() {
            return self.beat(connection).await;
        }
        match connection.draw(|prng| prng.below(40)) {
            0..24 => self.beat(connection).await,
            24..32 => self.commit(connection).await,
            32..34 => self.leave(connection).await,
            34..36 => {
                connection.note("dies and comes back");
                connection.world.count("streams: members that died and came back");
                connection.hang_up();
                self.let_go(connection);
                self.incarnation += 1;
            }
            36 => {
                connection.note("is silent");
                tokio::time::sleep(Duration::from_millis(SESSION_MS + 200)).await;
            }
            37..39 => self.be_wrong(connection).await,
            _ => connection.hang_up(),
        }
    }

    /// It works on nothing any more, and is out of the group, whoever says so.
    fn let_go(&mut self, connection: &Connection) {
        self.standing.let_go();
        self.active.clear();
        self.standby.clear();
        connection.world.model.borrow_mut().task_owners.retain(|_, (owner, _)| *owner != self.name);
    }

    fn request(&self) -> StreamsGroupHeartbeatRequest {
        let joins = !self.standing.is_in();
        StreamsGroupHeartbeatRequest {
            group_id: GROUP.into(),
            member_id: self.name.clone(),
            member_epoch: self.standing.epoch,
            rebalance_timeout_ms: if joins { 60_000 } else { -1 },
            topology: joins.then(topology),
            process_id: joins.then(|| format!("{}-{}", self.name, self.incarnation)),
            active_tasks: Some(requested(&self.active)),
            standby_tasks: Some(requested(&self.standby)),
            warmup_tasks: Some(vec![]),
            ..Default::default()
        }
    }

    async fn beat(&mut self, connection: &Connection) {
        let world = &connection.world;
        if !self.standing.is_in() {
            // As clients do. Before anybody has, there is no coordinator for a group that nobody knows.
            let request = FindCoordinatorRequest { coordinator_keys: vec![GROUP.into()], ..Default::default() };
            connection.call(4, &request).await;
        }
        let has_source = world.model.borrow().id_of(SOURCE).is_some();
        let (made, had_all) = internal_topics_begin(world);
        world.model.borrow_mut().inside_streams.insert(self.name.clone());
        let asked = self.standing.asks(connection, GROUP);
        let answer = connection.call(0, &self.request()).await;
        let is_ok = answer.as_ref().is_some_and(|answer| answer.error_code == 0);
        let statuses: Vec<(i8, String)> = answer
            .iter()
            .flat_map(|answer| answer.status.iter().flatten())
            .map(|status| (status.status_code, status.status_detail.clone()))
            .collect();
        let misses = |code| statuses.iter().any(|(status, _)| *status == code);
        let has_failed = answer.is_some() && !is_ok || statuses.iter().any(|(_, why)| why.contains("Creation failed"));
        let all_there = is_ok && !misses(MISSING_SOURCE_TOPICS) && !misses(MISSING_INTERNAL_TOPICS);
        if !has_failed {
            // Otherwise what failed may be found by the next process.
            internal_topics_end(world, made, all_there);
        }
        if (has_source && misses(MISSING_SOURCE_TOPICS)) || (had_all && misses(MISSING_INTERNAL_TOPICS)) {
            world.violate(format!("streams group: topics that are there are missed: {statuses:?}"));
        }
        let Some(answer) = answer else { return };
        match error(answer.error_code) {
            ErrorCode::None => self.standing.heard(connection, GROUP, answer.member_epoch, asked),
            error => {
                if self.standing.refused(connection, error, asked, SESSION_MS) {
                    self.let_go(connection);
                }
                return;
            }
        }
        world.count("streams: heartbeats answered");
        self.take(connection, answer, asked.ms + SESSION_MS);
    }

    /// Takes over the tasks that it is told, if it is; what it has is its own for certain until `until_ms`.
    fn take(&mut self, connection: &Connection, answer: StreamsGroupHeartbeatResponse, until_ms: u64) {
        let world = &connection.world;
        if let (Some(active), Some(standby)) = (answer.active_tasks, answer.standby_tasks) {
            let (active, standby) = (told(&active), told(&standby));
            if active != self.active {
                world.count("streams: assignments of tasks that changed");
            }
            (self.active, self.standby) = (active, standby);
            connection.note(format_args!("has tasks {:?} in epoch {}", self.active, self.standing.epoch));
            if let Some(task) = self.active.intersection(&self.standby).next() {
                world.violate(format!("streams group: {} has {task:?} active and as a standby", self.name));
            }
        }
        let mut model = world.model.borrow_mut();
        model.task_owners.retain(|task, (owner, _)| *owner != self.name || self.active.contains(task));
        let mut taken = None;
        for task in &self.active {
            let before = model.task_owners.insert(task.clone(), (self.name.clone(), until_ms));
            let others = before.filter(|(owner, until_ms)| *owner != self.name && now_ms(connection) < *until_ms);
            taken = taken.or(others.map(|(owner, _)| (task.clone(), owner)));
        }
        drop(model);
        if let Some((task, owner)) = taken {
            world.violate(format!("streams group: {} is given task {task:?}, which {owner} has", self.name));
        }
    }

    async fn commit(&mut self, connection: &Connection) {
        let was_good = self.standing.is_good(now_ms(connection), SESSION_MS);
        let code = commit(connection, GROUP, &self.name, self.standing.epoch).await;
        let is_still_good = was_good && self.standing.is_good(now_ms(connection), SESSION_MS);
        match code {
            Some(ErrorCode::None) => connection.world.count("streams: offsets committed"),
            Some(error @ (ErrorCode::UnknownMemberId | ErrorCode::FencedMemberEpoch | ErrorCode::StaleMemberEpoch)) => {
                if is_still_good {
                    connection.world.violate(format!("streams group: {}'s commit is refused: {error:?}", self.name));
                }
                self.let_go(connection);
            }
            _ => {}
        }
    }

    async fn leave(&mut self, connection: &Connection) {
        let world = &connection.world;
        let epoch = self.standing.epoch;
        self.let_go(connection);
        let request = StreamsGroupHeartbeatRequest {
            group_id: GROUP.into(),
            member_id: self.name.clone(),
            member_epoch: -1,
            ..Default::default()
        };
        let answer = connection.call(0, &request).await.map(|answer| error(answer.error_code));
        connection.note(format_args!("leaves: {answer:?}"));
        if answer != Some(ErrorCode::None) {
            return;
        }
        world.model.borrow_mut().inside_streams.remove(&self.name);
        // One that has left and does not know it is told, and its commits are refused.
        if connection.draw(|prng| prng.chance(1, 2)) {
            let late = StreamsGroupHeartbeatRequest { member_epoch: epoch, ..request };
            self.is_told(connection, &late, ErrorCode::UnknownMemberId).await;
        } else if commit(connection, GROUP, &self.name, epoch).await == Some(ErrorCode::None) {
            world.violate(format!("streams group: {} has left, and its commit is taken", self.name));
        }
    }

    /// Comes with an epoch that it does not have yet.
    async fn be_wrong(&mut self, connection: &Connection) {
        if self.standing.is_good(now_ms(connection), SESSION_MS / 2) {
            let mut request = self.request();
            request.member_epoch += 50;
            self.is_told(connection, &request, ErrorCode::FencedMemberEpoch).await;
        }
    }

    async fn is_told(&self, connection: &Connection, request: &StreamsGroupHeartbeatRequest, expected: ErrorCode) {
        let world = &connection.world;
        match connection.call(0, request).await.map(|answer| error(answer.error_code)) {
            None => {}
            Some(error) if error == expected => world.count("members fenced that were told so"),
            Some(error) if is_of_the_moment(error) => {}
            Some(error) => {
                let epoch = request.member_epoch;
                world.violate(format!("streams group: {}, in epoch {epoch}, is told {error:?}", self.name));
            }
        }
    }
}

fn requested(tasks: &BTreeSet<Task>) -> Vec<RequestTaskIds> {
    let mut by_subtopology: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    tasks.iter().for_each(|(subtopology, partition)| by_subtopology.entry(subtopology).or_default().push(*partition));
    let ids = by_subtopology.into_iter();
    ids.map(|(id, partitions)| RequestTaskIds { subtopology_id: id.to_owned(), partitions }).collect()
}

fn told(tasks: &[ResponseTaskIds]) -> BTreeSet<Task> {
    tasks.iter().flat_map(|ids| ids.partitions.iter().map(|n| (ids.subtopology_id.clone(), *n))).collect()
}

/// A heartbeat may have the broker make the application's topics. Gives what is noted of that, and whether all of them were
/// there before for certain.
fn internal_topics_begin(world: &World) -> (Vec<(&'static str, WriteId)>, bool) {
    let mut made = Vec::new();
    for (name, state) in internal_topics() {
        if world.model.borrow().id_of(name).is_none() {
            let now = world.now();
            made.push((name, world.model.borrow_mut().topic(name).begin(Some(state), now)));
        }
    }
    let had_all = made.is_empty();
    (made, had_all)
}

fn internal_topics_end(world: &World, made: Vec<(&'static str, WriteId)>, all_there: bool) {
    for (name, write) in made {
        let now = world.now();
        let mut model = world.model.borrow_mut();
        match all_there {
            true => model.topic(name).acknowledged(write, now),
            false => model.topic(name).unknown(write, now),
        }
    }
}

/// How many tasks there are.
fn all_tasks(world: &World) -> Option<BTreeSet<Task>> {
    let (_, sources) = world.model.borrow().id_of(SOURCE)?;
    let of = |id: &'static str, count: i32| (0..count).map(move |n| (id.to_owned(), n));
    Some(of("0", sources).chain(of("1", TASKS)).collect())
}

/// At rest: everybody who may be in the group comes back, and when things have calmed down each task is with one of them.
pub async fn calm_down(connection: &Connection) {
    let world = &connection.world;
    let inside = world.model.borrow().inside_streams.clone();
    let Some(all) = all_tasks(world).filter(|_| !inside.is_empty()) else { return };
    let mut members: Vec<Member> =
        inside.iter().map(|name| Member { incarnation: 1000, ..Member::named(name) }).collect();
    members.iter_mut().for_each(|member| member.let_go(connection));
    for _ in 0..8 {
        for member in &mut members {
            member.beat(connection).await;
        }
    }
    let has: BTreeSet<Task> = members.iter().flat_map(|member| member.active.iter().cloned()).collect();
    let count: usize = members.iter().map(|member| member.active.len()).sum();
    world.count("streams: groups that have calmed down");
    if has != all || count != all.len() {
        let each: Vec<_> = members.iter().map(|member| (&member.name, &member.active)).collect();
        world.violate(format!(
            "streams group: things are calm, and its tasks are {all:?}, and its members have {each:?}"
        ));
    }
}

impl Client for Member {
    fn name(&self) -> &str {
        &self.name
    }

    fn live<'a>(&'a mut self, connection: &'a Connection) -> Work<'a> {
        Box::pin(async move {
            self.standing.restarted();
            loop {
                connection.think().await;
                self.step(connection).await;
            }
        })
    }
}
