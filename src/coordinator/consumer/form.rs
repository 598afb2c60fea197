//! The stored form of a consumer group, after the two bytes that every group starts with. Numbers are big-endian; a string
//! or a byte string is four bytes of length and that many bytes; something optional is a byte 0, or a byte 1 and the
//! thing; partitions by topic are a count, and for each topic 16 bytes of its id, a count, and for each partition four
//! bytes and, where it says so, four bytes of the epoch since when the member has it.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | epoch |
//! | 4 | epoch of the target assignment |
//! | 8 | fingerprint of the topics that the group subscribes to |
//! | 4 | how many members |
//!
//! and for each member:
//!
//! | bytes | what |
//! |---|---|
//! | string | member id |
//! | optional string | instance id |
//! | optional string | rack |
//! | string | client id |
//! | string | client host |
//! | 4 | rebalance timeout, milliseconds |
//! | optional string | assignor that it asks for |
//! | 4, each string | topics that it subscribes to by name |
//! | optional string | regular expression that it subscribes by |
//! | 1 | 0, or 1 for a member of the classic protocol; then 4 bytes of session timeout, a count, and name and metadata (a byte string) of each of its protocols |
//! | 4 | epoch; -2 is a static member that is away |
//! | 4 | the epoch before |
//! | 1 | 0 stable, 1 has partitions to give up, 2 waits for partitions of others |
//! | partitions with epochs | assigned |
//! | partitions with epochs | to be given up |
//! | partitions | target |

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use super::{ClassicMember, ConsumerGroup, Member, MemberState, Owned};
use crate::coordinator::api::Protocol;
use crate::coordinator::group;
use crate::coordinator::stored::{BadBytes, Reader, Writer};
use crate::coordinator::topics::Partitions;
use crate::protocol::Uuid;

impl ConsumerGroup {
    pub(super) fn to_bytes(&self) -> Bytes {
        let mut writer = group::begin(group::CONSUMER);
        writer.i32(self.epoch);
        writer.i32(self.assignment_epoch);
        writer.i64(self.fingerprint as i64);
        writer.length(self.members.len());
        let nothing = Partitions::new();
        for (id, member) in &self.members {
            writer.string(id);
            write_member(&mut writer, member);
            let target = self.target.get(id).unwrap_or(&nothing);
            writer.partitions(target);
        }
        writer.finish()
    }

    /// Reads what comes after the first two bytes of the stored form, all of which is `whole`.
    pub fn read(id: Arc<str>, whole: &[u8], mut reader: Reader<'_>) -> Result<Self, BadBytes> {
        let mut group = ConsumerGroup::new(id, Some(Bytes::copy_from_slice(whole)));
        group.epoch = reader.i32("the epoch")?;
        group.assignment_epoch = reader.i32("the epoch of the target")?;
        group.fingerprint = reader.i64("the fingerprint of the topics")? as u64;
        for _ in 0..reader.length("the number of members")? {
            let id: Arc<str> = reader.string("a member id")?.into();
            let member = read_member(&mut reader)?;
            let target = reader.partitions()?;
            let mut owned = HashSet::new();
            let twice = member.owned().any(|place| group.owners.contains_key(&place) || !owned.insert(place));
            if twice || group.members.contains_key(&id) {
                return Err(contradiction(format!("member {id} or something that it has is there twice")));
            }
            if member.instance_id.as_ref().is_some_and(|instance| group.instances.contains_key(instance)) {
                return Err(contradiction(format!("the instance of member {id} is there twice")));
            }
            if member.epoch > group.epoch {
                return Err(contradiction(format!("member {id} is ahead of its group")));
            }
            group.put(&id, member);
            group.target.insert(id, target);
        }
        reader.end()?;
        if group.assignment_epoch > group.epoch {
            return Err(contradiction("the target is ahead of the group".to_owned()));
        }
        Ok(group)
    }
}

fn write_member(writer: &mut Writer, member: &Member) {
    writer.option(member.instance_id.as_deref(), Writer::string);
    writer.option(member.rack_id.as_deref(), Writer::string);
    writer.string(&member.client_id);
    writer.string(&member.client_host);
    writer.i32(member.rebalance_timeout_ms);
    writer.option(member.server_assignor.as_deref(), Writer::string);
    writer.length(member.topic_names.len());
    for name in &member.topic_names {
        writer.string(name);
    }
    writer.option(member.topic_regex.as_deref(), Writer::string);
    writer.option(member.classic.as_ref(), |writer, classic| {
        writer.i32(classic.session_timeout_ms);
        writer.length(classic.protocols.len());
        for protocol in &classic.protocols {
            writer.string(&protocol.name);
            writer.bytes(&protocol.metadata);
        }
    });
    writer.i32(member.epoch);
    writer.i32(member.previous_epoch);
    writer.u8(match member.state {
        MemberState::Stable => 0,
        MemberState::Unrevoked => 1,
        MemberState::Unreleased => 2,
    });
    for owned in [&member.assigned, &member.revoking] {
        writer.length(owned.len());
        for (topic, partitions) in owned {
            writer.raw(&topic.0);
            writer.length(partitions.len());
            for (partition, since) in partitions {
                writer.i32(*partition);
                writer.i32(*since);
            }
        }
    }
}

fn read_member(reader: &mut Reader<'_>) -> Result<Member, BadBytes> {
    let mut member = Member::new();
    member.instance_id = reader.option("an instance id", Reader::string)?.map(Arc::from);
    member.rack_id = reader.option("a rack", Reader::string)?;
    member.client_id = reader.string("a client id")?;
    member.client_host = reader.string("a client host")?;
    member.rebalance_timeout_ms = reader.i32("a rebalance timeout")?;
    member.server_assignor = reader.option("an assignor", Reader::string)?;
    for _ in 0..reader.length("the number of topics")? {
        member.topic_names.insert(reader.string("a topic")?);
    }
    member.topic_regex = reader.option("a regular expression", Reader::string)?;
    member.classic = reader.option("whether a member is classic", |reader, _| read_classic(reader))?;
    member.epoch = reader.i32("a member's epoch")?;
    member.previous_epoch = reader.i32("a member's epoch before")?;
    member.state = match reader.u8("a member's state")? {
        0 => MemberState::Stable,
        1 => MemberState::Unrevoked,
        2 => MemberState::Unreleased,
        state => return Err(reader.unknown("a member's state", state)),
    };
    member.assigned = read_owned(reader)?;
    member.revoking = read_owned(reader)?;
    Ok(member)
}

fn read_classic(reader: &mut Reader<'_>) -> Result<ClassicMember, BadBytes> {
    let session_timeout_ms = reader.i32("a session timeout")?;
    let mut protocols = Vec::new();
    for _ in 0..reader.length("the number of protocols")? {
        let name = reader.string("a protocol name")?;
        protocols.push(Protocol { name, metadata: reader.bytes("a protocol's metadata")? });
    }
    if protocols.is_empty() {
        return Err(contradiction("a classic member without protocols".to_owned()));
    }
    Ok(ClassicMember { session_timeout_ms, protocols })
}

fn read_owned(reader: &mut Reader<'_>) -> Result<Owned, BadBytes> {
    let mut owned = Owned::new();
    for _ in 0..reader.length("the number of topics")? {
        let topic = Uuid(reader.array("a topic id")?);
        for _ in 0..reader.length("the number of partitions")? {
            let partition = reader.i32("a partition")?;
            owned.entry(topic).or_default().insert(partition, reader.i32("an assignment epoch")?);
        }
    }
    Ok(owned)
}

fn contradiction(what: String) -> BadBytes {
    BadBytes::Contradiction { what }
}
