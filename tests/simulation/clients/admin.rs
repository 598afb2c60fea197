//! Who makes, alters and deletes topics and their records.

use std::collections::BTreeMap;

use doze::protocol::ErrorCode;
use doze::protocol::messages::create_partitions::{CreatePartitionsRequest, CreatePartitionsTopic};
use doze::protocol::messages::create_topics::{CreatableTopic, CreatableTopicConfig, CreateTopicsRequest};
use doze::protocol::messages::delete_records::{DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic};
use doze::protocol::messages::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use doze::protocol::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};

use super::{Client, Work, draw_partition, error, is_of_the_moment};
use crate::audit;
use crate::log_model::Policy;
use crate::model::TopicState;
use crate::net::Connection;

pub const COMPACTED: &str = "compacted";
pub const RETAINED: &str = "retained";

/// Keys and values.
type Configs = &'static [(&'static str, &'static str)];

/// Topics that are there from the start: name, partitions, configs, and what happens to their records.
const STABLE_TOPICS: [(&str, i32, Configs, Policy); 3] = [
    ("keep", 2, &[("internal.segment.bytes", "900")], Policy::Keep),
    (
        COMPACTED,
        1,
        &[("cleanup.policy", "compact"), ("internal.segment.bytes", "700"), ("min.cleanable.dirty.ratio", "0.01")],
        Policy::Compact,
    ),
    (
        RETAINED,
        1,
        &[("internal.segment.bytes", "500"), ("retention.bytes", "1500"), ("retention.ms", "3000")],
        Policy::Retain,
    ),
];

/// Topics that come and go.
const VOLATILE: [&str; 2] = ["v0", "v1"];

/// Makes the topics that everybody uses, unless they are there.
pub async fn make_stable_topics(connection: &Connection) {
    for (name, partitions, configs, _) in STABLE_TOPICS {
        if connection.world.model.borrow().id_of(name).is_none() {
            create(connection, name, partitions, configs).await;
        }
    }
}

async fn create(connection: &Connection, name: &str, partitions: i32, configs: &[(&str, &str)]) {
    let world = &connection.world;
    let config = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    let state = TopicState { partitions, configs: configs.iter().map(config).collect() };
    let begun = world.now();
    let write = world.model.borrow_mut().topic(name).begin(Some(state.clone()), begun);
    let config =
        |(key, value): (&String, &String)| CreatableTopicConfig { name: key.clone(), value: Some(value.clone()) };
    let topic = CreatableTopic {
        name: name.to_owned(),
        num_partitions: partitions,
        replication_factor: 1,
        configs: state.configs.iter().map(config).collect(),
        ..Default::default()
    };
    let answer = connection.call(7, &CreateTopicsRequest { topics: vec![topic], ..Default::default() }).await;
    let code = answer.as_ref().map(|answer| error(answer.topics[0].error_code));
    connection.note(format_args!("creates {name}: {code:?}"));
    match code {
        Some(ErrorCode::None) => {
            let id = answer.expect("it has a code").topics[0].topic_id;
            audit::found_topic(world, name, id);
        }
        Some(ErrorCode::InvalidConfig | ErrorCode::InvalidRequest) => {
            world.violate(format!("{name} is refused: {answer:?}"))
        }
        _ => {}
    }
    settle(connection, name, write, code);
}

/// Tells the model what came of a change of a topic.
fn settle(connection: &Connection, name: &str, write: crate::register::WriteId, code: Option<ErrorCode>) {
    let world = &connection.world;
    let now = world.now();
    let mut model = world.model.borrow_mut();
    let topic = model.topic(name);
    match code {
        Some(ErrorCode::None) => topic.acknowledged(write, now),
        None => topic.unknown(write, now),
        Some(error) if is_of_the_moment(error) => {}
        Some(_) => topic.refused(write),
    }
    drop(model);
    if code == Some(ErrorCode::None) {
        world.count("changes of topics acknowledged");
    }
}

#[derive(Default)]
pub struct Admin {}

impl Admin {
    pub fn new() -> Self {
        Admin {}
    }

    async fn step(&mut self, connection: &Connection) {
        let world = &connection.world;
        if connection.draw(|prng| prng.chance(1, 3)) {
            return delete_records(connection).await;
        }
        let name = *connection.draw(|prng| prng.pick(&VOLATILE));
        let known = world.model.borrow_mut().topic(name).known().cloned();
        match known {
            // What was answered last is not known: look.
            None => audit::look_at_topics(connection).await,
            Some(None) => {
                let partitions = connection.draw(|prng| prng.between(1, 2)) as i32;
                let segment = connection.draw(|prng| *prng.pick(&["600", "100000"]));
                create(connection, name, partitions, &[("internal.segment.bytes", segment)]).await;
            }
            Some(Some(state)) => match connection.draw(|prng| prng.below(4)) {
                0 => delete(connection, name).await,
                1 => add_partitions(connection, name, state).await,
                _ => alter(connection, name, state).await,
            },
        }
    }
}

async fn delete(connection: &Connection, name: &str) {
    let world = &connection.world;
    let begun = world.now();
    let write = world.model.borrow_mut().topic(name).begin(None, begun);
    let topic = DeleteTopicState { name: Some(name.to_owned()), ..Default::default() };
    let answer = connection.call(6, &DeleteTopicsRequest { topics: vec![topic], ..Default::default() }).await;
    let code = answer.map(|answer| error(answer.responses[0].error_code));
    connection.note(format_args!("deletes {name}: {code:?}"));
    settle(connection, name, write, code);
}

async fn add_partitions(connection: &Connection, name: &str, state: TopicState) {
    let partitions = state.partitions + 1;
    if partitions > 3 {
        return;
    }
    let world = &connection.world;
    let begun = world.now();
    let write = world.model.borrow_mut().topic(name).begin(Some(TopicState { partitions, ..state }), begun);
    let topic = CreatePartitionsTopic { name: name.to_owned(), count: partitions, assignments: None };
    let request = CreatePartitionsRequest { topics: vec![topic], timeout_ms: 30_000, ..Default::default() };
    let answer = connection.call(3, &request).await;
    let code = answer.map(|answer| error(answer.results[0].error_code));
    connection.note(format_args!("gives {name} {partitions} partitions: {code:?}"));
    settle(connection, name, write, code);
}

async fn alter(connection: &Connection, name: &str, mut state: TopicState) {
    let world = &connection.world;
    let value = world.model.borrow_mut().number() + 100_000_000;
    state.configs.insert("retention.ms".into(), value.to_string());
    let begun = world.now();
    let write = world.model.borrow_mut().topic(name).begin(Some(state), begun);
    let config = AlterableConfig { name: "retention.ms".into(), config_operation: 0, value: Some(value.to_string()) };
    let resource = AlterConfigsResource { resource_type: 2, resource_name: name.to_owned(), configs: vec![config] };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
    let answer = connection.call(1, &request).await;
    let code = answer.map(|answer| error(answer.responses[0].error_code));
    connection.note(format_args!("sets retention.ms of {name}: {code:?}"));
    settle(connection, name, write, code);
}

async fn delete_records(connection: &Connection) {
    let world = &connection.world;
    let wanted = |name: &str| name == "keep" || name == RETAINED || name.starts_with('v');
    let Some((name, id, partition)) = draw_partition(connection, wanted) else { return };
    let floor = world.model.borrow_mut().log(id, partition).floor();
    if floor.high_watermark <= floor.start {
        return;
    }
    let to = connection.draw(|prng| prng.between(floor.start as u64, floor.high_watermark as u64)) as i64;
    world.model.borrow_mut().log(id, partition).start_asked(to);
    let asked = DeleteRecordsPartition { partition_index: partition, offset: to };
    let topic = DeleteRecordsTopic { name: name.clone(), partitions: vec![asked] };
    let answer = connection.call(2, &DeleteRecordsRequest { topics: vec![topic], timeout_ms: 30_000 }).await;
    let answered = answer.map(|answer| answer.topics[0].partitions[0].clone());
    let code = answered.as_ref().map(|answered| error(answered.error_code));
    connection.note(format_args!("deletes records of {name}-{partition} below {to}: {code:?}"));
    match (code, answered) {
        (Some(ErrorCode::None), Some(answered)) => {
            world.count("records deleted by DeleteRecords");
            let result = if answered.low_watermark < to {
                Err(format!("{name}-{partition} starts at {} after it was to start at {to}", answered.low_watermark))
            } else {
                world.model.borrow_mut().log(id, partition).started(answered.low_watermark)
            };
            world.check(result);
        }
        (Some(ErrorCode::OffsetOutOfRange), _) => {
            world.violate(format!("{name}-{partition}: records below {to} cannot be deleted; {floor:?}"));
        }
        _ => {}
    }
}

impl Client for Admin {
    fn name(&self) -> &str {
        "admin"
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

/// The policy of a topic.
pub fn policy_of(name: &str) -> Policy {
    STABLE_TOPICS.iter().find(|(of, ..)| *of == name).map_or(Policy::Keep, |(.., policy)| *policy)
}

/// What DescribeConfigs is asked for.
pub fn config_keys() -> Vec<String> {
    let mut keys: BTreeMap<&str, ()> = BTreeMap::from([("retention.ms", ())]);
    STABLE_TOPICS.iter().for_each(|(_, _, configs, _)| keys.extend(configs.iter().map(|(key, _)| (*key, ()))));
    keys.into_keys().map(str::to_owned).collect()
}
