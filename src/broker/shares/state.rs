//! What is stored of share partitions, read and changed by others than those who hand out the records: with the APIs by which
//! brokers keep the state of share groups, and for those who ask how far a group is.
//!
//! Such state need not belong to a group that there is. It is gone when it is deleted, or its topic is.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{Place, Shares};
use crate::broker::groups::set_share_partition;
use crate::broker::topics;
use crate::coordinator::{BadBytes, SharePartitionKey, ShareState, StateChange, StateRefused};
use crate::protocol::{ErrorCode, Uuid};

/// Why what is stored of a share partition was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeError {
    Refused(StateRefused),
    /// It could not be read or written; the log says why.
    NotStored,
}

impl Shares {
    /// What is stored of a partition. `None`: nothing.
    pub async fn stored_state(&self, group: &str, place: Place) -> Result<Option<ShareState>, ErrorCode> {
        self.stored(&SharePartitionKey::new(group, place.0, place.1)).await
    }

    pub(super) async fn stored(&self, key: &SharePartitionKey) -> Result<Option<ShareState>, ErrorCode> {
        let (store, bytes) = (self.store.clone(), key.to_bytes());
        let stored =
            topics::blocking(&self.env, move || store.catalog().state(SharePartitionKey::SPACE, &bytes)).await?;
        let stored = stored.map_err(|error| {
            let SharePartitionKey { group, topic, partition } = key;
            tracing::error!(%group, %topic, partition, "what became of records cannot be read: {error}");
            ErrorCode::KafkaStorageError
        })?;
        stored.map(|bytes| ShareState::from_bytes(&bytes).map_err(|error| unreadable(key, &error))).transpose()
    }

    /// Stores what a partition is to be, `None` for nothing, and says when it is durable or has failed. The records that it is about
    /// are flushed first: after a power cut it would be said of others that stand at their offsets.
    pub(super) fn commit_state(
        self: &Arc<Self>,
        key: &SharePartitionKey,
        next: Option<ShareState>,
        done: impl FnOnce(bool) + Send + 'static,
    ) {
        let reach = next.as_ref().map(ShareState::reach);
        // A log that nobody has opened has handed nothing out.
        let log = self.store.open_partition(key.topic, key.partition);
        let (Some(reach), Some(log)) = (reach, log) else { return self.write_state(key.clone(), next, done) };
        let (this, key) = (self.clone(), key.clone());
        log.sync_to(
            reach,
            Box::new(move |flushed| match flushed {
                Ok(()) => this.write_state(key, next, done),
                Err(error) => {
                    not_stored(&key, &error);
                    done(false);
                }
            }),
        );
    }

    fn write_state(
        self: &Arc<Self>,
        key: SharePartitionKey,
        next: Option<ShareState>,
        done: impl FnOnce(bool) + Send + 'static,
    ) {
        let this = self.clone();
        let write = vec![set_share_partition(&key, next.as_ref().map(|next| next.to_bytes().to_vec()))];
        self.store.catalog().commit(
            write,
            Box::new(move |result| {
                match &result {
                    Ok(()) => this.follow(&key, next),
                    Err(error) => not_stored(&key, error),
                }
                done(result.is_ok());
            }),
        );
    }

    /// Changes what is stored of a partition, whether it is in use or not; whoever hands out its records is not told. Answers
    /// the state after that, when it is durable.
    pub async fn change_state(
        self: &Arc<Self>,
        group: &str,
        place: Place,
        change: StateChange,
    ) -> Result<Option<ShareState>, ChangeError> {
        if let Some(entry) = self.known(group, place)
            && let Some(told) = self.change_in(&entry, change.clone()).await
        {
            return told;
        }
        let (this, key) = (self.clone(), SharePartitionKey::new(group, place.0, place.1));
        // By itself, so that nobody reads the state while it is being written, even if the client goes.
        let changing = tokio::spawn(async move { this.change_alone(key, change).await });
        changing.await.unwrap_or(Err(ChangeError::NotStored))
    }

    /// Changes what is stored of a partition while none of its group is read in.
    async fn change_alone(
        self: Arc<Self>,
        key: SharePartitionKey,
        change: StateChange,
    ) -> Result<Option<ShareState>, ChangeError> {
        let shares = self.group(&key.group);
        let alone = shares.gate.write().await;
        while let Some(entry) = self.known(&key.group, (key.topic, key.partition)) {
            if let Some(told) = self.change_in(&entry, change.clone()).await {
                return told;
            }
            // Fenced; it goes as soon as its last write has ended.
            entry.fence().await;
            self.forget(&entry);
        }
        let before = self.stored(&key).await.map_err(|_| ChangeError::NotStored)?;
        let mut next = before.clone();
        change.apply(&mut next).map_err(ChangeError::Refused)?;
        if next != before {
            let (sender, done) = oneshot::channel();
            self.commit_state(&key, next.clone(), move |stored| {
                let _ = sender.send(stored);
            });
            if !matches!(done.await, Ok(true)) {
                return Err(ChangeError::NotStored);
            }
            self.note_stray(&key, next.is_some());
        }
        drop(alone);
        drop(shares);
        self.forget_group_if_unused(&key.group);
        Ok(next)
    }

    /// There is, or is not any more, state of a partition; keeps in mind which of it no group will remove.
    fn note_stray(&self, key: &SharePartitionKey, is_there: bool) {
        let kept = self.groups.with(|groups, _| groups.keeps_share_partition(&key.group, key.topic, key.partition));
        let mut strays = self.strays.lock();
        match is_there && !kept {
            true => strays.insert(key.clone()),
            false => strays.remove(key),
        };
    }

    /// Removes the state of a topic's partitions that no group removes.
    pub(super) fn remove_strays(self: &Arc<Self>, topic: Uuid) {
        let gone: Vec<SharePartitionKey> = {
            let mut strays = self.strays.lock();
            let gone = strays.iter().filter(|key| key.topic == topic).cloned().collect();
            strays.retain(|key| key.topic != topic);
            gone
        };
        for key in gone {
            self.commit_state(&key, None, drop);
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

fn not_stored(key: &SharePartitionKey, error: &dyn std::error::Error) {
    let SharePartitionKey { group, topic, partition } = key;
    tracing::error!(%group, %topic, partition, "what became of records could not be stored: {error}");
}
