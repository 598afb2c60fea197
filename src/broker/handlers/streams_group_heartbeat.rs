//! StreamsGroupHeartbeat: members of the streams group protocol join, go on and leave (KIP-1071).
//!
//! - The internal topics that the application needs and that are not there are made before the answer, which still says that
//!   they were missing. Those that could not be made are named in it, and tried again with the next heartbeat.
//! - Refused with UNSUPPORTED_VERSION where `group.coordinator.rebalance.protocols` leaves the protocol out, or
//!   `streams.version` is 0.
//! - NOT_COORDINATOR for a new group before anybody has looked up a group's coordinator.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::topics::{self, Creation};
use crate::broker::{Broker, groups};
use crate::coordinator::{
    Endpoint, EndpointPartitions, InternalTopic, Reply, StreamsHeartbeat, StreamsHeartbeatRequest, StreamsStatus,
    Subtopology, TaskSet, Topology,
};
use crate::protocol::ErrorCode;
use crate::protocol::messages::streams_group_heartbeat as wire;
use wire::{StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse};

pub(super) const HANDLER: Handler = serial!(StreamsGroupHeartbeatRequest, handle);

async fn handle(
    broker: Arc<Broker>,
    context: Context,
    request: StreamsGroupHeartbeatRequest,
) -> StreamsGroupHeartbeatResponse {
    if !broker.offers_streams_groups() {
        return failed(ErrorCode::UnsupportedVersion, None);
    }
    if !broker.has_coordinator(&request.group_id) {
        return failed(ErrorCode::NotCoordinator, None);
    }
    let heartbeat = match translated(&context, request) {
        Ok(heartbeat) => heartbeat,
        Err((error, message)) => return failed(error, Some(message)),
    };
    let reply =
        broker.groups().ask(|coordinator, now, token| coordinator.streams_heartbeat(now, token, heartbeat)).await;
    match reply {
        Some(Reply::StreamsHeartbeat(Ok(mut answer))) => {
            let missing = std::mem::take(&mut answer.missing);
            let not_made = make(&broker, missing).await;
            response(*answer, &not_made)
        }
        Some(Reply::StreamsHeartbeat(Err(refused))) => failed(groups::error_code(refused.error), Some(refused.message)),
        _ => failed(ErrorCode::CoordinatorNotAvailable, None),
    }
}

fn failed(error: ErrorCode, error_message: Option<String>) -> StreamsGroupHeartbeatResponse {
    StreamsGroupHeartbeatResponse { error_code: error.code(), error_message, ..Default::default() }
}

/// A refusal, with why.
type Refusal = (ErrorCode, String);

fn translated(context: &Context, request: StreamsGroupHeartbeatRequest) -> Result<StreamsHeartbeatRequest, Refusal> {
    if let Some(topology) = &request.topology {
        check_names(topology)?;
    }
    Ok(StreamsHeartbeatRequest {
        group_id: request.group_id,
        member_id: request.member_id,
        member_epoch: request.member_epoch,
        endpoint_epoch: request.endpoint_information_epoch,
        instance_id: request.instance_id,
        rack_id: request.rack_id,
        rebalance_timeout_ms: request.rebalance_timeout_ms,
        client_id: context.client_id.clone().unwrap_or_default(),
        client_host: context.client.host(),
        topology: request.topology.map(topology).transpose()?,
        active: request.active_tasks.map(tasks),
        standby: request.standby_tasks.map(tasks),
        warmup: request.warmup_tasks.map(tasks),
        process_id: request.process_id,
        endpoint: request.user_endpoint.map(|endpoint| Endpoint { host: endpoint.host, port: endpoint.port }),
        client_tags: request.client_tags.map(pairs),
        has_task_offsets: request.task_offsets.is_some(),
        has_task_end_offsets: request.task_end_offsets.is_some(),
        shutdown: request.shutdown_application,
    })
}

/// An application may not use the topics in which Kafka keeps its own state, nor names that no topic may have.
fn check_names(topology: &wire::Topology) -> Result<(), Refusal> {
    let mut seen = BTreeSet::new();
    let (mut prohibited, mut invalid) = (vec![], vec![]);
    for subtopology in &topology.subtopologies {
        let internal = subtopology.repartition_source_topics.iter().chain(&subtopology.state_changelog_topics);
        let plain = subtopology.source_topics.iter().chain(&subtopology.repartition_sink_topics);
        for name in plain.chain(internal.map(|topic| &topic.name)).filter(|name| seen.insert(name.as_str())) {
            if topics::is_internal(name) {
                prohibited.push(name.as_str());
            } else if topics::check_name(name).is_err() {
                invalid.push(name.as_str());
            }
        }
    }
    let message = match (prohibited.is_empty(), invalid.is_empty()) {
        (true, true) => return Ok(()),
        (false, _) => {
            let names = prohibited.join(",");
            format!("Use of Kafka internal topics {names} in a Kafka Streams topology is prohibited.")
        }
        (true, false) => format!("Topic names {} are not valid topic names.", invalid.join(",")),
    };
    Err((ErrorCode::StreamsInvalidTopology, message))
}

fn topology(topology: wire::Topology) -> Result<Topology, Refusal> {
    let mut subtopologies = topology.subtopologies.into_iter().map(subtopology).collect::<Result<Vec<_>, _>>()?;
    subtopologies.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(Topology { epoch: topology.epoch, subtopologies })
}

fn subtopology(subtopology: wire::Subtopology) -> Result<Subtopology, Refusal> {
    if !subtopology.source_topic_regex.is_empty() {
        let message = "Regular expressions for source topics are not supported yet.";
        return Err((ErrorCode::InvalidRequest, message.into()));
    }
    let internal = |topics: Vec<wire::TopicInfo>| -> Vec<InternalTopic> {
        let topic = |topic: wire::TopicInfo| InternalTopic {
            name: topic.name,
            partitions: topic.partitions,
            replication_factor: topic.replication_factor,
            configs: pairs(topic.topic_configs),
        };
        topics.into_iter().map(topic).collect()
    };
    let mut translated = Subtopology {
        id: subtopology.subtopology_id,
        source_topics: subtopology.source_topics,
        sink_topics: subtopology.repartition_sink_topics,
        repartition_sources: internal(subtopology.repartition_source_topics),
        changelogs: internal(subtopology.state_changelog_topics),
        copartition_groups: vec![],
    };
    for group in subtopology.copartition_groups {
        let mut names = BTreeSet::new();
        for place in group.source_topics {
            names.insert(at(&translated.source_topics, place).ok_or_else(|| nowhere(&translated.id, place))?.clone());
        }
        for place in group.repartition_source_topics {
            let topic = at(&translated.repartition_sources, place).ok_or_else(|| nowhere(&translated.id, place))?;
            names.insert(topic.name.clone());
        }
        translated.copartition_groups.push(names);
    }
    Ok(translated)
}

fn at<T>(list: &[T], place: i16) -> Option<&T> {
    list.get(usize::try_from(place).ok()?)
}

fn nowhere(subtopology: &str, place: i16) -> Refusal {
    let message = format!("A copartition group of subtopology {subtopology} names topic {place}, which there is not.");
    (ErrorCode::StreamsInvalidTopology, message)
}

fn pairs(pairs: Vec<wire::KeyValue>) -> BTreeMap<String, String> {
    pairs.into_iter().map(|pair| (pair.key, pair.value)).collect()
}

fn tasks(tasks: Vec<wire::RequestTaskIds>) -> TaskSet {
    let mut all = TaskSet::new();
    for ids in tasks.into_iter().filter(|ids| !ids.partitions.is_empty()) {
        all.entry(ids.subtopology_id.into()).or_default().extend(ids.partitions);
    }
    all
}

/// Makes internal topics. Answers those that could not be made, with why.
async fn make(broker: &Arc<Broker>, missing: Vec<InternalTopic>) -> Vec<(String, String)> {
    let mut not_made = vec![];
    for topic in missing {
        let creation = Creation {
            name: topic.name.clone(),
            partitions: topic.partitions,
            replication_factor: if topic.replication_factor == 0 { -1 } else { topic.replication_factor },
            configs: topic.configs,
        };
        match topics::create(broker, creation).await {
            Ok(_) => tracing::info!(topic = topic.name, "made for a streams group"),
            // Another member's heartbeat was faster.
            Err(refused) if refused.code == ErrorCode::TopicAlreadyExists => {}
            Err(refused) => {
                tracing::warn!(topic = topic.name, "not made for a streams group: {}", refused.message);
                not_made.push((topic.name, refused.message));
            }
        }
    }
    not_made
}

fn response(answer: StreamsHeartbeat, not_made: &[(String, String)]) -> StreamsGroupHeartbeatResponse {
    let status = |(status, mut detail): (StreamsStatus, String)| {
        if status == StreamsStatus::MissingInternalTopics && !not_made.is_empty() {
            detail.push_str(&format!("; Creation failed: {}.", not_made_summary(not_made)));
        }
        wire::Status { status_code: status as i8, status_detail: detail }
    };
    let (active, standby, warmup) = match answer.tasks {
        Some(tasks) => (Some(task_ids(tasks.active)), Some(task_ids(tasks.standby)), Some(vec![])),
        None => (None, None, None),
    };
    StreamsGroupHeartbeatResponse {
        member_id: answer.member_id,
        member_epoch: answer.member_epoch,
        heartbeat_interval_ms: answer.heartbeat_interval_ms,
        status: Some(answer.statuses.into_iter().map(status).collect()),
        active_tasks: active,
        standby_tasks: standby,
        warmup_tasks: warmup,
        endpoint_information_epoch: answer.endpoint_epoch,
        partitions_by_user_endpoint: answer.endpoints.map(|all| all.into_iter().map(endpoint).collect()),
        ..Default::default()
    }
}

/// The first three, and how many more.
fn not_made_summary(not_made: &[(String, String)]) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<String> = not_made.iter().take(SHOWN).map(|(topic, why)| format!("{topic} ({why})")).collect();
    let mut text = shown.join(", ");
    if not_made.len() > SHOWN {
        text.push_str(&format!(" and {} more", not_made.len() - SHOWN));
    }
    text
}

fn task_ids(tasks: TaskSet) -> Vec<wire::ResponseTaskIds> {
    let ids = |(id, partitions): (Arc<str>, BTreeSet<i32>)| wire::ResponseTaskIds {
        subtopology_id: id.to_string(),
        partitions: partitions.into_iter().collect(),
    };
    tasks.into_iter().map(ids).collect()
}

fn endpoint(served: EndpointPartitions) -> wire::EndpointToPartitions {
    let partitions = |all: Vec<(String, Vec<i32>)>| {
        all.into_iter().map(|(topic, partitions)| wire::TopicPartition { topic, partitions }).collect()
    };
    wire::EndpointToPartitions {
        user_endpoint: wire::ResponseEndpoint { host: served.endpoint.host, port: served.endpoint.port },
        active_partitions: partitions(served.active),
        standby_partitions: partitions(served.standby),
    }
}
