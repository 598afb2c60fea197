//! StreamsGroupDescribe: topology, state and members of groups of the streams group protocol (KIP-1071).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::{Broker, groups, operations};
use crate::coordinator::{self, DescribedStreamsMember, InternalTopic, TaskSet, Tasks};
use crate::protocol::ErrorCode;
use crate::protocol::messages::streams_group_describe::{
    Assignment, DescribedGroup, Endpoint, KeyValue, Member, StreamsGroupDescribeRequest, StreamsGroupDescribeResponse,
    Subtopology, TaskIds, TopicInfo, Topology,
};

pub(super) const HANDLER: Handler = serial!(StreamsGroupDescribeRequest, handle);

async fn handle(broker: Arc<Broker>, _: Context, request: StreamsGroupDescribeRequest) -> StreamsGroupDescribeResponse {
    let offered = broker.offers_streams_groups();
    let describe = |group_id: String| {
        if !offered {
            let error_code = ErrorCode::UnsupportedVersion.code();
            return DescribedGroup { group_id, error_code, ..Default::default() };
        }
        match broker.groups().with(|coordinator, _| coordinator.describe_streams(&group_id)) {
            Ok(group) => DescribedGroup {
                group_id,
                group_state: group.state.into(),
                group_epoch: group.epoch,
                assignment_epoch: group.assignment_epoch,
                topology: group.topology.map(topology),
                members: group.members.into_iter().map(member).collect(),
                authorized_operations: match request.include_authorized_operations {
                    true => operations::GROUP,
                    false => i32::MIN,
                },
                ..Default::default()
            },
            Err(refused) => DescribedGroup {
                group_id,
                error_code: groups::error_code(refused.error).code(),
                error_message: Some(refused.message).filter(|message| !message.is_empty()),
                ..Default::default()
            },
        }
    };
    StreamsGroupDescribeResponse { groups: request.group_ids.into_iter().map(describe).collect(), ..Default::default() }
}

fn topology(topology: coordinator::Topology) -> Topology {
    let subtopology = |subtopology: coordinator::Subtopology| Subtopology {
        subtopology_id: subtopology.id,
        source_topics: sorted(subtopology.source_topics),
        repartition_sink_topics: sorted(subtopology.sink_topics),
        state_changelog_topics: internal_topics(subtopology.changelogs),
        repartition_source_topics: internal_topics(subtopology.repartition_sources),
    };
    Topology {
        epoch: topology.epoch,
        subtopologies: Some(topology.subtopologies.into_iter().map(subtopology).collect()),
    }
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

fn internal_topics(mut topics: Vec<InternalTopic>) -> Vec<TopicInfo> {
    topics.sort_by(|a, b| a.name.cmp(&b.name));
    let topic = |topic: InternalTopic| TopicInfo {
        name: topic.name,
        partitions: topic.partitions,
        replication_factor: topic.replication_factor,
        topic_configs: pairs(topic.configs),
    };
    topics.into_iter().map(topic).collect()
}

fn pairs(pairs: BTreeMap<String, String>) -> Vec<KeyValue> {
    pairs.into_iter().map(|(key, value)| KeyValue { key, value }).collect()
}

fn member(member: DescribedStreamsMember) -> Member {
    Member {
        member_id: member.member_id,
        member_epoch: member.epoch,
        rack_id: member.rack_id,
        client_id: member.client_id,
        client_host: member.client_host,
        topology_epoch: member.topology_epoch,
        process_id: member.process_id,
        user_endpoint: member.endpoint.map(|endpoint| Endpoint { host: endpoint.host, port: endpoint.port }),
        client_tags: pairs(member.client_tags),
        assignment: assignment(member.assigned),
        target_assignment: assignment(member.target),
        ..Default::default()
    }
}

fn assignment(tasks: Tasks) -> Assignment {
    let ids = |tasks: TaskSet| {
        let ids = |(id, partitions): (Arc<str>, std::collections::BTreeSet<i32>)| TaskIds {
            subtopology_id: id.to_string(),
            partitions: partitions.into_iter().collect(),
        };
        tasks.into_iter().map(ids).collect()
    };
    Assignment { active_tasks: ids(tasks.active), standby_tasks: ids(tasks.standby), warmup_tasks: vec![] }
}
