//! The stored form of a classic group, after the two bytes that every group starts with. Numbers are big-endian; a string or a byte string is four bytes of length and that
//! many bytes; something optional is a byte 0, or a byte 1 and the thing.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | generation |
//! | optional string | protocol type |
//! | optional string | chosen protocol; present if there are members |
//! | optional string | member id of the leader; present if there are members |
//! | optional 8 | since when the group is in its state, milliseconds since the Unix epoch; a group that has members and not this has to rebalance |
//! | 4 | how many members |
//!
//! and for each member:
//!
//! | bytes | what |
//! |---|---|
//! | string | member id |
//! | optional string | group instance id |
//! | string | client id |
//! | string | client host |
//! | 4 | session timeout, milliseconds |
//! | 4 | rebalance timeout, milliseconds |
//! | 4 | how many protocols, in the member's order of preference |
//! | string, byte string | each protocol: name and metadata |
//! | byte string | assignment |
//!
//! A group with members comes back Stable, one without comes back Empty: nothing else is ever stored.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;

use super::super::api::Protocol;
use super::super::context::Context;
use super::super::group;
use super::super::stored::{BadBytes, Reader, Writer};
use super::{ClassicGroup, Member, State};

impl ClassicGroup {
    /// The stored form, with the members' assignments or with those given in their place.
    pub(super) fn to_bytes(&self, assignments: Option<&BTreeMap<String, Bytes>>) -> Bytes {
        let mut writer = group::begin(group::CLASSIC);
        writer.i32(self.generation);
        writer.option(self.protocol_type.as_deref(), Writer::string);
        writer.option(self.protocol.as_deref(), Writer::string);
        writer.option(self.leader.as_deref(), Writer::string);
        writer.option(self.state_since_ms, Writer::i64);
        writer.length(self.members.len());
        for (id, member) in &self.members {
            writer.string(id);
            writer.option(member.instance_id.as_deref(), Writer::string);
            writer.string(&member.client_id);
            writer.string(&member.client_host);
            writer.i32(member.session_timeout_ms);
            writer.i32(member.rebalance_timeout_ms);
            writer.length(member.protocols.len());
            for protocol in &member.protocols {
                writer.string(&protocol.name);
                writer.bytes(&protocol.metadata);
            }
            match assignments {
                None => writer.bytes(&member.assignment),
                Some(given) => writer.bytes(given.get(&**id).map(Bytes::as_ref).unwrap_or_default()),
            }
        }
        writer.finish()
    }

    /// Reads what comes after the first two bytes of the stored form.
    pub fn read(id: Arc<str>, mut reader: Reader<'_>) -> Result<Self, BadBytes> {
        let mut group = ClassicGroup::new(id, 0);
        group.stored = true;
        group.generation = reader.i32("the generation")?;
        let protocol_type = reader.option("the protocol type", Reader::string)?;
        let protocol = reader.option("the chosen protocol", Reader::string)?;
        let leader = reader.option("the leader", Reader::string)?;
        group.state_since_ms = reader.option("the time of the state", Reader::i64)?;
        for _ in 0..reader.length("the number of members")? {
            let id: Arc<str> = reader.string("a member id")?.into();
            let member = read_member(&mut reader)?;
            let taken = member.instance_id.as_ref().is_some_and(|instance| group.instances.contains_key(instance));
            if group.members.contains_key(&id) || taken {
                return Err(contradiction(format!("member {id} is there twice")));
            }
            group.insert(id, member, protocol_type.as_deref().unwrap_or_default());
        }
        reader.end()?;
        group.protocol_type = protocol_type;
        group.protocol = protocol;
        group.leader = leader.map(Arc::from);
        group.check()?;
        group.state = if group.members.is_empty() { State::Empty } else { State::Stable };
        group.subscribed = group.subscriptions();
        Ok(group)
    }

    /// What the rest of the code relies on.
    fn check(&self) -> Result<(), BadBytes> {
        if self.members.is_empty() {
            return match &self.leader {
                None => Ok(()),
                Some(leader) => Err(contradiction(format!("the leader {leader} of a group without members"))),
            };
        }
        if self.protocol_type.is_none() {
            return Err(contradiction("members without a protocol type".to_owned()));
        }
        if !self.leader.as_ref().is_some_and(|leader| self.members.contains_key(leader)) {
            return Err(contradiction("a leader that is not a member".to_owned()));
        }
        let spoken = self.protocol.as_ref().and_then(|protocol| self.supported.get(protocol));
        if spoken != Some(&self.members.len()) {
            return Err(contradiction("a chosen protocol that not every member speaks".to_owned()));
        }
        Ok(())
    }

    /// Starts everybody's session anew after a restart, or after a change of protocol. A group that is larger than it may be now gets a round to shrink.
    pub fn restored(&mut self, context: &mut Context) {
        for id in self.members.keys() {
            self.refresh_session(context, id);
        }
        if self.needs_round() || self.members.len() > context.config.max_size {
            self.prepare_rebalance(context);
        }
    }
}

fn read_member(reader: &mut Reader<'_>) -> Result<Member, BadBytes> {
    let instance_id = reader.option("a group instance id", Reader::string)?;
    let client_id = reader.string("a client id")?;
    let client_host = reader.string("a client host")?;
    let session_timeout_ms = reader.i32("a session timeout")?;
    let rebalance_timeout_ms = reader.i32("a rebalance timeout")?;
    let mut protocols: Vec<Protocol> = Vec::new();
    let mut names = HashSet::new();
    for _ in 0..reader.length("the number of protocols")? {
        let name = reader.string("a protocol name")?;
        if !names.insert(name.clone()) {
            return Err(contradiction(format!("protocol {name} is there twice")));
        }
        protocols.push(Protocol { name, metadata: reader.bytes("a protocol's metadata")? });
    }
    Ok(Member {
        instance_id: instance_id.map(Arc::from),
        client_id,
        client_host,
        session_timeout_ms,
        rebalance_timeout_ms,
        protocols,
        assignment: reader.bytes("an assignment")?,
        is_new: false,
        join: None,
        sync: None,
    })
}

fn contradiction(what: String) -> BadBytes {
    BadBytes::Contradiction { what }
}
