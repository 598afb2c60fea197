//! Groups that go from one protocol to the other while they have members.
//!
//! A classic group of consumers becomes a consumer group when somebody joins with the new protocol: its members keep what
//! its leader has assigned to them. A consumer group becomes a classic one when the last member of the new protocol is gone and
//! only classic members are left. `group.consumer.migration.policy` may forbid either.

use std::sync::Arc;

use bytes::Bytes;

use super::classic::CONSUMER;
use super::embedded;
use super::{ClassicMember, ConsumerGroup, Member, MemberState, Owned, Partitions};
use crate::coordinator::api::{Change, ConsumerRefused, Reply, Token};
use crate::coordinator::classic::{ClassicGroup, Migrant};
use crate::coordinator::context::Context;
use crate::coordinator::error::Error;
use crate::coordinator::writes::Purpose;

impl ConsumerGroup {
    /// What a classic group becomes when somebody joins it with the new protocol. Its members hear of it when they are
    /// told to join again.
    pub fn upgrade(context: &mut Context, classic: &mut ClassicGroup) -> Result<Self, ConsumerRefused> {
        let refuse = |error, why: &str| {
            let message = format!("Cannot upgrade classic group {} to consumer group because {why}", classic.id());
            ConsumerRefused { error, message }
        };
        let not_found = |why| Err(refuse(Error::GroupIdNotFound, why));
        if !context.config.consumer_migration.upgrade {
            return not_found("online upgrade is disabled.");
        }
        if classic.protocol_type() != CONSUMER {
            return not_found("the group does not use the consumer embedded protocol.");
        }
        let size = classic.size();
        if size > context.config.consumer_max_size {
            return not_found("the group size exceeds the consumer group maximum size.");
        }
        if size == context.config.consumer_max_size {
            let message = format!("The consumer group has reached its maximum capacity of {size} members.");
            return Err(ConsumerRefused { error: Error::GroupMaxSizeReached, message });
        }
        let mut group = ConsumerGroup::new(classic.id().clone(), classic.stored_form());
        group.epoch = classic.generation();
        group.assignment_epoch = classic.generation();
        for migrant in classic.migrants() {
            let read = embedded::subscription(&migrant.metadata).zip(embedded::assignment(&migrant.assignment));
            let Some((subscription, assignment)) = read else {
                return not_found("the embedded consumer protocol is malformed.");
            };
            if assignment.has_user_data {
                return not_found(
                    "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default \
                     assignor before re-attempting the upgrade.",
                );
            }
            group.take_in(migrant, subscription, &embedded::by_id(&assignment.partitions, context.topics));
        }
        classic.refuse_waiting(context, Error::RebalanceInProgress);
        classic.cancel_timers(context);
        for id in group.members.keys() {
            group.refresh_session(context, id);
        }
        group.fingerprint = group.topics_fingerprint(context.topics);
        group.ledger.changed(context);
        Ok(group)
    }

    fn take_in(&mut self, migrant: Migrant, subscription: embedded::Subscription, assigned: &Partitions) {
        let mut owned = Owned::new();
        for (topic, partitions) in assigned {
            for partition in partitions {
                // An assignor of the clients may have given it to two of them.
                if !self.owners.contains_key(&(*topic, *partition)) {
                    owned.entry(*topic).or_default().insert(*partition, self.epoch);
                }
            }
        }
        let target = owned.iter().map(|(topic, all)| (*topic, all.keys().copied().collect())).collect();
        let member = Member {
            instance_id: migrant.instance_id,
            rack_id: subscription.rack,
            client_id: migrant.client_id,
            client_host: migrant.client_host,
            rebalance_timeout_ms: migrant.rebalance_timeout_ms,
            topic_names: subscription.topics,
            classic: Some(ClassicMember {
                session_timeout_ms: migrant.session_timeout_ms,
                protocols: migrant.protocols,
            }),
            epoch: self.epoch,
            previous_epoch: self.epoch,
            state: MemberState::Stable,
            assigned: owned,
            ..Member::new()
        };
        self.target.insert(migrant.id.clone(), target);
        self.put(&migrant.id, member);
    }

    /// Whether the group is a classic one when these members are gone.
    pub(super) fn goes_classic_without(&self, context: &Context, gone: &[Arc<str>]) -> bool {
        let mut left = self.members.iter().filter(|(id, _)| !gone.contains(id));
        let last_goes = gone.iter().any(|id| self.members.get(id).is_some_and(|member| member.classic.is_none()));
        let size = self.members.len() - gone.len();
        last_goes && size > 0 && left.all(|(_, member)| member.classic.is_some()) && may_downgrade(context, size)
    }

    /// Whether the group is a classic one when this static member comes back as one of the classic protocol.
    pub(super) fn goes_classic_with(&self, context: &Context, replaced: &Arc<str>) -> bool {
        self.members.iter().all(|(id, member)| member.classic.is_none() == (id == replaced))
            && may_downgrade(context, self.members.len())
    }

    /// The group as a classic one without the members that are gone; `joined` is a member whose join makes it so. It
    /// starts a round if it is to, or if somebody does not have what it is to have.
    pub(super) fn downgrade(
        &mut self,
        context: &mut Context,
        gone: &[Arc<str>],
        joined: Option<&Arc<str>>,
        rebalance: bool,
        answer: Option<(Token, Reply)>,
    ) -> ClassicGroup {
        self.cancel_timers(context);
        let left = || self.members.iter().filter(|(id, _)| !gone.contains(id));
        let rebalance = rebalance || left().any(|(_, member)| !member.is_reconciled(self.epoch));
        let migrants = left().filter_map(|(id, member)| {
            let classic = member.classic.as_ref()?;
            let assigned = embedded::listed(&member.assigned);
            Some(Migrant {
                id: id.clone(),
                instance_id: member.instance_id.clone(),
                client_id: member.client_id.clone(),
                client_host: member.client_host.clone(),
                session_timeout_ms: classic.session_timeout_ms,
                rebalance_timeout_ms: member.rebalance_timeout_ms,
                protocols: classic.protocols.clone(),
                metadata: classic.protocols[0].metadata.clone(),
                assignment: embedded::write_assignment(&classic.protocols[0].metadata, assigned, context.topics),
            })
        });
        let generation = joined.map_or(self.epoch, |id| self.members[id].epoch.max(self.epoch));
        let since = (!rebalance).then_some(context.now.wall_ms);
        let mut classic = ClassicGroup::of_migrants(self.id.clone(), since, generation, migrants.collect());
        let mut answers = self.ledger.take_waiting();
        answers.extend(answer);
        let stored: Bytes = classic.stored_form().unwrap_or_default();
        context.persist(&self.id, vec![Change::PutGroup(stored)], Purpose::Answer { answers });
        classic.restored(context);
        classic
    }
}

fn may_downgrade(context: &Context, size: usize) -> bool {
    context.config.consumer_migration.downgrade && size <= context.config.max_size
}
