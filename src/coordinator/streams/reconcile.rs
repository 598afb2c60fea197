//! How one member gets from the tasks that it has to those that it is to have: first it gives up what is not its any more,
//! then it gets what nobody has who would be in the way.
//!
//! An active task may be with one member alone, and the state of a task may be open once in a process: so a member waits for
//! the member that has the task active, and for members of its own process that have it as whatever.

use super::api::{TaskSet, Tasks};
use super::{Held, Member, MemberState, Role};

/// What a step depends on.
pub(super) struct Step<'a> {
    pub target_epoch: i32,
    pub target: &'a Tasks,
    /// What the member says that it has; nothing if it did not say.
    pub owned: Option<&'a Tasks>,
}

impl Member {
    pub(super) fn is_reconciled(&self, target_epoch: i32) -> bool {
        self.state == MemberState::Stable && self.epoch == target_epoch
    }

    /// Takes the member one step further if that is possible. `is_taken` says whether another member has a task so that this
    /// one cannot.
    pub(super) fn reconcile(&mut self, step: &Step<'_>, is_taken: impl Fn(Role, &str, i32) -> bool) {
        match self.state {
            MemberState::Stable if self.epoch == step.target_epoch => {}
            MemberState::Unrevoked if self.revoking.has_any(step.owned) => {}
            // That it has given tasks up is a step of its own.
            MemberState::Unrevoked => self.head_for_target(self.epoch + 1, step, is_taken),
            MemberState::Stable | MemberState::Unreleased => self.head_for_target(self.epoch, step, is_taken),
        }
    }

    fn head_for_target(&mut self, epoch: i32, step: &Step<'_>, is_taken: impl Fn(Role, &str, i32) -> bool) {
        let (mut assigned, mut revoking) = (Held::default(), Held::default());
        for (id, partitions) in &self.assigned.active {
            for (partition, since) in partitions {
                let stays = contains(&step.target.active, id, *partition);
                let side = if stays { &mut assigned } else { &mut revoking };
                side.active.entry(id.clone()).or_default().insert(*partition, *since);
            }
        }
        for (id, partitions) in &self.assigned.standby {
            for partition in partitions {
                let stays = contains(&step.target.standby, id, *partition);
                let side = if stays { &mut assigned } else { &mut revoking };
                side.standby.entry(id.clone()).or_default().insert(*partition);
            }
        }
        self.previous_epoch = self.epoch;
        if revoking.has_any(step.owned) {
            self.state = MemberState::Unrevoked;
            self.epoch = epoch;
            (self.assigned, self.revoking) = (assigned, revoking);
            return;
        }
        let mut unreleased = false;
        for (id, partitions) in &step.target.active {
            for partition in partitions {
                if assigned.active.get(id).is_some_and(|has| has.contains_key(partition)) {
                    continue;
                }
                if is_taken(Role::Active, id, *partition) {
                    unreleased = true;
                } else {
                    assigned.active.entry(id.clone()).or_default().insert(*partition, step.target_epoch);
                }
            }
        }
        for (id, partitions) in &step.target.standby {
            for partition in partitions {
                if contains(&assigned.standby, id, *partition) {
                    continue;
                }
                if is_taken(Role::Standby, id, *partition) {
                    unreleased = true;
                } else {
                    assigned.standby.entry(id.clone()).or_default().insert(*partition);
                }
            }
        }
        self.state = if unreleased { MemberState::Unreleased } else { MemberState::Stable };
        self.epoch = step.target_epoch;
        self.assigned = assigned;
        self.revoking = Held::default();
    }
}

impl Held {
    /// Whether a member that says this still has some of the tasks; one that does not say may have all of them.
    fn has_any(&self, owned: Option<&Tasks>) -> bool {
        let Some(owned) = owned else { return !self.is_empty() };
        let active = owned.active.iter().any(|(id, owned)| {
            self.active.get(id).is_some_and(|has| owned.iter().any(|partition| has.contains_key(partition)))
        });
        active
            || owned.standby.iter().any(|(id, owned)| {
                self.standby.get(id).is_some_and(|has| owned.iter().any(|partition| has.contains(partition)))
            })
    }

    /// Whether all that a member says it has is among these.
    pub(super) fn covers(&self, owned: &Tasks) -> bool {
        let active = owned.active.iter().all(|(id, owned)| {
            self.active.get(id).is_some_and(|has| owned.iter().all(|partition| has.contains_key(partition)))
        });
        active && owned.standby.iter().all(|(id, owned)| self.standby.get(id).is_some_and(|has| has.is_superset(owned)))
    }
}

fn contains(tasks: &TaskSet, id: &str, partition: i32) -> bool {
    tasks.get(id).is_some_and(|partitions| partitions.contains(&partition))
}
