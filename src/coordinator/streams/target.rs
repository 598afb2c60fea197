//! When the group's epoch rises, and what its members are to have.

use std::sync::Arc;
use std::time::Duration;

use super::api::Tasks;
use super::assignor::{self, Work, Worker};
use super::configure::{Found, configure};
use super::reconcile::Step;
use super::topology::Topology;
use super::{MemberState, StreamsGroup};
use crate::coordinator::context::Context;

/// Why nobody has been given anything new yet.
const FIRST_DELAY: &str = "Assignment delayed due to the configured initial rebalance delay.";
const INTERVAL: &str = "Assignment delayed due to the configured assignment interval.";

/// What a look at the topics gives, to be put in force.
pub(super) struct Look {
    /// `None`: what the group knows is still so.
    pub found: Option<Found>,
    fingerprint: u64,
    topics_version: u64,
}

impl StreamsGroup {
    /// Looks at the topics that a topology needs, if they may have changed. Says in words what is wrong with one that can never
    /// work.
    pub(super) fn look(&self, context: &Context, topology: &Topology) -> Result<Look, String> {
        let topics_version = context.topics_version;
        let mut look = Look { found: None, fingerprint: self.fingerprint, topics_version };
        if self.found.is_some() && self.seen_topics == Some(topics_version) {
            return Ok(look);
        }
        look.fingerprint = context.topics.fingerprint(topology.required());
        if self.found.is_none() || look.fingerprint != self.fingerprint {
            look.found = Some(configure(topology, context.topics)?);
        }
        Ok(look)
    }

    /// Puts in force what was found. The epoch rises if that changes anything, or `changed` says that something else has.
    pub(super) fn take_look(&mut self, context: &mut Context, look: Look, mut changed: bool) {
        changed |= look.fingerprint != self.fingerprint;
        self.fingerprint = look.fingerprint;
        self.seen_topics = Some(look.topics_version);
        if look.found.is_some() {
            self.found = look.found;
        }
        let topology_epoch = self.topology.as_ref().map_or(-1, |topology| topology.epoch);
        let is_ready = self.found.as_ref().is_some_and(Found::is_ready);
        let validated = if is_ready { topology_epoch } else { -1 };
        changed |= validated != self.validated_epoch;
        self.validated_epoch = validated;
        let standbys = Some(self.settings(context).num_standby_replicas);
        changed |= standbys != self.standbys;
        self.standbys = standbys;
        if changed {
            self.epoch += 1;
            self.ledger.changed(context);
        }
    }

    /// A group that nobody is in yet waits for more members before it gives anything to the first.
    pub(super) fn wait_for_more(&self, context: &mut Context) {
        let delay = self.settings(context).initial_rebalance_delay_ms;
        if self.is_empty() && delay > 0 && !context.timers.is_set(&self.delay_timer()) {
            context.set_timer(self.delay_timer(), delay);
        }
    }

    fn is_waiting_for_more(&self, context: &Context) -> bool {
        context.timers.is_set(&self.delay_timer())
    }

    /// Makes a new target if it is time. Answers why not, if there is to be one.
    pub(super) fn assign_if_due(&mut self, context: &mut Context) -> Option<&'static str> {
        if self.is_waiting_for_more(context) {
            return Some(FIRST_DELAY);
        }
        if self.epoch <= self.assignment_epoch {
            return None;
        }
        let interval = self.settings(context).assignment_interval_ms;
        let interval = Duration::from_millis(u64::try_from(interval).unwrap_or(0));
        if self.assigned_at.is_some_and(|at| context.now.monotonic < at.saturating_add(interval)) {
            return Some(INTERVAL);
        }
        let nothing = Tasks::default();
        let workers: Vec<Worker> = self
            .members
            .iter()
            .map(|(id, member)| Worker {
                id,
                process: &member.process_id,
                current: self.target.get(id).unwrap_or(&nothing),
            })
            .collect();
        let standbys = usize::try_from(self.standbys.unwrap_or(0)).unwrap_or(0);
        self.target = assignor::assign(&workers, &self.work(), standbys);
        self.assignment_epoch = self.epoch;
        self.assigned_at = Some(context.now.monotonic);
        self.ledger.changed(context);
        None
    }

    /// The tasks that there are; none until all topics are there.
    fn work(&self) -> Vec<Work> {
        let ready = self.found.as_ref().filter(|found| found.is_ready());
        let configured = ready.and_then(|found| found.subtopologies.as_ref());
        let work = |(id, configured): (&String, &super::configure::Configured)| Work {
            subtopology: id.as_str().into(),
            tasks: configured.tasks,
            stateful: !configured.changelogs.is_empty(),
        };
        configured.into_iter().flatten().map(work).collect()
    }

    /// Takes a member one step towards the target.
    pub(super) fn reconcile(&mut self, context: &mut Context, id: &Arc<str>, owned: Option<&Tasks>) {
        let Some(before) = self.members.get(id) else { return };
        if before.is_reconciled(self.assignment_epoch) {
            return;
        }
        let nothing = Tasks::default();
        // Who has come to a group that waits for more is to have nothing yet.
        let target = self.target.get(id).filter(|_| !self.is_waiting_for_more(context)).unwrap_or(&nothing);
        let step = Step { target_epoch: self.assignment_epoch, target, owned };
        let mut member = before.clone();
        member.reconcile(&step, |role, subtopology, partition| {
            self.is_taken(id, &before.process_id, role, subtopology, partition)
        });
        if member == *before {
            return;
        }
        match member.state {
            MemberState::Unrevoked => context.set_timer(self.rebalance_timer(id), member.rebalance_timeout_ms),
            MemberState::Stable | MemberState::Unreleased => context.timers.cancel(&self.rebalance_timer(id)),
        }
        self.put(id, member);
        self.ledger.changed(context);
    }
}
