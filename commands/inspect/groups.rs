//! The groups in the catalog: what each stored of itself, read by the coordinator as at a start, and what it committed.
//!
//! Kinds of groups are not told apart here: the coordinator lists every kind that it knows, so that a new one is shown as
//! soon as it can be restored.

use std::collections::{BTreeMap, BTreeSet};

use doze::coordinator::{
    Config, GroupCoordinator, Now, PendingOffset, PendingOffsetKey, SharePartitionKey, ShareState, TopicMetadata,
};
use doze::storage::catalog::{Catalog, CatalogError, CommittedOffset};
use doze::sys::Env;

use super::model::Scope;

/// A group.
#[derive(Debug)]
pub struct GroupView {
    pub id: String,
    /// `classic`, `consumer`, ...; `None` for one whose stored form cannot be read.
    pub kind: Option<&'static str>,
    /// As it was stored; members have to be heard of again after a start.
    pub state: Option<&'static str>,
    /// Empty for a group that only holds offsets.
    pub protocol_type: String,
    /// `None`: of a kind that does not tell.
    pub members: Option<usize>,
    pub offsets: Vec<OffsetView>,
    /// What transactions that have not ended will commit.
    pub pending: Vec<PendingView>,
    /// Of a share group: what has become of the records of its partitions.
    pub shares: Vec<ShareView>,
}

/// An offset that a transaction will commit for a group.
#[derive(Debug)]
pub struct PendingView {
    pub topic: String,
    pub partition: i32,
    pub offset: i64,
    pub producer_id: i64,
    pub producer_epoch: i16,
}

/// How far a share group is with a partition.
#[derive(Debug)]
pub struct ShareView {
    pub topic: String,
    pub partition: i32,
    /// All records before it are done with.
    pub start_offset: i64,
    /// How many from there on are done with as well.
    pub done: i64,
    /// Records up to the high watermark that are not. `None` where the partition is not there.
    pub lag: Option<i64>,
}

/// What a group committed for a partition.
#[derive(Debug)]
pub struct OffsetView {
    pub topic: String,
    pub partition: i32,
    pub committed: CommittedOffset,
    /// Offsets up to the high watermark. `None` where the partition is not there.
    pub lag: Option<i64>,
}

impl GroupView {
    /// Over all partitions that are there. `None` if none is.
    pub fn lag(&self) -> Option<i64> {
        let lags = self.offsets.iter().map(|offset| offset.lag).chain(self.shares.iter().map(|share| share.lag));
        lags.flatten().reduce(|a, b| a + b)
    }
}

/// The groups: all of them, or those with offsets in `scope`. `ends`: where each partition that was looked at ends. With what
/// could not be read.
pub fn read(
    env: &Env,
    catalog: &Catalog,
    scope: &Scope,
    ends: &BTreeMap<(String, i32), i64>,
) -> (Vec<GroupView>, Vec<String>) {
    let mut unreadable = Vec::new();
    match gather(env, catalog, scope, ends, &mut unreadable) {
        Ok(groups) => (groups, unreadable),
        Err(error) => {
            unreadable.push(format!("the groups: {error}"));
            (Vec::new(), unreadable)
        }
    }
}

fn gather(
    env: &Env,
    catalog: &Catalog,
    scope: &Scope,
    ends: &BTreeMap<(String, i32), i64>,
    unreadable: &mut Vec<String>,
) -> Result<Vec<GroupView>, CatalogError> {
    let now = Now { monotonic: env.clock.monotonic(), wall_ms: env.clock.now_ms() };
    let mut coordinator = GroupCoordinator::new(Config::default(), env.random.clone(), now);
    let topics = catalog.topics();
    coordinator.set_topics(
        topics
            .iter()
            .map(|topic| TopicMetadata { name: topic.name.clone(), id: topic.id, partitions: topic.partitions })
            .collect(),
    );
    let mut shares = shares(catalog, scope, ends, unreadable)?;
    let mut pending = pending(catalog, scope, unreadable)?;
    let mut ids: BTreeSet<String> = catalog.groups_with_offsets()?.into_iter().collect();
    ids.extend(pending.keys().cloned());
    let mut broken = BTreeSet::new();
    for (id, bytes) in catalog.groups()? {
        if let Err(error) = coordinator.restore_group(now, &id, &bytes) {
            unreadable.push(format!("the group {id:?}: {error}"));
            broken.insert(id.clone());
        }
        ids.insert(id);
    }
    let listed = coordinator.list(&[], &[]);
    let mut groups = Vec::new();
    for id in ids {
        let offsets = catalog.offsets(&id)?;
        let offsets = offsets.into_iter().filter(|(topic, partition, _)| scope.takes(topic, *partition));
        let offsets: Vec<OffsetView> = offsets
            .map(|(topic, partition, committed)| {
                let end = ends.get(&(topic.clone(), partition));
                let lag = end.map(|end| (end - committed.offset).max(0));
                OffsetView { topic, partition, committed, lag }
            })
            .collect();
        let shares = shares.remove(&id).unwrap_or_default();
        let pending = pending.remove(&id).unwrap_or_default();
        if *scope != Scope::All && offsets.is_empty() && shares.is_empty() && pending.is_empty() {
            continue;
        }
        let found = listed.iter().find(|group| group.group_id == id && !broken.contains(&id));
        groups.push(GroupView {
            // What committed and stored nothing of itself is a group of the simplest kind.
            kind: found.map(|group| group.group_type.name()).or((!broken.contains(&id)).then_some("classic")),
            state: found.map(|group| group.state).or((!broken.contains(&id)).then_some("Empty")),
            protocol_type: found.map(|group| group.protocol_type.clone()).unwrap_or_default(),
            members: match found {
                Some(_) => members(&coordinator, &id),
                None => (!broken.contains(&id)).then_some(0),
            },
            offsets,
            pending,
            shares,
            id,
        });
    }
    Ok(groups)
}

/// How many members a group stored.
fn members(coordinator: &GroupCoordinator, id: &str) -> Option<usize> {
    let classic = coordinator.describe(id).map(|group| group.members.len());
    classic
        .or_else(|| coordinator.describe_consumer(id).ok().map(|group| group.members.len()))
        .or_else(|| coordinator.describe_share(id).ok().map(|group| group.members.len()))
        .or_else(|| coordinator.describe_streams(id).ok().map(|group| group.members.len()))
}

/// The offsets in `scope` that transactions will commit, by group.
fn pending(
    catalog: &Catalog,
    scope: &Scope,
    unreadable: &mut Vec<String>,
) -> Result<BTreeMap<String, Vec<PendingView>>, CatalogError> {
    let mut pending: BTreeMap<String, Vec<PendingView>> = BTreeMap::new();
    for (key, value) in catalog.states(PendingOffsetKey::SPACE)? {
        let stored = PendingOffsetKey::from_bytes(&key).and_then(|key| Ok((key, PendingOffset::from_bytes(&value)?)));
        match stored {
            Ok((key, value)) if scope.takes(&key.topic, key.partition) => {
                pending.entry(key.group.to_string()).or_default().push(PendingView {
                    topic: key.topic.to_string(),
                    partition: key.partition,
                    offset: value.offset.offset,
                    producer_id: key.producer_id,
                    producer_epoch: value.producer_epoch,
                });
            }
            Ok(_) => {}
            Err(error) => unreadable.push(format!("an offset that a transaction will commit: {error}")),
        }
    }
    for pending in pending.values_mut() {
        pending.sort_by(|a, b| (&a.topic, a.partition, a.producer_id).cmp(&(&b.topic, b.partition, b.producer_id)));
    }
    Ok(pending)
}

/// How far share groups are with the partitions in `scope`, by group. Partitions of topics that are gone are left out.
fn shares(
    catalog: &Catalog,
    scope: &Scope,
    ends: &BTreeMap<(String, i32), i64>,
    unreadable: &mut Vec<String>,
) -> Result<BTreeMap<String, Vec<ShareView>>, CatalogError> {
    let topics = catalog.topics();
    let mut shares: BTreeMap<String, Vec<ShareView>> = BTreeMap::new();
    for (key, value) in catalog.states(SharePartitionKey::SPACE)? {
        let stored = SharePartitionKey::from_bytes(&key).and_then(|key| Ok((key, ShareState::from_bytes(&value)?)));
        let (key, state) = match stored {
            Ok(stored) => stored,
            Err(error) => {
                unreadable.push(format!("a partition of a share group: {error}"));
                continue;
            }
        };
        let Some(topic) = topics.by_id(key.topic).filter(|topic| scope.takes(&topic.name, key.partition)) else {
            continue;
        };
        // Where nobody has fetched yet there is nothing to show.
        let Some(start_offset) = state.start_offset() else { continue };
        let done = i64::from(state.done().unwrap_or(0));
        let end = ends.get(&(topic.name.to_string(), key.partition));
        shares.entry(key.group.to_string()).or_default().push(ShareView {
            topic: topic.name.to_string(),
            partition: key.partition,
            start_offset,
            done,
            lag: end.map(|end| (end - start_offset - done).max(0)),
        });
    }
    for shares in shares.values_mut() {
        shares.sort_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
    }
    Ok(shares)
}
