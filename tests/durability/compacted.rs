//! Retention and compaction in a life: what a reader of a compacted log may get, cleaning, and the sweep of old segments.

use std::collections::BTreeMap;
use std::time::Duration;

use doze::protocol::Uuid;
use doze::record::{BatchOptions, Batches};
use doze::storage::cleaner::{Cleaner, CleanerSettings, Work};
use doze::storage::log::{EndMarker, Isolation, PartitionLog};
use doze::storage::retention::Retention;

use crate::life::{Life, sent};
use crate::model::{Before, Entry, Keyed, LogModel, Sent};

impl Life<'_> {
    /// Compares a compacted log with what it took: offsets do not move, of each key the latest value is there, and what a
    /// tombstone deleted does not come back.
    pub fn look_at_compacted(&mut self, what: &str, id: Uuid, partition: i32, log: &PartitionLog) -> bool {
        let offsets = log.offsets();
        let found = match read(log) {
            Ok(found) => found,
            Err(error) => {
                assert!(self.is_troubled(), "{what}: {error}");
                return false;
            }
        };
        let model = self.model_log(id, partition);
        let restarted = model.restarted;
        for (offset, record) in &found {
            let expected = record_at(model, *offset).map(|(record, _)| record);
            assert_eq!(Some(record), expected, "{what}: at offset {offset}");
        }
        let must_have_all = match restarted {
            Some(before) => before == Before::AllKept,
            None => log.is_offline().is_none(),
        };
        let gone = |first: &i64, entry: &Entry| {
            let records = (*first..).zip(&entry.sent.records);
            records
                .map(|(offset, _)| offset)
                .find(|offset| !found.contains_key(offset) && !is_replaced(model, &found, *offset))
        };
        for (first, entry) in &model.entries {
            if let Some(offset) = gone(first, entry) {
                let wanted = entry.sure || must_have_all;
                assert!(!wanted, "{what}: LOST offset {offset}; the log has {offsets:?}, found {:?}", found.keys());
            }
        }
        assert!(offsets.end >= model.sure_end() && offsets.end <= model.end, "{what}: {offsets:?}");
        assert!(!must_have_all || offsets.end == model.end, "{what}: {offsets:?}, it should end at {}", model.end);
        if restarted.is_some() {
            let lost: Vec<i64> = model
                .entries
                .iter()
                .filter(|(first, entry)| **first >= offsets.end || gone(first, entry).is_some())
                .map(|(first, _)| *first)
                .collect();
            model.entries.retain(|first, _| !lost.contains(first));
            model.end = offsets.end;
            model.restarted = None;
        }
        true
    }

    /// A record without a value: its key is deleted.
    pub fn tombstone(&mut self, topic: &str, partition: i32, key: u8) {
        let Some((id, log)) = self.log(topic, partition) else { return };
        let number = self.next_number();
        let sent = sent(vec![(vec![key], None)], number, BatchOptions::default());
        self.append_to(id, partition, &log, sent);
        self.sync(&[(topic, partition)]);
    }

    /// A transaction of two records, and its end.
    pub fn transaction(&mut self, topic: &str, partition: i32, committed: bool) {
        let Some((id, log)) = self.log(topic, partition) else { return };
        let number = self.next_number();
        let producer_id = 3000 + number as i64;
        let options = BatchOptions {
            producer_id,
            producer_epoch: 0,
            base_sequence: 0,
            transactional: true,
            ..BatchOptions::default()
        };
        let record = |key: u8| (vec![key], Some(vec![number as u8; 40]));
        let sent = sent(vec![record(0), record(1)], number, options);
        let Some(first) = self.append_to(id, partition, &log, sent.clone()) else { return };
        let marker =
            EndMarker { producer_id, producer_epoch: 0, committed, coordinator_epoch: 0, transaction_version: 1 };
        match log.append_end_txn_marker(marker, 0) {
            Ok(appended) => {
                let model = self.model_log(id, partition);
                model.took(appended.first_offset, appended.last_offset, Sent { records: Vec::new(), ..sent });
                model.entries.get_mut(&first).expect("it was just appended").aborted = !committed;
            }
            Err(error) => self.expect_trouble(&error, "ending a transaction"),
        }
        self.sync(&[(topic, partition)]);
    }

    /// Cleans whatever there is to clean. What fails is tried again later, and everything is read on meanwhile.
    pub fn clean(&mut self) {
        let cleaner = Cleaner::new(self.store.clone());
        let settings = CleanerSettings { buffer_bytes: 0, ..CleanerSettings::default() };
        let mut injected = 0;
        for wait in [61, 3600, 3600] {
            injected = self.sim.fs.total_injected();
            // So that tombstones are due, and whatever failed is tried again.
            self.sim.clock.advance(Duration::from_secs(wait));
            let mut work = Work::default();
            while cleaner.step(&mut work, &settings) < settings.rest && !self.sim.fs.has_stopped() {}
            if self.sim.fs.has_stopped() {
                return;
            }
            self.look_at_logs();
        }
        for state in cleaner.states() {
            let failed = state.checkpoint.error;
            let id = self.store.topics().by_name(&state.topic).map(|topic| topic.id);
            let log = id.and_then(|id| self.store.open_partition(id, state.partition));
            let is_offline = log.is_some_and(|log| log.is_offline().is_some());
            // On a disk that is full, it fails as long as that.
            let still_fails = self.sim.fs.total_injected() > injected;
            assert!(
                failed.is_none() || is_offline || still_fails,
                "{}: it is never cleaned again: {failed:?}",
                state.topic
            );
        }
    }

    /// Removes the segments that are too old or too many.
    pub fn sweep(&mut self) {
        let retention = Retention::new(self.store.clone());
        for _ in 0..2 {
            self.sim.clock.advance(Duration::from_secs(3600));
            retention.sweep(|_, _| true);
        }
        if !self.sim.fs.has_stopped() {
            self.look_at_logs();
        }
    }
}

/// The records of a log by offset, without markers.
fn read(log: &PartitionLog) -> Result<BTreeMap<i64, Keyed>, String> {
    let (offsets, mut found) = (log.offsets(), BTreeMap::new());
    let mut next = offsets.start;
    while next < offsets.end {
        let result = log.read(next, 1 << 20, true, Isolation::ReadUncommitted).map_err(|error| error.to_string())?;
        let Some(range) = result.range else { break };
        let bytes = range.read().map_err(|error| error.to_string())?;
        let from = next;
        for batch in Batches::new(&bytes) {
            next = batch.header().last_offset() + 1;
            let mut records = batch.records().map_err(|error| error.to_string())?;
            while let Some(record) = records.next_record().map_err(|error| error.to_string())? {
                if !batch.header().is_control() {
                    let keyed = (record.key().unwrap_or_default().to_vec(), record.value().map(<[u8]>::to_vec));
                    found.insert(record.offset(), keyed);
                }
            }
        }
        if next == from {
            return Err(format!("what is at {next} is no batch"));
        }
    }
    Ok(found)
}

/// The record that the log took at an offset, and whether its transaction was aborted.
fn record_at(model: &LogModel, offset: i64) -> Option<(&Keyed, bool)> {
    let (first, entry) = model.entries.range(..=offset).next_back()?;
    let record = entry.sent.records.get(usize::try_from(offset - first).ok()?)?;
    Some((record, entry.aborted))
}

/// Whether a record that is not there may be gone: it was aborted, a later one of its key is there, or its key is deleted,
/// and then nothing older of it is there.
fn is_replaced(model: &LogModel, found: &BTreeMap<i64, Keyed>, offset: i64) -> bool {
    let Some((record, aborted)) = record_at(model, offset) else { return false };
    let counts = |offset: &i64| record_at(model, *offset).is_some_and(|(_, aborted)| !aborted);
    let is_of_key = |(at, other): &(&i64, &Keyed)| other.0 == record.0 && counts(at);
    if aborted || found.range(offset + 1..).any(|found| is_of_key(&found)) {
        return true;
    }
    let of_key = model
        .entries
        .iter()
        .filter(|(_, entry)| !entry.aborted)
        .flat_map(|(first, entry)| (*first..).zip(&entry.sent.records).filter(|(_, other)| other.0 == record.0));
    let last = of_key.last();
    let is_deleted = last.is_some_and(|(at, (_, value))| at >= offset && value.is_none());
    is_deleted && !found.iter().any(|found| is_of_key(&found))
}
