//! Reading a share partition in when it is first fetched from.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::entry::{Entry, error_code_for_members};
use super::{Place, Shares};
use crate::broker::config::OffsetReset;
use crate::broker::topics::LEADER_EPOCH;
use crate::broker::{refusal, topics};
use crate::coordinator::{SharePartition, SharePartitionKey, ShareState, StateChange, StateRefused, StateWrite};
use crate::protocol::ErrorCode;
use crate::storage::log::PartitionLog;

/// Why a partition cannot be fetched from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotLoaded {
    pub code: ErrorCode,
    pub message: Option<String>,
}

impl From<ErrorCode> for NotLoaded {
    fn from(code: ErrorCode) -> Self {
        NotLoaded { code, message: None }
    }
}

impl From<StateRefused> for NotLoaded {
    fn from(why: StateRefused) -> Self {
        NotLoaded { code: error_code_for_members(why), message: Some(why.to_string()) }
    }
}

impl Shares {
    /// The state of a partition, read in if it was not. Where the group has never fetched from it, it starts as the
    /// group's configs say, and that is durable when this answers.
    pub(super) async fn entry(
        self: &Arc<Self>,
        group: &str,
        place: Place,
        log: &Arc<PartitionLog>,
    ) -> Result<Arc<Entry>, NotLoaded> {
        if let Some(known) = self.known(group, place) {
            return Ok(known);
        }
        // Asked first, so that nothing is kept of groups that are not there.
        self.check_kept(group, place)?;
        let shares = self.group(group);
        let _not_replaced = shares.gate.read().await;
        let cell = shares.partitions.lock().entry(place).or_default().clone();
        // And once more, behind the gate: it may just have been deleted.
        self.check_kept(group, place)?;
        let key = SharePartitionKey::new(group, place.0, place.1);
        cell.get_or_try_init(|| self.load(key, log)).await.cloned()
    }

    fn check_kept(&self, group: &str, (topic, partition): Place) -> Result<(), NotLoaded> {
        match self.groups.with(|coordinator, _| coordinator.keeps_share_partition(group, topic, partition)) {
            true => Ok(()),
            false => Err(StateRefused::NotReadable.into()),
        }
    }

    async fn load(self: &Arc<Self>, key: SharePartitionKey, log: &Arc<PartitionLog>) -> Result<Arc<Entry>, NotLoaded> {
        let mut stored = self.stored(&key).await?;
        StateChange::Read { leader_epoch: LEADER_EPOCH }.apply(&mut stored)?;
        let state = stored.ok_or(StateRefused::NotReadable)?;
        let (state, start) = match state.start_offset() {
            Some(start) => (state, start),
            None => self.begin(&key, state, log).await?,
        };
        let partition = SharePartition::from_state(&state, start, LEADER_EPOCH);
        Ok(Arc::new(Entry::new(key, partition, state)))
    }

    /// Where nobody has fetched yet, decides where the group starts, and answers when that is durable.
    async fn begin(
        self: &Arc<Self>,
        key: &SharePartitionKey,
        state: ShareState,
        log: &Arc<PartitionLog>,
    ) -> Result<(ShareState, i64), NotLoaded> {
        let start = self.first_offset(&key.group, log).await?;
        // Kafka says first that there is a share partition, and then where it starts.
        self.follow(key, Some(state.clone()));
        let (state_epoch, leader_epoch) = (state.state_epoch(), LEADER_EPOCH);
        let mut next = Some(state);
        let write = StateWrite { state_epoch, leader_epoch, start, done: 0, stretches: vec![] };
        StateChange::Write(write).apply(&mut next)?;
        let (sender, done) = oneshot::channel();
        self.commit_state(key, next.clone(), move |stored| {
            // Whoever waits may have gone.
            let _ = sender.send(stored);
        });
        match (done.await, next) {
            (Ok(true), Some(state)) => Ok((state, start)),
            _ => Err(ErrorCode::KafkaStorageError.into()),
        }
    }

    /// Where a group starts to read.
    async fn first_offset(&self, group: &str, log: &Arc<PartitionLog>) -> Result<i64, ErrorCode> {
        let offsets = log.offsets();
        match self.config(group).reset {
            OffsetReset::Latest => Ok(offsets.high_watermark),
            OffsetReset::Earliest => Ok(offsets.start),
            OffsetReset::ByDuration(ago) => {
                let ago = i64::try_from(ago.as_millis()).unwrap_or(i64::MAX);
                let since = self.env.clock.now_ms().saturating_sub(ago).max(0);
                let log = log.clone();
                let find = move || log.offset_for_timestamp(since).map_err(|error| refusal::of_read(&log, &error));
                let found = topics::blocking(&self.env, find).await??;
                Ok(found.map_or(offsets.high_watermark, |found| found.offset))
            }
        }
    }
}
