//! Every deadline of the coordinator, ordered by when it is due.
//!
//! Setting, moving and cancelling one costs the logarithm of how many there are, and a moved or cancelled one leaves
//! nothing behind: heartbeats, however many, do not grow it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// What is due. At most one deadline is set for each.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Timer {
    /// A member, or somebody who holds a member id but has not joined, has not been heard of.
    Session { group: Arc<str>, member: Arc<str> },
    /// The members of a group had their time to join.
    Join { group: Arc<str> },
    /// The members of a group had their time to sync.
    Sync { group: Arc<str> },
    /// A member of a consumer or streams group had its time to give up partitions or tasks.
    Rebalance { group: Arc<str>, member: Arc<str> },
    /// A streams group had its time to wait for more members before it gives tasks to the first.
    FirstAssignment { group: Arc<str> },
    /// A classic member of a consumer group had its time to join again.
    MemberJoin { group: Arc<str>, member: Arc<str> },
    /// A classic member of a consumer group had its time to sync.
    MemberSync { group: Arc<str>, member: Arc<str> },
    /// It is time to look for expired offsets and forgotten groups.
    Cleanup,
}

/// Deadlines in monotonic time. Those of the same instant come in the order in which they were set.
#[derive(Debug, Default)]
pub(super) struct Timers {
    due: BTreeMap<(Duration, u64), Timer>,
    set: HashMap<Timer, (Duration, u64)>,
    next: u64,
}

impl Timers {
    /// Sets or moves a deadline.
    pub fn set(&mut self, timer: Timer, at: Duration) {
        self.cancel(&timer);
        let key = (at, self.next);
        self.next += 1;
        self.due.insert(key, timer.clone());
        self.set.insert(timer, key);
    }

    pub fn cancel(&mut self, timer: &Timer) {
        if let Some(key) = self.set.remove(timer) {
            self.due.remove(&key);
        }
    }

    pub fn is_set(&self, timer: &Timer) -> bool {
        self.set.contains_key(timer)
    }

    /// When the next deadline is.
    pub fn next(&self) -> Option<Duration> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes the earliest deadline that is due by `now`.
    pub fn pop_due(&mut self, now: Duration) -> Option<Timer> {
        if self.next()? > now {
            return None;
        }
        let (_, timer) = self.due.pop_first()?;
        self.set.remove(&timer);
        Some(timer)
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.due.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_come_in_order_and_moved_ones_leave_nothing() {
        let mut timers = Timers::default();
        let join = Timer::Join { group: "g".into() };
        let sync = Timer::Sync { group: "g".into() };
        timers.set(Timer::Cleanup, Duration::from_millis(30));
        timers.set(join.clone(), Duration::from_millis(20));
        for at in 0..1000 {
            timers.set(sync.clone(), Duration::from_millis(at));
        }
        assert_eq!(timers.len(), 3);
        timers.set(sync.clone(), Duration::from_millis(10));
        assert_eq!(timers.next(), Some(Duration::from_millis(10)));
        assert_eq!(timers.pop_due(Duration::from_millis(9)), None);
        assert_eq!(timers.pop_due(Duration::from_millis(25)), Some(sync));
        assert_eq!(timers.pop_due(Duration::from_millis(25)), Some(join));
        assert_eq!(timers.pop_due(Duration::from_millis(25)), None);
        timers.cancel(&Timer::Cleanup);
        assert_eq!((timers.next(), timers.len()), (None, 0));
    }
}
