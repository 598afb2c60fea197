//! CreatePartitions: a topic gets more of them, complete when it is answered. It never gets fewer.

use std::collections::HashSet;
use std::sync::Arc;

use super::create_topics::check_replicas;
use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::quotas::Mutations;
use crate::broker::topics::{self, Refused};
use crate::protocol::ErrorCode;
use crate::protocol::messages::create_partitions::{
    CreatePartitionsRequest, CreatePartitionsResponse, CreatePartitionsTopic, CreatePartitionsTopicResult,
};

/// From this version on, what goes beyond the quota of topic changes is refused; before, the client is held back (KIP-599).
const STRICT_SINCE: i16 = 3;

pub(super) const HANDLER: Handler = serial!(CreatePartitionsRequest, handle);

/// The most partitions that one request can add.
const MAX_AT_ONCE: i32 = 10_000;

async fn handle(broker: Arc<Broker>, context: Context, request: CreatePartitionsRequest) -> CreatePartitionsResponse {
    let mut seen = HashSet::new();
    let twice: HashSet<String> =
        request.topics.iter().filter(|topic| !seen.insert(&topic.name)).map(|topic| topic.name.clone()).collect();
    let mut mutations = broker.quotas().mutations(context.client_id.as_deref(), context.version >= STRICT_SINCE);
    let mut response = CreatePartitionsResponse::default();
    let mut told = HashSet::new();
    for topic in request.topics {
        let result = if twice.contains(&topic.name) {
            if !told.insert(topic.name.clone()) {
                continue;
            }
            Err(Refused::new(ErrorCode::InvalidRequest, "Duplicate topic name."))
        } else {
            add(&broker, &topic, request.validate_only, &mut mutations).await
        };
        let (error, error_message) = match result {
            Ok(()) => (ErrorCode::None, None),
            Err(refused) => (refused.code, refused.into_message()),
        };
        response.results.push(CreatePartitionsTopicResult {
            name: topic.name,
            error_code: error.code(),
            error_message,
        });
    }
    response.throttle_time_ms = mutations.throttle_ms();
    response
}

async fn add(
    broker: &Arc<Broker>,
    asked: &CreatePartitionsTopic,
    validate_only: bool,
    mutations: &mut Mutations<'_>,
) -> Result<(), Refused> {
    let topic = broker.topic_by_name(&asked.name).map_err(|code| Refused::new(code, ""))?.topic;
    if asked.count == topic.partitions {
        let message = format!("Topic already has {} partition(s).", asked.count);
        return Err(Refused::new(ErrorCode::InvalidPartitions, message));
    }
    let more = asked.count.saturating_sub(topic.partitions);
    if more < 0 {
        let message = format!(
            "The topic {} currently has {} partition(s); {} would not be an increase.",
            asked.name, topic.partitions, asked.count
        );
        return Err(Refused::new(ErrorCode::InvalidPartitions, message));
    }
    if more > MAX_AT_ONCE {
        let message = "Excessively large number of partitions per request.";
        return Err(Refused::new(ErrorCode::PolicyViolation, message));
    }
    if let Some(assignments) = &asked.assignments {
        if assignments.len() != more as usize {
            let message = format!(
                "Attempted to add {more} additional partition(s), but only {} assignment(s) were specified.",
                assignments.len()
            );
            return Err(Refused::new(ErrorCode::InvalidReplicaAssignment, message));
        }
        for assignment in assignments {
            check_replicas(broker, &assignment.broker_ids)?;
        }
    }
    mutations.take(more)?;
    if validate_only {
        return Ok(());
    }
    let (this, name, count) = (broker.clone(), asked.name.clone(), asked.count);
    broker
        .blocking(move || this.store().add_partitions(&name, count).map_err(|error| topics::not_created(&error)))
        .await
        .map_err(|code| Refused::new(code, "the partitions could not be made"))??;
    Ok(())
}
