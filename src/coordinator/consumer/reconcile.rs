//! How one member gets from what it has to what it is to have: first it gives up what is not its any more, then it gets
//! what nobody else has.
//!
//! ```text
//!              a new target takes something away             it has given that up
//!   Stable ───────────────────────────────────► Unrevoked ────────────────────────┐
//!     ▲  ▲                                                                        │
//!     │  └──────────────── all of the target is its ──────────────────────────────┤
//!     │                                                                           ▼
//!     └────────────────── the others have let go ──────────────────────────── Unreleased
//! ```

use std::collections::BTreeSet;

use super::{Member, MemberState, Owned, Partitions};
use crate::protocol::Uuid;

/// What a step depends on.
pub(super) struct Step<'a> {
    pub target_epoch: i32,
    pub target: &'a Partitions,
    /// The topics that the member subscribes to and that exist.
    pub subscribed: &'a BTreeSet<Uuid>,
    pub subscription_changed: bool,
    /// What the member says that it has; nothing if it did not say.
    pub owned: Option<&'a [(Uuid, Vec<i32>)]>,
}

impl Member {
    pub(super) fn is_reconciled(&self, target_epoch: i32) -> bool {
        self.state == MemberState::Stable && self.epoch == target_epoch
    }

    /// Takes the member one step further if that is possible. `is_taken` says whether a partition belongs to somebody,
    /// this member among them.
    pub(super) fn reconcile(&mut self, step: &Step<'_>, is_taken: impl Fn(Uuid, i32) -> bool) {
        match self.state {
            MemberState::Stable if self.epoch == step.target_epoch => self.give_up_unsubscribed(step),
            MemberState::Unrevoked if owns_any(step.owned, &self.revoking) => {
                if step.subscription_changed {
                    self.give_up_unsubscribed(step);
                }
            }
            MemberState::Stable | MemberState::Unrevoked | MemberState::Unreleased => {
                self.head_for_target(step, is_taken);
            }
        }
    }

    /// What it does not subscribe to any more is taken away at once, before there is a new target.
    fn give_up_unsubscribed(&mut self, step: &Step<'_>) {
        let gone: Vec<Uuid> = self.assigned.keys().filter(|topic| !step.subscribed.contains(topic)).copied().collect();
        if gone.is_empty() {
            return;
        }
        let mut revoking = self.revoking.clone();
        for topic in gone {
            let partitions = self.assigned.remove(&topic).expect("the topic comes from there");
            revoking.entry(topic).or_default().extend(partitions);
        }
        self.previous_epoch = self.epoch;
        if owns_any(step.owned, &revoking) {
            self.state = MemberState::Unrevoked;
            self.revoking = revoking;
        }
    }

    fn head_for_target(&mut self, step: &Step<'_>, is_taken: impl Fn(Uuid, i32) -> bool) {
        let mut assigned = Owned::new();
        let mut revoking = Owned::new();
        for (topic, partitions) in &self.assigned {
            let target = step.target.get(topic).filter(|_| step.subscribed.contains(topic));
            for (partition, since) in partitions {
                let stays = target.is_some_and(|target| target.contains(partition));
                let side = if stays { &mut assigned } else { &mut revoking };
                side.entry(*topic).or_default().insert(*partition, *since);
            }
        }
        if owns_any(step.owned, &revoking) {
            self.state = MemberState::Unrevoked;
            self.previous_epoch = self.epoch;
            (self.assigned, self.revoking) = (assigned, revoking);
            return;
        }
        let mut unreleased = false;
        for (topic, partitions) in step.target.iter().filter(|(topic, _)| step.subscribed.contains(topic)) {
            for partition in partitions {
                let has = |owned: &Owned| owned.get(topic).is_some_and(|partitions| partitions.contains_key(partition));
                if has(&assigned) {
                    continue;
                }
                // What the member itself is giving up, it may have back.
                let mine = has(&self.assigned) || has(&self.revoking);
                if !mine && is_taken(*topic, *partition) {
                    unreleased = true;
                } else {
                    assigned.entry(*topic).or_default().insert(*partition, step.target_epoch);
                }
            }
        }
        self.state = if unreleased { MemberState::Unreleased } else { MemberState::Stable };
        self.previous_epoch = self.epoch;
        self.epoch = step.target_epoch;
        self.assigned = assigned;
        self.revoking = Owned::new();
    }
}

/// Whether the member still has some of these partitions; one that does not say what it has may have all of them.
fn owns_any(owned: Option<&[(Uuid, Vec<i32>)]>, partitions: &Owned) -> bool {
    match owned {
        None => !partitions.is_empty(),
        Some(owned) => owned.iter().any(|(topic, owned)| {
            partitions.get(topic).is_some_and(|partitions| owned.iter().any(|p| partitions.contains_key(p)))
        }),
    }
}

/// Whether all that a member says it has is assigned to it.
pub(super) fn is_subset(owned: Option<&[(Uuid, Vec<i32>)]>, assigned: &Owned) -> bool {
    owned.is_some_and(|owned| {
        owned.iter().all(|(topic, owned)| {
            assigned.get(topic).is_some_and(|partitions| owned.iter().all(|p| partitions.contains_key(p)))
        })
    })
}
