//! What a member takes of the share group's records, and what it says of them.

use std::collections::{BTreeMap, BTreeSet};

use doze::protocol::messages::share_acknowledge::{
    AcknowledgePartition, AcknowledgeTopic, AcknowledgementBatch, ShareAcknowledgeRequest,
};
use doze::protocol::messages::share_fetch::{
    self, FetchPartition, FetchTopic, ForgottenTopic, PartitionData, ShareFetchRequest,
};
use doze::protocol::{ErrorCode, Uuid};

use super::{GROUP, Member, Place};
use crate::clients::standing::now_ms;
use crate::clients::{error, is_of_the_moment};
use crate::fetched::records_of;
use crate::net::Connection;
use crate::share_model::{ACCEPT, Delivery, GAP, LOCK_MS, MOST_DELIVERIES, REJECT, RELEASE, RENEW};
use crate::world::Canary;

/// A record that the member has acquired.
#[derive(Clone, Copy, Debug)]
pub(super) struct Got {
    count: i16,
    pub(super) is_record: bool,
    /// When the lock was taken or renewed: between these two.
    locked_ms: (u64, u64),
}

/// What the member says of records, by partition: offset, type, and the delivery that it is about.
pub(super) type Said = BTreeMap<Place, Vec<(i64, i8, Got)>>;

/// How a member fetches.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    max_wait_ms: i32,
    max_bytes: i32,
    max_records: i32,
    batch_size: i32,
    record_limit: bool,
}

impl Terms {
    pub(super) const ALL: Terms =
        Terms { max_wait_ms: 0, max_bytes: 1 << 20, max_records: 1000, batch_size: 1000, record_limit: false };

    pub(super) fn drawn(connection: &Connection) -> Terms {
        connection.draw(|prng| Terms {
            max_wait_ms: *prng.pick(&[0, 5, 200]),
            max_bytes: *prng.pick(&[1, 600, 1 << 20]),
            max_records: *prng.pick(&[1, 3, 500]),
            batch_size: *prng.pick(&[1, 3, 500]),
            record_limit: prng.chance(1, 3),
        })
    }
}

impl Member {
    /// Something to say of some of what it has: of a stretch in each partition, one thing or another of each record.
    pub(super) fn draw_said(&self, connection: &Connection) -> Said {
        let mut said = Said::new();
        for (place, held) in self.held.iter().filter(|(_, held)| !held.is_empty()) {
            let held: Vec<(i64, Got)> = held.iter().map(|(offset, got)| (*offset, *got)).collect();
            let first = if connection.draw(|prng| prng.chance(1, 2)) {
                0
            } else {
                connection.draw(|prng| prng.below(held.len() as u64)) as usize
            };
            let count = connection.draw(|prng| prng.between(1, (held.len() - first) as u64)) as usize;
            let alike = connection.draw(|prng| prng.chance(1, 2));
            let mut kind = draw_kind(connection);
            let mut of = Vec::new();
            for (offset, got) in &held[first..first + count] {
                if !alike {
                    kind = draw_kind(connection);
                }
                of.push((*offset, if got.is_record { kind } else { GAP }, *got));
            }
            said.insert(*place, of);
            if connection.draw(|prng| prng.chance(1, 3)) {
                break;
            }
        }
        said
    }

    /// Notes what is about to be said. Gives until when the member has all that it speaks of in a partition, for certain.
    fn says(&self, connection: &Connection, said: &Said) -> BTreeMap<Place, u64> {
        let mut until_ms = BTreeMap::new();
        for (place, of) in said {
            let mut model = connection.world.model.borrow_mut();
            let partition = model.shared(*place).0;
            let each = of.iter().map(|(offset, kind, _)| partition.says(&self.name, *offset, *kind));
            until_ms.insert(*place, each.fold(u64::MAX, u64::min));
            drop(model);
            let kinds: Vec<(i64, i8)> = of.iter().map(|(offset, kind, _)| (*offset, *kind)).collect();
            connection.note(format_args!("says of partition {}: {kinds:?}", place.1));
        }
        until_ms
    }

    /// What was said of a partition was answered. `None`: it was not.
    fn was_answered(
        &mut self,
        connection: &Connection,
        place: Place,
        of: &[(i64, i8, Got)],
        (sent_ms, has_until_ms): (u64, u64),
        code: Option<ErrorCode>,
    ) {
        let world = &connection.world;
        let (now, at_ms) = (world.now(), now_ms(connection));
        connection.note(format_args!("of partition {}: {code:?}", place.1));
        let is_over = |got: &Got| sent_ms > got.locked_ms.1 + LOCK_MS + 20;
        match code {
            None => return,
            Some(ErrorCode::None) => {
                if let Some((offset, ..)) = of.iter().find(|(_, _, got)| is_over(got)) {
                    world.violate(format!(
                        "share group: {}'s lock of {offset} has run out, and it may say something",
                        self.name
                    ));
                }
                for kind in of.iter().map(|(_, kind, _)| *kind).collect::<BTreeSet<_>>() {
                    world.count(&format!("share: acknowledgements, {}", name_of(kind)));
                }
            }
            Some(error) if is_of_the_moment(error) => {}
            Some(error) => {
                world.count("share: acknowledgements refused");
                if at_ms < has_until_ms {
                    world.violate(format!(
                        "share group: {} has {of:?} of partition {}, and is refused: {error:?}",
                        self.name, place.1
                    ));
                }
            }
        }
        let mut model = world.model.borrow_mut();
        let partition = model.shared(place).0;
        for (offset, kind, got) in of {
            match code {
                Some(ErrorCode::None) => partition.acknowledged(*offset, *kind, got.count, now, sent_ms + LOCK_MS),
                Some(error) if is_of_the_moment(error) => partition.left_open(*offset),
                _ => partition.refused(*offset),
            }
        }
        drop(model);
        let held = self.held.entry(place).or_default();
        for (offset, kind, _) in of {
            match (*kind == RENEW, held.get_mut(offset)) {
                (true, Some(got)) if code == Some(ErrorCode::None) => got.locked_ms = (sent_ms, at_ms),
                (true, _) => {}
                (false, _) => drop(held.remove(offset)),
            }
        }
    }

    pub(super) async fn acknowledge(&mut self, connection: &Connection, said: Said, renews: bool) {
        let sent_ms = now_ms(connection);
        if self.session == 0 {
            return self.held.clear();
        }
        let until_ms = self.says(connection, &said);
        let whole = connection.draw(|prng| prng.chance(1, 2));
        let topics = by_topic(said.iter().map(|(place, of)| {
            let batches = batches(connection, of, whole);
            let batch = |(first_offset, last_offset, acknowledge_types)| AcknowledgementBatch {
                first_offset,
                last_offset,
                acknowledge_types,
            };
            (
                *place,
                AcknowledgePartition {
                    partition_index: place.1,
                    acknowledgement_batches: batches.into_iter().map(batch).collect(),
                },
            )
        }));
        let request = ShareAcknowledgeRequest {
            group_id: Some(GROUP.into()),
            member_id: Some(self.name.clone()),
            share_session_epoch: self.session,
            is_renew_ack: renews,
            topics: topics
                .into_iter()
                .map(|(topic_id, partitions)| AcknowledgeTopic { topic_id, partitions })
                .collect(),
        };
        let Some(answer) = connection.call(2, &request).await else { return self.session_ended(connection) };
        if !self.goes_on(connection, answer.error_code) {
            return self.nothing_was_taken(connection, &said);
        }
        for (place, of) in &said {
            let mut answered =
                answer.responses.iter().filter(|topic| topic.topic_id == place.0).flat_map(|topic| &topic.partitions);
            let code = answered.find(|data| data.partition_index == place.1).map(|data| error(data.error_code));
            if code.is_none() {
                connection
                    .world
                    .violate(format!("{}: what it says of partition {} is not answered", self.name, place.1));
            }
            self.was_answered(connection, *place, of, (sent_ms, until_ms[place]), code);
        }
    }

    pub(super) async fn renew(&mut self, connection: &Connection) {
        let mut said = self.draw_said(connection);
        let held = said.values_mut().flatten();
        held.for_each(|(_, kind, _)| *kind = RENEW);
        if said.is_empty() || self.session == 0 {
            return;
        }
        match connection.draw(|prng| prng.chance(1, 2)) {
            true => self.acknowledge(connection, said, true).await,
            false => {
                let none = Terms { max_wait_ms: 0, max_bytes: 0, max_records: 0, batch_size: 0, record_limit: false };
                self.fetch(connection, said, none).await;
            }
        }
    }

    /// A request of the session was answered with this. Answers whether it was taken.
    fn goes_on(&mut self, connection: &Connection, code: i16) -> bool {
        match error(code) {
            ErrorCode::None => {
                self.session += 1;
                true
            }
            error => {
                // Its requests come one by one, and over one connection.
                if !is_of_the_moment(error) {
                    connection
                        .world
                        .violate(format!("{}: its share session, in epoch {}: {error:?}", self.name, self.session));
                }
                self.session = 0;
                self.in_session.clear();
                false
            }
        }
    }

    fn nothing_was_taken(&mut self, connection: &Connection, said: &Said) {
        let mut model = connection.world.model.borrow_mut();
        for (place, of) in said {
            let partition = model.shared(*place).0;
            of.iter().for_each(|(offset, ..)| partition.left_open(*offset));
        }
        drop(model);
        self.session_ended(connection);
    }

    /// Fetches from all that it is assigned. Answers how many records came, or `None` if no answer did.
    pub(super) async fn fetch(&mut self, connection: &Connection, mut said: Said, terms: Terms) -> Option<usize> {
        let (world, sent_ms, begun) = (&connection.world, now_ms(connection), connection.world.now());
        if self.session == 0 {
            // Nothing can be said with the request that opens a session.
            said.clear();
        }
        let renews = said.values().flatten().any(|(_, kind, _)| *kind == RENEW);
        let until_ms = self.says(connection, &said);
        let whole = connection.draw(|prng| prng.chance(1, 2));
        let named: BTreeSet<Place> = self.assigned.difference(&self.in_session).chain(said.keys()).copied().collect();
        let forgotten: Vec<Place> =
            self.in_session.difference(&self.assigned).filter(|place| !said.contains_key(place)).copied().collect();
        let topics = by_topic(named.iter().map(|place| {
            let batches = said.get(place).map(|of| batches(connection, of, whole)).unwrap_or_default();
            let batch = |(first_offset, last_offset, acknowledge_types)| share_fetch::AcknowledgementBatch {
                first_offset,
                last_offset,
                acknowledge_types,
            };
            (
                *place,
                FetchPartition {
                    partition_index: place.1,
                    acknowledgement_batches: batches.into_iter().map(batch).collect(),
                },
            )
        }));
        let request = ShareFetchRequest {
            group_id: Some(GROUP.into()),
            member_id: Some(self.name.clone()),
            share_session_epoch: self.session,
            max_wait_ms: terms.max_wait_ms,
            min_bytes: i32::from(terms.max_bytes > 0),
            max_bytes: terms.max_bytes,
            max_records: terms.max_records,
            batch_size: terms.batch_size,
            share_acquire_mode: i8::from(terms.record_limit),
            is_renew_ack: renews,
            topics: topics.into_iter().map(|(topic_id, partitions)| FetchTopic { topic_id, partitions }).collect(),
            forgotten_topics_data: by_topic(forgotten.iter().map(|place| (*place, place.1)))
                .into_iter()
                .map(|(topic_id, partitions)| ForgottenTopic { topic_id, partitions })
                .collect(),
        };
        self.in_session.extend(named);
        self.in_session.retain(|place| !forgotten.contains(place));
        let may_come: Vec<Place> = if renews { vec![] } else { self.in_session.iter().copied().collect() };
        {
            let mut model = world.model.borrow_mut();
            may_come.iter().for_each(|place| model.shared(*place).0.fetch_begins());
        }
        let answer = connection.call(2, &request).await;
        {
            let mut model = world.model.borrow_mut();
            may_come.iter().for_each(|place| model.shared(*place).0.fetch_ended(answer.is_some()));
        }
        let Some(answer) = answer else {
            self.session_ended(connection);
            return None;
        };
        if !self.goes_on(connection, answer.error_code) {
            self.nothing_was_taken(connection, &said);
            return None;
        }
        let mut came = 0;
        let answered = answer
            .responses
            .iter()
            .flat_map(|topic| topic.partitions.iter().map(|data| ((topic.topic_id, data.partition_index), data)));
        let answered: BTreeMap<Place, &PartitionData> = answered.collect();
        for (place, of) in &said {
            let code = answered.get(place).map(|data| error(data.acknowledge_error_code));
            if code.is_none() {
                world.violate(format!("{}: what it says of partition {} is not answered", self.name, place.1));
            }
            self.was_answered(connection, *place, of, (sent_ms, until_ms[place]), code);
        }
        for (place, data) in answered {
            came += self.take(connection, place, data, begun, sent_ms);
        }
        Some(came)
    }

    /// Takes in what came of a partition.
    fn take(&mut self, connection: &Connection, place: Place, data: &PartitionData, begun: u64, sent_ms: u64) -> usize {
        let (world, at_ms) = (&connection.world, now_ms(connection));
        match error(data.error_code) {
            ErrorCode::None => {}
            _ if world.is_troubled() => return 0,
            // The offsets of the topic were deleted, and nobody has joined since.
            ErrorCode::UnknownServerError => return 0,
            error => {
                world.violate(format!("{}: partition {} cannot be fetched from: {error:?}", self.name, place.1));
                return 0;
            }
        }
        let (records, damage) = records_of(&data.records);
        if let Some(damage) = damage.filter(|_| !world.is_troubled()) {
            world.violate(format!("{}: in partition {}: {damage}", self.name, place.1));
        }
        let records: BTreeMap<i64, _> = records.iter().map(|record| (record.offset, record)).collect();
        let held = self.held.entry(place).or_default();
        let mut came = 0;
        for range in &data.acquired_records {
            connection.note(format_args!(
                "gets {} to {} of partition {}, delivery {}",
                range.first_offset, range.last_offset, place.1, range.delivery_count
            ));
            for offset in range.first_offset..=range.last_offset {
                let mut model = world.model.borrow_mut();
                let committed = model.share.committed;
                let record = records.get(&offset);
                let read = match record {
                    Some(record) => model.read_record(place, record, committed),
                    None if model.shared(place).1.keeps_record(offset) => Err(format!(
                        "share group: offset {offset} of partition {} is handed out without its record",
                        place.1
                    )),
                    None => Ok(()),
                };
                let delivery = Delivery {
                    member: &self.name,
                    offset,
                    id: record.map(|record| record.id),
                    count: range.delivery_count,
                    begun,
                    sent_ms,
                    now_ms: at_ms,
                };
                let result = model.shared(place).0.delivered(&delivery);
                drop(model);
                world.check(read);
                world.check(result);
                held.insert(
                    offset,
                    Got { count: range.delivery_count, is_record: record.is_some(), locked_ms: (sent_ms, at_ms) },
                );
                came += 1;
                world.count("share: records handed out");
                if range.delivery_count > 1 {
                    world.count("share: records handed out again");
                }
                if range.delivery_count == MOST_DELIVERIES {
                    world.count("share: records handed out for the last time");
                }
            }
        }
        came
    }

    /// Ends its session, which gives back what it holds.
    pub(super) async fn end_session(&mut self, connection: &Connection) {
        if self.session == 0 {
            return;
        }
        self.session_ended(connection);
        let request = ShareAcknowledgeRequest {
            group_id: Some(GROUP.into()),
            member_id: Some(self.name.clone()),
            share_session_epoch: -1,
            ..Default::default()
        };
        if let Some(answer) = connection.call(2, &request).await {
            connection.note(format_args!("ends its share session: {:?}", error(answer.error_code)));
            connection.world.count("share: sessions ended");
        }
    }

    /// Comes with an epoch that its session does not have: it is told, and nothing comes of what it says.
    pub(super) async fn be_wrong(&mut self, connection: &Connection) {
        let world = &connection.world;
        let expected =
            if self.session == 0 { ErrorCode::ShareSessionNotFound } else { ErrorCode::InvalidShareSessionEpoch };
        let Some((place, offset)) = self.held.iter().find_map(|(place, held)| Some((*place, *held.keys().next()?)))
        else {
            return;
        };
        let batch = AcknowledgementBatch { first_offset: offset, last_offset: offset, acknowledge_types: vec![ACCEPT] };
        let partition = AcknowledgePartition { partition_index: place.1, acknowledgement_batches: vec![batch] };
        let request = ShareAcknowledgeRequest {
            group_id: Some(GROUP.into()),
            member_id: Some(self.name.clone()),
            share_session_epoch: self.session + 7,
            topics: vec![AcknowledgeTopic { topic_id: place.0, partitions: vec![partition] }],
            ..Default::default()
        };
        let Some(answer) = connection.call(2, &request).await else { return self.session_ended(connection) };
        world.count("share: epochs of sessions refused");
        if error(answer.error_code) != expected {
            world.violate(format!(
                "{}: {:?} to a share session in the wrong epoch",
                self.name,
                error(answer.error_code)
            ));
        }
    }
}

fn draw_kind(connection: &Connection) -> i8 {
    connection.draw(|prng| *prng.pick(&[ACCEPT, ACCEPT, ACCEPT, RELEASE, RELEASE, REJECT]))
}

fn name_of(kind: i8) -> &'static str {
    match kind {
        ACCEPT => "accept",
        RELEASE => "release",
        REJECT => "reject",
        RENEW => "renew",
        _ => "gap",
    }
}

fn by_topic<T>(all: impl Iterator<Item = (Place, T)>) -> BTreeMap<Uuid, Vec<T>> {
    let mut topics: BTreeMap<Uuid, Vec<T>> = BTreeMap::new();
    all.for_each(|((topic, _), of)| topics.entry(topic).or_default().push(of));
    topics
}

/// First and last offset, and types: of neighbours together as far as the same is said of them, or, if `whole`, with a type
/// for each.
fn batches(connection: &Connection, of: &[(i64, i8, Got)], whole: bool) -> Vec<(i64, i64, Vec<i8>)> {
    let sent_as = |kind: i8| match (connection.world.canary, kind) {
        (Canary::AcceptAsRelease, ACCEPT) => RELEASE,
        (Canary::ReleaseAsAccept, RELEASE) => ACCEPT,
        (_, kind) => kind,
    };
    let follows = |(one, kind, _): &(i64, i8, Got), (next, other, _): &(i64, i8, Got)| {
        one + 1 == *next && (whole || kind == other)
    };
    of.chunk_by(follows)
        .map(|chunk| {
            let types: Vec<i8> = chunk.iter().map(|(_, kind, _)| sent_as(*kind)).collect();
            let types = if whole { types } else { types[..1].to_vec() };
            (chunk[0].0, chunk[chunk.len() - 1].0, types)
        })
        .collect()
}
