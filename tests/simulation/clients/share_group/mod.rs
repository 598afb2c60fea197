//! Members of a share group (KIP-932): each takes records, accepts, releases or rejects some of them, in part and in turn,
//! renews locks and lets others run out, loses its connection, ends its session, leaves.

mod records;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use doze::protocol::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use doze::protocol::messages::share_group_heartbeat::ShareGroupHeartbeatRequest;
use doze::protocol::{ErrorCode, Uuid};

use super::standing::Standing;
use super::{Client, Work, error, is_of_the_moment};
use crate::net::Connection;
use crate::share_model::{ACCEPT, GAP, LOCK_MS, MOST_DELIVERIES};
use crate::world::Canary;
use records::{Got, Said, Terms};

pub const GROUP: &str = "shares";
/// The topic that the group subscribes to. It has transactions, and its oldest records are deleted at times.
pub const TOPIC: &str = "keep";
const SESSION_MS: u64 = 2500;
/// How many members there are at most.
pub const MOST_MEMBERS: u64 = 3;

type Place = (Uuid, i32);

pub struct Member {
    name: String,
    standing: Standing,
    assigned: BTreeSet<Place>,
    /// The epoch of the next request of its share session; 0 opens one.
    session: i32,
    /// What the session fetches from.
    in_session: BTreeSet<Place>,
    held: BTreeMap<Place, BTreeMap<i64, Got>>,
}

impl Member {
    pub fn new(n: u64) -> Self {
        Member::named(&format!("share-{n}"))
    }

    fn named(name: &str) -> Self {
        Member {
            name: name.to_owned(),
            standing: Standing::default(),
            assigned: BTreeSet::new(),
            session: 0,
            in_session: BTreeSet::new(),
            held: BTreeMap::new(),
        }
    }

    async fn step(&mut self, connection: &Connection) {
        let world = &connection.world;
        if !world.model.borrow().share.is_configured {
            return configure(connection).await;
        }
        let (is_closing, is_inside) = {
            let share = &world.model.borrow().share;
            (share.is_closing, share.inside.contains(&self.name))
        };
        if is_closing {
            if is_inside {
                self.leave(connection).await;
            }
            return;
        }
        if !self.standing.is_in() || self.assigned.is_empty() {
            return self.beat(connection).await;
        }
        match connection.draw(|prng| prng.below(40)) {
            0..6 => self.beat(connection).await,
            6..22 => {
                let said =
                    if connection.draw(|prng| prng.chance(1, 2)) { self.draw_said(connection) } else { Said::new() };
                self.fetch(connection, said, Terms::drawn(connection)).await;
            }
            22..32 => {
                let said = self.draw_said(connection);
                if !said.is_empty() {
                    self.acknowledge(connection, said, false).await;
                }
            }
            32..34 => self.renew(connection).await,
            34 => {
                connection.note("lets its locks run out");
                world.count("share: locks that ran out or were to");
                let past_all = connection.draw(|prng| prng.chance(2, 3));
                tokio::time::sleep(Duration::from_millis(if past_all { LOCK_MS + 100 } else { LOCK_MS * 3 / 4 })).await;
                let said = self.draw_said(connection);
                if !said.is_empty() {
                    self.acknowledge(connection, said, false).await;
                }
            }
            35..37 => {
                connection.note("loses its connection");
                connection.hang_up();
                self.session_ended(connection);
            }
            37 => self.end_session(connection).await,
            38 => self.be_wrong(connection).await,
            _ => self.leave(connection).await,
        }
    }

    /// What it had is somebody else's from here on.
    fn session_ended(&mut self, connection: &Connection) {
        self.session = 0;
        self.in_session.clear();
        self.held.clear();
        connection.world.model.borrow_mut().share.partitions.values_mut().for_each(|of| of.session_ended(&self.name));
    }

    async fn beat(&mut self, connection: &Connection) {
        let world = &connection.world;
        let joins = !self.standing.is_in();
        let asked = self.standing.asks(connection, GROUP);
        world.model.borrow_mut().share.inside.insert(self.name.clone());
        let request = ShareGroupHeartbeatRequest {
            group_id: GROUP.into(),
            member_id: self.name.clone(),
            member_epoch: self.standing.epoch,
            subscribed_topic_names: joins.then(|| vec![TOPIC.into()]),
            ..Default::default()
        };
        let Some(answer) = connection.call(1, &request).await else {
            return self.session_ended(connection);
        };
        match error(answer.error_code) {
            ErrorCode::None => self.standing.heard(connection, GROUP, answer.member_epoch, asked),
            error => {
                if self.standing.refused(connection, error, asked, SESSION_MS) {
                    self.assigned.clear();
                }
                return;
            }
        }
        world.count("share: heartbeats answered");
        if let Some(assignment) = answer.assignment {
            let listed = assignment.topic_partitions.iter();
            self.assigned = listed.flat_map(|of| of.partitions.iter().map(|n| (of.topic_id, *n))).collect();
            connection.note(format_args!("has {:?} in epoch {}", self.assigned.len(), self.standing.epoch));
        }
    }

    async fn leave(&mut self, connection: &Connection) {
        let world = &connection.world;
        let was_in = std::mem::take(&mut self.standing);
        self.assigned.clear();
        let request = ShareGroupHeartbeatRequest {
            group_id: GROUP.into(),
            member_id: self.name.clone(),
            member_epoch: -1,
            ..Default::default()
        };
        let answer = connection.call(1, &request).await.map(|answer| error(answer.error_code));
        connection.note(format_args!("leaves: {answer:?}"));
        match answer {
            Some(ErrorCode::None | ErrorCode::UnknownMemberId | ErrorCode::GroupIdNotFound) => {
                world.model.borrow_mut().share.inside.remove(&self.name);
            }
            Some(_) => {}
            None => self.session_ended(connection),
        }
        // One that has left and does not know it is told.
        if answer == Some(ErrorCode::None) && was_in.is_in() && connection.draw(|prng| prng.chance(1, 3)) {
            let request = ShareGroupHeartbeatRequest { member_epoch: was_in.epoch, ..request };
            match connection.call(1, &request).await.map(|answer| error(answer.error_code)) {
                None => self.session_ended(connection),
                Some(ErrorCode::UnknownMemberId) => world.count("members fenced that were told so"),
                Some(error) if is_of_the_moment(error) => {}
                Some(error) => world.violate(format!("{}: it has left, and is told {error:?}", self.name)),
            }
        }
    }
}

/// Sets the group's configs: before, nobody may join.
async fn configure(connection: &Connection) {
    let world = &connection.world;
    let is_committed = world.seed.is_multiple_of(2);
    let lock_ms = if world.canary == Canary::ShortLocks { 1000 } else { LOCK_MS };
    let shown = if world.canary == Canary::ShownTooEarly { false } else { is_committed };
    let configs = [
        ("share.auto.offset.reset", "earliest".to_owned()),
        ("share.isolation.level", if shown { "read_committed" } else { "read_uncommitted" }.to_owned()),
        ("share.delivery.count.limit", MOST_DELIVERIES.to_string()),
        ("share.record.lock.duration.ms", lock_ms.to_string()),
        ("share.heartbeat.interval.ms", "500".to_owned()),
        ("share.session.timeout.ms", SESSION_MS.to_string()),
    ];
    let config = |(name, value): (&str, String)| AlterableConfig {
        name: name.to_owned(),
        config_operation: 0,
        value: Some(value),
    };
    let resource = AlterConfigsResource {
        resource_type: 32,
        resource_name: GROUP.to_owned(),
        configs: configs.into_iter().map(config).collect(),
    };
    let answer =
        connection.call(1, &IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() }).await;
    let code = answer.as_ref().map(|answer| error(answer.responses[0].error_code));
    connection.note(format_args!("configures the group: {code:?}"));
    match code {
        Some(ErrorCode::None) => {
            let mut model = world.model.borrow_mut();
            (model.share.is_configured, model.share.committed) = (true, is_committed);
        }
        Some(ErrorCode::InvalidConfig | ErrorCode::InvalidRequest) => {
            world.violate(format!("configs of a group are refused: {answer:?}"))
        }
        _ => {}
    }
}

/// At rest: those who are in the group leave, and one comes who takes and accepts all that there is. Answers what came.
pub async fn drain(connection: &Connection) -> BTreeMap<Place, BTreeSet<i64>> {
    let world = &connection.world;
    let mut came: BTreeMap<Place, BTreeSet<i64>> = BTreeMap::new();
    // One whose heartbeat was refused may be in the group after all since the last start.
    for n in 0..MOST_MEMBERS {
        Member::new(n).leave(connection).await;
    }
    let mut member = Member::named("drain");
    for _ in 0..3 {
        member.beat(connection).await;
    }
    let mut idle = 0;
    for _ in 0..10_000 {
        let mut said = Said::new();
        for (place, held) in &member.held {
            let of: Vec<_> =
                held.iter().map(|(offset, got)| (*offset, if got.is_record { ACCEPT } else { GAP }, *got)).collect();
            came.entry(*place).or_default().extend(held.keys());
            if !of.is_empty() {
                said.insert(*place, of);
            }
        }
        match member.fetch(connection, said, Terms::ALL).await {
            None => break,
            Some(0) => idle += 1,
            Some(_) => idle = 0,
        }
        if idle > 2 || world.violation().is_some() {
            break;
        }
    }
    member.end_session(connection).await;
    member.leave(connection).await;
    came
}

impl Client for Member {
    fn name(&self) -> &str {
        &self.name
    }

    fn live<'a>(&'a mut self, connection: &'a Connection) -> Work<'a> {
        Box::pin(async move {
            // Sessions and locks have gone with the process.
            self.session_ended(connection);
            self.standing.restarted();
            loop {
                connection.think().await;
                self.step(connection).await;
            }
        })
    }
}
