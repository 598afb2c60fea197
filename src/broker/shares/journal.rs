//! The topic `__share_group_state`, for those who look into it with Kafka's tools.
//!
//! Kafka keeps the state of share partitions in a topic of this name; doze keeps it in its catalog and never reads the
//! topic. But where there is one, what has become durable is appended to it as well, as the snapshots that Kafka's share
//! coordinator writes, so that `ShareGroupStateMessageFormatter` and whoever else follows the topic sees what there is. It is
//! not waited for, flushed like what is produced with `acks=1`, and what cannot be appended is missing. A broker that is
//! started with `share.coordinator.state.topic.num.partitions` makes the topic, compacted, and so does whoever looks for the
//! coordinator of a share partition; others do without.
//!
//! | key, big-endian | | value, version 0 | |
//! |---|---|---|---|
//! | 2 | kind, 0: a snapshot | 2 | version, 0 |
//! | 2, n | group | 4 | snapshot epoch, 0 |
//! | 16 | topic id | 4 | state epoch |
//! | 4 | partition | 4 | leader epoch |
//! | | | 8 | start offset |
//! | | | 8 | when the state was made, ms since the Unix epoch |
//! | | | 8 | when it was written |
//! | | | varint, 8 + 8 + 1 + 2 and no tagged fields each | one more than how many stretches; first and last offset, state, deliveries |
//! | | | 1, 1, 1, 4 | one tagged field, 0, of four bytes: how many records are done with; or no tagged field |
//!
//! Where the state was deleted there is no value.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::Shares;
use crate::broker::config::BrokerConfig;
use crate::broker::internal_topics;
use crate::broker::topics::{self, Creation, LEADER_EPOCH};
use crate::broker::transactions::partition_of_name;
use crate::coordinator::{SharePartitionKey, ShareState};
use crate::protocol::Uuid;
use crate::record::{BatchBuilder, BatchOptions, CheckedBatch};
use crate::storage::internal_topics::SHARE_STATE as TOPIC;
use crate::storage::store::Store;
use crate::sys::Env;

/// Makes the topic where the configs ask for it and it is not there.
pub(super) fn make_topic(env: &Env, store: &Store, config: &BrokerConfig) {
    const PARTITIONS: &str = "share.coordinator.state.topic.num.partitions";
    if !config.is_set_at_start(PARTITIONS) || store.topics().by_name(TOPIC).is_some() {
        return;
    }
    let Some(Creation { partitions, configs, .. }) = internal_topics::creation(config, TOPIC) else { return };
    if let Err(error) = store.create_topic(TOPIC, Uuid::random(&*env.random), partitions, configs) {
        tracing::error!(topic = TOPIC, "the topic that {PARTITIONS} asks for was not made: {error}");
    }
}

/// What has become durable, in order.
#[derive(Debug)]
pub(super) struct Journal {
    sender: mpsc::UnboundedSender<Snapshot>,
    receiver: Mutex<Option<mpsc::UnboundedReceiver<Snapshot>>>,
}

#[derive(Debug)]
struct Snapshot {
    key: SharePartitionKey,
    /// `None`: nothing is stored any more.
    state: Option<ShareState>,
    written_ms: i64,
}

impl Journal {
    pub fn new() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Journal { sender, receiver: Mutex::new(Some(receiver)) }
    }
}

impl Shares {
    /// What is stored of a share partition has changed to this.
    pub(super) fn follow(&self, key: &SharePartitionKey, state: Option<ShareState>) {
        if self.store.topics().by_name(TOPIC).is_some() {
            let snapshot = Snapshot { key: key.clone(), state, written_ms: self.env.clock.now_ms() };
            // When nobody keeps the journal any more, the broker stops.
            let _ = self.journal.sender.send(snapshot);
        }
    }

    /// Appends what changes to the topic, until the task that runs this is ended.
    pub async fn keep_journal(self: Arc<Self>) {
        let Some(mut snapshots) = self.journal.receiver.lock().take() else { return };
        while let Some(snapshot) = snapshots.recv().await {
            if let Err(error) = self.append(&snapshot).await {
                let SharePartitionKey { group, topic, partition } = &snapshot.key;
                tracing::warn!(%group, %topic, partition, "a share state is missing in {TOPIC}: {error}");
            }
        }
    }

    async fn append(&self, snapshot: &Snapshot) -> Result<(), String> {
        let topics = self.store.topics();
        let Some(topic) = topics.by_name(TOPIC) else { return Ok(()) };
        let SharePartitionKey { group, topic: of, partition } = &snapshot.key;
        let place = partition_of_name(&format!("{group}:{of}:{partition}"), topic.partitions.max(1));
        let batch = batch(snapshot).ok_or("it does not go into a record")?;
        let log = topics::open_log(&self.env, &self.store, topic.id, place).await.map_err(|error| error.name())?;
        log.append(batch, LEADER_EPOCH).map(drop).map_err(|error| error.to_string())
    }
}

fn batch(snapshot: &Snapshot) -> Option<CheckedBatch> {
    let Snapshot { key, state, written_ms } = snapshot;
    let value = state.as_ref().map(|state| value_bytes(state, *written_ms));
    let mut builder = BatchBuilder::new(BatchOptions::default()).ok()?;
    builder.append(*written_ms, Some(&key_bytes(key)?), value.as_deref(), &[]).ok()?;
    CheckedBatch::of_own(builder.finish(None).ok()?).ok()
}

fn key_bytes(key: &SharePartitionKey) -> Option<Vec<u8>> {
    let mut bytes = vec![0, 0];
    bytes.extend_from_slice(&i16::try_from(key.group.len()).ok()?.to_be_bytes());
    bytes.extend_from_slice(key.group.as_bytes());
    bytes.extend_from_slice(&key.topic.0);
    bytes.extend_from_slice(&key.partition.to_be_bytes());
    Some(bytes)
}

fn value_bytes(state: &ShareState, now_ms: i64) -> Vec<u8> {
    let stretches = state.stretches();
    let mut bytes = vec![0, 0];
    for epoch in [0, state.state_epoch(), state.leader_epoch()] {
        bytes.extend_from_slice(&epoch.to_be_bytes());
    }
    for number in [state.start_offset().unwrap_or(ShareState::NO_START), now_ms, now_ms] {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    let mut count = stretches.len() + 1;
    while count > 0x7f {
        bytes.push(count as u8 | 0x80);
        count >>= 7;
    }
    bytes.push(count as u8);
    for stretch in stretches {
        bytes.extend_from_slice(&stretch.first.to_be_bytes());
        bytes.extend_from_slice(&stretch.last.to_be_bytes());
        bytes.push(stretch.state);
        bytes.extend_from_slice(&i16::try_from(stretch.deliveries).unwrap_or(i16::MAX).to_be_bytes());
        bytes.push(0);
    }
    match state.done() {
        Some(done) => {
            bytes.extend_from_slice(&[1, 0, 4]);
            bytes.extend_from_slice(&done.to_be_bytes());
        }
        None => bytes.push(0),
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::{StateChange, StateWrite, Stretch};

    /// The bytes are those that Kafka's `ShareCoordinatorRecordSerde` writes for the same record.
    #[test]
    fn snapshots_are_as_kafka_writes_them() {
        let key = SharePartitionKey::new("g", Uuid([7; 16]), 3);
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex(&key_bytes(&key).unwrap()), KEY);
        let stretches = [
            Stretch { first: 5, last: 6, state: 2, deliveries: 1 },
            Stretch { first: 9, last: 9, state: 0, deliveries: 3 },
        ];
        let mut state = Some(ShareState::new(0, ShareState::NO_START));
        let write = StateWrite { state_epoch: 0, leader_epoch: 0, start: 4, done: 2, stretches: stretches.to_vec() };
        StateChange::Write(write).apply(&mut state).unwrap();
        assert_eq!(hex(&value_bytes(&state.unwrap(), 1000)), VALUE);
    }

    const KEY: &str = "00000001670707070707070707070707070707070700000003";
    const VALUE: &str = "0000000000000000000000000000000000000000000400000000000003e800000000000003e80300000000\
        00000005000000000000000602000100000000000000000900000000000000090000030001000400000002";
}
