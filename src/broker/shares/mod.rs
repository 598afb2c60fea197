//! Serves the partitions of share groups: who may fetch from which, what was handed out to whom, and what is stored of it.
//!
//! What becomes of records is decided by [`SharePartition`], a state machine that sits behind one lock a partition and
//! group. It is read from the catalog when it is first fetched from, and written to it whole, by group commit; an
//! acknowledgement is answered when that write is durable. A partition that nobody has anything of is forgotten when the
//! last session of its group ends.
//!
//! Locks: a group's `gate` is held for reading while one of its partitions is read in, and for writing while an
//! administrator replaces or removes what is stored of the group. So what is stored never changes behind an [`Entry`].

mod acknowledge;
mod entry;
mod fetch;
mod journal;
mod load;
mod sessions;
mod settings;
mod state;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, OnceCell};

use super::config::{BrokerConfig, GroupSettings};
use super::groups::{Groups, set_share_partition};
use crate::coordinator::{SharePartitionKey, ShareState};
use crate::protocol::Uuid;
use crate::storage::catalog::CatalogError;
use crate::storage::store::Store;
use crate::sys::Env;
use entry::Entry;
use journal::Journal;
use sessions::ShareSessions;
use settings::{Settings, ShareConfig};

pub use acknowledge::Acknowledged;
pub use fetch::{Fetched, Want};
pub use sessions::Place;
pub use state::ChangeError;

/// The share partitions of the broker. Shared between threads.
#[derive(Debug)]
pub struct Shares {
    env: Env,
    store: Arc<Store>,
    groups: Arc<Groups>,
    settings: RwLock<Settings>,
    by_group: Mutex<HashMap<Arc<str>, Arc<GroupShares>>>,
    sessions: ShareSessions,
    /// When locks run out, as each entry has said last.
    deadlines: Mutex<BTreeSet<(Duration, SharePartitionKey)>>,
    deadline_changed: Notify,
    journal: Journal,
    /// State that no group keeps.
    strays: Mutex<BTreeSet<SharePartitionKey>>,
}

/// A partition that is read in, or about to be.
type Cell = Arc<OnceCell<Arc<Entry>>>;

#[derive(Debug, Default)]
struct GroupShares {
    gate: tokio::sync::RwLock<()>,
    partitions: Mutex<HashMap<Place, Cell>>,
}

impl Shares {
    /// Forgets first what is stored of partitions whose topic is gone: a stop may have come between the end of the topic and
    /// that of what groups had of it. Where a group keeps a partition of which nothing is stored, nobody has fetched yet.
    pub fn open(
        env: Env,
        store: Arc<Store>,
        groups: Arc<Groups>,
        config: &BrokerConfig,
    ) -> Result<Arc<Self>, CatalogError> {
        let catalog = store.catalog();
        let topics = store.topics();
        let mut missing = groups.with(|coordinator, _| coordinator.all_share_partitions());
        let mut strays = BTreeSet::new();
        let mut changes = Vec::new();
        for (bytes, _) in catalog.states(SharePartitionKey::SPACE)? {
            match SharePartitionKey::from_bytes(&bytes) {
                Ok(key) if topics.by_id(key.topic).is_none() => changes.push(set_share_partition(&key, None)),
                Ok(key) if missing.remove(&key) => {}
                Ok(key) => drop(strays.insert(key)),
                Err(error) => tracing::error!("a share partition's key in the catalog does not read: {error}"),
            }
        }
        let nobody_has_fetched = ShareState::new(0, ShareState::NO_START).to_bytes();
        let missing = missing.iter().filter(|key| topics.by_id(key.topic).is_some());
        changes.extend(missing.map(|key| set_share_partition(key, Some(nobody_has_fetched.to_vec()))));
        if !changes.is_empty() {
            catalog.commit_blocking(changes)?;
        }
        journal::make_topic(&env, &store, config);
        let sessions = usize::try_from(config.int("group.share.max.share.sessions")).unwrap_or(0);
        Ok(Arc::new(Shares {
            env,
            store,
            groups,
            settings: RwLock::new(Settings::new(config, &BTreeMap::new())),
            by_group: Mutex::default(),
            sessions: ShareSessions::new(sessions),
            deadlines: Mutex::default(),
            deadline_changed: Notify::new(),
            journal: Journal::new(),
            strays: Mutex::new(strays),
        }))
    }

    /// Puts changed configs in force.
    pub fn configure(&self, config: &BrokerConfig, own: &BTreeMap<Arc<str>, GroupSettings>) {
        *self.settings.write() = Settings::new(config, own);
    }

    /// What is in force for a group.
    pub fn config(&self, group: &str) -> ShareConfig {
        self.settings.read().of(group)
    }

    pub fn sessions(&self) -> &ShareSessions {
        &self.sessions
    }

    fn group(&self, group: &str) -> Arc<GroupShares> {
        let mut groups = self.by_group.lock();
        if let Some(known) = groups.get(group) {
            return known.clone();
        }
        let new = Arc::new(GroupShares::default());
        groups.insert(group.into(), new.clone());
        new
    }

    /// A partition that was read in before.
    fn known(&self, group: &str, place: Place) -> Option<Arc<Entry>> {
        let shares = self.by_group.lock().get(group)?.clone();
        let cell = shares.partitions.lock().get(&place)?.clone();
        cell.get().cloned()
    }

    /// Has a partition read in anew when it is next used.
    fn forget(&self, entry: &Arc<Entry>) {
        let Some(shares) = self.by_group.lock().get(&entry.key.group).cloned() else { return };
        shares.partitions.lock().retain(|_, cell| cell.get().is_none_or(|known| !Arc::ptr_eq(known, entry)));
    }

    fn forget_group_if_unused(&self, group: &str) {
        let mut groups = self.by_group.lock();
        // Nobody else can get hold of it meanwhile.
        if groups.get(group).is_some_and(|shares| Arc::strong_count(shares) == 1 && shares.partitions.lock().is_empty())
        {
            groups.remove(group);
        }
    }

    /// The member's session has ended, and with it what it holds is given back.
    pub fn end_session(self: &Arc<Self>, group: &str, member: &str) {
        if let Some(places) = self.sessions.end(group, member) {
            self.session_ended(group, member, &places);
        }
    }

    /// The connection is gone, and with it the sessions that were opened on it.
    pub fn disconnected(self: &Arc<Self>, connection: u64) {
        for (group, member, places) in self.sessions.disconnected(connection) {
            self.session_ended(&group, &member, &places);
        }
    }

    fn session_ended(self: &Arc<Self>, group: &str, member: &str, places: &[Place]) {
        for place in places {
            if let Some(entry) = self.known(group, *place) {
                self.release(&entry, member);
            }
        }
        if !self.sessions.has_group(group) {
            self.forget_idle(group);
        }
    }

    /// Lets go of what can be read in again as it is.
    fn forget_idle(&self, group: &str) {
        let Some(shares) = self.by_group.lock().get(group).cloned() else { return };
        shares.partitions.lock().retain(|_, cell| match cell.get() {
            Some(entry) => !entry.retire_if_idle(),
            // Somebody is about to read it in.
            None => true,
        });
    }

    /// Has nobody fetch from those partitions of the group of which `change` replaces or removes what is stored. The others
    /// keep what is in memory only: who has acquired what, and how often it was handed out.
    pub async fn exclusively<T>(
        self: &Arc<Self>,
        group: &str,
        concerns: impl Fn(Place) -> bool,
        change: impl Future<Output = T>,
    ) -> T {
        let shares = self.group(group);
        let _alone = shares.gate.write().await;
        let cells: Vec<Cell> =
            shares.partitions.lock().extract_if(|place, _| concerns(*place)).map(|(_, cell)| cell).collect();
        for entry in cells.iter().filter_map(|cell| cell.get()) {
            entry.fence().await;
        }
        change.await
    }

    /// The topic is gone.
    pub fn topic_deleted(self: &Arc<Self>, topic: Uuid) {
        let groups: Vec<Arc<GroupShares>> = self.by_group.lock().values().cloned().collect();
        for shares in groups {
            shares.partitions.lock().retain(|(id, _), cell| {
                if *id == topic
                    && let Some(entry) = cell.get()
                {
                    entry.mark_fenced();
                }
                *id != topic
            });
        }
        self.remove_strays(topic);
    }

    /// Frees records whose locks run out, until the task that runs this is ended.
    pub async fn keep_time(self: Arc<Self>) {
        loop {
            let next = self.deadlines.lock().first().map(|(at, _)| *at);
            let until = next.map(|at| at.saturating_sub(self.env.clock.monotonic()));
            tokio::select! {
                () = self.deadline_changed.notified() => continue,
                () = tokio::time::sleep(until.unwrap_or_default()), if until.is_some() => {}
            }
            self.expire();
        }
    }

    fn expire(self: &Arc<Self>) {
        let now = self.env.clock.monotonic();
        loop {
            let due = self.deadlines.lock().pop_first();
            let Some((at, key)) = due else { return };
            if at > now {
                self.deadlines.lock().insert((at, key));
                return;
            }
            // One that is not there any more has nobody to wait for its locks.
            if let Some(entry) = self.known(&key.group, (key.topic, key.partition)) {
                self.expire_in(&entry, now, at);
            }
        }
    }
}
