//! Which batches are of aborted transactions, and which markers nothing needs any more, as a walk over a log comes to them.

use std::collections::{HashMap, HashSet};

use crate::record::BatchHeader;
use crate::storage::log::AbortedTransaction;

/// What a walk knows of transactions. Batches have to be told in the order of the log.
#[derive(Debug)]
pub(super) struct Transactions {
    /// By first offset, rising; those from `next` on start after what was walked over.
    aborted: Vec<AbortedTransaction>,
    next: usize,
    /// The aborted transactions that have started, by producer, and whether a batch of them is in the log.
    open_aborted: HashMap<i64, (AbortedTransaction, bool)>,
    /// The producers of batches that are of no aborted transaction and whose marker is still to come.
    open_committed: HashSet<i64>,
}

/// What a control batch is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    /// It ended a transaction that has batches in the log; or it is no marker of a transaction at all.
    Needed,
    /// The same, of a transaction that was aborted.
    Aborts(AbortedTransaction),
    /// The log has nothing of its transaction.
    Spent,
}

impl Transactions {
    /// `aborted`: all that were aborted and may have something in what is walked over.
    pub fn new(mut aborted: Vec<AbortedTransaction>) -> Transactions {
        aborted.sort_by_key(|transaction| transaction.first_offset);
        Transactions { aborted, next: 0, open_aborted: HashMap::new(), open_committed: HashSet::new() }
    }

    fn walk_to(&mut self, offset: i64) {
        while let Some(aborted) = self.aborted.get(self.next).filter(|aborted| aborted.first_offset <= offset) {
            self.open_aborted.entry(aborted.producer_id).or_insert((*aborted, false));
            self.next += 1;
        }
    }

    /// A batch of records. Answers whether they were aborted.
    pub fn records(&mut self, header: &BatchHeader) -> bool {
        self.walk_to(header.last_offset());
        if !header.is_transactional() {
            return false;
        }
        if let Some((_, has_batches)) = self.open_aborted.get_mut(&header.producer_id) {
            *has_batches = true;
            return true;
        }
        self.open_committed.insert(header.producer_id);
        false
    }

    /// A control batch: `committed` is what its marker says, `None` where its record was removed before.
    pub fn marker(&mut self, header: &BatchHeader, committed: Option<bool>) -> Marker {
        self.walk_to(header.last_offset());
        let producer = header.producer_id;
        match committed {
            None => Marker::Spent,
            Some(true) if self.open_committed.remove(&producer) => Marker::Needed,
            Some(true) => Marker::Spent,
            Some(false) => match self.open_aborted.remove(&producer) {
                Some((aborted, true)) => Marker::Aborts(aborted),
                _ => Marker::Spent,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(producer_id: i64, offset: i64) -> BatchHeader {
        let mut header = BatchHeader {
            base_offset: offset,
            batch_length: 49,
            partition_leader_epoch: 0,
            crc: 0,
            attributes: 0,
            last_offset_delta: 0,
            base_timestamp: 0,
            max_timestamp: 0,
            producer_id,
            producer_epoch: 0,
            base_sequence: 0,
            records_count: 1,
        };
        header.set_transactional(true);
        header
    }

    #[test]
    fn batches_belong_to_the_transaction_whose_marker_comes_next() {
        let aborted = |producer_id, first_offset, last_offset| AbortedTransaction {
            producer_id,
            first_offset,
            last_offset,
            last_stable_offset: last_offset + 1,
        };
        let mut walk = Transactions::new(vec![aborted(1, 10, 13), aborted(2, 3, 14), aborted(3, 20, 21)]);
        assert!(!walk.records(&header(1, 1)));
        assert_eq!(walk.marker(&header(1, 2), Some(true)), Marker::Needed);
        assert!(walk.records(&header(2, 3)), "interleaved");
        assert!(walk.records(&header(1, 10)));
        assert!(!walk.records(&header(4, 11)));
        assert_eq!(walk.marker(&header(1, 13), Some(false)), Marker::Aborts(aborted(1, 10, 13)));
        assert_eq!(walk.marker(&header(2, 14), Some(false)), Marker::Aborts(aborted(2, 3, 14)));
        assert_eq!(walk.marker(&header(4, 15), Some(true)), Marker::Needed);
        assert_eq!(walk.marker(&header(4, 16), Some(true)), Marker::Spent, "nothing of it is left");
        assert_eq!(walk.marker(&header(3, 21), Some(false)), Marker::Spent, "the same");
        assert_eq!(walk.marker(&header(9, 22), Some(false)), Marker::Spent);
        assert_eq!(walk.marker(&header(9, 23), None), Marker::Spent);
    }
}
