//! Metadata: the node, and topics with their partitions.
//!
//! - v0 asks for all topics with an empty list, later versions with null. v4 may forbid the creation of topics that are
//!   not there, which a broker with `auto.create.topics.enable` does otherwise. v12 can ask by topic id (KIP-516).
//! - A partition whose log is offline has a leader, as reads go on, and no replica in sync.
//! - A topic that is created by being asked for is complete when the answer names it.

use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::topics::{self, Creation};
use crate::broker::{Broker, internal_topics, operations};
use crate::protocol::ErrorCode;
use crate::protocol::messages::metadata::{
    MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseBroker, MetadataResponsePartition,
    MetadataResponseTopic,
};
use crate::storage::catalog::Topic;

pub(super) const HANDLER: Handler = serial!(MetadataRequest, handle);

async fn handle(broker: Arc<Broker>, context: Context, request: MetadataRequest) -> MetadataResponse {
    let all = match &request.topics {
        None => true,
        Some(topics) => topics.is_empty() && context.version == 0,
    };
    let asked = request.topics.as_deref().unwrap_or_default();
    if asked.iter().any(|topic| topic.name.is_none() && topic.topic_id.is_zero())
        || asks_by_id_too_early(&context, asked)
    {
        // Nothing but the refusal, not even this node.
        let topics = asked.iter().map(|topic| failed(topic, ErrorCode::InvalidRequest)).collect();
        return MetadataResponse { topics, ..Default::default() };
    }
    let topics = if all {
        broker.topics().iter().map(|topic| described(&broker, topic)).collect()
    } else {
        named(&broker, &request).await
    };
    let (host, port) = broker.advertised(&context.client);
    let mut response = MetadataResponse {
        brokers: vec![MetadataResponseBroker { node_id: broker.node_id(), host, port, rack: broker.rack() }],
        cluster_id: Some(broker.cluster_id()),
        controller_id: broker.node_id(),
        topics,
        ..Default::default()
    };
    if request.include_cluster_authorized_operations {
        response.cluster_authorized_operations = operations::CLUSTER;
    }
    if request.include_topic_authorized_operations {
        for topic in &mut response.topics {
            topic.topic_authorized_operations = operations::TOPIC;
        }
    }
    response
}

/// v10 and v11 have room for a topic id, and brokers that do not go by it.
fn asks_by_id_too_early(context: &Context, asked: &[MetadataRequestTopic]) -> bool {
    context.version < 12 && asked.iter().any(|topic| topic.name.is_none() || !topic.topic_id.is_zero())
}

async fn named(broker: &Arc<Broker>, request: &MetadataRequest) -> Vec<MetadataResponseTopic> {
    let asked = request.topics.as_deref().unwrap_or_default();
    let by_id = asked.iter().any(|topic| !topic.topic_id.is_zero());
    let mut seen = std::collections::HashSet::new();
    let mut answers = vec![];
    // Where some topics are named by their ids, those that are not are left out, as Kafka does it.
    for topic in asked.iter().filter(|topic| !by_id || !topic.topic_id.is_zero()) {
        if !seen.insert((&topic.name, topic.topic_id)) {
            continue;
        }
        let answer = match &topic.name {
            _ if by_id => match broker.topics().by_id(topic.topic_id) {
                Some(found) => described(broker, found),
                None => failed(topic, ErrorCode::UnknownTopicId),
            },
            Some(name) => match find_or_create(broker, name, request.allow_auto_topic_creation).await {
                Ok(found) => described(broker, &found),
                Err(error) => failed(topic, error),
            },
            None => failed(topic, ErrorCode::UnknownTopicOrPartition),
        };
        answers.push(answer);
    }
    answers
}

async fn find_or_create(broker: &Arc<Broker>, name: &str, may_create: bool) -> Result<Arc<Topic>, ErrorCode> {
    if let Some(topic) = broker.topics().by_name(name) {
        return Ok(topic.clone());
    }
    topics::check_name(name).map_err(|_| ErrorCode::InvalidTopicException)?;
    if !may_create || !broker.auto_creates_topics() {
        return Err(ErrorCode::UnknownTopicOrPartition);
    }
    let creation = internal_topics::creation(&broker.config(), name);
    let created = topics::create(broker, creation.unwrap_or_else(|| Creation::by_default(name))).await;
    match created {
        Ok(topic) => {
            tracing::info!(
                topic = name,
                partitions = topic.partitions,
                "created a topic because a client asked for it"
            );
            Ok(topic)
        }
        // Somebody else was faster.
        Err(error) if error.code == ErrorCode::TopicAlreadyExists => {
            broker.topics().by_name(name).cloned().ok_or(ErrorCode::UnknownTopicOrPartition)
        }
        Err(error) if error.code == ErrorCode::InvalidTopicException => Err(error.code),
        Err(error) => {
            tracing::warn!(topic = name, "could not create the topic that a client asked for: {}", error.message);
            Err(ErrorCode::UnknownTopicOrPartition)
        }
    }
}

fn failed(topic: &MetadataRequestTopic, error: ErrorCode) -> MetadataResponseTopic {
    MetadataResponseTopic {
        error_code: error.code(),
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        ..Default::default()
    }
}

fn described(broker: &Broker, topic: &Topic) -> MetadataResponseTopic {
    let node = broker.node_id();
    let partition = |partition_index| {
        let (isr_nodes, offline_replicas) = broker.replicas(topic.id, partition_index);
        MetadataResponsePartition {
            partition_index,
            leader_id: node,
            leader_epoch: topics::LEADER_EPOCH,
            replica_nodes: vec![node],
            isr_nodes,
            offline_replicas,
            ..Default::default()
        }
    };
    MetadataResponseTopic {
        name: Some(topic.name.to_string()),
        topic_id: topic.id,
        is_internal: topics::is_internal(&topic.name),
        partitions: (0..topic.partitions).map(partition).collect(),
        ..Default::default()
    }
}
