//! The data directory as a whole: its mark, its catalog, and the catalog against the folders.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::finding::{Consequence, Finding, Kind, Repair};
use super::partition::Facts;
use super::report::{Level, Unchecked};
use crate::protocol::Uuid;
use crate::storage::catalog::{Catalog, ConfigMap, ResourceType, Topic};
use crate::storage::internal_topics::is_internal;
use crate::storage::names::{self, LeftoverDir, PartitionFile};
use crate::storage::offline::{
    CatalogState, Checkpoint, DataDir, Held, KafkaMetadata, MetadataError, Origin, PartitionFolder, Stop,
};

/// Collects the findings about the directory.
pub(super) struct Directory<'a> {
    dir: &'a DataDir,
    level: Level,
    /// Of one of Apache Kafka's, where it can be read.
    metadata: Option<KafkaMetadata>,
    pub findings: Vec<Finding>,
    pub unchecked: Vec<Unchecked>,
}

impl<'a> Directory<'a> {
    pub fn new(dir: &'a DataDir, level: Level) -> Directory<'a> {
        let mut directory = Directory { dir, level, metadata: None, findings: Vec::new(), unchecked: Vec::new() };
        if dir.origin() == Origin::Kafka {
            match dir.kafka_metadata() {
                Ok(metadata) => directory.metadata = Some(metadata),
                Err(MetadataError::Missing { .. }) => {}
                Err(error) => directory.skip(format!("whether topics are compacted that were never cleaned: {error}")),
            }
        }
        directory
    }

    fn add(
        &mut self,
        file: impl Into<PathBuf>,
        of: (Option<&str>, Option<i32>),
        kind: Kind,
        meaning: (Consequence, Repair),
        detail: impl Into<String>,
    ) {
        self.findings.push(Finding {
            topic: of.0.map(str::to_owned),
            partition: of.1,
            file: file.into(),
            position: None,
            bytes: None,
            offsets: None,
            kind,
            consequence: meaning.0,
            repair: meaning.1,
            detail: detail.into(),
        });
    }

    pub fn skip(&mut self, what: impl Into<String>) {
        self.unchecked.push(Unchecked { topic: None, partition: None, file: None, what: what.into() });
    }

    /// The name of the catalog's file, from the data directory.
    fn catalog_name(&self) -> PathBuf {
        let path = self.dir.catalog_path();
        path.strip_prefix(self.dir.path()).unwrap_or(path).to_owned()
    }

    /// Looks at all that is in the directory but the partitions that are wanted.
    pub fn check(&mut self, is_wanted: &dyn Fn(&str, i32) -> bool) {
        if *self.dir.stop() == Stop::Nonsense {
            let why = "it makes no sense; the next start checks all logs as after a crash";
            let meaning = (Consequence::Rebuild, Repair::Start);
            self.add(names::CLEAN_SHUTDOWN, (None, None), Kind::CleanMark, meaning, why);
        }
        match self.dir.held() {
            Held::Yes => {}
            Held::NoLockFile if self.dir.origin() == Origin::Doze && !self.dir.is_lone() => {
                self.skip("whether a broker starts in the directory meanwhile: it has no lock file");
            }
            Held::NoLockFile => {}
            Held::Unknown { reason } => self.skip(format!("whether a broker has the directory open: {reason}")),
        }
        self.check_catalog();
        self.check_checkpoints();
        self.check_partitions(is_wanted);
        if self.dir.only().is_some() {
            // What else is there was not asked for.
            return;
        }
        let harmless = |repair| (Consequence::Harmless, repair);
        for leftover in self.dir.leftovers() {
            let name = leftover.path.file_name().map(PathBuf::from).unwrap_or_default();
            let (repair, why) = match (leftover.kind, self.dir.origin()) {
                (LeftoverDir::Deleted, _) => (Repair::Start, "a deleted partition; the next start removes it"),
                (LeftoverDir::Future, _) => (Repair::Person, "a copy of a partition that Apache Kafka was moving here"),
                (LeftoverDir::Stray, _) => {
                    (Repair::Person, "a partition that Apache Kafka did not find in its metadata")
                }
            };
            self.add(name, (None, None), Kind::Leftover, harmless(repair), why);
        }
        for entry in self.dir.foreign() {
            let what = if entry.is_dir { "folder" } else { "file" };
            let why = format!("this {what} is neither doze's nor Apache Kafka's, and is left alone");
            self.add(&entry.name, (None, None), Kind::Foreign, harmless(Repair::Person), why);
        }
    }

    fn check_catalog(&mut self) {
        let name = self.catalog_name();
        let lost = (Consequence::Unserved, Repair::Recover);
        match self.dir.catalog_state() {
            CatalogState::None if self.dir.is_lone() => {
                self.skip("where the log starts, and whether it is compacted: nothing is around the partition's folder that says so");
            }
            CatalogState::None => {}
            CatalogState::Missing => {
                let why = "it is missing: topics, ids, configs and committed offsets are in it, and without it doze does not start";
                self.add(name, (None, None), Kind::CatalogMissing, lost, why);
            }
            CatalogState::Damaged { reason } => {
                let why = format!("it is damaged, and doze does not start with it: {reason}");
                self.add(name, (None, None), Kind::CatalogDamaged, lost, why);
            }
            CatalogState::Unreadable { reason } => {
                let unknown = (Consequence::Unknown, Repair::Person);
                self.add(name, (None, None), Kind::Unreadable, unknown, format!("it cannot be read: {reason}"));
            }
            CatalogState::Open(_) if self.level == Level::Quick => self.skip("the pages of the catalog"),
            CatalogState::Open(_) => self.check_pages(name),
        }
        if self.dir.catalog().is_none() && self.dir.origin() == Origin::Doze && !self.dir.is_lone() {
            self.skip("whether all partitions are there, where their logs start and which are compacted: the catalog says that");
        }
    }

    fn check_pages(&mut self, name: PathBuf) {
        let opened = Catalog::open_read_only(self.dir.env(), self.dir.catalog_path());
        let why = match opened {
            Ok(mut catalog) => match catalog.check().expect("nobody else has this one") {
                Ok(_) => catalog.read_all().err().map(|error| error.to_string()),
                Err(error) => Some(error.to_string()),
            },
            Err(error) => Some(error.to_string()),
        };
        if let Some(why) = why {
            self.add(name, (None, None), Kind::CatalogDamaged, (Consequence::Lost, Repair::Recover), why);
        }
    }

    fn check_checkpoints(&mut self) {
        let kafka = self.dir.kafka().clone();
        for (name, checkpoint) in [
            (names::KAFKA_RECOVERY_POINTS, &kafka.recovery_points),
            (names::KAFKA_LOG_STARTS, &kafka.log_starts),
            (names::KAFKA_HIGH_WATERMARKS, &kafka.high_watermarks),
            (names::KAFKA_CLEANER_OFFSETS, &kafka.cleaner_offsets),
        ] {
            if let Checkpoint::Nonsense { reason } = checkpoint {
                let meaning = (Consequence::Rebuild, Repair::Start);
                self.add(name, (None, None), Kind::Checkpoint, meaning, format!("it makes no sense: {reason}"));
            }
        }
    }

    /// The catalog against the folders.
    fn check_partitions(&mut self, is_wanted: &dyn Fn(&str, i32) -> bool) {
        let dir = self.dir;
        let Some(catalog) = dir.catalog() else { return };
        let topics = catalog.topics();
        let there: HashSet<(&str, i32)> =
            dir.partitions().iter().map(|folder| (folder.topic.as_str(), folder.partition)).collect();
        // A partition of Kafka's own topics has a folder once somebody has read it, and no records.
        for topic in topics.iter().filter(|topic| !is_internal(&topic.name)) {
            for partition in (0..topic.partitions).filter(|partition| is_wanted(&topic.name, *partition)) {
                if !there.contains(&(&*topic.name, partition)) {
                    let lost = (Consequence::Lost, Repair::Recover);
                    let why = "the catalog has this partition, and its folder is not there: its records are gone";
                    let folder = names::partition_dir(&topic.name, partition);
                    self.add(folder, (Some(&topic.name), Some(partition)), Kind::MissingPartition, lost, why);
                }
            }
        }
        let deleted: HashSet<Uuid> = match catalog.deletions() {
            Ok(deletions) => deletions.iter().map(|topic: &Topic| topic.id).collect(),
            Err(_) => return,
        };
        for folder in dir.partitions().iter().filter(|folder| is_wanted(&folder.topic, folder.partition)) {
            if topics.by_name(&folder.topic).is_some_and(|topic| folder.partition < topic.partitions) {
                continue;
            }
            let of = (Some(folder.topic.as_str()), Some(folder.partition));
            let start = (Consequence::Harmless, Repair::Start);
            if dir.topic_id(folder).ok().flatten().is_some_and(|id| deleted.contains(&id)) {
                self.add(
                    folder.name(),
                    of,
                    Kind::Leftover,
                    start,
                    "a partition of a deleted topic; the next start removes it",
                );
            } else if is_half_made(dir, folder) {
                self.add(
                    folder.name(),
                    of,
                    Kind::Leftover,
                    start,
                    "a partition that was never used; the next start removes it",
                );
            } else {
                let unserved = (Consequence::Unserved, Repair::Recover);
                let why = "the catalog does not know this partition, so its records are not served";
                self.add(folder.name(), of, Kind::UnknownPartition, unserved, why);
            }
        }
    }

    /// Whether a config with a value that is `wanted` was set on a topic of Apache Kafka's.
    fn has_kafka_config(&self, topic: &str, key: &str, wanted: impl Fn(&str) -> bool) -> bool {
        let configs = self.metadata.as_ref().map(|metadata| metadata.configs(ResourceType::Topic, topic));
        configs.is_some_and(|configs| configs.get(key).is_some_and(|value| wanted(value)))
    }

    /// What the directory knows of a partition.
    pub fn facts(&self, folder: &PartitionFolder) -> Facts {
        let dir = self.dir;
        let topics = dir.catalog().map(Catalog::topics);
        let topic = topics.as_ref().and_then(|topics| topics.by_name(&folder.topic));
        let topic = topic.filter(|topic| folder.partition < topic.partitions);
        let kafka = dir.kafka();
        let of = |checkpoint: &Checkpoint| checkpoint.get(&folder.topic, folder.partition);
        let log_start = match dir.catalog() {
            Some(catalog) => topic.and_then(|topic| catalog.log_start(topic.id, folder.partition).ok()),
            None => of(&kafka.log_starts),
        };
        let kafka_cleaned = of(&kafka.cleaner_offsets);
        Facts {
            folder: folder.clone(),
            origin: dir.origin(),
            is_lone: dir.is_lone(),
            level: self.level,
            is_trusted: dir.is_trusted(&folder.name()),
            known_id: topic.map(|topic| topic.id),
            has_catalog: dir.catalog().is_some() && topic.is_some(),
            log_start,
            is_preallocated: dir.catalog().is_some_and(|catalog| {
                in_force(catalog, &folder.topic, "preallocate", "log.preallocate", |value| value == "true")
            }) || self.has_kafka_config(&folder.topic, "preallocate", |value| value == "true"),
            is_compacted: dir.catalog().is_some_and(|catalog| is_compacted(catalog, &folder.topic))
                || kafka_cleaned.is_some()
                || self.has_kafka_config(&folder.topic, "cleanup.policy", |value| value.contains("compact")),
            kafka_cleaned,
            reached: of(&kafka.high_watermarks).max(of(&kafka.recovery_points)),
        }
    }
}

/// Whether `cleanup.policy` is in force with `compact`.
fn is_compacted(catalog: &Catalog, topic: &str) -> bool {
    in_force(catalog, topic, "cleanup.policy", "log.cleanup.policy", |value| value.contains("compact"))
}

/// Whether a config is in force with a value that is `wanted`: the topic's own, or else the broker's for all.
fn in_force(catalog: &Catalog, topic: &str, own: &str, brokers: &str, wanted: impl Fn(&str) -> bool) -> bool {
    let configs = catalog.configs();
    let is = |configs: &ConfigMap, key: &str| configs.get(key).map(|value| wanted(value));
    let of_topic = configs.get(ResourceType::Topic, topic).and_then(|configs| is(configs, own));
    of_topic
        .unwrap_or_else(|| configs.iter(ResourceType::Broker).any(|(_, configs)| is(configs, brokers) == Some(true)))
}

/// Whether a topic's making was interrupted: no log was ever in the folder. The same that a start goes by.
fn is_half_made(dir: &DataDir, folder: &PartitionFolder) -> bool {
    let Ok(entries) = dir.env().fs.list(Path::new(&folder.path)) else { return false };
    entries.iter().all(|entry| {
        let file = names::parse_partition_file(&entry.name);
        !entry.is_dir && matches!(file, PartitionFile::Metadata | PartitionFile::Temporary)
    })
}
