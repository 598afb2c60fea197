//! Records that were first handed out together, as runs of neighbours that share one fate.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Available,
    Acquired { member: Arc<str>, until: Duration },
    Acknowledged,
    Archived,
}

impl State {
    pub fn is_done(&self) -> bool {
        matches!(self, State::Acknowledged | State::Archived)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub last: i64,
    pub state: State,
    /// How often the records were handed out, this time included.
    pub deliveries: i32,
    /// What becomes of acquired records once the version of the partition that says so is durable.
    pub decided: Option<(u64, State)>,
}

impl Run {
    pub fn is_available(&self) -> bool {
        self.state == State::Available
    }

    fn is_like(&self, other: &Run) -> bool {
        self.state == other.state && self.deliveries == other.deliveries && self.decided == other.decided
    }
}

#[derive(Debug)]
pub(super) struct Batch {
    /// By first offset; one follows the other, and neighbours differ. Never empty.
    runs: BTreeMap<i64, Run>,
    /// How many records were handed out together.
    size: i64,
}

impl Batch {
    pub fn new(first: i64, run: Run) -> Self {
        Batch { size: run.last - first + 1, runs: BTreeMap::from([(first, run)]) }
    }

    pub fn first(&self) -> i64 {
        *self.runs.first_key_value().expect("a batch has runs").0
    }

    pub fn last(&self) -> i64 {
        self.runs.last_key_value().expect("a batch has runs").1.last
    }

    pub fn size(&self) -> i64 {
        self.size
    }

    pub fn runs(&self) -> impl Iterator<Item = (i64, &Run)> {
        self.runs.iter().map(|(first, run)| (*first, run))
    }

    /// The fate of the whole batch, if its records share one.
    pub fn whole(&self) -> Option<&Run> {
        if self.runs.len() == 1 { self.runs.values().next() } else { None }
    }

    /// The runs that have something of `first..=last`, cut to it.
    pub fn runs_in(&self, first: i64, last: i64) -> impl Iterator<Item = (i64, i64, &Run)> {
        let from = self.runs.range(..=first).next_back().map_or(first, |(from, _)| *from);
        let runs = self.runs.range(from..).take_while(move |(from, _)| **from <= last);
        runs.map(move |(from, run)| ((*from).max(first), run.last.min(last), run)).filter(|(from, to, _)| from <= to)
    }

    /// The first offset that is not done with.
    pub fn first_not_done(&self) -> Option<i64> {
        self.runs.iter().find(|(_, run)| !run.state.is_done()).map(|(first, _)| *first)
    }

    /// Drops what is before `offset`, which is in the batch.
    pub fn cut_before(&mut self, offset: i64) {
        self.divide(offset);
        self.runs = self.runs.split_off(&offset);
    }

    /// Has a run start at `offset`, if that is in the batch.
    fn divide(&mut self, offset: i64) {
        if let Some((first, run)) = self.runs.range_mut(..=offset).next_back()
            && *first < offset
            && offset <= run.last
        {
            let rest = run.clone();
            run.last = offset - 1;
            self.runs.insert(offset, rest);
        }
    }

    /// Changes the runs of each stretch, first to last offset, which are cut out of their neighbours for it. `change` is told
    /// which stretch it is.
    pub fn change_in(&mut self, stretches: &[(i64, i64)], mut change: impl FnMut(usize, &mut Run)) {
        for (place, (first, last)) in stretches.iter().enumerate() {
            self.divide(*first);
            if *last < i64::MAX {
                self.divide(last + 1);
            }
            self.runs.range_mut(*first..=*last).for_each(|(_, run)| change(place, run));
        }
        if !stretches.is_empty() {
            self.join();
        }
    }

    /// Changes runs where `change` says that it has. Answers whether there were any.
    pub fn change(&mut self, mut change: impl FnMut(&mut Run) -> bool) -> bool {
        let mut any = false;
        self.runs.values_mut().for_each(|run| any |= change(run));
        if any {
            self.join();
        }
        any
    }

    /// Makes one run of neighbours that have become alike.
    fn join(&mut self) {
        if self.runs.len() == 1 {
            return;
        }
        let mut joined: BTreeMap<i64, Run> = BTreeMap::new();
        for (first, run) in std::mem::take(&mut self.runs) {
            match joined.last_entry() {
                Some(mut before) if before.get().is_like(&run) => before.get_mut().last = run.last,
                _ => drop(joined.insert(first, run)),
            }
        }
        self.runs = joined;
    }

    #[cfg(test)]
    pub fn check(&self, first: i64) {
        let mut next = first;
        for (first, run) in &self.runs {
            assert_eq!(*first, next, "the runs have a hole or overlap: {self:?}");
            assert!(run.last >= *first);
            next = run.last + 1;
        }
        assert!(!self.runs.is_empty());
    }
}
