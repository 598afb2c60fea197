//! CreateTopics: each topic is complete and durable when it is answered.
//!
//! - v5 answers with the configs of the new topic (KIP-525), v6 may be throttled, v7 answers with the topic's id (KIP-516).
//! - -1 partitions and replicas are the broker's defaults (KIP-464).
//! - A replica assignment may name this node alone.

use std::collections::HashMap;
use std::sync::Arc;

use crate::broker::Broker;
use crate::broker::config::{Overrides, Resource, describe};
use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::quotas::Mutations;
use crate::broker::topics::{self, Creation, Refused};
use crate::protocol::messages::create_topics::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfigs, CreatableTopicResult, CreateTopicsRequest,
    CreateTopicsResponse,
};
use crate::protocol::{ErrorCode, Uuid};

/// From this version on, what goes beyond the quota of topic changes is refused; before, the client is held back (KIP-599).
const STRICT_SINCE: i16 = 6;

pub(super) const HANDLER: Handler = serial!(CreateTopicsRequest, handle);

async fn handle(broker: Arc<Broker>, context: Context, request: CreateTopicsRequest) -> CreateTopicsResponse {
    let mut times = HashMap::<String, usize>::new();
    for topic in &request.topics {
        *times.entry(topic.name.clone()).or_default() += 1;
    }
    let mut mutations = broker.quotas().mutations(context.client_id.as_deref(), context.version >= STRICT_SINCE);
    let mut response = CreateTopicsResponse::default();
    for topic in request.topics {
        let name = topic.name.clone();
        match times.get(&name) {
            Some(1) => {}
            Some(_) => {
                let refused = Refused::new(ErrorCode::InvalidRequest, "Duplicate topic name.");
                response.topics.push(failed(name.clone(), refused));
                times.remove(&name);
                continue;
            }
            None => continue,
        }
        let result = create(&broker, topic, request.validate_only, &mut mutations).await;
        response.topics.push(result.unwrap_or_else(|refused| failed(name, refused)));
    }
    response.throttle_time_ms = mutations.throttle_ms();
    response
}

fn failed(name: String, refused: Refused) -> CreatableTopicResult {
    CreatableTopicResult {
        name,
        error_code: refused.code.code(),
        error_message: refused.into_message(),
        ..Default::default()
    }
}

async fn create(
    broker: &Arc<Broker>,
    topic: CreatableTopic,
    validate_only: bool,
    mutations: &mut Mutations<'_>,
) -> Result<CreatableTopicResult, Refused> {
    let configs = configs(&topic)?;
    let mut creation = Creation {
        name: topic.name.clone(),
        partitions: topic.num_partitions,
        replication_factor: topic.replication_factor,
        configs: configs.clone(),
    };
    if !topic.assignments.is_empty() {
        topics::check_name(&topic.name)?;
        creation.partitions = assigned_partitions(broker, &topic)?;
        creation.replication_factor = 1;
    }
    let num_partitions = topics::check(broker, &creation)?;
    mutations.take(num_partitions)?;
    let (topic_id, num_partitions) = if validate_only {
        (Uuid::random(&*broker.env().random), num_partitions)
    } else {
        let made = topics::create(broker, creation).await?;
        (made.id, made.partitions)
    };
    let described = describe::describe(&broker.config(), &Resource::Topic(topic.name.clone()), &configs, |_| true)
        .map_err(|error| Refused::of_config(&error, &Resource::Topic(topic.name.clone())))?;
    let described = described.into_iter().map(|config| CreatableTopicConfigs {
        name: config.name,
        value: config.value,
        read_only: config.read_only,
        config_source: config.source as i8,
        is_sensitive: config.sensitive,
    });
    Ok(CreatableTopicResult {
        name: topic.name,
        topic_id,
        error_message: None,
        num_partitions,
        replication_factor: 1,
        configs: Some(described.collect()),
        ..Default::default()
    })
}

/// A key that is given twice has its last value.
fn configs(topic: &CreatableTopic) -> Result<Overrides, Refused> {
    let nulls: Vec<&str> = topic.configs.iter().filter(|c| c.value.is_none()).map(|c| c.name.as_str()).collect();
    if !nulls.is_empty() {
        let message = format!("Null value not supported for topic configs: {}", nulls.join(","));
        return Err(Refused::new(ErrorCode::InvalidConfig, message));
    }
    Ok(topic.configs.iter().filter_map(|config| Some((config.name.clone(), config.value.clone()?))).collect())
}

/// How many partitions an assignment has, when it is one that a single node can fulfil.
fn assigned_partitions(broker: &Broker, topic: &CreatableTopic) -> Result<i32, Refused> {
    if topic.replication_factor != -1 {
        let message = "A manual partition assignment was specified, but replication factor was not set to -1.";
        return Err(Refused::new(ErrorCode::InvalidRequest, message));
    }
    if topic.num_partitions != -1 {
        let message = "A manual partition assignment was specified, but numPartitions was not set to -1.";
        return Err(Refused::new(ErrorCode::InvalidRequest, message));
    }
    let mut indexes: Vec<i32> = topic.assignments.iter().map(|a| a.partition_index).collect();
    indexes.sort_unstable();
    for CreatableReplicaAssignment { broker_ids, .. } in &topic.assignments {
        check_replicas(broker, broker_ids)?;
    }
    if !indexes.iter().enumerate().all(|(i, index)| *index as usize == i) {
        let message = "partitions should be a consecutive 0-based integer sequence";
        return Err(Refused::new(ErrorCode::InvalidReplicaAssignment, message));
    }
    Ok(i32::try_from(indexes.len()).expect("a frame holds fewer"))
}

/// Whether replicas can be on these nodes: on this one, once.
pub(super) fn check_replicas(broker: &Broker, ids: &[i32]) -> Result<(), Refused> {
    let refuse = |message: String| Err(Refused::new(ErrorCode::InvalidReplicaAssignment, message));
    if ids.is_empty() {
        return refuse("The manual partition assignment includes an empty replica list.".into());
    }
    if let Some(other) = ids.iter().find(|id| **id != broker.node_id()) {
        return refuse(format!(
            "The manual partition assignment includes broker {other}, but no such broker is registered."
        ));
    }
    if ids.len() > 1 {
        return refuse(format!("The manual partition assignment includes the broker {} more than once.", ids[0]));
    }
    Ok(())
}
