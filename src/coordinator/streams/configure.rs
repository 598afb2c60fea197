//! What becomes of a topology among the topics that there are: how many tasks each subtopology has, how many partitions the
//! internal topics are to have, and which of them are still to be made.
//!
//! - A repartition topic has the partitions that the application gives it, or else as many as the widest source of a
//!   subtopology that writes it.
//! - Topics that are copartitioned have equally many; repartition topics whose number is open follow the others.
//! - A changelog has as many as its subtopology has tasks.

use std::collections::{BTreeMap, BTreeSet};

use super::api::StreamsStatus;
use super::topology::{InternalTopic, Subtopology, Topology};
use crate::coordinator::topics::Topics;

/// A subtopology among the topics that there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Configured {
    /// How many tasks; at least 1.
    pub tasks: i32,
    /// With the partitions that they have or are to have.
    pub repartition_sources: Vec<InternalTopic>,
    pub changelogs: Vec<InternalTopic>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// By the ids of the subtopologies. `None` if that cannot be said.
    pub subtopologies: Option<BTreeMap<String, Configured>>,
    /// Internal topics that are to be made.
    pub missing: Vec<InternalTopic>,
    /// Why there are no tasks yet.
    pub problem: Option<(StreamsStatus, String)>,
}

impl Found {
    /// Whether there are tasks.
    pub fn is_ready(&self) -> bool {
        self.problem.is_none()
    }

    fn problem(status: StreamsStatus, detail: String) -> Found {
        Found { problem: Some((status, detail)), ..Found::default() }
    }
}

/// Why something cannot be.
enum Trouble {
    /// With the topics that there are now.
    Now(StreamsStatus, String),
    /// With whatever topics.
    Never(String),
}

fn unequal(detail: String) -> Trouble {
    Trouble::Now(StreamsStatus::IncorrectlyPartitionedTopics, detail)
}

/// Fits a topology to the topics. Says in words what is wrong with one that can never be.
pub(super) fn configure(topology: &Topology, topics: &Topics) -> Result<Found, String> {
    match Counts::decide(topology, topics).and_then(|counts| find(topology, &counts)) {
        Ok(found) => Ok(found),
        Err(Trouble::Now(status, detail)) => Ok(Found::problem(status, detail)),
        Err(Trouble::Never(why)) => Err(why),
    }
}

fn find(topology: &Topology, counts: &Counts<'_>) -> Result<Found, Trouble> {
    let mut subtopologies = BTreeMap::new();
    let mut missing: BTreeMap<String, InternalTopic> = BTreeMap::new();
    for subtopology in &topology.subtopologies {
        let sized = |topic: &InternalTopic| InternalTopic { partitions: counts.wanted(topic), ..topic.clone() };
        let configured = Configured {
            tasks: counts.widest(subtopology.sources()).unwrap_or(1),
            repartition_sources: subtopology.repartition_sources.iter().map(sized).collect(),
            changelogs: subtopology.changelogs.iter().map(sized).collect(),
        };
        for topic in configured.repartition_sources.iter().chain(&configured.changelogs) {
            match counts.topics.by_name(&topic.name) {
                Some((_, found)) if found != topic.partitions => {
                    let InternalTopic { name, partitions, .. } = topic;
                    return Err(unequal(format!(
                        "Existing topic {name} has different number of partitions: expected {partitions}, found {found}"
                    )));
                }
                Some(_) => {}
                None => drop(missing.insert(topic.name.clone(), topic.clone())),
            }
        }
        subtopologies.insert(subtopology.id.clone(), configured);
    }
    let problem = (!missing.is_empty()).then(|| {
        let detail = format!("Internal topics are missing: {}", summary(missing.keys()));
        (StreamsStatus::MissingInternalTopics, detail)
    });
    Ok(Found { subtopologies: Some(subtopologies), missing: missing.into_values().collect(), problem })
}

/// The partition counts of topics that there are and of internal ones that are to be.
struct Counts<'a> {
    topics: &'a Topics,
    decided: BTreeMap<&'a str, i32>,
}

impl<'a> Counts<'a> {
    fn decide(topology: &'a Topology, topics: &'a Topics) -> Result<Self, Trouble> {
        let all = &topology.subtopologies;
        if let Some(topic) = repartition_sources(all).find(|topic| topic.partitions < 0) {
            return Err(Trouble::Never(format!("Topic {} is to have {} partitions.", topic.name, topic.partitions)));
        }
        let sources: BTreeSet<&str> = all.iter().flat_map(|one| &one.source_topics).map(String::as_str).collect();
        let absent: Vec<&str> = sources.into_iter().filter(|topic| topics.by_name(topic).is_none()).collect();
        if !absent.is_empty() {
            let detail = format!("Source topics {} are missing.", summary(absent.iter()));
            return Err(Trouble::Now(StreamsStatus::MissingSourceTopics, detail));
        }
        let mut counts = Counts { topics, decided: BTreeMap::new() };
        counts.decide_repartition_topics(all)?;
        let fixed: BTreeSet<&str> = repartition_sources(all).filter(|topic| topic.partitions != 0).map(name).collect();
        let open: BTreeSet<&str> = repartition_sources(all).filter(|topic| topic.partitions == 0).map(name).collect();
        for group in all.iter().flat_map(|one| &one.copartition_groups).filter(|group| !group.is_empty()) {
            counts.copartition(group, &fixed, &open)?;
        }
        for subtopology in all {
            let Some(widest) = counts.widest(subtopology.sources()) else {
                return Err(Trouble::Never(format!("No source topics found for subtopology {}", subtopology.id)));
            };
            counts.decided.extend(subtopology.changelogs.iter().map(|topic| (topic.name.as_str(), widest)));
        }
        Ok(counts)
    }

    /// Of a topic that is there, or will be.
    fn of(&self, topic: &str) -> Option<i32> {
        let found = self.topics.by_name(topic).map(|(_, partitions)| partitions);
        found.or_else(|| self.decided.get(topic).copied())
    }

    fn widest<'t>(&self, topics: impl Iterator<Item = &'t str>) -> Option<i32> {
        topics.filter_map(|topic| self.of(topic)).max()
    }

    /// How many partitions an internal topic is to have.
    fn wanted(&self, topic: &InternalTopic) -> i32 {
        match topic.partitions {
            0 => self.decided.get(topic.name.as_str()).copied().unwrap_or(1),
            fixed => fixed,
        }
    }

    /// Follows the topology from its sources until every repartition topic has its number.
    fn decide_repartition_topics(&mut self, all: &'a [Subtopology]) -> Result<(), Trouble> {
        let fixed = repartition_sources(all).filter(|topic| topic.partitions != 0);
        self.decided.extend(fixed.map(|topic| (topic.name.as_str(), topic.partitions)));
        loop {
            let (mut progress, mut open) = (false, false);
            for subtopology in all {
                for sink in &subtopology.sink_topics {
                    if self.decided.contains_key(sink.as_str()) {
                        continue;
                    }
                    let internal = subtopology.repartition_sources.iter().map(name);
                    let internal = internal.filter_map(|topic| self.decided.get(topic).copied()).max();
                    let external = self.widest(subtopology.source_topics.iter().map(String::as_str));
                    match internal.max(external) {
                        Some(count) => {
                            self.decided.insert(sink, count);
                            progress = true;
                        }
                        None => open = true,
                    }
                }
            }
            match (open, progress) {
                (false, _) => break,
                (true, true) => {}
                (true, false) => {
                    return Err(Trouble::Never(
                        "Failed to compute number of partitions for all repartition topics. There may be loops in the \
                         topology that cannot be resolved."
                            .into(),
                    ));
                }
            }
        }
        match repartition_sources(all).all(|topic| self.decided.contains_key(topic.name.as_str())) {
            true => Ok(()),
            false => Err(Trouble::Never(
                "Failed to compute number of partitions for all repartition topics, because a repartition source topic is \
                 never used as a sink topic."
                    .into(),
            )),
        }
    }

    /// Gives the repartition topics of a group the number of partitions that all of it has to have.
    fn copartition(
        &mut self,
        group: &'a BTreeSet<String>,
        fixed: &BTreeSet<&str>,
        open: &BTreeSet<&str>,
    ) -> Result<(), Trouble> {
        let (mut internal, mut external) = (BTreeMap::new(), BTreeMap::new());
        for topic in group.iter().map(String::as_str) {
            let Some(count) = self.of(topic) else {
                return Err(Trouble::Never(format!("A copartition group names topic {topic}, which is no source.")));
            };
            let side = if fixed.contains(topic) || open.contains(topic) { &mut internal } else { &mut external };
            side.insert(topic, count);
        }
        let fixed: BTreeMap<&str, i32> = internal
            .iter()
            .filter(|(topic, _)| fixed.contains(*topic))
            .map(|(topic, count)| (*topic, *count))
            .collect();
        let leading = if external.is_empty() { &fixed } else { &external };
        let count = match leading.values().next() {
            Some(first) if leading.values().any(|count| count != first) => {
                let leading = if external.is_empty() { &internal } else { &external };
                return Err(unequal(format!(
                    "Following topics do not have the same number of partitions: [{{{}}}]",
                    leading.iter().map(|(topic, count)| format!("{topic}={count}")).collect::<Vec<_>>().join(", ")
                )));
            }
            Some(first) => *first,
            // All of them are open.
            None => internal.values().copied().max().unwrap_or(1),
        };
        if let Some((topic, wrong)) = fixed.iter().find(|(_, wrong)| **wrong != count) {
            return Err(unequal(format!(
                "Number of partitions [{wrong}] of repartition topic [{topic}] doesn't match number of partitions \
                 [{count}] of the source topic."
            )));
        }
        self.decided.extend(internal.into_keys().map(|topic| (topic, count)));
        Ok(())
    }
}

fn name(topic: &InternalTopic) -> &str {
    &topic.name
}

fn repartition_sources(all: &[Subtopology]) -> impl Iterator<Item = &InternalTopic> {
    all.iter().flat_map(|one| &one.repartition_sources)
}

/// The first three, and how many more.
fn summary<T: ToString>(topics: impl ExactSizeIterator<Item = T>) -> String {
    const SHOWN: usize = 3;
    let more = topics.len().saturating_sub(SHOWN);
    let mut text = topics.take(SHOWN).map(|topic| topic.to_string()).collect::<Vec<_>>().join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} additional topics"));
    }
    text
}
