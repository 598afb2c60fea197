//! Looks at everything that there is, and has the model compare it with what was promised.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use doze::protocol::messages::describe_configs::{DescribeConfigsRequest, DescribeConfigsResource};
use doze::protocol::messages::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use doze::protocol::messages::metadata::MetadataRequest;
use doze::protocol::messages::offset_fetch::{OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use doze::protocol::{ErrorCode, Uuid};

use crate::clients::{TRANSACTIONAL, config_keys, end_what_is_open, policy_of, share_admin, share_group};
use crate::fetched::fetch;
use crate::log_model::Policy;
use crate::model::TopicState;
use crate::net::Connection;
use crate::world::World;

/// DescribeConfigs' number for what was set on a topic.
const SET_ON_TOPIC: i8 = 1;
const EARLIEST: i64 = -2;

/// A topic was made, or found: this is its id.
pub fn found_topic(world: &World, name: &str, id: Uuid) {
    let mut model = world.model.borrow_mut();
    model.ids.insert(name.to_owned(), id);
    model.policies.insert(id, policy_of(name));
}

/// Everything: topics, logs at both isolation levels, committed offsets.
pub async fn look(connection: &Connection) {
    look_at_topics(connection).await;
    let topics: Vec<(String, Uuid, i32)> = {
        let model = connection.world.model.borrow();
        let known = |name: &String| model.id_of(name).map(|(id, partitions)| (name.clone(), id, partitions));
        model.topics.keys().filter_map(known).collect()
    };
    for (name, id, partitions) in topics {
        for partition in 0..partitions {
            look_at_log(connection, &name, id, partition).await;
        }
    }
    look_at_offsets(connection).await;
    look_at_share_group(connection).await;
}

/// The share group's offsets, after the logs were read.
async fn look_at_share_group(connection: &Connection) {
    let world = &connection.world;
    {
        let mut model = world.model.borrow_mut();
        let places: Vec<(Uuid, i32)> = model.share.partitions.keys().copied().collect();
        for place in places {
            let (partition, log, _) = model.shared(place);
            if let Err(why) = partition.log_was_read(log) {
                world.violate(why);
            }
        }
        if !model.share.is_configured {
            return;
        }
    }
    // Markers of transactions may still be written.
    share_admin::show(connection, false).await;
}

/// At rest every record that the share group is to get comes, unless somebody is done with it.
pub async fn drain_share_group(connection: &Connection) {
    let world = &connection.world;
    if !world.model.borrow().share.is_configured || world.model.borrow().id_of(share_group::TOPIC).is_none() {
        return;
    }
    share_admin::show(connection, true).await;
    let came = share_group::drain(connection).await;
    let places: Vec<(Uuid, i32)> = world.model.borrow().share.partitions.keys().copied().collect();
    for place in places {
        let drained = {
            let mut model = world.model.borrow_mut();
            let (partition, log, wanted) = model.shared(place);
            partition.drained(came.get(&place).unwrap_or(&BTreeSet::new()), log, wanted)
        };
        world.check(drained);
        world.count("share: partitions drained at the end");
    }
    share_admin::show(connection, true).await;
}

pub async fn look_at_topics(connection: &Connection) {
    let world = &connection.world;
    let begun = world.now();
    let request = MetadataRequest { topics: None, allow_auto_topic_creation: false, ..Default::default() };
    let Some(metadata) = connection.call(12, &request).await else { return };
    let resource = |name: &String| DescribeConfigsResource {
        resource_type: 2,
        resource_name: name.clone(),
        configuration_keys: Some(config_keys()),
    };
    let names: Vec<String> = metadata.topics.iter().filter_map(|topic| topic.name.clone()).collect();
    let request = DescribeConfigsRequest { resources: names.iter().map(resource).collect(), ..Default::default() };
    let Some(described) = connection.call(4, &request).await else { return };
    let now = world.now();
    let mut model = world.model.borrow_mut();
    let cluster_id = metadata.cluster_id.unwrap_or_default();
    let known = model.cluster_id.get_or_insert_with(|| cluster_id.clone()).clone();
    let mut result = if known == cluster_id { Ok(()) } else { Err(format!("cluster id {cluster_id} was {known}")) };
    let mut found = BTreeMap::new();
    // Kafka's own topics are the broker's to make.
    for topic in metadata.topics.iter().filter(|topic| !topic.is_internal) {
        let name = topic.name.clone().unwrap_or_default();
        let configs = described.results.iter().find(|result| result.resource_name == name);
        let configs =
            configs.iter().flat_map(|result| &result.configs).filter(|config| config.config_source == SET_ON_TOPIC);
        let configs = configs.map(|config| (config.name.clone(), config.value.clone().unwrap_or_default())).collect();
        if !model.topics.contains_key(&name) {
            result = Err(format!("nobody has made topic {name}"));
        }
        found.insert(name, (topic.topic_id, TopicState { partitions: topic.partitions.len() as i32, configs }));
    }
    let names: Vec<String> = model.topics.keys().cloned().collect();
    let mut ids = Vec::new();
    for name in names {
        let is_known = matches!(model.topic(&name).known(), Some(Some(_)));
        let state = found.get(&name).map(|(_, state)| state.clone());
        let read = model.topic(&name).read(&state, begun, now).map_err(|error| format!("topic {name}: {error}"));
        if let Some((id, _)) = found.get(&name) {
            let before = model.ids.get(&name).copied();
            if is_known && before.is_some_and(|before| before != *id) {
                result = Err(format!("topic {name} has id {id}, and had {before:?}"));
            }
            ids.push((name, *id));
        }
        result = result.and(read);
    }
    drop(model);
    ids.into_iter().for_each(|(name, id)| found_topic(world, &name, id));
    world.check(result);
}

async fn start_of(connection: &Connection, name: &str, partition: i32) -> Option<Result<i64, ErrorCode>> {
    let asked = ListOffsetsPartition { partition_index: partition, timestamp: EARLIEST, ..Default::default() };
    let topic = ListOffsetsTopic { name: name.to_owned(), partitions: vec![asked] };
    let request = ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..Default::default() };
    let answer = connection.call(7, &request).await?;
    let partition = &answer.topics[0].partitions[0];
    Some(match ErrorCode::from_code(partition.error_code) {
        Some(ErrorCode::None) => Ok(partition.offset),
        error => Err(error.unwrap_or(ErrorCode::UnknownServerError)),
    })
}

/// Reads a whole log, twice. What cannot be read where nothing is wrong with the disk is a violation.
async fn look_at_log(connection: &Connection, name: &str, id: Uuid, partition: i32) {
    let world = &connection.world;
    let result = match read_log(connection, name, id, partition, false).await {
        // No transaction writes to the others.
        Ok(()) if TRANSACTIONAL.contains(&name) => read_log(connection, name, id, partition, true).await,
        result => result,
    };
    if let Err(what) = result
        && !world.is_troubled()
    {
        world.violate(format!("{name}-{partition}: {what}"));
    }
}

async fn read_log(
    connection: &Connection,
    name: &str,
    id: Uuid,
    partition: i32,
    committed: bool,
) -> Result<(), String> {
    let (world, log) = (&connection.world, (id, partition));
    let no_answer = || "no answer".to_owned();
    let mut attempts = 0;
    'whole: loop {
        attempts += 1;
        let start = start_of(connection, name, partition).await.ok_or_else(no_answer)?;
        let start = start.map_err(|error| format!("it cannot be told where it starts: {error:?}"))?;
        let started = world.model.borrow_mut().log(id, partition).started(start);
        world.check(started);
        let (mut next, mut found, mut end) = (start, BTreeSet::new(), start);
        for _ in 0..100_000 {
            let floor = world.model.borrow_mut().log(id, partition).floor();
            let answer = fetch(connection, id, partition, next, committed, 0).await.ok_or_else(no_answer)?;
            let fetched = match answer {
                Ok(fetched) => fetched,
                // Old segments go meanwhile.
                Err(ErrorCode::OffsetOutOfRange) if policy_of(name) == Policy::Retain && attempts < 20 => {
                    continue 'whole;
                }
                Err(error) => return Err(format!("offset {next} cannot be read: {error:?}")),
            };
            let checked = world.model.borrow_mut().fetched(log, &fetched, floor);
            world.check(checked);
            found.extend(fetched.records.iter().map(|record| record.id));
            end = if committed { fetched.last_stable } else { fetched.high_watermark };
            if let Some(damage) = &fetched.damage
                && fetched.batches.is_empty()
            {
                let sure_end = world.model.borrow_mut().log(id, partition).sure_end();
                if fetched.next() < sure_end {
                    world.violate(format!("{name}-{partition}: offset {} was acknowledged: {damage}", fetched.next()));
                }
                return Err(format!("what comes after offset {}: {damage}", fetched.next()));
            }
            let before = std::mem::replace(&mut next, fetched.next());
            if next >= end {
                break;
            }
            if next == before {
                return Err(format!("a fetch from {next} comes to nothing, and the end is {end}"));
            }
        }
        if !committed && world.model.borrow_mut().log(id, partition).policy != Policy::Retain {
            let whole = world.model.borrow_mut().read_all(log, start, end, &found);
            world.check(whole);
        }
        return Ok(());
    }
}

async fn look_at_offsets(connection: &Connection) {
    let world = &connection.world;
    let keys: Vec<_> = world.model.borrow().offsets.keys().cloned().collect();
    for key in keys {
        let (group, topic, partition) = key.clone();
        let topics = OffsetFetchRequestTopics { name: topic, partition_indexes: vec![partition], ..Default::default() };
        let group = OffsetFetchRequestGroup { group_id: group, topics: Some(vec![topics]), ..Default::default() };
        let request = OffsetFetchRequest { groups: vec![group], require_stable: true, ..Default::default() };
        let begun = world.now();
        let Some(answer) = connection.call(9, &request).await else { return };
        let now = world.now();
        let group = &answer.groups[0];
        let partition = group.topics.first().and_then(|topic| topic.partitions.first());
        let code = partition.map_or(group.error_code, |partition| partition.error_code);
        // Nobody looks up a coordinator here, so that there is none for a group that has committed nothing.
        let nothing = Some(-1).filter(|_| code == ErrorCode::NotCoordinator.code());
        let committed = partition.map(|partition| partition.committed_offset).or(nothing);
        match (ErrorCode::from_code(code), committed) {
            (Some(ErrorCode::None | ErrorCode::NotCoordinator), Some(offset)) => {
                let result = world.model.borrow_mut().offset(key.clone()).read(&offset, begun, now);
                world.check(result.map_err(|error| format!("the committed offset of {key:?}: {error}")));
            }
            (Some(ErrorCode::UnstableOffsetCommit), _) => {}
            (error, _) if !world.is_troubled() => {
                world.violate(format!("the committed offset of {key:?} cannot be read: {error:?}"));
            }
            _ => {}
        }
    }
}

/// Ends every transaction, and waits until readers of committed records get all there is.
pub async fn settle(connection: &Connection) {
    let world = &connection.world;
    end_what_is_open(connection).await;
    let logs: Vec<(Uuid, i32)> = {
        let model = world.model.borrow();
        let known: Vec<(Uuid, i32)> = model.topics.keys().filter_map(|name| model.id_of(name)).collect();
        known.into_iter().flat_map(|(id, partitions)| (0..partitions).map(move |partition| (id, partition))).collect()
    };
    for (id, partition) in logs {
        for attempt in 0.. {
            let floor = world.model.borrow_mut().log(id, partition).floor();
            let from = floor.high_watermark;
            let stable = match fetch(connection, id, partition, from, true, 0).await {
                Some(Ok(fetched)) => fetched.last_stable == fetched.high_watermark,
                // It starts after that.
                Some(Err(ErrorCode::OffsetOutOfRange)) => true,
                _ => false,
            };
            if stable {
                break;
            }
            if attempt > 100 {
                let name = world.model.borrow_mut().log(id, partition).name.clone();
                return world.violate(format!("{name}: a transaction never ends"));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
