//! Members of a consumer group (KIP-848): what a member was told it owns nobody else is given until it has let it go.

use std::collections::BTreeSet;

use doze::protocol::messages::consumer_group_heartbeat::{ConsumerGroupHeartbeatRequest, RequestTopicPartitions};
use doze::protocol::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use doze::protocol::{ErrorCode, Uuid};

use super::{Client, Work, error, is_of_the_moment};
use crate::net::Connection;

const GROUP: &str = "consumers";
/// The topic that groups subscribe to.
const TOPIC: &str = "keep";

pub struct Member {
    name: String,
    /// 0 is one that is to join, or to join anew.
    epoch: i32,
    owned: BTreeSet<(Uuid, i32)>,
}

impl Member {
    pub fn new(n: u64) -> Self {
        Member { name: format!("consumer-{n}"), epoch: 0, owned: BTreeSet::new() }
    }

    /// It owns nothing any more, whoever says so.
    fn let_go(&mut self, connection: &Connection) {
        self.epoch = 0;
        self.owned.clear();
        connection.world.model.borrow_mut().owners.retain(|_, owner| *owner != self.name);
    }

    async fn step(&mut self, connection: &Connection) {
        match connection.draw(|prng| prng.below(12)) {
            0..5 if self.epoch > 0 => {
                let code = commit(connection, GROUP, &self.name, self.epoch).await;
                if matches!(code, Some(ErrorCode::UnknownMemberId | ErrorCode::FencedMemberEpoch)) {
                    self.let_go(connection);
                }
            }
            5 if self.epoch > 0 => {
                self.let_go(connection);
                self.beat(connection, -1).await;
            }
            _ => self.beat(connection, self.epoch).await,
        }
    }

    async fn beat(&mut self, connection: &Connection, epoch: i32) {
        let world = &connection.world;
        let topics: BTreeSet<Uuid> = self.owned.iter().map(|(topic, _)| *topic).collect();
        let owned = topics.into_iter().map(|topic_id| RequestTopicPartitions {
            topic_id,
            partitions: self.owned.iter().filter(|(of, _)| *of == topic_id).map(|(_, partition)| *partition).collect(),
        });
        let request = ConsumerGroupHeartbeatRequest {
            group_id: GROUP.into(),
            member_id: self.name.clone(),
            member_epoch: epoch,
            rebalance_timeout_ms: 60_000,
            subscribed_topic_names: Some(vec![TOPIC.into()]),
            topic_partitions: Some(owned.collect()),
            ..Default::default()
        };
        let Some(answer) = connection.call(1, &request).await else { return };
        match error(answer.error_code) {
            ErrorCode::None => {}
            ErrorCode::UnknownMemberId | ErrorCode::FencedMemberEpoch => return self.let_go(connection),
            error if is_of_the_moment(error) => return,
            error => return world.violate(format!("{}: a heartbeat is refused: {error:?}", self.name)),
        }
        if epoch == -1 {
            return;
        }
        if answer.member_epoch < self.epoch {
            world.violate(format!("{}: its epoch went back to {}", self.name, answer.member_epoch));
        }
        self.epoch = answer.member_epoch;
        let Some(assignment) = answer.assignment else { return };
        self.owned = assignment
            .topic_partitions
            .iter()
            .flat_map(|topic| topic.partitions.iter().map(|partition| (topic.topic_id, *partition)))
            .collect();
        connection.note(format_args!("has {} partitions in epoch {}", self.owned.len(), self.epoch));
        world.count("assignments of consumer groups");
        let mut model = world.model.borrow_mut();
        model.owners.retain(|place, owner| *owner != self.name || self.owned.contains(place));
        let taken = self.owned.iter().find_map(|place| {
            let owner = model.owners.insert(*place, self.name.clone());
            owner.filter(|owner| *owner != self.name).map(|owner| (place.1, owner))
        });
        drop(model);
        if let Some((partition, owner)) = taken {
            world.violate(format!("{}: is given partition {partition}, which {owner} has", self.name));
        }
    }
}

/// Commits an offset that was never committed before. Answers the code.
pub async fn commit(connection: &Connection, group: &str, member: &str, epoch: i32) -> Option<ErrorCode> {
    let world = &connection.world;
    let partition = connection.draw(|prng| prng.below(2)) as i32;
    let key = (group.to_owned(), TOPIC.to_owned(), partition);
    let begun = world.now();
    let (offset, write) = {
        let mut model = world.model.borrow_mut();
        let offset = model.number() as i64;
        (offset, model.offset(key.clone()).begin(offset, begun))
    };
    let partition =
        OffsetCommitRequestPartition { partition_index: partition, committed_offset: offset, ..Default::default() };
    let request = OffsetCommitRequest {
        group_id: group.to_owned(),
        member_id: member.to_owned(),
        generation_id_or_member_epoch: epoch,
        topics: vec![OffsetCommitRequestTopic {
            name: TOPIC.into(),
            partitions: vec![partition],
            ..Default::default()
        }],
        ..Default::default()
    };
    let answer = connection.call(9, &request).await;
    let code = answer.map(|answer| error(answer.topics[0].partitions[0].error_code));
    connection.note(format_args!("commits {offset} to {key:?}: {code:?}"));
    let now = world.now();
    let mut model = world.model.borrow_mut();
    let register = model.offset(key);
    match code {
        Some(ErrorCode::None) => register.acknowledged(write, now),
        None => register.unknown(write, now),
        // Until the broker starts anew.
        Some(error) if is_of_the_moment(error) => {}
        Some(_) => register.refused(write),
    }
    drop(model);
    if code == Some(ErrorCode::None) {
        world.count("offsets committed");
    }
    code
}

impl Client for Member {
    fn name(&self) -> &str {
        &self.name
    }

    fn live<'a>(&'a mut self, connection: &'a Connection) -> Work<'a> {
        Box::pin(async move {
            loop {
                connection.think().await;
                self.step(connection).await;
            }
        })
    }
}
