//! What has become of records, as it is stored: stretches of neighbours that share one fate.

use std::collections::BinaryHeap;

/// Records that are there to be handed out.
pub(super) const AVAILABLE: u8 = 0;
pub(super) const ACKNOWLEDGED: u8 = 2;
/// Rejected, given up, or not there any more.
pub(super) const ARCHIVED: u8 = 4;

/// Neighbouring records that share one fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub first: i64,
    pub last: i64,
    /// What has become of the records, by Kafka's numbers: 0 available, 2 acknowledged, 4 archived.
    pub state: u8,
    pub deliveries: i32,
}

impl Stretch {
    /// Whether the records are done with.
    pub fn is_done(&self) -> bool {
        self.state != AVAILABLE
    }

    /// How many records it has.
    pub fn count(&self) -> i64 {
        self.last - self.first + 1
    }

    /// Whether it is of records that there can be, and says something of them that can be.
    pub fn makes_sense(&self) -> bool {
        (0..=self.last).contains(&self.first)
            && self.last < i64::MAX
            && matches!(self.state, AVAILABLE | ACKNOWLEDGED | ARCHIVED)
            && self.deliveries >= 0
    }

    /// Which of two things that are said of a record holds: the one with more deliveries, then the one that is further on.
    fn rank(&self) -> (i32, u8) {
        (self.deliveries, self.state)
    }
}

/// How many records are done with.
pub(super) fn done(stretches: &[Stretch]) -> i32 {
    let done = stretches.iter().filter(|stretch| stretch.is_done()).map(Stretch::count);
    i32::try_from(done.sum::<i64>()).unwrap_or(i32::MAX)
}

/// A stretch that holds where it reaches and none of higher rank does.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Holding {
    rank: (i32, u8),
    last: i64,
}

/// Puts together stretches in any order that may say different things of one record: in order, with one fate a record, without
/// what is below `start`, and neighbours that are alike in one.
pub(super) fn merge(mut all: Vec<Stretch>, start: i64) -> Vec<Stretch> {
    all.retain(|stretch| stretch.last >= start);
    all.iter_mut().for_each(|stretch| stretch.first = stretch.first.max(start));
    all.sort_by_key(|stretch| stretch.first);
    let mut merged: Vec<Stretch> = Vec::with_capacity(all.len());
    let mut holding: BinaryHeap<Holding> = BinaryHeap::new();
    let mut coming = all.into_iter().peekable();
    let mut from = i64::MIN;
    loop {
        while holding.peek().is_some_and(|held| held.last < from) {
            holding.pop();
        }
        if holding.is_empty() {
            match coming.peek() {
                Some(next) => from = from.max(next.first),
                None => return merged,
            }
        }
        while let Some(next) = coming.next_if(|next| next.first <= from) {
            holding.push(Holding { rank: next.rank(), last: next.last });
        }
        let Some(Holding { rank: (deliveries, state), last }) = holding.peek() else { continue };
        let last = coming.peek().map_or(*last, |next| (*last).min(next.first - 1));
        put(&mut merged, Stretch { first: from, last, state: *state, deliveries: *deliveries });
        from = last + 1;
    }
}

fn put(merged: &mut Vec<Stretch>, next: Stretch) {
    match merged.last_mut() {
        Some(before) if before.last + 1 == next.first && before.rank() == next.rank() => before.last = next.last,
        _ => merged.push(next),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::tests::SeededRandom;

    const RECORDS: i64 = 40;

    fn some(random: &mut SeededRandom) -> Stretch {
        let first = random.below(RECORDS as usize) as i64;
        let last = (first + random.below(12) as i64).min(RECORDS - 1);
        let state = [AVAILABLE, ACKNOWLEDGED, ARCHIVED][random.below(3)];
        Stretch { first, last, state, deliveries: random.below(3) as i32 }
    }

    /// Record by record: of all that is said of it, what has the most deliveries and is furthest on holds.
    fn record_by_record(all: &[Stretch], start: i64) -> Vec<Option<(i32, u8)>> {
        let of =
            |offset| all.iter().filter(move |one| one.first <= offset && offset <= one.last).map(Stretch::rank).max();
        (0..RECORDS).map(|offset| if offset < start { None } else { of(offset) }).collect()
    }

    #[test]
    fn stretches_that_overlap_become_one_fate_a_record() {
        for seed in 0..3000 {
            let mut random = SeededRandom::new(seed);
            let all: Vec<Stretch> = (0..random.below(9)).map(|_| some(&mut random)).collect();
            let start = random.below(RECORDS as usize) as i64;
            let merged = merge(all.clone(), start);
            for pair in merged.windows(2) {
                assert!(pair[0].last < pair[1].first, "seed {seed}: {merged:?}");
                let alike = pair[0].rank() == pair[1].rank() && pair[0].last + 1 == pair[1].first;
                assert!(!alike, "seed {seed}: neighbours are alike: {merged:?}");
            }
            assert_eq!(record_by_record(&merged, 0), record_by_record(&all, start), "seed {seed}: {all:?}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        let good = Stretch { first: 3, last: 3, state: AVAILABLE, deliveries: 0 };
        assert!(good.makes_sense());
        for bad in [
            Stretch { first: -1, ..good },
            Stretch { last: 2, ..good },
            Stretch { last: i64::MAX, ..good },
            Stretch { state: 1, ..good },
            Stretch { state: 3, ..good },
            Stretch { deliveries: -1, ..good },
        ] {
            assert!(!bad.makes_sense(), "{bad:?}");
        }
    }
}
