//! Members that come out of a classic group, or into one, when it goes from one protocol to another.

use std::sync::Arc;

use bytes::Bytes;

use super::super::api::Protocol;
use super::{CONSUMER, ClassicGroup, Member, State};

/// A member on its way.
#[derive(Clone, Debug)]
pub(in crate::coordinator) struct Migrant {
    pub id: Arc<str>,
    pub instance_id: Option<Arc<str>>,
    pub client_id: String,
    pub client_host: String,
    pub session_timeout_ms: i32,
    pub rebalance_timeout_ms: i32,
    /// Not empty.
    pub protocols: Vec<Protocol>,
    /// Of the chosen protocol, or of the member's first.
    pub metadata: Bytes,
    pub assignment: Bytes,
}

impl ClassicGroup {
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    pub fn is_dead(&self) -> bool {
        self.state == State::Dead
    }

    pub fn size(&self) -> usize {
        self.members.len()
    }

    pub fn generation(&self) -> i32 {
        self.generation
    }

    /// What would be stored of the group now; one in the middle of a round has to start it over when it comes back.
    /// `None`: nothing is stored of it yet.
    pub fn stored_form(&self) -> Option<Bytes> {
        let settled = matches!(self.state, State::Empty | State::Stable);
        let since_ms = self.state_since_ms.filter(|_| settled);
        self.stored.then(|| ClassicGroup { state_since_ms: since_ms, ..self.clone() }.to_bytes(None))
    }

    /// The members, to be taken elsewhere.
    pub fn migrants(&self) -> Vec<Migrant> {
        let migrant = |(id, member): (&Arc<str>, &Member)| {
            let first = member.protocols.first().map(|protocol| protocol.name.as_str());
            Migrant {
                id: id.clone(),
                instance_id: member.instance_id.clone(),
                client_id: member.client_id.clone(),
                client_host: member.client_host.clone(),
                session_timeout_ms: member.session_timeout_ms,
                rebalance_timeout_ms: member.rebalance_timeout_ms,
                protocols: member.protocols.clone(),
                metadata: member.metadata(self.protocol.as_deref().or(first)),
                assignment: member.assignment.clone(),
            }
        };
        self.members.iter().map(migrant).collect()
    }

    /// A Stable group of consumers; they have a protocol in common, and there is at least one. Without the time since when
    /// it is so, a round is to start, also if a restart comes before that.
    pub fn of_migrants(id: Arc<str>, since_ms: Option<i64>, generation: i32, migrants: Vec<Migrant>) -> Self {
        let mut group = ClassicGroup { state_since_ms: since_ms, ..ClassicGroup::after_another(id, 0, true) };
        for migrant in migrants {
            let member = Member {
                instance_id: migrant.instance_id,
                client_id: migrant.client_id,
                client_host: migrant.client_host,
                session_timeout_ms: migrant.session_timeout_ms,
                rebalance_timeout_ms: migrant.rebalance_timeout_ms,
                protocols: migrant.protocols,
                assignment: migrant.assignment,
                is_new: false,
                join: None,
                sync: None,
            };
            group.insert(migrant.id, member, CONSUMER);
        }
        group.generation = generation;
        group.state = State::Stable;
        group.protocol = group.select_protocol();
        group.subscribed = group.subscriptions();
        group
    }

    /// Whether the members came here in the middle of something, so that a round has to put it right.
    pub(super) fn needs_round(&self) -> bool {
        !self.members.is_empty() && self.state_since_ms.is_none()
    }
}
