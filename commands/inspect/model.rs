//! What is shown, gathered from the partitions' folders and from the catalog.

use std::collections::BTreeMap;
use std::sync::Arc;

use doze::protocol::Uuid;
use doze::storage::catalog::{ConfigMap, ResourceType};
use doze::storage::inspect::{Content, Depth, PartitionSummary};
use doze::storage::internal_topics::is_internal;
use doze::storage::offline::{DataDir, KafkaMetadata, MetadataError, Origin, PartitionFolder};
use doze::storage::scrub;

use super::groups::{self, GroupView};
use super::transactions::{self, TransactionView};
use crate::exit::{self, Failure};
use crate::progress::Progress;

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    All,
    Topic(String),
    Partition(String, i32),
}

impl Scope {
    pub fn takes(&self, topic: &str, partition: i32) -> bool {
        match self {
            Scope::All => true,
            Scope::Topic(name) => name == topic,
            Scope::Partition(name, number) => name == topic && *number == partition,
        }
    }
}

/// A topic and those of its partitions that were asked for.
#[derive(Debug)]
pub struct TopicView {
    pub name: String,
    /// As the catalog or Apache Kafka's metadata log has it, else as the first partition's folder has it.
    pub id: Option<Uuid>,
    /// `None`: there is no catalog that could say.
    pub in_catalog: Option<bool>,
    /// How many partitions it has: as the catalog says, else as many as there are folders.
    pub declared: i32,
    /// Those that were set on it. `None`: they are not known.
    pub configs: Option<Arc<ConfigMap>>,
    pub partitions: Vec<PartitionSummary>,
    /// Partitions that the catalog has and no folder is there for; those of Kafka's own topics need none.
    pub missing: Vec<i32>,
}

impl TopicView {
    pub fn content(&self) -> Content {
        let mut content = Content::default();
        self.partitions.iter().for_each(|partition| content.merge(&partition.content()));
        content
    }

    pub fn segments(&self) -> usize {
        self.partitions.iter().map(|partition| partition.segments.len()).sum()
    }

    pub fn log_bytes(&self) -> u64 {
        self.partitions.iter().map(PartitionSummary::log_bytes).sum()
    }

    pub fn disk_bytes(&self) -> u64 {
        self.partitions.iter().map(|partition| partition.disk_bytes).sum()
    }

    /// Offsets from the starts to the ends of its logs.
    pub fn offsets(&self) -> i64 {
        self.partitions.iter().map(|partition| partition.log_end - partition.log_start).sum()
    }

    pub fn first_timestamp(&self) -> Option<i64> {
        self.partitions.iter().filter_map(PartitionSummary::first_timestamp).min()
    }

    pub fn last_timestamp(&self) -> Option<i64> {
        self.partitions.iter().filter_map(PartitionSummary::last_timestamp).max()
    }
}

/// Everything that is shown.
#[derive(Debug)]
pub struct View<'a> {
    pub dir: &'a DataDir,
    /// Sorted by name.
    pub topics: Vec<TopicView>,
    /// The groups, with their offsets in what was asked for. Empty for Apache Kafka's directories, which have them in a topic.
    pub groups: Vec<GroupView>,
    pub transactions: Vec<TransactionView>,
    /// How far the check of sealed segments is, and what it has found. `None` for Apache Kafka's directories.
    pub scrub: Option<scrub::Checkpoint>,
    /// What could not be read, and belongs to no partition.
    pub unreadable: Vec<String>,
}

impl View<'_> {
    pub fn read<'a>(dir: &'a DataDir, scope: &Scope, depth: Depth) -> Result<View<'a>, Failure> {
        let mut view = View {
            dir,
            topics: Vec::new(),
            groups: Vec::new(),
            transactions: Vec::new(),
            scrub: None,
            unreadable: Vec::new(),
        };
        if dir.origin() == Origin::Doze && *scope == Scope::All {
            match scrub::Checkpoint::read(&*dir.env().fs, dir.path()) {
                Ok(checkpoint) => view.scrub = Some(checkpoint),
                Err(error) => view.unreadable.push(format!("what the scrub has found: {error}")),
            }
        }
        let folders: Vec<&PartitionFolder> =
            dir.partitions().iter().filter(|folder| scope.takes(&folder.topic, folder.partition)).collect();
        let progress = (depth == Depth::Count).then(|| Progress::bytes("counting", log_bytes(dir, &folders)));
        let mut partitions: BTreeMap<String, Vec<PartitionSummary>> = BTreeMap::new();
        for folder in folders {
            match PartitionSummary::read(dir, folder, depth) {
                Ok(summary) => {
                    progress.iter().for_each(|progress| progress.add(summary.log_bytes()));
                    partitions.entry(folder.topic.clone()).or_default().push(summary);
                }
                Err(error) => view.unreadable.push(exit::with_causes(&error)),
            }
        }
        progress.iter().for_each(Progress::finish);
        if let Some(catalog) = dir.catalog() {
            for topic in
                catalog.topics().iter().filter(|topic| (0..topic.partitions).any(|n| scope.takes(&topic.name, n)))
            {
                partitions.entry(topic.name.to_string()).or_default();
            }
        }
        let metadata = match dir.origin() {
            Origin::Doze => None,
            Origin::Kafka => match dir.kafka_metadata() {
                Ok(metadata) => Some(metadata),
                // Another of the node's log directories has it, or another node.
                Err(MetadataError::Missing { .. }) => None,
                Err(error) => {
                    view.unreadable.push(format!("the configs of topics: {}", exit::with_causes(&error)));
                    None
                }
            },
        };
        let topic_of = |(name, partitions)| topic(dir, metadata.as_ref(), scope, name, partitions);
        view.topics = partitions.into_iter().map(topic_of).collect();
        if let Some(catalog) = dir.catalog() {
            let ends = view.ends();
            let (groups, mut unreadable) = groups::read(dir.env(), catalog, scope, &ends);
            view.groups = groups;
            view.unreadable.append(&mut unreadable);
            if *scope == Scope::All {
                let (transactions, mut unreadable) = transactions::read(catalog);
                view.transactions = transactions;
                view.unreadable.append(&mut unreadable);
            }
        }
        Ok(view)
    }

    /// Where each partition ends.
    fn ends(&self) -> BTreeMap<(String, i32), i64> {
        let all = self.topics.iter().flat_map(|topic| &topic.partitions);
        all.map(|partition| ((partition.topic.clone(), partition.partition), partition.high_watermark)).collect()
    }

    /// How many things could not be read.
    pub fn problems(&self) -> usize {
        let of_partitions =
            self.topics.iter().flat_map(|topic| &topic.partitions).map(|partition| partition.problems.len());
        self.unreadable.len() + of_partitions.sum::<usize>()
    }
}

fn topic(
    dir: &DataDir,
    metadata: Option<&KafkaMetadata>,
    scope: &Scope,
    name: String,
    partitions: Vec<PartitionSummary>,
) -> TopicView {
    let topics = dir.catalog().map(|catalog| catalog.topics());
    let known = topics.as_ref().and_then(|topics| topics.by_name(&name));
    let folders = dir.partitions().iter().filter(|folder| folder.topic == name).count();
    let declared = known.map_or(folders as i32, |topic| topic.partitions);
    let is_there =
        |number: &i32| dir.partitions().iter().any(|folder| folder.topic == name && folder.partition == *number);
    let missing = (0..known.filter(|_| !is_internal(&name)).map_or(0, |topic| topic.partitions))
        .filter(|n| scope.takes(&name, *n) && !is_there(n))
        .collect();
    let configs = match dir.origin() {
        Origin::Doze => {
            dir.catalog().map(|catalog| catalog.configs().get(ResourceType::Topic, &name).cloned().unwrap_or_default())
        }
        Origin::Kafka => {
            let metadata = metadata.filter(|metadata| metadata.topic(&name).is_some());
            metadata.map(|metadata| metadata.topic_configs(&name))
        }
    };
    let id = known.map(|topic| topic.id).or_else(|| Some(metadata?.topic(&name)?.id));
    TopicView {
        id: id.or_else(|| partitions.iter().find_map(|partition| partition.topic_id)),
        in_catalog: topics.as_ref().map(|_| known.is_some()),
        declared,
        configs,
        partitions,
        missing,
        name,
    }
}

/// About how much there is to be read.
fn log_bytes(dir: &DataDir, folders: &[&PartitionFolder]) -> u64 {
    let fs = &dir.env().fs;
    let mut bytes = 0;
    for folder in folders {
        for entry in fs.list(&folder.path).unwrap_or_default() {
            if entry.name.as_encoded_bytes().ends_with(b".log") {
                bytes += fs.metadata(&folder.path.join(&entry.name)).map_or(0, |metadata| metadata.len);
            }
        }
    }
    bytes
}
