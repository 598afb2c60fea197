//! Which leader epoch wrote which offsets.

/// The leader epochs of a log, each with the first offset that it wrote; both rise. Not shared: it lives under the log's
/// locks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::storage) struct LeaderEpochs {
    entries: Vec<(i32, i64)>,
    /// Whether the file has not got all of this.
    dirty: bool,
}

impl LeaderEpochs {
    pub fn new(entries: Vec<(i32, i64)>) -> Self {
        LeaderEpochs { entries, dirty: false }
    }

    pub fn entries(&self) -> &[(i32, i64)] {
        &self.entries
    }

    pub fn is_dirty(&self) -> bool {
        self.dirty
    }

    pub fn mark_written(&mut self) {
        self.dirty = false;
    }

    /// A batch of `epoch` was written at `offset`. An epoch that is not newer than the latest tells nothing.
    pub fn assign(&mut self, epoch: i32, offset: i64) {
        if epoch >= 0 && self.latest().is_none_or(|latest| epoch > latest) {
            self.entries.push((epoch, offset));
            self.dirty = true;
        }
    }

    pub fn latest(&self) -> Option<i32> {
        self.entries.last().map(|entry| entry.0)
    }

    /// The epoch that `offset` was written in.
    pub fn of_offset(&self, offset: i64) -> Option<i32> {
        let above = self.entries.partition_point(|entry| entry.1 <= offset);
        above.checked_sub(1).map(|at| self.entries[at].0)
    }

    /// Where `epoch` ended: the latest epoch that is not above it, and the offset after that one's last. `None` where
    /// nothing is known of it.
    pub fn end_offset(&self, epoch: i32, log_end: i64) -> Option<(i32, i64)> {
        if epoch < 0 {
            return None;
        }
        if self.latest() == Some(epoch) {
            return Some((epoch, log_end));
        }
        let above = self.entries.partition_point(|entry| entry.0 <= epoch);
        let next_start = self.entries.get(above)?.1;
        let found = above.checked_sub(1).map_or(epoch, |before| self.entries[before].0);
        Some((found, next_start))
    }

    /// Forgets what lies below `start`.
    pub fn truncate_start(&mut self, start: i64) {
        let above = self.entries.partition_point(|entry| entry.1 <= start);
        if above > 1 || (above == 1 && self.entries[0].1 < start) {
            self.entries.drain(..above - 1);
            self.entries[0].1 = start;
            self.dirty = true;
        }
    }

    /// Forgets what lies at or above `end`.
    pub fn truncate_end(&mut self, end: i64) {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.1 < end);
        self.dirty |= self.entries.len() != before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_epoch_is_the_start_of_the_next() {
        let mut epochs = LeaderEpochs::new(vec![(2, 10), (4, 20)]);
        epochs.assign(4, 25);
        epochs.assign(7, 30);
        assert_eq!(epochs.end_offset(-1, 40), None);
        assert_eq!(epochs.end_offset(1, 40), Some((1, 10)), "older than all that is known");
        assert_eq!(epochs.end_offset(2, 40), Some((2, 20)));
        assert_eq!(epochs.end_offset(3, 40), Some((2, 20)));
        assert_eq!(epochs.end_offset(6, 40), Some((4, 30)));
        assert_eq!(epochs.end_offset(7, 40), Some((7, 40)));
        assert_eq!(epochs.end_offset(8, 40), None);
        assert_eq!(
            [9, 10, 19, 20, 99].map(|offset| epochs.of_offset(offset)),
            [None, Some(2), Some(2), Some(4), Some(7)]
        );
        epochs.truncate_start(22);
        assert_eq!(epochs.entries(), [(4, 22), (7, 30)]);
        epochs.truncate_end(30);
        assert_eq!(epochs.entries(), [(4, 22)]);
    }
}
