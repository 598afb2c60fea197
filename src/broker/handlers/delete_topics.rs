//! DeleteTopics: a topic is gone, files and all, when it is answered.
//!
//! - v6 can name topics by id (KIP-516).

use std::collections::HashSet;
use std::sync::Arc;

use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::topics::{self, Refused};
use crate::protocol::messages::delete_topics::{
    DeletableTopicResult, DeleteTopicState, DeleteTopicsRequest, DeleteTopicsResponse,
};
use crate::protocol::{ErrorCode, Uuid};
use crate::storage::catalog::Topic;

/// From this version on, what goes beyond the quota of topic changes is refused; before, the client is held back (KIP-599).
const STRICT_SINCE: i16 = 5;

pub(super) const HANDLER: Handler = serial!(DeleteTopicsRequest, handle);

async fn handle(broker: Arc<Broker>, context: Context, request: DeleteTopicsRequest) -> DeleteTopicsResponse {
    let asked: Vec<DeleteTopicState> = match context.version {
        6.. => request.topics,
        _ => {
            let by_name = |name| DeleteTopicState { name: Some(name), topic_id: Uuid::ZERO };
            request.topic_names.into_iter().map(by_name).collect()
        }
    };
    if !broker.config().boolean("delete.topic.enable") {
        let refuse = |state: DeleteTopicState| {
            failed(
                state.name,
                state.topic_id,
                Refused::new(ErrorCode::TopicDeletionDisabled, "Topic deletion is disabled."),
            )
        };
        return DeleteTopicsResponse { responses: asked.into_iter().map(refuse).collect(), ..Default::default() };
    }
    let mut mutations = broker.quotas().mutations(context.client_id.as_deref(), context.version >= STRICT_SINCE);
    let mut response = DeleteTopicsResponse::default();
    let mut seen = HashSet::new();
    let twice: HashSet<Option<String>> = asked
        .iter()
        .filter(|state| state.name.is_some() && !seen.insert(&state.name))
        .map(|state| state.name.clone())
        .collect();
    let mut told = HashSet::new();
    for state in asked {
        if twice.contains(&state.name) {
            if told.insert(state.name.clone()) {
                let refused = Refused::new(ErrorCode::InvalidRequest, "Duplicate topic name.");
                response.responses.push(failed(state.name, Uuid::ZERO, refused));
            }
            continue;
        }
        let result = match find(&broker, &state) {
            Ok(topic) => match mutations.take(topic.partitions) {
                Ok(()) => delete(&broker, &topic).await.map(|()| topic),
                Err(refused) => Err(refused),
            },
            Err(refused) => Err(refused),
        };
        response.responses.push(match result {
            Ok(topic) => {
                DeletableTopicResult { name: Some(topic.name.to_string()), topic_id: topic.id, ..Default::default() }
            }
            Err(refused) => failed(state.name, state.topic_id, refused),
        });
    }
    response.throttle_time_ms = mutations.throttle_ms();
    response
}

fn failed(name: Option<String>, topic_id: Uuid, refused: Refused) -> DeletableTopicResult {
    DeletableTopicResult { name, topic_id, error_code: refused.code.code(), error_message: refused.into_message() }
}

fn find(broker: &Broker, state: &DeleteTopicState) -> Result<Arc<Topic>, Refused> {
    let topics = broker.topics();
    match &state.name {
        None if state.topic_id.is_zero() => {
            Err(Refused::new(ErrorCode::InvalidRequest, "Neither topic name nor id were specified."))
        }
        None => topics
            .by_id(state.topic_id)
            .cloned()
            .ok_or_else(|| Refused::new(ErrorCode::UnknownTopicId, "This server does not host this topic ID.")),
        Some(_) if !state.topic_id.is_zero() => {
            Err(Refused::new(ErrorCode::InvalidRequest, "You may not specify both topic name and topic id."))
        }
        Some(name) => topics.by_name(name).cloned().ok_or_else(|| {
            Refused::new(ErrorCode::UnknownTopicOrPartition, "This server does not host this topic-partition.")
        }),
    }
}

async fn delete(broker: &Arc<Broker>, topic: &Arc<Topic>) -> Result<(), Refused> {
    let (this, name) = (broker.clone(), topic.name.clone());
    broker
        .blocking(move || this.store().delete_topic(&name).map_err(|error| topics::not_deleted(&error)))
        .await
        .map_err(|code| Refused::new(code, "the topic could not be deleted"))??;
    broker.topic_deleted(topic);
    Ok(())
}
