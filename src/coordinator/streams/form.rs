//! The stored form of a streams group, after the two bytes that every group starts with. Numbers are big-endian; a string
//! is four bytes of length and that many bytes; something optional is a byte 0, or a byte 1 and the thing; a list is a count
//! in four bytes and its elements.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | epoch |
//! | 4 | epoch of the target assignment |
//! | 4 | epoch of the topology whose topics are all there, or -1 |
//! | 8 | fingerprint of the topics that the topology needs |
//! | optional 4 | standbys of each task |
//! | 4 | epoch of the endpoints |
//! | optional topology | |
//! | list | members, each as below |
//!
//! A topology is 4 bytes of epoch and a list of subtopologies; each is its id, and lists of: source topics (strings), topics
//! that it writes to (strings), repartition topics that it reads, changelogs, and copartition groups (each a list of
//! strings). An internal topic is its name, 4 bytes of partitions (0: open), 4 bytes of replication factor (0: the default),
//! and a list of configs (two strings each).
//!
//! | bytes | what of a member |
//! |---|---|
//! | string | member id |
//! | optional string | rack |
//! | string, string | client id, client host |
//! | 4 | rebalance timeout, milliseconds |
//! | 4 | epoch of the topology that it has joined with |
//! | string | process id |
//! | optional string and 4 | endpoint: host and port |
//! | list | client tags (two strings each) |
//! | 4, 4 | epoch, and the epoch before |
//! | 1 | 0 stable, 1 has tasks to give up, 2 waits for tasks of others |
//! | held tasks | assigned |
//! | held tasks | to be given up |
//! | tasks, tasks | target: active, standby |
//!
//! Tasks are a list of subtopologies, each with its id and a list of partitions (4 bytes each). Held tasks are active ones,
//! where each partition is followed by 4 bytes of the epoch since when the member has it, and standbys.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::api::{Endpoint, TaskSet, Tasks};
use super::topology::{InternalTopic, Subtopology, Topology};
use super::{Held, Member, MemberState, Role, StreamsGroup};
use crate::coordinator::group;
use crate::coordinator::stored::{BadBytes, Reader, Writer};

impl StreamsGroup {
    pub(super) fn to_bytes(&self) -> Bytes {
        let mut writer = group::begin(group::STREAMS);
        writer.i32(self.epoch);
        writer.i32(self.assignment_epoch);
        writer.i32(self.validated_epoch);
        writer.i64(self.fingerprint as i64);
        writer.option(self.standbys, Writer::i32);
        writer.i32(self.endpoint_epoch);
        writer.option(self.topology.as_ref(), write_topology);
        let nothing = Tasks::default();
        writer.list(&self.members, |writer, (id, member)| {
            writer.string(id);
            write_member(writer, member);
            let target = self.target.get(id).unwrap_or(&nothing);
            write_tasks(writer, &target.active);
            write_tasks(writer, &target.standby);
        });
        writer.finish()
    }

    /// Reads what comes after the first two bytes of the stored form, all of which is `whole`.
    pub fn read(id: Arc<str>, whole: &[u8], mut reader: Reader<'_>) -> Result<Self, BadBytes> {
        let mut group = StreamsGroup::new(id, Some(Bytes::copy_from_slice(whole)));
        group.epoch = reader.i32("the epoch")?;
        group.assignment_epoch = reader.i32("the epoch of the target")?;
        group.validated_epoch = reader.i32("the epoch of the topology that is ready")?;
        group.fingerprint = reader.i64("the fingerprint of the topics")? as u64;
        group.standbys = reader.option("the number of standbys", Reader::i32)?;
        group.endpoint_epoch = reader.i32("the epoch of the endpoints")?;
        group.topology = reader.option("the topology", |reader, _| read_topology(reader))?;
        for _ in 0..reader.length("the number of members")? {
            let id: Arc<str> = reader.string("a member id")?.into();
            let member = read_member(&mut reader)?;
            let target = Tasks { active: read_tasks(&mut reader)?, standby: read_tasks(&mut reader)? };
            let mut active = BTreeSet::new();
            let twice =
                member.held().filter(|(role, _, _)| *role == Role::Active).any(|(_, subtopology, partition)| {
                    let task = (subtopology, partition);
                    group.active.contains_key(&task) || !active.insert(task)
                });
            if twice || group.members.contains_key(&id) {
                return Err(contradiction(format!("member {id} or an active task that it has is there twice")));
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
        if group.topology.is_none() && !group.members.is_empty() {
            return Err(contradiction("members without a topology".to_owned()));
        }
        Ok(group)
    }
}

fn write_topology(writer: &mut Writer, topology: &Topology) {
    writer.i32(topology.epoch);
    writer.list(&topology.subtopologies, |writer, subtopology| {
        writer.string(&subtopology.id);
        writer.list(&subtopology.source_topics, |writer, topic| writer.string(topic));
        writer.list(&subtopology.sink_topics, |writer, topic| writer.string(topic));
        writer.list(&subtopology.repartition_sources, write_internal_topic);
        writer.list(&subtopology.changelogs, write_internal_topic);
        writer.list(&subtopology.copartition_groups, |writer, group| {
            writer.list(group, |writer, topic| writer.string(topic));
        });
    });
}

fn write_internal_topic(writer: &mut Writer, topic: &InternalTopic) {
    writer.string(&topic.name);
    writer.i32(topic.partitions);
    writer.i32(topic.replication_factor.into());
    write_pairs(writer, &topic.configs);
}

fn write_pairs(writer: &mut Writer, pairs: &BTreeMap<String, String>) {
    writer.list(pairs, |writer, (key, value)| {
        writer.string(key);
        writer.string(value);
    });
}

fn write_member(writer: &mut Writer, member: &Member) {
    writer.option(member.rack_id.as_deref(), Writer::string);
    writer.string(&member.client_id);
    writer.string(&member.client_host);
    writer.i32(member.rebalance_timeout_ms);
    writer.i32(member.topology_epoch);
    writer.string(&member.process_id);
    writer.option(member.endpoint.as_ref(), |writer, endpoint| {
        writer.string(&endpoint.host);
        writer.i32(endpoint.port.into());
    });
    write_pairs(writer, &member.client_tags);
    writer.i32(member.epoch);
    writer.i32(member.previous_epoch);
    writer.u8(match member.state {
        MemberState::Stable => 0,
        MemberState::Unrevoked => 1,
        MemberState::Unreleased => 2,
    });
    for held in [&member.assigned, &member.revoking] {
        writer.list(&held.active, |writer, (id, partitions)| {
            writer.string(id);
            writer.list(partitions, |writer, (partition, since)| {
                writer.i32(*partition);
                writer.i32(*since);
            });
        });
        write_tasks(writer, &held.standby);
    }
}

fn write_tasks(writer: &mut Writer, tasks: &TaskSet) {
    writer.list(tasks, |writer, (id, partitions)| {
        writer.string(id);
        writer.list(partitions, |writer, partition| writer.i32(*partition));
    });
}

fn read_topology(reader: &mut Reader<'_>) -> Result<Topology, BadBytes> {
    let epoch = reader.i32("the epoch of the topology")?;
    let subtopologies = reader.list("the number of subtopologies", |reader| {
        Ok(Subtopology {
            id: reader.string("a subtopology")?,
            source_topics: read_strings(reader)?,
            sink_topics: read_strings(reader)?,
            repartition_sources: reader.list("the number of topics", read_internal_topic)?,
            changelogs: reader.list("the number of topics", read_internal_topic)?,
            copartition_groups: reader
                .list("the number of copartition groups", |reader| Ok(read_strings(reader)?.into_iter().collect()))?,
        })
    })?;
    Ok(Topology { epoch, subtopologies })
}

fn read_strings(reader: &mut Reader<'_>) -> Result<Vec<String>, BadBytes> {
    reader.list("the number of topics", |reader| reader.string("a topic"))
}

fn read_internal_topic(reader: &mut Reader<'_>) -> Result<InternalTopic, BadBytes> {
    Ok(InternalTopic {
        name: reader.string("a topic")?,
        partitions: reader.i32("a number of partitions")?,
        replication_factor: i16::try_from(reader.i32("a replication factor")?)
            .map_err(|_| contradiction("a replication factor that no client can ask for".to_owned()))?,
        configs: read_pairs(reader)?,
    })
}

fn read_pairs(reader: &mut Reader<'_>) -> Result<BTreeMap<String, String>, BadBytes> {
    let pairs = reader.list("a number of pairs", |reader| Ok((reader.string("a key")?, reader.string("a value")?)))?;
    Ok(pairs.into_iter().collect())
}

fn read_member(reader: &mut Reader<'_>) -> Result<Member, BadBytes> {
    let mut member = Member::new();
    member.rack_id = reader.option("a rack", Reader::string)?;
    member.client_id = reader.string("a client id")?;
    member.client_host = reader.string("a client host")?;
    member.rebalance_timeout_ms = reader.i32("a rebalance timeout")?;
    member.topology_epoch = reader.i32("the epoch of a member's topology")?;
    member.process_id = reader.string("a process id")?;
    member.endpoint = reader.option("an endpoint", |reader, _| {
        let host = reader.string("the host of an endpoint")?;
        let port = u16::try_from(reader.i32("the port of an endpoint")?);
        let port = port.map_err(|_| contradiction("an endpoint with a port that there is not".to_owned()))?;
        Ok(Endpoint { host, port })
    })?;
    member.client_tags = read_pairs(reader)?;
    member.epoch = reader.i32("a member's epoch")?;
    member.previous_epoch = reader.i32("a member's epoch before")?;
    member.state = match reader.u8("a member's state")? {
        0 => MemberState::Stable,
        1 => MemberState::Unrevoked,
        2 => MemberState::Unreleased,
        state => return Err(reader.unknown("a member's state", state)),
    };
    member.assigned = read_held(reader)?;
    member.revoking = read_held(reader)?;
    Ok(member)
}

fn read_held(reader: &mut Reader<'_>) -> Result<Held, BadBytes> {
    let mut held = Held::default();
    for _ in 0..reader.length("the number of subtopologies")? {
        let id: Arc<str> = reader.string("a subtopology")?.into();
        let partitions = reader.list("the number of tasks", |reader| {
            Ok((reader.i32("a task")?, reader.i32("the epoch of an assignment")?))
        })?;
        held.active.insert(id, partitions.into_iter().collect());
    }
    held.standby = read_tasks(reader)?;
    Ok(held)
}

fn read_tasks(reader: &mut Reader<'_>) -> Result<TaskSet, BadBytes> {
    let mut tasks = TaskSet::new();
    for _ in 0..reader.length("the number of subtopologies")? {
        let id: Arc<str> = reader.string("a subtopology")?.into();
        tasks.insert(id, reader.list("the number of tasks", |reader| reader.i32("a task"))?.into_iter().collect());
    }
    Ok(tasks)
}

fn contradiction(what: String) -> BadBytes {
    BadBytes::Contradiction { what }
}
