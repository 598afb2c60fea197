//! Which partitions are served where: what members tell those who query the state of the application.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::api::{EndpointPartitions, TaskSet};
use super::{Member, StreamsGroup};
use crate::coordinator::topics::Topics;

impl StreamsGroup {
    /// Of every member that has an endpoint; the one that asks comes last.
    pub(super) fn endpoints(&self, asking: &Arc<str>, topics: &Topics) -> Vec<EndpointPartitions> {
        let others = self.members.iter().filter(|(id, _)| *id != asking).map(|(_, member)| member);
        let all = others.chain(self.members.get(asking));
        let of = |member: &Member| {
            let endpoint = member.endpoint.clone()?;
            let tasks = member.assigned.tasks();
            let active = self.partitions(&tasks.active, topics);
            Some(EndpointPartitions { endpoint, active, standby: self.partitions(&tasks.standby, topics) })
        };
        all.filter_map(of).collect()
    }

    /// The partitions that tasks read.
    fn partitions(&self, tasks: &TaskSet, topics: &Topics) -> Vec<(String, Vec<i32>)> {
        let mut found = Vec::new();
        for (id, tasks) in tasks {
            let all = self.topology.iter().flat_map(|topology| &topology.subtopologies);
            let sources: BTreeSet<&str> = all.filter(|one| one.id == **id).flat_map(|one| one.sources()).collect();
            for topic in sources {
                let count = topics.by_name(topic).map_or(0, |(_, count)| count);
                let partitions: Vec<i32> = tasks.range(0..count).copied().collect();
                if !partitions.is_empty() {
                    found.push((topic.to_owned(), partitions));
                }
            }
        }
        found
    }
}
