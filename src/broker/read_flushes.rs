//! Flushes of what was read, before it is noted durably that it was: after a power cut other records would stand at the
//! offsets, and count as read.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use crate::protocol::Uuid;
use crate::storage::store::Store;

/// Flushes that go on at once, and are waited for in the order in which they were asked for.
#[derive(Debug, Default)]
pub(super) struct ReadFlushes(VecDeque<Option<oneshot::Receiver<bool>>>);

impl ReadFlushes {
    /// Has the records of a partition below `offset` flushed, unless they are.
    pub fn ask(&mut self, store: &Store, topic_id: Uuid, partition: i32, offset: i64) {
        // A log that nobody has opened has let nobody read.
        let log = store.open_partition(topic_id, partition).filter(|log| !log.is_flushed_to(offset));
        self.0.push_back(log.map(|log| {
            let (sender, flushed) = oneshot::channel();
            let tell = move |result: Result<(), _>| {
                // Whoever asked may have gone.
                let _ = sender.send(result.is_ok());
            };
            log.sync_to(offset, Box::new(tell));
            flushed
        }));
    }

    /// Whether the next records that were asked for are on the medium, once that is known.
    pub async fn next(&mut self) -> bool {
        match self.0.pop_front().flatten() {
            None => true,
            Some(flushed) => flushed.await.unwrap_or(false),
        }
    }
}
