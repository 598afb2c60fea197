//! Reading a share partition in when it is first fetched from.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::entry::Entry;
use super::{Place, Shares};
use crate::broker::config::OffsetReset;
use crate::broker::groups::set_share_partition;
use crate::broker::{refusal, topics};
use crate::coordinator::{BadBytes, SharePartition, SharePartitionKey, Summary};
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
            false => Err(NotLoaded {
                code: ErrorCode::UnknownServerError,
                message: Some("Read operation on uninitialized share partition not allowed.".into()),
            }),
        }
    }

    /// How far a group has come in a partition, as it is stored. `None`: it has not fetched from it.
    pub async fn summary(&self, group: &str, place: Place) -> Result<Option<Summary>, ErrorCode> {
        let key = SharePartitionKey::new(group, place.0, place.1);
        let stored = self.stored(&key).await?;
        stored.map(|bytes| SharePartition::summary(&bytes).map_err(|error| unreadable(&key, &error))).transpose()
    }

    async fn stored(&self, key: &SharePartitionKey) -> Result<Option<Vec<u8>>, ErrorCode> {
        let (store, bytes) = (self.store.clone(), key.to_bytes());
        let stored =
            topics::blocking(&self.env, move || store.catalog().state(SharePartitionKey::SPACE, &bytes)).await?;
        stored.map_err(|error| {
            let SharePartitionKey { group, topic, partition } = key;
            tracing::error!(%group, %topic, partition, "what became of records cannot be read: {error}");
            ErrorCode::KafkaStorageError
        })
    }

    async fn load(self: &Arc<Self>, key: SharePartitionKey, log: &Arc<PartitionLog>) -> Result<Arc<Entry>, NotLoaded> {
        let state = match self.stored(&key).await? {
            Some(bytes) => SharePartition::from_bytes(&bytes).map_err(|error| unreadable(&key, &error))?,
            None => {
                let state = SharePartition::new(self.first_offset(&key.group, log).await?);
                self.store_first(&key, &state).await?;
                state
            }
        };
        Ok(Arc::new(Entry::new(key, state)))
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

    async fn store_first(&self, key: &SharePartitionKey, state: &SharePartition) -> Result<(), ErrorCode> {
        let (sender, done) = oneshot::channel();
        let bytes = state.to_bytes();
        let write = vec![set_share_partition(key, Some(bytes.to_vec()))];
        self.store.catalog().commit(write, Box::new(move |result| drop(sender.send(result))));
        match done.await {
            Ok(Ok(())) => {
                // Kafka says first that there is a share partition, and then where it starts.
                self.follow(key, SharePartition::new(-1).to_bytes());
                self.follow(key, bytes);
                Ok(())
            }
            Ok(Err(error)) => {
                let SharePartitionKey { group, topic, partition } = key;
                tracing::error!(%group, %topic, partition, "where the group starts could not be stored: {error}");
                Err(ErrorCode::KafkaStorageError)
            }
            Err(_) => Err(ErrorCode::KafkaStorageError),
        }
    }
}

fn unreadable(key: &SharePartitionKey, error: &BadBytes) -> ErrorCode {
    let SharePartitionKey { group, topic, partition } = key;
    tracing::error!(
        %group, %topic, partition,
        "what became of records does not read; kafka-share-groups --reset-offsets starts the partition anew: {error}"
    );
    ErrorCode::KafkaStorageError
}
