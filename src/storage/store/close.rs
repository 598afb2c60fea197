//! The clean stop.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Store;
use super::error::CloseStoreError;
use super::mark::{self, Trust};
use super::parallel::parallel;
use super::partitions::Slot;
use crate::storage::log::CloseError;
use crate::storage::names;

impl Store {
    /// Flushes and closes all logs and the catalog, and leaves the mark of a clean stop if all of that went well. After it,
    /// every operation says that the data directory is closed, and another process may open it.
    pub fn close(&self) -> Result<(), CloseStoreError> {
        let _admin = self.admin.lock();
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let result = self.finish();
        self.locks.lock().clear();
        result
    }

    fn finish(&self) -> Result<(), CloseStoreError> {
        let slots: Arc<Vec<Arc<Slot>>> = Arc::new(self.slots.read().values().cloned().collect());
        let results = {
            let slots = slots.clone();
            parallel(&*self.dirs.env.workers, slots.len(), move |i| {
                // Nothing is opened any more once this lock was taken.
                let _opening = slots[i].opening.lock();
                slots[i].log.get().map(|log| log.close())
            })
        };
        let mut failure = CloseStoreError { logs: Vec::new(), catalog: None, mark: None };
        for (slot, result) in slots.iter().zip(results) {
            let Some(log) = slot.log.get() else { continue };
            let dir = names::partition_dir(log.topic(), log.partition());
            match result {
                Some(Err(error @ CloseError::Unnoted(_))) => {
                    tracing::warn!(dir, %error, "the next start looks at this partition as after a crash");
                    self.trust.lock().remove(&dir);
                }
                Some(Err(error)) => failure.logs.push((log.dir(), error)),
                _ => self.trust.lock().add(&dir),
            }
        }
        let unchecked = self.unchecked();
        failure.catalog = self.catalog.close().err();
        if failure.logs.is_empty() && failure.catalog.is_none() {
            failure.mark = mark::leave(&*self.dirs.env.fs, &self.dirs.data_dir, &unchecked).err();
        }
        if failure.logs.is_empty() && failure.catalog.is_none() && failure.mark.is_none() {
            Ok(())
        } else {
            Err(failure)
        }
    }

    /// The partitions whose files were not vouched for at the start and not used since.
    fn unchecked(&self) -> Vec<String> {
        let trust = self.trust.lock();
        if matches!(&*trust, Trust::AllBut(not) if not.is_empty()) {
            return Vec::new();
        }
        let topics = self.topics();
        let all = topics.iter().flat_map(|topic| (0..topic.partitions).map(|n| names::partition_dir(&topic.name, n)));
        let mut unchecked: Vec<String> = all.filter(|dir| !trust.includes(dir)).collect();
        unchecked.sort();
        unchecked
    }
}
