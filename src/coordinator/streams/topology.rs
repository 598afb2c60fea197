//! The topology of a Streams application: its subtopologies, and the topics that each reads, writes and keeps state in.

use std::collections::{BTreeMap, BTreeSet};

/// A topic that the application keeps for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InternalTopic {
    pub name: String,
    /// 0 where the number of partitions follows from other topics.
    pub partitions: i32,
    /// 0 for the broker's default.
    pub replication_factor: i16,
    pub configs: BTreeMap<String, String>,
}

/// A part of the topology that works by itself; of each there are as many tasks as its widest source has partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subtopology {
    pub id: String,
    /// Topics that the application does not make.
    pub source_topics: Vec<String>,
    /// Repartition topics that it writes to.
    pub sink_topics: Vec<String>,
    /// Repartition topics that it reads.
    pub repartition_sources: Vec<InternalTopic>,
    pub changelogs: Vec<InternalTopic>,
    /// Names of sources that have to have the same number of partitions.
    pub copartition_groups: Vec<BTreeSet<String>>,
}

impl Subtopology {
    /// Every topic that it reads.
    pub(super) fn sources(&self) -> impl Iterator<Item = &str> {
        let repartition = self.repartition_sources.iter().map(|topic| topic.name.as_str());
        self.source_topics.iter().map(String::as_str).chain(repartition)
    }
}

/// All of it, and which version of the application it belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    pub epoch: i32,
    /// In the order of their ids.
    pub subtopologies: Vec<Subtopology>,
}

impl Topology {
    /// The topics that have to be there before there are tasks.
    pub(super) fn required(&self) -> BTreeSet<&str> {
        self.subtopologies
            .iter()
            .flat_map(|one| one.sources().chain(one.changelogs.iter().map(|topic| topic.name.as_str())))
            .collect()
    }

    /// The subtopology that reads a topic.
    pub(super) fn reader_of(&self, topic: &str) -> Option<&Subtopology> {
        self.subtopologies.iter().find(|one| one.sources().any(|source| source == topic))
    }
}
