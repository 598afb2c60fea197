//! What is known of the producers that wrote to a log: enough to refuse what is out of order, to know a batch that was sent
//! twice, and to tell which transactions are open. The rules are those of Apache Kafka 4.3.

use std::collections::{BTreeMap, HashMap};

use super::error::AppendError;
use super::index::AbortedTransaction;
use crate::record::{BatchHeader, NO_SEQUENCE};

/// How many of a producer's latest batches a batch that is sent again is looked for in.
const BATCHES_KEPT: usize = 5;
/// The producer epoch of a producer of which nothing is known.
const NO_EPOCH: i16 = -1;
/// The coordinator epoch of a producer that no coordinator ever ended a transaction of.
const NO_COORDINATOR: i32 = -1;

/// A batch that a producer wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::storage) struct WrittenBatch {
    pub last_sequence: i32,
    pub last_offset: i64,
    /// The last offset less the first; the sequences have the same distance.
    pub delta: i32,
    /// The batch's maximum timestamp.
    pub timestamp: i64,
}

impl WrittenBatch {
    pub fn first_offset(&self) -> i64 {
        self.last_offset - i64::from(self.delta)
    }

    fn first_sequence(&self) -> i32 {
        // They go around from i32::MAX to 0.
        (i64::from(self.last_sequence) - i64::from(self.delta)).rem_euclid(1 << 31) as i32
    }
}

/// One producer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Producer {
    pub epoch: i16,
    pub coordinator_epoch: i32,
    /// The maximum timestamp of the latest batch, or the timestamp of the marker after it.
    pub last_timestamp: i64,
    /// Where its open transaction starts.
    pub transaction_start: Option<i64>,
    /// Its latest batches of this epoch, oldest first; `kept` of them count.
    batches: [WrittenBatch; BATCHES_KEPT],
    kept: u8,
}

impl Producer {
    /// One of which this is known (from a snapshot).
    pub fn new(
        epoch: i16,
        coordinator_epoch: i32,
        last_timestamp: i64,
        transaction_start: Option<i64>,
        batch: Option<WrittenBatch>,
    ) -> Self {
        let mut producer = Producer {
            epoch,
            coordinator_epoch,
            last_timestamp,
            transaction_start,
            batches: Default::default(),
            kept: 0,
        };
        batch.into_iter().for_each(|batch| producer.keep(batch));
        producer
    }

    fn unknown() -> Self {
        Producer::new(NO_EPOCH, NO_COORDINATOR, -1, None, None)
    }

    /// Its latest batches of this epoch, oldest first.
    pub fn batches(&self) -> &[WrittenBatch] {
        &self.batches[..usize::from(self.kept)]
    }

    fn last_batch(&self) -> Option<&WrittenBatch> {
        self.batches().last()
    }

    fn last_sequence(&self) -> i32 {
        self.last_batch().map_or(NO_SEQUENCE, |batch| batch.last_sequence)
    }

    /// Remembers a batch that follows those it has.
    pub fn keep(&mut self, batch: WrittenBatch) {
        if usize::from(self.kept) == BATCHES_KEPT {
            self.batches.rotate_left(1);
            self.kept -= 1;
        }
        self.batches[usize::from(self.kept)] = batch;
        self.kept += 1;
    }

    fn set_epoch(&mut self, epoch: i16) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.kept = 0;
        }
    }
}

/// What a producer wrote last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::storage) enum LastOfProducer {
    /// A batch with this last offset.
    Batch(i64),
    /// No batch in its epoch, which is this one, but a marker.
    Marker(i16),
}

/// What DescribeProducers tells of a producer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerInfo {
    pub producer_id: i64,
    pub epoch: i16,
    /// The sequence of its last record, -1 where it has written none in this epoch.
    pub last_sequence: i32,
    /// Milliseconds since the Unix epoch, of its latest batch or marker.
    pub last_timestamp: i64,
    /// The epoch of the coordinator that last ended a transaction of it, -1 for none.
    pub coordinator_epoch: i32,
    /// Where its open transaction starts.
    pub transaction_start: Option<i64>,
}

/// Where an open transaction starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenTransaction {
    pub producer_id: i64,
    /// The base offset of the segment and the position in it, where they are known.
    pub place: Option<(i64, u64)>,
}

/// The end of a transaction that had records in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EndedTransaction {
    pub producer_id: i64,
    pub first_offset: i64,
    /// The offset of the marker.
    pub marker_offset: i64,
    pub aborted: bool,
    /// The last stable offset that the end makes.
    pub last_stable_offset: i64,
}

impl From<EndedTransaction> for AbortedTransaction {
    fn from(ended: EndedTransaction) -> Self {
        AbortedTransaction {
            producer_id: ended.producer_id,
            first_offset: ended.first_offset,
            last_offset: ended.marker_offset,
            last_stable_offset: ended.last_stable_offset,
        }
    }
}

/// The end of a transaction, as its coordinator has it written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndMarker {
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub committed: bool,
    /// The epoch of the coordinator; one below what is known of it is refused.
    pub coordinator_epoch: i32,
    /// From 2 on each transaction ends with an epoch of its own, so that a marker of the epoch that is known is one that
    /// came late.
    pub transaction_version: i16,
}

/// How a producer of some epoch stands in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A later epoch of it has been here.
    Fenced,
    /// It has a transaction open.
    InTransaction,
    Free,
}

/// What a batch in a transaction has to fulfil where it is the first of the transaction in its partition.
pub struct InTransaction<'a> {
    /// Whether the transaction coordinator has the transaction open and knows of the partition. Called under the log's lock
    /// for appends: the marker that ends the transaction, which the coordinator has written after it has decided the end,
    /// comes before the call or after the append, so no batch can come in between.
    pub is_open: &'a dyn Fn() -> bool,
    /// Whether the sequences of a producer that is not known here have to start at 0: in the second version of the
    /// protocol they do for each transaction.
    pub starts_at_zero: bool,
}

impl std::fmt::Debug for InTransaction<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InTransaction").field("starts_at_zero", &self.starts_at_zero).finish_non_exhaustive()
    }
}

/// All producers of a log. Not shared: it lives under the log's lock for appends.
#[derive(Clone, Debug, Default)]
pub(super) struct Producers {
    known: HashMap<i64, Producer>,
    /// By the offset where they start.
    open: BTreeMap<i64, OpenTransaction>,
}

impl Producers {
    /// Puts back what a snapshot holds.
    pub fn restore(entries: Vec<(i64, Producer)>) -> Self {
        let mut producers = Producers::default();
        for (producer_id, producer) in entries {
            if let Some(start) = producer.transaction_start {
                producers.open.insert(start, OpenTransaction { producer_id, place: None });
            }
            producers.known.insert(producer_id, producer);
        }
        producers
    }

    pub fn entries(&self) -> impl ExactSizeIterator<Item = (i64, &Producer)> {
        self.known.iter().map(|(id, producer)| (*id, producer))
    }

    pub fn describe(&self) -> Vec<ProducerInfo> {
        let mut all: Vec<ProducerInfo> = self
            .entries()
            .map(|(producer_id, producer)| ProducerInfo {
                producer_id,
                epoch: producer.epoch,
                last_sequence: producer.last_sequence(),
                last_timestamp: producer.last_timestamp,
                coordinator_epoch: producer.coordinator_epoch,
                transaction_start: producer.transaction_start,
            })
            .collect();
        all.sort_by_key(|info| info.producer_id);
        all
    }

    /// What each wrote last.
    pub fn last_written(&self) -> HashMap<i64, LastOfProducer> {
        let last = |producer: &Producer| match producer.last_batch() {
            Some(batch) => LastOfProducer::Batch(batch.last_offset),
            None => LastOfProducer::Marker(producer.epoch),
        };
        self.entries().map(|(id, producer)| (id, last(producer))).collect()
    }

    /// The start of the earliest open transaction.
    pub fn first_open(&self) -> Option<(i64, OpenTransaction)> {
        self.open.first_key_value().map(|(start, open)| (*start, *open))
    }

    pub fn has_open_transaction(&self, producer_id: i64) -> bool {
        self.known.get(&producer_id).is_some_and(|producer| producer.transaction_start.is_some())
    }

    /// How a producer that says it has this epoch stands here.
    pub fn standing(&self, producer_id: i64, epoch: i16) -> Standing {
        match self.known.get(&producer_id) {
            Some(producer) if epoch < producer.epoch => Standing::Fenced,
            _ if self.is_in_transaction(producer_id, epoch) => Standing::InTransaction,
            _ => Standing::Free,
        }
    }

    /// Whether the producer has a transaction open with this epoch.
    pub fn is_in_transaction(&self, producer_id: i64, epoch: i16) -> bool {
        let producer = self.known.get(&producer_id);
        producer.is_some_and(|producer| producer.transaction_start.is_some() && producer.epoch == epoch)
    }

    /// Whether a client's batch may start a transaction here, or go on with one.
    pub fn check_transaction(&self, header: &BatchHeader, rules: &InTransaction<'_>) -> Result<(), AppendError> {
        let BatchHeader { producer_id, producer_epoch: epoch, base_sequence: first, .. } = *header;
        if !header.is_transactional() || self.is_in_transaction(producer_id, epoch) || self.repeated(header).is_some() {
            return Ok(());
        }
        let known = self.known.get(&producer_id);
        if let Some(producer) = known.filter(|producer| epoch < producer.epoch) {
            return Err(AppendError::InvalidProducerEpoch { producer_id, epoch, current: producer.epoch });
        }
        if !(rules.is_open)() {
            return Err(AppendError::NotInTransaction { producer_id });
        }
        if rules.starts_at_zero && first != 0 && known.is_none_or(|producer| producer.batches().is_empty()) {
            return Err(AppendError::OutOfOrderSequence { producer_id, epoch, first, last: NO_SEQUENCE });
        }
        Ok(())
    }

    /// The batch that a client's batch repeats.
    fn repeated(&self, header: &BatchHeader) -> Option<WrittenBatch> {
        let producer = self.known.get(&header.producer_id).filter(|known| known.epoch == header.producer_epoch)?;
        let (first, last) = (header.base_sequence, header.last_sequence());
        let same = |batch: &&WrittenBatch| batch.first_sequence() == first && batch.last_sequence == last;
        producer.batches().iter().find(same).copied()
    }

    /// Forgets the producers that wrote nothing for `expiration_ms` and have no transaction open.
    pub fn expire(&mut self, now_ms: i64, expiration_ms: i64) {
        self.known.retain(|_, producer| {
            producer.transaction_start.is_some() || now_ms.saturating_sub(producer.last_timestamp) < expiration_ms
        });
    }

    /// Whether a client's batch may be appended. `Some` is the batch that it repeats.
    pub fn check(&self, header: &BatchHeader) -> Result<Option<WrittenBatch>, AppendError> {
        let BatchHeader { producer_id, producer_epoch: epoch, base_sequence: first, .. } = *header;
        let Some(producer) = self.known.get(&producer_id) else {
            // It may have been forgotten, with all that it wrote: any sequence will do.
            return Ok(None);
        };
        if let Some(batch) = self.repeated(header) {
            return Ok(Some(batch));
        }
        if epoch < producer.epoch {
            return Err(AppendError::InvalidProducerEpoch { producer_id, epoch, current: producer.epoch });
        }
        // A new epoch starts at 0, and so does one that has nothing but a marker yet.
        let last = if epoch == producer.epoch { producer.last_sequence() } else { NO_SEQUENCE };
        let due = if last == i32::MAX { 0 } else { last + 1 };
        if first != due {
            return Err(AppendError::OutOfOrderSequence { producer_id, epoch, first, last });
        }
        if producer.transaction_start.is_some() && !header.is_transactional() {
            return Err(AppendError::InvalidTransactionState { producer_id });
        }
        Ok(None)
    }

    /// A batch that is not a control batch was written.
    pub fn wrote(&mut self, header: &BatchHeader, place: Option<(i64, u64)>) {
        let producer = self.known.entry(header.producer_id).or_insert_with(Producer::unknown);
        producer.set_epoch(header.producer_epoch);
        producer.keep(WrittenBatch {
            last_sequence: header.last_sequence(),
            last_offset: header.last_offset(),
            delta: header.last_offset_delta,
            timestamp: header.max_timestamp,
        });
        producer.last_timestamp = header.max_timestamp;
        if header.is_transactional() && producer.transaction_start.is_none() {
            producer.transaction_start = Some(header.base_offset);
            self.open.insert(header.base_offset, OpenTransaction { producer_id: header.producer_id, place });
        }
    }

    /// Whether a marker may be written.
    pub fn check_marker(&self, marker: &EndMarker) -> Result<(), AppendError> {
        let Some(producer) = self.known.get(&marker.producer_id) else { return Ok(()) };
        let (producer_id, epoch, current) = (marker.producer_id, marker.producer_epoch, producer.epoch);
        // One of the epoch that is known, where each transaction has its own, ends something that has ended: it is only
        // written again if there is nothing that it could end by mistake.
        let late = marker.transaction_version >= 2 && epoch == current && producer.transaction_start.is_some();
        if epoch < current || late {
            return Err(AppendError::InvalidProducerEpoch { producer_id, epoch, current });
        }
        if marker.coordinator_epoch < producer.coordinator_epoch {
            return Err(AppendError::CoordinatorFenced {
                producer_id,
                epoch: marker.coordinator_epoch,
                current: producer.coordinator_epoch,
            });
        }
        Ok(())
    }

    /// A marker was written at `offset`. Answers what it ended, if there was a transaction open.
    pub fn ended(&mut self, marker: &EndMarker, offset: i64, timestamp: i64) -> Option<EndedTransaction> {
        let producer = self.known.entry(marker.producer_id).or_insert_with(Producer::unknown);
        producer.set_epoch(marker.producer_epoch);
        producer.coordinator_epoch = marker.coordinator_epoch;
        producer.last_timestamp = timestamp;
        let first_offset = producer.transaction_start.take()?;
        self.open.remove(&first_offset);
        Some(EndedTransaction {
            producer_id: marker.producer_id,
            first_offset,
            marker_offset: offset,
            aborted: !marker.committed,
            last_stable_offset: self.first_open().map_or(offset + 1, |(start, _)| start),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(epoch: i16, first: i32, count: i32, offset: i64) -> BatchHeader {
        BatchHeader {
            base_offset: offset,
            batch_length: 49,
            partition_leader_epoch: 0,
            crc: 0,
            attributes: 0,
            last_offset_delta: count - 1,
            base_timestamp: 5,
            max_timestamp: 5,
            producer_id: 9,
            producer_epoch: epoch,
            base_sequence: first,
            records_count: count,
        }
    }

    #[test]
    fn sequences_go_on_around_the_end_and_start_anew_with_an_epoch() {
        let mut producers = Producers::default();
        assert_eq!(producers.check(&batch(3, 77, 1, 0)).unwrap(), None, "an unknown producer may start anywhere");
        producers.wrote(&batch(3, i32::MAX - 1, 2, 0), None);
        producers.check(&batch(3, 0, 5, 2)).unwrap();
        let gap = producers.check(&batch(3, 1, 1, 2)).unwrap_err();
        assert!(matches!(gap, AppendError::OutOfOrderSequence { first: 1, last: i32::MAX, .. }), "{gap}");
        let old = producers.check(&batch(2, 0, 1, 2)).unwrap_err();
        assert!(matches!(old, AppendError::InvalidProducerEpoch { epoch: 2, current: 3, .. }), "{old}");
        assert!(producers.check(&batch(4, 1, 1, 2)).is_err(), "a new epoch starts at 0");
        producers.check(&batch(4, 0, 1, 2)).unwrap();
        producers.wrote(&batch(3, i32::MAX, 3, 2), None);
        let again = producers.check(&batch(3, i32::MAX, 3, 9)).unwrap().expect("around the end, sent twice");
        assert_eq!((again.first_offset(), again.last_offset), (2, 4));
    }

    #[test]
    fn the_last_five_batches_are_known_again() {
        let mut producers = Producers::default();
        for i in 0..7 {
            producers.wrote(&batch(0, i * 10, 10, i64::from(i) * 100), None);
        }
        for i in 2..7 {
            let again = producers.check(&batch(0, i * 10, 10, 5000)).unwrap().unwrap();
            assert_eq!((again.first_offset(), again.timestamp), (i64::from(i) * 100, 5));
        }
        assert!(producers.check(&batch(0, 10, 10, 5000)).is_err());
        assert!(producers.check(&batch(0, 60, 9, 5000)).is_err(), "other bounds are no repetition");
    }

    #[test]
    fn a_marker_ends_what_is_open_and_late_ones_are_refused() {
        let mut producers = Producers::default();
        let mut first = batch(0, 0, 2, 10);
        first.attributes = 1 << 4;
        producers.wrote(&first, Some((0, 100)));
        assert_eq!(producers.first_open().map(|open| open.0), Some(10));
        let outside = producers.check(&batch(0, 2, 1, 12)).unwrap_err();
        assert!(matches!(outside, AppendError::InvalidTransactionState { .. }), "{outside}");
        let marker = |epoch, coordinator_epoch, transaction_version| EndMarker {
            producer_id: 9,
            producer_epoch: epoch,
            committed: false,
            coordinator_epoch,
            transaction_version,
        };
        assert!(producers.check_marker(&marker(0, 4, 2)).is_err(), "each transaction ends with an epoch of its own");
        producers.check_marker(&marker(0, 4, 1)).unwrap();
        producers.check_marker(&marker(1, 4, 2)).unwrap();
        let ended = producers.ended(&marker(1, 4, 2), 12, 6).unwrap();
        assert_eq!(
            (ended.first_offset, ended.marker_offset, ended.aborted, ended.last_stable_offset),
            (10, 12, true, 13)
        );
        producers.check_marker(&marker(1, 4, 2)).expect("sent again, with nothing open, it does no harm");
        let fenced = producers.check_marker(&marker(2, 3, 2)).unwrap_err();
        assert!(matches!(fenced, AppendError::CoordinatorFenced { epoch: 3, current: 4, .. }), "{fenced}");
        producers.check(&batch(1, 0, 1, 13)).expect("after the marker the new epoch starts at 0");
        producers.expire(5 + 99, 100);
        assert_eq!(producers.describe().len(), 1);
        producers.expire(6 + 100, 100);
        assert_eq!(producers.describe().len(), 0);
    }

    #[test]
    fn the_first_batch_of_a_transaction_asks_whether_it_is_open() {
        let mut producers = Producers::default();
        let transactional = |epoch, first| {
            let mut header = batch(epoch, first, 1, 0);
            header.attributes = 1 << 4;
            header
        };
        let asked = std::cell::Cell::new(0);
        let check = |producers: &Producers, header: &BatchHeader, is_open: bool, starts_at_zero: bool| {
            asked.set(0);
            let is_open = || {
                asked.set(asked.get() + 1);
                is_open
            };
            producers.check_transaction(header, &InTransaction { is_open: &is_open, starts_at_zero })
        };
        let closed = check(&producers, &transactional(0, 0), false, false).unwrap_err();
        assert!(matches!(closed, AppendError::NotInTransaction { producer_id: 9 }), "{closed}");
        let late = check(&producers, &transactional(0, 5), true, true).unwrap_err();
        assert!(matches!(late, AppendError::OutOfOrderSequence { first: 5, .. }), "{late}");
        check(&producers, &transactional(0, 5), true, false).unwrap();
        check(&producers, &batch(0, 0, 1, 0), false, true).expect("it is in no transaction");
        producers.wrote(&transactional(0, 0), None);
        assert_eq!(producers.standing(9, 0), Standing::InTransaction);
        check(&producers, &transactional(0, 1), false, true).unwrap();
        assert_eq!(asked.get(), 0, "what is open goes on");
        let end = EndMarker {
            producer_id: 9,
            producer_epoch: 1,
            committed: true,
            coordinator_epoch: 0,
            transaction_version: 2,
        };
        producers.ended(&end, 1, 5);
        assert_eq!((producers.standing(9, 0), producers.standing(9, 1)), (Standing::Fenced, Standing::Free));
        let fenced = check(&producers, &transactional(0, 1), true, false).unwrap_err();
        assert!(matches!(fenced, AppendError::InvalidProducerEpoch { epoch: 0, current: 1, .. }), "{fenced}");
        check(&producers, &transactional(1, 0), true, true).unwrap();
        assert_eq!(asked.get(), 1);
    }
}
