//! StreamsGroupHeartbeat: how members join, go on and leave.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::api::{StreamsHeartbeat, StreamsHeartbeatRequest, StreamsStatus, TaskSet, Tasks};
use super::configure::Found;
use super::topology::Topology;
use super::{Held, Member, MemberState, StreamsGroup};
use crate::coordinator::api::{ConsumerRefused, Reply, Token};
use crate::coordinator::context::Context;
use crate::coordinator::error::Error;

fn refuse(error: Error, message: impl Into<String>) -> ConsumerRefused {
    ConsumerRefused { error, message: message.into() }
}

/// Whether a request makes sense by itself, and asks for nothing that there is not.
pub fn check_request(request: &StreamsHeartbeatRequest) -> Result<(), ConsumerRefused> {
    let invalid = |message: &str| Err(refuse(Error::InvalidRequest, message));
    let has_some = |tasks: &Option<TaskSet>| tasks.as_ref().is_some_and(|tasks| !tasks.is_empty());
    if request.instance_id.is_some() {
        return invalid("Static membership is not yet supported.");
    }
    if request.has_task_offsets {
        return invalid("TaskOffsets are not supported yet.");
    }
    if request.has_task_end_offsets {
        return invalid("TaskEndOffsets are not supported yet.");
    }
    if has_some(&request.warmup) {
        return invalid("WarmupTasks are not supported yet.");
    }
    if request.member_id.is_empty() {
        return invalid("MemberId can't be empty.");
    }
    if request.group_id.is_empty() {
        return invalid("GroupId can't be empty.");
    }
    if request.rack_id.as_deref() == Some("") {
        return invalid("RackId can't be empty.");
    }
    match request.member_epoch {
        0 if request.rebalance_timeout_ms == -1 => {
            return invalid("RebalanceTimeoutMs must be provided in first request.");
        }
        0 if has_some(&request.active) => return invalid("ActiveTasks must be empty when (re-)joining."),
        0 if has_some(&request.standby) => return invalid("StandbyTasks must be empty when (re-)joining."),
        0 => match &request.topology {
            Some(topology) => check_topology(topology)?,
            None => return invalid("Topology must be non-null when (re-)joining."),
        },
        // There are no static members that could come back.
        -2 => return invalid("InstanceId can't be null."),
        -1.. => {}
        epoch => return invalid(&format!("MemberEpoch is {epoch}, but must be greater than or equal to -2.")),
    }
    let said = [request.active.is_some(), request.standby.is_some(), request.warmup.is_some()];
    if said.contains(&true) && said.contains(&false) {
        return invalid("If one task-type is non-null, all must be non-null.");
    }
    if request.member_epoch != 0 && request.topology.is_some() {
        return invalid("Topology can only be provided when (re-)joining.");
    }
    Ok(())
}

fn check_topology(topology: &Topology) -> Result<(), ConsumerRefused> {
    let invalid = |message: String| Err(refuse(Error::StreamsInvalidTopology, message));
    for subtopology in &topology.subtopologies {
        if let Some(topic) = subtopology.changelogs.iter().find(|topic| topic.partitions != 0) {
            return invalid(format!(
                "Changelog topic {} must have an undefined partition count, but it is set to {}.",
                topic.name, topic.partitions
            ));
        }
    }
    if topology.epoch < 0 {
        return invalid(format!("The topology epoch is {}, but must not be negative.", topology.epoch));
    }
    match topology.subtopologies.windows(2).find(|pair| pair[0].id >= pair[1].id) {
        Some(pair) => invalid(format!("Subtopology {} is there twice.", pair[1].id)),
        None => Ok(()),
    }
}

impl StreamsGroup {
    /// Handles a request that has been checked. Answers whether it was taken; one that was refused has changed nothing that
    /// is stored.
    pub fn heartbeat(&mut self, context: &mut Context, token: Token, request: StreamsHeartbeatRequest) -> bool {
        let taken = match request.member_epoch {
            ..0 => self.leave(context, token, &request),
            _ => self.go_on(context, token, request),
        };
        match taken {
            Ok(()) => true,
            Err(refused) => {
                context.reply(token, Reply::StreamsHeartbeat(Err(refused)));
                false
            }
        }
    }

    fn unknown_member(&self, id: &str) -> ConsumerRefused {
        refuse(Error::UnknownMemberId, format!("Member {id} is not a member of group {}.", self.id))
    }

    /// Joins, or goes on.
    fn go_on(
        &mut self,
        context: &mut Context,
        token: Token,
        request: StreamsHeartbeatRequest,
    ) -> Result<(), ConsumerRefused> {
        let joins = request.member_epoch == 0;
        let most = context.config.streams_max_size;
        if joins && self.members.len() >= most {
            let message = format!("The streams group has reached its maximum capacity of {most} members.");
            return Err(refuse(Error::GroupMaxSizeReached, message));
        }
        let id: Arc<str> = request.member_id.as_str().into();
        let known = self.members.get(&id);
        if known.is_none() && !joins {
            return Err(self.unknown_member(&id));
        }
        let before = known.cloned().unwrap_or_else(Member::new);
        let owned = owned(&request);
        check_epoch(&before, request.member_epoch, owned.as_ref())?;
        let mut updated = before.clone();
        take_over(&mut updated, &request);
        let mut statuses = Vec::new();
        if let Some(topology) = &self.topology
            && updated.topology_epoch < topology.epoch
        {
            let message = format!(
                "The member's topology epoch {} is behind the group's topology epoch {}.",
                updated.topology_epoch, topology.epoch
            );
            statuses.push((StreamsStatus::StaleTopology, message));
        }
        let Some(topology) = self.topology_with(request.topology.as_ref())? else {
            return Err(refuse(Error::UnknownServerError, "The group has no topology."));
        };
        let look = self.look(context, topology).map_err(|why| refuse(Error::StreamsInvalidTopology, why))?;
        if let Some(found) = look.found.as_ref().or(self.found.as_ref()) {
            check_tasks(found, owned.as_ref())?;
        }
        // Nothing is refused from here on.
        if self.topology.is_none() {
            self.topology.clone_from(&request.topology);
        }
        self.wait_for_more(context);
        let changed = self.members.get(&id) != Some(&updated);
        if changed {
            self.put(&id, updated);
        }
        self.take_look(context, look, changed);
        let delayed = self.assign_if_due(context);
        statuses.extend(delayed.map(|why| (StreamsStatus::AssignmentDelayed, why.to_owned())));
        self.reconcile(context, &id, owned.as_ref());
        self.refresh_session(context, &id);
        if request.shutdown {
            self.shutdown_by.get_or_insert(id.clone());
        }
        let reply = self.state_of_things(context, &id, &before, &request, owned.as_ref(), statuses);
        self.answer(context, token, Reply::StreamsHeartbeat(Ok(Box::new(reply))));
        self.settle(context);
        Ok(())
    }

    /// What a member is told after its heartbeat. `before` is what it was before.
    fn state_of_things(
        &mut self,
        context: &mut Context,
        id: &Arc<str>,
        before: &Member,
        request: &StreamsHeartbeatRequest,
        owned: Option<&Tasks>,
        mut statuses: Vec<(StreamsStatus, String)>,
    ) -> StreamsHeartbeat {
        let member = &self.members[id];
        let tasks = member.assigned.tasks();
        let is_new = request.member_epoch == 0 || member.assigned != before.assigned;
        // One that comes with the epoch before has not had the last answer. Nor has one that is sparing of words and yet says
        // that it has something else: it does that when its tasks have changed, and after a failure.
        let is_sparing = request.rebalance_timeout_ms == -1;
        let was_lost = request.member_epoch < before.epoch || is_sparing && owned.is_some_and(|owned| *owned != tasks);
        let (member_epoch, has_endpoint) = (member.epoch, member.endpoint.is_some());
        if is_new && has_endpoint {
            self.endpoint_epoch += 1;
            self.ledger.changed(context);
        }
        let mut missing = Vec::new();
        if let Some(found) = &self.found {
            statuses.extend(found.problem.clone());
            missing.clone_from(&found.missing);
        }
        if let Some(by) = &self.shutdown_by {
            let message = format!(
                "Streams group member {by} encountered a fatal error and requested a shutdown for the entire application."
            );
            statuses.push((StreamsStatus::ShutdownApplication, message));
        }
        StreamsHeartbeat {
            member_id: id.to_string(),
            member_epoch,
            heartbeat_interval_ms: self.settings(context).heartbeat_interval_ms,
            statuses,
            tasks: (is_new || was_lost).then_some(tasks),
            endpoint_epoch: self.endpoint_epoch,
            endpoints: (request.endpoint_epoch != self.endpoint_epoch).then(|| self.endpoints(id, context.topics)),
            missing,
        }
    }

    /// The group's topology once somebody has come with this one. The first that comes stays.
    fn topology_with<'a>(&'a self, topology: Option<&'a Topology>) -> Result<Option<&'a Topology>, ConsumerRefused> {
        match (&self.topology, topology) {
            (None, topology) => Ok(topology),
            (Some(has), Some(other)) if has.epoch <= other.epoch && has != other => {
                Err(refuse(Error::InvalidRequest, "Topology updates are not supported yet."))
            }
            (Some(has), _) => Ok(Some(has)),
        }
    }

    fn leave(
        &mut self,
        context: &mut Context,
        token: Token,
        request: &StreamsHeartbeatRequest,
    ) -> Result<(), ConsumerRefused> {
        let id: Arc<str> = request.member_id.as_str().into();
        if request.shutdown && !self.is_empty() {
            self.shutdown_by.get_or_insert(id.clone());
        }
        if !self.members.contains_key(&id) {
            return Err(self.unknown_member(&id));
        }
        let reply = StreamsHeartbeat {
            member_id: request.member_id.clone(),
            member_epoch: request.member_epoch,
            heartbeat_interval_ms: 0,
            statuses: vec![],
            tasks: None,
            endpoint_epoch: 0,
            endpoints: None,
            missing: vec![],
        };
        self.fence(context, &id, Some((token, Reply::StreamsHeartbeat(Ok(Box::new(reply))))));
        Ok(())
    }
}

/// What a member says that it has.
fn owned(request: &StreamsHeartbeatRequest) -> Option<Tasks> {
    Some(Tasks { active: request.active.clone()?, standby: request.standby.clone()? })
}

/// Takes over what a request says about a member; what it leaves out stays as it was.
fn take_over(member: &mut Member, request: &StreamsHeartbeatRequest) {
    if let Some(rack) = &request.rack_id {
        member.rack_id = Some(rack.clone());
    }
    if request.rebalance_timeout_ms != -1 {
        member.rebalance_timeout_ms = request.rebalance_timeout_ms;
    }
    if let Some(topology) = &request.topology {
        member.topology_epoch = topology.epoch;
    }
    if let Some(process) = &request.process_id {
        if *process != member.process_id {
            // What the process before had open, this one has not.
            (member.assigned, member.revoking) = (Held::default(), Held::default());
            (member.state, member.epoch) = (MemberState::Stable, 0);
        }
        member.process_id.clone_from(process);
    }
    if let Some(endpoint) = &request.endpoint {
        member.endpoint = Some(endpoint.clone());
    }
    if let Some(tags) = &request.client_tags {
        member.client_tags = BTreeMap::clone(tags);
    }
    member.client_id.clone_from(&request.client_id);
    member.client_host.clone_from(&request.client_host);
}

/// Whether the epoch that a member comes with is its own. The one before will do if the answer with the new one may have
/// been lost: if it has nothing but what is still its.
fn check_epoch(member: &Member, epoch: i32, owned: Option<&Tasks>) -> Result<(), ConsumerRefused> {
    let than = |what: &str| {
        let message = format!(
            "The streams group member has a {what} member epoch ({epoch}) than the one known by the group coordinator \
             ({}). The member must abandon all its partitions and rejoin.",
            member.epoch
        );
        Err(refuse(Error::FencedMemberEpoch, message))
    };
    let covered = owned.is_some_and(|owned| member.assigned.covers(owned));
    match epoch.cmp(&member.epoch) {
        _ if epoch == 0 => Ok(()),
        std::cmp::Ordering::Greater => than("greater"),
        std::cmp::Ordering::Less if epoch != member.previous_epoch || !covered => than("smaller"),
        std::cmp::Ordering::Less | std::cmp::Ordering::Equal => Ok(()),
    }
}

/// Whether the tasks that a member says it has can be, once it is known which there are.
fn check_tasks(found: &Found, owned: Option<&Tasks>) -> Result<(), ConsumerRefused> {
    let Some(subtopologies) = found.subtopologies.as_ref().filter(|_| found.is_ready()) else { return Ok(()) };
    for (id, partitions) in owned.iter().flat_map(|owned| owned.active.iter().chain(&owned.standby)) {
        let Some(configured) = subtopologies.get(&**id) else {
            let message = format!("Subtopology {id} does not exist in the topology.");
            return Err(refuse(Error::InvalidRequest, message));
        };
        if let Some(partition) = partitions.iter().find(|partition| !(0..configured.tasks).contains(*partition)) {
            let message = format!(
                "Task {partition} for subtopology {id} is invalid. Number of tasks for this subtopology: {}",
                configured.tasks
            );
            return Err(refuse(Error::InvalidRequest, message));
        }
    }
    Ok(())
}
