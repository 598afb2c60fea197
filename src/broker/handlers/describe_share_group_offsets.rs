//! DescribeShareGroupOffsets: how far share groups have come (KIP-932).
//!
//! - v1 adds the lag: the records from the start offset on that are not done with.
//! - What is told is durable. -1 stands for a partition that the group has not fetched from.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::protocol::messages::describe_share_group_offsets::{
    DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsRequestGroup, DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup, DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
};
use crate::protocol::{ErrorCode, Uuid};

pub(super) const HANDLER: Handler = serial!(DescribeShareGroupOffsetsRequest, handle);

async fn handle(
    broker: Arc<Broker>,
    _: Context,
    request: DescribeShareGroupOffsetsRequest,
) -> DescribeShareGroupOffsetsResponse {
    let mut response = DescribeShareGroupOffsetsResponse::default();
    for group in request.groups {
        response.groups.push(describe(&broker, group).await);
    }
    response
}

async fn describe(
    broker: &Arc<Broker>,
    asked: DescribeShareGroupOffsetsRequestGroup,
) -> DescribeShareGroupOffsetsResponseGroup {
    let mut group = DescribeShareGroupOffsetsResponseGroup { group_id: asked.group_id, ..Default::default() };
    if !broker.offers_share_groups() {
        group.error_code = ErrorCode::UnsupportedVersion.code();
        return group;
    }
    let asked: Vec<(String, Vec<i32>)> = match asked.topics {
        Some(topics) => topics.into_iter().map(|topic| (topic.topic_name, topic.partitions)).collect(),
        None => all_of(broker, &group.group_id),
    };
    for (topic_name, indexes) in asked {
        let topic_id = broker.topic_by_name(&topic_name).map_or(Uuid::ZERO, |topic| topic.topic.id);
        let mut partitions = Vec::with_capacity(indexes.len());
        for partition in indexes {
            partitions.push(describe_partition(broker, &group.group_id, topic_id, partition).await);
        }
        group.topics.push(DescribeShareGroupOffsetsResponseTopic { topic_name, topic_id, partitions });
    }
    group
}

/// Every partition that the group keeps state of, by the name of its topic.
fn all_of(broker: &Broker, group: &str) -> Vec<(String, Vec<i32>)> {
    let kept = broker.groups().with(|coordinator, _| coordinator.share_partitions(group));
    let topics = broker.topics();
    let named = kept.into_iter().filter_map(|(id, partitions)| Some((topics.by_id(id)?.name.to_string(), partitions)));
    let by_name: BTreeMap<String, _> = named.collect();
    by_name.into_iter().map(|(name, partitions)| (name, partitions.into_iter().collect())).collect()
}

async fn describe_partition(
    broker: &Arc<Broker>,
    group: &str,
    topic: Uuid,
    partition_index: i32,
) -> DescribeShareGroupOffsetsResponsePartition {
    let nothing =
        DescribeShareGroupOffsetsResponsePartition { partition_index, start_offset: -1, ..Default::default() };
    if topic.is_zero() {
        return nothing;
    }
    let found = async {
        let topic_ref = broker.topic_by_id(topic)?;
        let log = broker.partition(&topic_ref, partition_index).await?;
        Ok((log, broker.shares().stored_state(group, (topic, partition_index)).await?))
    };
    match found.await {
        Ok((_, None)) => nothing,
        Ok((log, Some(state))) => match state.start_offset() {
            None => nothing,
            Some(start_offset) => DescribeShareGroupOffsetsResponsePartition {
                start_offset,
                leader_epoch: state.leader_epoch(),
                lag: state.done().map_or(-1, |done| log.offsets().high_watermark - start_offset - i64::from(done)),
                ..nothing
            },
        },
        Err(error) => {
            let error: ErrorCode = error;
            DescribeShareGroupOffsetsResponsePartition {
                error_code: error.code(),
                error_message: Some(error.name().into()),
                ..nothing
            }
        }
    }
}
