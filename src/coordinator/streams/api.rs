//! What members of streams groups say and are told, and what is shown of such groups.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::topology::{InternalTopic, Topology};

/// Partitions by subtopology; each is a task. No empty sets.
pub type TaskSet = BTreeMap<Arc<str>, BTreeSet<i32>>;

/// The tasks of one member, by what it does with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tasks {
    /// It processes records.
    pub active: TaskSet,
    /// It keeps a copy of the state.
    pub standby: TaskSet,
}

/// Where a member answers queries of its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub host: String,
    pub port: u16,
}

/// What a member of a streams group says about itself. What it leaves out (`None`, or -1 for the timeout) has not changed
/// since it said it last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamsHeartbeatRequest {
    pub group_id: String,
    pub member_id: String,
    /// 0 to join, -1 to leave.
    pub member_epoch: i32,
    /// Of the endpoints that the member knows.
    pub endpoint_epoch: i32,
    pub instance_id: Option<String>,
    pub rack_id: Option<String>,
    /// Milliseconds in which it gives up tasks when it is asked to.
    pub rebalance_timeout_ms: i32,
    pub client_id: String,
    /// As it is shown in descriptions, for example `/127.0.0.1`.
    pub client_host: String,
    /// In a request to join, and in no other.
    pub topology: Option<Topology>,
    pub active: Option<TaskSet>,
    pub standby: Option<TaskSet>,
    pub warmup: Option<TaskSet>,
    /// Members of one process share what is local to it.
    pub process_id: Option<String>,
    pub endpoint: Option<Endpoint>,
    pub client_tags: Option<BTreeMap<String, String>>,
    /// Whether it says how far its tasks have come, or how far they have to.
    pub has_task_offsets: bool,
    pub has_task_end_offsets: bool,
    /// The whole application is to stop.
    pub shutdown: bool,
}

/// What is not as it should be with a member or its group, beside what a heartbeat is refused for. The discriminants are
/// the codes of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i8)]
pub enum StreamsStatus {
    StaleTopology = 0,
    MissingSourceTopics = 1,
    IncorrectlyPartitionedTopics = 2,
    MissingInternalTopics = 3,
    ShutdownApplication = 4,
    AssignmentDelayed = 5,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamsHeartbeat {
    pub member_id: String,
    pub member_epoch: i32,
    /// Milliseconds; 0 for a member that has left.
    pub heartbeat_interval_ms: i32,
    /// Each with its details, for the client's log.
    pub statuses: Vec<(StreamsStatus, String)>,
    /// What the member is to have now; `None` if that is what it was told before.
    pub tasks: Option<Tasks>,
    pub endpoint_epoch: i32,
    /// `None` if the member knows them.
    pub endpoints: Option<Vec<EndpointPartitions>>,
    /// Topics that have to be made before there are tasks.
    pub missing: Vec<InternalTopic>,
}

/// The partitions whose records are processed behind an endpoint, or whose state is copied to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointPartitions {
    pub endpoint: Endpoint,
    pub active: Vec<(String, Vec<i32>)>,
    pub standby: Vec<(String, Vec<i32>)>,
}

/// A streams group as StreamsGroupDescribe shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedStreamsGroup {
    pub group_id: String,
    pub state: &'static str,
    pub epoch: i32,
    /// The epoch that the target assignment was made for.
    pub assignment_epoch: i32,
    /// With the partition counts of internal topics, where they are known.
    pub topology: Option<Topology>,
    pub members: Vec<DescribedStreamsMember>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedStreamsMember {
    pub member_id: String,
    pub rack_id: Option<String>,
    pub epoch: i32,
    pub client_id: String,
    pub client_host: String,
    pub topology_epoch: i32,
    pub process_id: String,
    pub endpoint: Option<Endpoint>,
    pub client_tags: BTreeMap<String, String>,
    pub assigned: Tasks,
    pub target: Tasks,
}
